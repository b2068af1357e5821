//! A node whose addresses another site has too: its program sees and uses virtual ones, its kernel the real ones.

mod support;

use support::*;

const CONNECTED: &[u8] = &[1, 0, 0, 0];

const AT_HOME: &str = r#"
HOME, AWAY, REAL = "100.64.1.1", "100.64.2.1", "10.1.0.1"
def raw_own(s):
    "the kernel's own word, past the C library"
    buffer, length = ctypes.create_string_buffer(28), ctypes.c_uint32(28)
    assert libc.syscall(51, s.fileno(), buffer, ctypes.byref(length)) == 0
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
    client.sendall(preface(source=(source, 77), destination=(HOME, 5000)) + b"hello")
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
assert address_of(b"site0") == HOME and address_of(b"lo") == "127.0.0.1"
"#
            ),
        );
    });
}

#[test]
fn where_no_gateway_says_whose_the_node_is_everything_stays_native_and_one_line_says_why() {
    on_a_node(|node| {
        let stderr = passes_in_overlap(
            node,
            r#"
for i in range(3):
    server = listening((REAL, 0)); s = tcp(); s.connect(server.getsockname()); assert s.getpeername()[0] == REAL
"#,
        );
        assert_eq!(lines_of_the_shim(&stderr), 1, "{stderr}");
        assert!(
            stderr.contains("may be at any of nancy, rennes") && stderr.contains("10.1.0.253:7000"),
            "{stderr}"
        );
    });
}
