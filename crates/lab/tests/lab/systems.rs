//! Sites with another system. The root of this host serves as one: what a node does there must not reach the
//! host, either.
#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests, which clippy does not take for tests

use crate::common::{own_directory, sh, start, two_sites};
use causeway_lab::{Lab, LabOptions, Scenario};

#[test]
fn nodes_with_a_root_write_to_their_own_memory_and_share_the_home_of_their_site() {
    let Some(mut lab) = start(&two_sites("", "root = \"/\"")) else {
        return;
    };
    let out = sh(
        &mut lab,
        "rennes-head",
        "touch /etc/mine /var/tmp/mine ~/ours && ls /.host; ssh rennes-1 'hostname; ls ~/ours /etc/mine'",
    );
    let home = nix::unistd::User::from_uid(nix::unistd::geteuid())
        .unwrap()
        .unwrap()
        .dir;
    let ours = home.join("ours");
    assert_eq!(out.stdout, format!("rennes-1\n{}", ours.display()), "{out:?}");
    assert!(
        out.stderr.contains("/etc/mine"),
        "{out:?}: the other node sees its neighbour's /etc"
    );
    for path in ["/etc/mine".into(), "/var/tmp/mine".into(), ours] {
        assert!(!path.exists(), "a node wrote {} to the host", path.display());
    }
    let out = sh(&mut lab, "nancy-1", "ls ~/ours");
    assert_ne!(out.code, Some(0), "{out:?}: another site sees this site's home");
}

#[test]
fn the_directory_a_lab_was_started_in_is_seen_at_sites_with_a_root() {
    let Some(mut lab) = start(&two_sites("", "root = \"/\"")) else {
        return;
    };
    let current = std::env::current_dir().unwrap();
    let out = sh(&mut lab, "rennes-1", &format!("ls {}", current.display()));
    assert!(out.stdout.contains("Cargo.toml"), "{out:?}");
}

#[test]
fn a_root_that_is_not_there_is_refused_with_what_makes_one() {
    let refusal = |root: &str| {
        let options = LabOptions {
            state_dir: Some(own_directory()),
            ..Default::default()
        };
        let scenario = two_sites("", &format!("root = \"{root}\""));
        Lab::start(&scenario, &options).unwrap_err().to_string()
    };
    let missing = refusal("nosuch");
    assert!(
        missing.starts_with("site rennes: there is no root nosuch (looked at "),
        "{missing}"
    );
    assert!(missing.contains("tools/setup/root.sh nosuch"), "{missing}");
    let empty = refusal("/dev");
    assert!(
        empty.starts_with("site rennes: /dev has no program sh"),
        "{empty}"
    );
}

#[test]
fn a_root_is_a_name_or_a_path() {
    let root = |text: &str| {
        let one =
            format!("name = \"x\"\n[[site]]\nname = \"a\"\nnodes = 1\nsubnet = \"10.1.0.0/24\"\n{text}");
        Scenario::parse(&one, "x.toml").map(|scenario| scenario.sites[0].root.clone())
    };
    assert_eq!(root("").unwrap(), None);
    assert_eq!(root("root = \"bullseye\"").unwrap().unwrap(), "bullseye");
    assert_eq!(root("root = \"../roots/old\"").unwrap().unwrap(), "../roots/old");
    let mistakes = root("root = \"..\"").unwrap_err().to_string();
    assert!(
        mistakes.starts_with("x.toml:6: site.root: \"..\" must be a name"),
        "{mistakes}"
    );
}
