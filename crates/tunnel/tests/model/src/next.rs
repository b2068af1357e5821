//! The next process of an end of a tunnel: it continues from what the previous one has written to its
//! journal.

use causeway_memory::{Arena, Journal};
use causeway_tunnel::{Settings, Side, Tunnel, recover};
use std::collections::HashMap;
use std::time::Instant;

const OWNER: u64 = 1;

/// A tunnel in memory that outlives its process.
pub fn tunnel(side: Side, settings: Settings, now: Instant) -> Tunnel {
    let arena = Arena::shared().unwrap();
    Tunnel::kept(side, settings, now, &arena, OWNER)
}

/// Ends the process at the end of a turn of its loop, and returns the tunnel of the next one. Nothing has
/// moved since then.
pub fn process_of(tunnel: &mut Tunnel, settings: Settings, now: Instant) -> Tunnel {
    let mut journal = Journal::shared().unwrap();
    tunnel.write_down(&mut journal, now);
    journal.commit(now).unwrap();
    end_turn(tunnel);
    let (_, records) = Journal::open(journal.duplicate().unwrap()).unwrap();
    let (arena, mut found) = Arena::open(tunnel.arena().duplicate().unwrap()).unwrap();
    tunnel.arena().abandon();
    let records = records.into_iter().collect();
    let recovered = recover(OWNER, &records, &mut found, &HashMap::new()).unwrap();
    assert!(recovered.lost.is_empty());
    recovered
        .snapshot
        .into_tunnel((settings, now), (&arena, OWNER))
        .expect("a tunnel's own state is sound")
}

/// Ends a turn: memory may be used again.
pub fn end_turn(tunnel: &mut Tunnel) {
    tunnel.written_down();
    tunnel.arena().reclaim();
}
