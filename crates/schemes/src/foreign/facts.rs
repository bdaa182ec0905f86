//! Properties that a user-supplied scheme declares.

use crate::queue::SfqPlan;
use subak_core::scheme::{Port, Rules};

/// Link capacity for which a marking threshold in packets is specified, bit/s.
const REFERENCE_BPS: f64 = 10e9;

/// Type of an output queue.
#[derive(Debug, Clone, Copy, Default)]
pub enum QueueKind {
    /// Drop-tail FIFO.
    #[default]
    Fifo,
    /// Strict priority between classes.
    Priority,
    /// Smallest rank first; a full queue drops the packet of the largest rank. The rank is the first number of a
    /// packet's header.
    Rank,
    /// Start-time fair queueing; a packet's virtual length is the first number of its header.
    Stfq,
    /// Fair queues under CoDel.
    FairCodel(SfqPlan),
}

/// Queue length above which data packets get an ECN mark.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Marks {
    /// Full-size packets at 10 Gb/s; scales with the link's capacity, and is at least two.
    Packets(f64),
    /// Bytes, the same at every link.
    Bytes(f64),
}

impl Marks {
    /// The marking threshold at `port`, bytes.
    pub fn bytes(self, port: &Port) -> u64 {
        match self {
            Marks::Packets(packets) => {
                let packets = (packets * port.capacity_bps / REFERENCE_BPS).max(2.0);
                (packets * f64::from(port.mtu_bytes)) as u64
            }
            Marks::Bytes(bytes) => bytes as u64,
        }
    }
}

/// Properties that a user-supplied scheme declares.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Constant properties of the scheme.
    pub rules: Rules,
    /// Output queue.
    pub queue: QueueKind,
    /// Threshold of ECN marking, and the name of the parameter that sets it; `None`: no marking.
    pub marks: Option<(String, Marks)>,
}
