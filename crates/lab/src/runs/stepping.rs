//! A simulation that its caller advances: flows, weights, paths and links change between two steps.

use crate::quiet;
use crate::results::warning::Warning;
use crate::results::warnings;
use crate::spec::ValidSpec;
use crate::spec::backends::SimulationInput;
use crate::spec::outside::Outside;
use crate::spec::scenario::Scenario;
use crate::spec::topology::{Topology, unknown_link};
use crate::spec::workload::{FlowBuilder, Planned, steps};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use subak_core::backend::{Backend, Capacities, FlowView, LinkChange, LinkView, PaceView};
use subak_core::quantity::quoted;
use subak_core::rng::Stream;
use subak_core::route::Router;
use subak_core::scheme::{Info, Note};
use subak_core::{FlowId, IdVec, InputError, LinkId, Ns, Policy};

/// Wall-clock time between two checks for cancellation. It does not affect results.
const CHECK: Duration = Duration::from_millis(20);

/// Simulated time of the first slice of a step, ns.
const FIRST_SLICE_NS: Ns = 10_000;

/// The condition that ends a step before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepEnd {
    /// No condition.
    Time,
    /// A flow has finished.
    Finish,
    /// Every flow with a size has finished.
    Done,
}

/// A simulation of one scheme that its caller advances. The same calls give the same results, bit for bit.
pub struct Stepping {
    scenario: Scenario,
    seed: u64,
    info: Info,
    outside: Option<Outside>,
    most_ns: Ns,
    backend: Box<dyn Backend>,
    /// Router and path choices of flows that are added; `None` only during [`Stepping::add`].
    routing: Option<(Router, Stream)>,
    flows: IdVec<FlowId, Planned>,
    /// Ids of the flows that have one.
    ids: HashSet<String>,
    capacities: Capacities,
    notes: Vec<Note>,
    /// The error that ended the simulation.
    broken: Option<InputError>,
}

impl Stepping {
    /// The only trial of a spec, at time 0, with the flows of its workload.
    pub fn new(spec: &ValidSpec) -> Result<Self, InputError> {
        if spec.len() != 1 {
            let what = format!("the spec has {} trials", spec.len());
            return Err(InputError::new("", what, "give one scheme, one seed and no sweep"));
        }
        let seed = spec.trial(0).seed;
        let (scenario, scheme) = spec.scenario(0);
        let scenario = scenario.under(scheme).into_owned();
        let scenario = scenario.drawn(seed).into_owned();
        let members = scheme.members(&scenario.workload);
        if let Some(other) = members.iter().find(|other| !other.is_like(members[0])) {
            let what = format!("schemes {} and {} share the network", quoted(&members[0].label), quoted(&other.label));
            return Err(InputError::new("workload", what, "run the spec, or step a simulation of one scheme"));
        }
        let scheme = members[0];
        let (kind, info) = scheme.backend()?;
        if kind.is_real() {
            let hint = "leave backend away, or take \"packet\" or \"fluid\"";
            return Err(InputError::new("backend", "real hosts cannot be stepped", hint));
        }
        let Scenario { topology, workload, packet, faults, duration_ns, .. } = &scenario;
        let topology = Arc::clone(topology);
        let planned = workload.flows(&topology, seed, *packet, faults, *duration_ns)?;
        refuse_reactions(&scenario, &planned)?;
        // ACKs of flows that are added later may share links with data.
        let params = scenario.circumstances(true).complete(&info, &scheme.params);
        let network = topology.network();
        let input = SimulationInput { network, sizes: *packet, faults, seed, threads: 1 };
        let mut backend = kind.build(&scheme.name, &params, input)?;
        backend.allow_link_changes();
        if scenario.measure.at_sender {
            backend.complete_at_sender();
        }
        if let Some(ways) = &scenario.controller {
            backend.place_controller(ways);
        }
        let mut made = Stepping {
            seed,
            info,
            outside: scheme.outside.clone(),
            most_ns: kind.most_ns(),
            backend,
            routing: Some((topology.router(), Stream::new(seed, "paths of added flows"))),
            flows: IdVec::new(),
            ids: HashSet::new(),
            capacities: Capacities::of(network),
            notes: Vec::new(),
            broken: None,
            scenario,
        };
        made.take(planned)?;
        Ok(made)
    }

    /// Warnings about the spec, as a run has them. `is_open`: flows and faults are still to come, so that warnings about
    /// what is missing or without effect do not count.
    pub fn warnings(spec: &ValidSpec, is_open: bool) -> Vec<Warning> {
        const LATER: &[&str] = &["workload", "left-out", "no-effect"];
        let is_later = |warning: &Warning| LATER.contains(&warning.kind) && !warning.text.contains("params.");
        warnings::of_spec(spec).into_iter().filter(|warning| !(is_open && is_later(warning))).collect()
    }

    /// Adds the flows in `list`, in the form of the key `flows` of the workload `steps`. They start now unless they
    /// have a `start`. Returns the number of the first one: numbers are consecutive.
    pub fn add(&mut self, mut list: Value) -> Result<FlowId, InputError> {
        let (now_ns, first) = (self.backend.now_ns(), self.flows.next_id());
        self.check_ids(&list)?;
        for flow in list.as_array_mut().into_iter().flatten() {
            if let Value::Object(flow) = flow {
                flow.entry("start").or_insert_with(|| json!(format!("{now_ns}ns")));
            }
        }
        let topology = Arc::clone(&self.scenario.topology);
        let routing = self.routing.take().unwrap_or_else(|| (topology.router(), Stream::new(self.seed, "paths")));
        let mut builder = FlowBuilder::resumed(&topology, self.seed, self.scenario.packet, routing);
        let planned = steps::listed(&list, &mut builder, self.scenario.policy);
        let (narrow, (subflows, paths)) = (builder.narrow.flows, builder.narrow.widest);
        self.routing = Some((builder.router, builder.paths));
        let mut planned = planned?;
        if narrow > 0 {
            let what = format!("{narrow} of the flows have fewer paths than subflows: {paths} for {subflows}");
            return Err(InputError::new("subflows", what, "give fewer subflows"));
        }
        for (i, flow) in planned.iter_mut().enumerate() {
            self.check(flow).map_err(|e| e.below(&format!("flows[{i}]")))?;
            // An endless flow ends with the simulation.
            flow.plan.stop_ns = flow.plan.stop_ns.filter(|&stop_ns| stop_ns != Ns::MAX);
        }
        self.take(planned)?;
        Ok(first)
    }

    /// An error for an id in `list` that another flow has.
    fn check_ids(&self, list: &Value) -> Result<(), InputError> {
        let mut new = HashSet::new();
        for (i, flow) in list.as_array().into_iter().flatten().enumerate() {
            let Some(id) = flow.get("id").and_then(Value::as_str) else { continue };
            if self.ids.contains(id) || !new.insert(id) {
                let what = format!("the id {} is taken already", quoted(id));
                return Err(InputError::new(format!("flows[{i}].id"), what, "give every flow an id of its own"));
            }
        }
        Ok(())
    }

    fn check(&self, flow: &Planned) -> Result<(), InputError> {
        let (now_ns, plan, policy) = (self.backend.now_ns(), &flow.plan, self.scenario.policy);
        if plan.start_ns < now_ns {
            let what = format!("the flow starts at {} ns, and it is {now_ns} ns", plan.start_ns);
            return Err(InputError::new("start", what, "leave start away, or give a later time"));
        }
        if plan.weight != 1.0 {
            self.check_weights().map_err(|e| e.below("weight"))?;
        }
        let unused = |key: &str, kind: &str| {
            let what = format!("the policy {} does not use it", quoted(policy.name()));
            Err(InputError::new(key, what, format!("leave it away, or take policy = {{kind = \"{kind}\"}}")))
        };
        let policy = flow.extra.policy(policy);
        if flow.extra.utility.is_some() && self.scenario.policy != Policy::Utility {
            return unused("utility", "utility");
        }
        match flow.extra.deadline_s {
            Some(_) if !matches!(policy, Policy::Edf { .. }) => return unused("deadline", "edf"),
            _ => {}
        }
        match flow.extra.bandwidth_function {
            Some(_) if !policy.is_by_functions() => unused("bandwidth_function", "bandwidth-function"),
            _ => Ok(()),
        }
    }

    fn check_weights(&self) -> Result<(), InputError> {
        if self.info.weights {
            return Ok(());
        }
        let what = format!("scheme {} has no weights", quoted(self.info.name));
        Err(InputError::new("", what, "leave weights away, or take a scheme with weights"))
    }

    /// Adds planned flows to the backend.
    fn take(&mut self, mut planned: IdVec<FlowId, Planned>) -> Result<(), InputError> {
        crate::spec::policy::apply(self.scenario.policy, &mut planned)?;
        for flow in planned {
            self.backend.add(flow.first_plan());
            self.ids.extend(flow.id.clone());
            self.flows.push(flow);
        }
        Ok(())
    }

    /// Changes the weight of a flow.
    pub fn set_weight(&mut self, flow: FlowId, weight: f64) -> Result<(), InputError> {
        self.check_open(flow)?;
        self.check_weights().map_err(|e| e.below("weight"))?;
        if !(weight > 0.0 && weight <= 1e12) {
            return Err(InputError::new("weight", format!("it is {weight}"), "give a number above 0, at most 1e12"));
        }
        let mut one: IdVec<FlowId, Planned> = IdVec::new();
        one.push(self.flows[flow].clone());
        one[FlowId(0)].plan.weight = weight;
        crate::spec::policy::apply(self.scenario.policy, &mut one)?;
        let plan = &one[FlowId(0)].plan;
        self.backend.set_weight(flow, weight, plan.utility.clone());
        self.flows[flow].plan = plan.clone();
        Ok(())
    }

    /// Stops a flow: it sends no new data.
    pub fn stop(&mut self, flow: FlowId) -> Result<(), InputError> {
        self.check_open(flow)?;
        self.backend.stop_flow(flow);
        self.flows[flow].plan.stop_ns = Some(self.backend.now_ns());
        Ok(())
    }

    /// Changes the paths of a flow, one for each subflow, given by the names of links.
    pub fn reroute(&mut self, flow: FlowId, paths: &[Vec<String>]) -> Result<(), InputError> {
        self.check_open(flow)?;
        let topology = &self.scenario.topology;
        let planned = &self.flows[flow];
        let subflows = planned.plan.routes.len();
        if planned.plan.spread.is_some() || paths.len() != subflows {
            let what = format!("there are {} paths for {subflows} subflows", paths.len());
            let hint = "give one list of links for each subflow; the paths of sprayed flows cannot be changed";
            return Err(InputError::new("paths", what, hint));
        }
        let paths = steps::paths(topology, paths)?;
        for (k, path) in paths.iter().enumerate() {
            let (src, dst) = topology.ends(path);
            if (src, dst) != (planned.src, planned.dst) {
                let what = "the path has other ends than the flow";
                return Err(InputError::new(format!("paths[{k}]"), what, "begin and end at the flow's hosts"));
            }
        }
        let routes: Vec<_> = paths.into_iter().map(|path| topology.route_over(path)).collect();
        self.backend.reroute(flow, &routes);
        self.flows[flow].plan.routes = routes;
        Ok(())
    }

    /// Fails a link, or lets it recover if `up`; `both`: its reverse link too. Paths do not change.
    pub fn set_up(&mut self, link: &str, up: bool, both: bool) -> Result<(), InputError> {
        for link in self.links_of(link, both)? {
            if up && !self.capacities.is_down(link) {
                let name = &self.scenario.topology.network().links()[link].id;
                let what = format!("link {} is up", quoted(name));
                return Err(InputError::new("link", what, "call recover once for each fail"));
            }
            self.change(link, if up { LinkChange::Up } else { LinkChange::Down });
        }
        Ok(())
    }

    /// Changes the capacity of a link, bit/s.
    pub fn set_capacity(&mut self, link: &str, capacity_bps: f64, both: bool) -> Result<(), InputError> {
        if !(1e3..=1e15).contains(&capacity_bps) {
            let what = format!("it is {capacity_bps} bit/s");
            return Err(InputError::new("capacity", what, "give 1 kb/s to 1 Pb/s, or call fail"));
        }
        for link in self.links_of(link, both)? {
            self.change(link, LinkChange::Capacity(capacity_bps));
        }
        Ok(())
    }

    fn change(&mut self, link: LinkId, change: LinkChange) {
        self.capacities.change(link, change);
        self.backend.change_link(link, change);
    }

    fn links_of(&self, name: &str, both: bool) -> Result<Vec<LinkId>, InputError> {
        let topology: &Topology = &self.scenario.topology;
        let link =
            topology.network().find_link(name).ok_or_else(|| unknown_link(name, topology.network()).below("link"))?;
        let reverse_link = topology.route_over(vec![link]).back[0];
        Ok(if both { vec![link, reverse_link] } else { vec![link] })
    }

    fn check_flow(&self, flow: FlowId) -> Result<(), InputError> {
        if flow.index() < self.flows.len() {
            return Ok(());
        }
        let hint = match self.flows.len() {
            0 => "add a flow first".to_string(),
            n => format!("flows have numbers 0 to {}", n - 1),
        };
        Err(InputError::new("flow", format!("there is no flow {flow}"), hint))
    }

    /// An error for a flow that does not exist, has finished, or was stopped.
    fn check_open(&self, flow: FlowId) -> Result<(), InputError> {
        self.check_flow(flow)?;
        let is_stopped = self.flows[flow].plan.stop_ns.is_some_and(|stop_ns| stop_ns <= self.backend.now_ns());
        if is_stopped || self.backend.flow(flow).finished_ns.is_some() {
            return Err(InputError::new("flow", format!("flow {flow} has ended"), "add another flow"));
        }
        Ok(())
    }

    /// Advances to `until_ns`, or to the event in `end` if that comes first. `false` if `cancel` was set: the
    /// simulation then stands at an earlier time, and goes on with the next call.
    pub fn run(&mut self, until_ns: Ns, end: StepEnd, cancel: &AtomicBool) -> Result<bool, InputError> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        let now_ns = self.backend.now_ns();
        if until_ns < now_ns {
            let what = format!("{until_ns} ns is before the present, {now_ns} ns");
            return Err(InputError::new("until", what, "give a later time"));
        }
        if until_ns > self.most_ns {
            let what = format!(
                "scheme {} runs for at most {} hours",
                quoted(self.info.name),
                self.most_ns / 3_600_000_000_000
            );
            return Err(InputError::new("until", what, "give an earlier time"));
        }
        let backend = &mut self.backend;
        let mut outcome = Ok(true);
        let mut work = || outcome = quiet::catch(|| advance(backend.as_mut(), until_ns, end, cancel));
        match &self.outside {
            Some(outside) => outside.definition().around(cancel, &mut work),
            None => work(),
        }
        let failed = match outcome {
            Ok(complete) => match self.backend.fault() {
                Some(_) if cancel.load(Ordering::Relaxed) => return Ok(false),
                Some(fault) => fault,
                None if self.backend.failures() > 0 => {
                    InputError::new("policy", "exact rates were not found", "report this as a defect, with the calls")
                }
                None => return Ok(complete),
            },
            Err(panic) => InputError::new("", format!("a defect of subak: {panic}"), "report it, with the calls"),
        };
        self.broken = Some(failed.clone());
        Err(failed)
    }

    /// Flows that finished since the last call, in the order of their finish times.
    pub fn take_finished(&mut self) -> Vec<FlowId> {
        self.backend.take_finished()
    }

    /// Begins the peaks of the links' queues anew.
    pub fn restart_peaks(&mut self) {
        self.backend.restart_peaks();
    }

    /// Current simulated time, ns.
    pub fn now_ns(&self) -> Ns {
        self.backend.now_ns()
    }

    /// The flows, with their plans and their state.
    pub fn flows(&self) -> impl Iterator<Item = (FlowId, &Planned, FlowView)> {
        self.flows.iter_enumerated().map(|(f, planned)| (f, planned, self.backend.flow(f)))
    }

    /// The links of the network, with their current capacity in bit/s (0 if down) and their state.
    pub fn links(&self) -> impl Iterator<Item = (&str, f64, LinkView)> {
        let topology = &self.scenario.topology;
        topology.described_links().iter_enumerated().map(|(l, link)| {
            let capacity_bps = if self.capacities.is_down(l) { 0.0 } else { self.capacities.bps()[l] };
            (link.id.as_str(), capacity_bps, self.backend.link(l))
        })
    }

    /// Congestion windows and pacing rates of the subflows of a flow.
    pub fn paces(&self, flow: FlowId) -> Result<Vec<PaceView>, InputError> {
        self.check_flow(flow)?;
        Ok(self.backend.paces(flow))
    }

    /// All notes of the scheme so far, in the order of their times.
    pub fn notes(&mut self) -> &[Note] {
        self.notes.extend(self.backend.take_notes());
        &self.notes
    }

    /// Id of a link.
    pub fn link(&self, link: LinkId) -> &str {
        &self.scenario.topology.network().links()[link].id
    }

    /// Name of a node.
    pub fn node(&self, node: subak_core::NodeId) -> &str {
        &self.scenario.topology.network().nodes()[node].name
    }

    /// Number of events handled.
    pub fn events(&self) -> u64 {
        self.backend.events()
    }
}

/// An error for workloads whose flows react to events: only a run carries out reactions.
fn refuse_reactions(scenario: &Scenario, planned: &IdVec<FlowId, Planned>) -> Result<(), InputError> {
    let refused = |place: &str, what: &str, hint: &str| Err(InputError::new(place, what, hint));
    if scenario.workload.has_jobs() || planned.iter().any(|flow| !flow.after.is_empty()) {
        let hint = "add these flows once the others have finished, or use subak.run";
        return refused("workload", "some flows wait for others", hint);
    }
    if planned.iter().any(|flow| !flow.weights.is_empty()) {
        return refused("workload", "some weights change by time", "call set_weight at these times, or use subak.run");
    }
    if scenario.reroute_ns.is_some() {
        return refused("routing.reroute", "a stepped simulation does not reroute by itself", "call reroute");
    }
    Ok(())
}

/// Advances the backend in slices, each short enough for the next check of `cancel`. `false` if it was set.
fn advance(backend: &mut dyn Backend, until_ns: Ns, end: StepEnd, cancel: &AtomicBool) -> bool {
    let mut slice_ns = FIRST_SLICE_NS;
    loop {
        let from_ns = backend.now_ns();
        let to_ns = from_ns.saturating_add(slice_ns).min(until_ns);
        let began = Instant::now();
        match end {
            StepEnd::Time => backend.run_until(to_ns),
            StepEnd::Finish => backend.run_until_finish(to_ns),
            StepEnd::Done => backend.run_until_done(to_ns),
        }
        // A backend that stands before the end of the slice has met the condition.
        if to_ns == until_ns || backend.now_ns() < to_ns || backend.fault().is_some() {
            return true;
        }
        if cancel.load(Ordering::Relaxed) {
            return false;
        }
        slice_ns = if began.elapsed() > CHECK { (slice_ns / 2).max(1) } else { slice_ns.saturating_mul(2) };
    }
}
