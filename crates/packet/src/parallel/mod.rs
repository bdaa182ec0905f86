//! Parallel simulation of one run on several cores, conservative (Chandy and Misra, CACM 1981). A [cut](crate::net::Cut)
//! partitions the network into logical processes (LPs), each with a simulation of its own. The least delay of a cut
//! link is the lookahead: all LPs run a window of that length in parallel, then exchange [messages](crate::net::LpMessage).
//! Events are ordered by their content, never by insertion, so the results equal those of one sequential simulation,
//! byte for byte, for any cut.
//!
//! Every LP stores all flows, routes and links, but changes only the state of those that belong to it. Each counter
//! changes in one LP (a source's in the LP of the source). Counters of the network are sums over LPs.

mod backend;
mod barrier;
mod windows;

use crate::event::ArrivalTurn;
use crate::net::{Cut, Handled, LogicalProcess, fastest_bps};
use crate::sim::Sim;
use std::collections::BTreeSet;
use std::sync::Arc;
use subak_core::backend::{Injected, PacketSizes};
use subak_core::scheme::Scheme;
use subak_core::{FlowId, InputError, Network, Ns};

/// Number of events in a window, over all logical processes, below which several threads are slower than one.
const FEW: u64 = 96;
/// Number of consecutive windows with too few (or enough) events after which the run changes to one thread (or to
/// several).
const SOME: u32 = 16;

/// Number of windows that run on one thread after oversubscription was detected; doubled each time.
const ALONE: u32 = 1024;
/// Largest number of windows between searches for a [`LongFlow`]: a search over all flows takes longer than a window.
const BLIND: u32 = 256;

/// Condition that ends a run before its end time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// No condition: the run continues until its end time.
    Time,
    /// A flow finishes.
    Finish,
    /// Every flow with a size has finished.
    Done,
}

/// A flow that cannot finish within one window. As long as one exists, a run until all flows have finished cannot end
/// within a window.
#[derive(Debug, Clone, Copy)]
struct LongFlow {
    flow: FlowId,
    /// The logical process of the flow's sink.
    part: usize,
    /// Upper bound of the flow's payload that can arrive within one window, bytes.
    bound_bytes: u64,
}

/// The simulations of the logical processes of one network.
pub(crate) struct LogicalProcesses<S: Scheme> {
    sims: Vec<Sim<S>>,
    lookahead_ns: Ns,
    /// Stop times of flows. A window begins at each, so that the logical process of the source knows whether the flow
    /// has finished.
    stops: BTreeSet<Ns>,
    /// Flows that were torn down, but whose state has not been removed.
    leaving: Vec<FlowId>,
    /// Whether windows have enough events for several threads.
    busy: bool,
    /// Number of consecutive windows whose events contradict `busy`.
    contrary: u32,
    /// Number of remaining windows on one thread after oversubscription.
    alone: u32,
    /// Initial value of `alone` after the next oversubscription.
    alone_next: u32,
    /// Number of remaining windows without a search for a [`LongFlow`].
    blind: u32,
    /// Initial value of `blind` after the next unsuccessful search.
    blind_next: u32,
    fastest_bps: f64,
    /// Number of windows so far.
    windows: u64,
    /// Sum over windows of the events of the window's busiest logical process.
    longest_events: u64,
}

impl<S: Scheme> LogicalProcesses<S> {
    /// Same as [`Sim::checked`], with one logical process (LP) per thread; `None` if the network or the scheme does
    /// not allow several LPs.
    pub fn checked(
        scheme: &S,
        network: &Network,
        sizes: PacketSizes,
        faults: &[Injected],
        seed: u64,
        threads: usize,
    ) -> Result<Option<Self>, InputError> {
        let Some(cut) = Cut::new(network, threads) else { return Ok(None) };
        // A controller or a node's state machine may act on flows without delay, so that there is no lookahead. With
        // more impairment rules than an event can distinguish, delayed packets would have no unique order.
        let is_packets = |fault: &&Injected| matches!(fault, Injected::Packets { .. });
        if scheme.controller(network).is_some() || faults.iter().filter(is_packets).count() > ArrivalTurn::MOST_RULES {
            return Ok(None);
        }
        let cut = Arc::new(cut);
        let mut sims = Vec::new();
        for number in 0..cut.parts {
            let part = LogicalProcess::new(number, cut.clone());
            let sim = Sim::in_part(scheme.clone(), network, sizes, faults, seed, Some(Box::new(part)))?;
            if sim.has_nodes() {
                return Ok(None);
            }
            sims.push(sim);
        }
        Ok(Some(LogicalProcesses {
            sims,
            lookahead_ns: cut.lookahead_ns,
            stops: BTreeSet::new(),
            leaving: Vec::new(),
            busy: true,
            contrary: 0,
            alone: 0,
            alone_next: ALONE,
            blind: 0,
            blind_next: 1,
            fastest_bps: fastest_bps(network, faults),
            windows: 0,
            longest_events: 0,
        }))
    }

    fn now_ns(&self) -> Ns {
        self.sims[0].net().now_ns()
    }

    fn run(&mut self, until_ns: Ns, until: Until) {
        // Actions that were requested at the present time are events of this time, so that a window begins now.
        let mut floor_ns = self.now_ns();
        self.stops = self.stops.split_off(&floor_ns);
        let mut long_flow = None;
        while !self.is_reached(until) {
            let from_ns = self.first_ns().max(floor_ns);
            if from_ns > until_ns {
                return self.come_to(self.now_ns().max(until_ns));
            }
            let is_sure = match until {
                Until::Time => true,
                Until::Finish => false,
                Until::Done => !self.stops.contains(&from_ns) && self.finds_long_flow(&mut long_flow),
            };
            floor_ns = if !is_sure {
                match self.step_by_step(from_ns, until_ns, until) {
                    Some(end_ns) => end_ns + 1,
                    None => return,
                }
            } else if self.busy && self.alone == 0 && until_ns - from_ns > self.lookahead_ns.saturating_mul(SOME.into())
            {
                self.run_windows(from_ns, until_ns, long_flow) + 1
            } else {
                self.in_turn(from_ns, until_ns) + 1
            };
        }
    }

    fn is_reached(&self, until: Until) -> bool {
        match until {
            Until::Time => false,
            Until::Finish => self.sims.iter().any(|sim| sim.ends().has_finished()),
            Until::Done => self.unfinished() == 0,
        }
    }

    fn unfinished(&self) -> i64 {
        self.sims.iter().map(|sim| sim.ends().unfinished()).sum()
    }

    fn come_to(&mut self, now_ns: Ns) {
        self.sims.iter_mut().for_each(|sim| sim.come_to(now_ns));
    }

    /// Sets the time of all logical processes to `at_ns`, and their positions in the order of events to the most
    /// advanced one.
    fn stop_at(&mut self, at_ns: Ns) {
        let handled = self.sims.iter().map(|sim| sim.net().handled()).reduce(Handled::later);
        let handled = handled.expect("a network has parts");
        self.sims.iter_mut().for_each(|sim| sim.stop_at(at_ns, handled));
    }

    /// Time of the next event, ns.
    fn first_ns(&self) -> Ns {
        self.sims.iter().map(|sim| sim.net().first_ns()).min().unwrap_or(Ns::MAX)
    }

    /// End of a window that begins at `from_ns`, ns.
    fn end_of_window(&self, from_ns: Ns, until_ns: Ns) -> Ns {
        end_of_window(from_ns, until_ns, self.lookahead_ns, self.stops.range(from_ns + 1..).next().copied())
    }

    /// Runs one window on one thread, one logical process after the other; returns the window's end.
    fn in_turn(&mut self, from_ns: Ns, until_ns: Ns) -> Ns {
        let end_ns = self.end_of_window(from_ns, until_ns);
        let (mut events, mut most) = (0, 0);
        for sim in &mut self.sims {
            let before = sim.net().events();
            sim.run(end_ns);
            let own = sim.net().events() - before;
            (events, most) = (events + own, most.max(own));
        }
        self.exchange();
        self.note(events);
        self.windows += 1;
        self.longest_events += most;
        self.alone = self.alone.saturating_sub(1);
        end_ns
    }

    /// Records the number of events of a window, which decides between one thread and several.
    fn note(&mut self, events: u64) {
        self.contrary = if (events >= FEW) == self.busy { 0 } else { self.contrary + 1 };
        if self.contrary == SOME {
            (self.busy, self.contrary) = (!self.busy, 0);
        }
    }

    /// Runs one window on one thread, with the events of all logical processes in their global order. Returns the
    /// window's end, or `None` if the run ended within it.
    fn step_by_step(&mut self, from_ns: Ns, until_ns: Ns, until: Until) -> Option<Ns> {
        let end_ns = self.end_of_window(from_ns, until_ns);
        self.windows += 1;
        loop {
            let next = self.sims.iter().enumerate().filter_map(|(part, sim)| Some((sim.net().peek()?, part))).min();
            let Some(((at_ns, ..), part)) = next.filter(|((at_ns, ..), _)| *at_ns <= end_ns) else {
                self.come_to(end_ns);
                self.exchange();
                return Some(end_ns);
            };
            self.sims[part].step(end_ns);
            self.longest_events += 1;
            if self.is_reached(until) {
                self.stop_at(at_ns);
                self.exchange();
                return None;
            }
        }
    }

    /// Delivers the messages between logical processes.
    fn exchange(&mut self) {
        for from in 0..self.sims.len() {
            for to in 0..self.sims.len() {
                let Some(part) = self.sims[from].part() else { continue };
                part.first_ns = Ns::MAX;
                let mut messages = std::mem::take(&mut part.out[to]);
                messages.drain(..).for_each(|messages| self.sims[to].take_in(messages));
                if let Some(part) = self.sims[from].part() {
                    part.out[to] = messages;
                }
            }
        }
    }

    /// Payload of the flow that has not arrived, bytes; 0 if the flow has no size or has ended. `part`: logical
    /// process of the flow's sink.
    fn left_bytes(&self, flow: FlowId, part: usize) -> u64 {
        left_bytes(&self.sims[part], flow)
    }

    /// Searches a flow that cannot finish within a window, unless `long_flow` still is one. Returns whether there is
    /// such a flow.
    fn finds_long_flow(&mut self, long_flow: &mut Option<LongFlow>) -> bool {
        if long_flow.is_some_and(|w| self.left_bytes(w.flow, w.part) > w.bound_bytes) {
            return true;
        }
        if self.blind > 0 {
            self.blind -= 1;
            return false;
        }
        let candidates = self.sims[0].ends().numbers().filter_map(|flow| {
            let part = self.sims.iter().position(|sim| sim.has_sink(flow))?;
            let bound_bytes = self.bound_bytes(flow);
            let more_bytes = self.left_bytes(flow, part).checked_sub(bound_bytes.saturating_add(1))?;
            Some((more_bytes, LongFlow { flow, part, bound_bytes }))
        });
        *long_flow = candidates.max_by_key(|&(more_bytes, LongFlow { flow, .. })| (more_bytes, flow)).map(|(_, w)| w);
        match long_flow {
            Some(_) => self.blind_next = 1,
            None => (self.blind, self.blind_next) = (self.blind_next, (2 * self.blind_next).min(BLIND)),
        }
        long_flow.is_some()
    }

    /// Upper bound of a flow's payload that can arrive within one window, bytes: on each path the rate of the fastest
    /// link, and the same again for each fault rule that may delay packets.
    fn bound_bytes(&self, flow: FlowId) -> u64 {
        let sim = &self.sims[0];
        let times = sim.ends().paths(flow) * (1 + sim.net().rules());
        let by_rate = (self.fastest_bps * self.lookahead_ns as f64 / 8e9) as u64;
        // Between islands the lookahead is unlimited, and the product too.
        (times as u64).saturating_mul(by_rate.saturating_add(2 * u64::from(sim.ends().mtu_bytes())))
    }
}

/// Payload of the flow that has not arrived, bytes; 0 if the flow has no size or has ended. `sim`: simulation of the
/// logical process of the flow's sink.
fn left_bytes<S: Scheme>(sim: &Sim<S>, flow: FlowId) -> u64 {
    let Some(f) = sim.ends().get(flow).filter(|f| f.open) else { return 0 };
    f.size_bytes.map_or(0, |size_bytes| size_bytes.saturating_sub(f.view.received_bytes))
}

/// End of a window that begins at `from_ns`, ns; `stop_ns` is the next stop time of a flow.
fn end_of_window(from_ns: Ns, until_ns: Ns, lookahead_ns: Ns, stop_ns: Option<Ns>) -> Ns {
    (from_ns + lookahead_ns - 1).min(until_ns).min(stop_ns.map_or(Ns::MAX, |stop_ns| stop_ns - 1))
}
