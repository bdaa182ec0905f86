//! In-band network telemetry (INT): links write their load into data packets, and receivers return it.
//!
//! As in HPCC (Li et al., SIGCOMM 2019, section 3.2 and 4.1): queue length, bytes sent, time and rate of each link after the
//! sender's own, and an identity of the path, so that the telemetry of a path that a flow has left is recognized.

use subak_core::keys::ValueType;
use subak_core::rng::mix;
use subak_core::scheme::{Hop, Io, Packet, PacketKind, Param, Port, Scheme};
use subak_core::{LinkId, Ns};

/// Largest number of telemetry records in a packet; links beyond these are not measured.
pub const MAX_HOPS: usize = 8;

/// Parameter `header`: bytes of telemetry in a data packet.
pub const HEADER: Param = Param::number(
    "header",
    42.0,
    ValueType::Bytes,
    "bytes of telemetry in each data packet: 2, and 8 for each of five links",
);
/// Parameter `ack_header`: bytes of telemetry in an ACK.
pub const ACK_HEADER: Param = Param::number(
    "ack_header",
    28.0,
    ValueType::Bytes,
    "bytes that telemetry adds to an ACK beyond the shortest frame",
);

/// Upper bound of a packet's size, bytes.
const MOST_PACKET_BYTES: f64 = 65_536.0;

/// Record of a link: time of departure, bytes sent so far, queue length and rate. Time and bytes sent wrap around.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C)]
pub struct Record {
    /// Time of the packet's departure, ns.
    pub at_ns: u32,
    /// Bytes that the link has sent, this packet included.
    pub sent_bytes: u32,
    /// Bytes that wait behind the packet.
    pub queued_bytes: u32,
    /// Rate of the link, bytes per ns.
    pub bytes_per_ns: f32,
}

impl Record {
    /// Time since an earlier record of the link, ns, and bytes sent since. `None` if the records cannot be compared: they
    /// are of one instant, or a restarted switch counts from 0.
    #[inline]
    pub fn since(&self, before: &Record) -> Option<(f64, f64)> {
        let passed_ns = f64::from(self.at_ns.wrapping_sub(before.at_ns));
        let rate = f64::from(self.bytes_per_ns);
        if passed_ns <= 0.0 || rate <= 0.0 {
            return None;
        }
        let sent = f64::from(self.sent_bytes.wrapping_sub(before.sent_bytes));
        let most = 2.0 * passed_ns * rate.max(f64::from(before.bytes_per_ns)) + MOST_PACKET_BYTES;
        (sent <= most).then_some((passed_ns, sent))
    }
}

/// Header of a packet: a record of each link after the first.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct IntHeader {
    /// The records, in the order of the links; [`IntHeader::hops`] of them are set.
    pub links: [Record; MAX_HOPS],
    /// Number of records.
    pub hops: u8,
    /// Identity of the links passed after the first ([`identity`]).
    pub path: u32,
}

/// Time at which a packet left its sender's NIC, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Left(pub Ns);

/// Hash of a path whose hash was `path`, extended by `link`.
#[inline]
fn onto(path: u32, link: LinkId) -> u32 {
    mix(u64::from(path) << 32 | u64::from(link.0)) as u32
}

/// Hash of the path over `links`, as packets accumulate it: without the first link.
pub fn identity(links: &[LinkId]) -> u32 {
    links.iter().skip(1).fold(0, |path, &link| onto(path, link))
}

/// Hop that adds telemetry to departing packets.
#[derive(Debug, Clone)]
pub struct Stamper {
    sent_bytes: u32,
    bytes_per_ns: f32,
}

impl Stamper {
    /// The hop of `port`.
    pub fn new(port: &Port) -> Self {
        Stamper { sent_bytes: 0, bytes_per_ns: (port.capacity_bps / 8e9) as f32 }
    }
}

impl<S: Scheme<Data = IntHeader>> Hop<S> for Stamper {
    fn on_capacity(&mut self, port: &Port) {
        self.bytes_per_ns = (port.capacity_bps / 8e9) as f32;
    }
    #[inline]
    fn on_dequeue(&mut self, io: &mut Io<S>, packet: &mut Packet<S>, port: &Port) {
        self.sent_bytes = self.sent_bytes.wrapping_add(packet.bytes);
        if packet.kind != PacketKind::Data || packet.hop == 0 {
            return;
        }
        packet.data.path = onto(packet.data.path, port.link);
        let at = usize::from(packet.data.hops);
        if at < MAX_HOPS {
            packet.data.links[at] = Record {
                at_ns: io.now_ns as u32,
                sent_bytes: self.sent_bytes,
                queued_bytes: port.queued_bytes.min(u64::from(u32::MAX)) as u32,
                bytes_per_ns: self.bytes_per_ns,
            };
            packet.data.hops += 1;
        }
    }
}
