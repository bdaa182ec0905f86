//! Jobs during a run: passes starts, progress and ends of transfers to the jobs' weight policies, and applies the
//! weights that they return.

use crate::results::table::ResultRow;
use crate::runs::actions::Action;
use crate::spec::scenario::Scenario;
use crate::spec::workload::Planned;
use crate::spec::workload::jobs::{Placed, Policies, WeightSource, no_callable};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;
use subak_core::backend::Backend;
use subak_core::{FlowId, IdVec, InputError, LinkId, Ns, Utility};
use subak_jobs::{Keeper, Work};

/// All jobs of a run.
pub(crate) struct RunningJobs<'a> {
    scenario: &'a Scenario,
    jobs: Vec<One>,
    /// Index of each flow's job, and of the flow's transfer in the job.
    owner: BTreeMap<FlowId, (usize, usize)>,
    /// First and last link of each flow's path.
    ends: BTreeMap<FlowId, [LinkId; 2]>,
    /// Known start times, ns, of flows that have not started.
    starts: BinaryHeap<Reverse<(Ns, FlowId)>>,
    /// Weight of each flow as last passed to the backend; 1 by default.
    told: BTreeMap<FlowId, f64>,
    /// Changes of weights: time in ns, flow, and weight, which is 0 from the end of the flow on.
    log: Vec<(Ns, FlowId, f64)>,
}

struct One {
    placed: Placed,
    keeper: Keeper,
    /// Time of the next progress sample, ns.
    look_ns: Ns,
}

impl One {
    /// Passes the received bytes of running flows to the policy. `look`: a progress sample is due.
    fn hear_progress(&mut self, look: bool, backend: &dyn Backend) {
        for piece in self.keeper.running() {
            if let Some(flow) = self.placed.flows[piece] {
                self.keeper.progressed(piece, backend.flow(flow).received_bytes, backend.now_ns(), look);
            }
        }
    }
}

impl<'a> RunningJobs<'a> {
    pub fn new(
        scenario: &'a Scenario,
        placed: Vec<Placed>,
        flows: &IdVec<FlowId, Planned>,
        policies: &Policies,
    ) -> Result<Self, InputError> {
        let mut owner = BTreeMap::new();
        let mut jobs = Vec::with_capacity(placed.len());
        for (k, placed) in placed.into_iter().enumerate() {
            let own = placed.flows.iter().enumerate().filter_map(|(piece, flow)| Some(((*flow)?, (k, piece))));
            owner.extend(own);
            let policy = match &placed.who {
                WeightSource::Known(choice) => choice.make(),
                WeightSource::Callable(name) => match policies.get(name) {
                    Some(make) => make(&placed),
                    None => return Err(no_callable(name)),
                },
            };
            let keeper = Keeper::new(placed.job.clone(), policy, placed.budget);
            // The first sample is one interval after the job's start.
            let look_ns = placed.every_ns.map_or(Ns::MAX, |every_ns| placed.start_ns.saturating_add(every_ns));
            jobs.push(One { placed, keeper, look_ns });
        }
        let known = owner.keys().filter(|&&f| flows[f].after.is_empty());
        let starts = known.map(|&f| Reverse((flows[f].plan.start_ns, f))).collect();
        let ends_of = |&f: &FlowId| {
            let links = &flows[f].plan.routes.first()?.forward;
            Some((f, [*links.first()?, *links.last()?]))
        };
        let ends = owner.keys().filter_map(ends_of).collect();
        Ok(RunningJobs { scenario, jobs, owner, ends, starts, told: BTreeMap::new(), log: Vec::new() })
    }

    /// Whether a flow of a job runs, or has a known start time.
    pub fn is_open(&self) -> bool {
        !self.starts.is_empty() || self.jobs.iter().any(|one| one.keeper.is_running())
    }

    /// Time of the next start of a flow or progress sample, ns.
    pub fn next_ns(&self) -> Ns {
        let start_ns = self.starts.peek().map_or(Ns::MAX, |next| next.0.0);
        let looks = self.jobs.iter().filter(|one| one.keeper.is_running()).map(|one| one.look_ns);
        looks.fold(start_ns, Ns::min)
    }

    /// Schedules the start of a flow.
    pub fn will_start(&mut self, (at_ns, flow): (Ns, FlowId)) {
        if self.owner.contains_key(&flow) {
            self.starts.push(Reverse((at_ns, flow)));
        }
    }

    /// Handles finished flows, starts of flows, and due progress samples; returns the resulting changes of
    /// weights.
    pub fn go_on(
        &mut self,
        finished: &[FlowId],
        backend: &mut dyn Backend,
        flows: &IdVec<FlowId, Planned>,
    ) -> Result<Vec<Action>, InputError> {
        let now_ns = backend.now_ns();
        // A job that starts now has no progress to sample.
        let looks: Vec<bool> = (0..self.jobs.len()).map(|k| self.look_due(k, now_ns)).collect();
        let mut concerned = BTreeSet::new();
        for flow in finished {
            let Some(&(k, piece)) = self.owner.get(flow) else { continue };
            self.jobs[k].keeper.ended(piece);
            self.log.push((now_ns, *flow, 0.0));
            concerned.insert(k);
        }
        while let Some(&Reverse((_, flow))) = self.starts.peek().filter(|next| next.0.0 <= now_ns) {
            self.starts.pop();
            let (k, piece) = self.owner[&flow];
            self.jobs[k].keeper.started(piece, now_ns);
            concerned.insert(k);
        }
        let mut actions = Vec::new();
        for (k, look) in looks.into_iter().enumerate() {
            if look || concerned.contains(&k) {
                self.weigh(k, look, backend, flows, &mut actions)?;
            }
        }
        Ok(actions)
    }

    /// Whether a progress sample of job `k` is due.
    fn look_due(&mut self, k: usize, now_ns: Ns) -> bool {
        let One { placed, keeper, look_ns } = &mut self.jobs[k];
        let Some(every_ns) = placed.every_ns.filter(|_| *look_ns <= now_ns) else { return false };
        *look_ns += ((now_ns - *look_ns) / every_ns + 1) * every_ns;
        keeper.is_running()
    }

    fn weigh(
        &mut self,
        k: usize,
        look: bool,
        backend: &dyn Backend,
        flows: &IdVec<FlowId, Planned>,
        actions: &mut Vec<Action>,
    ) -> Result<(), InputError> {
        let now_ns = backend.now_ns();
        let one = &mut self.jobs[k];
        one.hear_progress(look, backend);
        let weights = one.keeper.weigh(now_ns, look);
        let weights = weights.map_err(|e| e.below(&format!("job \"{}\"", one.placed.id)))?;
        for (piece, weight) in weights {
            let Some(flow) = one.placed.flows[piece] else { continue };
            self.log.push((now_ns, flow, weight));
            if self.told.insert(flow, weight).unwrap_or(1.0) == weight {
                continue;
            }
            let Planned { plan, extra, .. } = &flows[flow];
            let utility =
                plan.utility.is_some().then(|| Utility::under(self.scenario.policy, weight, extra).map(Arc::new));
            actions.push(Action::Weight(flow, weight, utility.transpose()?));
        }
        Ok(())
    }

    /// Changes of weights since the previous call.
    pub fn take_log(&mut self) -> Vec<(Ns, FlowId, f64)> {
        std::mem::take(&mut self.log)
    }

    /// A row for each job. `finished_ns`: end of a flow; `idle_ns`: FCT of a flow alone on the idle network. The job's
    /// least time is the larger of its critical path and of the time that the busiest host's link takes for its flows.
    pub fn rows(
        &self,
        finished_ns: impl Fn(FlowId) -> Option<Ns>,
        idle_ns: impl Fn(FlowId) -> Ns,
    ) -> impl Iterator<Item = ResultRow<'_>> {
        self.jobs.iter().map(move |one| {
            let Placed { id, start_ns, budget, flows, .. } = &one.placed;
            let fct_ns = one.placed.end_ns(&finished_ns).map(|end_ns| end_ns - start_ns);
            let ideal_fct_ns = one.placed.critical_ns(&idle_ns).max(self.busiest_ns(&one.placed));
            ResultRow {
                kind: Some("job"),
                flow_id: Some(id),
                class: self.scenario.workload.class_of_jobs(),
                size_bytes: Some(one.placed.job.pieces().iter().map(|p| p.work.bytes()).sum()),
                start_ns: Some(*start_ns),
                weight: *budget,
                fct_ns,
                ideal_fct_ns: Some(ideal_fct_ns),
                slowdown: fct_ns.map(|fct| fct as f64 / ideal_fct_ns.max(1) as f64),
                measured: Some(*start_ns >= self.scenario.warmup_ns),
                flows: Some(flows.iter().flatten().count() as u64),
                ..ResultRow::default()
            }
        })
    }
}

impl RunningJobs<'_> {
    /// Time that the first and last links of the job's flows take at least to carry all of them, ns.
    fn busiest_ns(&self, placed: &Placed) -> Ns {
        let links = self.scenario.topology.network().links();
        let mut bits: BTreeMap<LinkId, f64> = BTreeMap::new();
        for (ends, piece) in placed.flows.iter().zip(placed.job.pieces()) {
            let Some(flow) = ends else { continue };
            let Some(&[first, last]) = self.ends.get(flow) else { continue };
            let wire = self.scenario.packet.wire_bytes(piece.work.bytes()) as f64 * 8.0;
            *bits.entry(first).or_default() += wire;
            *bits.entry(last).or_default() += wire;
        }
        bits.into_iter().map(|(link, bits)| (bits * 1e9 / links[link].capacity_bps) as Ns).max().unwrap_or(0)
    }
}

impl Placed {
    /// End of the job's last flow or computation, ns; `None` if a flow has not finished.
    fn end_ns(&self, finished_ns: impl Fn(FlowId) -> Option<Ns>) -> Option<Ns> {
        let pieces = self.job.pieces();
        let mut ends_ns = vec![self.start_ns; pieces.len()];
        for &i in self.job.order() {
            let ready_ns = pieces[i].after.iter().map(|&b| ends_ns[b]).fold(self.start_ns, Ns::max);
            ends_ns[i] = match (self.flows[i], pieces[i].work) {
                (Some(flow), _) => finished_ns(flow)?,
                (None, Work::Compute { ns }) => ready_ns.saturating_add(ns),
                (None, Work::Transfer { .. }) => ready_ns,
            };
        }
        ends_ns.into_iter().max()
    }

    /// Duration of the job's critical path, ns, with each flow alone at line rate.
    fn critical_ns(&self, idle_ns: impl Fn(FlowId) -> Ns) -> Ns {
        let pieces = self.job.pieces();
        let mut ends_ns = vec![0; pieces.len()];
        for &i in self.job.order() {
            let ready_ns: Ns = pieces[i].after.iter().map(|&b| ends_ns[b]).fold(0, Ns::max);
            let takes_ns = match (self.flows[i], pieces[i].work) {
                (Some(flow), _) => idle_ns(flow),
                (None, Work::Compute { ns }) => ns,
                (None, Work::Transfer { .. }) => 0,
            };
            ends_ns[i] = ready_ns.saturating_add(takes_ns);
        }
        ends_ns.into_iter().max().unwrap_or(0)
    }
}
