//! Barrier for threads that synchronize many thousand times per second.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Number of checks by a waiting thread before it yields its core.
const LOOKS: u32 = 4000;

/// A spinning barrier. A waiting thread keeps its core for some microseconds, since sleeping and waking take longer
/// than the wait.
#[derive(Debug)]
pub(crate) struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    broken: AtomicBool,
}

impl Barrier {
    /// A barrier at which `threads` threads wait.
    pub fn of(threads: usize) -> Self {
        Barrier { threads, arrived: AtomicUsize::new(0), round: AtomicUsize::new(0), broken: AtomicBool::new(false) }
    }

    /// Waits for all threads; `false` if one has panicked. Writes before the barrier are visible after it.
    pub fn wait(&self) -> bool {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::Release);
        }
        let mut looks = 0;
        while self.round.load(Ordering::Acquire) == round {
            if self.broken.load(Ordering::Relaxed) {
                return false;
            }
            looks += 1;
            if looks < LOOKS { spin_loop() } else { std::thread::yield_now() }
        }
        !self.broken.load(Ordering::Relaxed)
    }
}

/// Guard of a thread that uses the barrier. If the thread panics, the other threads stop waiting.
pub(crate) struct Member<'a>(pub &'a Barrier);

impl Drop for Member<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn nobody_goes_on_before_all_are_there() {
        let (barrier, sum) = (Barrier::of(3), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 1..200 {
                        sum.fetch_add(1, Ordering::Relaxed);
                        assert!(barrier.wait());
                        assert_eq!(sum.load(Ordering::Relaxed), 3 * round);
                        assert!(barrier.wait());
                    }
                });
            }
        });
    }

    #[test]
    fn nobody_waits_for_one_that_died() {
        let barrier = Barrier::of(2);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let _member = Member(&barrier);
                barrier.wait()
            });
            let dies = || {
                let _member = Member(&barrier);
                std::panic::resume_unwind(Box::new("died"));
            };
            assert!(catch_unwind(AssertUnwindSafe(dies)).is_err());
            assert!(!waits.join().unwrap());
        });
    }
}
