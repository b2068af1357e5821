//! Networks of loopback, each for one test alone, whatever other test programs run at the same time.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};

/// Each holds a network for as long as this program runs.
static HELD: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());

/// The second byte of a network 127.x.0.0/16 that neither another test nor another run of this program has:
/// a socket at its last address says so.
pub fn own() -> u8 {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let first = std::process::id() as u8;
    let all = (0..=255)
        .map(|number: u8| first.wrapping_add(number))
        .filter(|number| *number > 0);
    let mut sockets = all.map(|number| {
        (
            number,
            UdpSocket::bind(SocketAddr::from(([127, number, 255, 254], 7000))),
        )
    });
    let (number, socket) = sockets
        .find_map(|(number, socket)| Some((number, socket.ok()?)))
        .unwrap();
    held.push(socket);
    number
}
