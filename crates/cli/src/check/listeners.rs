//! Whether an address can be listened at, or whether the running gateway listens there.

use super::steps::Step;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

/// What kind of socket listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A TCP listener.
    Tcp,
    /// A UDP socket.
    Udp,
}

/// TCP_LISTEN of include/net/tcp_states.h, as /proc/net/tcp has it.
const LISTENING: &str = "0A";

/// `gateway` is the process of the running gateway, if there is one.
pub fn look(name: String, kind: Kind, address: SocketAddr, gateway: Option<u32>) -> Step {
    let bound = match kind {
        Kind::Tcp => TcpListener::bind(address).map(drop),
        Kind::Udp => UdpSocket::bind(address).map(drop),
    };
    let Err(error) = bound else {
        return match gateway {
            None => Step::ok(name, "free for the gateway"),
            Some(_) => Step::warn(
                name,
                "free, though a gateway runs: it was started with another configuration, or does not need it",
                "causeway gateway --config FILE --drain, or restart it",
            ),
        };
    };
    match (error.kind(), gateway) {
        (ErrorKind::AddrInUse, Some(pid)) => match serves(pid, kind, address) {
            Some(true) => Step::ok(name, format!("served by the gateway, process {pid}")),
            Some(false) => in_use(name, &error, address),
            None => Step::ok(
                name,
                format!("in use; only root can see whether by the gateway, process {pid}"),
            ),
        },
        (ErrorKind::AddrInUse, None) => in_use(name, &error, address),
        (ErrorKind::AddrNotAvailable, _) => Step::fail(
            name,
            "no interface of this host has this address",
            "use an address that 'ip address' shows",
        ),
        (ErrorKind::PermissionDenied, _) => {
            Step::fail(name, error.to_string(), "use a port of 1024 or above")
        }
        _ => Step::fail(
            name,
            error.to_string(),
            "use an address and port of this host that are free",
        ),
    }
}

fn in_use(name: String, error: &std::io::Error, address: SocketAddr) -> Step {
    Step::fail(
        name,
        error.to_string(),
        format!(
            "find the process that uses it ('ss -lnp | grep {}'), or use another port",
            address.port()
        ),
    )
}

/// Whether a socket that listens for `address` belongs to that process. The kernel's table of sockets has its
/// inode, and the process's descriptors name theirs (proc(5)). `None` if these may not be read: the process
/// has a capability that this one lacks.
fn serves(pid: u32, kind: Kind, address: SocketAddr) -> Option<bool> {
    let tables = match kind {
        Kind::Tcp => ["tcp", "tcp6"],
        Kind::Udp => ["udp", "udp6"],
    };
    let sockets: Vec<String> = tables
        .iter()
        .filter_map(|table| std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).ok())
        .flat_map(|table| inodes(&table, kind, address))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let descriptors = match std::fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(descriptors) => descriptors,
        Err(error) => return (error.kind() != ErrorKind::PermissionDenied).then_some(false),
    };
    let mut links = descriptors
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok());
    Some(links.any(|link| sockets.iter().any(|socket| link.as_os_str() == socket.as_str())))
}

/// The inodes of the sockets in /proc/net/tcp and the like that serve an address, including those with
/// wildcards.
fn inodes(table: &str, kind: Kind, address: SocketAddr) -> Vec<String> {
    let rows = table.lines().skip(1).filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let local = local_address(words.next()?)?;
        let state = words.nth(1)?;
        let inode = words.nth(5)?;
        let serves = local.port() == address.port()
            && (local.ip().is_unspecified() || local.ip().to_canonical() == address.ip().to_canonical());
        (serves && (kind == Kind::Udp || state == LISTENING)).then(|| inode.to_owned())
    });
    rows.collect()
}

/// `0100007F:1B58`: 32-bit words in this host's byte order, then the port.
fn local_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let words: Option<Vec<[u8; 4]>> = (0..ip.len() / 8)
        .map(|at| {
            Some(
                u32::from_str_radix(ip.get(at * 8..at * 8 + 8)?, 16)
                    .ok()?
                    .to_ne_bytes(),
            )
        })
        .collect();
    let bytes = words?.concat();
    let ip: IpAddr = match <[u8; 4]>::try_from(&bytes[..]) {
        Ok(bytes) => Ipv4Addr::from(bytes).into(),
        Err(_) => Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[..]).ok()?).into(),
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::steps::Verdict;
    use super::*;

    #[test]
    fn an_address_is_free_ours_or_somebody_elses() {
        let own = std::process::id();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let result = |gateway| look("lan".into(), Kind::Tcp, address, gateway);
        assert_eq!(result(Some(own)).result, Verdict::Ok);
        assert_eq!(result(Some(1)).result, Verdict::Fail);
        assert_eq!(result(None).result, Verdict::Fail);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let ours = look("wan".into(), Kind::Udp, socket.local_addr().unwrap(), Some(own));
        assert_eq!(ours.result, Verdict::Ok);
        let elsewhere = look("lan".into(), Kind::Tcp, "192.0.2.1:7000".parse().unwrap(), None);
        assert_eq!(elsewhere.result, Verdict::Fail);
        assert!(elsewhere.detail.contains("no interface"), "{elsewhere}");
    }

    #[test]
    fn a_wildcard_serves_every_address() {
        let any = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = any.local_addr().unwrap().port();
        let serves = |kind| serves(std::process::id(), kind, SocketAddr::from(([127, 0, 0, 9], port)));
        assert_eq!(serves(Kind::Tcp), Some(true));
        assert_eq!(serves(Kind::Udp), Some(false));
    }

    #[test]
    fn rows_that_are_none_are_passed_over() {
        for row in ["", "x", "0: zz:zz", "0: 0100007F:1B58 0 0A"] {
            let table = format!("header\n{row}\n");
            assert!(
                inodes(&table, Kind::Tcp, "127.0.0.1:7000".parse().unwrap()).is_empty(),
                "{row}"
            );
        }
        assert_eq!(local_address("0100007F"), None);
        assert_eq!(local_address("0100:1B58"), None);
    }
}
