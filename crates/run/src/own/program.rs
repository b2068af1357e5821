//! `causeway start-program --ranks 32 -- ./app`: starts a program at a site in the way of that site. The
//! `[mpi]` of its gateway says how; if it does not, what exists here decides: srun if there is Slurm, or a
//! launcher of the program's MPI.

use causeway_host::say;
use causeway_mpis::family::{Family, in_path};
use causeway_mpis::starting::{Here, SLURM, STARTERS, choose, srun_types};
use causeway_wire::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// See the module.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many processes.
    #[arg(long)]
    ranks: u32,
    /// The component of the heterogeneous allocation in which it runs.
    #[arg(long)]
    component: Option<u32>,
    /// Say what starts them, and why.
    #[arg(long)]
    verbose: bool,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

/// Replaces this process with the site's launcher.
pub fn main(args: &Args) -> ExitCode {
    let site = std::env::var(env::SITE).unwrap_or_default();
    let chosen = match std::env::var(env::MPI_START) {
        Ok(start) => Ok((start, "its gateway's [mpi] says so".to_owned())),
        Err(_) => {
            let here = look(&args.command[0], args.component);
            if here.lacks_program {
                // This is not an error: the nodes on which the launcher starts the program may have it.
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
    // The shell survives an interrupt until the launcher has ended.
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

/// Collects the facts that decide.
fn look(program: &OsStr, component: Option<u32>) -> Here {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_set = |name: &str| std::env::var_os(name).is_some();
    let exists = |name: &&str| in_path(&path, OsStr::new(name)).is_some();
    let program = in_path(&path, program);
    let configured = std::env::var_os("SLURM_CONF").is_some_and(|file| Path::new(&file).exists());
    let mut here = Here {
        mpi: program.as_deref().and_then(Family::of),
        lacks_program: program.is_none(),
        launchers: STARTERS.into_iter().filter(exists).collect(),
        is_allocated: is_set("SLURM_JOB_ID"),
        has_slurm: configured || SLURM.iter().any(|file| Path::new(file).exists()),
        names_type: is_set("SLURM_MPI_TYPE"),
        types: Vec::new(),
        component,
    };
    if here.asks_srun() {
        here.types = srun_types(&srun_list());
    }
    here
}

/// Lists the MPI types that srun knows. srun may ask its controller for the configuration, and that may not
/// answer.
fn srun_list() -> String {
    let mut list = Command::new("sh");
    list.args(["-c", "timeout 10 srun --mpi=list 2>&1"])
        .stdin(Stdio::null());
    let said = list.output().map_or_else(|_| Vec::new(), |output| output.stdout);
    String::from_utf8_lossy(&said).into_owned()
}
