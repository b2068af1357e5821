//! What a profile says, whichever form it was written in. Numbers are whole, in the finest unit of each
//! quantity, so that a profile that is written and read again stays the same.

/// A job's profile. Groups and networks are in the order of the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// The job's name.
    pub name: Option<String>,
    /// How long the job may take, in seconds.
    pub seconds: Option<u64>,
    /// Words that start all ranks, the launcher first.
    pub command: Option<Vec<String>>,
    /// Words of the program that each site starts with its own MPI.
    pub program: Option<Vec<String>>,
    /// Requirements on networks, to which groups refer.
    pub networks: Vec<Network>,
    /// Groups of ranks.
    pub groups: Vec<Group>,
}

/// A requirement on a network, with at least one bound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// Its name.
    pub name: String,
    /// The lowest rate in bit/s.
    pub min_bits_per_second: Option<u64>,
    /// The longest latency in ns, one way.
    pub max_latency_ns: Option<u64>,
    /// The greatest loss of packets, in parts of a thousand million.
    pub max_loss_ppb: Option<u64>,
}

/// Ranks that play one role in the program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// How many ranks, or which; `None` if its sites determine them.
    pub ranks: Option<Ranks>,
    /// What it needs from nodes.
    pub needs: Needs,
    /// Words of its own program.
    pub program: Option<Vec<String>>,
    /// The network that its ranks need between each other.
    pub within: Option<String>,
    /// Other groups, each with the network that is needed between the two.
    pub to: Vec<(String, String)>,
    /// Acceptable alternatives, the best first. The group itself is better than all of them.
    pub alternatives: Vec<Alternative>,
}

/// The ranks of a group. All groups of a profile use the same form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ranks {
    /// This many; they are numbered in the order of the text, without gaps.
    Count(u32),
    /// The ranks, as the first and last of each range.
    Named(Vec<(u32, u32)>),
}

/// What a group needs from nodes; `None` means that it does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Cores of each rank.
    pub cores: Option<u32>,
    /// Memory of each rank, in bytes.
    pub memory_bytes: Option<u64>,
    /// How fast a core must be.
    pub speed: Option<Speed>,
    /// Features that a node must have, in the words of the sites' batch systems. Not empty.
    pub features: Option<Vec<String>>,
    /// Sites at which the ranks may be. Not empty.
    pub sites: Option<Vec<String>>,
}

/// Bounds on the speed of a core, relative to the grid's reference, in thousandths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Speed {
    /// The lowest.
    pub min: Option<u64>,
    /// The highest.
    pub max: Option<u64>,
}

/// What would be acceptable instead of a group's own ranks and needs. `None` keeps what the group has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Alternative {
    /// How many ranks.
    pub ranks: Option<u32>,
    /// What its ranks need.
    pub needs: Needs,
}

impl Profile {
    /// Says whether it describes a whole job, and not only groups of ranks. Then every rank is in a group.
    pub fn is_whole(&self) -> bool {
        self.seconds.is_some() || self.command.is_some() || self.program.is_some()
    }

    /// Says whether groups have numbers of ranks.
    pub fn counts_ranks(&self) -> bool {
        let mut all = self.groups.iter();
        all.any(|group| matches!(group.ranks, Some(Ranks::Count(_))))
    }

    /// Says whether a site represents those of its ranks that no group names, as in `--groups`. Otherwise,
    /// sites are where a group's ranks may be.
    pub(crate) fn sites_stand_for_ranks(&self) -> bool {
        !self.is_whole() && !self.counts_ranks()
    }
}

impl Ranks {
    /// How many there are.
    pub fn count(&self) -> u32 {
        match self {
            Ranks::Count(count) => *count,
            Ranks::Named(ranges) => {
                let lengths = ranges.iter().map(|(first, last)| last.saturating_sub(*first));
                lengths.fold(0, |sum, length| sum.saturating_add(length).saturating_add(1))
            }
        }
    }
}

impl Group {
    /// The group itself and its alternatives, in full: how many ranks, if that is known, and what they need.
    /// The best comes first.
    pub fn choices(&self) -> Vec<(Option<u32>, Needs)> {
        let own = (self.ranks.as_ref().map(Ranks::count), self.needs.clone());
        let others = self.alternatives.iter().map(|other| {
            let ranks = other.ranks.or(own.0);
            (ranks, other.needs.clone().or(&self.needs))
        });
        std::iter::once(own.clone()).chain(others).collect()
    }
}

impl Needs {
    /// These needs, completed from another's where they say nothing.
    fn or(self, other: &Needs) -> Needs {
        Needs {
            cores: self.cores.or(other.cores),
            memory_bytes: self.memory_bytes.or(other.memory_bytes),
            speed: self.speed.or(other.speed),
            features: self.features.or_else(|| other.features.clone()),
            sites: self.sites.or_else(|| other.sites.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alternative_keeps_what_it_does_not_change() {
        let needs = Needs {
            cores: Some(2),
            memory_bytes: Some(5),
            ..Needs::default()
        };
        let fast = Needs {
            cores: Some(4),
            ..Needs::default()
        };
        let group = Group {
            ranks: Some(Ranks::Count(30)),
            needs: needs.clone(),
            alternatives: vec![Alternative {
                ranks: Some(16),
                needs: fast,
            }],
            ..Group::default()
        };
        let other = Needs {
            cores: Some(4),
            ..needs.clone()
        };
        assert_eq!(group.choices(), [(Some(30), needs), (Some(16), other)]);
    }

    #[test]
    fn named_ranks_are_counted_and_never_overflow() {
        assert_eq!(Ranks::Named(vec![(0, 0), (4, 7)]).count(), 5);
        assert_eq!(Ranks::Named(vec![(0, u32::MAX), (0, u32::MAX)]).count(), u32::MAX);
    }
}
