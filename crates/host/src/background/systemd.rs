//! A service of this user's own systemd: it starts together with the host, and no logout ends it.

use crate::{own_file, user_directories};
use causeway_wire::TextError;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The beginning of each unit.
const MARK: &str = "# Written by 'causeway ";

/// Variables that a gateway or a broker, and the commands that they run, need. When a host starts, there is
/// no login's environment.
const KEPT: [&str; 11] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "SLURM_CONF",
    "PBS_CONF_FILE",
    "OARCONFFILE",
    "CAUSEWAY_CONTROL",
];

/// This user's systemd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    /// There is no manager, or it cannot be used.
    Absent,
    /// The manager ends at the user's last logout, and may end what the user has started.
    EndsAtLogout,
    /// The manager starts with the host.
    Lingers,
}

impl Manager {
    /// Asks this host.
    pub fn here() -> Manager {
        let user = user_name();
        let lingers = Path::new("/var/lib/systemd/linger").join(&user).exists();
        let is_there = Path::new("/run/systemd/system").exists();
        // A manager that lingers is running, and answers at once.
        match is_there && lingers && systemctl(&["show", "--property=Version"]).is_ok() {
            true => Manager::Lingers,
            // root's processes are not ended unless that is configured (logind.conf, KillExcludeUsers).
            false if is_there && !lingers && user != "root" => Manager::EndsAtLogout,
            false => Manager::Absent,
        }
    }
}

/// This user's name.
pub fn user_name() -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
    user.map_or_else(String::new, |user| user.name)
}

/// A unit of this user's systemd.
#[derive(Debug)]
pub struct Unit {
    name: String,
    file: PathBuf,
}

impl Unit {
    /// The service of a command, `gateway` or `broker`, for a site or a grid.
    ///
    /// # Errors
    /// There is no home directory.
    pub fn new(command: &str, of: &str) -> Result<Unit, TextError> {
        let name = format!("causeway-{command}-{of}.service");
        let file = directory().map_err(TextError::of)?.join(&name);
        Ok(Unit { name, file })
    }

    /// The name by which `systemctl --user` knows it.
    pub fn name(&self) -> &str {
        self.name.trim_end_matches(".service")
    }

    /// Writes the unit, and starts the service now and whenever the host starts.
    ///
    /// # Errors
    /// The unit cannot be written, or systemd refuses it.
    pub fn start(&self, text: &str) -> Result<(), TextError> {
        if let Some(directory) = self.file.parent() {
            fs::create_dir_all(directory)
                .map_err(|error| format!("make {}: {error}", directory.display()))?;
        }
        own_file::write(&self.file, text.as_bytes(), MARK)?;
        systemctl(&["daemon-reload"])?;
        // An earlier service with this name may have failed too often.
        let _ = systemctl(&["reset-failed", &self.name]);
        systemctl(&["enable", "--now", &self.name]).map(drop)
    }

    /// Asks systemd whether the service has ended, or was started again because it had. Without an answer, it
    /// has not.
    pub fn has_failed(&self) -> bool {
        let said = systemctl(&["show", "--property=ActiveState,NRestarts", &self.name]);
        said.is_ok_and(|said| says_failed(&said))
    }

    /// Ends the service, and removes the unit; a unit that Causeway did not write stays.
    pub fn remove(&self) {
        if !is_ours(&self.file) {
            return;
        }
        let _ = systemctl(&["disable", "--now", &self.name]);
        let _ = fs::remove_file(&self.file);
        let _ = systemctl(&["daemon-reload"]);
    }
}

/// Removes all units of this user that Causeway wrote, and their services.
///
/// # Errors
/// There is no home directory.
pub fn remove_all() -> Result<(), TextError> {
    let directory = directory().map_err(TextError::of)?;
    for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("causeway-") {
            let file = entry.path();
            Unit { name, file }.remove();
        }
    }
    Ok(())
}

fn is_ours(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.starts_with(MARK))
}

/// The unit of a command that writes its log to a file; `None` if a path or a variable contains a character
/// that no unit can hold.
pub fn unit_text(command: &str, of: &str, program: &Path, config: &Path, log: &Path) -> Option<String> {
    let run = format!("exec \"$0\" {command} --config \"$1\" >>\"$2\" 2>&1");
    let words = [
        OsStr::new("/bin/sh"),
        OsStr::new("-c"),
        OsStr::new(&run),
        program.as_os_str(),
        config.as_os_str(),
        log.as_os_str(),
    ];
    let start = words.map(|word| Some(held(word)?.replace('$', "$$")));
    let start = start.into_iter().collect::<Option<Vec<String>>>()?.join(" ");
    let reload = [program.as_os_str(), config.as_os_str()].map(|word| Some(held(word)?.replace('$', "$$")));
    let reload = match reload {
        [Some(program), Some(config)] if command == "gateway" => {
            format!("ExecReload={program} gateway --config {config} --drain\n")
        }
        _ => String::new(),
    };
    let mut environment = String::new();
    for name in KEPT {
        environment += &match std::env::var_os(name) {
            Some(value) => {
                let mut pair = std::ffi::OsString::from(format!("{name}="));
                pair.push(value);
                format!("Environment={}\n", held(&pair)?)
            }
            None => format!("UnsetEnvironment={name}\n"),
        };
    }
    // 2: a wrong configuration stays wrong. A hand-over must not be taken for an end. If memory runs out, the
    // kernel should first end the gateway's worker, which the gateway replaces.
    Some(format!(
        "{MARK}{command} --background'; 'causeway down' removes it.\n\
         [Unit]\nDescription=Causeway {command} of {of}\n\n\
         [Service]\n{environment}ExecStart={start}\n{reload}Restart=on-failure\nRestartPreventExitStatus=2\n\
         KillMode=process\nOOMPolicy=continue\nLimitNOFILE=65536\n\n\
         [Install]\nWantedBy=default.target\n"
    ))
}

/// A word of a unit, in quotes.
fn held(word: &OsStr) -> Option<String> {
    let text = word.to_str()?;
    let is_held = |letter: char| !letter.is_control();
    let text = text.replace('\\', r"\\").replace('"', "\\\"").replace('%', "%%");
    text.chars().all(is_held).then(|| format!("\"{text}\""))
}

fn says_failed(said: &str) -> bool {
    let value = |key: &str| {
        let mut all = said.lines().filter_map(|line| line.split_once('='));
        all.find(|(known, _)| *known == key)
            .map_or("", |(_, value)| value)
    };
    !["active", "activating"].contains(&value("ActiveState")) || !["", "0"].contains(&value("NRestarts"))
}

/// The directory of this user's units.
fn directory() -> Result<PathBuf, user_directories::NoHome> {
    let own = user_directories::config()?;
    Ok(own.parent().unwrap_or(&own).join("systemd/user"))
}

/// Runs `systemctl --user`, and returns what it prints.
fn systemctl(words: &[&str]) -> Result<String, TextError> {
    let mut command = Command::new("systemctl");
    command.arg("--user").args(words).stdin(Stdio::null());
    // Without PAM, a login does not set the variable.
    let usual = format!("/run/user/{}", nix::unistd::geteuid());
    if std::env::var_os("XDG_RUNTIME_DIR").is_none() && Path::new(&usual).exists() {
        command.env("XDG_RUNTIME_DIR", usual);
    }
    let failed = |error: io::Error| TextError::from(format!("run systemctl: {error}"));
    let output = command.output().map_err(failed)?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        true => Ok(said(&output.stdout)),
        false => Err(format!("systemctl --user {}: {}", words.join(" "), said(&output.stderr)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_holds_odd_paths_as_they_are_and_says_no_where_it_cannot() {
        let text = |program: &str| {
            let [program, config, log] = [program, "/c/50%", "/l"].map(Path::new);
            unit_text("gateway", "rennes", program, config, log)
        };
        let unit = text(r#"/home/a "b" $c/causeway"#).unwrap();
        for line in [
            r#"ExecStart="/bin/sh" "-c" "exec \"$$0\" gateway --config \"$$1\" >>\"$$2\" 2>&1" "/home/a \"b\" $$c/causeway" "/c/50%%" "/l""#,
            r#"ExecReload="/home/a \"b\" $$c/causeway" gateway --config "/c/50%%" --drain"#,
            "WantedBy=default.target",
        ] {
            assert!(
                unit.lines().any(|found| found == line),
                "{line} is not in\n{unit}"
            );
        }
        assert!(unit.starts_with(MARK));
        assert_eq!(text("/home/a\nb"), None);
        let [program, config, log] = ["/p", "/c", "/l"].map(Path::new);
        let broker = unit_text("broker", "g5k", program, config, log).unwrap();
        assert!(!broker.contains("ExecReload"), "a broker hands nothing over");
    }

    #[test]
    fn a_unit_that_its_user_has_written_is_neither_replaced_nor_removed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("causeway-gateway-rennes.service");
        fs::write(&file, "[Service]\nExecStart=/mine\n").unwrap();
        let name = "causeway-gateway-rennes.service".to_owned();
        let unit = Unit {
            name,
            file: file.clone(),
        };
        assert!(unit.start(MARK).is_err());
        unit.remove();
        assert_eq!(fs::read_to_string(&file).unwrap(), "[Service]\nExecStart=/mine\n");
    }

    #[test]
    fn a_service_that_was_started_again_has_failed() {
        assert!(!says_failed("ActiveState=active\nNRestarts=0\n"));
        assert!(says_failed("ActiveState=active\nNRestarts=1\n"));
        assert!(says_failed("ActiveState=failed\nNRestarts=0\n"));
        // systemd before 235 prints no NRestarts.
        assert!(!says_failed("ActiveState=active\n"));
    }
}
