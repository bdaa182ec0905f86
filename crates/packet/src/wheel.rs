//! The event queue: a wheel of time buckets for the near future, a coarse wheel for later times, and a heap for the
//! far future (hierarchical timing wheels: Varghese and Lauck, SOSP 1987). Events of a coarse bucket are distributed
//! to buckets before its time.
//!
//! Events of the same nanosecond are ordered by their content ([`Tied`]), never by insertion. Runs therefore repeat
//! bit for bit, and a parallel run, which inserts in any order, gives the same bytes. A bucket's events are stored in
//! chunks, most buckets in one. Each event has a 32-bit word with its order. The upper half is the offset from the
//! bucket's start, ns. The lower half is the event's draw, a 16-bit order value. When a bucket becomes current, its
//! events are sorted by these words; only events with equal words are compared in full. Events added to the current
//! bucket are inserted in place.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use subak_core::rng::Stream;
use subak_core::{IdVec, Ns};

const BUCKETS: usize = 8192;
const WORDS: usize = BUCKETS / 64;
/// A coarse bucket spans `1 << COARSE_SHIFT` buckets, half of the fine wheel.
const COARSE_SHIFT: u32 = BUCKETS.ilog2() - 1;
const COARSE_BUCKETS: usize = 256;
/// A bucket spans at most `1 << MAX_SHIFT` ns, so that an event's offset within the bucket and its 16-bit order value
/// (draw) fit into one 32-bit word.
pub const MAX_SHIFT: u32 = 16;

/// An event type with an order among events of the same time: by the draw, then by the tie.
pub trait Tied: Copy {
    /// First criterion of the order. It is cheap, and nearly always distinguishes events.
    fn draw(&self, at_ns: Ns) -> u16;
    /// Second criterion, for equal draws. Events with equal ties must be interchangeable.
    fn tie(&self) -> u128;
}

/// An event of a coarse bucket or in the far future.
#[derive(Debug, Clone, Copy)]
struct WheelEntry<E> {
    at_ns: Ns,
    event: E,
}

impl<E: Tied> WheelEntry<E> {
    fn order(&self) -> (Ns, u16, u128) {
        (self.at_ns, self.event.draw(self.at_ns), self.event.tie())
    }
}

impl<E: Tied> PartialEq for WheelEntry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<E: Tied> Eq for WheelEntry<E> {}
impl<E: Tied> PartialOrd for WheelEntry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<E: Tied> Ord for WheelEntry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

/// An event of a bucket. Its word has the offset from the bucket's start, ns, in the upper half, and its draw in the
/// lower half.
#[derive(Debug, Clone, Copy)]
struct Near<E> {
    word: u32,
    event: E,
}

impl<E: Tied> Near<E> {
    #[inline(always)]
    fn new(at_ns: Ns, begin_ns: Ns, event: E) -> Self {
        Near { word: ((at_ns - begin_ns) as u32) << 16 | u32::from(event.draw(at_ns)), event }
    }

    fn order(&self) -> (u32, u128) {
        (self.word, self.event.tie())
    }
}

/// Sort key of an event of the current bucket: its word, then its index in `current`.
#[inline(always)]
fn key_of(word: u32, place: usize) -> u64 {
    u64::from(word) << 32 | place as u64
}

/// Index in `current` of the event with this sort key.
#[inline(always)]
fn place_of(key: u64) -> usize {
    key as u32 as usize
}

/// Largest number of events that are sorted without branches. Most buckets have at most this number.
const FEW: usize = 16;

/// Rank of each of at most [`FEW`] words in ascending order; `None` if two words are equal.
#[inline]
fn ranks(words: impl ExactSizeIterator<Item = u32>) -> Option<[u32; FEW]> {
    let count = words.len();
    let mut row = [u32::MAX; FEW];
    row.iter_mut().zip(words).for_each(|(place, word)| *place = word);
    let mut ranks = [0; FEW];
    for &word in &row[..count] {
        for (rank, &other) in ranks.iter_mut().zip(&row) {
            *rank += u32::from(word < other);
        }
    }
    // Ranks of distinct words have the sum 0 + 1 + ... + (count - 1); equal words have a smaller sum.
    let pairs: u32 = ranks[..count].iter().sum();
    (pairs as usize == count * count.saturating_sub(1) / 2).then_some(ranks)
}

/// Number of events in a chunk: with events of 16 bytes, a chunk fills two cache lines.
const ROOM: usize = 7;

/// Events of one bucket.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Chunk<E> {
    events: [Near<E>; ROOM],
    /// The chunk of the same bucket that was filled before this one.
    before: BucketChunk,
}

subak_core::id! {
    /// Index of a chunk in the pool.
    struct ChunkId(u32);
}

/// Index of a bucket's last chunk, and number of events in that chunk; 0 events mean an empty bucket.
#[derive(Debug, Clone, Copy)]
struct BucketChunk(u32);

impl BucketChunk {
    const NONE: BucketChunk = BucketChunk(0);
    fn new(chunk: ChunkId, events: usize) -> BucketChunk {
        BucketChunk(chunk.0 << 3 | events as u32)
    }
    fn chunk(self) -> ChunkId {
        ChunkId(self.0 >> 3)
    }
    fn events(self) -> usize {
        (self.0 & 7) as usize
    }
}

/// Event queue, ordered by time.
#[derive(Debug)]
pub struct Wheel<E: Tied> {
    /// A bucket spans `1 << shift` ns.
    shift: u32,
    /// The last chunk of each bucket.
    last: Vec<BucketChunk>,
    pool: IdVec<ChunkId, Chunk<E>>,
    free: Vec<ChunkId>,
    occupied: [u64; WORDS],
    /// Number of the current bucket, counted from time 0.
    turn: u64,
    /// Events of the current bucket, in storage order.
    current: Vec<Near<E>>,
    /// Sort keys of the current bucket's events, in order.
    order: Vec<u64>,
    /// Number of events of the current bucket that were already taken.
    gone: usize,
    coarse: Vec<Vec<WheelEntry<E>>>,
    /// Number of the first coarse bucket whose events are not distributed: two after the coarse bucket that contains
    /// the current bucket.
    next_coarse: u64,
    far: BinaryHeap<Reverse<WheelEntry<E>>>,
    /// Random stream that shuffles each bucket's events, to test that insertion order has no effect.
    scramble: Option<Stream>,
}

impl<E: Tied> Wheel<E> {
    /// An empty wheel whose buckets span `1 << shift` ns, at most `1 << MAX_SHIFT`.
    pub fn new(shift: u32) -> Self {
        assert!(shift <= MAX_SHIFT, "a bucket of 1 << {shift} ns");
        Wheel {
            shift,
            last: vec![BucketChunk::NONE; BUCKETS],
            pool: IdVec::new(),
            free: Vec::new(),
            occupied: [0; WORDS],
            turn: 0,
            current: Vec::new(),
            order: Vec::new(),
            gone: 0,
            coarse: vec![Vec::new(); COARSE_BUCKETS],
            next_coarse: 2,
            far: BinaryHeap::new(),
            scramble: None,
        }
    }

    /// From now on shuffles the events of each bucket, as if they had been inserted in a random order.
    pub fn scramble(&mut self, seed: u64) {
        self.scramble = Some(Stream::new(seed, "scramble"));
    }

    /// Adds `event` at `at_ns`. This time must not be before the last event taken, or before a time up to which all
    /// events were taken.
    #[inline(always)]
    pub fn push(&mut self, at_ns: Ns, event: impl Into<E>) {
        // Inlined: the kind of event is known at the call, so that the compiler simplifies most of `into`.
        self.insert(at_ns, event.into());
    }

    #[inline(always)]
    fn insert(&mut self, at_ns: Ns, event: E) {
        let turn = at_ns >> self.shift;
        if turn <= self.turn {
            self.insert_into_current(Near::new(at_ns, self.turn << self.shift, event));
        } else if turn >> COARSE_SHIFT < self.next_coarse {
            self.put(turn as usize % BUCKETS, Near::new(at_ns, turn << self.shift, event));
        } else {
            self.insert_later(WheelEntry { at_ns, event });
        }
    }

    /// A separate function, since most events fall into other buckets than the current one.
    #[cold]
    fn insert_into_current(&mut self, event: Near<E>) {
        let rest = &self.order[self.gone..];
        let before = |&key: &u64| match ((key >> 32) as u32).cmp(&event.word) {
            Ordering::Equal => self.at(key).event.tie() < event.event.tie(),
            words => words.is_lt(),
        };
        let place = self.gone + rest.partition_point(before);
        self.order.insert(place, key_of(event.word, self.current.len()));
        self.current.push(event);
    }

    /// The event of the current bucket with this sort key.
    #[inline(always)]
    fn at(&self, key: u64) -> &Near<E> {
        &self.current[place_of(key)]
    }

    #[inline(never)]
    fn insert_later(&mut self, entry: WheelEntry<E>) {
        let number = entry.at_ns >> self.shift >> COARSE_SHIFT;
        if number - self.next_coarse < COARSE_BUCKETS as u64 {
            self.coarse[number as usize % COARSE_BUCKETS].push(entry);
        } else {
            self.far.push(Reverse(entry));
        }
    }

    /// Distributes the events of coarse buckets, up to the coarse bucket after the one that contains the current
    /// bucket.
    #[inline(never)]
    fn share_out(&mut self) {
        let next = (self.turn >> COARSE_SHIFT) + 2;
        for number in self.next_coarse..next.min(self.next_coarse + COARSE_BUCKETS as u64) {
            let mut entries = std::mem::take(&mut self.coarse[number as usize % COARSE_BUCKETS]);
            for WheelEntry { at_ns, event } in entries.drain(..) {
                let turn = at_ns >> self.shift;
                self.put(turn as usize % BUCKETS, Near::new(at_ns, turn << self.shift, event));
            }
            self.coarse[number as usize % COARSE_BUCKETS] = entries;
        }
        self.next_coarse = next;
    }

    /// The events of the first non-empty coarse bucket.
    fn first_coarse(&self) -> &[WheelEntry<E>] {
        let numbers = self.next_coarse..self.next_coarse + COARSE_BUCKETS as u64;
        let mut buckets = numbers.map(|number| &self.coarse[number as usize % COARSE_BUCKETS]);
        buckets.find(|entries| !entries.is_empty()).map_or(&[], |entries| entries)
    }

    #[inline]
    fn put(&mut self, slot: usize, event: Near<E>) {
        let last = self.last[slot];
        let filled = last.events();
        if !filled.is_multiple_of(ROOM) {
            self.pool[last.chunk()].events[filled] = event;
            self.last[slot] = BucketChunk(last.0 + 1);
            return;
        }
        let place = self.free.pop().unwrap_or_else(|| self.more_room(event));
        let chunk = &mut self.pool[place];
        (chunk.events[0], chunk.before) = (event, last);
        self.last[slot] = BucketChunk::new(place, 1);
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    #[cold]
    fn more_room(&mut self, event: Near<E>) -> ChunkId {
        self.pool.push(Chunk { events: [event; ROOM], before: BucketChunk::NONE })
    }

    /// Moves the events of bucket `slot` to `current`.
    fn gather(&mut self, slot: usize) {
        let mut last = std::mem::replace(&mut self.last[slot], BucketChunk::NONE);
        while last.events() > 0 {
            let chunk = &self.pool[last.chunk()];
            self.current.extend_from_slice(&chunk.events[..last.events()]);
            self.free.push(last.chunk());
            last = chunk.before;
        }
        self.occupied[slot / 64] &= !(1 << (slot % 64));
    }

    /// Removes the next event if it is due by `until_ns`; returns its time, its order value (draw) and the event.
    #[inline(always)]
    pub fn pop(&mut self, until_ns: Ns) -> Option<(Ns, u16, E)> {
        if self.gone == self.order.len() && !self.turn_to_next(until_ns) {
            return None;
        }
        let key = self.order[self.gone];
        let at_ns = self.time_of(key);
        if at_ns > until_ns {
            return None;
        }
        self.gone += 1;
        Some((at_ns, (key >> 32) as u16, self.at(key).event))
    }

    /// Time of the next event, ns; [`Ns::MAX`] if there is none.
    pub fn first_ns(&self) -> Ns {
        if let Some(&key) = self.order.get(self.gone) {
            return self.time_of(key);
        }
        let near = self.next_occupied().and_then(|turn| {
            let times = self.bucket(turn as usize % BUCKETS).map(|near| Ns::from(near.word >> 16));
            times.min().map(|after_ns| (turn << self.shift) + after_ns)
        });
        let near = near.or_else(|| self.first_coarse().iter().map(|entry| entry.at_ns).min());
        let far = self.far.peek().map(|Reverse(entry)| entry.at_ns);
        near.into_iter().chain(far).min().unwrap_or(Ns::MAX)
    }

    /// Time of the next event, and its two order values (draw and tie); `None` if there is no event.
    pub fn peek(&self) -> Option<(Ns, u16, u128)> {
        if let Some(&key) = self.order.get(self.gone) {
            let near = self.at(key);
            return Some((self.time_of(key), near.word as u16, near.event.tie()));
        }
        let turn = self.next_occupied();
        let near = turn.and_then(|turn| {
            let begin_ns = turn << self.shift;
            self.bucket(turn as usize % BUCKETS)
                .map(|near| (begin_ns + Ns::from(near.word >> 16), near.word as u16, near.event.tie()))
                .min()
        });
        let near = near.or_else(|| self.first_coarse().iter().map(WheelEntry::order).min());
        let far = self.far.peek().map(|Reverse(entry)| entry.order());
        near.into_iter().chain(far).min()
    }

    /// Time of the event of the current bucket with this sort key, ns.
    #[inline]
    fn time_of(&self, key: u64) -> Ns {
        (self.turn << self.shift) + (key >> 48)
    }

    /// Events of bucket `slot`, which is not the current one.
    fn bucket(&self, slot: usize) -> impl Iterator<Item = &Near<E>> {
        let chunks = std::iter::successors(Some(self.last[slot]), |last| Some(self.pool[last.chunk()].before));
        chunks
            .take_while(|last| last.events() > 0)
            .flat_map(|last| self.pool[last.chunk()].events[..last.events()].iter())
    }

    /// Whether the event that was taken last is the first of its bucket.
    #[inline]
    pub fn has_turned(&self) -> bool {
        self.gone == 1
    }

    /// The remaining events of the current bucket.
    #[inline]
    pub fn coming(&self) -> impl Iterator<Item = E> {
        self.order[self.gone..].iter().map(|&key| self.at(key).event)
    }

    /// Makes the next bucket with events the current one, unless that bucket begins after `until_ns`; returns whether
    /// it did.
    #[inline(never)]
    fn turn_to_next(&mut self, until_ns: Ns) -> bool {
        let near = self.next_occupied();
        let near = near.or_else(|| self.first_coarse().iter().map(|entry| entry.at_ns >> self.shift).min());
        let far = self.far.peek().map(|Reverse(e)| e.at_ns >> self.shift);
        let Some(turn) = [near, far].into_iter().flatten().min() else { return false };
        if turn > until_ns >> self.shift {
            return false;
        }
        self.turn = turn;
        if turn >> COARSE_SHIFT >= self.next_coarse - 1 {
            self.share_out();
        }
        self.current.clear();
        self.gone = 0;
        while let Some(&Reverse(WheelEntry { at_ns, event })) = self.far.peek() {
            if at_ns >> self.shift != turn {
                break;
            }
            self.current.push(Near::new(at_ns, turn << self.shift, event));
            self.far.pop();
        }
        self.gather(turn as usize % BUCKETS);
        if let Some(stream) = &mut self.scramble {
            stream.shuffle(&mut self.current);
        }
        self.put_in_order();
        true
    }

    fn put_in_order(&mut self) {
        self.order.clear();
        let count = self.current.len();
        if count <= FEW
            && let Some(ranks) = ranks(self.current.iter().map(|near| near.word))
        {
            self.order.resize(count, 0);
            for (place, (&rank, near)) in ranks.iter().zip(&self.current).enumerate() {
                self.order[rank as usize] = key_of(near.word, place);
            }
            return;
        }
        self.order.extend(self.current.iter().enumerate().map(|(place, near)| key_of(near.word, place)));
        self.order.sort_unstable();
        if self.order.windows(2).any(|pair| pair[0] >> 32 == pair[1] >> 32) {
            self.settle_ties();
        }
    }

    /// Sorts the events of the current bucket by their words, and events with equal words by [`Tied::tie`].
    #[cold]
    fn settle_ties(&mut self) {
        let current = &self.current;
        self.order.sort_by_key(|&key| current[place_of(key)].order());
    }

    /// The nearest non-empty bucket after the current one.
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
        /// Order values of a small set, so that equal ones are frequent.
        fn draw(&self, at_ns: Ns) -> u16 {
            ((self % 3) ^ (at_ns as u32 & 1)) as u16
        }
        fn tie(&self) -> u128 {
            u128::from(*self)
        }
    }

    impl Tied for () {
        fn draw(&self, _at_ns: Ns) -> u16 {
            0
        }
        fn tie(&self) -> u128 {
            0
        }
    }

    proptest! {
        /// Events that are inserted before or between removals are removed in the order of time, then of content.
        #[test]
        fn comes_out_in_order(shift in 0u32..=16, crowded: bool, times in prop::collection::vec(0u64..3_000_000, 1..300),
                              later in prop::collection::vec(0u64..200_000, 0..300)) {
            let span = if crowded { 40 } else { 3_000_000 };
            let times: Vec<_> = times.into_iter().map(|at| 1000 + at % span).collect();
            let mut wheel: Wheel<u32> = Wheel::new(shift);
            wheel.scramble(7);
            let mut model = std::collections::BTreeSet::new();
            let mut number = 0u32;
            for &at in &times {
                // Ties are not in the order of insertion.
                let event = number.reverse_bits();
                wheel.push(at, event);
                model.insert((at, event.draw(at), event));
                number += 1;
            }
            let mut later = later.into_iter();
            while let Some((at, draw, event)) = wheel.pop(u64::MAX) {
                prop_assert_eq!(Some((at, draw, event)), model.pop_first());
                let first = model.first().map(|&(at, draw, event)| (at, draw, event.tie()));
                prop_assert_eq!(wheel.peek(), first);
                prop_assert_eq!(wheel.first_ns(), first.map_or(u64::MAX, |(at, ..)| at));
                if let Some(delay) = later.next() {
                    let later = number.reverse_bits();
                    // An event pushed for the present time is ordered after all events taken before.
                    wheel.push(at + delay, later);
                    model.insert((at + delay, later.draw(at + delay), later));
                    number += 1;
                }
            }
            prop_assert!(model.is_empty());
        }

        /// Stopping at a time and continuing loses no event.
        #[test]
        fn stops_at_a_time(times in prop::collection::vec(0u64..100_000, 1..100), stop in 0u64..100_000) {
            let mut wheel = Wheel::new(4);
            for &at in &times {
                wheel.push(at, ());
            }
            let mut early = 0;
            while let Some((at, _, ())) = wheel.pop(stop) {
                prop_assert!(at <= stop);
                early += 1;
            }
            prop_assert_eq!(early, times.iter().filter(|&&t| t <= stop).count());
            wheel.push(stop, ());
            prop_assert_eq!(wheel.pop(stop), Some((stop, 0, ())));
            let rest = std::iter::from_fn(|| wheel.pop(u64::MAX)).count();
            prop_assert_eq!(early + rest, times.len());
        }
    }
}
