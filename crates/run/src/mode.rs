//! How the processes of a run reach other sites.

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One MPI over all sites; the shim redirects its connections to gateways.
    Shim,
    /// One MPI, whose processes connect to each other without Causeway.
    Direct,
    /// One MPI over all sites, whose connections the sites' routers pass to gateways.
    Transparent,
    /// A separate MPI at each site. The shim redirects the connections of the world library.
    OwnMpis,
}

impl Mode {
    /// Whether processes have the shim, and with it the map of the grid.
    pub fn has_shim(self) -> bool {
        matches!(self, Mode::Shim | Mode::OwnMpis)
    }

    /// Whether connections between sites pass through gateways.
    pub fn passes_gateways(self) -> bool {
        self != Mode::Direct
    }
}
