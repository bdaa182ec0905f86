//! Accounting of packets: each packet is in exactly one place. A packet that leaves a queue must have arrived at it,
//! and one that arrives must have been on a link.

use crate::hold;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use subak_core::backend::{Backend, PacketEvent, TraceRecord, Watcher};
use subak_core::scheme::PacketKind;
use subak_core::{FlowId, LinkId, Ns, SubflowId};

/// Identity of a packet; duplicates that the network makes have the identity of the original.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PacketKey {
    flow: Option<FlowId>,
    subflow: SubflowId,
    kind: u8,
    way: u8,
    segment: u32,
    sent_ns: Ns,
    contents: String,
}

/// Largest packet in a simulation, bytes.
const MOST_PACKET_BYTES: u64 = 70_000;

/// Counts of data packets, ACKs and control packets.
pub type ByKind = [u64; 3];

/// Counts of a flow's packets by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OfFlow {
    /// Packets that the flow's ends sent or tried to send into their first queue.
    pub launched: ByKind,
    /// Packets dropped at queues.
    pub dropped: ByKind,
    /// Packets lost to faults.
    pub lost: ByKind,
    /// Packets that arrived at the flow's other end.
    pub delivered: ByKind,
    /// Payload bytes of the packets that arrived at the flow's other end.
    pub delivered_bytes: u64,
}

/// Counts of a link's packets by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OfLink {
    /// Bytes that left the queue.
    pub sent_bytes: ByKind,
    /// Number of packets dropped at the queue.
    pub dropped: u64,
    /// Number of packets lost to faults on the link.
    pub lost: u64,
}

/// Accounts of flows, links and packets.
#[derive(Debug, Default)]
pub struct Books {
    /// Counts by flow.
    pub flows: HashMap<Option<FlowId>, OfFlow>,
    /// Counts by link.
    pub links: HashMap<LinkId, OfLink>,
    waiting: HashMap<(LinkId, PacketKey), u64>,
    /// Packets on a link, by the number of links crossed before.
    wire: HashMap<(PacketKey, u16), u64>,
    /// Number of packets duplicated by faults.
    doubled: u64,
    may_double: bool,
    now_ns: Ns,
    seen: u64,
    blind: Option<u64>,
    /// The first inconsistent event.
    pub wrong: Option<String>,
}

fn take<K: std::hash::Hash + Eq>(from: &mut HashMap<K, u64>, key: &K) -> bool {
    match from.get_mut(key) {
        None => false,
        Some(1) => {
            from.remove(key);
            true
        }
        Some(count) => {
            *count -= 1;
            true
        }
    }
}

impl Books {
    /// Empty accounts. `may_double`: a fault duplicates packets. The event numbered `blind` is ignored, to test that
    /// the check then fails.
    pub fn new(may_double: bool, blind: Option<u64>) -> Arc<Mutex<Books>> {
        Arc::new(Mutex::new(Books { may_double, blind, ..Books::default() }))
    }

    fn enter(&mut self, s: &TraceRecord) {
        self.seen += 1;
        if self.blind == Some(self.seen) || s.event == PacketEvent::Control {
            return;
        }
        if let Err(what) = self.entry(s) {
            let at = format!("entry {}, {} ns, link {}, flow {:?}, {:?}", self.seen, s.at_ns, s.link, s.flow, s.kind);
            self.wrong.get_or_insert(format!("{what} ({at}, segment {}, hop {})", s.segment, s.hop));
        }
    }

    fn entry(&mut self, s: &TraceRecord) -> Result<(), String> {
        hold!(s.at_ns >= self.now_ns, "time goes back");
        self.now_ns = s.at_ns;
        let kind = match s.kind {
            PacketKind::Data => 0,
            PacketKind::Ack => 1,
            PacketKind::Ctl => 2,
        };
        // Nodes and the controller may send several messages at the same time, which differ only in their content.
        let contents = if s.flow.is_none() { format!("{:?}", s.header) } else { String::new() };
        let (flow, subflow, segment, sent_ns) = (s.flow, s.subflow, s.segment, s.sent_ns);
        let key = PacketKey { flow, subflow, kind: kind as u8, way: s.way as u8, segment, sent_ns, contents };
        let link = self.links.entry(s.link).or_default();
        let of_flow = self.flows.entry(flow).or_default();
        match s.event {
            PacketEvent::Enqueued => {
                self.comes(&key, s.hop)?;
                *self.waiting.entry((s.link, key)).or_default() += 1;
            }
            PacketEvent::Dequeued => {
                link.sent_bytes[kind] += u64::from(s.bytes);
                let left = take(&mut self.waiting, &(s.link, key.clone()));
                hold!(left, "a packet leaves a queue that it did not come to");
                *self.wire.entry((key, s.hop)).or_default() += 1;
            }
            PacketEvent::Dropped => {
                link.dropped += 1;
                of_flow.dropped[kind] += 1;
                // A packet that was refused at its arrival was never queued.
                if !take(&mut self.waiting, &(s.link, key.clone())) {
                    self.comes(&key, s.hop)?;
                }
            }
            PacketEvent::Lost => {
                link.lost += 1;
                of_flow.lost[kind] += 1;
                // The record has the hop of the packet's departure onto the link, or that of its arrival.
                hold!(
                    self.arrives(&key, s.hop) || self.arrives_later(&key, s.hop),
                    "a packet is lost that was on no link"
                );
            }
            PacketEvent::Delivered => {
                of_flow.delivered[kind] += 1;
                of_flow.delivered_bytes += u64::from(s.payload_bytes);
                hold!(self.arrives_later(&key, s.hop), "a packet arrives that was on no link");
            }
            PacketEvent::Control => {}
        }
        Ok(())
    }

    /// Counts a packet that arrives at a queue, from its source or from a link. An error if it was on no link.
    fn comes(&mut self, key: &PacketKey, hop: u16) -> Result<(), String> {
        if hop == 0 {
            self.flows.entry(key.flow).or_default().launched[usize::from(key.kind)] += 1;
            return Ok(());
        }
        hold!(self.arrives_later(key, hop), "a packet comes to a queue that was on no link");
        Ok(())
    }

    fn arrives(&mut self, key: &PacketKey, hop: u16) -> bool {
        take(&mut self.wire, &(key.clone(), hop))
    }

    /// Removes a packet from the link before `hop`; false if it was not there. If faults may duplicate packets, one
    /// that was not there counts as a duplicate.
    fn arrives_later(&mut self, key: &PacketKey, hop: u16) -> bool {
        let known = hop.checked_sub(1).is_some_and(|before| self.arrives(key, before));
        self.doubled += u64::from(!known && self.may_double);
        known || self.may_double
    }

    /// Number of packets on links and in queues.
    pub fn under_way(&self) -> u64 {
        self.wire.values().sum::<u64>() + self.waiting.values().sum::<u64>()
    }

    /// Checks that the accounts balance and agree with the simulation's link counters.
    pub fn check(&self, sim: &dyn Backend, links: impl Iterator<Item = LinkId>) -> Result<(), String> {
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone());
        }
        let all = |of: fn(&OfFlow) -> ByKind| self.flows.values().flat_map(of).sum::<u64>();
        let (launched, gone) = (all(|f| f.launched), all(|f| f.dropped) + all(|f| f.lost) + all(|f| f.delivered));
        let (there, doubled) = (self.under_way(), self.doubled);
        hold!(
            launched + doubled == gone + there,
            "{launched} packets sent and {doubled} doubled are not {gone} dropped, lost and delivered and {there} under way"
        );
        let mut waiting: HashMap<LinkId, u64> = HashMap::new();
        self.waiting.iter().for_each(|((link, _), count)| *waiting.entry(*link).or_default() += count);
        for link in links {
            let (view, mine) = (sim.link(link), self.links.get(&link).copied().unwrap_or_default());
            let waits = waiting.get(&link).copied().unwrap_or(0);
            hold!(view.queued_packets == waits, "link {link} says {} packets wait, {waits} do", view.queued_packets);
            let (dropped, lost) = (view.dropped_packets, view.lost_packets);
            hold!(
                (dropped, lost) == (mine.dropped, mine.lost),
                "link {link} says {dropped} dropped and {lost} lost: {mine:?}"
            );
            // The link counts a packet in transmission in proportion. Pause frames count as control bytes but are not
            // packets.
            let said = [view.data_bytes, view.ack_bytes, view.ctl_bytes];
            for (kind, (said, sent)) in said.into_iter().zip(mine.sent_bytes).enumerate() {
                let sound = sent <= said + MOST_PACKET_BYTES && (said <= sent || kind == 2);
                hold!(sound, "link {link} says {said} bytes of kind {kind} were sent, {sent} were");
            }
        }
        Ok(())
    }
}

/// Watcher that enters events into the accounts.
pub struct Clerk(pub Arc<Mutex<Books>>);

impl Watcher for Clerk {
    fn wants(&self, _at_ns: Ns, _flow: Option<FlowId>, _link: LinkId) -> bool {
        true
    }
    fn see(&mut self, record: &TraceRecord) {
        self.0.lock().expect("nobody panics with the books").enter(record);
    }
}
