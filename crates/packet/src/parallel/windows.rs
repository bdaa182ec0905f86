//! Windows on several threads, one thread per logical process (LP).

use super::barrier::{Barrier, Member};
use super::{FEW, LogicalProcesses, LongFlow, SOME, end_of_window, left_bytes};
use crate::net::LpMessage;
use crate::sim::Sim;
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use subak_core::Ns;
use subak_core::scheme::Scheme;

/// State that a logical process publishes before a window, on cache lines of its own, so that only one core writes
/// them.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stand {
    /// Time of the earliest event that the logical process (LP) has scheduled or posted to another LP, ns.
    nothing_before_ns: AtomicU64,
    /// Number of the logical process's events in the latest window.
    events: AtomicU64,
    /// Bytes that the [`LongFlow`] has yet to receive, if its sink is in this logical process.
    left_bytes: AtomicU64,
    /// Time that the thread has spent in windows, ns.
    worked_ns: AtomicU64,
    /// Time that the thread has spent at the barrier, ns.
    waited_ns: AtomicU64,
}

/// Reason why threads stop running windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// The run ends, or the [`LongFlow`] may finish.
    Over,
    /// Windows have too few events.
    TooFewEvents,
    /// There are more runnable threads than free cores.
    Oversubscribed,
}

/// Number of windows between checks for oversubscription.
const PATIENCE: u64 = 64;
/// Time at the barrier, ns, after which the check is made earlier.
const LONG_NS: u64 = 20_000_000;
/// Ratio of time at the barrier to time in windows that counts as oversubscription.
const OVERSUBSCRIBED: u64 = 3;

/// Mailboxes from each logical process (LP) to each other LP.
type Mailboxes<S> = Vec<Vec<Mutex<Vec<LpMessage<S>>>>>;

/// State shared by the threads, double-buffered: some threads still read one buffer while others write the next.
struct SharedWindows<'a, S: Scheme> {
    barrier: Barrier,
    stands: [Vec<Stand>; 2],
    mailboxes: [Mailboxes<S>; 2],
    stops: &'a [Ns],
    long_flow: Option<LongFlow>,
    lookahead_ns: Ns,
    until_ns: Ns,
}

impl<S: Scheme> LogicalProcesses<S> {
    /// Runs windows on several threads from `from_ns` to `until_ns`, or until windows have too few events, threads are
    /// oversubscribed, or `long_flow` may finish. Returns the end of the latest window.
    pub(super) fn run_windows(&mut self, from_ns: Ns, until_ns: Ns, long_flow: Option<LongFlow>) -> Ns {
        let parts = self.sims.len();
        let stops: Vec<Ns> = self.stops.iter().copied().collect();
        let mailboxes = || (0..parts).map(|_| (0..parts).map(|_| Mutex::default()).collect()).collect();
        let stands = || (0..parts).map(|_| Stand::default()).collect();
        let shared = SharedWindows {
            barrier: Barrier::of(parts),
            stands: [stands(), stands()],
            mailboxes: [mailboxes(), mailboxes()],
            stops: &stops,
            long_flow,
            lookahead_ns: self.lookahead_ns,
            until_ns,
        };
        let (first, others) = self.sims.split_first_mut().expect("a network has parts");
        let ended = std::thread::scope(|scope| {
            let shared = &shared;
            let others: Vec<_> = (1..)
                .zip(others)
                .map(|(number, sim)| scope.spawn(move || windows(sim, number, from_ns, shared)))
                .collect();
            let ended = windows(first, 0, from_ns, shared);
            for other in others {
                other.join().unwrap_or_else(|panic| resume_unwind(panic));
            }
            ended
        });
        self.windows += ended.windows;
        self.longest_events += ended.longest_events;
        match ended.why {
            Ends::Over => {}
            Ends::TooFewEvents => (self.busy, self.contrary) = (false, 0),
            Ends::Oversubscribed => {
                (self.alone, self.alone_next) = (self.alone_next, self.alone_next.saturating_mul(2))
            }
        }
        ended.last_ns
    }
}

/// Outcome of a sequence of windows on several threads.
struct WindowsEnd {
    /// End of the latest window, ns.
    last_ns: Ns,
    why: Ends,
    windows: u64,
    /// Sum over these windows of the events of the window's busiest logical process.
    longest_events: u64,
}

/// Main loop of one logical process's thread. Wall-clock time decides whether windows run on several threads, never
/// the result of a window.
fn windows<S: Scheme>(sim: &mut Sim<S>, number: usize, from_ns: Ns, shared: &SharedWindows<S>) -> WindowsEnd {
    let _member = Member(&shared.barrier);
    let SharedWindows { barrier, stands, mailboxes, stops, long_flow, lookahead_ns, until_ns } = shared;
    let (mut floor_ns, mut few_events, mut side) = (from_ns, 0, 0);
    let (mut events, mut longest_events) = (FEW, 0);
    let (mut rounds, mut worked, mut waited, mut since) = (0, Duration::ZERO, Duration::ZERO, Instant::now());
    loop {
        let stand = &stands[side][number];
        let first_ns = sim.part().map_or(Ns::MAX, |part| std::mem::replace(&mut part.first_ns, Ns::MAX));
        stand.nothing_before_ns.store(sim.net().first_ns().min(first_ns), Ordering::Relaxed);
        stand.events.store(events, Ordering::Relaxed);
        let left_bytes = long_flow.filter(|w| w.part == number).map_or(u64::MAX, |w| left_bytes(sim, w.flow));
        stand.left_bytes.store(left_bytes, Ordering::Relaxed);
        stand.worked_ns.store(worked.as_nanos() as u64, Ordering::Relaxed);
        stand.waited_ns.store(waited.as_nanos() as u64, Ordering::Relaxed);
        let comes = Instant::now();
        worked += comes - since;
        if !barrier.wait() {
            // Another thread panicked, and reports the reason.
            return WindowsEnd { last_ns: floor_ns, why: Ends::Over, windows: 0, longest_events };
        }
        since = Instant::now();
        waited += since - comes;
        rounds += 1;
        for from in mailboxes[side].iter().map(|mailboxes| &mailboxes[number]) {
            let mut messages = from.lock().expect("nobody dies with a box in hand");
            messages.drain(..).for_each(|message| sim.take_in(message));
        }
        // From here on all threads read the same values, and therefore make the same decisions.
        let all = || stands[side].iter();
        let next_ns = all().map(|s| s.nothing_before_ns.load(Ordering::Relaxed)).min().unwrap_or(Ns::MAX);
        let next_ns = next_ns.max(floor_ns);
        let happened: u64 = all().map(|s| s.events.load(Ordering::Relaxed)).sum();
        if rounds > 1 {
            longest_events += all().map(|s| s.events.load(Ordering::Relaxed)).max().unwrap_or(0);
        }
        few_events = if happened < FEW { few_events + 1 } else { 0 };
        let may_end = long_flow.is_some_and(|w| {
            let left_bytes = all().map(|s| s.left_bytes.load(Ordering::Relaxed)).min().unwrap_or(0);
            left_bytes <= w.bound_bytes || stops.binary_search(&next_ns).is_ok()
        });
        let sum = |of: fn(&Stand) -> &AtomicU64| all().map(|s| of(s).load(Ordering::Relaxed)).sum::<u64>();
        let waited_ns = sum(|s| &s.waited_ns);
        let oversubscribed = || waited_ns > OVERSUBSCRIBED * sum(|s| &s.worked_ns);
        let ends = match () {
            () if next_ns > *until_ns || may_end => Some(Ends::Over),
            () if few_events == SOME => Some(Ends::TooFewEvents),
            () if (rounds % PATIENCE == 0 || waited_ns > LONG_NS) && oversubscribed() => Some(Ends::Oversubscribed),
            () => None,
        };
        if let Some(why) = ends {
            return WindowsEnd { last_ns: floor_ns - 1, why, windows: rounds - 1, longest_events };
        }
        let stop_ns = stops.get(stops.partition_point(|&at_ns| at_ns <= next_ns)).copied();
        let end_ns = end_of_window(next_ns, *until_ns, *lookahead_ns, stop_ns);
        let before = sim.net().events();
        sim.run(end_ns);
        events = sim.net().events() - before;
        (floor_ns, side) = (end_ns + 1, 1 - side);
        let Some(part) = sim.part() else { continue };
        for (to, out) in part.out.iter_mut().enumerate().filter(|(_, out)| !out.is_empty()) {
            let mut messages = mailboxes[side][number][to].lock().expect("nobody dies with a box in hand");
            std::mem::swap(&mut *messages, out);
        }
    }
}
