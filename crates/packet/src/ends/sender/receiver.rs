//! Reassembly state of a subflow at the receiver.

use std::collections::VecDeque;
use subak_core::scheme::{Blocks, Recovery};

/// Largest length of a block in an ACK, and of the hole between its blocks, segments.
const LONGEST_RUN: u32 = 256;

/// Outcome of a segment's arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentArrival {
    /// The segment had not arrived before.
    New,
    /// The segment had arrived before.
    Again,
    /// The segment is dropped, since an earlier one is missing. Whether the receiver must report this: once for each
    /// gap.
    Gap(bool),
}

/// Receiver of one subflow: tracks which segments have arrived.
#[derive(Debug)]
pub struct Receiver {
    /// Whether segments that arrive out of order are dropped ([`subak_core::scheme::Recovery::go_back`]).
    go_back: bool,
    /// First segment that has not arrived.
    next: u32,
    /// Whether `next + 1 + i` has arrived.
    beyond: VecDeque<bool>,
    /// Whether the receiver has reported that `next` is missing.
    complained: bool,
}

impl Receiver {
    /// A receiver without segments.
    pub fn new(recovery: &Recovery) -> Self {
        Receiver { go_back: recovery.go_back, next: 0, beyond: VecDeque::new(), complained: false }
    }

    /// Records the arrival of `segment`.
    #[inline]
    pub fn arrived(&mut self, segment: u32) -> SegmentArrival {
        if self.go_back && segment > self.next {
            return SegmentArrival::Gap(!std::mem::replace(&mut self.complained, true));
        }
        if self.takes(segment) { SegmentArrival::New } else { SegmentArrival::Again }
    }

    /// Marks `segment` as arrived; returns whether it was not.
    fn takes(&mut self, segment: u32) -> bool {
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

    /// Blocks of received segments before `segment`, which has arrived, for its ACK.
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

    /// First segment that has not arrived.
    pub fn cumulative(&self) -> u32 {
        self.next
    }
}
