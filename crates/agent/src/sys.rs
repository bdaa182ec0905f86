//! What the kernel is asked for that no safe library has: the one place with unsafe code.
#![allow(unsafe_code)]

use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd};

/// Segments that a TCP socket has sent again.
pub(crate) fn retransmissions(socket: impl AsFd) -> u64 {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut bytes = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` into `info`, which is as large, and any bytes make a `tcp_info`.
    let info = unsafe {
        let fd = socket.as_fd().as_raw_fd();
        if libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &raw mut bytes) != 0 {
            return 0;
        }
        info.assume_init()
    };
    u64::from(info.tcpi_total_retrans)
}
