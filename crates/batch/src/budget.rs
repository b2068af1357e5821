//! How much of a site's nodes jobs of other sites have used, in core-hours of the last day and month, and how
//! much more they may. A rank takes a core. Pure; the caller makes changes one at a time.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Hours of a day.
pub const DAY: u64 = 24;

/// The hours of a month; older ones are forgotten.
pub const MONTH: u64 = 30 * DAY;

/// Most bytes of what is kept: a thousand sites with an entry an hour take up 10 MB.
pub const MOST_BYTES: u64 = 32 << 20;

/// Core-minutes that each site has taken, by the hour since 1970 in which it asked for them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent(BTreeMap<String, BTreeMap<u64, u64>>);

/// How many core-hours each site may take; `None` if it sets no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Within any 24 hours.
    pub a_day: Option<u32>,
    /// Within any 30 days.
    pub a_month: Option<u32>,
}

/// What was set aside for one allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    site: String,
    hour: u64,
    ranks: u32,
    minutes: u64,
}

impl Spent {
    /// Takes core-minutes for an allocation of these ranks and minutes, which is requested at `now`, in
    /// seconds since 1970.
    ///
    /// # Errors
    /// The allocation needs more than the site has left; the error is a sentence.
    pub fn take(
        &mut self,
        site: &str,
        (ranks, minutes): (u32, u32),
        bounds: Bounds,
        now: u64,
    ) -> Result<Taken, String> {
        let asked = u64::from(ranks) * u64::from(minutes);
        let hour = now / 3600;
        for (key, hours, most) in [
            ("core_hours_a_day", DAY, bounds.a_day),
            ("core_hours_a_month", MONTH, bounds.a_month),
        ] {
            let Some(most) = most else { continue };
            let taken = self.within(site, hours, now);
            if taken.saturating_add(asked) > u64::from(most) * 60 {
                return Err(format!(
                    "{} core-hours ({ranks} ranks for {minutes} minutes) are more than {key} in [batch] leaves {site}: {} of \
                     {most} are taken",
                    in_hours(asked),
                    in_hours(taken)
                ));
            }
        }
        for hours in self.0.values_mut() {
            hours.retain(|at, _| at + MONTH >= hour);
        }
        self.0.retain(|_, hours| !hours.is_empty());
        let hours = self.0.entry(site.to_owned()).or_default();
        let entry = hours.entry(hour).or_default();
        *entry = entry.saturating_add(asked);
        Ok(Taken {
            site: site.to_owned(),
            hour,
            ranks,
            minutes: asked,
        })
    }

    /// Gives back what an allocation that ran for this many seconds did not use.
    pub fn give_back(&mut self, taken: &Taken, seconds: u64) {
        let used = u64::from(taken.ranks).saturating_mul(seconds.div_ceil(60));
        let unused = taken.minutes.saturating_sub(used);
        if let Some(entry) = { self.0.get_mut(&taken.site) }.and_then(|hours| hours.get_mut(&taken.hour)) {
            *entry = entry.saturating_sub(unused);
        }
    }

    /// Core-minutes that a site has taken within the last `hours`.
    pub fn within(&self, site: &str, hours: u64, now: u64) -> u64 {
        let since = (now / 3600 + 1).saturating_sub(hours);
        let taken = self.0.get(site).into_iter();
        let taken = taken.flat_map(|entries| entries.range(since..));
        taken.fold(0, |sum, (_, minutes)| sum.saturating_add(*minutes))
    }

    /// The sites that have taken something.
    pub fn sites(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// Core-minutes as hours, with one decimal.
fn in_hours(minutes: u64) -> String {
    format!("{}.{}", minutes / 60, minutes % 60 / 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3600;

    #[test]
    fn a_site_gets_no_more_than_its_budget_however_many_allocations_it_asks_for() {
        let bounds = Bounds {
            a_day: Some(10),
            a_month: Some(100),
        };
        let (mut spent, begin) = (Spent::default(), 500_000 * HOUR);
        // Eight core-hours each day, until the month's hundred are taken.
        for (day, expected) in (0..14).zip([[2; 12].as_slice(), &[1, 0]].concat()) {
            let now = begin + day * DAY * HOUR;
            let got = (0..5).filter(|_| spent.take("nancy", (4, 60), bounds, now).is_ok());
            assert_eq!(got.count(), expected, "day {day}");
        }
        let why = spent.take("nancy", (4, 60), bounds, begin).unwrap_err();
        assert!(
            why.contains("4.0 core-hours (4 ranks for 60 minutes) are more than core_hours_a_"),
            "{why}"
        );
        assert!(
            spent.take("lyon", (4, 60), bounds, begin).is_ok(),
            "each has its own"
        );
        assert!(spent.take("lyon", (u32::MAX, u32::MAX), bounds, begin).is_err());
        assert!(
            spent
                .take("lyon", (u32::MAX, u32::MAX), Bounds::default(), begin)
                .is_ok()
        );
    }

    #[test]
    fn what_an_allocation_has_not_used_is_there_again_and_what_is_old_is_forgotten() {
        let bounds = Bounds {
            a_day: Some(4),
            a_month: None,
        };
        let (mut spent, now) = (Spent::default(), 500_000 * HOUR);
        let taken = spent.take("nancy", (4, 60), bounds, now).unwrap();
        assert!(spent.take("nancy", (1, 1), bounds, now).is_err());
        spent.give_back(&taken, 61);
        assert_eq!(spent.within("nancy", DAY, now), 8, "two minutes of four cores");
        let kept: Spent = serde_json::from_slice(&serde_json::to_vec(&spent).unwrap()).unwrap();
        assert_eq!(kept, spent);
        spent
            .take("lyon", (1, 1), bounds, now + (MONTH + 2) * HOUR)
            .unwrap();
        assert_eq!(spent.sites().collect::<Vec<_>>(), ["lyon"]);
    }
}
