//! What the next worker needs to know of sites and jobs, should this one be killed.

use crate::book::{Book, Records, kind};
use crate::inherited::StateError;
use crate::membership::Membership;
use crate::membership::jobs::KeptJob;
use crate::membership::kept::KeptMembership;
use causeway_control::SiteInfo;
use causeway_memory::Key;
use serde::{Deserialize, Serialize};

/// The sites, as they are written down.
#[derive(Default, Serialize, Deserialize)]
struct WrittenSites {
    virtual_subnets: Vec<String>,
    others: Vec<SiteInfo>,
    unrecorded: Vec<SiteInfo>,
}

impl Membership {
    /// Writes down what has changed.
    pub(crate) fn write_down(&mut self, book: &mut Book) {
        if self.jobs.take_changed() {
            let jobs = self.jobs.keep().into_iter();
            book.put_all(kind::JOB, jobs.map(|job| (u128::from_be_bytes(job.token), job)));
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

/// Reads what was written down of sites and jobs.
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
