//! A node whose addresses another site has, too: its program sees and uses virtual ones, and its kernel the
//! real ones.

use crate::support::*;
use causeway_wire::Token;
use causeway_wire::question::Question;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;

const CONNECTED: &[u8] = &[1, 0, 0, 0];

const AT_HOME: &str = r#"
HOME, AWAY, REAL = "100.64.1.1", "100.64.2.1", "10.1.0.1"
def raw_own(s):
    "the kernel's own word, past the C library"
    buffer, length = ctypes.create_string_buffer(28), ctypes.c_uint32(28)
    number = 204 if os.uname().machine == "aarch64" else 51
    assert libc.syscall(number, s.fileno(), buffer, ctypes.byref(length)) == 0
    return socket.inet_ntoa(buffer.raw[4:8])
"#;

fn passes_in_overlap(node: &Node, program: &str) -> String {
    passes(
        node.python(&format!("{AT_HOME}{program}"))
            .env("CAUSEWAY_GRID", GRID_OVERLAP),
    )
}

#[test]
fn a_process_asks_the_gateways_where_it_is_and_connects_in_virtual_addresses() {
    on_a_node(|node| {
        let prefaces = answering_gateway(GATEWAY, CONNECTED);
        passes_in_overlap(
            node,
            r#"
s = tcp(); s.bind((HOME, 0)); s.connect((AWAY, 1234))
assert s.getpeername() == (AWAY, 1234)
assert s.getsockname()[0] == HOME and raw_own(s) == REAL
s.sendall(b"ping"); assert s.recv(4) == b"ping"
"#,
        );
        let (preface, _) = prefaces.recv().unwrap();
        assert_eq!(preface.source.ip().to_string(), "100.64.1.1");
        assert_eq!(preface.destination, "100.64.2.1:1234".parse().unwrap());
    });
}

#[test]
fn neighbours_of_the_own_site_meet_directly_and_show_each_other_virtual_addresses() {
    on_a_node(|node| {
        let _prefaces = answering_gateway(GATEWAY, CONNECTED);
        passes_in_overlap(
            node,
            r#"
for listens, calls in [(HOME, HOME), ("0.0.0.0", HOME), (REAL, HOME), (HOME, REAL)]:
    server = listening((listens, 0)); port = server.getsockname()[1]
    assert server.getsockname()[0] == ("0.0.0.0" if listens == "0.0.0.0" else HOME)
    for blocking in (True, False):
        s = tcp(); s.bind((HOME, 0)); s.setblocking(blocking)
        error = s.connect_ex((calls, port)); assert error in (0, errno.EINPROGRESS)
        taken, peer = server.accept()
        select.select([], [s], [], 5)
        assert peer == s.getsockname() and peer[0] == HOME, peer
        assert taken.getpeername() == peer and taken.getsockname() == s.getpeername() == (HOME, port)
server = listening(("::", 0), socket.AF_INET6)
for to in ("fdca:1::1", "::ffff:" + HOME):
    s = tcp(socket.AF_INET6); s.connect((to, server.getsockname()[1]))
    taken, peer = server.accept()
    assert s.getpeername()[0] == to and peer[:2] == s.getsockname()[:2], (s.getpeername(), peer, s.getsockname())
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind((HOME, 0)); assert udp.getsockname()[0] == HOME
"#,
        );
    });
}

#[test]
fn what_is_delivered_from_elsewhere_shows_its_virtual_source() {
    on_a_node(|node| {
        let _prefaces = answering_gateway(GATEWAY, CONNECTED);
        passes_in_overlap(
            node,
            r#"
server = listening((HOME, 0))
for source in (AWAY, "10.3.0.1"):
    client = tcp(); client.bind(("10.1.0.253", next(delivery_ports))); client.connect((REAL, server.getsockname()[1]))
    client.sendall(preface(source=(source, 77), destination=(HOME, server.getsockname()[1])) + b"hello")
    taken, peer = server.accept()
    assert peer == (source, 77) == taken.getpeername() and taken.getsockname()[0] == HOME, peer
    assert taken.recv(5) == b"hello"
"#,
        );
    });
}

#[test]
fn interfaces_have_virtual_addresses() {
    on_a_node(|node| {
        let _prefaces = answering_gateway(GATEWAY, CONNECTED);
        passes_in_overlap(
            node,
            &format!(
                "{LISTS}{}",
                r#"
v4 = {(b"lo", "127.0.0.1"), (b"site0", "100.64.1.1"), (b"site0", "100.64.1.253")}
v6 = {(b"lo", "::1"), (b"site0", "fdca:1::1"), (b"site0", "fdca:1::fd")}
for i in range(3): assert by_getifaddrs() == v4 | v6, by_getifaddrs()
assert by_ioctl() == v4, by_ioctl()
own = ctypes.create_string_buffer(64)
libc.causeway_own_address(own, ctypes.c_size_t(64))
assert own.value == HOME.encode(), own.value
assert address_of(b"site0") == HOME and address_of(b"lo") == "127.0.0.1"
"#
            ),
        );
    });
}

#[test]
fn a_site_with_an_mpi_of_its_own_sees_real_addresses_and_reaches_others_by_virtual_ones() {
    on_a_node(|node| {
        let prefaces = answering_gateway(GATEWAY, CONNECTED);
        let program = format!(
            "{AT_HOME}{LISTS}{}",
            r#"
assert (b"site0", REAL) in by_getifaddrs() and (b"other0", "192.168.7.1") in by_getifaddrs()
assert address_of(b"site0") == REAL
own = ctypes.create_string_buffer(64)
libc.causeway_own_address(own, ctypes.c_size_t(64))
assert own.value == HOME.encode(), own.value
for calls in (REAL, HOME):
    server = listening((HOME, 0))
    s = tcp(); s.connect((calls, server.getsockname()[1]))
    taken, peer = server.accept()
    assert peer == taken.getpeername() == s.getsockname() and peer[0] == REAL, peer
    assert taken.getsockname() == s.getpeername() and s.getpeername()[0] == REAL
s = tcp(); s.bind((HOME, 0)); s.connect((AWAY, 1234))
assert s.getpeername() == (AWAY, 1234)
client = tcp(); client.bind(("10.1.0.253", next(delivery_ports))); client.connect((REAL, server.getsockname()[1]))
client.sendall(preface(source=(AWAY, 77), destination=(HOME, server.getsockname()[1])) + b"hello")
taken, peer = server.accept()
assert peer == (AWAY, 77) == taken.getpeername() and taken.recv(5) == b"hello", peer
"#
        );
        let mut python = node.python(&program);
        passes(
            python
                .env("CAUSEWAY_GRID", GRID_OVERLAP)
                .env("CAUSEWAY_WORLD", "2,rennes,100.64.1.253:4000"),
        );
        let (preface, _) = prefaces.recv().unwrap();
        assert_eq!(preface.source.ip().to_string(), "100.64.1.1");
    });
}

/// The address of nancy's gateway, at nancy; here it may be any host.
const NANCYS_GATEWAY: &str = "10.1.0.252:7000";

const CONNECTS_FROM_RENNES: &str = r#"
s = tcp(); s.connect((AWAY, 1234))
assert s.getpeername() == (AWAY, 1234) and s.getsockname()[0] == HOME, s.getsockname()
"#;

/// Checks that a process does not believe a host at the address of nancy's gateway, which says this before
/// the own gateway answers.
fn is_told_first_and_not_believed(node: &Node, says: impl Fn(&Question) -> Vec<u8> + Clone + Send + 'static) {
    add_address("10.1.0.252/24");
    let heard = Arc::new(Barrier::new(2));
    let told = Arc::clone(&heard);
    let impostor = move |stream: &mut TcpStream, question: &Question| {
        let _ = stream.write_all(&says(question));
        // The process closes the connection if it does not believe what it reads.
        let _ = stream.read_to_end(&mut Vec::new());
        told.wait();
    };
    let _impostor = asked_gateway(NANCYS_GATEWAY, impostor, |_| ());
    let late = move |stream: &mut TcpStream, question: &Question| {
        heard.wait();
        answer_as_rennes(stream, question);
    };
    let prefaces = asked_gateway(GATEWAY, late, answering(CONNECTED));
    passes_in_overlap(node, CONNECTS_FROM_RENNES);
    assert_eq!(prefaces.recv().unwrap().0.source.ip().to_string(), "100.64.1.1");
}

#[test]
fn a_host_that_claims_to_be_another_sites_gateway_is_not_believed_without_the_token() {
    on_a_node(|node| {
        is_told_first_and_not_believed(node, |question| question.answer(&Token([0; 16]), "nancy"));
    });
}

#[test]
fn where_two_sites_prove_themselves_neither_is_believed() {
    on_a_node(|node| {
        add_address("10.1.0.252/24");
        let as_nancy = |stream: &mut TcpStream, question: &Question| {
            let _ = stream.write_all(&question.answer(&TOKEN, "nancy"));
        };
        let _impostor = asked_gateway(NANCYS_GATEWAY, as_nancy, |_| ());
        let _prefaces = asked_gateway(GATEWAY, answer_as_rennes, answering(CONNECTED));
        passes_in_overlap(
            node,
            r#"
s = tcp()
try: s.connect((AWAY, 1234))
except OSError: pass
else: raise AssertionError("connected")
"#,
        );
    });
}

#[test]
fn a_process_that_its_gateway_started_knows_its_site_and_asks_nobody() {
    on_a_node(|node| {
        add_address("10.1.0.252/24");
        let as_nancy = |stream: &mut TcpStream, question: &Question| {
            let _ = stream.write_all(&question.answer(&TOKEN, "nancy"));
        };
        let _impostor = asked_gateway(NANCYS_GATEWAY, as_nancy, |_| ());
        let (sender, questions) = std::sync::mpsc::channel();
        let on_question = move |stream: &mut TcpStream, question: &Question| {
            let _ = sender.send(*question);
            answer_as_rennes(stream, question);
        };
        let prefaces = asked_gateway(GATEWAY, on_question, answering(CONNECTED));
        let mut python = node.python(&format!("{AT_HOME}{CONNECTS_FROM_RENNES}"));
        python.env("CAUSEWAY_GRID", GRID_OVERLAP);
        passes(python.env("CAUSEWAY_SITE", "rennes"));
        assert_eq!(prefaces.recv().unwrap().0.source.ip().to_string(), "100.64.1.1");
        assert!(questions.try_recv().is_err());
    });
}

#[test]
fn a_site_that_has_not_the_nodes_addresses_is_not_believed_to_be_its_own() {
    on_a_node(|node| {
        let prefaces = answering_gateway(GATEWAY, CONNECTED);
        let mut python = node.python(&format!("{AT_HOME}{CONNECTS_FROM_RENNES}"));
        python.env("CAUSEWAY_GRID", GRID_OVERLAP);
        passes(python.env("CAUSEWAY_SITE", "lyon"));
        assert_eq!(prefaces.recv().unwrap().0.source.ip().to_string(), "100.64.1.1");
    });
}

#[test]
fn an_answer_to_another_question_is_not_believed() {
    on_a_node(|node| {
        is_told_first_and_not_believed(node, |_| Question::new(&TOKEN, [0; 16]).answer(&TOKEN, "nancy"));
    });
}

#[test]
fn garbage_is_no_answer() {
    on_a_node(|node| is_told_first_and_not_believed(node, |_| vec![0x5A; 4096]));
}

#[test]
fn no_question_is_like_another() {
    on_a_node(|node| {
        let (sender, questions) = std::sync::mpsc::channel();
        let on_question = move |stream: &mut TcpStream, question: &Question| {
            let _ = sender.send(*question);
            answer_as_rennes(stream, question);
        };
        let _prefaces = asked_gateway(GATEWAY, on_question, answering(CONNECTED));
        for _ in 0..2 {
            passes_in_overlap(node, CONNECTS_FROM_RENNES);
        }
        assert_ne!(questions.recv().unwrap(), questions.recv().unwrap());
    });
}

#[test]
fn a_host_that_never_answers_keeps_nobody_from_hearing_the_own_gateway() {
    on_a_node(|node| {
        add_address("10.1.0.252/24");
        let _silent = TcpListener::bind(NANCYS_GATEWAY).unwrap();
        let _prefaces = answering_gateway(GATEWAY, CONNECTED);
        passes_in_overlap(node, CONNECTS_FROM_RENNES);
    });
}

#[test]
fn an_answer_for_a_site_whose_gateway_is_elsewhere_is_none() {
    on_a_node(|node| {
        let passes_on = |stream: &mut TcpStream, question: &Question| {
            let _ = stream.write_all(&question.answer(&TOKEN, "nancy"));
        };
        let _prefaces = asked_gateway(GATEWAY, passes_on, |_| ());
        let stderr = passes_in_overlap(node, "assert tcp().connect_ex((AWAY, 1)) == errno.ENETUNREACH");
        assert!(stderr.contains("none of their gateways"), "{stderr}");
    });
}

#[test]
fn where_no_gateway_says_whose_the_node_is_virtual_addresses_fail_at_once_and_others_stay_native() {
    on_a_node(|node| {
        let stderr = passes_in_overlap(
            node,
            r#"
for i in range(3):
    server = listening((REAL, 0)); s = tcp(); s.connect(server.getsockname()); assert s.getpeername()[0] == REAL
    for blocking, to in itertools.product((True, False), (HOME, AWAY)):
        s = tcp(); s.setblocking(blocking); assert s.connect_ex((to, 1234)) == errno.ENETUNREACH
    s = tcp(socket.AF_INET6); assert s.connect_ex(("fdca:2::1", 1234)) == errno.ENETUNREACH
"#,
        );
        assert_eq!(lines_of_the_shim(&stderr), 1, "{stderr}");
        for part in [
            "may be at any of nancy, rennes",
            "10.1.0.253:7000",
            "connections to virtual addresses fail",
        ] {
            assert!(stderr.contains(part), "{part}: {stderr}");
        }
    });
}

/// Opens a port on loopback. Whoever connects to it gets a byte once the gateway is running.
fn gateway_on_demand() -> (u16, JoinHandle<Prefaces>) {
    let starter = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = starter.local_addr().unwrap().port();
    let started = std::thread::spawn(move || {
        let (mut process, _) = starter.accept().unwrap();
        let prefaces = answering_gateway(GATEWAY, CONNECTED);
        process.write_all(b"!").unwrap();
        prefaces
    });
    (port, started)
}

#[test]
fn what_a_gateway_delivers_makes_a_process_ask_again_at_once() {
    on_a_node(|node| {
        let (port, started) = gateway_on_demand();
        passes_in_overlap(
            node,
            &format!(
                r#"
server = listening((REAL, 0)); assert server.getsockname()[0] == REAL
start = tcp(); start.connect(("127.0.0.1", {port})); assert start.recv(1) == b"!"
client = from_gateway(server); client.sendall(preface(source=(AWAY, 77), destination=(HOME, server.getsockname()[1])) + b"hello")
taken, peer = server.accept()
assert peer == (AWAY, 77) and taken.recv(5) == b"hello", peer
"#
            ),
        );
        let _prefaces = started.join().unwrap();
    });
}

#[test]
fn a_process_finds_its_site_when_the_gateway_comes_up_later() {
    on_a_node(|node| {
        let (port, started) = gateway_on_demand();
        let stderr = passes_in_overlap(
            node,
            &format!(
                r#"
assert tcp().connect_ex((AWAY, 1234)) == errno.ENETUNREACH
start = tcp(); start.connect(("127.0.0.1", {port})); assert start.recv(1) == b"!"
def attempt():
    s = tcp(); return s.connect_ex((AWAY, 1234)), s
while (outcome := attempt())[0] == errno.ENETUNREACH: time.sleep(0.01)
error, s = outcome; assert error == 0, os.strerror(error)
assert s.getpeername() == (AWAY, 1234) and s.getsockname()[0] == HOME
child = os.fork()
if child == 0: os._exit(0 if attempt()[0] == 0 else 1)
assert os.waitpid(child, 0)[1] == 0
"#
            ),
        );
        assert_eq!(lines_of_the_shim(&stderr), 1, "{stderr}");
        let (preface, _) = started.join().unwrap().recv().unwrap();
        assert_eq!(preface.source.ip().to_string(), "100.64.1.1");
    });
}

#[test]
fn names_of_local_and_loopback_sockets_ask_no_gateway() {
    on_a_node(|node| {
        let stderr = passes_in_overlap(
            node,
            r#"
one, other = socket.socketpair(); one.getsockname(); other.getpeername()
unix = socket.socket(socket.AF_UNIX); unix.bind("\0here"); unix.listen(1); assert unix.getsockname() == b"\0here"
s = socket.socket(socket.AF_UNIX); s.connect("\0here"); unix.accept()[0].getpeername(); assert s.getpeername() == b"\0here"
for family, any, loopback in [(socket.AF_INET, "0.0.0.0", "127.0.0.1"), (socket.AF_INET6, "::", "::1"),
        (socket.AF_INET6, "::", "::ffff:127.0.0.1")]:
    assert tcp(family).getsockname()[0] == any
    for at in (any, loopback):
        server = listening((at, 0), family); port = server.getsockname()[1]
        s = tcp(family); s.connect((loopback, port)); taken, peer = server.accept()
        assert peer == s.getsockname() == taken.getpeername() and s.getpeername() == taken.getsockname()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind(("", 0)); udp.getsockname()
"#,
        );
        assert_eq!(lines_of_the_shim(&stderr), 0, "{stderr}");
    });
}
