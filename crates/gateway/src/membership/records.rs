//! Passes on what the brokers of a grid know together: a gateway that reaches no broker learns from another
//! gateway which sites were put out.
//!
//! Only revocations and records of brokers are passed on: how a site joined is in its certificate. Each
//! record is signed, so it does not matter who brings it. The session's thread checks the signature
//! (`Client::bring`).

use crate::driver::Driver;
use crate::keys::PairKey;
use crate::membership::Membership;
use crate::tunnels::Tunnels;
use crate::tunnels::message::GatewayToGateway;
use causeway_broker::records::SignedRecord;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Bytes of the records in one message: fewer than in the messages that a gateway may send only now and then.
const MESSAGE_BYTES: usize = 40 * 1024;

/// Most messages of records that are accepted from one site within [`SPAN`]: sixteen brokers may have signed
/// more, but the brokers have those records, too.
const MESSAGES: u32 = 32;
const SPAN: Duration = Duration::from_secs(60);

/// Counts what other sites have brought.
#[derive(Debug, Default)]
pub(super) struct Brought {
    by: HashMap<String, (Instant, u32)>,
}

impl Brought {
    /// Whether a site may bring more records now.
    fn may(&mut self, site: &str, now: Instant) -> bool {
        self.by
            .retain(|_, (since, _)| now.saturating_duration_since(*since) < SPAN);
        let (_, count) = self.by.entry(site.to_owned()).or_insert((now, 0));
        *count += 1;
        *count <= MESSAGES
    }
}

impl Membership {
    /// Tells a gateway, on a new tunnel, which sites were put out, and which brokers there are.
    pub(super) fn greet_with_records(&self, driver: &Driver, tunnels: &mut Tunnels, pair: PairKey) {
        if let Some(grid) = &self.session {
            let trust = grid.client.trust();
            let records = trust.with_records(|records| records.passed_on().cloned().collect());
            say(driver, tunnels, pair, records);
        }
    }

    /// Passes on what is new here.
    pub(super) fn pass_on(&self, driver: &Driver, tunnels: &mut Tunnels, records: &[SignedRecord]) {
        for pair in tunnels.pairs().keys() {
            say(driver, tunnels, pair, records.to_vec());
        }
    }

    /// Another gateway brings records.
    pub(super) fn on_brought(&mut self, driver: &Driver, site: &str, records: Vec<SignedRecord>) {
        if let Some(grid) = &mut self.session
            && grid.brought.may(site, driver.now)
        {
            // If the client is busy, nothing is lost: the brokers have the records, too.
            let _ = grid.client.bring(site, records);
        }
    }
}

fn say(driver: &Driver, tunnels: &mut Tunnels, pair: PairKey, records: Vec<SignedRecord>) {
    let mut message = Vec::new();
    let mut bytes = 0;
    for record in records {
        let size = record.text.len() + record.signature.len();
        if bytes + size > MESSAGE_BYTES && !message.is_empty() {
            let records = std::mem::take(&mut message);
            tell(driver, tunnels, pair, records);
            bytes = 0;
        }
        bytes += size;
        message.push(record);
    }
    if !message.is_empty() {
        tell(driver, tunnels, pair, message);
    }
}

fn tell(driver: &Driver, tunnels: &mut Tunnels, pair: PairKey, records: Vec<SignedRecord>) {
    let message = GatewayToGateway::Records { records };
    tunnels.pairs_mut().tell(driver, pair, message);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_that_brings_records_without_end_is_no_longer_listened_to_and_others_are() {
        let mut brought = Brought::default();
        let now = Instant::now();
        assert!((0..MESSAGES).all(|_| brought.may("rennes", now)));
        assert!(!brought.may("rennes", now) && brought.may("nancy", now));
        assert!(brought.may("rennes", now + SPAN));
    }
}
