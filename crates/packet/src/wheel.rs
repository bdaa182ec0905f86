//! The event queue: a wheel of time buckets for the near future, a heap for the far one.
//!
//! Events at the same nanosecond come out in the order they went in, so runs repeat bit for bit. A bucket is a list
//! through one pool of events, whose places are used again at once and so stay in the cache; it is gathered and
//! sorted when its turn comes, and what is added to it while it is being emptied is inserted in place.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use subak_core::Ns;

const BUCKETS: usize = 8192;
const WORDS: usize = BUCKETS / 64;
/// End of a list.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Entry<E> {
    at_ns: Ns,
    event: E,
}

/// An event in the pool, and the one that went into the same bucket before it.
#[derive(Debug, Clone, Copy)]
struct Pooled<E> {
    entry: Entry<E>,
    before: u32,
}

/// A far event: ordered by time, then by the order of insertion.
#[derive(Debug, Clone, Copy)]
struct Far<E> {
    at_ns: Ns,
    order: u64,
    event: E,
}

impl<E> PartialEq for Far<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at_ns, self.order) == (other.at_ns, other.order)
    }
}
impl<E> Eq for Far<E> {}
impl<E> PartialOrd for Far<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Far<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.order).cmp(&(other.at_ns, other.order))
    }
}

/// Events by time.
#[derive(Debug)]
pub struct Wheel<E> {
    /// A bucket spans `1 << shift` ns.
    shift: u32,
    /// The last event that went into each bucket.
    last: Vec<u32>,
    pool: Vec<Pooled<E>>,
    free: Vec<u32>,
    occupied: [u64; WORDS],
    /// Number of the bucket being emptied, counted from time zero.
    turn: u64,
    /// Its events in order, and how many of them are gone.
    current: Vec<Entry<E>>,
    gone: usize,
    far: BinaryHeap<Reverse<Far<E>>>,
    order: u64,
}

impl<E: Copy> Wheel<E> {
    /// An empty wheel whose buckets span `1 << shift` ns.
    pub fn new(shift: u32) -> Self {
        Wheel {
            shift,
            last: vec![NONE; BUCKETS],
            pool: Vec::new(),
            free: Vec::new(),
            occupied: [0; WORDS],
            turn: 0,
            current: Vec::new(),
            gone: 0,
            far: BinaryHeap::new(),
            order: 0,
        }
    }

    /// Adds `event` at `at_ns`, which is not before the last event taken.
    #[inline]
    pub fn push(&mut self, at_ns: Ns, event: E) {
        let turn = at_ns >> self.shift;
        if turn <= self.turn {
            let rest = &self.current[self.gone..];
            let place = self.gone + rest.partition_point(|e| e.at_ns <= at_ns);
            self.current.insert(place, Entry { at_ns, event });
        } else if turn - self.turn < BUCKETS as u64 {
            self.put(turn, Entry { at_ns, event });
        } else {
            self.order += 1;
            self.far.push(Reverse(Far { at_ns, order: self.order, event }));
        }
    }

    #[inline]
    fn put(&mut self, turn: u64, entry: Entry<E>) {
        let slot = turn as usize % BUCKETS;
        let pooled = Pooled { entry, before: self.last[slot] };
        self.last[slot] = match self.free.pop() {
            Some(place) => {
                self.pool[place as usize] = pooled;
                place
            }
            None => {
                self.pool.push(pooled);
                self.pool.len() as u32 - 1
            }
        };
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    /// Moves a bucket's events behind the current ones, in the order they went in.
    fn gather(&mut self, slot: usize) {
        let first = self.current.len();
        let mut place = std::mem::replace(&mut self.last[slot], NONE);
        while place != NONE {
            let pooled = self.pool[place as usize];
            self.current.push(pooled.entry);
            self.free.push(place);
            place = pooled.before;
        }
        self.current[first..].reverse();
        self.occupied[slot / 64] &= !(1 << (slot % 64));
    }

    /// Takes the next event if it is due by `until_ns`.
    #[inline]
    pub fn pop(&mut self, until_ns: Ns) -> Option<(Ns, E)> {
        if self.gone == self.current.len() && !self.turn_to_next(until_ns) {
            return None;
        }
        let entry = self.current[self.gone];
        if entry.at_ns > until_ns {
            return None;
        }
        self.gone += 1;
        Some((entry.at_ns, entry.event))
    }

    /// The events after the one just taken, if that was the first of its bucket; none otherwise.
    #[inline]
    pub fn coming(&self) -> impl Iterator<Item = E> {
        let rest = if self.gone == 1 { &self.current[1..] } else { &[] };
        rest.iter().map(|entry| entry.event)
    }

    /// Makes the next bucket with events the current one, unless it begins after `until_ns`.
    fn turn_to_next(&mut self, until_ns: Ns) -> bool {
        let near = self.next_occupied();
        let far = self.far.peek().map(|Reverse(e)| e.at_ns >> self.shift);
        let Some(turn) = [near, far].into_iter().flatten().min() else { return false };
        if turn > until_ns >> self.shift {
            return false;
        }
        self.turn = turn;
        let slot = turn as usize % BUCKETS;
        self.current.clear();
        self.gone = 0;
        // Far events come before near ones of the same time: they were inserted when this bucket was out of reach.
        while let Some(Reverse(e)) = self.far.peek() {
            if e.at_ns >> self.shift != turn {
                break;
            }
            self.current.push(Entry { at_ns: e.at_ns, event: e.event });
            self.far.pop();
        }
        self.gather(slot);
        self.current.sort_by_key(|e| e.at_ns);
        true
    }

    /// The nearest bucket after the current one that has events.
    fn next_occupied(&self) -> Option<u64> {
        let first = (self.turn as usize + 1) % BUCKETS;
        let mut word = first / 64;
        let mut bits = self.occupied[word] & (!0 << (first % 64));
        for _ in 0..=WORDS {
            if bits != 0 {
                let slot = word * 64 + bits.trailing_zeros() as usize;
                let ahead = (slot + BUCKETS - first) % BUCKETS;
                return Some(self.turn + 1 + ahead as u64);
            }
            word = (word + 1) % WORDS;
            bits = self.occupied[word];
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is pushed, before or while events are taken, comes out by time, then by insertion.
        #[test]
        fn comes_out_in_order(shift in 0u32..8, times in prop::collection::vec(0u64..3_000_000, 1..300),
                              later in prop::collection::vec(0u64..200_000, 0..300)) {
            let mut wheel = Wheel::new(shift);
            let mut model = std::collections::BTreeSet::new();
            let mut number = 0u32;
            for &at in &times {
                wheel.push(at, number);
                model.insert((at, number));
                number += 1;
            }
            let mut later = later.into_iter();
            while let Some((at, event)) = wheel.pop(u64::MAX) {
                prop_assert_eq!(Some((at, event)), model.pop_first());
                if let Some(delay) = later.next() {
                    wheel.push(at + delay, number);
                    model.insert((at + delay, number));
                    number += 1;
                }
            }
            prop_assert!(model.is_empty());
        }

        /// Stopping at a time and going on loses nothing.
        #[test]
        fn stops_at_a_time(times in prop::collection::vec(0u64..100_000, 1..100), stop in 0u64..100_000) {
            let mut wheel = Wheel::new(4);
            for &at in &times {
                wheel.push(at, ());
            }
            let mut early = 0;
            while let Some((at, ())) = wheel.pop(stop) {
                prop_assert!(at <= stop);
                early += 1;
            }
            prop_assert_eq!(early, times.iter().filter(|&&t| t <= stop).count());
            wheel.push(stop, ());
            prop_assert_eq!(wheel.pop(stop), Some((stop, ())));
            let rest = std::iter::from_fn(|| wheel.pop(u64::MAX)).count();
            prop_assert_eq!(early + rest, times.len());
        }
    }
}
