//! One connection to another site, in a job of its own: it does what `causeway run` and a shim do. From the
//! job, the far gateway knows that the destination reads no preface.

use crate::destination::DestinationError;
use causeway_control::{self as control, ControlError, Reply, Request, Status};
use causeway_wire::preface::{self, ANSWER_BYTES, NONCE_BYTES};
use causeway_wire::{Preface, Reason, Sender, Token, Verdict};
use socket2::{Domain, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long this site's gateway may take, which answers at once.
const GATEWAY_DEADLINE: Duration = Duration::from_secs(10);

/// How long the far gateway may take: it gives a host ten seconds, and the rest is for a path that has lost
/// something.
const VERDICT_DEADLINE: Duration = Duration::from_secs(30);

/// Why there is no connection, or why it ended.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The gateway cannot be asked.
    #[error("{0}")]
    Gateway(#[from] ControlError),
    /// There is no such destination.
    #[error("{0}")]
    Destination(#[from] DestinationError),
    /// The gateway's answer is not understood.
    #[error("cannot understand the gateway's answer: {0}")]
    Answer(String),
    /// The other site accepts no connections from here: its name, and why.
    #[error("{0} takes no connection from here: {1}")]
    TakesNone(String, String),
    /// A connection within this site failed.
    #[error("connect to {0}: {1}")]
    Native(SocketAddr, io::Error),
    /// A connection to this site's own gateway failed.
    #[error("connect to the gateway of this site at {0}: {1}")]
    Near(SocketAddr, io::Error),
    /// The far gateway does not let users of this site connect there: destination, this site, far site.
    #[error(
        "connect to {0}: the gateway of {2} does not let users of {1} connect to it; to allow it, set connect_from = [\"{1}:{port}\"] in [accept] \
         of that gateway's configuration; if the address is not of a listed node, add it to addresses there, too", port = .0.port()
    )]
    NotAccepted(SocketAddr, String, String),
    /// The far gateway could not reach the destination, which is at this site.
    #[error("connect to {0} at {1}: {why}", why = .2.text())]
    Refused(SocketAddr, String, Reason),
    /// The connection has ended.
    #[error("the connection to {0} broke: {1}")]
    Broken(SocketAddr, io::Error),
}

/// What this site's gateway knows about the sites.
pub fn gateway_status() -> Result<Status, ConnectError> {
    match control::ask(&control::socket(), &Request::Status {})? {
        (Reply::Status(status), _) => Ok(*status),
        (other, _) => Err(ConnectError::Answer(format!("{other:?}"))),
    }
}

/// Connects to a node of this site, which needs no gateway.
///
/// # Errors
/// [`ConnectError::Native`].
pub fn native(address: SocketAddr) -> Result<TcpStream, ConnectError> {
    let stream = TcpStream::connect_timeout(&address, VERDICT_DEADLINE);
    stream.map_err(|error| ConnectError::Native(address, error))
}

/// The token of a job for connections to a site. The job lives as long as the connection that comes with it.
pub fn start_job(name: String, site: &str, lingers: bool) -> Result<(Token, UnixStream), ConnectError> {
    let request = Request::Connect {
        name,
        site: site.to_owned(),
        lingers,
    };
    let (job, held) = match control::ask(&control::socket(), &request)? {
        (Reply::Job(job), held) => (job, held),
        (other, _) => return Err(ConnectError::Answer(format!("{other:?}"))),
    };
    if let Some(why) = job.left_out.get(site) {
        return Err(ConnectError::TakesNone(site.to_owned(), why.clone()));
    }
    let token = job.token.parse();
    Ok((
        token.map_err(|error| ConnectError::Answer(format!("{error}")))?,
        held,
    ))
}

/// Connects through the gateway, as a shim does for a blocking connect.
pub fn through(
    token: Token,
    (own, site): (&str, &str),
    destination: SocketAddr,
    gateway: SocketAddr,
) -> Result<TcpStream, ConnectError> {
    let near = |error| ConnectError::Near(gateway, error);
    let mut stream = connect_at_home(gateway).map_err(near)?;
    stream.set_nodelay(true).map_err(near)?;
    let introduction = Preface {
        source: stream.local_addr().map_err(near)?,
        destination,
        token,
        wants: causeway_wire::Wants::Verdict,
    };
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(|error| near(io::Error::other(error)))?;
    let bytes = introduction.encode(Sender::Process, &nonce);
    let bytes = bytes.map_err(|error| near(io::Error::other(error)))?;
    stream.write_all(&bytes).map_err(near)?;
    stream.set_read_timeout(Some(VERDICT_DEADLINE)).map_err(near)?;
    // For an unknown job, there is only a verdict.
    let mut proof = [0; ANSWER_BYTES];
    stream.read_exact(&mut proof).map_err(near)?;
    if proof != preface::answer(Sender::Gateway, &token, &nonce) {
        let what = format!("what listens at {gateway} does not know the job");
        return Err(ConnectError::Answer(what));
    }
    let mut verdict = [0; Verdict::BYTES];
    stream.read_exact(&mut verdict).map_err(near)?;
    stream.set_read_timeout(None).map_err(near)?;
    match Verdict::decode(verdict) {
        Some(Verdict::Connected) => Ok(stream),
        Some(Verdict::Failed(Reason::Denied)) => Err(ConnectError::NotAccepted(
            destination,
            own.to_owned(),
            site.to_owned(),
        )),
        Some(Verdict::Failed(reason)) => Err(ConnectError::Refused(destination, site.to_owned(), reason)),
        None => Err(ConnectError::Answer(format!("{verdict:?} is not a verdict"))),
    }
}

/// Connects to this host's gateway from the address at which it listens, which belongs to the site: the far
/// gateway requires that.
fn connect_at_home(gateway: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(gateway), Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(gateway.ip(), 0).into())?;
    socket.connect_timeout(&gateway.into(), GATEWAY_DEADLINE)?;
    Ok(socket.into())
}
