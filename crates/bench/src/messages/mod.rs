//! What messages a program sends: the counts that each rank has written (mpi/messages), put together.
//!
//! `rank_file` reads the file of one rank. `split` finds ranks that communicate little with each other.

pub mod rank_file;
pub mod split;

use rank_file::RankFile;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The most ranks that a file may claim its world to have.
pub const MOST_RANKS: u32 = 1 << 20;

/// Why there are no counts.
#[derive(Debug, thiserror::Error)]
pub enum CountError {
    /// A file could not be read.
    #[error("read {}: {reason}", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// No rank has left a file.
    #[error("no rank has left its counts in {}", .0.display())]
    None(PathBuf),
    /// The files are of several programs.
    #[error("{} has counts of a world of {one} ranks and of one of {other}", directory.display())]
    Worlds {
        /// The directory of the files.
        directory: PathBuf,
        /// Ranks of one world.
        one: u32,
        /// Ranks of another world.
        other: u32,
    },
}

/// What all ranks have counted.
#[derive(Debug, Default)]
pub struct Counted {
    /// Ranks of MPI_COMM_WORLD.
    pub ranks: u32,
    /// The file of each rank that has left one.
    pub files: BTreeMap<u32, RankFile>,
}

/// Messages to one rank each, between 2^k and 2^(k+1) - 1 bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Messages {
    /// Bytes of the shortest.
    pub least: u64,
    /// Bytes of the longest.
    pub most: u64,
    /// How many.
    pub count: u64,
    /// All their bytes.
    pub bytes: u64,
    /// How many of them go to another site.
    pub count_between: u64,
    /// The bytes of the messages that do.
    pub bytes_between: u64,
}

/// One operation of all ranks of a communicator.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Operation {
    /// The call.
    pub call: String,
    /// Ranks of the communicator.
    pub ranks: u32,
    /// Calls of all its ranks.
    pub calls: u64,
    /// The least bytes that a rank gave to it.
    pub least: u64,
    /// The most bytes.
    pub most: u64,
    /// The bytes of all ranks together.
    pub bytes: u64,
}

impl Messages {
    fn add(&mut self, row: &rank_file::Sent, is_between: bool) {
        self.least = match self.count {
            0 => row.least,
            _ => self.least.min(row.least),
        };
        self.most = self.most.max(row.most);
        self.count += row.count;
        self.bytes += row.bytes;
        if is_between {
            self.count_between += row.count;
            self.bytes_between += row.bytes;
        }
    }
}

impl Counted {
    /// Reads all files of ranks in a directory.
    ///
    /// # Errors
    /// See [`CountError`].
    pub fn read(directory: &Path) -> Result<Counted, CountError> {
        let failed = |path: &Path, reason: String| CountError::Read {
            path: path.to_owned(),
            reason,
        };
        let mut all = Counted::default();
        let entries = directory
            .read_dir()
            .map_err(|error| failed(directory, error.to_string()))?;
        for entry in entries {
            let path = entry
                .map_err(|error| failed(directory, error.to_string()))?
                .path();
            if !is_rank_file(&path) {
                continue;
            }
            let text = std::fs::read_to_string(&path).map_err(|error| failed(&path, error.to_string()))?;
            let file = RankFile::parse(&text).map_err(|error| failed(&path, error.to_string()))?;
            if all.ranks != 0 && all.ranks != file.ranks {
                return Err(CountError::Worlds {
                    directory: directory.to_owned(),
                    one: all.ranks,
                    other: file.ranks,
                });
            }
            all.ranks = file.ranks;
            all.files.insert(file.rank, file);
        }
        match all.files.is_empty() {
            true => Err(CountError::None(directory.to_owned())),
            false => Ok(all),
        }
    }

    /// Ranks that have left nothing.
    pub fn missing(&self) -> Vec<u32> {
        (0..self.ranks)
            .filter(|rank| !self.files.contains_key(rank))
            .collect()
    }

    /// Seconds from MPI_Init to MPI_Finalize, of the rank that took longest.
    pub fn seconds(&self) -> f64 {
        self.files.values().map(|file| file.seconds).fold(0.0, f64::max)
    }

    /// Calls that were not counted because there was no memory.
    pub fn lost(&self) -> u64 {
        self.files.values().map(|file| file.lost).sum()
    }

    /// Messages to one rank each, by size, the shortest first. `site` says which site a rank is at; messages
    /// to ranks outside the world go to no other site.
    pub fn messages(&self, site: impl Fn(u32) -> usize) -> Vec<Messages> {
        let mut by_size: BTreeMap<u32, Messages> = BTreeMap::new();
        for (&from, file) in &self.files {
            for row in file.rows.iter().filter(|row| row.ranks == 0) {
                let is_between = row.to.is_some_and(|to| site(from) != site(to));
                by_size
                    .entry(power_of(row.most))
                    .or_default()
                    .add(row, is_between);
            }
        }
        by_size.into_values().collect()
    }

    /// Operations of several ranks, by name, number of ranks, and bytes of a rank.
    pub fn operations(&self) -> Vec<Operation> {
        let mut all: BTreeMap<(&str, u32, u32), Operation> = BTreeMap::new();
        for row in self.files.values().flat_map(|file| &file.rows) {
            if row.ranks == 0 {
                continue;
            }
            let sum = all
                .entry((&row.call, row.ranks, power_of(row.most)))
                .or_insert_with(|| first_of(row));
            sum.calls += row.count;
            sum.least = sum.least.min(row.least);
            sum.most = sum.most.max(row.most);
            sum.bytes += row.bytes;
        }
        all.into_values().collect()
    }

    /// Messages and bytes from each rank to each other one.
    pub fn pairs(&self) -> BTreeMap<(u32, u32), (u64, u64)> {
        let mut pairs = BTreeMap::new();
        for (&from, file) in &self.files {
            for row in file.rows.iter().filter(|row| row.ranks == 0) {
                if let Some(to) = row.to {
                    let pair: &mut (u64, u64) = pairs.entry((from, to)).or_default();
                    pair.0 += row.count;
                    pair.1 += row.bytes;
                }
            }
        }
        pairs
    }

    /// All rows as CSV, with the rank that each is of.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn csv(&self) -> csv::Result<Vec<u8>> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(["from", "call", "to", "ranks", "count", "bytes", "least", "most"])?;
        for (from, file) in &self.files {
            for row in &file.rows {
                let to = row.to.map_or_else(String::new, |to| to.to_string());
                let numbers = [u64::from(row.ranks), row.count, row.bytes, row.least, row.most];
                let record = [from.to_string(), row.call.clone(), to];
                writer.write_record(record.into_iter().chain(numbers.map(|number| number.to_string())))?;
            }
        }
        writer.into_inner().map_err(|error| error.into_error().into())
    }
}

fn first_of(row: &rank_file::Sent) -> Operation {
    Operation {
        call: row.call.clone(),
        ranks: row.ranks,
        calls: 0,
        least: row.least,
        most: row.most,
        bytes: 0,
    }
}

fn is_rank_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("rank-") && name.ends_with(".csv")
}

fn power_of(bytes: u64) -> u32 {
    u64::BITS - bytes.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two ranks: each sends the other 10 messages, rank 0 also 2 long ones to itself, and both broadcast.
    fn counted() -> Counted {
        let text = |rank: u32| {
            let own = match rank {
                0 => "MPI_Isend,0,0,2,20000,9000,11000\n",
                _ => "",
            };
            format!(
                "causeway-messages,1\nrank,{rank},2\nhost,a\nseconds,{rank}.5\nend,MPI_Finalize\nlost,0\n\
                 call,to,ranks,count,bytes,least,most\nMPI_Send,{},0,10,80,8,8\nMPI_Bcast,-1,2,3,24,8,8\n{own}",
                1 - rank
            )
        };
        let files = [0, 1].map(|rank| (rank, RankFile::parse(&text(rank)).unwrap()));
        Counted {
            ranks: 2,
            files: files.into(),
        }
    }

    #[test]
    fn messages_are_summed_by_size_and_those_between_sites_are_told_apart() {
        let messages = counted().messages(|rank| rank as usize);
        let short = Messages {
            least: 8,
            most: 8,
            count: 20,
            bytes: 160,
            count_between: 20,
            bytes_between: 160,
        };
        assert_eq!(messages[0], short);
        assert_eq!((messages[1].count, messages[1].count_between), (2, 0));
        assert_eq!((messages[1].least, messages[1].most), (9000, 11_000));
        let one_site = counted().messages(|_| 0);
        assert!(one_site.iter().all(|messages| messages.count_between == 0));
    }

    #[test]
    fn calls_of_all_ranks_of_an_operation_are_summed() {
        let operations = counted().operations();
        assert_eq!(operations.len(), 1);
        let bcast = &operations[0];
        assert_eq!(
            (bcast.call.as_str(), bcast.ranks, bcast.bytes),
            ("MPI_Bcast", 2, 48)
        );
        assert_eq!(bcast.calls, 6);
    }

    #[test]
    fn a_directory_tells_which_ranks_have_left_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let none = Counted::read(directory.path());
        assert!(matches!(none, Err(CountError::None(_))));
        let rank = |rank: u32, ranks: u32| {
            let text = format!(
                "causeway-messages,1\nrank,{rank},{ranks}\nhost,a\nseconds,1\nend,exit\nlost,0\n\
                 call,to,ranks,count,bytes,least,most\n"
            );
            std::fs::write(directory.path().join(format!("rank-{rank}.csv")), text).unwrap();
        };
        rank(1, 3);
        std::fs::write(directory.path().join("rank-2.part"), "half").unwrap();
        assert_eq!(Counted::read(directory.path()).unwrap().missing(), [0, 2]);
        rank(0, 2);
        let two = Counted::read(directory.path());
        assert!(matches!(two, Err(CountError::Worlds { .. })));
    }

    #[test]
    fn every_row_stands_in_the_csv_with_the_rank_that_it_is_of() {
        let text = String::from_utf8(counted().csv().unwrap()).unwrap();
        assert!(text.contains("\n0,MPI_Send,1,0,10,80,8,8\n"), "{text}");
        assert!(text.contains("\n1,MPI_Bcast,,2,3,24,8,8\n"), "{text}");
        assert_eq!(counted().pairs()[&(1, 0)], (10, 80));
    }
}
