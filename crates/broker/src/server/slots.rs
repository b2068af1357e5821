//! Keeps the list of connections, and chooses the one to end when there are too many.
//!
//! Strangers (no certificate shown yet) and each site have their own room, so that many callers of one kind
//! cannot keep out the other. When a room is full, its oldest connection ends: an honest caller needs it only
//! for a moment or comes back, and a flood ends its own connections. Among strangers,
//! `causeway_service::admission` decides which.

use super::Limits;
use causeway_service::Admission;
use causeway_service::admission::{Bound, network_of};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};

/// The most connections that were told to end and have not closed their files yet; beyond that, no new one is
/// accepted. On a busy host, tasks may end much later than new connections arrive.
const LEAVING: usize = 64;

pub(super) struct Slots {
    inner: Arc<Mutex<Inner>>,
    /// Open files: those of the present connections, and of those that are about to end.
    open: watch::Sender<Open>,
    strangers: usize,
    strangers_per_address: usize,
    per_site: usize,
    all: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Open {
    present: usize,
    leaving: usize,
}

struct Inner {
    next: u64,
    /// Connections by age, the oldest first.
    present: BTreeMap<u64, Present>,
    /// Connections that have shown no certificate, by the networks they come from.
    strangers: Admission<IpAddr, u64>,
    leaving: usize,
}

struct Present {
    address: IpAddr,
    site: Option<String>,
    leave: Arc<Notify>,
}

/// One connection's slot. It is free again once this is dropped.
pub(super) struct Slot {
    number: u64,
    leave: Arc<Notify>,
    inner: Arc<Mutex<Inner>>,
    open: watch::Sender<Open>,
}

/// Which connection had to end for another, and why.
pub(super) struct Displaced {
    pub(super) address: IpAddr,
    pub(super) kind: &'static str,
    pub(super) why: String,
}

impl Slots {
    pub(super) fn new(limits: &Limits, all: usize) -> Slots {
        Slots {
            inner: Arc::new(Mutex::new(Inner {
                next: 0,
                present: BTreeMap::new(),
                strangers: Admission::new(limits.strangers, limits.strangers_per_address),
                leaving: 0,
            })),
            open: watch::Sender::new(Open::default()),
            strangers: limits.strangers,
            strangers_per_address: limits.strangers_per_address,
            per_site: limits.per_site,
            all,
        }
    }

    /// A slot for a new connection; `None` if members hold all slots, because no member's connection is ended
    /// for a stranger's.
    pub(super) fn enter(&self, address: IpAddr) -> (Option<Slot>, Option<Displaced>) {
        let mut inner = lock(&self.inner);
        let network = network_of(address);
        let displaced = inner
            .strangers
            .one_too_many(&network)
            .and_then(|(bound, oldest)| match bound {
                Bound::OfOne => inner.end(oldest, self.strangers_per_address, "crowd of an address"),
                Bound::OfAll => inner.end(oldest, self.strangers, "crowd"),
            });
        if inner.present.len() >= self.all {
            let why = format!(
                "{} connections are open, as many as [connections] allows",
                self.all
            );
            return (
                None,
                Some(Displaced {
                    address,
                    kind: "connections",
                    why,
                }),
            );
        }
        let number = inner.next;
        inner.next += 1;
        let leave = Arc::new(Notify::new());
        let present = Present {
            address,
            site: None,
            leave: leave.clone(),
        };
        inner.present.insert(number, present);
        inner.strangers.enter(network, number, number);
        self.open.send_replace(inner.open());
        let slot = Slot {
            number,
            leave,
            inner: self.inner.clone(),
            open: self.open.clone(),
        };
        (Some(slot), displaced)
    }

    /// Notes that a connection belongs to a site.
    pub(super) fn recognise(&self, slot: &Slot, site: &str) -> Option<Displaced> {
        let mut inner = lock(&self.inner);
        let connections = inner
            .present
            .iter()
            .filter(|(_, present)| present.site.as_deref() == Some(site));
        let connections: Vec<u64> = connections.map(|(number, _)| *number).collect();
        let displaced = match connections.first() {
            Some(&oldest) if connections.len() >= self.per_site => {
                inner.end(oldest, self.per_site, "crowd of a site")
            }
            _ => None,
        };
        let Inner {
            present, strangers, ..
        } = &mut *inner;
        if let Some(present) = present.get_mut(&slot.number) {
            present.site = Some(site.to_owned());
            strangers.leave(&network_of(present.address), slot.number);
        }
        displaced
    }

    /// Waits until only few of the connections that were told to end are left.
    pub(super) async fn departures(&self) {
        let _ = self
            .open
            .subscribe()
            .wait_for(|open| open.leaving < LEAVING)
            .await;
    }

    /// Waits until nobody is connected.
    pub(super) async fn empty(&self) {
        let gone = |open: &Open| open.present + open.leaving == 0;
        let _ = self.open.subscribe().wait_for(gone).await;
    }
}

impl Inner {
    fn open(&self) -> Open {
        Open {
            present: self.present.len(),
            leaving: self.leaving,
        }
    }

    /// Makes one connection end, because there are more than `most` of its kind.
    fn end(&mut self, oldest: u64, most: usize, kind: &'static str) -> Option<Displaced> {
        let present = self.remove(oldest)?;
        self.leaving += 1;
        present.leave.notify_one();
        let whose = present.site.map_or_else(
            || "that show no certificate".to_owned(),
            |site| format!("of site {site}"),
        );
        Some(Displaced {
            address: present.address,
            kind,
            why: format!("more than {most} connections {whose}; the oldest ends"),
        })
    }

    fn remove(&mut self, number: u64) -> Option<Present> {
        let present = self.present.remove(&number)?;
        self.strangers.leave(&network_of(present.address), number);
        Some(present)
    }
}

impl Slot {
    /// Waits until this connection is told to end.
    pub(super) async fn displaced(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut inner = lock(&self.inner);
        if inner.remove(self.number).is_none() {
            // This connection was told to end.
            inner.leaving -= 1;
        }
        self.open.send_replace(inner.open());
    }
}

fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_of_strangers_ends_its_oldest_and_leaves_the_sites_alone() {
        let limits = Limits {
            strangers: 4,
            strangers_per_address: 2,
            per_site: 2,
            ..Limits::default()
        };
        let slots = Slots::new(&limits, 8);
        let from = |last: u8| IpAddr::from([192, 0, 2, last]);
        let (site, _) = slots.enter(from(1));
        let site = site.unwrap();
        assert!(slots.recognise(&site, "rennes").is_none());
        let two: Vec<_> = [1, 1].map(|last| slots.enter(from(last)).0.unwrap()).into();
        let (third, displaced) = slots.enter(from(1));
        assert!(displaced.unwrap().why.contains("more than 2"));
        let others: Vec<_> = [2, 3, 4].map(|last| slots.enter(from(last))).into();
        assert!(others[2].1.as_ref().unwrap().why.contains("more than 4"));
        assert_eq!(lock(&slots.inner).present.len(), 5);
        let more: Vec<_> = [5, 6].map(|last| slots.enter(from(last)).0.unwrap()).into();
        for slot in &more {
            slots.recognise(slot, "rennes");
        }
        assert!(
            !lock(&slots.inner).present.contains_key(&site.number),
            "the site's oldest"
        );
        drop((site, two, third, others, more));
        assert!(lock(&slots.inner).present.is_empty());
        assert_eq!(lock(&slots.inner).leaving, 0);
    }

    #[test]
    fn all_addresses_of_one_network_of_ipv6_have_the_room_of_one_address() {
        let limits = Limits {
            strangers_per_address: 2,
            ..Limits::default()
        };
        let slots = Slots::new(&limits, 1000);
        let enter = |address: &str| slots.enter(address.parse().unwrap());
        let (_honest, _) = enter("2001:db8:0:2::1");
        let crowd = ["2001:db8:0:1::1", "2001:db8:0:1:2::", "2001:db8:0:1::3"].map(enter);
        let displaced = crowd[2].1.as_ref().unwrap();
        assert_eq!(displaced.address.to_string(), "2001:db8:0:1::1");
        assert!(displaced.why.contains("more than 2"));
        assert_eq!(lock(&slots.inner).strangers.present(), 3);
        drop(crowd);
        assert_eq!(lock(&slots.inner).strangers.present(), 1);
    }

    #[tokio::test]
    async fn nobody_new_is_accepted_before_most_of_those_who_have_to_go_are_gone() {
        let limits = Limits {
            strangers_per_address: 1,
            ..Limits::default()
        };
        let slots = Slots::new(&limits, 1000);
        let address = IpAddr::from([192, 0, 2, 1]);
        let mut all: Vec<_> = (0..=LEAVING).map(|_| slots.enter(address).0.unwrap()).collect();
        let settled = slots.departures();
        tokio::pin!(settled);
        assert!(is_pending(settled.as_mut()).await);
        drop(all.remove(0));
        settled.await;
    }

    async fn is_pending(future: impl Future<Output = ()>) -> bool {
        tokio::select! {
            biased;
            () = future => false,
            () = std::future::ready(()) => true,
        }
    }

    #[test]
    fn a_crowd_from_two_addresses_ends_itself_and_not_who_came_first_from_elsewhere() {
        let limits = Limits {
            strangers: 8,
            strangers_per_address: 6,
            ..Limits::default()
        };
        let slots = Slots::new(&limits, 100);
        let from = |last: u8| IpAddr::from([192, 0, 2, last]);
        let honest = slots.enter(from(1)).0.unwrap();
        let mut flood = Vec::new();
        for last in [2, 3].into_iter().cycle().take(100) {
            let (slot, displaced) = slots.enter(from(last));
            flood.extend(slot);
            assert!(displaced.is_none_or(|displaced| displaced.address != from(1)));
        }
        let inner = lock(&slots.inner);
        assert!(inner.present.contains_key(&honest.number));
        assert_eq!(inner.strangers.present(), 8);
        drop(inner);
    }
}
