//! How long a launcher may take to end after it was asked to. Then it and everything that it started are
//! killed.

use causeway_mpis::Mpi;
use causeway_mpis::names::{KILL_AFTER, MCA};
use std::ffi::OsString;
use std::time::Duration;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    first: Option<Duration>,
}

/// The limit for a launcher after the first request. mpirun ends its daemons before itself, and they end
/// their ranks: with SIGTERM, and with SIGKILL after [`RANKS`]. With ranks that end at once mpirun ends after
/// 1.05 s, and with those that ignore SIGTERM after 2.04 s, on one host as over sites; a daemon that hangs
/// keeps it for ever. So the launcher gets as long as the ranks get, and some more for the path to them, and
/// a user who pressed Ctrl-C has a prompt after two seconds at most.
const FIRST: Duration = Duration::from_millis(1300);

/// The limit after the second request, which both Open MPI and hydra understand as the order to kill at once.
const SECOND: Duration = Duration::from_millis(1000);

/// How long Open MPI 4 gives its ranks unless the user says otherwise; version 5 gives them no more.
const RANKS: Duration = Duration::from_secs(1);

impl Patience {
    /// The limits for this launcher, called with these words. hydra passes a first Ctrl-C on to the ranks,
    /// and goes on if they do, so it has no limit after the first request.
    pub fn with(mpi: Mpi, words: &[OsString]) -> Patience {
        let named = words.windows(2).find(|pair| pair[0] == KILL_AFTER);
        let named = named.map(|pair| pair[1].clone());
        let ranks = named.or_else(|| std::env::var_os(format!("{MCA}{KILL_AFTER}")));
        let ranks = ranks.and_then(|seconds| seconds.to_str()?.parse().ok());
        let more = ranks.map_or(Duration::ZERO, |seconds| {
            Duration::from_secs(u64::from(u32::min(seconds, LONGEST))).saturating_sub(RANKS)
        });
        Patience {
            first: mpi.row().ends_at_first_request.then_some(FIRST + more),
        }
    }

    /// The limits for a program that ends its own launchers.
    pub fn without_limit() -> Patience {
        Patience { first: None }
    }

    /// Returns how long to wait after this many requests; `None` is no limit after the first request, and
    /// means to kill at once after the third.
    pub fn after(&self, requests: u32) -> Option<Duration> {
        match requests {
            1 => self.first,
            2 => Some(SECOND),
            _ => None,
        }
    }
}

/// The longest limit, a day: nobody waits longer.
const LONGEST: u32 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn open_mpi_is_made_to_end_after_one_request_and_hydra_after_two() {
        let open_mpi = Patience::with(Mpi::OpenMpi4, &words("-n 4 app"));
        assert_eq!(open_mpi.after(1), Some(FIRST));
        assert_eq!(Patience::with(Mpi::Mpich, &words("-n 4 app")).after(1), None);
        assert_eq!(open_mpi.after(2), Some(SECOND));
        assert_eq!(open_mpi.after(3), None);
    }

    #[test]
    fn who_gives_the_ranks_more_time_gives_it_to_the_launcher() {
        let line = words("--mca odls_base_sigkill_timeout 30 -n 4 app");
        let longer = Patience::with(Mpi::OpenMpi4, &line).after(1);
        assert_eq!(longer, Some(FIRST + Duration::from_secs(29)));
        for odd in [
            "--mca odls_base_sigkill_timeout",
            "--mca odls_base_sigkill_timeout x",
        ] {
            assert_eq!(
                Patience::with(Mpi::OpenMpi4, &words(odd)).after(1),
                Some(FIRST),
                "{odd}"
            );
        }
    }
}
