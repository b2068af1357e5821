//! While a lab runs, waits for requests, signals and the end of a command.

use std::os::fd::AsFd;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use crate::control::{self, Answer, Request};
use crate::enter::NodeChild;
use crate::error::LabError;
use crate::lab::Lab;
use crate::signals::{Arrived, wait};

/// Why [`Lab::serve`] returned.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// The command ended.
    Child(ExitStatus),
    /// Somebody asked for the end of the lab.
    Down,
    /// This process received a signal that would have ended it.
    Signal(Arrived),
    /// The time is up.
    Timeout,
}

impl Lab {
    /// Serves requests until `child` ends, somebody asks for the lab's end, an ending signal arrives or
    /// `timeout` is over. Call it again after a signal or a timeout to go on.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub fn serve(
        &mut self,
        child: Option<&mut NodeChild>,
        timeout: Option<Duration>,
    ) -> Result<Ended, LabError> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut child = child;
        loop {
            if let Some(child) = child.as_deref_mut()
                && let Some(status) = child
                    .try_wait()
                    .map_err(LabError::kernel("wait for the command"))?
            {
                return Ok(Ended::Child(status));
            }
            if let Some(signal) = self.signals().next() {
                return Ok(Ended::Signal(signal));
            }
            let mut down = false;
            let _ = control::serve_one(self.listener(), |request| {
                down = request == Request::Down;
                self.answer(request)
            });
            if down {
                return Ok(Ended::Down);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(Ended::Timeout);
            }
            let mut fds = vec![self.listener().as_fd(), self.signals().reader.as_fd()];
            fds.extend(child.as_deref().map(NodeChild::handle));
            wait(&fds, deadline)?;
        }
    }

    /// Returns a signal that would have ended this process, if one has arrived.
    pub fn poll_signal(&self) -> Option<Arrived> {
        self.signals().next()
    }

    fn answer(&self, request: Request) -> Answer {
        match request {
            Request::Link {
                between: [a, b],
                change,
            } => match self.change_link(&a, &b, &change) {
                Ok(spec) => Answer::Link(spec),
                Err(error) => Answer::Refused(chain(&error)),
            },
            Request::Stats => Answer::Stats(self.link_stats()),
            Request::Down => Answer::Down,
        }
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text += &format!(": {source}");
        next = source.source();
    }
    text
}
