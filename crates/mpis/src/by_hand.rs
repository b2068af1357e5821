//! What a careful user sets by hand without Causeway (Hablot et al. 2007, section 4).

use crate::Mpi;
use crate::eager::Eager;

/// Variables of an MPI.
#[derive(Debug, PartialEq, Eq)]
pub struct ByHand {
    /// Variables for the size up to which messages are sent without asking first, with that size in bytes.
    pub limits: Vec<(&'static str, u64)>,
    /// Names of the variables that set the buffers of sockets.
    pub buffers: &'static [&'static str],
}

/// See the module.
pub fn variables(mpi: Mpi, eager: &Eager) -> ByHand {
    let (limits, buffers): (_, &[&str]) = match mpi {
        Mpi::OpenMpi4 | Mpi::OpenMpi5 => (
            vec![
                ("OMPI_MCA_btl_tcp_eager_limit", eager.usual_bytes),
                ("OMPI_MCA_btl_tcp_rndv_eager_limit", eager.usual_bytes),
            ],
            &["OMPI_MCA_btl_tcp_sndbuf", "OMPI_MCA_btl_tcp_rcvbuf"],
        ),
        Mpi::Mpich => (
            vec![
                ("UCX_RNDV_THRESH", eager.ucx_bytes),
                ("FI_OFI_RXM_BUFFER_SIZE", eager.rxm_bytes),
            ],
            &["UCX_TCP_SNDBUF", "UCX_TCP_RCVBUF"],
        ),
        // libfabric's tcp provider has no variable for buffers.
        Mpi::Intel => (vec![("FI_OFI_RXM_BUFFER_SIZE", eager.rxm_bytes)], &[]),
    };
    ByHand { limits, buffers }
}
