//! How the processes of a run reach other sites, which is read once from the command line.

use super::Args;

/// How the processes of a run reach other sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One MPI over all sites; the shim redirects its connections to gateways.
    Shim,
    /// One MPI, whose processes connect to each other without Causeway.
    Direct,
    /// One MPI; the sites' routers hand its connections to gateways.
    Transparent,
    /// An MPI of each site's own. The shim redirects what the world library connects.
    OwnMpis,
}

impl Mode {
    /// The mode of a run with these arguments, of which [`super::apart::check`] has found nothing wrong.
    pub fn of(args: &Args) -> Mode {
        match () {
            () if args.own_mpi || !args.at.is_empty() => Mode::OwnMpis,
            () if args.direct => Mode::Direct,
            () if args.transparent => Mode::Transparent,
            () => Mode::Shim,
        }
    }

    /// Whether processes have the shim, and with it the map of the grid.
    pub fn has_shim(self) -> bool {
        matches!(self, Mode::Shim | Mode::OwnMpis)
    }

    /// Whether connections between sites pass gateways.
    pub fn passes_gateways(self) -> bool {
        self != Mode::Direct
    }
}
