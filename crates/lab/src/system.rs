//! A site with a system of its own: its nodes have the libc, ssh and MPIs of another distribution, from a
//! directory that holds its root (`root` in a scenario). The directory is only read. Above it, each node has
//! memory for what it writes, and each site a home directory that its nodes share.
//!
//! ```text
//! overlay /  = the root's directory, and memory of the node
//!    /dev        the host's; /proc, /sys, /run and /dev/shm as in every node (`mounts`)
//!    $HOME       the site's, in the lab's state directory
//!    shown       directories of the host at the same paths: the one the lab was started in, and others that
//!                the root does not have
//! ```

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{Uid, User, chdir, pivot_root};

use crate::mount_calls::{below, bind, fresh, plain};
use crate::plan::{Plan, SitePlan};

/// The path of sshd in each system; sshd must be called by its absolute path.
pub(crate) const SSHD: &str = "/usr/sbin/sshd";

/// What a node has instead of the host's files.
pub(crate) struct System {
    root: PathBuf,
    /// The site's home, and where its nodes see it.
    home: (PathBuf, PathBuf),
    /// The line of /etc/passwd for the user who runs the lab.
    user: String,
    uid: u32,
    shown: Vec<PathBuf>,
}

/// Makes the home directories, before the nodes exist.
///
/// # Errors
/// Those of the file system.
pub(crate) fn write_files(plan: &Plan, dir: &Path) -> io::Result<()> {
    for site in plan.sites.iter().filter(|site| site.site.root.is_some()) {
        let mut home = DirBuilder::new();
        home.recursive(true).mode(0o700).create(home_of(dir, site))?;
    }
    Ok(())
}

fn home_of(dir: &Path, site: &SitePlan) -> PathBuf {
    dir.join("homes").join(&site.site.name)
}

impl System {
    /// The system of this site's nodes; `None` if it is the host's.
    ///
    /// # Errors
    /// This user has no name.
    pub(crate) fn of(
        site: &SitePlan,
        state: &Path,
        (uid, gid): (u32, u32),
        shown: &[PathBuf],
    ) -> io::Result<Option<System>> {
        let Some(root) = &site.site.root else {
            return Ok(None);
        };
        let user = User::from_uid(Uid::from_raw(uid))?;
        let user = user.ok_or_else(|| io::Error::other("this user has no name"))?;
        let home = user.dir;
        let line = format!("{}:x:{}:{}::{}:/bin/sh\n", user.name, uid, gid, home.display());
        let current = std::env::current_dir().into_iter();
        let others = shown.iter().filter(|path| !has(Path::new(root), path));
        let shown = current.chain(others.cloned());
        Ok(Some(System {
            root: root.into(),
            home: (home_of(state, site), home),
            user: line,
            uid,
            shown: shown.filter(|path| path.parent().is_some()).collect(),
        }))
    }

    /// Makes the root this node's own, in its mount namespace. Returns the path at which the host's files
    /// then are.
    ///
    /// # Errors
    /// The step that failed, and the kernel's answer.
    pub(crate) fn enter(&self, own: &Path) -> Result<&'static Path, (String, io::Error)> {
        let at = |step: &'static str| {
            let root = self.root.display().to_string();
            move |error: io::Error| (format!("{step} of {root}"), error)
        };
        let new = self.overlay(own).map_err(at("mount an overlay"))?;
        for place in ["/dev", "/proc", "/sys"] {
            let target = below(&new, Path::new(place));
            show(Path::new(place), &target).map_err(at("mount /dev, /proc and /sys"))?;
        }
        let host = below(&new, Path::new(HOST));
        DirBuilder::new()
            .mode(0o700)
            .create(&host)
            .map_err(at("make a directory"))?;
        let entered = pivot_root(&new, &host).and_then(|()| chdir("/"));
        entered.map_err(|errno| at("enter the root")(errno.into()))?;
        self.fill_root(own).map_err(at("fill the root"))?;
        Ok(Path::new(HOST))
    }

    /// Memory above the directory. Its own path is below the node's part of the lab's state directory, which
    /// exists on every host.
    fn overlay(&self, own: &Path) -> io::Result<PathBuf> {
        let layers = own.join("system");
        let made = |name: &str, mode| -> io::Result<PathBuf> {
            let path = layers.join(name);
            DirBuilder::new().mode(mode).create(&path)?;
            Ok(path)
        };
        fs::create_dir(&layers)?;
        fresh("tmpfs", &layers.to_string_lossy(), "mode=0755")?;
        let (upper, work, new) = (made("upper", 0o755)?, made("work", 0o700)?, made("new", 0o755)?);
        let options = format!(
            "lowerdir={},upperdir={},workdir={}",
            self.root.display(),
            upper.display(),
            work.display()
        );
        let overlay = |options: &str| {
            let target = new.to_string_lossy();
            plain(
                Some("overlay"),
                &target,
                Some("overlay"),
                MsFlags::empty(),
                Some(options),
            )
        };
        // As in `mounts`: inside a user namespace, its marks are in user.* attributes.
        overlay(&options).or_else(|_| overlay(&format!("{options},userxattr")))?;
        Ok(new)
    }

    /// Makes what the other mounts expect to exist. In the lab of an ordinary user, nothing that exists can
    /// be written: it belongs to root.
    fn fill_root(&self, own: &Path) -> io::Result<()> {
        if !Path::new("/etc/hosts").exists() {
            fs::write("/etc/hosts", "")?;
        }
        for directory in ["/etc/ssh", "/etc/slurm", "/tmp", "/run", "/var/tmp"] {
            fs::create_dir_all(directory)?;
        }
        // These are not the overlay's: to write there, it copies the directory up, whose owner an ordinary
        // user's namespace does not know.
        for directory in ["/tmp", "/var/tmp"] {
            fresh("tmpfs", directory, "mode=1777")?;
        }
        let known = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let uid = self.uid.to_string();
        if known.lines().any(|line| line.split(':').nth(2) == Some(&uid)) {
            return Ok(());
        }
        let more = below(Path::new(HOST), &own.join("passwd"));
        fs::write(&more, known + &self.user)?;
        bind(&more, "/etc/passwd")
    }

    /// Shows the part of the host that the node has, and detaches the rest.
    ///
    /// # Errors
    /// The step that failed, and the kernel's answer.
    pub(crate) fn leave_host(&self, host: &Path) -> Result<(), (String, io::Error)> {
        let (home, target) = &self.home;
        let shown = self.shown.iter().map(|path| (path, path));
        // The home comes first: a directory that is shown may be in it.
        for (source, target) in std::iter::once((home, target)).chain(shown) {
            let mounted = make_place(target).and_then(|()| show(&below(host, source), target));
            mounted.map_err(|error| (format!("mount {} of the host", target.display()), error))?;
        }
        umount2(host, MntFlags::MNT_DETACH)
            .map_err(|errno| ("let the host's files go".to_owned(), errno.into()))
    }
}

/// Whether the root has this directory itself, as a system for another processor has a Causeway of its own.
/// What is mounted there does not count, because an overlay does not show it.
fn has(root: &Path, directory: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    let own = device(&below(root, directory));
    own.is_some() && own == device(root)
}

/// Makes a directory. If an ordinary user may not, because it would be in an empty directory of root's such
/// as /home, that directory gets memory of its own.
fn make_place(target: &Path) -> io::Result<()> {
    let made = fs::create_dir_all(target);
    let Err(error) = made else { return Ok(()) };
    let parent = target.ancestors().find(|place| place.is_dir());
    let is_empty = |place: &Path| fs::read_dir(place).is_ok_and(|mut entries| entries.next().is_none());
    match parent.filter(|place| is_empty(place)) {
        Some(place) => {
            fresh("tmpfs", &place.to_string_lossy(), "mode=0755")?;
            fs::create_dir_all(target)
        }
        None => Err(error),
    }
}

fn show(source: &Path, target: &Path) -> io::Result<()> {
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    Ok(mount(Some(source), target, None::<&str>, flags, None::<&str>)?)
}

/// The path of the host's files while a node is being made.
const HOST: &str = "/.host";
