//! Workloads: start times, sizes, sources and destinations of flows.
//!
//! Each purpose (arrivals, sizes, pairs, paths) has a random stream of its own. Every scheme therefore carries the same
//! flows at the same seed, and a change of, for example, sizes does not change arrivals.

pub mod each;
pub mod sizes;

mod builder;
mod planned;
mod points;
mod traffic;

pub(crate) use builder::FlowBuilder;
pub use planned::Planned;
pub(crate) use planned::{by_start, path_text};
pub use traffic::Traffic;
pub(crate) use traffic::{Plan, is_mix};

use crate::files::Beside;
use crate::spec::topology::{Topology, unknown_name};
use each::Each;
use jobs::Jobs;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::sync::Arc;
use subak_core::backend::PacketSizes;
use subak_core::case::FLOW_UTILITY;
use subak_core::flows::FlowUtility;
use subak_core::keys::{Key, Low, ValueType};
use subak_core::quantity::quoted;
use subak_core::section::Section;
use subak_core::{InputError, NodeId, Ns, Policy};

/// Declares a module for each workload, and collects the metadata (`ENTRY`) of each.
macro_rules! workloads {
    ($($module:ident),* $(,)?) => {
        $(pub(crate) mod $module;)*

        /// All workloads.
        const ALL: &[WorkloadInfo] = &[$($module::ENTRY),*];

        const NAMES: &[&str] = &[$($module::ENTRY.name),*];
    };
}

workloads![poisson, churn, incast, permutation, steps, closed, collective, jobs, trace];

/// Largest number of flows of a trial: each takes about 400 bytes of memory.
const MOST_FLOWS: f64 = 5e6;

const NAME: Key = Key::open(
    "name",
    ValueType::Text,
    "none",
    "name of the flows' class, which a workload in a list of several has to have",
);

const SCHEME: Key =
    Key::open("scheme", ValueType::Text, "the run's", "label of the `[[scheme]]` of its flows, beside other schemes");

const MOVED: Key = Key::new(
    "moved",
    ValueType::Number(Low::From(0.0), 1.0),
    "1",
    "fraction of the hosts, drawn from the seed, whose flows have `scheme`; flows of the other hosts have the run's",
);

const UTILITY: Key = Key::open(
    "utility",
    FLOW_UTILITY,
    "none",
    "for the policy `utility`: the utility of its flows, as points `[[bit/s, U'], ...]` or as a policy",
);

const KIND: &[Key] =
    &[Key::required("kind", ValueType::Word(NAMES), "the kind of workload"), NAME, SCHEME, MOVED, UTILITY];

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
    /// Checks that the flows have the keys that `policy` requires. `default`: the utility of flows that state none.
    fn check_policy(&self, policy: Policy, default: Option<&FlowUtility>) -> Result<(), InputError> {
        match (policy, default) {
            (Policy::Utility, Some(FlowUtility::Curve(_))) => Ok(()),
            (Policy::Utility, Some(FlowUtility::Of(own))) => check_sizes(self.has_sizes(), *own),
            _ => check_sizes(self.has_sizes(), policy),
        }
    }
    /// Whether any flow has a weight other than 1.
    fn has_weights(&self) -> bool {
        false
    }
    /// Smallest weight of a subflow, before random weights: each has an equal part of its flow's weight.
    fn smallest_weight(&self) -> f64 {
        1.0
    }
    /// Number of flows with a deadline, with a bandwidth function, and with a utility.
    fn extras(&self) -> [usize; 3] {
        [0; 3]
    }
    /// The policies that flows state under `utility`.
    fn policies(&self) -> Vec<Policy> {
        Vec::new()
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
        Policy::BandwidthFunction { .. } => {
            ("bandwidth_function", "list the flows (workload \"steps\"), each with its bandwidth_function")
        }
        Policy::Utility => {
            ("utility", "give the workload a utility, such as utility = {kind = \"alpha-fair\", alpha = 2}")
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
    ALL.iter().flat_map(|entry| [entry.keys, Each::keys(entry.common)]).chain([KIND]).collect()
}

/// Descriptions of all workloads: `kind`, `about` and `keys` of each, with the JSON Schema of its table.
pub fn described() -> Value {
    let one = |entry: &WorkloadInfo| {
        let keys: Vec<Key> =
            entry.keys.iter().chain(Each::keys(entry.common)).copied().chain([NAME, SCHEME, MOVED, UTILITY]).collect();
        let own: Vec<Value> = entry.keys.iter().map(Key::described).collect();
        json!({"kind": entry.name, "about": entry.about, "keys": own, "schema": subak_core::keys::table(&keys)})
    };
    ALL.iter().map(one).collect()
}
