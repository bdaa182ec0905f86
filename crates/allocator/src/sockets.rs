//! One UDP socket, many datagrams a call.

use nix::sys::socket::{self, MsgFlags, MultiHeaders, SockaddrIn, sockopt};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Datagrams a call, at most.
const BATCH: usize = 64;
/// The largest that is read whole: no endpoint sends larger ones.
const MOST_BYTES: usize = 2048;
/// Size of the kernel's receive buffer, bytes.
const ROOM_BYTES: usize = 8 << 20;

/// A socket with its buffers.
pub struct Sockets {
    socket: UdpSocket,
    taking: MultiHeaders<SockaddrIn>,
    giving: MultiHeaders<SockaddrIn>,
    rooms: Vec<Box<[u8]>>,
    /// Datagrams to be sent, and their destinations; the first `waiting` are valid.
    outgoing: Vec<Vec<u8>>,
    targets: Vec<Option<SockaddrIn>>,
    waiting: usize,
    /// Datagrams that the kernel did not take.
    pub unsent: u64,
    /// Calls of the kernel.
    pub calls: u64,
}

impl Sockets {
    /// Listens at `address`.
    pub fn bind(address: SocketAddr) -> io::Result<Sockets> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        // What is not granted costs datagrams only when many come at once.
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

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// To wait for.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Takes what has come, at most a batch, and says how much: each with who sent it. One that is too large is cut, and so fails
    /// its check.
    pub fn take(&mut self, mut with: impl FnMut(SocketAddrV4, &[u8])) -> usize {
        self.calls += 1;
        let mut slices: Vec<[IoSliceMut; 1]> = self.rooms.iter_mut().map(|room| [IoSliceMut::new(room)]).collect();
        let flags = MsgFlags::MSG_DONTWAIT;
        let Ok(taken) = socket::recvmmsg(self.socket.as_raw_fd(), &mut self.taking, &mut slices, flags, None) else {
            // Nothing is there; or an error of an earlier datagram is told, which concerns none that will come.
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

    /// Puts a datagram among those to send: `fill` writes it.
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

    /// Sends all that waits. What the kernel has no room for is lost, as on any network.
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
                // The first cannot go; others may.
                Err(_) => {
                    self.unsent += 1;
                    from += 1;
                }
            }
        }
    }
}
