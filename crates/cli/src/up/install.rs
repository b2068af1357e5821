//! Puts this installation of Causeway on a head node.

use super::host::{COPY_PATIENCE, Host, PATIENCE};
use causeway_mpis::quoted;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The directory below `~/.local/share/causeway` that has the installations, each by its contents.
pub const INSTALLED: &str = "installed";

/// Letters of an installation's name.
const NAME_LETTERS: usize = 12;

/// This installation.
#[derive(Debug)]
pub struct Installation {
    root: PathBuf,
    /// Its files, below the root.
    files: Vec<PathBuf>,
    /// The command among them.
    command: PathBuf,
    /// Named by what is in it.
    name: String,
    /// How much that is.
    bytes: u64,
}

/// What a head node says before anything is there.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FirstLook {
    /// The home directory.
    pub home: String,
    machine: String,
    free_kib: u64,
    /// What a program in the home directory said.
    runs: String,
}

/// A line of sh that takes the first look.
const LOOK: &str = r#"echo "home=$HOME"; echo "machine=$(uname -sm)"
echo "free=$(df -Pk "$HOME" | awk 'NR == 2 { print $4 }')"
t=$(mktemp "$HOME/.causeway-XXXXXX") && printf '#!/bin/sh\necho runs\n' >"$t" && chmod 700 "$t" && echo "runs=$("$t" 2>&1)"
rm -f "$t""#;

impl Installation {
    /// Finds the files of the program that runs.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn own() -> io::Result<Installation> {
        let own = std::env::current_exe()?;
        let directory = own.parent().unwrap_or(Path::new("/")).to_owned();
        let all = fs::read_dir(&directory)?.flatten().map(|entry| entry.file_name());
        let is_ours = |name: &std::ffi::OsString| {
            let name = name.to_string_lossy();
            name.starts_with("libcauseway_") && name.ends_with(".so")
                || ["causeway", "causeway-loader"].contains(&&*name)
        };
        let files = all.filter(is_ours).map(PathBuf::from).collect();
        Installation::of(directory, files, "causeway".into())
    }

    fn of(root: PathBuf, mut files: Vec<PathBuf>, command: PathBuf) -> io::Result<Installation> {
        files.sort();
        let mut hash = Sha256::new();
        let mut bytes = 0;
        for file in &files {
            hash.update(file.as_os_str().as_encoded_bytes());
            hash.update([0]);
            let mut content = File::open(root.join(file))?;
            bytes += io::copy(&mut content, &mut hash)?;
        }
        let name = hash
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>();
        Ok(Installation {
            root,
            files,
            command,
            name: name.chars().take(NAME_LETTERS).collect(),
            bytes,
        })
    }

    /// Where it is on a host with this home directory.
    pub fn directory(&self, home: &str) -> String {
        format!("{home}/.local/share/causeway/{INSTALLED}/{}", self.name)
    }

    /// The command in a directory that has the installation.
    pub fn command(&self, directory: &str) -> String {
        format!("{directory}/{}", self.command.display())
    }

    /// The line that does by hand what [`Installation::put`] does.
    pub fn line(&self, host: &Host, directory: &str) -> String {
        let mib = self.bytes >> 20;
        match host.is_here() {
            true => format!(
                "tar -C {} -c . | tar -x -C {directory}   # {mib} MiB",
                self.root.display()
            ),
            false => format!(
                "tar -C {} -cz ... | ssh {} tar -xz -C {directory}   # {mib} MiB",
                self.root.display(),
                host.destination
            ),
        }
    }

    /// Whether a host has it in this directory.
    ///
    /// # Errors
    /// The host cannot be asked.
    pub fn is_there(&self, host: &Host, directory: &str) -> Result<bool, String> {
        let line = format!("if [ -d {} ]; then echo yes; fi", quoted(directory));
        Ok(host.run(&line, b"", PATIENCE)?.trim() == "yes")
    }

    /// Copies it to this directory of a host, whole or not at all.
    ///
    /// # Errors
    /// It cannot be copied, or does not run there.
    pub fn put(&self, host: &Host, directory: &str) -> Result<(), String> {
        // Over a line that is fast, a better compression takes longer than what it saves.
        let (pack, unpack): (&[&str], &str) = match host.is_here() {
            true => (&[], "tar -xf -"),
            false => (&["-I", "gzip -1"], "tar -xzf -"),
        };
        let mut tar = Command::new("tar");
        tar.args(pack)
            .arg("-C")
            .arg(&self.root)
            .args(["-cf", "-", "--"])
            .args(&self.files);
        let mut tar = { tar.stdin(Stdio::null()).stdout(Stdio::piped()) }
            .spawn()
            .map_err(|error| format!("run tar: {error}"))?;
        let (new, directory) = (quoted(format!("{directory}.new")), quoted(directory));
        let line = format!("umask 022; rm -rf {new} && mkdir -p {new} && {unpack} -C {new}");
        let copied = host.feed(&line, &mut tar, COPY_PATIENCE);
        let packed = tar.wait().map_err(|error| format!("run tar: {error}"))?;
        copied?;
        if !packed.success() {
            return Err(format!("tar: {packed}"));
        }
        let line = format!("rm -rf {directory} && mv {new} {directory}");
        host.run(&line, b"", PATIENCE).map(drop)
    }

    /// Gives users the command by its name.
    ///
    /// # Errors
    /// The link cannot be made.
    pub fn link(&self, host: &Host, home: &str, directory: &str) -> Result<(), String> {
        let bin = quoted(format!("{home}/.local/bin"));
        let command = quoted(self.command(directory));
        let line = format!("mkdir -p {bin} && ln -sfn {command} {bin}/causeway");
        host.run(&line, b"", PATIENCE).map(drop)
    }

    /// Looks at a host on which nothing is yet.
    ///
    /// # Errors
    /// The installation cannot run there.
    pub fn look(&self, host: &Host) -> Result<FirstLook, String> {
        let looked = read(&host.run(LOOK, b"", PATIENCE)?);
        self.judge(&looked)
            .map_err(|why| format!("{}: {why}", host.site))?;
        Ok(looked)
    }

    fn judge(&self, looked: &FirstLook) -> Result<(), String> {
        let own = format!("Linux {}", std::env::consts::ARCH);
        if looked.machine != own {
            return Err(format!(
                "it has {:?}, and this Causeway is for {own:?}: start 'causeway up' with one for both",
                looked.machine
            ));
        }
        // Twice, because a new one is there before an old one goes.
        let needed = self.bytes.saturating_mul(2) >> 10;
        if looked.free_kib < needed {
            return Err(format!(
                "{} has {} KiB left, and Causeway needs {needed}",
                looked.home, looked.free_kib
            ));
        }
        match looked.runs.as_str() {
            "runs" => Ok(()),
            said => Err(format!("programs do not run in {}: {said}", looked.home)),
        }
    }
}

fn read(said: &str) -> FirstLook {
    // What a shell's start files print stands before.
    let pairs: BTreeMap<&str, &str> = said.lines().filter_map(|line| line.split_once('=')).collect();
    let value = |key: &str| pairs.get(key).copied().unwrap_or_default().to_owned();
    FirstLook {
        home: value("home"),
        machine: value("machine"),
        free_kib: value("free").parse().unwrap_or(0),
        runs: value("runs"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::host::THIS_HOST;
    use super::*;

    fn installation(root: &Path) -> Installation {
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::write(root.join("bin/causeway"), "a program").unwrap();
        Installation::of(
            root.to_owned(),
            vec!["bin/causeway".into()],
            "bin/causeway".into(),
        )
        .unwrap()
    }

    #[test]
    fn an_installation_is_put_whole_and_named_by_what_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let one = installation(&dir.path().join("one"));
        let host = Host {
            site: "rennes".to_owned(),
            destination: THIS_HOST.to_owned(),
            connections: dir.path().to_owned(),
        };
        let home = dir.path().join("a home").display().to_string();
        let directory = one.directory(&home);
        assert!(!one.is_there(&host, &directory).unwrap());
        one.put(&host, &directory).unwrap();
        one.link(&host, &home, &directory).unwrap();
        assert!(one.is_there(&host, &directory).unwrap());
        assert_eq!(
            fs::read_to_string(format!("{home}/.local/bin/causeway")).unwrap(),
            "a program"
        );
        fs::write(dir.path().join("one/bin/causeway"), "another").unwrap();
        let other = Installation::of(one.root.clone(), one.files.clone(), one.command.clone()).unwrap();
        assert_ne!(other.name, one.name);
        // Half of it is nothing.
        let missing = Installation {
            files: vec!["bin/none".into()],
            name: "missing".to_owned(),
            ..other
        };
        let directory = missing.directory(&home);
        assert!(missing.put(&host, &directory).is_err());
        assert!(!missing.is_there(&host, &directory).unwrap());
    }

    #[test]
    fn a_host_that_cannot_run_it_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let one = installation(dir.path());
        let judged = |said: &str| one.judge(&read(said)).err().unwrap_or_default();
        let own = format!("Linux {}", std::env::consts::ARCH);
        let fine = format!("Welcome to a=b\nhome=/home/ada\nmachine={own}\nfree=100\nruns=runs\n");
        assert_eq!(judged(&fine), "");
        assert!(judged(&fine.replace(&own, "Linux s390x")).contains("s390x"));
        assert!(
            judged(&fine.replace("runs=runs", "runs=sh: Permission denied"))
                .contains("do not run in /home/ada")
        );
        let large = Installation {
            bytes: 1 << 30,
            ..one
        };
        assert!(large.judge(&read(&fine)).unwrap_err().contains("100 KiB left"));
    }
}
