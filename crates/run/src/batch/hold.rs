//! `causeway hold`: the program that an allocation runs on its first node. It reports to the holder that the
//! allocation has begun, and exits, which ends the allocation, when no holder is left.

use causeway_host::say;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The variable with the secret by which the holder recognizes this process: others could read arguments.
pub const SECRET: &str = "CAUSEWAY_HOLD";

/// How often the holder sends a byte.
pub const BEATS: Duration = Duration::from_secs(10);

/// How long the holder may be silent.
const LEASE: Duration = Duration::from_secs(60);

/// How long connecting may take, and how long to wait before the next attempt.
const CONNECTS_WITHIN: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the holder listens.
    holder: SocketAddr,
}

/// Runs until no holder is left.
pub fn main(args: &Args) -> ExitCode {
    let Some(secret) = std::env::var_os(SECRET) else {
        say::error(format_args!(
            "causeway hold: {SECRET} is not set; a holder's script sets it"
        ));
        return ExitCode::FAILURE;
    };
    let secret = secret.to_string_lossy();
    let Some((own, proof)) = secret.split_once(':') else {
        say::error(format_args!("causeway hold: {SECRET} is not of a holder's form"));
        return ExitCode::FAILURE;
    };
    let line = format!("{own}\n");
    let mut heard = Instant::now();
    while heard.elapsed() < LEASE {
        if let Ok(mut stream) = TcpStream::connect_timeout(&args.holder, CONNECTS_WITHIN) {
            listen(&mut stream, (&line, proof), &mut heard);
        }
        std::thread::sleep(AGAIN);
    }
    ExitCode::FAILURE
}

/// Reads beats until they stop. They count only after the proof that comes from the allocation's holder:
/// another program may have the holder's port by now.
fn listen(stream: &mut TcpStream, (line, proof): (&str, &str), heard: &mut Instant) {
    let mut said = vec![0; proof.len()];
    let begun = stream
        .set_read_timeout(Some(LEASE))
        .and_then(|()| stream.write_all(line.as_bytes()))
        .and_then(|()| stream.read_exact(&mut said));
    if said != proof.as_bytes() {
        return;
    }
    let mut beats = [0; 64];
    while begun.is_ok() {
        match stream.read(&mut beats) {
            Ok(1..) => *heard = Instant::now(),
            Ok(0) | Err(_) => return,
        }
    }
}
