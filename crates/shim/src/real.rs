//! The functions behind the hooks: each is the next definition in the search order, and is found on first
//! use.
//!
//! Their ABI is `C-unwind` because accept and connect are cancellation points: a cancelled thread unwinds
//! through the hook.

use libc::{c_char, c_int, c_ulong, c_void, pid_t, sockaddr, socklen_t};
use std::sync::atomic::{AtomicPtr, Ordering};

macro_rules! real {
    ($($name:ident: $type:ty;)*) => {$(
        /// The real function; `None` if no library that was loaded after this one defines it.
        pub fn $name() -> Option<$type> {
            static FOUND: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            let mut found = FOUND.load(Ordering::Relaxed);
            if found.is_null() {
                let name = concat!(stringify!($name), "\0");
                // SAFETY: the string ends in a zero byte; glibc allows RTLD_NEXT in any library.
                found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr().cast()) };
                FOUND.store(found, Ordering::Relaxed);
            }
            // SAFETY: the symbol of this name has this type in every C library for Linux; null becomes None.
            unsafe { std::mem::transmute::<*mut c_void, Option<$type>>(found) }
        }
    )*};
}

real! {
    connect: unsafe extern "C-unwind" fn(c_int, *const sockaddr, socklen_t) -> c_int;
    getsockopt: unsafe extern "C-unwind" fn(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int;
    accept4: unsafe extern "C-unwind" fn(c_int, *mut sockaddr, *mut socklen_t, c_int) -> c_int;
    accept: unsafe extern "C-unwind" fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int;
    bind: unsafe extern "C-unwind" fn(c_int, *const sockaddr, socklen_t) -> c_int;
    getsockname: unsafe extern "C-unwind" fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int;
    getpeername: unsafe extern "C-unwind" fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int;
    dup: unsafe extern "C-unwind" fn(c_int) -> c_int;
    dup2: unsafe extern "C-unwind" fn(c_int, c_int) -> c_int;
    dup3: unsafe extern "C-unwind" fn(c_int, c_int, c_int) -> c_int;
    fcntl: unsafe extern "C-unwind" fn(c_int, c_int, ...) -> c_int;
    fcntl64: unsafe extern "C-unwind" fn(c_int, c_int, ...) -> c_int;
    ioctl: unsafe extern "C-unwind" fn(c_int, c_ulong, ...) -> c_int;
    setpgid: unsafe extern "C" fn(pid_t, pid_t) -> c_int;
    getifaddrs: unsafe extern "C-unwind" fn(*mut *mut libc::ifaddrs) -> c_int;
    execve: unsafe extern "C" fn(*const c_char, *const *const c_char, *const *const c_char) -> c_int;
    execvpe: unsafe extern "C" fn(*const c_char, *const *const c_char, *const *const c_char) -> c_int;
    fexecve: unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char) -> c_int;
    posix_spawn: unsafe extern "C" fn(*mut pid_t, *const c_char, *const c_void, *const c_void, *const *const c_char, *const *const c_char) -> c_int;
    posix_spawnp: unsafe extern "C" fn(*mut pid_t, *const c_char, *const c_void, *const c_void, *const *const c_char, *const *const c_char) -> c_int;
    freeifaddrs: unsafe extern "C-unwind" fn(*mut libc::ifaddrs);
}
