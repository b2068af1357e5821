//! What `causeway bench` starts as ranks of a launcher if no MPI is measured.

use crate::tcp::{self, Plan};
use causeway_host::say;
use causeway_wire::Token;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::{Pid, gethostname};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Error;

/// The printed line that says that all connections of the flows are open.
pub const FLOWING: &str = "bench: flowing";

/// Sends messages back and forth between rank 0 and rank 1, which is at `to` (HOST:PORT); with `own_cores`,
/// each keeps to a core of its own.
///
/// # Errors
/// No launcher has started this process; and the system's errors.
pub fn to_and_fro(to: &str, plan: &Plan, own_cores: bool) -> Result<(), Error> {
    let rank = rank()?;
    if own_cores {
        tcp::stay_on_core(rank == 0)?;
    }
    if rank != 0 {
        return tcp::send_back(&tcp::accept(port(to)?, &token()?)?);
    }
    tcp::measure(&tcp::connect(to, &token()?)?, plan, |size, times| {
        let mut line = format!("bench: tcp {size}");
        for time in times {
            let _ = write!(line, " {time:.3}");
        }
        let _ = say::output(line);
    })
}

/// Keeps the link busy with `flows` connections, from rank 0 to rank 1, which is at `to`.
///
/// # Errors
/// Those of [`to_and_fro`].
pub fn keep_busy(to: &str, flows: usize) -> Result<(), Error> {
    match rank()? {
        0 => tcp::flood(to, &token()?, flows),
        _ => tcp::drain(port(to)?, &token()?, flows, || {
            let _ = say::output(FLOWING);
        }),
    }
}

/// What precedes a rank's host and cores.
const CORES: &str = "bench: cores ";

/// Prints on which cores this rank may compute.
///
/// # Errors
/// The system's errors.
pub fn tell_cores() -> Result<(), Error> {
    let own = sched_getaffinity(Pid::from_raw(0))?;
    let own = (0..CpuSet::count()).filter(|core| own.is_set(*core).unwrap_or(false));
    let own: Vec<String> = own.map(|core| core.to_string()).collect();
    let host = gethostname()?;
    let _ = say::output(format!("{CORES}{} {}", host.to_string_lossy(), own.join(",")));
    Ok(())
}

/// On how many cores the ranks that have said this may compute together; `None` if none has said anything.
pub fn cores_of(said: &str, hosts_share_cores: bool) -> Option<u32> {
    let lines = said.lines().filter_map(|line| line.trim().strip_prefix(CORES));
    let hosts = lines.filter_map(|line| line.split_once(' '));
    let all: BTreeSet<(&str, &str)> = hosts
        .flat_map(|(host, cores)| cores.split(',').map(move |core| (host, core)))
        .map(|(host, core)| (if hosts_share_cores { "" } else { host }, core))
        .collect();
    u32::try_from(all.len()).ok().filter(|count| *count > 0)
}

fn rank() -> Result<u32, Error> {
    tcp::rank()
        .ok_or_else(|| Error::other("no launcher has set a rank; only 'causeway bench' starts this command"))
}

/// The job's token, which both ranks have from the launcher's environment, and which no command line shows.
fn token() -> Result<Token, Error> {
    let token = std::env::var(causeway_wire::env::TOKEN).ok();
    let token = token.and_then(|text| text.parse().ok());
    token.ok_or_else(|| Error::other("no job token is set; only 'causeway bench' starts this command"))
}

fn port(to: &str) -> Result<u16, Error> {
    let port = to.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    port.ok_or_else(|| Error::other(format!("{to:?} is not HOST:PORT")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_count_once_where_hosts_share_them_and_for_each_host_elsewhere() {
        let said = "bench: cores rennes-1 0\nhello\nbench: cores nancy-1 0,1\r\nbench: cores nancy-1 1\n";
        assert_eq!(cores_of(said, true), Some(2));
        assert_eq!(cores_of(said, false), Some(3));
        assert_eq!(cores_of("hello\n", true), None);
    }
}
