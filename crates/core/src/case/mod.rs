//! One allocation problem: a network, its flows and the policy, read from JSON, TOML or a value.
//!
//! Every fault names its place; unknown keys are refused everywhere. A case without flows is fine, and so is one
//! without a network if it has no flows.

mod flow;
mod network;
mod policy;

pub use flow::{bandwidth_function_from_value, deadline_from_value};
pub use network::{ReadFile, network_from_text, network_from_value, routing_from_value};
pub use policy::policy_from_value;

use crate::document::{Format, check_keys, json, list, table, toml};
use crate::formats::flows as flow_files;
use crate::quantity::shown;
use crate::route::{Metric, Routing};
use crate::{Fault, Flows, Network, Policy};
use flow::FlowReader;
use serde_json::Value;

/// One allocation problem.
#[derive(Debug, Clone)]
pub struct Case {
    /// The links.
    pub network: Network,
    /// The flows over them.
    pub flows: Flows,
    /// What is wanted.
    pub policy: Policy,
}

const KEYS: [&str; 5] = ["schema", "network", "flows", "policy", "routing"];

impl Case {
    /// The case that `text` holds. `read_file` is asked for the network's file, if the case names one.
    ///
    /// The flows of a JSON case are read one by one, so that a million of them need little more than they hold.
    pub fn parse(text: &str, format: Format, read_file: &mut ReadFile) -> Result<Case, Fault> {
        if format == Format::Toml {
            return Case::from_value(&toml::parse(text)?, read_file);
        }
        if flow_files::may_be_a_table(text) {
            return Case::from_value(&json::parse(text)?, read_file);
        }
        let head = json::without(text, "flows")?;
        let (network, policy, routing) = read_head(&head, read_file)?;
        let mut flows = FlowReader::new(&network, policy, routing);
        json::each(text, "flows", &mut |i, flow| flows.push(i, flow))?;
        let flows = flows.finish();
        Ok(Case { network, flows, policy })
    }

    /// The case that `value` describes; see [`Case::parse`].
    pub fn from_value(value: &Value, read_file: &mut ReadFile) -> Result<Case, Fault> {
        let value = &*flow_files::resolved(value, read_file)?;
        let (network, policy, routing) = read_head(value, read_file)?;
        let flows = flows_from_value(value, &network, policy, routing)?;
        Ok(Case { network, flows, policy })
    }

    /// The case of the flows, policy and routing in `value`, over a network that is there already and is routed by
    /// `metric` where `value` does not say.
    pub fn over(network: Network, metric: Metric, value: &Value) -> Result<Case, Fault> {
        let map = table(value, "a case", "{\"flows\": [...], \"policy\": {...}}")?;
        check_keys(map, &["flows", "policy", "routing"])?;
        let policy = map.get("policy").map_or(Ok(Policy::MaxMin), policy_from_value).map_err(|e| e.below("policy"))?;
        let routing = routing_from_value(map.get("routing"), metric).map_err(|e| e.below("routing"))?;
        let flows = flows_from_value(value, &network, policy, routing)?;
        Ok(Case { network, flows, policy })
    }
}

/// The list of `flows` in `value`, over `network`; none where there is no such list.
pub fn flows_from_value(value: &Value, network: &Network, policy: Policy, routing: Routing) -> Result<Flows, Fault> {
    let mut flows = FlowReader::new(network, policy, routing);
    if let Some(given) = value.get("flows") {
        let given = list(given, "the list of flows", "\"flows\": [...]").map_err(|e| e.below("flows"))?;
        given.iter().enumerate().try_for_each(|(i, flow)| flows.push(i, flow))?;
    }
    Ok(flows.finish())
}

/// Everything but the flows.
fn read_head(value: &Value, read_file: &mut ReadFile) -> Result<(Network, Policy, Routing), Fault> {
    let map = table(value, "a case", "{\"network\": ..., \"flows\": [...], \"policy\": {...}}")?;
    check_keys(map, &KEYS)?;
    if let Some(schema) = map.get("schema").filter(|schema| schema.as_u64() != Some(1)) {
        return Err(Fault::new("schema", format!("unknown schema {}", shown(schema)), "give 1, or leave it away"));
    }
    let read = |value| network_from_value(value, read_file).map_err(|e| e.below("network"));
    let (network, metric) = map.get("network").map_or_else(|| Ok(Default::default()), read)?;
    let policy = map.get("policy").map_or(Ok(Policy::MaxMin), policy_from_value).map_err(|e| e.below("policy"))?;
    let routing = routing_from_value(map.get("routing"), metric).map_err(|e| e.below("routing"))?;
    Ok((network, policy, routing))
}
