//! Whether a program and its configuration could go on from here. This is checked in a thread, because if a
//! file system hangs, the streams of the site must not.

use super::{HandOverError, Successor};
use crate::config::Config;
use crate::driver::Driver;
use crate::sys::source::Class;
use causeway_control::private;
use mio::Interest;
use mio::net::UnixStream;
use nix::errno::Errno;
use std::io;
use std::sync::mpsc::{Receiver, channel};

/// A successor that is being checked.
pub(crate) struct Vetting {
    successor: Successor,
    /// Closed when the thread ends, which wakes the loop.
    _done: UnixStream,
    answer: Receiver<Result<Config, HandOverError>>,
}

impl Vetting {
    /// Begins the check; its end reaches the loop under [`Class::Vetting`].
    pub(super) fn begin(driver: &Driver, successor: Successor) -> Result<Vetting, HandOverError> {
        let failed = |error: io::Error| {
            let errno = error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
            HandOverError::System("look at it in a thread", errno)
        };
        let (near, far) = std::os::unix::net::UnixStream::pair().map_err(failed)?;
        near.set_nonblocking(true).map_err(failed)?;
        let mut done = UnixStream::from_std(near);
        let registered = driver
            .registry()
            .register(&mut done, Class::Vetting.token(0), Interest::READABLE);
        registered.map_err(failed)?;
        let (sender, answer) = channel();
        let looked_at = successor.clone();
        let thread = std::thread::Builder::new().name("vetting".to_owned());
        let started = thread.spawn(move || {
            // A gateway that stops meanwhile does not receive it.
            let _ = sender.send(load(&looked_at));
            drop(far);
        });
        started.map_err(failed)?;
        Ok(Vetting {
            successor,
            _done: done,
            answer,
        })
    }

    /// The successor, if it may have the gateway that runs with this configuration.
    pub(super) fn end(self, running: &Config) -> Result<Successor, HandOverError> {
        let lost = |_| HandOverError::System("look at it in a thread", Errno::ECHILD);
        let planned = self.answer.try_recv().map_err(lost)??;
        match running.lasting_difference(&planned) {
            None => Ok(self.successor),
            Some(key) => Err(HandOverError::Changed {
                file: self.successor.config.display().to_string(),
                key,
            }),
        }
    }
}

fn load(Successor { program, config }: &Successor) -> Result<Config, HandOverError> {
    private::check_program(program).map_err(|error| HandOverError::Program(program.clone(), error))?;
    Ok(Config::load(config)?)
}
