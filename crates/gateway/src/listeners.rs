//! Where the gateway listens: for its site, for other gateways, for commands, for Prometheus, and for what
//! the site's router hands over.

use crate::config::Config;
use crate::error::GatewayError;
use crate::inherited::{InheritError, descriptor};
use crate::link::KeptListeners;
use crate::site::transparent;
use crate::sys::process;
use crate::sys::source::Class;
use causeway_control::{answers, private, usual_sockets};
use mio::net::{TcpListener, UnixListener};
use mio::{Interest, Registry};
use std::io;
use std::net::Shutdown;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

pub(crate) struct Listeners {
    pub(crate) lan: Vec<TcpListener>,
    pub(crate) wan: Option<TcpListener>,
    pub(crate) control: UnixListener,
    pub(crate) metrics: Option<TcpListener>,
    pub(crate) transparent: Option<TcpListener>,
    /// Whether connections wait that could not be accepted; see `Deadline::Accept`.
    pub(crate) pending: bool,
}

impl Listeners {
    pub(crate) fn bind(config: &Config) -> Result<Listeners, GatewayError> {
        // This comes first, because its error distinguishes a second gateway of this user from a port that
        // another program uses.
        let control = bind_control(&config.control)?;
        let lan = config.lan.iter().map(|address| bind(*address));
        Ok(Listeners {
            lan: lan.collect::<Result<_, _>>()?,
            wan: config.wan.map(bind).transpose()?,
            metrics: config.metrics.map(bind).transpose()?,
            transparent: config.transparent.map(transparent::listen).transpose()?,
            control,
            pending: false,
        })
    }

    /// Gathers what is handed over of them.
    pub(crate) fn keep(&self) -> KeptListeners {
        KeptListeners {
            lan: self.lan.iter().map(AsRawFd::as_raw_fd).collect(),
            wan: self.wan.as_ref().map(AsRawFd::as_raw_fd),
            control: self.control.as_raw_fd(),
            metrics: self.metrics.as_ref().map(AsRawFd::as_raw_fd),
            transparent: self.transparent.as_ref().map(AsRawFd::as_raw_fd),
        }
    }

    /// Takes over the listeners that a predecessor left.
    ///
    /// # Errors
    /// They are not those of the configuration, or do not exist.
    pub(crate) fn inherit(kept: &KeptListeners, config: &Config) -> Result<Listeners, InheritError> {
        let same = (kept.lan.len(), kept.wan.is_some());
        let same_local = (kept.metrics.is_some(), kept.transparent.is_some());
        if same != (config.lan.len(), config.wan.is_some())
            || same_local != (config.metrics.is_some(), config.transparent.is_some())
        {
            return Err(InheritError::Configuration("listens elsewhere".to_owned()));
        }
        Listeners::of(kept, descriptor)
    }

    /// Makes other listeners of the same sockets: closing one does not close the other.
    ///
    /// # Errors
    /// This process has too many descriptors.
    pub(crate) fn duplicate(kept: &KeptListeners) -> io::Result<Listeners> {
        Listeners::of(kept, process::duplicate)
    }

    fn of<E>(kept: &KeptListeners, get: impl Fn(RawFd) -> Result<OwnedFd, E>) -> Result<Listeners, E> {
        let tcp = |number| Ok(TcpListener::from_std(get(number)?.into()));
        Ok(Listeners {
            lan: kept.lan.iter().copied().map(tcp).collect::<Result<_, _>>()?,
            wan: kept.wan.map(tcp).transpose()?,
            control: UnixListener::from_std(get(kept.control)?.into()),
            metrics: kept.metrics.map(tcp).transpose()?,
            transparent: kept.transparent.map(tcp).transpose()?,
            pending: false,
        })
    }

    /// Stops listening.
    pub(crate) fn close(&mut self) {
        self.lan.clear();
        (self.wan, self.metrics, self.transparent) = (None, None, None);
        let _ = socket2::SockRef::from(&self.control).shutdown(Shutdown::Both);
    }

    /// Listens for commands again if the socket's file is gone: it disappears with /run/user/UID at the
    /// user's last logout, or if /tmp is cleaned. Returns the new path if it is not `path` as before.
    pub(crate) fn restore_control(
        &mut self,
        path: &Path,
        registry: &Registry,
    ) -> io::Result<Option<PathBuf>> {
        if answers(path) {
            return Ok(None);
        }
        let usual = usual_sockets();
        // If the configuration names a socket, commands look nowhere else.
        let is_usual = usual.iter().any(|usual| usual == path);
        let others = if is_usual { &usual[..] } else { &[] };
        let places = std::iter::once(path).chain(others.iter().map(PathBuf::as_path));
        let Some((mut control, place)) =
            { places }.find_map(|place| Some((bind_control(place).ok()?, place.to_owned())))
        else {
            return Ok(None);
        };
        registry.register(&mut control, Class::Control.token(0), Interest::READABLE)?;
        let _ = registry.deregister(&mut self.control);
        self.control = control;
        Ok(Some(place))
    }

    pub(crate) fn register(&mut self, registry: &Registry) -> Result<(), GatewayError> {
        for (index, listener) in self.lan.iter_mut().enumerate() {
            registry.register(listener, Class::Lan.token(index), Interest::READABLE)?;
        }
        for (listener, class) in [
            (&mut self.wan, Class::Wan),
            (&mut self.metrics, Class::Metrics),
            (&mut self.transparent, Class::Transparent),
        ] {
            if let Some(listener) = listener {
                registry.register(listener, class.token(0), Interest::READABLE)?;
            }
        }
        registry.register(&mut self.control, Class::Control.token(0), Interest::READABLE)?;
        Ok(())
    }
}

/// Whether a gateway could listen here as its configuration says. This leaves nothing behind.
///
/// # Errors
/// The first address or socket that it could not have.
pub fn try_bind(config: &Config) -> Result<(), GatewayError> {
    let bound = Listeners::bind(config);
    if !matches!(bound, Err(GatewayError::AlreadyRunning(_))) {
        // Without a listener it is useless; if it cannot be removed, the next gateway reports that.
        let _ = private::remove_socket(&config.control);
    }
    bound.map(drop)
}

fn bind(address: SocketAddr) -> Result<TcpListener, GatewayError> {
    TcpListener::bind(address).map_err(|source| GatewayError::Listen {
        address: address.to_string(),
        source,
    })
}

/// Binds the control socket for this user alone. A socket left by a gateway that was killed is replaced.
fn bind_control(path: &Path) -> Result<UnixListener, GatewayError> {
    let listen = |source| GatewayError::Listen {
        address: path.display().to_string(),
        source,
    };
    private::make_directory_of(path).map_err(listen)?;
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(GatewayError::AlreadyRunning(path.to_owned()));
    }
    private::remove_socket(path).map_err(listen)?;
    let listener = private::bind(path).map_err(listen)?;
    Ok(UnixListener::from_std(listener))
}
