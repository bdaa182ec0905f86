//! Messages between endpoints and the allocator, in bytes (Flowtune, section 5.3: 16 bytes for a flowlet's start, 4 for its end,
//! 6 for a rate), and the only parser of unauthenticated bytes.
//!
//! A [`Datagram`] is a header of 36 bytes and groups of records of one kind; numbers are big-endian:
//!
//! | bytes | header |
//! |---|---|
//! | 1 | version, 1 |
//! | 1 | bit 0: 0 to the allocator, 1 to an endpoint; bit 1: it requests an ACK |
//! | 2 | number of bytes after the header |
//! | 4 | the endpoint's number |
//! | 8 | the sender's epoch: it grows with each restart |
//! | 8 | the receiver's epoch as known to the sender; 0: unknown |
//! | 4 | number of the datagram in its epoch, from 1; it wraps around to 1 |
//! | 4 | number of the latest datagram accepted from the receiver; 0: none |
//! | 4 | bit k: the datagram k + 1 before that was accepted too |
//!
//! A group is a kind (1 byte), the number of records (2 bytes), and the records. A [`Bundle`] carries datagrams for several
//! endpoints to one intermediary, which passes each on.
//!
//! Nothing here allocates more than a small multiple of the bytes it is given, and nothing panics.

mod bundle;
mod rate;
mod reader;
mod seal;

pub use bundle::Bundle;
pub use rate::Rate16;
pub use reader::Malformed;
use reader::Reader;
pub use seal::{Seal, Secret, TAG_BYTES, claimed_endpoint};

/// Version of the format.
pub const VERSION: u8 = 1;
/// Bytes of the header, before the records.
pub const HEADER_BYTES: usize = 36;
/// Bytes of a group's header, before its records.
pub const GROUP_BYTES: usize = 3;
/// Largest number of bytes of records and groups in a datagram.
pub const MOST_BYTES: usize = u16::MAX as usize;

/// Direction of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the allocator.
    Up,
    /// To an endpoint.
    Down,
}

/// Start of a flowlet: 16 bytes, and 2 more if it has a demand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Start {
    /// Number of the flowlet at its endpoint. Numbers increase, and none is reused in an epoch.
    pub flowlet: u32,
    /// Number of the destination endpoint.
    pub to: u32,
    /// Path selector: the switches' hash input, or a path's number.
    pub path: u32,
    /// Weight, positive and finite.
    pub weight: f32,
    /// Demand, if something other than the network limits the flowlet, such as its program.
    pub demand: Option<Rate16>,
}

/// End of a flowlet: 4 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowletEnd {
    /// Number of the flowlet.
    pub flowlet: u32,
}

/// Rate of a flowlet: 6 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowletRate {
    /// Number of the flowlet.
    pub flowlet: u32,
    /// Allocated rate.
    pub rate: Rate16,
}

/// Unscheduled traffic observed by an endpoint: 4 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observed {
    /// Rate sent.
    pub out: Rate16,
    /// Rate received.
    pub into: Rate16,
}

/// Loss rate of a flowlet that has an allocated rate: 6 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowletLoss {
    /// Number of the flowlet.
    pub flowlet: u32,
    /// Fraction of the flowlet's packets that were lost, in units of 2^-16.
    pub share: u16,
}

impl FlowletLoss {
    /// Size of the record, bytes.
    pub const BYTES: usize = 6;
}

/// One message between an endpoint and the allocator.
#[derive(Debug, Clone, PartialEq)]
pub struct Datagram {
    /// Direction: to the allocator, or to an endpoint.
    pub direction: Direction,
    /// Whether the datagram requests an ACK.
    pub asks: bool,
    /// Number of the endpoint that sends or receives the datagram.
    pub endpoint: u32,
    /// The sender's epoch.
    pub epoch: u64,
    /// The receiver's epoch as known to the sender; 0 for unknown.
    pub peer_epoch: u64,
    /// Number of the datagram in its epoch.
    pub number: u32,
    /// Number of the latest datagram accepted from the receiver; 0 for none.
    pub ack: u32,
    /// Bit k is set if datagram `ack - 1 - k` was accepted too.
    pub ack_mask: u32,
    /// Flowlets that started.
    pub starts: Vec<Start>,
    /// Flowlets that ended.
    pub ends: Vec<FlowletEnd>,
    /// Rates of flowlets.
    pub updates: Vec<FlowletRate>,
    /// Unscheduled traffic of the endpoint.
    pub observed: Option<Observed>,
    /// Loss rates of flowlets.
    pub losses: Vec<FlowletLoss>,
}

const START: u8 = 1;
const END: u8 = 2;
const UPDATE: u8 = 3;
const OBSERVED: u8 = 4;
const BOUNDED_START: u8 = 5;
const LOSS: u8 = 6;

impl Start {
    /// Size of the record without a demand, bytes.
    pub const BYTES: usize = 16;
    /// Size of the record with a demand, bytes.
    pub const BOUNDED_BYTES: usize = 18;

    /// Size of the record, bytes.
    pub fn bytes(&self) -> usize {
        if self.demand.is_some() { Start::BOUNDED_BYTES } else { Start::BYTES }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        for word in [self.flowlet, self.to, self.path, self.weight.to_bits()] {
            out.extend(word.to_be_bytes());
        }
        out.extend(self.demand.into_iter().flat_map(|demand| demand.code().to_be_bytes()));
    }

    fn read(reader: &mut Reader, bounded: bool) -> Result<Start, Malformed> {
        let (flowlet, to, path) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let weight = f32::from_bits(reader.u32()?);
        if !(weight.is_finite() && weight > 0.0) {
            return Err(reader.before(4, "a weight that is not positive"));
        }
        let demand = if bounded { Some(Rate16::from_code(reader.u16()?)) } else { None };
        Ok(Start { flowlet, to, path, weight, demand })
    }
}

impl FlowletEnd {
    /// Size of the record, bytes.
    pub const BYTES: usize = 4;
}

impl FlowletRate {
    /// Size of the record, bytes.
    pub const BYTES: usize = 6;
}

impl Datagram {
    /// A datagram without records.
    pub fn new(direction: Direction, endpoint: u32, epoch: u64) -> Self {
        Datagram {
            direction,
            asks: false,
            endpoint,
            epoch,
            peer_epoch: 0,
            number: 0,
            ack: 0,
            ack_mask: 0,
            starts: Vec::new(),
            ends: Vec::new(),
            updates: Vec::new(),
            observed: None,
            losses: Vec::new(),
        }
    }

    /// Size of the datagram's groups and records, bytes.
    pub fn body_bytes(&self) -> usize {
        let group = |count: usize, bytes: usize| if count == 0 { 0 } else { GROUP_BYTES + count * bytes };
        let bounded = self.starts_that(true).count();
        group(self.starts.len() - bounded, Start::BYTES)
            + group(bounded, Start::BOUNDED_BYTES)
            + group(self.ends.len(), FlowletEnd::BYTES)
            + group(self.updates.len(), FlowletRate::BYTES)
            + group(self.observed.iter().len(), 4)
            + group(self.losses.len(), FlowletLoss::BYTES)
    }

    fn starts_that(&self, bounded: bool) -> impl Iterator<Item = &Start> {
        self.starts.iter().filter(move |start| start.demand.is_some() == bounded)
    }

    /// Appends the datagram to `out`. `None` if it has more than [`MOST_BYTES`]; `out` is then unchanged.
    pub fn encode(&self, out: &mut Vec<u8>) -> Option<()> {
        let body = u16::try_from(self.body_bytes()).ok()?;
        out.extend([VERSION, u8::from(self.direction == Direction::Down) | u8::from(self.asks) << 1]);
        out.extend(body.to_be_bytes());
        out.extend(self.endpoint.to_be_bytes());
        out.extend(self.epoch.to_be_bytes());
        out.extend(self.peer_epoch.to_be_bytes());
        for word in [self.number, self.ack, self.ack_mask] {
            out.extend(word.to_be_bytes());
        }
        let group = |out: &mut Vec<u8>, kind: u8, count: usize| {
            out.push(kind);
            // The size of the whole body fits 16 bits.
            out.extend((count as u16).to_be_bytes());
        };
        let starts = |out: &mut Vec<u8>, kind: u8, bounded: bool| {
            let count = self.starts_that(bounded).count();
            if count > 0 {
                group(out, kind, count);
            }
            self.starts_that(bounded).for_each(|start| start.encode(out));
        };
        starts(out, START, false);
        if !self.ends.is_empty() {
            group(out, END, self.ends.len());
        }
        for end in &self.ends {
            out.extend(end.flowlet.to_be_bytes());
        }
        if !self.updates.is_empty() {
            group(out, UPDATE, self.updates.len());
        }
        for update in &self.updates {
            out.extend(update.flowlet.to_be_bytes());
            out.extend(update.rate.code().to_be_bytes());
        }
        if let Some(observed) = self.observed {
            group(out, OBSERVED, 1);
            out.extend(observed.out.code().to_be_bytes());
            out.extend(observed.into.code().to_be_bytes());
        }
        starts(out, BOUNDED_START, true);
        if !self.losses.is_empty() {
            group(out, LOSS, self.losses.len());
        }
        for loss in &self.losses {
            out.extend(loss.flowlet.to_be_bytes());
            out.extend(loss.share.to_be_bytes());
        }
        Some(())
    }

    /// Parses `bytes` as one datagram; remaining bytes are an error.
    pub fn decode(bytes: &[u8]) -> Result<Datagram, Malformed> {
        let mut reader = Reader::new(bytes);
        let datagram = Datagram::read(&mut reader)?;
        reader.end()?;
        Ok(datagram)
    }

    /// Parses the next datagram.
    fn read(reader: &mut Reader) -> Result<Datagram, Malformed> {
        if reader.u8()? != VERSION {
            return Err(reader.before(1, "a version that is not known"));
        }
        let flags = reader.u8()?;
        if flags > 3 {
            return Err(reader.before(1, "flags that are not known"));
        }
        let direction = if flags & 1 == 0 { Direction::Up } else { Direction::Down };
        let body = usize::from(reader.u16()?);
        let mut datagram = Datagram::new(direction, reader.u32()?, reader.u64()?);
        datagram.asks = flags & 2 != 0;
        datagram.peer_epoch = reader.u64()?;
        datagram.number = reader.u32()?;
        datagram.ack = reader.u32()?;
        datagram.ack_mask = reader.u32()?;
        let end = reader.at() + body;
        let mut last_kind = 0;
        while reader.at() < end {
            let kind = reader.u8()?;
            if kind <= last_kind {
                return Err(reader.before(1, "groups out of their order"));
            }
            last_kind = kind;
            datagram.read_group(kind, reader)?;
        }
        if reader.at() > end {
            return Err(reader.before(0, "records beyond the length that the header has"));
        }
        Ok(datagram)
    }

    fn read_group(&mut self, kind: u8, reader: &mut Reader) -> Result<(), Malformed> {
        let count = reader.u16()?;
        if count == 0 {
            return Err(reader.before(2, "a group without records"));
        }
        for _ in 0..count {
            match kind {
                START | BOUNDED_START => self.starts.push(Start::read(reader, kind == BOUNDED_START)?),
                END => self.ends.push(FlowletEnd { flowlet: reader.u32()? }),
                UPDATE => {
                    self.updates.push(FlowletRate { flowlet: reader.u32()?, rate: Rate16::from_code(reader.u16()?) })
                }
                OBSERVED if self.observed.is_none() => {
                    let (out, into) = (Rate16::from_code(reader.u16()?), Rate16::from_code(reader.u16()?));
                    self.observed = Some(Observed { out, into });
                }
                LOSS => self.losses.push(FlowletLoss { flowlet: reader.u32()?, share: reader.u16()? }),
                OBSERVED => return Err(reader.before(0, "other traffic told twice")),
                _ => return Err(reader.before(3, "a kind of record that is not known")),
            }
        }
        Ok(())
    }
}
