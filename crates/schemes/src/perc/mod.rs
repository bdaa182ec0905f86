//! Common parts of the PERC family: each flow has one control packet that circles between source and sink, and links
//! read and write it (PERC thesis, chapters 2 to 4).
//!
//! A member of the family is a [`Rule`]: the packet's fields for each link, a link's state, and their update when a
//! packet passes. The rest is common: when and how fast the packet is sent (section 4.1, "Limiting control
//! overhead"), recovery of lost packets, the timer of `round` (section 4.1, "Adjusting round automatically"), and the
//! pacing rate of data.
//!
//! Departures from the thesis:
//!
//! - `N`, the number of flows at a link, counts one direction, and each direction gets half of the capacity for
//!   control packets. A packet returns over the reverse link, which does not know the flow.
//! - Flows have different RTTs. A packet therefore carries its flow's period, the larger of its last RTT and Tx_ctrl
//!   (minimum interval between two control packets of a flow). `round` is at least the longest period of a link's own
//!   flows plus the time that a control packet may wait for data packets. It is halved while it is longer than needed.
//! - If a member does not recover from lost packets, links reset their flow state when routing notices a failure or a
//!   recovery, and when the link recovers. Otherwise flows of lost packets would be counted forever. For each link, a
//!   packet carries the reset count at which its flow was counted. If that is outdated, the link counts the flow again.
//! - If data is not ACKed either, a lost packet is replaced by a probe that no link counts, until one returns. On a
//!   dead path every counted packet would be added by the links before the failure. Members that recover send a
//!   counted packet first.

pub mod division;
pub mod fixed;
#[cfg(test)]
mod fixed_tests;
mod hop;
mod source;
mod sum;
pub mod wire;

pub use hop::{PercHop, Round};
pub use source::{PercSink, PercSource};
pub use sum::{FixedSum, Scale, SumUnit, Sums};

use crate::queue::Priority;
use std::fmt::Debug;
use subak_core::keys::{AMOUNT, ValueType};
use subak_core::scheme::{FlowInfo, Follows, InRounds, Info, Named, Param, Params, Port, Rules, Scheme, Visit};
use subak_core::{InputError, Ns};

/// Parameter `tie`: relative difference within which rates count as equal.
pub const TIE: Param = Param::number(
    "tie",
    1e-9,
    AMOUNT,
    "relative difference within which rates count as equal, in b <= e and b < MaxE; at 0 rounding errors keep a few \
            networks in ten thousand from ever settling",
);

/// Smallest control packet on the wire, bytes: a minimum Ethernet frame.
pub const MIN_CONTROL_BYTES: u32 = 64;

/// Bytes of Ethernet header and checksum around a control packet's content.
pub const FRAMING_BYTES: u32 = 18;

/// Result of one update of a control packet at a link, as the thesis' figures show it. Rates are per unit of weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FigureUpdate {
    /// Limit rate: the smallest rate that another link allows the flow, bit/s.
    pub e: f64,
    /// Bottleneck rate of this link, bit/s.
    pub b: f64,
    /// Allocation, bit/s.
    pub a: f64,
    /// Whether the flow is bottlenecked here (state B; otherwise E).
    pub bottlenecked: bool,
    /// Whether other links must ignore the bottleneck rate.
    pub ignored: bool,
}

/// Update rule of a PERC scheme. All rates in packets and at links are per unit of weight.
pub trait Rule: Clone + Debug + Send + 'static {
    /// Name, parameters and goal of the scheme.
    const INFO: Info;
    /// Whether links run a timer that ends rounds.
    const ROUNDS: bool;
    /// Whether links remove flows whose packet was lost, so that the source may restart them safely.
    const RECOVERS: bool;
    /// Whether [`Rule::content_bytes`] includes the virtual link for the flow's demand. If not, the packet of a flow
    /// with a demand is sized as for one more link.
    const NAMES_OWN_LINK: bool = false;
    /// Fields of a control packet that links read and write.
    type Fields: Clone + Debug + Send;
    /// State of a link.
    type Link: Send;

    /// Creates the rule with `params`.
    fn new(params: &Params) -> Result<Self, InputError>;
    /// Fields of a new flow over `hops` links.
    fn fields(&self, hops: u16) -> Self::Fields;
    /// State of a link of `capacity_bps` without flows.
    fn link(&self, capacity_bps: f64) -> Self::Link;
    /// Sets the link's capacity.
    fn resize(&self, link: &mut Self::Link, capacity_bps: f64);
    /// Updates the fields of a flow of `weight`; `leaving`: this is the flow's teardown.
    fn update(
        &self,
        link: &mut Self::Link,
        fields: &mut Self::Fields,
        visit: Visit,
        weight: f64,
        leaving: bool,
    ) -> FigureUpdate;
    /// Changes the weight of a counted flow from `was` to `weight`, before the link's update. A rule that stores each
    /// flow's weight has nothing to do.
    fn reweigh(&self, link: &mut Self::Link, fields: &Self::Fields, visit: Visit, was: f64, weight: f64);
    /// Resets the flow's field for its `hop`-th link, which has reset its flow state, for rules with per-flow state
    /// in packets.
    fn forgotten(&self, fields: &mut Self::Fields, hop: u16) {
        let _ = (fields, hop);
    }
    /// Ends a round of the link, after which MaxE is reset.
    fn new_round(&self, link: &mut Self::Link) {
        let _ = link;
    }
    /// Sets the flow's demand, `rate` per unit of weight: the rate of the virtual link l0 (PERC thesis, sections 4.1
    /// and 5.1).
    fn demand(&self, fields: &mut Self::Fields, rate: f64);
    /// Number of flows over the link, if the rule counts them itself.
    fn flows(link: &Self::Link) -> Option<u32> {
        let _ = link;
        None
    }
    /// The flow's rate per unit of weight, from a returned packet; may change the fields for the next trip.
    fn returned(&self, fields: &mut Self::Fields) -> f64;
    /// The packet's allocation for its `hop`-th link, per unit of weight, if it has one for each link.
    fn allocated(fields: &Self::Fields, hop: u16) -> Option<f64>;
    /// Size of the packet's content for `hops` links, bytes.
    fn content_bytes(&self, hops: u16) -> u32;
    /// Size of the link's state in this program, bytes: its type, plus a table of flows if it has one. A switch stores
    /// the variables of [`Rule::watch`] in 2 bytes each: s-PERC's four are the 8 bytes in the abstract of the s-PERC
    /// paper.
    fn state_bytes(link: &Self::Link) -> usize {
        size_of_val(link)
    }
    /// A link's state by the thesis' names, for traces.
    fn watch(link: &Self::Link) -> Vec<(&'static str, f64)>;
}

/// A control packet.
#[derive(Debug, Clone)]
pub struct PercMessage<R: Rule> {
    /// The flow's weight.
    pub weight: f64,
    /// Weight with which links counted the flow on the packet's previous trip.
    pub was: f64,
    /// Serial number of the source's packets; the source ignores a returned packet with an old number.
    pub serial: u32,
    /// Whether this is the flow's first control packet.
    pub first: bool,
    /// Whether this is the flow's teardown.
    pub fin: bool,
    /// Whether the packet only probes the path, without being counted by links.
    pub probe: bool,
    /// Largest Tx_ctrl of the path's links, ns: minimum interval between two control packets of the flow.
    pub tx_ns: Ns,
    /// Period of the flow on its latest trip, ns: the larger of RTT and Tx_ctrl. On the wire, it shares the four bytes
    /// of Tx_ctrl.
    pub period_ns: Ns,
    /// Longest round (time between two resets of MaxE) of the path's links, ns.
    pub round_ns: Ns,
    /// Reset counts of the path's links when they counted the flow.
    pub counts: HopCounts,
    /// Fields that links read and write.
    pub fields: R::Fields,
}

/// For each link of a path, its number of resets when it counted the flow. On the wire one bit per link suffices; the
/// packet's size does not include it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HopCounts(Vec<u32>);

impl HopCounts {
    fn of(&self, hop: u16) -> u32 {
        self.0.get(usize::from(hop)).copied().unwrap_or(0)
    }

    fn set(&mut self, hop: u16, count: u32) {
        let hop = usize::from(hop);
        self.0.resize(self.0.len().max(hop + 1), 0);
        self.0[hop] = count;
    }
}

/// Parameter `control`: fraction of each link reserved for control packets.
pub const CONTROL: Param = Param::number(
    "control",
    0.04,
    AMOUNT,
    "share of each link for control packets; 0 takes nothing and limits nothing",
)
.in_rounds(InRounds::Zero);
/// Parameter `headroom`: fraction of each link left unallocated, so that queues drain.
pub const HEADROOM: Param = Param::number(
    "headroom",
    0.02,
    AMOUNT,
    "share of each link left unallocated, so that queues drain; where traffic runs in both directions, the default is \
            larger by the ACKs' share (64 of 1500 bytes: 0.043)",
)
.following(Follows::Acks)
.in_rounds(InRounds::Zero);
/// Parameter `reverse`: whether links also update control packets on the reverse path.
pub const REVERSE: Param = Param::flag("reverse", true, "links also update control packets on the reverse path");
/// Parameter `rto`: time after which a control packet that has not returned is marked lost.
pub const RTO: Param = Param::number(
    "rto",
    0.0,
    ValueType::Time,
    "time without return after which a control packet is marked lost; 0: two periods after two rounds of the links on \
            its path; eight periods where links have no rounds",
)
.in_rounds(InRounds::RoundsIfLossy(2.0));
/// Parameter `round`: constant time between resets of MaxE; 0 if it is adjusted.
pub const ROUND: Param = Param::number(
    "round",
    0.0,
    ValueType::Time,
    "constant time between resets of MaxE; 0: from `first_round` on, adjusted as section 4.1 says",
)
.in_rounds(InRounds::Rounds(1.0));
/// Parameter `first_round`: initial time between resets of MaxE, if it is adjusted.
pub const FIRST_ROUND: Param = Param::number(
    "first_round",
    0.0,
    ValueType::Time,
    "initial time between resets of MaxE, where it is adjusted; 0: twice the network's largest RTT",
);

/// Parameter `division_kb`: size of the look-up tables that links divide by, KB; 0 for exact division.
pub const DIVISION: Param = Param::number(
    "division_kb",
    0.0,
    AMOUNT,
    "divide by look-up tables of at most so many KB, as hardware does (section 4.1); 0 divides exactly",
);

/// Parameter `short`: largest size of a flow that starts at line rate, bytes.
pub const SHORT: Param = Param::number(
    "short",
    0.0,
    ValueType::Bytes,
    "size up to which flows start at line rate and have priority; those of at most a BDP send no control packets",
);

/// Parameter `demand`: whether control packets carry the flow's remaining bytes.
pub const DEMAND: Param = Param::flag(
    "demand",
    true,
    "whether control packets carry the flow's remaining bytes, so that links allocate no more than these an RTT",
);

/// Parameters common to the PERC schemes.
#[derive(Debug, Clone, Copy)]
pub struct PercSettings {
    pub(crate) control: f64,
    pub(crate) headroom: f64,
    pub(crate) reverse: bool,
    pub(crate) rto_ns: Ns,
    pub(crate) round_ns: Ns,
    pub(crate) first_round_ns: Ns,
    pub(crate) short_bytes: u64,
    pub(crate) demand: bool,
}

impl PercSettings {
    /// Capacity of a link for data, bit/s.
    fn data_bps(&self, port: &Port) -> f64 {
        port.capacity_bps * (1.0 - self.control - self.headroom)
    }

    /// Capacity of a link for the control packets of one direction, bit/s.
    fn control_bps(&self, port: &Port) -> f64 {
        port.capacity_bps * self.control / 2.0
    }

    /// Reads the parameters. `round`, `first_round`, `short` and `demand` are read only if the scheme declares them.
    fn read(info: &Info, params: &Params) -> Result<Self, InputError> {
        let has = |p: Param| info.params.iter().any(|q| q.key.name == p.key.name);
        let control = params.within("control", 0.0, 0.5)?;
        let headroom = params.within("headroom", 0.0, 0.5)?;
        Ok(PercSettings {
            control,
            headroom,
            reverse: params.flag("reverse"),
            rto_ns: params.ns("rto"),
            round_ns: if has(ROUND) { params.ns("round") } else { 0 },
            first_round_ns: if has(FIRST_ROUND) { params.ns("first_round") } else { 0 },
            short_bytes: if has(SHORT) { params.number("short") as u64 } else { 0 },
            demand: has(DEMAND) && params.flag("demand"),
        })
    }
}

/// A PERC scheme with update rule `R`.
#[derive(Debug, Clone)]
pub struct Perc<R: Rule> {
    pub(crate) rule: R,
    pub(crate) settings: PercSettings,
}

impl<R: Rule> Named for Perc<R> {
    const INFO: Info = R::INFO;
}

impl<R: Rule> Scheme for Perc<R> {
    type Data = ();
    type Ctl = PercMessage<R>;
    type Queue = Priority;
    type Source = PercSource<R>;
    type Hop = PercHop<R>;
    type Sink = PercSink;

    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(Perc { rule: R::new(params)?, settings: PercSettings::read(&R::INFO, params)? })
    }
    /// Rules; the cost of a data packet includes control packets.
    fn rules(&self) -> Rules {
        Rules {
            data_share: Some(1.0 - self.settings.control - self.settings.headroom),
            recovers: R::RECOVERS,
            per_hop: 1.95,
            ..Rules::default()
        }
    }
    fn queue(&self, port: &Port) -> Priority {
        Priority::new(port.buffer_bytes)
    }
    fn source(&self, flow: &FlowInfo) -> PercSource<R> {
        PercSource::new(self.rule.clone(), self.settings, flow)
    }
    fn hop(&self, port: &Port) -> PercHop<R> {
        PercHop::new(self.rule.clone(), self.settings, port)
    }
    fn sink(&self, _flow: &FlowInfo) -> PercSink {
        PercSink
    }
    fn allocated(message: &PercMessage<R>, hop: u16) -> Option<f64> {
        R::allocated(&message.fields, hop).map(|a| a * message.weight)
    }
}

/// Bytes on the wire of a control packet with `content_bytes` in it.
pub fn wire_bytes(content_bytes: u32) -> u32 {
    (FRAMING_BYTES + content_bytes).max(MIN_CONTROL_BYTES)
}

/// Size of s-PERC's packet for `hops` links, bytes (PERC thesis, section 4.1, "Control packet size"). Per link 4 bytes
/// each for a and b, one bit each for s and the ignore bit; 4 bytes for Tx_ctrl, one bit for FIN. `robust` adds one
/// byte per link for the round number, and the flow's remaining size as a rate (4 bytes and its ignore bit). `compact`
/// replaces the links' rates and ignore bits by one rate for all links (including the virtual one) and one byte for its
/// link.
pub fn content_bytes(hops: u16, compact: bool, robust: bool) -> u32 {
    let mut link_bits = 32 + 1;
    let mut bits = 32 + 1;
    if compact {
        bits += 32 + 8;
    } else {
        link_bits += 32 + 1;
    }
    if robust {
        link_bits += 8;
        bits += if compact { 0 } else { 32 + 1 };
    }
    (u32::from(hops) * link_bits + bits).div_ceil(8)
}

/// The smallest `rate` over the fields of all links except the `hop`-th.
#[inline]
pub fn least_other<F>(fields: &[F], hop: usize, rate: impl Fn(&F) -> f64) -> f64 {
    let least = |fields: &[F]| fields.iter().map(&rate).fold(f64::INFINITY, |m, x| if x < m { x } else { m });
    least(&fields[..hop]).min(least(&fields[hop + 1..]))
}

/// Relative tolerance within which two rates count as equal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tie(pub(crate) f64);

impl Default for Tie {
    fn default() -> Self {
        Tie(1e-9)
    }
}

impl Tie {
    /// Reads the parameter `tie`.
    pub fn read(params: &Params) -> Result<Self, InputError> {
        params.within("tie", 0.0, 0.1).map(Tie)
    }
    /// A tolerance of at least `error`: rates that differ by less than the arithmetic's error count as equal.
    #[must_use]
    pub fn covering(self, error: f64) -> Self {
        Tie(self.0.max(error))
    }
    /// Whether `x` is at most `y`, or above it by the tolerance at most.
    #[inline]
    pub fn at_most(self, x: f64, y: f64) -> bool {
        x <= y * (1.0 + self.0)
    }
    /// Whether `x` is below `y` by more than the tolerance.
    #[inline]
    pub fn below(self, x: f64, y: f64) -> bool {
        x < y * (1.0 - self.0)
    }
}
