//! How a site's own part of a job is started if its gateway does not say: with srun if there is Slurm, or
//! with a launcher of the program's MPI.

use crate::family::Family;

/// Where Slurm's commands look for their configuration, besides SLURM_CONF: Debian's path, the usual one, and
/// the one that a node gets from slurmctld.
pub const SLURM: [&str; 3] = [
    "/etc/slurm/slurm.conf",
    "/usr/local/etc/slurm.conf",
    "/run/slurm/conf/slurm.conf",
];

/// The programs that start a site's own part of a job if its gateway does not say: a batch system's command,
/// and launchers.
pub const STARTERS: [&str; 5] = ["srun", "mpirun.openmpi", "mpiexec.hydra", "mpirun", "mpiexec"];

/// Launchers for a program whose MPI is not known, the most likely first.
const OF_ANY: &[&str] = &["mpirun", "mpiexec", "mpiexec.hydra"];

/// The facts that decide.
#[derive(Debug, Default)]
pub struct Here {
    /// The program's MPI, if it is known.
    pub mpi: Option<Family>,
    /// Whether this host has no such program.
    pub lacks_program: bool,
    /// Launchers in PATH.
    pub launchers: Vec<&'static str>,
    /// Whether this is inside an allocation.
    pub is_allocated: bool,
    /// Whether Slurm is configured here.
    pub has_slurm: bool,
    /// Whether the user has chosen how srun connects MPIs.
    pub names_type: bool,
    /// The types for MPIs that srun accepts; empty if it did not report any.
    pub types: Vec<String>,
    /// The component of the heterogeneous allocation.
    pub component: Option<u32>,
}

impl Here {
    fn has_srun(&self) -> bool {
        self.launchers.contains(&"srun") && (self.is_allocated || self.has_slurm)
    }

    /// The type with which srun must connect the program, if Causeway chooses it. Without one, srun uses the
    /// site's default, which is often none.
    fn wanted_type(&self) -> Option<&'static str> {
        self.mpi.filter(|_| !self.names_type).map(Family::srun_type)
    }

    /// Whether the start depends on srun's types.
    pub fn asks_srun(&self) -> bool {
        self.has_srun() && self.wanted_type().is_some()
    }
}

/// The types that `srun --mpi=list` names; empty if there is no Slurm.
pub fn srun_types(list: &str) -> Vec<String> {
    let (_, types) = list.split_once("MPI plugin types are...").unwrap_or_default();
    let words = types.lines().map(str::trim);
    let words = words.take_while(|line| !line.contains("versions available"));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// How to start the program, with {ranks}, and why.
///
/// # Errors
/// Nothing here can start the program; the error says so in words.
pub fn choose(here: &Here) -> Result<(String, String), String> {
    let has = |name: &&&str| here.launchers.contains(*name);
    let (is_there, wanted) = (here.has_srun(), here.wanted_type());
    let lacks = wanted.filter(|wanted| !here.types.is_empty() && !here.types.iter().any(|has| has == wanted));
    if is_there && lacks.is_none() {
        let kind = wanted.map_or(String::new(), |wanted| format!(" --mpi={wanted}"));
        let place = if here.is_allocated {
            "this is an allocation of Slurm"
        } else {
            "there is Slurm"
        };
        let group = here.component.map(|group| format!(" --het-group={group}"));
        let group = group.unwrap_or_default();
        return Ok((format!("srun -n {{ranks}}{group}{kind}"), place.to_owned()));
    }
    let (fit, of) = match here.mpi {
        Some(family) => (
            family.launchers(),
            format!("the program is {}'s", family.short_name()),
        ),
        None => (OF_ANY, "the program's MPI is not known".to_owned()),
    };
    let of = match lacks.filter(|_| is_there) {
        // A launcher would start all ranks on this host, which is a login node.
        Some(lacks) if !here.is_allocated => {
            return Err(format!(
                "{of}, but srun --mpi=list has no {lacks} there; run in an allocation (--time), in which {} starts it, or \
                 say in [mpi] of its gateway's configuration how programs start",
                fit.join(" or ")
            ));
        }
        Some(lacks) => format!("srun --mpi=list has no {lacks} here, {of}"),
        None => of,
    };
    match fit.iter().find(has) {
        Some(launcher) => Ok((
            format!("{launcher} -n {{ranks}}"),
            format!("{of}, and this launcher is in PATH"),
        )),
        None => Err(format!(
            "{of}, but none of srun, {} is in PATH there; say in [mpi] of its gateway's configuration how programs start \
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
        // The commands alone do not mean that there is Slurm.
        assert_eq!(start(&here), "mpirun -n {ranks}");
        here.has_slurm = true;
        assert_eq!(start(&here), "srun -n {ranks} --mpi=pmi2");
        here.mpi = Some(Family::OpenMpi);
        assert_eq!(start(&here), "srun -n {ranks} --mpi=pmix");
        here.component = Some(1);
        assert_eq!(start(&here), "srun -n {ranks} --het-group=1 --mpi=pmix");
        here.component = None;
        here.names_type = true;
        assert_eq!(start(&here), "srun -n {ranks}");
    }

    #[test]
    fn a_launcher_starts_what_srun_cannot_meet() {
        let list = "MPI plugin types are...\n\tnone\n\tcray_shasta\n\tpmi2\n";
        let mut here = Here {
            mpi: Some(Family::OpenMpi),
            launchers: vec!["srun", "mpirun.openmpi", "mpirun"],
            is_allocated: true,
            types: srun_types(list),
            ..Here::default()
        };
        let (start, why) = choose(&here).unwrap();
        assert_eq!(start, "mpirun.openmpi -n {ranks}");
        assert!(
            why.starts_with("srun --mpi=list has no pmix here, the program is"),
            "{why}"
        );
        // Elsewhere, it would start all of them on a login node.
        (here.is_allocated, here.has_slurm) = (false, true);
        let reason = choose(&here).unwrap_err();
        assert!(reason.contains("no pmix there; run in an allocation"), "{reason}");
        here.is_allocated = true;
        here.mpi = Some(Family::Mpich);
        assert_eq!(choose(&here).unwrap().0, "srun -n {ranks} --mpi=pmi2");
        here.mpi = Some(Family::OpenMpi);
        here.names_type = true;
        assert_eq!(choose(&here).unwrap().0, "srun -n {ranks}");
        let more = "MPI plugin types are...\n\tpmix\nspecific pmix plugin versions available: pmix_v5\n";
        assert_eq!(srun_types(more), ["pmix"]);
        assert!(srun_types("srun: command not found").is_empty());
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
