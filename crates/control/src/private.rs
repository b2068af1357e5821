//! Refuses files that another user could have made or could read: the control socket's directory, the grid's
//! key.
//!
//! Without `$XDG_RUNTIME_DIR`, the control socket is in /tmp, where another user could have put a directory
//! of that name first: commands would then ask that user in the gateway's place.

use nix::sys::stat::{Mode, fchmod};
use nix::unistd::AccessFlags;
use socket2::{Domain, SockAddr, Socket, Type};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Error, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::Path;

/// Permission bits with which a group or everybody may write, and those with which they may do anything.
const OTHERS_WRITE: u32 = 0o022;
const OTHERS_ANY: u32 = 0o077;

/// In a directory with this bit, only a file's owner can remove it.
const STICKY: u32 = 0o1000;

/// Most connections that may wait to be accepted: mpirun starts an agent for each node at once.
const BACKLOG: i32 = 1024;

/// Makes the directory that a socket is to be in, if it does not exist, and checks it.
pub fn make_directory_of(socket: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.mode(0o700).recursive(true).create(directory_of(socket))?;
    check_directory_of(socket)
}

/// Refuses a directory into which another user could put a socket. A directory that does not exist is fine.
pub fn check_directory_of(socket: &Path) -> io::Result<()> {
    let directory = directory_of(socket);
    let refuse = |why: String| {
        let text = format!("directory {} {why}", directory.display());
        Err(Error::new(ErrorKind::PermissionDenied, text))
    };
    let found = match fs::symlink_metadata(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.is_dir() {
        return refuse("is a file or a link; name the directory itself".to_owned());
    }
    if !is_trusted(found.uid()) {
        return refuse(format!(
            "belongs to user {}, who could answer instead of the gateway; have it removed, or set [listen] control and \
             CAUSEWAY_CONTROL to a socket in a directory of your own",
            found.uid()
        ));
    }
    if found.mode() & OTHERS_WRITE != 0 {
        return refuse(format!(
            "can be written by other users, who could put a socket there; chmod go-w {}, or set [listen] control and \
             CAUSEWAY_CONTROL to a socket in a directory of your own",
            directory.display()
        ));
    }
    Ok(())
}

/// Removes the socket that a killed gateway left at this path, and nothing else.
pub fn remove_socket(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Ok(found) if !found.file_type().is_socket() => Err(Error::new(
            ErrorKind::AlreadyExists,
            "exists and is not a socket; is [listen] control right?",
        )),
        found => found.and_then(|_| fs::remove_file(path)),
    }
}

/// Refuses a program that another user could have put there, and anything that is not a program.
pub fn check_program(path: &Path) -> io::Result<()> {
    let found = fs::metadata(path)?;
    let refuse = |why: String| Err(Error::new(ErrorKind::PermissionDenied, why));
    if !found.is_file() {
        return refuse("is no file".to_owned());
    }
    if !is_trusted(found.uid()) {
        return refuse(format!(
            "belongs to user {}, neither to you nor to root",
            found.uid()
        ));
    }
    if found.mode() & OTHERS_WRITE != 0 {
        return refuse(format!(
            "can be changed by other users; chmod go-w {}",
            path.display()
        ));
    }
    check_path(path)?;
    nix::unistd::eaccess(path, AccessFlags::X_OK)?;
    Ok(())
}

/// Refuses a path that another user could change: the file, a directory above it, or a link on the way,
/// belongs to somebody who is neither this user nor root, or a group or everybody may write to it. A
/// directory such as /tmp, in which nobody may touch the files of others, is fine.
pub fn check_path(path: &Path) -> io::Result<()> {
    let typed = std::path::absolute(path)?;
    for way in [fs::canonicalize(path)?, typed] {
        way.ancestors().try_for_each(check_place)?;
    }
    Ok(())
}

fn check_place(place: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(place)?;
    let refuse = |why: String| {
        let text = format!("{} {why}", place.display());
        Err(Error::new(ErrorKind::PermissionDenied, text))
    };
    if !is_trusted(found.uid()) {
        return refuse(format!(
            "belongs to user {}, neither to you nor to root",
            found.uid()
        ));
    }
    // The permission bits of a link do not count.
    let is_shared = found.is_dir() && found.mode() & STICKY != 0;
    if !found.is_symlink() && !is_shared && found.mode() & OTHERS_WRITE != 0 {
        return refuse(format!(
            "can be changed by other users; chmod go-w {}",
            place.display()
        ));
    }
    Ok(())
}

/// Whether only this process's user and root can change the files that this user owns.
fn is_trusted(owner: u32) -> bool {
    owner == nix::unistd::geteuid().as_raw() || owner == 0 || stands_for_root(owner)
}

/// Whether this owner stands for root. In a user namespace that an ordinary user made, such as a lab's or a
/// rootless container's, one number stands for all users outside, including root. Nobody can tell which of
/// them owns a file, so all of them are trusted there, if the permission bits, which are checked besides the
/// owner, allow it.
fn stands_for_root(owner: u32) -> bool {
    // If the namespace maps the number, it belongs to one user.
    let is_mapped = || fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| maps(&map, owner));
    let root_owner = || fs::metadata("/").map(|root| root.uid());
    let is_overflow =
        fs::read_to_string("/proc/sys/kernel/overflowuid").is_ok_and(|text| text.trim().parse() == Ok(owner));
    is_overflow && !is_mapped() && root_owner().is_ok_and(|root_owner| root_owner == owner)
}

/// Whether a namespace with this map has this user. Each line of the map contains the first number inside,
/// the first outside, and how many there are.
fn maps(map: &str, user: u32) -> bool {
    map.lines().any(|line| {
        let mut words = line.split_whitespace().map(str::parse::<u64>);
        let first = words.next().and_then(Result::ok).unwrap_or(0);
        let many = words.nth(1).and_then(Result::ok).unwrap_or(u64::MAX);
        (first..first.saturating_add(many)).contains(&u64::from(user))
    })
}

/// A socket to which only this user can connect.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // Linux gives the file the mode of the unbound socket: with a chmod after bind, anyone could connect in
    // between.
    fchmod(&socket, Mode::from_bits_truncate(0o600))?;
    socket.bind(&SockAddr::unix(path)?)?;
    socket.set_nonblocking(true)?;
    socket.listen(BACKLOG)?;
    Ok(OwnedFd::from(socket).into())
}

/// Reads a file that only its owner may read.
pub fn read_secret(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mode = file.metadata()?.mode();
    if mode & OTHERS_ANY != 0 {
        let text = format!(
            "other users may read or change it (mode {:o}); chmod 600 {}",
            mode & 0o777,
            path.display()
        );
        return Err(Error::new(ErrorKind::PermissionDenied, text));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn directory_of(socket: &Path) -> &Path {
    match socket.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    fn refusal(result: io::Result<()>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn a_sockets_directory_is_made_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("causeway/deep/gateway.sock");
        make_directory_of(&socket).unwrap();
        for made in ["causeway", "causeway/deep"] {
            let mode = fs::metadata(dir.path().join(made)).unwrap().mode();
            assert_eq!(mode & 0o777, 0o700, "{made}");
        }
        check_directory_of(&socket).unwrap();
        check_directory_of(&dir.path().join("missing/gateway.sock")).unwrap();
    }

    #[test]
    fn a_directory_in_which_others_may_put_a_socket_is_refused_with_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("causeway/gateway.sock");
        make_directory_of(&socket).unwrap();
        for mode in [0o770, 0o707, 0o1777] {
            set_mode(&dir.path().join("causeway"), mode);
            assert!(refusal(make_directory_of(&socket)).contains("chmod go-w"));
            assert!(refusal(check_directory_of(&socket)).contains("chmod go-w"));
        }
        set_mode(&dir.path().join("causeway"), 0o755);
        check_directory_of(&socket).unwrap();
        symlink("causeway", dir.path().join("link")).unwrap();
        assert!(
            refusal(check_directory_of(&dir.path().join("link/gateway.sock"))).contains("name the directory")
        );
        if nix::unistd::geteuid().is_root() {
            std::os::unix::fs::chown(dir.path().join("causeway"), Some(12345), None).unwrap();
            assert!(refusal(check_directory_of(&socket)).contains("belongs to user 12345"));
        }
    }

    #[test]
    fn a_user_namespace_has_the_users_of_its_map_alone() {
        assert!(
            maps("         0          0 4294967295\n", 65534),
            "that of the host"
        );
        assert!(
            maps("0 100000 65536", 65534),
            "that of a container with users of its own"
        );
        assert!(!maps("1000 0 1", 65534), "that of a node of a lab");
        assert!(maps("0 1000 1\n65534 165534 1\n", 65534));
        assert!(!maps("", 0));
        assert!(maps("damaged", 65534), "what cannot be read trusts nobody");
    }

    #[test]
    fn only_a_socket_is_removed_from_a_sockets_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gateway.sock");
        remove_socket(&path).unwrap();
        drop(bind(&path).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        remove_socket(&path).unwrap();
        fs::write(&path, "a thesis").unwrap();
        assert!(refusal(remove_socket(&path)).contains("is not a socket"));
        assert_eq!(fs::read(&path).unwrap(), b"a thesis");
    }

    #[test]
    fn a_program_that_others_may_change_or_that_is_none_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("causeway");
        assert!(refusal(check_program(&path)).contains("No such file"));
        fs::write(&path, "program").unwrap();
        set_mode(&path, 0o644);
        assert!(refusal(check_program(&path)).contains("Permission denied"));
        for mode in [0o775, 0o757] {
            set_mode(&path, mode);
            assert!(refusal(check_program(&path)).contains("chmod go-w"));
        }
        set_mode(&path, 0o755);
        check_program(&path).unwrap();
        assert!(refusal(check_program(dir.path())).contains("is no file"));
        if nix::unistd::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
            assert!(refusal(check_program(&path)).contains("belongs to user 12345"));
        }
    }

    #[test]
    fn a_file_below_a_directory_or_behind_a_link_that_others_may_change_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("outer/inner");
        fs::create_dir_all(&inner).unwrap();
        let path = inner.join("gateway.toml");
        fs::write(&path, "").unwrap();
        set_mode(&path, 0o644);
        for place in [dir.path().join("outer"), inner.clone()] {
            set_mode(&place, 0o755);
        }
        check_path(&path).unwrap();
        for place in [dir.path().join("outer"), inner.clone(), path.clone()] {
            let mode = fs::metadata(&place).unwrap().mode();
            for bits in [0o020, 0o002] {
                set_mode(&place, mode & 0o777 | bits);
                let said = refusal(check_path(&path));
                assert!(
                    said.contains(&format!("chmod go-w {}", place.display())),
                    "{said}"
                );
            }
            set_mode(&place, mode & 0o777);
        }
        // Others may put files beside ours, but cannot replace them.
        set_mode(&dir.path().join("outer"), 0o1777);
        check_path(&path).unwrap();
        let open = dir.path().join("open");
        fs::create_dir(&open).unwrap();
        symlink(&path, open.join("link")).unwrap();
        check_path(&open.join("link")).unwrap();
        set_mode(&open, 0o777);
        assert!(refusal(check_path(&open.join("link"))).contains("chmod go-w"));
        assert!(check_path(&dir.path().join("missing")).is_err());
    }

    #[test]
    fn a_secret_that_others_may_read_is_refused_with_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("grid.key");
        fs::write(&path, "secret").unwrap();
        for mode in [0o644, 0o640, 0o604] {
            set_mode(&path, mode);
            let refusal = read_secret(&path).unwrap_err().to_string();
            assert!(
                refusal.contains(&format!("chmod 600 {}", path.display())),
                "{refusal}"
            );
        }
        set_mode(&path, 0o400);
        assert_eq!(read_secret(&path).unwrap(), b"secret");
    }
}
