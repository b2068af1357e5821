//! Whether hosts can dial each other: one listens for a minute, and sends a word that was agreed on; the
//! others dial it and compare.

use causeway_service::proxy::Proxy;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// How long a host listens, and how long another one waits for its word.
const LISTENS: Duration = Duration::from_secs(60);
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);

/// How often the listener checks whether somebody has connected.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Letters in a word.
pub const WORD: usize = 16;

/// Sends the word to everybody who dials one of these ports, until `is_over`.
///
/// # Errors
/// A port is taken.
pub fn listen(ports: &[u16], word: &str, ready: impl FnOnce(), is_over: impl Fn() -> bool) -> io::Result<()> {
    let bind = |port: &u16| {
        let any = SocketAddr::from(([0, 0, 0, 0], *port));
        let listener = TcpListener::bind(any)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    let listeners = ports.iter().map(bind).collect::<io::Result<Vec<TcpListener>>>()?;
    ready();
    answer(&listeners, word, is_over);
    Ok(())
}

fn answer(listeners: &[TcpListener], word: &str, is_over: impl Fn() -> bool) {
    let until = Instant::now() + LISTENS;
    while Instant::now() < until && !is_over() {
        for listener in listeners {
            if let Ok((mut caller, _)) = listener.accept() {
                // A caller that is already gone needs no word.
                let _ = caller.write_all(word.as_bytes());
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Dials a host that is to send this word, through a web proxy if there is one.
///
/// # Errors
/// The address cannot be reached, or whatever listens there sends something else.
pub fn dial(ip: IpAddr, port: u16, word: &str, proxy: Option<&Proxy>) -> io::Result<()> {
    let address = SocketAddr::new(ip, port);
    let mut stream = match proxy {
        Some(proxy) => proxy.connect(&address.to_string(), ANSWERS_WITHIN)?,
        None => TcpStream::connect_timeout(&address, ANSWERS_WITHIN)?,
    };
    stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
    let mut said = [0; WORD];
    stream.read_exact(&mut said)?;
    match said == word.as_bytes() {
        true => Ok(()),
        false => Err(io::Error::other(format!("another one listens at {address}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_host_is_reached_by_who_hears_its_word_there() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let over = AtomicBool::new(false);
        let here = IpAddr::from([127, 0, 0, 1]);
        std::thread::scope(|scope| {
            let over = &over;
            scope.spawn(move || {
                let is_over = || over.load(Ordering::Relaxed);
                answer(&[listener], "0123456789abcdef", is_over);
            });
            let reached = dial(here, port, "0123456789abcdef", None).is_ok();
            let another = dial(here, port, "another one's...", None).is_ok();
            over.store(true, Ordering::Relaxed);
            assert!(reached);
            assert!(!another, "another grid's host listens there");
        });
        let nobody = dial(here, port, "0123456789abcdef", None);
        assert!(nobody.is_err(), "nobody listens");
    }
}
