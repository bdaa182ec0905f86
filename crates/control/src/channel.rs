//! One side of the exchange between an endpoint and the allocator: the peer's epoch, the datagrams received from it,
//! and the fate of those sent to it.
//!
//! An epoch begins when a side restarts; later epochs are higher. A peer's epoch is accepted once a datagram of that
//! epoch repeats this side's epoch. Only a peer that receives this side's datagrams can do that, so no forged epoch can
//! lock an endpoint out. Until then datagrams of that epoch get replies, which lets the peer prove its epoch, and are
//! otherwise ignored.
//!
//! Datagrams are accepted in the order of their numbers; one that arrives after a later one is refused. A number that
//! an ACK skips is therefore known to be lost. The others are marked lost after an RTO that is estimated from the RTT
//! ([`Rtt`]); a later ACK still counts.

use crate::ControlSettings;
use crate::rtt::Rtt;
use std::collections::VecDeque;
use subak_core::Ns;
use subak_wire::{Datagram, HEADER_BYTES};

/// Largest number of datagrams with changes in flight; further changes wait for an ACK or a loss.
const MOST_UNDER_WAY: usize = 32;
/// Number of datagrams whose send times are stored.
const REMEMBERED: usize = 64;

/// A datagram in flight, and the flowlets in it.
#[derive(Debug)]
struct Sent {
    number: u32,
    at_ns: Ns,
    flowlets: Vec<u32>,
    held_lost: bool,
}

/// Numbers of ACKed or lost datagrams, each with its flowlets.
pub(crate) type Fate = Vec<(u32, Vec<u32>)>;

/// The result of a received datagram.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// Ignored: duplicate, late, or of an earlier epoch.
    Stale,
    /// From an epoch that is not yet proven. The datagram gets a reply; its content is ignored.
    Unproven,
    /// Accepted.
    New {
        /// Whether the peer has restarted and has no state of this side.
        fresh: bool,
        /// Datagrams of this side that the peer has received.
        acked: Fate,
        /// Datagrams of this side that are lost.
        lost: Fate,
    },
}

#[derive(Debug)]
pub(crate) struct Channel {
    epoch: u64,
    /// Accepted epoch of the peer; 0 for none.
    peer_epoch: u64,
    /// Last accepted epoch of the peer, kept when this side forgets the peer.
    last_peer_epoch: u64,
    /// A pending reply by which the peer can prove its epoch: the claimed epoch, and the number of the peer's datagram.
    answer: Option<(u64, u32)>,
    /// Latest datagram of an unproved epoch: epoch, number and arrival time. Replayed datagrams of earlier epochs, and
    /// duplicates, do not change this value.
    claimed: (u64, u32, Ns),
    number: u32,
    taken: u32,
    mask: u32,
    under_way: VecDeque<Sent>,
    /// Numbers and send times of the latest datagrams, by number.
    times: [(u32, Ns); REMEMBERED],
    timeouts_in_a_row: u32,
    rtt: Rtt,
    /// Deadline of the pending ACK, ns; `None` if no ACK is pending.
    ack_due_ns: Option<Ns>,
    /// Send time of the latest datagram that requests an ACK, ns.
    asked_ns: Ns,
    heard_ns: Ns,
    /// Send time of this side's latest datagram that the peer has ACKed, ns; `None` without an ACK.
    proof_ns: Option<Ns>,
}

/// Whether `number` was sent after `than`; numbers wrap around.
fn after(number: u32, than: u32) -> bool {
    number != than && number.wrapping_sub(than) < 1 << 31
}

impl Channel {
    pub fn new(epoch: u64) -> Self {
        Channel {
            epoch,
            peer_epoch: 0,
            last_peer_epoch: 0,
            answer: None,
            claimed: (0, 0, 0),
            number: 0,
            taken: 0,
            mask: 0,
            under_way: VecDeque::new(),
            times: [(0, 0); REMEMBERED],
            timeouts_in_a_row: 0,
            rtt: Rtt::default(),
            ack_due_ns: None,
            asked_ns: 0,
            heard_ns: 0,
            proof_ns: None,
        }
    }

    /// Deletes the state of the peer, as after a restart.
    pub fn lapse(&mut self) {
        let last_peer_epoch = if self.is_joined() { self.peer_epoch } else { self.last_peer_epoch };
        let epoch = self.epoch + 1;
        *self = Channel { last_peer_epoch, number: self.number, ..Channel::new(epoch) };
    }

    /// Epoch of this side.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether the peer has proved that it receives this side's datagrams.
    pub fn is_joined(&self) -> bool {
        self.peer_epoch != 0
    }

    pub fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// Time of the next liveness probe, ns: `beat_ns` after the latest datagram that requests an ACK, or 0 if the
    /// latest datagram is marked lost.
    pub fn probe_due_ns(&self, beat_ns: Ns) -> Ns {
        let is_lost = self.under_way.back().is_some_and(|sent| sent.held_lost);
        if is_lost { 0 } else { self.asked_ns + beat_ns }
    }

    /// Makes the next liveness probe due at once: this side now sends to another address of the peer.
    pub fn probe_at_once(&mut self) {
        self.asked_ns = 0;
    }

    /// Whether an ACK of the peer is outstanding.
    pub fn awaits_ack(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Arrival time of the latest accepted datagram, ns.
    pub fn heard_ns(&self) -> Ns {
        self.heard_ns
    }

    /// Latest time at which the peer was alive for certain, ns: the send time of the latest datagram that the peer
    /// ACKed. The peer sent that ACK later, however long the ACK was delayed.
    pub fn proof_ns(&self) -> Option<Ns> {
        self.proof_ns
    }

    /// Whether changes may be sent: the peer is known, and the limit of datagrams in flight is not reached.
    pub fn may_speak(&self) -> bool {
        let has_news = |sent: &&Sent| !sent.held_lost && !sent.flowlets.is_empty();
        self.is_joined() && self.under_way.iter().filter(has_news).count() < MOST_UNDER_WAY
    }

    /// Whether a datagram is due without changes: a reply, an ACK, or a greeting to an unknown peer.
    pub fn must_speak(&self, now_ns: Ns) -> bool {
        self.answer.is_some() || self.ack_due_ns.is_some_and(|due_ns| due_ns <= now_ns) || self.must_greet()
    }

    /// Whether a greeting, a datagram to an unknown peer, is due. At most one greeting is in flight.
    pub fn must_greet(&self) -> bool {
        !self.is_joined() && self.under_way.iter().all(|sent| sent.held_lost)
    }

    /// Deadline of the next ACK, ns; 0 for immediately, `None` for no ACK.
    pub fn ack_due_ns(&self) -> Option<Ns> {
        if self.answer.is_some() { Some(0) } else { self.ack_due_ns }
    }

    /// Whether a datagram of the peer is a duplicate, late, or of an earlier epoch, so that it may be a replay.
    pub fn is_stale(&self, now_ns: Ns, datagram: &Datagram, settings: &ControlSettings) -> bool {
        let (epoch, number, claimed_ns) = self.claimed;
        let is_late = |than: u64, heard_ns: Ns| datagram.epoch < than && now_ns <= heard_ns + settings.patience_ns;
        let is_taken = datagram.epoch == self.peer_epoch && !after(datagram.number, self.taken);
        let is_proven = datagram.epoch >= self.peer_epoch && datagram.peer_epoch == self.epoch;
        let is_repeated =
            !is_proven && (is_late(epoch, claimed_ns) || datagram.epoch == epoch && !after(datagram.number, number));
        datagram.epoch == 0
            || datagram.number == 0
            || is_late(self.peer_epoch, self.heard_ns)
            || is_taken
            || is_repeated
    }

    /// Handles the header of a datagram of the peer.
    pub fn take(&mut self, now_ns: Ns, datagram: &Datagram, settings: &ControlSettings) -> Received {
        if self.is_stale(now_ns, datagram, settings) {
            return Received::Stale;
        }
        if datagram.epoch < self.peer_epoch {
            // The peer that claimed the higher epoch is silent. A late datagram repeats the current epoch too; a new
            // epoch is needed as proof of liveness.
            self.lapse();
        }
        if datagram.peer_epoch != self.epoch {
            self.claimed = (datagram.epoch, datagram.number, now_ns);
            self.answer = Some((datagram.epoch, datagram.number));
            return Received::Unproven;
        }
        let fresh = datagram.epoch != self.peer_epoch;
        if fresh {
            self.peer_epoch = datagram.epoch;
            (self.taken, self.mask, self.timeouts_in_a_row) = (0, 0, 0);
            (self.rtt, self.proof_ns) = (Rtt::default(), None);
        }
        let passes_over = !fresh && datagram.number.wrapping_sub(self.taken) > 1;
        self.note_taken(datagram.number);
        self.heard_ns = now_ns;
        let (acked, lost) = self.settle(now_ns, datagram);
        if fresh && let Some(proof_ns) = self.proof_ns.filter(|_| self.rtt.least_ns() == 0) {
            // The peer replied without delay, which is a sample of the RTT.
            self.rtt.sample(now_ns.saturating_sub(proof_ns));
        }
        // An ACK at once tells a restarted peer that its epoch is accepted, and reports losses early.
        if fresh || passes_over {
            self.ack_due_ns = Some(now_ns);
        } else if datagram.asks {
            self.ack_due_ns.get_or_insert(now_ns + settings.ack_delay_ns);
        }
        if fresh {
            // The restarted peer has received nothing of this side.
            self.under_way.clear();
        }
        Received::New { fresh, acked, lost }
    }

    /// Splits the datagrams in flight into ACKed and lost ones, by the ACK in `datagram`.
    fn settle(&mut self, now_ns: Ns, datagram: &Datagram) -> (Fate, Fate) {
        let (mut acked, mut lost) = (Fate::new(), Fate::new());
        if datagram.ack == 0 {
            return (acked, lost);
        }
        if let (number, at_ns) = self.times[datagram.ack as usize % REMEMBERED]
            && number == datagram.ack
        {
            self.proof_ns = self.proof_ns.max(Some(at_ns));
        }
        let mut latest_ns = None;
        self.under_way.retain_mut(|sent| {
            let behind = datagram.ack.wrapping_sub(sent.number);
            let fate = match behind {
                0 => &mut acked,
                1..=32 if datagram.ack_mask >> (behind - 1) & 1 == 1 => &mut acked,
                1..=32 => &mut lost,
                // The ACK mask does not reach back that far.
                _ => return !(sent.held_lost && behind < 1 << 31),
            };
            if behind == 0 {
                latest_ns = Some(sent.at_ns);
            }
            fate.push((sent.number, std::mem::take(&mut sent.flowlets)));
            false
        });
        if let Some(at_ns) = latest_ns {
            self.rtt.sample(now_ns.saturating_sub(at_ns));
        }
        if !acked.is_empty() {
            self.timeouts_in_a_row = 0;
        }
        (acked, lost)
    }

    fn note_taken(&mut self, number: u32) {
        let ahead = number.wrapping_sub(self.taken);
        self.mask = match (self.taken, ahead) {
            (0, _) => 0,
            (_, 1..=31) => self.mask << ahead | 1 << (ahead - 1),
            (_, 32) => 1 << 31,
            _ => 0,
        };
        self.taken = number;
    }

    /// The number that the next datagram will have.
    pub fn next_number(&self) -> u32 {
        // 0 means none.
        self.number.wrapping_add(1).max(1)
    }

    /// Fills the header of `datagram`, the next to send; `flowlets` are those in it. The datagram requests an ACK if it
    /// has flowlets, is a greeting, or is a liveness `probe`.
    pub fn stamp(&mut self, now_ns: Ns, datagram: &mut Datagram, flowlets: Vec<u32>, probe: bool) {
        datagram.asks = probe || !flowlets.is_empty() || self.must_greet();
        self.number = self.next_number();
        datagram.epoch = self.epoch;
        datagram.number = self.number;
        match self.answer.take() {
            Some((epoch, number)) if epoch != self.peer_epoch => {
                (datagram.peer_epoch, datagram.ack, datagram.ack_mask) = (epoch, number, 0);
            }
            _ => {
                let known = if self.is_joined() { self.peer_epoch } else { self.last_peer_epoch };
                (datagram.peer_epoch, datagram.ack, datagram.ack_mask) = (known, self.taken, self.mask);
                self.ack_due_ns = None;
            }
        }
        if datagram.asks {
            self.asked_ns = now_ns;
            if self.under_way.len() == REMEMBERED {
                self.under_way.pop_front();
            }
            self.under_way.push_back(Sent { number: self.number, at_ns: now_ns, flowlets, held_lost: false });
        }
        self.times[self.number as usize % REMEMBERED] = (self.number, now_ns);
    }

    /// Whether the next datagram is a reply to an unproved peer. Such a reply has no content.
    pub fn is_answering(&self) -> bool {
        self.answer.is_some()
    }

    fn timeout_ns(&self, settings: &ControlSettings) -> Ns {
        let ControlSettings { rto_min_ns, rto_max_ns, ack_delay_ns, .. } = *settings;
        self.rtt.timeout_ns(self.timeouts_in_a_row, rto_min_ns, rto_max_ns, ack_delay_ns)
    }

    /// Datagrams whose RTO has expired. Their changes are retransmitted, though the datagrams may still arrive.
    pub fn overdue(&mut self, now_ns: Ns, settings: &ControlSettings) -> Fate {
        let timeout_ns = self.timeout_ns(settings);
        let is_overdue = |sent: &&mut Sent| !sent.held_lost && sent.at_ns + timeout_ns <= now_ns;
        let overdue = self.under_way.iter_mut().filter(is_overdue).map(|sent| {
            sent.held_lost = true;
            (sent.number, sent.flowlets.clone())
        });
        let overdue: Fate = overdue.collect();
        self.timeouts_in_a_row += u32::from(!overdue.is_empty());
        overdue
    }

    /// Time of the next RTO of a datagram in flight, ns.
    pub fn due_ns(&self, settings: &ControlSettings) -> Option<Ns> {
        let first = self.under_way.iter().find(|sent| !sent.held_lost)?;
        Some(first.at_ns + self.timeout_ns(settings))
    }
}

/// Size of `datagram` on the wire, bytes.
pub(crate) fn bytes(datagram: &Datagram) -> usize {
    HEADER_BYTES + datagram.body_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use subak_wire::{Direction, FlowletEnd};

    const SETTINGS: ControlSettings = ControlSettings::DEFAULT;

    fn say(channel: &mut Channel, now_ns: Ns) -> Datagram {
        let mut datagram = Datagram { ends: vec![FlowletEnd { flowlet: 1 }], ..Datagram::new(Direction::Up, 0, 0) };
        channel.stamp(now_ns, &mut datagram, vec![1], false);
        datagram
    }

    fn greet(channel: &mut Channel, now_ns: Ns) -> Datagram {
        let mut datagram = Datagram::new(Direction::Up, 0, 0);
        channel.stamp(now_ns, &mut datagram, Vec::new(), false);
        datagram
    }

    /// Two connected channels with a one-way delay of `one_way_ns`, and the time of the connection.
    fn joined(one_way_ns: Ns) -> (Channel, Channel, Ns) {
        let (mut a, mut b) = (Channel::new(1), Channel::new(7));
        let hello = greet(&mut a, 0);
        assert_eq!(b.take(one_way_ns, &hello, &SETTINGS), Received::Unproven);
        let answer = greet(&mut b, one_way_ns);
        assert!(matches!(a.take(2 * one_way_ns, &answer, &SETTINGS), Received::New { fresh: true, .. }));
        assert!(a.must_speak(2 * one_way_ns), "the other side is to know, too");
        let third = greet(&mut a, 2 * one_way_ns);
        assert!(matches!(b.take(3 * one_way_ns, &third, &SETTINGS), Received::New { fresh: true, .. }));
        let last = greet(&mut b, 3 * one_way_ns);
        a.take(4 * one_way_ns, &last, &SETTINGS);
        assert!(!a.must_speak(4 * one_way_ns) && !b.must_speak(4 * one_way_ns), "silence");
        (a, b, 4 * one_way_ns)
    }

    #[test]
    fn what_was_taken_is_acknowledged_and_what_is_passed_over_is_lost_at_once() {
        let (mut a, mut b, now_ns) = joined(100);
        let said: Vec<_> = (0..4).map(|t| say(&mut a, now_ns + t)).collect();
        let new = Received::New { fresh: false, acked: vec![], lost: vec![] };
        assert_eq!(b.take(now_ns, &said[0], &SETTINGS), new);
        assert_eq!(b.take(now_ns, &said[2], &SETTINGS), new);
        assert_eq!(b.take(now_ns, &said[1], &SETTINGS), Received::Stale, "late");
        assert_eq!(b.take(now_ns, &said[2], &SETTINGS), Received::Stale, "doubled");
        assert_eq!(b.take(now_ns, &said[3], &SETTINGS), new);
        let answer = say(&mut b, now_ns + 10);
        let [acked, lost] =
            [[0, 2, 3].as_slice(), &[1]].map(|of| of.iter().map(|&k| (said[k].number, vec![1])).collect());
        assert_eq!(a.take(now_ns + 20, &answer, &SETTINGS), Received::New { fresh: false, acked, lost });
        assert!(a.under_way.is_empty());
    }

    #[test]
    fn numbers_wrap_around() {
        let (mut a, mut b, now_ns) = joined(100);
        a.number = u32::MAX - 2;
        // As if datagrams with all numbers up to this one had been accepted.
        b.taken = u32::MAX - 2;
        for t in 0..6 {
            assert!(matches!(b.take(now_ns, &say(&mut a, t), &SETTINGS), Received::New { .. }));
        }
        assert_eq!(a.number, 4, "0 is none");
    }

    #[test]
    fn an_acknowledgement_after_the_timeout_still_counts() {
        let (mut a, mut b, now_ns) = joined(100);
        let said = say(&mut a, now_ns);
        let due_ns = a.due_ns(&SETTINGS).unwrap();
        assert!(a.overdue(due_ns - 1, &SETTINGS).is_empty());
        assert_eq!(a.overdue(due_ns, &SETTINGS), vec![(said.number, vec![1])]);
        b.take(due_ns, &said, &SETTINGS);
        let answer = say(&mut b, due_ns);
        let acked = vec![(said.number, vec![1])];
        assert_eq!(a.take(due_ns + 100, &answer, &SETTINGS), Received::New { fresh: false, acked, lost: vec![] });
        assert!(a.rtt().smoothed_ns() > 200, "the round trip was longer than it was held for");
    }

    #[test]
    fn a_life_is_believed_once_it_repeats_our_epoch() {
        let (mut a, mut b, now_ns) = joined(100);
        let mut forged = say(&mut Channel::new(u64::MAX), now_ns);
        assert_eq!(b.take(now_ns, &forged, &SETTINGS), Received::Unproven);
        assert!(matches!(b.take(now_ns, &say(&mut a, now_ns), &SETTINGS), Received::New { fresh: false, .. }));
        // A forger that receives this side's datagrams can repeat its epoch, and is accepted while it sends. Once it is
        // silent, the real peer is accepted again.
        forged.peer_epoch = 7;
        assert!(matches!(b.take(now_ns, &forged, &SETTINGS), Received::New { fresh: true, .. }));
        assert_eq!(b.take(now_ns, &say(&mut a, now_ns), &SETTINGS), Received::Stale);
        let later_ns = now_ns + SETTINGS.patience_ns + 1;
        let late = say(&mut a, now_ns);
        assert_eq!(b.take(later_ns, &late, &SETTINGS), Received::Unproven);
        let answer = greet(&mut b, later_ns);
        assert_eq!((answer.epoch, answer.peer_epoch), (8, 1));
        assert!(matches!(a.take(later_ns, &answer, &SETTINGS), Received::New { fresh: true, .. }));
        assert_eq!(b.take(later_ns, &late, &SETTINGS), Received::Stale, "it is answered once");
        assert!(matches!(b.take(later_ns, &say(&mut a, later_ns), &SETTINGS), Received::New { fresh: true, .. }));
    }

    #[test]
    fn a_recorded_greeting_is_answered_once_and_does_not_take_the_place_of_a_later_one() {
        let (mut allocator, mut old, mut new) = (Channel::new(7), Channel::new(3), Channel::new(4));
        let recorded: Vec<Datagram> = (0..3).map(|k| greet(&mut old, k)).collect();
        assert_eq!(allocator.take(0, &recorded[0], &SETTINGS), Received::Unproven);
        assert_eq!(allocator.take(0, &recorded[0], &SETTINGS), Received::Stale);
        assert_eq!(allocator.take(1, &recorded[2], &SETTINGS), Received::Unproven);
        assert_eq!(allocator.take(1, &recorded[1], &SETTINGS), Received::Stale);
        // The endpoint restarts while an attacker replays recorded datagrams.
        let greeting = greet(&mut new, 2);
        assert_eq!(allocator.take(2, &greeting, &SETTINGS), Received::Unproven);
        recorded.iter().for_each(|one| assert_eq!(allocator.take(3, one, &SETTINGS), Received::Stale));
        let answer = say(&mut allocator, 4);
        assert_eq!((answer.peer_epoch, answer.ack), (new.epoch(), greeting.number));
        // The clock of an endpoint was set back, so that its epoch is lower. The epoch is accepted once the peer of the
        // higher one is silent.
        let late_ns = 2 + SETTINGS.patience_ns + 1;
        assert_eq!(allocator.take(late_ns, &greet(&mut old, late_ns), &SETTINGS), Received::Unproven);
    }

    #[test]
    fn an_old_life_says_nothing_and_acknowledges_nothing() {
        let (mut old, mut b, now_ns) = joined(100);
        let late = say(&mut old, now_ns);
        let mut new = Channel::new(2);
        let hello = greet(&mut new, now_ns);
        b.take(now_ns, &hello, &SETTINGS);
        new.take(now_ns, &greet(&mut b, now_ns), &SETTINGS);
        assert!(matches!(b.take(now_ns, &say(&mut new, now_ns), &SETTINGS), Received::New { fresh: true, .. }));
        assert_eq!(b.take(now_ns, &late, &SETTINGS), Received::Stale);
        // A reply to the epoch before the restart: its ACK is of that epoch's numbers.
        let mut answer = say(&mut b, now_ns);
        answer.peer_epoch = 1;
        assert_eq!(new.take(now_ns, &answer, &SETTINGS), Received::Unproven);
    }
}
