//! What crosses two real gateways: bytes, ends, resets, and what happens to connections that cannot be made.

use crate::common::{Grid, accept, cross, pattern, wait_for};
use causeway_wire::{Reason, Verdict, Wants};
use socket2::SockRef;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

#[test]
fn bytes_cross_both_ways_whatever_their_number() {
    let grid = Grid::start();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    for length in [1, 1000, 100_000, 20_000_000] {
        for (mut from, mut to) in [(&near, &far), (&far, &near)] {
            let bytes = pattern(length, length);
            let mut got = vec![0; length];
            std::thread::scope(|scope| {
                scope.spawn(|| from.write_all(&bytes).unwrap());
                to.read_exact(&mut got).unwrap();
            });
            assert!(got == bytes, "{length} bytes");
        }
    }
}

#[test]
fn one_half_ends_and_the_other_goes_on() {
    let grid = Grid::start();
    let listener = grid.listen();
    let (mut near, mut far) = grid.pair(&listener);
    near.write_all(b"question").unwrap();
    near.shutdown(Shutdown::Write).unwrap();
    let mut got = Vec::new();
    far.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"question");
    far.write_all(b"answer").unwrap();
    drop(far);
    got.clear();
    near.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"answer");
    wait_for("the end of the stream at both gateways", || {
        [1, 2].iter().all(|site| grid.status(*site).streams == 0)
    });
}

#[test]
fn bytes_sent_right_before_the_end_all_arrive() {
    let grid = Grid::start();
    let listener = grid.listen();
    for round in 0..20 {
        let (mut near, mut far) = grid.pair(&listener);
        let bytes = pattern(round, 300_000);
        let mut got = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                near.write_all(&bytes).unwrap();
                near.shutdown(Shutdown::Both).unwrap();
            });
            far.read_to_end(&mut got).unwrap();
        });
        assert!(got == bytes);
    }
}

#[test]
fn a_reset_crosses_as_a_reset() {
    let grid = Grid::start();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    reset(near);
    assert_eq!(read_error(far), Some(ErrorKind::ConnectionReset));
    let (near, far) = grid.pair(&listener);
    reset(far);
    assert_eq!(read_error(near), Some(ErrorKind::ConnectionReset));
}

#[test]
fn bytes_sent_right_before_a_reset_arrive_before_it() {
    let grid = Grid::start();
    let listener = grid.listen();
    for round in 0..40 {
        let (near, far) = grid.pair(&listener);
        let (mut from, mut to) = if round % 2 == 0 { (near, far) } else { (far, near) };
        let bytes = pattern(round, 1000);
        from.write_all(&bytes).unwrap();
        reset(from);
        let mut got = vec![0; bytes.len()];
        let read = to.read_exact(&mut got);
        assert!(read.is_ok(), "round {round}: {read:?}");
        assert_eq!(got, bytes);
        assert_eq!(read_error(to), Some(ErrorKind::ConnectionReset));
    }
    wait_for("the end of the streams at both gateways", || {
        [1, 2].iter().all(|site| grid.status(*site).streams == 0)
    });
}

#[test]
fn a_blocking_connect_learns_why_it_failed() {
    let grid = Grid::start();
    let listener = grid.listen();
    let closed = listener.local_addr().unwrap();
    drop(listener);
    assert_eq!(
        grid.connect(closed).unwrap_err(),
        Verdict::Failed(Reason::Refused)
    );
    let system_port = grid.address(2, 1, 22);
    assert_eq!(
        grid.connect(system_port).unwrap_err(),
        Verdict::Failed(Reason::Denied)
    );
    assert_eq!(grid.status(2).refused["system-port"], 1);
}

/// Opens a connection whose process is told the verdict beside its stream; returns it and the verdict.
fn told_beside(grid: &Grid, destination: SocketAddr) -> (TcpStream, Option<Verdict>) {
    let stream = grid.dial();
    let mut preface = grid.preface(&stream, destination, false);
    preface.wants = Wants::UrgentCode;
    assert_eq!(crate::common::introduce(&stream, &preface), None);
    let mut code = [std::mem::MaybeUninit::new(255)];
    wait_for("the verdict as urgent data", || {
        let count = SockRef::from(&stream).recv_out_of_band(&mut code);
        count.is_ok_and(|count| count == 1)
    });
    // SAFETY: it was initialised.
    let code = unsafe { code[0].assume_init() };
    (stream, Verdict::from_code(code))
}

#[test]
fn a_verdict_stands_beside_the_stream_of_a_process_that_asks_so() {
    let grid = Grid::start();
    let listener = grid.listen();
    let open = listener.local_addr().unwrap();
    let (near, verdict) = told_beside(&grid, open);
    assert_eq!(verdict, Some(Verdict::Connected));
    let (far, _) = accept(&listener, &grid.token);
    cross(&near, &far, b"to the far side");
    cross(&far, &near, b"and back");
    drop(listener);
    let (mut refused, verdict) = told_beside(&grid, open);
    assert_eq!(verdict, Some(Verdict::Failed(Reason::Refused)));
    // A process that goes on regardless does not find an orderly end.
    refused.write_all(b"as if connected").unwrap();
    assert_eq!(
        refused.read(&mut [0]).unwrap_err().kind(),
        ErrorKind::ConnectionReset
    );
    let system_port = grid.address(2, 1, 22);
    let (_, verdict) = told_beside(&grid, system_port);
    assert_eq!(verdict, Some(Verdict::Failed(Reason::Denied)));
}

#[test]
fn urgent_data_of_a_process_arrives_in_the_stream() {
    let grid = Grid::start();
    let listener = grid.listen();
    let (mut near, mut far) = grid.pair(&listener);
    near.write_all(b"abc").unwrap();
    SockRef::from(&near).send_out_of_band(b"!").unwrap();
    near.write_all(b"def").unwrap();
    let mut read = [0; 7];
    far.read_exact(&mut read).unwrap();
    assert_eq!(&read, b"abc!def");
}

#[test]
fn a_non_blocking_connect_learns_of_a_refusal_by_a_reset() {
    let grid = Grid::start();
    let listener = grid.listen();
    let closed = listener.local_addr().unwrap();
    drop(listener);
    let near = grid.dial();
    let preface = grid.preface(&near, closed, false);
    assert_eq!(crate::common::introduce(&near, &preface), None);
    assert_eq!(read_error(near), Some(ErrorKind::ConnectionReset));
}

#[test]
fn a_reader_that_stops_does_not_stop_the_others() {
    let grid = Grid::start();
    let listener = grid.listen();
    let (mut stuck_near, mut stuck_far) = grid.pair(&listener);
    stuck_near.set_nonblocking(true).unwrap();
    let mut sent = Vec::new();
    let mut writes = 0;
    // Until the sender has to wait, too: its window and all buffers on the path are full.
    let mut still = 0;
    while still < 200 {
        // A different pattern each time, so that a piece that is lost or sent twice is noticed.
        let chunk = pattern(writes, 65536);
        match stuck_near.write(&chunk) {
            Ok(count) => {
                sent.extend_from_slice(&chunk[..count]);
                (writes, still) = (writes + 1, 0);
            }
            Err(_) => {
                still += 1;
                grid.status(1);
            }
        }
    }
    let (mut near, mut far) = grid.pair(&listener);
    let bytes = pattern(1, 5_000_000);
    let mut got = vec![0; bytes.len()];
    std::thread::scope(|scope| {
        scope.spawn(|| near.write_all(&bytes).unwrap());
        far.read_exact(&mut got).unwrap();
    });
    assert!(got == bytes);
    let mut rest = vec![0; sent.len()];
    stuck_far.read_exact(&mut rest).unwrap();
    assert!(rest == sent);
}

#[test]
fn the_end_of_a_job_ends_its_streams_and_its_token() {
    let mut grid = Grid::start();
    let listener = grid.listen();
    let (near, far) = grid.pair(&listener);
    grid.end_job();
    assert!(read_error(near).is_some());
    assert!(read_error(far).is_some());
    wait_for("the far gateway to forget the job", || {
        grid.status(2).jobs.is_empty()
    });
    let refused = grid.connect(listener.local_addr().unwrap());
    assert_eq!(refused.unwrap_err(), Verdict::Failed(Reason::Denied));
}

#[test]
fn thousands_of_streams_are_open_at_once_and_each_carries_its_own_bytes() {
    const STREAMS: usize = 1500;
    let grid = Grid::start();
    let listener = grid.listen();
    let mut pairs: Vec<_> = (0..STREAMS).map(|_| grid.pair(&listener)).collect();
    for (index, (near, far)) in pairs.iter_mut().enumerate() {
        near.write_all(&pattern(index, 500)).unwrap();
        far.write_all(&pattern(index + STREAMS, 500)).unwrap();
    }
    for (index, (near, far)) in pairs.iter_mut().enumerate() {
        let mut got = [0; 500];
        far.read_exact(&mut got).unwrap();
        assert_eq!(got[..], pattern(index, 500));
        near.read_exact(&mut got).unwrap();
        assert_eq!(got[..], pattern(index + STREAMS, 500));
    }
    assert_eq!(grid.status(1).streams, STREAMS);
    drop(pairs);
    wait_for("all streams to end", || {
        [1, 2].iter().all(|site| grid.status(*site).streams == 0)
    });
}

fn reset(stream: TcpStream) {
    socket2::SockRef::from(&stream)
        .set_linger(Some(std::time::Duration::ZERO))
        .unwrap();
}

/// The error that ends reading; `None` if the stream ends in order.
fn read_error(mut stream: TcpStream) -> Option<ErrorKind> {
    stream
        .read_to_end(&mut Vec::new())
        .err()
        .map(|error| error.kind())
}
