//! One allocation problem: a network, its flows and the policy, read from JSON, TOML or a parsed value.
//!
//! Every error names its place. Unknown keys are errors. A case may have no flows; then it needs no network.

mod columns;
mod flow;
mod network;
mod policy;

pub use columns::{CaseColumn, FlowColumns, NO_WORD, PathColumns};
pub use flow::{bandwidth_function_from_value, deadline_from_value};
pub use network::{ROUTING, ReadFile, network_from_text, network_from_value, routing, routing_from_value, symmetric};
pub use policy::{FLOW_UTILITY, flow_utility_from_value};
pub use policy::{policies_described, policy_from_value};

use crate::document::{Format, check_keys, json, list, table, toml};
use crate::flows::Extra;
use crate::formats::flows as flow_files;
use crate::keys::{self, Key, ValueType};
use crate::quantity::{quoted, shown};
use crate::route::{Metric, Routing, SubflowPaths};
use crate::{Flows, InputError, InputErrors, Network, Policy, Utility, Why};
use flow::FlowReader;
use serde_json::{Map, Value, json};

/// Callback that reads a file of flows in columns.
pub type ReadColumns<'a> = dyn FnMut(&str) -> Result<FlowColumns, InputError> + 'a;

/// One allocation problem.
#[derive(Debug, Clone)]
pub struct Case {
    /// The links.
    pub network: Network,
    /// The flows over them.
    pub flows: Flows,
    /// The allocation policy.
    pub policy: Policy,
}

/// Keys of a case.
const KEYS: [Key; 5] = [
    Key::new("schema", ValueType::Whole(1, 1), "1", "version of this form"),
    Key::open("network", ValueType::Other("network", any), "no links", "the network"),
    Key::open("flows", ValueType::Other("flows", any), "none", "the flows: a list, or a file of them"),
    Key::open("policy", ValueType::Other("policy", any), "max-min", "objective of the allocation"),
    Key::open("routing", ValueType::Table(network::OF_CASE), "shortest paths", "selection of paths"),
];

fn any() -> Value {
    Value::Object(Map::new())
}

/// JSON Schema of a case, of a link, a flow and each kind of policy, and their keys for help.
pub fn described() -> Value {
    let one = |keys: &[Key]| {
        let told: Vec<Value> = keys.iter().map(Key::described).collect();
        json!({"keys": told, "schema": keys::table(keys)})
    };
    json!({
        "case": one(&KEYS),
        "link": one(&network::LINK),
        "flow": one(&flow::FLOW),
        "policy": policies_described(),
    })
}

impl Case {
    /// Parses a case. `read_file` reads the network's file, if the case names one.
    ///
    /// Flows of a JSON case are parsed one by one, which keeps memory near the size of the resulting table.
    pub fn parse(text: &str, format: Format, read_file: &mut ReadFile) -> Result<Case, InputError> {
        Case::parse_with(text, format, read_file, &mut no_columns)
    }

    /// Like [`Case::parse`]; `read_columns` reads a file of flows in columns, if the case names one.
    pub fn parse_with(
        text: &str,
        format: Format,
        read_file: &mut ReadFile,
        read_columns: &mut ReadColumns,
    ) -> Result<Case, InputError> {
        let whole = match format {
            Format::Toml => Some(toml::parse(text)?),
            Format::Json if flow_files::may_be_a_table(text) => Some(json::parse(text)?),
            Format::Json => None,
        };
        if let Some(value) = whole {
            let Some((path, unit)) = flow_files::of_columns(&value)? else {
                return Case::from_value(&value, read_file);
            };
            let columns = read_columns(path).map_err(|e| e.below("flows.file"))?;
            if columns.is_empty() {
                return Err(
                    InputError::new("flows.file", "the file has no flows", "give a row for each flow").in_file(path)
                );
            }
            return Head::read(&value, read_file)?.case(|flows| flows.push_columns(&columns, unit));
        }
        let head = Head::read(&json::without(text, "flows")?, read_file)?;
        head.case(|flows| json::each(text, "flows", &mut |i, flow| flows.push(i, flow)))
    }

    /// Reads a case from a value; see [`Case::parse`].
    pub fn from_value(value: &Value, read_file: &mut ReadFile) -> Result<Case, InputError> {
        let value = &*flow_files::resolved(value, read_file)?;
        Head::read(value, read_file)?.case(|flows| each_flow(value, flows))
    }

    /// Reads flows, policy and routing from `value`, for an existing network. `metric` is the default routing metric.
    pub fn over(network: Network, metric: Metric, value: &Value) -> Result<Case, InputError> {
        let map = table(value, "a case", "{\"flows\": [...], \"policy\": {...}}")?;
        let mut faults = InputErrors::default();
        faults.keep(check_keys(map, &["flows", "policy", "routing"]));
        Head::over(Some((network, metric)), map, faults).case(|flows| each_flow(value, flows))
    }

    /// Like [`Case::over`], with the flows in columns. Plain numbers of demand are in `unit`.
    pub fn over_columns(
        network: Network,
        metric: Metric,
        value: &Value,
        columns: &FlowColumns,
        unit: Option<&str>,
    ) -> Result<Case, InputError> {
        let map = table(value, "a case", "{\"policy\": {...}}")?;
        let mut faults = InputErrors::default();
        faults.keep(check_keys(map, &["policy", "routing"]));
        Head::over(Some((network, metric)), map, faults).case(|flows| flows.push_columns(columns, unit))
    }
}

impl Utility {
    /// The utility of flow `f` of `case`; see [`Utility::under`].
    pub fn of(case: &Case, f: usize) -> Result<Self, InputError> {
        let none = Extra::default();
        let extra = case.flows.extra(f).unwrap_or(&none);
        Utility::under(case.policy, case.flows.weight()[f], extra).map_err(|e| match e.place.starts_with("policy") {
            true => e,
            false => e.below(&format!("flows[{f}]")),
        })
    }
}

impl Case {
    /// Notes on how the case was read, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.network.notes();
        let (stranded, all) = (self.flows.stranded().len(), self.flows.len() + self.flows.stranded().len());
        if let Some(first) = self.flows.stranded().first() {
            let why = match first.why {
                Why::NoPath => "no path leads to its destination",
                Why::LinkDown => "each of its paths crosses a link of capacity 0",
            };
            notes.push(format!(
                "{stranded} of {all} flows cannot send and have rate 0, the first of them {}: {why}",
                quoted(&first.id)
            ));
        }
        notes.extend(self.unused());
        notes.extend(self.flows.narrow().warning(&format!("{all} flows")));
        notes
    }

    /// Warnings about flow fields that the policy does not use.
    fn unused(&self) -> Vec<String> {
        let extras: Vec<_> = (0..self.flows.len()).filter_map(|f| self.flows.extra(f)).collect();
        let unused = |has: fn(&Extra) -> bool, used: fn(Policy) -> bool| {
            extras.iter().filter(|extra| has(extra) && !used(extra.policy(self.policy))).count()
        };
        let weighted = self.flows.weight().iter().filter(|weight| **weight != 1.0).count();
        let keys = [
            ("weight", if self.policy.is_by_functions() { weighted } else { 0 }),
            ("size", unused(|e| e.size_bytes.is_some(), Policy::is_by_size)),
            ("deadline", unused(|e| e.deadline_s.is_some(), |p| matches!(p, Policy::Edf { .. }))),
            ("bandwidth_function", unused(|e| e.bandwidth_function.is_some(), Policy::is_by_functions)),
            ("utility", unused(|e| e.utility.is_some(), |_| false) * usize::from(self.policy != Policy::Utility)),
        ];
        let (all, policy) = (self.flows.len(), self.policy.name());
        let of_policy = keys.into_iter().filter(|&(_, count)| count > 0).map(|(key, count)| {
            format!("{count} of {all} flows have a {key}, which the policy \"{policy}\" does not use")
        });
        let sums_rates = self.policy == Policy::AlphaFair { alpha: 0.0 } && weighted > 0;
        let of_alpha = sums_rates.then(|| {
            format!(
                "{weighted} of {all} flows have a weight, which alpha = 0 does not use: it maximizes the sum of rates"
            )
        });
        of_policy.chain(of_alpha).collect()
    }
}

fn no_columns(_path: &str) -> Result<FlowColumns, InputError> {
    Err(InputError::new("", "files of columns are not read here", "name a .csv or a .json"))
}

/// The flows of the list `flows` in `value`, over `network`; none if there is no such list.
pub fn flows_from_value(
    value: &Value,
    network: &Network,
    policy: Policy,
    routing: Routing,
) -> Result<Flows, InputError> {
    let mut flows = FlowReader::new(Some(network), policy, routing);
    each_flow(value, &mut flows)?;
    flows.finish()
}

fn each_flow(value: &Value, flows: &mut FlowReader) -> Result<(), InputError> {
    let Some(given) = value.get("flows") else { return Ok(()) };
    let given = list(given, "the list of flows", "\"flows\": [...]").map_err(|e| e.below("flows"))?;
    given.iter().enumerate().try_for_each(|(i, flow)| flows.push(i, flow))
}

/// The valid parts of a case, except its flows.
struct Head {
    network: Option<Network>,
    policy: Policy,
    routing: Routing,
    /// Whether the case sets a routing key.
    says_routing: bool,
    faults: InputErrors,
}

impl Head {
    fn read(value: &Value, read_file: &mut ReadFile) -> Result<Head, InputError> {
        let map = table(value, "a case", "{\"network\": ..., \"flows\": [...], \"policy\": {...}}")?;
        let mut faults = InputErrors::default();
        faults.keep(check_keys(map, &keys::names(&KEYS)));
        if let Some(schema) = map.get("schema").filter(|schema| schema.as_u64() != Some(1)) {
            faults.push(InputError::new(
                "schema",
                format!("unknown schema {}", shown(schema)),
                "give 1, or leave it away",
            ));
        }
        let read = |value| network_from_value(value, read_file).map_err(|e| e.below("network"));
        let network = faults.keep(map.get("network").map_or_else(|| Ok(Default::default()), read));
        Ok(Head::over(network, map, faults))
    }

    fn over(network: Option<(Network, Metric)>, map: &Map<String, Value>, mut faults: InputErrors) -> Head {
        let policy = map.get("policy").map_or(Ok(Policy::MaxMin), policy_from_value).map_err(|e| e.below("policy"));
        let policy = faults.keep(policy).unwrap_or(Policy::MaxMin);
        let metric = network.as_ref().map_or(Metric::Hops, |known| known.1);
        let routing = routing_from_value(map.get("routing"), metric).map_err(|e| e.below("routing"));
        let routing = faults.keep(routing).unwrap_or_default();
        let says_routing = map.contains_key("routing");
        Head { network: network.map(|known| known.0), policy, routing, says_routing, faults }
    }

    /// Reads the flows with `read` and returns the case, or all errors of its head and its flows.
    fn case(self, read: impl FnOnce(&mut FlowReader) -> Result<(), InputError>) -> Result<Case, InputError> {
        let Head { network, policy, routing, says_routing, mut faults } = self;
        let mut flows = FlowReader::new(network.as_ref(), policy, routing);
        faults.keep(read(&mut flows));
        if says_routing && flows.routes_none() {
            let hint = "remove routing, or give flows src and dst in place of paths";
            faults.push(InputError::new("routing", "no flow is routed: each lists its links", hint));
        } else if routing.paths != SubflowPaths::Equal && flows.pools_none() {
            let hint = "give flows subflows = 2 or more, or remove it";
            faults.push(InputError::new("routing.paths", "it chooses paths of subflows, and each flow has one", hint));
        }
        let flows = faults.keep(flows.finish());
        let case = network.zip(flows).map(|(network, flows)| Case { network, flows, policy });
        faults.or(case)
    }
}
