//! A site whose nodes have one memory: a substitute for a fast network that MPIs use without the kernel's
//! sockets. Its nodes share System V memory and semaphores (one IPC namespace), /dev/shm, process numbers and
//! the boot id, by which UCX distinguishes hosts. They keep names and addresses of their own, so launchers
//! still see several nodes. The first node's init is the init of all: when it ends, so do the others.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};

use crate::plan::{Plan, SitePlan};
use crate::scenario::Fabric;
use crate::sys;

/// The directory of a site's common /dev/shm, below the lab's state directory; `None` if each node has its
/// own.
pub(crate) fn memory(state: &Path, site: &SitePlan) -> Option<PathBuf> {
    (site.site.fabric == Fabric::SharedMemory).then(|| state.join("memory").join(&site.site.name))
}

/// The boot ids of a site's nodes, in their order. The kernel returns a new one each time it is read.
///
/// # Errors
/// Those of /proc.
pub(crate) fn boot_ids(site: &SitePlan) -> io::Result<Vec<Vec<u8>>> {
    let draw = || fs::read("/proc/sys/kernel/random/uuid");
    match site.site.fabric {
        Fabric::SharedMemory => Ok(vec![draw()?; site.nodes.len()]),
        Fabric::Sockets => site.nodes.iter().map(|_| draw()).collect(),
    }
}

/// Mounts the memory of all sites that have one, in a namespace in which only this process and the nodes that
/// it will make see it.
///
/// # Errors
/// Those of making namespaces, directories and mounts.
pub(crate) fn mount_memory(state: &Path, plan: &Plan) -> io::Result<()> {
    let places: Vec<PathBuf> = plan.sites.iter().filter_map(|site| memory(state, site)).collect();
    if places.is_empty() {
        return Ok(());
    }
    unshare(CloneFlags::CLONE_NEWNS)?;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>)?;
    for place in places {
        DirBuilder::new().recursive(true).mode(0o755).create(&place)?;
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        mount(Some("tmpfs"), &place, Some("tmpfs"), flags, Some("mode=1777"))?;
    }
    Ok(())
}

/// The namespaces of a site's nodes, beside those that no node shares.
pub(crate) struct Host {
    is_shared: bool,
    /// Whether a node is up whose processes the next ones join.
    has_first: bool,
    /// The process namespace of this process itself.
    processes: File,
}

impl Host {
    /// Gives this process the memory that the next nodes will share, if they share any.
    ///
    /// # Errors
    /// Those of namespaces.
    pub(crate) fn begin(site: &SitePlan) -> io::Result<Host> {
        let is_shared = site.site.fabric == Fabric::SharedMemory;
        if is_shared {
            unshare(CloneFlags::CLONE_NEWIPC)?;
        }
        Ok(Host {
            is_shared,
            has_first: false,
            processes: File::open("/proc/self/ns/pid")?,
        })
    }

    /// Returns what the next node gets for itself.
    pub(crate) fn own(&self) -> CloneFlags {
        match (self.is_shared, self.has_first) {
            (false, _) => CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWPID,
            (true, false) => CloneFlags::CLONE_NEWPID,
            (true, true) => CloneFlags::empty(),
        }
    }

    /// Notes that a node is up, with this init. The next nodes' processes are among its own.
    ///
    /// # Errors
    /// Those of joining its namespace.
    pub(crate) fn has(&mut self, init: i32) -> io::Result<()> {
        if self.is_shared && !self.has_first {
            setns(sys::pidfd(init)?, CloneFlags::CLONE_NEWPID)?;
            self.has_first = true;
        }
        Ok(())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // This concerns only the children of this process: its own namespace cannot change, and it may choose
        // one again at any time.
        let _ = setns(&self.processes, CloneFlags::CLONE_NEWPID);
    }
}
