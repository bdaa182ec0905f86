//! Flows listed one by one.

use super::{Maker, Planned, positive_bytes};
use crate::spec::section::{Section, between, each, text};
use crate::spec::topology::{Topology, unknown_name};
use serde_json::Value;
use std::collections::HashMap;
use subak_core::case::{bandwidth_function_from_value, deadline_from_value};
use subak_core::driver::{FlowPlan, PacketSizes};
use subak_core::flows::Extra;
use subak_core::quantity::{ns_from_json, quoted, rate_bps_from_json};
use subak_core::{Fault, FlowId, LinkId, Ns, Policy, Utility};

/// One flow of the list.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    id: Option<String>,
    way: Way,
    start_ns: Ns,
    stop_ns: Option<Ns>,
    size_bytes: Option<u64>,
    weight: f64,
    /// Weights from some times on.
    weights: Vec<(Ns, f64)>,
    /// The flows that must have finished before it starts; `start_ns` then counts from there.
    after: Vec<String>,
    connections: usize,
    demand_bps: f64,
    deadline_s: Option<f64>,
    bandwidth_function: Option<Vec<(f64, f64)>>,
}

impl Step {
    /// Whether it waits for other flows.
    pub(super) fn waits(&self) -> bool {
        !self.after.is_empty()
    }

    /// Whether it ever has a weight other than 1.
    pub(super) fn has_weight(&self) -> bool {
        self.weight != 1.0 || !self.weights.is_empty()
    }

    fn extra(&self) -> Extra {
        let bandwidth_function = self.bandwidth_function.clone();
        Extra { size_bytes: self.size_bytes, deadline_s: self.deadline_s, bandwidth_function }
    }
}

/// How a flow goes.
#[derive(Debug, Clone, PartialEq)]
enum Way {
    /// Between two hosts, over as many paths.
    Ends(String, String, usize),
    /// Over these links.
    Paths(Vec<Vec<String>>),
}

/// The key `flows`.
pub(crate) fn read(value: &Value) -> Result<Vec<Step>, Fault> {
    let steps = each(value, step)?;
    let mut seen = HashMap::new();
    for (i, id) in steps.iter().enumerate().filter_map(|(i, s)| Some((i, s.id.as_deref()?))) {
        if let Some(first) = seen.insert(id, i) {
            let what = format!("flow [{first}] has the id {} already", quoted(id));
            return Err(Fault::new(format!("[{i}].id"), what, "give every flow an id of its own"));
        }
    }
    Ok(steps)
}

fn step(value: &Value) -> Result<Step, Fault> {
    let mut section = Section::of(value)?;
    let demand = |v: &Value| match rate_bps_from_json(v)? {
        0.0 => Err(Fault::new("", "the demand is 0", "give a positive rate, or leave it out for no bound")),
        rate => Ok(rate),
    };
    let step = Step {
        id: section.opt("id", |v| text(v).map(str::to_string)),
        way: way(&mut section),
        start_ns: section.opt("start", ns_from_json).unwrap_or(0),
        stop_ns: section.opt("stop", ns_from_json),
        size_bytes: section.opt("size", positive_bytes),
        weight: section.opt("weight", |v| between(v, 0.0, false, 1e12)).unwrap_or(1.0),
        weights: section.opt("weights", |v| each(v, reweighing)).unwrap_or_default(),
        after: section.opt("after", |v| each(v, |v| text(v).map(str::to_string))).unwrap_or_default(),
        connections: super::each::connections(&mut section),
        demand_bps: section.opt("demand", demand).unwrap_or(f64::INFINITY),
        deadline_s: section.opt("deadline", deadline_from_value),
        bandwidth_function: section.opt("bandwidth_function", bandwidth_function_from_value),
    };
    if step.waits() && step.stop_ns.is_some() {
        section.note(Fault::new("stop", "a flow that waits for others has no time to stop at", "leave stop away"));
    } else if step.stop_ns.is_some_and(|stop| stop <= step.start_ns) {
        section.note(Fault::new("stop", "the flow stops before it starts", "give a later time"));
    }
    section.end(Ok(step))
}

/// `[time, weight]`: the weight that the flow has from that time on.
fn reweighing(value: &Value) -> Result<(Ns, f64), Fault> {
    match value.as_array().map(Vec::as_slice) {
        Some([at, weight]) => {
            let at_ns = ns_from_json(at).map_err(|e| e.below("[0]"))?;
            Ok((at_ns, between(weight, 0.0, false, 1e12).map_err(|e| e.below("[1]"))?))
        }
        _ => Err(Fault::new("", "a change of weight is a pair", "give a time and a weight, such as [\"1ms\", 5]")),
    }
}

/// The flows that each flow waits for, by number. Refuses names that are not there, flows that never end, and circles.
fn waits(steps: &[Step]) -> Result<Vec<Vec<FlowId>>, Fault> {
    let by_id: HashMap<&str, usize> =
        steps.iter().enumerate().filter_map(|(i, s)| Some((s.id.as_deref()?, i))).collect();
    let mut after = Vec::with_capacity(steps.len());
    for (i, step) in steps.iter().enumerate() {
        let mut list = Vec::with_capacity(step.after.len());
        for (k, name) in step.after.iter().enumerate() {
            let at = |e: Fault| e.below(&format!("flows[{i}].after[{k}]"));
            let Some(&before) = by_id.get(name.as_str()) else {
                let known: Vec<&str> = steps.iter().filter_map(|s| s.id.as_deref()).collect();
                return Err(at(unknown_name(name, "flow", &known)));
            };
            if steps[before].size_bytes.is_none() {
                let what = format!("flow {} has no size, and never ends", quoted(name));
                return Err(at(Fault::new("", what, "give it a size")));
            }
            list.push(before as FlowId);
        }
        after.push(list);
    }
    match circle(&after) {
        None => Ok(after),
        Some(circle) => {
            let names: Vec<String> =
                circle.iter().map(|&f| steps[f as usize].id.clone().unwrap_or_else(|| format!("[{f}]"))).collect();
            let what = format!("flows wait for each other in a circle: {}", names.join(" after "));
            Err(Fault::new(format!("flows[{}].after", circle[0]), what, "let one of them wait for nobody"))
        }
    }
}

/// A circle of flows that wait for each other, each after the next, if there is one.
pub(super) fn circle(after: &[Vec<FlowId>]) -> Option<Vec<FlowId>> {
    let mut left: Vec<usize> = after.iter().map(Vec::len).collect();
    let mut free: Vec<usize> = (0..after.len()).filter(|&f| left[f] == 0).collect();
    let mut dependents = vec![Vec::new(); after.len()];
    for (f, list) in after.iter().enumerate() {
        list.iter().for_each(|&b| dependents[b as usize].push(f));
    }
    while let Some(f) = free.pop() {
        for &d in &dependents[f] {
            left[d] -= 1;
            if left[d] == 0 {
                free.push(d);
            }
        }
    }
    // Every flow that is left waits for one that is left: following them leads into a circle.
    let stuck = |f: &FlowId| left[*f as usize] > 0;
    let mut path = vec![(0..after.len() as FlowId).find(stuck)?];
    loop {
        let next = *after[*path.last()? as usize].iter().find(|f| stuck(f))?;
        if let Some(at) = path.iter().position(|&f| f == next) {
            path.drain(..at);
            path.push(next);
            return Some(path);
        }
        path.push(next);
    }
}

/// Where that is not clear it is noted, and the way is none.
fn way(section: &mut Section) -> Way {
    let wrong = section.wrong();
    let names = |v: &Value| -> Result<Vec<String>, Fault> { each(v, |l| text(l).map(str::to_string)) };
    let src = section.opt("src", |v| text(v).map(str::to_string));
    let dst = section.opt("dst", |v| text(v).map(str::to_string));
    let path = section.opt("path", names);
    let paths = section.opt("paths", |v| each(v, names));
    let subflows = section.opt("subflows", |v| crate::spec::section::whole(v, 1, 64));
    match (src, dst, path, paths) {
        (Some(src), Some(dst), None, None) => Way::Ends(src, dst, subflows.unwrap_or(1) as usize),
        (None, None, Some(path), None) if subflows.is_none() => Way::Paths(vec![path]),
        (None, None, None, Some(paths)) if subflows.is_none() => Way::Paths(paths),
        _ => {
            if section.wrong() == wrong {
                let mend = "give src and dst (and subflows), or path, or paths";
                section.note(Fault::new("", "the flow's way is not clear", mend));
            }
            Way::Paths(Vec::new())
        }
    }
}

/// How many flows they are, with their connections.
pub(crate) fn count(steps: &[Step]) -> usize {
    steps.iter().map(|step| step.connections).sum()
}

/// Checks that what the flows name is there.
pub(crate) fn check(steps: &[Step], topology: &Topology) -> Result<(), Fault> {
    waits(steps)?;
    let mut router = topology.router();
    for (i, step) in steps.iter().enumerate() {
        let found = match &step.way {
            Way::Ends(src, dst, _) => ends(topology, src, dst).and_then(|(a, b)| router.route(a, b, 0).map(|_| ())),
            Way::Paths(names) => paths(topology, names).map(|_| ()),
        };
        found.map_err(|e| e.below(&format!("flows[{i}]")))?;
    }
    Ok(())
}

/// Checks that each flow has what `policy` asks of it.
pub(crate) fn check_policy(steps: &[Step], policy: Policy) -> Result<(), Fault> {
    if policy == Policy::MaxMin {
        return Ok(());
    }
    steps.iter().enumerate().try_for_each(|(i, step)| {
        let utility = Utility::under(policy, step.weight, &step.extra());
        utility.map(drop).map_err(|e| e.below(&format!("flows[{i}]")))
    })
}

/// The flows, in the order listed.
pub(crate) fn flows(steps: &[Step], topology: &Topology, maker: &mut Maker) -> Result<Vec<Planned>, Fault> {
    // A flow that would start after the run is over does not take part, unless others may wait for it.
    let waiting = steps.iter().any(Step::waits);
    let after = waits(steps)?;
    let planned = |(i, step): (usize, &Step)| {
        let at = |e: Fault| e.below(&format!("flows[{i}]"));
        let (src, dst, routes) = match &step.way {
            Way::Ends(src, dst, subflows) => {
                let (a, b) = ends(topology, src, dst).map_err(at)?;
                let key = maker.paths.bits();
                (Some(a), Some(b), topology.routes(&mut maker.router, a, b, key, *subflows).map_err(at)?)
            }
            Way::Paths(names) => {
                let paths = paths(topology, names).map_err(at)?;
                let (src, dst) = topology.ends(&paths[0]);
                (src, dst, paths.into_iter().map(|p| topology.route_over(p)).collect())
            }
        };
        let stop_ns = match step.size_bytes {
            Some(_) => step.stop_ns,
            None => Some(step.stop_ns.unwrap_or(Ns::MAX).min(maker.duration_ns)),
        };
        let plan = FlowPlan {
            start_ns: step.start_ns,
            stop_ns,
            size_bytes: step.size_bytes,
            weight: step.weight,
            demand_bps: step.demand_bps,
            ..FlowPlan::new(routes)
        };
        let (after, weights) = (after[i].clone(), step.weights.clone());
        Ok(Planned {
            id: step.id.clone(),
            src,
            dst,
            extra: step.extra(),
            after,
            delays_ns: Vec::new(),
            earliest_ns: 0,
            weights,
            connections: step.connections,
            spare: false,
            plan,
        })
    };
    let steps = steps.iter().enumerate().filter(|(_, s)| waiting || s.start_ns < maker.duration_ns);
    steps.map(planned).collect()
}

/// Bytes on the wire that the flows would send alone, at most what a run of `duration_ns` holds.
pub(crate) fn wire_bytes(steps: &[Step], topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> f64 {
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

fn ends(topology: &Topology, src: &str, dst: &str) -> Result<(u32, u32), Fault> {
    let find = |key: &str, name: &str| super::host(topology, name).map_err(|e| e.below(key));
    let (a, b) = (find("src", src)?, find("dst", dst)?);
    if a == b {
        return Err(Fault::new("dst", "source and destination are the same host", "name two hosts"));
    }
    Ok((a, b))
}

fn paths(topology: &Topology, names: &[Vec<String>]) -> Result<Vec<Vec<LinkId>>, Fault> {
    let mut found = Vec::with_capacity(names.len());
    for (k, names) in names.iter().enumerate() {
        let at = |e: Fault| e.below(&format!("paths[{k}]"));
        let path = topology.path(names).map_err(at)?;
        if found.contains(&path) {
            return Err(at(Fault::new("", "another path of the flow is the same", "name each path once")));
        }
        found.push(path);
    }
    if found.is_empty() || found.len() > 64 {
        return Err(Fault::new("paths", format!("there are {} paths", found.len()), "give 1 to 64 lists of links"));
    }
    Ok(found)
}
