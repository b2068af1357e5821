//! Commands from this host: one JSON line asks, one answers, on a Unix socket that is the user's own (mode
//! 0600).
//!
//! Where no broker runs, a command acts on the store itself; the store's lock shows which is the case.

use super::{STORE_BUSY, Shared};
use crate::api::Subnet;
use crate::clock::Clock;
use crate::config::BrokerConfig;
use crate::records::SignedRecord;
use crate::state::{Listing, Refusal, State, StateError};
use crate::store::StoreError;
use nix::sys::stat::{Mode, fchmod};
use serde::{Deserialize, Serialize};
use socket2::{Domain, SockAddr, Socket, Type};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::time::{sleep, timeout};

/// Version of the lines.
const VERSION: u32 = 1;

/// Longest request and longest answer: a listing of the 4096 sites that a list of revocations may name, and
/// of a thousand members with 64 subnets each and their jobs.
const MAX_ASKED: u64 = 64 * 1024;
const MAX_ANSWERED: u64 = 32 * 1024 * 1024;

/// How long a line may take; no answer waits for another host.
const DEADLINE: Duration = Duration::from_secs(10);

/// What a command asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AdminRequest {
    /// A token for a site.
    Token {
        /// The site's name.
        site: String,
        /// How long the token is valid.
        ttl_seconds: u64,
        /// Ranges that must contain the site's addresses; empty: those that nobody has on the Internet.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        subnets: Vec<Subnet>,
    },
    /// Put a site out.
    Revoke {
        /// The site's name.
        site: String,
        /// Whether to do so even if the broker has never heard of it, as after the loss of its store.
        #[serde(default)]
        unknown: bool,
    },
    /// List everything.
    List {},
    /// Take records that the grid's authority has signed.
    Take {
        /// The records.
        records: Vec<SignedRecord>,
    },
}

/// The broker's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdminReply {
    /// The token's line.
    Token(String),
    /// The counter of the list of revocations.
    Revoked(u64),
    /// In a grid of several brokers: the time until which what a site was given is void, in seconds since
    /// 1970.
    RevokedUntil(u64),
    /// A list of everything.
    Listing(Listing),
    /// How many of the records were news.
    Taken(usize),
    /// The command could not be carried out; the reason is a sentence.
    Error(String),
}

/// What carried the command out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// The broker that runs here.
    Broker,
    /// The command itself, because no broker runs.
    Store,
}

/// Why a command had no effect.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The store could not be opened.
    #[error(transparent)]
    State(#[from] StateError),
    /// The broker's socket failed.
    #[error("ask the broker at {}: {source}", path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// The broker's answer is of another version.
    #[error("the broker's answer is not understood: {0}")]
    Answer(String),
    /// The command was refused.
    #[error("{0}")]
    Refused(String),
}

#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    version: u32,
    body: T,
}

/// Asks the running broker, or acts on the store if none runs.
///
/// # Errors
/// See [`AdminError`].
pub fn ask(config: &BrokerConfig, request: &AdminRequest) -> Result<(AdminReply, Via), AdminError> {
    let path = config.socket();
    let began = Instant::now();
    let answered = loop {
        match UnixStream::connect(&path) {
            Ok(stream) => break (ask_broker(stream, request, &path)?, Via::Broker),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) => {}
            Err(source) => return Err(AdminError::Io { path, source }),
        }
        match State::open(config, Clock::system()) {
            Ok(mut state) => break (act(&mut state, request), Via::Store),
            // A broker that starts has the store before it has its socket; one that stops has the store for
            // longer than the socket.
            Err(StateError::Store(StoreError::InUse(_))) if began.elapsed() < STORE_BUSY => {
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(error) => return Err(error.into()),
        }
    };
    match answered {
        (AdminReply::Error(reason), _) => Err(AdminError::Refused(reason)),
        other => Ok(other),
    }
}

fn ask_broker(mut stream: UnixStream, request: &AdminRequest, path: &Path) -> Result<AdminReply, AdminError> {
    let mut exchange = || -> io::Result<Vec<u8>> {
        stream.set_read_timeout(Some(DEADLINE))?;
        let envelope = Envelope {
            version: VERSION,
            body: request,
        };
        let mut line = serde_json::to_vec(&envelope)?;
        line.push(b'\n');
        stream.write_all(&line)?;
        let mut answer = Vec::new();
        BufReader::new(&stream)
            .take(MAX_ANSWERED)
            .read_until(b'\n', &mut answer)?;
        Ok(answer)
    };
    let answer = exchange().map_err(|source| AdminError::Io {
        path: path.to_owned(),
        source,
    })?;
    let answer: Envelope<AdminReply> =
        serde_json::from_slice(&answer).map_err(|error| AdminError::Answer(error.to_string()))?;
    match answer {
        Envelope {
            body: AdminReply::Error(reason),
            ..
        } => Err(AdminError::Refused(reason)),
        Envelope { version, .. } if version != VERSION => Err(AdminError::Answer(format!(
            "version {version}, expected {VERSION}"
        ))),
        Envelope { body, .. } => Ok(body),
    }
}

fn act(state: &mut State, request: &AdminRequest) -> AdminReply {
    let done = match request {
        AdminRequest::Token {
            site,
            ttl_seconds,
            subnets,
        } => state
            .create_token(site, *ttl_seconds, subnets)
            .map(|token| AdminReply::Token(token.to_string())),
        AdminRequest::Revoke { site, unknown } => {
            let known = if *unknown { Ok(()) } else { state.must_know(site) };
            let reply = match state.number() {
                Some(_) => AdminReply::RevokedUntil,
                None => AdminReply::Revoked,
            };
            known.and_then(|()| state.revoke(site)).map(reply)
        }
        AdminRequest::List {} => Ok(AdminReply::Listing(state.listing())),
        AdminRequest::Take { records } => state.take_by_hand(records).map(AdminReply::Taken),
    };
    done.unwrap_or_else(|Refusal { message, .. }| AdminReply::Error(message))
}

/// Makes a socket to which only this user can connect. It replaces one that a killed broker left behind: this
/// broker holds the store's lock.
pub(super) fn bind(path: &Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::FileTypeExt;
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path)?,
        Ok(_) => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "exists and is not a socket",
            ));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // Linux gives the file the mode of the unbound socket: with a chmod after bind, anyone could connect in
    // between.
    fchmod(&socket, Mode::from_bits_truncate(0o600))?;
    socket.bind(&SockAddr::unix(path)?)?;
    socket.set_nonblocking(true)?;
    socket.listen(16)?;
    UnixListener::from_std(OwnedFd::from(socket).into())
}

pub(super) async fn serve(shared: Arc<Shared>, listener: UnixListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let shared = shared.clone();
                tokio::spawn(async move { timeout(DEADLINE, answer(shared, stream)).await });
            }
            Err(error) => {
                shared.log.refuse("accept", "a command", &error);
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn answer(shared: Arc<Shared>, stream: tokio::net::UnixStream) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut line = Vec::new();
    tokio::io::BufReader::new(reader)
        .take(MAX_ASKED)
        .read_until(b'\n', &mut line)
        .await?;
    let body = match serde_json::from_slice::<Envelope<AdminRequest>>(&line) {
        Ok(Envelope {
            version: VERSION,
            body: request,
        }) => {
            let said = match &request {
                AdminRequest::Revoke { site, .. } => Some(format!("site {site} is revoked")),
                AdminRequest::Token { site, .. } => Some(format!("gave a token for site {site}")),
                AdminRequest::Take { .. } => Some("took records of the grid's authority".to_owned()),
                AdminRequest::List {} => None,
            };
            let done = shared
                .with_state(move |state| act(state, &request))
                .await
                .map_err(io::Error::other)?;
            if let (Some(said), false) = (said, matches!(done, AdminReply::Error(_))) {
                shared.log.say(said);
            }
            done
        }
        Ok(Envelope { version, .. }) => AdminReply::Error(format!(
            "the running broker speaks version {VERSION} of this line, not {version}"
        )),
        Err(error) => AdminReply::Error(format!("the request is not understood: {error}")),
    };
    let mut line = serde_json::to_vec(&Envelope {
        version: VERSION,
        body,
    })?;
    line.push(b'\n');
    writer.write_all(&line).await
}
