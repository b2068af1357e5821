//! Walks a TOML document: finds keys, remembers where they are, and notes what has a wrong type.

use crate::keys::Key;
use crate::notes::Notes;
use crate::{MAX_WORD_BYTES, MAX_WORDS};
use causeway_units::{Measure, SPEED};
use causeway_wire::TextError;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A table with its path, with which messages begin.
#[derive(Debug, Clone)]
pub(crate) struct Table<'t> {
    pub path: String,
    pub entries: &'t DeTable<'t>,
}

/// The beginning of the reason for a key that is not known.
pub(crate) const UNKNOWN: &str = "is not a key here";

type Value<'t> = Spanned<DeValue<'t>>;

impl<'t> Table<'t> {
    /// The path of a key in it.
    pub(crate) fn key(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// Its keys with their values, in the order of the text.
    pub(crate) fn in_order(&self) -> Vec<(&'t str, usize, &'t Value<'t>)> {
        let all = self.entries.iter();
        let mut all: Vec<_> = all
            .map(|(key, value)| (key.get_ref().as_ref(), key.span().start, value))
            .collect();
        all.sort_by_key(|(_, at, _)| *at);
        all
    }

    /// Notes keys that are not known.
    pub(crate) fn refuse_others(&self, known: &[Key], notes: &mut Notes) {
        let names: Vec<&str> = known.iter().map(|key| key.name).collect();
        for (name, at, _) in self.in_order() {
            if !names.contains(&name) {
                let reason = format!("{UNKNOWN} (known: {})", names.join(", "));
                notes.mistake_at(at, self.key(name), reason);
            }
        }
    }

    /// The value of a key, and its path.
    pub(crate) fn value(&self, name: &str, notes: &mut Notes) -> Option<(String, &'t DeValue<'t>)> {
        let value = self.entries.get(name)?;
        let key = self.key(name);
        notes.place(&key, value.span().start);
        Some((key, value.get_ref()))
    }

    /// A value that a function understands, or a mistake.
    pub(crate) fn read<T>(
        &self,
        name: &str,
        notes: &mut Notes,
        read: impl Fn(&'t DeValue<'t>) -> Result<T, TextError>,
    ) -> Option<T> {
        let (key, value) = self.value(name, notes)?;
        read(value).map_err(|reason| notes.mistake(key, &*reason)).ok()
    }

    /// A table in this table.
    pub(crate) fn table(&self, name: &str, notes: &mut Notes) -> Option<Table<'t>> {
        let (path, value) = self.value(name, notes)?;
        match value {
            DeValue::Table(entries) => Some(Table { path, entries }),
            _ => {
                notes.mistake(path, "is not a table");
                None
            }
        }
    }

    /// The tables in it whose names the user has chosen, with these names and their places.
    pub(crate) fn named(&self, what: &str, most: usize, notes: &mut Notes) -> Vec<(&'t str, Table<'t>)> {
        let mut tables = Vec::new();
        for (name, at, value) in self.in_order() {
            let path = self.key(name);
            notes.place(&path, at);
            match value.get_ref() {
                DeValue::Table(entries) => tables.push((name, Table { path, entries })),
                _ => notes.mistake(path, format!("is not a table, as each {what} is")),
            }
        }
        if tables.len() > most {
            notes.mistake(self.path.clone(), format!("has more than {most}"));
            tables.truncate(most);
        }
        tables
    }
}

/// A text.
pub(crate) fn text<'t>(value: &'t DeValue<'t>) -> Result<&'t str, TextError> {
    value.as_str().ok_or_else(|| "is not a text".into())
}

/// A quantity: a text with a unit, or a number if it has none.
pub(crate) fn measure(value: &DeValue, measure: &Measure) -> Result<u64, TextError> {
    let has_unit = !std::ptr::eq(measure, &raw const SPEED);
    match value {
        DeValue::String(text) if has_unit => measure.read(text),
        DeValue::Integer(number) if !has_unit && number.radix() == 10 => measure.read(number.as_str()),
        DeValue::Float(number) if !has_unit => measure.read(number.as_str()),
        _ => Err(format!("is not {}", measure.such_as).into()),
    }
}

/// A whole number from 1.
pub(crate) fn count(value: &DeValue, most: u32) -> Result<u32, TextError> {
    let number = match value {
        DeValue::Integer(number) => u32::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    };
    let number = number.filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("is not a whole number from 1 to {most}").into())
}

/// The words of a command.
pub(crate) fn words(value: &DeValue) -> Result<Vec<String>, TextError> {
    let words: Vec<String> = match value {
        DeValue::String(text) => text.split_ascii_whitespace().map(str::to_owned).collect(),
        DeValue::Array(items) => {
            let words = items
                .iter()
                .map(|item| item.get_ref().as_str().map(str::to_owned));
            let words: Option<_> = words.collect();
            words.ok_or("is a list with something that is not a text")?
        }
        _ => return Err("is neither a text nor a list of words".into()),
    };
    check_words(&words)?;
    Ok(words)
}

/// Says why words are not a command.
pub(crate) fn check_words(words: &[String]) -> Result<(), TextError> {
    if words.first().is_none_or(String::is_empty) {
        return Err("names no program".into());
    }
    if words.len() > MAX_WORDS || words.iter().any(|word| word.len() > MAX_WORD_BYTES) {
        let reason = format!("has {MAX_WORDS} words of {MAX_WORD_BYTES} bytes at most");
        return Err(reason.into());
    }
    match words.iter().find(|word| word.chars().any(char::is_control)) {
        Some(word) => Err(format!("{word:?} holds a control character").into()),
        None => Ok(()),
    }
}
