//! Frames between `causeway agent` and `causeway node-exec`, end to end through gateways and ssh.
//!
//! `[version u8][kind u8][length u32, big endian][payload]`. This module knows no sockets, only readers and
//! writers.
//!
//! node-exec opens with `Hello`, and the agent answers with `Request`; then the agent sends `Stdin` and
//! `StdinEnd`, and node-exec sends `Credit`, `Stdout` and `Stderr`; `Exit` or `Error` ends it. An agent that
//! is ended in a hurry says so in its last frame. `Interrupt` may come at any time. The agent sends at most
//! [`STDIN_WINDOW`] bytes of standard input that no `Credit` has given back, and up to [`MOST_STDIN`] if they
//! come back fast: so node-exec never stops reading, and sees the end of its input, which is the order to
//! kill, even if the command never reads.

use super::text::Text;
use causeway_control::spawned::{FRAME_ERROR, FRAME_VERSION};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// First byte of every frame.
pub const VERSION: u8 = FRAME_VERSION;

/// Longest payload with a program's data: one read of a pipe yields no more.
pub const MAX_DATA: usize = 64 * 1024;

/// Longest request: a grid map of [`causeway_wire::grid::MAX_BYTES`] and command lines with long host lists
/// fit into it.
const MAX_REQUEST: usize = 4 * 1024 * 1024;

/// Longest message about what was started: a text of [`causeway_control::audit::MAX_TEXT`] bytes, each of
/// which JSON may write as six.
const MAX_STARTED: usize = 8 * 1024;

/// Longest message to or from a holder: an allocation of [`causeway_batch::MAX_NODES`] nodes.
const MAX_BATCH: usize = 2 * 1024 * 1024;

/// Most bytes that a shell's start-up files may print before the first frame; if none comes, they are shown.
const MOST_NOISE: usize = 64 * 1024;
const SHOWN_NOISE: usize = 80;

/// Most bytes of standard input in flight, at first. They may grow to [`MOST_STDIN`], which a link of 1
/// Gbit/s carries in 130 ms.
pub const STDIN_WINDOW: usize = 256 * 1024;
/// See [`STDIN_WINDOW`].
pub const MOST_STDIN: usize = 16 * 1024 * 1024;

/// A command that the node must run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The command line for the user's shell, as ssh would pass it.
    pub command: Text,
    /// Variables that replace those of the login.
    pub environment: Vec<(String, Text)>,
    /// Directories that precede those of the login's `PATH`.
    pub path: Vec<Text>,
    /// Whether the command is the site's own part of a job, which finds the allocation as a script in it
    /// would. If not, it is a launcher's daemon, which must not use the allocation as its own.
    #[serde(default)]
    pub is_of_site: bool,
}

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// node-exec is running.
    Hello,
    /// What node-exec must do.
    Request(Box<Request>),
    /// Bytes for the command's standard input.
    Stdin(Vec<u8>),
    /// The end of standard input.
    StdinEnd,
    /// The number of bytes of standard input that the command has read.
    Credit(u32),
    /// Bytes from the command's standard output.
    Stdout(Vec<u8>),
    /// Bytes from the command's standard error.
    Stderr(Vec<u8>),
    /// The command has ended with this status, as shells count it (128 + signal); nothing of it is running
    /// any more.
    Exit(u8),
    /// The command could not be started: one sentence for the user.
    Error(String),
    /// The job has already been asked to end, and the rest of it hangs. The end of the input follows.
    Hurry,
    /// The command must end as if Ctrl-C had been pressed at its terminal.
    Interrupt,
    /// `start-node` is still running, and so is the gateway that started it: this renews node-exec's lease.
    Alive,
    /// A message between `causeway run` and the holder of an allocation, as JSON.
    Batch(Vec<u8>),
    /// What has been started here. The frame is for `start-node` alone, which does not pass it on.
    Started(Started),
}

/// What runs on a node, for the audit of its site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// The process from which all the others descend.
    pub pid: u32,
    /// The beginning of what the user's shell was given.
    pub command: String,
}

/// Why a stream yields no frame.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Reading failed, or the stream ended inside a frame.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The frame has another version, or this is some text that is not a frame at all.
    #[error(
        "unexpected output {0:?} (does a shell start-up file print something, or is another version of causeway \
         installed there?)"
    )]
    Version(String),
    /// This version does not know the kind.
    #[error("frame kind {0} is not known")]
    Kind(u8),
    /// The frame is longer than its kind allows.
    #[error("frame of kind {0} claims {1} bytes")]
    TooLong(u8, u32),
    /// The payload does not fit the kind.
    #[error("frame of kind {0} is damaged")]
    Payload(u8),
}

impl Frame {
    fn kind(&self) -> u8 {
        match self {
            Frame::Hello => 1,
            Frame::Request(_) => 2,
            Frame::Stdin(_) => 3,
            Frame::StdinEnd => 4,
            Frame::Credit(_) => 5,
            Frame::Stdout(_) => 6,
            Frame::Stderr(_) => 7,
            Frame::Exit(_) => 8,
            Frame::Error(_) => FRAME_ERROR,
            Frame::Hurry => 10,
            Frame::Started(_) => 11,
            Frame::Interrupt => 12,
            Frame::Alive => 13,
            Frame::Batch(_) => 14,
        }
    }

    /// Writes the frame in one call: under a lock, frames of several threads do not mix.
    ///
    /// # Errors
    /// Those of the writer; `InvalidInput` if the payload exceeds its limit.
    pub fn write(&self, writer: &mut impl Write) -> io::Result<()> {
        let payload = match self {
            Frame::Hello | Frame::StdinEnd | Frame::Hurry | Frame::Interrupt | Frame::Alive => Vec::new(),
            Frame::Request(request) => serde_json::to_vec(request)?,
            Frame::Started(started) => serde_json::to_vec(started)?,
            Frame::Stdin(data) | Frame::Stdout(data) | Frame::Stderr(data) | Frame::Batch(data) => {
                data.clone()
            }
            Frame::Credit(bytes) => bytes.to_be_bytes().to_vec(),
            Frame::Exit(status) => vec![*status],
            Frame::Error(text) => text.as_bytes()[..text.floor_char_boundary(MAX_DATA)].to_vec(),
        };
        if limit(self.kind()).is_none_or(|limit| payload.len() > limit) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "command line or environment is too long",
            ));
        }
        let mut bytes = Vec::with_capacity(6 + payload.len());
        bytes.extend([VERSION, self.kind()]);
        bytes.extend((payload.len() as u32).to_be_bytes());
        bytes.extend(payload);
        writer.write_all(&bytes)?;
        writer.flush()
    }

    /// Reads `Hello`, the first frame, and skips what a shell's start-up files print before it. Returns false
    /// if the stream ends before anything has come.
    ///
    /// # Errors
    /// No `Hello` came, or too many bytes before it.
    pub fn read_hello(reader: &mut impl Read) -> Result<bool, FrameError> {
        const HELLO: [u8; 6] = [VERSION, 1, 0, 0, 0, 0];
        let (mut came, mut byte) = (Vec::new(), [0]);
        while read_full(reader, &mut byte)? > 0 {
            came.push(byte[0]);
            if came.ends_with(&HELLO) {
                return Ok(true);
            }
            if came.len() > MOST_NOISE {
                break;
            }
        }
        if came.is_empty() {
            return Ok(false);
        }
        came.truncate(SHOWN_NOISE);
        Err(FrameError::Version(
            String::from_utf8_lossy(&came).trim_end().to_owned(),
        ))
    }

    /// Reads one frame; `None` when the stream ends before one begins.
    ///
    /// # Errors
    /// See [`FrameError`]; lengths are checked before anything is allocated.
    pub fn read(reader: &mut impl Read) -> Result<Option<Frame>, FrameError> {
        let mut head = [0; 6];
        match read_full(reader, &mut head)? {
            0 => return Ok(None),
            6 if head[0] == VERSION => {}
            _ if head[0] == VERSION => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            read => return Err(foreign(reader, &head[..read])),
        }
        let (kind, length) = (head[1], u32::from_be_bytes([head[2], head[3], head[4], head[5]]));
        let limit = limit(kind).ok_or(FrameError::Kind(kind))?;
        if length as usize > limit {
            return Err(FrameError::TooLong(kind, length));
        }
        let mut payload = vec![0; length as usize];
        reader.read_exact(&mut payload)?;
        parse(kind, payload).map(Some)
    }
}

fn parse(kind: u8, payload: Vec<u8>) -> Result<Frame, FrameError> {
    let damaged = || FrameError::Payload(kind);
    Ok(match kind {
        1 => Frame::Hello,
        2 => Frame::Request(serde_json::from_slice(&payload).map_err(|_| damaged())?),
        3 => Frame::Stdin(payload),
        4 => Frame::StdinEnd,
        5 => Frame::Credit(u32::from_be_bytes(payload.try_into().map_err(|_| damaged())?)),
        6 => Frame::Stdout(payload),
        7 => Frame::Stderr(payload),
        8 => Frame::Exit(*payload.first().ok_or_else(damaged)?),
        FRAME_ERROR => Frame::Error(String::from_utf8_lossy(&payload).into_owned()),
        10 => Frame::Hurry,
        11 => Frame::Started(serde_json::from_slice(&payload).map_err(|_| damaged())?),
        12 => Frame::Interrupt,
        13 => Frame::Alive,
        14 => Frame::Batch(payload),
        kind => return Err(FrameError::Kind(kind)),
    })
}

/// Longest payload of a kind; `None` if the kind is unknown.
fn limit(kind: u8) -> Option<usize> {
    Some(match kind {
        2 => MAX_REQUEST,
        11 => MAX_STARTED,
        3 | 6 | 7 | FRAME_ERROR => MAX_DATA,
        5 => 4,
        8 => 1,
        14 => MAX_BATCH,
        1 | 4 | 10 | 12 | 13 => 0,
        _ => return None,
    })
}

fn read_full(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Reports the beginning of what came instead of a frame: usually the message of a shell's start-up file.
fn foreign(reader: &mut impl Read, head: &[u8]) -> FrameError {
    let mut text = head.to_vec();
    let mut more = [0; 80];
    if let Ok(read) = reader.read(&mut more) {
        text.extend(&more[..read]);
    }
    FrameError::Version(String::from_utf8_lossy(&text).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request {
            command: "exec orted".to_owned().into(),
            environment: vec![("CAUSEWAY_GRID".into(), "1|a".to_owned().into())],
            path: vec!["/opt/mpi/bin".to_owned().into()],
            is_of_site: false,
        }
    }

    #[test]
    fn every_frame_round_trips() {
        let frames = [
            Frame::Hello,
            Frame::Request(Box::new(request())),
            Frame::Stdin(vec![0, 255]),
            Frame::StdinEnd,
            Frame::Credit(70_000),
            Frame::Stdout(b"out".to_vec()),
            Frame::Stderr(Vec::new()),
            Frame::Exit(130),
            Frame::Error("no such node".into()),
            Frame::Hurry,
            Frame::Interrupt,
            Frame::Alive,
            Frame::Batch(b"{}".to_vec()),
        ];
        let mut bytes = Vec::new();
        for frame in &frames {
            frame.write(&mut bytes).unwrap();
        }
        let mut reader = &bytes[..];
        for frame in frames {
            assert_eq!(Frame::read(&mut reader).unwrap(), Some(frame));
        }
        assert_eq!(Frame::read(&mut reader).unwrap(), None);
    }

    #[test]
    fn the_bytes_are_fixed() {
        let mut bytes = Vec::new();
        Frame::Stdout(b"hi".to_vec()).write(&mut bytes).unwrap();
        assert_eq!(bytes, [1, 6, 0, 0, 0, 2, b'h', b'i']);
    }

    #[test]
    fn claimed_lengths_are_refused_before_anything_is_read() {
        for kind in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14] {
            let bytes = [1, kind, 0xff, 0xff, 0xff, 0xff];
            let error = Frame::read(&mut &bytes[..]).unwrap_err();
            assert!(
                matches!(error, FrameError::TooLong(k, u32::MAX) if k == kind),
                "{error}"
            );
        }
    }

    #[test]
    fn damaged_bytes_are_errors() {
        for bytes in [
            &[1, 6, 0, 0, 0, 2, b'h'][..],
            &[1, 6],
            &[1, 5, 0, 0, 0, 1, 0],
            &[1, 8, 0, 0, 0, 0],
        ] {
            assert!(Frame::read(&mut &bytes[..]).is_err(), "{bytes:?}");
        }
        assert!(matches!(
            Frame::read(&mut &[1, 77, 0, 0, 0, 0][..]),
            Err(FrameError::Kind(77))
        ));
    }

    #[test]
    fn what_a_shell_prints_before_the_first_frame_is_skipped_and_shown_where_no_frame_comes() {
        let mut bytes = b"Welcome to nancy!\n\x01\x01\0".to_vec();
        Frame::Hello.write(&mut bytes).unwrap();
        Frame::Exit(3).write(&mut bytes).unwrap();
        let mut reader = &bytes[..];
        assert!(Frame::read_hello(&mut reader).unwrap());
        assert_eq!(Frame::read(&mut reader).unwrap(), Some(Frame::Exit(3)));
        let error = Frame::read_hello(&mut &b"Welcome to nancy!\n"[..]).unwrap_err();
        assert!(error.to_string().contains("Welcome to nancy!"), "{error}");
        assert!(!Frame::read_hello(&mut &b""[..]).unwrap());
        let error = Frame::read_hello(&mut io::repeat(b'x')).unwrap_err();
        assert!(error.to_string().len() < 300, "{error}");
    }

    #[test]
    fn text_of_a_shell_start_up_file_is_shown() {
        let error = Frame::read(&mut &b"Welcome to nancy!\n"[..]).unwrap_err();
        assert!(error.to_string().contains("Welcome to nancy!"), "{error}");
    }
}
