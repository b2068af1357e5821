//! What the gateway tells to Prometheus: `figures` says what, `exposition` in which format, `http` what a request asks
//! for, and this file serves it, in the loop, to few readers that each have little time.
//!
//! By hand: one path, one method, one connection for each answer. An HTTP library would bring its own loop, or be larger
//! than these files.

mod exposition;
mod figures;
mod http;

use crate::gateway::Gateway;
use crate::sys::timers::Deadline;
use crate::sys::token::Class;
use http::Wanted;
use mio::Interest;
use mio::net::TcpStream;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

/// Connections at a time. One more ends the oldest: those that are read are through within a millisecond, and must not
/// wait behind others that say nothing.
pub(crate) const AT_MOST: usize = 16;

/// From connecting to having read the answer, on one host.
const DEADLINE: Duration = Duration::from_secs(5);

/// A scraper's request has some hundred bytes.
const REQUEST_BYTES: usize = 8 * 1024;

/// What a client may go on sending after its request.
const IGNORED_BYTES: usize = 64 * 1024;

pub(crate) struct Scrape {
    socket: TcpStream,
    peer: SocketAddr,
    born: u64,
    stage: Stage,
}

enum Stage {
    /// What has come of the request.
    Reading(Vec<u8>),
    /// The answer, and how much of it the kernel has taken.
    Answering(Vec<u8>, usize),
    /// All is said, and so much may still be read and forgotten: closed with unread input, a socket sends a reset, which
    /// may overtake the answer.
    Ending(usize),
}

/// How far a connection got with what the kernel has.
enum Step {
    Waits,
    Asks(Wanted),
    Done,
}

impl Gateway {
    pub(crate) fn on_scrape_connection(&mut self, mut socket: TcpStream, peer: SocketAddr) {
        if self.telemetry.scrapes.len() >= AT_MOST {
            let oldest = self
                .telemetry
                .scrapes
                .iter()
                .min_by_key(|(_, scrape)| scrape.born);
            if let Some((oldest, _)) = oldest {
                self.refuse_scrape(oldest, "too many connections; the oldest ends");
            }
        }
        let key = self.telemetry.scrapes.vacant_key();
        let interest = Interest::READABLE | Interest::WRITABLE;
        let token = Class::Scrape.token(key);
        if let Err(error) = self.driver.registry().register(&mut socket, token, interest) {
            return self.driver.log.say(format_args!("metrics: {error}"));
        }
        let born = self.driver.birth();
        self.telemetry.scrapes.insert(Scrape {
            socket,
            peer,
            born,
            stage: Stage::Reading(Vec::new()),
        });
        self.driver.timers.set(DEADLINE, Deadline::Scrape(key, born));
        self.on_scrape(key);
    }

    pub(crate) fn on_scrape(&mut self, key: usize) {
        while let Some(scrape) = self.telemetry.scrapes.get_mut(key) {
            match scrape.advance() {
                Ok(Step::Waits) => return,
                Ok(Step::Asks(wanted)) => {
                    if let Wanted::Nothing(why) = wanted {
                        self.driver.log.refuse("metrics", scrape.peer.ip(), why);
                    }
                    let answer = http::answer(&wanted, || self.exposition());
                    if let Some(scrape) = self.telemetry.scrapes.get_mut(key) {
                        scrape.stage = Stage::Answering(answer, 0);
                    }
                }
                Ok(Step::Done) | Err(_) => drop(self.telemetry.scrapes.try_remove(key)),
            }
        }
    }

    pub(crate) fn on_scrape_deadline(&mut self, key: usize, born: u64) {
        let late = self
            .telemetry
            .scrapes
            .get(key)
            .filter(|scrape| scrape.born == born);
        match late.map(|scrape| &scrape.stage) {
            Some(Stage::Reading(_)) => self.refuse_scrape(key, "no complete request in time"),
            Some(Stage::Answering(..)) => self.refuse_scrape(key, "it does not read its answer"),
            Some(Stage::Ending(_)) => drop(self.telemetry.scrapes.try_remove(key)),
            None => {}
        }
    }

    fn refuse_scrape(&mut self, key: usize, why: &str) {
        if let Some(scrape) = self.telemetry.scrapes.try_remove(key) {
            self.driver.log.refuse("metrics", scrape.peer.ip(), why);
        }
    }
}

impl Scrape {
    fn advance(&mut self) -> io::Result<Step> {
        loop {
            match self.advance_once() {
                Ok(Some(step)) => return Ok(step),
                Ok(None) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Step::Waits),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// One system call; nothing when another may do more.
    fn advance_once(&mut self) -> io::Result<Option<Step>> {
        match &mut self.stage {
            Stage::Reading(request) => {
                let mut bytes = [0; REQUEST_BYTES];
                let count = self.socket.read(&mut bytes[..REQUEST_BYTES - request.len()])?;
                request.extend_from_slice(&bytes[..count]);
                Ok(match http::wanted(request) {
                    Some(wanted) => Some(Step::Asks(wanted)),
                    None if request.len() == REQUEST_BYTES => {
                        Some(Step::Asks(Wanted::Nothing("the request is longer than 8 KiB")))
                    }
                    None if count == 0 => Some(Step::Done),
                    None => None,
                })
            }
            Stage::Answering(answer, written) => {
                *written += self.socket.write(&answer[*written..])?;
                if *written == answer.len() {
                    self.socket.shutdown(std::net::Shutdown::Write)?;
                    self.stage = Stage::Ending(IGNORED_BYTES);
                }
                Ok(None)
            }
            Stage::Ending(left) => {
                let mut bytes = [0; REQUEST_BYTES];
                let count = self.socket.read(&mut bytes)?;
                *left = left.saturating_sub(count);
                Ok((count == 0 || *left == 0).then_some(Step::Done))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::net::TcpStream as Client;
    use std::os::unix::fs::PermissionsExt;

    /// A gateway that nobody runs, with one client whose connection it has taken.
    fn gateway(directory: &std::path::Path) -> (Gateway, Client) {
        let key = directory.join("grid.key");
        std::fs::write(&key, "0123456789abcdef").unwrap();
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        let text = format!(
            "[site]\nname = \"rennes\"\nsubnets = [\"127.0.0.0/8\"]\n[listen]\nlan = [\"127.0.0.1:1\"]\n\
             metrics = \"127.0.0.1:1\"\ncontrol = \"{}\"\n[grid]\nkey_file = \"grid.key\"\n",
            directory.join("control").display()
        );
        let mut config = Config::parse(&text, &directory.join("gateway.toml")).unwrap();
        config.lan[0].set_port(0);
        config.metrics = Some(([127, 0, 0, 1], 0).into());
        let mut gateway = Gateway::new(config).unwrap();
        let client = connect(&mut gateway);
        (gateway, client)
    }

    fn connect(gateway: &mut Gateway) -> Client {
        let address = gateway.listeners.metrics.as_ref().unwrap().local_addr().unwrap();
        // Back from connecting, it stands in the listener's queue.
        let client = Client::connect(address).unwrap();
        client.set_read_timeout(Some(DEADLINE)).unwrap();
        gateway.accept_scrapes();
        client
    }

    fn strike(gateway: &mut Gateway) {
        let later = gateway.driver.now + Duration::from_secs(60);
        while let Some(deadline) = gateway.driver.timers.pop_due(later) {
            if let Deadline::Scrape(key, born) = deadline {
                gateway.on_scrape_deadline(key, born);
            }
        }
    }

    #[test]
    fn a_client_that_says_nothing_is_closed_at_the_deadline_and_counted() {
        let directory = tempfile::tempdir().unwrap();
        let (mut gateway, mut client) = gateway(directory.path());
        assert_eq!(gateway.telemetry.scrapes.len(), 1);
        strike(&mut gateway);
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
        assert!(gateway.telemetry.scrapes.is_empty());
        assert_eq!(gateway.driver.log.refused()["metrics"], 1);
    }

    #[test]
    fn a_client_that_does_not_read_its_answer_waits_for_nobody_and_is_closed_at_the_deadline() {
        let directory = tempfile::tempdir().unwrap();
        let (mut gateway, client) = gateway(directory.path());
        let (key, _) = gateway.telemetry.scrapes.iter().next().unwrap();
        // More than any socket buffers.
        gateway.telemetry.scrapes[key].stage = Stage::Answering(vec![0; 64 << 20], 0);
        gateway.on_scrape(key);
        assert!(matches!(gateway.telemetry.scrapes[key].stage, Stage::Answering(_, written) if written > 0));
        strike(&mut gateway);
        assert!(gateway.telemetry.scrapes.is_empty());
        drop(client);
    }

    #[test]
    fn one_connection_too_many_ends_the_oldest() {
        let directory = tempfile::tempdir().unwrap();
        let (mut gateway, mut first) = gateway(directory.path());
        let mut others: Vec<Client> = (0..AT_MOST).map(|_| connect(&mut gateway)).collect();
        assert_eq!(gateway.telemetry.scrapes.len(), AT_MOST);
        assert_eq!(first.read(&mut [0]).unwrap(), 0);
        others[0].set_nonblocking(true).unwrap();
        let open = others[0].read(&mut [0]).unwrap_err();
        assert_eq!(open.kind(), ErrorKind::WouldBlock);
    }
}
