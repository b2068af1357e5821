//! Both forms of a profile: each field, each mistake, and the conversion from one form to the other and back.

use crate::keys::{ALTERNATIVE, GROUP, Key, Kind, NETWORK, ROOT};
use crate::*;
use std::collections::BTreeSet;

mod figure;
mod random;

const WHOLE: &str = r#"name = "ray2mesh"
time = "1h"
command = "mpirun ./ray2mesh"

[network.net-high]
bandwidth = { min = "5120kB/s" }

[network.net-local]
latency = { max = "5ms" }
loss = { max = "0.1%" }

[groups.central_master]
ranks = 2
cores = 4
memory = "2GB"
speed = { min = 1.2, max = 3 }
features = ["infiniband"]
sites = ["rennes", "nancy"]
within = "net-local"
to.group1 = "net-high"

[groups.group1]
ranks = 30
alternatives = [
    { ranks = 16, speed = { min = 2 } },
]
"#;

fn profile(text: &str) -> Profile {
    let read = read(text, "job.toml").finish();
    read.unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}")).value
}

fn mistakes(text: &str) -> Vec<String> {
    let told = read(text, "job").finish().unwrap_err();
    { told.0.iter() }
        .map(|line| line.strip_prefix("job:").unwrap().to_owned())
        .collect()
}

#[test]
fn every_key_is_read_and_written_as_it_was() {
    let found = profile(WHOLE);
    assert_eq!(found.name.as_deref(), Some("ray2mesh"));
    assert_eq!(found.seconds, Some(3600));
    assert_eq!(
        found.command.as_deref(),
        Some(&["mpirun".to_owned(), "./ray2mesh".to_owned()][..])
    );
    assert_eq!(found.networks[0].min_bits_per_second, Some(40_960_000));
    assert_eq!(found.networks[1].max_latency_ns, Some(5_000_000));
    assert_eq!(found.networks[1].max_loss_ppb, Some(1_000_000));
    let master = &found.groups[0];
    assert_eq!(master.ranks, Some(Ranks::Count(2)));
    assert_eq!(master.needs.cores, Some(4));
    assert_eq!(master.needs.memory_bytes, Some(2_000_000_000));
    let speed = Speed {
        min: Some(1_200),
        max: Some(3_000),
    };
    assert_eq!(master.needs.speed, Some(speed));
    assert_eq!(
        master.needs.features.as_deref(),
        Some(&["infiniband".to_owned()][..])
    );
    assert_eq!(master.needs.sites.as_ref().unwrap().len(), 2);
    assert_eq!(master.within.as_deref(), Some("net-local"));
    assert_eq!(master.to, [("group1".to_owned(), "net-high".to_owned())]);
    assert_eq!(found.groups[1].alternatives[0].ranks, Some(16));
    assert_eq!(to_toml(&found), WHOLE);
}

#[test]
fn programs_are_read_for_the_job_and_for_groups() {
    let found = profile("program = ['./a b', '-x']\n[groups.a]\nranks = '0-1'\nprogram = './m 1'\n");
    assert_eq!(
        found.program.as_deref(),
        Some(&["./a b".to_owned(), "-x".to_owned()][..])
    );
    assert_eq!(
        found.groups[0].program.as_deref(),
        Some(&["./m".to_owned(), "1".to_owned()][..])
    );
    assert_eq!(found.groups[0].ranks, Some(Ranks::Named(vec![(0, 1)])));
    assert_eq!(profile(&to_toml(&found)), found);
}

#[test]
fn all_mistakes_are_told_at_once_each_with_its_line_and_key() {
    let text = r#"name = "-x"
time = "soon"
command = ""
program = "./x"
speed = 3
[network.bare]
[network.one]
bandwidth = { min = "5120", max = "1kB/s" }
latency = {}
[groups.a]
ranks = 0
cores = "2"
memory = 5
speed = { min = 3, max = 2 }
features = []
sites = ["all", 1]
within = "none"
to = { a = "one", c = "one", b = 1 }
alternatives = [{ ranks = "3", program = "x" }, 7]
"#;
    let known = [
        "1: name: \"-x\": a job's name has 1 to 63 letters, digits, '-', '_' or '.'",
        "2: time: \"soon\" is not a time such as \"90s\", \"30min\", \"1h\" or \"2d\", up to a year",
        "3: command: names no program",
        "5: speed: is not a key here (known: name, time, command, program, network, groups)",
        "6: network.bare: has no bandwidth, latency or loss",
        "8: network.one.bandwidth.min: \"5120\" is not a rate such as \"5120kB/s\" or \"1Gbit/s\"",
        "8: network.one.bandwidth.max: is not a key here (known: min)",
        "9: network.one.latency: has no max",
        "11: groups.a.ranks: is not a whole number from 1 to 1000000, nor a text such as \"0,4-7\"",
        "12: groups.a.cores: is not a whole number from 1 to 4096",
        "13: groups.a.memory: is not a size such as \"2GB\" or \"512MiB\"",
        "14: groups.a.speed: has a min above its max",
        "15: groups.a.features: is not a list of 1 to 64 names",
        "16: groups.a.sites: \"all\" is not a name of 1 to 63 letters, digits, '-', '_' or '.'",
        "16: groups.a.sites: holds something that is not a text",
        "17: groups.a.within: there is no [network.none]",
        "18: groups.a.to.a: is the group itself; use within",
        "18: groups.a.to.c: there is no [groups.c]",
        "18: groups.a.to.b: is not a text",
        "19: groups.a.alternatives[1].ranks: is not a whole number from 1 to 1000000",
        "19: groups.a.alternatives[1].program: is not a key here (known: ranks, cores, memory, speed, features, sites)",
        "19: groups.a.alternatives[2]: is not a table",
    ];
    assert_eq!(mistakes(text), known);
}

#[test]
fn what_does_not_fit_together_is_a_mistake() {
    for (text, known) in [
        (
            "",
            "1: groups: is missing: a profile has a table [groups.NAME] for each group",
        ),
        ("groups = 1", "1: groups: is not a table"),
        ("groups.a = 1", "1: groups.a: is not a table, as each group is"),
        (
            "[groups.a]\nranks = 1\n[groups.b]\nsites = ['x']",
            "3: groups.b: has no ranks; say how many",
        ),
        (
            "time = '1h'\n[groups.b]\nsites = ['x']",
            "2: groups.b: has no ranks; say how many",
        ),
        (
            "[groups.a]\nrank = 1",
            "2: groups.a.rank: is not a key here (known: ranks, cores, memory, speed, features, sites, program, \
             within, to, alternatives)",
        ),
        (
            "[groups.a]\nranks = 1\n[groups.b]\nranks = '1'",
            "4: groups.b.ranks: names ranks, but group a has a number of them; use one form in all groups",
        ),
        (
            "time = '1h'\n[groups.a]\nranks = '0,2'",
            "2: groups: rank 1 is in none; a whole job has each rank in a group",
        ),
        (
            "[groups.a]\nranks = 600000\n[groups.b]\nranks = 600000",
            "1: groups: have 1200000 ranks together; a job has 1000000 at most",
        ),
        (
            "[groups.a]\nranks = '1000000'",
            "2: groups.a.ranks: rank 1000000 is beyond the last that a job may have, 999999",
        ),
        (
            "[groups.a]\nranks = '1'\nalternatives = [{ ranks = 2 }]",
            "3: groups.a.alternatives[1].ranks: can only change a number of ranks, and the group has none",
        ),
        (
            "[groups.a]\nranks = 1\nalternatives = [{ ranks = 1 }]",
            "3: groups.a.alternatives[1]: is the same as the group itself",
        ),
        (
            "[groups.a]\nranks = 1\nalternatives = [{ cores = 2 }, { ranks = 1, cores = 2 }]",
            "3: groups.a.alternatives[2]: is the same as alternatives[1]",
        ),
        (
            "[groups.a]\nranks = 1\nalternatives = []",
            "3: groups.a.alternatives: is not a list of 1 to 8 tables",
        ),
        (
            "[groups.a]\nranks = 1\nsites = ['x', 'x']",
            "3: groups.a.sites: names x twice",
        ),
        (
            "[groups.a]\nranks = 1\nfeatures = ['x', 'x']",
            "3: groups.a.features: names x twice",
        ),
        (
            "[groups.a]\nranks = 1\nspeed = {}",
            "3: groups.a.speed: has neither min nor max",
        ),
        (
            "[groups.a]\nranks = 1\nspeed = { min = '1' }",
            "3: groups.a.speed.min: is not a number from 0.001 to 1000 such as 1.2",
        ),
        (
            "command = 'mpirun x'\nprogram = 'x'\n[groups.a]\nranks = 1",
            "2: program: stands beside a command, which starts all ranks; leave out one",
        ),
        (
            "command = 'mpirun x'\n[groups.a]\nranks = 1\nprogram = 'x'",
            "4: groups.a.program: stands beside a command, which starts all ranks; leave out one",
        ),
        (
            "[groups.a]\nranks = 1\nprogram = 'x'\n[groups.b]\nranks = 1",
            "4: groups.b.program: is missing: other groups have programs, and the job has none",
        ),
        (
            "program = \"a\\nb\"\n[groups.a]\nranks = 1\nprogram = [\"a\\u0000\"]",
            "4: groups.a.program: \"a\\0\" holds a control character",
        ),
        (
            "command = ['x', 1]\n[groups.a]\nranks = 1",
            "1: command: is a list with something that is not a text",
        ),
        (
            "command = 3\n[groups.a]\nranks = 1",
            "1: command: is neither a text nor a list of words",
        ),
    ] {
        assert_eq!(mistakes(text), [known], "{text}");
    }
}

#[test]
fn two_groups_need_one_network_between_them() {
    let text = |other: &str| {
        format!(
            "[network.n]\nlatency = {{ max = '1ms' }}\n[network.m]\nlatency = {{ max = '2ms' }}\n\
             [groups.a]\nranks = 1\nto.b = 'n'\nwithin = 'm'\n[groups.b]\nranks = 1\nto.a = '{other}'\n"
        )
    };
    assert_eq!(
        mistakes(&text("m")),
        ["11: groups.b.to.a: is m, but groups.a.to.b is n"]
    );
    assert_eq!(profile(&text("n")).groups[1].to.len(), 1);
}

#[test]
fn what_is_no_toml_is_told_with_each_line() {
    let told = mistakes("name = \ntime = '1h\n[groups.a]\nranks = 1\n");
    assert!(
        told[0].starts_with("1: ") && told.iter().any(|line| line.starts_with("2: ")),
        "{told:?}"
    );
    assert!(mistakes("[groups.a]\nranks = 1\nranks = 2\n")[0].starts_with("3: "));
}

#[test]
fn a_network_that_nobody_uses_is_a_warning() {
    let text = "[network.n]\nloss = { max = '1%' }\n[groups.a]\nranks = 1\n";
    let read = read(text, "job").finish().unwrap();
    assert_eq!(read.warnings, ["job:1: network.n: is not used by any group"]);
}

#[test]
fn sizes_are_bounded() {
    let many = |count: usize, line: &dyn Fn(usize) -> String| (0..count).map(line).collect::<String>();
    let groups = |count| many(count, &|number| format!("[groups.g{number}]\nranks = 1\n"));
    assert_eq!(profile(&groups(MAX_GROUPS)).groups.len(), MAX_GROUPS);
    assert_eq!(mistakes(&groups(MAX_GROUPS + 1)), ["1: groups: has more than 64"]);
    let ranges = many(MAX_RANGES + 1, &|number| format!("{},", 2 * number));
    let text = format!("[groups.a]\nranks = \"{}\"\n", ranges.trim_end_matches(','));
    assert_eq!(
        mistakes(&text),
        ["2: groups.a.ranks: all groups have 6400 ranges of ranks at most"]
    );
    let text = text
        .replace(".a]", &format!(".{}]", "a".repeat(63)))
        .replace("12798,12800", "12798");
    let job = Job {
        sites: &[],
        ranks: None,
    };
    let told = read(&text, "job").groups_for(job).unwrap_err().0;
    assert!(
        told[0].ends_with("which has room for 130000; shorten their names"),
        "{told:?}"
    );
    let long = format!("#{}", "x".repeat(MAX_BYTES));
    assert_eq!(
        mistakes(&long),
        ["1: has 1048577 bytes; a profile has 1048576 at most"]
    );
    let words = format!(
        "command = '{}'\n[groups.a]\nranks = 1",
        "x ".repeat(MAX_WORDS + 1)
    );
    assert_eq!(
        mistakes(&words),
        ["1: command: has 256 words of 4096 bytes at most"]
    );
    let told = mistakes(&many(500, &|number| format!("k{number} = 1\n")));
    assert_eq!((told.len(), told[100].as_str()), (101, " and 401 more"));
}

#[test]
fn what_is_nested_deeply_is_refused() {
    let deep = 200_000;
    assert!(!mistakes(&format!("a = {}{}", "[".repeat(deep), "]".repeat(deep))).is_empty());
    assert!(!mistakes(&"[a.".repeat(deep)).is_empty());
    assert!(!mistakes(&"<grmsJob>".repeat(100_000)).is_empty());
    let closed = format!("{}{}", "<grmsJob>".repeat(40_000), "</grmsJob>".repeat(40_000));
    assert!(!mistakes(&closed).is_empty());
}

#[test]
fn the_schema_in_docs_is_the_one_of_the_table() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/profile.schema.json");
    let found = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        found == schema(),
        "docs/profile.schema.json is another: causeway describe profile-schema > docs/profile.schema.json"
    );
}

/// The names of all keys below a part of the schema.
fn keys_of(value: &serde_json::Value, into: &mut BTreeSet<String>) {
    let Some(map) = value.as_object() else { return };
    for (key, value) in map {
        if key == "properties" {
            into.extend(value.as_object().unwrap().keys().cloned());
            value
                .as_object()
                .unwrap()
                .values()
                .for_each(|value| keys_of(value, into));
        } else if key == "oneOf" {
            value
                .as_array()
                .unwrap()
                .iter()
                .for_each(|value| keys_of(value, into));
        } else {
            keys_of(value, into);
        }
    }
}

#[test]
fn the_schema_has_each_key_of_a_profile_and_no_other() {
    let mut found = BTreeSet::new();
    keys_of(&serde_json::from_str(&schema()).unwrap(), &mut found);
    let tables = [ROOT, NETWORK, GROUP, ALTERNATIVE].into_iter().flatten();
    let mut known: BTreeSet<String> = tables.map(|key| key.name.to_owned()).collect();
    known.extend(["min".to_owned(), "max".to_owned()]);
    assert_eq!(found, known);
}

/// A profile in which a key of a group, or of the table that `head` begins, has this value.
fn with(head: &str, key: &str, value: &str) -> String {
    let networks =
        "[network.net-local]\nlatency = { max = '1ms' }\n[network.net-high]\nlatency = { max = '2ms' }\n";
    match head {
        "" => format!("{key} = {value}\n{networks}[groups.group1]\nranks = 1\n"),
        "network" => format!("{networks}[network.x]\n{key} = {value}\n[groups.group1]\nranks = 1\n"),
        "alternative" => {
            format!("{networks}[groups.group1]\nranks = 1\nalternatives = [{{ {key} = {value} }}]\n")
        }
        _ => {
            let ranks = if key == "ranks" { "" } else { "ranks = 7\n" };
            let program = if key == "program" { "" } else { "program = 'x'\n" };
            format!(
                "{networks}[groups.group1]\nranks = 1\nprogram = 'y'\n[groups.a]\n{ranks}{program}{key} = {value}\n"
            )
        }
    }
}

#[test]
fn the_reader_reads_each_key_of_the_table_and_refuses_what_it_cannot_mean() {
    let tables: [(&str, &[Key]); 4] = [
        ("", ROOT),
        ("network", NETWORK),
        ("group", GROUP),
        ("alternative", ALTERNATIVE),
    ];
    for (head, keys) in tables {
        for key in keys.iter().filter(|key| !matches!(key.kind, Kind::Named(..))) {
            let good = with(head, key.name, key.example);
            let found = profile(&good);
            // The same without the key, but with everything that each table requires.
            let other = match head {
                "network" => with(head, "loss", "{ max = '9%' }"),
                "alternative" => with(head, "cores", "99"),
                _ => good.replace(
                    &format!("{} = {}\n", key.name, key.example),
                    match key.name {
                        "ranks" => "ranks = 9\n",
                        "program" if head == "group" => "program = 'x'\n",
                        _ => "",
                    },
                ),
            };
            assert_ne!(found, profile(&other), "{good}");
            let bad = with(head, key.name, "true");
            assert!(mistakes(&bad)[0].contains(key.name), "{bad}");
            assert_eq!(profile(&to_toml(&found)), found, "{good}");
        }
    }
}

#[test]
fn the_page_has_a_row_for_each_key() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/profile.md");
    let page = std::fs::read_to_string(file).unwrap();
    for key in [ROOT, NETWORK, GROUP].into_iter().flatten() {
        assert!(
            page.contains(&format!("| `{}`", key.name)),
            "docs/profile.md has no row for {}",
            key.name
        );
    }
}
