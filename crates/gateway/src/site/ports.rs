//! Checks whether the kernel may give the delivery ports to other processes of this host.
//!
//! Shims take every connection from the gateway's address and one of these ports for a delivery. The kernel
//! picks the ports of ordinary connections from `ip_local_port_range`, without `ip_local_reserved_ports`. If
//! it picks a delivery port, and a process of this host connects from it to a rank, that connection is
//! closed. This is checked once, at the start, because both settings are made at boot.

use std::ops::RangeInclusive;
use std::path::Path;

/// The settings of both apply to IPv4 and IPv6.
const SYSCTLS: &str = "/proc/sys/net/ipv4";

/// Other processes may get delivery ports, too.
#[derive(Debug, thiserror::Error)]
#[error(
    "delivery ports {}-{} lie in this host's net.ipv4.ip_local_port_range, {}-{}: connections of other processes \
     would be taken for deliveries. Set 'delivery_ports' in [listen] to ports outside that range, or, as root, add \
     {}-{} to net.ipv4.ip_local_reserved_ports or narrow net.ipv4.ip_local_port_range",
    ours.start(), ours.end(), ephemeral.start(), ephemeral.end(), ours.start(), ours.end()
)]
pub struct SharedPorts {
    ours: RangeInclusive<u16>,
    ephemeral: RangeInclusive<u16>,
}

/// Refuses delivery ports that the kernel also gives to others.
///
/// # Errors
/// [`SharedPorts`] says what to set. If the kernel does not report its settings, the ports are accepted.
pub fn check(ours: &RangeInclusive<u16>) -> Result<(), SharedPorts> {
    let read = |name| std::fs::read_to_string(Path::new(SYSCTLS).join(name)).unwrap_or_default();
    check_against(
        ours,
        &read("ip_local_port_range"),
        &read("ip_local_reserved_ports"),
    )
}

fn check_against(ours: &RangeInclusive<u16>, ephemeral: &str, reserved: &str) -> Result<(), SharedPorts> {
    let Some(ephemeral) = parse_ephemeral(ephemeral) else {
        return Ok(());
    };
    let reserved: Vec<_> = reserved.trim().split(',').filter_map(parse_reserved).collect();
    let is_shared =
        |port: u16| ephemeral.contains(&port) && !reserved.iter().any(|kept| kept.contains(&port));
    match ours.clone().any(is_shared) {
        true => Err(SharedPorts {
            ours: ours.clone(),
            ephemeral,
        }),
        false => Ok(()),
    }
}

/// Reads `32768\t60999`.
fn parse_ephemeral(text: &str) -> Option<RangeInclusive<u16>> {
    let (low, high) = text.trim().split_once(char::is_whitespace)?;
    Some(low.parse().ok()?..=high.trim().parse().ok()?)
}

/// Reads one entry of `8080,20000-32767`.
fn parse_reserved(text: &str) -> Option<RangeInclusive<u16>> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    Some(low.parse().ok()?..=high.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DELIVERY_PORTS;

    fn is_refused(ephemeral: &str, reserved: &str) -> bool {
        check_against(&DELIVERY_PORTS, ephemeral, reserved).is_err()
    }

    #[test]
    fn ports_that_the_kernel_gives_to_others_are_refused_with_what_to_set() {
        let refusal = check_against(&DELIVERY_PORTS, "1024\t65535\n", "\n").unwrap_err();
        let said = refusal.to_string();
        for part in [
            "20000-32767",
            "1024-65535",
            "delivery_ports",
            "20000-32767 to net.ipv4.ip_local_reserved_ports",
        ] {
            assert!(said.contains(part), "{part} not in {said}");
        }
        assert!(is_refused("32767\t60999\n", ""), "one port is enough");
        assert!(!is_refused("32768\t60999\n", ""));
        assert!(!is_refused("1024\t19999\n", ""));
    }

    #[test]
    fn reserved_ports_are_given_to_nobody() {
        let everything = "1024\t65535\n";
        assert!(!is_refused(everything, "20000-32767\n"));
        assert!(!is_refused(everything, "8080,20000-25000,25001-40000\n"));
        assert!(is_refused(everything, "20000-25000,25002-40000\n"));
        assert!(is_refused(everything, "8080\n"));
    }

    #[test]
    fn a_kernel_that_does_not_tell_is_believed() {
        assert!(!is_refused("", ""));
        assert!(!is_refused("low high", ""));
    }
}
