//! Puts an installation of Causeway on a head node: this program's, or that of a tar for another processor.

use super::host::{COPY_PATIENCE, Host, PATIENCE};
use causeway_host::{own_file, quoted};
use causeway_mpis::preload::unsayable;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Letters in an installation's name.
const NAME_LETTERS: usize = 12;

/// Processors that Causeway is built for, by their numbers in ELF files and as `uname -m` calls them.
const PROCESSORS: [(u16, &str); 2] = [(62, "x86_64"), (183, "aarch64")];

/// Programs and libraries that belong together.
#[derive(Debug)]
pub struct Installation {
    root: PathBuf,
    /// What a host must answer to `uname -sm` to run this installation.
    machine: String,
    /// Its files, below the root.
    files: Vec<PathBuf>,
    /// The command, which is one of them.
    command: PathBuf,
    /// A name derived from its contents.
    name: String,
    /// The size of the contents.
    bytes: u64,
    /// The tar that it was unpacked from.
    tar: Option<PathBuf>,
}

/// What a head node reports before anything is installed there.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FirstLook {
    /// The home directory.
    pub home: String,
    machine: String,
    /// The result of writing, as a test, as much as the installation takes to the home directory; [`FITS`] if
    /// it fits.
    room: String,
    /// What a program in the home directory printed.
    runs: String,
}

/// The value of [`FirstLook::room`] if there is room.
const FITS: &str = "fits";

/// Lines of sh that take the first look, for installations of these `NAMES`, the largest of which has this
/// many `MIB`. Only writing data that does not compress shows everything that may be in the way: a full disk,
/// any quota, a directory that cannot be written to. If one of the installations is on the host already,
/// nothing has to fit.
const LOOK: &str = r#"export LC_ALL=C
echo "home=$HOME"; echo "machine=$(uname -sm)"
said=$(mktemp "$HOME/.causeway-XXXXXX" 2>&1) || { echo "room=$said"; exit 0; }
t=$said; trap 'rm -f "$t"' 0 1 2 15
mib=MIB; for name in NAMES; do [ ! -d "PROGRAMS/$name" ] || mib=0; done
if said=$(dd if=/dev/urandom of="$t" bs=1048576 iflag=fullblock count=$mib 2>&1); then echo "room=fits"; else echo "room=$said"; fi
printf '#!/bin/sh\necho runs\n' >"$t"; chmod 700 "$t"; echo "runs=$("$t" 2>&1)""#;

impl Installation {
    /// Finds the files that belong to the running program.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn own() -> io::Result<Installation> {
        let own = std::env::current_exe()?;
        Installation::in_directory(own.parent().unwrap_or(Path::new("/")))
    }

    /// Finds the files in a directory that contains a command.
    ///
    /// # Errors
    /// An error of the file system; or the command is for a processor that Causeway is not built for.
    pub fn in_directory(directory: &Path) -> io::Result<Installation> {
        let all = fs::read_dir(directory)?.flatten().map(|entry| entry.file_name());
        let is_ours = |name: &std::ffi::OsString| {
            let name = name.to_string_lossy();
            name.starts_with("libcauseway_") && name.ends_with(".so")
                || ["causeway", "causeway-loader"].contains(&&*name)
        };
        let files = all.filter(is_ours).map(PathBuf::from).collect();
        Installation::of(directory.to_owned(), files, "causeway".into())
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
            machine: machine_of(&root.join(&command))?,
            root,
            files,
            command,
            tar: None,
            name: name.chars().take(NAME_LETTERS).collect(),
            bytes,
        })
    }

    /// The directory that it has on a host with this home directory.
    pub fn directory(&self, home: &str) -> String {
        format!("{}/{}", programs(home), self.name)
    }

    /// The command in a directory that contains the installation.
    pub fn command(&self, directory: &str) -> String {
        format!("{directory}/{}", self.command.display())
    }

    /// The command line that does by hand what [`Installation::put`] does.
    pub fn line(&self, host: &Host, directory: &str) -> String {
        let mib = mib(self.bytes);
        if let Some(tar) = &self.tar {
            let member = "--strip-components=3 --wildcards '*/lib/causeway/*'";
            return format!(
                "ssh {} tar -xz {member} -C {directory} <{}   # {mib} MiB",
                host.destination,
                tar.display()
            );
        }
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

    /// Copies the installation to this directory of a host, completely or not at all.
    ///
    /// # Errors
    /// The installation cannot be copied, or does not run there.
    pub fn put(&self, host: &Host, directory: &str) -> Result<(), String> {
        // Over a fast connection, better compression would take longer than it saves.
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
        // Half an installation would take up the space that is missing.
        let line = format!(
            "umask 022; rm -rf {new} && mkdir -p {new} && {unpack} -C {new} || {{ rm -rf {new}; exit 1; }}"
        );
        let copied = host.feed(&line, &mut tar, COPY_PATIENCE);
        let packed = tar.wait().map_err(|error| format!("run tar: {error}"))?;
        copied?;
        if !packed.success() {
            return Err(format!("tar: {packed}"));
        }
        let line = format!("rm -rf {directory} && mv {new} {directory}");
        host.run(&line, b"", PATIENCE).map(drop)
    }

    fn judge(&self, looked: &FirstLook) -> Result<(), String> {
        if looked.room != FITS {
            return Err(format!(
                "{} does not take the {} MiB of Causeway: {}",
                looked.home,
                mib(self.bytes),
                looked.room
            ));
        }
        if let Some(what) = unsayable(Path::new(&looked.home)) {
            return Err(format!(
                "Causeway cannot lie below {}: {what} is in that path, which the loader and MPI's launchers read otherwise; \
                 name another directory as HOME",
                looked.home
            ));
        }
        match looked.runs.as_str() {
            "runs" => Ok(()),
            said => Err(format!("programs do not run in {}: {said}", looked.home)),
        }
    }
}

/// The directory for Causeway's data in an account with this home directory.
pub fn data(home: &str) -> String {
    format!("{home}/.local/share/causeway")
}

/// The directory of the installations, each named after its contents.
pub fn programs(home: &str) -> String {
    format!("{}/installed", data(home))
}

/// The link through which users have the command.
pub fn link_path(home: &str) -> String {
    format!("{home}/.local/bin/causeway")
}

/// Gives users the command under its usual name.
///
/// # Errors
/// The link cannot be made.
pub fn link(host: &Host, home: &str, command: &str) -> Result<(), String> {
    let [link, command] = [link_path(home), command.to_owned()].map(quoted);
    let line = format!("mkdir -p \"$(dirname {link})\" && ln -sfn {command} {link}");
    host.run(&line, b"", PATIENCE).map(drop)
}

/// Inspects a host that has one of these installations or is to get one.
///
/// # Errors
/// The host cannot be asked.
pub fn look(host: &Host, installations: &Installations) -> Result<FirstLook, String> {
    Ok(read(&host.run(&look_line(&installations.all), b"", PATIENCE)?))
}

fn look_line(installations: &[Installation]) -> String {
    let names: Vec<&str> = installations.iter().map(|one| one.name.as_str()).collect();
    let most = installations.iter().map(|one| mib(one.bytes)).max().unwrap_or(0);
    { LOOK.replace("MIB", &most.to_string()) }
        .replace("NAMES", &names.join(" "))
        .replace("PROGRAMS", &programs("$HOME"))
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// What a host that can run this program answers to `uname -sm`.
fn machine_of(program: &Path) -> io::Result<String> {
    let mut header = [0; 20];
    File::open(program)?.read_exact(&mut header)?;
    let number = u16::from_le_bytes([header[18], header[19]]);
    let known = PROCESSORS.iter().find(|(known, _)| *known == number);
    let known = known.filter(|_| header.starts_with(b"\x7fELF\x02\x01"));
    known.map(|(_, name)| format!("Linux {name}")).ok_or_else(|| {
        let why = format!("{} is no program for x86_64 or aarch64", program.display());
        io::Error::new(io::ErrorKind::InvalidData, why)
    })
}

/// The installations that can be copied.
#[derive(Debug)]
pub struct Installations {
    /// All installations; this program's own comes first.
    all: Vec<Installation>,
    /// The directories of the unpacked tars, which last as long as this value.
    _unpacked: Vec<TempDir>,
}

impl Installations {
    /// This program's own installation, and those of tars for other processors.
    ///
    /// # Errors
    /// A tar cannot be read, or is not one of Causeway.
    pub fn find(tars: &[PathBuf]) -> Result<Installations, String> {
        let own = Installation::own().map_err(|error| format!("read this installation: {error}"))?;
        let (mut all, mut unpacked) = (vec![own], Vec::new());
        for tar in tars {
            let (place, found) = from_tar(tar).map_err(|why| format!("--tar {}: {why}", tar.display()))?;
            all.push(found);
            unpacked.push(place);
        }
        Ok(Installations {
            all,
            _unpacked: unpacked,
        })
    }

    /// The installation that a host can run.
    ///
    /// # Errors
    /// No installation suits the host, or the host has no room for it.
    pub fn suited(&self, looked: &FirstLook) -> Result<&Installation, String> {
        let mut all = self.all.iter();
        let Some(suited) = all.find(|one| one.machine == looked.machine) else {
            let processor = looked.machine.strip_prefix("Linux ").unwrap_or_default();
            let is_made = PROCESSORS.iter().any(|(_, name)| *name == processor);
            let own = self.all.first().map_or("", |own| own.machine.as_str());
            return Err(match is_made {
                true => format!(
                    "it has {:?}, and this Causeway is for {own:?}: add its tar, --tar causeway-{}-linux-{processor}.tar.gz",
                    looked.machine,
                    env!("CARGO_PKG_VERSION")
                ),
                false => format!("it has {:?}, for which there is no Causeway", looked.machine),
            });
        };
        suited.judge(looked).map(|()| suited)
    }
}

/// Unpacks a tar of `make dist` for as long as the directory lasts.
fn from_tar(tar: &Path) -> Result<(TempDir, Installation), String> {
    let place = own_file::directory("causeway-tar-", &std::env::temp_dir());
    let place = place.map_err(|error| format!("make a directory for it: {error}"))?;
    let mut command = Command::new("tar");
    command.arg("-C").arg(place.path());
    command.args(["--strip-components=1", "-xf"]).arg(tar);
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("run tar: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(said.lines().next().unwrap_or("tar failed").to_owned());
    }
    let found = Installation::in_directory(&place.path().join("lib/causeway"));
    let found = found.map_err(|error| format!("it is not a tar of Causeway: {error}"))?;
    let tar = Some(tar.to_owned());
    Ok((place, Installation { tar, ..found }))
}

fn read(said: &str) -> FirstLook {
    // The output of the shell's start files comes before.
    let pairs: BTreeMap<&str, &str> = said.lines().filter_map(|line| line.split_once('=')).collect();
    let value = |key: &str| pairs.get(key).copied().unwrap_or_default().to_owned();
    FirstLook {
        home: value("home"),
        machine: value("machine"),
        room: value("room"),
        runs: value("runs"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::host::THIS_HOST;
    use super::*;

    const OWN: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

    /// A file that begins like a program for this processor.
    fn elf(processor: u16, rest: &str) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01".to_vec();
        bytes.resize(18, 0);
        bytes.extend(processor.to_le_bytes());
        bytes.extend(rest.as_bytes());
        bytes
    }

    fn installation(root: &Path) -> Installation {
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::write(root.join("bin/causeway"), elf(OWN, "a program")).unwrap();
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
        link(&host, &home, &one.command(&directory)).unwrap();
        assert!(one.is_there(&host, &directory).unwrap());
        assert_eq!(
            fs::read(format!("{home}/.local/bin/causeway")).unwrap(),
            elf(OWN, "a program")
        );
        fs::write(dir.path().join("one/bin/causeway"), elf(OWN, "another")).unwrap();
        let other = Installation::of(one.root.clone(), one.files.clone(), one.command.clone()).unwrap();
        assert_ne!(other.name, one.name);
        // Half an installation counts as none.
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
    fn a_home_directory_without_room_is_told_of_in_the_words_of_its_system() {
        let home = tempfile::tempdir().unwrap();
        let looked = |one: &Installation, before: &str| {
            let script =
                r#"mount -t tmpfs -o size=4m none "$HOME" && $1 && sh -c "$0" && cd && find . -type f"#;
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
            command.arg(look_line(std::slice::from_ref(one))).arg(before);
            let output = command.env("HOME", home.path()).output();
            let said = String::from_utf8(output.unwrap().stdout).unwrap();
            let last = said.lines().last().unwrap();
            assert_eq!(last, "runs=runs", "nothing is left there: {said}");
            read(&said)
        };
        let root = tempfile::tempdir().unwrap();
        let mut one = installation(root.path());
        assert_eq!(one.judge(&looked(&one, "true")), Ok(()));
        one.bytes = 5 << 20;
        let why = one.judge(&looked(&one, "true")).unwrap_err();
        let wanted = format!(
            "{} does not take the 5 MiB of Causeway: dd: ",
            home.path().display()
        );
        assert!(
            why.starts_with(&wanted) && why.ends_with("No space left on device"),
            "{why}"
        );
        // An installation that is there already needs no more space.
        let directory = one.directory(&home.path().display().to_string());
        assert_eq!(one.judge(&looked(&one, &format!("mkdir -p {directory}"))), Ok(()));
    }

    #[test]
    fn a_host_gets_the_installation_for_its_processor_or_is_told_what_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let own = installation(&dir.path().join("own"));
        let machine = own.machine.clone();
        let mut installations = Installations {
            all: vec![own],
            _unpacked: Vec::new(),
        };
        let judged = |all: &Installations, said: &str| match all.suited(&read(said)) {
            Ok(one) => one.machine.clone(),
            Err(why) => why,
        };
        let fine = format!("Welcome to a=b\nhome=/home/ada\nmachine={machine}\nroom=fits\nruns=runs\n");
        assert_eq!(judged(&installations, &fine), machine);
        let s390x = judged(&installations, &fine.replace(&machine, "Linux s390x"));
        assert!(s390x.contains("there is no Causeway"), "{s390x}");
        let noexec = fine.replace("runs=runs", "runs=sh: Permission denied");
        assert!(judged(&installations, &noexec).contains("do not run in /home/ada"));
        let (number, name) = PROCESSORS[usize::from(OWN == PROCESSORS[0].0)];
        let other = fine.replace(&machine, &format!("Linux {name}"));
        let wanted = format!("-linux-{name}.tar.gz");
        assert!(judged(&installations, &other).contains(&wanted));

        // The layout that 'make dist' makes.
        let tree = dir.path().join("causeway-1-linux/lib/causeway");
        fs::create_dir_all(&tree).unwrap();
        fs::write(tree.join("causeway"), elf(number, "for the other one")).unwrap();
        let tar = dir.path().join("other.tar.gz");
        let mut pack = Command::new("tar");
        pack.arg("-C")
            .arg(dir.path())
            .arg("-czf")
            .arg(&tar)
            .arg("causeway-1-linux");
        assert!(pack.status().unwrap().success());
        let (_place, found) = from_tar(&tar).unwrap();
        installations.all.push(found);
        assert_eq!(judged(&installations, &other), format!("Linux {name}"));

        fs::write(&tar, "nothing").unwrap();
        assert!(from_tar(&tar).is_err());
    }
}
