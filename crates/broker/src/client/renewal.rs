//! Renews the certificate, at whichever broker is asked first once it is due.

use super::Event;
use super::http::{ANSWER, CallError};
use super::line::Line;
use super::session::Session;
use crate::api::{self, CertificateAnswer, RenewRequest};
use crate::authority::new_key;

/// Time between tries to renew, or a tenth of what is left: there are ten days for it, unless the grid's
/// certificates have a shorter life.
const RENEW_AGAIN_SECONDS: u64 = 3600;

/// The same once the certificate has expired.
const EXPIRED_AGAIN_SECONDS: u64 = 60;

impl Session {
    pub(super) fn seconds_until_renewal(&self) -> u64 {
        let due = self.membership.borrow().renew_at().max(self.renew_again.get());
        due.saturating_sub(self.config.clock.now())
    }

    /// Renews the certificate after two thirds of its life, or after its end: over a line that is up, if
    /// there is one. While one line does this, the others go on, and check again each second: the renewal
    /// stays due until it has succeeded.
    pub(super) async fn renew_if_due(&self, line: &Line) -> Result<(), CallError> {
        let is_for_others = self.is_any_up() && !self.is_up(line.key);
        if self.seconds_until_renewal() > 0 || is_for_others || self.is_renewing.replace(true) {
            return Ok(());
        }
        let begun = Begun(self);
        let renewed = self.renew(line).await;
        match &renewed {
            Ok(()) => self.renew_again.set(0),
            // Another broker may be able to: that one of them is away is no reason to wait.
            Err(_) if self.are_several() => {}
            Err(_) => self.renew_again.set(self.time_of_next_try()),
        }
        drop(begun);
        renewed
    }

    /// When to try again after the only broker has failed, in seconds since 1970.
    fn time_of_next_try(&self) -> u64 {
        let now = self.config.clock.now();
        let left = self.membership.borrow().certified.not_after.saturating_sub(now);
        now.saturating_add(match left {
            // The broker's refusal of the poll that follows says what to do.
            0 => EXPIRED_AGAIN_SECONDS,
            left => RENEW_AGAIN_SECONDS.min(left / 10).max(1),
        })
    }

    async fn renew(&self, line: &Line) -> Result<(), CallError> {
        let (key, request) = new_key().map_err(|error| CallError::Answer(error.to_string()))?;
        let mut connection = line.connect(self).await?;
        let answer: CertificateAnswer = connection
            .post(api::RENEW, &RenewRequest { request }, ANSWER)
            .await?;
        let renewed = self.membership.borrow().renewed(answer, key, &self.trust);
        let renewed =
            renewed.map_err(|reason| CallError::Answer(format!("the new certificate: {reason}")))?;
        if let Err(error) = renewed.save(&self.config.directory) {
            self.tell(Event::Trouble(error.to_string()));
        }
        let (credentials, certified) = (renewed.credentials.clone(), renewed.certified.clone());
        *self.membership.borrow_mut() = renewed;
        self.renewals.set(self.renewals.get() + 1);
        self.tell(Event::Renewed(Box::new((credentials, certified))));
        Ok(())
    }
}

/// A renewal in progress. It also ends if its request is given up because the record has changed.
struct Begun<'a>(&'a Session);

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.0.is_renewing.set(false);
    }
}
