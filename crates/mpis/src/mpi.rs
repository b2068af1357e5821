//! The families of launchers.

/// Families of launchers that are told what to do in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mpi {
    /// Open MPI before 5, started by ORTE.
    OpenMpi4,
    /// Open MPI 5, started by PRRTE.
    OpenMpi5,
    /// MPICH, started by hydra.
    Mpich,
    /// Intel MPI, started by its own hydra.
    Intel,
}

impl Mpi {
    /// Its usual name.
    pub fn name(self) -> &'static str {
        match self {
            Mpi::OpenMpi4 | Mpi::OpenMpi5 => "Open MPI",
            Mpi::Mpich => "MPICH",
            Mpi::Intel => "Intel MPI",
        }
    }

    /// Whether it is told by MCA parameters.
    pub fn is_open_mpi(self) -> bool {
        matches!(self, Mpi::OpenMpi4 | Mpi::OpenMpi5)
    }
}
