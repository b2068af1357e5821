//! What a value of `--send` names: `[SITE:]PATH[=NAME]`. A site may get a file of its own instead of one that
//! all get, such as a program for its processors.

use crate::error::RunError;
use causeway_wire::grid::is_site_name;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// A file or directory to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sent {
    /// The site that gets it; `None`: every site that gets nothing else under that name.
    site: Option<String>,
    /// The path here.
    pub(super) path: PathBuf,
    /// The path in the job's directory, without `.` in it; empty for that directory itself.
    pub(super) name: PathBuf,
}

impl Sent {
    /// Reads a value of the option. If a file has exactly that name, that file is meant.
    ///
    /// # Errors
    /// There is no such file, or its name would lead out of the job's directory.
    pub(super) fn read(typed: &Path) -> Result<Sent, RunError> {
        let wrong = |why: &str| RunError::Files(format!("--send {}: {why}", typed.display()));
        let exists = |text: &[u8]| path(text).symlink_metadata().is_ok();
        let whole = typed.as_os_str().as_bytes();
        let (site, rest) = match whole.iter().position(|byte| *byte == b':') {
            Some(colon) if !exists(whole) => (site(&whole[..colon]), &whole[colon + 1..]),
            _ => (None, whole),
        };
        let rest = if site.is_some() { rest } else { whole };
        let (from, named) = match rest.iter().rposition(|byte| *byte == b'=') {
            Some(sign) if !exists(rest) => (&rest[..sign], Some(&rest[sign + 1..])),
            _ => (rest, None),
        };
        let Some(name) = inner(path(named.unwrap_or(from))) else {
            return Err(wrong(match named {
                None => {
                    "name a file below the current directory, without '..', or say what its name is to be in the \
                     job's directory: PATH=NAME"
                }
                Some(_) => "NAME is to be in the job's directory: without '..', and not beginning with '/'",
            }));
        };
        if from.is_empty() || !exists(from) {
            return Err(wrong("there is no such file here"));
        }
        Ok(Sent {
            site,
            path: path(from).to_owned(),
            name,
        })
    }

    /// Refuses a site that is not among the job's, and a name that is sent to a site twice.
    ///
    /// # Errors
    /// The first such site or name.
    pub(super) fn check(all: &[Sent], sites: &[&str]) -> Result<(), RunError> {
        for (number, sent) in all.iter().enumerate() {
            let path = sent.path.display();
            if let Some(site) = sent.site.as_deref().filter(|site| !sites.contains(site)) {
                let sites = sites.join(", ");
                return Err(RunError::Files(format!(
                    "--send {site}:{path}: the job does not run at {site}, but at {sites}"
                )));
            }
            let twin = |other: &&Sent| (&other.site, &other.name) == (&sent.site, &sent.name);
            if let Some(other) = all[..number].iter().find(twin) {
                let (other, name) = (other.path.display(), sent.name.display());
                return Err(RunError::Files(format!(
                    "--send {path}: its name would be {name}, as that of {other}"
                )));
            }
        }
        Ok(())
    }

    /// Whether a site gets this value of `--send`, given all of them.
    pub(super) fn is_for(&self, site: &str, all: &[Sent]) -> bool {
        let is_own = |sent: &Sent| sent.site.as_deref() == Some(site);
        match self.site {
            Some(_) => is_own(self),
            None => !all.iter().any(|other| is_own(other) && other.name == self.name),
        }
    }
}

fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

fn site(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    is_site_name(text).then(|| text.to_owned())
}

/// A path within a directory, without redundant parts.
fn inner(path: &Path) -> Option<PathBuf> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    let is_inner = |part: &Component| matches!(part, Component::Normal(_));
    let is_named = !path.as_os_str().is_empty();
    (is_named && parts.clone().all(|part| is_inner(&part))).then(|| parts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Option<String>, String, String) {
        let sent = Sent::read(Path::new(text)).unwrap();
        let shown = |path: &Path| path.display().to_string();
        (sent.site, shown(&sent.path), shown(&sent.name))
    }

    #[test]
    fn a_file_may_get_another_name_and_be_for_one_site() {
        // Tests run in the directory of their crate.
        let expected = |site: Option<&str>, path: &str, name: &str| {
            (site.map(str::to_owned), path.to_owned(), name.to_owned())
        };
        assert_eq!(read("src"), expected(None, "src", "src"));
        assert_eq!(read("./src/files/"), expected(None, "./src/files/", "src/files"));
        assert_eq!(read("."), expected(None, ".", ""));
        assert_eq!(read("Cargo.toml=a/b"), expected(None, "Cargo.toml", "a/b"));
        assert_eq!(read("nancy:src"), expected(Some("nancy"), "src", "src"));
        assert_eq!(
            read("nancy:../cli/src=app"),
            expected(Some("nancy"), "../cli/src", "app")
        );
        assert_eq!(read("/etc/passwd=p"), expected(None, "/etc/passwd", "p"));
    }

    #[test]
    fn a_file_of_such_a_name_is_meant_where_there_is_one() {
        let here = tempfile::tempdir().unwrap();
        for name in ["x=y", "nancy:x", "x"] {
            std::fs::write(here.path().join(name), name).unwrap();
        }
        let at = |name: &str| here.path().join(name);
        let typed = PathBuf::from(format!("{}=n", at("x=y").display()));
        assert_eq!(Sent::read(&typed).unwrap().path, at("x=y"));
        let typed = PathBuf::from(format!("{}=n", at("nancy:x").display()));
        assert_eq!(Sent::read(&typed).unwrap().path, at("nancy:x"));
    }

    #[test]
    fn nothing_leads_out_of_the_jobs_directory() {
        for (text, why) in [
            ("nowhere", "there is no such file here"),
            ("nancy:nowhere=x", "there is no such file here"),
            ("=x", "there is no such file here"),
            ("/etc/passwd", "PATH=NAME"),
            ("../x", "PATH=NAME"),
            ("a/../../x", "PATH=NAME"),
            ("", "PATH=NAME"),
            ("nancy:", "PATH=NAME"),
            ("src=../x", "NAME is to be in"),
            ("src=/x", "NAME is to be in"),
            ("src=", "NAME is to be in"),
        ] {
            let said = Sent::read(Path::new(text)).unwrap_err().to_string();
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    #[test]
    fn a_sites_own_file_takes_the_place_of_the_one_for_all() {
        let all =
            ["src=app", "nancy:Cargo.toml=app", "src/queue"].map(|text| Sent::read(Path::new(text)).unwrap());
        let gets = |site: &str| all.each_ref().map(|sent| sent.is_for(site, &all));
        assert_eq!(gets("nancy"), [false, true, true]);
        assert_eq!(gets("rennes"), [true, false, true]);
        assert!(Sent::check(&all, &["rennes", "nancy"]).is_ok());
        let said = Sent::check(&all, &["rennes", "lyon"]).unwrap_err().to_string();
        assert!(
            said.contains("does not run at nancy, but at rennes, lyon"),
            "{said}"
        );
        let twice = [all[0].clone(), all[2].clone(), all[0].clone()];
        let said = Sent::check(&twice, &["rennes"]).unwrap_err().to_string();
        assert!(said.contains("its name would be app, as that of src"), "{said}");
    }
}
