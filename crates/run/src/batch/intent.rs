//! What a holder writes to the disk before it requests an allocation, so that the allocation is given back
//! even after a crash. The process that has locked the file is responsible for the allocation.

use super::commands::Batch;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// See the module.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Intent {
    /// The allocation's name.
    pub name: String,
    /// The name of the batch system.
    pub system: String,
    /// Its configuration.
    pub conf: Option<PathBuf>,
}

impl Intent {
    /// Writes the intent to the disk before this returns, and keeps it locked.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(directory: &Path, name: &str, batch: &Batch) -> io::Result<(PathBuf, File)> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let intent = Intent {
            name: name.to_owned(),
            system: batch.system.to_string(),
            conf: batch.conf.clone(),
        };
        let path = directory.join(name);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        let mut write = || {
            file.lock()?;
            file.write_all(&serde_json::to_vec(&intent)?)?;
            file.sync_all()?;
            File::open(directory)?.sync_all()
        };
        // A full disk must not leave half an intent.
        write().inspect_err(|_| drop(fs::remove_file(&path)))?;
        Ok((path, file))
    }

    /// Reads an intent.
    ///
    /// # Errors
    /// Those of the file system, and one for a file that is not an intent.
    pub fn read(path: &Path) -> io::Result<(Intent, Batch)> {
        let mut text = String::new();
        File::open(path)?.take(64 * 1024).read_to_string(&mut text)?;
        let intent: Intent = serde_json::from_str(&text)?;
        let batch = Batch {
            system: intent.system.parse().map_err(io::Error::other)?,
            conf: intent.conf.clone(),
            subnets: Vec::new(),
        };
        Ok((intent, batch))
    }
}

/// The intents for which no process is responsible, each with its lock.
pub fn abandoned(directory: &Path) -> Vec<(PathBuf, File)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let free = entries.filter_map(|entry| {
        let file = OpenOptions::new().write(true).open(entry.path()).ok()?;
        file.try_lock().ok()?;
        Some((entry.path(), file))
    });
    free.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intent_is_abandoned_when_its_holder_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("allocations");
        let batch = Batch {
            system: "slurm".parse().unwrap(),
            conf: Some("/etc/slurm/slurm.conf".into()),
            subnets: Vec::new(),
        };
        let (path, held) = Intent::write(&place, "causeway-1", &batch).unwrap();
        assert!(abandoned(&place).is_empty());
        // A process that another test is just starting may have the file open, too.
        held.unlock().unwrap();
        assert_eq!(abandoned(&place).len(), 1);
        let (intent, read) = Intent::read(&path).unwrap();
        assert_eq!((intent.name.as_str(), read.conf), ("causeway-1", batch.conf));
        assert!(abandoned(&directory.path().join("none")).is_empty());
    }
}
