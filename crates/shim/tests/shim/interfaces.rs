//! Which addresses a program sees on a node with two networks.

use crate::support::*;

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
fn a_program_of_a_site_with_an_mpi_of_its_own_sees_everything_and_is_told_its_address_in_the_grid() {
    on_a_node(|node| {
        let mut python = node.python(&format!(
            "{LISTS}{}",
            r#"
assert (b"other0", "192.168.7.1") in by_getifaddrs() and (b"other0", "fd00:7::1") in by_getifaddrs()
assert (b"other0", "192.168.7.1") in by_ioctl() and address_of(b"other0") == "192.168.7.1"
own = ctypes.create_string_buffer(64)
libc.causeway_own_address(own, ctypes.c_size_t(64))
assert own.value == b"10.1.0.1", own.value
libc.causeway_own_address(own, ctypes.c_size_t(3))
assert own.value == b"10", own.value
"#
        ));
        passes(python.env("CAUSEWAY_WORLD", "2,rennes,10.1.0.253:4000"));
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
