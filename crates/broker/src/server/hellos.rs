//! Limits how many TLS hellos are answered: a hello costs its sender little, but costs the broker signatures.

use super::Shared;
use super::pace::{Pace, Rate};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tokio::time::sleep_until;

pub(super) struct Hellos {
    pace: Mutex<Pace>,
}

impl Hellos {
    pub(super) fn new(rate: Rate) -> Hellos {
        Hellos {
            pace: Mutex::new(Pace::new(rate, Instant::now())),
        }
    }

    /// Waits until a hello from this address may be answered.
    pub(super) async fn turn(&self, shared: &Shared, from: IpAddr) {
        while let Some(again) = self.try_turn(shared, from) {
            sleep_until(again.into()).await;
        }
    }

    /// Counts a hello; if there is no room for it, returns the time when there may be.
    fn try_turn(&self, shared: &Shared, from: IpAddr) -> Option<Instant> {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        if pace.turns(Instant::now())
            && let Some(members) = shared.networks_of_members()
        {
            pace.know(members);
        }
        (!pace.admits(from)).then(|| pace.ends())
    }
}
