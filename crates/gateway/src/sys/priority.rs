//! How the gateway asks the kernel to run it soon after it wakes.
//!
//! MPI ranks busy-wait, and a head node may run some. A process that wakes beside them then waits for the end
//! of a time slice: with one rank for every core, the median one-way time of 1 B rose from 6.1 to 7.3 ms. A
//! gateway works for microseconds at a time, so it can offer short slices in return for an early turn.
#![allow(unsafe_code)]

use std::time::Duration;

/// The shortest slice that Linux allows (sched_setattr(2), `sched_runtime` of SCHED_OTHER from kernel 6.12
/// on; earlier kernels ignore it).
const SLICE: Duration = Duration::from_micros(100);

/// `struct sched_attr` of include/uapi/linux/sched/types.h, first version.
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Processes that the gateway starts have the usual slices (SCHED_FLAG_RESET_ON_FORK).
const RESET_ON_FORK: u64 = 1;

/// Asks for the shortest slices. This needs no privilege; if it is refused, only time is lost. A gateway that
/// was started with another policy, as by `chrt --rr 1`, keeps that.
pub(crate) fn ask_for_short_slices() {
    // SAFETY: no memory is involved; 0 names the calling thread.
    if unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK != libc::SCHED_OTHER {
        return;
    }
    let attr = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        flags: RESET_ON_FORK,
        // SAFETY: no memory is involved; 0 names the calling thread.
        nice: unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) },
        runtime: SLICE.as_nanos() as u64,
        ..SchedAttr::default()
    };
    // SAFETY: the call reads `size` bytes of the structure, which outlives it; 0 names the calling thread.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
}

/// Takes over the policy of the process that this one was forked from. Whoever started that one may have
/// asked the kernel to reset the policy in children, but meant the programs that the gateway starts. An
/// ordinary user needs RLIMIT_RTPRIO for this; without it, the worker has the usual policy.
pub(crate) fn follow(parent: nix::unistd::Pid) {
    let mut param = libc::sched_param { sched_priority: 0 };
    // SAFETY: the call writes no more than the structure, which outlives it.
    let found = unsafe { libc::sched_getparam(parent.as_raw(), &raw mut param) };
    // SAFETY: no memory is involved.
    let policy = unsafe { libc::sched_getscheduler(parent.as_raw()) };
    if found == 0 && policy >= 0 && policy & !libc::SCHED_RESET_ON_FORK != libc::SCHED_OTHER {
        // SAFETY: the call reads the structure, which outlives it; 0 names the calling thread.
        let _ = unsafe { libc::sched_setscheduler(0, policy, &raw const param) };
    }
}
