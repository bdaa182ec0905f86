//! Simulation of one trial: one scheme in one scenario with one seed.

mod rows;

use crate::error::Error;
use crate::results::spent::Took;
use crate::results::table::ResultRow;
use crate::runs::actions::Actions;
use crate::runs::convergence::Watch;
use crate::runs::jobs::RunningJobs;
use crate::runs::live::Live;
use crate::runs::passing::KnownFlows;
use crate::runs::recorder::Recorder;
use crate::runs::task::Trial;
use crate::runs::testbed;
use crate::runs::watched::Watching;
use crate::runs::window::WindowCounts;
use crate::spec::backends::{self, SimulationInput};
use crate::spec::choice::SchemeChoice;
use crate::spec::measure::Convergence;
use crate::spec::scenario::Scenario;
use crate::spec::workload::{Plan, Planned};
use std::cmp::Reverse;
use std::sync::atomic::Ordering;
use subak_core::backend::Backend;
use subak_core::{FlowId, IdVec, InputError, LinkId, Ns};

/// Number of progress reports, and of checks for cancellation, per run.
const SLICES: u64 = 200;

/// Number of notes in memory above which the next slice of a run is shorter.
const MANY_NOTES: usize = 1 << 16;

/// Simulated time of the first slice of a run whose scheme may take notes, ns.
const FIRST_SLICE_NS: Ns = 10_000;

/// Largest simulated time of such a slice, ns. Runs that would have more than 200,000 of them have longer ones.
const MOST_SLICE_NS: Ns = 100_000;

/// Callback that stores a row of results.
pub(crate) type RowSink<'a> = dyn FnMut(&ResultRow) -> Result<(), Error> + 'a;

/// Runs the trial; returns its cost, or `None` if it was cancelled.
pub(crate) fn simulate(trial: &Trial, rows: &mut RowSink) -> Result<Option<Took>, Error> {
    let Trial { scenario, scheme, seed, .. } = *trial;
    let Scenario { topology, packet, faults, duration_ns, .. } = scenario;
    let Plan { mut flows, stranded, .. } = scenario.workload.plan(topology, seed, *packet, faults, *duration_ns)?;
    crate::spec::policy::apply(scenario.policy, &mut flows)?;
    let placed = scenario.workload.placed(topology, seed, *packet)?;
    let network = scenario.topology.network();
    let members = scheme.members(&scenario.workload);
    let is_mix = !members.iter().all(|other| other.is_like(members[0]));
    let (kind, info) = members[0].backend()?;
    let both_ways = scenario.workload.runs_both_ways(&flows);
    let params = scenario.circumstances(both_ways).complete(&info, &members[0].params);
    let data_share = kind.rules(&members[0].name, &params)?.share();
    // Recorded packets must be in time order, and a flow's end may start other flows at once: both require a
    // single thread.
    let reacts = scenario.workload.has_jobs() || flows.iter().any(|flow| !flow.after.is_empty());
    let alone = scheme.outsides().any(|outside| !outside.definition().is_parallel());
    let threads = if trial.packets.is_some() || reacts || alone { 1 } else { trial.threads };
    let scene = SimulationInput { network, sizes: scenario.packet, faults: &scenario.faults, seed, threads };
    let mut backend = match kind.is_real() {
        true => match testbed::carried(trial, &flows, &params)? {
            Some(backend) => backend,
            None => return Ok(None),
        },
        false if is_mix => backends::build_beside(&scenario.of_members(&members)?, scene)?,
        false => kind.build(&members[0].name, &params, scene)?,
    };
    if scenario.measure.at_sender {
        backend.complete_at_sender();
    }
    let passing = KnownFlows::new(scenario, &flows);
    // The recorder is set first, since a controller sends messages as soon as it is placed.
    if let (Some(recorded), Some(table)) = (&scenario.measure.packets, trial.packets) {
        backend.watch(Box::new(Recorder::new(scenario, recorded, &flows, table)?));
    }
    if let Some(ways) = &scenario.controller {
        backend.place_controller(ways);
    }
    let mut named = |row: &ResultRow| {
        let named = ResultRow {
            trial: Some(trial.number as u64),
            scheme: row.scheme.or(Some(&scheme.label)),
            seed: Some(seed),
            load: scenario.load(),
            ..row.clone()
        };
        rows(&named)
    };
    let mut run = Run {
        trial,
        members,
        data_share,
        flows: &flows,
        actions: Actions::new(scenario, &flows),
        jobs: RunningJobs::new(scenario, placed, &flows, trial.policies)?,
        backend: backend.as_mut(),
        live: Live::new(scenario.measure.rates_ns.map(|_| &flows)),
        open: Live::new(scenario.measure.paces_ns.map(|_| &flows)),
        seen_at_links: IdVec::filled(0, scenario.topology.described_links().len()),
        seen_bytes: scenario.measure.rates_ns.map_or(IdVec::new(), |_| IdVec::filled(0, flows.len())),
        passing,
        counted: WindowCounts::default(),
        noting_ns: if scheme.outsides().next().is_some() { FIRST_SLICE_NS } else { Ns::MAX },
        watching: trial.watched.map(|watched| {
            let name = format!("trial {}: {}, seed {seed}", trial.number, scheme.label);
            Watching::new(watched, trial.number, name, scenario, &flows)
        }),
    };
    if !run.arrivals(&mut named)? || !run.drain(&mut named)? {
        return Ok(None);
    }
    if run.backend.failures() > 0 {
        let what = format!("scheme \"{}\" could not find exact rates {} times", scheme.name, run.backend.failures());
        return Err(InputError::new("policy", what, "report this as a defect, with the spec").into());
    }
    run.write_notes(&mut named)?;
    run.conclude(&mut named)?;
    run.conclude_stranded(&stranded, &mut named)?;
    drop(run);
    Ok(Some(Took { events: backend.events(), packet_hops: backend.packet_hops() }))
}

struct Run<'a> {
    trial: &'a Trial<'a>,
    /// The schemes of the flows, by the index in a flow's plan.
    members: Vec<&'a SchemeChoice>,
    /// Fraction of each link that the scheme lets data use.
    data_share: f64,
    flows: &'a IdVec<FlowId, Planned>,
    actions: Actions<'a>,
    jobs: RunningJobs<'a>,
    backend: &'a mut dyn Backend,
    /// Flows whose rates are sampled.
    live: Live,
    /// Flows whose pacing rates are sampled.
    open: Live,
    seen_bytes: IdVec<FlowId, u64>,
    /// Data bytes sent by each link up to the last sample of the queues.
    seen_at_links: IdVec<LinkId, u64>,
    passing: KnownFlows,
    /// Counters between the end of the warm-up and the end of the duration.
    counted: WindowCounts,
    /// Simulated time between two looks for notes, ns. It depends on their number, and no other row depends on it.
    noting_ns: Ns,
    watching: Option<Watching<'a>>,
}

impl Run<'_> {
    /// Runs and samples the simulation up to the end of the duration; `false` if cancelled.
    fn arrivals(&mut self, rows: &mut RowSink) -> Result<bool, Error> {
        let scenario = self.trial.scenario;
        let (measure, end_ns) = (&scenario.measure, scenario.duration_ns);
        let watch = |(number, &goal): (usize, &Convergence)| {
            let share = if goal.own_goal { self.data_share } else { 1.0 };
            (number, Watch::new(goal, scenario, self.flows, share))
        };
        let mut watches: Vec<_> = measure.convergence.iter().enumerate().map(watch).collect();
        let never = Ns::MAX;
        let slice_ns = (end_ns / SLICES).max(1);
        // Counters are read 1 ns before the end of the warm-up, so that events at its end count.
        let mut before = self.counts();
        let warm_ns = scenario.warmup_ns.checked_sub(1).unwrap_or(never);
        let every = [measure.rates_ns, measure.queues_ns, measure.paces_ns].map(|interval| interval.unwrap_or(never));
        let mut next = [every[0], every[1], warm_ns, slice_ns, every[2]];
        loop {
            let looks = watches.iter().map(|(_, w)| w.next_ns()).min().unwrap_or(never);
            let now_ns = next.iter().fold(looks, |a, &b| a.min(b)).min(self.actions.next_ns()).min(end_ns);
            self.tell_until(now_ns);
            self.run_noting(now_ns, rows)?;
            for set in self.jobs.take_log() {
                rows(&self.weight_row(set))?;
            }
            for action in self.actions.due(now_ns, self.flows)? {
                action.done_by(self.backend);
                watches.iter_mut().for_each(|(_, watch)| watch.hear(&action));
            }
            for (number, watch) in &mut watches {
                if let Some(row) = watch.look(self.backend) {
                    rows(&ResultRow { criterion: Some(*number as u64), ..row })?;
                }
            }
            if next[0] <= now_ns {
                self.sample_rates(now_ns, every[0], rows)?;
                next[0] += every[0];
            }
            if next[1] <= now_ns {
                self.sample_queues(now_ns, rows)?;
                next[1] += every[1];
            }
            if next[2] <= now_ns {
                before = self.counts();
                self.backend.restart_peaks();
                next[2] = never;
            }
            if next[3] <= now_ns {
                next[3] += slice_ns;
                self.forget(rows)?;
                self.show();
                if self.cancelled() {
                    return Ok(false);
                }
                // The last tenth of the progress is for the drain.
                (self.trial.progress)(0.9 * now_ns as f64 / end_ns as f64);
            }
            if next[4] <= now_ns {
                self.sample_paces(now_ns, rows)?;
                next[4] += every[2];
            }
            if now_ns >= end_ns {
                self.tell_until(Ns::MAX);
                // Flows that have not started by the end of the duration never start.
                let never = self.flows.ids().filter(|&f| self.actions.start_ns(f) == Ns::MAX);
                never.for_each(|f| self.backend.stop_flow(f));
                watches.iter().try_for_each(|(_, watch)| watch.check())?;
                self.counted = self.counts().since(&before);
                return Ok(true);
            }
        }
    }

    /// Runs the drain, in which unfinished flows may finish; `false` if cancelled.
    fn drain(&mut self, rows: &mut RowSink) -> Result<bool, Error> {
        let scenario = self.trial.scenario;
        let end_ns = scenario.duration_ns + scenario.drain_ns;
        let mut slice_ns = (scenario.duration_ns / SLICES).max(1);
        while self.backend.open_flows() > 0 && self.backend.now_ns() < end_ns {
            let until_ns = (self.backend.now_ns() + slice_ns).min(end_ns);
            let events = self.backend.events_at_most();
            self.backend.run_until_done(until_ns);
            self.check_fault()?;
            let notes = self.write_notes(rows)?;
            self.forget(rows)?;
            self.show();
            if self.backend.now_ns() < until_ns {
                break;
            }
            if self.cancelled() {
                return Ok(false);
            }
            // A long drain with few events uses larger time slices.
            slice_ns = match self.backend.events_at_most() - events {
                _ if notes > MANY_NOTES => (slice_ns / 2).max(1),
                0..10_000 => slice_ns.saturating_mul(2),
                1_000_000.. => (slice_ns / 2).max(1),
                _ => slice_ns,
            };
        }
        Ok(true)
    }

    /// Adds the flows that start by `until_ns` to the backend. If the backend keeps all flows, all are added at
    /// once.
    fn tell_until(&mut self, until_ns: Ns) {
        let KnownFlows { allowed, told, .. } = &mut self.passing;
        while let Some(flow) =
            self.flows.get(FlowId::from_index(*told)).filter(|f| !*allowed || f.plan.start_ns <= until_ns)
        {
            self.backend.add(flow.first_plan());
            *told += 1;
        }
    }

    /// Writes the rows of ended flows and removes them from the backend.
    fn forget(&mut self, rows: &mut RowSink) -> Result<(), Error> {
        if !self.passing.allowed {
            return Ok(());
        }
        self.backend.take_finished();
        for (flow, view) in self.backend.forget() {
            self.passing.note(flow, &view);
        }
        while let Some((flow, view)) = self.passing.next_row() {
            if self.trial.scenario.measure.fct {
                self.write_flow(flow, &view, rows)?;
            }
        }
        Ok(())
    }

    /// Runs the simulation up to `until_ns`, in slices whose notes fit in memory, and writes these.
    fn run_noting(&mut self, until_ns: Ns, rows: &mut RowSink) -> Result<(), Error> {
        loop {
            let to_ns = until_ns.min(self.backend.now_ns().saturating_add(self.noting_ns));
            self.run_until(to_ns)?;
            let notes = self.write_notes(rows)?;
            if notes > MANY_NOTES {
                self.noting_ns = (self.noting_ns / 2).max(1);
            } else if self.noting_ns < Ns::MAX && notes < MANY_NOTES / 4 {
                // Slices stay short without notes too: they may begin at any time.
                let most_ns = (self.trial.scenario.duration_ns / SLICES / 1000).max(MOST_SLICE_NS);
                self.noting_ns = self.noting_ns.saturating_mul(2).min(most_ns);
            }
            if to_ns == until_ns {
                return Ok(());
            }
        }
    }

    /// Runs the simulation up to `until_ns`, and in between starts dependent flows and applies weights of jobs.
    fn run_until(&mut self, until_ns: Ns) -> Result<(), InputError> {
        while (self.actions.reacts() || self.jobs.is_open()) && self.backend.now_ns() < until_ns {
            self.backend.run_until_finish(until_ns.min(self.jobs.next_ns()));
            self.check_fault()?;
            let finished = self.backend.take_finished();
            for started in self.actions.react(&finished, self.backend, self.flows) {
                self.live.pending.push(Reverse(started));
                self.open.pending.push(Reverse(started));
                self.watching.iter_mut().for_each(|watching| watching.live.pending.push(Reverse(started)));
                self.jobs.will_start(started);
            }
            for action in self.jobs.go_on(&finished, self.backend, self.flows)? {
                action.done_by(self.backend);
            }
        }
        self.backend.run_until(until_ns);
        self.check_fault()
    }

    /// An error if a scheme supplied by the user has failed.
    fn check_fault(&self) -> Result<(), InputError> {
        self.backend.fault().map_or(Ok(()), Err)
    }

    /// Updates the live page, if there is one.
    fn show(&mut self) {
        let Run { watching, backend, passing, .. } = self;
        watching.iter_mut().for_each(|watching| watching.look(&**backend, passing));
    }

    fn cancelled(&self) -> bool {
        self.trial.cancel.load(Ordering::Relaxed)
    }

    fn described(&self) -> impl ExactSizeIterator<Item = LinkId> + use<> {
        self.trial.scenario.topology.described_links().ids()
    }

    fn counts(&self) -> WindowCounts {
        WindowCounts::now(self.backend, self.described().len(), &self.totals())
    }
}
