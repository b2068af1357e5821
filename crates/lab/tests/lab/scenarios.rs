//! Scenario files: those that come with Causeway are sound, and every mistake in a file is listed with its
//! line, key and reason.
#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests, which clippy does not take for tests

use std::time::Duration;

use causeway_lab::{Firewall, Overrides, Scenario};

#[test]
fn every_shipped_scenario_is_sound_and_named_like_its_file() {
    for name in Scenario::names() {
        let scenario = Scenario::find(name).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        assert_eq!(scenario.name, name);
    }
}

#[test]
fn shipped_links_are_those_of_the_papers() {
    let rtt = |name: &str, a: &str, b: &str| Scenario::find(name).unwrap().link(a, b).unwrap().rtt;
    assert_eq!(
        rtt("rennes-nancy", "nancy", "rennes"),
        Duration::from_micros(11_600)
    );
    assert_eq!(
        rtt("orsay-rennes-bordeaux", "orsay", "rennes"),
        Duration::from_micros(10_300)
    );
    assert_eq!(
        rtt("orsay-rennes-bordeaux", "orsay", "bordeaux"),
        Duration::from_micros(7_800)
    );
    assert_eq!(
        rtt("orsay-rennes-bordeaux", "bordeaux", "rennes"),
        Duration::from_micros(8_000)
    );
    let nine = Scenario::find("nine-sites").unwrap();
    assert_eq!((nine.sites.len(), nine.links.len()), (9, 36));
    let rtts = || nine.links.iter().map(|link| link.rtt.as_millis());
    assert_eq!((rtts().min(), rtts().max()), (Some(5), Some(21)));
}

#[test]
fn every_mistake_is_listed_at_once_with_its_line_and_key() {
    let mistakes = Scenario::parse(WRONG, "wrong.toml").unwrap_err();
    let found: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    for expected in EXPECTED {
        assert!(
            found.iter().any(|mistake| mistake.starts_with(expected)),
            "{expected} is not in:\n{mistakes}"
        );
    }
    assert_eq!(found.len(), EXPECTED.len(), "{mistakes}");
}

#[test]
fn text_that_is_not_toml_is_reported_with_its_line() {
    let mistakes = Scenario::parse("name = \"x\"\nrouted = = true\n", "broken.toml").unwrap_err();
    assert!(mistakes.to_string().starts_with("broken.toml:2: "), "{mistakes}");
}

#[test]
fn an_unknown_scenario_is_answered_with_the_known_ones() {
    let mistakes = Scenario::find("no-such-scenario").unwrap_err().to_string();
    assert!(
        mistakes.contains("rennes-nancy") && mistakes.contains("transatlantic"),
        "{mistakes}"
    );
    let mistakes = Scenario::find("/no/such.toml").unwrap_err().to_string();
    assert!(
        mistakes.starts_with("/no/such.toml: cannot be read"),
        "{mistakes}"
    );
}

#[test]
fn firewalls_are_read_in_every_form() {
    let firewall = |text: &str| {
        let one = format!(
            "name = \"x\"\n[[site]]\nname = \"a\"\nnodes = 1\nsubnet = \"10.1.0.0/24\"\nfirewall = {text}\n"
        );
        Scenario::parse(&one, "x.toml").unwrap().sites[0].firewall.clone()
    };
    assert_eq!(firewall("\"outbound-only\""), Firewall::OutboundOnly);
    assert_eq!(firewall("\"nat\""), Firewall::Nat);
    let ports = firewall("{ ports = \"7000-7100, 22\" }");
    assert_eq!(ports, Firewall::Ports(vec![(7000, 7100), (22, 22)]));
    assert!(ports.lets_in(7100) && ports.lets_in(22) && !ports.lets_in(23));
}

#[test]
fn the_command_line_changes_a_scenario_and_its_mistakes_are_listed_too() {
    let scenario = Scenario::find("overlap").unwrap();
    let nodes = vec![(None, 3), (Some("nancy".to_owned()), 8)];
    let changed = scenario
        .with(&Overrides {
            nodes,
            ..Overrides::default()
        })
        .unwrap();
    assert_eq!((changed.sites[0].nodes, changed.sites[1].nodes), (3, 8));
    let nodes = vec![(Some("paris".to_owned()), 1), (Some("nancy".to_owned()), 4000)];
    let overrides = Overrides {
        nodes,
        routed: Some(true),
        slots: Some(0),
        ..Overrides::default()
    };
    let mistakes = scenario.with(&overrides).unwrap_err().to_string();
    for expected in ["no site \"paris\"", "4000 nodes", "cannot be routed", "slots"] {
        assert!(mistakes.contains(expected), "{expected} is not in:\n{mistakes}");
    }
}

const WRONG: &str = r#"name = "no/slash"
routed = true
colour = "blue"
[[site]]
name = "rennes"
nodes = 300
subnet = "10.1.0.0/24"
firewall = "shut"
lan_rtt = 1
[[site]]
name = "rennes"
nodes = 2
subnet = "10.1.0.128/25"
slots = "many"
[[site]]
name = "Nancy"
subnet = "198.51.100.0/24"
firewall = { ports = "70000" }
[[site]]
name = "lyon"
nodes = 0
subnet = "10.4.0.1/24"
[[link]]
between = ["rennes", "lyon"]
rtt = "12"
rate = "1Gb"
loss = "150%"
[[link]]
between = ["lyon", "rennes"]
rtt = "2h"
rate = "1Gbit/s"
latency = "1ms"
[[link]]
between = ["rennes", "paris"]
rtt = "90s"
rate = "1Gbit/s"
"#;

const EXPECTED: &[&str] = &[
    "wrong.toml:1: name: ",
    "wrong.toml:3: colour: is not a known key",
    "wrong.toml:7: site.subnet: 10.1.0.0/24 has 254 usable",
    "wrong.toml:8: site.firewall: \"shut\"",
    "wrong.toml:9: site.lan_rtt: is of type integer",
    "wrong.toml:11: site.name: \"rennes\" is already",
    "wrong.toml:13: site.subnet: 10.1.0.128/25 overlaps 10.1.0.0/24",
    "wrong.toml:14: site.slots: is of type string",
    "wrong.toml:15: site.nodes: is missing",
    "wrong.toml:16: site.name: must be lower-case",
    "wrong.toml:17: site.subnet: overlaps 198.51.100.0/24",
    "wrong.toml:18: site.firewall.ports: \"70000\"",
    "wrong.toml:21: site.nodes: must be at least 1",
    "wrong.toml:22: site.subnet: \"10.4.0.1/24\" has bits set",
    "wrong.toml:25: link.rtt: \"12\" is not a time such as",
    "wrong.toml:26: link.rate: \"1Gb\" is not a rate such as",
    "wrong.toml:27: link.loss: \"150%\" is not between 0% and",
    "wrong.toml:29: link.between: \"lyon\" and \"rennes\" are already linked in line 24",
    "wrong.toml:30: link.rtt: \"2h\" is not a time such as",
    "wrong.toml:32: link.latency: is not a known key",
    "wrong.toml:34: link.between: there is no site \"paris\"",
    "wrong.toml:33: link: rtt 90s is above",
    "wrong.toml: link: no [[link]] between \"Nancy\" and \"rennes\"",
    "wrong.toml: link: no [[link]] between \"Nancy\" and \"lyon\"",
];
