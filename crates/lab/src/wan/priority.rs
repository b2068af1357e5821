//! Asks the kernel to run the emulator's thread on time, and other threads that emulate separate hardware.
//! Reports what they cost.
//!
//! A lab's MPI ranks busy-wait on every core. Without a better priority, a packet that is due waits for the
//! end of their time slice (3-4 ms), which is of the same order as the emulated round trip.

use std::time::Duration;

use nix::sys::prctl::set_timerslack;
use nix::time::{ClockId, clock_gettime};

/// What the kernel granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// SCHED_RR at its lowest level: runs before every ordinary process.
    RealTime,
    /// An ordinary thread with nice -20.
    Nice,
    /// Nothing, as for an ordinary user: round trips are late whenever all cores are busy.
    Ordinary,
}

/// Raises the priority of the calling thread as far as permitted, and makes its timers fire on time.
pub(crate) fn raise() -> Priority {
    // The default slack of 50 us would be a quarter of the permitted error. This cannot fail with a positive
    // value.
    let _ = set_timerslack(1);
    // The lowest real-time level suffices: nothing in a lab competes there.
    let level = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_RR | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the call reads one sched_param, which outlives it; 0 names the calling thread.
    if unsafe { libc::sched_setscheduler(0, policy, &level) } == 0 {
        return Priority::RealTime;
    }
    // SAFETY: no memory is involved; on Linux, 0 names only the calling thread.
    if unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) } == 0 {
        return Priority::Nice;
    }
    Priority::Ordinary
}

/// CPU time of the calling thread so far. This includes the receiving side's network stack up to the next
/// queue, which the kernel runs within a write to a TUN device.
pub(crate) fn thread_cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .map(Duration::from)
        .unwrap_or_default()
}
