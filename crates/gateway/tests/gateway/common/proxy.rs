//! A network that misbehaves on demand, between two gateways: it cuts connections, after some bytes or at
//! once, refuses new ones, and stalls.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// How long a gateway may leave its connection unread.
const TAKEN: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub struct Proxy(Arc<State>);

struct State {
    target: SocketAddr,
    refuses: AtomicBool,
    /// Bytes after which a connection is cut; 0: never.
    life: AtomicU64,
    cuts: AtomicUsize,
    /// The connections that go on, by their numbers.
    connections: Mutex<HashMap<usize, (TcpStream, TcpStream)>>,
    /// Connections accepted so far, and the number of the one that stalls.
    accepted: AtomicUsize,
    stalled: Mutex<Option<usize>>,
    changed: Condvar,
    /// What to look for in everything that passes, and whether it was seen.
    words: Mutex<Vec<u8>>,
    heard: AtomicBool,
    /// What connections began with, if it arrived in one piece.
    beginnings: Mutex<Vec<Vec<u8>>>,
}

nix::ioctl_read_bad!(unsent_bytes, libc::TIOCOUTQ, libc::c_int);

/// Waits until the receiver's kernel has what was written. The next byte from there would reset a connection
/// that is shut down, and what was still in flight would be lost: of 700 kB some 40 arrived.
fn wait_until_taken(to: &TcpStream) {
    let end = Instant::now() + TAKEN;
    let mut left = 1;
    while left > 0 && Instant::now() < end {
        // SAFETY: the descriptor is open, and the kernel writes one int.
        if unsafe { unsent_bytes(to.as_raw_fd(), &raw mut left) }.is_err() {
            return;
        }
        std::thread::yield_now();
    }
}

impl Proxy {
    /// Serves until the test's process ends.
    pub fn start(address: SocketAddr, target: SocketAddr) -> Proxy {
        let listener = TcpListener::bind(address).unwrap();
        let proxy = Proxy(Arc::new(State {
            target,
            refuses: AtomicBool::new(false),
            life: AtomicU64::new(0),
            cuts: AtomicUsize::new(0),
            connections: Mutex::default(),
            accepted: AtomicUsize::new(0),
            stalled: Mutex::new(None),
            changed: Condvar::new(),
            words: Mutex::default(),
            heard: AtomicBool::new(false),
            beginnings: Mutex::default(),
        }));
        let serving = proxy.clone();
        std::thread::spawn(move || {
            for near in listener.incoming() {
                serving.join(near.unwrap());
            }
        });
        proxy
    }

    fn join(&self, near: TcpStream) {
        if self.0.refuses.load(SeqCst) {
            return;
        }
        let Ok(far) = TcpStream::connect(self.0.target) else {
            return;
        };
        near.set_nodelay(true).unwrap();
        far.set_nodelay(true).unwrap();
        let number = self.0.accepted.fetch_add(1, SeqCst);
        let both = |from: &TcpStream, to: &TcpStream| (from.try_clone().unwrap(), to.try_clone().unwrap());
        let pair = both(&near, &far);
        self.0.connections.lock().unwrap().insert(number, pair);
        for (from, to) in [both(&near, &far), (far, near)] {
            let proxy = self.clone();
            std::thread::spawn(move || proxy.carry(number, from, to));
        }
    }

    fn carry(&self, number: usize, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = [0; 16 * 1024];
        let mut carried = 0;
        while let Ok(count) = from.read(&mut buffer) {
            if carried == 0 {
                let beginning = buffer[..count.min(64)].to_vec();
                self.0.beginnings.lock().unwrap().push(beginning);
            }
            let stalled = self.0.stalled.lock().unwrap();
            drop(
                self.0
                    .changed
                    .wait_while(stalled, |stalled| *stalled == Some(number)),
            );
            let life = self.0.life.load(SeqCst);
            if count == 0 || (life > 0 && carried + count as u64 > life) {
                // In the middle of a frame, as a network might.
                let _ = to.write_all(&buffer[..count / 2]);
                self.0.cuts.fetch_add(1, SeqCst);
                break;
            }
            carried += count as u64;
            self.listen(&buffer[..count]);
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        wait_until_taken(&to);
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        self.0.connections.lock().unwrap().remove(&number);
    }

    /// Cuts every connection now, and from now on each one after `bytes` in one direction.
    pub fn cut_after(&self, bytes: u64) {
        self.0.life.store(bytes, SeqCst);
    }

    fn listen(&self, bytes: &[u8]) {
        let words = self.0.words.lock().unwrap();
        if !words.is_empty() && bytes.windows(words.len()).any(|window| window == *words) {
            self.0.heard.store(true, SeqCst);
        }
    }

    /// Looks for these bytes in what passes from now on.
    pub fn listen_for(&self, words: &[u8]) {
        *self.0.words.lock().unwrap() = words.to_vec();
    }

    /// Whether they passed in one piece.
    pub fn heard(&self) -> bool {
        self.0.heard.load(SeqCst)
    }

    /// Returns the first bytes of connections, in either direction.
    pub fn beginnings(&self) -> Vec<Vec<u8>> {
        self.0.beginnings.lock().unwrap().clone()
    }

    pub fn cuts(&self) -> usize {
        self.0.cuts.load(SeqCst)
    }

    /// Cuts every connection and refuses new ones.
    pub fn go_dark(&self) {
        self.0.refuses.store(true, SeqCst);
        for (_, (near, far)) in self.0.connections.lock().unwrap().drain() {
            let _ = (near.shutdown(Shutdown::Both), far.shutdown(Shutdown::Both));
        }
    }

    pub fn come_back(&self) {
        self.0.refuses.store(false, SeqCst);
    }

    /// From now on, the connection with this number (from 0) swallows what it gets, in both directions.
    pub fn stall(&self, number: usize) {
        *self.0.stalled.lock().unwrap() = Some(number);
        self.0.changed.notify_all();
    }
}
