//! Vertices of a JGF, as the text has them.

use crate::notes::Mistakes;
use crate::{MAX_TEXT, MAX_VERTICES};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// A vertex. What its metadata leave out has the default of Flux.
pub(crate) struct Vertex<'a> {
    pub id: &'a str,
    pub kind: &'a str,
    pub name: Cow<'a, str>,
    pub size: u64,
    pub unit: &'a str,
    pub is_down: bool,
    properties: Option<&'a Map<String, Value>>,
}

impl<'a> Vertex<'a> {
    /// A property as a text, even if it is a number.
    pub(crate) fn property(&self, key: &str) -> Option<Cow<'a, str>> {
        match self.properties?.get(key)? {
            Value::String(text) => Some(Cow::Borrowed(text)),
            value @ (Value::Number(_) | Value::Bool(_)) => Some(Cow::Owned(value.to_string())),
            _ => None,
        }
    }

    /// Properties without a value, by which Flux says what features a node has. A name with a comma would be
    /// read as two.
    pub(crate) fn features(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let all = self.properties.into_iter().flatten();
        let without = all.filter(|(_, value)| value.as_str() == Some(""));
        let keys = without.map(|(key, _)| key.as_str());
        keys.filter(|key| !key.is_empty() && !key.contains(','))
    }

    /// How a mistake names the vertex.
    pub(crate) fn called(&self) -> String {
        format!("{} {} (id {:?})", self.kind, self.name, self.id)
    }
}

/// The vertices, as far as they are understood.
pub(crate) fn vertices<'a>(graph: &'a Map<String, Value>, mistakes: &mut Mistakes) -> Vec<Vertex<'a>> {
    let Some(list) = list(graph, "nodes", mistakes) else {
        return Vec::new();
    };
    let mut read = Vec::with_capacity(list.len());
    for (at, value) in list.iter().enumerate() {
        match vertex(value) {
            Ok(vertex) => read.push(vertex),
            Err(why) => mistakes.add(format!("graph.nodes[{at}]{why}")),
        }
    }
    read
}

/// A list of the graph; a mistake if it is too long.
pub(crate) fn list<'a>(
    graph: &'a Map<String, Value>,
    key: &str,
    mistakes: &mut Mistakes,
) -> Option<&'a Vec<Value>> {
    match graph.get(key) {
        Some(Value::Array(list)) if list.len() <= MAX_VERTICES => return Some(list),
        Some(Value::Array(list)) => {
            mistakes.add(format!(
                "graph.{key}: has {} entries; {MAX_VERTICES} are allowed",
                list.len()
            ));
        }
        Some(_) => mistakes.add(format!("graph.{key}: is not a list")),
        None => mistakes.add(format!("graph.{key}: is missing")),
    }
    None
}

fn vertex(value: &Value) -> Result<Vertex<'_>, String> {
    let id = text(value.get("id"), ".id")?.ok_or(".id: is missing")?;
    let metadata = match value.get("metadata") {
        Some(Value::Object(metadata)) => metadata,
        Some(_) => return Err(".metadata: is not an object".to_owned()),
        None => return Err(".metadata: is missing".to_owned()),
    };
    let properties = match metadata.get("properties") {
        Some(Value::Object(properties)) => Some(properties),
        Some(Value::Null) | None => None,
        Some(_) => return Err(".metadata.properties: is not an object".to_owned()),
    };
    let kind = text(metadata.get("type"), ".metadata.type")?.ok_or(".metadata.type: is missing")?;
    let basename = text(metadata.get("basename"), ".metadata.basename")?.unwrap_or(kind);
    let name = match text(metadata.get("name"), ".metadata.name")? {
        Some(name) => Cow::Borrowed(name),
        None => {
            let number = metadata.get("id").and_then(Value::as_i64);
            Cow::Owned(number.map_or_else(
                || format!("{basename}{id}"),
                |number| format!("{basename}{number}"),
            ))
        }
    };
    Ok(Vertex {
        id,
        kind,
        name,
        size: number(metadata.get("size"), ".metadata.size")?.unwrap_or(1),
        unit: text(metadata.get("unit"), ".metadata.unit")?.unwrap_or(""),
        is_down: number(metadata.get("status"), ".metadata.status")?.unwrap_or(0) != 0,
        properties,
    })
}

fn text<'a>(value: Option<&'a Value>, key: &str) -> Result<Option<&'a str>, String> {
    match value {
        Some(Value::String(text)) if text.len() <= MAX_TEXT => Ok(Some(text)),
        Some(Value::String(_)) => Err(format!("{key}: is longer than {MAX_TEXT} bytes")),
        Some(Value::Null) | None => Ok(None),
        Some(_) => Err(format!("{key}: is not a text")),
    }
}

fn number(value: Option<&Value>, key: &str) -> Result<Option<u64>, String> {
    match value {
        Some(Value::Null) | None => Ok(None),
        Some(value) => { value.as_u64() }
            .map(Some)
            .ok_or_else(|| format!("{key}: is not a whole number from 0")),
    }
}
