//! Constant properties of a scheme.

use super::{Class, Lossless, Recovery};
use crate::Nic;

/// Constant properties of a scheme with parameters, for the backend and for the checks before a run. A scheme states
/// those that differ from the default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Fraction of a link's capacity allocated to data, if part is reserved for control packets or ACKs, or left free.
    /// `None`: all packets share the whole capacity.
    pub data_share: Option<f64>,
    /// Whether rates converge again after control messages were lost or a link was down. Otherwise links keep
    /// outdated state.
    pub recovers: bool,
    /// Whether a source compares successive values from links, so that all packets of a subflow must take one path.
    pub one_path: bool,
    /// How the backend detects losses of data and retransmits.
    pub recovery: Recovery,
    /// PFC parameters if switches are lossless. The scheme's queue must then support classes
    /// ([`Queue::pause`](super::Queue::pause)) and need not limit its length.
    pub lossless: Option<Lossless>,
    /// Bytes that the scheme's header adds to a full packet and to an ACK.
    pub headers: Headers,
    /// Priority class of ACKs; `None`: the class of the data packet.
    pub acks: Option<Class>,
    /// NIC scheduling, if the scheme's paper specifies it; `None`: the scheduling that the network sets.
    pub nic: Option<Nic>,
    /// Resolution of transmission times and pacing gaps.
    pub clock: Clock,
    /// How NICs apply pacing rates.
    pub pacing: Pacing,
    /// Estimated processor time of the simulator per packet-hop, relative to DCTCP.
    pub per_hop: f64,
}

impl Rules {
    /// Fraction of a link's capacity for data: 1 if all packets share it.
    pub fn share(&self) -> f64 {
        self.data_share.unwrap_or(1.0)
    }
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            data_share: None,
            recovers: true,
            one_path: false,
            recovery: Recovery::default(),
            lossless: None,
            headers: Headers::default(),
            acks: None,
            nic: None,
            clock: Clock::Exact,
            pacing: Pacing::default(),
            per_hop: 1.0,
        }
    }
}

/// Bytes that a scheme's own header adds to packets on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Headers {
    /// Bytes added to each data packet.
    pub data_bytes: u32,
    /// Bytes added to each ACK.
    pub ack_bytes: u32,
}

/// Resolution of transmission times and pacing gaps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Clock {
    /// Fine enough that rounding does not change rates.
    #[default]
    Exact,
    /// Whole nanoseconds, rounded down, at least one: links and pacing are faster than specified. The pacing gap
    /// counts from a packet's actual departure, not from its earliest possible one.
    WholeNs,
}

/// NIC pacing. By default each flow sends at its own latest pacing rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pacing {
    /// Whether a new rate applies from the next packet on: a pacing gap that has begun ends as scheduled.
    pub late_rates: bool,
    /// Whether a NIC has a single timer. The timer is set for the flow that may send first at that time. Flows that
    /// may send earlier wait until another event wakes the NIC: an arrival, the end of a packet, a new flow.
    pub one_timer: bool,
}
