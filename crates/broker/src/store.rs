//! Keeps what the broker must not forget in one file: JSON values in the tables of an embedded database.
//!
//! A change is on the disk before anybody is told of it. The database is locked by the one process that uses
//! it. If it cannot be written, the change is refused, and the database is reopened for the next one: a disk
//! that is full for a minute costs that minute. If it cannot be reopened because it no longer belongs to this
//! process, the store is lost, and the broker ends.

use crate::files;
use redb::{
    Builder, CompactionError, Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError,
    TableDefinition,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The cache of the database. It may be small, because everything is kept in memory anyway once it has been
/// read.
const CACHE_BYTES: usize = 16 * 1024 * 1024;

/// A table of values by name.
pub(crate) type Table = TableDefinition<'static, &'static str, &'static [u8]>;

/// Single values: the format's version, the revocations.
pub(crate) const META: Table = TableDefinition::new("meta");
/// Tokens, by the hash of their secrets.
pub(crate) const TOKENS: Table = TableDefinition::new("tokens");
/// Members, by site.
pub(crate) const MEMBERS: Table = TableDefinition::new("members");
/// The ranges that a site may have, by site, if the administrator has named any.
pub(crate) const GRANTS: Table = TableDefinition::new("grants");
/// When each site last spoke, by site: kept apart from its record, which is long and seldom changes.
pub(crate) const SEEN: Table = TableDefinition::new("seen");
/// Records that brokers share, by the hash of their text.
pub(crate) const RECORDS: Table = TableDefinition::new("records");
/// Jobs, by number.
pub(crate) const JOBS: Table = TableDefinition::new("jobs");

/// The format of what is in the tables.
pub const VERSION: u32 = 1;

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process uses the store.
    #[error("{} is in use: by a broker that starts, stops or does not answer at its socket, or by another command; try again", .0.display())]
    InUse(PathBuf),
    /// A later version of the program wrote it.
    #[error("{} has format {found}; this program knows {VERSION}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version that the store contains.
        found: u32,
    },
    /// The disk failed, or the file is damaged.
    #[error("store {}: {reason}", path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// What the database said.
        reason: String,
    },
    /// The store could not be reopened: it is gone, damaged, or somebody else's.
    #[error("store {} is lost: {reason}", path.display())]
    Lost {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
}

/// The store, locked by this process.
pub(crate) struct Store {
    path: PathBuf,
    /// Device and inode number of the file: another file in its place contains something else.
    file: (u64, u64),
    /// The open store. `None` between a change that failed and the next one.
    database: Option<Database>,
    /// Why the last change failed, if it did.
    trouble: Option<String>,
    /// Why nothing can ever be written again, if that is so.
    lost: Option<String>,
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

    /// Joins two changes, which are made together or not at all.
    pub(crate) fn and(mut self, other: Change) -> Change {
        self.writes.extend(other.writes);
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
        if !path.exists() {
            make(path)?;
        }
        let database = builder().open(path).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => StoreError::InUse(path.to_owned()),
            other => failed(path, &other),
        })?;
        let store = Store {
            path: path.to_owned(),
            file: identity(path).map_err(|error| failed(path, &error))?,
            database: Some(database),
            trouble: None,
            lost: None,
        };
        let versions = store.all::<u32>(META)?.into_iter();
        match versions
            .filter(|(key, _)| key == "version")
            .map(|(_, found)| found)
            .next()
        {
            Some(VERSION) => Ok(store),
            Some(found) => Err(StoreError::Version {
                path: store.path,
                found,
            }),
            None => Err(failed(path, &"it has no version, so it is not a broker's store")),
        }
    }

    /// Makes changes; they are on the disk once this returns. Changes that failed may or may not have been
    /// made, as after a crash.
    pub(crate) fn change(&mut self, change: Change) -> Result<(), StoreError> {
        if change.writes.is_empty() {
            return Ok(());
        }
        let done = self.try_change(&change);
        self.trouble = done.as_ref().err().map(ToString::to_string);
        done
    }

    /// Gives the space of removed values back to the disk.
    pub(crate) fn shrink(&mut self) {
        let Some(mut database) = self.database.take() else {
            return;
        };
        // A database that has failed once refuses everything that follows, so it is dropped.
        if !matches!(database.compact(), Err(CompactionError::Storage(_))) {
            self.database = Some(database);
        }
    }

    /// Returns the reason why the last change failed, if it did.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Returns the reason why nothing can ever be written again, if there is one.
    pub(crate) fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    fn try_change(&mut self, change: &Change) -> Result<(), StoreError> {
        let database = match self.database.take() {
            Some(database) => database,
            None => self.reopen()?,
        };
        // A database that has failed once refuses everything that follows, so it is dropped.
        write(&database, change).map_err(|error| failed(&self.path, &error))?;
        self.database = Some(database);
        Ok(())
    }

    fn reopen(&mut self) -> Result<Database, StoreError> {
        if self.lost.is_none() {
            match identity(&self.path) {
                Ok(file) if file == self.file => {}
                Ok(_) => self.lost = Some("another file is in its place".to_owned()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => self.lost = Some(error.to_string()),
                Err(error) => return Err(failed(&self.path, &error)),
            }
        }
        let lost = match &self.lost {
            Some(reason) => reason.clone(),
            None => match builder().open(&self.path) {
                Ok(database) => return Ok(database),
                Err(DatabaseError::Storage(StorageError::Io(error))) => {
                    return Err(failed(&self.path, &error));
                }
                Err(DatabaseError::DatabaseAlreadyOpen) => "another process uses it".to_owned(),
                Err(other) => other.to_string(),
            },
        };
        self.lost = Some(lost.clone());
        Err(StoreError::Lost {
            path: self.path.clone(),
            reason: lost,
        })
    }

    /// All rows of a table. Values of `META` that have another type are left out.
    pub(crate) fn all<T: DeserializeOwned>(&self, table: Table) -> Result<Vec<(String, T)>, StoreError> {
        let read = || -> Result<Vec<(String, Vec<u8>)>, redb::Error> {
            let Some(database) = &self.database else {
                return Err(redb::Error::PreviousIo);
            };
            let transaction = database.begin_read()?;
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

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

fn write(database: &Database, change: &Change) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    for (table, key, value) in &change.writes {
        let mut table = transaction.open_table(*table)?;
        match value {
            Some(bytes) => table.insert(key.as_str(), bytes.as_slice())?,
            None => table.remove(key.as_str())?,
        };
    }
    transaction.commit()?;
    Ok(())
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = std::fs::metadata(path)?;
    Ok((found.dev(), found.ino()))
}

fn table_is_mixed(table: Table) -> bool {
    use redb::TableHandle;
    table.name() == META.name()
}

/// Makes an empty store for this user alone. It gets its name once it is complete: a partial one that a full
/// disk left behind could never be opened.
fn make(path: &Path) -> Result<(), StoreError> {
    let part =
        tempfile::NamedTempFile::new_in(files::directory_of(path)).map_err(|error| failed(path, &error))?;
    let database = builder()
        .create(part.path())
        .map_err(|error| failed(path, &error))?;
    write(&database, &Change::default().put(META, "version", &VERSION))
        .map_err(|error| failed(path, &error))?;
    drop(database);
    match part.persist_noclobber(path) {
        // Another process of this user has made it meanwhile.
        Err(there) if there.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        named => named.map(|_| ()).map_err(|error| failed(path, &error.error)),
    }
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

    #[test]
    fn what_was_changed_is_there_again_and_the_file_is_its_owners() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        let mut store = Store::open(&path).unwrap();
        let change = Change::default()
            .put(TOKENS, "a", &1)
            .put(TOKENS, "b", &2)
            .put(META, "other", &"text");
        store.change(change).unwrap();
        store.change(Change::default().remove(TOKENS, "a")).unwrap();
        assert!(matches!(Store::open(&path), Err(StoreError::InUse(_))));
        drop(store);
        let mut store = Store::open(&path).unwrap();
        assert_eq!(store.all::<u32>(TOKENS).unwrap(), [("b".to_owned(), 2)]);
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        store.change(Change::default().put(META, "version", &9)).unwrap();
        drop(store);
        assert!(matches!(
            Store::open(&path),
            Err(StoreError::Version { found: 9, .. })
        ));
    }

    #[test]
    fn a_store_whose_file_is_no_longer_its_own_is_lost_once_it_has_to_be_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        let mut store = Store::open(&path).unwrap();
        let change = || Change::default().put(TOKENS, "a", &1);
        store.database = None;
        store.change(change()).unwrap();
        assert_eq!(store.trouble(), None);
        store.database = None;
        let other = Store::open(&path).unwrap();
        assert!(matches!(store.change(change()), Err(StoreError::Lost { .. })));
        assert_eq!(store.lost(), Some("another process uses it"));
        drop(other);
        assert!(store.change(change()).is_err(), "who had it may have changed it");
        drop(store);

        let mut store = Store::open(&path).unwrap();
        store.database = None;
        std::fs::rename(&path, dir.path().join("elsewhere")).unwrap();
        drop(Store::open(&path).unwrap());
        store.change(change()).unwrap_err();
        assert_eq!(store.lost(), Some("another file is in its place"));
    }
}
