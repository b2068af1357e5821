//! The I/O loop of the emulator: one thread that reads packets from ports, hands them to a [`Fabric`] and writes
//! them when they are due. What a packet meets on the way is the fabric's business (`grid`, `switch`).

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use nix::sys::uio::readv;

use super::pace::{Pace, Rest};
use super::priority::{self, Priority};

/// What happens between reading a packet and writing it.
pub(crate) trait Fabric: Send + 'static {
    /// Something asked of the running fabric from another thread.
    type Request: Send + 'static;

    /// Takes a packet read from port `from`; what it drops goes back to `pool`.
    fn on_packet(&mut self, from: usize, packet: Vec<u8>, now_ns: u64, pool: &mut Pool);

    /// When [`Fabric::deliver_due`] next has something to do.
    fn next_due_ns(&self) -> Option<u64>;

    /// Hands every packet that has arrived to `deliver`, which says whether the port took it.
    fn deliver_due(&mut self, now_ns: u64, deliver: &mut dyn FnMut(usize, Vec<u8>) -> bool);

    /// Serves a request.
    fn on_request(&mut self, request: Self::Request, now_ns: u64, report: &PumpReport, pool: &mut Pool);
}

/// What the loop itself knows about its work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PumpReport {
    pub(crate) cpu: Duration,
    pub(crate) wakeups: u64,
    pub(crate) lost_ports: u64,
    pub(crate) priority: Priority,
}

/// Packet buffers for reuse, so that a packet costs no allocation once the lab is warm.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: Vec<Vec<u8>>,
}

impl Pool {
    /// Room for a 1500-byte packet or frame; longer ones grow their buffer, which then stays grown.
    const BUFFER_BYTES: usize = 2048;
    /// Idle buffers kept: 16 MiB, the in-flight data of 1 Gbit/s at 100 ms.
    const KEPT: usize = 8192;

    /// An empty buffer.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.free
            .pop()
            .unwrap_or_else(|| Vec::with_capacity(Self::BUFFER_BYTES))
    }

    /// A copy of `packet`, for flooding.
    pub(crate) fn copy(&mut self, packet: &[u8]) -> Vec<u8> {
        let mut copy = self.take();
        copy.extend_from_slice(packet);
        copy
    }

    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        if self.free.len() < Self::KEPT {
            buffer.clear();
            self.free.push(buffer);
        }
    }
}

/// The running loop, seen from outside. Dropping it stops and joins the thread.
pub(crate) struct Pump<R> {
    requests: Option<Sender<R>>,
    wake: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl<R: Send + 'static> Pump<R> {
    /// Starts the loop in a thread of its own called `name`.
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
        let thread = std::thread::Builder::new()
            .name(name.into())
            .spawn(move || PumpLoop::new(fabric, ports.len(), incoming).run(&ports, &loop_wake))?;
        Ok(Pump {
            requests: Some(requests),
            wake,
            thread: Some(thread),
        })
    }

    /// Sends the request that `make` builds around a reply channel and waits for the answer; `None` if the
    /// thread is gone.
    pub(crate) fn ask<A>(&self, make: impl FnOnce(Sender<A>) -> R) -> Option<A> {
        let (reply, answer) = channel();
        self.requests.as_ref()?.send(make(reply)).ok()?;
        self.wake();
        answer.recv().ok()
    }

    fn wake(&self) {
        // An eventfd write fails only when the counter is full, and then the loop is awake already.
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

struct PumpLoop<F: Fabric> {
    fabric: F,
    incoming: Receiver<F::Request>,
    pool: Pool,
    start: Instant,
    alive: Vec<bool>,
    /// Where the part of a packet beyond its buffer lands; IP allows 64 KiB.
    overflow: Box<[u8]>,
    pace: Pace,
    /// Packets read or written so far.
    moved: u64,
    wakeups: u64,
    lost_ports: u64,
    priority: Priority,
}

/// Packets read from one port before the other ports and the due packets get their turn: one segmented 64 KiB
/// TCP burst is 44 packets.
const READS_PER_TURN: usize = 64;

impl<F: Fabric> PumpLoop<F> {
    fn new(fabric: F, ports: usize, incoming: Receiver<F::Request>) -> Self {
        PumpLoop {
            fabric,
            incoming,
            pool: Pool::default(),
            start: Instant::now(),
            alive: vec![true; ports],
            overflow: vec![0; 65_536].into_boxed_slice(),
            pace: Pace::default(),
            moved: 0,
            wakeups: 0,
            lost_ports: 0,
            priority: priority::raise(),
        }
    }

    /// Works until the other side of the request channel is gone.
    fn run(mut self, ports: &[OwnedFd], wake: &EventFd) {
        loop {
            let watched: Vec<usize> = (0..ports.len()).filter(|&port| self.alive[port]).collect();
            let mut polled = vec![PollFd::new(wake.as_fd(), PollFlags::POLLIN)];
            polled.extend(
                watched
                    .iter()
                    .map(|&port| PollFd::new(ports[port].as_fd(), PollFlags::POLLIN)),
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

    /// Waits until there is something to do, and leaves in `polled` where.
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

    fn read(&mut self, port: usize, fd: &OwnedFd) {
        for _ in 0..READS_PER_TURN {
            let mut packet = self.pool.take();
            match read_packet(fd, &mut packet, &mut self.overflow) {
                Ok(()) => {
                    self.moved += 1;
                    let now_ns = self.now_ns();
                    self.fabric.on_packet(port, packet, now_ns, &mut self.pool);
                }
                Err(failure) => {
                    self.pool.give(packet);
                    if !matches!(failure, Errno::EAGAIN | Errno::EINTR) {
                        // The interface is gone with its namespace: it would be ready for ever.
                        self.alive[port] = false;
                        self.lost_ports += 1;
                    }
                    return;
                }
            }
        }
    }

    fn deliver(&mut self, ports: &[OwnedFd]) {
        let now_ns = self.now_ns();
        let (pool, moved) = (&mut self.pool, &mut self.moved);
        self.fabric.deliver_due(now_ns, &mut |port, packet| {
            let written = write_packet(&ports[port], &packet);
            pool.give(packet);
            *moved += 1;
            written
        });
    }

    /// Serves what was asked; `false` when nobody can ask any more.
    fn serve(&mut self, wake: &EventFd) -> bool {
        // Read before looking at the channel: a request that comes later wakes us again.
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

/// Waits for any of `polled`, at most `timeout_ns`; gives back how many are ready. A signal counts as none.
fn wait(polled: &mut [PollFd<'_>], timeout_ns: Option<u64>) -> libc::c_int {
    let timeout = timeout_ns.map(|timeout_ns| TimeSpec::from(Duration::from_nanos(timeout_ns)));
    // Cannot fail but for a signal: the descriptors are ours and open.
    ppoll(polled, timeout, None).unwrap_or(0)
}

fn is_ready(polled: &PollFd<'_>) -> bool {
    polled.revents().is_some_and(|events| !events.is_empty())
}

/// Reads one packet into `packet`, which comes empty; a long one spills into `overflow` and grows it.
fn read_packet(fd: &OwnedFd, packet: &mut Vec<u8>, overflow: &mut [u8]) -> Result<(), Errno> {
    let room = packet.capacity();
    packet.resize(room, 0);
    let read = readv(fd, &mut [IoSliceMut::new(packet), IoSliceMut::new(overflow)])?;
    match read.checked_sub(room) {
        Some(spilled) => packet.extend_from_slice(&overflow[..spilled]),
        None => packet.truncate(read),
    }
    Ok(())
}

fn write_packet(fd: &OwnedFd, packet: &[u8]) -> bool {
    loop {
        match nix::unistd::write(fd, packet) {
            Ok(_) => return true,
            Err(Errno::EINTR) => {}
            Err(_) => return false,
        }
    }
}
