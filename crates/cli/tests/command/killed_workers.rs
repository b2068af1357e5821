//! A gateway whose worker is killed: its keeper makes another one.

use crate::sites::{DEADLINE, Grid, Ways, accept, connect_from, cross, receive, send, verdict, wait_for};
use causeway_control::{self as control, Plan, Reply, Request, Status};
use causeway_wire::Verdict;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

fn pid(number: u32) -> Pid {
    Pid::from_raw(number.cast_signed())
}

/// Ends a site's worker with a signal; returns what the next worker reports about that.
fn end_worker(grid: &Grid, site: u8, signal: Signal) -> Status {
    let before = grid.status(site);
    assert_ne!(before.worker, before.pid);
    kill(pid(before.worker), signal).unwrap();
    let began = Instant::now();
    let after = loop {
        if let Some(after) = grid.try_status(site).filter(|now| now.worker != before.worker) {
            break after;
        }
        let is_late = began.elapsed() > DEADLINE;
        assert!(
            !is_late,
            "no worker follows one ended by {signal}: {}",
            processes(before.pid, before.worker)
        );
        std::thread::yield_now();
    };
    assert_eq!(after.pid, before.pid, "supervisors see the same process");
    assert_eq!(after.worker_ends, before.worker_ends + 1);
    after
}

/// Signals that a process ignores, the first one in the lowest bit.
fn ignored(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
}

/// What the kernel reports about a keeper, its children and a worker.
fn processes(keeper: u32, worker: u32) -> String {
    let read = |path: String| std::fs::read_to_string(path).unwrap_or_default();
    let children = read(format!("/proc/{keeper}/task/{keeper}/children"));
    let children = children
        .split_whitespace()
        .filter_map(|number| number.parse().ok());
    let describe = |process: u32| {
        let status = read(format!("/proc/{process}/status"));
        let wanted = ["State", "Threads", "SigPnd", "ShdPnd", "SigBlk", "SigIgn"];
        let lines = status
            .lines()
            .filter(|line| wanted.iter().any(|name| line.starts_with(name)));
        let lines: Vec<&str> = lines.collect();
        let waits = ["wchan", "syscall"].map(|name| read(format!("/proc/{process}/{name}")));
        format!("\n{process}: {lines:?} {waits:?}")
    };
    let all = [keeper, worker].into_iter().chain(children);
    all.map(describe).collect()
}

fn how(status: &Status) -> &str {
    &status.last_worker_end.as_ref().unwrap().how
}

#[test]
fn a_killed_worker_is_followed_by_one_that_goes_on_with_its_streams() {
    let grid = Grid::start();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    cross(&near, &far);
    let files = (grid.open_files(1), grid.open_files(2));
    for signal in [Signal::SIGKILL, Signal::SIGABRT] {
        let status = end_worker(&grid, 1, signal);
        assert_eq!(
            how(&status),
            format!("was killed by signal {} ({signal})", signal as i32)
        );
        assert_eq!((status.streams, status.jobs.len()), (1, 1), "they go on");
        cross(&near, &far);
    }
    end_worker(&grid, 2, Signal::SIGKILL);
    cross(&near, &far);
    let (token, job) = grid.new_job("the next");
    let (mut stream, preface) = grid.dial_under(token, listener.local_addr().unwrap());
    stream.write_all(&preface).unwrap();
    let next = accept(&listener, &token);
    assert_eq!(verdict(&stream), Verdict::Connected);
    drop((stream, next, job, near, far));
    wait_for("the end of the streams", || {
        grid.status(1).streams == 0 && grid.status(2).streams == 0
    });
    wait_for("what they had open", || {
        grid.open_files(1) <= files.0 && grid.open_files(2) <= files.1
    });
}

#[test]
fn no_byte_is_lost_or_doubled_while_one_worker_after_the_other_is_killed() {
    let grid = &Grid::start();
    let listener = grid.listen();
    let pairs: Vec<_> = (0..3).map(|_| grid.pair(&listener)).collect();
    let (stop, total) = (&AtomicBool::new(false), &AtomicU64::new(0));
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (index, (near, far)) in pairs.iter().enumerate() {
            for (seed, from, to) in [(2 * index, near, far), (2 * index + 1, far, near)] {
                let sender = scope.spawn(move || send(from, seed, stop));
                let receiver = scope.spawn(move || receive(to, seed, total));
                threads.push((sender, receiver));
            }
        }
        for round in 0..12 {
            end_worker(grid, 1 + round % 2, Signal::SIGKILL);
            // Some kills follow each other at once, others once bytes have crossed again.
            if round % 3 > 0 {
                let before = total.load(Ordering::Relaxed);
                wait_for("bytes that cross", || {
                    total.load(Ordering::Relaxed) > before + 1_000_000
                });
            }
        }
        stop.store(true, Ordering::Relaxed);
        for (sender, receiver) in threads {
            let sent = sender.join().unwrap();
            assert!(sent > 0);
            assert_eq!(receiver.join().unwrap(), sent);
        }
    });
}

#[test]
fn streams_go_on_whichever_signal_from_outside_ends_a_worker_and_however_often() {
    let grid = Grid::start();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    // The rest are used by the gateway itself, end nothing, or belong to faults.
    let signals = [
        Signal::SIGQUIT,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
        Signal::SIGALRM,
        Signal::SIGSTKFLT,
        Signal::SIGXCPU,
        Signal::SIGVTALRM,
        Signal::SIGPROF,
        Signal::SIGIO,
        Signal::SIGPWR,
        Signal::SIGKILL,
    ];
    // Whoever starts a program may have it ignore some signals: GNU make does so with SIGIO, a shell with
    // SIGQUIT in the background.
    let ignored = ignored(grid.status(1).worker);
    let signals = signals
        .into_iter()
        .filter(|signal| ignored >> (*signal as u32 - 1) & 1 == 0);
    for (site, signal) in [1, 2].into_iter().cycle().zip(signals) {
        let status = end_worker(&grid, site, signal);
        assert!(how(&status).contains(signal.as_str()), "{}", how(&status));
        cross(&near, &far);
    }
}

#[test]
fn the_third_fault_within_ten_seconds_ends_the_streams_that_may_have_led_to_it() {
    let grid = Grid::start();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    for signal in [Signal::SIGILL, Signal::SIGFPE] {
        assert_eq!(end_worker(&grid, 1, signal).streams, 1, "{signal}");
        cross(&near, &far);
    }
    assert_eq!(end_worker(&grid, 1, Signal::SIGSYS).streams, 0);
    grid.wait_for_tunnel();
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
fn connections_that_processes_begin_while_workers_are_killed_come_about() {
    let grid = &Grid::start();
    let listener = grid.listen();
    let (token, _job) = grid.new_job("mpirun");
    let (stop, begun) = (&AtomicBool::new(false), &AtomicU64::new(0));
    std::thread::scope(|scope| {
        let connecting = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let (mut near, preface) = grid.dial_under(token, listener.local_addr().unwrap());
                near.write_all(&preface).unwrap();
                let mut far = accept(&listener, &token);
                assert_eq!(verdict(&near), Verdict::Connected);
                near.write_all(b"hello").unwrap();
                let mut got = [0; 5];
                far.read_exact(&mut got).unwrap();
                assert_eq!(&got, b"hello");
                begun.fetch_add(1, Ordering::Relaxed);
            }
        });
        for _ in 0..8 {
            let before = begun.load(Ordering::Relaxed);
            end_worker(grid, 1, Signal::SIGKILL);
            wait_for("a connection", || {
                connecting.is_finished() || begun.load(Ordering::Relaxed) > before
            });
        }
        stop.store(true, Ordering::Relaxed);
        connecting.join().unwrap();
    });
}

#[test]
fn a_job_whose_command_has_its_answer_outlives_the_worker_that_gave_it() {
    let grid = Grid::start();
    let mut jobs = Vec::new();
    for round in 0..12 {
        let before = grid.status(1);
        let plan = Plan::at("site1".to_owned());
        let (name, weight) = (format!("round {round}"), 1);
        let request = Request::Job { name, weight, plan };
        let (_, job) = control::ask(&grid.control(1), &request).unwrap();
        kill(pid(before.worker), Signal::SIGKILL).unwrap();
        jobs.push(job);
        wait_for("the next worker", || {
            grid.try_status(1)
                .is_some_and(|status| status.worker != before.worker)
        });
        let status = grid.status(1);
        let names: Vec<&str> = status.jobs.iter().map(|job| &job.name[..]).collect();
        assert_eq!(names.len(), 2 + round, "{names:?}");
    }
    // A command that is answered twice would find something to read here.
    for mut job in jobs {
        job.set_nonblocking(true).unwrap();
        let mut rest = Vec::new();
        let error = job.read_to_end(&mut rest).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock, "its connection has ended");
    }
}

#[test]
fn a_stream_over_a_forwarded_connection_outlives_a_hand_over_and_ends_with_a_killed_worker() {
    let grid = Grid::start();
    let (token, _job) = grid.new_job("mpirun");
    let request = Request::Spawn {
        token: token.to_hex(),
        node: "node2".to_owned(),
        takes_connection: false,
    };
    let (_, mut stream) = control::ask(&grid.control(1), &request).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
        .write_all(&crate::handover::request(
            "echo begun; read line; echo got $line; read line",
        ))
        .unwrap();
    crate::handover::read_until(&mut stream, "begun");
    grid.drain(1);
    stream.write_all(&crate::handover::input("a word\n")).unwrap();
    crate::handover::read_until(&mut stream, "got a word");
    end_worker(&grid, 1, Signal::SIGKILL);
    let mut rest = Vec::new();
    // An error or an end: whoever reads is not left waiting.
    let ended = stream.read_to_end(&mut rest).map_err(|error| error.kind());
    assert_ne!(ended, Err(ErrorKind::WouldBlock));
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
fn the_next_worker_runs_by_the_policy_that_the_gateway_was_given() {
    let grid = Grid::start();
    let keeper = grid.status(1).pid;
    // With the flag that resets the policy in children, with which the emulated grid starts gateways.
    let words = ["--reset-on-fork", "--rr", "--pid", "1"];
    let chrt = std::process::Command::new("chrt")
        .args(words)
        .arg(keeper.to_string())
        .output();
    if !chrt.is_ok_and(|given| given.status.success()) {
        println!("left out: this user may give no process such a policy");
        return;
    }
    let policy = |process: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        // Field 41 of proc_pid_stat(5); the second field ends with the last parenthesis.
        let rest = stat.rsplit_once(')').unwrap().1;
        rest.split_whitespace().nth(38).unwrap().parse::<i32>().unwrap()
    };
    for _ in 0..2 {
        let status = end_worker(&grid, 1, Signal::SIGKILL);
        assert_eq!((policy(keeper), policy(status.worker)), (2, 2), "round robin");
    }
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
    cross(&near, &far);
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
    wait_for("the end of the worker", || is_gone(worker));
}

/// Nobody collects the process if the first process does not collect orphans.
fn is_gone(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

#[test]
fn a_gateway_whose_keeper_is_killed_tells_the_others_which_wait_for_nobody() {
    // The gateway that is only dialled could not find out by itself.
    let mut grid = Grid::with(Ways::OneDials);
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    cross(&near, &far);
    grid.gateways.get_mut(&1).unwrap().kill().unwrap();
    grid.gateways.get_mut(&1).unwrap().wait().unwrap();
    wait_for("the end of its stream at the other site", || {
        grid.status(2).streams == 0
    });
    drop((near, far));
}

#[test]
fn a_worker_that_was_stopped_when_its_keeper_was_killed_ends_as_soon_as_it_runs() {
    let mut grid = Grid::start();
    let worker = grid.status(1).worker;
    kill(pid(worker), Signal::SIGSTOP).unwrap();
    grid.gateways.get_mut(&1).unwrap().kill().unwrap();
    grid.gateways.get_mut(&1).unwrap().wait().unwrap();
    kill(pid(worker), Signal::SIGCONT).unwrap();
    wait_for("the end of the worker", || is_gone(worker));
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
    assert_eq!((status.handed_over, status.worker_ends), (2, 2));
}

#[test]
fn a_gateway_goes_on_however_many_of_its_workers_end_by_faults() {
    let grid = Grid::with(Ways::BothDial);
    for ends in 1..=7 {
        assert_eq!(end_worker(&grid, 1, Signal::SIGABRT).worker_ends, ends);
    }
    grid.wait_for_tunnel();
}

#[test]
fn what_a_killed_worker_had_started_goes_on_and_its_end_is_in_the_audit() {
    let grid = Grid::start();
    let (token, _job) = grid.new_job("mpirun");
    let request = Request::Spawn {
        token: token.to_hex(),
        node: "node2".to_owned(),
        takes_connection: true,
    };
    let (reply, mut stream) = control::ask(&grid.control(1), &request).unwrap();
    assert!(matches!(reply, Reply::Spawn {}), "{reply:?}");
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
        .write_all(&crate::handover::request("echo begun; read line; echo got $line"))
        .unwrap();
    crate::handover::read_until(&mut stream, "begun");
    for site in [2, 1, 2] {
        end_worker(&grid, site, Signal::SIGKILL);
    }
    stream.write_all(&crate::handover::input("a word\n")).unwrap();
    crate::handover::read_until(&mut stream, "got a word");
    let audit = grid.audit(2);
    let lines = || std::fs::read_to_string(&audit).unwrap_or_default();
    wait_for("the end in the audit", || lines().contains("\"event\":\"end\""));
    let text = lines();
    let starts = text.matches("\"event\":\"start\"").count();
    let ends = text.matches("\"event\":\"end\"").count();
    assert_eq!((starts, ends), (1, 1), "{text}");
}

#[test]
fn more_streams_than_the_keeper_may_have_files_are_handed_over_and_outlive_their_worker() {
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
        cross(near, far);
    }
    lower();
    end_worker(&grid, 1, Signal::SIGKILL);
    for (near, far) in &pairs {
        cross(near, far);
    }
    drop(pairs);
    wait_for("the end of the streams", || grid.open_files(1) < 100);
}
