//! The one table of what a profile in TOML may say: the reader refuses other keys, and the JSON schema, the
//! table in docs/profile.md and the tests follow it.

use crate::{MAX_ALTERNATIVES, MAX_CORES, MAX_GROUPS, MAX_NETWORKS, MAX_RANKS};
use causeway_units::{LATENCY, LOSS, Measure, RATE, SIZE, SPEED, TIME};

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    pub name: &'static str,
    pub kind: Kind,
    /// What it means, for editors.
    pub says: &'static str,
    /// A value in TOML.
    pub example: &'static str,
}

/// What a key's value may be.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A name of the form that sites have.
    Name,
    /// Words of a command: a text that is split at blanks, or a list.
    Words,
    /// A whole number from 1 to this one.
    Count(u32),
    /// A number of ranks, or a text that lists them.
    Ranks,
    /// A text with a unit.
    Measure(&'static Measure),
    /// A table with the key `min`.
    AtLeast(&'static Measure),
    /// A table with the key `max`.
    AtMost(&'static Measure),
    /// A table with the numbers `min` and `max`, or one of them.
    Between,
    /// A list of names.
    Names,
    /// The name of a network.
    Reference,
    /// A table from names of groups to names of networks.
    References,
    /// Tables with names that the user chooses, at most this many.
    Named(&'static [Key], usize),
    /// A list of tables, at most this many.
    List(&'static [Key], usize),
}

const fn key(name: &'static str, kind: Kind, says: &'static str, example: &'static str) -> Key {
    Key {
        name,
        kind,
        says,
        example,
    }
}

/// A profile.
pub(crate) static ROOT: &[Key] = &[
    key("name", Kind::Name, "The job's name.", "\"ray2mesh\""),
    key(
        "time",
        Kind::Measure(&TIME),
        "How long the job may take.",
        "\"1h\"",
    ),
    key(
        "command",
        Kind::Words,
        "What starts all ranks: a launcher and the program. Not beside a program.",
        "\"mpirun ./ray2mesh\"",
    ),
    key(
        "program",
        Kind::Words,
        "The program that each site starts with its own MPI.",
        "\"./ray2mesh\"",
    ),
    key(
        "network",
        Kind::Named(NETWORK, MAX_NETWORKS),
        "Requirements on networks, to which groups refer by name.",
        "",
    ),
    key(
        "groups",
        Kind::Named(GROUP, MAX_GROUPS),
        "Groups of ranks. Ranks are numbered in the order of the file.",
        "",
    ),
];

/// A requirement on a network.
pub(crate) static NETWORK: &[Key] = &[
    key(
        "bandwidth",
        Kind::AtLeast(&RATE),
        "The lowest rate.",
        "{ min = \"5120kB/s\" }",
    ),
    key(
        "latency",
        Kind::AtMost(&LATENCY),
        "The longest latency, one way.",
        "{ max = \"5ms\" }",
    ),
    key(
        "loss",
        Kind::AtMost(&LOSS),
        "The greatest share of packets that is lost.",
        "{ max = \"0.1%\" }",
    ),
];

const CORES: Key = key("cores", Kind::Count(MAX_CORES), "Cores for each rank.", "2");
const SIZE_KEY: Key = key("memory", Kind::Measure(&SIZE), "Memory for each rank.", "\"2GB\"");
const SPEED_KEY: Key = key(
    "speed",
    Kind::Between,
    "How fast a core must be, relative to the grid's reference.",
    "{ min = 1.2 }",
);
const FEATURES: Key = key(
    "features",
    Kind::Names,
    "What each node must have, in the words of the sites' batch systems.",
    "[\"infiniband\"]",
);

/// A group of ranks.
pub(crate) static GROUP: &[Key] = &[
    key(
        "ranks",
        Kind::Ranks,
        "How many ranks, or a text that names them.",
        "2",
    ),
    CORES,
    SIZE_KEY,
    SPEED_KEY,
    FEATURES,
    key(
        "sites",
        Kind::Names,
        "Sites where the ranks may be; alone, it means all ranks that these sites have.",
        "[\"nancy\"]",
    ),
    key(
        "program",
        Kind::Words,
        "The group's own program, which each site starts with its own MPI.",
        "\"./master\"",
    ),
    key(
        "within",
        Kind::Reference,
        "The network that the ranks need among each other.",
        "\"net-local\"",
    ),
    key(
        "to",
        Kind::References,
        "The network that is needed between this group and another.",
        "{ group1 = \"net-high\" }",
    ),
    key(
        "alternatives",
        Kind::List(ALTERNATIVE, MAX_ALTERNATIVES),
        "What would do as well, the best first. Each keeps what it does not change.",
        "[{ ranks = 16, speed = { min = 2.0 } }]",
    ),
];

/// An alternative of a group.
pub(crate) static ALTERNATIVE: &[Key] = &[
    key("ranks", Kind::Count(MAX_RANKS), "How many ranks.", "16"),
    CORES,
    SIZE_KEY,
    SPEED_KEY,
    FEATURES,
    key(
        "sites",
        Kind::Names,
        "Sites where the ranks may be.",
        "[\"nancy\"]",
    ),
];

/// The keys of a table of bounds.
pub(crate) static MIN: &[Key] = &[key("min", Kind::Measure(&SPEED), "The lowest.", "1.2")];
pub(crate) static MAX: &[Key] = &[key("max", Kind::Measure(&SPEED), "The highest.", "3")];
pub(crate) static MIN_MAX: &[Key] = &[
    key("min", Kind::Measure(&SPEED), "The lowest.", "1.2"),
    key("max", Kind::Measure(&SPEED), "The highest.", "3"),
];
