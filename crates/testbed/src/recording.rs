//! The recording of a testbed run: results of flows and counters of links.

use serde::{Deserialize, Serialize};

/// The answer to a [`crate::Schedule`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// Of this document.
    pub schema: u32,
    /// In the order of the schedule.
    pub flows: Vec<Carried>,
    /// Ports, in the order of time: at the start first, at the end last.
    pub links: Vec<LinkSample>,
    /// The latest that anything happened after it was to happen, ns: a machine that has too much to do shows here.
    pub latest_ns: u64,
    /// When the last flow was over, ns.
    pub end_ns: u64,
    /// Processor time of the traffic program, ns.
    pub busy_ns: u64,
}

/// The result of a flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    /// When its first byte was written, ns; none if it never started.
    pub started_ns: Option<u64>,
    /// When its last byte was read, ns.
    pub finished_ns: Option<u64>,
    /// When its last acknowledgement was back, as far as the sender saw, ns.
    #[serde(default)]
    pub acknowledged_ns: Option<u64>,
    /// Payload read, bytes.
    pub received_bytes: u64,
    /// Segments sent again.
    #[serde(default)]
    pub retransmissions: u64,
    /// Time, ns, and payload that had been read by then, bytes: rising in both.
    #[serde(default)]
    pub arrivals: Vec<(u64, u64)>,
    /// Control packets of its that came back.
    #[serde(default)]
    pub trips: u64,
    /// Time, ns, and the pace from then on, on the wire, bit/s: as control packets brought it.
    #[serde(default)]
    pub paces: Vec<(u64, f64)>,
    /// Why it broke off.
    #[serde(default)]
    pub error: Option<String>,
}

/// All ports at a time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkSample {
    /// When, ns.
    pub time_ns: u64,
    /// In the order of the schedule.
    pub links: Vec<LinkCounts>,
}

/// A port at a time; counters run from its creation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCounts {
    /// Bytes that have left the queue, Ethernet headers included.
    pub sent_bytes: u64,
    /// Packets that have left it.
    pub sent_packets: u64,
    /// Packets that found no room.
    pub dropped_packets: u64,
    /// Bytes that wait.
    pub queued_bytes: u64,
    /// Packets that wait.
    pub queued_packets: u64,
}
