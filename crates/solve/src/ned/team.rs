//! Threads that share the parts of a loop. The calling thread works too, and the others wait between loops: they spin
//! for a while, since the loops of an iteration follow each other within microseconds, and then sleep.
//!
//! Each part runs exactly once, on any thread. A thread begins with its own range of parts, the same in every loop, so
//! that their data stay in its core's cache. Then it takes parts of the others: a thread that wakes late, or that the
//! system interrupts between two parts, delays no other.
#![allow(unsafe_code, reason = "threads that outlive a loop run a closure that borrows from it")]

use super::sync::{
    Arc, AtomicBool, AtomicUsize, Builder, Condvar, Mutex, MutexGuard, Ordering, SPINS, spin_loop, yield_now,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

/// Number of looks for the next loop before a thread sleeps.
const LOOKS: usize = SPINS + SPINS / 5;
/// Parts of a loop for each thread.
const PARTS: usize = 4;
/// Largest number of threads.
const MOST: usize = 1024;

/// A number of threads, the caller's included.
pub(super) struct Team {
    shared: Arc<Shared>,
    /// Held during a loop.
    leader: Mutex<()>,
}

struct Shared {
    /// The next part in each thread's own range.
    next: Vec<Next>,
    /// Number of loops so far, as in the state.
    loops: AtomicUsize,
    /// Number of threads, the caller's excluded, that may run parts of the loop.
    active: AtomicUsize,
    panicked: AtomicBool,
    state: Mutex<State>,
    wake: Condvar,
}

/// A counter in a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Next(AtomicUsize);

#[derive(Default)]
struct State {
    loops: usize,
    /// The loop that runs now.
    job: Option<Job>,
    sleeping: usize,
    ended: bool,
}

#[derive(Clone, Copy)]
struct Job {
    work: *const (dyn Fn(usize) + Sync),
    parts: usize,
}

// SAFETY: the closure is `Sync`, and `Team::run` returns only after the last thread has finished with it.
unsafe impl Send for Job {}

impl Team {
    /// A team of `threads` threads, at least one. Threads that the system refuses are left out.
    pub fn new(threads: usize) -> Self {
        let threads = threads.clamp(1, MOST);
        let shared = Arc::new(Shared {
            next: (0..threads).map(|_| Next::default()).collect(),
            loops: AtomicUsize::new(0),
            active: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            state: Mutex::default(),
            wake: Condvar::new(),
        });
        for me in 1..threads {
            let shared = Arc::clone(&shared);
            let made = Builder::new().name(format!("ned-{me}")).spawn(move || shared.serve(me));
            if made.is_err() {
                break;
            }
        }
        Team { shared, leader: Mutex::new(()) }
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.shared.next.len()
    }

    /// Length of a part of a loop over `length` elements; loops of fewer than `least` elements per thread run on the
    /// caller's alone.
    pub fn part(&self, length: usize, least: usize) -> usize {
        match self.threads() {
            1 => length.max(1),
            threads if length < least * threads => length.max(1),
            threads => length.div_ceil(threads * PARTS),
        }
    }

    /// Calls `work` once for each of `parts`.
    pub fn each<P: Send>(&self, parts: impl IntoIterator<Item = P>, work: impl Fn(P) + Sync) {
        let mut parts = parts.into_iter();
        if self.threads() == 1 {
            return parts.for_each(work);
        }
        let (Some(first), second) = (parts.next(), parts.next()) else { return };
        let Some(second) = second else { return work(first) };
        let parts: Vec<_> = [first, second].into_iter().chain(parts).map(|part| Mutex::new(Some(part))).collect();
        self.run(parts.len(), &|i| {
            let part = locked(&parts[i]).take();
            part.into_iter().for_each(&work);
        });
    }

    /// Calls `work` once for each number below `parts`.
    fn run(&self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        let _leader = locked(&self.leader);
        let shared = &*self.shared;
        shared.panicked.store(false, Ordering::Relaxed);
        for (t, next) in shared.next.iter().enumerate() {
            next.0.store(shared.first(t, parts), Ordering::Relaxed);
        }
        // SAFETY: only the lifetime changes. `finished` withdraws the pointer and waits for the threads that have it,
        // before this function returns or unwinds.
        let forever = unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(work) };
        shared.begin(Job { work: forever, parts });
        let finished = Finished(shared);
        shared.take_parts(0, parts, work);
        drop(finished);
        assert!(!shared.panicked.load(Ordering::Relaxed), "a thread of the loop panicked");
    }
}

impl Clone for Team {
    fn clone(&self) -> Self {
        Team::new(self.threads())
    }
}

impl std::fmt::Debug for Team {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Team").field("threads", &self.threads()).finish_non_exhaustive()
    }
}

impl Drop for Team {
    /// Ends the threads without waiting for them: after a fork, the child has none.
    fn drop(&mut self) {
        locked(&self.shared.state).ended = true;
        self.shared.loops.fetch_add(1, Ordering::Release);
        self.shared.wake.notify_all();
    }
}

/// Ends the present loop when dropped.
struct Finished<'a>(&'a Shared);

impl Drop for Finished<'_> {
    fn drop(&mut self) {
        locked(&self.0.state).job = None;
        let mut looks = 0;
        while self.0.active.load(Ordering::Acquire) > 0 {
            looks += 1;
            pause(looks);
        }
    }
}

impl Shared {
    /// First part in the range of thread `t`.
    fn first(&self, t: usize, parts: usize) -> usize {
        parts * t / self.next.len()
    }

    fn begin(&self, job: Job) {
        let mut state = locked(&self.state);
        state.loops = state.loops.wrapping_add(1);
        state.job = Some(job);
        self.loops.store(state.loops, Ordering::Release);
        let sleeping = state.sleeping;
        drop(state);
        if sleeping > 0 {
            self.wake.notify_all();
        }
    }

    /// Runs parts until none is left, those of thread `me` first.
    fn take_parts(&self, me: usize, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        let threads = self.next.len();
        for t in (me..threads).chain(0..me) {
            let end = self.first(t + 1, parts);
            loop {
                let part = self.next[t].0.fetch_add(1, Ordering::Relaxed);
                if part >= end {
                    break;
                }
                work(part);
            }
        }
    }

    /// The loop of thread `me`.
    fn serve(&self, me: usize) {
        let mut seen = 0;
        loop {
            let mut looks = 0;
            while self.loops.load(Ordering::Acquire) == seen && looks < LOOKS {
                looks += 1;
                pause(looks);
            }
            let mut state = locked(&self.state);
            while state.loops == seen && !state.ended {
                state.sleeping += 1;
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.sleeping -= 1;
            }
            if state.ended {
                return;
            }
            seen = state.loops;
            let Some(Job { work, parts }) = state.job else { continue };
            // Under the lock: the caller withdraws the job under it, and then waits until no thread is active.
            self.active.fetch_add(1, Ordering::Relaxed);
            drop(state);
            // SAFETY: this thread is active, so that `Team::run` has not returned and the closure exists.
            let run = || self.take_parts(me, parts, unsafe { &*work });
            if catch_unwind(AssertUnwindSafe(run)).is_err() {
                self.panicked.store(true, Ordering::Relaxed);
            }
            self.active.fetch_sub(1, Ordering::Release);
        }
    }
}

fn pause(looks: usize) {
    if looks < SPINS { spin_loop() } else { yield_now() }
}

/// The content of a lock. No value is left half written by a panic: parts of a loop run without these locks.
fn locked<U>(lock: &Mutex<U>) -> MutexGuard<'_, U> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
