//! Values of a configuration: what each text means, and which values are refused.

use super::Transport;
use causeway_control::private;
use causeway_wire::TextError;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Least length of a grid key: 128 bits.
const KEY_BYTES: usize = 16;

/// Shortest and longest `resume` and `lane_timeout`: a lane is not dead because a scheduler hesitated, and a
/// week is as good as for ever.
const WAITS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(7 * 86_400);

/// Rates that a reservation may have: TCP cannot pace below some packets a second, and no lane is faster than
/// the largest.
const RATES: RangeInclusive<f64> = 100e3..=1e12;

pub(super) fn duration(text: &str) -> Result<Duration, TextError> {
    let units = [("ms", 0.001), ("min", 60.0), ("h", 3600.0), ("s", 1.0)];
    let parsed = units.into_iter().find_map(|(unit, seconds)| {
        let number: f64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
        Duration::try_from_secs_f64(number * seconds).ok()
    });
    match parsed {
        Some(duration) if WAITS.contains(&duration) => Ok(duration),
        Some(_) => Err(format!(
            "{text:?} is not between {:?} and {:?}",
            WAITS.start(),
            WAITS.end()
        )
        .into()),
        None => Err(format!("{text:?} is not a time such as \"10min\", \"15s\" or \"500ms\"").into()),
    }
}

pub(super) fn bits_per_second(text: &str) -> Result<u64, TextError> {
    let units = [("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)];
    let parsed = units.into_iter().find_map(|(unit, factor)| {
        let number: f64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
        Some(number * factor)
    });
    match parsed {
        // The rate fits: it is at most 1e12.
        Some(rate) if RATES.contains(&rate) => Ok(rate as u64),
        Some(_) => Err(format!("{text:?} is not between 100 kbit/s and 1000 Gbit/s").into()),
        None => Err(format!("{text:?} is not a rate such as \"400Mbit/s\" or \"1Gbit/s\"").into()),
    }
}

pub(super) fn transport(text: &str) -> Result<Transport, TextError> {
    match text {
        "auto" => Ok(Transport::Auto),
        "tcp" => Ok(Transport::Tcp),
        "quic" => Ok(Transport::Quic),
        _ => Err(format!("{text:?} is none of \"auto\", \"tcp\" and \"quic\"").into()),
    }
}

pub(super) fn socket_address(text: &str) -> Result<SocketAddr, TextError> {
    text.parse()
        .map_err(|_| format!("{text:?} is not an address such as 10.1.0.253:7000").into())
}

pub(super) fn loopback_address(text: &str) -> Result<SocketAddr, TextError> {
    let address = socket_address(text)?;
    if !address.ip().to_canonical().is_loopback() {
        return Err(format!(
            "{address} is not a loopback address such as 127.0.0.1: metrics are sent unencrypted to anyone who asks, so \
             other hosts must read them through ssh or a proxy of your choice"
        ).into());
    }
    if address.port() == 0 {
        return Err("port 0 would be a different port at every start".into());
    }
    Ok(address)
}

/// The address of the transparent listener. Redirected connections keep their own addresses, so any address
/// will do that nobody can dial.
pub(super) fn redirected_address(text: &str) -> Result<SocketAddr, TextError> {
    let address = socket_address(text)?;
    if !address.is_ipv4() || !address.ip().is_loopback() || address.port() == 0 {
        return Err(
            format!("{address} is not an IPv4 loopback address and port such as 127.0.0.1:7002").into(),
        );
    }
    Ok(address)
}

pub(super) fn read_key(file: &Path) -> Result<Vec<u8>, TextError> {
    let key = private::read_secret(file).map_err(|error| format!("read {}: {error}", file.display()))?;
    let key = key.trim_ascii().to_vec();
    if key.len() < KEY_BYTES {
        return Err(format!(
            "{} holds {} bytes; a grid key has at least {KEY_BYTES}",
            file.display(),
            key.len()
        )
        .into());
    }
    Ok(key)
}

/// The user and the password for a proxy, from a file of one line that only this user may read.
pub(super) fn read_credentials(file: &Path) -> Result<String, TextError> {
    let text = private::read_secret(file).map_err(|error| format!("read {}: {error}", file.display()))?;
    match std::str::from_utf8(text.trim_ascii()) {
        Ok(text) if text.contains(':') && !text.contains(char::is_control) => Ok(text.to_owned()),
        _ => Err(format!("{} has no line USER:PASSWORD", file.display()).into()),
    }
}

/// The path of a command, as a shell would find it; `None` if there is none.
pub(super) fn find_program(command: &str) -> Option<PathBuf> {
    if command.contains('/') {
        return Some(PathBuf::from(command));
    }
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|directory| directory.join(command));
    { found }.find(|program| program.is_file())
}
