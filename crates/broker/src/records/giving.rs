//! What a broker that follows the rules signs, given what it knows. Pure; the broker's state and the model
//! both act by this.

use super::{Admission, Origin, Out, ROOT, Records, Revocation};

/// Why a token does not let its site in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Somebody has joined with the token, using another key.
    #[error("the token was used by another host")]
    Used,
    /// What the token would give is already void.
    #[error(transparent)]
    Out(#[from] Out),
}

impl Records {
    /// Returns what a token that `broker` gives now for `site` will admit, once its key is known. If the site
    /// has a certificate from the time when the grid had one broker, `member_since` is when that begins.
    pub fn next_admission(
        &self,
        site: &str,
        broker: u8,
        token: &str,
        now: u64,
        member_since: Option<u64>,
    ) -> Admission {
        // The new one must come before it even if the revocation no longer counts.
        let holder = self.holder_but_for_revocations(site);
        let holder = holder.map(|held| held.admission.clone());
        let until = self.revoked_until(site);
        let single = member_since.filter(|since| until.is_none_or(|until| *since > until));
        let holder = holder.or_else(|| single.map(Admission::from_single_broker));
        // Otherwise it would be void from its beginning, by a clock that is behind the other's.
        let after = until.max(self.last_given(site)).max(single);
        let given = now.max(after.map_or(0, |after| after.saturating_add(1)));
        let new = Origin {
            given,
            broker,
            token: token.to_owned(),
        };
        let (origin, generation) = match holder {
            Some(holder) => (holder.origin, holder.generation.saturating_add(1)),
            None => (new, 0),
        };
        Admission {
            origin,
            generation,
            given,
            broker,
            token: token.to_owned(),
            key: String::new(),
        }
    }

    /// Whether a host may join with a token of this admission, whose key is known by now.
    ///
    /// # Errors
    /// Why not.
    pub fn may_use(&self, site: &str, admission: &Admission) -> Result<(), Unusable> {
        if let Some(used) = self.used(site, admission.broker, &admission.token)
            && used.key != admission.key
        {
            return Err(Unusable::Used);
        }
        Ok(self.judge(site, admission)?)
    }

    /// Returns what `broker` signs to put a site out now, so that nothing counts that the site was given so
    /// far. `known_until` is the latest time of this that the broker knows from other sources than the
    /// records.
    pub fn revocation(&self, site: &str, broker: u8, now: u64, known_until: u64) -> Revocation {
        debug_assert_ne!(broker, ROOT, "the authority signs no revocations");
        let until = now
            .max(known_until)
            .max(self.last_given(site).unwrap_or(0))
            .max(self.revoked_until(site).unwrap_or(0));
        Revocation {
            site: site.to_owned(),
            until,
            broker,
        }
    }
}
