//! Why a gateway cannot serve.

use crate::inherited::InheritError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a gateway could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The gateway cannot listen at an address of the configuration.
    #[error("listen on {address}: {source}")]
    Listen {
        /// The address, or the path of the control socket.
        address: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel does not let this process take connections that a router hands over.
    #[error(
        "listen on {address} for connections that nft hands over: {source}; this needs CAP_NET_ADMIN: start the gateway with it \
         (AmbientCapabilities=CAP_NET_ADMIN in its systemd unit, or, as root, 'setpriv --reuid USER --regid GROUP --init-groups \
         --inh-caps +net_admin --ambient-caps +net_admin causeway gateway'), or leave 'transparent' in [listen] out"
    )]
    Transparent {
        /// The address.
        address: SocketAddr,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Another gateway serves the control socket.
    #[error(
        "a gateway of yours already runs here and serves {}: 'causeway status' shows it, and 'causeway gateway --drain' \
         puts this program in its place; a second gateway needs another [listen] control",
        .0.display()
    )]
    AlreadyRunning(PathBuf),
    /// What a predecessor handed over cannot be used.
    #[error("continue from the handed-over state: {0}")]
    Inherit(#[from] InheritError),
    /// This gateway cannot take part in the grid.
    #[error("grid: {0}")]
    Grid(String),
    /// The gateway cannot be kept running.
    #[error("keep it running: {0}")]
    Keeper(io::Error),
    /// There is no memory that outlives a worker.
    #[error(
        "make memory that outlives a worker: {0}; a limit on the size of files (ulimit -f) counts for it, too"
    )]
    Memory(io::Error),
    /// The loop itself failed.
    #[error("event loop: {0}")]
    Loop(#[from] io::Error),
}

impl GatewayError {
    /// Whether another process listens there, or did until recently.
    pub(crate) fn is_taken(&self) -> bool {
        match self {
            GatewayError::Listen { source, .. } | GatewayError::Transparent { source, .. } => {
                source.kind() == io::ErrorKind::AddrInUse
            }
            GatewayError::AlreadyRunning(_) => true,
            _ => false,
        }
    }
}
