//! The program that keeps a job's directory on a node: lines of sh, because a node of another site may have
//! nothing else of ours.

/// What makes, keeps and removes the directory NAME on a node. It says whether it has made it, or found it.
/// Behind that it says how many bytes the site lets others send, if it says so. Its input ends with the job.
/// Signals end it only while it waits for that: what removes ignores them, too. It marks the directory every
/// hour, and removes those that have had no mark for a week: their nodes lost their power.
pub(super) const KEEPER: &str = r#"d="$HOME/.cache/causeway/files/NAME"; l=/tmp/NAME; p=${d%/*}; umask 077
trap '' HUP INT PIPE TERM; mkdir -p "$p"
find "$p" -maxdepth 1 -name '*.alive' -mtime +6 | while read -r a; do rm -rf "${a%.alive}" "$a"; done
find -L /tmp -maxdepth 1 -type l -name 'causeway-files-*' -mtime +6 -exec rm -f {} + 2>/dev/null
touch "$d.alive"; if mkdir "$d" 2>/dev/null; then o=made; else o=found; fi
[ -d "$d" ] || { echo "mkdir $d failed" >&2; exit 1; }
if [ -e "$l" ] || ln -s "$d" "$l"; then
s=0; echo "$o ${CAUSEWAY_ACCEPT_FILES-}"; trap : HUP INT TERM
while timeout --foreground 3600 cat >/dev/null; [ $? = 124 ]; do
[ $o = found ] || touch "$d.alive"; done; trap '' HUP INT TERM
else s=1; fi
[ $o = found ] || rm -rf "$d" "$d.alive"
rm -f "$l"; exit $s"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::first_line::first_line;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    /// A keeper at a home, in which NAME's link is; and what it says.
    fn keeper(home: &Path, path: &str) -> (Child, String) {
        let line = KEEPER.replace("/tmp", &home.display().to_string());
        let mut keeper = Command::new("sh");
        keeper.args(["-c", &line]).env("HOME", home).env("PATH", path);
        keeper.env("CAUSEWAY_ACCEPT_FILES", "1000");
        let mut keeper = { keeper.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() }.unwrap();
        let said = first_line(keeper.stdout.take()).recv().unwrap();
        (keeper, said.trim().to_owned())
    }

    #[test]
    fn a_directory_without_a_mark_for_a_week_goes_with_its_link() {
        let home = tempfile::tempdir().unwrap();
        let files = home.path().join(".cache/causeway/files");
        let week = Duration::from_secs(7 * 86_400 + 60);
        for (name, age) in [("causeway-files-0", week), ("causeway-files-1", Duration::ZERO)] {
            std::fs::create_dir_all(files.join(name).join("deep")).unwrap();
            let mark = std::fs::File::create(files.join(format!("{name}.alive"))).unwrap();
            mark.set_modified(std::time::SystemTime::now() - age).unwrap();
            let link = home.path().join(name);
            std::os::unix::fs::symlink(files.join(name), &link).unwrap();
            let since = format!("{} seconds ago", age.as_secs());
            let touched = Command::new("touch")
                .args(["-h", "-d", &since])
                .arg(&link)
                .status();
            assert!(touched.unwrap().success());
        }
        for _ in 0..2 {
            let (mut keeper, said) = keeper(home.path(), "/usr/bin:/bin");
            assert_eq!(said, "made 1000");
            drop(keeper.stdin.take());
            assert!(keeper.wait().unwrap().success());
        }
        let left = |place: &Path| {
            let names = std::fs::read_dir(place).unwrap();
            let names = names.map(|name| name.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
            names.sort();
            names
        };
        assert_eq!(left(&files), ["causeway-files-1", "causeway-files-1.alive"]);
        assert_eq!(left(home.path()), ["causeway-files-1"]);
    }

    #[test]
    fn the_directory_goes_though_all_that_removes_it_is_told_to_end_meanwhile() {
        let home = tempfile::tempdir().unwrap();
        let programs = home.path().join("bin");
        std::fs::create_dir(&programs).unwrap();
        let rm =
            "#!/bin/sh\nkill -HUP $PPID $$; kill -INT $PPID $$; kill -TERM $PPID $$\nexec /bin/rm \"$@\"\n";
        std::fs::write(programs.join("rm"), rm).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(programs.join("rm"), executable).unwrap();
        let link = home.path().join("NAME");
        let path = format!("{}:/usr/bin:/bin", programs.display());
        let (mut keeper, said) = keeper(home.path(), &path);
        let directory = home.path().join(".cache/causeway/files/NAME");
        assert_eq!(
            (&said[..], link.canonicalize().unwrap()),
            ("made 1000", directory.clone())
        );
        std::fs::write(directory.join("file"), "bytes").unwrap();
        drop(keeper.stdin.take());
        assert!(keeper.wait().unwrap().success());
        assert!(!directory.exists() && link.symlink_metadata().is_err());
    }
}
