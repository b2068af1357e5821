//! A run's end of the connection to a site's holder.

use causeway_batch::word::{FromHolder, ToHolder};
use causeway_control::{self as control, BATCH_NODE, ControlError};
use causeway_remote::frame::Frame;
use std::io::Write;
use std::os::unix::net::UnixStream;

/// The reason if no more messages come.
pub const GONE: &str = "its holder, its gateway or the tunnel to it is gone";

/// A connection to the holder of a site.
pub struct Line {
    stream: UnixStream,
    has_begun: bool,
}

/// Has a site's gateway start a holder for a job.
///
/// # Errors
/// See [`ControlError`].
pub fn start(token: &str, site: &str) -> Result<UnixStream, ControlError> {
    let request = control::Request::Spawn {
        token: token.to_owned(),
        node: format!("{BATCH_NODE}{site}"),
        takes_connection: control::takes_connections(),
    };
    control::ask(&control::socket(), &request).map(|(_, stream)| stream)
}

/// Sends a message to a holder. If the holder is gone, its [`Line`] reports that.
pub fn send(mut stream: &UnixStream, word: &ToHolder) {
    if let Ok(bytes) = serde_json::to_vec(word) {
        let _ = Frame::Batch(bytes)
            .write(&mut stream)
            .and_then(|()| stream.flush());
    }
}

impl Line {
    /// Reads messages from this stream.
    pub fn new(stream: UnixStream) -> Line {
        Line {
            stream,
            has_begun: false,
        }
    }

    /// The holder's next message; [`FromHolder::Failed`] is the last one.
    pub fn read(&mut self) -> FromHolder {
        loop {
            return match Frame::read(&mut self.stream) {
                Ok(Some(Frame::Hello)) => {
                    self.has_begun = true;
                    continue;
                }
                Ok(Some(Frame::Batch(bytes))) => match serde_json::from_slice::<FromHolder>(&bytes) {
                    Ok(word) if word.is_sound() => word,
                    _ => FromHolder::Failed("its holder's words are not understood".to_owned()),
                },
                Ok(Some(Frame::Error(why))) => FromHolder::Failed(why),
                _ if self.has_begun => FromHolder::Failed(GONE.to_owned()),
                _ => FromHolder::Failed(
                    "its gateway refuses: from in [batch] of its gateway.toml must name this site; its log says more".to_owned(),
                ),
            };
        }
    }
}
