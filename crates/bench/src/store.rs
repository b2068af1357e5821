//! The directory of a measurement: what was asked for, and every row, written as soon as it exists.
//!
//! `plan.json` is written first. `rows.jsonl` gets a line for each run and is flushed to disk, so that a
//! measurement that was interrupted goes on where it stopped. `rows.csv`, `summary.csv` and `summary.json`
//! are made from these at the end.

use crate::plan::Head;
use crate::row::{Row, csv};
use causeway_host::failure::Failure;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const PLAN: &str = "plan.json";
const ROWS: &str = "rows.jsonl";

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// The action that was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file that is not ours, or was truncated.
    #[error("{}, line {line}: {why}", path.display())]
    Content {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// The fault.
        why: String,
    },
    /// The directory contains another measurement.
    #[error("{} holds another measurement ({made_by}); name another directory with --out, or remove it", path.display())]
    Other {
        /// The directory.
        path: PathBuf,
        /// The command that made it.
        made_by: String,
    },
    /// Another process is writing there.
    #[error("{} is in use by another measurement", .0.display())]
    Busy(PathBuf),
}

/// An open directory.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    head: Head,
    rows: Vec<Row>,
    /// The file of rows, which is also the lock.
    file: File,
}

impl Drop for Store {
    fn drop(&mut self) {
        // Not by closing alone: a process that is just being started shares the file until its exec.
        let _ = self.file.unlock();
    }
}

fn io_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { what, path, source }
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    // Written under another name and renamed, so that nobody reads half of it, even if the disk is full.
    let part = path.with_extension("part");
    let put = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path));
    put.map_err(|error| {
        let _ = std::fs::remove_file(&part);
        io_error("write", path)(error)
    })
}

fn content(path: &Path, line: usize) -> impl FnOnce(serde_json::Error) -> StoreError {
    let path = path.to_owned();
    move |error| StoreError::Content {
        path,
        line,
        why: error.to_string(),
    }
}

/// The rows of a directory. A last line without its end was being written when the machine stopped: it is
/// left out, and its length is the second value.
fn read_rows(path: &Path) -> Result<(Vec<Row>, usize), StoreError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        Err(error) => return Err(io_error("read", path)(error)),
    };
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let lines = text[..whole].lines().enumerate();
    let rows = lines.map(|(at, line)| serde_json::from_str(line).map_err(content(path, at + 1)));
    Ok((rows.collect::<Result<_, _>>()?, text.len() - whole))
}

/// Reads a finished or interrupted measurement.
///
/// # Errors
/// See [`StoreError`].
pub fn read(directory: &Path) -> Result<(Head, Vec<Row>), StoreError> {
    let path = directory.join(PLAN);
    let text = std::fs::read_to_string(&path).map_err(io_error("read", &path))?;
    let head: Head = serde_json::from_str(&text).map_err(content(&path, 1))?;
    Ok((head, read_rows(&directory.join(ROWS))?.0))
}

impl Store {
    /// Makes the directory, or continues one of the same plan.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn open(directory: &Path, head: Head) -> Result<Store, StoreError> {
        std::fs::create_dir_all(directory).map_err(io_error("create", directory))?;
        let rows_path = directory.join(ROWS);
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).open(&rows_path);
        let file = file.map_err(io_error("open", &rows_path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(StoreError::Busy(directory.to_owned())),
            // Some network file systems have no locks: that is no reason not to measure.
            Err(std::fs::TryLockError::Error(_)) => {}
        }
        let plan_path = directory.join(PLAN);
        let (rows, cut) = read_rows(&rows_path)?;
        match std::fs::read_to_string(&plan_path) {
            Ok(text) => {
                let found: Head = serde_json::from_str(&text).map_err(content(&plan_path, 1))?;
                if found.plan != head.plan {
                    return Err(StoreError::Other {
                        path: directory.to_owned(),
                        made_by: found.command,
                    });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let text = serde_json::to_vec_pretty(&head).map_err(content(&plan_path, 1))?;
                put(&plan_path, &text)?;
            }
            Err(error) => return Err(io_error("read", &plan_path)(error)),
        }
        let whole = file.metadata().map(|data| data.len().saturating_sub(cut as u64));
        whole
            .and_then(|length| file.set_len(length))
            .map_err(io_error("cut", &rows_path))?;
        Ok(Store {
            directory: directory.to_owned(),
            head,
            rows,
            file,
        })
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What was asked for.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// All rows so far, those of earlier runs of the command first.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Adds a row, which is on disk when this returns.
    ///
    /// # Errors
    /// The row cannot be written; what was there before stays as it is.
    pub fn add(&mut self, row: Row) -> Result<(), StoreError> {
        let path = self.directory.join(ROWS);
        let mut line = serde_json::to_vec(&row).map_err(content(&path, self.rows.len() + 1))?;
        line.push(b'\n');
        let before = self.file.metadata().map(|data| data.len());
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        if let (Err(_), Ok(before)) = (&written, before) {
            let _ = self.file.set_len(before);
        }
        written.map_err(io_error("write", &path))?;
        self.rows.push(row);
        Ok(())
    }

    /// Writes `rows.csv` and the summaries.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(&self) -> Result<(), StoreError> {
        let path = self.directory.join("rows.csv");
        let rows = csv(&self.rows).map_err(|error| StoreError::Content {
            path: path.clone(),
            line: 0,
            why: error.to_string(),
        })?;
        put(&path, &rows)?;
        let summary = crate::summary::Summaries::of(&self.head, &self.rows);
        let path = self.directory.join("summary.json");
        put(
            &path,
            &serde_json::to_vec_pretty(&summary).map_err(content(&path, 1))?,
        )?;
        put(&self.directory.join("summary.csv"), summary.csv().as_bytes())
    }
}

/// The user chooses where to write, but not the state of the disk.
impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        match error {
            StoreError::Other { .. } => Failure::usage(error),
            _ => Failure::new(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Way;
    use crate::plan::tests::head;
    use crate::row::tests::{failed, measured};

    #[test]
    fn what_was_measured_before_an_interruption_is_there_again() {
        let directory = tempfile::tempdir().unwrap();
        let rows = [measured(Way::Direct, 0, &[(1, 5900.0)]), failed(Way::Causeway, 0)];
        let mut store = Store::open(directory.path(), head()).unwrap();
        for row in rows.clone() {
            store.add(row).unwrap();
        }
        drop(store);
        // The machine stopped in the middle of a line.
        let mut file = OpenOptions::new()
            .append(true)
            .open(directory.path().join(ROWS))
            .unwrap();
        file.write_all(b"{\"mpi\":").unwrap();
        let mut store = Store::open(directory.path(), head()).unwrap();
        assert_eq!(store.rows(), rows);
        store.add(measured(Way::Direct, 1, &[(1, 5901.0)])).unwrap();
        store.finish().unwrap();
        drop(store);
        assert_eq!(read(directory.path()).unwrap().1.len(), 3);
        for file in ["rows.csv", "summary.json", "summary.csv"] {
            assert!(
                directory.path().join(file).metadata().unwrap().len() > 0,
                "{file}"
            );
        }
    }

    #[test]
    fn another_plan_is_refused_and_names_the_command_that_made_the_first() {
        let directory = tempfile::tempdir().unwrap();
        drop(Store::open(directory.path(), head()).unwrap());
        let mut other = head();
        other.plan.bounds.most = 11;
        let error = Store::open(directory.path(), other).unwrap_err().to_string();
        assert!(error.contains("causeway bench pingpong"), "{error}");
    }

    #[test]
    fn two_measurements_do_not_write_to_one_directory() {
        let directory = tempfile::tempdir().unwrap();
        let _first = Store::open(directory.path(), head()).unwrap();
        let second = Store::open(directory.path(), head());
        assert!(matches!(second, Err(StoreError::Busy(_))), "{second:?}");
    }

    #[test]
    fn a_line_that_is_no_row_is_named() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(ROWS), "{}\n").unwrap();
        let error = Store::open(directory.path(), head()).unwrap_err().to_string();
        assert!(error.contains("rows.jsonl, line 1"), "{error}");
    }
}
