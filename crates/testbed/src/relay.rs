//! Orders to the relay, the program that carries packets between both ends of a link with delay or faults.

use crate::SCHEMA;
use serde::{Deserialize, Serialize};

/// Largest number of directed links of a relay.
pub const MOST_RELAYED: usize = 8192;
/// Longest delay of a link, ns.
pub const MOST_DELAY_NS: u64 = 60_000_000_000;

/// First line of the relay's standard input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelayOrder {
    /// Version of the document.
    pub schema: u32,
    /// Seed of all random choices.
    #[serde(default)]
    pub seed: u64,
    /// Links, in the order of their numbers.
    pub links: Vec<RelayedLink>,
}

/// A directed link, between two TAP devices whose files the relay inherits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelayedLink {
    /// File of the device at the link's start.
    pub from: i32,
    /// File of the device at the link's end.
    pub to: i32,
    /// Capacity, bit/s. It bounds the memory of packets on the link.
    pub rate_bps: f64,
    /// Delay, ns.
    pub delay_ns: u64,
}

/// A later line of the relay's standard input. The relay answers each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelayCommand {
    /// Number that the answer repeats.
    pub id: u64,
    /// Changes of links.
    #[serde(default)]
    pub changes: Vec<TimedChange>,
}

/// A change of a link at a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimedChange {
    /// Time, ns: of the run in a request, of the monotonic clock in a command. 0: at once.
    #[serde(default)]
    pub at_ns: u64,
    /// Number of the link.
    pub link: u32,
    /// The change.
    pub change: RelayChange,
}

/// A change of a link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RelayChange {
    /// The link recovers, or fails: packets on it, and those that leave its queue, are then lost.
    Up(bool),
    /// New delay, ns. Packets on the link keep theirs.
    DelayNs(u64),
    /// Starts, changes or ends an impairment of packets.
    Impair(PacketImpairment),
}

/// An impairment of the packets that leave a link's queue.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacketImpairment {
    /// Number of the impairment at its link; another of the same number replaces it. A packet meets one impairment
    /// at most: the first in the order of their numbers.
    pub slot: u32,
    /// Fate of an impaired packet.
    pub fate: PacketFate,
    /// Probability per packet, 0 to 1; 0 ends the impairment.
    pub probability: f64,
    /// Whether data packets are impaired.
    pub data: bool,
    /// Whether ACKs are impaired.
    pub ack: bool,
    /// Whether control packets are impaired.
    pub ctl: bool,
}

/// Fate of an impaired packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacketFate {
    /// It is lost.
    Lost,
    /// It arrives twice.
    Doubled,
    /// It arrives later by this time, ns; other packets overtake it.
    Late(u64),
}

/// The relay's answer to a command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RelayAnswer {
    /// Version of the document.
    pub schema: u32,
    /// Number of the command.
    pub id: u64,
    /// Reason for which the command was refused.
    pub error: Option<String>,
    /// Largest time by which a packet was sent too late, ns, since the command before.
    pub latest_ns: u64,
    /// Links, in the order of their numbers.
    pub links: Vec<RelayedCounts>,
}

/// State of a link, and counters since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RelayedCounts {
    /// Whether packets pass.
    pub up: bool,
    /// Delay, ns.
    pub delay_ns: u64,
    /// Probability of loss of a data packet.
    pub loss: f64,
    /// Packets that arrived at the link's end, copies included.
    pub carried_packets: u64,
    /// Packets on the link.
    pub waiting_packets: u64,
    /// Packets lost by an impairment.
    pub lost_packets: u64,
    /// Packets that were doubled.
    pub doubled_packets: u64,
    /// Packets with an additional delay.
    pub late_packets: u64,
    /// Packets lost because the link was down.
    pub cut_packets: u64,
    /// Packets dropped because they did not fit into the bound of memory.
    pub overflow_packets: u64,
}

impl RelayOrder {
    /// Checks the order. An error names the place, the value found and a valid one.
    pub fn check(&self) -> Result<(), String> {
        if self.schema != SCHEMA {
            return Err(format!("schema: it is {}; this program reads {SCHEMA}", self.schema));
        }
        if self.links.len() > MOST_RELAYED {
            return Err(format!("links: there are {}; {MOST_RELAYED} at most", self.links.len()));
        }
        for (l, link) in self.links.iter().enumerate() {
            if !(link.rate_bps.is_finite() && link.rate_bps > 0.0) {
                return Err(format!("links[{l}].rate_bps: it is {}; give a positive number", link.rate_bps));
            }
            RelayChange::DelayNs(link.delay_ns).check().map_err(|e| format!("links[{l}].{e}"))?;
        }
        Ok(())
    }
}

impl RelayCommand {
    /// Checks the command for a relay of `links` links.
    pub fn check(&self, links: usize) -> Result<(), String> {
        for (c, timed) in self.changes.iter().enumerate() {
            if timed.link as usize >= links {
                return Err(format!("changes[{c}].link: there are links 0 to {}", links.saturating_sub(1)));
            }
            timed.change.check().map_err(|e| format!("changes[{c}].{e}"))?;
        }
        Ok(())
    }
}

impl RelayChange {
    fn check(&self) -> Result<(), String> {
        match *self {
            RelayChange::DelayNs(ns) | RelayChange::Impair(PacketImpairment { fate: PacketFate::Late(ns), .. })
                if ns > MOST_DELAY_NS =>
            {
                Err(format!("delay_ns: it is {ns}; at most {MOST_DELAY_NS}"))
            }
            RelayChange::Impair(PacketImpairment { probability, .. }) if !(0.0..=1.0).contains(&probability) => {
                Err(format!("probability: it is {probability}; give a number from 0 to 1"))
            }
            _ => Ok(()),
        }
    }
}
