//! Runs short commands on nodes for a job that has no launcher, and returns what they print.

use super::frame::{Frame, Request};
use causeway_control as control;
use std::io::BufReader;
use std::thread;
use std::time::{Duration, Instant};

/// Most nodes that are asked at once: sshd turns away callers when more than ten connections are not
/// authenticated yet (MaxStartups).
const AT_ONCE: usize = 8;

/// Most bytes that are kept of what a command prints.
const OUTPUT_BYTES: usize = 4096;

/// The status with which a shell reports that it does not find a command.
const NOT_FOUND: u8 = 127;

/// Calls `look` for each of these nodes, eight at a time; a result is `None` if its call panicked.
pub fn on_each<N: Sync, T: Send>(nodes: &[N], look: impl Fn(&N) -> T + Sync) -> Vec<Option<T>> {
    let look = &look;
    let batches = nodes.chunks(AT_ONCE).flat_map(|batch| {
        thread::scope(|scope| {
            let looks: Vec<_> = batch.iter().map(|node| scope.spawn(move || look(node))).collect();
            let found = looks.into_iter().map(|look| look.join().ok());
            found.collect::<Vec<_>>()
        })
    });
    batches.collect()
}

/// Runs a shell command on a node of the job with this token, wherever the node is, and returns what it
/// prints. The command ends with the connection to it, and so with this process.
///
/// # Errors
/// The command does not start, fails or takes longer than `within`; the error is one sentence.
pub fn ask(token: &str, node: &str, command: &str, within: Duration) -> Result<String, String> {
    let until = Instant::now() + within;
    let spawn = control::Request::Spawn {
        token: token.to_owned(),
        node: node.to_owned(),
        takes_connection: control::takes_connections(),
    };
    let (_, stream) = control::ask(&control::socket(), &spawn).map_err(|error| error.to_string())?;
    let request = Request {
        command: std::ffi::OsString::from(command).into(),
        environment: Vec::new(),
        path: Vec::new(),
        is_of_site: false,
    };
    let mut reader = BufReader::new(stream.try_clone().map_err(|error| error.to_string())?);
    let mut next = || {
        let left = until.saturating_duration_since(Instant::now());
        let late = || format!("no answer within {} s", within.as_secs());
        if left.is_zero() {
            return Err(late());
        }
        let bounded = stream.set_read_timeout(Some(left));
        bounded.map_err(|error| error.to_string())?;
        match Frame::read(&mut reader) {
            Ok(Some(frame)) => Ok(frame),
            Ok(None) => Err("the node, its gateway or the tunnel to it went away".to_owned()),
            Err(_) if Instant::now() >= until => Err(late()),
            Err(error) => Err(error.to_string()),
        }
    };
    match next()? {
        Frame::Hello => {}
        Frame::Error(why) => return Err(why),
        _ => return Err("its answer is not understood".to_owned()),
    }
    let sent = Frame::Request(Box::new(request)).write(&mut &stream);
    sent.map_err(|error| error.to_string())?;
    let mut said = [Vec::new(), Vec::new()];
    loop {
        match next()? {
            Frame::Stdout(bytes) => keep(&mut said[0], &bytes),
            Frame::Stderr(bytes) => keep(&mut said[1], &bytes),
            Frame::Exit(status) => return judge(command, status, &said),
            Frame::Error(why) => return Err(why),
            _ => {}
        }
    }
}

fn keep(said: &mut Vec<u8>, bytes: &[u8]) {
    let room = OUTPUT_BYTES.saturating_sub(said.len());
    said.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

fn judge(command: &str, status: u8, [output, errors]: &[Vec<u8>; 2]) -> Result<String, String> {
    let errors = String::from_utf8_lossy(errors);
    match status {
        0 => Ok(String::from_utf8_lossy(output).into_owned()),
        NOT_FOUND => Err(format!(
            "{command} is not there: causeway must have the same path at every site"
        )),
        _ => Err(format!("{command} ended with status {status}: {}", errors.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_is_asked_and_the_answers_keep_their_order() {
        let numbers: Vec<usize> = (0..20).collect();
        let answers = on_each(&numbers, |number| {
            assert!(*number != 13, "one that fails");
            number * 2
        });
        let expected = (0..20).map(|number| (number != 13).then_some(number * 2));
        assert_eq!(answers, expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_command_says_what_it_prints_or_why_it_failed_and_no_more_is_kept_than_is_read() {
        let mut said = [Vec::new(), Vec::new()];
        keep(&mut said[0], &[b'x'; 4000]);
        keep(&mut said[0], &[b'y'; 4000]);
        keep(&mut said[1], b"no room\n");
        assert_eq!(judge("c", 0, &said).unwrap().len(), OUTPUT_BYTES);
        assert_eq!(
            judge("c", 3, &said).unwrap_err(),
            "c ended with status 3: no room"
        );
        assert!(judge("c", 127, &said).unwrap_err().contains("same path"));
    }
}
