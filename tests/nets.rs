//! Networks of loopback, each for one test alone, whatever other test programs run at the same time.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Each holds a network, and tidies it up after this program.
static HELD: Mutex<Vec<(UdpSocket, Child)>> = Mutex::new(Vec::new());

/// Kills whoever listens in the network `$0` once standard input ends, which this program holds: a gateway
/// has sessions and processes of its own, and would outlive a test that was killed.
const TIDY_UP: &str = r#"
trap '' INT TERM HUP
read -r _
for _ in 1 2 3 4 5; do
    left=$(ss -Hltnp "src 127.$0.0.0/16" | grep -o 'pid=[0-9]*' | cut -d= -f2 | sort -u)
    [ -n "$left" ] || exit 0
    kill -9 $left
done
"#;

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
    // It holds the network, too, until that is tidy.
    let holds: OwnedFd = socket.try_clone().unwrap().into();
    let tidies = Command::new("sh")
        .args(["-c", TIDY_UP, &number.to_string()])
        .stdin(Stdio::piped())
        .stdout(holds)
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    held.push((socket, tidies.unwrap()));
    number
}
