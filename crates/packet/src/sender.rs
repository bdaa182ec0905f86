//! Reliable sending of one subflow: which segments are under way, which are lost, when to give up waiting.
//!
//! Losses are told as in RFC 9002: a segment is lost once one sent `reorder` transmissions later was acknowledged,
//! or when the first one was not acknowledged for a timeout: what arrived out of order does not put the timeout off (RFC
//! 6298, 5.3). Then the first segment is lost, and those that are older than a round trip (RFC 8985, section 6.3). Where the
//! scheme probes, the last segment is sent once more after two round trips of silence (RFC 8985, section 7); its
//! acknowledgement tells what is lost before it without a timeout. An acknowledgement carries the run of segments that it ends and the run before ([`Blocks`]), so that one which is
//! lost is made good by the next.
//! Segments belong to the subflow that first sent them.

use std::collections::VecDeque;
use subak_core::Ns;
use subak_core::scheme::{Blocks, Recovery};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    InFlight,
    Lost,
    Acked,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    sent_ns: Ns,
    /// Number of its last transmission.
    transmission: u32,
    payload_bytes: u16,
    state: State,
}

/// What is to be sent next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    /// Its number.
    pub segment: u32,
    /// Its payload.
    pub payload_bytes: u32,
    /// Whether it was sent before.
    pub again: bool,
}

/// What an acknowledgement changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acked {
    /// Payload bytes acknowledged for the first time.
    pub bytes: u64,
    /// The first segment now held lost, if any.
    pub lost: Option<u32>,
}

/// The sender's side of one subflow.
#[derive(Debug)]
pub struct Sender {
    recovery: Recovery,
    /// Round trip of a full packet on the idle network, taken for a sample until there is one.
    base_rtt_ns: Ns,
    /// First segment not acknowledged; `segments[0]` is this one.
    base: u32,
    segments: VecDeque<Segment>,
    in_flight_bytes: u64,
    /// `(segment, transmission)` in the order sent.
    order: VecDeque<(u32, u32)>,
    transmissions: u32,
    /// One more than the latest transmission known to have arrived.
    arrived: u32,
    lost: VecDeque<u32>,
    srtt_ns: Ns,
    rttvar_ns: Ns,
    backoff: u32,
    /// When the first segment was last another one, or sent into silence.
    last_progress_ns: Ns,
    /// When anything was last acknowledged, or sent into silence.
    last_news_ns: Ns,
    /// The probe since the last news: its segment and when it was sent.
    probe: Option<(u32, Ns)>,
}

impl Sender {
    /// Nothing sent yet, on a path whose idle round trip is `base_rtt_ns`.
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
            lost: VecDeque::new(),
            srtt_ns: 0,
            rttvar_ns: 0,
            backoff: 0,
            last_progress_ns: 0,
            last_news_ns: 0,
            probe: None,
        }
    }

    /// Payload bytes under way.
    pub fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }

    /// Number of the next new segment.
    pub fn next_segment(&self) -> u32 {
        self.base + self.segments.len() as u32
    }

    /// What goes next: a lost segment before `fresh_bytes` of new payload.
    pub fn next(&mut self, fresh_bytes: u32) -> Option<Next> {
        while let Some(&segment) = self.lost.front() {
            if let Some(s) = self.get(segment)
                && s.state == State::Lost
            {
                return Some(Next { segment, payload_bytes: s.payload_bytes.into(), again: true });
            }
            self.lost.pop_front();
        }
        (fresh_bytes > 0).then(|| Next { segment: self.next_segment(), payload_bytes: fresh_bytes, again: false })
    }

    /// `next` was sent at `now_ns`.
    pub fn sent(&mut self, next: Next, now_ns: Ns) {
        if self.in_flight_bytes == 0 {
            (self.last_progress_ns, self.last_news_ns) = (now_ns, now_ns);
        }
        let transmission = self.transmissions;
        self.transmissions += 1;
        self.in_flight_bytes += u64::from(next.payload_bytes);
        self.order.push_back((next.segment, transmission));
        let payload_bytes = next.payload_bytes as u16; // `build` refuses packets of more than 64 KiB
        let sent = Segment { payload_bytes, transmission, sent_ns: now_ns, state: State::InFlight };
        if next.again {
            self.lost.pop_front();
            self.segments[(next.segment - self.base) as usize] = sent;
        } else {
            self.segments.push_back(sent);
        }
    }

    fn get(&self, segment: u32) -> Option<&Segment> {
        self.segments.get(segment.checked_sub(self.base)? as usize)
    }

    /// `segment`, sent at `sent_ns`, the `blocks` before it, and all before `cumulative` have arrived.
    pub fn on_ack(&mut self, segment: u32, blocks: Blocks, cumulative: u32, sent_ns: Ns, now_ns: Ns) -> Acked {
        self.sample_rtt(now_ns - sent_ns);
        let base = self.base;
        // The receiver dropped it, for it came too early, and wants what its mark says.
        let too_early = self.recovery.go_back && segment >= cumulative;
        let mut bytes = if too_early { 0 } else { self.mark_acked(segment, Some(sent_ns)) };
        // Which transmission of the others arrived is not known.
        for run in [blocks.run(segment), blocks.earlier(segment)] {
            for other in run.start.max(self.base)..run.end {
                bytes += self.mark_acked(other, Some(Ns::MAX));
            }
        }
        if self.probe.is_some_and(|(probed, at_ns)| probed == segment && sent_ns == at_ns) {
            // Whatever was sent before the probe has had two round trips.
            self.arrived = self.transmissions + self.recovery.reorder.unwrap_or(0);
        }
        while self.base < cumulative && !self.segments.is_empty() {
            bytes += self.mark_acked(self.base, None);
            self.pop_acked();
        }
        self.pop_acked();
        if self.base > base {
            self.last_progress_ns = now_ns;
        }
        if bytes > 0 {
            self.last_news_ns = now_ns;
            self.backoff = 0;
            self.probe = None;
        }
        let lost = if too_early && cumulative == self.base { self.back() } else { self.detect_lost() };
        Acked { bytes, lost }
    }

    /// Marks a segment as arrived; its bytes, if it was not already.
    fn mark_acked(&mut self, segment: u32, sent_ns: Option<Ns>) -> u64 {
        let Some(at) = segment.checked_sub(self.base) else { return 0 };
        let Some(s) = self.segments.get_mut(at as usize) else { return 0 };
        let was = std::mem::replace(&mut s.state, State::Acked);
        // An answer to an earlier transmission says nothing of the latest one's place in the order.
        if sent_ns.is_none_or(|t| t == s.sent_ns) {
            self.arrived = self.arrived.max(s.transmission + 1);
        }
        match was {
            State::Acked => 0,
            State::Lost => u64::from(s.payload_bytes),
            State::InFlight => {
                self.in_flight_bytes -= u64::from(s.payload_bytes);
                u64::from(s.payload_bytes)
            }
        }
    }

    fn pop_acked(&mut self) {
        while self.segments.front().is_some_and(|s| s.state == State::Acked) {
            self.segments.pop_front();
            self.base += 1;
        }
    }

    fn detect_lost(&mut self) -> Option<u32> {
        let mut first = None;
        while let Some(&(segment, transmission)) = self.order.front() {
            let waiting =
                self.get(segment).is_some_and(|s| s.state == State::InFlight && s.transmission == transmission);
            if waiting {
                let overtaken = self.recovery.reorder.is_some_and(|n| transmission + n < self.arrived);
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

    /// Holds all that was sent and not acknowledged lost, to be sent again in order; the first of it that was under way.
    fn back(&mut self) -> Option<u32> {
        self.order.clear();
        self.lost.clear();
        let mut first = None;
        for (segment, s) in (self.base..).zip(&mut self.segments) {
            if s.state == State::InFlight {
                s.state = State::Lost;
                self.in_flight_bytes -= u64::from(s.payload_bytes);
                first = first.or(Some(segment));
            }
            if s.state == State::Lost {
                self.lost.push_back(segment);
            }
        }
        first
    }

    fn hold_lost(&mut self, segment: u32) {
        let s = &mut self.segments[(segment - self.base) as usize];
        s.state = State::Lost;
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

    /// When the timeout runs out, or a probe is due, if anything is under way.
    pub fn timeout_ns(&self) -> Option<Ns> {
        if self.in_flight_bytes == 0 {
            return None;
        }
        Some(self.probe_due_ns().unwrap_or_else(|| self.rto_due_ns()))
    }

    fn rto_due_ns(&self) -> Ns {
        self.last_progress_ns.saturating_add(self.rto_ns())
    }

    /// When a probe goes out; `None` if none does before the timeout.
    fn probe_due_ns(&self) -> Option<Ns> {
        let early = self.srtt_ns == 0 || self.backoff > 0;
        if !self.recovery.probe || early || self.probe.is_some() || !self.lost.is_empty() {
            return None;
        }
        // Two round trips, and what their variation may add (RFC 8985 has a delayed acknowledgement's time in its place).
        let due_ns = self.last_news_ns + 2 * self.srtt_ns + 4 * self.rttvar_ns;
        (due_ns < self.rto_due_ns()).then_some(due_ns)
    }

    /// Nothing arrived for two round trips: the last segment under way goes once more, whatever the window. `None` if it is
    /// time for the timeout.
    pub fn probe(&mut self, now_ns: Ns) -> Option<Next> {
        self.probe_due_ns()?;
        let at = self.segments.iter().rposition(|s| s.state == State::InFlight)?;
        let segment = self.base + at as u32;
        self.probe = Some((segment, now_ns));
        let s = &mut self.segments[at];
        (s.sent_ns, s.transmission) = (now_ns, self.transmissions);
        self.order.push_back((segment, self.transmissions));
        self.transmissions += 1;
        Some(Next { segment, payload_bytes: s.payload_bytes.into(), again: true })
    }

    /// The largest timeout bounds only the doubling: on a long or slow path it may be less than a round trip.
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

    /// The first segment was not acknowledged for a timeout: holds it lost, and what was sent more than a round trip ago, or
    /// all. The first segment that is newly lost.
    pub fn on_timeout(&mut self, now_ns: Ns) -> Option<u32> {
        self.backoff += 1;
        self.probe = None;
        (self.last_progress_ns, self.last_news_ns) = (now_ns, now_ns);
        if self.recovery.go_back {
            return self.back();
        }
        let round_ns = if self.srtt_ns == 0 { self.base_rtt_ns } else { self.srtt_ns + self.rttvar_ns };
        let mut first = None;
        for at in 0..self.segments.len() as u32 {
            let s = self.segments[at as usize];
            let is_old = first.is_none() || self.recovery.timeout_loses_all || s.sent_ns + round_ns <= now_ns;
            if s.state == State::InFlight && is_old {
                self.hold_lost(self.base + at);
                first = first.or(Some(self.base + at));
            }
        }
        first
    }
}

/// Segments of a run, or of a hole, that an acknowledgement tells.
const LONGEST_RUN: u32 = 256;

/// The receiver's side of one subflow: which segments have arrived.
#[derive(Debug, Default)]
pub struct Receiver {
    /// First segment that has not arrived.
    next: u32,
    /// Whether `next + 1 + i` has arrived.
    beyond: VecDeque<bool>,
    /// It has said that `next` is missing.
    complained: bool,
}

impl Receiver {
    /// Notes that `segment` arrived; whether for the first time.
    pub fn arrived(&mut self, segment: u32) -> bool {
        let Some(ahead) = segment.checked_sub(self.next) else { return false };
        if ahead > 0 {
            let at = ahead as usize - 1;
            if at >= self.beyond.len() {
                self.beyond.resize(at + 1, false);
            }
            return !std::mem::replace(&mut self.beyond[at], true);
        }
        self.next += 1;
        self.complained = false;
        while let Some(arrived) = self.beyond.pop_front() {
            if !arrived {
                break;
            }
            self.next += 1;
        }
        true
    }

    /// The runs of segments before `segment`, which has arrived.
    pub fn blocks(&self, segment: u32) -> Blocks {
        let Some(ahead) = segment.checked_sub(self.next) else { return Blocks::default() };
        let mut before = self.beyond.iter().take(ahead.saturating_sub(1) as usize).rev().copied().peekable();
        let mut count = |arrived: bool| {
            let mut segments = 0;
            while segments < LONGEST_RUN && before.next_if_eq(&arrived).is_some() {
                segments += 1;
            }
            segments
        };
        let (run, hole) = (count(true), count(false));
        Blocks::new(run, hole, count(true))
    }

    /// Whether the sender has to be told that the next segment is missing: once for each gap.
    pub fn complains(&mut self) -> bool {
        !std::mem::replace(&mut self.complained, true)
    }

    /// First segment that has not arrived.
    pub fn cumulative(&self) -> u32 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(segments: u32) -> Blocks {
        Blocks::new(segments, 0, 0)
    }

    fn send(s: &mut Sender, now_ns: Ns) -> Next {
        let next = s.next(1000).unwrap();
        s.sent(next, now_ns);
        next
    }

    #[test]
    fn a_segment_overtaken_by_three_is_lost_and_goes_first() {
        let mut s = Sender::new(Recovery::default(), 0);
        for t in 0..5 {
            send(&mut s, t);
        }
        assert_eq!(s.on_ack(1, run(0), 0, 1, 100), Acked { bytes: 1000, lost: None });
        assert_eq!(s.on_ack(2, run(1), 0, 2, 101), Acked { bytes: 1000, lost: None });
        assert_eq!(s.on_ack(3, run(2), 0, 3, 102), Acked { bytes: 1000, lost: Some(0) });
        assert_eq!(s.in_flight_bytes(), 1000);
        assert_eq!(send(&mut s, 103), Next { segment: 0, payload_bytes: 1000, again: true });
        assert_eq!(s.on_ack(0, run(0), 4, 103, 200).bytes, 1000);
        assert_eq!(s.on_ack(4, run(0), 5, 4, 201).bytes, 1000);
        assert!(s.segments.is_empty() && s.timeout_ns().is_none());
    }

    #[test]
    fn the_timeout_doubles_until_something_arrives() {
        let recovery = Recovery { rto_min_ns: 1000, rto_max_ns: 3000, probe: false, ..Recovery::default() };
        let mut s = Sender::new(recovery, 0);
        send(&mut s, 0);
        assert_eq!(s.timeout_ns(), Some(1000));
        assert_eq!(s.on_timeout(1000), Some(0));
        assert_eq!(s.timeout_ns(), None);
        send(&mut s, 1000);
        assert_eq!(s.timeout_ns(), Some(3000));
        s.on_timeout(3000);
        send(&mut s, 3000);
        assert_eq!(s.timeout_ns(), Some(6000));
    }

    #[test]
    fn what_arrives_out_of_order_does_not_put_the_timeout_off() {
        let recovery = Recovery { rto_min_ns: 1000, reorder: None, probe: false, ..Recovery::default() };
        let mut s = Sender::new(recovery, 0);
        for at_ns in [0, 100, 850] {
            send(&mut s, at_ns);
        }
        // Segment 0 is lost, 1 arrives. When the first one's time is over, 2 has been under way for less than a round trip.
        s.on_ack(1, run(0), 0, 100, 300);
        assert_eq!(s.timeout_ns(), Some(1000));
        assert_eq!((s.on_timeout(1000), s.in_flight_bytes()), (Some(0), 1000));
        assert_eq!(send(&mut s, 1000), Next { segment: 0, payload_bytes: 1000, again: true });
        assert_eq!(s.on_ack(0, run(0), 2, 1000, 1200).bytes, 1000);
        assert_eq!(s.timeout_ns(), Some(1200 + 1000));
    }

    #[test]
    fn a_timeout_may_hold_all_lost() {
        let recovery = Recovery { rto_min_ns: 1000, probe: false, timeout_loses_all: true, ..Recovery::default() };
        let mut s = Sender::new(recovery, 0);
        for at_ns in [0, 100, 850] {
            send(&mut s, at_ns);
        }
        assert_eq!((s.on_timeout(1000), s.in_flight_bytes()), (Some(0), 0));
        let again: Vec<u32> = (0..3).map(|_| send(&mut s, 1000).segment).collect();
        assert_eq!(again, [0, 1, 2]);
    }

    #[test]
    fn the_timeout_is_never_shorter_than_a_round_trip_unless_it_is_constant() {
        let ms = 1_000_000;
        let mut s = Sender::new(Recovery { probe: false, ..Recovery::default() }, 150 * ms);
        send(&mut s, 0);
        assert_eq!(s.timeout_ns(), Some(450 * ms));
        s.on_ack(0, run(0), 1, 0, 160 * ms);
        send(&mut s, 160 * ms);
        assert_eq!(s.timeout_ns(), Some(160 * ms + (160 + 4 * 80) * ms));
        let constant = Recovery { rto_min_ns: 45_000, rto_max_ns: 45_000, ..Recovery::default() };
        let mut s = Sender::new(constant, 150 * ms);
        send(&mut s, 0);
        assert_eq!(s.timeout_ns(), Some(45_000));
    }

    #[test]
    fn a_lost_acknowledgement_is_made_good_by_the_next() {
        let (mut s, mut r) = (Sender::new(Recovery::default(), 0), Receiver::default());
        for t in 0..6 {
            send(&mut s, t);
        }
        // Segment 0 is lost; 1 to 4 arrive, and only the last one's acknowledgement comes back.
        for segment in 1..5 {
            r.arrived(segment);
        }
        assert_eq!((r.blocks(4), r.cumulative()), (run(3), 0));
        assert_eq!(s.on_ack(4, run(3), 0, 4, 100), Acked { bytes: 4000, lost: Some(0) });
        assert_eq!(s.in_flight_bytes(), 1000);
    }

    #[test]
    fn a_lost_acknowledgement_before_a_hole_is_made_good_by_the_one_behind_it() {
        let (mut s, mut r) = (Sender::new(Recovery::default(), 0), Receiver::default());
        for t in 0..9 {
            send(&mut s, t);
        }
        // Segments 0, 4 and 5 are lost, and the acknowledgements of 1 to 3.
        for segment in [1, 2, 3, 6, 7] {
            r.arrived(segment);
        }
        assert_eq!((r.blocks(7).run(7), r.blocks(7).earlier(7)), (6..7, 1..4));
        assert_eq!(s.on_ack(7, r.blocks(7), 0, 7, 100), Acked { bytes: 5000, lost: Some(0) });
        assert_eq!(s.in_flight_bytes(), 2000, "4 is lost too; 5 and 8 may be under way");
    }

    #[test]
    fn a_probe_tells_what_is_lost_at_the_tail_without_a_timeout() {
        let mut s = Sender::new(Recovery { rto_min_ns: 1_000_000, ..Recovery::default() }, 10_000);
        for t in 0..4 {
            send(&mut s, t);
        }
        assert_eq!(s.on_ack(0, run(0), 1, 0, 10_000).bytes, 1000);
        // Segments 1 to 3 are lost; two round trips and their variation after the last progress the last goes again.
        assert_eq!(s.timeout_ns(), Some(10_000 + 20_000 + 20_000));
        assert_eq!(s.probe(50_000), Some(Next { segment: 3, payload_bytes: 1000, again: true }));
        assert_eq!(s.timeout_ns(), Some(10_000 + 1_000_000), "one probe, then the timeout");
        assert_eq!(s.on_ack(3, run(0), 1, 50_000, 60_000), Acked { bytes: 1000, lost: Some(1) });
        assert_eq!(s.in_flight_bytes(), 0);
    }

    proptest! {
        /// Over a channel that loses, delays and doubles, each segment is delivered once and the books balance.
        #[test]
        fn everything_arrives_once(seed in any::<u64>(), total in 1u32..200, loss in 0.0f64..0.4) {
            let mut rng = subak_core::rng::Stream::new(seed, "channel");
            let mut s = Sender::new(Recovery { rto_min_ns: 500, ..Recovery::default() }, 0);
            let mut r = Receiver::default();
            let mut under_way: Vec<(Ns, u32, Ns)> = Vec::new();
            let (mut now, mut fresh, mut delivered, mut acked) = (0, total, 0, 0);
            while acked < u64::from(total) * 1000 {
                now += 10;
                prop_assert!(now < 100_000_000, "no progress");
                if s.in_flight_bytes() < 20_000 && let Some(next) = s.next(if fresh > 0 { 1000 } else { 0 }) {
                    fresh -= u32::from(!next.again);
                    s.sent(next, now);
                    for _ in 0..if rng.unit() < 0.1 { 2 } else { 1 } {
                        if rng.unit() >= loss {
                            under_way.push((now + 50 + rng.below(100) as u64, next.segment, now));
                        }
                    }
                }
                if s.timeout_ns().is_some_and(|t| t <= now) {
                    match s.probe(now) {
                        Some(next) if rng.unit() >= loss => under_way.push((now + 50, next.segment, now)),
                        Some(_) => {}
                        None => drop(s.on_timeout(now)),
                    }
                }
                let (due, rest): (Vec<_>, Vec<_>) = under_way.into_iter().partition(|p| p.0 <= now);
                under_way = rest;
                for (_, segment, sent) in due {
                    delivered += u32::from(r.arrived(segment));
                    if rng.unit() >= loss {
                        acked += s.on_ack(segment, r.blocks(segment), r.cumulative(), sent, now).bytes;
                    }
                }
            }
            prop_assert_eq!(delivered, total);
            prop_assert_eq!(r.cumulative(), total);
            prop_assert!(s.segments.is_empty());
            prop_assert_eq!(s.in_flight_bytes(), 0);
        }
    }
}
