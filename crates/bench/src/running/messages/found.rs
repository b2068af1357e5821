//! Sums up the counts of all ranks, between sites with these numbers of ranks.

use crate::messages::split::{crossing, improved};
use crate::messages::{Counted, Messages, Operation};
use crate::running::wanted::Counting;
use causeway_host::failure::Failure;
use serde::Serialize;

/// What was counted, as JSON has it.
#[derive(Debug, Serialize)]
pub struct Found {
    pub program: String,
    pub ranks: u32,
    /// Ranks that have left no counts.
    pub missing: Vec<u32>,
    /// The time from MPI_Init to MPI_Finalize.
    pub seconds: f64,
    /// Calls that were not counted for lack of memory.
    pub lost: u64,
    /// Ranks of each site.
    pub sites: Vec<u32>,
    pub messages: Vec<Messages>,
    pub operations: Vec<Operation>,
    pub better: Option<Better>,
}

/// Two sites of the same sizes, with other ranks at each of them.
#[derive(Debug, Serialize)]
pub struct Better {
    /// How many ranks each site has.
    pub sites: [Vec<u32>; 2],
    /// Messages between them.
    pub messages: u64,
}

/// Ranks of each site: as was asked for, or two halves. The second value says what was wrong with the
/// request.
fn sites_of(wanted: &[u32], ranks: u32) -> (Vec<u32>, Option<Failure>) {
    let sum: u64 = wanted.iter().copied().map(u64::from).sum();
    let halves = match ranks {
        1 => vec![1],
        _ => vec![ranks - ranks / 2, ranks / 2],
    };
    match (wanted.is_empty(), sum == u64::from(ranks)) {
        (true, _) => (halves, None),
        (false, true) => (wanted.to_vec(), None),
        (false, false) => {
            let text = format!(
                "--sites names {sum} ranks, but the program had {ranks}: counted for two halves instead"
            );
            (halves, Some(Failure::usage(text)))
        }
    }
}

/// The site of a rank, if each site takes the next ranks in order.
fn site(sites: &[u32], rank: u32) -> usize {
    let mut end = 0;
    let ends = sites.iter().map(|ranks| {
        end += ranks;
        end
    });
    ends.take_while(|&end| end <= rank).count()
}

/// The sums, and what was wrong with the sites that were asked for.
pub fn found(task: &Counting, counted: &Counted) -> (Found, Option<Failure>) {
    let (sites, mistake) = sites_of(&task.sites, counted.ranks);
    let words: Vec<_> = task.command.iter().map(|word| word.to_string_lossy()).collect();
    let found = Found {
        program: words.join(" "),
        ranks: counted.ranks,
        missing: counted.missing(),
        seconds: counted.seconds(),
        lost: counted.lost(),
        messages: counted.messages(|rank| site(&sites, rank)),
        operations: counted.operations(),
        better: better(counted, &sites),
        sites,
    };
    (found, mistake)
}

/// Other ranks at two sites, if that saves at least a tenth of the messages.
fn better(counted: &Counted, sites: &[u32]) -> Option<Better> {
    let [first, _] = *sites else { return None };
    let pairs = counted.pairs();
    let plain: Vec<bool> = (0..counted.ranks).map(|rank| rank >= first).collect();
    let split = improved(&pairs, counted.ranks, first)?;
    let ranks_of = |half: bool| {
        (0..)
            .zip(&split.second)
            .filter(move |(_, second)| **second == half)
    };
    let ranks_in = |half| ranks_of(half).map(|(rank, _)| rank).collect();
    (split.messages * 10 <= crossing(&pairs, &plain) * 9 && split.messages < crossing(&pairs, &plain)).then(
        || Better {
            sites: [ranks_in(false), ranks_in(true)],
            messages: split.messages,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_take_ranks_in_their_order() {
        assert_eq!(sites_of(&[], 5).0, [3, 2]);
        assert_eq!(sites_of(&[], 1).0, [1]);
        let (sites, mistake) = sites_of(&[1, 4], 5);
        assert!(sites == [1, 4] && mistake.is_none());
        let (sites, mistake) = sites_of(&[2, 2], 5);
        let mistake = mistake.unwrap();
        assert!(sites == [3, 2] && mistake.code == 2);
        assert!(mistake.text.contains("4 ranks, but the program had 5"));
        let at = |rank| site(&[3, 2], rank);
        assert_eq!([0, 2, 3, 4].map(at), [0, 0, 1, 1]);
    }
}
