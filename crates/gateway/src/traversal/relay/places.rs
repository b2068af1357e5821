//! Limits what one site may take of a relay, so that something is left for the others.
//!
//! The site that asks is charged, because a site cannot be made to ask. A site that keeps as many connections
//! as it may leaves three quarters of the places to the others. One that asks as often as it can leaves them
//! half of the visits that a far gateway makes at once, and three quarters of its later ones.

use crate::tunnels::peers::rate::Rate;
use std::collections::BTreeMap;
use std::time::Instant;

/// Most connections carried at a time, including those awaited: each takes two files, and up to 128 KiB if
/// its ends are slow.
const AT_MOST: usize = 4096;

/// All carried connections together may use an eighth of the files that this process may open: streams,
/// processes and lanes need the others.
const SHARE_OF_FILES: usize = 2 * 8;

/// The share of all places for connections that one site has asked for: if there are many files, 16 lanes to
/// each of 64 sites.
const PARTS: usize = 4;

/// How many of these may belong to connections whose ends have not met yet: 16 lanes to each of several sites
/// at once.
pub(super) const AWAITED_PER_SITE: usize = 64;

/// How often each site has asked for each other one.
#[derive(Default)]
pub(super) struct Asked(BTreeMap<String, BTreeMap<String, Rate>>);

impl Asked {
    /// Whether a site may ask for another one now, which is then counted. The far gateway visits a relay at a
    /// bounded rate, no matter who has asked: no site may use that up.
    pub(super) fn may(&mut self, from: &str, to: &str, now: Instant) -> bool {
        let rates = self.0.entry(from.to_owned()).or_default();
        rates
            .entry(to.to_owned())
            .or_insert_with(Rate::for_requests)
            .take(now)
    }

    /// Forgets a site that is no longer a member.
    pub(super) fn forget(&mut self, site: &str) {
        self.0.remove(site);
    }
}

/// Whether one more connection may be awaited for a site. `taken` lists, for each present connection, who
/// asked for it and whether its ends have met; `files` is how many this process may open.
pub(super) fn has_room_for<'a>(
    taken: impl Iterator<Item = (&'a str, bool)>,
    from: &str,
    files: usize,
) -> bool {
    let most = AT_MOST.min(files / SHARE_OF_FILES);
    let (mut all, mut of_site, mut awaited) = (0, 0, 0);
    for (asker, met) in taken {
        all += 1;
        of_site += usize::from(asker == from);
        awaited += usize::from(asker == from && !met);
    }
    all < most && of_site < most / PARTS && awaited < AWAITED_PER_SITE
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const PER_SITE: usize = AT_MOST / PARTS;

    fn may(taken: &[(&str, bool)], from: &str) -> bool {
        has_room_for(taken.iter().copied(), from, usize::MAX)
    }

    #[test]
    fn a_gateway_that_may_open_few_files_keeps_most_of_them_for_what_is_its_own() {
        let few = 4096;
        let mut taken = Vec::new();
        while has_room_for(taken.iter().copied(), "mallory", few) {
            taken.push(("mallory", true));
        }
        while has_room_for(taken.iter().copied(), "eve", few) {
            taken.push(("eve", true));
        }
        assert_eq!(taken.len(), few / 32);
        taken.resize(few, ("others", true));
        assert!(!has_room_for(taken.iter().take(few / 16).copied(), "rennes", few));
        assert!(has_room_for(
            taken.iter().take(few / 16 - 1).copied(),
            "rennes",
            few
        ));
    }

    #[test]
    fn one_site_has_others_wait_for_so_many_and_all_together_for_so_many() {
        let mut taken = Vec::new();
        for _ in 0..AWAITED_PER_SITE {
            assert!(may(&taken, "rennes"));
            taken.push(("rennes", false));
        }
        assert!(!may(&taken, "rennes"), "as many wait as may");
        assert!(may(&taken, "lyon"), "another site is not kept out");
        taken.iter_mut().for_each(|one| one.1 = true);
        assert!(may(&taken, "rennes"), "who has met waits no more");
        taken.resize(AT_MOST, ("lille", true));
        assert!(!may(&taken, "lyon"));
    }

    #[test]
    fn a_site_that_keeps_all_it_may_leaves_three_quarters_to_the_others() {
        let mut taken = Vec::new();
        for _ in 0..PER_SITE {
            assert!(may(&taken, "mallory"));
            taken.push(("mallory", true));
        }
        assert!(!may(&taken, "mallory"));
        taken.resize(AT_MOST - 1, ("others", true));
        assert!(may(&taken, "rennes"));
    }

    #[test]
    fn a_site_that_asks_without_end_does_not_use_up_what_the_far_gateway_comes_for() {
        let (mut asked, began) = (Asked::default(), Instant::now());
        let mut far = Rate::for_dials();
        let mut made = |from: &str, at: Instant| {
            let asks = (0..1000).filter(|_| asked.may(from, "nancy", at) && far.take(at));
            asks.count()
        };
        assert_eq!(made("mallory", began), 16);
        let later = began + Duration::from_secs(60);
        assert_eq!(made("mallory", later), 16);
        assert_eq!(
            made("rennes", later),
            16,
            "another site's lanes all come at once, too"
        );
        asked.forget("mallory");
        assert!(asked.0.keys().eq(["rennes"]));
    }
}
