//! Reads the section `[controller]`: `at = "h0"` places the controller at a node of the network. A controller with
//! links of its own needs a node of its own in `[network]`.

use crate::spec::topology::{Topology, unknown_name};
use serde_json::Value;
use subak_core::backend::Route;
use subak_core::keys::{Key, ValueType};
use subak_core::quantity::quoted;
use subak_core::section::Section;
use subak_core::{InputError, NodeId};

/// Keys of `[controller]`.
pub(super) const KEYS: &[Key] =
    &[Key::required("at", ValueType::Text, "the node that the controller is at, such as \"h0\"")];

/// Path of each host to the controller and back, by the routing of the spec.
pub(crate) fn read(value: &Value, topology: &Topology) -> Result<Vec<(NodeId, Route)>, InputError> {
    let mut section = Section::of(value, KEYS)?;
    let nodes = topology.network().nodes();
    let at = section.convert("at", |name: String| {
        let names = || nodes.iter().map(|n| n.name.as_str()).collect::<Vec<_>>();
        topology.network().find_node(&name).ok_or_else(|| unknown_name(&name, "node", &names()))
    });
    let at = section.all(at)?;
    let mut router = topology.router();
    let mut ways = Vec::with_capacity(topology.hosts().len());
    for &host in topology.hosts() {
        let way = match host == at {
            true => Route { forward: Vec::new(), back: Vec::new() },
            false => router.route(host, at, 0).map_err(|e| e.below("at"))?,
        };
        ways.push((host, way));
    }
    Ok(ways)
}

/// Hint for a missing controller. It recommends a node of its own, since a host's link also carries data.
pub(crate) fn hint(topology: &Topology) -> String {
    let network = topology.network();
    if network.find_node("controller").is_some() {
        return "name its node: [controller] at = \"controller\"".into();
    }
    if network.find_node("spine0").or_else(|| network.find_node("core0")).is_some() {
        return "give it a node of its own: controller_rate = \"40Gbps\" in [network], and [controller] at = \"controller\"".into();
    }
    let host = topology.hosts().first().map_or("h0", |&host| network.nodes()[host].name.as_str());
    format!("name its node: [controller] at = {}; the data of that host then shares its link", quoted(host))
}
