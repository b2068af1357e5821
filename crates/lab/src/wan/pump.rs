//! The I/O loop of the emulator: one thread that reads packets from ports, hands them to a [`Fabric`] and
//! writes them when they are due. What happens to a packet in between is decided by the fabric (`grid`,
//! `switch`).

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use nix::sys::uio::{readv, writev};

use super::pace::{Pace, Rest};
use super::packet::{HEADER_ROOM, OFFLOAD_BYTES, Offload, Packet, Piece};
use super::pool::Pool;
use super::priority::{self, Priority};
use super::tun;

/// What happens between reading a packet and writing it.
pub(crate) trait Fabric: Send + 'static {
    /// Something asked of the running fabric from another thread.
    type Request: Send + 'static;

    /// Takes a packet that was read from port `from`; packets that it drops are returned to `pool`.
    fn on_packet(&mut self, from: usize, packet: Packet, now_ns: u64, pool: &mut Pool);

    /// Returns the time at which [`Fabric::deliver_due`] next has something to do.
    fn next_due_ns(&self) -> Option<u64>;

    /// Hands every packet that has arrived to `deliver`, which returns whether the port took it.
    fn deliver_due(&mut self, now_ns: u64, pool: &mut Pool, deliver: &mut Deliver<'_>);

    /// Serves a request.
    fn on_request(&mut self, request: Self::Request, now_ns: u64, report: &PumpReport, pool: &mut Pool);
}

/// Writes a piece to a port, and returns whether the port took it.
pub(crate) type Deliver<'a> = dyn FnMut(usize, &Piece<'_>) -> bool + 'a;

/// What the loop itself knows about its work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PumpReport {
    pub(crate) cpu: Duration,
    pub(crate) wakeups: u64,
    pub(crate) lost_ports: u64,
    pub(crate) priority: Priority,
}

/// The running loop, seen from outside. Dropping it stops and joins the thread.
pub(crate) struct Pump<R> {
    requests: Option<Sender<R>>,
    wake: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl<R: Send + 'static> Pump<R> {
    /// Starts the loop in a new thread called `name`.
    pub(crate) fn start<F: Fabric<Request = R>>(
        name: &str,
        fabric: F,
        ports: Vec<OwnedFd>,
    ) -> io::Result<Self> {
        let (requests, incoming) = channel();
        let wake = Arc::new(EventFd::from_flags(
            EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC,
        )?);
        let loop_wake = Arc::clone(&wake);
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            let ports = ports_with_offload(ports);
            PumpLoop::new(fabric, ports.len(), incoming).run(&ports, &loop_wake);
        })?;
        Ok(Pump {
            requests: Some(requests),
            wake,
            thread: Some(thread),
        })
    }

    /// Sends the request that `make` builds around a reply channel, and waits for the answer; `None` if the
    /// thread is gone.
    pub(crate) fn ask<A>(&self, make: impl FnOnce(Sender<A>) -> R) -> Option<A> {
        let (reply, answer) = channel();
        self.requests.as_ref()?.send(make(reply)).ok()?;
        self.wake();
        answer.recv().ok()
    }

    fn wake(&self) {
        // Writing to an eventfd fails only if the counter is full, and then the loop is awake already.
        let _ = self.wake.write(1);
    }
}

impl<R> Drop for Pump<R> {
    fn drop(&mut self) {
        drop(self.requests.take());
        let _ = self.wake.write(1);
        if let Some(thread) = self.thread.take() {
            // A panic in the loop was already printed by its own thread.
            let _ = thread.join();
        }
    }
}

/// A device from which packets are read, and to which they are written.
struct Port {
    fd: OwnedFd,
    /// Whether an [`Offload`] precedes each packet.
    has_offload: bool,
}

/// Switches segmentation offload on if every port can write what any of them then reads.
fn ports_with_offload(fds: Vec<OwnedFd>) -> Vec<Port> {
    let ports: Vec<Port> = fds
        .into_iter()
        .map(|fd| Port {
            has_offload: tun::has_offload_header(&fd),
            fd,
        })
        .collect();
    if ports.iter().all(|port| port.has_offload) {
        for port in &ports {
            // A kernel that refuses continues to hand over single packets with an empty header.
            tun::accept_super_segments(&port.fd);
        }
    }
    ports
}

struct PumpLoop<F: Fabric> {
    fabric: F,
    incoming: Receiver<F::Request>,
    pool: Pool,
    start: Instant,
    alive: Vec<bool>,
    /// The space into which packets are read, before a buffer of their size is known.
    landing: Box<[u8]>,
    pace: Pace,
    /// Packets read or written so far.
    moved: u64,
    wakeups: u64,
    lost_ports: u64,
    priority: Priority,
}

/// Most packets read from one port before other ports, and the packets that are due, get their turn.
const READS_PER_TURN: usize = 64;

/// Most bytes read from one port before other ports get their turn: four full super-segments, 2 ms of a
/// gigabit.
const READ_BYTES_PER_TURN: usize = 256 << 10;

/// The longest packet: 64 KiB of payload, as IPv6 counts it, its headers, and an Ethernet header.
const LANDING_BYTES: usize = 65_536 + 256;

impl<F: Fabric> PumpLoop<F> {
    fn new(fabric: F, ports: usize, incoming: Receiver<F::Request>) -> Self {
        PumpLoop {
            fabric,
            incoming,
            pool: Pool::default(),
            start: Instant::now(),
            alive: vec![true; ports],
            landing: vec![0; LANDING_BYTES].into_boxed_slice(),
            pace: Pace::default(),
            moved: 0,
            wakeups: 0,
            lost_ports: 0,
            priority: priority::raise(),
        }
    }

    /// Works until the other side of the request channel is gone.
    fn run(mut self, ports: &[Port], wake: &EventFd) {
        loop {
            let watched: Vec<usize> = (0..ports.len()).filter(|&port| self.alive[port]).collect();
            let mut polled = vec![PollFd::new(wake.as_fd(), PollFlags::POLLIN)];
            polled.extend(
                watched
                    .iter()
                    .map(|&port| PollFd::new(ports[port].fd.as_fd(), PollFlags::POLLIN)),
            );
            while self.lost_ports == (ports.len() - watched.len()) as u64 {
                self.rest(&mut polled);
                if is_ready(&polled[0]) && !self.serve(wake) {
                    return;
                }
                let moved_before = self.moved;
                for (&port, state) in watched.iter().zip(&polled[1..]) {
                    if is_ready(state) {
                        self.read(port, &ports[port]);
                        self.deliver(ports);
                    }
                }
                self.deliver(ports);
                if self.moved != moved_before {
                    self.pace.on_turn(self.now_ns());
                }
            }
        }
    }

    /// Waits until there is something to do, and leaves in `polled` where it is.
    fn rest(&mut self, polled: &mut [PollFd<'_>]) {
        let now_ns = self.now_ns();
        match self.pace.rest(self.fabric.next_due_ns(), now_ns) {
            Rest::Pause(until_ns) => {
                self.wakeups += 1;
                wait(&mut polled[..1], Some(until_ns.saturating_sub(now_ns)));
                wait(polled, Some(0));
            }
            Rest::Sleep { until_ns: None } => {
                self.wakeups += 1;
                wait(polled, None);
            }
            Rest::Sleep {
                until_ns: Some(until_ns),
            } => {
                self.wakeups += 1;
                if wait(polled, Some(until_ns.saturating_sub(now_ns))) == 0 && until_ns > now_ns {
                    self.pace.on_timer(until_ns, self.now_ns());
                }
            }
            Rest::Poll => {
                wait(polled, Some(0));
            }
        }
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn read(&mut self, number: usize, port: &Port) {
        let mut bytes = 0;
        for _ in 0..READS_PER_TURN {
            match read_packet(port, &mut self.landing, &mut self.pool) {
                Ok(packet) => {
                    self.moved += 1;
                    bytes += packet.bytes().len();
                    let now_ns = self.now_ns();
                    self.fabric.on_packet(number, packet, now_ns, &mut self.pool);
                }
                Err(failure) => {
                    if !matches!(failure, Errno::EAGAIN | Errno::EINTR) {
                        // The interface is gone with its namespace: it would be ready for ever.
                        self.alive[number] = false;
                        self.lost_ports += 1;
                    }
                    return;
                }
            }
            if bytes >= READ_BYTES_PER_TURN {
                return;
            }
        }
    }

    fn deliver(&mut self, ports: &[Port]) {
        let now_ns = self.now_ns();
        let moved = &mut self.moved;
        self.fabric
            .deliver_due(now_ns, &mut self.pool, &mut |port, piece| {
                *moved += 1;
                write_piece(&ports[port], piece)
            });
    }

    /// Serves pending requests; `false` if nobody can make any more.
    fn serve(&mut self, wake: &EventFd) -> bool {
        // Read before the channel is checked: a request that arrives later wakes us again.
        let _ = wake.read();
        loop {
            match self.incoming.try_recv() {
                Ok(request) => {
                    let report = self.report();
                    let now_ns = self.now_ns();
                    self.fabric.on_request(request, now_ns, &report, &mut self.pool);
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn report(&self) -> PumpReport {
        PumpReport {
            cpu: priority::thread_cpu_time(),
            wakeups: self.wakeups,
            lost_ports: self.lost_ports,
            priority: self.priority,
        }
    }
}

/// Waits for any of `polled`, for at most `timeout_ns`; returns how many are ready. A signal counts as none.
fn wait(polled: &mut [PollFd<'_>], timeout_ns: Option<u64>) -> libc::c_int {
    let timeout = timeout_ns.map(|timeout_ns| TimeSpec::from(Duration::from_nanos(timeout_ns)));
    // Cannot fail except because of a signal: the descriptors are ours, and open.
    ppoll(polled, timeout, None).unwrap_or(0)
}

fn is_ready(polled: &PollFd<'_>) -> bool {
    polled.revents().is_some_and(|events| !events.is_empty())
}

fn read_packet(port: &Port, landing: &mut [u8], pool: &mut Pool) -> Result<Packet, Errno> {
    let mut header = [0; OFFLOAD_BYTES];
    let header_bytes = if port.has_offload { OFFLOAD_BYTES } else { 0 };
    let mut places = [
        IoSliceMut::new(&mut header[..header_bytes]),
        IoSliceMut::new(landing),
    ];
    let read = readv(&port.fd, &mut places)?;
    let packet = pool.copy(&landing[..read.saturating_sub(header_bytes)]);
    Ok(match port.has_offload {
        true => Packet::new(Offload::from_bytes(&header), packet),
        false => Packet::plain(packet),
    })
}

fn write_piece(port: &Port, piece: &Piece<'_>) -> bool {
    let mut room = HEADER_ROOM;
    let parts = piece.parts(&mut room);
    let slices = [&parts.offload[..], parts.headers, parts.rest].map(IoSlice::new);
    let slices = if port.has_offload {
        &slices[..]
    } else {
        &slices[1..]
    };
    loop {
        match writev(&port.fd, slices) {
            Ok(_) => return true,
            Err(Errno::EINTR) => {}
            Err(_) => return false,
        }
    }
}
