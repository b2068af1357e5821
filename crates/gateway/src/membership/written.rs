//! What the next worker needs to know about sites and jobs if this one is killed.

use crate::book::{Book, Records, kind};
use crate::inherited::StateError;
use crate::membership::Membership;
use crate::membership::jobs::KeptJob;
use crate::membership::kept::KeptMembership;
use causeway_control::SiteInfo;
use causeway_memory::Key;
use serde::{Deserialize, Serialize};

/// The sites in the form in which they are written down.
#[derive(Default, Serialize, Deserialize)]
struct WrittenSites {
    virtual_subnets: Vec<String>,
    others: Vec<SiteInfo>,
    unrecorded: Vec<SiteInfo>,
}

impl Membership {
    /// Writes down what has changed.
    pub(crate) fn write_down(&mut self, book: &mut Book) {
        for token in self.jobs.take_touched() {
            let name = u128::from_be_bytes(token.0);
            match self.jobs.get(&token) {
                Some(job) => book.put_named(kind::JOB, name, &job.keep(&token)),
                None => book.remove_named(kind::JOB, name),
            }
        }
        if std::mem::take(&mut self.directory.has_changed) {
            let unrecorded = self.directory.unrecorded.values();
            let sites = WrittenSites {
                virtual_subnets: self.directory.virtual_subnets(),
                others: self.directory.others().cloned().collect(),
                unrecorded: unrecorded.map(|(info, _)| info.clone()).collect(),
            };
            book.put(kind::SITES, 0, &sites);
        }
    }
}

/// Reads the sites and jobs that were written down.
///
/// # Errors
/// A record cannot be read.
pub(crate) fn follow(records: &Records) -> Result<KeptMembership, StateError> {
    let sites = records.get(&Key::new(kind::SITES, 0, 0));
    let sites: WrittenSites =
        sites.map_or(Ok(WrittenSites::default()), |sites| postcard::from_bytes(sites))?;
    let key = |owner, id, part| Key {
        kind: kind::JOB,
        owner,
        id,
        part,
    };
    let jobs = records.range(key(0, 0, 0)..=key(u64::MAX, u64::MAX, u64::MAX));
    let jobs = jobs.map(|(_, value)| postcard::from_bytes::<KeptJob>(value));
    Ok(KeptMembership {
        virtual_subnets: sites.virtual_subnets,
        others: sites.others,
        unrecorded: sites.unrecorded,
        jobs: jobs.collect::<Result<_, _>>()?,
    })
}

/// Records of sites and of a job that command 2 holds, for tests of the layout.
#[cfg(test)]
pub(crate) fn put_samples(book: &mut Book) {
    use crate::membership::jobs::KeptOrigin;
    use crate::tunnels::message::JobRefusal;
    use causeway_control::{NodeInfo, Plan};
    use std::collections::BTreeMap;
    let node = |name: &str| NodeInfo {
        name: name.into(),
        address: [10, 2, 0, 7].into(),
        slots: 4,
    };
    let sites = WrittenSites {
        virtual_subnets: vec!["100.64.0.0/24".into()],
        others: vec![SiteInfo {
            name: "nancy".into(),
            subnets: vec!["10.2.0.0/24".into()],
            real_subnets: vec![],
            gateways: vec![([10, 1, 0, 1], 4000).into()],
            delivery_ports: "20000-32767".into(),
            nodes: vec![node("nancy-1")],
            relays: true,
            transparent: false,
            local: vec![],
        }],
        unrecorded: Vec::new(),
    };
    book.put(kind::SITES, 0, &sites);
    let job = KeptJob {
        token: [7; 16],
        name: "mpirun".into(),
        user: "ada".into(),
        weight: 1,
        bare: false,
        lingers: false,
        transparent: false,
        holder: 4321,
        origin: KeptOrigin::Here(2),
        plan: Plan {
            sites: vec!["rennes".into(), "nancy".into()],
            ranks: 8,
            allocations: BTreeMap::from([("nancy".to_owned(), "1234".to_owned())]),
        },
        allocated: BTreeMap::from([("nancy".to_owned(), vec![node("nancy-7")])]),
        since: 1_795_327_857,
        awaited: vec!["nancy".into()],
        told: vec!["nancy".into()],
        refused: vec![("lyon".into(), JobRefusal::Jobs)],
        sent_bytes: 0,
        received_bytes: 0,
    };
    book.put_named(kind::JOB, u128::from_be_bytes(job.token), &job);
}
