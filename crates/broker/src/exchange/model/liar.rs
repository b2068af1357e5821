//! What somebody with the keys of one broker says: whatever these keys can sign, to anybody.

use super::{Grid, NAMES, PARTIES};
use crate::records::{
    Admission, Admitted, MARGIN, MOST_AHEAD, Origin, ROOT, Revocation, Statement, check_statement,
};
use crate::subnet::Subnet;

/// Statements in one flood: more admissions of one site than a broker may sign.
const FLOOD: usize = 80;

impl Grid {
    /// Says one thing, or very many.
    pub(super) fn lie(&mut self, liar: u8) {
        // The broker itself does not know about it.
        let told = (usize::from(liar) + self.random.below(PARTIES - 1)) % PARTIES;
        let count = match self.random.one_in(40) {
            true => {
                self.has_flooded = true;
                FLOOD
            }
            false => 1,
        };
        for _ in 0..count {
            let now = self.time_of(told);
            let statement = match self.random.one_in(3) {
                true => Statement::Revocation(Revocation {
                    site: self.name(),
                    until: self.some_time(now),
                    broker: liar,
                }),
                false => Statement::Admitted(self.some_admission(liar, now)),
            };
            // Nobody accepts invalid statements.
            if check_statement(&statement).is_ok() {
                self.parties[told].keep(statement, now);
            }
        }
    }

    fn name(&mut self) -> String {
        let names = [NAMES[0], NAMES[1], "lyon"];
        names[self.random.below(names.len())].to_owned()
    }

    /// A site that joins, or that takes the name of an existing one, for the first time or anew.
    fn some_admission(&mut self, liar: u8, now: u64) -> Admitted {
        let site = self.name();
        let given = self.some_time(now);
        let token = format!("f{:031x}", self.random.below(4));
        let known = match self.hosts.len() {
            0 => None,
            count => Some(self.hosts[self.random.below(count)].1.origin.clone()),
        };
        let forged = Origin {
            given: given.saturating_sub(self.random.below(1_000_000) as u64),
            broker: self.random.below(4) as u8,
            token: token.clone(),
        };
        let single_broker = Origin {
            given: 0,
            broker: ROOT,
            token: String::new(),
        };
        let origin = match self.random.below(3) {
            0 => known.unwrap_or(forged),
            1 => forged,
            _ => single_broker,
        };
        let most = given.saturating_sub(origin.given).min(u64::from(u32::MAX)) as u32;
        let generation = match self.random.below(4) {
            0 => u32::MAX,
            1 => most,
            2 => most.saturating_sub(1),
            _ => self.random.below(5) as u32,
        };
        Admitted {
            site,
            admission: Admission {
                origin,
                generation,
                given,
                broker: liar,
                token,
                key: format!("{:064x}", self.random.below(4)),
            },
            granted: match self.random.below(3) {
                0 => vec![Subnet("10.1.0.0/16".parse().unwrap())],
                _ => Vec::new(),
            },
        }
    }

    /// A time that is believed, is only just believed, will be believed, or never will be.
    fn some_time(&mut self, now: u64) -> u64 {
        let most = MOST_AHEAD as usize;
        match self.random.below(6) {
            0 => now - self.random.below(5000) as u64,
            1 => now + self.random.below(most) as u64,
            // As much as clocks may differ.
            2 => now + MOST_AHEAD - self.random.below(600) as u64,
            3 => now + MOST_AHEAD - MARGIN - self.random.below(600) as u64,
            4 => now + MOST_AHEAD + self.random.below(2 * most) as u64,
            _ => u64::MAX - self.random.below(3) as u64,
        }
    }
}
