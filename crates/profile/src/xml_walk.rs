//! Walks an XML document: it finds elements, and notes what nobody has read, so that nothing is dropped
//! silently.

use crate::notes::Notes;
use roxmltree::{Attribute, Node};

/// Elements may have namespace attributes for tools that check documents; these say nothing about the job.
const SCHEMA_INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// The path of an element, for messages.
pub(crate) fn path(node: Node) -> String {
    let all = node.ancestors().filter(Node::is_element);
    let mut names: Vec<&str> = all.map(|node| node.tag_name().name()).collect();
    names.reverse();
    names.join("/")
}

/// Where an element begins.
pub(crate) fn at(node: Node) -> usize {
    node.range().start
}

/// What an element may contain. Everything else is reported.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub attributes: &'static [&'static str],
    /// Elements that may occur once at most.
    pub single: &'static [&'static str],
    /// Elements that may occur many times.
    pub many: &'static [&'static str],
    /// Whether the element has a text instead.
    pub has_text: bool,
}

/// An element that has nothing at all, as a base for others.
pub(crate) const NOTHING: Known = Known {
    attributes: &[],
    single: &[],
    many: &[],
    has_text: false,
};

/// A text.
pub(crate) const TEXT: Known = Known {
    has_text: true,
    ..NOTHING
};

impl Known {
    /// Notes what an element contains besides what is known: unknown parts as warnings, and repeated ones
    /// that may occur only once as mistakes.
    pub(crate) fn look(self, node: Node, notes: &mut Notes) {
        let path = path(node);
        for attribute in node.attributes() {
            self.read_attribute(attribute, &path, at(node), notes);
        }
        for child in node.children() {
            let name = child.tag_name().name();
            if child.is_text() {
                let text = trimmed(child.text().unwrap_or_default());
                if !self.has_text && !text.is_empty() {
                    let start: String = text.chars().take(40).collect();
                    let reason = format!("the text {start:?} is not understood and left out");
                    notes.warn_at(at(child), path.clone(), reason);
                }
            } else if child.is_element() && self.single.contains(&name) {
                let is_first = child_named(node, name) == Some(child);
                if !is_first {
                    notes.mistake_at(at(child), self::path(child), "is there twice");
                }
            } else if child.is_element() && !self.many.contains(&name) {
                notes.warn_at(at(child), self::path(child), "is not understood and left out");
            }
        }
    }

    fn read_attribute(self, attribute: Attribute, path: &str, at: usize, notes: &mut Notes) {
        let is_known = attribute.namespace().is_none() && self.attributes.contains(&attribute.name());
        if !is_known && attribute.namespace() != Some(SCHEMA_INSTANCE) {
            let reason = "is not understood and left out";
            notes.warn_at(at, format!("{path}@{}", attribute.name()), reason);
        }
    }
}

/// The first element with this name in another element.
pub(crate) fn child_named<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    elements(node, name).next()
}

/// All elements with this name in another element.
pub(crate) fn elements<'a, 'i>(node: Node<'a, 'i>, name: &str) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children()
        .filter(move |child| child.is_element() && child.tag_name().name() == name)
}

/// The text of an element, without blanks around it; `None` if it has none.
pub(crate) fn text(node: Node) -> Option<String> {
    let pieces = node
        .children()
        .filter(Node::is_text)
        .filter_map(|child| child.text());
    let all: String = pieces.collect();
    let text = trimmed(&all);
    (!text.is_empty()).then(|| text.to_owned())
}

/// Removes from both ends what XML counts as blanks.
pub(crate) fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\r', '\n'])
}

/// The value of an attribute; notes a mistake if there is none.
pub(crate) fn required(node: Node, name: &str, notes: &mut Notes) -> Option<String> {
    let value = node
        .attribute(name)
        .map(trimmed)
        .filter(|value| !value.is_empty());
    if value.is_none() {
        notes.mistake_at(at(node), path(node), format!("has no {name}"));
    }
    value.map(str::to_owned)
}
