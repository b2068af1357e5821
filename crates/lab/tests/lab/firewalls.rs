//! Each kind of firewall lets in what its name says, as seen from the other site, and always lets replies in.
//!
//! A dropped packet shows only as silence, so those checks wait two seconds for a connection that takes four
//! milliseconds if it is allowed.
#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests, which clippy does not take for tests

use crate::common::{sh, start, two_sites};
use causeway_lab::{Lab, NodeCommand, Stdio};

#[test]
fn open_lets_in_every_port_and_refuses_where_nobody_listens() {
    let Some(mut lab) = start(&two_sites("", "firewall = \"open\"")) else {
        return;
    };
    assert_eq!(connect(&mut lab, "nancy-head", "rennes-head.wan", 22), "open");
    assert_eq!(
        connect(&mut lab, "nancy-head", "rennes-head.wan", 7050),
        "refused"
    );
}

#[test]
fn outbound_only_drops_what_did_not_start_inside() {
    let Some(mut lab) = start(&two_sites("", "firewall = \"outbound-only\"")) else {
        return;
    };
    assert_eq!(connect(&mut lab, "rennes-head", "nancy-head.wan", 22), "open");
    assert_eq!(connect(&mut lab, "nancy-head", "198.51.100.1", 22), "silence");
    let head = &lab.nodes()[0];
    assert_eq!((head.wan, head.uplink.is_some()), (None, true));
}

#[test]
fn nat_hides_the_head_node_behind_the_routers_address() {
    let Some(mut lab) = start(&two_sites("", "firewall = \"nat\"")) else {
        return;
    };
    let out = sh(&mut lab, "rennes-head", "ssh nancy-head.wan 'echo $SSH_CLIENT'");
    let source = lab.nodes()[0].seen_as.unwrap().to_string();
    assert_eq!(out.stdout.split(' ').next(), Some(source.as_str()), "{out:?}");
    assert_eq!(connect(&mut lab, "nancy-head", &source, 22), "silence");
}

#[test]
fn ports_lets_in_only_these() {
    let Some(mut lab) = start(&two_sites("", "firewall = { ports = \"7000-7100\" }")) else {
        return;
    };
    let argv = ["/usr/sbin/sshd", "-D", "-p", "7050", "-f", "/etc/ssh/sshd_config"]
        .map(Into::into)
        .to_vec();
    let listener = NodeCommand {
        node: "rennes-head".into(),
        argv,
        stderr: Stdio::Null,
        ..NodeCommand::default()
    };
    let _listener = lab.spawn(listener).unwrap();
    let waited = sh(
        &mut lab,
        "rennes-head",
        "until (exec 3<>/dev/tcp/127.0.0.1/7050) 2>/dev/null; do :; done",
    );
    assert_eq!(waited.code, Some(0), "{waited:?}");
    assert_eq!(connect(&mut lab, "nancy-head", "rennes-head.wan", 7050), "open");
    assert_eq!(
        connect(&mut lab, "nancy-head", "rennes-head.wan", 7051),
        "refused"
    );
    assert_eq!(connect(&mut lab, "nancy-head", "rennes-head.wan", 22), "silence");
    assert_eq!(connect(&mut lab, "rennes-head", "nancy-head.wan", 22), "open");
    assert!(lab.sites()[0].reachable_inbound(7000) && !lab.sites()[0].reachable_inbound(22));
}

fn connect(lab: &mut Lab, from: &str, to: &str, port: u16) -> &'static str {
    let out = sh(
        lab,
        from,
        &format!("timeout 2 bash -c '3<>/dev/tcp/{to}/{port}; exit $?'"),
    );
    match (out.code, out.stderr.as_str()) {
        (Some(0), _) => "open",
        (Some(124), _) => "silence",
        (_, stderr) if stderr.contains("refused") => "refused",
        other => panic!("{from} to {to}:{port}: {other:?}"),
    }
}
