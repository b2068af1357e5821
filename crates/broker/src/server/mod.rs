//! The broker's server: HTTPS for gateways, a Unix socket for this host's commands, in threads of its own.
//!
//! `slots` bounds who may be connected, `hellos` how often TLS is begun, `connection` brings a connection up,
//! `requests` answers, `reach` dials back, `admin` serves commands, `reflect` tells callers over UDP which
//! address they come from.

pub mod admin;
mod body;
mod caller;
mod connection;
mod hellos;
mod others;
pub(crate) mod own;
mod pace;
mod reach;
mod reflect;
mod requests;
mod slots;

use crate::clock::Clock;
use crate::config::BrokerConfig;
use crate::say::Log;
use crate::state::{State, StateError};
use crate::store::StoreError;
use crate::tls::Trust;
use hellos::Hellos;
use own::OwnCertificate;
pub use pace::Rate;
use slots::Slots;
use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, UdpSocket};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};

/// Number of threads: one answers while another writes to the disk; no gateway waits for more than that.
const WORKERS: usize = 2;

/// How long requests in progress may still take once the broker is told to stop.
const STOPPING: Duration = Duration::from_secs(5);

/// What bounds a broker's time and memory.
#[derive(Debug, Clone)]
pub struct Limits {
    /// A TLS handshake: three round trips around the Earth and a busy host.
    pub handshake: Duration,
    /// A request's head, and the time from one request to the next.
    pub head: Duration,
    /// A request's body: a megabyte at a hundred kilobytes a second.
    pub body: Duration,
    /// The most connections without a certificate, in all and from one address (in IPv6: one network of 64
    /// bits), behind which there may be several sites. One more ends the oldest: a site that joins needs its
    /// connection only for a moment.
    pub strangers: usize,
    /// See `strangers`.
    pub strangers_per_address: usize,
    /// TLS hellos that are answered. One more waits for the next period. A caller from an address at which a
    /// member polls is counted with the members.
    pub hellos: Rate,
    /// How long a connection without a certificate may last.
    pub stranger_life: Duration,
    /// The most connections of one site: a poll, a request, and two that are about to end. One more ends the
    /// oldest.
    pub per_site: usize,
    /// Addresses dialled back at a time, for all.
    pub reaching: usize,
    /// How long one address is dialled.
    pub reach: Duration,
    /// How long a poll waits for more news once there is some, so that gateways that begin at the same time
    /// are told about each other in one answer.
    pub gather: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(10),
            body: Duration::from_secs(10),
            strangers: 256,
            strangers_per_address: 64,
            // About a tenth of one of the two threads, on a slow host.
            hellos: Rate {
                in_all: 400,
                to_one: 64,
                every: Duration::from_secs(1),
            },
            stranger_life: Duration::from_secs(30),
            per_site: 8,
            reaching: 16,
            reach: Duration::from_secs(3),
            gather: Duration::from_millis(50),
        }
    }
}

/// What a broker is run with beside its configuration.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its time.
    pub clock: Clock,
    /// The limits on its time and memory.
    pub limits: Limits,
    /// Where its log lines go.
    pub log: Log,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            clock: Clock::system(),
            limits: Limits::default(),
            log: Log::stderr(),
        }
    }
}

/// Why a broker does not run.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// The broker's state cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// Another broker serves this grid here.
    #[error(
        "your broker of this grid already runs here and takes commands at {}; 'causeway grid list' shows what it knows",
        .0.display()
    )]
    AlreadyRunning(std::path::PathBuf),
    /// An address, or the commands' socket, cannot be listened at.
    #[error("listen at {address}: {source}")]
    Listen {
        /// The address or the socket.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The broker's own certificate cannot be used.
    #[error("the broker's own certificate: {0}")]
    Certificate(String),
    /// There are no threads, or no descriptors.
    #[error("start the broker's threads: {0}")]
    Threads(io::Error),
}

/// What all requests share.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// The same as the state's, to be read without the state's lock.
    trust: Trust,
    own: OwnCertificate,
    limits: Limits,
    log: Log,
    slots: Slots,
    hellos: Hellos,
    reaching: Semaphore,
    reach_local: bool,
    stopping: watch::Sender<bool>,
    /// The reason why the broker cannot go on, once there is one.
    failed: watch::Sender<Option<String>>,
}

impl Shared {
    /// Uses the state in a thread that may wait for the disk.
    async fn with_state<T: Send + 'static>(
        self: &Arc<Shared>,
        act: impl FnOnce(&mut State) -> T + Send + 'static,
    ) -> Result<T, tokio::task::JoinError> {
        let shared = self.clone();
        tokio::task::spawn_blocking(move || {
            let mut state = shared.lock();
            let before = state.store_trouble();
            let done = act(&mut state);
            shared.watch_store(before, &state);
            done
        })
        .await
    }

    /// Logs when the store begins to fail, and when it works again.
    fn watch_store(&self, before: Option<String>, state: &State) {
        match (before, state.store_trouble()) {
            (None, Some(reason)) => self.log.say(format_args!(
                "{reason}; what would change is refused, and tried again with the next change"
            )),
            (Some(_), None) => self.log.say("the store is written again"),
            _ => {}
        }
        if let Some(reason) = state.store_lost() {
            let reason = format!("the store is lost: {reason}");
            self.failed.send_if_modified(|failed| {
                let first = failed.is_none();
                failed.get_or_insert(reason);
                first
            });
        }
    }

    /// Answers the question "from where do you see me?" at this address. If that is impossible, gateways go
    /// on, but those that nobody can dial do not meet.
    fn reflect_at(self: &Arc<Shared>, runtime: &Runtime, address: SocketAddr) {
        match runtime.block_on(UdpSocket::bind(address)) {
            Ok(socket) => drop(runtime.spawn(reflect::serve(self.clone(), socket))),
            Err(error) => self.log.say(format_args!(
                "listen at {address} over UDP: {error}; gateways that cannot be dialled will not learn how they are seen"
            )),
        }
    }

    fn now(&self) -> u64 {
        self.trust.clock().now()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The addresses from which gateways of members poll; `None` while the state is in use, since nothing
    /// needs to wait for this.
    fn networks_of_members(&self) -> Option<HashSet<IpAddr>> {
        self.state.try_lock().ok().map(|state| state.networks())
    }
}

/// A running broker. It stops when it is dropped.
pub struct Broker {
    runtime: Option<Runtime>,
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    socket: std::path::PathBuf,
}

/// How long a broker that starts waits for a command that holds the store, which does so for some
/// milliseconds, and how long a command waits for a broker that starts or stops.
const STORE_BUSY: Duration = Duration::from_secs(5);

fn open_state(config: &BrokerConfig, clock: &Clock) -> Result<State, StateError> {
    let began = Instant::now();
    loop {
        match State::open(config, clock.clone()) {
            Err(StateError::Store(StoreError::InUse(_))) if began.elapsed() < STORE_BUSY => {
                std::thread::sleep(Duration::from_millis(50));
            }
            other => return other,
        }
    }
}

impl Broker {
    /// Starts a broker in threads of its own.
    ///
    /// # Errors
    /// See [`BrokerError`].
    pub fn start(config: &BrokerConfig, options: Options) -> Result<Broker, BrokerError> {
        // The store's error would only say that it is in use.
        if std::os::unix::net::UnixStream::connect(config.socket()).is_ok() {
            return Err(BrokerError::AlreadyRunning(config.socket()));
        }
        let state = open_state(config, &options.clock)?;
        let own = OwnCertificate::open(&config.directory, &state)
            .map_err(|error| BrokerError::Certificate(error.to_string()))?;
        let shared = Arc::new(Shared {
            trust: state.trust.clone(),
            own,
            slots: Slots::new(&options.limits, config.connections),
            hellos: Hellos::new(options.limits.hellos),
            reaching: Semaphore::new(options.limits.reaching),
            reach_local: config.reach_local,
            state: Mutex::new(state),
            limits: options.limits,
            log: options.log,
            stopping: watch::Sender::new(false),
            failed: watch::Sender::new(None),
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .thread_name("broker")
            .enable_all()
            .build()
            .map_err(BrokerError::Threads)?;
        let mut addresses = Vec::new();
        for address in &config.listen {
            let listener = runtime
                .block_on(listen(*address))
                .map_err(|source| BrokerError::Listen {
                    address: address.to_string(),
                    source,
                })?;
            if let Ok(address) = listener.local_addr() {
                addresses.push(address);
                shared.reflect_at(&runtime, address);
            }
            runtime.spawn(connection::accept(shared.clone(), listener));
        }
        let socket = config.socket();
        let entered = runtime.enter();
        let commands = admin::bind(&socket).map_err(|source| BrokerError::Listen {
            address: socket.display().to_string(),
            source,
        })?;
        drop(entered);
        runtime.spawn(admin::serve(shared.clone(), commands));
        runtime.spawn(own::keep_fresh(shared.clone()));
        if shared.lock().number().is_some() {
            runtime.spawn(others::meet(shared.clone()));
        }
        Ok(Broker {
            runtime: Some(runtime),
            shared,
            addresses,
            socket,
        })
    }

    /// Returns the addresses at which it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Reports, from another thread, why the broker cannot go on, if that happens.
    pub fn when_it_fails(&self, tell: impl FnOnce(String) + Send + 'static) {
        let mut failed = self.shared.failed.subscribe();
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async move {
                if let Ok(reason) = failed.wait_for(Option::is_some).await {
                    tell(reason.clone().unwrap_or_default());
                }
            });
        }
    }

    /// Stops: polls are answered, nothing new is accepted.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        self.shared.stopping.send_replace(true);
        let slots = &self.shared.slots;
        runtime.block_on(async {
            let _ = tokio::time::timeout(STOPPING, slots.empty()).await;
        });
        runtime.shutdown_timeout(STOPPING);
        let _ = std::fs::remove_file(&self.socket);
        self.shared.log.flush();
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.end();
    }
}

/// On a host without IPv6, an unspecified IPv6 address becomes the IPv4 one.
async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Err(error)
            if address.is_ipv6()
                && address.ip().is_unspecified()
                && error.raw_os_error() == Some(nix::errno::Errno::EAFNOSUPPORT as i32) =>
        {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        other => other,
    }
}
