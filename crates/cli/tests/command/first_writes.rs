//! What a command writes first is complete or absent, however much space the disk has left, and is where its
//! user looks for it. The disk is a tmpfs in a mount namespace of the test's own.

use std::process::Command;

/// Runs lines of sh on a disk of 4 MB, in its directory. `$causeway` is the command, and `leave N` fills the
/// disk except for N pages of 4 kB.
fn on_a_small_disk(lines: &str) {
    let dir = tempfile::tempdir().unwrap();
    let script = format!(
        "set -eu; causeway=$0
         mount -t tmpfs -o size=4m,mode=700 none \"$1\" && cd \"$1\"
         leave() {{ dd if=/dev/zero of=filler bs=4k 2>/dev/null || true; truncate -s -$(($1 * 4096)) filler; }}
         wrong() {{ echo \"with $free pages free: $1\"; exit 1; }}
         {lines}"
    );
    let mut shell = Command::new("unshare");
    shell.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    let ended = shell
        .args([env!("CARGO_BIN_EXE_causeway").as_ref(), dir.path()])
        .output()
        .unwrap();
    let said = [ended.stdout, ended.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(ended.status.success(), "{said:#?}");
}

#[test]
fn a_grid_that_a_full_disk_refused_leaves_nothing_and_is_made_once_there_is_room() {
    on_a_small_disk(
        "create() { said=$($causeway grid create g5k --broker localhost:7443 --dir grid 2>&1); }
         refused=0; made=0
         for free in 0 1 2 3 4 5 6 7 8; do
             leave $free
             if create; then made=1; else
                 refused=$((refused + 1))
                 [ -z \"$(find grid -type f)\" ] || wrong \"left $(find grid -type f)\"
                 rm filler
                 create || wrong \"not made with room again: $said\"
             fi
             rm -rf grid filler
         done
         [ $refused -ge 3 ] && [ $made = 1 ] || wrong \"$refused refusals\"",
    );
}

#[test]
fn a_store_that_a_full_disk_refused_is_made_once_there_is_room() {
    on_a_small_disk(
        "token() { said=$($causeway grid token --site rennes --dir grid 2>&1); }
         $causeway grid create g5k --broker localhost:7443 --dir grid >/dev/null
         refused=0; made=0
         for free in 0 1 2 4 8 16 32 64 128 256 500; do
             leave $free
             if token; then made=1; else
                 refused=$((refused + 1))
                 rm filler
                 token || wrong \"not made with room again: $said\"
             fi
             rm -f grid/store.redb filler
         done
         [ $refused -ge 3 ] && [ $made = 1 ] || wrong \"$refused refusals\"",
    );
}

#[test]
fn without_home_files_are_looked_for_in_the_home_that_the_system_knows() {
    let dir = tempfile::tempdir().unwrap();
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap();
    let home = user.unwrap().dir;
    for (words, place) in [
        (["broker"].as_slice(), ".local/share/causeway/grid/broker.toml"),
        (["gateway"].as_slice(), ".config/causeway/gateway.toml"),
        (["audit"].as_slice(), ".config/causeway/gateway.toml"),
        (
            ["grid", "list"].as_slice(),
            ".local/share/causeway/grid/broker.toml",
        ),
    ] {
        // A relative path would be another one in each directory in which the command runs.
        let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
        command
            .args(words)
            .current_dir(&dir)
            .env_clear()
            .env("XDG_RUNTIME_DIR", dir.path());
        command.env("XDG_DATA_HOME", "data").env("XDG_CONFIG_HOME", "");
        let said = command.output().unwrap().stderr;
        let said = String::from_utf8_lossy(&said);
        let place = home.join(place);
        assert!(
            place.exists() || said.contains(&place.display().to_string()),
            "{words:?} did not look at {}: {said}",
            place.display()
        );
    }
}
