//! Finds the MPIs of this host, and asks them for their versions as `causeway run` does.

use super::steps::Step;
use causeway_launchers::launcher::Launcher;
use causeway_mpis::preload::UCX;
use causeway_mpis::versions;
use causeway_run::collectives;
use std::ffi::OsStr;

/// The MPI that is to be used, or all that PATH has.
pub fn look(wanted: Option<&OsStr>) -> Vec<Step> {
    if let Some(word) = wanted {
        return vec![match Launcher::find(word) {
            Ok(launcher) => found(&launcher, Step::fail),
            Err(error) => {
                let remedy = "name the MPI's launcher, as in --mpi mpirun, after loading its module or virtual environment";
                Step::fail(word.to_string_lossy(), error.to_string(), remedy)
            }
        }];
    }
    let mut steps = Vec::new();
    for (name, launcher) in Launcher::in_path() {
        match launcher {
            // Another launcher may be the one that is used.
            Ok(launcher) => steps.push(found(&launcher, Step::warn)),
            Err(error) => {
                let remedy = "use another one with 'causeway run', or remove this one from PATH";
                steps.push(Step::warn(name.to_string_lossy(), error.to_string(), remedy));
            }
        }
    }
    if steps.is_empty() {
        let remedy = "load the MPI's module or virtual environment, or name its launcher with --mpi";
        steps.push(Step::warn("launcher", "PATH has none", remedy));
    }
    steps
}

fn found(launcher: &Launcher, amiss: fn(String, String, String) -> Step) -> Step {
    let name = launcher.path.display().to_string();
    let detail = format!("{} {}", launcher.mpi.name(), launcher.version);
    let library = std::env::current_exe().map(|own| own.with_file_name(UCX));
    if launcher.mpi.row().needs_ucx_cure && !library.as_ref().is_ok_and(|library| library.is_file()) {
        let remedy = format!("put {UCX} beside causeway ('make build' builds it)");
        return amiss(name, format!("{detail}, which needs {UCX}"), remedy);
    }
    judge(launcher, without_library(launcher))
}

/// Says that none of the libraries for the MPI's collective operations exists.
fn without_library(launcher: &Launcher) -> Option<String> {
    let own = std::env::current_exe().ok()?;
    let is_missing = collectives::built(&own, launcher.mpi).is_empty();
    is_missing.then(|| collectives::without(&own, launcher.mpi))
}

fn judge(launcher: &Launcher, without: Option<String>) -> Step {
    let name = launcher.path.display().to_string();
    let detail = format!("{} {}", launcher.mpi.name(), launcher.version);
    match versions::known(launcher.mpi, &launcher.version) {
        Some(_) if let Some(without) = without => Step::warn(
            name,
            format!("{detail}: {without}"),
            "put the library beside causeway, at the same path on every node",
        ),
        Some(_) => Step::ok(name, detail),
        None if let Some(what) = versions::fault(launcher.mpi, &launcher.version) => Step::warn(
            name,
            format!("{detail}: {what}, even without Causeway"),
            "use another version; with this one, jobs run without tuning",
        ),
        None => Step::warn(
            name.clone(),
            format!(
                "{detail}: not tested with Causeway (tested: {})",
                versions::seen(launcher.mpi)
            ),
            format!(
                "test it here with 'causeway check --mpi {name} --data'; until then it runs without tuning"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::steps::Verdict;
    use super::*;
    use causeway_mpis::Mpi;

    fn launcher(mpi: Mpi, version: &str) -> Launcher {
        Launcher {
            path: "/usr/bin/mpirun".into(),
            mpi,
            version: version.into(),
            two_netmods: false,
        }
    }

    #[test]
    fn versions_that_are_tested_are_told_from_others() {
        assert_eq!(
            judge(&launcher(Mpi::OpenMpi4, "4.1.4"), None),
            Step::ok("/usr/bin/mpirun", "Open MPI 4.1.4")
        );
        assert_eq!(
            judge(&launcher(Mpi::OpenMpi4, "1.10.7"), None).result,
            Verdict::Warn
        );
        assert_eq!(
            judge(&launcher(Mpi::Intel, "2021.18.1"), None).result,
            Verdict::Ok
        );
    }

    #[test]
    fn an_mpi_without_the_library_for_its_collectives_is_told() {
        let step = judge(&launcher(Mpi::OpenMpi4, "4.1.4"), Some("as often as".to_owned()));
        assert!(
            step.result == Verdict::Warn && step.detail.contains("Open MPI 4.1.4: as often as"),
            "{step}"
        );
        // A test's program has no library beside it.
        assert!(without_library(&launcher(Mpi::OpenMpi4, "4.1.4")).is_some());
    }

    #[test]
    fn a_launcher_that_was_asked_for_and_is_none_fails() {
        let steps = look(Some(OsStr::new("cp")));
        assert_eq!(steps[0].result, Verdict::Fail);
        assert!(steps[0].detail.contains("no MPI launcher"), "{}", steps[0]);
    }
}
