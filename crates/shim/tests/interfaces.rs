//! Which addresses a program on a node with two networks sees.

mod support;

use support::*;

const LISTS: &str = r#"
class sockaddr(ctypes.Structure): _fields_ = [("family", ctypes.c_ushort), ("data", ctypes.c_ubyte * 26)]
class ifaddrs(ctypes.Structure): pass
ifaddrs._fields_ = [("next", ctypes.POINTER(ifaddrs)), ("name", ctypes.c_char_p), ("flags", ctypes.c_uint),
    ("addr", ctypes.POINTER(sockaddr))]
def by_getifaddrs():
    head, shown = ctypes.POINTER(ifaddrs)(), set()
    assert libc.getifaddrs(ctypes.byref(head)) == 0
    entry = head
    while entry:
        e = entry.contents
        if e.addr:
            data = bytes(e.addr.contents.data)
            if e.addr.contents.family == socket.AF_INET: shown.add((e.name, socket.inet_ntoa(data[2:6])))
            if e.addr.contents.family == socket.AF_INET6:
                shown.add((e.name, socket.inet_ntop(socket.AF_INET6, data[6:22])))
        entry = e.next
    libc.freeifaddrs.argtypes = [ctypes.c_void_p]
    libc.freeifaddrs(head)
    return shown
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def by_ioctl():
    buffer = array.array("B", bytes(4096))
    conf = bytearray(struct.pack("iP", len(buffer), buffer.buffer_info()[0]))
    fcntl.ioctl(udp, 0x8912, conf)
    length = struct.unpack("iP", conf)[0]
    entries = [bytes(buffer[at:at + 40]) for at in range(0, length, 40)]
    return {(e[:16].rstrip(b"\0"), socket.inet_ntoa(e[20:24])) for e in entries}
def address_of(name):
    return socket.inet_ntoa(fcntl.ioctl(udp, 0x8915, struct.pack("40s", name))[20:24])
"#;

#[test]
fn a_program_of_a_job_sees_loopback_and_the_site_only() {
    on_a_node(|node| {
        node.passes(&format!(
            "{LISTS}{}",
            r#"
v4 = {(b"lo", "127.0.0.1"), (b"site0", "10.1.0.1"), (b"site0", "10.1.0.253")}
v6 = {(b"lo", "::1"), (b"site0", "fd00:1::1"), (b"site0", "fd00:1::fd")}
for i in range(3): assert by_getifaddrs() == v4 | v6, by_getifaddrs()
assert by_ioctl() == v4, by_ioctl()
assert address_of(b"site0") == "10.1.0.1" and address_of(b"lo") == "127.0.0.1"
try: address_of(b"other0"); assert False
except OSError as e: assert e.errno == errno.EADDRNOTAVAIL
"#
        ));
    });
}

#[test]
fn an_interface_whose_first_address_is_elsewhere_shows_the_one_in_the_site() {
    on_a_node(|node| {
        node.passes(&format!(
            "{LISTS}{}",
            r#"
subprocess.run("ip addr del 10.1.0.1/24 dev site0; ip addr del 10.1.0.253/24 dev site0;"
    "ip addr add 10.1.0.5/24 dev other0", shell=True, check=True)
assert address_of(b"other0") == "10.1.0.5", address_of(b"other0")
assert by_ioctl() == {(b"lo", "127.0.0.1"), (b"other0", "10.1.0.5")}, by_ioctl()
"#
        ));
    });
}

#[test]
fn a_program_outside_a_job_sees_everything() {
    on_a_node(|node| {
        passes(&mut node.python_outside(&format!(
            "{LISTS}{}",
            r#"
assert (b"other0", "192.168.7.1") in by_getifaddrs() and (b"other0", "fd00:7::1") in by_getifaddrs()
assert (b"other0", "192.168.7.1") in by_ioctl() and address_of(b"other0") == "192.168.7.1"
"#
        )));
    });
}
