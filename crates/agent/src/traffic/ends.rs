//! Sockets: a listener at each receiving host, and both ends of each connected flow.

use crate::namespace::Namespace;
use crate::sys;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, acceptfrom_with, bind, connect, getsockname, listen,
    recv, send, socket_with, sockopt,
};
use std::collections::{BTreeSet, HashMap};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;
use subak_testbed::{Carried, Schedule};

/// Port of the listeners.
const PORT: u16 = 5001;
/// Bytes that a flow writes or reads before the next flow is served.
const TURN: usize = 1 << 18;
/// Payload of every flow: zeros.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// The socket of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Sender(usize),
    Receiver(usize),
    Listener(usize),
    Control(usize),
}

impl Token {
    pub fn of(word: u64) -> Self {
        let number = (word >> 2) as usize;
        match word & 3 {
            0 => Token::Sender(number),
            1 => Token::Receiver(number),
            2 => Token::Listener(number),
            _ => Token::Control(number),
        }
    }

    pub fn data(self) -> EventData {
        let (number, kind) = match self {
            Token::Sender(f) => (f, 0),
            Token::Receiver(f) => (f, 1),
            Token::Listener(h) => (h, 2),
            Token::Control(c) => (c, 3),
        };
        EventData::new_u64((number as u64) << 2 | kind)
    }
}

struct Sender {
    socket: OwnedFd,
    connected: bool,
}

/// State of a socket after a read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SocketProgress {
    /// The socket waits for the other side.
    Waits,
    /// The socket could continue, but has reached the limit of bytes at a time.
    Ready,
    /// The socket is closed or has no data left.
    Over,
}

/// Every socket of a run.
pub(super) struct Ends<'a> {
    schedule: &'a Schedule,
    places: Vec<Namespace>,
    pub epoll: OwnedFd,
    listeners: Vec<Option<OwnedFd>>,
    senders: Vec<Option<Sender>>,
    receivers: Vec<Option<OwnedFd>>,
    /// Bytes that each flow has yet to write; `None` for an endless flow.
    left: Vec<Option<u64>>,
    /// Whether each flow may write.
    allowed: Vec<bool>,
    received: Vec<u64>,
    /// Flows for which bytes have arrived since the last record.
    touched: BTreeSet<usize>,
    by_sender: HashMap<(Ipv4Addr, u16), usize>,
    /// Flows in the order of their start times.
    order: Vec<usize>,
    /// Number of flows whose connection was begun.
    pub asked: usize,
    pub connected: usize,
}

pub(super) fn failed(what: &str, error: Errno) -> String {
    match error {
        Errno::MFILE | Errno::NFILE => format!("{what}: too many files are open; raise the limit: ulimit -n"),
        _ => format!("{what}: {error}"),
    }
}

impl<'a> Ends<'a> {
    pub fn new(schedule: &'a Schedule, places: Vec<Namespace>) -> Result<Self, String> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|e| failed("epoll", e))?;
        let receives: BTreeSet<usize> = schedule.flows.iter().map(|f| f.dst as usize).collect();
        let mut listeners = Vec::with_capacity(places.len());
        for (h, place) in places.iter().enumerate() {
            listeners.push(receives.contains(&h).then(|| place.within(|| listener(&epoll, h))).transpose()?);
        }
        let flows = schedule.flows.len();
        let mut order: Vec<usize> = (0..flows).collect();
        order.sort_by_key(|&f| schedule.flows[f].start_ns);
        Ok(Ends {
            schedule,
            places,
            epoll,
            listeners,
            senders: std::iter::repeat_with(|| None).take(flows).collect(),
            receivers: std::iter::repeat_with(|| None).take(flows).collect(),
            left: schedule.flows.iter().map(|f| f.size_bytes).collect(),
            allowed: vec![false; flows],
            received: vec![0; flows],
            touched: BTreeSet::new(),
            by_sender: HashMap::new(),
            order,
            asked: 0,
            connected: 0,
        })
    }

    /// Number of connections that are being established.
    pub fn connecting(&self) -> usize {
        self.asked - self.connected
    }

    /// Begins to connect the flow that starts next among those without a connection.
    pub fn connect_next(&mut self) -> Result<(), String> {
        let f = self.order[self.asked];
        self.asked += 1;
        let flow = &self.schedule.flows[f];
        let Some(place) = self.places.get(flow.src as usize) else {
            return Err(format!("there is no host {}", flow.src));
        };
        let (epoll, congestion) = (&self.epoll, &self.schedule.congestion);
        let open = || -> Result<(OwnedFd, u16), String> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None);
            let socket = socket.map_err(|e| failed("a socket cannot be opened", e))?;
            sockopt::set_tcp_congestion(&socket, congestion).map_err(|e| match e {
                Errno::NOENT => format!("this kernel has no congestion control \"{congestion}\""),
                _ => failed(&format!("congestion control \"{congestion}\""), e),
            })?;
            abandon(&socket)?;
            if self.schedule.weighted {
                sys::set_weight(&socket, flow.weight)?;
            }
            let from = SocketAddrV4::new(flow.from, 0);
            bind(&socket, &from).map_err(|e| failed(&format!("{} cannot be bound", flow.from), e))?;
            let name = getsockname(&socket).and_then(SocketAddrV4::try_from);
            let port = name.map_err(|e| failed("a socket has no name", e))?.port();
            match connect(&socket, &SocketAddrV4::new(flow.to, PORT)) {
                Ok(()) | Err(Errno::INPROGRESS) => {}
                Err(e) => return Err(failed(&format!("{} to {} cannot be connected", flow.from, flow.to), e)),
            }
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            epoll::add(epoll, &socket, Token::Sender(f).data(), flags).map_err(|e| failed("epoll", e))?;
            Ok((socket, port))
        };
        let (socket, port) = place.within(open)?;
        self.by_sender.insert((flow.from, port), f);
        self.senders[f] = Some(Sender { socket, connected: false });
        Ok(())
    }

    /// Handles a completed `connect` or a pending `accept`.
    pub fn hear_connecting(&mut self, token: Token, flags: EventFlags) -> Result<(), String> {
        match token {
            Token::Listener(h) => self.accept(h),
            Token::Receiver(_) | Token::Control(_) => Ok(()),
            Token::Sender(f) => {
                let Some(sender) = self.senders[f].as_mut().filter(|s| !s.connected) else { return Ok(()) };
                let error = sockopt::socket_error(&sender.socket).map_err(|e| failed("a socket", e))?;
                if let Err(e) = error {
                    let flow = &self.schedule.flows[f];
                    return Err(failed(&format!("{} to {} cannot be connected", flow.from, flow.to), e));
                }
                if flags.contains(EventFlags::OUT) {
                    sender.connected = true;
                    self.connected += 1;
                }
                Ok(())
            }
        }
    }

    fn accept(&mut self, h: usize) -> Result<(), String> {
        let Some(listener) = &self.listeners[h] else { return Ok(()) };
        loop {
            let (socket, from) = match acceptfrom_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok((socket, Some(from))) => (socket, from),
                Ok((_, None)) | Err(Errno::CONNABORTED | Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok(()),
                Err(e) => return Err(failed("a connection cannot be accepted", e)),
            };
            // A connection from an unknown address is closed.
            let from = SocketAddrV4::try_from(from).ok().map(|from| (*from.ip(), from.port()));
            let Some(f) = from.and_then(|from| self.by_sender.remove(&from)) else { continue };
            abandon(&socket)?;
            let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
            epoll::add(&self.epoll, &socket, Token::Receiver(f).data(), flags).map_err(|e| failed("epoll", e))?;
            self.receivers[f] = Some(socket);
        }
    }

    /// Allows the flow to write; returns whether the flow was not allowed to write before.
    pub fn allow(&mut self, f: usize) -> bool {
        !std::mem::replace(&mut self.allowed[f], true)
    }

    /// Sets the weight of the flow's connection.
    pub fn weigh(&self, f: usize, weight: f64) -> Result<(), String> {
        match &self.senders[f] {
            Some(sender) if self.schedule.weighted => sys::set_weight(&sender.socket, weight),
            _ => Ok(()),
        }
    }

    /// Namespace of a host.
    pub fn place(&self, host: u32) -> Result<&Namespace, String> {
        self.places.get(host as usize).ok_or_else(|| format!("there is no host {host}"))
    }

    /// Sets the flow's pacing rate, payload in bit/s; returns whether the flow is connected.
    pub fn pace(&self, f: usize, bps: f64) -> bool {
        self.senders[f].as_ref().inspect(|sender| sys::set_pace(&sender.socket, bps)).is_some()
    }

    /// Payload of the flow that is not ACKed, and the part of it in flight, bytes; `None` for an endless flow.
    pub fn remaining(&self, f: usize) -> Option<(u64, u64)> {
        let (left, sender) = (self.left[f]?, self.senders[f].as_ref()?);
        let (held, unsent) = sys::held(&sender.socket);
        Some((left + held, held.saturating_sub(unsent)))
    }

    /// Stops writing; bytes already written are still sent.
    pub fn stop(&mut self, f: usize) {
        self.left[f] = Some(0);
        if let Some(sender) = &self.senders[f] {
            // Otherwise unsent bytes are lost, and counted so.
            let _ = sockopt::set_socket_linger(&sender.socket, None);
        }
    }

    /// Writes as much as the socket accepts. The flow is over once the receiver has closed the connection.
    pub fn send(&mut self, f: usize) -> Result<SocketProgress, String> {
        let Some(sender) = self.senders[f].as_ref().filter(|s| s.connected && self.allowed[f]) else {
            return Ok(SocketProgress::Waits);
        };
        let (left, mut turn) = (&mut self.left[f], 0);
        while *left != Some(0) {
            if turn >= TURN {
                return Ok(SocketProgress::Ready);
            }
            let most = left.map_or(ZEROS.len(), |left| left.min(ZEROS.len() as u64) as usize);
            match send(&sender.socket, &ZEROS[..most], SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    turn += sent;
                    *left = left.map(|left| left - sent as u64);
                }
                Err(Errno::AGAIN) => return Ok(SocketProgress::Waits),
                Err(Errno::INTR) => {}
                Err(e) => return Err(failed("sending", e)),
            }
        }
        match recv(&sender.socket, &mut [0u8; 16], RecvFlags::empty()) {
            Ok((_, 0)) => Ok(SocketProgress::Over),
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(SocketProgress::Waits),
            Err(e) => Err(failed("sending", e)),
        }
    }

    /// Reads the data that has arrived. The flow is over once all data has arrived or the sender has closed the
    /// connection.
    pub fn receive(&mut self, f: usize, room: &mut [u8]) -> Result<SocketProgress, String> {
        let Some(socket) = &self.receivers[f] else { return Ok(SocketProgress::Waits) };
        let mut turn = 0;
        while turn < TURN {
            match recv(socket, &mut *room, RecvFlags::empty()) {
                Ok((_, 0)) => return Ok(SocketProgress::Over),
                Ok((_, bytes)) => {
                    turn += bytes;
                    self.received[f] += bytes as u64;
                    self.touched.insert(f);
                    if self.schedule.flows[f].size_bytes.is_some_and(|size| self.received[f] >= size) {
                        return Ok(SocketProgress::Over);
                    }
                }
                Err(Errno::AGAIN) => return Ok(SocketProgress::Waits),
                Err(Errno::INTR) => {}
                Err(e) => return Err(failed("receiving", e)),
            }
        }
        Ok(SocketProgress::Ready)
    }

    /// Payload received, bytes.
    pub fn received(&self, f: usize) -> u64 {
        self.received[f]
    }

    /// Records the bytes that have arrived by `at_ns`.
    pub fn note_arrivals(&mut self, at_ns: u64, carried: &mut [Carried]) {
        for f in std::mem::take(&mut self.touched) {
            if self.receivers[f].is_some() {
                carried[f].arrivals.push((at_ns, self.received[f]));
            }
        }
    }

    /// Closes the receiver's socket after the last read.
    pub fn close_receiver(&mut self, f: usize, now_ns: u64, carried: &mut Carried) {
        if let Some(socket) = self.receivers[f].take() {
            // An orderly close: the sender sees no error.
            let _ = sockopt::set_socket_linger(&socket, None);
            carried.received_bytes = self.received[f];
            if self.schedule.flows_every_ns > 0 {
                carried.arrivals.push((now_ns, self.received[f]));
            }
        }
    }

    /// Returns the sender's socket, if there is one, and removes it here; dropping it closes the connection.
    pub fn close_sender(&mut self, f: usize) -> Option<OwnedFd> {
        self.senders[f].take().map(|s| s.socket)
    }
}

/// Makes the kernel reset the connection when the process ends. Otherwise the socket would keep its namespace and
/// congestion control in use.
fn abandon(socket: &OwnedFd) -> Result<(), String> {
    sockopt::set_socket_linger(socket, Some(Duration::ZERO)).map_err(|e| failed("a socket", e))
}

fn listener(epoll: &OwnedFd, h: usize) -> Result<OwnedFd, String> {
    let open = || {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT))?;
        listen(&socket, 4096)?;
        epoll::add(epoll, &socket, Token::Listener(h).data(), EventFlags::IN)?;
        Ok(socket)
    };
    open().map_err(|e| failed(&format!("port {PORT} cannot be listened to"), e))
}
