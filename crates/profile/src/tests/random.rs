//! Random profiles, written and read again.

use super::*;
use fastrand::Rng;

fn maybe<T>(random: &mut Rng, make: impl FnOnce(&mut Rng) -> T) -> Option<T> {
    random.bool().then(|| make(random))
}

fn name(random: &mut Rng, number: usize) -> String {
    let letters: Vec<char> = "aZ09_-.".chars().collect();
    let tail: String = (0..random.usize(0..8))
        .map(|_| letters[random.usize(0..letters.len())])
        .collect();
    format!("n{number}{tail}")
}

fn words(random: &mut Rng) -> Vec<String> {
    let words = [
        "./x",
        "-a",
        "ünïcode",
        "a&b",
        "<c>",
        "\"quoted\"",
        "it's",
        "two words",
        "]]>",
    ];
    let tail = (0..random.usize(0..4)).map(|_| words[random.usize(0..words.len())]);
    ["./program"].into_iter().chain(tail).map(str::to_owned).collect()
}

/// A profile that XML can express, too.
fn plain(random: &mut Rng) -> Profile {
    let networks: Vec<Network> = (0..random.usize(1..5))
        .map(|number| Network {
            name: name(random, number),
            min_bits_per_second: Some(random.u64(1_000..1_000_000_000_000)),
            max_latency_ns: maybe(random, |random| random.u64(1..60_000_000_000)),
            max_loss_ppb: None,
        })
        .collect();
    let names: Vec<String> = (0..random.usize(1..7))
        .map(|number| name(random, number))
        .collect();
    let network = |random: &mut Rng| networks[random.usize(0..networks.len())].name.clone();
    let groups = names.iter().enumerate().map(|(number, name)| Group {
        name: name.clone(),
        ranks: Some(Ranks::Count(random.u32(1..1000))),
        needs: Needs {
            cores: maybe(random, |random| random.u32(1..100)),
            memory_bytes: maybe(random, |random| random.u64(1..1_000_000_000_000)),
            ..Needs::default()
        },
        within: maybe(random, network),
        // Only earlier groups are drawn: a pair that is named twice must need the same.
        to: { names[..number].iter() }
            .filter_map(|other| maybe(random, |random| (other.clone(), network(random))))
            .collect(),
        ..Group::default()
    });
    let groups = groups.collect();
    let (command, program) = match random.u8(0..3) {
        0 => (Some([vec!["mpirun".to_owned()], words(random)].concat()), None),
        1 => (None, Some(words(random))),
        _ => (None, None),
    };
    Profile {
        name: maybe(random, |random| name(random, 7)),
        seconds: maybe(random, |random| random.u64(1..MAX_SECONDS)),
        command,
        program,
        networks,
        groups,
    }
}

/// The same, with additions that XML cannot express.
fn any(random: &mut Rng) -> Profile {
    let mut profile = plain(random);
    for network in &mut profile.networks {
        network.max_loss_ppb = maybe(random, |random| random.u64(0..1_000_000_000));
    }
    for group in &mut profile.groups {
        group.needs.speed = maybe(random, |random| Speed {
            min: Some(random.u64(1..1000)),
            max: maybe(random, |random| random.u64(1000..1_000_000)),
        });
        group.needs.features = maybe(random, |random| vec![name(random, 1), name(random, 2)]);
        group.needs.sites = maybe(random, |random| vec![name(random, 3)]);
        let others = 0..random.u32(0..3);
        let others = others.map(|number| Alternative {
            ranks: Some(2_000 + number),
            needs: Needs {
                cores: maybe(random, |random| random.u32(1..100)),
                ..Needs::default()
            },
        });
        group.alternatives = others.collect();
    }
    profile
}

#[test]
fn any_profile_is_the_same_after_toml() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    for _ in 0..500 {
        let made = any(&mut random);
        let text = to_toml(&made);
        assert_eq!(profile(&text), made, "{text}");
    }
}

#[test]
fn a_profile_is_the_same_after_xml_or_xml_says_what_it_cannot_say() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    for _ in 0..500 {
        let made = plain(&mut random);
        let text = to_xml(&made).unwrap_or_else(|unsaid| panic!("{unsaid}"));
        assert_eq!(profile(&text), made, "{text}");
        assert_eq!(profile(&to_toml(&profile(&text))), made, "{text}");
        let more = any(&mut random);
        match to_xml(&more) {
            Ok(text) => assert_eq!(profile(&text), more, "{text}"),
            Err(unsaid) => assert!(!unsaid.0.is_empty()),
        }
    }
}

#[test]
fn a_damaged_text_is_refused_or_read_and_nothing_else() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let xml = to_xml(&plain(&mut random)).unwrap();
    for text in [WHOLE, &xml] {
        for _ in 0..2_000 {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(0..bytes.len());
                match random.u8(0..3) {
                    0 => bytes[at] = random.u8(..),
                    1 => drop(bytes.drain(at..(at + random.usize(1..20)).min(bytes.len()))),
                    _ => bytes.insert(at, b"\"'<>=[]{}.&#\n"[random.usize(0..13)]),
                }
            }
            let text = String::from_utf8_lossy(&bytes);
            match read(&text, "job").finish() {
                Ok(read) => assert_eq!(profile(&to_toml(&read.value)), read.value, "{text}"),
                Err(mistakes) => assert!(!mistakes.0.is_empty(), "{text}"),
            }
        }
    }
}
