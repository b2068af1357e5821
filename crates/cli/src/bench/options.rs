//! The command line of `causeway bench`.

use crate::version::VERSION;
use causeway_bench::cell::{Settings, Traffic, Way};
use causeway_bench::plan::KnownLink;
use causeway_bench::running::wanted;
use causeway_units as units;
use causeway_wire::TextError;
use std::ffi::OsString;
use std::path::PathBuf;

/// Measure the grid and the MPIs on it.
#[derive(Debug, clap::Subcommand)]
pub enum Task {
    /// Measure a ping-pong over TCP, without an MPI.
    Tcp {
        #[command(flatten)]
        messages: Messages,
        #[command(flatten)]
        common: Common,
    },
    /// Measure a ping-pong between two MPI ranks.
    Pingpong {
        #[command(flatten)]
        messages: Messages,
        #[command(flatten)]
        common: Common,
    },
    /// Time the MPI operations that Intel's MPI benchmarks time.
    Operations(Operations),
    /// Time a program of your own.
    App {
        #[command(flatten)]
        common: Common,
        /// The launcher and its arguments, as for 'causeway run'; the launchers of --mpi, if any, replace it.
        #[arg(last = true, required = true, value_name = "mpirun ...")]
        command: Vec<OsString>,
    },
    /// Build and time the NAS Parallel Benchmarks from your copy of their sources.
    Npb(Npb),
    /// Estimate how long a program of your own would take over two sites with any link between them.
    ///
    /// It runs on emulated grids on this machine: at one site, and over two sites with three different
    /// links. Their times tell how many round trips and bytes the program waits for.
    Worth(Worth),
    /// Count the messages of a program of your own, their sizes and their receivers.
    ///
    /// The program runs as it does without Causeway, wherever its launcher starts it, and needs no grid.
    Messages(Counting),
}

/// See [`Task::Messages`].
#[derive(Debug, clap::Args)]
pub struct Counting {
    /// The launcher and its arguments.
    #[arg(last = true, required = true, value_name = "mpirun ...")]
    command: Vec<OsString>,
    /// Directory of the counts, which all hosts of the program share; earlier counts there are replaced.
    #[arg(long, value_name = "DIR", default_value = "bench-messages")]
    out: PathBuf,
    /// Number of ranks at each site, in rank order [default: one half, and the other].
    #[arg(long, value_delimiter = ',', value_name = "RANKS,...", value_parser = clap::value_parser!(u32).range(1..))]
    sites: Vec<u32>,
    /// Print the counts as JSON.
    #[arg(long)]
    json: bool,
}

/// See [`Task::Worth`].
#[derive(Debug, clap::Args)]
pub struct Worth {
    /// The launcher and its arguments, as for 'causeway run'.
    #[arg(last = true, required = true, value_name = "mpirun ...")]
    command: Vec<OsString>,
    /// Directory of the runs. The same command continues where an earlier one stopped.
    #[arg(long, value_name = "DIR", default_value = "bench-worth")]
    out: PathBuf,
    /// Runs over each link, in turn.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// The link to estimate for [default: the one that this host's gateway has, else 11.6ms,1Gbit/s].
    #[arg(long, value_name = "TIME,RATE", value_parser = link)]
    link: Option<KnownLink>,
    /// Seconds after which a run, and with it the whole measurement, is stopped.
    #[arg(long, value_name = "S", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: u64,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

/// See [`Task::Operations`].
#[derive(Debug, clap::Args)]
pub struct Operations {
    /// Operations to time [default: all].
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    operations: Vec<String>,
    /// Measure with this program instead, at the same path on every node: IMB-MPI1 of Intel's MPI
    /// benchmarks, one of the OSU micro-benchmarks, or NetPIPE, built for the MPI; may be given several
    /// times. These programs choose their own sizes.
    #[arg(long, value_name = "FILE")]
    program: Vec<PathBuf>,
    /// Message sizes in bytes, such as 8,64k,4M.
    #[arg(long, value_delimiter = ',', value_name = "SIZE,...", value_parser = size,
          default_value = "0,8,64,1k,16k,64k,256k,1M,4M")]
    sizes: Vec<u64>,
    #[command(flatten)]
    rounds: Rounds,
    #[command(flatten)]
    common: Common,
}

/// See [`Task::Npb`].
#[derive(Debug, clap::Args)]
pub struct Npb {
    /// Directory or archive of the sources.
    #[arg(long, value_name = "DIR|TAR")]
    source: PathBuf,
    /// Benchmarks to run.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,...",
        default_value = "ep,is,cg,mg,ft,lu,bt,sp"
    )]
    benchmarks: Vec<String>,
    /// Problem size.
    #[arg(long, default_value = "A", value_parser = ["S", "W", "A", "B", "C", "D", "E"])]
    class: String,
    /// Options of the Fortran compiler. The default is for gfortran.
    #[arg(
        long,
        allow_hyphen_values = true,
        default_value = "-O3 -fallow-argument-mismatch -fallow-invalid-boz -mcmodel=medium"
    )]
    fflags: String,
    #[command(flatten)]
    common: Common,
}

/// How messages go to and fro.
#[derive(Debug, clap::Args)]
pub struct Messages {
    /// Message sizes in bytes, such as 1,64k,64M.
    #[arg(long, value_delimiter = ',', value_name = "SIZE,...", value_parser = size,
          default_value = "1,8,64,256,1k,4k,16k,64k,256k,1M,4M,16M,64M")]
    sizes: Vec<u64>,
    #[command(flatten)]
    rounds: Rounds,
    /// Pause before each round, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    idle: u64,
}

/// How often one size is measured in a run.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Rounds {
    /// Rounds of each size [default: 200; for operations 30].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
    /// Seconds after which a size ends with fewer rounds, but at least five [default: 4; for operations 0.5].
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
}

/// What all have in common.
#[derive(Debug, clap::Args)]
pub struct Common {
    /// Directory of the results [default: bench-NAME]. The same command continues where an earlier one
    /// stopped.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Measure on an emulated grid: a scenario that comes with Causeway, or a file. Several are measured in
    /// turn.
    #[arg(long, value_name = "SCENARIO")]
    lab: Vec<String>,
    /// Launcher of an MPI to measure; may be given several times [default: all in PATH].
    #[arg(long, value_name = "MPIRUN")]
    mpi: Vec<OsString>,
    /// How ranks reach each other: site (all at the first site), direct (plain connections between the
    /// sites, which need a route), causeway, no-collectives (the same without its library of collectives).
    #[arg(long, value_delimiter = ',', value_name = "WAY,...", value_parser = way,
          default_value = "direct,causeway")]
    ways: Vec<Way>,
    /// Settings of the MPI: default (its own), tuned (for the link, by Causeway or as one would by hand).
    #[arg(long, value_delimiter = ',', value_name = "SETTINGS,...", value_parser = settings,
          default_value = "tuned")]
    settings: Vec<Settings>,
    /// What else crosses the link: quiet (nothing), busy (TCP flows from the first site to the second).
    #[arg(long, value_delimiter = ',', value_name = "TRAFFIC,...", value_parser = traffic,
          default_value = "quiet")]
    traffic: Vec<Traffic>,
    /// Number of flows of busy traffic.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    flows: u32,
    /// Sites to measure [default: this one, and the first other one that has nodes].
    #[arg(long, value_delimiter = ',', value_name = "SITE,...")]
    sites: Vec<String>,
    /// Ranks at each site [default: 1 for ping-pongs, otherwise 2].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ranks: Option<u32>,
    /// Minimum number of runs of each cell of the matrix.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    least: u32,
    /// Maximum number of runs of each cell.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    most: u32,
    /// A cell is done when the 95 % confidence interval of each median is within this percentage of it, to
    /// either side.
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    interval: f64,
    /// Seconds after which a run is stopped and counts as failed.
    #[arg(long, value_name = "S", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: u64,
    /// Seed of the random numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Round-trip time and rate of the link, such as 11.6ms,1Gbit/s [default: as seen by the gateways].
    #[arg(long, value_name = "TIME,RATE", value_parser = link)]
    link: Option<KnownLink>,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

impl Task {
    /// What the options ask for.
    pub fn read(self) -> wanted::Task {
        match self {
            Task::Tcp { messages, common } => wanted::Task::Tcp {
                messages: messages.read(),
                common: common.read(),
            },
            Task::Pingpong { messages, common } => wanted::Task::Pingpong {
                messages: messages.read(),
                common: common.read(),
            },
            Task::Operations(task) => wanted::Task::Operations(wanted::Operations {
                operations: task.operations,
                program: task.program,
                sizes: task.sizes,
                rounds: task.rounds.read(),
                common: task.common.read(),
            }),
            Task::App { common, command } => wanted::Task::App {
                common: common.read(),
                command,
            },
            Task::Npb(npb) => wanted::Task::Npb(wanted::Npb {
                source: npb.source,
                benchmarks: npb.benchmarks,
                class: npb.class,
                fflags: npb.fflags,
                common: npb.common.read(),
            }),
            Task::Worth(task) => wanted::Task::Worth(wanted::Worth {
                command: task.command,
                out: task.out,
                rounds: task.rounds,
                link: task.link,
                time_limit: task.time_limit,
                json: task.json,
                version: VERSION.to_owned(),
            }),
            Task::Messages(task) => wanted::Task::Messages(wanted::Counting {
                command: task.command,
                out: task.out,
                sites: task.sites,
                json: task.json,
            }),
        }
    }
}

impl Messages {
    fn read(self) -> wanted::Messages {
        wanted::Messages {
            sizes: self.sizes,
            rounds: self.rounds.read(),
            idle: self.idle,
        }
    }
}

impl Rounds {
    fn read(self) -> wanted::Rounds {
        wanted::Rounds {
            count: self.count,
            seconds: self.seconds,
        }
    }
}

impl Common {
    fn read(self) -> wanted::Common {
        wanted::Common {
            out: self.out,
            lab: self.lab,
            mpi: self.mpi,
            ways: self.ways,
            settings: self.settings,
            traffic: self.traffic,
            flows: self.flows,
            sites: self.sites,
            ranks: self.ranks,
            least: self.least,
            most: self.most,
            interval: self.interval,
            time_limit: self.time_limit,
            seed: self.seed,
            link: self.link,
            json: self.json,
            version: VERSION.to_owned(),
        }
    }
}

fn named<T: Copy>(text: &str, all: &[(&str, T)]) -> Result<T, TextError> {
    let found = all.iter().find(|(name, _)| *name == text);
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| format!("it is none of {}", names.join(", ")).into())
}

fn way(text: &str) -> Result<Way, TextError> {
    let all = [Way::Site, Way::Direct, Way::NoCollectives, Way::Causeway];
    named(text, &all.map(|way| (way.name(), way)))
}

fn settings(text: &str) -> Result<Settings, TextError> {
    let all = [Settings::Default, Settings::Tuned];
    named(text, &all.map(|settings| (settings.name(), settings)))
}

fn traffic(text: &str) -> Result<Traffic, TextError> {
    let all = [Traffic::Quiet, Traffic::Busy];
    named(text, &all.map(|traffic| (traffic.name(), traffic)))
}

/// Reads TIME,RATE.
///
/// # Errors
/// The text has another form.
pub fn link(text: &str) -> Result<KnownLink, TextError> {
    let (time, rate) = text.split_once(',').ok_or("it is not TIME,RATE")?;
    let time = units::delay(time)?;
    let rate = units::rate(rate)?;
    Ok(KnownLink {
        round_trip_us: time.as_secs_f64() * 1e6,
        rate_bits_per_second: rate as f64,
        source: "given".into(),
    })
}

/// Bytes: 8, 64k, 4M, 1G; the units are powers of 1024.
fn size(text: &str) -> Result<u64, TextError> {
    let (digits, shift) = match text.trim_end_matches(['k', 'K', 'M', 'G']) {
        digits if digits.len() + 1 < text.len() => (text, 0),
        digits => match text.chars().last() {
            Some('k' | 'K') => (digits, 10),
            Some('M') => (digits, 20),
            Some('G') => (digits, 30),
            _ => (digits, 0),
        },
    };
    let number = digits.parse::<u64>().ok();
    let bytes = number.and_then(|number| number.checked_mul(1 << shift));
    let fits = bytes.filter(|&bytes| bytes <= MOST_BYTES);
    fits.ok_or_else(|| "it is not a size up to 1G, such as 8, 64k or 4M".into())
}

/// The longest message of the programs that are started.
const MOST_BYTES: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024_and_nothing_else_is_a_size() {
        let read = |text| size(text).ok();
        assert_eq!(
            ["0", "8", "64k", "4M", "1G"].map(read),
            [Some(0), Some(8), Some(65_536), Some(4 << 20), Some(1 << 30)]
        );
        assert_eq!(["", "k", "2G", "4Mk", "-1", "4 M"].map(read), [None; 6]);
    }

    #[test]
    fn a_link_is_a_time_and_a_rate() {
        let given = link("11.6ms,1Gbit/s").unwrap();
        assert_eq!((given.round_trip_us, given.rate_bits_per_second), (11_600.0, 1e9));
        assert!(link("11.6ms").is_err() && link("fast,1Gbit/s").is_err());
    }

    #[test]
    fn an_unknown_word_is_answered_with_the_known_ones() {
        assert_eq!(way("site").ok(), Some(Way::Site));
        assert!(
            way("wan")
                .unwrap_err()
                .to_string()
                .contains("site, direct, no-collectives, causeway")
        );
    }
}
