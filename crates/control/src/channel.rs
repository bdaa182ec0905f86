//! One side of the exchange between an endpoint and the allocator: numbers, epochs, what was taken and what was lost.

use crate::Settings;
use std::collections::VecDeque;
use subak_core::Ns;
use subak_wire::Datagram;

/// Datagrams under way, at most: what comes beyond waits until one is acknowledged or lost.
const MOST_UNDER_WAY: usize = 32;

/// A datagram under way, and the flowlets that it tells of.
#[derive(Debug)]
struct Sent {
    number: u32,
    at_ns: Ns,
    flowlets: Vec<u32>,
}

/// What became of datagrams under way: their numbers, and the flowlets that they told of.
pub(crate) type Fate = Vec<(u32, Vec<u32>)>;

/// What taking a datagram changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is doubled, late, or of an epoch that is over: it says nothing.
    Stale,
    /// It is new; these datagrams of ours it acknowledges.
    New {
        /// The other side started (again): it knows nothing of us.
        fresh: bool,
        acked: Fate,
    },
}

#[derive(Debug)]
pub(crate) struct Channel {
    epoch: u64,
    peer_epoch: u64,
    number: u32,
    taken: u32,
    mask: u32,
    under_way: VecDeque<Sent>,
    losses_in_a_row: u32,
    /// Something was taken that was not acknowledged yet.
    owes_ack: bool,
    spoke_ns: Ns,
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
            number: 0,
            taken: 0,
            mask: 0,
            under_way: VecDeque::new(),
            losses_in_a_row: 0,
            owes_ack: false,
            spoke_ns: 0,
        }
    }

    /// Forgets what the other side was told, as after a restart; but not what was taken of it.
    pub fn lapse(&mut self) {
        self.epoch += 1;
        self.under_way.clear();
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    pub fn owes_ack(&self) -> bool {
        self.owes_ack
    }

    /// When the last datagram went.
    pub fn spoke_ns(&self) -> Ns {
        self.spoke_ns
    }

    pub fn may_speak(&self) -> bool {
        self.under_way.len() < MOST_UNDER_WAY
    }

    /// Takes the header of a datagram of the other side.
    pub fn take(&mut self, datagram: &Datagram) -> Taken {
        if datagram.epoch == 0 || datagram.number == 0 || datagram.epoch < self.peer_epoch {
            return Taken::Stale;
        }
        let fresh = datagram.epoch > self.peer_epoch;
        if fresh {
            (self.peer_epoch, self.taken, self.mask) = (datagram.epoch, 0, 0);
        } else if !after(datagram.number, self.taken) {
            return Taken::Stale;
        }
        self.note_taken(datagram.number);
        let has_records = !(datagram.starts.is_empty() && datagram.ends.is_empty() && datagram.updates.is_empty());
        // Who does not know of us is answered, too.
        self.owes_ack |= has_records || datagram.peer_epoch != self.epoch;
        let mut acked = Fate::new();
        if datagram.peer_epoch == self.epoch {
            let is_acked = |number: u32| {
                let behind = datagram.ack.wrapping_sub(number);
                datagram.ack != 0
                    && (behind == 0 || (1..=32).contains(&behind) && datagram.ack_mask >> (behind - 1) & 1 == 1)
            };
            self.under_way.retain_mut(|sent| {
                let is_acked = is_acked(sent.number);
                if is_acked {
                    acked.push((sent.number, std::mem::take(&mut sent.flowlets)));
                }
                !is_acked
            });
            if !acked.is_empty() {
                self.losses_in_a_row = 0;
            }
        }
        if fresh {
            // The other side knows nothing that we said before.
            self.under_way.clear();
        }
        Taken::New { fresh, acked }
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
        // 0 is none.
        self.number.wrapping_add(1).max(1)
    }

    /// Makes `datagram` the next; `flowlets` are those that it tells of. One that tells nothing needs no acknowledgement.
    pub fn stamp(&mut self, now_ns: Ns, datagram: &mut Datagram, flowlets: Vec<u32>) -> u32 {
        self.number = self.next_number();
        datagram.epoch = self.epoch;
        datagram.peer_epoch = self.peer_epoch;
        datagram.number = self.number;
        (datagram.ack, datagram.ack_mask) = (self.taken, self.mask);
        if !flowlets.is_empty() {
            self.under_way.push_back(Sent { number: self.number, at_ns: now_ns, flowlets });
        }
        (self.owes_ack, self.spoke_ns) = (false, now_ns);
        self.number
    }

    fn rto_ns(&self, settings: &Settings) -> Ns {
        let doubled = settings.rto_min_ns.saturating_mul(1 << self.losses_in_a_row.min(20));
        doubled.min(settings.rto_max_ns.max(settings.rto_min_ns))
    }

    /// Datagrams that were not acknowledged in time.
    pub fn lost(&mut self, now_ns: Ns, settings: &Settings) -> Fate {
        let rto_ns = self.rto_ns(settings);
        let mut lost = Fate::new();
        while self.under_way.front().is_some_and(|sent| sent.at_ns + rto_ns <= now_ns) {
            lost.extend(self.under_way.pop_front().map(|sent| (sent.number, sent.flowlets)));
        }
        self.losses_in_a_row += u32::from(!lost.is_empty());
        lost
    }

    /// When the first one under way will be lost.
    pub fn due_ns(&self, settings: &Settings) -> Option<Ns> {
        Some(self.under_way.front()?.at_ns + self.rto_ns(settings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use subak_wire::{Direction, End};

    fn say(channel: &mut Channel, now_ns: Ns) -> Datagram {
        let mut datagram = Datagram { ends: vec![End { flowlet: 1 }], ..Datagram::new(Direction::Up, 0, 0) };
        channel.stamp(now_ns, &mut datagram, vec![1]);
        datagram
    }

    #[test]
    fn what_was_taken_is_acknowledged_even_around_a_gap() {
        let (mut a, mut b) = (Channel::new(1), Channel::new(1));
        let said: Vec<_> = (0..4).map(|t| say(&mut a, t)).collect();
        assert_eq!(b.take(&said[0]), Taken::New { fresh: true, acked: vec![] });
        assert_eq!(b.take(&said[2]), Taken::New { fresh: false, acked: vec![] });
        assert_eq!(b.take(&said[1]), Taken::Stale, "late");
        assert_eq!(b.take(&said[2]), Taken::Stale, "doubled");
        assert_eq!(b.take(&said[3]), Taken::New { fresh: false, acked: vec![] });
        let answer = say(&mut b, 10);
        let acked = [1, 3, 4].map(|n| (n, vec![1])).to_vec();
        assert_eq!(a.take(&answer), Taken::New { fresh: true, acked });
        assert_eq!(a.under_way.len(), 0, "the other side is new to us: what it did not acknowledge is told anew");
    }

    #[test]
    fn numbers_wrap_around() {
        let (mut a, mut b) = (Channel::new(1), Channel::new(1));
        a.number = u32::MAX - 2;
        for t in 0..6 {
            assert_ne!(b.take(&say(&mut a, t)), Taken::Stale);
        }
        assert_eq!(a.number, 4, "0 is none");
    }

    #[test]
    fn an_old_epoch_says_nothing_and_acknowledges_nothing() {
        let (mut old, mut new, mut b) = (Channel::new(1), Channel::new(2), Channel::new(7));
        let _ = b.take(&say(&mut new, 0));
        assert_eq!(b.take(&say(&mut old, 1)), Taken::Stale);
        // An answer to the life before: its acknowledgement is of other numbers.
        let mut answer = say(&mut b, 2);
        answer.peer_epoch = 1;
        assert_eq!(new.take(&answer), Taken::New { fresh: true, acked: vec![] });
    }

    #[test]
    fn the_time_to_wait_doubles_up_to_its_most() {
        let settings = Settings { rto_min_ns: 20, rto_max_ns: 50, ..Settings::default() };
        let mut a = Channel::new(1);
        for (sent_ns, rto_ns) in [(0, 20), (100, 40), (200, 50), (300, 50)] {
            say(&mut a, sent_ns);
            assert_eq!(a.due_ns(&settings), Some(sent_ns + rto_ns));
            assert!(a.lost(sent_ns + rto_ns - 1, &settings).is_empty());
            assert_eq!(a.lost(sent_ns + rto_ns, &settings).len(), 1);
        }
    }
}
