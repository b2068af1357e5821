//! Distinguishes a message that two brokers deliver from one that was sent twice. The sender gives a message
//! to each broker that knows the other site, because nobody knows which of them that site still reaches.

use super::cache::BrokerKey;
use crate::api::Message;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// A broker keeps a message for half a minute.
const MEMORY: Duration = Duration::from_secs(60);

/// Most messages that are remembered; beyond that all are forgotten, and one may arrive twice.
const MAX_HEARD: usize = 4096;

#[derive(Default)]
pub(super) struct Heard {
    messages: HashMap<[u8; 32], Times>,
}

struct Times {
    last: Instant,
    /// How often the gateway was told this.
    told: u32,
    /// How often each broker has delivered it.
    by: BTreeMap<BrokerKey, u32>,
}

impl Heard {
    /// Notes a message; true if the gateway has not been told it yet.
    pub(super) fn is_new(&mut self, broker: BrokerKey, message: &Message, now: Instant) -> bool {
        self.messages
            .retain(|_, times| now.saturating_duration_since(times.last) < MEMORY);
        if self.messages.len() >= MAX_HEARD {
            self.messages.clear();
        }
        // With lengths, so that no two messages make the same text.
        let parts = [&message.from, &message.kind, &message.body];
        let hash = parts.iter().fold(Sha256::new(), |hash, part| {
            hash.chain_update((part.len() as u64).to_be_bytes())
                .chain_update(part)
        });
        let times = self.messages.entry(hash.finalize().into()).or_insert(Times {
            last: now,
            told: 0,
            by: BTreeMap::new(),
        });
        times.last = now;
        let brought = times.by.entry(broker).or_default();
        *brought += 1;
        let is_new = *brought > times.told;
        times.told = times.told.max(*brought);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_two_brokers_bring_is_told_once_and_one_that_was_sent_twice_is_told_twice() {
        let message = |body: &str| Message {
            number: 1,
            from: "rennes".into(),
            seen: None,
            kind: "punch".into(),
            body: body.into(),
        };
        let mut heard = Heard::default();
        let now = Instant::now();
        let mut told = |broker, body: &str, later: u64| {
            heard.is_new(broker, &message(body), now + Duration::from_secs(later))
        };
        assert!(told(1, "a", 0) && !told(2, "a", 0));
        assert!(told(2, "b", 0), "it came by the second one first");
        assert!(told(1, "a", 1), "it was sent again");
        assert!(!told(2, "a", 1) && !told(1, "b", 1));
        assert!(told(2, "a", 100), "long ago");
    }
}
