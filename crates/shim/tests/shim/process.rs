//! What processes do with descriptors and the environment: duplicating, forking, executing, many threads; and
//! programs that do not belong to a job.

use crate::support::*;

const CONNECTED: &[u8] = &[1, 0, 0, 0];

#[test]
fn every_duplicate_of_a_descriptor_has_the_true_peer() {
    on_a_node(|node| {
        let _prefaces = answering_gateway(GATEWAY, CONNECTED);
        node.passes(
            r#"
s = tcp(); s.connect(REMOTE); fd = s.fileno()
copies = [os.dup(fd), os.dup2(fd, 77), os.dup2(fd, 78, inheritable=False), libc.dup(fd), libc.dup3(fd, 300, 0),
    fcntl.fcntl(fd, fcntl.F_DUPFD, 500), fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 501), libc.fcntl(fd, 0, 502)]
s.close()
for copy in copies:
    assert copy > 2 and socket.socket(fileno=os.dup(copy)).getpeername() == REMOTE, copy
"#,
        );
    });
}

#[test]
fn a_descriptor_used_again_for_another_socket_is_not_mistaken() {
    on_a_node(|node| {
        let _prefaces = answering_gateway(GATEWAY, CONNECTED);
        node.passes(
            r#"
s = tcp(); s.connect(REMOTE); fd = s.fileno(); s.close()
server = listening(); os.dup2(server.fileno(), 99)
s = tcp(); s.connect(server.getsockname())
if s.fileno() != fd: os.dup2(s.fileno(), fd)
assert raw_peer(fd, 16)[0][4:8] == bytes([10, 1, 0, 1])
"#,
        );
    });
}

#[test]
fn a_program_keeps_the_shim_whatever_a_wrapper_does_to_its_environment() {
    on_a_node(|node| {
        let _prefaces = answering_gateway(GATEWAY, CONNECTED);
        node.passes(
            r#"
program = "import socket; s = socket.create_connection(('10.2.0.3', 8)); assert s.getpeername() == ('10.2.0.3', 8)"
words = [sys.executable, "-c", program]
library = next(entry for entry in open("/proc/self/maps").read().split() if entry.endswith("libz.so.1") or "/libm.so" in entry)
for wrapper in (
    ["/usr/bin/env", "-i"],
    ["/usr/bin/env", "-u", "LD_PRELOAD"],
    ["/usr/bin/env", "LD_PRELOAD=" + library],
    ["/bin/sh", "-c", 'unset LD_PRELOAD CAUSEWAY_GRID CAUSEWAY_TOKEN; exec "$@"', "sh"],
    ["/bin/sh", "-c", 'LD_PRELOAD=$0 "$@"', library],
    ["/usr/bin/nice"],
):
    subprocess.run([*wrapper, *words], check=True)
    # By way of vfork, posix_spawn and execve, with an environment of its own.
    subprocess.run([*wrapper, *words], check=True, env={})
    assert os.waitpid(os.posix_spawn(wrapper[0], [*wrapper, *words], {"LD_PRELOAD": ""}), 0)[1] == 0
many = {"V%d" % i: "x" * 100 for i in range(3000)}
subprocess.run(words, check=True, env=many)
"#,
        );
    });
}

#[test]
fn a_forked_child_knows_the_peers_and_an_executed_one_the_grid() {
    on_a_node(|node| {
        let _prefaces = answering_gateway(GATEWAY, CONNECTED);
        node.passes(
            r#"
s = tcp(); s.connect(REMOTE)
child = os.fork()
if child == 0:
    ok = s.getpeername() == REMOTE
    t = tcp(); t.connect(("10.2.0.2", 7)); ok = ok and t.getpeername() == ("10.2.0.2", 7)
    os._exit(0 if ok else 1)
assert os.waitpid(child, 0)[1] == 0
program = "import socket; s = socket.create_connection(('10.2.0.3', 8)); assert s.getpeername() == ('10.2.0.3', 8)"
subprocess.run(["/bin/sh", "-c", 'exec "$0" -c "$1"', sys.executable, program], check=True)
"#,
        );
    });
}

#[test]
fn a_parent_that_sets_the_group_of_a_child_that_is_in_it_succeeds_though_the_child_has_executed() {
    on_a_node(|node| {
        node.passes(
            r#"
# The group that this process was born into has no number in its namespace.
os.setpgid(0, 0)
executed, until = os.pipe()
child = os.fork()
if child == 0:
    os.setpgid(0, 0); os.execvp("sh", ["sh", "-c", "exec sleep 60 2>&- >&-"])
os.close(until); assert os.read(executed, 1) == b""
os.setpgid(child, child); os.setpgid(child, 0)
try: os.setpgid(child, os.getpgrp()); assert False, "moved"
except PermissionError: pass
os.kill(child, 9); assert os.getpgid(child) == child
"#,
        );
    });
}

#[test]
fn many_threads_connect_at_once() {
    on_a_node(|node| {
        let _prefaces = answering_gateway(GATEWAY, CONNECTED);
        node.passes(
            r#"
wrong = []
def work(thread):
    for i in range(100):
        to = ("10.2.%d.%d" % (0, thread + 1), i + 1)
        s = tcp(); s.setblocking(i % 2 == 0); s.connect_ex(to)
        if s.getpeername() != to: wrong.append((to, s.getpeername()))
        s.close()
threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
for t in threads: t.start()
for t in threads: t.join()
assert not wrong, wrong
"#,
        );
    });
}

#[test]
fn without_a_job_everything_is_native_and_silent() {
    on_a_node(|node| {
        let _prefaces = answering_gateway(GATEWAY, CONNECTED);
        let stderr = passes(&mut node.python_outside(
            r#"
assert tcp().connect_ex(REMOTE) == errno.ENETUNREACH
whole = preface()
server = listening(); gw = from_gateway(server); gw.sendall(whole); s, peer = server.accept()
assert peer == gw.getsockname() == s.getpeername() and s.recv(100) == whole
"#,
        ));
        assert_eq!(stderr, "");
    });
}

#[test]
fn a_process_whose_jobs_environment_is_of_no_use_says_so_and_ends_before_it_connects_anywhere() {
    on_a_node(|node| {
        let site = |number: u32| format!("|site-{number:0>58};10.9.0.0/24;10.9.0.253:7000;1-2");
        let too_long = format!("1{}", (0..1300).map(site).collect::<String>());
        assert!(too_long.len() < 128 * 1024 - "CAUSEWAY_GRID=".len());
        let cases: [(&str, &str, &str); 4] = [
            ("CAUSEWAY_GRID", "3|rennes", "CAUSEWAY_GRID: grid map version"),
            (
                "CAUSEWAY_GRID",
                "1|rennes;10.1.0.0/99;10.1.0.253:7000;1-2",
                "CAUSEWAY_GRID: ",
            ),
            ("CAUSEWAY_GRID", &too_long, "bytes is too long"),
            ("CAUSEWAY_TOKEN", "secret", "CAUSEWAY_TOKEN: a job token is"),
        ];
        for (name, value, expected) in cases {
            let mut command =
                node.python("print('begins', flush=True); tcp().connect_ex(REMOTE); print('goes on')");
            let output = command.env(name, value).output().unwrap();
            let (stdout, stderr) = (
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr),
            );
            assert_eq!(output.status.code(), Some(2), "{stderr}");
            assert_eq!(stdout, "begins\n", "{stderr}");
            assert_eq!(lines_of_the_shim(&stderr), 1, "{stderr}");
            assert!(stderr.contains(expected), "{stderr}");
            assert!(!stderr.contains("secret"), "a token must not be shown: {stderr}");
        }
    });
}

#[test]
fn a_node_of_no_site_is_told_once_and_its_connections_stay_native() {
    on_a_node(|node| {
        let mut command = node.python(
            "for i in range(3): assert tcp().connect_ex(REMOTE) == errno.ENETUNREACH\n\
             server = listening(); s = tcp(); s.connect(server.getsockname()); server.accept()",
        );
        let elsewhere = "1|lyon;10.9.0.0/24;10.9.0.253:7000;1-2";
        let stderr = passes(command.env("CAUSEWAY_GRID", elsewhere));
        assert_eq!(lines_of_the_shim(&stderr), 1, "{stderr}");
        assert!(
            stderr.contains("no address of this node lies in a site"),
            "{stderr}"
        );
    });
}

#[test]
fn debugging_tells_of_each_decision_on_stderr_only() {
    on_a_node(|node| {
        let _prefaces = answering_gateway(GATEWAY, CONNECTED);
        let mut command = node.python("s = tcp(); s.connect(REMOTE); print('the program')");
        let stderr = passes(command.env("CAUSEWAY_SHIM_DEBUG", "1"));
        assert!(
            stderr.contains("at site rennes") && stderr.contains("connect 10.2.0.1:1234"),
            "{stderr}"
        );
    });
}

#[test]
fn a_line_never_ends_up_in_a_network_socket_that_took_the_place_of_stderr() {
    on_a_node(|node| {
        node.passes(
            r#"
server = listening(); s = tcp(); s.connect(server.getsockname()); other, _ = server.accept()
saved = os.dup(2); os.dup2(s.fileno(), 2)
result = tcp().connect_ex(REMOTE)
os.dup2(saved, 2); s.close()
assert result == errno.ECONNREFUSED and other.recv(100) == b""
"#,
        );
    });
}
