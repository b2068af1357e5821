//! The file that one rank has written (mpi/messages/counts.c).

use super::MOST_RANKS;

const HEAD: &str = "causeway-messages,1";
const COLUMNS: &str = "call,to,ranks,count,bytes,least,most";

/// Why a text is not such a file.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoRankFile(String);

impl From<String> for NoRankFile {
    fn from(reason: String) -> NoRankFile {
        NoRankFile(reason)
    }
}

/// What one call gave to one rank or communicator, in messages of about one size.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    /// The call, such as MPI_Send.
    pub call: String,
    /// A rank of MPI_COMM_WORLD; `None` for operations of several ranks, and for ranks outside the world.
    pub to: Option<u32>,
    /// Ranks of a communicator; 0 if it is a message to one rank.
    pub ranks: u32,
    /// How often it was called.
    pub count: u64,
    /// All bytes together.
    pub bytes: u64,
    /// How many bytes the shortest has.
    pub least: u64,
    /// How many bytes the longest has.
    pub most: u64,
}

/// Counts of one rank.
#[derive(Debug, Clone, PartialEq)]
pub struct RankFile {
    /// Its rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Ranks of MPI_COMM_WORLD.
    pub ranks: u32,
    /// Where it ran.
    pub host: String,
    /// From MPI_Init to the end of counting.
    pub seconds: f64,
    /// What ended it: MPI_Finalize, MPI_Abort or exit.
    pub end: String,
    /// Calls that found no memory to be counted in.
    pub lost: u64,
    /// What it sent.
    pub rows: Vec<Sent>,
}

impl RankFile {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The text is not that of such a file, or has impossible values; the error names the line.
    pub fn parse(text: &str) -> Result<RankFile, NoRankFile> {
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return Err(format!("line 1 is not {HEAD:?}").into());
        }
        let mut value = |name: &str| {
            let line = lines.next().unwrap_or_default();
            let value = line.strip_prefix(name).and_then(|rest| rest.strip_prefix(','));
            value.ok_or_else(|| format!("{line:?} is no line of {name:?}"))
        };
        let world = value("rank")?;
        let (rank, ranks) = world
            .split_once(',')
            .ok_or_else(|| "rank: two numbers are wanted".to_owned())?;
        let (rank, ranks): (u32, u32) = (number("rank", rank)?, number("rank", ranks)?);
        if rank >= ranks || ranks > MOST_RANKS {
            return Err(format!("there is no rank {rank} of {ranks}").into());
        }
        let host = value("host")?.to_owned();
        let seconds: f64 = number("seconds", value("seconds")?)?;
        let end = value("end")?.to_owned();
        let lost = number("lost", value("lost")?)?;
        if lines.next() != Some(COLUMNS) {
            return Err(format!("{COLUMNS:?} is missing").into());
        }
        let rows: Result<Vec<Sent>, NoRankFile> = lines.map(|line| row(line, ranks)).collect();
        Ok(RankFile {
            rank,
            ranks,
            host,
            seconds: Some(seconds)
                .filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
                .unwrap_or(0.0),
            end,
            lost,
            rows: rows?,
        })
    }
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, NoRankFile> {
    text.parse()
        .map_err(|_| format!("{name}: {text:?} is no such number").into())
}

fn row(line: &str, world: u32) -> Result<Sent, NoRankFile> {
    let cells: Vec<&str> = line.split(',').collect();
    let [call, to, ranks, count, bytes, least, most] = cells[..] else {
        return Err(format!("{line:?} has not seven values").into());
    };
    let to = match to {
        // NO_RANK, or a destination that MPI refuses.
        to if to.starts_with('-') => None,
        to => Some(number("to", to)?).filter(|&to: &u32| to < world),
    };
    Ok(Sent {
        call: call.to_owned(),
        to,
        ranks: number("ranks", ranks)?,
        count: number("count", count)?,
        bytes: number("bytes", bytes)?,
        least: number("least", least)?,
        most: number("most", most)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "causeway-messages,1\nrank,1,4\nhost,n1\nseconds,2.5\nend,MPI_Finalize\nlost,0\n\
                        call,to,ranks,count,bytes,least,most\nMPI_Send,3,0,2,16,8,8\nMPI_Bcast,-1,4,1,8,8,8\n";

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let file = RankFile::parse(GOOD).unwrap();
        assert_eq!((file.rank, file.ranks, file.host.as_str()), (1, 4, "n1"));
        assert_eq!((file.rows[0].to, file.rows[0].ranks), (Some(3), 0));
        assert_eq!((file.rows[1].to, file.rows[1].ranks), (None, 4));
    }

    #[test]
    fn whatever_is_missing_or_impossible_is_named() {
        for (from, to, says) in [
            ("causeway-messages,1", "something", "line 1"),
            ("rank,1,4", "rank,4,4", "no rank 4 of 4"),
            ("rank,1,4", "rank,1,99999999", "no rank"),
            ("seconds,2.5\n", "", "seconds"),
            ("call,to", "to,call", "is missing"),
            ("3,0,2,16,8,8", "3,0,2,16,8", "seven values"),
            ("3,0,2,16,8,8", "3,0,-2,16,8,8", "count"),
        ] {
            let error = RankFile::parse(&GOOD.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(says), "{to}: {error}");
        }
    }
}
