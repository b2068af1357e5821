//! What decides whether a test with a lab runs at all. It asks the kernel and nothing of ours: a lab that
//! fails where the probe succeeds is a failure.

use std::process::Command;

/// Whether this machine lets us make namespaces; the kernel's reason if not.
pub fn probe() -> Result<(), String> {
    let mut arguments = vec!["--net", "--pid", "--fork", "--mount"];
    if !nix::unistd::Uid::effective().is_root() {
        arguments.extend(["--user", "--map-root-user"]);
    }
    let tried = Command::new("unshare").args(arguments).arg("true").output();
    match tried {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "no namespaces: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => Err(format!("no namespaces: unshare: {error}")),
    }
}
