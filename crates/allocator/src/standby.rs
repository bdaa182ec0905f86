//! Standby: decides which of two allocators serves, as a state machine without socket or clock.
//!
//! Each allocator sends heartbeats with its role (whether it serves) and the numbers of two heartbeats received: the
//! last fresh one, and the last one. A heartbeat is fresh if one of these two is recent; so a replayed one is not,
//! and cannot displace what the fresh one said. The second number lets two allocators meet that have not heard of
//! each other.
//!
//! The standby takes over after half a lease of silence. If both serve because heartbeats were lost, the one with the
//! later failover continues. Safety does not depend on the choice, since rates of the allocator that stops expire.

use subak_core::Ns;
use subak_wire::{Direction, Seal, Secret};

/// First byte of a message between allocators; no endpoint's datagram begins with it.
const KIND: u8 = 0xa5;
const BYTES: usize = 1 + 1 + 8 + 8 + 8 + 8;
/// Bits of a message's second byte: whether the sender serves, and whether it is the first allocator.
const SERVES: u8 = 1;
const FIRST: u8 = 2;
/// A heartbeat counts only if the number that it echoes is among the last this many heartbeats sent.
const MEMORY: u64 = 4;

/// One of the two allocators.
#[derive(Debug)]
pub struct Standby {
    seal: Seal,
    lease_ns: Ns,
    /// Epoch of this allocator's failover while it serves; otherwise 0.
    epoch: u64,
    /// Number of this allocator's latest heartbeat.
    number: u64,
    /// Number of the other allocator's last fresh heartbeat.
    fresh_number: u64,
    /// Number of the last heartbeat that was received, which may be a replayed one.
    heard_number: u64,
    /// Whether this is the first allocator. Messages of the first are not those of another first, so that none is
    /// reflected.
    first: bool,
    /// Time at which the other allocator was last known to serve, ns.
    heard_ns: Ns,
    next_ns: Ns,
    patience_ns: Ns,
}

/// Change of this allocator's role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// No change.
    None,
    /// Begin to serve. Rates of the other allocator may be valid until this time, ns.
    Serve(Ns),
    /// Stop serving.
    Rest,
}

impl Standby {
    /// Starts at `now_ns` without serving. This allocator serves if it receives no heartbeat of a serving allocator for
    /// half a lease, or for a quarter if it is the `first`.
    pub fn new(now_ns: Ns, secret: &Secret, lease_ns: Ns, first: bool) -> Standby {
        let patience_ns = if first { lease_ns / 4 } else { lease_ns / 2 };
        let seal = Seal::new(secret, 0, Direction::Down);
        Standby {
            seal,
            lease_ns,
            epoch: 0,
            number: 0,
            fresh_number: 0,
            heard_number: 0,
            first,
            heard_ns: now_ns,
            next_ns: now_ns,
            patience_ns,
        }
    }

    /// Whether this allocator serves.
    pub fn is_serving(&self) -> bool {
        self.epoch > 0
    }

    /// Whether these bytes claim to be a message between allocators.
    pub fn is_ours(bytes: &[u8]) -> bool {
        bytes.first() == Some(&KIND)
    }

    /// Time of the next call of [`Standby::wake`], ns.
    pub fn due_ns(&self) -> Ns {
        match self.is_serving() {
            true => self.next_ns,
            false => self.next_ns.min(self.heard_ns + self.patience_ns),
        }
    }

    /// Returns the heartbeat to send, if one is due, and the change of role. `epoch` is used for a failover at this
    /// time.
    pub fn wake(&mut self, now_ns: Ns, epoch: u64) -> (Option<Vec<u8>>, Change) {
        let mut change = Change::None;
        if !self.is_serving() && now_ns >= self.heard_ns + self.patience_ns {
            self.epoch = epoch.max(1);
            self.next_ns = now_ns;
            change = Change::Serve(self.heard_ns + self.beat_ns());
        }
        if now_ns < self.next_ns {
            return (None, change);
        }
        self.next_ns = now_ns + self.beat_ns();
        (Some(self.message()), change)
    }

    fn beat_ns(&self) -> Ns {
        (self.lease_ns / 8).max(1)
    }

    fn message(&mut self) -> Vec<u8> {
        self.number += 1;
        let flag = |is: bool, bit: u8| if is { bit } else { 0 };
        let mut bytes = vec![KIND, flag(self.is_serving(), SERVES) | flag(self.first, FIRST)];
        for word in [self.epoch, self.number, self.fresh_number, self.heard_number] {
            bytes.extend(word.to_be_bytes());
        }
        self.seal.seal(&mut bytes);
        bytes
    }

    /// Handles a heartbeat of the other allocator.
    pub fn take(&mut self, now_ns: Ns, bytes: &[u8]) -> Change {
        let Some(bytes) = self.seal.open(bytes).filter(|bytes| bytes.len() == BYTES) else { return Change::None };
        let word = |k: usize| bytes[2 + 8 * k..].first_chunk().copied().map_or(0, u64::from_be_bytes);
        let (serves, first) = (bytes[1] & SERVES != 0, bytes[1] & FIRST != 0);
        let (epoch, number) = (word(0), word(1));
        if first == self.first {
            return Change::None;
        }
        let is_recent = |echo: u64| echo != 0 && echo <= self.number && echo + MEMORY > self.number;
        let is_fresh = is_recent(word(2)) || is_recent(word(3));
        self.heard_number = number;
        // A heartbeat of the last few may be replayed: it does not count back, unless the other allocator began anew.
        if is_fresh && (number > self.fresh_number || number + 2 * MEMORY < self.fresh_number) {
            self.fresh_number = number;
        }
        if !is_fresh || !serves || epoch == self.epoch {
            return Change::None;
        }
        if !self.is_serving() {
            self.heard_ns = now_ns;
            self.patience_ns = self.lease_ns / 2;
            return Change::None;
        }
        if epoch < self.epoch {
            return Change::None;
        }
        self.rest(now_ns);
        Change::Rest
    }

    /// Stops serving. This allocator serves again only after the other allocator's silence.
    pub fn rest(&mut self, now_ns: Ns) {
        self.epoch = 0;
        self.heard_ns = now_ns;
        self.patience_ns = self.lease_ns / 2;
        self.next_ns = now_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE_NS: Ns = 800;

    fn pair() -> [Standby; 2] {
        let secret = Secret::new([3; 32]);
        [true, false].map(|first| Standby::new(0, &secret, LEASE_NS, first))
    }

    /// Runs both allocators; `hears(k)` returns whether allocator `k` receives heartbeats. Returns for each tick
    /// whether each serves at its end.
    fn run(pair: &mut [Standby; 2], from_ns: Ns, until_ns: Ns, hears: impl Fn(usize) -> bool) -> Vec<[bool; 2]> {
        let mut seen = Vec::new();
        for now_ns in (from_ns..until_ns).step_by(10) {
            for who in 0..2 {
                let (message, _) = pair[who].wake(now_ns, now_ns + 1);
                if let Some(message) = message.filter(|_| hears(who)) {
                    pair[1 - who].take(now_ns, &message);
                }
            }
            seen.push([pair[0].is_serving(), pair[1].is_serving()]);
        }
        seen
    }

    #[test]
    fn the_first_serves_and_the_other_takes_over_within_a_lease_of_its_silence() {
        let mut pair = pair();
        let seen = run(&mut pair, 0, 8000, |_| true);
        assert!(seen.iter().all(|[_, second]| !second));
        assert!(seen.last().unwrap()[0]);
        // The first allocator fails: from now on it sends no heartbeats.
        let seen = run(&mut pair, 8000, 9000, |who| who == 1);
        let after = seen.iter().position(|[_, second]| *second).expect("it takes over") as Ns * 10;
        assert!((LEASE_NS / 2 - LEASE_NS / 8..=LEASE_NS / 2 + 10).contains(&after), "{after}");
        // A restarted allocator waits for the other's heartbeat.
        pair[0] = Standby::new(9000, &Secret::new([3; 32]), LEASE_NS, true);
        let seen = run(&mut pair, 9000, 20_000, |_| true);
        assert!(seen.iter().all(|serving| *serving == [false, true]));
    }

    #[test]
    fn of_two_that_could_not_hear_each_other_the_later_goes_on() {
        let mut pair = pair();
        run(&mut pair, 0, 4000, |_| false);
        assert!(pair.iter().all(Standby::is_serving));
        let seen = run(&mut pair, 4000, 5000, |_| true);
        assert_eq!(seen.last(), Some(&[false, true]));
    }

    #[test]
    fn replays_to_both_change_no_roles() {
        let mut pair = pair();
        run(&mut pair, 0, 4000, |_| true);
        let mut kept: Vec<(usize, Vec<u8>)> = Vec::new();
        // An attacker records the heartbeats of 4000 ns, and replays seven of them at each step to both allocators.
        let mut replayed = 0;
        for now_ns in (4000..40_000).step_by(10) {
            for who in 0..2 {
                let (message, change) = pair[who].wake(now_ns, now_ns);
                assert_eq!(change, Change::None, "at {now_ns}");
                if let Some(message) = message {
                    assert_eq!(pair[1 - who].take(now_ns, &message), Change::None, "at {now_ns}");
                    if now_ns < 8000 {
                        kept.push((who, message));
                    }
                }
                for k in 0..if now_ns < 8000 { 0 } else { 7 } {
                    let (from, message) = &kept[(replayed + k) % kept.len()];
                    // To the other, and reflected.
                    let changes = [pair[1 - from].take(now_ns, message), pair[*from].take(now_ns, message)];
                    assert_eq!(changes, [Change::None; 2], "at {now_ns}");
                }
                replayed += 7;
            }
            assert_eq!([pair[0].is_serving(), pair[1].is_serving()], [true, false], "at {now_ns}");
        }
    }

    #[test]
    fn what_was_said_before_keeps_nobody_from_serving() {
        let mut pair = pair();
        run(&mut pair, 0, 4000, |_| true);
        pair[0].next_ns = 4000;
        let (old, _) = pair[0].wake(4000, 1);
        let old = old.expect("a beat is due");
        let mut served = None;
        for now_ns in (4000..8000).step_by(10) {
            pair[1].wake(now_ns, now_ns);
            // An attacker replays an old heartbeat.
            pair[1].take(now_ns, &old);
            if pair[1].is_serving() {
                served.get_or_insert(now_ns);
            }
        }
        assert!(served.is_some_and(|at_ns| at_ns < 4000 + 2 * LEASE_NS), "{served:?}");
    }

    #[test]
    fn other_bytes_change_nothing() {
        let mut pair = pair();
        run(&mut pair, 0, 4000, |_| true);
        let (message, _) = pair[0].wake(9000, 1);
        let message = message.expect("a beat is due");
        for at in 0..message.len() {
            let mut spoilt = message.clone();
            spoilt[at] ^= 1;
            assert_eq!(pair[1].take(4000, &spoilt), Change::None);
            assert_eq!(pair[1].take(4000, &message[..at]), Change::None);
        }
    }
}
