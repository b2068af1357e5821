//! Dials a gateway back: can it be reached at the addresses that it announces?
//!
//! A gateway names only addresses of its own record, at most four, with ports above 1023, and learns no more
//! than whether a connection came up. So the broker cannot be used to scan other people's networks;
//! docs/broker.md says which of the broker's own networks a member could ask about.

use super::Shared;
use crate::api::{ErrorKind, Reached};
use crate::state::Refusal;
use std::net::{IpAddr, SocketAddr};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

/// The first port for which no root is needed.
const FIRST_PORT: u16 = 1024;

pub(super) fn check(asked: &[SocketAddr], declared: &[SocketAddr], local: bool) -> Result<(), Refusal> {
    let refuse = |message: String| Err(Refusal::new(ErrorKind::NotYours, message));
    for address in asked {
        if !declared.contains(address) {
            return refuse(format!(
                "{address} is not among the public addresses that the gateway's record declares"
            ));
        }
        if address.port() < FIRST_PORT {
            return refuse(format!("{address}: only ports {FIRST_PORT} and up are dialled"));
        }
        let near = match address.ip().to_canonical() {
            IpAddr::V4(ip) => ip.is_loopback() || ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_loopback() || ip.is_unicast_link_local(),
        };
        let nobody = match address.ip().to_canonical() {
            IpAddr::V4(ip) => ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast(),
            IpAddr::V6(ip) => ip.is_unspecified() || ip.is_multicast(),
        };
        if nobody || (near && !local) {
            return refuse(format!("{address} is no address that a broker dials"));
        }
    }
    Ok(())
}

pub(super) async fn dial(shared: &std::sync::Arc<Shared>, addresses: Vec<SocketAddr>) -> Vec<Reached> {
    let mut tries = JoinSet::new();
    for (index, address) in addresses.iter().copied().enumerate() {
        let shared = shared.clone();
        tries.spawn(async move {
            // Closed only with the broker.
            let _turn = shared.reaching.acquire().await;
            let end = Instant::now() + shared.limits.reach;
            let reason = match timeout_at(end, TcpStream::connect(address)).await {
                Ok(Ok(_)) => None,
                // Whether a host refused or does not exist, and how soon that was known, is not for members
                // to learn.
                Ok(Err(_)) | Err(_) => {
                    sleep_until(end).await;
                    let within = shared.limits.reach.as_secs_f32();
                    Some(format!("no connection came up within {within} s"))
                }
            };
            (
                index,
                Reached {
                    address,
                    reached: reason.is_none(),
                    reason,
                },
            )
        });
    }
    let mut results = tries.join_all().await;
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, reached)| reached).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_declared_addresses_beyond_this_host_with_high_ports_are_dialled() {
        let declared: Vec<SocketAddr> = [
            "192.0.2.1:7001",
            "192.0.2.1:22",
            "127.0.0.1:7001",
            "[::1]:7001",
            "[::ffff:127.0.0.1]:7001",
            "169.254.169.254:8080",
            "[fe80::1]:7001",
            "0.0.0.0:7001",
            "224.0.0.1:7001",
            "255.255.255.255:7001",
        ]
        .map(|text| text.parse().unwrap())
        .into();
        check(&declared[..1], &declared, false).unwrap();
        assert!(check(&["192.0.2.2:7001".parse().unwrap()], &declared, false).is_err());
        for address in &declared[1..] {
            assert!(check(&[*address], &declared, false).is_err(), "{address}");
        }
        for (address, allowed) in declared[1..]
            .iter()
            .zip([false, true, true, true, true, true, false])
        {
            assert_eq!(check(&[*address], &declared, true).is_ok(), allowed, "{address}");
        }
    }
}
