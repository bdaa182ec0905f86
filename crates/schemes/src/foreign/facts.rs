//! Properties that a user-supplied scheme declares.

use crate::queue::SfqPlan;
use crate::red::Red;
use subak_core::InputError;
use subak_core::scheme::{Marks, Port, Rules};

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

/// A queue length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum QueueLength {
    /// Full-size packets at 10 Gb/s; scales with the link's capacity, and is at least two.
    Packets(f64),
    /// Bytes, the same at every link.
    Bytes(f64),
}

impl QueueLength {
    /// An error if RED with this as its lower threshold does not end at or above it.
    pub fn check_below(self, high: QueueLength) -> Result<(), InputError> {
        let is_below = match (self, high) {
            (QueueLength::Packets(low), QueueLength::Packets(high))
            | (QueueLength::Bytes(low), QueueLength::Bytes(high)) => low <= high,
            _ => {
                let what = "RED's thresholds are in packets and in bytes";
                return Err(InputError::new("", what, "give both in the same unit"));
            }
        };
        let refusal = || InputError::new("", "RED's low threshold is above the high one", "give a low of at most high");
        if is_below { Ok(()) } else { Err(refusal()) }
    }

    /// The length at `port`, bytes.
    pub fn bytes(self, port: &Port) -> u64 {
        match self {
            QueueLength::Packets(packets) => {
                let packets = (packets * port.capacity_bps / REFERENCE_BPS).max(2.0);
                (packets * f64::from(port.mtu_bytes)) as u64
            }
            QueueLength::Bytes(bytes) => bytes as u64,
        }
    }
}

/// ECN marking of data packets at their arrival at a queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Marking {
    /// Name of the parameter that sets the threshold, as warnings name it.
    pub param: String,
    /// Every packet that arrives at a queue of this length or more is marked; under RED, the length from which on some
    /// are.
    pub threshold: QueueLength,
    /// RED: the length from which on every packet is marked, and the probability of a mark just below it.
    pub red: Option<(QueueLength, f64)>,
}

impl Marking {
    /// Marks every packet that arrives at a queue of `threshold` or more, which the parameter `param` sets.
    pub fn step(param: &str, threshold: QueueLength) -> Self {
        Marking { param: param.to_string(), threshold, red: None }
    }

    /// The queue lengths at `port`.
    pub(super) fn at(&self, port: &Port) -> Marks {
        let step = Marks::step(&self.param, self.threshold.bytes(port));
        match self.red {
            Some((high, most)) => Marks { high_bytes: high.bytes(port), most, ..step },
            None => step,
        }
    }

    /// The thresholds of RED at `port`; `None` if the threshold is a step.
    pub(super) fn red_at(&self, port: &Port) -> Option<Red> {
        let (high, most) = self.red?;
        let [low_bytes, high_bytes] = [self.threshold, high].map(|length| length.bytes(port) as f64);
        Some(Red { low_bytes, high_bytes, most })
    }
}

/// State at each link that Subak has, beside or in place of machines of the scheme's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BuiltInHop {
    /// None.
    #[default]
    None,
    /// Writes the largest wait of a data packet at one link, ns, to this number of its header.
    LargestWait(u8),
    /// Adds a record of each link after the first to data packets: [`crate::telemetry`].
    Telemetry,
}

/// Properties that a user-supplied scheme declares.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Constant properties of the scheme.
    pub rules: Rules,
    /// Output queue.
    pub queue: QueueKind,
    /// ECN marking; `None`: no marking.
    pub marks: Option<Marking>,
    /// State at each link that Subak has.
    pub hop: BuiltInHop,
    /// Whether the scheme has a central controller.
    pub has_controller: bool,
}
