//! What a file may contain, and how mistakes are reported.

use super::*;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

fn parse(text: &str) -> Result<Config, Mistakes> {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("grid.key");
    std::fs::write(&key, "0123456789abcdef\n").unwrap();
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    Config::parse(text, &dir.path().join("gateway.toml"))
}

/// A site with the shortest possible file.
pub(crate) fn rennes() -> Config {
    parse(GOOD).unwrap()
}

const GOOD: &str = r#"
[site]
name = "rennes"
subnets = ["10.1.0.0/24"]
[[site.nodes]]
name = "rennes-1"
address = "10.1.0.1"
slots = 4
[listen]
lan = ["10.1.0.253:7000"]
wan = "198.51.100.1:7001"
[grid]
key_file = "grid.key"
[[peer]]
site = "nancy"
address = "198.51.100.5:7001"
"#;

#[test]
fn a_table_whose_name_is_misspelt_is_told_beside_the_ones_that_are_missing() {
    let text =
        "[site]\nname = \"rennes\"\nsubnets = [\"10.1.0.0/24\"]\n[lisen]\nlan = [\"10.1.0.253:7000\"]\n";
    let said = Config::parse(text, Path::new("gateway.toml"))
        .unwrap_err()
        .to_string();
    for part in [
        "gateway.toml:4: lisen: is not a key here",
        "listen: is missing",
        "grid: is missing",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
}

#[test]
fn a_short_file_is_enough_and_the_rest_has_defaults() {
    let config = parse(GOOD).unwrap();
    assert_eq!(
        (config.site.as_str(), config.nodes.len(), config.peers.len()),
        ("rennes", 1, 1)
    );
    assert_eq!(config.delivery_ports, DELIVERY_PORTS);
    assert_eq!(config.remote_shell[0], "ssh");
    assert_eq!(config.key, b"0123456789abcdef");
    assert_eq!((config.lanes, config.tunnel), (None, Settings::default()));
}

#[test]
fn a_remote_shell_names_the_site_of_the_job_but_not_in_its_program() {
    let with = |words: &str| {
        let line = format!("remote_shell = {words}\n[[site.nodes]]");
        parse(&GOOD.replace("[[site.nodes]]", &line))
    };
    let config = with("[\"ssh\", \"-l\", \"jobs-{site}\", \"{node}\"]").unwrap();
    assert_eq!(
        config.remote_shell_of("nancy"),
        ["ssh", "-l", "jobs-nancy", "{node}"]
    );
    assert!(config.has_accounts_of_sites());
    assert!(!parse(GOOD).unwrap().has_accounts_of_sites());
    for (words, why) in [
        ("[\"/opt/{site}\", \"{node}\"]", "a site's name must not choose"),
        ("[\"ssh\", \"{site}\"]", "no word contains {node}"),
    ] {
        let said = with(words).unwrap_err().to_string();
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn virtual_subnets_are_as_many_and_as_large_as_the_real_ones_and_apart_from_them() {
    let with = |line: &str| parse(&GOOD.replace("[[site.nodes]]", &format!("{line}\n[[site.nodes]]")));
    let config = with("virtual_subnets = [\"100.64.0.0/24\"]").unwrap();
    assert_eq!(config.virtual_subnets[0].to_string(), "100.64.0.0/24");
    assert!(config.overlap_ok);
    for (line, why) in [
        ("virtual_subnets = [\"100.64.0.0/25\"]", "of the same size"),
        (
            "virtual_subnets = [\"100.64.0.0/24\", \"100.64.1.0/24\"]",
            "one range for each",
        ),
        ("virtual_subnets = [\"10.1.0.0/24\"]", "overlaps with the subnets"),
        (
            "virtual_subnets = [\"198.51.100.0/24\"]",
            "may belong to somebody",
        ),
        ("virtual_subnets = [\"nonsense\"]", "is not a subnet"),
        ("overlap_ok = true", "only the broker of a grid"),
    ] {
        let mistakes = with(line).unwrap_err().to_string();
        assert!(mistakes.contains(why), "{line}: {mistakes}");
    }
}

#[test]
fn times_need_a_unit_and_stay_within_reason() {
    for (text, seconds) in [("10min", 600.0), ("1.5 s", 1.5), ("500ms", 0.5), ("2h", 7200.0)] {
        assert_eq!(duration(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
    }
    for text in ["10", "", "min", "-1s", "NaNs", "1ms", "1e9h", "ten s"] {
        assert!(duration(text).is_err(), "{text}");
    }
    let text = GOOD.replace(
        "key_file",
        "lanes = 4\nresume = \"1min\"\nlane_timeout = \"6s\"\nduplicate_small = true\nkey_file",
    );
    let config = parse(&text).unwrap();
    assert_eq!(
        (config.lanes, config.tunnel.resume),
        (Some(4), Duration::from_secs(60))
    );
    assert_eq!(config.tunnel.keepalive, Duration::from_secs(2));
    assert!(config.tunnel.duplicate_small);
}

#[test]
fn a_rate_is_that_of_its_peer_or_else_of_the_grid() {
    let rates = |grid: &str, peer: &str| {
        let text = GOOD.replace("key_file", &format!("{grid}\nkey_file")) + peer;
        parse(&text).map(|config| config.peers[0].rate)
    };
    assert_eq!(rates("", "").unwrap(), None);
    assert_eq!(rates("rate = \"1.5 Gbit/s\"", "").unwrap(), Some(1_500_000_000));
    let own = "rate = \"400Mbit/s\"";
    assert_eq!(rates("rate = \"1Gbit/s\"", own).unwrap(), Some(400_000_000));
    for wrong in ["400", "400Mbit", "-1Mbit/s", "1kbit/s", "NaNGbit/s", "1e9Gbit/s"] {
        assert!(rates(&format!("rate = \"{wrong}\""), "").is_err(), "{wrong}");
    }
}

#[test]
fn nobody_may_do_anything_here_unless_the_file_says_so() {
    let accept = parse(GOOD).unwrap().accept;
    assert_eq!(accept, Accept::default());
    assert!(!accept.takes_jobs_of("nancy") && !accept.takes_connections_of("nancy"));
    assert!(!accept.opens([10, 1, 0, 9].into()));
}

#[test]
fn a_sites_local_networks_are_what_it_names_or_those_of_its_host_beyond_its_subnets() {
    let with = |line: &str| parse(&GOOD.replacen("subnets", &format!("{line}\nsubnets"), 1));
    let local = |line: &str| {
        with(line)
            .unwrap()
            .local
            .iter()
            .map(Cidr::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        local("local = [\"10.77.0.0/16\", \"fd77::/64\"]"),
        ["10.77.0.0/16", "fd77::/64"]
    );
    assert!(local("local = []").is_empty());
    let config = with("").unwrap();
    let is_own = |network: &Cidr| {
        config
            .subnets
            .iter()
            .any(|subnet| causeway_broker::holds(subnet, network))
    };
    assert!(!config.local.iter().any(is_own), "{:?}", config.local);
    let said = with("local = [\"10.77.0.0\"]").unwrap_err().to_string();
    assert!(
        said.contains("site.local") && said.contains("is not a subnet"),
        "{said}"
    );
}

#[test]
fn what_others_may_do_is_said_for_each_site_port_and_address() {
    let with = |lines: &str| parse(&GOOD.replace("[grid]", &format!("[accept]\n{lines}\n[grid]")));
    let accept = with(
        "jobs = [\"nancy\"]\nconnect_from = [\"lyon:22\", \"all:8000-8999\"]\naddresses = [\"10.1.0.64/28\", \
         \"10.1.0.253\"]\nmax_processes = 3\nfiles = \"10GB\"",
    );
    let accept = accept.unwrap().accept;
    assert!(accept.takes_jobs_of("nancy") && !accept.takes_jobs_of("lyon"));
    assert!(accept.takes_connections_to("lyon", 22) && !accept.takes_connections_to("nancy", 22));
    assert!(accept.takes_connections_to("nancy", 8999) && !accept.takes_connections_to("nancy", 9000));
    assert!(accept.opens([10, 1, 0, 79].into()) && !accept.opens([10, 1, 0, 80].into()));
    assert!(accept.opens([10, 1, 0, 253].into()) && accept.max_processes == Some(3));
    assert_eq!(accept.files, Some(10_000_000_000));
    let is_partner = |lines: &str, site: &str| with(lines).unwrap().accept.is_partner(site);
    assert!(accept.is_partner("nancy") && !accept.is_partner("lyon"));
    let named = "jobs = [\"nancy\"]\npartners = [\"lyon\"]";
    assert!(is_partner(named, "lyon") && !is_partner(named, "nancy"));
    assert!(
        !is_partner("jobs = [\"all\"]\npartners = []", "nancy") && is_partner("partners = [\"all\"]", "x")
    );
    assert!(with("jobs = [\"all\"]").unwrap().accept.takes_jobs_of("anybody"));
    assert_eq!(with("jobs = []").unwrap().accept, Accept::default());
    for (line, why) in [
        ("jobs = \"all\"", "accept.jobs: is not a list"),
        ("jobs = [\"-x\"]", "neither the name of a site nor"),
        ("partners = [\"-x\"]", "neither the name of a site nor"),
        ("connect_from = [\"nancy\"]", "is not SITE:PORT"),
        ("connect_from = [\"nancy:0\"]", "is not SITE:PORT"),
        ("connect_from = [\"nancy:9-8\"]", "is not SITE:PORT"),
        ("addresses = [\"10.0.0.0/8\"]", "is not in the site's subnets"),
        ("max_processes = 0", "is not a whole number from 1"),
        ("files = \"10\"", "accept.files: \"10\" is not a size"),
        ("job = []", "accept.job: is not a key here"),
    ] {
        let said = with(line).unwrap_err().to_string();
        assert!(said.contains(why), "{line}: {said}");
    }
}

#[test]
fn everything_is_encrypted_unless_the_file_says_insecure_and_the_key_of_before_is_told_of() {
    let with = |line: &str| parse(&GOOD.replace("key_file", &format!("{line}\nkey_file")));
    assert!(!parse(GOOD).unwrap().is_clear());
    assert!(with("insecure = true").unwrap().is_clear());
    assert!(!with("insecure = true\ntransport = \"quic\"").unwrap().is_clear());
    for line in ["encrypt = true", "encrypt = false"] {
        let said = with(line).unwrap_err().to_string();
        assert!(said.contains("have insecure = true in [grid]"), "{said}");
    }
}

#[test]
fn the_key_of_before_for_ports_says_which_one_took_its_place() {
    let text = GOOD.replacen("[[site", "low_ports = [22]\n[[site", 1);
    let said = parse(&text).unwrap_err().to_string();
    assert!(said.contains("connect_from"), "{said}");
}

#[test]
fn metrics_are_given_to_this_host_alone() {
    let metrics = |address: &str| {
        let text = GOOD.replace("wan =", &format!("metrics = \"{address}\"\nwan ="));
        parse(&text).map(|config| config.metrics)
    };
    assert_eq!(parse(GOOD).unwrap().metrics, None);
    for right in [
        "127.0.0.1:9464",
        "127.3.2.1:9464",
        "[::1]:9464",
        "[::ffff:127.0.0.1]:9464",
    ] {
        assert_eq!(metrics(right).unwrap(), Some(right.parse().unwrap()));
    }
    for wrong in [
        "0.0.0.0:9464",
        "[::]:9464",
        "10.1.0.253:9464",
        "198.51.100.1:9464",
    ] {
        let said = metrics(wrong).unwrap_err().to_string();
        assert!(
            said.contains(":11: listen.metrics:") && said.contains("loopback"),
            "{said}"
        );
    }
    for wrong in ["localhost:9464", "127.0.0.1", "127.0.0.1:0"] {
        assert!(metrics(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_commented_example_is_read() {
    let text = include_str!("../../../../configs/gateway.toml");
    parse(text).unwrap();
}

#[test]
fn every_mistake_is_named_with_its_line_and_key() {
    let wrong = GOOD
        .replace("\"rennes\"", "\"ren nes\"")
        .replace("10.1.0.1\"", "10.9.0.1\"")
        .replace("slots = 4", "slots = 0\nspeed = 1")
        .replace("198.51.100.5:7001", "198.51.100.5")
        .replace("grid.key", "missing.key");
    let Err(Mistakes(mistakes)) = parse(&wrong) else {
        panic!("accepted")
    };
    let wanted = [
        ":3: site.name:",
        ":7: site.nodes.address:",
        ":8: site.nodes.slots:",
        ":9: site.nodes.speed:",
        ":14: grid.key_file:",
        ":17: peer.address:",
    ];
    for part in wanted {
        assert!(
            mistakes.iter().any(|line| line.contains(part)),
            "{part} not in {mistakes:#?}"
        );
    }
    assert_eq!(mistakes.len(), wanted.len(), "{mistakes:#?}");
}

#[test]
fn a_file_that_is_not_toml_or_lacks_tables_says_so() {
    assert!(
        parse("[site")
            .unwrap_err()
            .to_string()
            .contains("gateway.toml:1:")
    );
    assert!(parse("").unwrap_err().to_string().contains("site: is missing"));
}

#[test]
fn what_nft_hands_over_comes_to_an_ipv4_loopback_address() {
    let with = |value: &str| parse(&GOOD.replace("[grid]", &format!("transparent = {value}\n[grid]")));
    assert_eq!(parse(GOOD).unwrap().transparent, None);
    let config = with("\"127.0.0.1:7002\"").unwrap();
    assert_eq!(config.transparent, Some("127.0.0.1:7002".parse().unwrap()));
    for wrong in ["\"10.1.0.253:7002\"", "\"[::1]:7002\"", "\"127.0.0.1:0\"", "true"] {
        let mistakes = with(wrong).unwrap_err().to_string();
        assert!(mistakes.contains("listen.transparent"), "{wrong}: {mistakes}");
    }
}

#[test]
fn a_site_of_more_nodes_than_can_be_told_to_others_is_a_mistake_at_the_first_too_many() {
    let more: String = (0..10_001)
        .map(|node| {
            let (high, low) = (node / 250 + 1, node % 250 + 1);
            format!("[[site.nodes]]\nname = \"node{node}\"\naddress = \"10.1.{high}.{low}\"\n")
        })
        .collect();
    let text = GOOD.replace("10.1.0.0/24", "10.1.0.0/16");
    let text = text.replace("[listen]", &format!("{more}[listen]"));
    let Err(Mistakes(mistakes)) = parse(&text) else {
        panic!("accepted")
    };
    assert!(
        mistakes
            .iter()
            .any(|line| line.contains("a site has at most 10000 nodes")),
        "{mistakes:#?}"
    );
}
