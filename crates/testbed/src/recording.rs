//! The recording of a testbed run: results of flows and counters of links.

use serde::{Deserialize, Serialize};

/// Result of a [`crate::Schedule`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// Version of the document.
    pub schema: u32,
    /// Results of the flows, in the order of the schedule.
    pub flows: Vec<Carried>,
    /// Samples of the ports in time order, from the start to the end of the run.
    pub links: Vec<LinkSample>,
    /// Largest delay of an action after its scheduled time, ns; it shows whether the machine is overloaded.
    pub latest_ns: u64,
    /// End of the last flow, ns.
    pub end_ns: u64,
    /// Processor time of the traffic program, ns.
    pub busy_ns: u64,
    /// Daemons of the scheme that ended in the middle of the run.
    #[serde(default)]
    pub ended: Vec<EndedDaemon>,
}

/// A daemon that ended in the middle of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedDaemon {
    /// Time at which this was noticed, ns.
    pub time_ns: u64,
    /// The daemon, its hosts, how it ended, and the path of its log.
    pub what: String,
    /// Exit status; of a killed process the signal's number, negative.
    pub status: i32,
}

/// The result of a flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    /// Time when the first byte was written, ns; `None` if the flow never started.
    pub started_ns: Option<u64>,
    /// Time when the last byte was read, ns.
    pub finished_ns: Option<u64>,
    /// Time when the last ACK arrived, as seen by the sender, ns.
    #[serde(default)]
    pub acknowledged_ns: Option<u64>,
    /// Payload read, bytes.
    pub received_bytes: u64,
    /// Number of retransmitted segments.
    #[serde(default)]
    pub retransmissions: u64,
    /// Pairs of a time, ns, and the payload read by then, bytes; both increase.
    #[serde(default)]
    pub arrivals: Vec<(u64, u64)>,
    /// Number of the flow's control packets that returned to its source.
    #[serde(default)]
    pub trips: u64,
    /// Pairs of a time, ns, and the pacing rate from then on, bit/s on the wire, as set by control packets.
    #[serde(default)]
    pub paces: Vec<(u64, f64)>,
    /// The error that ended the flow early.
    #[serde(default)]
    pub error: Option<String>,
}

/// Counters of all ports at one time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkSample {
    /// Time, ns.
    pub time_ns: u64,
    /// Counters of the ports, in the order of the schedule.
    pub links: Vec<LinkCounts>,
}

/// Counters of a port since its creation, and its queue length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCounts {
    /// Bytes that have left the queue, Ethernet headers included.
    pub sent_bytes: u64,
    /// Packets that have left the queue.
    pub sent_packets: u64,
    /// Packets dropped because the queue was full.
    pub dropped_packets: u64,
    /// Queue length, bytes.
    pub queued_bytes: u64,
    /// Queue length, packets.
    pub queued_packets: u64,
}
