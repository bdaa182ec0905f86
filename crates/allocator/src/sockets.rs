//! A UDP socket that sends and receives many datagrams per system call.

use nix::sys::socket::{self, MsgFlags, MultiHeaders, SockaddrIn, sockopt};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Largest number of datagrams per call.
const BATCH: usize = 64;
/// Largest datagram that is received whole, bytes: datagrams of endpoints are smaller.
const MOST_BYTES: usize = 2048;
/// Size of the kernel's receive buffer, bytes.
const ROOM_BYTES: usize = 8 << 20;

/// A socket with its buffers.
pub struct Sockets {
    socket: UdpSocket,
    taking: MultiHeaders<SockaddrIn>,
    giving: MultiHeaders<SockaddrIn>,
    rooms: Vec<Box<[u8]>>,
    /// Datagrams to be sent; the first `waiting` are valid.
    outgoing: Vec<Vec<u8>>,
    targets: Vec<Option<SockaddrIn>>,
    waiting: usize,
    /// Datagrams that the kernel refused to send.
    pub unsent: u64,
    /// Number of system calls.
    pub calls: u64,
}

impl Sockets {
    /// Opens a socket at `address`.
    pub fn bind(address: SocketAddr) -> io::Result<Sockets> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        // If the kernel grants less, bursts may lose datagrams.
        let _ = socket::setsockopt(&socket, sockopt::RcvBuf, &ROOM_BYTES);
        let _ = socket::setsockopt(&socket, sockopt::SndBuf, &ROOM_BYTES);
        Ok(Sockets {
            socket,
            taking: MultiHeaders::preallocate(BATCH, None),
            giving: MultiHeaders::preallocate(BATCH, None),
            rooms: (0..BATCH).map(|_| vec![0; MOST_BYTES].into_boxed_slice()).collect(),
            outgoing: (0..BATCH).map(|_| Vec::with_capacity(MOST_BYTES)).collect(),
            targets: vec![None; BATCH],
            waiting: 0,
            unsent: 0,
            calls: 0,
        })
    }

    /// Local address of the socket.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// File descriptor to poll.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Receives up to a batch of datagrams, passes each with its sender to `with`, and returns their number. A
    /// datagram that is too large is truncated and thus fails authentication.
    pub fn take(&mut self, mut with: impl FnMut(SocketAddrV4, &[u8])) -> usize {
        self.calls += 1;
        let mut slices: Vec<[IoSliceMut; 1]> = self.rooms.iter_mut().map(|room| [IoSliceMut::new(room)]).collect();
        let flags = MsgFlags::MSG_DONTWAIT;
        let Ok(taken) = socket::recvmmsg(self.socket.as_raw_fd(), &mut self.taking, &mut slices, flags, None) else {
            // Nothing has arrived; or the error belongs to a datagram sent before.
            return 0;
        };
        let mut count = 0;
        for message in taken {
            count += 1;
            let Some(from) = message.address else { continue };
            with(SocketAddrV4::from(from), message.iovs().next().unwrap_or(&[]));
        }
        count
    }

    /// Queues a datagram; `fill` writes it.
    pub fn give(&mut self, to: SocketAddrV4, fill: impl FnOnce(&mut Vec<u8>)) {
        let room = &mut self.outgoing[self.waiting];
        room.clear();
        fill(room);
        self.targets[self.waiting] = Some(SockaddrIn::from(to));
        self.waiting += 1;
        if self.waiting == BATCH {
            self.flush();
        }
    }

    /// Sends all queued datagrams. Those that the kernel refuses are lost.
    pub fn flush(&mut self) {
        let (mut from, end) = (0, std::mem::take(&mut self.waiting));
        while from < end {
            self.calls += 1;
            let slices: Vec<[IoSlice; 1]> =
                self.outgoing[from..end].iter().map(|bytes| [IoSlice::new(bytes)]).collect();
            let targets = &self.targets[from..end];
            let flags = MsgFlags::MSG_DONTWAIT;
            let fd = self.socket.as_raw_fd();
            match socket::sendmmsg(fd, &mut self.giving, &slices, targets, [], flags) {
                Ok(sent) => {
                    let sent = sent.count();
                    if sent == 0 {
                        return;
                    }
                    from += sent;
                }
                // The first cannot be sent; the others may.
                Err(_) => {
                    self.unsent += 1;
                    from += 1;
                }
            }
        }
    }
}
