//! A running command, to be waited for and signalled.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::sys;

/// A command that runs in a node. Dropping it neither stops nor waits for it.
#[derive(Debug)]
pub struct NodeChild {
    pub(super) pid: i32,
    pub(super) handle: OwnedFd,
    pub(super) ended: Option<ExitStatus>,
    /// Write end of its input, if piped.
    pub stdin: Option<File>,
    /// Read end of its output, if piped.
    pub stdout: Option<File>,
    /// Read end of its messages, if piped.
    pub stderr: Option<File>,
}

impl NodeChild {
    /// Process id outside the node.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Becomes readable when the command has ended.
    pub fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// The kernel's answer, if somebody else has waited for it.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        loop {
            if let Some(status) = self.collect(0)? {
                return Ok(status);
            }
        }
    }

    /// Returns its status, if it has ended.
    ///
    /// # Errors
    /// The kernel's answer, if somebody else has waited for it.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.collect(libc::WNOHANG)
    }

    /// Sends a signal, such as `libc::SIGTERM`, to its first process.
    ///
    /// # Errors
    /// The kernel's answer; ESRCH when it has ended.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        sys::signal(self.handle.as_fd(), signal)
    }

    /// Reads piped output to its end and waits: status, output, messages.
    ///
    /// # Errors
    /// The first read or wait that failed.
    pub fn wait_with_output(mut self) -> io::Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
        drop(self.stdin.take());
        let stderr = self.stderr.take();
        let reader = std::thread::spawn(move || read_all(stderr));
        let output = read_all(self.stdout.take())?;
        let messages = reader
            .join()
            .map_err(|_| io::Error::other("reading stderr panicked"))??;
        Ok((self.wait()?, output, messages))
    }

    fn collect(&mut self, flags: i32) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            let mut raw = 0;
            // SAFETY: `raw` outlives the call; nix's waitpid would lose the raw status that ExitStatus is
            // made from.
            let result = unsafe { libc::waitpid(self.pid, &mut raw, flags) };
            match result {
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                -1 => return Err(io::Error::last_os_error()),
                0 => {}
                _ => self.ended = Some(ExitStatus::from_raw(raw)),
            }
        }
        Ok(self.ended)
    }
}

fn read_all(file: Option<File>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut file) = file {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
