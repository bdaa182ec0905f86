//! The barrier of FlowBlocks' threads, and the threads that share a loop, under loom: every order of their steps, and
//! every value that the memory model lets a read return, at small sizes. The tested files are the crate's own, with
//! loom's primitives in place of std's.

use loom::sync::atomic::AtomicU32;

#[path = "../../../src/ned/parallel/barrier.rs"]
mod barrier;
#[path = "../../../src/ned/team.rs"]
#[expect(dead_code, clippy::absurd_extreme_comparisons, reason = "parts are tested elsewhere, and nothing spins here")]
mod team;

/// Loom's primitives of thread synchronization.
mod sync {
    pub use loom::hint::spin_loop;
    pub use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub use loom::thread::{Builder, yield_now};

    pub const SPINS: usize = 0;
}

use barrier::Barrier;
use sync::Arc;
use sync::Ordering::Relaxed;
use team::Team;

/// Model of the memory of FlowBlocks and LinkBlocks, one element per writer: thread t writes its sums to `sums[t]`
/// and its price to `price[t]`.
struct Shared {
    sums: Vec<AtomicU32>,
    price: Vec<AtomicU32>,
}

/// One round of the model: each thread's sum is that of the prices plus its index; each price is that of the sums
/// plus its owner's index.
fn expected(threads: usize, rounds: usize) -> Vec<u32> {
    let mut price = vec![1; threads];
    for _ in 0..rounds {
        let sums: Vec<u32> = (0..threads).map(|t| price.iter().sum::<u32>() + t as u32).collect();
        price = (0..threads).map(|t| sums.iter().sum::<u32>() + 10 * t as u32).collect();
    }
    price
}

fn every_order(threads: usize, rounds: usize, preemptions: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        let shared = Arc::new(Shared {
            sums: (0..threads).map(|_| AtomicU32::new(0)).collect(),
            price: (0..threads).map(|_| AtomicU32::new(1)).collect(),
        });
        let barrier = Arc::new(Barrier::new(threads));
        let work = |t: usize| {
            let (shared, barrier) = (shared.clone(), barrier.clone());
            move || {
                let read = |all: &[AtomicU32]| all.iter().map(|x| x.load(Relaxed)).sum::<u32>();
                let tell = || shared.sums[t].store(read(&shared.price) + t as u32, Relaxed);
                let gather = || shared.price[t].store(read(&shared.sums) + 10 * t as u32, Relaxed);
                let mut seen = 0;
                // F-NORM reads complete values at the end of a round, though other threads may be in the next round
                // already.
                let end = |seen: &mut usize| {
                    *seen += 1;
                    assert_eq!(read(&shared.price), expected(threads, *seen).iter().sum::<u32>());
                };
                barrier.rounds(rounds, &mut seen, |_| tell(), gather, end);
            }
        };
        let others: Vec<_> = (1..threads).map(|t| loom::thread::spawn(work(t))).collect();
        work(0)();
        others.into_iter().for_each(|thread| thread.join().unwrap());
        let price: Vec<u32> = shared.price.iter().map(|p| p.load(Relaxed)).collect();
        assert_eq!(price, expected(threads, rounds));
    });
}

/// Two threads and three rounds. Of three threads, two may wait in turn forever, which loom cannot distinguish from a
/// deadlock.
#[test]
fn two_threads_in_every_order() {
    every_order(2, 3, 3);
}

/// Each part of two loops runs once, its writes are seen after the loop, and both threads end.
#[test]
fn loops_in_every_order() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let team = Team::new(2);
        for _ in 0..2 {
            let runs = [AtomicU32::new(0), AtomicU32::new(0)];
            team.each(&runs, |count| count.store(count.load(Relaxed) + 1, Relaxed));
            assert_eq!(runs.each_ref().map(|count| count.load(Relaxed)), [1, 1]);
        }
    });
}
