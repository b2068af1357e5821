//! `causeway start-program --ranks 32 -- ./app`: at a site, starts a program as that site does it. Its
//! gateway's `[mpi]` says how; else what is found here: srun where there is Slurm, or a launcher of the
//! program's MPI.

use crate::say;
use causeway_mpis::family::{Family, in_path};
use causeway_mpis::launchers;
use causeway_wire::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Where Slurm's commands look for their configuration, beside SLURM_CONF: Debian's, the usual one, and the
/// one that a node gets from slurmctld.
const SLURM: [&str; 3] = [
    "/etc/slurm/slurm.conf",
    "/usr/local/etc/slurm.conf",
    "/run/slurm/conf/slurm.conf",
];

/// See the module.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many processes.
    #[arg(long)]
    ranks: u32,
    /// Say what starts them, and why.
    #[arg(long)]
    verbose: bool,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

/// Becomes the site's launcher.
pub fn main(args: &Args) -> ExitCode {
    let site = std::env::var(env::SITE).unwrap_or_default();
    let chosen = match std::env::var(env::MPI_START) {
        Ok(start) => Ok((start, "its gateway's [mpi] says so".to_owned())),
        Err(_) => {
            let here = Here::look(&args.command[0]);
            if here.lacks_program {
                // No error: it may be there on the nodes that the launcher takes.
                say::error(format_args!(
                    "causeway: site {site}: {}",
                    missing(&args.command[0])
                ));
            }
            choose(&here)
        }
    };
    let (start, why) = match chosen {
        Ok(chosen) => chosen,
        Err(reason) => {
            say::error(format_args!("causeway: site {site}: {reason}"));
            return ExitCode::FAILURE;
        }
    };
    let start = start.replace("{ranks}", &args.ranks.to_string());
    if args.verbose {
        let words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
        say::error(format_args!(
            "causeway: site {site}: {start} {}: {why}",
            words.join(" ")
        ));
    }
    // The shell outlives an interrupt until the launcher has ended.
    let script = format!("trap : INT; {start} \"$@\"");
    let error = Command::new("sh")
        .arg("-c")
        .arg(script)
        .arg("sh")
        .args(&args.command)
        .exec();
    say::error(format_args!("causeway: site {site}: run sh: {error}"));
    ExitCode::FAILURE
}

fn missing(program: &OsStr) -> String {
    let host = nix::unistd::gethostname().unwrap_or_default();
    let directory = std::env::current_dir().unwrap_or_default();
    format!(
        "there is no program {} on {} (in {} or PATH)",
        program.display(),
        host.display(),
        directory.display()
    )
}

/// What decides.
#[derive(Debug, Default)]
struct Here {
    mpi: Option<Family>,
    /// No such program is on this host.
    lacks_program: bool,
    /// Launchers in PATH.
    launchers: Vec<&'static str>,
    /// Within an allocation.
    is_allocated: bool,
    /// Slurm is set up here.
    has_slurm: bool,
    /// The user has chosen how srun meets MPIs.
    names_type: bool,
}

impl Here {
    fn look(program: &OsStr) -> Here {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_set = |name: &str| std::env::var_os(name).is_some();
        let exists = |name: &&str| in_path(&path, OsStr::new(name)).is_some();
        let program = in_path(&path, program);
        let configured = std::env::var_os("SLURM_CONF").is_some_and(|file| Path::new(&file).exists());
        Here {
            mpi: program.as_deref().and_then(Family::of),
            lacks_program: program.is_none(),
            launchers: launchers::STARTERS.into_iter().filter(exists).collect(),
            is_allocated: is_set("SLURM_JOB_ID"),
            has_slurm: configured || SLURM.iter().any(|file| Path::new(file).exists()),
            names_type: is_set("SLURM_MPI_TYPE"),
        }
    }
}

/// The start, with {ranks}, and why.
fn choose(here: &Here) -> Result<(String, String), String> {
    let has = |name: &&&str| here.launchers.contains(*name);
    if here.launchers.contains(&"srun") && (here.is_allocated || here.has_slurm) {
        // Without it srun takes the site's default, which is often none.
        let kind = here
            .mpi
            .filter(|_| !here.names_type)
            .map_or("", Family::srun_option);
        let place = if here.is_allocated {
            "this is an allocation of Slurm"
        } else {
            "there is Slurm"
        };
        return Ok((format!("srun -n {{ranks}}{kind}"), place.to_owned()));
    }
    let (fit, of) = match here.mpi {
        Some(family) => (
            family.launchers(),
            format!("the program is {}'s", family.short_name()),
        ),
        None => (launchers::OF_ANY, "the program's MPI is not known".to_owned()),
    };
    match fit.iter().find(has) {
        Some(launcher) => Ok((
            format!("{launcher} -n {{ranks}}"),
            format!("{of}, and this launcher is in PATH"),
        )),
        None => Err(format!(
            "{of}, and none of srun, {} is in PATH there; say in [mpi] of its gateway's configuration how programs start \
             (start = \"mpirun -n {{ranks}}\", setup = \"module load openmpi\")",
            fit.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(here: &Here) -> String {
        choose(here).unwrap().0
    }

    #[test]
    fn srun_starts_where_slurm_is_and_meets_the_programs_mpi() {
        let mut here = Here {
            mpi: Some(Family::Mpich),
            launchers: vec!["srun", "mpirun.openmpi", "mpirun"],
            ..Here::default()
        };
        // Its commands alone are no Slurm.
        assert_eq!(start(&here), "mpirun -n {ranks}");
        here.has_slurm = true;
        assert_eq!(start(&here), "srun -n {ranks} --mpi=pmi2");
        here.mpi = Some(Family::OpenMpi);
        assert_eq!(start(&here), "srun -n {ranks} --mpi=pmix");
        here.names_type = true;
        assert_eq!(start(&here), "srun -n {ranks}");
    }

    #[test]
    fn else_a_launcher_of_the_programs_own_mpi_does() {
        let mut here = Here {
            launchers: vec!["mpirun.openmpi", "mpiexec.hydra", "mpirun"],
            ..Here::default()
        };
        assert_eq!(start(&here), "mpirun -n {ranks}");
        here.mpi = Some(Family::OpenMpi);
        assert_eq!(start(&here), "mpirun.openmpi -n {ranks}");
        here.mpi = Some(Family::Mpich);
        assert_eq!(start(&here), "mpiexec.hydra -n {ranks}");
        here.launchers.clear();
        let reason = choose(&here).unwrap_err();
        assert!(
            reason.contains("[mpi]") && reason.contains("mpiexec.hydra"),
            "{reason}"
        );
    }
}
