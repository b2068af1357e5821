//! Two gateways that are handed over to another program while jobs run over them: `causeway gateway --drain`.

use crate::programs::copy;
use crate::sites::*;
use causeway_control::{self as control, ControlError, Request};
use causeway_gateway::STATE_VERSION;
use causeway_wire::Verdict;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[test]
fn bytes_cross_both_ways_unharmed_while_both_gateways_are_handed_over_again_and_again() {
    traffic_outlives_hand_overs(&Grid::start());
}

#[test]
fn gateways_that_dial_each_other_are_handed_over_as_well() {
    traffic_outlives_hand_overs(&Grid::with(Ways::BothDial));
}

#[test]
fn a_relay_is_handed_over_again_and_again_while_it_carries_and_neither_end_loses_a_lane_or_a_byte() {
    let grid = &Grid::with(Ways::Relayed);
    let (near, far) = &grid.pair(&grid.listen());
    let (stop, total) = (&AtomicBool::new(false), &AtomicU64::new(0));
    std::thread::scope(|scope| {
        let mut halves = Vec::new();
        for (seed, from, to) in [(1, near, far), (2, far, near)] {
            let sender = scope.spawn(move || send(from, seed, stop));
            halves.push((sender, scope.spawn(move || receive(to, seed, total))));
        }
        for _ in 0..3 {
            let before = (total.load(Ordering::Relaxed), grid.status(3).relayed_bytes);
            wait_for("bytes to cross", || {
                total.load(Ordering::Relaxed) > before.0 + 2 * MEGABYTE
            });
            grid.drain(3);
            let relay = grid.status(3);
            assert_eq!(relay.relayed, 2, "a lane is lost");
            assert!(relay.relayed_bytes > before.1);
        }
        stop.store(true, Ordering::Relaxed);
        for (sender, receiver) in halves {
            assert_eq!(receiver.join().unwrap(), sender.join().unwrap());
        }
    });
    for site in [1, 2] {
        let status = grid.status(site);
        let tunnel = Grid::between(&status, site).unwrap();
        assert_eq!(tunnel.lanes_lost, 0, "at site {site}");
        assert!(
            tunnel
                .lanes
                .iter()
                .all(|lane| lane.technique == "relay through site3")
        );
    }
}

#[test]
fn the_ends_of_what_a_relay_carries_are_handed_over_and_meet_there_again() {
    let grid = Grid::with(Ways::Relayed);
    let (near, far) = grid.pair(&grid.listen());
    for site in [1, 2, 3, 1] {
        cross(&near, &far);
        grid.drain(site);
    }
    cross(&near, &far);
}

fn traffic_outlives_hand_overs(grid: &Grid) {
    let listener = grid.listen();
    let pairs: Vec<_> = (0..3).map(|_| grid.pair(&listener)).collect();
    let (stop, total) = (&AtomicBool::new(false), &AtomicU64::new(0));
    std::thread::scope(|scope| {
        let mut halves = Vec::new();
        for (index, (near, far)) in pairs.iter().enumerate() {
            for (seed, from, to) in [(index, near, far), (index + 10, far, near)] {
                let sender = scope.spawn(move || send(from, seed, stop));
                halves.push((sender, scope.spawn(move || receive(to, seed, total))));
            }
        }
        for site in [1, 2, 1, 2, 2, 1] {
            // Before and after each hand-over, and in the end in both gateways at the same time.
            let before = total.load(Ordering::Relaxed);
            wait_for("bytes to cross", || {
                total.load(Ordering::Relaxed) > before + 2 * MEGABYTE
            });
            grid.drain(site);
        }
        let other = scope.spawn(|| grid.drain(1));
        grid.drain(2);
        other.join().unwrap();
        stop.store(true, Ordering::Relaxed);
        for (sender, receiver) in halves {
            assert_eq!(receiver.join().unwrap(), sender.join().unwrap());
        }
    });
    drop(pairs);
    wait_for("the end of the streams at both gateways", || {
        [1, 2].iter().all(|site| grid.status(*site).streams == 0)
    });
    for site in [1, 2] {
        let status = grid.status(site);
        assert_eq!((status.handed_over, status.streams_opened), (4, 3));
        assert!(status.tunnels[0].sent_bytes > 6 * MEGABYTE);
    }
}

#[test]
fn a_job_lives_on_and_its_token_opens_streams_until_its_command_ends() {
    let mut grid = Grid::start();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    for site in [1, 2] {
        grid.drain(site);
        let names = |site| grid.status(site).jobs.into_iter().map(|job| job.name);
        for site in [1, 2] {
            assert_eq!(names(site).collect::<Vec<_>>(), ["held"]);
        }
        cross(&near, &far);
        let (near, far) = grid.pair(&listener);
        cross(&near, &far);
    }
    let (_, second) = grid.new_job("second");
    wait_for("the second job at the far site", || {
        grid.status(2).jobs.len() == 2
    });
    drop(second);
    grid.job = None;
    wait_for("the end of both jobs at both sites", || {
        [1, 2].iter().all(|site| grid.status(*site).jobs.is_empty())
    });
    assert_eq!(end_of(&near), Some(ErrorKind::ConnectionReset));
    let (mut late, preface) = grid.dial(listener.local_addr().unwrap());
    late.write_all(&preface).unwrap();
    assert!(matches!(verdict(&late), Verdict::Failed(_)));
}

#[test]
fn connections_made_ended_and_reset_during_hand_overs_notice_nothing() {
    let grid = Grid::start();
    let listener = grid.listen();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            [1, 2, 2, 1, 1, 2].iter().for_each(|site| grid.drain(*site));
            done.store(true, Ordering::Relaxed);
        });
        let mut rounds = 0;
        while rounds < 6 || !done.load(Ordering::Relaxed) {
            let (near, far) = grid.pair(&listener);
            cross(&near, &far);
            let (one, other) = if rounds % 2 == 0 { (near, far) } else { (far, near) };
            if rounds % 3 == 0 {
                let at_once = libc::linger {
                    l_onoff: 1,
                    l_linger: 0,
                };
                setsockopt(&one, sockopt::Linger, &at_once).unwrap();
                drop(one);
                assert_eq!(end_of(&other), Some(ErrorKind::ConnectionReset));
            } else {
                one.shutdown(Shutdown::Write).unwrap();
                assert_eq!(end_of(&other), None);
                (&other).write_all(b"last words").unwrap();
                drop(other);
                let mut got = Vec::new();
                (&one).read_to_end(&mut got).unwrap();
                assert_eq!(got, b"last words");
            }
            rounds += 1;
        }
    });
    wait_for("the end of the streams at both gateways", || {
        [1, 2].iter().all(|site| grid.status(*site).streams == 0)
    });
}

#[test]
fn connections_that_are_only_half_made_are_made_afterwards() {
    let grid = Grid::start();
    let listener = grid.listen();
    let (mut near, preface) = grid.dial(listener.local_addr().unwrap());
    let (first, second) = preface.split_at(preface.len() / 2);
    near.write_all(first).unwrap();
    let mut asking = UnixStream::connect(grid.control(1)).unwrap();
    asking.set_read_timeout(Some(DEADLINE)).unwrap();
    asking.write_all(b"{\"version\":").unwrap();
    // A destination that does not answer: its queue of connections is full.
    let full = grid.listen();
    nix::sys::socket::listen(&full, nix::sys::socket::Backlog::new(0).unwrap()).unwrap();
    let waits = TcpStream::connect(full.local_addr().unwrap()).unwrap();
    let (mut connecting, preface) = grid.dial(full.local_addr().unwrap());
    connecting.write_all(&preface).unwrap();
    wait_for("the delivery to begin", || grid.status(2).streams == 1);

    [1, 2].iter().for_each(|site| grid.drain(*site));

    near.write_all(second).unwrap();
    let far = accept(&listener, &grid.token);
    assert_eq!(verdict(&near), Verdict::Connected);
    cross(&near, &far);
    writeln!(asking, "{},\"body\":{{\"status\":{{}}}}}}", control::VERSION).unwrap();
    let mut answer = String::new();
    asking.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\"handed_over\":1"), "{answer}");
    drop((full.accept().unwrap(), waits));
    let far = accept(&full, &grid.token);
    assert_eq!(verdict(&connecting), Verdict::Connected);
    cross(&connecting, &far);
}

#[test]
fn a_process_on_a_node_goes_on_and_is_collected_after_its_end() {
    let mut grid = Grid::start();
    let fifo = grid.dir.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut started = Vec::new();
    let token = grid.token.to_hex();
    let spawn = |node: &str| Request::Spawn {
        token: token.clone(),
        node: node.to_owned(),
        takes_connection: true,
    };
    for node in ["node1", "node2"] {
        let (_, mut process) = control::ask(&grid.control(1), &spawn(node)).unwrap();
        process.set_read_timeout(Some(DEADLINE)).unwrap();
        let command = format!("echo begun; cat {}; echo {node} ended", fifo.display());
        process.write_all(&request(&command)).unwrap();
        read_until(&mut process, "begun");
        started.push((node, process));
    }
    let before = [grid.started(1), grid.started(2)];
    assert!(before.iter().all(|children| !children.is_empty()), "{before:?}");
    for site in [1, 2, 1] {
        grid.drain(site);
    }
    assert_eq!([grid.started(1), grid.started(2)], before);
    // Both read from the FIFO, and go on once its last writer has closed it.
    let mut writer = std::fs::File::options().write(true).open(&fifo).unwrap();
    writer.write_all(b"go on\n").unwrap();
    drop(writer);
    for (node, mut process) in started {
        read_until(&mut process, &format!("{node} ended"));
    }
    wait_for("the gateways to collect what they had started", || {
        [1, 2].iter().all(|site| grid.started(*site).is_empty())
    });
    // What the new program starts has no signals blocked, as before; and it ends with its job.
    let (_, mut process) = control::ask(&grid.control(1), &spawn("node2")).unwrap();
    process.set_read_timeout(Some(DEADLINE)).unwrap();
    let command = format!("cat /proc/self/status {}", fifo.display());
    process.write_all(&request(&command)).unwrap();
    read_until(&mut process, "SigBlk:\t0000000000000000");
    grid.drain(2);
    grid.job = None;
    wait_for("the end of what the job had started", || {
        grid.started(2).is_empty()
    });
}

#[test]
fn a_program_that_the_kernel_cannot_read_yet_stops_nothing_but_its_own_start() {
    let grid = Grid::start();
    // From now on, site two starts what is at this path, which is not the file that it runs itself.
    grid.drain(2);
    let another = grid.dir.path().join("another");
    copy(&grid.next, &another);
    std::fs::rename(&another, &grid.next).unwrap();
    let lease = Lease::take(&grid.next);
    let spawn = Request::Spawn {
        token: grid.token.to_hex(),
        node: "node2".to_owned(),
        takes_connection: true,
    };
    let (_, mut process) = control::ask(&grid.control(1), &spawn).unwrap();
    process.set_read_timeout(Some(DEADLINE)).unwrap();
    process.write_all(&request("echo begun")).unwrap();
    wait_for("the kernel to open the program", || lease.is_wanted());
    // Both gateways go on: they answer, and streams of this site begin and end.
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    cross(&near, &far);
    let hand_over = Request::HandOver {
        state_version: STATE_VERSION,
        program: env!("CARGO_BIN_EXE_causeway").into(),
        config: grid.file(2),
    };
    match control::ask(&grid.control(2), &hand_over) {
        Err(ControlError::Refused(said)) => assert!(said.contains("is just being started"), "{said}"),
        other => panic!("{other:?}"),
    }
    drop(lease);
    read_until(&mut process, "begun");
    cross(&near, &far);
    grid.drain(2);
    cross(&near, &far);
}

#[test]
fn what_a_gateway_started_ends_when_the_gateway_is_killed() {
    let mut grid = Grid::start();
    let spawn = Request::Spawn {
        token: grid.token.to_hex(),
        node: "node1".to_owned(),
        takes_connection: true,
    };
    let (_, mut process) = control::ask(&grid.control(1), &spawn).unwrap();
    process.set_read_timeout(Some(DEADLINE)).unwrap();
    process.write_all(&request("echo begun; exec sleep 300")).unwrap();
    read_until(&mut process, "begun");
    // The hand-over does not end the process's parent: the new program runs in the same process as the old
    // one.
    grid.drain(1);
    let [started] = grid.started(1)[..] else {
        panic!("it had started one process");
    };
    let gateway = grid.gateways.get_mut(&1).unwrap();
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    let stat = format!("/proc/{started}/stat");
    wait_for("the end of what it had started", || {
        let stat = std::fs::read_to_string(&stat).unwrap_or_default();
        // Nobody collects the process if the first process does not collect orphans.
        stat.is_empty() || stat.contains(") Z ")
    });
}

/// A file that this process has to itself: another process that opens or executes it waits until this one
/// ends, or for /proc/sys/fs/lease-break-time (fcntl(2), F_SETLEASE).
struct Lease(std::fs::File);

impl Lease {
    fn take(path: &Path) -> Lease {
        // SAFETY: no function is installed. The kernel reports the other process by SIGIO, which would end
        // this process.
        unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
        let lease = Lease(std::fs::File::open(path).unwrap());
        assert_eq!(lease.fcntl(libc::F_SETLEASE, libc::F_WRLCK), 0);
        lease
    }

    fn is_wanted(&self) -> bool {
        self.fcntl(libc::F_GETLEASE, 0) != libc::F_WRLCK
    }

    fn fcntl(&self, command: i32, argument: i32) -> i32 {
        // SAFETY: both commands take a number.
        unsafe { libc::fcntl(self.0.as_raw_fd(), command, argument) }
    }
}

/// The request frame of `remote/frame.rs`.
pub fn request(command: &str) -> Vec<u8> {
    let body = format!(r#"{{"command":{command:?},"environment":[],"path":[]}}"#);
    let length = u32::try_from(body.len()).unwrap();
    [&[1, 2], &length.to_be_bytes()[..], body.as_bytes()].concat()
}

/// The frame with which a process gets its input.
pub fn input(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap();
    [&[1, 3], &length.to_be_bytes()[..], text.as_bytes()].concat()
}

pub fn read_until(stream: &mut UnixStream, text: &str) {
    let mut got = Vec::new();
    let mut bytes = [0; 4096];
    while !String::from_utf8_lossy(&got).contains(text) {
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0, "ended after {:?}", String::from_utf8_lossy(&got));
        got.extend_from_slice(&bytes[..count]);
    }
}

#[test]
fn what_is_refused_leaves_everything_running_and_no_lane_closed() {
    let grid = Grid::start();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    let (next, file) = (grid.next.clone(), grid.file(1));
    let path = |name: &str| grid.dir.path().join(name);

    let said = grid.refusal(STATE_VERSION + 1, &next, &file);
    assert!(said.contains(&format!("version {STATE_VERSION}")), "{said}");
    let said = grid.refusal(STATE_VERSION, Path::new("causeway"), &file);
    assert!(said.contains("no absolute path"), "{said}");
    let said = grid.refusal(STATE_VERSION, &path("nothing"), &file);
    assert!(said.contains("No such file"), "{said}");
    let said = grid.refusal(STATE_VERSION, &file, &file);
    assert!(said.contains("Permission denied"), "{said}");
    set_mode(&next, 0o777);
    let said = grid.refusal(STATE_VERSION, &next, &file);
    assert!(said.contains("chmod go-w"), "{said}");
    set_mode(&next, 0o755);

    let newer = "{\"version\":77,\"body\":{\"hand_over\":{\"state_version\":77,\"program\":\"/p\",\"config\":\"/c\"}}}\n";
    let mut asking = UnixStream::connect(grid.control(1)).unwrap();
    asking.write_all(newer.as_bytes()).unwrap();
    let mut said = String::new();
    asking.read_to_string(&mut said).unwrap();
    assert!(said.contains("the new program needs version 77"), "{said}");

    std::fs::write(path("broken.toml"), "[site]\n").unwrap();
    let said = grid.refusal(STATE_VERSION, &next, &path("broken.toml"));
    assert!(said.contains("broken.toml:1: listen: is missing"), "{said}");
    let other = grid.configuration(1).replace("253:7000", "253:7002");
    std::fs::write(path("other.toml"), other).unwrap();
    let said = grid.refusal(STATE_VERSION, &next, &path("other.toml"));
    assert!(said.contains("listen.lan"), "{said}");
    let alone = grid.configuration(1);
    let alone = alone.split("[[peer]]").next().unwrap();
    std::fs::write(path("alone.toml"), alone).unwrap();
    let said = grid.refusal(STATE_VERSION, &next, &path("alone.toml"));
    assert!(said.contains("[[peer]] of site2"), "{said}");

    std::fs::write(grid.file(1), "[site]\nname = 3").unwrap();
    let output = grid.try_drain(1);
    assert_eq!(output.status.code(), Some(2), "{output:?}");

    cross(&near, &far);
    let status = grid.status(1);
    assert_eq!((status.handed_over, status.tunnels[0].lanes_lost), (0, 0));
    std::fs::write(grid.file(1), grid.configuration(1)).unwrap();
    grid.drain(1);
    cross(&near, &far);
}

#[test]
fn a_configuration_that_cannot_be_read_yet_stops_nothing() {
    let grid = Grid::start();
    let slow = grid.dir.path().join("slow.toml");
    mkfifo(&slow, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    let request = Request::HandOver {
        state_version: STATE_VERSION,
        program: grid.next.clone(),
        config: slow.clone(),
    };
    let control = grid.control(1);
    let asking = std::thread::spawn(move || control::ask(&control, &request));
    // This returns once the gateway reads, which then waits for what is written.
    let mut writer = std::fs::File::options().write(true).open(&slow).unwrap();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    cross(&near, &far);
    assert_eq!(grid.status(1).handed_over, 0);
    let said = grid.refusal(STATE_VERSION, &grid.next, &grid.file(1));
    assert!(said.contains("a hand-over is under way"), "{said}");
    writer.write_all(b"[site]\n").unwrap();
    drop(writer);
    match asking.join().unwrap() {
        Err(ControlError::Refused(said)) => assert!(said.contains("slow.toml:1: "), "{said}"),
        other => panic!("{other:?}"),
    }
    grid.drain(1);
    cross(&near, &far);
}

#[test]
fn a_configuration_with_more_in_it_is_taken_up_and_told_to_the_other_sites() {
    let grid = Grid::start();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    let address = format!("127.{}.1.1", grid.net);
    let node = format!("{{ name = \"node1\", address = \"{address}\" }}");
    let more = format!("{node}, {{ name = \"another\", address = \"{address}1\" }}");
    let text = grid.configuration(1).replace(&node, &more);
    // A peer in front of the existing one.
    let (others, peers) = text.split_at(text.find("[[peer]]").unwrap());
    let text = format!("{others}[[peer]]\nsite = \"bordeaux\"\n{peers}");
    std::fs::write(grid.file(1), text).unwrap();
    grid.drain(1);
    cross(&near, &far);
    let names: Vec<String> = grid.status(1).sites.into_iter().map(|site| site.name).collect();
    assert_eq!(names, ["site1", "bordeaux", "site2"]);
    wait_for("the other site to learn of the node", || {
        let sites = grid.status(2).sites.into_iter();
        let mut sites = sites.filter(|site| site.name == "site1");
        let nodes = sites.find_map(|site| site.info).unwrap().nodes;
        nodes.iter().any(|node| node.name == "another")
    });
    grid.drain(1);
    cross(&near, &far);
}

#[test]
fn a_program_that_cannot_be_executed_leaves_the_old_one_running_with_all_streams() {
    let grid = Grid::start();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    let (files, inherited) = (grid.open_files(1), inheritable(grid.pid(1)));
    let foreign = grid.dir.path().join("foreign");
    let mut header = [0; 64];
    std::fs::File::open(&grid.next)
        .unwrap()
        .read_exact(&mut header)
        .unwrap();
    // The number of another machine (elf(5), e_machine).
    header[18] ^= 0xff;
    std::fs::write(&foreign, header).unwrap();
    set_mode(&foreign, 0o755);
    for _ in 0..3 {
        let said = grid.refusal(STATE_VERSION, &foreign, &grid.file(1));
        assert!(said.contains("foreign: ENOEXEC"), "{said}");
        cross(&near, &far);
    }
    grid.wait_for_tunnel();
    let status = grid.status(1);
    assert_eq!((status.handed_over, status.streams), (0, 1));
    wait_for("as many open files as before", || grid.open_files(1) == files);
    // Nothing that the gateway starts has any of these descriptors.
    assert_eq!(inheritable(grid.pid(1)), inherited);
    grid.drain(1);
    assert_eq!(inheritable(grid.pid(1)), inherited);
    cross(&near, &far);
}

/// Descriptors that a program started by this process would inherit: those without O_CLOEXEC (proc(5),
/// fdinfo).
fn inheritable(pid: u32) -> usize {
    let files = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap();
    let flags = files.filter_map(|file| {
        let text = std::fs::read_to_string(file.unwrap().path()).ok()?;
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
        i64::from_str_radix(flags.trim(), 8).ok()
    });
    flags
        .filter(|flags| flags & i64::from(libc::O_CLOEXEC) == 0)
        .count()
}

#[test]
fn no_file_is_left_open_by_one_hand_over_after_the_other() {
    let grid = Grid::start();
    let listener = grid.listen();
    let pairs: Vec<_> = (0..5).map(|_| grid.pair(&listener)).collect();
    let files = [grid.open_files(1), grid.open_files(2)];
    for _ in 0..4 {
        for site in [1, 2] {
            grid.drain(site);
        }
        pairs.iter().for_each(|(near, far)| cross(near, far));
        grid.wait_for_tunnel();
        wait_for("as many open files as before", || {
            [grid.open_files(1), grid.open_files(2)] == files
        });
    }
}

#[test]
fn hundreds_of_streams_are_handed_over_and_each_keeps_its_bytes() {
    const STREAMS: usize = 700;
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
    let grid = Grid::start();
    let listener = grid.listen();
    let mut pairs: Vec<_> = (0..STREAMS).map(|_| grid.pair(&listener)).collect();
    let bytes = |stream: usize| pattern(stream)[..500].to_vec();
    for (index, (near, far)) in pairs.iter_mut().enumerate() {
        near.write_all(&bytes(index)).unwrap();
        far.write_all(&bytes(index + STREAMS)).unwrap();
    }
    [1, 2].iter().for_each(|site| grid.drain(*site));
    for (index, (near, far)) in pairs.iter_mut().enumerate() {
        let mut got = [0; 500];
        far.read_exact(&mut got).unwrap();
        assert!(got[..] == bytes(index));
        near.read_exact(&mut got).unwrap();
        assert!(got[..] == bytes(index + STREAMS));
    }
    drop(pairs);
    wait_for("all streams to end", || {
        [1, 2].iter().all(|site| grid.status(*site).streams == 0)
    });
}

#[test]
fn a_gateway_that_was_handed_over_stops_in_order() {
    let mut grid = Grid::start();
    let listener = grid.listen();
    let (near, _far) = grid.pair(&listener);
    grid.drain(2);
    grid.wait_for_tunnel();
    kill(Pid::from_raw(grid.pid(2).cast_signed()), Signal::SIGTERM).unwrap();
    let ended = grid.gateways.get_mut(&2).unwrap().wait().unwrap();
    assert!(ended.success(), "{ended}");
    assert!(!grid.control(2).exists());
    assert_eq!(end_of(&near), Some(ErrorKind::ConnectionReset));
    wait_for("the other gateway to know", || grid.status(1).tunnels.is_empty());
}

#[test]
fn a_state_that_cannot_be_read_is_refused_with_the_reason() {
    let grid = Grid::start();
    let state = grid.dir.path().join("state");
    let refusal = |bytes: &[u8]| {
        std::fs::write(&state, bytes).unwrap();
        let output = Command::new("sh")
            .args(["-c", "exec \"$0\" gateway --config \"$1\" --inherit 3 3<\"$2\""])
            .args([&grid.next, &grid.file(1), &state])
            .stdout(Stdio::null())
            .output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refusal(b"a thesis").contains("is not a gateway's state"));
    let said = refusal(b"causeway gateway\0\0\x01\0");
    assert!(said.contains("its version is 256"), "{said}");
    let magic = [b"causeway gateway", &STATE_VERSION.to_be_bytes()[..]].concat();
    assert!(refusal(&magic).contains("is damaged"));
    // The running gateway has not noticed.
    assert_eq!(grid.status(1).jobs.len(), 1);
}
