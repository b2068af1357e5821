//! A gateway's configuration. The key beside it is there, so that the rest is read; no other file is.
#![no_main]

use causeway_gateway::Config;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::LazyLock;

static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let dir = std::env::temp_dir().join("causeway-fuzz");
    std::fs::create_dir_all(&dir).expect("make a directory for the key");
    let key = dir.join("grid.key");
    std::fs::write(&key, "0123456789abcdef\n").expect("write the key");
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).expect("close the key");
    dir.join("gateway.toml")
});

libfuzzer_sys::fuzz_target!(|text: &str| {
    // A key elsewhere could be a pipe or a device, which reads for ever; to name one is the user's own doing.
    let mut keys = text.lines().filter(|line| line.contains("key_file"));
    if keys.any(|line| line.contains(['/', '\\'])) {
        return;
    }
    match Config::parse(text, &FILE) {
        Ok(config) => {
            // A member of a grid has certificates instead.
            assert!(config.key.len() >= 16 || config.membership.is_some());
            assert!(config.lanes.is_none_or(|lanes| lanes >= 1));
        }
        Err(mistakes) => assert!(!mistakes.to_string().is_empty()),
    }
});
