//! Priority queue of links by water level, for rising levels: buckets of levels, and a heap for the lowest bucket.
//!
//! The bits of positive doubles are ordered like the numbers and roughly uniform in the logarithm: buckets are ranges
//! of these bits. A link is examined when its bucket is reached. If its level has risen since, it moves to a later
//! bucket.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use subak_core::{IdVec, LinkId};

/// End of a bucket's linked list.
const NONE: LinkId = LinkId::NONE;

/// Links by level.
#[derive(Debug, Clone, Default)]
pub(super) struct Levels {
    lowest: u64,
    /// Number of low bits of a level in which the levels of a bucket differ.
    width: u32,
    /// First link of each bucket's linked list.
    first: Vec<LinkId>,
    after: IdVec<LinkId, LinkId>,
    /// First bucket that is not in the heap.
    turn: usize,
    heap: BinaryHeap<Reverse<(u64, LinkId)>>,
}

impl Levels {
    /// Restarts with the given levels; link indices are below `links`.
    pub fn fill(&mut self, links: usize, levels: impl Iterator<Item = (f64, LinkId)> + Clone) {
        let (mut lowest, mut highest, mut count) = (u64::MAX, 0, 0usize);
        for (level, _) in levels.clone() {
            (lowest, highest, count) = (lowest.min(level.to_bits()), highest.max(level.to_bits()), count + 1);
        }
        // Levels may rise above all initial ones: two further doublings have separate buckets, and the rest shares
        // one.
        let bits = u64::BITS - (highest.saturating_sub(lowest) + (2 << (f64::MANTISSA_DIGITS - 1))).leading_zeros();
        let buckets = (4 * count).next_power_of_two();
        self.width = bits.saturating_sub(buckets.trailing_zeros());
        self.lowest = lowest;
        self.first.clear();
        self.first.resize(buckets, NONE);
        self.after.resize(links, NONE);
        self.heap.clear();
        self.turn = 0;
        levels.for_each(|(level, l)| self.push(level, l));
    }

    /// Inserts link `l` by its level.
    pub fn push(&mut self, level: f64, l: LinkId) {
        let bits = level.to_bits();
        let bucket = ((bits.saturating_sub(self.lowest) >> self.width) as usize).min(self.first.len() - 1);
        if bucket < self.turn {
            self.heap.push(Reverse((bits, l)));
        } else {
            self.after[l] = std::mem::replace(&mut self.first[bucket], l);
        }
    }

    /// Removes the link with the lowest water level. `level` returns a link's present level, or `None` if it has no
    /// flows left.
    pub fn pop(&mut self, mut level: impl FnMut(LinkId) -> Option<f64>) -> Option<(f64, LinkId)> {
        loop {
            while let Some(Reverse((bits, l))) = self.heap.pop() {
                match level(l) {
                    Some(now) if now.to_bits() <= bits => return Some((now, l)),
                    Some(now) => self.push(now, l),
                    None => {}
                }
            }
            self.turn += 1;
            let mut l = std::mem::replace(self.first.get_mut(self.turn - 1)?, NONE);
            while l != NONE {
                let after = self.after[l];
                if let Some(now) = level(l) {
                    self.push(now, l);
                }
                l = after;
            }
        }
    }
}
