//! Copies standard input into a connection, and the connection to standard output, until each ends.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::thread;

/// Size of one read: several times what a frame of a stream holds.
const BUFFER_BYTES: usize = 64 * 1024;

/// Copies until both directions have ended; the end of one is passed on, and the other goes on.
///
/// # Errors
/// What broke the connection.
pub fn both_ways(stream: TcpStream) -> io::Result<()> {
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    // From here on, only `output` keeps the connection open, so that the reader sees its end.
    nix::unistd::dup2_stdout(File::options().write(true).open("/dev/null")?)?;
    carry(stream, input, output)
}

fn carry(stream: TcpStream, input: impl Read + Send + 'static, output: impl Write) -> io::Result<()> {
    let upwards = stream.try_clone()?;
    let sending = thread::spawn(move || {
        let copied = copy(input, &upwards);
        match &copied {
            Ok(()) => end_half(&upwards),
            // Wakes the other direction, which waits for bytes that nobody will send.
            Err(_) => drop(upwards.shutdown(Shutdown::Both)),
        }
        copied
    });
    match copy(&stream, output) {
        Ok(()) => sending.join().unwrap_or(Ok(())).or_else(gone),
        // The connection is broken, or nobody reads what arrives: then nobody needs what has yet to be sent.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether the far side closed both directions before it had read everything: this is not our failure.
fn gone(error: io::Error) -> io::Result<()> {
    match error.kind() {
        ErrorKind::BrokenPipe => Ok(()),
        _ => Err(error),
    }
}

/// Ends what is sent. The far side may have gone at the same moment, and then there is nothing to end.
fn end_half(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
}

/// Copies each piece at once, because people type.
fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => to.write_all(&buffer[..count])?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn the_end_of_the_input_is_passed_on_and_the_answer_still_comes() {
        let (near, mut far) = pair();
        let answering = thread::spawn(move || {
            let mut question = Vec::new();
            far.read_to_end(&mut question).unwrap();
            far.write_all(b"answer").unwrap();
            question
        });
        let mut output = Vec::new();
        carry(near, &b"question"[..], &mut output).unwrap();
        assert_eq!(
            (answering.join().unwrap(), output),
            (b"question".to_vec(), b"answer".to_vec())
        );
    }

    #[test]
    fn a_reset_is_an_error() {
        let (near, far) = pair();
        nix::sys::socket::setsockopt(
            &far,
            nix::sys::socket::sockopt::Linger,
            &libc::linger {
                l_onoff: 1,
                l_linger: 0,
            },
        )
        .unwrap();
        drop(far);
        let error = carry(near, io::empty(), io::sink()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
}
