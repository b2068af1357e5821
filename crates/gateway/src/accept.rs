//! Accepts connections from the listeners, and pauses when there is no descriptor left for more.

use crate::base::base;
use crate::commands::command_context;
use crate::gateway::Gateway;
use crate::site::Entrance;
use crate::sys::source::Listener;
use crate::sys::timers::Deadline;
use crate::telemetry::metrics;
use crate::telemetry::view;
use std::io::{self, ErrorKind};
use std::time::Duration;

/// Most connections that are accepted from a listener before others get their turn.
const ROUNDS: usize = 256;

/// How often the gateway checks whether commands can still find it.
const LOOK_AFTER_CONTROL: Duration = Duration::from_secs(10);

/// Pause after the process has run out of descriptors: long enough for some to be closed.
const PAUSE: Duration = Duration::from_millis(100);

impl Gateway {
    /// Accepts what waits at a listener.
    pub(crate) fn accept_from(&mut self, listener: Listener) {
        match listener {
            Listener::Lan(index) => self.accept_shims(index),
            Listener::Wan => self.accept_gateways(),
            Listener::Control => self.accept_commands(),
            Listener::Metrics => self.accept_scrapes(),
            Listener::Transparent => self.accept_transparent(),
        }
    }

    fn accept_shims(&mut self, index: usize) {
        for _ in 0..ROUNDS {
            match self.listeners.lan[index].accept() {
                Ok((socket, peer)) => self.site.accept(&mut base!(self), Entrance::Shim, socket, peer),
                Err(error) if concerns_one(&error) => {}
                Err(error) => return self.on_accept_error(&error),
            }
        }
        self.accept_after(Duration::ZERO);
    }

    fn accept_gateways(&mut self) {
        for _ in 0..ROUNDS {
            let Some(listener) = &self.listeners.wan else {
                return;
            };
            match listener.accept() {
                Ok((socket, peer)) => self.tunnels.connecting().accept(&mut self.driver, socket, peer),
                Err(error) if concerns_one(&error) => {}
                Err(error) => return self.on_accept_error(&error),
            }
        }
        self.accept_after(Duration::ZERO);
    }

    fn accept_commands(&mut self) {
        loop {
            match self.listeners.control.accept() {
                Ok((socket, _)) => self.commands.accept(&mut command_context!(self), socket),
                Err(error) if concerns_one(&error) => {}
                Err(error) => return self.on_accept_error(&error),
            }
        }
    }

    fn accept_scrapes(&mut self) {
        for _ in 0..metrics::AT_MOST {
            let Some(listener) = &self.listeners.metrics else {
                return;
            };
            match listener.accept() {
                Ok((socket, peer)) => self
                    .telemetry
                    .accept(&mut self.driver, &view!(self), socket, peer),
                Err(error) if concerns_one(&error) => {}
                Err(error) => return self.on_accept_error(&error),
            }
        }
        self.accept_after(Duration::ZERO);
    }

    fn accept_transparent(&mut self) {
        for _ in 0..ROUNDS {
            let Some(listener) = &self.listeners.transparent else {
                return;
            };
            if !self.site.has_room_for_handed() {
                self.driver.log.refuse(
                    "handed-over",
                    "the site's router",
                    "too many connections that the far site has not opened yet; others wait",
                );
                return self.accept_after(PAUSE);
            }
            match listener.accept() {
                Ok((socket, peer)) => self.site.accept(&mut base!(self), Entrance::Router, socket, peer),
                Err(error) if concerns_one(&error) => {}
                Err(error) => return self.on_accept_error(&error),
            }
        }
        self.accept_after(Duration::ZERO);
    }

    pub(crate) fn on_accept_deadline(&mut self) {
        self.listeners.pending = false;
        for index in 0..self.listeners.lan.len() {
            self.accept_shims(index);
        }
        self.accept_gateways();
        self.accept_commands();
        self.accept_scrapes();
        self.accept_transparent();
    }

    /// Makes sure that commands still find this gateway: they do so by a file that others may remove.
    pub(crate) fn look_after_control(&mut self) {
        let path = self.driver.config.control.clone();
        let registry = self.driver.poll.registry();
        match self.listeners.restore_control(&path, registry) {
            Ok(Some(place)) => {
                self.driver.say(format_args!(
                    "the socket for commands was gone; listening on {} for commands",
                    place.display()
                ));
                self.driver.config.control = place;
            }
            Ok(None) => {}
            Err(error) => self
                .driver
                .say(format_args!("listen for commands again: {error}")),
        }
        self.driver.set_deadline(LOOK_AFTER_CONTROL, Deadline::Control);
    }

    fn on_accept_error(&mut self, error: &io::Error) {
        if error.kind() != ErrorKind::WouldBlock {
            self.driver
                .log
                .refuse("accept", "a connection", format_args!("{error} (see ulimit -n)"));
            self.accept_after(PAUSE);
        }
    }

    /// Pauses accepting. One deadline serves all listeners: if each set its own, they would multiply at every
    /// strike.
    fn accept_after(&mut self, pause: Duration) {
        if !std::mem::replace(&mut self.listeners.pending, true) {
            self.driver.set_deadline(pause, Deadline::Accept);
        }
    }
}

/// Whether the error concerns only one connection, or came from a signal: the next connection in the queue
/// may be fine.
fn concerns_one(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn listeners_that_run_out_of_files_again_and_again_share_one_deadline() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("gateway.toml");
        let key = dir.path().join("grid.key");
        std::fs::write(&key, "0123456789abcdef").unwrap();
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        let text = format!(
            "[site]\nname = \"rennes\"\nsubnets = [\"127.0.0.0/8\"]\n[listen]\nlan = [\"127.0.0.1:1\"]\n\
             control = \"{}\"\n[grid]\nkey_file = \"grid.key\"\n",
            dir.path().join("control").display()
        );
        let mut config = Config::parse(&text, &file).unwrap();
        config.lan[0].set_port(0);
        let mut gateway = Gateway::new(config).unwrap();
        let later = gateway.driver.now + Duration::from_secs(60);
        for _ in 0..3 {
            for _ in 0..3 {
                gateway.on_accept_error(&io::Error::from_raw_os_error(libc::EMFILE));
                gateway.accept_after(Duration::ZERO);
            }
            assert_eq!(gateway.driver.timers.pop_due(later), Some(Deadline::Accept));
            assert_eq!(gateway.driver.timers.pop_due(later), None);
            gateway.on_accept_deadline();
        }
    }
}
