//! Workloads: which flows start when, between whom.
//!
//! Each purpose draws from a random stream of its own (arrivals, sizes, pairs, paths), so that every scheme at the same
//! seed sees the same flows, and a change of one purpose leaves the others as they were.

pub mod churn;
pub mod closed;
pub mod each;
pub mod jobs;
pub mod poisson;
pub mod sizes;

mod points;
mod steps;
mod trace;

use crate::spec::section::{Section, flag, text, whole};
use crate::spec::topology::{Topology, unknown_name};
use churn::Churn;
use closed::Closed;
use each::Each;
use jobs::{Jobs, Placed};
use poisson::Poisson;
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;
use steps::Step;
use subak_core::document::unknown_word;
use subak_core::driver::{FlowPlan, Injected, NOT_YET, PacketSizes, Route};
use subak_core::flows::Extra;
use subak_core::quantity::{bytes_from_json, ns_from_json};
use subak_core::rng::Stream;
use subak_core::{Fault, FlowId, LinkId, NodeId, Ns, Policy};

/// Names of the workloads.
pub const NAMES: &[&str] = &["poisson", "churn", "closed", "incast", "jobs", "permutation", "steps", "trace"];

/// Most flows that a cell may have: each takes some 400 bytes for as long as the cell runs.
const MOST_FLOWS: f64 = 5e6;

/// A flow and who it is between.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// Its name, where the spec gives one.
    pub id: Option<String>,
    /// Source, where the spec names ends and not links.
    pub src: Option<NodeId>,
    /// Destination.
    pub dst: Option<NodeId>,
    /// What some policies ask of it.
    pub extra: Extra,
    /// The flows that must have finished before it starts, by their numbers; `plan.start_ns` is then the time from the
    /// last of these ends to its start.
    pub after: Vec<FlowId>,
    /// How long after the end of each of them it may start, where computations lie between; empty for none.
    pub delays_ns: Vec<Ns>,
    /// It starts no sooner than this, whatever it waits for.
    pub earliest_ns: Ns,
    /// Weights that it has from some times on.
    pub weights: Vec<(Ns, f64)>,
    /// Of a transfer that is not split yet: the connections that it is to be split over.
    pub connections: usize,
    /// Drawn in case there is time for it: it leaves no row if it never starts.
    pub spare: bool,
    /// What the driver is told.
    pub plan: FlowPlan,
}

impl Planned {
    /// What the driver is told at first: a flow that waits for others has no start yet.
    pub fn first_plan(&self) -> FlowPlan {
        let start_ns = if self.after.is_empty() { self.plan.start_ns } else { NOT_YET };
        FlowPlan { start_ns, ..self.plan.clone() }
    }
}

/// A workload as a spec describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Which transfers there are.
    pub kind: Kind,
    /// What every one of them has.
    pub each: Each,
}

/// The kinds of workloads.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Flows arrive at random, between random hosts.
    Poisson(Poisson),
    /// Endless flows between random hosts, many of which start and stop at once every epoch.
    Churn(Churn),
    /// Clients that start a transfer when the last one has completed.
    Closed(Closed),
    /// Many hosts send to one.
    Incast {
        /// How many flows; more than there are other hosts, and some send several.
        senders: usize,
        /// Bytes of each; endless if not given.
        size_bytes: Option<u64>,
        /// The receiver's name; the first host if not given.
        receiver: Option<String>,
        /// Time from the start of one to that of the next.
        interval_ns: Ns,
    },
    /// Every host sends to one other and receives from one other, all in one cycle.
    Permutation {
        /// Bytes of each; endless if not given.
        size_bytes: Option<u64>,
        /// Subflows a flow.
        subflows: usize,
        /// Each of the first half of the hosts sends to one of the others instead.
        one_way: bool,
        /// A flow's subflows are flows of their own instead.
        apart: bool,
        /// Each subflow takes a path at random, those of one flow now and then the same.
        hashed: bool,
    },
    /// The flows listed.
    Steps(Vec<Step>),
    /// Transfers and computations that wait for each other, with policies for their weights.
    Jobs(Jobs),
    /// The flows of a file.
    Trace(Vec<trace::Traced>),
}

fn positive_bytes(value: &Value) -> Result<u64, Fault> {
    match bytes_from_json(value)? {
        0 => Err(Fault::new("", "the size is 0", "give at least one byte")),
        bytes => Ok(bytes),
    }
}

fn positive_ns(value: &Value) -> Result<Ns, Fault> {
    match ns_from_json(value)? {
        0 => Err(Fault::new("", "the time is 0", "give a time of at least 1ns")),
        ns => Ok(ns),
    }
}

impl Kind {
    /// The kind with its keys; none where one of these is at fault, which the section notes.
    fn read(section: &mut Section, base: &Path) -> Result<Option<Self>, Fault> {
        let name = section.must("kind", &format!("choose one of: {}", NAMES.join(", ")), text)?;
        Ok(match name {
            "poisson" => Poisson::read(section, base).map(Kind::Poisson),
            "churn" => Some(Kind::Churn(Churn::read(section))),
            "closed" => Closed::read(section, base).map(Kind::Closed),
            "jobs" => Jobs::read(section).map(Kind::Jobs),
            "incast" => Some(Kind::Incast {
                senders: section.need("senders", "give the number of senders", 1, |v| whole(v, 1, 1_000_000)) as usize,
                size_bytes: section.opt("size", positive_bytes),
                receiver: section.opt("receiver", |v| text(v).map(str::to_string)),
                interval_ns: section.opt("interval", ns_from_json).unwrap_or(0),
            }),
            "permutation" => Some(Kind::Permutation {
                size_bytes: section.opt("size", positive_bytes),
                subflows: subflows(section),
                one_way: section.opt("one_way", flag).unwrap_or(false),
                apart: section.opt("apart", flag).unwrap_or(false),
                hashed: section.opt("hashed", flag).unwrap_or(false),
            }),
            "trace" => Some(Kind::Trace(trace::read(section, base)?)),
            "steps" => Some(Kind::Steps(section.need("flows", "list the flows", Vec::new(), steps::read))),
            name => return Err(unknown_word(name, "workload", NAMES).below("kind")),
        })
    }
}

impl Workload {
    /// The section `workload` of a spec.
    /// Files lie relative to `base`.
    pub fn read(value: &Value, base: &Path) -> Result<Self, Fault> {
        let mut section = Section::of(value)?;
        let kind = match Kind::read(&mut section, base) {
            Ok(kind) => kind,
            Err(fault) => return section.end(Err(fault)),
        };
        let each = match kind {
            // Its flows say for themselves.
            Some(Kind::Steps(_) | Kind::Jobs(_)) => Each::default(),
            Some(Kind::Trace(_)) => Each::connections_alone(&mut section),
            _ => Each::read(&mut section),
        };
        section.all(kind.map(|kind| Workload { kind, each }))
    }

    /// Whether any flow has a weight other than 1.
    pub fn has_weights(&self) -> bool {
        match &self.kind {
            Kind::Steps(steps) => steps.iter().any(Step::has_weight),
            Kind::Jobs(jobs) => jobs.has_weights(),
            Kind::Trace(flows) => flows.iter().any(|flow| flow.weight != 1.0),
            _ => self.each.has_weights(),
        }
    }

    /// Checks the workload against the network: hosts and links that it names are there.
    pub fn check(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> Result<(), Fault> {
        match &self.kind {
            Kind::Steps(steps) => return steps::check(steps, topology),
            Kind::Trace(flows) => trace::check(flows, topology).map_err(|e| e.below("file"))?,
            _ => {}
        }
        let hosts = topology.hosts().len();
        if hosts < 2 {
            return Err(Fault::new(
                "kind",
                format!("the network has {hosts} hosts"),
                "use a network with two hosts or more, or the workload \"steps\" with paths",
            ));
        }
        topology.check_connected()?;
        if let Kind::Churn(churn) = &self.kind {
            churn.check(hosts)?;
        }
        if let Kind::Closed(closed) = &self.kind {
            closed.check(topology)?;
        }
        if let Kind::Jobs(jobs) = &self.kind {
            jobs.check(topology, duration_ns)?;
        }
        if let Kind::Incast { receiver: Some(name), .. } = &self.kind {
            host(topology, name).map_err(|e| e.below("receiver"))?;
        }
        let flows = self.expected(topology, packet, duration_ns).flows;
        if flows > MOST_FLOWS {
            return Err(Fault::new(
                "",
                format!("some {flows:.1e} flows would start"),
                "shorten the run or lower the load",
            ));
        }
        Ok(())
    }

    /// Checks that the flows have what `policy` asks of them.
    pub(crate) fn check_policy(&self, policy: Policy) -> Result<(), Fault> {
        let sized = match &self.kind {
            Kind::Steps(steps) => return steps::check_policy(steps, policy).map_err(|e| e.below("workload")),
            Kind::Poisson(_) | Kind::Closed(_) | Kind::Jobs(_) | Kind::Trace(_) => true,
            Kind::Churn { .. } => false,
            Kind::Incast { size_bytes, .. } | Kind::Permutation { size_bytes, .. } => size_bytes.is_some(),
        };
        let (field, mend) = match policy {
            Policy::MaxMin | Policy::AlphaFair { .. } => return Ok(()),
            Policy::Fct { .. } | Policy::Srpt { .. } if sized => return Ok(()),
            Policy::Fct { .. } | Policy::Srpt { .. } => ("size", "use flows with sizes: poisson, or a size"),
            Policy::Edf { .. } => ("deadline", "list the flows (workload \"steps\"), each with its deadline"),
            Policy::BandwidthFunction => {
                ("bandwidth_function", "list the flows (workload \"steps\"), each with its bandwidth_function")
            }
        };
        let what = format!("policy \"{}\" needs each flow's {field}, which this workload does not give", policy.name());
        Err(Fault::new("policy.kind", what, mend))
    }

    /// The flows of `seed`, in the order in which they start. `faults` may quicken links.
    pub fn flows(
        &self,
        topology: &Topology,
        seed: u64,
        packet: PacketSizes,
        faults: &[Injected],
        duration_ns: Ns,
    ) -> Result<Vec<Planned>, Fault> {
        let mut maker = Maker::new(topology, seed, duration_ns);
        match &self.kind {
            Kind::Poisson(poisson) => poisson.flows(&mut maker, packet)?,
            Kind::Churn(churn) => churn.flows(&mut maker)?,
            Kind::Closed(closed) => closed.flows(&mut maker, packet, faults)?,
            Kind::Incast { senders, size_bytes, receiver, interval_ns } => {
                let to = match receiver {
                    Some(name) => host(topology, name).map_err(|e| e.below("receiver"))?,
                    None => maker.hosts[0],
                };
                let mut from: Vec<NodeId> = maker.hosts.iter().copied().filter(|&h| h != to).collect();
                Stream::new(seed, "senders").shuffle(&mut from);
                // A flow that would start after the run is over does not take part.
                let starts = (0..*senders as Ns).map(|k| k.saturating_mul(*interval_ns));
                for (k, start_ns) in starts.take_while(|&at| at < duration_ns).enumerate() {
                    maker.add(from[k % from.len()], to, start_ns, *size_bytes, 1)?;
                }
            }
            Kind::Permutation { size_bytes, subflows, one_way, apart, hashed } => {
                let (n, mut order) = (maker.hosts.len(), Stream::new(seed, "permutation"));
                let to = if *one_way { across(n, &mut order) } else { cycle(n, &mut order) };
                for (i, &j) in to.iter().enumerate() {
                    maker.add(maker.hosts[i], maker.hosts[j], 0, *size_bytes, if *hashed { 1 } else { *subflows })?;
                    if *hashed {
                        maker.hash_more(*subflows - 1)?;
                    }
                    if *apart {
                        maker.take_apart();
                    } else if *hashed {
                        maker.merge_paths();
                    }
                }
            }
            Kind::Trace(flows) => trace::flows(flows, topology, &mut maker)?,
            Kind::Jobs(jobs) => jobs.flows(&mut maker, packet).map_err(|e| e.below("workload"))?,
            Kind::Steps(steps) => maker.flows = steps::flows(steps, topology, &mut maker)?,
        }
        let flows = self.each.apply(maker.flows, seed)?;
        match flows.len() as f64 > MOST_FLOWS {
            true => Err(Fault::new("workload", format!("there are {} flows", flows.len()), "shorten the run")),
            false => Ok(flows),
        }
    }

    /// The jobs of `seed`, where the workload has any.
    pub fn placed(&self, topology: &Topology, seed: u64, packet: PacketSizes) -> Result<Vec<Placed>, Fault> {
        match &self.kind {
            Kind::Jobs(jobs) => jobs.placed(topology, seed, packet),
            _ => Ok(Vec::new()),
        }
    }

    /// The callables that set weights, by name.
    pub(crate) fn callables(&self) -> impl Iterator<Item = &str> {
        let jobs = match &self.kind {
            Kind::Jobs(jobs) => Some(jobs),
            _ => None,
        };
        jobs.into_iter().flat_map(Jobs::callables)
    }

    /// Whether the sizes of flows are drawn at random.
    pub fn draws_sizes(&self) -> bool {
        matches!(self.kind, Kind::Poisson(_) | Kind::Closed(_))
    }

    /// Whether data and acknowledgements share links. Where pairs are random they do, whatever pairs a seed has drawn.
    pub fn runs_both_ways(&self, flows: &[Planned]) -> bool {
        match &self.kind {
            Kind::Poisson(Poisson { one_way: false, .. }) | Kind::Permutation { one_way: false, .. } => true,
            Kind::Churn(_) | Kind::Closed(_) => true,
            _ => {
                let links = |way: fn(&Route) -> &Vec<LinkId>| {
                    flows.iter().flat_map(|f| &f.plan.routes).flat_map(way).copied().collect::<HashSet<LinkId>>()
                };
                !links(|r| &r.forward).is_disjoint(&links(|r| &r.back))
            }
        }
    }

    /// How many flows and bytes on the wire to expect, for an estimate of the cost.
    pub fn expected(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> Expected {
        let Expected { flows, live, wire_bytes } = self.expected_transfers(topology, packet, duration_ns);
        let connections = self.each.connections as f64;
        Expected { flows: flows * connections, live: live * connections, wire_bytes }
    }

    fn expected_transfers(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> Expected {
        let seconds = duration_ns as f64 * 1e-9;
        let hosts = topology.hosts().len() as f64;
        let capacity = topology.hosts().iter().map(|&h| topology.access_bps(h)).sum::<f64>() * seconds / 8.0;
        let sized = |flows: f64, size: Option<u64>, all: f64| Expected {
            flows,
            live: flows,
            wire_bytes: size.map_or(all, |s| packet.wire_bytes(s) as f64 * flows),
        };
        match &self.kind {
            Kind::Poisson(poisson) => poisson.expected(topology, packet, duration_ns),
            Kind::Churn(churn) => churn.expected(hosts, capacity, duration_ns),
            Kind::Closed(closed) => closed.expected(topology, packet, duration_ns),
            Kind::Jobs(jobs) => jobs.expected(topology, packet, duration_ns),
            Kind::Incast { senders, size_bytes, .. } => sized(*senders as f64, *size_bytes, capacity / hosts),
            Kind::Permutation { size_bytes, subflows, one_way, apart, .. } => {
                let share = if *one_way { 0.5 } else { 1.0 };
                let each = if *apart { *subflows as f64 } else { 1.0 };
                sized(hosts * share * each, *size_bytes, capacity * share)
            }
            Kind::Trace(flows) => Expected {
                flows: flows.len() as f64,
                live: (flows.len() as f64).min(hosts * 100.0),
                wire_bytes: packet.wire_bytes(trace::bytes(flows, duration_ns)) as f64,
            },
            Kind::Steps(steps) => Expected {
                flows: steps::count(steps) as f64,
                live: steps::count(steps) as f64,
                wire_bytes: steps::wire_bytes(steps, topology, packet, duration_ns),
            },
        }
    }

    /// Whether the set of flows changes at a few points in time, between which rates can settle.
    pub fn settles(&self) -> bool {
        match &self.kind {
            Kind::Poisson(_) | Kind::Closed(_) | Kind::Jobs(_) | Kind::Trace(_) => false,
            Kind::Steps(steps) => !steps.iter().any(Step::waits),
            _ => true,
        }
    }
}

/// What a workload will bring, roughly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// Flows.
    pub flows: f64,
    /// Flows at once, at most or on average.
    pub live: f64,
    /// Bytes on the wire that the sources send.
    pub wire_bytes: f64,
}

fn subflows(section: &mut Section) -> usize {
    section.opt("subflows", |v| whole(v, 1, 64)).unwrap_or(1) as usize
}

fn host(topology: &Topology, name: &str) -> Result<NodeId, Fault> {
    let node = topology.network().find_node(name).filter(|n| topology.hosts().contains(n));
    node.ok_or_else(|| {
        let known: Vec<&str> =
            topology.hosts().iter().map(|&h| topology.network().nodes()[h as usize].name.as_str()).collect();
        unknown_name(name, "host", &known)
    })
}

/// A random permutation of `0..n` that is a single cycle (Sattolo's algorithm): nobody keeps its place.
fn cycle(n: usize, stream: &mut Stream) -> Vec<usize> {
    let mut to: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        to.swap(i, stream.below(i));
    }
    to
}

/// For each of the first half of `0..n`, one of the others, all different.
fn across(n: usize, stream: &mut Stream) -> Vec<usize> {
    let mut to: Vec<usize> = (n / 2..n).collect();
    stream.shuffle(&mut to);
    to.truncate(n / 2);
    to
}

/// Flows by their start, the last first.
pub(crate) fn by_start(flows: &[Planned]) -> Vec<FlowId> {
    let mut order: Vec<FlowId> = (0..flows.len() as FlowId).collect();
    order.sort_by_key(|&f| std::cmp::Reverse((flows[f as usize].plan.start_ns, f)));
    order
}

/// Makes flows between hosts.
struct Maker<'a> {
    topology: &'a Topology,
    router: subak_core::route::Router,
    hosts: Vec<NodeId>,
    seed: u64,
    pairs: Stream,
    paths: Stream,
    duration_ns: Ns,
    flows: Vec<Planned>,
}

impl<'a> Maker<'a> {
    fn new(topology: &'a Topology, seed: u64, duration_ns: Ns) -> Self {
        Maker {
            topology,
            router: topology.router(),
            hosts: topology.hosts().to_vec(),
            seed,
            pairs: Stream::new(seed, "pairs"),
            paths: Stream::new(seed, "paths"),
            duration_ns,
            flows: Vec::new(),
        }
    }

    /// Two different hosts.
    fn pair(&mut self) -> (NodeId, NodeId) {
        let n = self.hosts.len();
        let src = self.pairs.below(n);
        let other = self.pairs.below(n - 1);
        (self.hosts[src], self.hosts[if other < src { other } else { other + 1 }])
    }

    /// A host of the first half, and one of the others.
    fn pair_across(&mut self) -> (NodeId, NodeId) {
        let (n, half) = (self.hosts.len(), self.hosts.len() / 2);
        (self.hosts[self.pairs.below(half)], self.hosts[half + self.pairs.below(n - half)])
    }

    /// A flow of weight 1; one without a size stops when the run's duration is over.
    fn add(&mut self, src: NodeId, dst: NodeId, start_ns: Ns, size: Option<u64>, subflows: usize) -> Result<(), Fault> {
        let key = self.paths.bits();
        self.add_over(src, dst, start_ns, size, subflows, key)
    }

    /// As [`Maker::add`], over the paths that `key` picks.
    fn add_over(
        &mut self,
        src: NodeId,
        dst: NodeId,
        start_ns: Ns,
        size: Option<u64>,
        subflows: usize,
        key: u64,
    ) -> Result<(), Fault> {
        let routes = self.topology.routes(&mut self.router, src, dst, key, subflows)?;
        let plan = FlowPlan {
            start_ns,
            stop_ns: if size.is_none() { Some(self.duration_ns) } else { None },
            size_bytes: size,
            ..FlowPlan::new(routes)
        };
        let extra = Extra { size_bytes: size, ..Extra::default() };
        self.flows.push(Planned {
            id: None,
            src: Some(src),
            dst: Some(dst),
            extra,
            after: Vec::new(),
            delays_ns: Vec::new(),
            earliest_ns: 0,
            weights: Vec::new(),
            connections: 1,
            spare: false,
            plan,
        });
        Ok(())
    }

    /// Gives the last flow `more` subflows, each over a path of its own hash.
    fn hash_more(&mut self, more: usize) -> Result<(), Fault> {
        let Some(flow) = self.flows.last_mut() else { return Ok(()) };
        if let (Some(src), Some(dst)) = (flow.src, flow.dst) {
            for _ in 0..more {
                flow.plan.routes.extend(self.topology.routes(&mut self.router, src, dst, self.paths.bits(), 1)?);
            }
        }
        Ok(())
    }

    /// Makes one of those subflows of the last flow that take the same path: pooled, they have one price.
    fn merge_paths(&mut self) {
        let Some(flow) = self.flows.last_mut() else { return };
        let mut seen = Vec::new();
        flow.plan.routes.retain(|route| {
            let new = !seen.contains(&route.forward);
            seen.push(route.forward.clone());
            new
        });
    }

    /// Makes of each subflow of the last flow a flow of its own, each with the size.
    fn take_apart(&mut self) {
        let Some(whole) = self.flows.pop() else { return };
        self.flows.extend(whole.plan.routes.iter().map(|route| {
            let mut one = whole.clone();
            one.plan.routes = vec![route.clone()];
            one
        }));
    }
}
