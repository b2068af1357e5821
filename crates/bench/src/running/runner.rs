//! Runs one cell: the work, and the traffic beside it.

use super::by_hand::{self, Allowed};
use super::mpis::NamedMpi;
use super::part::{FLOWING, cores_of};
use super::runs_on::Host;
use super::work::Work;
use super::{Before, Grid};
use crate::cell::{Cell, Settings, Traffic, Way};
use crate::matrix::{self, Ran};
use crate::program::{Program, Running};
use crate::row::{Outcome, Value};
use causeway_control::NodeInfo;
use causeway_host::{quoted, say};
use causeway_wire::TextError;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long busy traffic may take to begin.
const TRAFFIC_BEGINS: Duration = Duration::from_secs(30);

/// How long busy traffic lasts: longer than any run beside it.
const TRAFFIC_LASTS: Duration = Duration::from_secs(7 * 24 * 3600);

/// The port of busy traffic: above those of [`Work`].
const TRAFFIC_PORT: u16 = 65_000;

/// A grid that is measured, and where its commands are run.
pub struct Bed {
    /// Its name in cells; empty if it is the only one.
    pub lab: String,
    pub host: Host,
    pub grid: Grid,
}

/// See the module.
pub struct Runner<'a> {
    /// The grids and labs to measure on, at least one.
    pub beds: &'a [Bed],
    pub work: &'a Work,
    pub mpis: &'a [NamedMpi],
    /// Where outputs of runs that failed are kept.
    pub outputs: PathBuf,
    pub limit: Duration,
    pub flows: u32,
    /// What comes before each run.
    pub before: Option<Before<'a>>,
    pub stop: Arc<AtomicBool>,
    /// On how many cores the ranks of an MPI compute on each way, as far as that has been checked.
    pub cores: Cores,
}

/// See [`Runner::cores`].
pub type Cores = BTreeMap<(String, &'static str), Option<u32>>;

impl matrix::Runner for Runner<'_> {
    fn run(&mut self, cell: &Cell, run: u32) -> Ran {
        let directory = self.outputs.join(format!("{}-{run}", cell.slug()));
        let bed = self.bed(cell);
        let cores = self.cores_of(cell, bed, &directory);
        // Traffic beside the cell does not count as the cell's.
        let beside = self.beside(bed, cell.traffic);
        let network = || bed.host.network(&bed.grid, cell.way, &beside);
        let before = network();
        let measured = self.measure((cell, run), bed, &directory);
        let after = network();
        let network = after.zip(before).map(|(after, before)| after.since(before));
        let outcome = match measured {
            Ok(values) => {
                let _ = std::fs::remove_dir_all(&directory);
                Outcome::Measured { values }
            }
            Err(error) => Outcome::Failed {
                reason: error.to_string(),
            },
        };
        Ran {
            outcome,
            network,
            cores,
        }
    }
}

impl<'a> Runner<'a> {
    /// Where a cell is measured.
    fn bed(&self, cell: &Cell) -> &'a Bed {
        let own = self.beds.iter().find(|bed| bed.lab == cell.lab);
        own.unwrap_or(&self.beds[0])
    }

    /// The MPI of a cell; if none is measured, any of them starts the ranks.
    fn mpi_of(&self, cell: &Cell) -> Result<&NamedMpi, TextError> {
        let mpi = self.mpis.iter().find(|mpi| mpi.name == cell.mpi);
        let mpi = mpi.or_else(|| self.mpis.first());
        mpi.ok_or_else(|| "there is no MPI to start it".into())
    }

    /// On how many cores the ranks of a cell compute: each MPI is asked once on each way.
    fn cores_of(&mut self, cell: &Cell, bed: &Bed, directory: &Path) -> Option<u32> {
        let key = (cell.mpi.clone(), cell.way.name());
        if let Some(known) = self.cores.get(&key) {
            return *known;
        }
        let found = self.ask_cores(cell, bed, directory);
        self.cores.insert(key, found);
        found
    }

    fn ask_cores(&self, cell: &Cell, bed: &Bed, directory: &Path) -> Option<u32> {
        let mpi = self.mpi_of(cell).ok()?;
        let command = self.work.cores_command(mpi, &bed.grid)?;
        make(directory).ok()?;
        let options = self.work.options(cell, mpi);
        let is_own_command = matches!(self.work, Work::App(_));
        let sites = bed.grid.sites_option(cell.way, is_own_command);
        let line = self.line(&[], &options, &sites, &command).ok()?;
        let ended = self
            .program(bed, &line, directory, self.limit)
            .ok()?
            .succeed()
            .ok()?;
        cores_of(&ended.stdout, bed.host.is_lab())
    }

    fn measure(
        &self,
        (cell, run): (&Cell, u32),
        bed: &Bed,
        directory: &Path,
    ) -> Result<Vec<Value>, TextError> {
        let (mpi, grid) = (self.mpi_of(cell)?, &bed.grid);
        make(directory)?;
        self.step(bed, mpi, (cell.way, cell.settings), directory)?;
        let _traffic = match cell.traffic {
            Traffic::Busy => Some(self.traffic(bed, mpi, directory)?),
            Traffic::Quiet => None,
        };
        let command = self.work.command((cell, run), mpi, grid, &self.stop)?;
        let options = self.work.options(cell, mpi);
        let by_hand = !cell.way.has_gateways() && cell.settings == Settings::Tuned;
        let environment = match by_hand {
            true => by_hand::environment(&mpi.launcher, grid.link.as_ref(), grid.ranks(), Allowed::here()),
            false => vec![],
        };
        let sites = grid.sites_option(cell.way, matches!(self.work, Work::App(_)));
        let line = self.line(&environment, &options, &sites, &command)?;
        let ended = self.program(bed, &line, directory, self.limit)?.succeed();
        let ended = ended
            .map_err(|error| format!("{}; its outputs are in {}", error.reason(), directory.display()))?;
        self.work.values(cell, &ended)
    }

    /// Undoes what steps before runs have done.
    pub fn finish(&self) {
        let ways = [Way::Direct, Way::Causeway];
        let (Some(_), Some(mpi)) = (self.before, self.mpis.first()) else {
            return;
        };
        let directory = self.outputs.join("last");
        // Somebody may have stopped the measurement: this is still to be done.
        self.stop.store(false, Ordering::Relaxed);
        let steps = self.beds.iter().flat_map(|bed| ways.map(|way| (bed, way)));
        let mut steps = steps.map(|(bed, way)| {
            make(&directory).and_then(|()| self.step(bed, mpi, (way, Settings::Default), &directory))
        });
        let failed = steps.find_map(Result::err);
        match failed {
            Some(error) => say::error(format_args!(
                "causeway tune: {error}; 'causeway tune --undo' does it"
            )),
            None => drop(std::fs::remove_dir_all(&directory)),
        }
    }

    fn step(
        &self,
        bed: &Bed,
        mpi: &NamedMpi,
        (way, settings): (Way, Settings),
        directory: &Path,
    ) -> Result<(), TextError> {
        let Some(step) = self.before.map(|before| before(way, settings)) else {
            return Ok(());
        };
        let mut own = vec![bed.grid.causeway.display().to_string()];
        own.extend(step.words);
        if settings == Settings::Tuned
            && let Some(link) = &bed.grid.link
        {
            let (time, rate) = (link.round_trip_us, link.rate_bits_per_second);
            own.extend(["--link".to_owned(), format!("{time}us,{rate}bit/s")]);
        }
        let line = match step.on_nodes {
            true => {
                let launcher = mpi.launcher.path.display().to_string();
                let command: Vec<String> = [launcher, "-n".into(), "2".into()]
                    .into_iter()
                    .chain(own)
                    .collect();
                self.line(&[], &["--direct"], &bed.grid.one_at_each(), &command)?
            }
            false => own.iter().map(quoted).collect::<Vec<_>>().join(" "),
        };
        let done = self.program(bed, &line, directory, self.limit)?.succeed();
        done.map_err(|error| format!("{}; its outputs are in {}", error.reason(), directory.display()))?;
        Ok(())
    }

    fn program(
        &self,
        bed: &Bed,
        line: &str,
        directory: &Path,
        limit: Duration,
    ) -> Result<Program, TextError> {
        let program = bed.host.program(line, directory, limit);
        let program = program.map_err(|error| error.reason())?;
        Ok(program.until(&self.stop))
    }

    /// A line for bash, which runs in the user's directory.
    fn line(
        &self,
        environment: &[(&str, String)],
        options: &[&str],
        sites: &str,
        command: &[String],
    ) -> Result<String, TextError> {
        let here = std::env::current_dir().map_err(TextError::of)?;
        let mut words = vec!["exec".to_owned(), "env".to_owned()];
        // A variable that the user has set stays as it is.
        let unset = environment
            .iter()
            .filter(|(name, _)| std::env::var_os(name).is_none());
        words.extend(unset.map(|(name, value)| format!("{name}={value}")));
        words.extend([self.beds[0].grid.causeway.display().to_string(), "run".into()]);
        words.extend(options.iter().map(|&option| option.to_owned()));
        if !sites.is_empty() {
            words.extend(["--sites".to_owned(), sites.to_owned()]);
        }
        words.push("--".to_owned());
        words.extend(command.iter().cloned());
        let words: Vec<String> = words.iter().map(quoted).collect();
        Ok(format!("cd {} && {}", quoted(here), words.join(" ")))
    }

    /// The nodes on which traffic beside a cell starts, if the ranks are on others.
    fn beside<'b>(&self, bed: &'b Bed, traffic: Traffic) -> Vec<&'b NodeInfo> {
        let own = match traffic {
            Traffic::Busy if !matches!(self.work, Work::App(_)) => bed.grid.beside(),
            _ => None,
        };
        own.into_iter().flatten().collect()
    }

    /// Starts the flows and waits until all are open. They end when the value is dropped.
    fn traffic(&self, bed: &Bed, mpi: &NamedMpi, directory: &Path) -> Result<Running, TextError> {
        let (grid, directory) = (&bed.grid, directory.join("traffic"));
        make(&directory)?;
        let beside = self.beside(bed, Traffic::Busy);
        let to = beside
            .get(1)
            .map_or_else(|| grid.second_rank(Way::Direct), |node| node.address);
        let option = mpi.launcher.mpi.row().hosts_option;
        let names: Vec<&str> = beside.iter().map(|node| node.name.as_str()).collect();
        let (sites, hosts) = match names.is_empty() {
            true => (grid.one_at_each(), vec![]),
            false => (String::new(), vec![option.to_owned(), names.join(",")]),
        };
        let mut command = vec![mpi.launcher.path.display().to_string()];
        command.extend(hosts);
        let flows = [
            "-n".into(),
            "2".into(),
            grid.causeway.display().to_string(),
            "bench-part".into(),
            "flows".into(),
            format!("{to}:{TRAFFIC_PORT}"),
            self.flows.to_string(),
        ];
        command.extend(flows);
        let line = self.line(&[], &["--direct"], &sites, &command)?;
        let program = self.program(bed, &line, &directory, TRAFFIC_LASTS)?;
        let mut running = program.start().map_err(|error| error.reason())?;
        let end = Instant::now() + TRAFFIC_BEGINS;
        let said = || std::fs::read_to_string(directory.join("stdout")).unwrap_or_default();
        while !said().contains(FLOWING) {
            let is_over = running.ended().map_err(|error| error.reason())?.is_some();
            if is_over || Instant::now() > end || self.stop.load(Ordering::Relaxed) {
                return Err(format!(
                    "the background traffic did not begin: is there a route between the sites? Its output is in {}",
                    directory.display()
                )
                .into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(running)
    }
}

fn make(directory: &Path) -> Result<(), TextError> {
    let made = std::fs::create_dir_all(directory);
    made.map_err(|error| format!("create {}: {error}", directory.display()).into())
}
