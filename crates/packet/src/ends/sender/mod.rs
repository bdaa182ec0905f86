//! Reliable transmission of one subflow: segments in flight, lost segments, and the RTO.
//!
//! Loss detection follows RFC 9002: a segment is marked lost once a segment sent `reorder` transmissions later is
//! ACKed, or after an RTO. Data that arrives out of order does not restart the RTO timer (RFC 6298, 5.3). An RTO marks
//! the first segment lost, and segments sent more than an RTT ago (RFC 8985, section 6.3). With a tail loss probe, the
//! last segment is retransmitted after two RTTs without ACK (RFC 8985, section 7); the ACK of this retransmission
//! detects earlier losses without an RTO. An ACK carries the block of received segments that ends with the ACKed one,
//! and the block before ([`Blocks`]). The next ACK thus makes up for a lost ACK. Segments belong to the subflow that
//! first sent them.

mod receiver;

pub(crate) use receiver::{Receiver, SegmentArrival};

use std::collections::VecDeque;
use subak_core::Ns;
use subak_core::scheme::{Blocks, LossKind, Recovery};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SegmentState {
    InFlight,
    Lost,
    Acked,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    sent_ns: Ns,
    /// Number of the segment's latest transmission, counted over all segments.
    transmission: u32,
    payload_bytes: u16,
    state: SegmentState,
    /// Whether the segment was retransmitted.
    again: bool,
}

/// A segment to be sent next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    /// Number of the segment.
    pub segment: u32,
    /// Payload, bytes.
    pub payload_bytes: u32,
    /// Whether it is a retransmission.
    pub again: bool,
}

/// Result of [`Sender::on_ack`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acked {
    /// Payload bytes that were ACKed for the first time.
    pub bytes: u64,
    /// First segment newly marked lost, if any.
    pub lost: Option<u32>,
}

/// The sender's side of one subflow.
#[derive(Debug)]
pub struct Sender {
    recovery: Recovery,
    /// Base RTT of a full packet, ns, used in place of RTT samples until there is one.
    base_rtt_ns: Ns,
    /// First segment that has not been ACKed cumulatively, which is `segments[0]`.
    base: u32,
    segments: VecDeque<Segment>,
    in_flight_bytes: u64,
    /// Pairs `(segment, transmission)` in the order in which they were sent.
    order: VecDeque<(u32, u32)>,
    transmissions: u32,
    /// Number of the latest ACKed transmission plus one.
    arrived: u32,
    /// Send time of the latest ACKed transmission, ns.
    arrived_sent_ns: Ns,
    lost: VecDeque<u32>,
    srtt_ns: Ns,
    rttvar_ns: Ns,
    backoff: u32,
    /// Time at which the RTO was last started, ns: at which `base` last advanced or was retransmitted before an RTO, at which a
    /// probe was last sent, or a segment with nothing else in flight.
    rto_started_ns: Ns,
    /// The RTO at that time, ns: later RTT samples do not move it (RFC 6298, 5.3).
    started_rto_ns: Ns,
    /// Time of the latest ACK, or of the latest transmission with nothing else in flight, ns.
    last_news_ns: Ns,
    /// Segment and send time, ns, of a tail loss probe sent since `last_news_ns`.
    probe: Option<(u32, Ns)>,
    /// After a change of path: time, ns, at which the packets in flight are marked lost if no ACK has arrived by then.
    silence_due_ns: Option<Ns>,
}

impl Sender {
    /// A sender without segments, on a path whose base RTT is `base_rtt_ns`.
    pub fn new(recovery: Recovery, base_rtt_ns: Ns) -> Self {
        Sender {
            recovery,
            base_rtt_ns,
            base: 0,
            segments: VecDeque::new(),
            in_flight_bytes: 0,
            order: VecDeque::new(),
            transmissions: 0,
            arrived: 0,
            arrived_sent_ns: 0,
            lost: VecDeque::new(),
            srtt_ns: 0,
            rttvar_ns: 0,
            backoff: 0,
            rto_started_ns: 0,
            started_rto_ns: 0,
            last_news_ns: 0,
            probe: None,
            silence_due_ns: None,
        }
    }

    /// Sets the base RTT and the loss recovery of a new path, from `now_ns` on. The packets in flight may be lost with
    /// the old path. A go-back-N sender has no tail loss probe, and its RTO is hundreds of RTTs, since it covers the
    /// full buffers of a lossless network. Its packets in flight are therefore marked lost if no ACK arrives within
    /// about two RTTs: the result is the time at which this or the RTO is due, for such a sender.
    pub fn set_path(&mut self, recovery: Recovery, base_rtt_ns: Ns, now_ns: Ns) -> Option<Ns> {
        // The old path may be slower, and its last packets may still arrive.
        let longest_ns = self.srtt_ns.max(self.base_rtt_ns).max(base_rtt_ns);
        (self.recovery, self.base_rtt_ns) = (recovery, base_rtt_ns);
        self.start_rto(self.rto_started_ns);
        let due_ns = now_ns + 2 * longest_ns + 4 * self.rttvar_ns;
        self.silence_due_ns = (recovery.go_back && self.in_flight_bytes > 0).then_some(due_ns);
        self.silence_due_ns.and_then(|_| self.timeout_ns())
    }

    /// How ACKs show that a segment is lost.
    pub fn loss_kind(&self) -> LossKind {
        if self.recovery.go_back { LossKind::OutOfOrder } else { LossKind::Reordered }
    }

    /// Payload bytes in flight.
    pub fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }

    /// Number of the next new segment.
    pub fn next_segment(&self) -> u32 {
        self.base + self.segments.len() as u32
    }

    /// The next transmission: a lost segment if there is one, otherwise a new segment of `fresh_bytes`.
    pub fn next(&mut self, fresh_bytes: u32) -> Option<Next> {
        while let Some(&segment) = self.lost.front() {
            if let Some(s) = self.get(segment)
                && s.state == SegmentState::Lost
            {
                return Some(Next { segment, payload_bytes: s.payload_bytes.into(), again: true });
            }
            self.lost.pop_front();
        }
        (fresh_bytes > 0).then(|| Next { segment: self.next_segment(), payload_bytes: fresh_bytes, again: false })
    }

    /// Records the transmission of `next` at `now_ns`.
    pub fn sent(&mut self, next: Next, now_ns: Ns) {
        if self.in_flight_bytes == 0 {
            self.start_rto(now_ns);
            self.last_news_ns = now_ns;
        }
        // The ACK of a fast retransmission takes an RTT more, for which the RTO may have no time left: as in Linux and ns-2,
        // it restarts.
        if next.again && next.segment == self.base && self.backoff == 0 {
            self.start_rto(now_ns);
        }
        let transmission = self.transmissions;
        self.transmissions += 1;
        self.in_flight_bytes += u64::from(next.payload_bytes);
        self.order.push_back((next.segment, transmission));
        let payload_bytes = next.payload_bytes as u16; // `build` refuses packets of more than 64 KiB
        let sent =
            Segment { payload_bytes, transmission, sent_ns: now_ns, state: SegmentState::InFlight, again: next.again };
        if next.again {
            self.lost.pop_front();
            let place = (next.segment - self.base) as usize;
            self.segments[place] = sent;
        } else {
            self.segments.push_back(sent);
        }
    }

    fn get(&self, segment: u32) -> Option<&Segment> {
        self.segments.get(segment.checked_sub(self.base)? as usize)
    }

    /// Handles an ACK of `segment`, which was sent at `sent_ns`, of the `blocks` before it, and of all segments before
    /// `cumulative`.
    pub fn on_ack(&mut self, segment: u32, blocks: Blocks, cumulative: u32, sent_ns: Ns, now_ns: Ns) -> Acked {
        self.sample_rtt(now_ns - sent_ns);
        let base = self.base;
        // Under go-back-N the receiver dropped this segment as out of order; `cumulative` is the segment that it needs.
        let too_early = self.recovery.go_back && segment >= cumulative;
        let mut bytes = if too_early { 0 } else { self.mark_acked(segment, Some(sent_ns)) };
        // The ACK does not show which transmission of these segments arrived.
        for run in [blocks.run(segment), blocks.earlier(segment)] {
            for other in run.start.max(self.base)..run.end {
                bytes += self.mark_acked(other, Some(Ns::MAX));
            }
        }
        if self.probe.is_some_and(|(probed, at_ns)| probed == segment && sent_ns == at_ns) {
            // The ACK of the probe is late enough to mark all segments lost that were sent before the probe and are not
            // ACKed.
            self.arrived = self.transmissions + self.recovery.reorder.unwrap_or(0);
            self.arrived_sent_ns = sent_ns + self.patience_ns();
        }
        while self.base < cumulative && !self.segments.is_empty() {
            bytes += self.mark_acked(self.base, None);
            self.pop_acked();
        }
        self.pop_acked();
        if bytes > 0 {
            self.last_news_ns = now_ns;
            self.backoff = 0;
            (self.probe, self.silence_due_ns) = (None, None);
        }
        if self.base > base {
            self.start_rto(now_ns);
        }
        let lost = if too_early && cumulative == self.base { self.back() } else { self.detect_lost() };
        Acked { bytes, lost }
    }

    /// Marks a segment as ACKed; returns its payload bytes, or 0 if it was ACKed before.
    fn mark_acked(&mut self, segment: u32, sent_ns: Option<Ns>) -> u64 {
        let Some(at) = segment.checked_sub(self.base) else { return 0 };
        let Some(s) = self.segments.get_mut(at as usize) else { return 0 };
        let was = std::mem::replace(&mut s.state, SegmentState::Acked);
        // An ACK of an earlier transmission does not show that the latest one has arrived; nor does a cumulative ACK of
        // a retransmitted segment.
        if sent_ns.map_or(!s.again, |t| t == s.sent_ns) {
            self.arrived = self.arrived.max(s.transmission + 1);
            self.arrived_sent_ns = self.arrived_sent_ns.max(s.sent_ns);
        }
        match was {
            SegmentState::Acked => 0,
            SegmentState::Lost => u64::from(s.payload_bytes),
            SegmentState::InFlight => {
                self.in_flight_bytes -= u64::from(s.payload_bytes);
                u64::from(s.payload_bytes)
            }
        }
    }

    fn pop_acked(&mut self) {
        while self.segments.front().is_some_and(|s| s.state == SegmentState::Acked) {
            self.segments.pop_front();
            self.base += 1;
        }
    }

    /// Smoothed RTT, ns; 0 before the first ACK.
    pub(crate) fn rtt_ns(&self) -> Ns {
        self.srtt_ns
    }

    /// Reordering window of a flow over several paths, ns: a segment is marked lost if a segment sent this much later
    /// was ACKed.
    fn patience_ns(&self) -> Ns {
        (self.srtt_ns + 4 * self.rttvar_ns).max(self.recovery.rto_min_ns)
    }

    fn detect_lost(&mut self) -> Option<u32> {
        let mut first = None;
        while let Some(&(segment, transmission)) = self.order.front() {
            let waiting =
                self.get(segment).filter(|s| s.state == SegmentState::InFlight && s.transmission == transmission);
            if let Some(s) = waiting {
                let overtaken = match self.recovery.reorder {
                    Some(_) if self.recovery.patient => s.sent_ns + self.patience_ns() <= self.arrived_sent_ns,
                    Some(n) => transmission + n < self.arrived,
                    None => false,
                };
                if !overtaken {
                    break;
                }
                self.hold_lost(segment);
                first = first.or(Some(segment));
            }
            self.order.pop_front();
        }
        first
    }

    /// Go-back-N: marks all segments without ACK lost, for retransmission in order; returns the first that was in
    /// flight.
    fn back(&mut self) -> Option<u32> {
        self.order.clear();
        self.lost.clear();
        let mut first = None;
        for (segment, s) in (self.base..).zip(&mut self.segments) {
            if s.state == SegmentState::InFlight {
                s.state = SegmentState::Lost;
                self.in_flight_bytes -= u64::from(s.payload_bytes);
                first = first.or(Some(segment));
            }
            if s.state == SegmentState::Lost {
                self.lost.push_back(segment);
            }
        }
        first
    }

    fn hold_lost(&mut self, segment: u32) {
        let place = (segment - self.base) as usize;
        let s = &mut self.segments[place];
        s.state = SegmentState::Lost;
        self.in_flight_bytes -= u64::from(s.payload_bytes);
        self.lost.push_back(segment);
    }

    fn sample_rtt(&mut self, rtt_ns: Ns) {
        if self.srtt_ns == 0 {
            self.srtt_ns = rtt_ns;
            self.rttvar_ns = rtt_ns / 2;
            return;
        }
        let error = self.srtt_ns.abs_diff(rtt_ns);
        self.rttvar_ns = (3 * self.rttvar_ns + error) / 4;
        self.srtt_ns = (7 * self.srtt_ns + rtt_ns) / 8;
    }

    /// Expiry of the RTO or time of the tail loss probe, whichever is first, ns; `None` if nothing is in flight.
    pub fn timeout_ns(&self) -> Option<Ns> {
        if self.in_flight_bytes == 0 {
            return None;
        }
        Some(self.probe_due_ns().unwrap_or_else(|| self.rto_due_ns()))
    }

    fn start_rto(&mut self, now_ns: Ns) {
        (self.rto_started_ns, self.started_rto_ns) = (now_ns, self.rto_ns());
    }

    fn rto_due_ns(&self) -> Ns {
        let due_ns = self.rto_started_ns.saturating_add(self.started_rto_ns);
        self.silence_due_ns.map_or(due_ns, |early_ns| due_ns.min(early_ns))
    }

    /// Time of the tail loss probe, ns; `None` if there is none before the RTO.
    fn probe_due_ns(&self) -> Option<Ns> {
        let early = self.srtt_ns == 0 || self.backoff > 0;
        if !self.recovery.probe || early || self.probe.is_some() || !self.lost.is_empty() {
            return None;
        }
        // Two RTTs plus their variation; RFC 8985 adds the delay of a delayed ACK instead.
        let due_ns = self.last_news_ns + 2 * self.srtt_ns + 4 * self.rttvar_ns;
        (due_ns < self.rto_due_ns()).then_some(due_ns)
    }

    /// The tail loss probe after two RTTs without ACK: a retransmission of the last segment in flight, regardless of
    /// the window. `None` if no probe is due before the RTO.
    pub fn probe(&mut self, now_ns: Ns) -> Option<Next> {
        self.probe_due_ns()?;
        let at = self.segments.iter().rposition(|s| s.state == SegmentState::InFlight)?;
        let segment = self.base + at as u32;
        self.probe = Some((segment, now_ns));
        // RFC 8985, section 7.3: the RTO restarts, so that the probe's ACK comes before it.
        self.start_rto(now_ns);
        let s = &mut self.segments[at];
        (s.sent_ns, s.transmission, s.again) = (now_ns, self.transmissions, true);
        self.order.push_back((segment, self.transmissions));
        self.transmissions += 1;
        Some(Next { segment, payload_bytes: s.payload_bytes.into(), again: true })
    }

    /// The RTO, ns. The maximum RTO bounds only the exponential backoff: on a long or slow path the maximum may be less
    /// than an RTT.
    fn rto_ns(&self) -> Ns {
        let (min, max) = (self.recovery.rto_min_ns, self.recovery.rto_max_ns);
        if max <= min {
            return min;
        }
        let (srtt, rttvar) = match self.srtt_ns {
            0 => (self.base_rtt_ns, self.base_rtt_ns / 2),
            srtt => (srtt, self.rttvar_ns),
        };
        let rto = (srtt + 4 * rttvar).max(min);
        rto.saturating_mul(1 << self.backoff.min(20)).min(max.max(rto))
    }

    /// Handles an expired RTO: marks the first segment lost, and segments sent more than an RTT ago; under go-back-N,
    /// all segments. Returns the first newly lost segment.
    pub fn on_timeout(&mut self, now_ns: Ns) -> Option<u32> {
        debug_assert_eq!(
            self.segments
                .iter()
                .filter(|s| s.state == SegmentState::InFlight)
                .map(|s| u64::from(s.payload_bytes))
                .sum::<u64>(),
            self.in_flight_bytes,
            "bytes in flight are those of the segments"
        );
        // Packets marked lost after a change of path, before the RTO, do not increase the backoff.
        self.backoff += u32::from(self.silence_due_ns.take().is_none());
        self.probe = None;
        self.start_rto(now_ns);
        self.last_news_ns = now_ns;
        if self.recovery.go_back {
            return self.back();
        }
        let round_ns = if self.srtt_ns == 0 { self.base_rtt_ns } else { self.srtt_ns + self.rttvar_ns };
        let mut first = None;
        for at in 0..self.segments.len() {
            let (s, segment) = (self.segments[at], self.base + at as u32);
            let is_old = first.is_none() || self.recovery.timeout_loses_all || s.sent_ns + round_ns <= now_ns;
            if s.state == SegmentState::InFlight && is_old {
                self.hold_lost(segment);
                first = first.or(Some(segment));
            }
        }
        // The earliest goes first (RFC 6298, 5.4), also where others were marked before it.
        self.lost.make_contiguous().sort_unstable();
        first
    }
}

#[cfg(test)]
mod tests;
