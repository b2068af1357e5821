//! The holder's listener: an allocation's first node connects to it, proves that it belongs to the
//! allocation, and receives beats for as long as the holder keeps the allocation.

use super::hold::{BEATS, SECRET};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How long a connection may take to identify itself, and how many connections may be at that stage.
const SPEAKS_WITHIN: Duration = Duration::from_secs(10);
const MOST_STRANGERS: usize = 16;

/// The pause after a connection that could not be accepted, because too many files are open.
const ACCEPTS_AGAIN: Duration = Duration::from_millis(100);

/// What the listener hears from the allocation's first node.
pub enum Heard {
    /// The node has connected.
    Begun,
    /// The connection of the node has ended.
    Silent,
}

/// The program that the allocation runs on its first node. The secret is in no argument.
pub fn script(holder: SocketAddr, secret: &Secret) -> io::Result<String> {
    let own = std::env::current_exe()?;
    let own = causeway_host::quoted(Path::new(&own));
    let Secret { own: secret, proof } = secret;
    Ok(format!(
        "#!/bin/sh\n{SECRET}={secret}:{proof} exec {own} hold {holder}\n"
    ))
}

/// The secrets by which the allocation's first node and its holder recognize each other.
#[derive(Clone)]
pub struct Secret {
    /// The secret that the node shows.
    own: String,
    /// The answer of the holder: another program may get the holder's port once the holder is gone.
    proof: String,
}

impl Secret {
    /// Draws a new pair of secrets.
    ///
    /// # Errors
    /// The system provides no random numbers.
    pub fn new() -> io::Result<Secret> {
        Ok(Secret {
            own: random(16)?,
            proof: random(16)?,
        })
    }
}

/// Accepts connections of the allocation's first node. A stranger occupies a place for ten seconds.
pub fn accept(listener: &TcpListener, secret: &Secret, hear: impl Fn(Heard) + Clone + Send + 'static) {
    let strangers = Arc::new(());
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            thread::sleep(ACCEPTS_AGAIN);
            continue;
        };
        if Arc::strong_count(&strangers) > MOST_STRANGERS {
            continue;
        }
        let (secret, hear, stranger) = (secret.clone(), hear.clone(), Arc::clone(&strangers));
        let served = spawn("hold", move || {
            if knows(&stream, &secret.own) {
                drop(stranger);
                beat(stream, &secret.proof, &hear);
            }
        });
        if let Err(error) = served {
            causeway_host::say::error(format_args!("causeway holder: {error}"));
        }
    }
}

fn knows(stream: &TcpStream, secret: &str) -> bool {
    let until = Instant::now() + SPEAKS_WITHIN;
    let mut said = vec![0; secret.len() + 1];
    let mut stream = stream;
    let mut filled = 0;
    while filled < said.len() {
        let left = until.saturating_duration_since(Instant::now());
        // A timeout of zero is refused.
        let read = { stream.set_read_timeout(Some(left)) }.and_then(|()| stream.read(&mut said[filled..]));
        match read {
            Ok(read @ 1..) => filled += read,
            _ => return false,
        }
    }
    // The secret is compared as a whole, in constant time.
    let differ = said
        .iter()
        .zip(secret.as_bytes())
        .fold(0, |differ, (one, other)| differ | (one ^ other));
    differ == 0 && said.ends_with(b"\n")
}

/// Reports that the node has connected, and sends beats until the connection ends.
fn beat(mut stream: TcpStream, proof: &str, hear: &impl Fn(Heard)) {
    hear(Heard::Begun);
    let _ = stream.set_read_timeout(Some(BEATS));
    let mut byte = [0; 1];
    let mut next = stream.write_all(proof.as_bytes());
    while next.and_then(|()| stream.write_all(&[0])).is_ok() {
        next = Ok(());
        match stream.read(&mut byte) {
            Ok(0) => break,
            Err(error) if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                break;
            }
            _ => {}
        }
    }
    hear(Heard::Silent);
}

/// Returns this many random bytes, in hexadecimal.
pub fn random(bytes: usize) -> io::Result<String> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(body).map(drop)
}
