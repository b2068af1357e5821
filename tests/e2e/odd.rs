//! Sites whose addresses are not one IPv4 network: IPv6 alone, both versions, nodes with a second network
//! that is the same everywhere, private addresses beside public ones.
//!
//! The lab gives every node one IPv4 address; the tests change that in the namespaces of their own lab before
//! anything of ours starts.

use crate::members::Grid;
use crate::mpi::{self, Mpi};

#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_mpis_run_over_the_version_of_ip_that_sites_have_in_common_and_without_one_nothing_starts() {
    let sites = ["orsay", "rennes", "bordeaux"];
    let Some(mut grid) = Grid::start("odd-ipv6", "orsay-rennes-bordeaux", &sites, "bordeaux", &[]) else {
        return;
    };
    has_ipv6(&grid, "orsay", 1);
    has_ipv6(&grid, "rennes", 2);
    has_ipv6_alone(&grid, "rennes", 2);
    // Its nodes are listed by one address each; the other ones have to be opened.
    let both = [
        "--subnet",
        "10.1.0.0/24",
        "--subnet",
        "fd00:1::/64",
        "--accept-addresses",
        "fd00:1::/64",
    ];
    grid.join_with("orsay", &[both.as_slice(), &["--node", "orsay-1:2"]].concat());
    let alone = ["--subnet", "fd00:2::/64", "--node", "rennes-1=fd00:2::1:2"];
    grid.join_with("rennes", &alone);
    grid.join("bordeaux", &[]);
    for (one, other) in [("orsay", "rennes"), ("rennes", "bordeaux"), ("orsay", "bordeaux")] {
        grid.has_tunnel(one, other);
        grid.has_tunnel(other, one);
    }
    let (open_mpi, mpich) = (mpi::debian_openmpi(), mpi::debian_mpich());
    for (from, sites) in [
        ("rennes", "rennes=2,orsay=2"),
        ("orsay", "orsay=2,rennes=1"),
        ("bordeaux", "bordeaux=1,orsay=2"),
    ] {
        exchanges(&grid, &open_mpi, from, sites);
    }
    exchanges(&grid, &mpich, "orsay", "orsay=1,bordeaux=1");
    for (mpi, from, sites, says) in [
        (
            &open_mpi,
            "rennes",
            "rennes=1,bordeaux=1",
            "rennes has only IPv6 addresses and bordeaux only IPv4 addresses",
        ),
        (
            &mpich,
            "orsay",
            "orsay=1,rennes=1",
            "MPICH's launcher speaks only IPv4, but site rennes has only IPv6 addresses",
        ),
    ] {
        let line = ["run", "--sites", sites, "--", &mpi.launcher, "echo", "started"];
        let output = grid.fresh.on(from, &line).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && said.contains(says),
            "{}: {said}",
            output.status
        );
        assert!(output.stdout.is_empty(), "something was started");
        println!("    {}", said.trim());
    }
}

#[test]
#[ignore = "needs namespaces and Debian's MPIs; run by make test"]
fn debian_mpis_run_over_nodes_with_a_second_network_that_both_sites_have_and_public_addresses_beside() {
    let Some(mut grid) = Grid::start("odd-homes", "rennes-nancy", &["rennes", "nancy"], "nancy", &[]) else {
        return;
    };
    for (number, site) in (1..).zip(["rennes", "nancy"]) {
        for (node, host) in [("1", 1), ("2", 2), ("head", 253)] {
            // As containers' bridges have it, the same addresses at every site; and a public address on the
            // site's own interface.
            let script = format!(
                "ip link add docker0 type veth peer name inside; ip address add 172.17.0.{host}/16 dev docker0; \
                 ip link set docker0 up; ip link set inside up; \
                 ip address add 203.0.{number}.{host}/24 dev eth0"
            );
            grid.fresh.shell(&format!("{site}-{node}"), &script);
        }
        let subnet = format!("10.{number}.0.0/24");
        let nodes = [1, 2].map(|node| format!("{site}-{node}:2"));
        grid.join_with(
            site,
            &["--subnet", &subnet, "--node", &nodes[0], "--node", &nodes[1]],
        );
    }
    grid.has_tunnel("rennes", "nancy");
    grid.has_tunnel("nancy", "rennes");
    exchanges(&grid, &mpi::debian_openmpi(), "rennes", "rennes=3,nancy=3");
    exchanges(&grid, &mpi::debian_mpich(), "nancy", "nancy=3,rennes=1");
}

/// A checked program over these sites.
fn exchanges(grid: &Grid, mpi: &Mpi, from: &str, sites: &str) {
    let program = mpi.programs.join("ring").display().to_string();
    let said = grid
        .fresh
        .says(from, &["run", "--sites", sites, "--", &mpi.launcher, &program]);
    assert!(said.contains("all right"), "{said}");
    println!("    {} over {sites}: {said}", mpi.name);
}

/// Gives every node of a site an IPv6 address beside the one that it has, and an sshd there.
fn has_ipv6(grid: &Grid, site: &str, number: usize) {
    for (node, host) in NODES {
        let script = format!(
            "sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0; \
             ip address add fd00:{number}::{host}/64 dev eth0 nodad; \
             sed 's/^ListenAddress .*/ListenAddress ::/' /etc/ssh/sshd_config > /tmp/sshd_config; \
             $(command -v sshd || echo /usr/sbin/sshd) -f /tmp/sshd_config"
        );
        grid.fresh.shell(&format!("{site}-{node}"), &script);
    }
}

/// Takes the IPv4 addresses of the LAN away, and their names.
fn has_ipv6_alone(grid: &Grid, site: &str, number: usize) {
    let names: String = NODES
        .map(|(node, host)| format!("fd00:{number}::{host} {site}-{node}\\n"))
        .concat();
    for (node, _) in NODES {
        let script = format!(
            "ip -4 address flush dev eth0; \
             grep -v '^10.{number}.' /etc/hosts > /tmp/hosts; printf '{names}' >> /tmp/hosts; cat /tmp/hosts > /etc/hosts"
        );
        grid.fresh.shell(&format!("{site}-{node}"), &script);
    }
}

/// The nodes of a site in the scenario, and the last part of the address that each gets.
const NODES: [(&str, &str); 3] = [("1", "1"), ("2", "2"), ("head", "fd")];
