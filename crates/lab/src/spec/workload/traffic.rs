//! Section `workload` of a spec: one workload, or a mix of several, each a class of flows.

use super::each::Each;
use super::jobs::{Jobs, Placed};
use super::{ALL, ExpectedFlows, FlowBuilder, KIND, MOST_FLOWS, Planned, Workload};
use crate::files::Beside;
use crate::spec::topology::Topology;
use serde_json::Value;
use std::collections::HashSet;
use std::num::NonZeroU8;
use std::sync::Arc;
use subak_core::backend::{Injected, PacketSizes, Route};
use subak_core::case::flow_utility_from_value;
use subak_core::flows::{Extra, FlowUtility, Narrow};
use subak_core::keys::each;
use subak_core::quantity::quoted;
use subak_core::rng::Stream;
use subak_core::section::Section;
use subak_core::{FlowId, IdVec, InputError, LinkId, NodeId, Ns, Policy};

/// Largest number of workloads of a mix.
const MOST_PARTS: usize = 127;

/// Whether the tables of a list of workloads are parts of a mix; otherwise the list is swept.
pub(crate) fn is_mix(tables: &[Value]) -> bool {
    tables.iter().any(|table| table.get("name").is_some())
}

/// The flows of a spec: one workload, or several side by side.
#[derive(Debug, Clone)]
pub struct Traffic {
    /// The workloads. One with jobs is the first, so that its flows have the numbers that jobs name.
    parts: Vec<Part>,
    /// Whether the spec has a list of workloads.
    is_list: bool,
    /// Labels of the schemes of the flows, whose index a flow's plan has; `None`: the scheme of the run.
    schemes: Vec<Option<String>>,
}

/// A workload, and the keys common to all transfers.
#[derive(Debug, Clone)]
struct Part {
    /// Name of the class of its flows.
    class: Option<Arc<str>>,
    /// Index in the list of the spec.
    place: usize,
    workload: Arc<dyn Workload>,
    each: Each,
    /// Label of the scheme of its flows; `None`: the scheme of the run.
    scheme: Option<String>,
    /// The hosts whose flows have that scheme; `None`: all of them.
    moved: Option<Moved>,
    /// Utility of its flows that state none, for the policy `utility`.
    utility: Option<FlowUtility>,
}

/// Hosts that have moved to another scheme.
#[derive(Debug, Clone)]
struct Moved {
    /// Fraction of the hosts.
    share: f64,
    /// Name of the class of their flows.
    class: Arc<str>,
}

impl Moved {
    /// The hosts that have moved, of those of the network: with a larger share they are more of the same hosts.
    fn hosts(&self, topology: &Topology, seed: u64) -> HashSet<NodeId> {
        let mut hosts = topology.hosts().to_vec();
        Stream::new(seed, "moved hosts").shuffle(&mut hosts);
        hosts.truncate((self.share * hosts.len() as f64).round() as usize);
        hosts.into_iter().collect()
    }
}

/// Number of the class of flows of hosts that have moved, beside that of the workload at `place`.
fn class_of_moved(place: usize) -> Option<NonZeroU8> {
    NonZeroU8::new((place + MOST_PARTS + 1) as u8)
}

impl Part {
    fn read(value: &Value, files: &Beside) -> Result<Self, InputError> {
        let mut section = Section::of(value, KIND)?;
        let class: Option<String> = section.given("name");
        let scheme: Option<String> = section.given("scheme");
        let share: Option<f64> = section.given("moved");
        for (key, lacks) in [("scheme", scheme.is_none()), ("name", class.is_none())] {
            if share.is_some() && lacks {
                let hint = "give the scheme of the hosts that have moved, and the name of the flows' class";
                section.note(InputError::new("moved", format!("{} is missing", quoted(key)), hint));
            }
        }
        let utility = section.nested("utility", flow_utility_from_value);
        let moved = share.zip(class.as_ref());
        let moved = moved.map(|(share, class)| Moved { share, class: format!("{class} (moved)").into() });
        let named: String = match section.must("kind") {
            Ok(named) => named,
            Err(fault) => return section.end(Err(fault)),
        };
        let found = ALL.iter().find(|entry| entry.name == named);
        let entry = found.unwrap_or_else(|| unreachable!("{named} is a kind of workload"));
        section.also(entry.keys);
        let workload = match (entry.read)(&mut section, files) {
            Ok(workload) => workload,
            Err(fault) => return section.end(Err(fault)),
        };
        let each = Each::read(&mut section, entry.common);
        if workload.as_ref().is_some_and(|workload| workload.waits_for_some()) {
            let refused = each.refuse_connections("a flow of the file starts after some of those that it waits for");
            section.keep(refused);
        }
        section.all(workload.map(|workload| Part {
            class: class.map(Arc::from),
            place: 0,
            workload,
            each,
            scheme,
            moved,
            utility,
        }))
    }

    /// Labels of the schemes of its flows; `None`: the scheme of the run.
    fn schemes(&self) -> Vec<Option<String>> {
        let others = self.moved.as_ref().map(|_| None);
        [self.scheme.clone()].into_iter().chain(others).collect()
    }

    /// Names of the classes of its flows.
    fn classes(&self) -> impl Iterator<Item = &Arc<str>> {
        self.class.iter().chain(self.moved.as_ref().map(|moved| &moved.class))
    }

    /// Sets the scheme of its flows, by the index in `schemes`, and the class of those of hosts that have moved.
    /// `seed`: that of the run.
    fn set_schemes(&self, plan: &mut Plan, schemes: &[Option<String>], topology: &Topology, seed: u64) {
        let index = |label: &Option<String>| schemes.iter().position(|other| other == label).unwrap_or_default() as u8;
        let moved = self.moved.as_ref().map(|moved| moved.hosts(topology, seed));
        for flow in plan.flows.iter_mut().chain(&mut plan.stranded) {
            let has_moved = moved.as_ref().map(|hosts| flow.src.is_some_and(|src| hosts.contains(&src)));
            flow.plan.scheme = index(if has_moved == Some(false) { &None } else { &self.scheme });
            if has_moved == Some(true) {
                flow.class = class_of_moved(self.place);
            }
        }
    }

    /// Checks that the hosts and links in the workload exist in the network.
    fn check(&self, topology: &Topology, duration_ns: Ns) -> Result<(), InputError> {
        if !self.workload.is_between_hosts() {
            return self.workload.check(topology, duration_ns);
        }
        let hosts = topology.hosts().len();
        if hosts < 2 {
            return Err(InputError::new(
                "kind",
                format!("the network has {hosts} hosts"),
                "use a network with two hosts or more, or the workload \"steps\" with paths",
            ));
        }
        topology.check_connected().or_else(|fault| match self.workload.may_strand() && topology.has_a_pair() {
            true => Ok(()),
            false => Err(fault),
        })?;
        self.workload.check(topology, duration_ns)
    }

    /// The flows of `seed`.
    fn plan(&self, mut builder: FlowBuilder, seed: u64) -> Result<Plan, InputError> {
        let (topology, packet) = (builder.topology, builder.packet);
        let (faults, duration_ns) = (builder.faults, builder.duration_ns);
        builder.strands = self.workload.may_strand();
        self.workload.flows(&mut builder)?;
        let FlowBuilder { flows, stranded, narrow, late, .. } = builder;
        if let (true, false) = (flows.is_empty(), stranded.is_empty()) {
            let mut strict = FlowBuilder::new(topology, seed, packet, faults, duration_ns);
            let named = self.workload.flows(&mut strict).err();
            let what = format!("none of the {} flows has a path to its destination", stranded.len());
            let fault = named.unwrap_or_else(|| InputError::new("", "", "connect the hosts, or choose other ends"));
            return Err(InputError {
                what: [fault.what, what].join(": ").trim_start_matches(": ").to_string(),
                ..fault
            });
        }
        let mut plan = Plan { flows: self.each.apply(flows, seed)?, stranded, narrow, late };
        let class = self.class.as_ref().and_then(|_| NonZeroU8::new(self.place as u8 + 1));
        for flow in plan.flows.iter_mut().chain(&mut plan.stranded) {
            flow.class = class;
            flow.extra.utility = flow.extra.utility.take().or_else(|| self.utility.clone());
        }
        Ok(plan)
    }

    fn expected(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> ExpectedFlows {
        let ExpectedFlows { flows, live, wire_bytes } = self.workload.expected(topology, packet, duration_ns);
        let connections = self.each.connections as f64;
        ExpectedFlows { flows: flows * connections, live: live * connections, wire_bytes }
    }
}

impl Traffic {
    /// Reads the section; its files are taken from `files`.
    pub(crate) fn read(value: &Value, files: &Beside) -> Result<Self, InputError> {
        let Value::Array(tables) = value else {
            let part = Part::read(value, files)?;
            return Ok(Traffic { schemes: part.schemes(), parts: vec![part], is_list: false });
        };
        if tables.len() > MOST_PARTS {
            let what = format!("there are {} workloads", tables.len());
            return Err(InputError::new("", what, format!("give at most {MOST_PARTS}")));
        }
        let mut parts = each(value, |table| Part::read(table, files))?;
        let mut seen = HashSet::new();
        for (place, part) in parts.iter_mut().enumerate() {
            part.place = place;
            if part.class.is_none() {
                let what = "this workload of the list has no name";
                let hint = "name each of a mix, or none: a list without names is swept";
                return Err(InputError::new(format!("[{place}].name"), what, hint));
            };
            if let Some(class) = part.classes().find(|class| !seen.insert(Arc::clone(class))) {
                let what = format!("another workload is named {}, too", quoted(class));
                return Err(InputError::new(format!("[{place}].name"), what, "give each a name of its own"));
            }
        }
        let mut schemes: Vec<Option<String>> = Vec::new();
        for label in parts.iter().flat_map(Part::schemes) {
            if !schemes.contains(&label) {
                schemes.push(label);
            }
        }
        parts.sort_by_key(|part| part.workload.jobs().is_none());
        if let [_, second, ..] = &parts[..]
            && second.workload.jobs().is_some()
        {
            let place = format!("[{}].kind", second.place);
            let hint = "list all jobs in one workload";
            return Err(InputError::new(place, format!("{} of {} workloads have jobs", 2, tables.len()), hint));
        }
        Ok(Traffic { parts, is_list: true, schemes })
    }

    /// Labels of the schemes of the flows, in the order of the spec; `None`: the scheme of the run. The index of a
    /// flow's scheme is that in its plan.
    pub(crate) fn schemes(&self) -> &[Option<String>] {
        &self.schemes
    }

    /// Name of a class of flows.
    pub(crate) fn class_name(&self, class: NonZeroU8) -> Option<&str> {
        let (place, is_moved) = match usize::from(class.get()) {
            number if number > MOST_PARTS => (number - MOST_PARTS - 1, true),
            number => (number - 1, false),
        };
        let part = self.parts.iter().find(|part| part.place == place)?;
        if is_moved { part.moved.as_ref().map(|moved| &*moved.class) } else { part.class.as_deref() }
    }

    /// Names of the classes, in the order of the spec; empty if no workload has a name.
    pub(crate) fn classes(&self) -> Vec<&str> {
        let mut parts: Vec<&Part> = self.parts.iter().collect();
        parts.sort_by_key(|part| part.place);
        parts.into_iter().flat_map(Part::classes).map(|class| &**class).collect()
    }

    fn any(&self, is: impl Fn(&Part) -> bool) -> bool {
        self.parts.iter().any(is)
    }

    fn all(&self, is: impl Fn(&Part) -> bool) -> bool {
        self.parts.iter().all(is)
    }

    /// Calls `check` on each part; errors name the part's place in the list.
    fn each_part(&self, mut check: impl FnMut(&Part) -> Result<(), InputError>) -> Result<(), InputError> {
        self.parts.iter().try_for_each(|part| check(part).map_err(|fault| self.at(part, fault)))
    }

    /// The fault with the place of the part, if there is a list of them.
    fn at(&self, part: &Part, fault: InputError) -> InputError {
        if self.is_list { fault.below(&format!("[{}]", part.place)) } else { fault }
    }

    /// Seed of the random numbers of a part. In a list it depends on the class's name, so that the flows of a class are
    /// the same whatever other classes there are.
    fn seed(&self, part: &Part, seed: u64) -> u64 {
        match &part.class {
            Some(class) if self.is_list => Stream::new(seed, class).bits(),
            _ => seed,
        }
    }

    /// Whether any flow has a weight other than 1.
    pub fn has_weights(&self) -> bool {
        self.any(|part| part.workload.has_weights() || part.each.has_weights())
    }

    /// Smallest weight that a subflow has at any time.
    pub fn smallest_weight(&self) -> f64 {
        let of = |part: &Part| part.workload.smallest_weight() * part.each.smallest_weight();
        self.parts.iter().map(of).fold(f64::INFINITY, f64::min)
    }

    /// The policies of the flows: `of_spec`, or under `utility` those that workloads and flows state.
    fn policies(&self, of_spec: Policy) -> Vec<Policy> {
        let own = |part: &Part| {
            let default = Extra { utility: part.utility.clone(), ..Extra::default() };
            [default.policy(of_spec)].into_iter().chain(part.workload.policies())
        };
        if of_spec == Policy::Utility { self.parts.iter().flat_map(own).collect() } else { vec![of_spec] }
    }

    /// Texts for warnings about keys of flows that have no effect under `policy` or the scheme. `weights`: the scheme
    /// uses weights.
    pub fn without_effect(&self, policy: Policy, weights: bool) -> Vec<String> {
        let count = |place: usize| self.parts.iter().map(|part| part.workload.extras()[place]).sum::<usize>();
        let (deadlines, functions, utilities) = (count(0), count(1), count(2));
        let of_policy = |key: &str| format!("have a {key}, which the policy \"{}\" does not use", policy.name());
        let is_edf = |policy: Policy| matches!(policy, Policy::Edf { .. });
        let deadline = (deadlines > 0 && !self.policies(policy).into_iter().any(is_edf))
            .then(|| format!("{deadlines} of the flows {}", of_policy("deadline")));
        let function = (functions > 0 && !policy.is_by_functions())
            .then(|| format!("{functions} of the flows {}", of_policy("bandwidth_function")));
        let weight = match (self.has_weights(), policy) {
            (false, _) => None,
            (true, _) if !weights => Some("flows have weights, which the scheme does not use".to_string()),
            (true, Policy::BandwidthFunction { .. }) => Some(format!("flows {}", of_policy("weight"))),
            (true, Policy::AlphaFair { alpha: 0.0 }) => {
                Some("flows have weights, which alpha = 0 does not use: it maximizes the sum of rates".to_string())
            }
            (true, _) => None,
        };
        let of_workloads = self.parts.iter().filter(|part| part.utility.is_some()).count();
        let unused = |count: usize, of: &str| {
            let has_none = count == 0 || policy == Policy::Utility;
            (!has_none).then(|| format!("{count} of the {of} {}", of_policy("utility")))
        };
        let utility = [unused(utilities, "flows"), unused(of_workloads, "workloads")];
        [deadline, function, weight].into_iter().chain(utility).flatten().collect()
    }

    /// Checks that the hosts and links in the workloads exist in the network.
    pub fn check(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> Result<(), InputError> {
        self.each_part(|part| part.check(topology, duration_ns))?;
        let flows = self.expected(topology, packet, duration_ns).flows;
        if self.any(|part| part.workload.is_between_hosts()) && flows > MOST_FLOWS {
            return Err(InputError::new(
                "",
                format!("some {flows:.1e} flows would start"),
                "shorten the run or lower the load",
            ));
        }
        let load: f64 = self.parts.iter().filter_map(|part| part.workload.loads()).map(|(load, _)| load).sum();
        if self.is_list && load > 1.0 {
            let what = format!("the loads of the workloads add up to {load}");
            return Err(InputError::new("", what, "give loads of at most 1 in all"));
        }
        self.check_some_path(topology, packet, duration_ns)
    }

    /// An error if no flow of seed 1 has a path.
    fn check_some_path(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> Result<(), InputError> {
        if !self.any(|part| part.workload.may_strand()) || topology.is_whole() {
            return Ok(());
        }
        self.plan(topology, 1, packet, &[], duration_ns).map(drop).map_err(|e| match e.place.strip_prefix("workload") {
            Some(rest) => InputError { place: rest.trim_start_matches('.').to_string(), ..e },
            None => e,
        })
    }

    /// Checks that the flows have the keys that `policy` requires.
    pub(crate) fn check_policy(&self, policy: Policy) -> Result<(), InputError> {
        self.parts.iter().try_for_each(|part| part.workload.check_policy(policy, part.utility.as_ref()))
    }

    /// Flows of `seed`. `faults`: some raise link capacities, on which workloads may depend.
    pub fn flows(
        &self,
        topology: &Topology,
        seed: u64,
        packet: PacketSizes,
        faults: &[Injected],
        duration_ns: Ns,
    ) -> Result<IdVec<FlowId, Planned>, InputError> {
        self.plan(topology, seed, packet, faults, duration_ns).map(|plan| plan.flows)
    }

    /// The flows of `seed`, including those without a path.
    pub(crate) fn plan(
        &self,
        topology: &Topology,
        seed: u64,
        packet: PacketSizes,
        faults: &[Injected],
        duration_ns: Ns,
    ) -> Result<Plan, InputError> {
        let (of_run, mut whole) = (seed, Plan::default());
        for part in &self.parts {
            let seed = self.seed(part, seed);
            let builder = FlowBuilder::new(topology, seed, packet, faults, duration_ns);
            // Errors of jobs name the section already.
            let at = |fault: InputError| if self.is_list { self.at(part, fault).below("workload") } else { fault };
            let mut plan = part.plan(builder, seed).map_err(at)?;
            part.set_schemes(&mut plan, &self.schemes, topology, of_run);
            whole.join(plan);
        }
        match whole.flows.len() as f64 > MOST_FLOWS {
            true => {
                Err(InputError::new("workload", format!("there are {} flows", whole.flows.len()), "shorten the run"))
            }
            false => Ok(whole),
        }
    }

    /// Whether some of the first transfers may start after a run of this duration.
    pub(crate) fn may_be_late(&self, duration_ns: Ns) -> bool {
        self.any(|part| part.workload.may_be_late(duration_ns))
    }

    /// Keys `workload.NAME` without effect in a run of this duration, each with the reason.
    pub(crate) fn unread(&self, duration_ns: Ns) -> impl Iterator<Item = (String, &'static str)> {
        let of_part = move |part: &Part| {
            let section = if self.is_list { format!("workload[{}]", part.place) } else { "workload".to_string() };
            let unread = part.workload.unread(duration_ns);
            unread.into_iter().map(|(key, why)| (format!("{section}.{key}"), why)).collect::<Vec<_>>()
        };
        self.parts.iter().flat_map(of_part)
    }

    /// Notes for the user on the flows of the workload, one sentence each.
    pub(crate) fn notes(&self, topology: &Topology, duration_ns: Ns) -> Vec<String> {
        let hosts = topology.hosts().len();
        let of_part = |part: &Part| {
            let other = part.workload.announced_hosts().filter(|&announced| announced != hosts);
            let other = other.map(|n| format!("the file announces {n} hosts, and the network has {hosts}"));
            let named = |text: String| match &part.class {
                Some(class) if self.is_list => format!("class {}: {text}", quoted(class)),
                _ => text,
            };
            part.workload.notes(duration_ns).into_iter().chain(other).map(named).collect::<Vec<_>>()
        };
        self.parts.iter().flat_map(of_part).collect()
    }

    /// Whether the spec gives the paths of all flows.
    pub(crate) fn has_paths(&self) -> bool {
        self.all(|part| part.workload.has_paths())
    }

    /// Whether the workload has jobs.
    pub(crate) fn has_jobs(&self) -> bool {
        self.any(|part| part.workload.jobs().is_some())
    }

    /// Name of the class of the jobs.
    pub(crate) fn class_of_jobs(&self) -> Option<&str> {
        self.parts.iter().find(|part| part.workload.jobs().is_some())?.class.as_deref()
    }

    /// The jobs of `seed`, if the workload has any.
    pub fn placed(&self, topology: &Topology, seed: u64, packet: PacketSizes) -> Result<Vec<Placed>, InputError> {
        let part = &self.parts[0];
        let seed = self.seed(part, seed);
        part.workload.jobs().map_or(Ok(Vec::new()), |jobs| jobs.placed(topology, seed, packet))
    }

    /// Names of the caller's functions that set weights.
    pub(crate) fn callables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| part.workload.jobs()).flat_map(Jobs::callables)
    }

    /// Whether every flow has a size.
    pub fn has_sizes(&self) -> bool {
        self.all(|part| part.workload.has_sizes())
    }

    /// Whether the sizes of flows are drawn at random.
    pub fn draws_sizes(&self) -> bool {
        self.any(|part| part.workload.draws_sizes())
    }

    /// Whether data and ACKs share links. With random pairs the answer is yes for every seed.
    pub fn runs_both_ways(&self, flows: &IdVec<FlowId, Planned>) -> bool {
        let links = |way: fn(&Route) -> &Vec<LinkId>| {
            flows.iter().flat_map(|f| &f.plan.routes).flat_map(way).copied().collect::<HashSet<LinkId>>()
        };
        self.any(|part| part.workload.runs_both_ways()) || !links(|r| &r.forward).is_disjoint(&links(|r| &r.back))
    }

    /// Whether the workload has a load that half of the hosts send to the other half.
    pub(crate) fn is_one_way(&self) -> bool {
        self.loads().is_some() && !self.any(|part| part.workload.runs_both_ways())
    }

    /// Load without incasts, and with incasts, of all workloads that have one; `None` if none has.
    pub(crate) fn loads(&self) -> Option<(f64, f64)> {
        let loads = self.parts.iter().filter_map(|part| part.workload.loads());
        // Decimals of the spec sum up to decimals.
        let plain = |x: f64| (x * 1e12).round() / 1e12;
        loads.reduce(|sum, one| (plain(sum.0 + one.0), plain(sum.1 + one.1)))
    }

    /// Expected flows and bytes on the wire, for a cost estimate.
    pub fn expected(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> ExpectedFlows {
        let parts = self.parts.iter().map(|part| part.expected(topology, packet, duration_ns));
        parts.fold(ExpectedFlows { flows: 0.0, live: 0.0, wire_bytes: 0.0 }, |sum, one| ExpectedFlows {
            flows: sum.flows + one.flows,
            live: sum.live + one.live,
            wire_bytes: sum.wire_bytes + one.wire_bytes,
        })
    }

    /// Whether the set of flows changes at a few points in time, between which rates can converge.
    pub fn settles(&self) -> bool {
        self.all(|part| part.workload.settles())
    }
}

/// The flows of a seed.
#[derive(Default)]
pub(crate) struct Plan {
    /// Flows of each workload, one after the other. Those of a workload are in the order of their start times.
    pub flows: IdVec<FlowId, Planned>,
    /// Flows without a path.
    pub stranded: Vec<Planned>,
    /// Flows with fewer paths than subflows.
    pub narrow: Narrow,
    /// Chains of dependent transfers that are omitted, since they start after the run, and their number with the others.
    pub late: (usize, usize),
}

impl Plan {
    /// Appends the flows of another workload.
    fn join(&mut self, more: Plan) {
        let first = self.flows.len();
        if first == 0 && self.stranded.is_empty() {
            *self = more;
            return;
        }
        self.flows.extend(more.flows.into_iter().map(|mut flow| {
            flow.after.iter_mut().for_each(|f| *f = FlowId::from_index(f.index() + first));
            flow
        }));
        self.stranded.extend(more.stranded);
        self.narrow.join(more.narrow);
        self.late = (self.late.0 + more.late.0, self.late.1 + more.late.1);
    }
}
