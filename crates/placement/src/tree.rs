//! Pairs of groups that form a forest.

/// A pair of the forest, with the group that is nearer to the root first.
#[derive(Debug, Clone)]
pub(crate) struct Edge {
    pub pair: usize,
    pub parent: usize,
    pub child: usize,
}

/// Chooses a forest of pairs, preferring those with the most expensive paths. Its edges are in order from the
/// root.
pub(crate) fn grow(groups: usize, pairs: &[((usize, usize), u128)]) -> Vec<Edge> {
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    order.sort_by_key(|pair| (std::cmp::Reverse(pairs[*pair].1), *pair));
    let mut leader: Vec<usize> = (0..groups).collect();
    let mut beside: Vec<Vec<(usize, usize)>> = vec![Vec::new(); groups];
    for pair in order {
        let (one, other) = pairs[pair].0;
        let (from, to) = (leader[one], leader[other]);
        if from != to {
            leader
                .iter_mut()
                .filter(|leader| **leader == from)
                .for_each(|leader| *leader = to);
            beside[one].push((other, pair));
            beside[other].push((one, pair));
        }
    }
    let mut edges = Vec::new();
    let mut is_seen = vec![false; groups];
    for root in 0..groups {
        let mut stack = if is_seen[root] { Vec::new() } else { vec![root] };
        is_seen[root] = true;
        while let Some(parent) = stack.pop() {
            for (child, pair) in &beside[parent] {
                if !is_seen[*child] {
                    is_seen[*child] = true;
                    stack.push(*child);
                    edges.push(Edge {
                        pair: *pair,
                        parent,
                        child: *child,
                    });
                }
            }
        }
    }
    edges
}
