//! System calls without a safe library: the only unsafe code apart from eBPF.
#![allow(unsafe_code)]

use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Number of retransmitted segments of a TCP socket.
pub(crate) fn retransmissions(socket: impl AsFd) -> u64 {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut bytes = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` into `info`, which has that size, and any bytes are a valid
    // `tcp_info`.
    let info = unsafe {
        let fd = socket.as_fd().as_raw_fd();
        if libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &raw mut bytes) != 0 {
            return 0;
        }
        info.assume_init()
    };
    u64::from(info.tcpi_total_retrans)
}

/// Cookie that identifies a socket's network namespace to eBPF programs.
#[cfg(feature = "bpf")]
pub(crate) fn namespace_cookie(socket: impl AsFd) -> Result<u64, String> {
    let mut cookie = 0u64;
    let mut bytes = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` into `cookie`.
    let done = unsafe {
        let fd = socket.as_fd().as_raw_fd();
        libc::getsockopt(fd, libc::SOL_SOCKET, SO_NETNS_COOKIE, (&raw mut cookie).cast(), &raw mut bytes)
    };
    match done {
        0 => Ok(cookie),
        _ => Err(format!("a namespace has no cookie: {}", std::io::Error::last_os_error())),
    }
}

#[cfg(feature = "bpf")]
const SO_NETNS_COOKIE: libc::c_int = 71;

/// The device with this address in the thread's current namespace.
#[cfg(feature = "bpf")]
pub(crate) fn device_of(address: std::net::Ipv4Addr) -> Option<String> {
    let mut first = std::ptr::null_mut();
    // SAFETY: the C library owns the list, which is read before it is freed. Addresses of this family are
    // `sockaddr_in`.
    unsafe {
        if libc::getifaddrs(&raw mut first) != 0 {
            return None;
        }
        let (mut at, mut found) = (first, None);
        while let Some(entry) = at.as_ref() {
            let of = entry.ifa_addr.as_ref().filter(|of| libc::c_int::from(of.sa_family) == libc::AF_INET);
            let own = of.map(|of| std::ptr::read_unaligned(std::ptr::from_ref(of).cast::<libc::sockaddr_in>()));
            if own.is_some_and(|own| own.sin_addr.s_addr == u32::from_ne_bytes(address.octets())) {
                found = std::ffi::CStr::from_ptr(entry.ifa_name).to_str().ok().map(str::to_string);
                break;
            }
            at = entry.ifa_next;
        }
        libc::freeifaddrs(first);
        found
    }
}

/// Sets the weight of a connection, with 16 fractional bits, by a private socket option that the eBPF program
/// handles.
pub(crate) fn set_weight(socket: impl AsFd, weight: f64) -> Result<(), String> {
    let value = (weight * 65_536.0).round().clamp(1.0, f64::from(u32::MAX)) as u32;
    // SAFETY: the kernel reads only the bytes of `value`.
    let done = unsafe {
        let (fd, bytes) = (socket.as_fd().as_raw_fd(), size_of::<u32>() as libc::socklen_t);
        libc::setsockopt(fd, libc::IPPROTO_TCP, SOZE_WEIGHT, (&raw const value).cast(), bytes)
    };
    match done {
        0 => Ok(()),
        _ => Err(format!("the weight cannot be set: {}", std::io::Error::last_os_error())),
    }
}

/// Number of the socket option that sets a weight, as in `bpf/connections.h`.
const SOZE_WEIGHT: libc::c_int = 0x5a01;

/// Sets the pacing rate of a TCP socket, payload in bit/s.
pub(crate) fn set_pace(socket: impl AsFd, bps: f64) {
    // The kernel treats 0 byte/s and all ones as no pacing.
    let value = (bps / 8.0).round().clamp(1.0, 1e15) as u64;
    set_option(socket, libc::SO_MAX_PACING_RATE, &value);
}

/// Turns off the UDP checksum of a socket's packets.
pub(crate) fn send_without_checksum(socket: impl AsFd) -> Result<(), String> {
    match set_option(socket, libc::SO_NO_CHECK, &1u32) {
        true => Ok(()),
        false => Err(format!("checksums cannot be turned off: {}", std::io::Error::last_os_error())),
    }
}

fn set_option<T: Copy>(socket: impl AsFd, option: libc::c_int, value: &T) -> bool {
    // SAFETY: the kernel reads only the bytes of `value`.
    let done = unsafe {
        let (fd, bytes) = (socket.as_fd().as_raw_fd(), size_of::<T>() as libc::socklen_t);
        libc::setsockopt(fd, libc::SOL_SOCKET, option, std::ptr::from_ref(value).cast(), bytes)
    };
    done == 0
}

/// Bytes in a TCP socket's send queue that are not ACKed, and the part of them that is not sent yet.
pub(crate) fn held(socket: impl AsFd) -> (u64, u64) {
    let ask = |what: libc::c_ulong| {
        let mut bytes: libc::c_int = 0;
        // SAFETY: the kernel writes one int.
        let done = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), what, &raw mut bytes) };
        if done == 0 { u64::try_from(bytes).unwrap_or(0) } else { 0 }
    };
    (ask(libc::TIOCOUTQ), ask(SIOCOUTQNSD))
}

const SIOCOUTQNSD: libc::c_ulong = 0x894b;

/// A file that the parent process opened for this one, as a file of its own.
pub(crate) fn inherited(number: i32) -> Result<OwnedFd, String> {
    // SAFETY: the call fails if no file has the number.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(format!("no open file has the number {number}"));
    }
    // SAFETY: the kernel returned the descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Lets timers of this thread wake it without slack.
pub(crate) fn wake_in_time() {
    // SAFETY: the arguments are integers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}
