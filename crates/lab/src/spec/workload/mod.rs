//! Workloads: start times, sizes, sources and destinations of flows.
//!
//! Each purpose (arrivals, sizes, pairs, paths) has a random stream of its own. Every scheme therefore carries the same
//! flows at the same seed, and a change of, for example, sizes does not change arrivals.

pub mod each;
pub mod sizes;

mod builder;
mod planned;
mod points;

pub(crate) use builder::FlowBuilder;
pub use planned::Planned;
pub(crate) use planned::{by_start, path_text};

use crate::files::Beside;
use crate::spec::topology::{Topology, unknown_name};
use each::Each;
use jobs::{Jobs, Placed};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fmt::Debug;
use std::sync::Arc;
use subak_core::backend::{Injected, PacketSizes, Route};
use subak_core::flows::Narrow;
use subak_core::keys::{Key, ValueType};
use subak_core::quantity::quoted;
use subak_core::section::Section;
use subak_core::{FlowId, IdVec, InputError, LinkId, NodeId, Ns, Policy};

/// Declares a module for each workload, and collects the metadata (`ENTRY`) of each.
macro_rules! workloads {
    ($($module:ident),* $(,)?) => {
        $(pub(crate) mod $module;)*

        /// All workloads.
        const ALL: &[WorkloadInfo] = &[$($module::ENTRY),*];

        const NAMES: &[&str] = &[$($module::ENTRY.name),*];
    };
}

workloads![poisson, churn, incast, permutation, steps, closed, jobs, trace];

/// Largest number of flows of a trial: each takes about 400 bytes of memory.
const MOST_FLOWS: f64 = 5e6;

const KIND: &[Key] = &[Key::required("kind", ValueType::Word(NAMES), "the kind of workload")];

/// Key `subflows`: number of subflows per flow.
const SUBFLOWS: Key = Key::new("subflows", ValueType::Whole(1, 64), "1", "subflows per flow");

/// The metadata of a workload.
struct WorkloadInfo {
    /// Value of the key `kind`.
    name: &'static str,
    /// Description in the documentation.
    about: &'static str,
    /// Keys that only this workload has.
    keys: &'static [Key],
    /// Which keys it shares with other workloads.
    common: Common,
    /// Reads the workload; `None` for invalid keys, whose errors the section records. The second argument: source of
    /// the files that the spec names.
    read: fn(&mut Section, &Beside) -> Read,
}

/// A workload; `None` if any of its keys is invalid.
type Read = Result<Option<Arc<dyn Workload>>, InputError>;

/// Which keys of [`Each`] a workload has.
#[derive(Clone, Copy, PartialEq)]
enum Common {
    All,
    /// Only `connections`: the flows of the workload have explicit weights.
    Connections,
    /// No keys: each flow of the workload sets its own connections and weight.
    None,
}

/// A kind of workload with its keys: it creates the transfers of a run.
pub(crate) trait Workload: Debug + Send + Sync {
    /// Whether flows are between hosts of the network. At least two hosts must then be connected.
    fn is_between_hosts(&self) -> bool {
        true
    }
    /// Whether flows without a path may be omitted, since no other flow depends on them.
    fn may_strand(&self) -> bool {
        false
    }
    /// Checks that the names in the workload exist in the network.
    fn check(&self, topology: &Topology, duration_ns: Ns) -> Result<(), InputError> {
        let _ = (topology, duration_ns);
        Ok(())
    }
    /// Notes for the user on the flows of the workload, one sentence each.
    fn notes(&self, duration_ns: Ns) -> Vec<String> {
        let _ = duration_ns;
        Vec::new()
    }
    /// Keys without effect in a run of this duration, each with the reason.
    fn unread(&self, duration_ns: Ns) -> Vec<(String, &'static str)> {
        let _ = duration_ns;
        Vec::new()
    }
    /// Whether some of the first transfers may start after a run of this duration.
    fn may_be_late(&self, duration_ns: Ns) -> bool {
        let _ = duration_ns;
        false
    }
    /// Whether the spec gives the paths of all flows.
    fn has_paths(&self) -> bool {
        false
    }
    /// Number of hosts that the workload's file announces.
    fn announced_hosts(&self) -> Option<usize> {
        None
    }
    /// Whether some flow starts once part of the flows that it waits for have finished.
    fn waits_for_some(&self) -> bool {
        false
    }
    /// Whether every flow has a size.
    fn has_sizes(&self) -> bool;
    /// Checks that the flows have the keys that `policy` requires.
    fn check_policy(&self, policy: Policy) -> Result<(), InputError> {
        check_sizes(self.has_sizes(), policy)
    }
    /// Whether any flow has a weight other than 1.
    fn has_weights(&self) -> bool {
        false
    }
    /// Smallest weight of a subflow, before random weights: each has an equal part of its flow's weight.
    fn smallest_weight(&self) -> f64 {
        1.0
    }
    /// Number of flows with a deadline, and number of flows with a bandwidth function.
    fn extras(&self) -> [usize; 2] {
        [0, 0]
    }
    /// Whether the sizes of flows are drawn at random.
    fn draws_sizes(&self) -> bool {
        false
    }
    /// Whether data and ACKs share links for every seed.
    fn runs_both_ways(&self) -> bool {
        false
    }
    /// Whether the set of flows changes at a few points in time, between which rates can converge.
    fn settles(&self) -> bool {
        true
    }
    /// Load without incasts, and with incasts; `None` if the workload has no load.
    fn loads(&self) -> Option<(f64, f64)> {
        None
    }
    /// The jobs of the workload, if any.
    fn jobs(&self) -> Option<&Jobs> {
        None
    }
    /// Creates the flows of a seed, in the order of their start times.
    fn flows(&self, builder: &mut FlowBuilder) -> Result<(), InputError>;
    /// Expected number of transfers and bytes on the wire, for the cost estimate.
    fn expected(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> ExpectedFlows;
}

/// Section `workload` of a spec: a workload, and the keys common to all transfers.
#[derive(Debug, Clone)]
pub struct Traffic {
    workload: Arc<dyn Workload>,
    each: Each,
}

impl Traffic {
    /// Reads the section; its files are taken from `files`.
    pub(crate) fn read(value: &Value, files: &Beside) -> Result<Self, InputError> {
        let mut section = Section::of(value, KIND)?;
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
        section.all(workload.map(|workload| Traffic { workload, each }))
    }

    /// Whether any flow has a weight other than 1.
    pub fn has_weights(&self) -> bool {
        self.workload.has_weights() || self.each.has_weights()
    }

    /// Smallest weight that a subflow has at any time.
    pub fn smallest_weight(&self) -> f64 {
        self.workload.smallest_weight() * self.each.smallest_weight()
    }

    /// Texts for warnings about keys of flows that have no effect under `policy` or the scheme. `weights`: the scheme
    /// uses weights.
    pub fn without_effect(&self, policy: Policy, weights: bool) -> Vec<String> {
        let [deadlines, functions] = self.workload.extras();
        let of_policy = |key: &str| format!("have a {key}, which the policy \"{}\" does not use", policy.name());
        let deadline = (deadlines > 0 && !matches!(policy, Policy::Edf { .. }))
            .then(|| format!("{deadlines} of the flows {}", of_policy("deadline")));
        let function = (functions > 0 && policy != Policy::BandwidthFunction)
            .then(|| format!("{functions} of the flows {}", of_policy("bandwidth_function")));
        let weight = match (self.has_weights(), policy) {
            (false, _) => None,
            (true, _) if !weights => Some("flows have weights, which the scheme does not use".to_string()),
            (true, Policy::BandwidthFunction) => Some(format!("flows {}", of_policy("weight"))),
            (true, Policy::AlphaFair { alpha: 0.0 }) => {
                Some("flows have weights, which alpha = 0 does not use: it maximizes the sum of rates".to_string())
            }
            (true, _) => None,
        };
        [deadline, function, weight].into_iter().flatten().collect()
    }

    /// Checks that the hosts and links in the workload exist in the network.
    pub fn check(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> Result<(), InputError> {
        if !self.workload.is_between_hosts() {
            self.workload.check(topology, duration_ns)?;
            return self.check_some_path(topology, packet, duration_ns);
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
        self.workload.check(topology, duration_ns)?;
        let flows = self.expected(topology, packet, duration_ns).flows;
        if flows > MOST_FLOWS {
            return Err(InputError::new(
                "",
                format!("some {flows:.1e} flows would start"),
                "shorten the run or lower the load",
            ));
        }
        self.check_some_path(topology, packet, duration_ns)
    }

    /// An error if no flow of seed 1 has a path.
    fn check_some_path(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> Result<(), InputError> {
        if !self.workload.may_strand() || topology.is_whole() {
            return Ok(());
        }
        self.plan(topology, 1, packet, &[], duration_ns).map(drop).map_err(|e| match e.place.strip_prefix("workload") {
            Some(rest) => InputError { place: rest.trim_start_matches('.').to_string(), ..e },
            None => e,
        })
    }

    /// Checks that the flows have the keys that `policy` requires.
    pub(crate) fn check_policy(&self, policy: Policy) -> Result<(), InputError> {
        self.workload.check_policy(policy)
    }

    /// Flows of `seed`, in the order of their start times. `faults`: some raise link capacities, on which workloads may
    /// depend.
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
        let mut builder = FlowBuilder::new(topology, seed, packet, faults, duration_ns);
        builder.strands = self.workload.may_strand();
        self.workload.flows(&mut builder)?;
        let (stranded, narrow, late) = (builder.stranded, builder.narrow, builder.late);
        if let (true, false) = (builder.flows.is_empty(), stranded.is_empty()) {
            let mut strict = FlowBuilder::new(topology, seed, packet, faults, duration_ns);
            let named = self.workload.flows(&mut strict).err();
            let what = format!("none of the {} flows has a path to its destination", stranded.len());
            let fault = named.unwrap_or_else(|| InputError::new("", "", "connect the hosts, or choose other ends"));
            return Err(InputError {
                what: [fault.what, what].join(": ").trim_start_matches(": ").to_string(),
                ..fault
            });
        }
        let flows = self.each.apply(builder.flows, seed)?;
        match flows.len() as f64 > MOST_FLOWS {
            true => Err(InputError::new("workload", format!("there are {} flows", flows.len()), "shorten the run")),
            false => Ok(Plan { flows, stranded, narrow, late }),
        }
    }

    /// Whether some of the first transfers may start after a run of this duration.
    pub(crate) fn may_be_late(&self, duration_ns: Ns) -> bool {
        self.workload.may_be_late(duration_ns)
    }

    /// Keys `workload.NAME` without effect in a run of this duration, each with the reason.
    pub(crate) fn unread(&self, duration_ns: Ns) -> impl Iterator<Item = (String, &'static str)> {
        self.workload.unread(duration_ns).into_iter().map(|(key, why)| (format!("workload.{key}"), why))
    }

    /// Notes for the user on the flows of the workload, one sentence each.
    pub(crate) fn notes(&self, topology: &Topology, duration_ns: Ns) -> Vec<String> {
        let hosts = topology.hosts().len();
        let other = self.workload.announced_hosts().filter(|&announced| announced != hosts);
        let other = other.map(|n| format!("the file announces {n} hosts, and the network has {hosts}"));
        self.workload.notes(duration_ns).into_iter().chain(other).collect()
    }

    /// Whether the spec gives the paths of all flows.
    pub(crate) fn has_paths(&self) -> bool {
        self.workload.has_paths()
    }

    /// Whether the workload has jobs.
    pub(crate) fn has_jobs(&self) -> bool {
        self.workload.jobs().is_some()
    }

    /// The jobs of `seed`, if the workload has any.
    pub fn placed(&self, topology: &Topology, seed: u64, packet: PacketSizes) -> Result<Vec<Placed>, InputError> {
        self.workload.jobs().map_or(Ok(Vec::new()), |jobs| jobs.placed(topology, seed, packet))
    }

    /// Names of the caller's functions that set weights.
    pub(crate) fn callables(&self) -> impl Iterator<Item = &str> {
        self.workload.jobs().into_iter().flat_map(Jobs::callables)
    }

    /// Whether every flow has a size.
    pub fn has_sizes(&self) -> bool {
        self.workload.has_sizes()
    }

    /// Whether the sizes of flows are drawn at random.
    pub fn draws_sizes(&self) -> bool {
        self.workload.draws_sizes()
    }

    /// Whether data and ACKs share links. With random pairs the answer is yes for every seed.
    pub fn runs_both_ways(&self, flows: &IdVec<FlowId, Planned>) -> bool {
        let links = |way: fn(&Route) -> &Vec<LinkId>| {
            flows.iter().flat_map(|f| &f.plan.routes).flat_map(way).copied().collect::<HashSet<LinkId>>()
        };
        self.workload.runs_both_ways() || !links(|r| &r.forward).is_disjoint(&links(|r| &r.back))
    }

    /// Whether the workload has a load that half of the hosts send to the other half.
    pub(crate) fn is_one_way(&self) -> bool {
        self.workload.loads().is_some() && !self.workload.runs_both_ways()
    }

    /// Load without incasts, and with incasts; `None` if the workload has no load.
    pub(crate) fn loads(&self) -> Option<(f64, f64)> {
        self.workload.loads()
    }

    /// Expected flows and bytes on the wire, for a cost estimate.
    pub fn expected(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> ExpectedFlows {
        let ExpectedFlows { flows, live, wire_bytes } = self.workload.expected(topology, packet, duration_ns);
        let connections = self.each.connections as f64;
        ExpectedFlows { flows: flows * connections, live: live * connections, wire_bytes }
    }

    /// Whether the set of flows changes at a few points in time, between which rates can converge.
    pub fn settles(&self) -> bool {
        self.workload.settles()
    }
}

/// The flows of a seed.
pub(crate) struct Plan {
    /// Flows in the order of their start times.
    pub flows: IdVec<FlowId, Planned>,
    /// Flows without a path.
    pub stranded: Vec<Planned>,
    /// Flows with fewer paths than subflows.
    pub narrow: Narrow,
    /// Chains of dependent transfers that are omitted, since they start after the run, and their number with the others.
    pub late: (usize, usize),
}

/// Estimated load of a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpectedFlows {
    /// Number of flows.
    pub flows: f64,
    /// Maximum or mean number of concurrent flows.
    pub live: f64,
    /// Bytes on the wire that the sources send.
    pub wire_bytes: f64,
}

/// Estimate for `flows` concurrent flows of `size` bytes; flows without a size send `endless` bytes in total.
fn sized(flows: f64, size: Option<u64>, packet: PacketSizes, endless: f64) -> ExpectedFlows {
    let wire_bytes = size.map_or(endless, |size| packet.wire_bytes(size) as f64 * flows);
    ExpectedFlows { flows, live: flows, wire_bytes }
}

/// An error if `policy` requires sizes and the flows lack them, or keys that only individually listed flows can have.
fn check_sizes(sized: bool, policy: Policy) -> Result<(), InputError> {
    let (field, hint) = match policy {
        Policy::MaxMin | Policy::AlphaFair { .. } => return Ok(()),
        Policy::Fct { .. } | Policy::Srpt { .. } if sized => return Ok(()),
        Policy::Fct { .. } | Policy::Srpt { .. } => ("size", "use flows with sizes: poisson, or a size"),
        Policy::Edf { .. } => ("deadline", "list the flows (workload \"steps\"), each with its deadline"),
        Policy::BandwidthFunction => {
            ("bandwidth_function", "list the flows (workload \"steps\"), each with its bandwidth_function")
        }
    };
    let what = format!("policy \"{}\" needs each flow's {field}, which this workload does not give", policy.name());
    Err(InputError::new("policy.kind", what, hint))
}

/// A note that `late` of `all` flows are omitted, since they start after the run.
fn left_out(late: usize, all: usize) -> Option<String> {
    (late > 0).then(|| format!("{late} of {all} flows start at run.duration or later, and are left out"))
}

fn host(topology: &Topology, name: &str) -> Result<NodeId, InputError> {
    let known = || topology.hosts().iter().map(|&h| topology.network().nodes()[h].name.as_str()).collect::<Vec<_>>();
    match topology.network().find_node(name) {
        Some(node) if topology.is_host(node) => Ok(node),
        Some(_) => {
            let InputError { hint, .. } = unknown_name("", "host", &known());
            Err(InputError::new("", format!("node {} is no host", quoted(name)), hint))
        }
        None => Err(unknown_name(name, "host", &known())),
    }
}

/// The keys of every workload.
pub(super) fn keys() -> Vec<&'static [Key]> {
    ALL.iter().flat_map(|entry| [entry.keys, Each::keys(entry.common)]).collect()
}

/// Descriptions of all workloads: `kind`, `about` and `keys` of each, with the JSON Schema of its table.
pub fn described() -> Value {
    let one = |entry: &WorkloadInfo| {
        let keys: Vec<Key> = entry.keys.iter().chain(Each::keys(entry.common)).copied().collect();
        let own: Vec<Value> = entry.keys.iter().map(Key::described).collect();
        json!({"kind": entry.name, "about": entry.about, "keys": own, "schema": subak_core::keys::table(&keys)})
    };
    ALL.iter().map(one).collect()
}
