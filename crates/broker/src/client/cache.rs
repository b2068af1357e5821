//! Keeps the brokers' last answers in a file, so that a gateway knows its grid while they cannot be reached.
//!
//! Each broker has a view of its own. The gateway is told the newest that any of them reports about a site,
//! so that it goes on with the others when one is away, and does not forget a site that only that one knows.
//! Revocations and records are written before anything else happens, and are never forgotten; members are
//! written with a delay, since the brokers have them, too.

use crate::api::{Member, Since, SyncAnswer};
use crate::files::{self, FileError};
use crate::records::{Records, SignedRecord};
use crate::revocation::{RevocationSet, SignedRevocations};
use crate::tls::Trust;
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const MEMBERS_FILE: &str = "members.json";
const REVOCATIONS_FILE: &str = "revocations.json";

/// Most sites that one broker may list: four times the largest grid.
const MAX_SITES: usize = 4096;

/// Most memory that the sites of one broker may take: those of a grid of a thousand sites with a hundred
/// nodes each take a quarter of it.
const MAX_BYTES: usize = 64 << 20;

/// A broker's number in its grid; 0 if it is the only one.
pub(super) type BrokerKey = u8;

pub(super) struct Cache {
    directory: PathBuf,
    grid: String,
    /// Members from an earlier start, until all brokers have sent everything that they know.
    kept: BTreeMap<String, Member>,
    /// The point in the only broker's history that these are from.
    kept_since: Option<Since>,
    views: BTreeMap<BrokerKey, View>,
    /// What the gateway was told.
    members: BTreeMap<String, Member>,
    dirty: bool,
    /// Why the kept file is not used.
    unread: Option<FileError>,
}

/// A broker has listed more than it may.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it names more sites than a grid can have, or more of them than fits into {} MB", MAX_BYTES >> 20)]
pub(super) struct TooMuch;

/// What one broker reports.
#[derive(Default)]
struct View {
    since: Option<Since>,
    members: BTreeMap<String, Member>,
    /// A new list of all members, as far as it has arrived.
    fresh: Option<BTreeMap<String, Member>>,
    /// Whether the broker has sent everything that it knows since this start.
    is_whole: bool,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    grid: String,
    since: Option<Since>,
    members: BTreeMap<String, Member>,
}

/// Returns the last record of a site that was kept, if any.
pub fn known_member(directory: &Path, grid: &str, site: &str) -> Option<Member> {
    Cache::open(directory, grid).members.remove(site)
}

/// What an answer changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) members: Vec<Member>,
    pub(super) removed: Vec<String>,
}

impl View {
    fn is_too_much(&self) -> bool {
        let mut lists = std::iter::once(&self.members).chain(&self.fresh);
        let bytes = lists.clone().flat_map(BTreeMap::values).map(Member::bytes);
        bytes.sum::<usize>() > MAX_BYTES || lists.any(|list| list.len() > MAX_SITES)
    }

    /// Takes an answer's members; returns the sites for which it changes something.
    fn apply(&mut self, answer: &mut SyncAnswer) -> BTreeSet<String> {
        let mut touched = BTreeSet::new();
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
                touched.insert(member.site.clone());
                self.members.insert(member.site.clone(), member);
            }
            for site in removed {
                self.members.remove(&site);
                touched.insert(site);
            }
        }
        if !answer.more
            && let Some(fresh) = self.fresh.take()
        {
            touched.extend(self.members.keys().cloned());
            touched.extend(fresh.keys().cloned());
            self.members = fresh;
            self.is_whole = true;
        }
        self.since = Some(answer.now.clone());
        touched
    }
}

impl Cache {
    /// Reads what was kept. A file of another grid, a damaged one, or one that cannot be read, counts as
    /// empty: the broker has everything.
    pub(super) fn open(directory: &Path, grid: &str) -> Cache {
        let (bytes, unread) = match files::read_if_there(&directory.join(MEMBERS_FILE)) {
            Ok(bytes) => (bytes, None),
            Err(error) => (None, Some(error)),
        };
        let kept = bytes.and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok());
        let kept = kept.filter(|kept| kept.grid == grid);
        let (kept_since, kept) = kept.map(|kept| (kept.since, kept.members)).unwrap_or_default();
        Cache {
            directory: directory.to_owned(),
            grid: grid.to_owned(),
            members: kept.clone(),
            kept,
            kept_since,
            views: BTreeMap::new(),
            dirty: false,
            unread,
        }
    }

    /// Returns, once, why the kept file is not used.
    pub(super) fn take_trouble(&mut self) -> Option<FileError> {
        self.unread.take()
    }

    /// What the gateway has been told about all sites.
    pub(super) fn members(&self) -> &BTreeMap<String, Member> {
        &self.members
    }

    /// Whether a broker lists this site.
    pub(super) fn has(&self, broker: BrokerKey, site: &str) -> bool {
        self.views
            .get(&broker)
            .is_some_and(|view| view.members.contains_key(site))
    }

    /// Begins a broker's view. The only broker goes on from where the file was written.
    pub(super) fn begin(&mut self, broker: BrokerKey, is_only_one: bool) {
        let view = match is_only_one {
            true => View {
                since: self.kept_since.clone(),
                members: std::mem::take(&mut self.kept),
                ..View::default()
            },
            false => View::default(),
        };
        self.views.insert(broker, view);
    }

    /// Ends the view of a broker that no longer serves. What it reported remains valid until the others have
    /// sent everything, unless it was expelled.
    pub(super) fn end(&mut self, broker: BrokerKey, is_expelled: bool) {
        if let Some(view) = self.views.remove(&broker)
            && !is_expelled
        {
            self.kept.extend(view.members);
        }
    }

    /// The point in a broker's history up to which the gateway has been told.
    pub(super) fn since(&self, broker: BrokerKey) -> Option<&Since> {
        self.views.get(&broker)?.since.as_ref()
    }

    /// Takes a broker's answer. `is_out` says whose certificates are no longer valid.
    ///
    /// # Errors
    /// The broker lists too much. Then nothing that it has reported counts.
    pub(super) fn apply(
        &mut self,
        broker: BrokerKey,
        answer: &mut SyncAnswer,
        is_out: impl Fn(&Member) -> bool,
    ) -> Result<Changes, TooMuch> {
        let view = self.views.entry(broker).or_default();
        if view.since.as_ref() != Some(&answer.now) {
            self.dirty = true;
        }
        let touched = view.apply(answer);
        if view.is_too_much() {
            *view = View::default();
            return Err(TooMuch);
        }
        if !self.kept.is_empty() && self.views.values().all(|view| view.is_whole) {
            self.kept.clear();
            return Ok(self.look_again(is_out));
        }
        Ok(self.choose(touched, is_out))
    }

    /// Judges all sites anew.
    pub(super) fn look_again(&mut self, is_out: impl Fn(&Member) -> bool) -> Changes {
        let views = self.views.values().flat_map(|view| view.members.keys());
        let all = views.chain(self.kept.keys()).chain(self.members.keys());
        let all = all.cloned().collect();
        self.choose(all, is_out)
    }

    fn choose(&mut self, sites: BTreeSet<String>, is_out: impl Fn(&Member) -> bool) -> Changes {
        let mut changes = Changes::default();
        for site in sites {
            let said = self.views.iter();
            let said = said.filter_map(|(broker, view)| Some((broker, view.members.get(&site)?)));
            // The one with the newest certificate, and among equals the one that spoke last. As each broker
            // has its own clock, the latter is only a good guess.
            let best =
                said.max_by_key(|(broker, member)| (member.not_before, member.last_seen, Reverse(**broker)));
            let best = best.map(|(_, member)| member).or_else(|| self.kept.get(&site));
            match best.filter(|member| !is_out(member)).cloned() {
                Some(member) => self.take(member, &mut changes),
                None => {
                    if self.members.remove(&site).is_some() {
                        changes.removed.push(site);
                    }
                }
            }
        }
        self.dirty |= changes != Changes::default();
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

    /// Forgets the point in a broker's history that the members are from, so that it sends them all.
    pub(super) fn begin_anew(&mut self, broker: BrokerKey) {
        if let Some(view) = self.views.get_mut(&broker) {
            view.since = None;
            view.fresh = None;
        }
    }

    /// Writes the members, if they have changed.
    pub(super) fn keep(&mut self) -> Result<(), FileError> {
        if !self.dirty {
            return Ok(());
        }
        // An unfinished list would lack members for ever, and one from several brokers belongs to no single
        // history.
        let mut views = self.views.iter();
        let only = match (views.next(), views.next()) {
            (Some((0, view)), None) if view.fresh.is_none() => view.since.clone(),
            _ => None,
        };
        let kept = Kept {
            grid: self.grid.clone(),
            since: only,
            members: self.members.clone(),
        };
        let bytes = serde_json::to_vec(&kept).unwrap_or_default();
        files::replace(&self.directory.join(MEMBERS_FILE), &bytes, 0o600)?;
        self.dirty = false;
        Ok(())
    }
}

/// The revocations that were kept; the empty set if there are none.
pub(super) fn revocations(
    directory: &Path,
    grid: &str,
    authority: &CertificateDer<'_>,
) -> Result<RevocationSet, FileError> {
    let path = directory.join(REVOCATIONS_FILE);
    let Some(bytes) = files::read_if_there(&path)? else {
        return Ok(RevocationSet::default());
    };
    // Not ignored like members: a site that was put out would be let in again.
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

const RECORDS_FILE: &str = "records.json";

/// Reads the records that were kept; none if there is no file, as in a grid of one broker.
pub(super) fn records(directory: &Path, trust: &Trust) -> Result<(), FileError> {
    let path = directory.join(RECORDS_FILE);
    let Some(bytes) = files::read_if_there(&path)? else {
        return Ok(());
    };
    // Damaged records are an error, as damaged revocations are: a site that was put out would be let in
    // again.
    let damaged = |reason: String| {
        let reason =
            format!("{reason}; remove it only if a broker can be reached: brokers have the records, too");
        FileError::at("read", &path)(std::io::Error::new(std::io::ErrorKind::InvalidData, reason))
    };
    let signed: Vec<SignedRecord> =
        serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    let mut records = Records::default();
    let read = trust.read_back(&mut records, &signed);
    read.map_err(|error| damaged(error.to_string()))?;
    trust.set_records(records);
    Ok(())
}

pub(super) fn keep_records(directory: &Path, records: &Records) -> Result<(), FileError> {
    let signed: Vec<&SignedRecord> = records.signed().collect();
    let bytes = serde_json::to_vec(&signed).unwrap_or_default();
    files::replace(&directory.join(RECORDS_FILE), &bytes, 0o600)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Node, Reach, Record};

    fn member(site: &str, nodes: usize) -> Member {
        let node = |number| Node {
            name: format!("node-{number}"),
            addresses: Vec::new(),
            slots: 1,
        };
        Member {
            site: site.to_owned(),
            record: Record {
                instance: "0".repeat(32),
                subnets: Vec::new(),
                lan: Vec::new(),
                reach: Reach::default(),
                udp_port: None,
                nodes: (0..nodes).map(node).collect(),
                overlap_ok: false,
                virtual_subnets: Vec::new(),
                version: "0.1.0".into(),
            },
            virtual_subnets: Vec::new(),
            observed: None,
            last_seen: 1,
            serial: "1".into(),
            not_before: 1,
        }
    }

    fn answer(members: Vec<Member>, full: bool, more: bool) -> SyncAnswer {
        SyncAnswer {
            now: Since {
                history: "0".repeat(32),
                revision: 1,
            },
            full,
            more,
            members,
            removed: Vec::new(),
            revocations: None,
            wants_revocations: false,
            wants_record: false,
            messages: Vec::new(),
            observed: "192.0.2.1:1".parse().unwrap(),
            time: 1,
            records: None,
        }
    }

    fn with_two_brokers(directory: &Path) -> Cache {
        let mut cache = Cache::open(directory, "g5k");
        cache.begin(1, false);
        cache.begin(2, false);
        let mut good = answer(vec![member("rennes", 2)], true, false);
        cache.apply(1, &mut good, |_| false).unwrap();
        cache
    }

    #[test]
    fn a_broker_that_names_more_than_there_can_be_is_not_believed_at_all() {
        let directory = tempfile::tempdir().unwrap();
        // Page after page, with many sites or with many nodes.
        for (nodes, of_a_page) in [(0, 1000), (16_384, 1)] {
            let mut cache = with_two_brokers(directory.path());
            let pages = (0..100_000_usize).map(|page| {
                let sites = page * of_a_page..(page + 1) * of_a_page;
                let members = sites.map(|number| member(&format!("site-{number}"), nodes));
                answer(members.collect(), page == 0, true)
            });
            let mut taken = 0;
            for mut page in pages {
                match cache.apply(2, &mut page, |_| false) {
                    Ok(_) => taken += of_a_page,
                    Err(error) => {
                        assert_eq!(error, TooMuch);
                        break;
                    }
                }
            }
            assert!(
                taken <= 2 * MAX_SITES && taken * (nodes + 10) * 96 <= MAX_BYTES,
                "{taken}"
            );
            cache.look_again(|_| false);
            assert_eq!(cache.members().keys().collect::<Vec<_>>(), ["rennes"]);
            assert!(cache.views[&2].members.is_empty() && cache.views[&2].fresh.is_none());
        }
    }

    #[test]
    fn what_an_expelled_broker_alone_has_named_goes_with_it() {
        let directory = tempfile::tempdir().unwrap();
        for (is_expelled, left) in [(true, &["rennes"][..]), (false, &["nancy", "rennes"])] {
            let mut cache = with_two_brokers(directory.path());
            let mut said = answer(vec![member("nancy", 2), member("rennes", 2)], true, false);
            cache.apply(2, &mut said, |_| false).unwrap();
            cache.end(2, is_expelled);
            cache.look_again(|_| false);
            assert_eq!(cache.members().keys().collect::<Vec<_>>(), left);
        }
    }

    #[test]
    fn what_was_kept_and_cannot_be_read_is_as_if_it_had_not_been_kept() {
        let directory = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(directory.path().join(MEMBERS_FILE)).unwrap();
        file.set_len(1 << 30).unwrap();
        let mut cache = with_two_brokers(directory.path());
        let trouble = cache.take_trouble().unwrap().to_string();
        assert!(trouble.contains("is longer than"), "{trouble}");
        assert!(cache.take_trouble().is_none());
        cache.keep().unwrap();
        let again = Cache::open(directory.path(), "g5k");
        assert_eq!(again.members().len(), 1);
    }
}
