//! Where a gateway listens for commands, and where commands look for it.
//!
//! Cron, `su`, `env -i`, a systemd unit and a login session of one user have different environments on one
//! host. So the usual places depend on no variable: the user's directory below /run/user, if there is one,
//! and one below /tmp. A gateway uses the first that exists; commands use the one at which a gateway answers.
//! `XDG_RUNTIME_DIR` counts if it names another directory of this user's: a user who sets it does so on
//! purpose.

use crate::private;
use nix::unistd::{Uid, getuid};
use socket2::{Domain, SockAddr, Socket, Type};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Names the gateway's control socket, for commands and for a gateway whose configuration names none; without
/// it, the usual places count.
pub const SOCKET_ENV: &str = "CAUSEWAY_CONTROL";

/// The file name of a control socket that something else forwards. At such a socket, no connection can come
/// with an answer.
pub const FORWARDED: &str = "forwarded.sock";

const FILE: &str = "gateway.sock";

/// The socket that [`use_socket`] was given.
static NAMED: OnceLock<PathBuf> = OnceLock::new();

/// What the program knows in addition to the usual places.
static KNOWN: OnceLock<Known> = OnceLock::new();

/// What a program knows about gateways from files of its own.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// The socket of this user's gateway on this host, if it was noted.
    pub here: fn() -> Option<PathBuf>,
    /// The host on which this user's gateway runs, if it is not this one.
    pub elsewhere: fn() -> Option<String>,
}

/// Makes commands of this process look there, too. Only the first call has an effect.
pub fn know(known: Known) {
    let _ = KNOWN.set(known);
}

/// Lists the usual sockets of this user's gateway on this host, first the one at which it would listen.
pub fn usual_sockets() -> Vec<PathBuf> {
    let user = getuid();
    let set = std::env::var_os("XDG_RUNTIME_DIR").filter(|set| !set.is_empty());
    usual(user, set.map(PathBuf::from), Path::new("/run/user"))
}

fn usual(user: Uid, set: Option<PathBuf>, run: &Path) -> Vec<PathBuf> {
    let own = run.join(user.to_string());
    // After `su`, it may be another user's.
    let is_foreign =
        |directory: &Path| fs::metadata(directory).is_ok_and(|found| found.uid() != user.as_raw());
    if let Some(set) = set.filter(|set| *set != own && !is_foreign(set)) {
        return vec![set.join("causeway").join(FILE)];
    }
    let mut sockets = Vec::new();
    if own.is_dir() && !is_foreign(&own) {
        sockets.push(own.join("causeway").join(FILE));
    }
    sockets.push(PathBuf::from(format!("/tmp/causeway-{user}")).join(FILE));
    sockets
}

/// Whether a gateway listens at a socket that only this user could have put there. It never waits: a gateway
/// asks this about its own socket, and nobody else would accept a connection there.
pub fn answers(socket: &Path) -> bool {
    private::check_directory_of(socket).is_ok() && connects(socket).unwrap_or(false)
}

fn connects(socket: &Path) -> io::Result<bool> {
    let stream = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    match stream.connect(&SockAddr::unix(socket)?) {
        Ok(()) => Ok(true),
        // Somebody listens, and the backlog is full.
        Err(error) => Ok(error.kind() == io::ErrorKind::WouldBlock),
    }
}

/// The socket that commands use: the one that [`use_socket`] or [`SOCKET_ENV`] names; else, of the usual
/// places and those that the program [knows](know), the one at which a gateway answers; else the one at which
/// a gateway would listen.
pub fn socket() -> PathBuf {
    let set = || std::env::var_os(SOCKET_ENV).map(PathBuf::from);
    NAMED.get().cloned().or_else(set).unwrap_or_else(found)
}

fn found() -> PathBuf {
    let mut usual = usual_sockets();
    let known = || KNOWN.get().and_then(|known| (known.here)());
    let answering = usual.iter().find(|socket| answers(socket)).cloned();
    let answering = answering.or_else(|| known().filter(|socket| answers(socket)));
    answering.unwrap_or_else(|| usual.swap_remove(0))
}

/// Makes this process's commands use another socket from now on. Only the first call has an effect.
pub fn use_socket(path: PathBuf) {
    let _ = NAMED.set(path);
}

/// Whether a connection can come with an answer from this process's gateway.
pub fn takes_connections() -> bool {
    socket().file_name().is_none_or(|name| name != FORWARDED)
}

/// Where a gateway was looked for besides `path`, and on which other host there is one, for people.
pub(crate) fn looked_at(path: &Path) -> String {
    let usual = usual_sockets();
    if !usual.iter().any(|usual| usual == path) {
        return path.display().to_string();
    }
    let all: Vec<String> = usual.iter().map(|socket| socket.display().to_string()).collect();
    let mut text = all.join(", ");
    if let Some(host) = KNOWN.get().and_then(|known| (known.elsewhere)()) {
        text += &format!("; yours was started on {host}: run the command there");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_gateway_is_sought_at_the_same_places_with_any_environment() {
        let run = tempfile::tempdir().unwrap();
        let user = getuid();
        let temporary = PathBuf::from(format!("/tmp/causeway-{user}/gateway.sock"));
        assert_eq!(usual(user, None, run.path()), std::slice::from_ref(&temporary));
        let own = run.path().join(user.to_string());
        fs::create_dir(&own).unwrap();
        let both = [own.join("causeway/gateway.sock"), temporary];
        assert_eq!(usual(user, None, run.path()), both, "cron, su -, env -i");
        assert_eq!(usual(user, Some(own), run.path()), both, "a login session");
    }

    #[test]
    fn a_directory_that_the_user_has_set_counts_alone_and_another_users_does_not() {
        let run = tempfile::tempdir().unwrap();
        let user = getuid();
        let set = run.path().join("mine");
        let there = [set.join("causeway/gateway.sock")];
        assert_eq!(usual(user, Some(set), run.path()), there, "it may be made yet");
        let other = Uid::from_raw(user.as_raw() + 1);
        let foreign = run.path().join("theirs");
        fs::create_dir(&foreign).unwrap();
        assert_eq!(
            usual(other, Some(foreign), run.path()),
            [PathBuf::from(format!("/tmp/causeway-{other}/gateway.sock"))]
        );
    }

    #[test]
    fn a_socket_answers_while_somebody_listens_in_a_directory_of_the_users_own() {
        let directory = tempfile::tempdir().unwrap();
        let set_mode = |mode| fs::set_permissions(directory.path(), PermissionsExt::from_mode(mode)).unwrap();
        set_mode(0o700);
        let socket = directory.path().join(FILE);
        assert!(!answers(&socket));
        let listener = UnixListener::bind(&socket).unwrap();
        assert!(answers(&socket));
        set_mode(0o777);
        assert!(!answers(&socket), "anybody could have put it there");
        set_mode(0o700);
        drop(listener);
        assert!(!answers(&socket));
    }

    #[test]
    fn a_socket_where_as_many_wait_as_may_answers_and_keeps_nobody_waiting() {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let path = directory.path().join(FILE);
        let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        listener.bind(&SockAddr::unix(&path).unwrap()).unwrap();
        listener.listen(1).unwrap();
        let waiting = (0..8).map(|_| {
            let stream = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None).unwrap();
            let connected = stream.connect(&SockAddr::unix(&path).unwrap());
            (stream, connected.is_ok())
        });
        let waiting: Vec<_> = waiting.collect();
        assert!(
            waiting.iter().any(|(_, connected)| !connected),
            "none more may wait"
        );
        assert!(answers(&path));
    }
}
