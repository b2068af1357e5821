//! The rendezvous's sockets: one listener, the connections of native ranks 0, and poll.
//!
//! A site may queue for hours before it joins, so a connection whose frames are complete has no deadline, but
//! one that has sent half a frame does. A connection is a stranger's until it has shown the job's token,
//! which comes first: strangers get few connections and little memory, and in a flood of them the oldest of
//! their own connections are closed.

use super::meeting::{Action, Event, Key, Meeting};
use super::message::{self, Incoming, MessageError};
use super::origins::Origins;
use causeway_service::Admission;
use causeway_service::admission::network_of;
use causeway_wire::preface::Decoded;
use causeway_wire::{Preface, Sender, Token};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Most strangers at a time. Each takes [`READ_BYTES`] at most.
const MOST_STRANGERS: usize = 256;

/// Most processes of this job besides one for each site: those that abort, and those that are refused.
const MOST_OTHERS: usize = 64;

/// How long a stranger may take for its first bytes: as long as at a gateway.
const GREETING: Duration = Duration::from_secs(10);

/// How long a frame may take from its first byte to its last, in either direction: 2.5 MB, the longest, takes
/// 20 s at 1 Mbit/s.
const FRAME: Duration = Duration::from_secs(60);

/// How long processes may take to receive the message about the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long callers wait when no file descriptor is left for them; else the listener would be ready all the
/// time.
const PAUSE: Duration = Duration::from_millis(100);

const READ_BYTES: usize = 64 * 1024;

/// See the module.
pub struct Server {
    listener: TcpListener,
    meeting: Meeting,
    token: Token,
    /// The sites; what the own site's gateway delivers begins with a preface. `None` if all is on one host.
    origins: Option<Origins>,
    /// When callers are accepted again after no file descriptor was left; see [`PAUSE`].
    rests_until: Option<Instant>,
    connections: BTreeMap<Key, Connection>,
    strangers: Admission<IpAddr, Key>,
    next: Key,
}

struct Connection {
    stream: TcpStream,
    origin: IpAddr,
    is_stranger: bool,
    /// The address to which the gateway has connected, as the grid knows it, until its preface has come.
    delivered_to: Option<SocketAddr>,
    /// The true source, if the gateway has delivered the connection.
    source: Option<SocketAddr>,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    /// Whether the last message was queued; nothing more is read. Once it is sent and the other end is
    /// closed, so is this end: if we closed first, unread data would destroy our last message.
    is_last: bool,
    deadline: Option<Instant>,
}

impl Server {
    /// Serves one meeting.
    ///
    /// # Errors
    /// Those of fcntl.
    pub fn new(
        listener: TcpListener,
        meeting: Meeting,
        token: Token,
        origins: Option<Origins>,
    ) -> io::Result<Server> {
        listener.set_nonblocking(true)?;
        Ok(Server {
            listener,
            meeting,
            token,
            origins,
            rests_until: None,
            connections: BTreeMap::new(),
            strangers: Admission::new(MOST_STRANGERS, MOST_STRANGERS),
            next: 0,
        })
    }

    /// Whether every site has finished, or was told to end.
    pub fn is_over(&self) -> bool {
        self.meeting.is_over()
    }

    /// Ends the world, see [`Meeting::end`], and waits until all have received this, but not for long.
    ///
    /// # Errors
    /// Those of [`Server::turn`].
    pub fn end(&mut self, code: u32, text: &str) -> io::Result<()> {
        self.meeting.end(code, text);
        self.act();
        let until = Instant::now() + FAREWELL;
        while Instant::now() < until && self.connections.values().any(|connection| connection.is_last) {
            self.turn(Some(until))?;
        }
        Ok(())
    }

    /// Waits for connections until `until` at the latest, and serves them; returns what has happened.
    ///
    /// # Errors
    /// Those of poll and accept, except those that concern one caller alone.
    pub fn turn(&mut self, until: Option<Instant>) -> io::Result<Vec<Event>> {
        let (ready, accepts) = self.wait(until)?;
        for key in ready {
            self.serve(key);
        }
        if accepts {
            self.accept()?;
        }
        self.end_late(Instant::now());
        Ok(self.act())
    }

    fn wait(&mut self, until: Option<Instant>) -> io::Result<(Vec<Key>, bool)> {
        let deadlines = self
            .connections
            .values()
            .filter_map(|connection| connection.deadline);
        let timeout =
            deadlines
                .chain(until)
                .chain(self.rests_until)
                .min()
                .map_or(PollTimeout::NONE, |deadline| {
                    let left = deadline.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
                    PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
                });
        self.rests_until.take_if(|end| Instant::now() >= *end);
        let accepts = match self.rests_until {
            None => PollFlags::POLLIN,
            Some(_) => PollFlags::empty(),
        };
        let mut wait = vec![PollFd::new(self.listener.as_fd(), accepts)];
        wait.extend(self.connections.values().map(|connection| {
            let writes = !connection.outgoing.is_empty();
            let flags = PollFlags::POLLIN;
            let flags = if writes { flags | PollFlags::POLLOUT } else { flags };
            PollFd::new(connection.stream.as_fd(), flags)
        }));
        match poll(&mut wait, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |fd: &PollFd| fd.any().unwrap_or(false);
        let (listener, rest) = wait.split_at(1);
        let keys = self.connections.keys().copied().zip(rest);
        let ready = keys.filter(|(_, fd)| is_ready(fd)).map(|(key, _)| key).collect();
        Ok((ready, listener.iter().any(is_ready)))
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((stream, peer)) => self.admit(stream, peer),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if is_callers(&error) => {}
                Err(error) if is_full(&error) => {
                    self.rests_until = Some(Instant::now() + PAUSE);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn admit(&mut self, stream: TcpStream, peer: SocketAddr) {
        // If a rank's host dies while its site waits for others, only this shows it.
        let options = stream
            .set_nonblocking(true)
            .and_then(|()| stream.set_nodelay(true))
            .and_then(|()| socket2::SockRef::from(&stream).set_keepalive(true));
        if options.is_err() {
            return;
        }
        let Ok(own) = stream.local_addr() else {
            return;
        };
        let origin = network_of(peer.ip());
        if let Some((_, key)) = self.strangers.one_too_many(&origin) {
            self.close(key);
        }
        self.next += 1;
        self.strangers.enter(origin, self.next, self.next);
        let connection = Connection {
            stream,
            origin,
            is_stranger: true,
            delivered_to: self
                .origins
                .as_ref()
                .and_then(|origins| origins.delivered_to(peer, own)),
            source: None,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            is_last: false,
            deadline: Some(Instant::now() + GREETING),
        };
        self.connections.insert(self.next, connection);
        // What the process has already sent need not wait for another turn.
        self.serve(self.next);
    }

    /// Reads and writes once each, as far as possible: poll reports the rest.
    fn serve(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(&key) else {
            return;
        };
        if !connection.write() {
            return self.close(key);
        }
        match connection.read() {
            Ok(0) => self.close(key),
            Ok(_) => self.look(key),
            Err(error) if is_for_later(&error) => {}
            Err(_) => self.close(key),
        }
    }

    /// Handles what has arrived completely.
    fn look(&mut self, key: Key) {
        loop {
            let token = self.token;
            let Some(connection) = self.connections.get_mut(&key) else {
                return;
            };
            // A connection whose last message was queued is not read any more.
            if connection.is_last {
                return connection.incoming.clear();
            }
            match connection.next_frame(&token) {
                Ok(Step::Waits) => return,
                Ok(Step::Known) => self.on_known(key),
                Ok(Step::Frame(frame)) => match message::decode(&frame[message::HEAD_BYTES..]) {
                    Ok(message) => self.on_message(key, message),
                    Err(error) => return self.on_broken(key, &error),
                },
                Err(error) => return self.on_broken(key, &error),
            }
        }
    }

    /// Handles what a process of this job has said, if it may say it.
    fn on_message(&mut self, key: Key, message: Incoming) {
        let source = self
            .connections
            .get(&key)
            .and_then(|connection| connection.source);
        let judged = self
            .origins
            .as_ref()
            .map(|origins| origins.judge(source, &message));
        match judged {
            Some(Err(why)) => self.meeting.on_broken(key, &why),
            Some(Ok(())) | None => self.meeting.on_message(key, message),
        }
    }

    /// Handles a connection that has shown the token.
    fn on_known(&mut self, key: Key) {
        let known = self
            .connections
            .values()
            .filter(|connection| !connection.is_stranger);
        let is_room = known.count() < self.meeting.sites() + MOST_OTHERS;
        let Some(connection) = self.connections.get_mut(&key).filter(|_| is_room) else {
            return self.close(key);
        };
        connection.is_stranger = false;
        connection.deadline = Some(Instant::now() + FRAME);
        self.strangers.leave(&connection.origin, key);
    }

    /// Refuses a stranger, and ignores it from then on. One with the right token may end the run.
    fn on_broken(&mut self, key: Key, error: &MessageError) {
        let Some(connection) = self.connections.get_mut(&key) else {
            return;
        };
        let is_of_job = !connection.is_stranger || matches!(error, MessageError::Version(_));
        if is_of_job {
            return self.meeting.on_broken(key, &error.to_string());
        }
        connection.incoming.clear();
        self.say(key, &message::no(&error.to_string()), true);
    }

    fn end_late(&mut self, now: Instant) {
        let is_late = |deadline: Option<Instant>| deadline.is_some_and(|deadline| now >= deadline);
        let connections = self.connections.iter();
        let late = connections.filter(|(_, connection)| is_late(connection.deadline));
        for key in late.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.close(key);
        }
    }

    /// Carries out what the meeting decides, and keeps what the caller must know.
    fn act(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(action) = self.meeting.poll_action() {
            match action {
                Action::Tell(event) => events.push(event),
                Action::Close(key) => self.close(key),
                Action::Send(key, bytes) => self.say(key, &bytes, false),
                Action::Last(key, bytes) => self.say(key, &bytes, true),
            }
        }
        events
    }

    fn say(&mut self, key: Key, bytes: &[u8], is_last: bool) {
        let Some(connection) = self.connections.get_mut(&key) else {
            return;
        };
        connection.say(bytes);
        connection.is_last |= is_last;
        if !connection.write() {
            self.close(key);
        }
    }

    fn close(&mut self, key: Key) {
        let Some(connection) = self.connections.remove(&key) else {
            return;
        };
        if connection.is_stranger {
            self.strangers.leave(&connection.origin, key);
        }
        self.meeting.on_closed(key);
    }
}

/// What the bytes of a connection contain so far.
enum Step {
    /// Too little: more must come.
    Waits,
    /// The right token.
    Known,
    /// A whole frame, with its length.
    Frame(Vec<u8>),
}

impl Connection {
    fn read(&mut self) -> io::Result<usize> {
        let mut bytes = [0; READ_BYTES];
        let read = self.stream.read(&mut bytes)?;
        self.incoming.extend_from_slice(&bytes[..read]);
        Ok(read)
    }

    fn next_frame(&mut self, token: &Token) -> Result<Step, MessageError> {
        if let Some(own) = self.delivered_to
            && !self.take_preface(token, own)?
        {
            return Ok(Step::Waits);
        }
        let length = message::length(&self.incoming)?;
        if self.is_stranger {
            let is_known = message::greets(&self.incoming, token)?;
            return Ok(if is_known { Step::Known } else { Step::Waits });
        }
        match length.filter(|length| self.incoming.len() >= *length) {
            Some(length) => {
                self.deadline = None;
                Ok(Step::Frame(self.incoming.drain(..length).collect()))
            }
            None => {
                if !self.incoming.is_empty() && self.deadline.is_none() {
                    self.deadline = Some(Instant::now() + FRAME);
                }
                Ok(Step::Waits)
            }
        }
    }

    /// Removes the preface that the own gateway sends first; true once that is done. A connection of another
    /// process of the gateway's host has none.
    fn take_preface(&mut self, token: &Token, own: SocketAddr) -> Result<bool, MessageError> {
        match Preface::decode(&self.incoming) {
            Ok(Decoded::Incomplete { .. }) => return Ok(false),
            Ok(Decoded::Complete { claim, length }) => {
                let proven = claim.proven(Sender::Gateway, token).ok_or(MessageError::Token)?;
                // Another process, to which this connection was delivered, could pass it on to this one.
                if proven.destination != own {
                    return Err(MessageError::Elsewhere);
                }
                self.incoming.drain(..length);
                self.source = Some(proven.source);
                self.outgoing.extend(claim.answer(Sender::Process, token));
                // A failure shows when the connection is read.
                self.write();
            }
            Ok(Decoded::Question { .. }) => return Err(MessageError::Token),
            Err(_) => {}
        }
        self.delivered_to = None;
        Ok(true)
    }

    fn say(&mut self, bytes: &[u8]) {
        self.outgoing.extend_from_slice(bytes);
        self.deadline = Some(Instant::now() + FRAME);
    }

    /// Writes what the kernel accepts; false if the connection must be closed.
    fn write(&mut self) -> bool {
        while !self.outgoing.is_empty() {
            match self.stream.write(&self.outgoing) {
                Ok(0) => return false,
                Ok(written) => drop(self.outgoing.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
            if self.outgoing.is_empty() {
                self.deadline = self.is_last.then(|| Instant::now() + FAREWELL);
            }
        }
        // We send nothing more; whether the other end is closed shows when the connection is read.
        if self.is_last {
            let _ = self.stream.shutdown(Shutdown::Write);
        }
        true
    }
}

/// Whether a failed accept concerns one connection alone (accept(2)).
fn is_callers(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Interrupted | ErrorKind::ConnectionAborted
    ) || matches!(
        error.raw_os_error(),
        Some(libc::EPROTO | libc::ENETDOWN | libc::EHOSTUNREACH)
    )
}

/// Whether this process, or the host, has no room for another connection (accept(2)): this passes.
fn is_full(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)
    )
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::{TOKEN, a_join, join_bytes};
    use super::*;

    #[test]
    fn what_is_half_sent_has_a_deadline_and_a_site_that_waits_has_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let meeting = Meeting::new(&["rennes".to_owned(), "nancy".to_owned()], 5);
        let mut server = Server::new(listener, meeting, TOKEN, None).unwrap();
        let join = join_bytes(&a_join("rennes", 2), &TOKEN);
        // A site that waits, one that has sent half of its frame, and a silent stranger.
        let sent = [&join[..], &join[..40], &[]];
        let clients = sent.map(|bytes| {
            let mut client = TcpStream::connect(address).unwrap();
            client.write_all(bytes).unwrap();
            client
        });
        let until = Instant::now() + Duration::from_secs(20);
        let knows = |server: &Server| server.connections.values().filter(|one| !one.is_stranger).count();
        while server.connections.len() < 3 || knows(&server) < 2 {
            assert!(Instant::now() < until, "not all were heard");
            server.turn(Some(until)).unwrap();
        }
        server.end_late(Instant::now() + GREETING);
        assert_eq!((server.connections.len(), knows(&server)), (2, 2));
        server.end_late(Instant::now() + FRAME);
        server.end_late(Instant::now() + FRAME * 1000);
        assert_eq!(server.connections.len(), 1);
        drop(clients);
    }
}
