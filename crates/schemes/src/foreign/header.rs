//! Headers of a user-supplied scheme's packets, and what depends on their type: queues and built-in hops.

use super::facts::BuiltInHop;
use super::{Foreign, QueueKind};
use crate::queue::{Fifo, PFabricQueue, Priority, Ranked, Stfq, VirtualLength};
use crate::telemetry::{IntHeader, Stamper};
use std::fmt::Debug;
use subak_core::scheme::{Hop, Io, Packet, PacketKind, Port, Queue};

/// Count of numbers in a packet's header, or in a control message.
pub const NUMBERS: usize = 8;

/// Numbers of a user-supplied scheme in a packet's header, or in a control message.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Numbers(pub [f64; NUMBERS]);

/// Header of the packets of a user-supplied scheme: [`Numbers`]; `()` for a scheme none of whose hooks sees packets,
/// which are half as large; or the telemetry of links.
pub trait Header: Copy + Default + Debug + Send + 'static {
    /// Whether hooks see packets: `stamp`, `on_enqueue`, `on_dequeue` and `on_data`.
    const SHOWN: bool;
    /// Output queue of a scheme with these headers.
    type Queue: Queue<Foreign<Self>>;
    /// Subak's own state at a link.
    type BuiltIn: Hop<Foreign<Self>>;
    /// An empty queue of type `kind` at `port`, of at most `room_bytes`. Headers without numbers have no queues that
    /// read them, and `()` only drop-tail FIFOs.
    fn queue(kind: QueueKind, port: &Port, room_bytes: u64) -> Self::Queue;
    /// Subak's own state at `port`.
    fn built_in(kind: BuiltInHop, port: &Port) -> Self::BuiltIn;
    /// The numbers; zeros without them.
    fn numbers(&self) -> Numbers;
    /// Sets the numbers, if the header has any.
    fn set(&mut self, numbers: Numbers);
    /// Records of the links that a data packet passed, if they write them.
    fn telemetry(&self) -> Option<&IntHeader> {
        None
    }
}

impl Header for () {
    const SHOWN: bool = false;
    type Queue = Fifo;
    type BuiltIn = ();
    fn queue(kind: QueueKind, _port: &Port, room_bytes: u64) -> Fifo {
        debug_assert!(matches!(kind, QueueKind::Fifo), "other queues read the numbers of packets");
        Fifo::new(room_bytes)
    }
    fn built_in(kind: BuiltInHop, _port: &Port) {
        debug_assert!(kind == BuiltInHop::None, "hops write to headers");
    }
    #[inline]
    fn numbers(&self) -> Numbers {
        Numbers::default()
    }
    #[inline]
    fn set(&mut self, _numbers: Numbers) {}
}

impl Header for Numbers {
    const SHOWN: bool = true;
    type Queue = Box<dyn Queue<Foreign>>;
    type BuiltIn = LargestWaitHop;
    fn queue(kind: QueueKind, port: &Port, room_bytes: u64) -> Self::Queue {
        match kind {
            QueueKind::Fifo => Box::new(Fifo::new(room_bytes)),
            QueueKind::Priority => Box::new(Priority::new(room_bytes)),
            QueueKind::Rank => Box::new(PFabricQueue::new(room_bytes)),
            QueueKind::Stfq => Box::new(Stfq::new(port)),
            QueueKind::FairCodel(plan) => Box::new(plan.queue(port)),
        }
    }
    fn built_in(kind: BuiltInHop, _port: &Port) -> LargestWaitHop {
        LargestWaitHop(if let BuiltInHop::LargestWait(number) = kind { Some(number) } else { None })
    }
    #[inline]
    fn numbers(&self) -> Numbers {
        *self
    }
    #[inline]
    fn set(&mut self, numbers: Numbers) {
        *self = numbers;
    }
}

impl Header for IntHeader {
    const SHOWN: bool = false;
    type Queue = Box<dyn Queue<Foreign<IntHeader>>>;
    type BuiltIn = Stamper;
    fn queue(kind: QueueKind, port: &Port, room_bytes: u64) -> Self::Queue {
        match kind {
            QueueKind::Priority => Box::new(Priority::new(room_bytes)),
            QueueKind::FairCodel(plan) => Box::new(plan.queue(port)),
            QueueKind::Fifo | QueueKind::Rank | QueueKind::Stfq => {
                debug_assert!(matches!(kind, QueueKind::Fifo), "that queue reads the numbers of packets");
                Box::new(Fifo::new(room_bytes))
            }
        }
    }
    fn built_in(_kind: BuiltInHop, port: &Port) -> Stamper {
        Stamper::new(port)
    }
    #[inline]
    fn numbers(&self) -> Numbers {
        Numbers::default()
    }
    #[inline]
    fn set(&mut self, _numbers: Numbers) {}
    #[inline]
    fn telemetry(&self) -> Option<&IntHeader> {
        Some(self)
    }
}

/// Hop that writes the largest wait of a data packet at one link, ns, to a number of its header; `None`: it does nothing.
#[derive(Debug, Clone, Copy)]
pub struct LargestWaitHop(Option<u8>);

impl Hop<Foreign> for LargestWaitHop {
    fn observes_departures(&self) -> bool {
        self.0.is_some()
    }
    fn has_state(&self) -> bool {
        false
    }
    #[inline]
    fn on_dequeue(&mut self, io: &mut Io<Foreign>, packet: &mut Packet<Foreign>, _port: &Port) {
        if let Some(number) = self.0
            && packet.kind == PacketKind::Data
        {
            let largest = &mut packet.data.0[usize::from(number)];
            *largest = largest.max((io.now_ns - packet.enqueued_ns) as f64);
        }
    }
}

/// The rank of a packet is the first number of its header. Queues also read this number as its virtual length.
impl Ranked for Foreign {
    fn rank(packet: &Packet<Foreign>) -> u64 {
        packet.data.0[0].max(0.0) as u64
    }
}

impl VirtualLength for Numbers {
    fn virtual_len(&self) -> f64 {
        let length = self.0[0];
        if length.is_finite() { length.max(0.0) } else { 0.0 }
    }
}
