//! Barrier between the phases of an iteration. Threads spin, since a phase lasts microseconds, and yield during long
//! waits, since threads may be oversubscribed.
//!
//! Synchronization primitives come from the parent's module `sync`, which is `std`. A test replaces it by loom's,
//! which explores every interleaving.

use super::sync::{AtomicUsize, Ordering, spin_loop, yield_now};

/// Number of spins before a thread yields.
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

    /// Runs the rounds of one thread: `tell` writes the thread's values, `gather` reads those of all threads, and `end`
    /// completes the round. A barrier precedes `gather` and another `end`: values that `gather` reads are complete, and
    /// they stay constant until every thread has read them.
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
