//! The long poll: what a gateway reports to the broker, and what it is told.

use super::news::Budget;
use super::{Refusal, State};
use crate::api::{ErrorKind, Member, Record, Since, Subnet, SyncAnswer, SyncRequest};
use crate::granted;
use crate::identity::Certified;
use crate::store::{self, Change};
use crate::virtual_addresses;
use causeway_service::admission::network_of;
use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::sync::{Notify, watch};

/// Most bytes of members in one answer, as JSON. With this many, a thousand gateways that begin at once
/// receive a gigabyte together.
const ANSWER_BYTES: usize = 1024 * 1024;

/// How long the times at which sites last spoke may stay unwritten. Gateways speak twice a minute, and people
/// want to know since when one has been silent.
const KEEP_SEEN_SECONDS: u64 = 60;

/// The gateway that polls for a site at present.
#[derive(Default)]
pub(super) struct Presence {
    instance: String,
    from: Option<SocketAddr>,
    /// Rises with every poll of the site: earlier polls are then over.
    turn: u64,
    /// The load that the broker reports, from 0 to 1000.
    pub(super) load: u32,
}

/// One poll.
pub(crate) struct Turn {
    pub(crate) site: String,
    number: u64,
    /// Rises with every change that concerns all gateways.
    pub(crate) news: watch::Receiver<u64>,
    /// Rings for this site.
    pub(crate) bell: Arc<Notify>,
}

impl State {
    /// Takes what a gateway reports about itself.
    pub(crate) fn begin_sync(
        &mut self,
        certified: &Certified,
        site: &str,
        asked: &mut SyncRequest,
        from: SocketAddr,
    ) -> Result<Turn, Refusal> {
        let now = self.now();
        if let Some(record) = asked.record.take() {
            let member = self.announced(certified, site, record, from, now)?;
            self.keep_member(member)?;
        } else if let Some(member) = self.members.moved(certified, from, now) {
            self.keep_member(member)?;
        } else {
            self.members.touch(site, from, now);
        }
        self.keep_seen(now);
        let presence = self.presence.entry(site.to_owned()).or_default();
        presence.turn += 1;
        presence.instance.clone_from(&asked.instance);
        presence.from = Some(from);
        presence.load = asked.load;
        let number = presence.turn;
        let bell = self.mail.bell(site);
        bell.notify_waiters();
        Ok(Turn {
            site: site.to_owned(),
            number,
            news: self.news.subscribe(),
            bell,
        })
    }

    /// Lists the addresses from which gateways of members poll or have last polled; for IPv6, their networks.
    pub(crate) fn networks(&self) -> HashSet<IpAddr> {
        let now = self.presence.values().filter_map(|presence| presence.from);
        let before = self.members.iter().filter_map(|member| member.observed);
        now.chain(before).map(|from| network_of(from.ip())).collect()
    }

    /// The ranges that a site may have, whichever broker has admitted it.
    pub(super) fn granted(&self, site: &str) -> Vec<Subnet> {
        let together = self
            .trust
            .with_records(|records| records.holder(site).map(|held| held.granted.clone()));
        together
            .or_else(|| self.grants.get(site).cloned())
            .unwrap_or_default()
    }

    /// Makes a site's record a member, if nobody else has anything that it claims.
    fn announced(
        &self,
        certified: &Certified,
        site: &str,
        mut record: Record,
        from: SocketAddr,
        now: u64,
    ) -> Result<Member, Refusal> {
        let granted = self.granted(site);
        granted::check(site, &record, &granted).map_err(|why| Refusal::new(ErrorKind::NotYours, why))?;
        if let Err(conflict) = self.members.admit(site, &record) {
            return Err(Refusal::new(ErrorKind::Overlap, conflict.to_string()));
        }
        let share = self.own_record().map(|own| own.share);
        let virtual_subnets = virtual_addresses::assign(&self.members, site, &record, share)
            .map_err(|why| Refusal::new(ErrorKind::Overlap, why))?;
        // What the site wishes concerns only itself and the broker.
        record.virtual_subnets.clear();
        Ok(Member {
            site: site.to_owned(),
            record,
            virtual_subnets,
            observed: Some(from),
            last_seen: now,
            serial: certified.serial.clone(),
            not_before: certified.not_before,
        })
    }

    /// Writes to the disk first: a gateway that was refused sends the same again, and that must still be news
    /// then.
    fn keep_member(&mut self, member: Member) -> Result<(), Refusal> {
        let (site, instance) = (member.site.clone(), member.record.instance.clone());
        let mut change = self.without_jobs_of(&site, Some(&instance));
        if self.members.is_news(&member) {
            self.take_news(&member)?;
            change = change.put(store::MEMBERS, &site, &member);
        }
        self.store.change(change)?;
        self.forget_jobs_of(&site, Some(&instance));
        if self.members.put(member) {
            self.stir();
        }
        Ok(())
    }

    /// Limits how much news a site may make for all others.
    fn take_news(&mut self, member: &Member) -> Result<(), Refusal> {
        let now = self.now();
        let budget = { self.budgets.entry(member.site.clone()) }.or_insert_with(|| Budget::new(now));
        budget.take(member.bytes(), now).map_err(|wait| {
            let message = format!(
                "site {} has changed its record too often; it may again in {wait} s",
                member.site
            );
            Refusal::new(ErrorKind::Busy, message)
        })
    }

    /// Writes from time to time when each site last spoke, all in one change, because each change waits for
    /// the disk. If that fails, polls go on, and the next minute tries again.
    fn keep_seen(&mut self, now: u64) {
        // A clock that was set back must not stop this.
        if now.abs_diff(self.seen_kept) < KEEP_SEEN_SECONDS {
            return;
        }
        let change = self.members.iter().fold(Change::default(), |change, member| {
            change.put(store::SEEN, &member.site, &member.last_seen)
        });
        self.seen_kept = now;
        // The store reports its failures itself.
        let _ = self.store.change(change);
    }

    /// Whether a later poll of the same gateway has taken the place of this one.
    fn is_over(&self, turn: &Turn, instance: &str) -> Result<bool, Refusal> {
        let Some(presence) = self
            .presence
            .get(&turn.site)
            .filter(|presence| presence.turn != turn.number)
        else {
            return Ok(false);
        };
        if presence.instance == instance {
            return Ok(true);
        }
        let there = presence
            .from
            .map_or_else(String::new, |from| format!(" from {}", from.ip()));
        let message = format!(
            "another gateway of site {}{there} has taken over; if two run with the same certificate, stop one",
            turn.site
        );
        Err(Refusal::new(ErrorKind::Superseded, message))
    }

    /// Returns what can be reported now, and whether that is worth an answer.
    pub(crate) fn sync(
        &mut self,
        turn: &Turn,
        asked: &SyncRequest,
        from: SocketAddr,
    ) -> Result<(SyncAnswer, bool), Refusal> {
        let now = self.now();
        let mut due = self.is_over(turn, &asked.instance)?;
        let since = asked.since.as_ref().filter(|since| since.history == self.history);
        let full = since.is_none();
        let page = self
            .members
            .since(since.map_or(0, |since| since.revision), ANSWER_BYTES);
        let revocations = self.trust.revocations().now();
        let wants_revocations = !self.knows_revocations(&asked.revocations_digest);
        let later = !wants_revocations && revocations.counter() > asked.revocations;
        let known = self
            .members
            .site(&turn.site)
            .map(|member| &member.record.instance);
        let wants_record = known != Some(&asked.instance);
        let messages = self.mail.fetch(&turn.site, asked.messages_until, now);
        due |= full || !page.members.is_empty() || !page.removed.is_empty() || wants_revocations || later;
        due |= wants_record || !messages.is_empty();
        let records = self.several.as_ref().map(|several| several.log.position());
        // A gateway that does not say what it has fetched fetches nothing: it is of an earlier version.
        due |= asked
            .records
            .is_some_and(|fetched| records.is_some_and(|records| records > fetched));
        let answer = SyncAnswer {
            now: Since {
                history: self.history.clone(),
                revision: page.revision,
            },
            full,
            more: page.more,
            members: page.members,
            removed: page.removed,
            revocations: revocations.signed().filter(|_| later).cloned(),
            wants_revocations,
            wants_record,
            messages,
            observed: from,
            time: now,
            records,
        };
        Ok((answer, due))
    }
}
