//! One site's command: it is started by the gateway of that site, or here as a child, and followed until its
//! end.
//!
//! In both cases `causeway node-exec` runs it, which ends everything that it has started when this stream
//! ends. So nothing is left of a command, however this process ends.

use super::lines::Lines;
use super::supervisor::Ended;
use causeway_control::{self as control, ControlError, SiteMpi};
use causeway_remote::frame::{Frame, FrameError, MAX_DATA, Request};
use causeway_remote::node_exec::MpiWords;
use causeway_remote::stdin::{self, Window};
use std::ffi::OsString;
use std::io::{self, BufReader};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A command that is running, or about to run.
pub struct Site {
    stream: UnixStream,
    /// The same stream, for writing: each frame is written as a whole under the lock.
    writer: Arc<Mutex<UnixStream>>,
    /// The process, if it runs here, at the own site.
    child: Option<Child>,
}

/// Why the stream of a command cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// The gateway cannot be asked.
    #[error("{0}")]
    Control(#[from] ControlError),
    /// The system cannot start the command.
    #[error("start its command: {0}")]
    Io(#[from] io::Error),
}

impl Site {
    /// Opens the path to a node of another site.
    ///
    /// # Errors
    /// The gateway refuses.
    pub fn far(token: &str, node: &str) -> Result<Site, SiteError> {
        let (token, node) = (token.to_owned(), node.to_owned());
        let request = control::Request::Spawn {
            token,
            node,
            takes_connection: control::takes_connections(),
        };
        let (_, stream) = control::ask(&control::socket(), &request)?;
        Site::on(stream, None)
    }

    /// Begins a command of this site on this host: with the user's environment, as far as this process has
    /// it, and in a session without the terminal, whose Ctrl-C this process handles.
    ///
    /// # Errors
    /// Those of the system.
    pub fn here(own: &Path, site: &str, mpi: &SiteMpi) -> Result<Site, SiteError> {
        let (stream, far) = UnixStream::pair()?;
        let (input, output): (OwnedFd, OwnedFd) = (far.try_clone()?.into(), far.into());
        let mut command = Command::new(own);
        let (start, setup) = (mpi.start.clone(), mpi.setup.clone());
        let words = MpiWords { start, setup };
        let arguments: [OsString; 3] = ["node-exec".into(), "--site".into(), site.into()];
        command
            .args(arguments)
            .args(words.options())
            .stdin(input)
            .stdout(output)
            .process_group(0);
        causeway_host::processes::prepare(&mut command);
        let child = Some(command.spawn()?);
        Site::on(stream, child)
    }

    fn on(stream: UnixStream, child: Option<Child>) -> Result<Site, SiteError> {
        let writer = Arc::new(Mutex::new(stream.try_clone()?));
        Ok(Site {
            stream,
            writer,
            child,
        })
    }

    /// Sends the request, follows the command in a thread until its end, and reports that with `ended`. The
    /// command's standard input is this process's, or none.
    ///
    /// # Errors
    /// Those of starting threads.
    pub fn begin(
        &self,
        request: Request,
        has_input: bool,
        is_alone: bool,
        ended: impl FnOnce(Ended) + Send + 'static,
    ) -> io::Result<()> {
        let reader = BufReader::with_capacity(MAX_DATA, self.stream.try_clone()?);
        let mut conversation = Conversation {
            reader,
            writer: Arc::clone(&self.writer),
            window: Arc::new(Window::default()),
            has_input,
            is_alone,
        };
        let thread = std::thread::Builder::new().name("site".to_owned());
        thread.spawn(move || ended(conversation.run(request)))?;
        Ok(())
    }

    /// Has the command's launcher end, as if by Ctrl-C at its terminal.
    pub fn interrupt(&self) {
        // A thread that writes the request, or a piece of standard input, has the lock for a moment. If
        // standard input blocks it, the order to end everything comes later.
        for _ in 0..INTERRUPT_TRIES {
            if let Ok(mut writer) = self.writer.try_lock() {
                let _ = Frame::Interrupt.write(&mut *writer);
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Orders the end of everything that the command has started. The end is still reported.
    pub fn end(&self) {
        // If the stream has ended, so has the command.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Releases a command whose end has been reported.
    pub fn collect(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        // A child that takes longer is ending what it has started, and needs no help.
        if let Some(child) = &mut self.child {
            let _ = child.try_wait();
        }
    }
}

/// How many times, a millisecond apart, an interrupt tries to lock the stream.
const INTERRUPT_TRIES: u32 = 100;

/// The stream of one command.
struct Conversation {
    reader: BufReader<UnixStream>,
    writer: Arc<Mutex<UnixStream>>,
    window: Arc<Window>,
    has_input: bool,
    is_alone: bool,
}

/// The reason that is given if a stream ends too early.
const CUT: &str = "the connection to its command ended before the command did (the node, its gateway or the tunnel to it is down)";

impl Conversation {
    fn run(&mut self, request: Request) -> Ended {
        match self
            .begin(request)
            .and_then(|begun| begun.map_or_else(|| self.hear(), Ok))
        {
            Ok(ended) => ended,
            Err(FrameError::Io(_)) => Ended::Failed(CUT.to_owned()),
            Err(error) => Ended::Failed(format!("start its command: {error}")),
        }
    }

    /// Sends the request; returns how the command ended if that fails.
    fn begin(&mut self, request: Request) -> Result<Option<Ended>, FrameError> {
        match Frame::read(&mut self.reader)? {
            Some(Frame::Hello) => {}
            Some(Frame::Error(reason)) => return Ok(Some(not_started(&reason))),
            _ => return Ok(Some(Ended::Failed(CUT.to_owned()))),
        }
        let mut writer = self
            .writer
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        Frame::Request(Box::new(request)).write(&mut *writer)?;
        if !self.has_input {
            Frame::StdinEnd.write(&mut *writer)?;
            return Ok(None);
        }
        drop(writer);
        let (writer, window) = (Arc::clone(&self.writer), Arc::clone(&self.window));
        let thread = std::thread::Builder::new().name("stdin".to_owned());
        thread.spawn(move || stdin::send(&writer, &window))?;
        Ok(None)
    }

    /// Passes output on until the command's end.
    fn hear(&mut self) -> Result<Ended, FrameError> {
        let mut output = Lines::new(io::stdout(), self.is_alone);
        let mut errors = Lines::new(io::stderr(), self.is_alone);
        let ended = loop {
            match Frame::read(&mut self.reader) {
                Ok(Some(Frame::Stdout(data))) => output.take(&data),
                Ok(Some(Frame::Stderr(data))) => errors.take(&data),
                Ok(Some(Frame::Credit(bytes))) => self.window.give_back(bytes as usize),
                // This frame is for the audit of another site.
                Ok(Some(Frame::Started(_))) => {}
                Ok(Some(Frame::Exit(status))) => break Ok(Ended::Status(status)),
                Ok(Some(Frame::Error(reason))) => {
                    break Ok(Ended::Failed(format!(
                        "its command did not end by itself: {reason}"
                    )));
                }
                Ok(_) => break Ok(Ended::Failed(CUT.to_owned())),
                Err(error) => break Err(error),
            }
        };
        output.finish();
        errors.finish();
        ended
    }
}

fn not_started(reason: &str) -> Ended {
    Ended::Failed(format!("its command was not started: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_remote::frame::Started;
    use std::sync::mpsc::channel;

    /// A command whose far end belongs to the test, and the channel with its end.
    fn site() -> (Site, UnixStream, std::sync::mpsc::Receiver<Ended>) {
        let (near, far) = UnixStream::pair().unwrap();
        let site = Site::on(near, None).unwrap();
        let (sender, ended) = channel();
        let request = Request {
            command: "true".to_owned().into(),
            environment: Vec::new(),
            path: Vec::new(),
            is_of_site: true,
        };
        let report = move |how| drop(sender.send(how));
        site.begin(request, false, false, report).unwrap();
        (site, far, ended)
    }

    fn end(ended: &std::sync::mpsc::Receiver<Ended>) -> Ended {
        ended.recv_timeout(Duration::from_secs(20)).unwrap()
    }

    #[test]
    fn a_command_is_told_what_to_do_and_heard_until_its_end() {
        let (site, mut far, ended) = site();
        Frame::Hello.write(&mut far).unwrap();
        assert!(matches!(Frame::read(&mut far), Ok(Some(Frame::Request(_)))));
        assert_eq!(Frame::read(&mut far).unwrap(), Some(Frame::StdinEnd));
        let (pid, command) = (7, "true".to_owned());
        Frame::Started(Started { pid, command }).write(&mut far).unwrap();
        site.interrupt();
        assert_eq!(Frame::read(&mut far).unwrap(), Some(Frame::Interrupt));
        site.end();
        assert_eq!(Frame::read(&mut far).unwrap(), None);
        Frame::Exit(3).write(&mut far).unwrap();
        assert_eq!(end(&ended), Ended::Status(3));
    }

    #[test]
    fn a_refusal_and_a_cut_are_told_apart() {
        let (_site, mut far, ended) = site();
        Frame::Error("no such node".to_owned()).write(&mut far).unwrap();
        assert_eq!(end(&ended), not_started("no such node"));
        let (_site, mut far, ended) = site();
        Frame::Hello.write(&mut far).unwrap();
        drop(far);
        assert_eq!(end(&ended), Ended::Failed(CUT.to_owned()));
    }
}
