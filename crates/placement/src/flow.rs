//! Distributes ranks of groups over bins of slots: a transportation problem, solved exactly by shortest
//! augmenting paths (Ahuja, Magnanti, Orlin, Network Flows, section 9.7). All numbers are integers.

/// Part of a class that ranks can be put in: one rank takes one slot.
#[derive(Debug, Clone)]
pub(crate) struct Bin {
    pub class: usize,
    pub slots: u64,
}

/// An arc from a group to a bin.
#[derive(Debug, Clone)]
pub(crate) struct Arc {
    pub bin: usize,
    /// Most ranks.
    pub limit: u64,
    /// What a rank costs there.
    pub weight: i64,
}

/// A transportation problem.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transport {
    pub bins: Vec<Bin>,
    /// For each group, how many ranks it has, and where they may be put.
    pub groups: Vec<(u64, Vec<Arc>)>,
}

const FAR: i64 = i64::MAX / 4;

/// Distances from one group in the residual graph, and the shortest paths.
struct Ways {
    group: Vec<i64>,
    bin: Vec<i64>,
    /// The group and its arc by which a bin is reached.
    into_bin: Vec<(usize, usize)>,
    /// The bin from which a group is reached, and that group's arc to it.
    into_group: Vec<(usize, usize)>,
}

impl Transport {
    /// Places all ranks at the least total weight, or returns `None` if there is no room. The answer contains
    /// the ranks on each arc of each group.
    pub fn solve(&self) -> Option<Vec<Vec<u64>>> {
        let mut placed: Vec<Vec<u64>> = self.groups.iter().map(|(_, arcs)| vec![0; arcs.len()]).collect();
        let mut spare: Vec<u64> = self.bins.iter().map(|bin| bin.slots).collect();
        let mut users: Vec<Vec<(usize, usize)>> = vec![Vec::new(); self.bins.len()];
        for (group, (_, arcs)) in self.groups.iter().enumerate() {
            for (index, arc) in arcs.iter().enumerate() {
                users[arc.bin].push((group, index));
            }
        }
        for group in 0..self.groups.len() {
            let mut left = self.groups[group].0;
            while left > 0 {
                let ways = self.ways(group, &placed, &users);
                let nearest = { 0..self.bins.len() }.filter(|bin| spare[*bin] > 0 && ways.bin[*bin] < FAR);
                let goal = nearest.min_by_key(|bin| ways.bin[*bin])?;
                let moved = self.push(group, goal, left.min(spare[goal]), &ways, &mut placed);
                spare[goal] -= moved;
                left -= moved;
            }
        }
        Some(placed)
    }

    /// Finds the shortest paths from a group to all bins (Bellman and Ford): forward along arcs with room,
    /// back along arcs with ranks.
    fn ways(&self, from: usize, placed: &[Vec<u64>], users: &[Vec<(usize, usize)>]) -> Ways {
        let mut ways = Ways {
            group: vec![FAR; self.groups.len()],
            bin: vec![FAR; self.bins.len()],
            into_bin: vec![(0, 0); self.bins.len()],
            into_group: vec![(0, 0); self.groups.len()],
        };
        ways.group[from] = 0;
        let mut changed = vec![from];
        while !changed.is_empty() {
            let mut bins = Vec::new();
            for group in changed.drain(..) {
                for (index, arc) in self.groups[group].1.iter().enumerate() {
                    let distance = ways.group[group] + arc.weight;
                    if placed[group][index] < arc.limit && distance < ways.bin[arc.bin] {
                        ways.bin[arc.bin] = distance;
                        ways.into_bin[arc.bin] = (group, index);
                        bins.push(arc.bin);
                    }
                }
            }
            bins.sort_unstable();
            bins.dedup();
            for bin in bins {
                for (group, index) in &users[bin] {
                    let distance = ways.bin[bin] - self.groups[*group].1[*index].weight;
                    if placed[*group][*index] > 0 && distance < ways.group[*group] {
                        ways.group[*group] = distance;
                        ways.into_group[*group] = (bin, *index);
                        changed.push(*group);
                    }
                }
            }
            changed.sort_unstable();
            changed.dedup();
        }
        ways
    }

    /// Moves as many ranks as all arcs of a path allow, at least one.
    fn push(&self, from: usize, goal: usize, most: u64, ways: &Ways, placed: &mut [Vec<u64>]) -> u64 {
        let mut moved = most;
        let mut bin = goal;
        loop {
            let (group, index) = ways.into_bin[bin];
            moved = moved.min(self.groups[group].1[index].limit - placed[group][index]);
            if group == from {
                break;
            }
            let (before, arc) = ways.into_group[group];
            moved = moved.min(placed[group][arc]);
            bin = before;
        }
        bin = goal;
        loop {
            let (group, index) = ways.into_bin[bin];
            placed[group][index] += moved;
            if group == from {
                return moved;
            }
            let (before, arc) = ways.into_group[group];
            placed[group][arc] -= moved;
            bin = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_gives_way_to_one_that_has_no_choice() {
        let arc = |bin, weight| Arc {
            bin,
            limit: 9,
            weight,
        };
        let transport = Transport {
            bins: vec![Bin { class: 0, slots: 4 }, Bin { class: 1, slots: 4 }],
            groups: vec![(4, vec![arc(0, 1), arc(1, 5)]), (3, vec![arc(0, 1)])],
        };
        assert_eq!(transport.solve(), Some(vec![vec![1, 3], vec![3]]));
        let full = Transport {
            groups: vec![(4, vec![arc(0, 1), arc(1, 5)]), (5, vec![arc(0, 1)])],
            ..transport
        };
        assert_eq!(full.solve(), None);
    }
}
