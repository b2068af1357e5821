//! What the gateway tells Prometheus: `figures` says what, `exposition` in which format, `http` what a
//! request asks for, and this file serves it, in the loop, to a few readers, each of which has little time.
//!
//! Written by hand, because it needs only one path, one method, and one connection for each answer. An HTTP
//! library would bring its own loop, or be larger than these files.

mod exposition;
mod figures;
mod http;
pub(crate) mod scrape;

use crate::driver::Driver;
use crate::sys::source::Class;
use crate::sys::timers::TelemetryDeadline;
use crate::telemetry::{Telemetry, View};
use http::Wanted;
use mio::Interest;
use mio::net::TcpStream;
use scrape::{Scrape, Stage, Step};
use std::net::SocketAddr;
use std::time::Duration;

/// Most connections at a time. With one more, the oldest ends: readers that read finish within a millisecond,
/// and must not wait behind others that send nothing.
pub(crate) const AT_MOST: usize = 16;

/// Longest time from connecting to having read the answer, both on one host.
const DEADLINE: Duration = Duration::from_secs(5);

impl Telemetry {
    /// Accepts a connection of a reader.
    pub(crate) fn accept(
        &mut self,
        driver: &mut Driver,
        view: &View<'_>,
        mut socket: TcpStream,
        peer: SocketAddr,
    ) {
        if self.scrapes.len() >= AT_MOST {
            let oldest = self.scrapes.iter().min_by_key(|(_, scrape)| scrape.generation);
            if let Some((oldest, _)) = oldest {
                self.refuse_scrape(driver, oldest, "too many connections; the oldest ends");
            }
        }
        let key = self.scrapes.vacant_key();
        let interest = Interest::READABLE | Interest::WRITABLE;
        let token = Class::Scrape.token(key);
        if let Err(error) = driver.registry().register(&mut socket, token, interest) {
            return driver.say(format_args!("metrics: {error}"));
        }
        let generation = driver.next_generation();
        self.scrapes.insert(Scrape {
            socket,
            peer,
            generation,
            stage: Stage::Reading(Vec::new()),
        });
        driver.set_deadline(DEADLINE, TelemetryDeadline::Scrape(key, generation));
        self.on_ready(driver, view, key);
    }

    /// Goes on with the connection of a reader.
    pub(crate) fn on_ready(&mut self, driver: &mut Driver, view: &View<'_>, key: usize) {
        while let Some(scrape) = self.scrapes.get_mut(key) {
            match scrape.advance() {
                Ok(Step::Waits) => return,
                Ok(Step::Asks(wanted)) => {
                    if let Wanted::Nothing(why) = wanted {
                        driver.log.refuse("metrics", scrape.peer.ip(), why);
                    }
                    let answer = http::answer(&wanted, || view.exposition(driver));
                    if let Some(scrape) = self.scrapes.get_mut(key) {
                        scrape.stage = Stage::Answering(answer, 0);
                    }
                }
                Ok(Step::Done) | Err(_) => drop(self.scrapes.try_remove(key)),
            }
        }
    }

    /// Ends the connection of a reader that has not sent its request, or not read the answer, in time.
    pub(crate) fn on_deadline(&mut self, driver: &mut Driver, deadline: TelemetryDeadline) {
        let TelemetryDeadline::Scrape(key, generation) = deadline;
        let late = self
            .scrapes
            .get(key)
            .filter(|scrape| scrape.generation == generation);
        match late.map(|scrape| &scrape.stage) {
            Some(Stage::Reading(_)) => self.refuse_scrape(driver, key, "no complete request in time"),
            Some(Stage::Answering(..)) => self.refuse_scrape(driver, key, "it does not read its answer"),
            Some(Stage::Ending(_)) => drop(self.scrapes.try_remove(key)),
            None => {}
        }
    }

    fn refuse_scrape(&mut self, driver: &mut Driver, key: usize, why: &str) {
        if let Some(scrape) = self.scrapes.try_remove(key) {
            driver.log.refuse("metrics", scrape.peer.ip(), why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gateway;
    use crate::config::Config;
    use crate::sys::source::Listener;
    use crate::sys::timers::Deadline;
    use crate::telemetry::view;
    use std::io::{ErrorKind, Read};
    use std::net::TcpStream as Client;
    use std::os::unix::fs::PermissionsExt;

    /// A gateway that nobody runs, with one client whose connection it has accepted.
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
        // When connect returns, the connection is in the listener's queue.
        let client = Client::connect(address).unwrap();
        client.set_read_timeout(Some(DEADLINE)).unwrap();
        gateway.accept_from(Listener::Metrics);
        client
    }

    fn strike(gateway: &mut Gateway) {
        let later = gateway.driver.now + Duration::from_secs(60);
        while let Some(deadline) = gateway.driver.timers.pop_due(later) {
            if let Deadline::Telemetry(deadline) = deadline {
                gateway.telemetry.on_deadline(&mut gateway.driver, deadline);
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
        gateway
            .telemetry
            .on_ready(&mut gateway.driver, &view!(gateway), key);
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
