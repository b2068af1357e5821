//! The lease of what runs on a node: `start-node` renews it, and when it has expired, `node-exec` ends
//! everything.
//!
//! A node sees the end of its stream when a process of the chain ends, but not when the head node loses its
//! power or its network. Without the lease, nothing would then end the job's processes there, for as long as
//! the node runs.

use super::frame::Frame;
use std::io::{Read, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// How long a lease lasts. A head node that stalls for this long loses its processes on nodes.
pub const TERM: Duration = Duration::from_secs(60);

/// Renewals per term: all but one may be late or lost.
const RENEWALS: u32 = 6;

/// A value that several threads use, and that any of them may drop.
type Shared<T> = Arc<Mutex<Option<T>>>;

fn lock<T>(shared: &Shared<T>) -> MutexGuard<'_, Option<T>> {
    shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A value that is dropped when the lease has expired.
pub struct Held<T>(Shared<T>);

impl<T> Held<T> {
    /// Begins to hold the value.
    pub fn new(held: T) -> Held<T> {
        Held(Arc::new(Mutex::new(Some(held))))
    }

    /// Uses the value, if it has not been dropped.
    pub fn with(&self, then: impl FnOnce(&mut T)) {
        if let Some(held) = lock(&self.0).as_mut() {
            then(held);
        }
    }

    /// Drops the value.
    pub fn end(&self) {
        drop(lock(&self.0).take());
    }
}

impl<T: Send + 'static> Held<T> {
    /// Drops the value unless the lease, which this returns, is renewed in time. Dropping the lease does not
    /// drop the value.
    ///
    /// # Errors
    /// Those of starting a thread.
    pub fn lease(&self, term: Duration) -> std::io::Result<Lease> {
        let (renewed, renewals) = channel();
        let held = Arc::clone(&self.0);
        let thread = thread::Builder::new().name("lease".to_owned());
        thread.spawn(move || {
            loop {
                match renewals.recv_timeout(term) {
                    Ok(()) => {}
                    Err(RecvTimeoutError::Timeout) => return drop(lock(&held).take()),
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        })?;
        Ok(Lease(renewed))
    }
}

/// See [`Held::lease`].
pub struct Lease(Sender<()>);

impl Lease {
    /// Begins the term anew.
    pub fn renew(&self) {
        // An expired lease cannot be renewed.
        let _ = self.0.send(());
    }
}

/// Passes frames on to a node until they end, and renews its lease meanwhile; then the node's input ends.
///
/// # Errors
/// Those of starting threads.
pub fn pass_on<R, W>(mut from: R, to: W, term: Duration) -> std::io::Result<()>
where
    R: Read + Send + 'static,
    W: Write + Send + 'static,
{
    let shared: Shared<W> = Arc::new(Mutex::new(Some(to)));
    let renewing = Arc::clone(&shared);
    let (ended, end) = channel::<()>();
    let thread = thread::Builder::new().name("renewals".to_owned());
    thread.spawn(move || {
        while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(term / RENEWALS) {
            write(&renewing, &Frame::Alive);
        }
    })?;
    let thread = thread::Builder::new().name("input".to_owned());
    thread.spawn(move || {
        while let Ok(Some(frame)) = Frame::read(&mut from) {
            write(&shared, &frame);
        }
        drop(ended);
        drop(lock(&shared).take());
    })?;
    Ok(())
}

/// Writes a frame. If it fails, the end of the node's output shows that the node reads nothing more.
fn write(to: &Shared<impl Write>, frame: &Frame) {
    if let Some(to) = lock(to).as_mut() {
        let _ = frame.write(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::os::unix::net::UnixStream;

    /// Long enough for a thread to be late on a busy machine.
    const SHORT: Duration = Duration::from_millis(300);

    /// Reports that it is dropped.
    struct Told(Sender<()>);

    impl Drop for Told {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }

    #[test]
    fn what_nobody_renews_is_dropped() {
        let (told, dropped) = channel();
        let held = Held::new(Told(told));
        let lease = held.lease(SHORT).unwrap();
        dropped.recv_timeout(Duration::from_secs(20)).unwrap();
        let mut is_there = false;
        held.with(|_| is_there = true);
        assert!(!is_there);
        lease.renew();
    }

    #[test]
    fn what_is_renewed_stays_until_its_end() {
        let (told, dropped) = channel();
        let held = Held::new(Told(told));
        let lease = held.lease(Duration::from_secs(20)).unwrap();
        lease.renew();
        drop(lease);
        assert!(dropped.try_recv().is_err());
        held.end();
        assert!(dropped.try_recv().is_ok());
    }

    #[test]
    fn frames_are_passed_on_with_renewals_between_them_and_the_end_ends_them() {
        let (mut agent, from) = UnixStream::pair().unwrap();
        let (to, mut node) = UnixStream::pair().unwrap();
        pass_on(from, to, SHORT).unwrap();
        let data = Frame::Stdin(b"one".to_vec());
        data.write(&mut agent).unwrap();
        assert_eq!(Frame::read(&mut node).unwrap(), Some(data));
        assert_eq!(Frame::read(&mut node).unwrap(), Some(Frame::Alive));
        drop(agent);
        let mut rest = Vec::new();
        io::Read::read_to_end(&mut node, &mut rest).unwrap();
        assert_eq!(rest.len() % 6, 0);
    }
}
