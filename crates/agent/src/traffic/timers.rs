//! Timer queue: which actions are due at a given time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use subak_testbed::Schedule;

/// A timed action. At the same time, ports are sampled first and flows start last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// Sample the ports once.
    LookOnce,
    /// Sample the ports periodically.
    Look,
    /// Records arrived bytes, periodically.
    Note,
    /// Change a flow's weight: flow, and index of the change.
    Weight(usize, usize),
    /// Stop a flow.
    Stop(usize),
    /// Start a flow.
    Start(usize),
}

/// Pending actions, earliest first.
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(u64, Due)>>,
    notes_ns: u64,
    looks_ns: u64,
}

impl Timers {
    pub fn new(schedule: &Schedule) -> Self {
        let mut heap = BinaryHeap::new();
        for (f, flow) in schedule.flows.iter().enumerate() {
            heap.push(Reverse((flow.start_ns, Due::Start(f))));
            let changes = flow.weights.iter().enumerate().map(|(k, change)| Reverse((change.at_ns, Due::Weight(f, k))));
            heap.extend(changes);
            heap.extend(flow.stop_ns.map(|at_ns| Reverse((at_ns, Due::Stop(f)))));
        }
        heap.push(Reverse((0, Due::LookOnce)));
        heap.push(Reverse((schedule.look_ns, Due::LookOnce)));
        let Schedule { flows_every_ns: notes_ns, links_every_ns: looks_ns, .. } = *schedule;
        let mut timers = Timers { heap, notes_ns, looks_ns };
        timers.again(0, Due::Look);
        timers.again(0, Due::Note);
        timers
    }

    /// Schedules a periodic action again after `now_ns`; missed periods are skipped.
    fn again(&mut self, now_ns: u64, due: Due) {
        let interval_ns = match due {
            Due::Look => self.looks_ns,
            Due::Note => self.notes_ns,
            Due::LookOnce | Due::Weight(..) | Due::Start(_) | Due::Stop(_) => 0,
        };
        if let Some(periods) = now_ns.checked_div(interval_ns) {
            self.heap.push(Reverse(((periods + 1) * interval_ns, due)));
        }
    }

    /// Time of the next action, ns.
    pub fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|next| next.0.0)
    }

    /// Removes and returns the first action due by `now_ns`, with its time.
    pub fn take(&mut self, now_ns: u64) -> Option<(u64, Due)> {
        let Reverse((at_ns, due)) = *self.heap.peek().filter(|next| next.0.0 <= now_ns)?;
        self.heap.pop();
        self.again(now_ns, due);
        Some((at_ns, due))
    }
}
