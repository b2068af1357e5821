//! Keeps a record of what other sites have used of this site's nodes, in one file for all holders.

use causeway_batch::budget::{Bounds, MOST_BYTES, Spent, Taken};
use causeway_host::own_file;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// See the module.
#[derive(Debug, Clone, clap::Args)]
pub struct Spending {
    /// The other site whose job it is for.
    #[arg(long, requires = "spent")]
    other: Option<String>,
    /// Where it is kept what other sites have taken.
    #[arg(long)]
    spent: Option<PathBuf>,
    /// Most core-hours of that site in a day.
    #[arg(long)]
    core_hours_a_day: Option<u32>,
    /// Most core-hours of that site in a month.
    #[arg(long)]
    core_hours_a_month: Option<u32>,
}

impl Spending {
    /// Charges the most that an allocation may use; `None` for a job of this site itself.
    ///
    /// # Errors
    /// More is requested than is left, or the charge cannot be written to the file: what is not counted is
    /// not given.
    pub fn take(&self, ranks: u32, minutes: u32, now: u64) -> Result<Option<Taken>, String> {
        let (Some(site), Some(file)) = (&self.other, &self.spent) else {
            return Ok(None);
        };
        let bounds = Bounds {
            a_day: self.core_hours_a_day,
            a_month: self.core_hours_a_month,
        };
        let taken = update(file, |spent| spent.take(site, (ranks, minutes), bounds, now));
        let taken =
            taken.map_err(|error| format!("write down what {site} takes in {}: {error}", file.display()))?;
        taken.map(Some)
    }

    /// Credits what an allocation that ran for this many seconds has not used.
    pub fn give_back(&self, taken: &Taken, seconds: u64) {
        if let Some(file) = &self.spent {
            // If this fails, everything counts as used.
            let _ = update(file, |spent| {
                spent.give_back(taken, seconds);
                Ok(())
            });
        }
    }
}

/// Updates the record. An error of `change` leaves it as it was.
fn update<T>(
    file: &Path,
    change: impl FnOnce(&mut Spent) -> Result<T, String>,
) -> io::Result<Result<T, String>> {
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).write(true).mode(0o600);
    let lock = options.open(file.with_extension("lock"))?;
    // Others hold the lock for milliseconds.
    lock.lock()?;
    let mut spent = read(file)?;
    let changed = change(&mut spent);
    if changed.is_ok() {
        own_file::keep(file, &serde_json::to_vec(&spent)?)?;
    }
    Ok(changed)
}

/// Reads the record.
fn read(file: &Path) -> io::Result<Spent> {
    let mut bytes = Vec::new();
    match File::open(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Spent::default()),
        opened => opened?.take(MOST_BYTES).read_to_end(&mut bytes)?,
    };
    Ok(serde_json::from_slice(&bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_at_the_same_time_take_no_more_than_there_is_and_what_is_not_counted_is_not_given() {
        let directory = tempfile::tempdir().unwrap();
        let spending = Spending {
            other: Some("nancy".to_owned()),
            spent: Some(directory.path().join("spent.json")),
            core_hours_a_day: Some(10),
            core_hours_a_month: None,
        };
        let now = 1_800_000_000;
        let got = std::thread::scope(|scope| {
            // All threads must start before the first one is joined.
            let threads: Vec<_> = { 0..16 }
                .map(|_| scope.spawn(|| spending.take(1, 60, now).is_ok()))
                .collect();
            let taken = threads
                .into_iter()
                .filter_map(|thread| thread.join().unwrap().then_some(()));
            taken.count()
        });
        assert_eq!(got, 10);
        let own = Spending {
            other: None,
            ..spending.clone()
        };
        assert_eq!(
            own.take(1000, 1000, now),
            Ok(None),
            "the site's own jobs have the batch system's bounds"
        );
        std::fs::write(directory.path().join("spent.json"), "{").unwrap();
        let why = spending.take(1, 1, now + 1_000_000).unwrap_err();
        assert!(why.contains("write down what nancy takes"), "{why}");
    }
}
