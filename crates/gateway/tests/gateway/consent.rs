//! What a site lets other sites do: nothing, unless its configuration says so.

use crate::common::{Grid, cross, send_preface, wait_for};
use causeway_control as control;
use causeway_wire::{Reason, Verdict};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};

/// A connection of a process of site one under this job.
fn connect(grid: &Grid, token: &str, destination: SocketAddr) -> Result<(), Reason> {
    let stream = grid.dial();
    let mut preface = grid.preface(&stream, destination, true);
    preface.token = token.parse().unwrap();
    match send_preface(stream, &preface) {
        Ok(_) => Ok(()),
        Err(Verdict::Failed(reason)) => Err(reason),
        Err(Verdict::Connected) => panic!("connected"),
    }
}

#[test]
fn a_site_that_says_nothing_takes_part_in_no_job_of_others_and_their_user_is_told_which_key_would() {
    let grid = Grid::with_far_accept("");
    let (job, _held) = grid.job("test");
    let why = job.left_out["site2"].as_str();
    assert!(
        why.contains("accepts no jobs of site1: whoever runs site2") && why.contains("jobs in [accept]"),
        "{why}"
    );
    let listener = grid.listen();
    let refused = connect(&grid, &job.token, listener.local_addr().unwrap());
    assert_eq!(refused, Err(Reason::Denied));
    // Nothing is started there, either: the gateway here says so at once, and the other one hears nothing of
    // it.
    let said = grid.spawn_fails(&job.token, "node2");
    assert!(
        said.contains("site2 takes no part in this job: it accepts no jobs of site1"),
        "{said}"
    );
    assert!(grid.status(2).jobs.is_empty() && grid.status(2).refused.is_empty());
    // In the other direction, nothing was forbidden.
    let (job, _held) = grid.job_at(2, "test");
    assert_eq!(job.left_out.get("site2"), None);
}

#[test]
fn jobs_of_a_site_that_is_named_run_and_reach_listed_nodes_alone() {
    let grid = Grid::with_far_accept("jobs = [\"site1\"]");
    let (job, _held) = grid.job("test");
    assert_eq!(job.left_out.get("site2"), None);
    let to = |host, port| connect(&grid, &job.token, grid.address(2, host, port));
    let listener = grid.listen();
    connect(&grid, &job.token, listener.local_addr().unwrap()).unwrap();
    assert_eq!(to(7, 5000), Err(Reason::Denied));
    // The head node, and every port at which the gateway listens.
    assert_eq!(to(253, 5000), Err(Reason::Denied));
    assert_eq!(grid.status(2).refused["unlisted-destination"], 2);
    for port in [7000, 9464] {
        assert_eq!(to(253, port), Err(Reason::Denied));
    }
    assert_eq!(grid.status(2).refused["own-listener"], 2);
}

#[test]
fn addresses_that_a_site_names_are_reached_beside_its_nodes() {
    let grid = Grid::with_far_accept_of_addresses(7);
    let (job, _held) = grid.job("test");
    // Nothing listens: the host refuses, not the gateway.
    assert_eq!(
        connect(&grid, &job.token, grid.address(2, 7, 5000)),
        Err(Reason::Refused)
    );
    assert_eq!(
        connect(&grid, &job.token, grid.address(2, 8, 5000)),
        Err(Reason::Denied)
    );
}

#[test]
fn the_host_of_the_launcher_is_reached_at_the_site_where_the_job_began_and_nowhere_else() {
    let grid = Grid::start();
    // Site one began the job: its head node has the launcher.
    let stream = grid.dial_at(2);
    let preface = grid.preface(&stream, grid.address(1, 253, 5000), true);
    assert_eq!(
        send_preface(stream, &preface).unwrap_err(),
        Verdict::Failed(Reason::Refused)
    );
    let token = grid.token.to_hex();
    assert_eq!(
        connect(&grid, &token, grid.address(2, 253, 5000)),
        Err(Reason::Denied)
    );
}

#[test]
fn of_what_listens_on_the_launchers_host_only_the_launchers_own_is_reached() {
    let grid = Grid::start();
    let verdict = |to: SocketAddr| {
        let stream = grid.dial_at(2);
        let preface = grid.preface(&stream, to, true);
        send_preface(stream, &preface).err()
    };
    let launchers = TcpListener::bind(grid.address(1, 253, 0)).unwrap();
    assert_eq!(verdict(launchers.local_addr().unwrap()), None);
    // Another program of the same user, which does not descend from the command that holds the job.
    let program = format!(
        "import socket, time; s = socket.socket(); s.bind((\"{}\", 0)); s.listen(); \
         print(s.getsockname()[1], flush=True); time.sleep(60)",
        grid.address(1, 253, 0).ip()
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", "python3 -c \"$1\" & echo $!", "sh", &program]);
    let mut shell = shell.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(shell.stdout.take().unwrap()).lines();
    let mut number = || lines.next().unwrap().unwrap().parse::<i32>().unwrap();
    let (pid, port) = (number(), number());
    shell.wait().unwrap();
    let port = u16::try_from(port).unwrap();
    let refused = Some(Verdict::Failed(Reason::Refused));
    assert_eq!(verdict(grid.address(1, 253, port)), refused);
    assert_eq!(grid.status(1).refused["not-the-launchers"], 1);
    wait_for("its line", || {
        grid.audit(1)
            .last()
            .is_some_and(|entry| entry.kind == "not-the-launchers")
    });
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}

#[test]
fn nothing_of_another_sites_runs_that_cannot_be_written_down() {
    let grid = Grid::with_far_accept("jobs = [\"site1\"]");
    let (job, _held) = grid.job("test");
    // A directory in place of the file stands for a full disk.
    grid.spoil_audit(2);
    let said = grid.spawned(&job.token, "node2");
    assert!(said.contains("its host's limits"), "{said}");
    assert_eq!(grid.status(2).refused["audit"], 1);
}

#[test]
fn a_disk_that_stands_still_keeps_what_others_start_from_running_and_nothing_else() {
    let grid = Grid::start();
    grid.hang_audit(2);
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    // A refusal should be written down, and cannot be.
    assert_eq!(
        connect(&grid, &grid.token.to_hex(), grid.address(2, 7, 5000)),
        Err(Reason::Denied)
    );
    cross(&near, &far, b"goes on");
    assert_eq!(grid.status(2).refused["unlisted-destination"], 1);
    // The first start waits until it is too late; the next ones are refused at once.
    for _ in 0..2 {
        let said = grid.spawned(&grid.token.to_hex(), "node2");
        assert!(said.contains("its host's limits"), "{said}");
    }
    assert!(grid.status(2).refused["audit"] >= 2);
    // This site's own users may start anything.
    let (own, _held) = grid.job_at(2, "own");
    let said = grid.spawned_at(2, &own.token, "node2");
    assert!(!said.contains("limits"), "{said}");
    cross(&far, &near, b"goes on");
    grid.pair(&listener);
}

#[test]
fn under_a_job_of_causeway_connect_nothing_is_started() {
    let grid = Grid::start();
    let request = control::Request::Connect {
        name: "connect".into(),
        site: "site2".into(),
        lingers: false,
    };
    let (reply, _held) = control::ask(&grid.control(1), &request).unwrap();
    let control::Reply::Job(job) = reply else {
        panic!("{reply:?}")
    };
    let said = grid.spawned(&job.token, "node2");
    assert!(said.contains("the gateway of its site refused"), "{said}");
    wait_for("its line", || {
        grid.audit(2)
            .last()
            .is_some_and(|entry| entry.kind == "not-accepted")
    });
}

#[test]
fn nothing_is_started_for_another_site_over_a_tunnel_in_clear_text_unless_that_is_accepted_too() {
    let grid = Grid::in_clear_with_far_accept("jobs = [\"site1\"]\nconnect_from = [\"site1:1024-65535\"]");
    let request = control::Request::Connect {
        name: "connect".into(),
        site: "site2".into(),
        lingers: false,
    };
    let (reply, _held) = control::ask(&grid.control(1), &request).unwrap();
    let control::Reply::Job(connection) = reply else {
        panic!("{reply:?}")
    };
    let why = &connection.left_out["site2"];
    assert!(why.contains("over_clear_text = true in [accept]"), "{why}");
    assert!(grid.status(1).clear_text && grid.status(2).clear_text);
    let (job, _held) = grid.job("test");
    let why = job.left_out["site2"].as_str();
    assert!(why.contains("over_clear_text = true in [accept]"), "{why}");
    grid.spawn_fails(&job.token, "node2");
    let grid = Grid::in_clear_with_far_accept("jobs = [\"site1\"]\nover_clear_text = true");
    let (job, _held) = grid.job("test");
    assert_eq!(job.left_out.get("site2"), None);
    // By default, nothing crosses in clear text.
    let grid = Grid::start();
    assert!(!grid.status(1).clear_text);
    assert_eq!(grid.status(1).tunnels[0].lanes[0].carrier, "TLS 1.3");
}
