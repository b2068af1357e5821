//! Decides which path a connection takes. Pure: it takes addresses and returns a decision.

use crate::address;
use crate::context::Context;
use causeway_wire::{Cidr, Grid, Place, Site};
use std::net::SocketAddr;

/// The path to a destination, as seen from one site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route<'a> {
    /// The direct path: within the site, to loopback, or to an address of no site.
    Native,
    /// The path through the own site's gateway.
    Gateway(Way<'a>),
    /// The destination is at another site, but no gateway of the own site has an address to which this kind
    /// of socket can connect.
    NoGateway(&'a Site),
}

/// A path through a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way<'a> {
    /// The site to which it leads.
    pub to: &'a Site,
    /// The gateway's LAN address, in the form that the socket needs.
    pub gateway: SocketAddr,
    /// The gateway's place in the list of the own site's gateways.
    pub which: usize,
}

/// The route to a destination, for a process with this context.
pub fn route(context: &Context, destination: SocketAddr) -> Route<'_> {
    decide(&context.grid, &context.here, &context.neighbours, destination)
}

/// Prefers the gateway with the destination's own family (IPv4-mapped counts as IPv4); only if the site has
/// none does an IPv6 socket connect to an IPv4 gateway, through its mapped address. It is never the other way
/// round: source and destination would have different families, and the far end could not show the source.
fn decide<'a>(grid: &'a Grid, here: &'a Site, neighbours: &[Cidr], destination: SocketAddr) -> Route<'a> {
    let Place::Remote(to) = grid.place(here, neighbours, destination.ip()) else {
        return Route::Native;
    };
    let v4 = destination.ip().to_canonical().is_ipv4();
    let gateway_in = |v4: bool| here.gateways.iter().position(|gateway| gateway.is_ipv4() == v4);
    let which = gateway_in(v4).or_else(|| gateway_in(!v4).filter(|_| !v4));
    let way = which.and_then(|which| {
        let gateway = address::in_family_of(here.gateways[which], destination)?;
        Some(Way { to, gateway, which })
    });
    way.map_or(Route::NoGateway(to), Route::Gateway)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUAL: &str = "1|rennes;10.1.0.0/24,fd00:1::/64;10.1.0.253:7000,[fd00:1::fd]:7000;20000-32767\
                        |nancy;10.2.0.0/24,fd00:2::/64;10.2.0.253:7000;20000-32767";
    const V4_GATEWAYS: &str = "1|rennes;10.1.0.0/24,fd00:1::/64;10.1.0.253:7000;20000-32767\
                        |nancy;10.2.0.0/24,fd00:2::/64;10.2.0.253:7000;20000-32767";
    const V6_GATEWAYS: &str = "1|rennes;10.1.0.0/24,fd00:1::/64;[fd00:1::fd]:7000;20000-32767\
                        |nancy;10.2.0.0/24,fd00:2::/64;[fd00:2::fd]:7000;20000-32767";

    fn decided(grid: &str, destination: &str) -> String {
        let grid: Grid = grid.parse().unwrap();
        match decide(&grid, &grid.sites[0], &[], destination.parse().unwrap()) {
            Route::Native => "native".to_owned(),
            Route::Gateway(way) => format!("{} by {} ({})", way.to.name, way.gateway, way.which),
            Route::NoGateway(site) => format!("no gateway to {}", site.name),
        }
    }

    #[test]
    fn loopback_own_site_and_the_rest_of_the_world_are_native() {
        for destination in [
            "127.0.0.1:1",
            "10.1.0.9:1",
            "[::1]:1",
            "[fd00:1::9]:1",
            "192.0.2.1:1",
            "0.0.0.0:1",
        ] {
            assert_eq!(decided(DUAL, destination), "native");
        }
        assert_eq!(decided(DUAL, "[::ffff:10.1.0.9]:1"), "native");
    }

    #[test]
    fn another_site_goes_to_the_gateway_of_the_destinations_family() {
        assert_eq!(decided(DUAL, "10.2.0.1:1"), "nancy by 10.1.0.253:7000 (0)");
        assert_eq!(
            decided(DUAL, "[::ffff:10.2.0.1]:1"),
            "nancy by [::ffff:10.1.0.253]:7000 (0)"
        );
        assert_eq!(decided(DUAL, "[fd00:2::1]:1"), "nancy by [fd00:1::fd]:7000 (1)");
    }

    #[test]
    fn an_ipv6_destination_reaches_an_ipv4_gateway_by_its_mapped_address() {
        assert_eq!(
            decided(V4_GATEWAYS, "[fd00:2::1]:1"),
            "nancy by [::ffff:10.1.0.253]:7000 (0)"
        );
    }

    #[test]
    fn an_ipv4_destination_has_no_way_through_an_ipv6_gateway() {
        assert_eq!(decided(V6_GATEWAYS, "10.2.0.1:1"), "no gateway to nancy");
        assert_eq!(decided(V6_GATEWAYS, "[::ffff:10.2.0.1]:1"), "no gateway to nancy");
    }
}
