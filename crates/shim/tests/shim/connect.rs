//! connect() in real programs with the real library, to a gateway that the test controls.

use crate::support::*;
use causeway_wire::preface::Decoded;
use causeway_wire::{Preface, Reason, Verdict, Wants};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::channel;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(10);
const CONNECTED: &[u8] = &[1, 0, 0, 0];

#[test]
fn a_blocking_connect_sends_the_preface_and_hears_the_verdict() {
    on_a_node(|node| {
        let prefaces = answering_gateway(GATEWAY, &[1, 0, 0, 0, b'h', b'i']);
        node.passes(
            r#"
s = tcp(); s.connect(REMOTE)
assert s.getpeername() == REMOTE, s.getpeername()
assert s.getsockname()[0] == "10.1.0.1"
assert s.recv(2) == b"hi"
s.sendall(b"ping"); assert s.recv(4, socket.MSG_WAITALL) == b"ping"
assert fcntl.fcntl(s, fcntl.F_GETFL) & os.O_NONBLOCK == 0
assert s.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, 16) == bytes(16)
"#,
        );
        let (preface, raw) = prefaces.recv_timeout(SOON).expect("the preface");
        assert!(preface.wants == Wants::Verdict && preface.token == TOKEN);
        assert_eq!(preface.source.ip().to_string(), "10.1.0.1");
        assert_eq!(preface.destination.to_string(), "10.2.0.1:1234");
        let mut expected = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x29\x0a\x01\0\x01\x0a\x02\0\x01".to_vec();
        expected.extend(preface.source.port().to_be_bytes());
        expected.extend(b"\x04\xd2\xe0\0\x1a\x02\x01");
        assert!(raw.starts_with(&expected) && raw.len() == 57, "{raw:?}");
        // The token is not sent to whoever listens there.
        assert!(!raw.windows(4).any(|part| TOKEN.0.windows(4).any(|of| of == part)));
    });
}

#[test]
fn a_nonblocking_connect_is_told_of_its_outcome_where_it_asks() {
    on_a_node(|node| {
        let prefaces = gateway(GATEWAY, |intake| {
            let port = intake.preface.destination.port();
            let verdict = Reason::from_code(port as u8).map_or(Verdict::Connected, Verdict::Failed);
            urgent(&intake.stream, verdict.code());
            echo(intake.stream);
        });
        node.passes(
            r#"
def begun(port):
    s = tcp(); s.setblocking(False)
    assert s.connect_ex(("10.2.0.1", port)) == errno.EINPROGRESS
    poll = select.poll(); poll.register(s, select.POLLOUT); assert poll.poll(10000)
    return s
def error_of(s): return s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
s = begun(1234)
assert error_of(s) == 0 and error_of(s) == 0
assert s.getpeername() == REMOTE
assert fcntl.fcntl(s, fcntl.F_GETFL) & os.O_NONBLOCK
assert s.connect_ex(REMOTE) == errno.EISCONN
s.sendall(b"ping"); select.select([s], [], [], 10); assert s.recv(4) == b"ping"
s = begun(1234)
assert s.connect_ex(REMOTE) == 0 and s.connect_ex(REMOTE) == errno.EISCONN
# Who does not ask reads its own data alone.
s = begun(1234); s.sendall(b"ping"); select.select([s], [], [], 10); assert s.recv(100) == b"ping"
assert error_of(s) == 0
copy = begun(1234); s = copy.dup(); assert error_of(s) == 0 and error_of(copy) == 0
for code, name in (1, "ECONNREFUSED"), (2, "EHOSTUNREACH"), (3, "ETIMEDOUT"):
    s = begun(code); assert error_of(s) == getattr(errno, name); assert error_of(s) == 0
    try: s.getpeername(); assert False
    except OSError as e: assert e.errno == errno.ENOTCONN
    s = begun(code); assert s.connect_ex(("10.2.0.1", code)) == getattr(errno, name)
    # It can try again.
    assert s.connect_ex(REMOTE) == errno.EINPROGRESS and error_of(s) == 0
    s = begun(code)
    try: s.getpeername(); assert False
    except OSError as e: assert e.errno == errno.ENOTCONN
try: socket.create_connection(("10.2.0.1", 1), timeout=10); assert False
except ConnectionRefusedError: pass
import asyncio
async def refused():
    try: await asyncio.open_connection("10.2.0.1", 1); assert False
    except ConnectionRefusedError: pass
    reader, writer = await asyncio.open_connection("10.2.0.1", 1234)
    writer.write(b"x" * 100000); assert await reader.readexactly(100000) == b"x" * 100000; writer.close()
asyncio.run(refused())
"#,
        );
        let (preface, _) = prefaces.recv_timeout(SOON).expect("the preface");
        assert_eq!(preface.wants, Wants::UrgentCode);
    });
}

#[test]
fn an_mpis_nonblocking_connect_is_done_at_once_and_asks_for_no_verdict() {
    on_a_node(|node| {
        let prefaces = answering_gateway(GATEWAY, b"never sent");
        // A library whose name begins like an MPI's.
        let source = "#include <sys/socket.h>\n\
            int own_connect(int fd, void *to, unsigned length) { return connect(fd, to, length) ? -1 : 1; }\n";
        let library = node.shared_library("libmpi_like.so", source);
        node.passes(&format!(
            r#"
mpi = ctypes.CDLL("{}", use_errno=True)
s = tcp(); s.setblocking(False)
to = struct.pack("=H", socket.AF_INET) + struct.pack(">H4s8x", REMOTE[1], socket.inet_aton(REMOTE[0]))
assert mpi.own_connect(s.fileno(), to, len(to)) == 1, os.strerror(ctypes.get_errno())
assert s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
assert s.getpeername() == REMOTE
s.sendall(b"ping"); select.select([s], [], [], 10); assert s.recv(4) == b"ping"
t = tcp(); t.setblocking(False); t.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
assert t.connect_ex(REMOTE) == 0
"#,
            library.display()
        ));
        for _ in 0..2 {
            let (preface, _) = prefaces.recv_timeout(SOON).expect("the preface");
            assert_eq!(preface.wants, Wants::Nothing);
        }
    });
}

#[test]
fn every_failing_verdict_has_its_errno_and_the_socket_can_try_again() {
    on_a_node(|node| {
        use Reason::*;
        let _prefaces = gateway(GATEWAY, |mut intake| {
            // The port that is requested is the number of the reason; port 100 connects.
            let reason = Reason::from_code(intake.preface.destination.port() as u8);
            let verdict = reason.map_or(Verdict::Connected, Verdict::Failed);
            intake
                .stream
                .write_all(&verdict.encode())
                .expect("the shim reads");
            if reason.is_none() {
                let _ = intake.stream.read(&mut [0]);
            }
        });
        let expected = [
            (Refused, "ECONNREFUSED", false),
            (Unreachable, "EHOSTUNREACH", false),
            (TimedOut, "ETIMEDOUT", false),
            (Denied, "EACCES", true),
            (NoTunnel, "ENETUNREACH", true),
            (Exhausted, "ECONNREFUSED", true),
            (Reset, "ECONNRESET", false),
            (Protocol, "EPROTO", true),
        ];
        for (reason, errno, tells) in expected {
            let stderr = node.passes(&format!(
                r#"
s = tcp(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("10.1.0.1", 3333))
for attempt in range(2):
    got = s.connect_ex(("10.2.0.1", {}))
    assert got == errno.{errno}, errno.errorcode.get(got)
    try: s.getpeername(); assert False
    except OSError as e: assert e.errno == errno.ENOTCONN
s.connect(("10.2.0.1", 100))
assert s.getpeername() == ("10.2.0.1", 100) and s.getsockname() == ("10.1.0.1", 3333)
"#,
                reason as u8
            ));
            assert_eq!(
                lines_of_the_shim(&stderr),
                usize::from(tells),
                "{reason:?}: {stderr}"
            );
        }
    });
}

#[test]
fn a_gateway_that_closes_or_talks_nonsense_is_a_refusal_with_a_line() {
    on_a_node(|node| {
        let _prefaces = gateway(GATEWAY, |mut intake| {
            if intake.preface.destination.port() == 1 {
                let _ = intake.stream.write_all(b"HTTP");
                let _ = intake.stream.read(&mut [0]);
            }
        });
        for port in [1, 2] {
            let stderr = node.passes(&format!(
                "for i in range(3): assert tcp().connect_ex(('10.2.0.1', {port})) == errno.ECONNREFUSED"
            ));
            assert_eq!(lines_of_the_shim(&stderr), 1, "{stderr}");
            assert!(
                stderr.contains("gateway of site rennes at 10.1.0.253:7000: it "),
                "{stderr}"
            );
        }
    });
}

#[test]
fn what_listens_in_the_gateways_place_and_does_not_know_the_job_gets_nothing_of_the_stream() {
    on_a_node(|node| {
        let listener = TcpListener::bind(GATEWAY).unwrap();
        let (sender, heard) = channel();
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                // The peer sends back what it gets, or what a gateway would say to a client that believes it.
                let mut bytes = vec![0; 1000];
                let length = stream.read(&mut bytes).unwrap();
                let _ = match number % 2 {
                    0 => stream.write_all(&[&[0; 8], CONNECTED].concat()),
                    _ => stream.write_all(&bytes[..length]),
                };
                bytes.truncate(length);
                let _ = stream.read_to_end(&mut bytes);
                sender.send(bytes).unwrap();
            }
        });
        let stderr = node.passes(
            r#"
for way in ("blocks", "does not"):
    for i in range(2):
        s = tcp(); s.setblocking(way == "blocks")
        assert s.connect_ex(REMOTE) == errno.ECONNREFUSED, way
        try: s.send(b"secret"); assert False
        except (BrokenPipeError, OSError): pass
"#,
        );
        assert_eq!(lines_of_the_shim(&stderr), 1, "{stderr}");
        assert!(
            stderr.contains("what listens there does not know this job"),
            "{stderr}"
        );
        for _ in 0..4 {
            let bytes = heard.recv_timeout(SOON).unwrap();
            assert!(
                matches!(Preface::decode(&bytes), Ok(Decoded::Complete { length, .. }) if length == bytes.len())
            );
        }
    });
}

#[test]
fn a_gateway_that_is_down_is_a_refusal_with_one_line() {
    on_a_node(|node| {
        let stderr = node.passes(
            r#"
for blocking in (True, False, True):
    s = tcp(); s.setblocking(blocking)
    assert s.connect_ex(REMOTE) == errno.ECONNREFUSED
    assert s.connect_ex(REMOTE) == errno.ECONNREFUSED
"#,
        );
        let line = "causeway: gateway of site rennes at 10.1.0.253:7000: connection refused; \
                    is 'causeway gateway' running there?\n";
        assert_eq!(stderr, line);
    });
}

#[test]
fn a_gateway_that_does_not_answer_is_a_refusal_within_a_deadline() {
    on_a_node(|node| {
        // Nobody has 10.1.0.77: the kernel asks the LAN for it, for three seconds.
        let mut command = node.python(
            r#"
for blocking in (True, False):
    s = tcp(); s.setblocking(blocking)
    assert s.connect_ex(REMOTE) == errno.ECONNREFUSED
    assert s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    assert s.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, 16) == bytes(16)
elsewhere = tcp(); elsewhere.bind(("127.0.0.1", 0)); assert elsewhere.connect_ex(REMOTE) == errno.EINVAL
"#,
        );
        let stderr = passes(command.env("CAUSEWAY_GRID", GRID.replace("10.1.0.253", "10.1.0.77")));
        assert_eq!(lines_of_the_shim(&stderr), 1, "{stderr}");
        assert!(
            stderr.contains("10.1.0.77:7000: no answer within 1 s"),
            "{stderr}"
        );
    });
}

#[test]
fn ipv6_and_mapped_destinations_keep_their_form() {
    on_a_node(|node| {
        let v6 = answering_gateway(GATEWAY_V6, CONNECTED);
        let v4 = answering_gateway(GATEWAY, CONNECTED);
        node.passes(
            r#"
for blocking in (True, False):
    for to in (REMOTE6, MAPPED):
        s = tcp(socket.AF_INET6); s.setblocking(blocking)
        assert s.connect_ex(to) == (0 if blocking else errno.EINPROGRESS)
        assert s.getpeername()[:2] == to, s.getpeername()
only = tcp(socket.AF_INET6); only.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
assert only.connect_ex(MAPPED) == errno.ENETUNREACH
only.connect(REMOTE6)
"#,
        );
        let preface = v6.recv_timeout(SOON).expect("by IPv6").0;
        assert!(
            preface.source.ip().to_string().starts_with("fd00:1::"),
            "{}",
            preface.source
        );
        assert_eq!(preface.destination, "[fd00:2::1]:1234".parse().unwrap());
        let preface = v4.recv_timeout(SOON).expect("by IPv4").0;
        assert_eq!(
            (preface.source.ip().to_string(), preface.destination.to_string()),
            ("10.1.0.1".to_owned(), "10.2.0.1:1234".to_owned())
        );
    });
}

#[test]
fn an_ipv6_destination_goes_through_an_ipv4_gateway_where_there_is_no_other() {
    on_a_node(|node| {
        let prefaces = answering_gateway(GATEWAY, CONNECTED);
        let mut command = node.python(
            r#"
s = tcp(socket.AF_INET6); s.connect(REMOTE6)
assert s.getpeername()[:2] == REMOTE6 and s.getsockname()[0] == "::ffff:10.1.0.1"
only = tcp(socket.AF_INET6); only.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
assert only.connect_ex(REMOTE6) == errno.ENETUNREACH
"#,
        );
        let stderr = passes(command.env("CAUSEWAY_GRID", GRID_V4_GATEWAYS));
        assert!(
            stderr.contains("no address that this socket can reach"),
            "{stderr}"
        );
        let preface = prefaces.recv_timeout(SOON).expect("the preface").0;
        assert_eq!(preface.source.ip().to_string(), "::ffff:10.1.0.1");
    });
}

#[test]
fn what_lies_in_a_network_of_the_node_is_no_other_sites_but_for_the_nodes_that_this_one_lists() {
    on_a_node(|node| {
        let _prefaces = gateway(GATEWAY, |intake| echo(intake.stream));
        // A neighbour in a network that is not the site's, and that nancy announces.
        let neighbour = TcpListener::bind("192.168.7.1:0").expect("the node's other network");
        let port = neighbour.local_addr().expect("bound").port();
        let wide = "1|rennes;10.1.0.0/24;10.1.0.253:7000;20000-32767\
                    |nancy;192.168.0.0/16,10.64.0.0/10;10.2.0.253:7000;20000-32767;192.168.7.9";
        // The site names a network in which no interface of the node is.
        let named = wide.replacen("32767|", "32767;;10.77.0.0/16|", 1);
        let through = |grid: &str, to: &str| {
            let mut python = node.python(&format!(
                "s = tcp(); s.setblocking(False); s.connect_ex((\"{to}\", {port}))"
            ));
            let python = python.env("CAUSEWAY_GRID", grid).env("CAUSEWAY_SHIM_DEBUG", "1");
            !passes(python).contains(&format!("connect {to}:{port}: native"))
        };
        for (grid, to, is_carried) in [
            (wide, "192.168.7.1", false),
            (wide, "192.168.7.9", true),
            (wide, "192.168.8.1", true),
            (wide, "10.77.0.5", true),
            (&named, "10.77.0.5", false),
            (&named, "10.78.0.5", true),
        ] {
            assert_eq!(through(grid, to), is_carried, "{to} in {grid}");
        }
        neighbour.set_nonblocking(true).expect("a listener");
        assert!(neighbour.accept().is_ok(), "the neighbour was reached natively");
    });
}

#[test]
fn what_is_not_for_another_site_stays_native() {
    on_a_node(|node| {
        // No gateway listens: whatever was redirected to it would fail, with a message.
        let stderr = node.passes(
            r#"
for address in (("127.0.0.1", 0), ("10.1.0.1", 0), ("192.168.7.1", 0)):
    server = listening(address); s = tcp(); s.connect(server.getsockname())
    assert s.getpeername() == server.getsockname()
    assert server.accept()[1] == s.getsockname()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
assert udp.connect_ex(REMOTE) == errno.ENETUNREACH
a, b = socket.socketpair(); a.sendall(b"x"); assert b.recv(1) == b"x"
server = socket.socket(socket.AF_UNIX); server.bind("\0causeway-test"); server.listen()
s = socket.socket(socket.AF_UNIX); s.connect("\0causeway-test"); server.accept()
assert tcp().connect_ex(("192.0.2.1", 1)) == errno.ENETUNREACH
assert socket.socket(socket.AF_INET6).connect_ex(("::1", 1)) == errno.ECONNREFUSED
"#,
        );
        assert_eq!(stderr, "");
    });
}

#[test]
fn the_kernels_own_errors_come_through() {
    on_a_node(|node| {
        let _prefaces = answering_gateway(GATEWAY, CONNECTED);
        node.passes(
            r#"
s = tcp(); s.connect(REMOTE); assert s.connect_ex(REMOTE) == errno.EISCONN
assert s.getpeername() == REMOTE, "a second connect does no harm"
native = tcp(); server = listening(); native.connect(server.getsockname())
assert native.connect_ex(REMOTE) == errno.EISCONN
assert native.getpeername() == server.getsockname()
pending = tcp(); pending.setblocking(False)
assert pending.connect_ex(("10.1.0.88", 1)) == errno.EINPROGRESS
assert pending.connect_ex(REMOTE) == errno.EALREADY
raw = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(1234), bytes([10, 2, 0, 1]))
assert libc.connect(999, raw, 16) == -1 and ctypes.get_errno() == errno.EBADF
v6, v4 = tcp(socket.AF_INET6), tcp()
assert libc.connect(v6.fileno(), raw, 16) == -1 and ctypes.get_errno() in (errno.EAFNOSUPPORT, errno.EINVAL)
assert libc.connect(v4.fileno(), raw, 3) == -1 and ctypes.get_errno() == errno.EINVAL
"#,
        );
    });
}

#[test]
fn a_dissolved_or_natively_reconnected_socket_is_no_longer_redirected() {
    on_a_node(|node| {
        let _prefaces = answering_gateway(GATEWAY, CONNECTED);
        node.passes(
            r#"
s = tcp(); s.connect(REMOTE)
assert libc.connect(s.fileno(), bytes(16), 16) == 0
try: s.getpeername(); assert False
except OSError as e: assert e.errno == errno.ENOTCONN
server = listening(); s.connect(server.getsockname())
assert s.getpeername() == server.getsockname()
"#,
        );
    });
}

#[test]
fn the_applications_send_timeout_bounds_the_wait_for_the_verdict() {
    on_a_node(|node| {
        let _prefaces = gateway(GATEWAY, |mut intake| {
            let _ = intake.stream.read(&mut [0]);
        });
        node.passes(
            r#"
s = tcp(); timeout = struct.pack("ll", 0, 200000)
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeout)
assert s.connect_ex(REMOTE) == errno.ETIMEDOUT
assert s.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, 16) == timeout
"#,
        );
    });
}

#[test]
fn a_signal_runs_its_handler_and_the_wait_for_the_verdict_goes_on() {
    on_a_node(|node| {
        // The verdict is sent once the handler has made its own connection.
        let (sender, receiver) = std::sync::mpsc::channel();
        let receiver = std::sync::Arc::new(std::sync::Mutex::new(receiver));
        let _prefaces = gateway(GATEWAY, move |mut intake| {
            if intake.preface.destination.port() == 1 {
                sender.send(()).expect("the other stream waits");
            } else {
                let signalled = receiver.lock().expect("one waiter").recv_timeout(SOON);
                signalled.expect("a connection from the signal handler within 10 s");
            }
            intake.stream.write_all(CONNECTED).expect("the shim reads");
            let _ = intake.stream.read(&mut [0]);
        });
        let source = node.compiled("signalled", include_str!("programs/signalled.c"));
        passes(&mut node.preloaded(&source));
    });
}
