//! Process 1 of a node: arranges what the node sees, starts sshd, reaps orphans, and ends as soon as the
//! supervisor is gone, which kills the whole node. Runs as a child that never execs; see `sys::child`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::preflight::Owner;
use crate::system::System;
use crate::{mounts, sys};

pub(crate) struct Init<'a> {
    pub(crate) name: &'a str,
    /// The lab's state directory.
    pub(crate) state: &'a Path,
    /// The mount that becomes its /dev/shm, if the site's nodes share one.
    pub(crate) memory: Option<PathBuf>,
    /// Its own system; `None` if it has this host's.
    pub(crate) system: Option<System>,
    /// The path of sshd; `None` if the node accepts no ssh.
    pub(crate) sshd: Option<&'a Path>,
    pub(crate) owner: Owner,
    /// The end of this file says that the supervisor is gone.
    pub(crate) life: OwnedFd,
    /// Receives one line: empty if the node is up, otherwise what failed.
    pub(crate) ready: OwnedFd,
}

impl Init<'_> {
    pub(crate) fn run(self) -> i32 {
        sys::close_all_but(&[self.life.as_raw_fd(), self.ready.as_raw_fd()]);
        let outcome = self.stand_up();
        let mut ready = File::from(self.ready);
        let told = match &outcome {
            Ok(_) => ready.write_all(b"\n"),
            Err(reason) => ready.write_all(format!("{reason}\n").as_bytes()),
        };
        drop(ready);
        match (outcome, told) {
            (Ok(children), Ok(())) => keep(&self.life, &children),
            _ => 1,
        }
    }

    fn stand_up(&self) -> Result<SignalFd, String> {
        let during = |step: &str, error: &dyn std::fmt::Display| format!("{}: {step}: {error}", self.name);
        let children = self
            .become_init()
            .map_err(|error| during("become init", &error))?;
        let own = self.state.join("nodes").join(self.name);
        // Opened before /run and /tmp become the node's own, which may hide it.
        let log = File::create(own.join("sshd.log")).map_err(|error| during("create sshd.log", &error))?;
        mounts::arrange(self.state, &own, self.memory.as_deref(), self.system.as_ref())
            .map_err(|(step, error)| during(&step, &error))?;
        if self.owner.needs_user_namespace() {
            // Inside, programs see the user's own ids again: ssh and MPI launchers look themselves up by uid.
            unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| during("make user namespace", &error))?;
            map_ids(self.owner.uid, 0, self.owner.gid, 0).map_err(|error| during("map user", &error))?;
        }
        if let Some(sshd) = self.sshd {
            self.start_sshd(sshd, log)
                .map_err(|error| during("start sshd", &error))?;
        }
        Ok(children)
    }

    fn become_init(&self) -> io::Result<SignalFd> {
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        let _ = prctl::set_name(c"lab-init");
        nix::unistd::setsid()?;
        nix::unistd::sethostname(self.name)?;
        // Not for core dumps: `lab exec` has to inspect us from another process of the same user.
        prctl::set_dumpable(true)?;
        let mut children = SigSet::empty();
        children.add(Signal::SIGCHLD);
        children.thread_set_mask()?;
        Ok(SignalFd::with_flags(
            &children,
            SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK,
        )?)
    }

    fn start_sshd(&self, sshd: &Path, log: File) -> Result<(), String> {
        // sshd inherits the mask, and before OpenSSH 9 it does not notice the end of a command while SIGCHLD
        // is blocked.
        let blocked = SigSet::thread_get_mask().map_err(|errno| errno.to_string())?;
        SigSet::empty()
            .thread_set_mask()
            .map_err(|errno| errno.to_string())?;
        let spawned = Command::new(sshd)
            .args(["-D", "-e", "-f", "/etc/ssh/sshd_config"])
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        blocked.thread_set_mask().map_err(|errno| errno.to_string())?;
        let mut sshd = spawned.map_err(|error| error.to_string())?;
        let deadline = Instant::now() + SSHD_DEADLINE;
        while !listens(SSH_PORT) {
            if let Ok(Some(status)) = sshd.try_wait() {
                return Err(format!(
                    "it ended with {status}; see nodes/{}/sshd.log",
                    self.name
                ));
            }
            if Instant::now() > deadline {
                return Err(format!("it did not listen within {} s", SSHD_DEADLINE.as_secs()));
            }
            // sshd reports to nobody when it listens; its entry in the table is the event, which can only be
            // polled.
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

/// Maps one user and one group of the enclosing namespace, as the user namespace's maker may.
pub(crate) fn map_ids(uid: u32, uid_outside: u32, gid: u32, gid_outside: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid_outside} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid_outside} 1"))
}

fn listens(port: u16) -> bool {
    let wanted = format!(":{port:04X}");
    let table = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    table.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        let local = words.next().is_some_and(|local| local.ends_with(&wanted));
        local && words.nth(1) == Some(LISTEN_STATE)
    })
}

fn keep(life: &OwnedFd, children: &SignalFd) -> i32 {
    loop {
        let mut events = [
            PollFd::new(life.as_fd(), PollFlags::POLLIN),
            PollFd::new(children.as_fd(), PollFlags::POLLIN),
        ];
        let _ = poll(&mut events, PollTimeout::NONE);
        if events[0].revents().is_some_and(|events| !events.is_empty()) {
            return 0;
        }
        while let Ok(Some(_)) = children.read_signal() {}
        while !matches!(
            waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)),
            Err(_) | Ok(WaitStatus::StillAlive)
        ) {}
    }
}

const SSH_PORT: u16 = 22;
/// TCP_LISTEN as /proc/net/tcp writes it.
const LISTEN_STATE: &str = "0A";
/// sshd takes 20 ms; on a busy machine with two cores, 27 of them take some seconds.
const SSHD_DEADLINE: Duration = Duration::from_secs(15);
