//! Nodes of a lab look like separate hosts, and reach each other exactly as the scenario says.
#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests, which clippy does not take for tests

use crate::common::{own_directory, sh, start, two_sites};
use causeway_lab::{NodeCommand, Scenario, Stdio};

#[test]
fn nodes_look_like_separate_hosts() {
    let Some(mut lab) = start(&two_sites("", "")) else {
        return;
    };
    let look = "hostname; cat /proc/sys/kernel/random/boot_id; readlink /proc/self/ns/ipc; cat /proc/1/comm; \
                cat /proc/1/stat | cut -d' ' -f1; ls /dev/shm | wc -l; ls /sys/class/net | tr '\\n' ' '";
    let first = sh(
        &mut lab,
        "rennes-head",
        &format!("touch /dev/shm/mine /tmp/lab-test-mine; {look}"),
    );
    let second = sh(&mut lab, "rennes-1", &format!("ls /tmp/lab-test-mine; {look}"));
    let first: Vec<&str> = first.stdout.lines().collect();
    let second_lines: Vec<&str> = second.stdout.lines().collect();
    assert_eq!((first[0], second_lines[0]), ("rennes-head", "rennes-1"));
    assert_ne!(first[1], second_lines[1], "boot_id");
    assert_ne!(first[2], second_lines[2], "ipc namespace");
    assert_eq!((first[3], first[4]), ("lab-init", "1"));
    assert_eq!((first[5], second_lines[5]), ("1", "0"), "files in /dev/shm");
    assert_eq!(
        (first[6].trim(), second_lines[6].trim()),
        ("eth0 eth1 lo", "eth0 lo")
    );
    assert!(
        second.stderr.contains("lab-test-mine"),
        "{second:?}: /tmp must not be shared"
    );
    assert!(
        !std::path::Path::new("/tmp/lab-test-mine").exists(),
        "a node wrote to the host's /tmp"
    );
}

#[test]
fn ssh_works_between_the_nodes_of_a_site_without_any_option() {
    let Some(mut lab) = start(&two_sites("", "")) else {
        return;
    };
    let out = sh(&mut lab, "rennes-head", "ssh rennes-1 'hostname; id -u; exit 7'");
    assert_eq!(
        (out.code, out.stdout),
        (Some(7), format!("rennes-1\n{}", nix::unistd::geteuid())),
        "{}",
        out.stderr
    );
    let out = sh(&mut lab, "rennes-1", "ssh rennes-head ssh rennes-1 hostname");
    assert_eq!(out.stdout, "rennes-1", "{}", out.stderr);
}

#[test]
fn without_routing_only_head_nodes_reach_the_other_site_and_others_are_told_so() {
    let Some(mut lab) = start(&two_sites("routed = false", "")) else {
        return;
    };
    let out = sh(&mut lab, "rennes-head", "ssh nancy-head.wan hostname");
    assert_eq!(out.stdout, "nancy-head", "{}", out.stderr);
    for (from, to) in [
        ("rennes-1", "nancy-1"),
        ("rennes-1", "nancy-head.wan"),
        ("rennes-head", "nancy-1"),
    ] {
        let out = sh(&mut lab, from, &format!("ssh {to} hostname"));
        assert!(out.stderr.contains("No route to host"), "{from} to {to}: {out:?}");
    }
}

#[test]
fn with_routing_every_node_reaches_every_other_by_its_lan_address() {
    let Some(mut lab) = start(&two_sites("routed = true", "")) else {
        return;
    };
    for (from, to) in [
        ("rennes-1", "nancy-1"),
        ("rennes-head", "nancy-1"),
        ("nancy-1", "rennes-head"),
    ] {
        let out = sh(
            &mut lab,
            from,
            &format!("ssh {to} 'hostname; echo $SSH_CONNECTION'"),
        );
        let address = lab.nodes().iter().find(|node| node.name == from).unwrap().lan;
        let expected = format!("{to}\n{address} ");
        assert!(out.stdout.starts_with(&expected), "{from} to {to}: {out:?}");
    }
}

#[test]
fn sites_with_equal_addresses_each_have_their_own_nodes() {
    let Some(mut lab) = start(&Scenario::find("overlap").unwrap()) else {
        return;
    };
    let out = sh(
        &mut lab,
        "nancy-head",
        "ssh 192.168.1.1 hostname; ssh rennes-head.wan ssh 192.168.1.1 hostname",
    );
    assert_eq!(out.stdout, "nancy-1\nrennes-1", "{}", out.stderr);
}

#[test]
fn an_emulated_lan_carries_what_a_bridge_does() {
    let Some(mut lab) = start(&two_sites(
        "routed = true",
        "lan_rtt = \"1ms\"\nlan_rate = \"100Mbit/s\"",
    )) else {
        return;
    };
    let out = sh(
        &mut lab,
        "rennes-1",
        "ssh rennes-head hostname; ssh nancy-1 hostname",
    );
    assert_eq!(out.stdout, "rennes-head\nnancy-1", "{}", out.stderr);
}

#[test]
fn slow_start_after_a_pause_is_switched_off_on_every_node_where_that_is_asked_for() {
    let Some(mut lab) = start(&two_sites("slow_start_after_idle = false", "")) else {
        return;
    };
    for node in ["rennes-head", "rennes-1", "nancy-1"] {
        let out = sh(&mut lab, node, "cat /proc/sys/net/ipv4/tcp_slow_start_after_idle");
        assert_eq!(out.stdout, "0", "{node}");
    }
}

#[test]
fn the_congestion_control_asked_for_is_used_everywhere() {
    let Some(mut lab) = start(&two_sites("congestion_control = \"reno\"", "")) else {
        return;
    };
    for node in ["rennes-head", "rennes-1", "rennes-router"] {
        let out = sh(&mut lab, node, "cat /proc/sys/net/ipv4/tcp_congestion_control");
        assert_eq!(out.stdout, "reno", "{node}");
    }
}

#[test]
fn a_command_that_does_not_exist_is_refused_with_its_name_and_the_node() {
    let Some(lab) = start(&two_sites("", "")) else {
        return;
    };
    let command = |node: &str| NodeCommand {
        node: node.to_owned(),
        argv: vec!["no-such-program".into()],
        stdout: Stdio::Null,
        ..NodeCommand::default()
    };
    let error = lab.spawn(command("rennes-1")).unwrap_err();
    assert_eq!(error.to_string(), "run no-such-program on rennes-1: execute");
    let error = lab.spawn(command("rennes-9")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("rennes-head, rennes-1, nancy-head, nancy-1"),
        "{error}"
    );
}

#[test]
fn signals_reach_a_command_and_its_end_is_known() {
    let Some(lab) = start(&two_sites("", "")) else {
        return;
    };
    let argv = ["sleep", "1000"].map(Into::into).to_vec();
    let mut child = lab
        .spawn(NodeCommand {
            node: "nancy-1".into(),
            argv,
            ..NodeCommand::default()
        })
        .unwrap();
    assert_eq!(child.try_wait().unwrap(), None);
    child.signal(libc::SIGTERM).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(libc::SIGTERM)
    );
}

#[test]
fn a_scenario_the_machine_cannot_hold_leaves_no_state_directory() {
    let root = own_directory();
    let scenario = two_sites("congestion_control = \"nonesuch\"", "");
    let options = causeway_lab::LabOptions {
        state_dir: Some(root.clone()),
        ..Default::default()
    };
    let error = causeway_lab::Lab::start(&scenario, &options).unwrap_err();
    assert!(!root.join("test").exists(), "{error}");
}
