//! What Prometheus gets from a running gateway, and what others get.

use crate::common::{DEADLINE, Grid, cross, pattern, wait_for};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Sends these bytes to site one's gateway, and returns its answer.
fn ask(grid: &Grid, pieces: &[&[u8]]) -> String {
    let mut stream = TcpStream::connect(grid.metrics(1)).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_nodelay(true).unwrap();
    for piece in pieces {
        stream.write_all(piece).unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn metrics(grid: &Grid) -> String {
    ask(grid, &[b"GET /metrics HTTP/1.0\r\n\r\n"])
}

/// The value of one sample; 0 if it is missing.
fn value(metrics: &str, sample: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(sample));
    line.map_or(0.0, |value| value.trim().parse().unwrap())
}

#[test]
fn a_request_in_pieces_is_answered_once_with_every_family() {
    let grid = Grid::start();
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let pieces: Vec<&[u8]> = request.chunks(1).collect();
    let answer = ask(&grid, &pieces);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains(&format!("Content-Length: {}", body.len())),
        "{head}"
    );
    assert_eq!(value(body, "causeway_tunnel_up{site=\"site2\"}"), 1.0, "{body}");
    assert_eq!(
        value(body, "causeway_site_reachable{site=\"site2\"}"),
        1.0,
        "{body}"
    );
    assert_eq!(value(body, "causeway_jobs"), 1.0, "{body}");
    let lane = "{site=\"site2\",lane=\"0\"}";
    assert!(
        value(body, &format!("causeway_lane_sent_bytes_total{lane}")) > 0.0,
        "{body}"
    );
    assert!(
        value(body, &format!("causeway_lane_sent_segments_total{lane}")) > 0.0,
        "{body}"
    );
    assert!(
        value(body, &format!("causeway_lane_round_trip_seconds{lane}")) > 0.0,
        "{body}"
    );
    assert!(
        value(body, &format!("causeway_lane_window_bytes{lane}")) > 0.0,
        "{body}"
    );
}

#[test]
fn what_is_no_request_for_the_metrics_is_told_so_and_leaves_them_there_for_others() {
    let grid = Grid::start();
    let status = |request: &[u8]| {
        let answer = ask(&grid, &[request]);
        answer.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(status(b"GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 Not Found");
    let post = b"POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(status(post), "HTTP/1.1 405 Method Not Allowed");
    assert_eq!(status(b"PROXY TCP4\r\n\r\n"), "HTTP/1.1 400 Bad Request");
    let long = [&b"GET /metrics HTTP/1.1\r\nCookie: "[..], &[b'x'; 20_000]].concat();
    assert_eq!(status(&long), "HTTP/1.1 400 Bad Request");
    // This is more than is ever read from one connection.
    let mut endless = TcpStream::connect(grid.metrics(1)).unwrap();
    endless.set_write_timeout(Some(DEADLINE)).unwrap();
    while endless.write_all(&[b'x'; 65_536]).is_ok() {}
    assert_eq!(
        value(&metrics(&grid), "causeway_refused_total{reason=\"metrics\"}"),
        3.0
    );
}

#[test]
fn counters_do_not_go_down_when_a_lane_is_replaced() {
    let grid = Grid::through_proxy("");
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    cross(&near, &far, &pattern(1, 1_000_000));
    let before = metrics(&grid);
    let proxy = grid.proxy.as_ref().unwrap();
    proxy.go_dark();
    wait_for("the loss of the lane", || {
        grid.status(1).tunnels[0].down_seconds.is_some()
    });
    let down = metrics(&grid);
    assert_eq!(value(&down, "causeway_tunnel_up{site=\"site2\"}"), 0.0, "{down}");
    proxy.come_back();
    grid.wait_for_tunnel();
    cross(&near, &far, &pattern(2, 1000));
    let after = metrics(&grid);
    for at in [&down, &after] {
        never_less(&before, at);
    }
    assert_eq!(
        value(&after, "causeway_tunnel_lanes_lost_total{site=\"site2\"}"),
        1.0,
        "{after}"
    );
}

#[test]
fn counters_do_not_go_down_when_the_far_gateway_is_another_one() {
    let mut grid = Grid::with_far_process();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    cross(&near, &far, &pattern(1, 1_000_000));
    let before = metrics(&grid);
    let sent = "causeway_tunnel_sent_bytes_total{site=\"site2\"}";
    assert_eq!(value(&before, sent), 1e6, "{before}");
    grid.kill_far();
    wait_for("the loss of the lane", || {
        grid.status(1).tunnels[0].down_seconds.is_some()
    });
    grid.start_far();
    grid.wait_for_tunnel();
    never_less(&before, &metrics(&grid));
}

/// Checks that each counter of a site is at least what it was before.
fn never_less(before: &str, after: &str) {
    let mut compared = 0;
    for line in before.lines().filter(|line| line.contains("_total{site")) {
        let (sample, was) = line.rsplit_once(' ').unwrap();
        let was: f64 = was.parse().unwrap();
        assert!(value(after, sample) >= was, "{line}\nbefore\n{after}");
        compared += 1;
    }
    assert_eq!(compared, 11, "{before}");
}

#[test]
fn a_job_has_its_streams_and_their_bytes_also_when_they_have_ended() {
    let grid = Grid::start();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    cross(&near, &far, &pattern(1, 300_000));
    cross(&far, &near, &pattern(2, 20_000));
    let job_at = |site| {
        let job = grid.status(site).jobs.remove(0);
        (
            job.name,
            job.weight,
            job.streams,
            job.sent_bytes,
            job.received_bytes,
        )
    };
    assert_eq!(job_at(1), ("test".to_owned(), 1, 1, 300_000, 20_000));
    assert_eq!(job_at(2), ("test".to_owned(), 1, 1, 20_000, 300_000));
    drop((near, far));
    wait_for("the end of the stream", || {
        (1..=2).all(|site| grid.status(site).streams == 0)
    });
    assert_eq!(job_at(1), ("test".to_owned(), 1, 0, 300_000, 20_000));
    assert_eq!(job_at(2), ("test".to_owned(), 1, 0, 20_000, 300_000));
}
