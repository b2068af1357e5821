//! Polls the gateway again and again, until Ctrl-C, which has its usual effect, or until nobody reads the
//! output.

use super::rates::{TunnelRate, rates};
use super::{ask, fail, text};
use causeway_control::{ControlError, Status};
use causeway_host::columns::Width;
use causeway_host::say;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Serialize;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

struct Watch {
    form: Form,
    width: Width,
    every: Duration,
    /// The last poll, if the gateway answered.
    last: Option<(Status, Instant)>,
    /// Whether it has been reported that the gateway does not answer.
    gone: bool,
}

/// How polls are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// One object for each line.
    Json,
    /// Each poll replaces the last one on the screen.
    Screen,
    /// One block after the other.
    Blocks,
}

/// A poll as JSON: what `--json` shows, when the poll was, and what has crossed since the last one.
#[derive(Serialize)]
struct Line<'a> {
    unix_seconds: f64,
    #[serde(flatten)]
    status: &'a Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    rates: Option<&'a [TunnelRate]>,
}

pub fn watch(every: Duration, json: bool, width: Width) -> ExitCode {
    let form = match json {
        true => Form::Json,
        false if std::io::stdout().is_terminal() => Form::Screen,
        false => Form::Blocks,
    };
    let mut watch = Watch {
        form,
        width,
        every,
        last: None,
        gone: false,
    };
    let mut next = Instant::now();
    loop {
        let shown = match ask() {
            Ok(status) => watch.on_status(status),
            // Another poll would not be understood either.
            Err(error @ (ControlError::Answer(_) | ControlError::Refused(_))) => Err(fail(error)),
            Err(error) => watch.on_silence(&error),
        };
        // Polls that took longer than their turn are not made up for.
        next = (next + every).max(Instant::now());
        if let Err(code) = shown.and_then(|()| wait(next)) {
            return code;
        }
    }
}

impl Watch {
    fn on_status(&mut self, status: Status) -> Result<(), ExitCode> {
        if std::mem::take(&mut self.gone) {
            self.say("the gateway is back")?;
        }
        let now = Instant::now();
        let last = self.last.as_ref();
        let rates = last.and_then(|(before, at)| rates(before, &status, now - *at));
        self.show(&status, rates.as_deref())?;
        self.last = Some((status, now));
        Ok(())
    }

    /// Reports once that the gateway is silent: that it still is at the next poll is not news.
    fn on_silence(&mut self, error: &ControlError) -> Result<(), ExitCode> {
        if std::mem::replace(&mut self.gone, true) {
            return Ok(());
        }
        let before = match self.last.take() {
            Some(_) => "the gateway has gone away: ",
            None => "",
        };
        self.say(&format!("{before}{error}; trying again every {:?}", self.every))
    }

    fn show(&self, status: &Status, rates: Option<&[TunnelRate]>) -> Result<(), ExitCode> {
        match self.form {
            Form::Json => {
                let unix_seconds = SystemTime::now().duration_since(UNIX_EPOCH);
                let line = Line {
                    unix_seconds: unix_seconds.unwrap_or_default().as_secs_f64(),
                    status,
                    rates,
                };
                say::output(serde_json::to_string(&line).map_err(fail)?)
            }
            Form::Screen => {
                let text = text::readable(status, rates, self.width);
                say::clear()?;
                say::output(text.trim_end())
            }
            // An empty line ends a block.
            Form::Blocks => say::output(text::readable(status, rates, self.width)),
        }
    }

    /// JSON is read by programs: anything else is printed elsewhere.
    fn say(&self, text: &str) -> Result<(), ExitCode> {
        if self.form == Form::Json {
            say::error(format_args!("causeway status: {text}"));
            return Ok(());
        }
        say::output(format_args!("causeway status: {text}\n"))
    }
}

/// Waits until `until`, or until nobody would read the next output. A pipe reports that as an error, which
/// poll(2) reports unasked.
fn wait(until: Instant) -> Result<(), ExitCode> {
    let stdout = std::io::stdout();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let mut files = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
        match poll(&mut files, left) {
            Ok(0) if Instant::now() >= until => return Ok(()),
            Ok(0) | Err(nix::errno::Errno::EINTR) => {}
            Ok(_) => return Err(ExitCode::from(say::READER_GONE)),
            Err(error) => return Err(fail(error)),
        }
    }
}
