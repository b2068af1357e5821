//! What runs for each MPI, how long it may take and what a right answer looks like.

use crate::grid::root;
use crate::mpi::{Mpi, PingPong};
use std::path::Path;

/// How much of the catalogue a grid gets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Every program, and the part of mpi4py's suite that a minute holds.
    TwoSites,
    /// What the addresses of two sites can change: who connects to whom, by every pattern of messages. No
    /// byte depends on them, and no call from Fortran.
    Overlap,
    /// What a third site can change: rings and exchanges of six ranks, the ping-pong, that part of the suite.
    ThreeSites,
    /// The rings and exchanges over three sites alone.
    ThreeSitesInShort,
    /// All of mpi4py's point-to-point and collective tests: several minutes for each MPI, since most of them
    /// duplicate communicators, and each of those takes many round trips.
    Suite,
}

impl Extent {
    /// One rank at each of two sites of the grid in which this extent runs.
    fn pair(self) -> &'static str {
        match self {
            Extent::TwoSites | Extent::Overlap | Extent::Suite => "rennes=1,nancy=1",
            Extent::ThreeSites | Extent::ThreeSitesInShort => "orsay=1,rennes=1",
        }
    }
}

/// What the output of an item must be.
pub enum Expected {
    /// Standard output contains every one of these.
    Says(Vec<String>),
    /// mpi4py's verdict at every rank is good, and that of this other item.
    SameVerdictAs(String),
    /// mpi4py's verdict at every rank is good.
    Verdict,
}

/// One program run in the lab.
pub struct Item {
    /// Unique in its lab; a directory name.
    pub name: String,
    /// The command, which bash runs on the head node.
    pub command: String,
    /// What it takes at most on two free cores, in seconds.
    pub seconds: u32,
    /// What makes it right, beside status 0.
    pub expected: Expected,
}

/// A host with other work may take this many times as long: a deadline only ends what hangs.
const ON_A_BUSY_HOST: u32 = 4;

impl Item {
    /// After how many seconds it counts as hanging.
    pub fn deadline(&self) -> u32 {
        self.seconds * ON_A_BUSY_HOST
    }
}

/// NetPIPE and IMB stop here: the largest message the issue names for checked programs.
const MAX_BYTES: u32 = 8 << 20;

/// How long `causeway check` tests data. On two cores Open MPI got through every layout to every layout in
/// 24 s, and through all large messages in 34 s.
const DATA_SECONDS: u32 = 40;

/// The catalogue for one MPI.
pub fn items(mpi: &Mpi, extent: Extent) -> Vec<Item> {
    if extent == Extent::Suite {
        let parts = [
            suite(mpi, "p2p", "-i p2p", 600, extent),
            suite(mpi, "collectives", "-i cco", 2400, extent),
        ];
        return parts.into_iter().flatten().collect();
    }
    let mut items = Vec::new();
    let ranks: &[u32] = match extent {
        Extent::TwoSites | Extent::Overlap => &[4, 6],
        _ => &[6],
    };
    for &count in ranks {
        items.push(checked(mpi, "ring", count));
        items.push(checked(mpi, "alltoall", count));
    }
    items.extend(collectives(mpi, extent));
    if extent == Extent::ThreeSitesInShort {
        return items;
    }
    if mpi.fortran && extent != Extent::Overlap {
        items.push(checked(mpi, "hello_mpif", 4));
        items.push(checked(mpi, "ring_mpi", 4));
        items.push(checked(mpi, "hello_f08", 4));
        items.push(checked(mpi, "topology_fortran", 4));
        items.extend(fortran_collectives(mpi, extent));
    }
    items.push(ping_pong(mpi, extent));
    if extent == Extent::TwoSites {
        items.push(data(mpi));
    }
    // The tests of objects on MPI_COMM_WORLD itself; those of buffers, on its duplicates and on its subsets
    // belong to Extent::Suite.
    items.extend(suite(
        mpi,
        "part",
        "-i p2p_obj -i cco_obj -k '*World.test*'",
        150,
        extent,
    ));
    items
}

/// Connections without any MPI: a launcher only starts the two processes.
pub fn sockets(mpi: &Mpi) -> Vec<Item> {
    let programs = mpi.programs.display();
    let launch = format!("causeway run --sites rennes=1,nancy=1 -- {} -n 2", mpi.launcher);
    let early = root().join("tests/programs/early_client.py");
    let says = |text: &str| Expected::Says(vec![text.to_owned()]);
    vec![
        Item {
            name: "endings".into(),
            command: format!("{launch} {programs}/endings $PWD"),
            seconds: 120,
            expected: Expected::Says(vec![
                "endings: bytes, then reset by the client: all right".to_owned(),
                "endings: bytes, then reset by the server: all right".to_owned(),
                "endings: addresses agree: all right".to_owned(),
            ]),
        },
        Item {
            name: "early-client".into(),
            command: format!("{launch} python3 {} 2 $PWD rennes-1", early.display()),
            seconds: 60,
            expected: Expected::Says(
                [
                    "deadline: same",
                    "asyncio: same",
                    "poll: same",
                    "nobody listens: ECONNREFUSED",
                ]
                .map(str::to_owned)
                .to_vec(),
            ),
        },
        Item {
            name: "streams-10000".into(),
            command: format!("{launch} {programs}/streams $PWD 10000 && causeway status --json"),
            seconds: 120,
            expected: says("streams: 10000 open at once"),
        },
    ]
}

/// Lists what reaches another site without an MPI, and what looks at the way there.
pub fn reaching() -> Vec<Item> {
    let ssh = "ssh -o BatchMode=yes -o ProxyCommand='causeway connect %h %p'";
    let item = |name: &str, command: String, says: &str| Item {
        name: name.into(),
        command,
        seconds: 60,
        expected: Expected::Says(vec![says.to_owned()]),
    };
    vec![
        item("ssh", format!("{ssh} nancy-1 hostname"), "nancy-1"),
        item(
            "bytes",
            format!("head -c 20000000 /dev/zero | {ssh} nancy-2 wc -c"),
            "20000000",
        ),
        item(
            "ping",
            "causeway ping nancy --count 3 --interval 0.1".into(),
            "3 answered",
        ),
        item(
            "probe",
            "causeway probe --seconds 1 --measure=4".into(),
            "a stream carried 4 MB",
        ),
        item("check", "causeway check --mpi mpirun --nodes".into(), "0 failed"),
    ]
}

fn run(mpi: &Mpi, options: &str, ranks: u32) -> String {
    format!(
        "{} causeway run {options} -- {} -n {ranks}",
        mpi.environment, mpi.launcher
    )
}

fn checked(mpi: &Mpi, program: &str, ranks: u32) -> Item {
    Item {
        name: format!("{}-{program}-{ranks}", mpi.name),
        command: format!("{} {}/{program}", run(mpi, "", ranks), mpi.programs.display()),
        seconds: 90,
        expected: Expected::Says(vec!["all right".into()]),
    }
}

/// What crosses between sites in each collective, random ones against the MPI's own, and what programs are
/// told of sites.
fn collectives(mpi: &Mpi, extent: Extent) -> [Item; 5] {
    // A rank on each node: MPICH 4.0.2 by itself adds up wrongly where nodes have unlike numbers
    // (tests/libraries/compare.c).
    let (placement, sizes, ranks, first, groups) = match extent {
        Extent::TwoSites | Extent::Overlap | Extent::Suite => {
            ("rennes=2,nancy=2", "2 2", 4, "rennes of 2", "first,there,-,-")
        }
        Extent::ThreeSites | Extent::ThreeSitesInShort => (
            "orsay=2,rennes=2,bordeaux=1",
            "2 2 1",
            5,
            "orsay of 3",
            "first,-,there,there,-",
        ),
    };
    let profile = root().join("tests/e2e/groups.toml");
    let options = format!("--sites {placement} --groups {}", profile.display());
    let run = run(mpi, &options, ranks);
    let item = |name: &str, arguments: &str, says: &[&str]| Item {
        name: format!("{}-{name}", mpi.name),
        command: format!("{run} {}/{name} {arguments}", mpi.programs.display()),
        seconds: 120,
        expected: Expected::Says(says.iter().map(|text| (*text).to_owned()).collect()),
    };
    let at_first = format!("rank 0 is at site {first}, in group first");
    [
        item("crossings", sizes, &["as they must be"]),
        item("sites", &format!("--groups {groups} {sizes}"), &["all right"]),
        item("topology", "", &[&at_first, "all right"]),
        item("compare", "200 1", &["the same"]),
        item("beside", "threads", &["right"]),
    ]
}

/// Every improved operation called from Fortran 77, 90 and 2008: values, and that something crossed between
/// sites for each.
fn fortran_collectives(mpi: &Mpi, extent: Extent) -> [Item; 3] {
    let (placement, ranks) = match extent {
        Extent::TwoSites | Extent::Overlap | Extent::Suite => ("rennes=2,nancy=2", 4),
        Extent::ThreeSites | Extent::ThreeSitesInShort => ("orsay=2,rennes=2,bordeaux=1", 5),
    };
    ["mpif", "mpi", "f08"].map(|flavour| {
        let program = format!("collectives_{flavour}");
        let run = run(mpi, &format!("--sites {placement}"), ranks);
        Item {
            name: format!("{}-{program}", mpi.name),
            command: format!("{run} {}/{program}", mpi.programs.display()),
            seconds: 90,
            expected: Expected::Says(vec![format!("{program}: all right")]),
        }
    })
}

/// Whether what is received is what was sent, layout by layout: from a rank to itself, on a node, in a site,
/// between sites. Debian's Open MPI gets it by the command that users have for it.
fn data(mpi: &Mpi) -> Item {
    let run = run(mpi, "--sites rennes=3,nancy=1", 4);
    let command = match mpi.name {
        "debian-openmpi" => format!("causeway check --mpi {} --data={DATA_SECONDS}", mpi.launcher),
        _ => format!("{run} {}/data {}", mpi.programs.display(), mpi.data),
    };
    Item {
        name: format!("{}-data", mpi.name),
        command,
        seconds: 300,
        expected: Expected::Says(vec!["0 wrong, all right".into()]),
    }
}

/// Two ranks with the WAN between them: the first node of the first and of the second site.
fn ping_pong(mpi: &Mpi, extent: Extent) -> Item {
    // Named sites, because the launcher fills them in order and two ranks might both land on the first.
    let run = run(mpi, &format!("--sites {}", extent.pair()), 2);
    let (command, says) = match &mpi.ping_pong {
        PingPong::NetPipe(program) => (
            format!("{run} {program} -l 1 -u {MAX_BYTES} -p 0 -n 2 -o $PWD/np.out && tail -n 1 np.out"),
            MAX_BYTES.to_string(),
        ),
        PingPong::Imb(program) => (
            format!("{run} {program} PingPong -iter 3 -msglog 0:23 -time 20"),
            MAX_BYTES.to_string(),
        ),
    };
    Item {
        name: format!("{}-pingpong-2", mpi.name),
        command,
        seconds: 120,
        expected: Expected::Says(vec![says]),
    }
}

/// mpi4py's own tests, once on the head node alone and once over the sites: the verdicts must be the same.
fn suite(mpi: &Mpi, part: &str, selection: &str, seconds: u32, extent: Extent) -> [Item; 2] {
    // Two ranks alone would both land on the first site.
    let placement = if mpi.suite_ranks == 2 {
        format!("--sites {}", extent.pair())
    } else {
        String::new()
    };
    let main = root().join(".cache/mpi/suite/source/test/main.py");
    let own_stderr = root().join("tests/e2e/own-stderr.sh");
    let program = format!(
        "{} $PWD {} {} -q -f {selection}",
        own_stderr.display(),
        mpi.python,
        main.display()
    );
    let [alone, across] = ["one-site", "sites"].map(|place| format!("{}-mpi4py-{part}-{place}", mpi.name));
    let ranks = mpi.suite_ranks;
    // Intel's mpirun takes the first mpiexec.hydra of the PATH, which may be another MPI's.
    let own = Path::new(&mpi.launcher).parent().filter(|bin| bin.is_absolute());
    let path = own.map_or_else(String::new, |bin| format!("PATH={}:$PATH", bin.display()));
    let local = format!(
        "{ONE_SITE} {path} {} {} -n {ranks} {program}",
        mpi.environment, mpi.launcher
    );
    let distant = format!("{} {program}", run(mpi, &placement, ranks));
    [
        Item {
            name: alone.clone(),
            command: local,
            seconds,
            expected: Expected::Verdict,
        },
        Item {
            name: across,
            command: distant,
            seconds,
            expected: Expected::SameVerdictAs(alone),
        },
    ]
}

/// What a launcher without Causeway needs to put several ranks on the head node of the lab, as root or not.
const ONE_SITE: &str = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
                        OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe";
