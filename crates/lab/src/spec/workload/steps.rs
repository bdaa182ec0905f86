//! Flows listed one by one.

use super::each::CONNECTIONS;
use super::{Common, ExpectedFlows, FlowBuilder, Planned, SUBFLOWS, Workload, WorkloadInfo};
use crate::spec::backends::MOST_NS;
use crate::spec::topology::{Topology, unknown_name};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use subak_core::backend::{FlowPlan, PacketSizes};
use subak_core::case::{FLOW_UTILITY, bandwidth_function_from_value, flow_utility_from_value};
use subak_core::flows::{Extra, FlowUtility};
use subak_core::keys::each;
use subak_core::keys::{AMOUNT, Key, Low, ValueType};
use subak_core::quantity::quoted;
use subak_core::rng::Stream;
use subak_core::section::Section;
use subak_core::{FlowId, IdVec, InputError, LinkId, NodeId, Ns, Policy, Utility};

pub(super) const ENTRY: WorkloadInfo = WorkloadInfo {
    name: "steps",
    about: "the listed flows",
    keys: &[
        Key::required("flows", ValueType::List(&ValueType::Table(FLOW)), "the flows"),
        Key::new("jitter", ValueType::Time, "0", "maximum of the random delay of each flow's start, drawn per seed"),
    ],
    common: Common::None,
    read: |section, _| Ok(Some(Arc::new(Steps::read(section)))),
};

const WEIGHT: ValueType = ValueType::Number(Low::Above(0.0), 1e12);
const PATH: ValueType = ValueType::List(&ValueType::Text);

/// The keys of a flow.
const FLOW: &[Key] = &[
    Key::open("id", ValueType::Text, "none", "name of the flow"),
    Key::open("src", ValueType::Text, "that of `path`", "source host; required without `path` or `paths`"),
    Key::open("dst", ValueType::Text, "that of `path`", "destination host; required without `path` or `paths`"),
    SUBFLOWS,
    Key::open("path", PATH, "by routing", "links of the flow's path, in place of `src` and `dst`"),
    Key::open("paths", ValueType::List(&PATH), "by routing", "links of each subflow's path"),
    Key::new(
        "start",
        ValueType::Time,
        "0",
        "start time. With `after`: delay from the completion of the last of the flows in `after`, at least the smallest link delay of the network",
    ),
    Key::open("stop", ValueType::Time, "when its size is sent, or at the end of the run", "stop time"),
    Key::open("size", ValueType::Size, "endless", "bytes to send"),
    Key::new("weight", WEIGHT, "1", "weight under the policy"),
    Key::open(
        "weights",
        ValueType::List(&ValueType::Pair(&ValueType::Time, &WEIGHT)),
        "none",
        "changes of the weight: pairs of a time and the weight from then on",
    ),
    Key::open(
        "after",
        ValueType::List(&ValueType::Text),
        "none",
        "ids of flows that must complete before this one starts",
    ),
    CONNECTIONS,
    Key::open(
        "demand",
        ValueType::Rate,
        "no bound",
        "maximum rate; each of several connections or subflows has an equal part of it",
    ),
    Key::open("deadline", ValueType::Span(1, MOST_NS), "none", "time from the flow's start to its deadline"),
    Key::open(
        "bandwidth_function",
        ValueType::Other("list of pairs", bandwidth_function),
        "none",
        "points of the bandwidth function: pairs of a fair share and the rate there",
    ),
    Key::open(
        "utility",
        FLOW_UTILITY,
        "that of the workload",
        "utility, for the policy `utility`: points, or a policy",
    ),
];

/// The workload `steps`: a list of flows.
#[derive(Debug)]
struct Steps {
    list: Vec<ListedFlow>,
    /// Upper bound of the random delay of each start, ns.
    jitter_ns: Ns,
}

impl Steps {
    fn read(section: &mut Section) -> Self {
        let list = section.nested("flows", read).unwrap_or_default();
        let jitter_ns = section.take("jitter");
        let shortest = list.iter().filter_map(|s| s.stop_ns.map(|stop| stop.saturating_sub(s.start_ns))).min();
        if shortest.is_some_and(|shortest| jitter_ns >= shortest) {
            let what = "a flow could stop before it starts";
            section.note(InputError::new("jitter", what, "give less than the shortest flow lasts"));
        }
        Steps { list, jitter_ns }
    }
}

impl Workload for Steps {
    fn is_between_hosts(&self) -> bool {
        false
    }
    fn may_strand(&self) -> bool {
        !self.list.iter().any(ListedFlow::waits)
    }
    fn check(&self, topology: &Topology, _duration_ns: Ns) -> Result<(), InputError> {
        check(&self.list, topology)
    }
    fn notes(&self, duration_ns: Ns) -> Vec<String> {
        let late = self.list.iter().filter(|step| !step.waits() && step.start_ns >= duration_ns).count();
        let never = self.late_weights(duration_ns);
        let all = super::left_out(late, self.list.len()).into_iter().chain(self.divided_demands()).chain(never);
        all.chain(self.late_by_jitter(duration_ns)).chain(self.late_stops(duration_ns)).collect()
    }
    fn has_paths(&self) -> bool {
        self.list.iter().all(|step| matches!(step.way, Way::Paths(_)))
    }
    fn has_sizes(&self) -> bool {
        self.list.iter().all(|step| step.size_bytes.is_some())
    }
    /// Checks that each flow has the keys that `policy` requires.
    fn check_policy(&self, policy: Policy, default: Option<&FlowUtility>) -> Result<(), InputError> {
        check_policy(&self.list, policy, default).map_err(|e| e.below("workload"))
    }
    fn extras(&self) -> [usize; 3] {
        let count = |has: fn(&Extra) -> bool| self.list.iter().filter(|f| has(&f.extra())).count();
        [count(|e| e.deadline_s.is_some()), count(|e| e.bandwidth_function.is_some()), count(|e| e.utility.is_some())]
    }
    fn policies(&self) -> Vec<Policy> {
        self.list.iter().map(|flow| flow.extra().policy(Policy::Utility)).collect()
    }
    fn has_weights(&self) -> bool {
        self.list.iter().any(ListedFlow::has_weight)
    }
    fn smallest_weight(&self) -> f64 {
        self.list.iter().map(ListedFlow::smallest_weight).fold(f64::INFINITY, f64::min)
    }
    fn settles(&self) -> bool {
        !self.list.iter().any(ListedFlow::waits)
    }
    fn flows(&self, builder: &mut FlowBuilder) -> Result<(), InputError> {
        for flow in flows(&self.list, self.jitter_ns, builder)? {
            if flow.plan.routes.is_empty() {
                builder.stranded.push(flow);
            } else {
                builder.flows.push(flow);
            }
        }
        Ok(())
    }
    fn expected(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> ExpectedFlows {
        let flows = self.list.iter().map(|step| step.connections).sum::<usize>() as f64;
        ExpectedFlows { flows, live: flows, wire_bytes: wire_bytes(&self.list, topology, packet, duration_ns) }
    }
}

impl Steps {
    /// A note about flows whose random start may be after the run.
    fn late_by_jitter(&self, duration_ns: Ns) -> Option<String> {
        let may = |flow: &&ListedFlow| {
            !flow.waits() && flow.start_ns < duration_ns && flow.start_ns + self.jitter_ns > duration_ns
        };
        let count = self.list.iter().filter(may).count();
        let text = format!(
            "{count} of {} flows start at or after run.duration if the jitter drawn for them is long: those are omitted",
            self.list.len()
        );
        (count > 0).then_some(text)
    }

    /// A note about endless flows whose stop comes when the run is over.
    fn late_stops(&self, duration_ns: Ns) -> Option<String> {
        let late =
            |flow: &&ListedFlow| flow.size_bytes.is_none() && flow.stop_ns.is_some_and(|stop| stop > duration_ns);
        let count = self.list.iter().filter(late).count();
        let text = format!(
            "{count} of {} flows have a stop after run.duration, which has no effect: flows without a size stop there",
            self.list.len()
        );
        (count > 0).then_some(text)
    }

    /// A note about changes of weights that come when the run is over.
    fn late_weights(&self, duration_ns: Ns) -> Option<String> {
        let ends_ns = |flow: &ListedFlow| flow.stop_ns.unwrap_or(Ns::MAX).min(duration_ns);
        let late = |flow: &ListedFlow| flow.weights.iter().filter(|(at_ns, _)| *at_ns >= ends_ns(flow)).count();
        let all: usize = self.list.iter().map(|flow| flow.weights.len()).sum();
        let count: usize = self.list.iter().map(late).sum();
        let text = format!(
            "{count} of {all} changes of weights have no effect: they come at or after run.duration, or the flow's stop"
        );
        (count > 0).then_some(text)
    }

    /// A note about flows with a demand and several subflows: each subflow is limited to an equal part of the
    /// demand.
    fn divided_demands(&self) -> Option<String> {
        let divided = || self.list.iter().enumerate().filter(|(_, s)| s.demand_bps.is_finite() && s.subflows() > 1);
        let names: Vec<_> = divided().take(3).map(|(i, s)| s.id.as_deref().map_or(format!("[{i}]"), quoted)).collect();
        let text = format!(
            "{} of {} flows have a demand and several subflows ({}): each subflow sends at most an equal part of the demand, and what a \
             slower path leaves of its part no other takes over; leave subflows or the demand away where that matters",
            divided().count(),
            self.list.len(),
            names.join(", ")
        );
        (!names.is_empty()).then_some(text)
    }
}

/// One flow of the list.
#[derive(Debug)]
struct ListedFlow {
    id: Option<String>,
    way: Way,
    start_ns: Ns,
    stop_ns: Option<Ns>,
    size_bytes: Option<u64>,
    weight: f64,
    /// Changes of the weight: time in ns, and new weight.
    weights: Vec<(Ns, f64)>,
    /// Names of flows that must finish before this flow starts; `start_ns` is then the delay after the last of
    /// them finishes.
    after: Vec<String>,
    connections: usize,
    demand_bps: f64,
    deadline_s: Option<f64>,
    bandwidth_function: Option<Vec<(f64, f64)>>,
    utility: Option<FlowUtility>,
}

impl ListedFlow {
    /// Whether the flow depends on other flows.
    fn waits(&self) -> bool {
        !self.after.is_empty()
    }

    /// Whether the flow's weight ever differs from 1.
    fn has_weight(&self) -> bool {
        self.weight != 1.0 || !self.weights.is_empty()
    }

    /// The smallest weight of a subflow at any time.
    fn smallest_weight(&self) -> f64 {
        let weights = self.weights.iter().map(|&(_, weight)| weight);
        weights.fold(self.weight, f64::min) / self.subflows() as f64
    }

    fn subflows(&self) -> usize {
        match &self.way {
            Way::Ends(_, _, subflows) => *subflows,
            Way::Paths(paths) => paths.len(),
        }
    }

    fn extra(&self) -> Extra {
        let (bandwidth_function, utility) = (self.bandwidth_function.clone(), self.utility.clone());
        Extra { size_bytes: self.size_bytes, deadline_s: self.deadline_s, bandwidth_function, utility }
    }
}

/// The path of a flow.
#[derive(Debug)]
enum Way {
    /// From one host to another, with a number of subflows.
    Ends(String, String, usize),
    /// Over explicit paths, as names of their links.
    Paths(Vec<Vec<String>>),
}

/// Reads the key `flows`.
fn read(value: &Value) -> Result<Vec<ListedFlow>, InputError> {
    let steps = each(value, step)?;
    let mut seen = HashMap::new();
    for (i, id) in steps.iter().enumerate().filter_map(|(i, s)| Some((i, s.id.as_deref()?))) {
        if let Some(first) = seen.insert(id, i) {
            let what = format!("flow [{first}] has the id {} already", quoted(id));
            return Err(InputError::new(format!("[{i}].id"), what, "give every flow an id of its own"));
        }
    }
    Ok(steps)
}

fn step(value: &Value) -> Result<ListedFlow, InputError> {
    let mut section = Section::of(value, FLOW)?;
    let step = ListedFlow {
        id: section.given("id"),
        way: way(&mut section),
        start_ns: section.take("start"),
        stop_ns: section.given("stop"),
        size_bytes: section.given("size"),
        weight: section.take("weight"),
        weights: section.convert("weights", reweighings).unwrap_or_default(),
        after: section.given("after").unwrap_or_default(),
        connections: section.take("connections"),
        demand_bps: section.given("demand").unwrap_or(f64::INFINITY),
        deadline_s: section.given("deadline"),
        bandwidth_function: section.nested("bandwidth_function", bandwidth_function_from_value),
        utility: section.nested("utility", flow_utility_from_value),
    };
    if step.waits() && step.stop_ns.is_some() {
        section.note(InputError::new("stop", "a flow that waits for others has no time to stop at", "leave stop away"));
    } else if step.stop_ns.is_some_and(|stop| stop <= step.start_ns) {
        section.note(InputError::new("stop", "the flow stops when it starts, or before", "give a later time"));
    }
    section.end(Ok(step))
}

/// JSON Schema of a bandwidth function.
fn bandwidth_function() -> Value {
    ValueType::List(&ValueType::Pair(&AMOUNT, &ValueType::RateOrZero)).schema()
}

/// Changes of a flow's weight, pairs of a time and a weight, each at another time.
fn reweighings(changes: Vec<(Ns, f64)>) -> Result<Vec<(Ns, f64)>, InputError> {
    let mut times: Vec<Ns> = changes.iter().map(|(at_ns, _)| *at_ns).collect();
    times.sort_unstable();
    match times.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => {
            let what = format!("two changes are at {} ns", twice[0]);
            Err(InputError::new("", what, "give one weight for each time"))
        }
        None => Ok(changes),
    }
}

/// Dependencies of each flow, by number. Unknown names, flows that never end, and cycles are errors.
fn waits(steps: &[ListedFlow]) -> Result<IdVec<FlowId, Vec<FlowId>>, InputError> {
    let by_id: HashMap<&str, usize> =
        steps.iter().enumerate().filter_map(|(i, s)| Some((s.id.as_deref()?, i))).collect();
    let mut after = IdVec::new();
    for (i, step) in steps.iter().enumerate() {
        let mut list = Vec::with_capacity(step.after.len());
        for (k, name) in step.after.iter().enumerate() {
            let at = |e: InputError| e.below(&format!("flows[{i}].after[{k}]"));
            let Some(&before) = by_id.get(name.as_str()) else {
                let known: Vec<&str> = steps.iter().filter_map(|s| s.id.as_deref()).collect();
                return Err(at(unknown_name(name, "flow", &known)));
            };
            if steps[before].size_bytes.is_none() {
                let what = format!("flow {} has no size, and never ends", quoted(name));
                return Err(at(InputError::new("", what, "give it a size")));
            }
            list.push(FlowId::from_index(before));
        }
        after.push(list);
    }
    match circle(&after) {
        None => Ok(after),
        Some(circle) => {
            let names: Vec<String> =
                circle.iter().map(|&f| steps[f.index()].id.clone().unwrap_or_else(|| format!("[{f}]"))).collect();
            let what = format!("flows wait for each other in a circle: {}", names.join(" after "));
            Err(InputError::new(format!("flows[{}].after", circle[0]), what, "let one of them wait for nobody"))
        }
    }
}

/// A cycle of dependencies, if there is one: each flow depends on the next.
pub(super) fn circle(after: &IdVec<FlowId, Vec<FlowId>>) -> Option<Vec<FlowId>> {
    let mut left: IdVec<FlowId, usize> = after.iter().map(Vec::len).collect();
    let mut free: Vec<FlowId> = after.ids().filter(|&f| left[f] == 0).collect();
    let mut dependents = IdVec::<FlowId, _>::filled(Vec::new(), after.len());
    for (f, list) in after.iter_enumerated() {
        list.iter().for_each(|&b| dependents[b].push(f));
    }
    while let Some(f) = free.pop() {
        for &d in &dependents[f] {
            left[d] -= 1;
            if left[d] == 0 {
                free.push(d);
            }
        }
    }
    // Every flow left depends on another one left, so that following the dependencies leads into a cycle.
    let stuck = |f: &FlowId| left[*f] > 0;
    let mut path = vec![after.ids().find(stuck)?];
    loop {
        let next = *after[*path.last()?].iter().find(|f| stuck(f))?;
        if let Some(at) = path.iter().position(|&f| f == next) {
            path.drain(..at);
            path.push(next);
            return Some(path);
        }
        path.push(next);
    }
}

/// Reads the path of a flow. A path defined in two ways is recorded as an error, and no paths are returned.
fn way(section: &mut Section) -> Way {
    let wrong = section.wrong();
    let (src, dst) = (section.given("src"), section.given("dst"));
    let (path, paths) = (section.given("path"), section.given("paths"));
    let subflows = section.given("subflows");
    match (src, dst, path, paths) {
        (Some(src), Some(dst), None, None) => Way::Ends(src, dst, subflows.unwrap_or(1)),
        (None, None, Some(path), None) if subflows.is_none() => Way::Paths(vec![path]),
        (None, None, None, Some(paths)) if subflows.is_none() => Way::Paths(paths),
        _ => {
            if section.wrong() == wrong {
                let hint = "give src and dst (and subflows), or path, or paths";
                section.note(InputError::new("", "the flow's way is not clear", hint));
            }
            Way::Paths(Vec::new())
        }
    }
}

/// Checks that the names in the flows exist.
fn check(steps: &[ListedFlow], topology: &Topology) -> Result<(), InputError> {
    waits(steps)?;
    let (mut router, strands) = (topology.router(), !steps.iter().any(ListedFlow::waits));
    for (i, step) in steps.iter().enumerate() {
        let found = match &step.way {
            Way::Ends(src, dst, _) => ends(topology, src, dst).and_then(|(a, b)| match router.route(a, b, 0) {
                Err(_) if strands => Ok(()),
                route => route.map(|_| ()),
            }),
            Way::Paths(names) if strands && are_down(topology, names) => Ok(()),
            Way::Paths(names) => paths(topology, names).map(|_| ()),
        };
        found.map_err(|e| e.below(&format!("flows[{i}]")))?;
    }
    Ok(())
}

/// Checks that each flow has the keys that `policy` requires.
fn check_policy(steps: &[ListedFlow], policy: Policy, default: Option<&FlowUtility>) -> Result<(), InputError> {
    if policy == Policy::MaxMin {
        return Ok(());
    }
    steps.iter().enumerate().try_for_each(|(i, step)| {
        let mut extra = step.extra();
        extra.utility = extra.utility.or_else(|| default.cloned());
        let utility = Utility::under(policy, step.weight, &extra);
        utility.map(drop).map_err(|e| e.below(&format!("flows[{i}]")))
    })
}

/// The flows, in the order listed.
fn flows(steps: &[ListedFlow], jitter_ns: Ns, builder: &mut FlowBuilder) -> Result<IdVec<FlowId, Planned>, InputError> {
    let (topology, duration_ns) = (builder.topology, builder.duration_ns);
    // A flow that would start after the run is omitted, unless some flow has dependencies, which are by number.
    let waiting = steps.iter().any(ListedFlow::waits);
    let after = waits(steps)?;
    let mut later = Stream::new(builder.seed, "jitter");
    let later_ns: Vec<Ns> = steps.iter().map(|_| (later.unit() * jitter_ns as f64) as Ns).collect();
    let planned = |(i, step): (usize, &ListedFlow)| {
        let at = |e: InputError| e.below(&format!("flows[{i}]"));
        let (src, dst, (routes, spread)) = match &step.way {
            Way::Ends(src, dst, subflows) => {
                let (a, b) = ends(topology, src, dst).map_err(at)?;
                let key = builder.paths.bits();
                let ways = match builder.ways(a, b, key, *subflows) {
                    Err(_) if builder.strands => (Vec::new(), None),
                    ways => ways.map_err(at)?,
                };
                (Some(a), Some(b), ways)
            }
            Way::Paths(names) if builder.strands && are_down(topology, names) => (None, None, (Vec::new(), None)),
            Way::Paths(names) => {
                let paths = paths(topology, names).map_err(at)?;
                let (src, dst) = topology.ends(&paths[0]);
                (src, dst, (paths.into_iter().map(|p| topology.route_over(p)).collect(), None))
            }
        };
        let stop_ns = match step.size_bytes {
            Some(_) => step.stop_ns,
            None => Some(step.stop_ns.unwrap_or(Ns::MAX).min(duration_ns)),
        };
        let plan = FlowPlan {
            spread,
            start_ns: step.start_ns + later_ns[i],
            stop_ns,
            size_bytes: step.size_bytes,
            weight: step.weight,
            demand_bps: step.demand_bps,
            ..FlowPlan::new(routes)
        };
        let (after, weights) = (after[FlowId::from_index(i)].clone(), step.weights.clone());
        Ok(Planned {
            id: step.id.clone(),
            src,
            dst,
            extra: step.extra(),
            after,
            needed: None,
            delays_ns: Vec::new(),
            earliest_ns: 0,
            weights,
            connections: step.connections,
            spare: false,
            class: None,
            plan,
        })
    };
    let is_late = |i: usize| steps[i].start_ns + later_ns[i] >= duration_ns;
    let kept = steps.iter().enumerate().filter(|(i, _)| waiting || !is_late(*i));
    let mut flows = kept.map(planned).collect::<Result<IdVec<FlowId, Planned>, InputError>>()?;
    for f in flows.ids().filter(|f| waiting && !steps[f.index()].waits() && is_late(f.index())).collect::<Vec<_>>() {
        flows[f].leave_out(f);
    }
    Ok(flows)
}

/// The flows in `list`, a value of the key `flows`, for a simulation that is running already.
pub(crate) fn listed(
    list: &Value,
    builder: &mut FlowBuilder,
    policy: Policy,
) -> Result<IdVec<FlowId, Planned>, InputError> {
    let steps = read(list).map_err(|e| e.below("flows"))?;
    for (i, step) in steps.iter().enumerate() {
        let refused = |key: &str, what: &str, hint: &str| Err(InputError::new(format!("flows[{i}].{key}"), what, hint));
        if step.waits() {
            return refused("after", "a flow that is added waits for no other", "add it once the others have finished");
        }
        if !step.weights.is_empty() {
            return refused(
                "weights",
                "a flow that is added has one weight",
                "call set_weight at the time of the change",
            );
        }
        if step.connections != 1 {
            return refused("connections", "a flow that is added is one connection", "add a flow for each connection");
        }
    }
    check(&steps, builder.topology)?;
    check_policy(&steps, policy, None)?;
    flows(&steps, 0, builder)
}

/// Bytes on the wire that the flows would send if each were alone, limited by `duration_ns`.
fn wire_bytes(steps: &[ListedFlow], topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> f64 {
    let fastest = topology.network().links().iter().map(|l| l.capacity_bps).fold(0.0, f64::max);
    let all = steps.iter().map(|step| match step.size_bytes {
        Some(size) => packet.wire_bytes(size) as f64,
        None => {
            let stop = step.stop_ns.unwrap_or(duration_ns).min(duration_ns);
            stop.saturating_sub(step.start_ns) as f64 * 1e-9 * fastest.min(step.demand_bps) / 8.0
        }
    });
    all.sum()
}

fn ends(topology: &Topology, src: &str, dst: &str) -> Result<(NodeId, NodeId), InputError> {
    let find = |key: &str, name: &str| super::host(topology, name).map_err(|e| e.below(key));
    let (a, b) = (find("src", src)?, find("dst", dst)?);
    if a == b {
        return Err(InputError::new("dst", "source and destination are the same host", "name two hosts"));
    }
    Ok((a, b))
}

/// Whether every path crosses a link that is down (of capacity 0) in the network's description.
fn are_down(topology: &Topology, paths: &[Vec<String>]) -> bool {
    let is_down = |name: &String| topology.network().find_link(name).is_none() && topology.network().is_down(name);
    !paths.is_empty() && paths.iter().all(|path| path.iter().any(is_down))
}

pub(crate) fn paths(topology: &Topology, names: &[Vec<String>]) -> Result<Vec<Vec<LinkId>>, InputError> {
    let mut found = Vec::with_capacity(names.len());
    for (k, names) in names.iter().enumerate() {
        let at = |e: InputError| e.below(&format!("paths[{k}]"));
        let path = topology.path(names).map_err(at)?;
        if found.contains(&path) {
            return Err(at(InputError::new("", "another path of the flow is the same", "name each path once")));
        }
        found.push(path);
    }
    if found.is_empty() || found.len() > 64 {
        return Err(InputError::new(
            "paths",
            format!("there are {} paths", found.len()),
            "give 1 to 64 lists of links",
        ));
    }
    Ok(found)
}
