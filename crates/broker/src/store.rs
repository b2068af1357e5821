//! What the broker must not forget, in one file: JSON values in the tables of an embedded database.
//!
//! A change is on the disk before anybody is told of it. The database is locked by the one process that uses
//! it.

use redb::{Builder, Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// What may be read again quickly. All of it is in memory anyway, once read.
const CACHE_BYTES: usize = 16 * 1024 * 1024;

/// A table: name and value, by a name.
pub(crate) type Table = TableDefinition<'static, &'static str, &'static [u8]>;

/// One value each: the format's version, the revocations.
pub(crate) const META: Table = TableDefinition::new("meta");
/// By the hash of their secrets.
pub(crate) const TOKENS: Table = TableDefinition::new("tokens");
/// By site.
pub(crate) const MEMBERS: Table = TableDefinition::new("members");
/// When each site last spoke, by site: apart from its record, which is long and seldom changes.
pub(crate) const SEEN: Table = TableDefinition::new("seen");
/// By number.
pub(crate) const JOBS: Table = TableDefinition::new("jobs");

/// The format of what is in the tables.
const VERSION: u32 = 1;

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process uses it.
    #[error("{} is in use: by a broker that starts, stops or does not answer at its socket, or by another command; try again", .0.display())]
    InUse(PathBuf),
    /// A later program wrote it.
    #[error("{} has format {found}; this program knows {VERSION}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: u32,
    },
    /// The disk, or a damaged file.
    #[error("store {}: {reason}", path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// What the database said.
        reason: String,
    },
}

/// The store, locked by this process.
pub(crate) struct Store {
    path: PathBuf,
    database: Database,
}

/// Changes that are made together or not at all.
#[derive(Default)]
pub(crate) struct Change {
    writes: Vec<(Table, String, Option<Vec<u8>>)>,
}

impl Change {
    pub(crate) fn put<T: Serialize>(mut self, table: Table, key: &str, value: &T) -> Change {
        // Values are structs of strings, numbers and lists, which have a JSON form.
        let bytes = serde_json::to_vec(value).unwrap_or_default();
        self.writes.push((table, key.to_owned(), Some(bytes)));
        self
    }

    pub(crate) fn remove(mut self, table: Table, key: &str) -> Change {
        self.writes.push((table, key.to_owned(), None));
        self
    }
}

impl Store {
    /// Opens the store, or makes it. One that a killed process left is repaired.
    pub(crate) fn open(path: &Path) -> Result<Store, StoreError> {
        make_private(path)?;
        let opened = Builder::new().set_cache_size(CACHE_BYTES).create(path);
        let database = opened.map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => StoreError::InUse(path.to_owned()),
            other => failed(path, &other),
        })?;
        let store = Store {
            path: path.to_owned(),
            database,
        };
        match store
            .all::<u32>(META)?
            .into_iter()
            .find(|(key, _)| key == "version")
        {
            None => store.change(Change::default().put(META, "version", &VERSION))?,
            Some((_, VERSION)) => {}
            Some((_, found)) => {
                let path = store.path;
                return Err(StoreError::Version { path, found });
            }
        }
        Ok(store)
    }

    /// Makes changes; they are on the disk once this returns.
    pub(crate) fn change(&self, change: Change) -> Result<(), StoreError> {
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            for (table, key, value) in &change.writes {
                let mut table = transaction.open_table(*table)?;
                match value {
                    Some(bytes) => table.insert(key.as_str(), bytes.as_slice())?,
                    None => table.remove(key.as_str())?,
                };
            }
            transaction.commit()?;
            Ok(())
        };
        write().map_err(|error| failed(&self.path, &error))
    }

    /// All of a table. Values of `META` that are of another type are left out.
    pub(crate) fn all<T: DeserializeOwned>(&self, table: Table) -> Result<Vec<(String, T)>, StoreError> {
        let read = || -> Result<Vec<(String, Vec<u8>)>, redb::Error> {
            let transaction = self.database.begin_read()?;
            let table = match transaction.open_table(table) {
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
                table => table?,
            };
            let mut all = Vec::new();
            for entry in table.iter()? {
                let (key, value) = entry?;
                all.push((key.value().to_owned(), value.value().to_vec()));
            }
            Ok(all)
        };
        let all = read().map_err(|error| failed(&self.path, &error))?;
        let parsed = all
            .into_iter()
            .filter_map(|(key, bytes)| match serde_json::from_slice(&bytes) {
                Ok(value) => Some(Ok((key, value))),
                Err(_) if table_is_mixed(table) => None,
                Err(error) => Some(Err(failed(&self.path, &format_args!("{key}: {error}")))),
            });
        parsed.collect()
    }
}

fn table_is_mixed(table: Table) -> bool {
    use redb::TableHandle;
    table.name() == META.name()
}

/// The file is made for this user alone, before anything is in it.
fn make_private(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    let made = options
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path);
    made.map(|_| ()).map_err(|error| failed(path, &error))
}

fn failed(path: &Path, reason: &impl std::fmt::Display) -> StoreError {
    StoreError::Failed {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn what_was_changed_is_there_again_and_the_file_is_its_owners() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        let store = Store::open(&path).unwrap();
        let change = Change::default()
            .put(TOKENS, "a", &1)
            .put(TOKENS, "b", &2)
            .put(META, "other", &"text");
        store.change(change).unwrap();
        store.change(Change::default().remove(TOKENS, "a")).unwrap();
        assert!(matches!(Store::open(&path), Err(StoreError::InUse(_))));
        drop(store);
        let store = Store::open(&path).unwrap();
        assert_eq!(store.all::<u32>(TOKENS).unwrap(), [("b".to_owned(), 2)]);
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        store.change(Change::default().put(META, "version", &9)).unwrap();
        drop(store);
        assert!(matches!(
            Store::open(&path),
            Err(StoreError::Version { found: 9, .. })
        ));
    }
}
