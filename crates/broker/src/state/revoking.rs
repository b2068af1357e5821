//! Revocations: which sites are put out, and what is then forgotten about them.

use super::{ANCESTORS, REVOCATIONS, Refusal, State, internal};
use crate::api::{ErrorKind, Member};
use crate::authority::BACKDATED_SECONDS;
use crate::revocation::{ExtendError, RevocationSet, SignedRevocations};
use crate::store::{self, Change};
use causeway_wire::grid;

/// The most lists of revocations that are remembered as known. The broker asks again for one that it does not
/// remember.
const MAX_ANCESTORS: usize = 4096;

impl State {
    /// Voids all certificates and tokens of a site; returns the counter of the new list, or the time until
    /// which they are void if the grid has several brokers.
    pub(crate) fn revoke(&mut self, site: &str) -> Result<u64, Refusal> {
        if !grid::is_site_name(site) {
            let message = format!("{site:?} is no name of a site");
            return Err(Refusal::new(ErrorKind::BadRequest, message));
        }
        if let Some(number) = self.number() {
            return self.revoke_together(site, number);
        }
        let known = self.trust.revocations().now();
        let before = self
            .last_beginning(site)
            .max(known.before(site).map_or(0, |before| before.saturating_add(1)));
        let more = known
            .extended([(site.to_owned(), before)], 0, &self.authority)
            .map_err(not_extended)?;
        let void = self.tokens_of(|token| token.site == site);
        self.keep_revocations(more, self.ancestors.clone(), &void)?;
        Ok(self.trust.revocations().now().counter())
    }

    /// The latest beginning that a certificate of this site may have. A certificate begins before it is made,
    /// but the clock may have been ahead at the time.
    pub(super) fn last_beginning(&self, site: &str) -> u64 {
        let joined = self.tokens.values().filter(|token| token.site == site);
        let joined = joined.filter_map(|token| token.used_at()).max().unwrap_or(0);
        let begun = self.members.site(site).map_or(0, |member| member.not_before);
        self.now()
            .max(joined)
            .saturating_sub(BACKDATED_SECONDS)
            .max(begun)
    }

    /// Takes revocations that a gateway knows and that this broker lost with its disk; true if there were
    /// any.
    pub(crate) fn merge_revocations(&mut self, signed: &SignedRevocations) -> Result<bool, Refusal> {
        let theirs = RevocationSet::verify(signed, self.authority.grid(), self.authority.certificate())
            .map_err(|error| Refusal::new(ErrorKind::BadRequest, error.to_string()))?;
        if self.knows_revocations(&theirs.digest()) {
            return Ok(false);
        }
        let own = self.trust.revocations().now();
        let mine_are_theirs = own
            .revoked()
            .all(|(site, before)| theirs.before(site) >= Some(before));
        let merged = if mine_are_theirs && theirs.counter() > own.counter() {
            Some(theirs.clone())
        } else if self.number().is_some() {
            // The list is closed since the time of one broker: only the grid's authority could sign a longer
            // one.
            (theirs.counter() > own.counter()).then(|| theirs.clone())
        } else {
            let more = theirs.revoked().map(|(site, before)| (site.to_owned(), before));
            own.extended(more, theirs.counter(), &self.authority)
                .map_err(not_extended)?
        };
        let mut ancestors = self.ancestors.clone();
        ancestors.push(theirs.digest());
        // An old copy of the store may contain tokens that were used since.
        let void = self.tokens_of(|token| token.used.is_none());
        self.keep_revocations(merged, ancestors, &void)?;
        Ok(true)
    }

    /// Whether the present list contains all of the list with this digest.
    pub(super) fn knows_revocations(&self, digest: &str) -> bool {
        digest.is_empty()
            || self.trust.revocations().now().digest() == digest
            || self.ancestors.iter().any(|known| known == digest)
    }

    /// Removes the sites on the list, if it is new, and voids tokens: either all of it happens or, if the
    /// disk refuses it, nothing.
    fn keep_revocations(
        &mut self,
        set: Option<RevocationSet>,
        mut ancestors: Vec<String>,
        void: &[String],
    ) -> Result<(), Refusal> {
        let mut change = Change::default();
        let mut out: Vec<String> = Vec::new();
        if let Some(set) = &set {
            let before = self.trust.revocations().now().digest();
            if !before.is_empty() {
                ancestors.push(before);
            }
            change = change.put(store::META, REVOCATIONS, &set.signed());
            let put_out = |member: &&Member| {
                set.before(&member.site)
                    .is_some_and(|before| member.not_before <= before)
            };
            out.extend(
                self.members
                    .iter()
                    .filter(put_out)
                    .map(|member| member.site.clone()),
            );
        }
        let surplus = ancestors.len().saturating_sub(MAX_ANCESTORS);
        ancestors.drain(..surplus);
        if ancestors != self.ancestors {
            change = change.put(store::META, ANCESTORS, &ancestors);
        }
        let change = change.and(self.without_sites(&out));
        self.store.change(change.and(self.voided(void)))?;
        self.ancestors = ancestors;
        self.void_tokens(void);
        self.forget_sites(&out);
        if let Some(set) = set {
            self.trust.revocations().adopt(set);
            self.stir();
        }
        Ok(())
    }

    pub(super) fn void_tokens(&mut self, hashes: &[String]) {
        for hash in hashes {
            if let Some(token) = self.tokens.get_mut(hash) {
                token.void = true;
            }
        }
    }

    /// The change that removes from the disk the sites that are out.
    pub(super) fn without_sites(&self, out: &[String]) -> Change {
        out.iter().fold(Change::default(), |change, site| {
            change
                .remove(store::MEMBERS, site)
                .remove(store::SEEN, site)
                .remove(store::GRANTS, site)
                .and(self.without_jobs_of(site, None))
        })
    }

    /// Removes these sites from memory.
    pub(super) fn forget_sites(&mut self, out: &[String]) {
        for site in out {
            self.members.remove(site);
            self.grants.remove(site);
            self.presence.remove(site);
            self.budgets.remove(site);
            self.mail.forget(site);
            self.forget_jobs_of(site, None);
        }
    }
}

fn not_extended(error: ExtendError) -> Refusal {
    match error {
        ExtendError::Full(_) => Refusal::new(ErrorKind::Busy, error.to_string()),
        ExtendError::Authority(error) => internal(error),
    }
}
