//! Control packets of flows: a source's state machine for each flow, and a UDP socket for each address of a host.

use super::ends::{Ends, Token, failed};
use crate::namespace::Namespace;
use crate::sys;
use rustix::event::epoll::{self, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recvfrom, sendto, socket_with};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::{Ipv4Addr, SocketAddrV4};
use subak_core::scheme::PathInfo;
use subak_schemes::hosts::perc::{Do, HostFlow, PercHosts, PercSender, check_weight};
use subak_schemes::perc::wire::{MOST_BYTES, PORT, PercDatagram};
use subak_testbed::{Carried, Schedule};

/// Smallest ratio of a pacing rate to the rate before. A socket waits one packet's transmission time at its old rate
/// before it uses a new rate. After a drop to nearly 0 the socket would wait through the next rates.
const MOST_FALL: f64 = 0.25;
/// Timer that stops the data of a source whose rate is 0: see [`Control::carry_out`].
const HOLD: u32 = u32::MAX;
/// Largest number of recorded rate changes of a flow.
const MOST_NOTES: usize = 10_000;
/// Relative change of the rate below which it is not recorded.
const NOTED: f64 = 1e-3;

struct Source {
    sender: PercSender,
    /// Pacing rate of the socket, bit/s on the wire.
    pace_bps: f64,
    /// Pacing rate that was last recorded, bit/s on the wire.
    noted_bps: f64,
    /// Whether the source's rate is 0, so that its data stops.
    held: bool,
}

pub(super) struct Control<'a> {
    schedule: &'a Schedule,
    sockets: Vec<(Ipv4Addr, OwnedFd)>,
    by_address: HashMap<Ipv4Addr, usize>,
    sources: Vec<Source>,
    due: BinaryHeap<Reverse<(u64, usize, u32)>>,
    /// Ratio of payload to bytes on the wire.
    payload: f64,
    /// Largest base RTT, ns.
    rtt_ns: u64,
}

impl<'a> Control<'a> {
    /// Opens the sockets; `None` if the schedule has no control packets.
    pub fn new(schedule: &'a Schedule, ends: &Ends) -> Result<Option<Self>, String> {
        let Some(asked) = &schedule.control else { return Ok(None) };
        let hosts =
            PercHosts::new(&asked.scheme, &asked.params, asked.scale, asked.rtt_ns, asked.most_bps, asked.mtu_bytes);
        let hosts = hosts.map_err(|fault| fault.to_string())?;
        let mss_bytes = asked.mtu_bytes.saturating_sub(asked.header_bytes).max(1);
        let mut control = Control {
            schedule,
            sockets: Vec::new(),
            by_address: HashMap::new(),
            sources: Vec::with_capacity(schedule.flows.len()),
            due: BinaryHeap::new(),
            rtt_ns: asked.rtt_ns.max(1),
            payload: f64::from(mss_bytes) / f64::from(asked.mtu_bytes.max(1)),
        };
        for (f, flow) in schedule.flows.iter().enumerate() {
            let path = flow.path.ok_or_else(|| format!("flows[{f}].path: it is missing"))?;
            let path = PathInfo {
                hops: path.hops,
                line_rate_bps: path.line_rate_bps,
                min_capacity_bps: path.min_capacity_bps,
                base_rtt_ns: path.rtt_ns.max(1),
            };
            let known =
                HostFlow { number: f as u32, weight: flow.weight, size_bytes: flow.size_bytes, mss_bytes, path };
            let weights = flow.weights.iter().try_for_each(|change| check_weight(change.weight));
            let sender = weights.and_then(|()| hosts.sender(&known)).map_err(|fault| format!("flows[{f}]: {fault}"))?;
            control.sources.push(Source { sender, pace_bps: 0.0, noted_bps: 0.0, held: false });
            for (host, address) in [(flow.src, flow.from), (flow.dst, flow.to)] {
                control.open(ends.place(host)?, address, &ends.epoll)?;
            }
        }
        Ok(Some(control))
    }

    fn open(&mut self, place: &Namespace, address: Ipv4Addr, epoll: &OwnedFd) -> Result<(), String> {
        if self.by_address.contains_key(&address) {
            return Ok(());
        }
        let number = self.sockets.len();
        let open = || {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
            bind(&socket, &SocketAddrV4::new(address, PORT))?;
            epoll::add(epoll, &socket, Token::Control(number).data(), EventFlags::IN)?;
            Ok(socket)
        };
        let socket = place.within(|| {
            let socket = open().map_err(|e| failed(&format!("port {PORT} of {address} cannot be had"), e))?;
            // No checksum, since links change packets after they are sent.
            sys::send_without_checksum(&socket)?;
            Ok(socket)
        })?;
        self.by_address.insert(address, number);
        self.sockets.push((address, socket));
        Ok(())
    }

    /// Time of the next timer, ns.
    pub fn next_ns(&self) -> Option<u64> {
        self.due.peek().map(|next| next.0.0)
    }

    /// Starts the flow's source.
    pub fn start(&mut self, f: usize, now_ns: u64, at: &mut At) {
        let asked = self.sources[f].sender.start(now_ns);
        self.carry_out(f, now_ns, asked, at);
    }

    /// Ends the flow's source.
    pub fn finish(&mut self, f: usize, now_ns: u64, at: &mut At) {
        let asked = self.sources[f].sender.finish(now_ns);
        self.carry_out(f, now_ns, asked, at);
    }

    /// Changes the flow's weight.
    pub fn weigh(&mut self, f: usize, weight: f64, now_ns: u64, at: &mut At) {
        let asked = self.sources[f].sender.weigh(now_ns, weight);
        self.carry_out(f, now_ns, asked, at);
    }

    /// Runs the timers that have expired.
    pub fn wake(&mut self, now_ns: u64, at: &mut At) {
        while let Some(&Reverse((_, f, timer))) = self.due.peek().filter(|next| next.0.0 <= now_ns) {
            self.due.pop();
            if timer == HOLD {
                if self.sources[f].held {
                    self.pace(f, 0.0, at);
                }
                continue;
            }
            self.tell_left(f, at.ends);
            let asked = self.sources[f].sender.wake(now_ns, timer);
            self.carry_out(f, now_ns, asked, at);
        }
    }

    /// Handles the datagrams that have arrived at a socket.
    pub fn hear(&mut self, number: usize, now_ns: u64, at: &mut At) {
        let mut room = [0u8; MOST_BYTES + 1];
        loop {
            let (address, socket) = &self.sockets[number];
            let (bytes, from) = match recvfrom(socket, &mut room[..], RecvFlags::empty()) {
                Ok((_, bytes, Some(from))) => (&room[..bytes.min(room.len())], from),
                Ok((_, _, None)) | Err(Errno::INTR) => continue,
                // The error belongs to an earlier packet, which counts as lost.
                Err(Errno::CONNREFUSED | Errno::HOSTUNREACH | Errno::NETUNREACH) => continue,
                Err(_) => return,
            };
            if let Some(answer) = PercDatagram::answer(bytes) {
                let _ = sendto(socket, &answer, SendFlags::empty(), &from);
                continue;
            }
            let Some(datagram) = PercDatagram::read(bytes).filter(|datagram| datagram.back) else { continue };
            let f = datagram.flow as usize;
            if self.schedule.flows.get(f).is_some_and(|flow| flow.from == *address) {
                self.tell_left(f, at.ends);
                at.carried[f].trips += 1;
                let asked = self.sources[f].sender.hear(now_ns, &datagram);
                self.carry_out(f, now_ns, asked, at);
            }
        }
    }

    fn tell_left(&mut self, f: usize, ends: &Ends) {
        if let Some((remaining_bytes, in_flight_bytes)) = ends.remaining(f) {
            self.sources[f].sender.tell_left(remaining_bytes, in_flight_bytes);
        }
    }

    fn carry_out(&mut self, f: usize, now_ns: u64, asked: Vec<Do>, at: &mut At) {
        let flow = &self.schedule.flows[f];
        for one in asked {
            match one {
                // A send error counts as a lost packet.
                Do::Send(bytes) => {
                    if let Some(&number) = self.by_address.get(&flow.from) {
                        let to = SocketAddrV4::new(flow.to, PORT);
                        let _ = sendto(&self.sockets[number].1, &bytes, SendFlags::empty(), &to);
                    }
                }
                Do::Wake { timer, at_ns } => self.due.push(Reverse((at_ns, f, timer))),
                Do::Pace(bps) => {
                    let source = &mut self.sources[f];
                    let notes = &mut at.carried[f].paces;
                    if (bps - source.noted_bps).abs() > NOTED * source.noted_bps && notes.len() < MOST_NOTES {
                        notes.push((now_ns, bps));
                        source.noted_bps = bps;
                    }
                    source.held = bps <= 0.0;
                    // Data stops after an RTT: a packet that restarts the flow usually returns before.
                    match source.held {
                        true => self.due.push(Reverse((now_ns + self.rtt_ns, f, HOLD))),
                        false => self.pace(f, bps, at),
                    }
                }
            }
        }
    }

    fn pace(&mut self, f: usize, bps: f64, at: &mut At) {
        let source = &mut self.sources[f];
        source.pace_bps = bps.max(MOST_FALL * source.pace_bps);
        at.paced.push((f, source.pace_bps * self.payload));
    }
}

/// State of the run that sources use: sockets, recorded results, and requested rates.
pub(super) struct At<'r, 'a> {
    pub ends: &'r Ends<'a>,
    pub carried: &'r mut [Carried],
    /// Flows with a new pacing rate, payload in bit/s.
    pub paced: Vec<(usize, f64)>,
}
