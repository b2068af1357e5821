//! A gateway whose worker is killed: its keeper makes another one.

use crate::sites::{DEADLINE, Grid, Ways, accept, connect_from, end_of, verdict, wait_for};
use causeway_control::{self as control, Reply, Request, Status};
use causeway_wire::Verdict;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

fn pid(number: u32) -> Pid {
    Pid::from_raw(number.cast_signed())
}

/// Ends a site's worker by a signal; what the next one says of itself.
fn end_worker(grid: &Grid, site: u8, signal: Signal) -> Status {
    let before = grid.status(site);
    assert_ne!(before.worker, before.pid);
    kill(pid(before.worker), signal).unwrap();
    let mut after = None;
    wait_for("the next worker", || {
        after = grid.try_status(site).filter(|now| now.worker != before.worker);
        after.is_some()
    });
    let after = after.unwrap();
    assert_eq!(after.pid, before.pid, "supervisors see the same process");
    assert_eq!(after.worker_ends, before.worker_ends + 1);
    after
}

fn how(status: &Status) -> &str {
    &status.last_worker_end.as_ref().unwrap().how
}

#[test]
fn a_killed_worker_is_followed_by_one_that_serves_and_what_crossed_it_ends() {
    let grid = Grid::start();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    let files = (grid.open_files(1), grid.open_files(2));
    for signal in [Signal::SIGKILL, Signal::SIGABRT] {
        let status = end_worker(&grid, 1, signal);
        assert_eq!(
            how(&status),
            format!("was killed by signal {} ({signal})", signal as i32)
        );
    }
    // The kernel says to both ends how their stream ended.
    let _ = (end_of(&near), end_of(&far));
    grid.wait_for_tunnel();
    let (token, job) = grid.new_job("the next");
    let (mut stream, preface) = grid.dial_under(token, listener.local_addr().unwrap());
    stream.write_all(&preface).unwrap();
    let far = accept(&listener, &token);
    assert_eq!(verdict(&stream), Verdict::Connected);
    drop((stream, far, job));
    // Both sites have what they had, but for a stream and its job's command.
    wait_for("the end of the stream", || {
        grid.status(1).streams == 0 && grid.status(2).streams == 0
    });
    assert!(grid.open_files(1) <= files.0 && grid.open_files(2) <= files.1);
}

#[test]
fn nobody_is_refused_while_one_worker_after_the_other_is_killed() {
    let grid = &Grid::start();
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let from = SocketAddr::from(([127, grid.net, 1, 1], 0));
        let lan = SocketAddr::from(([127, grid.net, 1, 253], 7000));
        let connecting = scope.spawn(move || {
            let mut connections = 0;
            while !stop.load(Ordering::Relaxed) {
                drop(connect_from(from, lan));
                drop(UnixStream::connect(grid.control(1)).unwrap());
                connections += 1;
            }
            connections
        });
        let answers = (0..5).map(|_| {
            let began = Instant::now();
            end_worker(grid, 1, Signal::SIGKILL);
            began.elapsed()
        });
        let answers: Vec<_> = answers.collect();
        stop.store(true, Ordering::Relaxed);
        let connections = connecting.join().unwrap();
        println!("{connections} connections; answers after {answers:?}");
    });
}

#[test]
fn a_worker_that_is_told_to_stop_ends_the_gateway_in_order() {
    let mut grid = Grid::start();
    let status = grid.status(1);
    kill(pid(status.worker), Signal::SIGTERM).unwrap();
    let ended = grid.gateways.get_mut(&1).unwrap().wait().unwrap();
    assert!(ended.success(), "{ended:?}");
    assert!(!grid.control(1).exists());
}

#[test]
fn a_stopped_worker_goes_on_as_if_nothing_had_been() {
    let grid = Grid::start();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    let worker = pid(grid.status(1).worker);
    kill(worker, Signal::SIGSTOP).unwrap();
    let state = || std::fs::read_to_string(format!("/proc/{worker}/stat")).unwrap();
    wait_for("the stop", || state().contains(") T "));
    kill(worker, Signal::SIGCONT).unwrap();
    crate::sites::cross(&near, &far);
    assert_eq!(grid.status(1).worker_ends, 0);
}

#[test]
fn the_worker_ends_with_its_keeper_and_the_next_gateway_starts_at_once() {
    let mut grid = Grid::start();
    let worker = grid.status(1).worker;
    grid.gateways.get_mut(&1).unwrap().kill().unwrap();
    grid.gateways.get_mut(&1).unwrap().wait().unwrap();
    let mut next = std::process::Command::new(env!("CARGO_BIN_EXE_causeway"));
    next.args(["gateway", "--config"]).arg(grid.file(1));
    grid.gateways.insert(1, next.spawn().unwrap());
    grid.wait_for_tunnel();
    // Nobody collects it where the first process does not collect orphans.
    let stat = std::fs::read_to_string(format!("/proc/{worker}/stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
}

#[test]
fn a_gateway_is_handed_over_after_its_worker_was_killed_and_killed_after_that() {
    let grid = Grid::start();
    end_worker(&grid, 1, Signal::SIGKILL);
    grid.wait_for_tunnel();
    grid.drain(1);
    assert_eq!(grid.status(1).worker_ends, 1, "the next program goes on counting");
    grid.wait_for_tunnel();
    let files = grid.open_files(1);
    end_worker(&grid, 1, Signal::SIGKILL);
    grid.wait_for_tunnel();
    wait_for("what it had open", || grid.open_files(1) <= files);
    grid.drain(1);
    let status = grid.status(1);
    assert_eq!((status.handed_over, status.worker_ends), (1, 2));
}

#[test]
fn the_third_end_within_ten_seconds_has_the_next_worker_begin_clean_and_the_gateway_goes_on() {
    let grid = Grid::with(Ways::BothDial);
    for ends in 1..=7 {
        assert_eq!(end_worker(&grid, 1, Signal::SIGKILL).worker_ends, ends);
    }
    grid.wait_for_tunnel();
}

#[test]
fn what_a_killed_worker_had_started_ends_and_the_audit_says_so() {
    let grid = Grid::start();
    let (token, _job) = grid.new_job("mpirun");
    let request = Request::Spawn {
        token: token.to_hex(),
        node: "node2".to_owned(),
    };
    let (reply, mut stream) = control::ask(&grid.control(1), &request).unwrap();
    assert!(matches!(reply, Reply::Spawn {}), "{reply:?}");
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
        .write_all(&crate::handover::request("echo begun; sleep 1000"))
        .unwrap();
    crate::handover::read_until(&mut stream, "begun");
    end_worker(&grid, 2, Signal::SIGKILL);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    let audit = grid.audit(2);
    let lines = || std::fs::read_to_string(&audit).unwrap_or_default();
    wait_for("the end in the audit", || lines().contains("\"event\":\"end\""));
    let text = lines();
    let starts = text.matches("\"event\":\"start\"").count();
    let ends = text.matches("\"event\":\"end\"").count();
    assert_eq!((starts, ends), (1, 1), "{text}");
}

#[test]
fn more_streams_than_the_keeper_may_have_files_are_handed_over_and_end_with_their_worker() {
    let grid = Grid::start();
    let listener = grid.listen();
    let pairs: Vec<_> = (0..100).map(|_| grid.pair(&listener)).collect();
    let lower = || {
        let mut prlimit = std::process::Command::new("prlimit");
        prlimit.args(["--pid", &grid.pid(1).to_string(), "--nofile=40:"]);
        assert!(prlimit.status().unwrap().success());
    };
    lower();
    grid.drain(1);
    for (near, far) in &pairs {
        crate::sites::cross(near, far);
    }
    lower();
    end_worker(&grid, 1, Signal::SIGKILL);
    for (near, far) in &pairs {
        let _ = (end_of(near), end_of(far));
    }
    grid.wait_for_tunnel();
    assert!(grid.open_files(1) < 100);
}
