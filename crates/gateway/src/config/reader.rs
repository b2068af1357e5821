//! Walks a TOML document, keeps every mistake with its line, and goes on.

use causeway_wire::TextError;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) struct Reader<'a> {
    text: &'a str,
    file: PathBuf,
    root: Option<Table<'a>>,
    mistakes: Vec<(usize, String)>,
}

/// A table of the document: its path for messages, where it begins, and its contents.
#[derive(Clone)]
pub(super) struct Table<'a> {
    path: String,
    start: usize,
    entries: DeTable<'a>,
}

type Found<'a> = Spanned<DeValue<'a>>;

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, file: &Path) -> Reader<'a> {
        let mut reader = Reader {
            text,
            file: file.to_owned(),
            root: None,
            mistakes: Vec::new(),
        };
        match DeTable::parse(text) {
            Ok(table) => {
                reader.root = Some(Table {
                    path: String::new(),
                    start: 0,
                    entries: table.into_inner(),
                });
            }
            Err(error) => {
                let start = error.span().map_or(0, |span| span.start);
                reader.mistakes.push((start, error.message().to_owned()));
            }
        }
        reader
    }

    pub(super) fn root(&mut self) -> Option<Table<'a>> {
        self.root.take()
    }

    /// One `file:line: key: reason` per mistake, in the order of the file.
    pub(super) fn into_mistakes(mut self) -> Vec<String> {
        self.mistakes.sort();
        let line = |start: usize| 1 + self.text[..start.min(self.text.len())].matches('\n').count();
        self.mistakes
            .iter()
            .map(|(start, reason)| format!("{}:{}: {reason}", self.file.display(), line(*start)))
            .collect()
    }

    pub(super) fn mistake_at(&mut self, table: &Table, key: &str, reason: &str) {
        let start = table
            .entries
            .get(key)
            .map_or(table.start, |value| value.span().start);
        self.mistakes
            .push((start, format!("{}: {reason}", table.key(key))));
    }

    pub(super) fn table(&mut self, parent: &Table<'a>, key: &str, required: bool) -> Option<Table<'a>> {
        match parent.entries.get(key) {
            Some(value) => match value.get_ref() {
                DeValue::Table(entries) => Some(parent.child(key, value, entries)),
                _ => self.wrong(parent, key, "is not a table"),
            },
            None if required => self.wrong(parent, key, "is missing"),
            None => None,
        }
    }

    pub(super) fn tables(&mut self, parent: &Table<'a>, key: &str) -> Vec<Table<'a>> {
        let Some(value) = parent.entries.get(key) else {
            return Vec::new();
        };
        let DeValue::Array(items) = value.get_ref() else {
            self.mistake_at(parent, key, "is not a list of tables");
            return Vec::new();
        };
        let tables: Vec<_> = items
            .iter()
            .filter_map(|item| match item.get_ref() {
                DeValue::Table(entries) => Some(parent.child(key, item, entries)),
                _ => None,
            })
            .collect();
        if tables.len() < items.len() {
            self.mistake_at(parent, key, "holds something that is not a table");
        }
        tables
    }

    pub(super) fn string<T>(
        &mut self,
        table: &Table<'a>,
        key: &str,
        read: impl Fn(&str) -> Result<T, TextError>,
    ) -> Option<T> {
        let value = table.entries.get(key)?;
        let DeValue::String(text) = value.get_ref() else {
            return self.wrong(table, key, "is not a string");
        };
        read(text)
            .map_err(|reason| self.mistake_at(table, key, &reason))
            .ok()
    }

    pub(super) fn required_string<T>(
        &mut self,
        table: &Table<'a>,
        key: &str,
        read: impl Fn(&str) -> Result<T, TextError>,
    ) -> Option<T> {
        if table.entries.contains_key(key) {
            self.string(table, key, read)
        } else {
            self.wrong(table, key, "is missing")
        }
    }

    pub(super) fn list<T>(
        &mut self,
        table: &Table<'a>,
        key: &str,
        read: impl Fn(&str) -> Result<T, TextError>,
    ) -> Option<Vec<T>> {
        let is_empty = matches!(table.entries.get(key)?.get_ref(), DeValue::Array(items) if items.is_empty());
        if is_empty {
            return self.wrong(table, key, "is empty");
        }
        self.list_or_empty(table, key, read)
    }

    pub(super) fn list_or_empty<T>(
        &mut self,
        table: &Table<'a>,
        key: &str,
        read: impl Fn(&str) -> Result<T, TextError>,
    ) -> Option<Vec<T>> {
        let value: &Found = table.entries.get(key)?;
        let DeValue::Array(items) = value.get_ref() else {
            return self.wrong(table, key, "is not a list of strings");
        };
        let mut list = Vec::new();
        for item in items {
            match item.get_ref() {
                DeValue::String(text) => match read(text) {
                    Ok(value) => list.push(value),
                    Err(reason) => self.mistake_at(table, key, &reason),
                },
                _ => self.mistake_at(table, key, "holds something that is not a string"),
            }
        }
        Some(list)
    }

    pub(super) fn required_list<T>(
        &mut self,
        table: &Table<'a>,
        key: &str,
        read: impl Fn(&str) -> Result<T, TextError>,
    ) -> Option<Vec<T>> {
        if table.entries.contains_key(key) {
            self.list(table, key, read)
        } else {
            self.wrong(table, key, "is missing")
        }
    }

    pub(super) fn integer(
        &mut self,
        table: &Table<'a>,
        key: &str,
        range: RangeInclusive<i64>,
    ) -> Option<i64> {
        let value = table.entries.get(key)?;
        let number = match value.get_ref() {
            DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix()).ok(),
            _ => None,
        };
        match number {
            Some(number) if range.contains(&number) => Some(number),
            _ => {
                let reason = format!("is not a whole number from {} to {}", range.start(), range.end());
                self.wrong(table, key, &reason)
            }
        }
    }

    pub(super) fn boolean(&mut self, table: &Table<'a>, key: &str) -> Option<bool> {
        match table.entries.get(key)?.get_ref() {
            DeValue::Boolean(value) => Some(*value),
            _ => self.wrong(table, key, "is not true or false"),
        }
    }

    pub(super) fn no_other_keys(&mut self, table: &Table<'a>, known: &[&str]) {
        for (key, value) in table.entries.iter() {
            let key = key.get_ref().as_ref();
            if !known.contains(&key) {
                let reason = format!(
                    "{}: is not a key here (known: {})",
                    table.key(key),
                    known.join(", ")
                );
                self.mistakes.push((value.span().start, reason));
            }
        }
    }

    fn wrong<T>(&mut self, table: &Table, key: &str, reason: &str) -> Option<T> {
        self.mistake_at(table, key, reason);
        None
    }
}

impl<'a> Table<'a> {
    pub(super) fn keys(&self) -> Vec<String> {
        { self.entries.iter() }
            .map(|(key, _)| key.get_ref().to_string())
            .collect()
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    fn key(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    fn child(&self, key: &str, value: &Found<'a>, entries: &DeTable<'a>) -> Table<'a> {
        Table {
            path: self.key(key),
            start: value.span().start,
            entries: entries.clone(),
        }
    }
}
