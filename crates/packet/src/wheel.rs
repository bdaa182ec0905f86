//! The event queue: a wheel of time buckets for the near future, a heap for the far one.
//!
//! Events at the same nanosecond come out in the order they went in, so runs repeat bit for bit. On request they come out by
//! what they are instead ([`Tied`]), never by when they went in, as a run on several cores will have to: that costs a
//! quarter of the speed where many events share their times. A bucket's events lie side by side in chunks, most in one; it
//! is gathered and sorted when its turn comes, and what is added to it while it is being emptied is inserted in place.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use subak_core::Ns;
use subak_core::rng::Stream;

const BUCKETS: usize = 8192;
const WORDS: usize = BUCKETS / 64;

/// What is due at a time, with an order of its own among what is due at the same time.
pub trait Tied: Copy {
    /// Decides between events of the same time, in 47 bits. Events that share it must be the same to whoever takes them.
    fn tie(&self, at_ns: Ns) -> u64;
}

/// An event of the bucket being emptied.
#[derive(Debug, Clone, Copy)]
struct Entry<E> {
    at_ns: Ns,
    event: E,
}

/// A far event: ordered by time, then by its tie, or as it went in.
#[derive(Debug, Clone, Copy)]
struct Far<E> {
    at_ns: Ns,
    tie: u64,
    event: E,
}

/// An event of a bucket, and how long after the bucket's begin it is due.
#[derive(Debug, Clone, Copy)]
struct Near<E> {
    offset_ns: u32,
    event: E,
}

/// Events a chunk has room for: with 16 bytes each it fills two cache lines.
const ROOM: usize = 7;

/// Events of one bucket, in the order they went in.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Chunk<E> {
    events: [Near<E>; ROOM],
    /// The chunk of the same bucket that was filled before.
    before: Place,
}

/// Where a bucket's last chunk is in the pool and how many events it has; 0 events: the bucket is empty.
#[derive(Debug, Clone, Copy)]
struct Place(u32);

impl Place {
    const NONE: Place = Place(0);
    fn new(chunk: u32, events: usize) -> Place {
        Place(chunk << 3 | events as u32)
    }
    fn chunk(self) -> usize {
        (self.0 >> 3) as usize
    }
    fn events(self) -> usize {
        (self.0 & 7) as usize
    }
}

impl<E> PartialEq for Far<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<E> Eq for Far<E> {}
impl<E> PartialOrd for Far<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Far<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at_ns, self.tie).cmp(&(other.at_ns, other.tie))
    }
}

/// Events by time.
#[derive(Debug)]
pub struct Wheel<E: Tied> {
    /// A bucket spans `1 << shift` ns.
    shift: u32,
    /// The last chunk of each bucket.
    last: Vec<Place>,
    pool: Vec<Chunk<E>>,
    free: Vec<u32>,
    occupied: [u64; WORDS],
    /// Number of the bucket being emptied, counted from time zero.
    turn: u64,
    /// Its events in order, and how many of them are gone.
    current: Vec<Entry<E>>,
    gone: usize,
    /// Those of one time while they are put in order.
    tied: Vec<E>,
    keys: Vec<u64>,
    far: BinaryHeap<Reverse<Far<E>>>,
    /// Far events that went in so far.
    order: u64,
    /// Ties decide, and what is inserted is shuffled, so that a test sees that insertion decides nothing.
    ordered: Option<Stream>,
}

impl<E: Tied> Wheel<E> {
    /// An empty wheel whose buckets span `1 << shift` ns.
    pub fn new(shift: u32) -> Self {
        Wheel {
            shift,
            last: vec![Place::NONE; BUCKETS],
            pool: Vec::new(),
            free: Vec::new(),
            occupied: [0; WORDS],
            turn: 0,
            current: Vec::new(),
            gone: 0,
            tied: Vec::new(),
            keys: Vec::new(),
            far: BinaryHeap::new(),
            order: 0,
            ordered: None,
        }
    }

    /// From now on ties decide between events of the same time, and events lie in the buckets as if they had been inserted in
    /// a random order.
    pub fn order(&mut self, seed: u64) {
        self.ordered = Some(Stream::new(seed, "scramble"));
    }

    /// Adds `event` at `at_ns`, which is not before the last event taken.
    #[inline(always)]
    pub fn push(&mut self, at_ns: Ns, event: impl Into<E>) {
        // Where the call stands, the kind of event is known, and most of this is nothing.
        self.insert(at_ns, event.into());
    }

    #[inline(always)]
    fn insert(&mut self, at_ns: Ns, event: E) {
        let turn = at_ns >> self.shift;
        // What is due now or before wraps around.
        if turn.wrapping_sub(self.turn + 1) < BUCKETS as u64 - 1 {
            let offset_ns = (at_ns - (turn << self.shift)) as u32;
            self.put(turn as usize % BUCKETS, Near { offset_ns, event });
        } else if turn <= self.turn {
            self.insert_into_current(at_ns, event);
        } else {
            self.insert_far(at_ns, event);
        }
    }

    /// Most events fall into other buckets than the one being emptied.
    #[cold]
    fn insert_into_current(&mut self, at_ns: Ns, event: E) {
        let rest = &self.current[self.gone..];
        let mut place = self.gone + rest.partition_point(|e| e.at_ns <= at_ns);
        if self.ordered.is_some() {
            let tie = event.tie(at_ns);
            let after = |e: &Entry<E>| e.at_ns == at_ns && e.event.tie(at_ns) > tie;
            place -= self.current[self.gone..place].iter().rev().take_while(|e| after(e)).count();
        }
        self.current.insert(place, Entry { at_ns, event });
    }

    #[cold]
    fn insert_far(&mut self, at_ns: Ns, event: E) {
        self.order += 1;
        let tie = if self.ordered.is_some() { event.tie(at_ns) } else { self.order };
        self.far.push(Reverse(Far { at_ns, tie, event }));
    }

    #[inline]
    fn put(&mut self, slot: usize, event: Near<E>) {
        let last = self.last[slot];
        let filled = last.events();
        if !filled.is_multiple_of(ROOM) {
            self.pool[last.chunk()].events[filled] = event;
            self.last[slot] = Place(last.0 + 1);
            return;
        }
        let place = self.free.pop().unwrap_or_else(|| self.more_room(event));
        let chunk = &mut self.pool[place as usize];
        (chunk.events[0], chunk.before) = (event, last);
        self.last[slot] = Place::new(place, 1);
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    #[cold]
    fn more_room(&mut self, event: Near<E>) -> u32 {
        self.pool.push(Chunk { events: [event; ROOM], before: Place::NONE });
        self.pool.len() as u32 - 1
    }

    /// Moves a bucket's events behind the current ones, in the order they went in.
    fn gather(&mut self, slot: usize) {
        let first = self.current.len();
        let begin_ns = self.turn << self.shift;
        let mut last = std::mem::replace(&mut self.last[slot], Place::NONE);
        while last.events() > 0 {
            let chunk = &self.pool[last.chunk()];
            let entry = |e: &Near<E>| Entry { at_ns: begin_ns + u64::from(e.offset_ns), event: e.event };
            self.current.extend(chunk.events[..last.events()].iter().rev().map(entry));
            self.free.push(last.chunk() as u32);
            last = chunk.before;
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
        while let Some(&Reverse(Far { at_ns, event, .. })) = self.far.peek() {
            if at_ns >> self.shift != turn {
                break;
            }
            self.current.push(Entry { at_ns, event });
            self.far.pop();
        }
        self.gather(slot);
        if let Some(stream) = &mut self.ordered {
            stream.shuffle(&mut self.current);
            self.current.sort_unstable_by_key(|e| e.at_ns);
            self.settle_ties();
        } else {
            // Far events come before near ones of the same time: they were inserted when this bucket was out of reach.
            self.current.sort_by_key(|e| e.at_ns);
        }
        true
    }

    /// Puts current events of the same time in their order. Most have a time of their own.
    #[inline]
    fn settle_ties(&mut self) {
        let mut from = 0;
        while from + 1 < self.current.len() {
            let at_ns = self.current[from].at_ns;
            let mut until = from + 1;
            while until < self.current.len() && self.current[until].at_ns == at_ns {
                until += 1;
            }
            if until - from > 1 {
                self.put_in_order(from, until, at_ns);
            }
            from = until;
        }
    }

    /// Sorts the current events `from..until`, which are all due at `at_ns`, by their ties. Numbers of 64 bits sort fastest: a
    /// tie, then the place of its event.
    fn put_in_order(&mut self, from: usize, until: usize, at_ns: Ns) {
        const PLACE_BITS: u32 = 17;
        let equal = &mut self.current[from..until];
        if equal.len() >> PLACE_BITS > 0 {
            equal.sort_by_cached_key(|e| e.event.tie(at_ns));
            return;
        }
        self.keys.clear();
        self.keys.extend(equal.iter().enumerate().map(|(k, e)| e.event.tie(at_ns) << PLACE_BITS | k as u64));
        if self.keys.is_sorted() {
            return;
        }
        self.keys.sort_unstable();
        self.tied.clear();
        self.tied.extend(equal.iter().map(|e| e.event));
        for (e, key) in equal.iter_mut().zip(&self.keys) {
            e.event = self.tied[(key & ((1 << PLACE_BITS) - 1)) as usize];
        }
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

    #[test]
    fn a_chunk_fills_two_cache_lines() {
        assert_eq!(size_of::<Chunk<crate::event::Packed>>(), 128);
    }

    impl Tied for u32 {
        fn tie(&self, _at_ns: Ns) -> u64 {
            u64::from(*self)
        }
    }

    impl Tied for () {
        fn tie(&self, _at_ns: Ns) -> u64 {
            0
        }
    }

    proptest! {
        /// Whatever is pushed, before or while events are taken, comes out by time, then by what it is.
        #[test]
        fn comes_out_in_order(shift in 0u32..=16, crowded: bool, times in prop::collection::vec(0u64..3_000_000, 1..300),
                              later in prop::collection::vec(0u64..200_000, 0..300)) {
            let span = if crowded { 40 } else { 3_000_000 };
            let times: Vec<_> = times.into_iter().map(|at| 1000 + at % span).collect();
            let mut wheel = Wheel::new(shift);
            wheel.order(7);
            let mut model = std::collections::BTreeSet::new();
            let mut number = 0u32;
            for &at in &times {
                // Not in the order of the ties.
                let event = number.reverse_bits();
                wheel.push(at, event);
                model.insert((at, event));
                number += 1;
            }
            let mut later = later.into_iter();
            while let Some((at, event)) = wheel.pop(u64::MAX) {
                prop_assert_eq!(Some((at, event)), model.pop_first());
                if let Some(delay) = later.next() {
                    let later = number.reverse_bits();
                    // What is pushed for now comes after what was taken, whatever it is.
                    if delay > 0 || later > event {
                        wheel.push(at + delay, later);
                        model.insert((at + delay, later));
                    }
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
