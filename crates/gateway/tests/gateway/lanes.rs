//! What processes notice if the network between two real gateways misbehaves.

use crate::common::{DEADLINE, Grid, cross, pattern, wait_for};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

const MEGABYTE: usize = 1_000_000;

#[test]
fn lanes_cut_again_and_again_are_not_noticed_by_twenty_megabytes_each_way() {
    let grid = Grid::through_proxy("lanes = 2");
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    let proxy = grid.proxy.as_ref().unwrap();
    proxy.cut_after(400_000);
    std::thread::scope(|scope| {
        scope.spawn(|| cross(&near, &far, &pattern(1, 20 * MEGABYTE)));
        scope.spawn(|| cross(&far, &near, &pattern(2, 20 * MEGABYTE)));
    });
    assert!(proxy.cuts() > 20, "{} cuts", proxy.cuts());
    proxy.cut_after(0);
    near.shutdown(Shutdown::Write).unwrap();
    assert_eq!((&far).read(&mut [0]).unwrap(), 0);
    drop((near, far));
    wait_for("the end of the stream at both gateways", || {
        [1, 2].iter().all(|site| grid.status(*site).streams == 0)
    });
    assert!(grid.status(1).tunnels[0].lanes_lost > 10);
}

#[test]
fn one_lane_alone_survives_as_well_as_two() {
    let grid = Grid::through_proxy("lanes = 1");
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    grid.proxy.as_ref().unwrap().cut_after(700_000);
    cross(&near, &far, &pattern(3, 10 * MEGABYTE));
    cross(&far, &near, &pattern(4, 10 * MEGABYTE));
}

#[test]
fn many_streams_opened_and_closed_while_lanes_die_each_keep_their_bytes() {
    let grid = Grid::through_proxy("lanes = 3");
    let listener = grid.listen();
    grid.proxy.as_ref().unwrap().cut_after(50_000);
    for round in 0..100 {
        let (near, far) = grid.pair(&listener);
        cross(&near, &far, &pattern(round, 3000));
        cross(&far, &near, &pattern(round + 500, 3000));
        near.shutdown(Shutdown::Write).unwrap();
        assert_eq!((&far).read(&mut [0]).unwrap(), 0);
    }
}

#[test]
fn streams_wait_while_every_lane_is_cut_and_then_go_on() {
    let grid = Grid::through_proxy("");
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    cross(&near, &far, &pattern(5, MEGABYTE));
    go_dark(&grid);
    std::thread::scope(|scope| {
        scope.spawn(|| cross(&near, &far, &pattern(6, 8 * MEGABYTE)));
        scope.spawn(|| cross(&far, &near, &pattern(7, 8 * MEGABYTE)));
        // A connection that is begun while the network is dark waits like the others.
        let fresh = scope.spawn(|| grid.connect(listener.local_addr().unwrap()));
        wait_for("the new stream", || grid.status(1).streams == 2);
        grid.proxy.as_ref().unwrap().come_back();
        let fresh = fresh.join().unwrap().unwrap();
        let (accepted, _) = crate::common::accept(&listener, &grid.token);
        cross(&fresh, &accepted, &pattern(8, 1000));
    });
    for site in [1, 2] {
        assert_eq!(grid.status(site).tunnels[0].down_seconds, None);
    }
}

#[test]
fn at_the_deadline_in_the_dark_streams_are_reset_at_both_ends() {
    let grid = Grid::through_proxy("resume = \"300ms\"");
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    cross(&near, &far, &pattern(9, 1000));
    grid.proxy.as_ref().unwrap().go_dark();
    assert_eq!(end_of(near), Some(ErrorKind::ConnectionReset));
    assert_eq!(end_of(far), Some(ErrorKind::ConnectionReset));
    let status = grid.status(2);
    assert!(status.tunnels.is_empty());
    let why = status
        .sites
        .into_iter()
        .find_map(|site| site.unreachable)
        .unwrap();
    assert!(why.contains("300ms"), "{why}");
    grid.proxy.as_ref().unwrap().come_back();
    grid.wait_for_tunnel();
}

#[test]
fn a_lane_that_swallows_everything_delays_nothing_for_long_and_is_replaced() {
    let grid = Grid::through_proxy("lanes = 2\nlane_timeout = \"1s\"");
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    wait_for("both lanes", || grid.status(1).tunnels[0].lanes.len() == 2);
    grid.proxy.as_ref().unwrap().stall(0);
    cross(&near, &far, &pattern(10, 5 * MEGABYTE));
    cross(&far, &near, &pattern(11, 5 * MEGABYTE));
    wait_for("the lane to be given up and replaced", || {
        let tunnel = grid.status(1).tunnels.remove(0);
        tunnel.lanes_lost > 0 && tunnel.lanes.len() == 2
    });
    cross(&near, &far, &pattern(12, MEGABYTE));
}

#[test]
fn the_only_lane_falling_silent_is_outdone_by_a_new_connection_without_being_given_up_first() {
    let grid = Grid::through_proxy("lanes = 1\nlane_timeout = \"1h\"");
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    cross(&near, &far, &pattern(15, MEGABYTE));
    grid.proxy.as_ref().unwrap().stall(0);
    cross(&near, &far, &pattern(16, 5 * MEGABYTE));
    cross(&far, &near, &pattern(17, 5 * MEGABYTE));
    assert_eq!(grid.status(1).tunnels[0].lanes_lost, 1);
}

#[test]
fn a_gateway_that_does_not_answer_is_soon_dialled_anew_and_reached_when_it_does() {
    let (mut grid, silence) = Grid::in_silence();
    // This is not the deadline of the whole handshake, until which TCP would ask ever more rarely.
    wait_for("the dialling gateway to say what it waits for", || {
        let trouble = grid.status(1).sites.into_iter().find_map(|site| site.unreachable);
        trouble.is_some_and(|trouble| trouble.contains("no answer within 4s"))
    });
    drop(silence);
    grid.start_proxy();
    grid.wait_for_tunnel();
}

#[test]
fn a_far_gateway_that_lost_its_state_has_its_old_streams_reset_and_serves_new_ones() {
    let mut grid = Grid::with_far_process();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    cross(&near, &far, &pattern(13, 1000));
    grid.kill_far();
    assert!(matches!(end_of(far), None | Some(ErrorKind::ConnectionReset)));
    wait_for("the cut to be seen", || {
        grid.status(1).tunnels[0].down_seconds.is_some()
    });
    assert_eq!(grid.status(1).streams, 1, "the stream waits for the far gateway");
    grid.start_far();
    assert_eq!(end_of(near), Some(ErrorKind::ConnectionReset));
    grid.wait_for_tunnel();
    wait_for("the job to be known again", || grid.status(2).jobs.len() == 1);
    let (near, far) = grid.pair(&listener);
    cross(&near, &far, &pattern(14, MEGABYTE));
}

#[test]
fn streams_with_a_gateway_that_was_killed_for_good_end_long_before_the_deadline_in_the_dark() {
    let mut grid = Grid::with_far_process();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    cross(&near, &far, &pattern(15, 1000));
    grid.kill_far();
    assert!(matches!(end_of(far), None | Some(ErrorKind::ConnectionReset)));
    // Its host refuses for half a minute; `resume` is ten minutes here.
    near.set_read_timeout(Some(3 * DEADLINE)).unwrap();
    assert_eq!(end_of(near), Some(ErrorKind::ConnectionReset));
    assert!(grid.status(1).tunnels.is_empty());
    grid.start_far();
    grid.wait_for_tunnel();
}

#[test]
fn a_gateway_that_is_stopped_under_load_ends_its_streams_and_jobs_at_the_far_side_at_once() {
    let mut grid = Grid::start();
    let listener = grid.listen();
    let _far_job = grid.job_at(2, "of the far site");
    wait_for("both jobs at both sites", || {
        [1, 2].iter().all(|site| grid.status(*site).jobs.len() == 2)
    });
    let pairs: Vec<_> = (0..4).map(|_| grid.pair(&listener)).collect();
    std::thread::scope(|scope| {
        for (near, far) in &pairs {
            for (from, to) in [(near, far), (far, near)] {
                scope.spawn(move || while (&mut &*from).write_all(&[1; 65536]).is_ok() {});
                scope.spawn(move || while matches!((&mut &*to).read(&mut [0; 65536]), Ok(1..)) {});
            }
        }
        wait_for("load", || {
            grid.status(1).tunnels[0].sent_bytes > 20 * MEGABYTE as u64
        });
        // The threads end when their connections do.
        grid.stop(2);
    });
    let status = grid.status(1);
    assert_eq!((status.streams, status.tunnels.len()), (0, 0));
    let names: Vec<&str> = status.jobs.iter().map(|job| &*job.name).collect();
    assert_eq!(names, ["test"]);
}

#[test]
fn a_gateway_that_cannot_write_its_log_serves_all_the_same() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let grid = Grid::with_far_log(full.into());
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    cross(&near, &far, &pattern(15, 1000));
}

fn go_dark(grid: &Grid) {
    grid.proxy.as_ref().unwrap().go_dark();
    wait_for("both gateways to see that no lane is left", || {
        [1, 2]
            .iter()
            .all(|site| grid.status(*site).tunnels[0].down_seconds.is_some())
    });
}

/// The error that ends reading; `None` if the stream ends in order.
fn end_of(mut stream: TcpStream) -> Option<ErrorKind> {
    let result = stream.read_to_end(&mut Vec::new());
    result.err().map(|error| error.kind())
}
