//! Segmentation offload with real devices: the two kernels' counts agree with what the link says it carried,
//! and the bytes are intact. Skips like `wan_tests`.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};

use super::testbed::{End, OpenTun, Testbed};
use super::tun::{open_tun, open_tun_without_offload};
use super::wan_tests::permitted;
use super::{LinkSpec, LinkStats};

/// How long a read may wait before the test fails.
const DEADLINE: Duration = Duration::from_secs(30);

/// More than Linux lets one connection have in flight, so that slow start loses nothing.
fn clean() -> LinkSpec {
    LinkSpec {
        rtt: Duration::from_millis(4),
        rate_bits_per_second: 1_000_000_000,
        queue_bytes: 64 << 20,
        loss: 0.0,
        seed: 3,
        up: true,
    }
}

/// `Protocol.Counter` of a namespace, from /proc/net/snmp and /proc/net/netstat.
fn counters(end: &End) -> HashMap<String, u64> {
    let text = end.namespace.inside(|| {
        let snmp = std::fs::read_to_string("/proc/thread-self/net/snmp")?;
        Ok(snmp + &std::fs::read_to_string("/proc/thread-self/net/netstat")?)
    });
    let text = text.unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    let named = lines.chunks_exact(2).flat_map(|pair| {
        let protocol = pair[0][0].trim_end_matches(':').to_owned();
        let values = pair[0].iter().zip(&pair[1]).skip(1);
        values.filter_map(move |(name, value)| Some((format!("{protocol}.{name}"), value.parse().ok()?)))
    });
    named.collect()
}

/// Byte number `at` of what is sent: the period does not divide a segment, so that swapped segments are
/// noticed.
fn pattern(at: usize) -> u8 {
    (at % 65_521 % 251) as u8
}

/// Sends `bytes` over TCP from the left end to the right one, and checks what arrives.
fn transfer(testbed: &Testbed, bytes: usize) {
    let [from, to] = &testbed.ends;
    let listener = to
        .namespace
        .inside(|| TcpListener::bind((to.address, 0)))
        .unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let (mut stream, _) = listener.accept()?;
            stream.set_read_timeout(Some(DEADLINE))?;
            let mut all = Vec::with_capacity(bytes);
            stream.read_to_end(&mut all)?;
            stream.write_all(b"whole")?;
            Ok::<_, io::Error>(all)
        });
        let sender = from.namespace.inside(|| {
            let mut stream = TcpStream::connect_timeout(&address, DEADLINE)?;
            stream.set_read_timeout(Some(DEADLINE))?;
            let data: Vec<u8> = (0..bytes).map(pattern).collect();
            stream.write_all(&data)?;
            stream.shutdown(std::net::Shutdown::Write)?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).map(|_| answer)
        });
        let received = receiver.join().unwrap().unwrap();
        assert_eq!(received.len(), bytes);
        let wrong = received
            .iter()
            .enumerate()
            .find(|&(at, &byte)| byte != pattern(at));
        assert_eq!(wrong, None, "place and byte of the first difference");
        assert_eq!(sender.unwrap(), "whole");
    });
}

/// The counters of the two directions, once everything that was offered is through.
fn stats_when_quiet(testbed: &Testbed) -> [LinkStats; 2] {
    let deadline = std::time::Instant::now() + DEADLINE;
    loop {
        let stats: [LinkStats; 2] = testbed.wan.stats().try_into().unwrap();
        if stats.iter().all(|way| way.in_flight == 0) {
            return stats;
        }
        assert!(
            std::time::Instant::now() < deadline,
            "in flight after {DEADLINE:?}: {stats:?}"
        );
        std::thread::yield_now();
    }
}

fn with_devices(spec: &LinkSpec, open: [OpenTun; 2]) -> Option<Testbed> {
    permitted(Testbed::with_devices(spec, open))
}

#[test]
fn the_link_carries_the_segments_the_sender_counts_and_the_receiver_misses_none() {
    let Some(testbed) = with_devices(&clean(), [open_tun, open_tun]) else {
        return;
    };
    transfer(&testbed, 10_000_000);
    let [sender, receiver] = [0, 1].map(|end| counters(&testbed.ends[end]));
    let [out, home] = stats_when_quiet(&testbed);
    // Read before the link settled: a last ACK may be missing here, but there is never one too many.
    let [sent, answered] = [&sender, &receiver].map(|end| end["Tcp.OutSegs"]);
    assert!(
        sent <= out.offered_packets && out.offered_packets <= sent + 2,
        "{sent} {out:?}"
    );
    assert!(answered <= home.offered_packets && home.offered_packets <= answered + 2);
    assert!(out.packets >= 10_000_000 / 1448, "{out:?}");
    for way in [&out, &home] {
        assert_eq!(way.packets, way.offered_packets, "{way:?}");
        assert_eq!(way.reordered, 0, "{way:?}");
    }
    for counted in [&sender, &receiver] {
        assert_eq!(
            (
                counted["TcpExt.TCPOFOQueue"],
                counted["Tcp.InErrs"],
                counted["Tcp.InCsumErrors"]
            ),
            (0, 0, 0)
        );
    }
    // The purpose of it: fewer deliveries than segments.
    assert!(receiver["Ip.InReceives"] < out.packets, "{out:?}");
}

#[test]
fn devices_without_offload_headers_carry_the_same() {
    for open in [
        [open_tun_without_offload as OpenTun, open_tun_without_offload],
        [open_tun, open_tun_without_offload],
    ] {
        let Some(testbed) = with_devices(&clean(), open) else {
            return;
        };
        transfer(&testbed, 5_000_000);
        let [out, home] = stats_when_quiet(&testbed);
        let receiver = counters(&testbed.ends[1]);
        assert_eq!(
            (out.packets, home.packets),
            (out.offered_packets, home.offered_packets)
        );
        assert_eq!((receiver["TcpExt.TCPOFOQueue"], receiver["Tcp.InErrs"]), (0, 0));
        // Each segment was delivered on its own.
        assert!(receiver["Ip.InReceives"] >= 5_000_000 / 1448, "{receiver:?}");
    }
}

#[test]
fn segments_lost_within_a_super_segment_are_sent_again_and_the_bytes_are_whole() {
    let spec = LinkSpec {
        loss: 0.01,
        ..clean()
    };
    let Some(testbed) = with_devices(&spec, [open_tun, open_tun]) else {
        return;
    };
    transfer(&testbed, 5_000_000);
    let [out, _] = stats_when_quiet(&testbed);
    let [sender, receiver] = [0, 1].map(|end| counters(&testbed.ends[end]));
    assert!(
        out.dropped_by_loss > 0 && sender["Tcp.RetransSegs"] > 0,
        "{out:?}"
    );
    assert_eq!((receiver["Tcp.InErrs"], receiver["Tcp.InCsumErrors"]), (0, 0));
}

#[test]
fn datagrams_cross_alone_and_as_segments_of_one_send() {
    let Some(testbed) = with_devices(&clean(), [open_tun, open_tun]) else {
        return;
    };
    let [from, to] = &testbed.ends;
    let receiver = to.namespace.inside(|| UdpSocket::bind((to.address, 0))).unwrap();
    receiver.set_read_timeout(Some(DEADLINE)).unwrap();
    let target: SocketAddr = receiver.local_addr().unwrap();
    let data: Vec<u8> = (0..9 * 1200 + 7).map(pattern).collect();
    let sent = from.namespace.inside(|| {
        let socket = UdpSocket::bind((from.address, 0))?;
        for datagram in data.chunks(1200) {
            socket.send_to(datagram, target)?;
        }
        setsockopt(&socket, sockopt::UdpGsoSegment, &1200)?;
        socket.send_to(&data, target)
    });
    assert_eq!(sent.unwrap(), data.len());
    for expected in data.chunks(1200).chain(data.chunks(1200)) {
        let mut datagram = [0; 2000];
        let bytes = receiver.recv(&mut datagram).unwrap();
        assert_eq!(&datagram[..bytes], expected);
    }
    let counted = counters(to);
    assert_eq!((counted["Udp.InErrors"], counted["Udp.InCsumErrors"]), (0, 0));
    let [out, _] = stats_when_quiet(&testbed);
    assert_eq!((out.packets, out.bytes), (20, 2 * (data.len() as u64 + 10 * 28)));
}
