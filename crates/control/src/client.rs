//! A command's end of the connection: it asks, and reads the answer.

use crate::protocol::{Envelope, MAX_LINE_BYTES, NEW_WORKER, Reply, Request, VERSION};
use crate::whereabouts::looked_at;
use crate::{descriptor, private};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an answer may take. No answer of a gateway waits for the WAN.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);

/// The same for a question to a batch system, whose controller may be busy or away.
const BATCH_DEADLINE: Duration = Duration::from_secs(40);

/// How often a gateway is asked if its workers are killed meanwhile.
const MOST_TRIES: u32 = 3;

/// Tells the processes that a gateway starts which processes the gateway has: `KEEPER:WORKER`, by their
/// numbers.
pub const PARENTS_ENV: &str = "CAUSEWAY_PARENTS";

/// Why a gateway could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nothing listens at the socket.
    #[error(
        "no gateway runs here ({}): {source}; start one with 'causeway gateway --config FILE' or name its socket in \
         CAUSEWAY_CONTROL",
        looked_at(path)
    )]
    NoGateway {
        /// The socket tried.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another user's gateway listens there.
    #[error(
        "the gateway at {} belongs to another user, and only that user may ask it; start your own with 'causeway gateway', or name its \
         socket in CAUSEWAY_CONTROL", .0.display()
    )]
    NotYours(PathBuf),
    /// The socket is in a place where another user could have put it, the connection broke, or the deadline
    /// passed.
    #[error("ask the gateway at {}: {source}", path.display())]
    Io {
        /// The socket used.
        path: PathBuf,
        /// The failure.
        source: io::Error,
    },
    /// The answer is not in this protocol.
    #[error("the gateway's answer is not understood: {0}")]
    Answer(String),
    /// The gateway refused.
    #[error("{0}")]
    Refused(String),
}

/// Asks the gateway at `path`. Returns its answer and the connection: this one, of which nothing after the
/// answer's line was read, or the one that came with the answer. Asks again if the gateway's worker was
/// killed before it answered.
///
/// # Errors
/// See [`ControlError`]. An answer takes at most ten seconds; one from a batch system, forty.
pub fn ask(path: &Path, request: &Request) -> Result<(Reply, UnixStream), ControlError> {
    // A command that hands a gateway over decides for itself what to do next.
    let mut tries = if matches!(request, Request::HandOver { .. }) {
        1
    } else {
        MOST_TRIES
    };
    loop {
        match ask_once(path, request) {
            Err(error) if tries > 1 && error.is_of_a_killed_worker() => tries -= 1,
            answer => return answer,
        }
    }
}

fn ask_once(path: &Path, request: &Request) -> Result<(Reply, UnixStream), ControlError> {
    let io = |source| ControlError::Io {
        path: path.to_owned(),
        source,
    };
    private::check_directory_of(path).map_err(io)?;
    let mut stream = UnixStream::connect(path).map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => ControlError::NotYours(path.to_owned()),
        _ => ControlError::NoGateway {
            path: path.to_owned(),
            source,
        },
    })?;
    let deadline = match request {
        Request::Allocation { .. } => BATCH_DEADLINE,
        _ => ANSWER_DEADLINE,
    };
    stream.set_read_timeout(Some(deadline)).map_err(io)?;
    let envelope = Envelope {
        version: VERSION,
        body: request,
    };
    let mut line = serde_json::to_vec(&envelope).map_err(|error| ControlError::Answer(error.to_string()))?;
    line.push(b'\n');
    stream.write_all(&line).map_err(io)?;
    let (reply, given) = read_line(&stream).map_err(io)?;
    stream.set_read_timeout(None).map_err(io)?;
    let stream = given.map_or(stream, UnixStream::from);
    let reply: Envelope<Reply> =
        serde_json::from_slice(&reply).map_err(|error| ControlError::Answer(error.to_string()))?;
    match reply {
        // Checked first, so that a gateway of another version is recognised as such.
        Envelope {
            body: Reply::Error(reason),
            ..
        } => Err(ControlError::Refused(reason)),
        Envelope { version, .. } if version != VERSION => Err(ControlError::Answer(format!(
            "version {version}, expected {VERSION}"
        ))),
        Envelope { body, .. } => Ok((body, stream)),
    }
}

impl ControlError {
    /// Whether the connection ended before the request was answered. The next worker answers if asked again.
    fn is_of_a_killed_worker(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        match self {
            ControlError::Io { source, .. } => {
                matches!(source.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
            }
            ControlError::Refused(why) => why == NEW_WORKER,
            _ => false,
        }
    }
}

/// Reads a line after the first answer, without its newline.
///
/// # Errors
/// [`ControlError::Answer`] if the line has another version or cannot be parsed.
pub fn later_reply(line: &[u8]) -> Result<Reply, ControlError> {
    match serde_json::from_slice::<Envelope<Reply>>(line) {
        Ok(Envelope {
            version: VERSION,
            body,
        }) => Ok(body),
        Ok(Envelope { version, .. }) => Err(ControlError::Answer(format!(
            "version {version}, expected {VERSION}"
        ))),
        Err(error) => Err(ControlError::Answer(error.to_string())),
    }
}

/// Reads up to the newline and not a byte further, because what follows belongs to the caller. So it peeks at
/// each part before it reads it.
fn read_line(stream: &UnixStream) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let (mut line, mut given) = (Vec::new(), None);
    let mut part = vec![0; 64 * 1024];
    while line.len() < MAX_LINE_BYTES {
        let there = match recv(stream.as_raw_fd(), &mut part, MsgFlags::MSG_PEEK) {
            Err(Errno::EINTR) => continue,
            other => other?,
        };
        let end = part[..there].iter().position(|byte| *byte == b'\n');
        let count = end.map_or(there, |end| end + 1);
        if count == 0 {
            break;
        }
        given = descriptor::read_exact(stream, &mut part[..count])?.or(given);
        line.extend_from_slice(&part[..end.unwrap_or(there)]);
        if end.is_some() {
            return Ok((line, given));
        }
    }
    Err(io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the gateway closed the connection before it answered, or its answer is not complete",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    /// What `ask` returns from a gateway that answers one connection after the other with these lines.
    fn asked(request: &Request, answers: &[&[u8]]) -> (Result<(Reply, UnixStream), ControlError>, usize) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let path = directory.path().join("gateway.sock");
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| {
                let mut asked = 0;
                for answer in answers {
                    let (mut near, _) = listener.accept().unwrap();
                    if read_line(&near).is_err() {
                        break;
                    }
                    near.write_all(answer).unwrap();
                    asked += 1;
                }
                asked
            });
            let said = ask(&path, request);
            // Ends the thread, if it still waits for a connection.
            drop(UnixStream::connect(&path));
            (said, serving.join().unwrap())
        })
    }

    #[test]
    fn a_gateway_whose_worker_was_killed_is_asked_again_but_not_for_ever_nor_to_hand_itself_over() {
        let again = Reply::Error(NEW_WORKER.to_owned()).line();
        let right = Reply::Noted {}.line();
        let request = Request::Sites {};
        let (said, asked_for) = asked(&request, &[b"", &again, &right, &right]);
        assert!(matches!(said, Ok((Reply::Noted {}, _))), "{said:?}");
        assert_eq!(asked_for, 3);
        let (said, asked_for) = asked(&request, &[&again, b"", b"{", &right]);
        assert!(matches!(said, Err(ControlError::Io { .. })), "{said:?}");
        assert_eq!(asked_for, 3);
        let other = Reply::Error("no".to_owned()).line();
        let (said, asked_for) = asked(&request, &[&other, &right]);
        assert!(matches!(said, Err(ControlError::Refused(why)) if why == "no"));
        assert_eq!(asked_for, 1);
        let request = Request::HandOver {
            state_version: 1,
            program: "causeway".into(),
            config: "gateway.toml".into(),
        };
        let (said, asked_for) = asked(&request, &[b"", &right]);
        assert!(said.is_err());
        assert_eq!(asked_for, 1);
    }

    #[test]
    fn a_line_is_read_whole_and_what_follows_it_is_left() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let long = "x".repeat(1_000_000);
        let text = format!("{long}\nfor the caller");
        let writing = std::thread::spawn(move || {
            far.write_all(text.as_bytes()).unwrap();
            far
        });
        assert!(read_line(&near).unwrap().0 == long.as_bytes());
        drop(writing.join().unwrap());
        let mut rest = String::new();
        (&near).read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "for the caller");
        assert_eq!(read_line(&near).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
