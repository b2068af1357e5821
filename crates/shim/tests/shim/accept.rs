//! accept() and getpeername() in real programs with the real library, on connections made the way a gateway
//! makes them: from its address and ports, with the preface first.

use crate::support::*;

#[test]
fn a_delivered_connection_shows_its_true_source_and_starts_with_the_applications_bytes() {
    on_a_node(|node| {
        node.passes(
            r#"
for family, at, gateway, source in (
    (socket.AF_INET, "10.1.0.1", "10.1.0.253", ("10.2.0.9", 12345)),
    (socket.AF_INET6, "fd00:1::1", "fd00:1::fd", ("fd00:2::9", 12345)),
):
    server = listening((at, 0), family)
    gw = from_gateway(server, gateway, family)
    gw.sendall(preface(source) + b"first")
    s, peer = server.accept()
    assert peer[:2] == source and s.getpeername()[:2] == source, (peer, s.getpeername())
    assert s.getsockname() == server.getsockname()
    assert s.recv(100) == b"first"
    answered(gw)
    s.sendall(b"back"); assert gw.recv(4, socket.MSG_WAITALL) == b"back"
"#,
        );
    });
}

#[test]
fn an_ipv6_listener_shows_ipv4_sources_mapped() {
    on_a_node(|node| {
        node.passes(
            r#"
server = listening(("::", 0), socket.AF_INET6); port = server.getsockname()[1]
gw = tcp(); gw.bind(("10.1.0.253", 20001)); gw.connect(("10.1.0.1", port)); gw.sendall(preface(destination=("10.1.0.1", port)))
s, peer = server.accept()
assert peer == ("::ffff:10.2.0.9", 12345, 0, 0) == s.getpeername(), peer
assert s.getsockname()[0] == "::ffff:10.1.0.1"
# Open MPI passes a buffer for IPv4: what fits is written, the length is the full one.
bytes_, length = raw_peer(s.fileno(), 16)
assert length == 28 and bytes_[16:17] == b"\xee" and bytes_[2:4] == struct.pack(">H", 12345)
bytes_, length = raw_peer(s.fileno(), 0)
assert length == 28 and bytes_[0:1] == b"\xee"
bytes_, length = raw_peer(s.fileno(), 64)
assert length == 28 and bytes_[20:24] == bytes([10, 2, 0, 9]) and bytes_[28:29] == b"\xee"
"#,
        );
    });
}

#[test]
fn accept_truncates_as_the_kernel_does_and_takes_null_for_the_address() {
    on_a_node(|node| {
        node.passes(
            r#"
server = listening()
for room in (0, 7, 16, 64, None):
    gw = from_gateway(server); gw.sendall(preface() + b"!")
    buffer, length = ctypes.create_string_buffer(b"\xee" * 64, 64), ctypes.c_uint32(room or 0)
    fd = libc.accept(server.fileno(), None, None) if room is None else \
        libc.accept(server.fileno(), buffer, ctypes.byref(length))
    s = socket.socket(fileno=fd); assert s.recv(9) == b"!" and s.getpeername() == ("10.2.0.9", 12345)
    if room is not None:
        assert length.value == 16, length.value
        whole = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(12345), bytes([10, 2, 0, 9]))
        assert buffer.raw[:room] == (whole + b"\xee" * 64)[:room] and buffer.raw[min(room, 16):][:1] == b"\xee"
# The same of connections that are native.
client = tcp(); client.connect(server.getsockname())
buffer, length = ctypes.create_string_buffer(b"\xee" * 64, 64), ctypes.c_uint32(7)
fd = libc.accept4(server.fileno(), buffer, ctypes.byref(length), 0)
assert length.value == 16 and buffer.raw[7:8] == b"\xee" and buffer.raw[4:7] == bytes([10, 1, 0])
unix = socket.socket(socket.AF_UNIX); unix.bind("\0causeway-accept"); unix.listen()
client = socket.socket(socket.AF_UNIX); client.connect("\0causeway-accept"); s, peer = unix.accept()
assert s.getpeername() == peer == ""
"#,
        );
    });
}

#[test]
fn a_preface_in_pieces_is_put_together() {
    on_a_node(|node| {
        node.passes(
            r#"
server = listening()
for size in (1, 11, 12, 16, 50):
    gw = from_gateway(server); gw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    whole = preface() + b"app"
    def send():
        for at in range(0, len(whole), size): gw.sendall(whole[at:at + size]); time.sleep(0.002)
    thread = threading.Thread(target=send); thread.start()
    s, peer = server.accept(); thread.join()
    assert peer == ("10.2.0.9", 12345), (size, peer)
    assert s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1
    answered(gw)
    assert s.recv(3, socket.MSG_WAITALL) == b"app"
"#,
        );
    });
}

#[test]
fn another_program_on_the_gateways_host_is_native_to_the_last_byte() {
    on_a_node(|node| {
        let stderr = node.passes(
            r#"
server = listening()
for greeting in (b"H", b"GET / HTTP/1.0\r\n\r\n", b"\r\n\r\n\0\r\nQUIX" + bytes(60)):
    client = from_gateway(server); client.sendall(greeting)
    s, peer = server.accept()
    assert peer == client.getsockname() == s.getpeername()
    assert s.recv(100) == greeting
# From a port that no delivery comes from, a preface is the application's own business.
client = tcp(); client.bind(("10.1.0.253", 0)); client.connect(server.getsockname())
whole = preface(); client.sendall(whole); s, peer = server.accept()
assert peer == client.getsockname() and s.recv(100) == whole
"#,
        );
        assert_eq!(stderr, "");
    });
}

#[test]
fn a_delivery_for_another_job_is_closed_and_the_next_one_accepted() {
    on_a_node(|node| {
        let stderr = node.passes(
            r#"
server = listening()
broken = bytearray(preface()); broken[12] = 0x31
# Not a process's own either, sent back to it.
for bad in (preface(token=b"x" * 16), bytes(broken), preface(("fd00:2::9", 1), ("fd00:1::1", 1)), preface(sender=b"P")):
    intruder = from_gateway(server); intruder.sendall(bad)
    good = from_gateway(server); good.sendall(preface())
    s, peer = server.accept()
    assert peer == ("10.2.0.9", 12345)
    try: assert intruder.recv(1) == b""
    except ConnectionResetError: pass
    server.setblocking(False)
    intruder = from_gateway(server); intruder.sendall(bad)
    select.select([server], [], [], 10)
    try: server.accept(); assert False
    except BlockingIOError: pass
    server.setblocking(True)
# One that gave up before its preface is nobody's fault.
server.setblocking(False); gone = from_gateway(server); gone.close(); good = from_gateway(server); good.sendall(preface())
assert server.accept()[1] == ("10.2.0.9", 12345)
"#,
        );
        assert_eq!(lines_of_the_shim(&stderr), 1, "{stderr}");
        assert!(stderr.contains("its token is that of another job"), "{stderr}");
    });
}

#[test]
fn a_preface_that_somebody_else_was_sent_and_passes_on_gets_no_answer() {
    on_a_node(|node| {
        let stderr = node.passes(
            r#"
# Who listens where a process has ended is delivered to in its place.
false, server = listening(), listening()
delivery = from_gateway(false); whole = preface(); delivery.sendall(whole + b"for the process that has ended")
taken = socket.socket(fileno=libc.syscall(288, false.fileno(), None, None, 0)); assert taken.recv(len(whole)) == whole
for blocks in (True, False):
    passed_on = from_gateway(server); passed_on.sendall(whole); select.select([server], [], [], 10)
    server.setblocking(blocks)
    try: server.accept(); assert False
    except (ConnectionAbortedError, BlockingIOError): pass
    try: assert passed_on.recv(8) == b""
    except ConnectionResetError: pass
"#,
        );
        assert_eq!(lines_of_the_shim(&stderr), 1, "{stderr}");
        assert!(stderr.contains("somebody has passed it on"), "{stderr}");
    });
}

#[test]
fn where_sites_have_their_own_mpis_only_ranks_take_connections_of_other_sites() {
    on_a_node(|node| {
        let stderr = node.passes(
            r#"
os.environ["CAUSEWAY_WORLD"] = "2,rennes,10.1.0.253:4000"
# A launcher, say, or a daemon.
server = listening(); gw = from_gateway(server); gw.sendall(preface() + b"start this"); select.select([server], [], [], 10)
try: server.accept(); assert False
except ConnectionAbortedError: pass
try: assert gw.recv(1) == b""
except ConnectionResetError: pass
# What the library of a world asks for once it is to be a rank.
libc.causeway_own_address(ctypes.create_string_buffer(64), ctypes.c_size_t(64))
gw = from_gateway(server); gw.sendall(preface() + b"HELLO"); s, peer = server.accept(); answered(gw)
assert peer == ("10.2.0.9", 12345) and s.recv(5) == b"HELLO"
"#,
        );
        assert_eq!(lines_of_the_shim(&stderr), 1, "{stderr}");
        assert!(stderr.contains("only ranks accept those"), "{stderr}");
    });
}

#[test]
fn silent_connections_from_the_gateways_host_hold_nobody_up() {
    on_a_node(|node| {
        let stderr = node.passes(
            r#"
def nothing(server):
    try: server.accept(); assert False
    except BlockingIOError: pass
server = listening(); server.setblocking(False)
silent = []
for _ in range(100):
    silent.append(from_gateway(server)); nothing(server)
# Each call is over at once, whoever is silent, and what is real comes through.
for _ in range(5):
    nothing(server)
    gw = from_gateway(server); gw.sendall(preface() + b"real")
    select.select([server], [], [], 10)
    s, peer = server.accept(); answered(gw)
    assert peer == ("10.2.0.9", 12345) and s.recv(4) == b"real"
# The oldest went when there were too many. One that speaks after all is heard, without a new connection, and
# has the flags of the call that hands it out.
assert silent[0].recv(1) == b"" and silent[35].recv(1) == b""
late = silent[99]; late.sendall(preface() + b"late")
fd = libc.accept4(server.fileno(), None, None, socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC); answered(late)
assert fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK and fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
assert os.read(fd, 4) == b"late" and libc.getpeername(fd, ctypes.create_string_buffer(64), ctypes.byref(ctypes.c_uint32(64))) == 0
# A native greeting, after a while, is native.
native = silent[98]; native.sendall(b"HELO"); s, peer = server.accept()
assert peer == native.getsockname() and s.recv(4) == b"HELO"
nothing(server)
"#,
        );
        assert_eq!(stderr, "");
    });
}

#[test]
fn a_call_that_blocks_waits_ever_less_for_silent_ones_and_gets_them_as_natively() {
    on_a_node(|node| {
        let stderr = node.passes(
            r#"
server = listening()
# A preface that comes in pieces, and later than its connection, is waited for.
one = from_gateway(server); whole = preface()
def speak(): one.sendall(whole[:30]); time.sleep(0.05); one.sendall(whole[30:])
speaking = threading.Thread(target=speak); speaking.start()
assert server.accept()[1] == ("10.2.0.9", 12345); speaking.join(); answered(one)
# Each silent one that follows is waited for half as long as the last, and handed out: a program that has looked
# at the listener first does not wait for a connection that may never come.
silent = [from_gateway(server) for _ in range(20)]
for client in silent:
    s, peer = server.accept()
    assert peer == client.getsockname() == s.getpeername()
    client.sendall(b"x"); assert s.recv(1) == b"x"
# So is one that has ended.
gone = from_gateway(server); gone.close(); s, peer = server.accept(); assert s.recv(1) == b""
# What is refused is closed. The call says so, unless there is another one to hand out.
bad = from_gateway(server); bad.sendall(preface(token=b"x" * 16))
select.select([server], [], [], 10)
try: server.accept(); assert False
except ConnectionAbortedError: pass
bad = from_gateway(server); bad.sendall(preface(token=b"x" * 16))
good = from_gateway(server); good.sendall(preface())
assert server.accept()[1] == ("10.2.0.9", 12345)
"#,
        );
        assert_eq!(lines_of_the_shim(&stderr), 1, "{stderr}");
    });
}

#[test]
fn a_child_of_fork_hands_out_nothing_that_its_parent_has_set_aside() {
    on_a_node(|node| {
        node.passes(
            r#"
server = listening(); server.setblocking(False)
silent = from_gateway(server)
def nothing():
    try: server.accept(); os._exit(1)
    except BlockingIOError: pass
nothing()
silent.sendall(preface())
child = os.fork()
if child == 0: nothing(); os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert server.accept()[1] == ("10.2.0.9", 12345); answered(silent)
"#,
        );
    });
}

#[test]
fn flags_and_timeouts_of_the_accepted_socket_are_those_asked_for() {
    on_a_node(|node| {
        node.passes(
            r#"
server = listening()
timeout = struct.pack("ll", 3, 0)
server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout)
for flags in (0, socket.SOCK_NONBLOCK, socket.SOCK_CLOEXEC, socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC):
    for delivered in (True, False):
        client = from_gateway(server) if delivered else tcp()
        client.sendall(preface()) if delivered else client.connect(server.getsockname())
        fd = libc.accept4(server.fileno(), None, None, flags)
        assert bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK) == bool(flags & socket.SOCK_NONBLOCK)
        assert bool(fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC) == bool(flags & socket.SOCK_CLOEXEC)
        s = socket.socket(fileno=fd)
        assert s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16) == timeout
"#,
        );
    });
}

#[test]
fn a_connection_that_is_gone_has_no_peer() {
    on_a_node(|node| {
        node.passes(
            r#"
server = listening(); gw = from_gateway(server); gw.sendall(preface()); s, peer = server.accept()
gw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); gw.close()
select.select([s], [], [], 10)
try: s.getpeername(); assert False
except OSError as e: assert e.errno == errno.ENOTCONN
"#,
        );
    });
}

#[test]
fn a_thread_blocked_in_accept_can_be_cancelled() {
    on_a_node(|node| {
        let program = node.compiled("cancelled", include_str!("programs/cancelled.c"));
        passes(&mut node.preloaded(&program));
    });
}
