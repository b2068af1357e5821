//! What a broker knows together with others: see [`crate::records`]. A broker that is its grid's only one has
//! none of this.
//!
//! Records are on the disk before anybody is told of them, here as everywhere in the state.

use super::{Refusal, State, StateError, internal};
use crate::api::{ErrorKind, RecordsAnswer, RecordsRequest, Since};
use crate::authority::{Authority, Issued, requested_key};
use crate::config::BrokerConfig;
use crate::exchange::Log;
use crate::files;
use crate::identity::{Certified, Identity, hexadecimal};
use crate::records::{
    Admission, Admitted, BrokerRecord, MAX_ADMISSIONS, MAX_REVOKED, Records, SignedRecord, Standing,
    Statement, Unusable, authority_text,
};
use crate::store::{self, Change, Store};
use crate::tls::Trust;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The file with the authority's records, beside the broker's configuration: what it knows about the others
/// before it has met one.
pub(crate) const RECORDS_FILE: &str = "records.json";

/// A broker in a grid of several.
pub(crate) struct Several {
    /// This broker's own number.
    pub(crate) number: u8,
    pub(super) log: Log,
}

/// Reads the records that the grid's authority wrote.
pub(crate) fn read_file(directory: &Path) -> Result<Vec<SignedRecord>, StateError> {
    let path = directory.join(RECORDS_FILE);
    let text = files::read_text(&path).map_err(|error| StateError::Damaged(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| StateError::Damaged(format!("{}: {error}", path.display())))
}

impl Several {
    /// Reads the present state, if the directory belongs to one of several brokers.
    pub(super) fn open(
        config: &BrokerConfig,
        authority: &Authority,
        (store, trust): (&Store, &Trust),
    ) -> Result<Option<Several>, StateError> {
        let Some(own) = authority.own() else {
            return Ok(None);
        };
        let mut all = read_file(&config.directory)?;
        all.extend(
            store
                .all::<SignedRecord>(store::RECORDS)?
                .into_iter()
                .map(|(_, record)| record),
        );
        let mut records = Records::default();
        // Brokers first, because signers have to be known.
        for by_authority in [true, false] {
            for record in all
                .iter()
                .filter(|record| record.is_by_authority() == by_authority)
            {
                trust
                    .read_back(&mut records, std::slice::from_ref(record))
                    .map_err(|error| StateError::Damaged(format!("records: {error}")))?;
            }
        }
        let own = authority_text(own);
        let number = records.brokers().find(|broker| broker.authority == own);
        let number = number.map(|broker| broker.number).ok_or_else(|| {
            let file = config.directory.join(RECORDS_FILE);
            StateError::Damaged(format!("{} names no broker with this authority", file.display()))
        })?;
        let log = Log::of(&records);
        trust.set_broker(number);
        trust.set_records(records);
        Ok(Some(Several { number, log }))
    }
}

impl State {
    /// This broker's number, if the grid has several.
    pub(crate) fn number(&self) -> Option<u8> {
        self.several.as_ref().map(|several| several.number)
    }

    /// This broker's own record, if the grid has several.
    pub(crate) fn own_record(&self) -> Option<BrokerRecord> {
        let number = self.number()?;
        self.trust.with_records(|records| records.broker(number).cloned())
    }

    /// Refuses what a broker that no longer serves may not do.
    pub(super) fn must_serve(&self) -> Result<(), Refusal> {
        let Some(own) = self.own_record().filter(|own| own.standing != Standing::Serving) else {
            return Ok(());
        };
        Err(Refusal::new(
            ErrorKind::Busy,
            format!(
                "broker {} of grid {} was taken out of service; ask another broker of this grid",
                own.number,
                self.authority.grid()
            ),
        ))
    }

    /// What a token that is given now would admit; `None` in a grid of one broker.
    pub(super) fn admission_of(&self, site: &str, secret: &[u8; 32], now: u64) -> Option<Admission> {
        let number = self.number()?;
        let since = self.members.site(site).map(|member| member.not_before);
        let token = token_name(secret);
        let next = |records: &Records| records.next_admission(site, number, &token, now, since);
        Some(self.trust.with_records(next))
    }

    /// The sites that joined while the grid had one broker, for its authority to sign.
    pub(crate) fn admitted_by_one(&self) -> Vec<Admitted> {
        let revoked = self.trust.revocations().now();
        let members = self
            .members
            .iter()
            .map(|member| (member.site.as_str(), member.not_before));
        // The sites whose gateway has never connected.
        let joined = self.tokens.values().filter(|token| !token.void);
        let joined = joined.filter_map(|token| Some((token.site.as_str(), token.used_at()?)));
        let mut begun: BTreeMap<&str, u64> = BTreeMap::new();
        for (site, at) in members.chain(joined) {
            let earliest = begun.entry(site).or_insert(at);
            *earliest = at.min(*earliest);
        }
        let is_in = |(site, at): &(&str, u64)| revoked.before(site).is_none_or(|before| *at > before);
        let admitted = begun.into_iter().filter(is_in).map(|(site, at)| Admitted {
            site: site.to_owned(),
            admission: Admission::from_single_broker(at),
            granted: self.grants.get(site).cloned().unwrap_or_default(),
        });
        admitted.collect()
    }

    /// The certificate for a token of this admission, and the record of it.
    pub(super) fn admit(
        &self,
        site: &str,
        request: &str,
        mut admitted: Admitted,
    ) -> Result<(Issued, SignedRecord), Refusal> {
        let bad = |error: &dyn std::fmt::Display| Refusal::new(ErrorKind::BadRequest, error.to_string());
        admitted.admission.key = requested_key(request).map_err(|error| bad(&error))?;
        let usable = self
            .trust
            .with_records(|records| records.may_use(site, &admitted.admission));
        usable.map_err(|why| {
            let kind = match why {
                Unusable::Used => ErrorKind::TokenUsed,
                Unusable::Out(_) => ErrorKind::TokenExpired,
            };
            Refusal::new(kind, why.to_string())
        })?;
        let broker = admitted.admission.broker;
        let signed_already = self.trust.with_records(|records| records.count_admitted(broker));
        if signed_already >= MAX_ADMISSIONS {
            let message =
                format!("broker {broker} has let {MAX_ADMISSIONS} sites in; ask another one for a token");
            return Err(Refusal::new(ErrorKind::Busy, message));
        }
        let issued = self.certify_admitted(request, site, &admitted.admission)?;
        let signed = self
            .authority
            .state(&Statement::Admitted(admitted))
            .map_err(internal)?;
        Ok((issued, signed))
    }

    /// The next certificate of a site that has one, with the same admission.
    pub(super) fn certify_again(&self, request: &str, certified: &Certified) -> Result<Issued, Refusal> {
        let site = certified.site().unwrap_or_default();
        self.certify_admitted(request, site, &certified.admission())
    }

    fn certify_admitted(&self, request: &str, site: &str, admission: &Admission) -> Result<Issued, Refusal> {
        let identity = Identity::site(self.authority.grid(), site);
        let issued = self
            .authority
            .certify_admitted(request, (&identity, admission), self.now());
        issued.map_err(super::joining::not_issued)
    }

    /// Signs that a site is out, and keeps this record.
    pub(super) fn revoke_together(&mut self, site: &str, number: u8) -> Result<u64, Refusal> {
        let known_until = self.last_beginning(site);
        let now = self.now();
        let revocation = self
            .trust
            .with_records(|records| records.revocation(site, number, now, known_until));
        let until = revocation.until;
        let signed = self
            .authority
            .state(&Statement::Revocation(revocation))
            .map_err(internal)?;
        let void = self.tokens_of(|token| token.site == site);
        let is_full = |records: &Records| {
            records.count_revoked(number) >= MAX_REVOKED && !records.has_revoked(number, site)
        };
        if self.trust.with_records(is_full) {
            let message = format!(
                "broker {number} has revoked {MAX_REVOKED} sites, and has no room for {site}; nothing was revoked. Revoke it at another \
                 broker"
            );
            return Err(Refusal::new(ErrorKind::Busy, message));
        }
        self.keep_records(&[signed], &void, Change::default())?;
        Ok(until)
    }

    /// Takes records that somebody else brings; returns how many were news.
    pub(crate) fn take_records(&mut self, records: &[SignedRecord]) -> Result<usize, Refusal> {
        self.keep_records(records, &[], Change::default())
    }

    /// Takes records that the administrator brings from the grid's authority.
    pub(crate) fn take_by_hand(&mut self, records: &[SignedRecord]) -> Result<usize, Refusal> {
        if self.several.is_none() {
            let message = "this grid has one broker; 'causeway grid add-broker' gives it another";
            return Err(Refusal::new(ErrorKind::BadRequest, message));
        }
        self.take_records(records)
    }

    /// Takes records, voids tokens, and makes another change: all of it, or nothing if the disk refuses it.
    pub(super) fn keep_records(
        &mut self,
        records: &[SignedRecord],
        void: &[String],
        change: Change,
    ) -> Result<usize, Refusal> {
        let lacking = |record: &&SignedRecord| {
            let several = self.several.as_ref();
            several.is_some_and(|several| !several.log.has(record))
        };
        let lacking: Vec<&SignedRecord> = records.iter().filter(lacking).collect();
        let mut grown = self.trust.records();
        let mut news = self.trust.union_due(&mut grown);
        for record in lacking {
            let added = self.trust.union(&mut grown, std::slice::from_ref(record));
            let added = added.map_err(|error| Refusal::new(ErrorKind::BadRequest, error.to_string()))?;
            if let (true, 0, Some(several)) = (added.news.is_empty(), added.postponed, &mut self.several) {
                several.log.pass_over(record);
            }
            news.extend(added.news);
        }
        // First, so that whoever hears of the expulsion has already heard of these.
        let again = self.said_again(&news)?;
        let taken = self.trust.union(&mut grown, &again);
        let taken = taken.map_err(|error| Refusal::new(ErrorKind::Internal, error.to_string()))?;
        news.splice(0..0, taken.news);
        let out = self.put_out_by(&grown, &news);
        let mut change = change.and(self.without_sites(&out)).and(self.voided(void));
        for (_, record) in &news {
            change = change.put(store::RECORDS, &store_key(record), record);
        }
        // Works on a copy, because the disk may refuse.
        let log = self.several.as_ref().filter(|_| !news.is_empty()).map(|several| {
            let mut log = several.log.clone();
            news.iter().for_each(|(_, record)| log.push(record.clone()));
            let gone = log.prune(&grown, expelled_by(&news).next().is_some());
            (log, gone)
        });
        for record in log.iter().flat_map(|(_, gone)| gone) {
            change = change.remove(store::RECORDS, &store_key(record));
        }
        self.store.change(change)?;
        if expelled_by(&news).next().is_some() {
            self.store.shrink();
        }
        self.void_tokens(void);
        self.forget_sites(&out);
        let count = news.len();
        if let (Some((log, _)), Some(several)) = (log, &mut self.several) {
            several.log = log;
            self.trust.set_records(grown);
            self.stir();
        }
        if expelled_by(&news).next().is_some() {
            causeway_memory::return_free_heap();
        }
        Ok(count)
    }

    /// What this broker signs again about sites that it let in itself: that they are out, if the broker that
    /// had put them out is now expelled.
    fn said_again(&self, news: &[(Statement, SignedRecord)]) -> Result<Vec<SignedRecord>, Refusal> {
        let Some(own) = self.number() else {
            return Ok(Vec::new());
        };
        let before = self.trust.records();
        // The token may have been forgotten by now, and the admission may be from an earlier store.
        let has_admitted = |site: &str| {
            let mut tokens = self.tokens.values();
            before.has_admitted(own, site)
                || tokens.any(|token| token.site == site && token.used_at().is_some())
        };
        let expelled = expelled_by(news).filter(|number| *number != own);
        let again = expelled.flat_map(|number| before.to_say_again(number, own, has_admitted));
        let signed = again.map(|revocation| {
            let signed = self.authority.state(&Statement::Revocation(revocation));
            signed.map_err(internal)
        });
        signed.collect()
    }

    /// The members that no longer have any admission that counts.
    fn put_out_by(&self, grown: &Records, news: &[(Statement, SignedRecord)]) -> Vec<String> {
        let revoked = news.iter().filter_map(|(statement, _)| match statement {
            Statement::Revocation(revocation) => Some(revocation.site.as_str()),
            _ => None,
        });
        let mut sites: BTreeSet<&str> = revoked.collect();
        if expelled_by(news).next().is_some() {
            // Sites that the expelled broker admitted are out, and no others.
            let before = self.trust.records();
            sites.extend(
                self.members
                    .iter()
                    .map(|member| member.site.as_str())
                    .filter(|site| before.holder(site).is_some()),
            );
        }
        let is_out = |site: &&str| self.members.site(site).is_some() && grown.holder(site).is_none();
        sites.into_iter().filter(is_out).map(str::to_owned).collect()
    }

    /// Answers with what the caller lacks, once what the caller brought is on disk.
    pub(crate) fn exchange(&mut self, asked: &RecordsRequest) -> Result<(RecordsAnswer, usize), Refusal> {
        let refuse = || Refusal::new(ErrorKind::BadRequest, "this grid has one broker, and no records");
        if self.several.is_none() {
            return Err(refuse());
        }
        let news = self.take_records(&asked.records)?;
        let log = &self.several.as_ref().ok_or_else(refuse)?.log;
        let since = asked.since.as_ref().filter(|since| since.history == self.history);
        let (records, revision, more) = log.since(since.map_or(0, |since| since.revision));
        let now = Since {
            history: self.history.clone(),
            revision,
        };
        Ok((RecordsAnswer { now, records, more }, news))
    }

    /// The other brokers that serve.
    pub(crate) fn other_brokers(&self) -> Vec<BrokerRecord> {
        let own = self.number();
        self.trust.with_records(|records| {
            let others = records
                .brokers()
                .filter(|broker| Some(broker.number) != own && broker.standing == Standing::Serving);
            others.cloned().collect()
        })
    }
}

/// The name of a broker or a site that may exchange records.
pub(crate) fn partner_of(certified: Option<&Certified>, state: &State) -> Result<String, Refusal> {
    let Some(certified) = certified else {
        let message = "only members of the grid and its brokers may ask this";
        return Err(Refusal::new(ErrorKind::NoCertificate, message));
    };
    state.trust.standing(certified)?;
    Ok(match certified.site() {
        Some(site) => format!("site {site}"),
        None => "another broker".to_owned(),
    })
}

/// The brokers that the authority has expelled, according to these records.
fn expelled_by(news: &[(Statement, SignedRecord)]) -> impl Iterator<Item = u8> + '_ {
    news.iter().filter_map(|(statement, _)| match statement {
        Statement::Broker(broker) if broker.standing == Standing::Expelled => Some(broker.number),
        _ => None,
    })
}

/// The key under which a record is kept.
fn store_key(record: &SignedRecord) -> String {
    hexadecimal(&Sha256::digest(&record.text))
}

/// A name for a token that reveals nothing about its secret.
fn token_name(secret: &[u8; 32]) -> String {
    let digest = Sha256::new()
        .chain_update(b"causeway admission")
        .chain_update(secret)
        .finalize();
    hexadecimal(&digest[..16])
}
