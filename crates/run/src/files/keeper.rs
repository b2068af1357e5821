//! The program that keeps a job's directory on a node. It consists of lines of sh, because a node of another
//! site may have no other program of ours.

/// A script that makes the directory NAME on a node, keeps it and removes it; BEGIN is [`MAKE`] or
/// [`TAKE_UP`]. It prints whether it keeps the directory itself, or another keeper does, and how many bytes
/// the site lets others send, if there is a limit. Its input ends when the job ends; if the last word there
/// is [`KEEP`], the directory stays for a day. Signals only end the wait for that; the removal ignores them.
/// The script marks its directory every hour, and removes those that have had no mark for a week, because
/// their nodes have lost power. A process that still writes into a directory when it must be removed, such as
/// the tar of an interrupted `--send`, has some seconds to end; if the removal fails, the directory keeps its
/// mark. A directory of an earlier job that cannot be removed does not delay later jobs.
///
/// Others can write into /tmp. A directory of that name there must belong to this user, and must not be a
/// link: then nobody else can replace it, or what is in it.
pub(super) const KEEPER: &str = r#"d="$HOME/.cache/causeway/files/NAME"; l=/tmp/NAME; p=${d%/*}; umask 077
u=$(id -u); trap '' HUP INT PIPE TERM; mkdir -p "$p"
r() { n=$2; until chmod -R u+rwx "$1"; rm -rf "$1"; [ ! -e "$1" ]; do
n=$((n-1)); [ $n -gt 0 ] || return; sleep 1; done 2>/dev/null; rm -f "$1.alive" "$1.kept"; }
find "$p" -maxdepth 1 '(' -name '*.alive' -mtime +6 -o -name '*.kept' -mtime +0 ')' |
while read -r a; do r "${a%.*}" 1; done
find /tmp -maxdepth 1 -type d -user "$u" -name 'causeway-files-*' -mtime +6 2>/dev/null |
while read -r a; do [ -e "$a/job" ] || { rm -f "$a/job"; rmdir "$a"; }; done
o=found; BEGIN
[ -d "$d" ] || { echo "there is no directory $d" >&2; exit 1; }
mkdir -m 700 "$l" 2>/dev/null; w=; s=1
if [ "$(find "$l" -prune -type d -user "$u" 2>/dev/null)" ]; then
ln -sn "$d" "$l/job" 2>/dev/null; [ "$(readlink "$l/job")" != "$d" ] || s=0
else echo "$l is there, and not this user's" >&2; fi
if [ $s = 0 ]; then
echo "$o ${CAUSEWAY_ACCEPT_FILES-}"; trap : HUP INT TERM
while w=$w$(timeout --foreground 3600 cat); [ $? = 124 ]; do
[ $o = found ] || touch "$d.alive"; done; trap '' HUP INT TERM
fi
case $o$w in found*) ;; *keep) mv "$d.alive" "$d.kept";; *) r "$d" 20
[ ! -e "$d" ] || echo "$d could not be removed" >&2;; esac
[ ! "$(find "$l" -prune -type d -user "$u" 2>/dev/null)" ] || { rm -f "$l/job"; rmdir "$l"; } 2>/dev/null
exit $s"#;

/// The beginnings of a keeper: it makes the directory, or takes over one that a job has left.
pub(super) const MAKE: &str = r#"touch "$d.alive"; if mkdir "$d"; then o=made; fi 2>/dev/null"#;
pub(super) const TAKE_UP: &str =
    r#"if mv "$d.kept" "$d.alive" 2>/dev/null; then touch "$d.alive"; o=made; fi"#;

/// The words that make a keeper leave the directory, or remove it after all.
pub(super) const KEEP: &[u8] = b"keep\n";
pub(super) const REMOVE: &[u8] = b"remove\n";

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_host::first_line::first_line;
    use std::io::Write;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    /// Starts a keeper with this home, in which NAME's link is made, too; returns it and what it prints.
    fn keeper(home: &Path, path: &str) -> (Child, String) {
        let line = KEEPER.replace("BEGIN", MAKE);
        let line = line.replace("/tmp", &home.display().to_string());
        let mut keeper = Command::new("sh");
        keeper.args(["-c", &line]).env("HOME", home).env("PATH", path);
        keeper.env("CAUSEWAY_ACCEPT_FILES", "1000");
        let mut keeper = { keeper.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() }.unwrap();
        let said = first_line(keeper.stdout.take()).recv().unwrap_or_default();
        (keeper, said.trim().to_owned())
    }

    fn end(mut keeper: Child, words: &[&[u8]]) -> bool {
        let mut to = keeper.stdin.take().unwrap();
        words.iter().for_each(|word| to.write_all(word).unwrap());
        drop(to);
        keeper.wait().unwrap().success()
    }

    fn left(place: &Path) -> Vec<String> {
        let names = std::fs::read_dir(place).unwrap();
        let names = names.map(|name| name.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }

    /// Makes a file look as if it was last changed this long ago.
    fn age(path: &Path, age: Duration) {
        let since = format!("{} seconds ago", age.as_secs());
        let touched = Command::new("touch").args(["-d", &since]).arg(path).status();
        assert!(touched.unwrap().success());
    }

    #[test]
    fn a_directory_without_a_mark_for_a_week_goes_with_its_link_and_one_that_was_kept_after_a_day() {
        let home = tempfile::tempdir().unwrap();
        let files = home.path().join(".cache/causeway/files");
        let (day, week) = (Duration::from_secs(86_460), Duration::from_secs(7 * 86_400 + 60));
        let all = [
            ("causeway-files-0", "alive", week),
            ("causeway-files-1", "alive", day),
            ("causeway-files-2", "kept", day),
            ("causeway-files-3", "kept", Duration::ZERO),
        ];
        for (name, mark, since) in all {
            std::fs::create_dir_all(files.join(name).join("deep")).unwrap();
            // Package stores have such directories.
            let closed = std::os::unix::fs::PermissionsExt::from_mode(0o555);
            std::fs::set_permissions(files.join(name).join("deep"), closed).unwrap();
            std::fs::write(files.join(format!("{name}.{mark}")), "").unwrap();
            age(&files.join(format!("{name}.{mark}")), since);
            let place = home.path().join(name);
            std::fs::create_dir(&place).unwrap();
            std::os::unix::fs::symlink(files.join(name), place.join("job")).unwrap();
            age(&place, week);
        }
        for _ in 0..2 {
            let (keeper, said) = keeper(home.path(), "/usr/bin:/bin");
            assert_eq!(said, "made 1000");
            assert!(end(keeper, &[]));
        }
        let stays = [
            "causeway-files-1",
            "causeway-files-1.alive",
            "causeway-files-3",
            "causeway-files-3.kept",
        ];
        assert_eq!(left(&files), stays);
        assert_eq!(left(home.path()), ["causeway-files-1", "causeway-files-3"]);
    }

    /// Writes a program of this name into the first directory of a keeper's PATH.
    fn program(directory: &Path, name: &str, text: &str) {
        std::fs::create_dir_all(directory).unwrap();
        std::fs::write(directory.join(name), format!("#!/bin/sh\n{text}")).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(directory.join(name), executable).unwrap();
    }

    #[test]
    fn a_directory_goes_though_something_still_writes_into_it() {
        let home = tempfile::tempdir().unwrap();
        let (files, marks) = (
            home.path().join(".cache/causeway/files"),
            tempfile::tempdir().unwrap(),
        );
        // The writer ends when the keeper waits before its second try, and that wait ends when the writer has
        // ended: so the speed of neither matters.
        let programs = marks.path().join("bin");
        let marks = marks.path().display();
        let waits = format!(": >{marks}/tried\nuntil [ -e {marks}/ended ]; do :; done\n");
        program(&programs, "sleep", &waits);
        let (keeper, said) = keeper(home.path(), &format!("{}:/usr/bin:/bin", programs.display()));
        assert_eq!(said, "made 1000");
        let writes = format!(
            "trap ': >{marks}/ended' EXIT; i=0; until [ -e {marks}/tried ]; do
            i=$((i+1)); mkdir -p in/$i && : >in/$i/file; done 2>/dev/null"
        );
        let mut writer = Command::new("sh");
        writer.args(["-c", &writes]).current_dir(files.join("NAME"));
        let mut writer = writer.spawn().unwrap();
        while !files.join("NAME/in/20").exists() {
            std::thread::yield_now();
        }
        assert!(end(keeper, &[]));
        writer.kill().unwrap();
        writer.wait().unwrap();
        assert!(left(&files).is_empty() && left(home.path()).is_empty());
    }

    #[test]
    fn a_directory_that_cannot_be_removed_keeps_its_mark_and_delays_no_later_job() {
        let home = tempfile::tempdir().unwrap();
        let files = home.path().join(".cache/causeway/files");
        let old = files.join("causeway-files-0");
        std::fs::create_dir_all(&old).unwrap();
        std::fs::write(files.join("causeway-files-0.kept"), "").unwrap();
        age(
            &files.join("causeway-files-0.kept"),
            Duration::from_secs(2 * 86_400),
        );
        let programs = home.path().join("bin");
        program(&programs, "rm", "exit 1\n");
        let slept = format!("echo >>{}\n", home.path().join("slept").display());
        program(&programs, "sleep", &slept);
        let (keeper, said) = keeper(home.path(), &format!("{}:/usr/bin:/bin", programs.display()));
        assert_eq!(said, "made 1000");
        assert!(!home.path().join("slept").exists());
        assert!(end(keeper, &[]));
        let stays = ["NAME", "NAME.alive", "causeway-files-0", "causeway-files-0.kept"];
        assert_eq!(left(&files), stays);
        let slept = std::fs::read_to_string(home.path().join("slept")).unwrap();
        assert_eq!(slept.lines().count(), 19);
    }

    #[test]
    fn a_keepers_last_word_says_whether_the_directory_stays() {
        let home = tempfile::tempdir().unwrap();
        let files = home.path().join(".cache/causeway/files");
        for (words, stays) in [
            (&[KEEP, REMOVE][..], &[][..]),
            (&[REMOVE, KEEP], &["NAME", "NAME.kept"]),
        ] {
            let (keeper, said) = keeper(home.path(), "/usr/bin:/bin");
            assert_eq!(said, "made 1000");
            assert!(end(keeper, words));
            assert_eq!(left(&files), stays);
            assert!(left(home.path()).is_empty());
        }
    }

    #[test]
    fn nothing_that_others_have_put_in_the_directorys_place_is_used_or_removed() {
        use std::os::unix::fs::{chown, symlink};
        let home = tempfile::tempdir().unwrap();
        let place = home.path().join("NAME");
        let own = home.path().join("own");
        std::fs::create_dir(&own).unwrap();
        let mut puts: Vec<fn(&Path, &Path)> = vec![
            |place, own| symlink(own, place).unwrap(),
            |place, _| std::fs::write(place, "").unwrap(),
            // A directory of this user, but not of this job.
            |place, own| {
                std::fs::create_dir(place).unwrap();
                symlink(own, place.join("job")).unwrap();
            },
        ];
        if nix::unistd::geteuid().is_root() {
            puts.push(|place, _| {
                std::fs::create_dir(place).unwrap();
                chown(place, Some(65534), Some(65534)).unwrap();
            });
        }
        for put in puts {
            put(&place, &own);
            let (keeper, said) = keeper(home.path(), "/usr/bin:/bin");
            assert_eq!(said, "");
            assert!(!end(keeper, &[]));
            assert!(left(&own).is_empty());
            assert!(left(&home.path().join(".cache/causeway/files")).is_empty());
            let _ = std::fs::remove_file(&place).or_else(|_| std::fs::remove_dir_all(&place));
        }
        let (keeper, said) = keeper(home.path(), "/usr/bin:/bin");
        assert_eq!(said, "made 1000");
        assert!(end(keeper, &[]));
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
        let link = home.path().join("NAME/job");
        let path = format!("{}:/usr/bin:/bin", programs.display());
        let (keeper, said) = keeper(home.path(), &path);
        let directory = home.path().join(".cache/causeway/files/NAME");
        assert_eq!(
            (&said[..], link.canonicalize().unwrap()),
            ("made 1000", directory.clone())
        );
        std::fs::write(directory.join("file"), "bytes").unwrap();
        assert!(end(keeper, &[]));
        assert!(!directory.exists() && link.symlink_metadata().is_err());
    }
}
