//! Threads wait for each other between the phases of an iteration. They spin, because a phase lasts microseconds, and yield
//! during long waits, because there may be fewer processors than threads.
//!
//! `sync` beside this file is std's. A test replaces it by loom's, which tries every interleaving of the threads.

use super::sync::{AtomicUsize, Ordering, spin_loop, yield_now};

/// Spins of a thread before it yields.
const SPINS: u32 = 2000;

/// A barrier for a fixed number of threads.
#[derive(Debug)]
pub(super) struct Barrier {
    threads: usize,
    waiting: AtomicUsize,
    turn: AtomicUsize,
}

impl Barrier {
    pub fn new(threads: usize) -> Self {
        Barrier { threads, waiting: AtomicUsize::new(0), turn: AtomicUsize::new(0) }
    }

    /// Barriers of one thread: tell, gather, end. No thread gathers before all have written, and none ends before
    /// all have gathered; so gathered values stay constant until all have ended.
    pub fn rounds<B>(
        &self,
        rounds: usize,
        blocks: &mut B,
        mut tell: impl FnMut(&mut B),
        mut gather: impl FnMut(),
        mut end: impl FnMut(&mut B),
    ) {
        for _ in 0..rounds {
            tell(blocks);
            self.wait();
            gather();
            self.wait();
            end(blocks);
        }
    }

    /// Returns once all threads have arrived. Writes before the barrier are visible after it.
    fn wait(&self) {
        let turn = self.turn.load(Ordering::Acquire);
        if self.waiting.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.waiting.store(0, Ordering::Relaxed);
            self.turn.store(turn.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut looks = 0;
        while self.turn.load(Ordering::Acquire) == turn {
            looks += 1;
            if looks < SPINS { spin_loop() } else { yield_now() }
        }
    }
}
