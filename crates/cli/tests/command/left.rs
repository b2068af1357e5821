//! What a killed test program leaves behind: nothing that other programs would come across.

use crate::sites::{Grid, wait_for};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

/// Names, in the program that is killed, the file to which it writes the number of its network.
const KILLED: &str = "CAUSEWAY_TEST_IS_KILLED";

#[test]
fn a_killed_program_of_tests_leaves_no_gateway() {
    if let Some(file) = std::env::var_os(KILLED) {
        let grid = Grid::start();
        let part = std::path::Path::new(&file).with_extension("part");
        std::fs::write(&part, grid.net.to_string()).unwrap();
        std::fs::rename(part, file).unwrap();
        loop {
            std::thread::park();
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("net");
    let mut killed = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "left::a_killed_program_of_tests_leaves_no_gateway"])
        .env(KILLED, &file)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("its gateways", || file.exists());
    let net: u8 = std::fs::read_to_string(&file).unwrap().parse().unwrap();
    killed.kill().unwrap();
    killed.wait().unwrap();
    for site in [1, 2] {
        let gateway = SocketAddr::from(([127, net, 0, site], 7001));
        wait_for("the end of its gateways", || TcpStream::connect(gateway).is_err());
    }
}
