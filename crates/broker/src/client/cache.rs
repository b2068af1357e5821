//! Keeps the broker's last answers in a file, so that a gateway knows its grid while the broker is away.
//!
//! Revocations are written before anything else happens and never forgotten; members with a delay, since the
//! broker has them too.

use crate::api::{Member, Since, SyncAnswer};
use crate::files::{self, FileError};
use crate::revocation::{RevocationSet, SignedRevocations};
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const MEMBERS_FILE: &str = "members.json";
const REVOCATIONS_FILE: &str = "revocations.json";

pub(super) struct Cache {
    directory: PathBuf,
    grid: String,
    pub(super) since: Option<Since>,
    pub(super) members: BTreeMap<String, Member>,
    /// A new list of all members, as far as it has arrived.
    fresh: Option<BTreeMap<String, Member>>,
    dirty: bool,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    grid: String,
    since: Option<Since>,
    members: BTreeMap<String, Member>,
}

/// Returns the last record of a site that was kept, if any.
pub fn known_member(directory: &Path, grid: &str, site: &str) -> Option<Member> {
    Cache::open(directory, grid).ok()?.members.remove(site)
}

/// What an answer changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) members: Vec<Member>,
    pub(super) removed: Vec<String>,
}

impl Cache {
    /// Reads what was kept. A file of another grid, or a damaged one, counts as empty: the broker has
    /// everything.
    pub(super) fn open(directory: &Path, grid: &str) -> Result<Cache, FileError> {
        let bytes = files::read_if_there(&directory.join(MEMBERS_FILE))?;
        let kept = bytes.and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok());
        let kept = kept.filter(|kept| kept.grid == grid);
        let (since, members) = kept.map(|kept| (kept.since, kept.members)).unwrap_or_default();
        Ok(Cache {
            directory: directory.to_owned(),
            grid: grid.to_owned(),
            since,
            members,
            fresh: None,
            dirty: false,
        })
    }

    /// Takes an answer's members.
    pub(super) fn apply(&mut self, answer: &mut SyncAnswer) -> Changes {
        let mut changes = Changes::default();
        if self.since.as_ref() != Some(&answer.now) {
            self.dirty = true;
        }
        if answer.full {
            self.fresh = Some(BTreeMap::new());
        }
        let arrived = std::mem::take(&mut answer.members);
        let removed = std::mem::take(&mut answer.removed);
        if let Some(fresh) = &mut self.fresh {
            fresh.extend(arrived.into_iter().map(|member| (member.site.clone(), member)));
            fresh.retain(|site, _| !removed.contains(site));
        } else {
            for member in arrived {
                self.take(member, &mut changes);
            }
            for site in removed {
                if self.members.remove(&site).is_some() {
                    changes.removed.push(site);
                }
            }
        }
        if !answer.more
            && let Some(fresh) = self.fresh.take()
        {
            let gone = |site: &&String| !fresh.contains_key(*site);
            changes.removed.extend(self.members.keys().filter(gone).cloned());
            self.members.retain(|site, _| fresh.contains_key(site));
            for member in fresh.into_values() {
                self.take(member, &mut changes);
            }
        }
        self.since = Some(answer.now.clone());
        changes
    }

    fn take(&mut self, member: Member, changes: &mut Changes) {
        let known = self.members.get(&member.site);
        let news = known.is_none_or(|known| {
            let what = |member: &'_ Member| {
                (
                    member.serial.clone(),
                    member.observed,
                    member.virtual_subnets.clone(),
                )
            };
            known.record != member.record || what(known) != what(&member)
        });
        if news {
            changes.members.push(member.clone());
        }
        self.members.insert(member.site.clone(), member);
    }

    /// Forgets where in the broker's history the members are from: it will tell them all.
    pub(super) fn begin_anew(&mut self) {
        self.since = None;
        self.fresh = None;
    }

    /// Writes the members, if they have changed.
    pub(super) fn keep(&mut self) -> Result<(), FileError> {
        if !self.dirty {
            return Ok(());
        }
        // An unfinished list would lack members for ever.
        let since = self.since.clone().filter(|_| self.fresh.is_none());
        let kept = Kept {
            grid: self.grid.clone(),
            since,
            members: self.members.clone(),
        };
        let bytes = serde_json::to_vec(&kept).unwrap_or_default();
        files::replace(&self.directory.join(MEMBERS_FILE), &bytes, 0o600)?;
        self.dirty = false;
        Ok(())
    }
}

/// The revocations that were kept; the empty set where there are none.
pub(super) fn revocations(
    directory: &Path,
    grid: &str,
    authority: &CertificateDer<'_>,
) -> Result<RevocationSet, FileError> {
    let path = directory.join(REVOCATIONS_FILE);
    let Some(bytes) = files::read_if_there(&path)? else {
        return Ok(RevocationSet::default());
    };
    // Not passed over like members: a site that was put out would be in again.
    let damaged = |reason: String| {
        let reason =
            format!("{reason}; remove it only if the broker can be reached: the broker has the list, too");
        FileError::at("read", &path)(std::io::Error::new(std::io::ErrorKind::InvalidData, reason))
    };
    let signed: SignedRevocations =
        serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    RevocationSet::verify(&signed, grid, authority).map_err(|error| damaged(error.to_string()))
}

pub(super) fn keep_revocations(directory: &Path, signed: &SignedRevocations) -> Result<(), FileError> {
    let bytes = serde_json::to_vec(signed).unwrap_or_default();
    files::replace(&directory.join(REVOCATIONS_FILE), &bytes, 0o600)
}
