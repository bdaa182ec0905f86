//! What a scheme from outside says of itself.

use crate::queue::SfqPlan;
use subak_core::Nic;
use subak_core::scheme::{Class, Headers, Port, Recovery};

/// Capacity for which a threshold in packets is meant, bit/s.
const REFERENCE_BPS: f64 = 10e9;

/// An output queue by name.
#[derive(Debug, Clone, Copy, Default)]
pub enum QueueKind {
    /// First in, first out.
    #[default]
    Fifo,
    /// Strict priority between classes.
    Priority,
    /// Least rank first; a full queue drops the largest. The rank is the first number of the header.
    Rank,
    /// Start-time fair queueing by virtual lengths, the first number of the header.
    Stfq,
    /// Fair queues under CoDel.
    FairCodel(SfqPlan),
}

/// A queue length above which data packets are marked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Marks {
    /// So many full packets at 10 Gb/s; more at a faster link, and at least two.
    Packets(f64),
    /// So many bytes at every link.
    Bytes(f64),
}

impl Marks {
    /// At `port`.
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

/// What a scheme from outside says of itself, by the methods of [`Scheme`](subak_core::scheme::Scheme).
#[derive(Debug, Clone)]
pub struct Facts {
    /// Fraction of a link that the scheme lets data use.
    pub data_share: f64,
    /// Whether rates converge again after control messages were lost.
    pub recovers: bool,
    /// Whether all packets of a subflow have to take one path.
    pub takes_one_path: bool,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Bytes of its headers.
    pub headers: Headers,
    /// Class of ACKs; `None`: that of the data.
    pub acks: Option<Class>,
    /// Scheduling of the NIC; `None`: the network's.
    pub nic: Option<Nic>,
    /// Output queue.
    pub queue: QueueKind,
    /// Marks at the queues, and the parameter that says at which length.
    pub marks: Option<(String, Marks)>,
    /// Processor time of a packet-hop, in DCTCP's.
    pub per_hop: f64,
}

impl Default for Facts {
    fn default() -> Self {
        Facts {
            data_share: 1.0,
            recovers: true,
            takes_one_path: false,
            recovery: Recovery::default(),
            headers: Headers::default(),
            acks: None,
            nic: None,
            queue: QueueKind::default(),
            marks: None,
            per_hop: 1.0,
        }
    }
}
