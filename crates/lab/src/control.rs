//! The connection between a lab's supervisor and other processes: one line of JSON each way over a socket in
//! its state directory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::wan::{LinkChange, LinkSpec, LinkStats};

/// What a supervisor can be asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Change the link between two sites.
    Link {
        /// The two sites.
        between: [String; 2],
        /// What to change.
        change: LinkChange,
    },
    /// Report what each link has carried and lost.
    Stats,
    /// End the lab.
    Down,
}

/// What the lab answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The link as it is now.
    Link(LinkSpec),
    /// Two entries for each link, one for each direction.
    Stats(Vec<LinkStats>),
    /// The lab is about to end.
    Down,
    /// The request made no sense; the text says why.
    Refused(String),
}

/// Puts a request to the supervisor of the lab with this state directory.
pub(crate) fn ask(dir: &Path, name: &str, request: &Request) -> Result<Answer, LabError> {
    let talk = || -> io::Result<Answer> {
        let mut stream = short_path(dir, |path| UnixStream::connect(path))?;
        stream.set_read_timeout(Some(ANSWER_DEADLINE))?;
        stream.write_all(&line(request)?)?;
        read_line(&stream)
    };
    match talk() {
        Ok(Answer::Refused(reason)) => Err(LabError::Refused {
            name: name.to_owned(),
            reason,
        }),
        Ok(answer) => Ok(answer),
        Err(source) => Err(LabError::State {
            step: "ask the supervisor at",
            path: dir.join(SOCKET),
            source,
        }),
    }
}

pub(crate) fn listen(dir: &Path) -> Result<UnixListener, LabError> {
    let listener = short_path(dir, |path| UnixListener::bind(path)).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    listener.map_err(|source| LabError::State {
        step: "listen at",
        path: dir.join(SOCKET),
        source,
    })
}

/// Serves one waiting client, if there is one; a client that sends nothing, or nonsense, only loses its own
/// connection.
pub(crate) fn serve_one(listener: &UnixListener, answer: impl FnOnce(Request) -> Answer) -> io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    stream.set_nonblocking(false)?;
    // Requests are one line long, and already in progress when a client connects.
    stream.set_read_timeout(Some(REQUEST_DEADLINE))?;
    stream.set_write_timeout(Some(REQUEST_DEADLINE))?;
    let answer = match read_line(&stream) {
        Ok(request) => answer(request),
        Err(error) => Answer::Refused(format!("not a request: {error}")),
    };
    stream.write_all(&line(&answer)?)
}

fn line<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn read_line<T: for<'a> Deserialize<'a>>(stream: &UnixStream) -> io::Result<T> {
    let mut text = String::new();
    BufReader::new(stream.take(LONGEST_LINE)).read_line(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// A socket's path is at most 107 bytes long; a descriptor of its directory makes any path short.
fn short_path<T>(dir: &Path, call: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let dir = File::open(dir)?;
    call(Path::new(&format!("/proc/self/fd/{}/{SOCKET}", dir.as_raw_fd())))
}

const SOCKET: &str = "control.sock";
const REQUEST_DEADLINE: Duration = Duration::from_secs(1);
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);
/// Statistics are some 300 bytes for each direction; 1 MB holds 1700 links.
const LONGEST_LINE: u64 = 1 << 20;
