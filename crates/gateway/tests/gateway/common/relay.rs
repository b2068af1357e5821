//! A UDP network that misbehaves on demand, between two gateways: it loses, doubles and delays datagrams,
//! stops, and forgets for whom it carried them.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

#[derive(Clone)]
pub struct Relay(Arc<State>);

struct State {
    near: UdpSocket,
    target: SocketAddr,
    /// The socket towards the target; a new one after the NAT has forgotten its mapping.
    far: Mutex<Arc<UdpSocket>>,
    client: Mutex<Option<SocketAddr>>,
    /// One datagram in this many is lost, arrives twice, or is held back behind the next; 0: none.
    loses: AtomicU64,
    doubles: AtomicU64,
    delays: AtomicU64,
    stopped: AtomicBool,
}

impl Relay {
    /// Serves until the test's process ends.
    pub fn start(address: SocketAddr, target: SocketAddr) -> Relay {
        let relay = Relay(Arc::new(State {
            near: UdpSocket::bind(address).unwrap(),
            target,
            far: Mutex::new(Arc::new(unbound())),
            client: Mutex::default(),
            loses: AtomicU64::new(0),
            doubles: AtomicU64::new(0),
            delays: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        }));
        let there = relay.clone();
        std::thread::spawn(move || there.carry_there());
        let far = relay.0.far.lock().unwrap().clone();
        relay.carry_back(far);
        relay
    }

    fn carry_there(&self) {
        let mut fate = Fate::default();
        let mut bytes = [0; 65536];
        while let Ok((count, from)) = self.0.near.recv_from(&mut bytes) {
            *self.0.client.lock().unwrap() = Some(from);
            let far = self.0.far.lock().unwrap().clone();
            fate.meet(self, &bytes[..count], |datagram| {
                let _ = far.send_to(datagram, self.0.target);
            });
        }
    }

    fn carry_back(&self, far: Arc<UdpSocket>) {
        let relay = self.clone();
        std::thread::spawn(move || {
            let mut fate = Fate::default();
            let mut bytes = [0; 65536];
            while let Ok((count, _)) = far.recv_from(&mut bytes) {
                if !Arc::ptr_eq(&far, &relay.0.far.lock().unwrap()) {
                    return;
                }
                fate.meet(&relay, &bytes[..count], |datagram| {
                    if let Some(client) = *relay.0.client.lock().unwrap() {
                        let _ = relay.0.near.send_to(datagram, client);
                    }
                });
            }
        });
    }

    /// From now on, in each direction, one datagram in `loses` is lost, one in `doubles` arrives twice, and
    /// one in `delays` arrives after the next.
    pub fn misbehave(&self, loses: u64, doubles: u64, delays: u64) {
        self.0.loses.store(loses, SeqCst);
        self.0.doubles.store(doubles, SeqCst);
        self.0.delays.store(delays, SeqCst);
    }

    /// Lets nothing pass any more, or everything again.
    pub fn stop(&self, stopped: bool) {
        self.0.stopped.store(stopped, SeqCst);
    }

    /// From now on, the target sees another address.
    pub fn forget(&self) {
        let far = Arc::new(unbound());
        *self.0.far.lock().unwrap() = far.clone();
        self.carry_back(far);
    }
}

#[derive(Default)]
struct Fate {
    seen: u64,
    held: Option<Vec<u8>>,
}

impl Fate {
    fn meet(&mut self, relay: &Relay, datagram: &[u8], mut send: impl FnMut(&[u8])) {
        let state = &relay.0;
        if state.stopped.load(SeqCst) {
            return;
        }
        self.seen += 1;
        // The two are not in step with each other, nor with groups of parity.
        let strikes = |every: u64| every > 0 && (self.seen * 7919 % 104_729).is_multiple_of(every);
        if strikes(state.loses.load(SeqCst)) {
            return;
        }
        if strikes(state.delays.load(SeqCst)) && self.held.is_none() {
            self.held = Some(datagram.to_vec());
            return;
        }
        send(datagram);
        if strikes(state.doubles.load(SeqCst)) {
            send(datagram);
        }
        if let Some(held) = self.held.take() {
            send(&held);
        }
    }
}

fn unbound() -> UdpSocket {
    UdpSocket::bind(("127.0.0.1", 0)).unwrap()
}
