//! Python objects of the state at nodes and of the controller: what they know of the network.

use super::views::fields_of;
use pyo3::prelude::*;
use subak_core::scheme::{ControllerPlace, NodeInfo};
use subak_core::{LinkId, Network, NodeKind, Ns};

/// A node as its state machine sees it.
#[pyclass(frozen, get_all, module = "subak", name = "NodeInfo")]
pub struct NodeView {
    node: u32,
    is_host: bool,
    out: Vec<u32>,
    into: Vec<u32>,
    seed: u64,
}

#[pymethods]
impl NodeView {
    fn __repr__(view: &Bound<'_, Self>) -> PyResult<String> {
        fields_of(view.as_any())
    }
}

/// Numbers of links.
fn numbers_of_links(links: &[LinkId]) -> Vec<u32> {
    links.iter().map(|l| l.0).collect()
}

impl NodeView {
    pub fn of(info: &NodeInfo) -> Self {
        NodeView {
            node: info.node.0,
            is_host: info.is_host,
            out: numbers_of_links(&info.out),
            into: numbers_of_links(&info.into),
            seed: info.seed,
        }
    }
}

/// Location and links of the controller.
#[pyclass(frozen, get_all, module = "subak", name = "ControllerPlace")]
pub struct PlaceView {
    host: Option<u32>,
    hosts: usize,
    into_bps: f64,
    out_bps: f64,
}

#[pymethods]
impl PlaceView {
    fn __repr__(view: &Bound<'_, Self>) -> PyResult<String> {
        fields_of(view.as_any())
    }
}

impl PlaceView {
    pub fn of(place: &ControllerPlace) -> Self {
        let ControllerPlace { host, hosts, into_bps, out_bps } = *place;
        PlaceView { host: host.map(|node| node.0), hosts, into_bps, out_bps }
    }
}

/// A directed link of the network, as the controller sees it.
#[pyclass(frozen, get_all, from_py_object, module = "subak", name = "LinkInfo")]
#[derive(Clone)]
pub struct LinkInfoView {
    id: String,
    from_: Option<u32>,
    to: Option<u32>,
    capacity_bps: f64,
    delay_ns: Ns,
}

#[pymethods]
impl LinkInfoView {
    fn __repr__(view: &Bound<'_, Self>) -> PyResult<String> {
        fields_of(view.as_any())
    }
}

/// The network, as the controller sees it: nodes and links are numbers, in the order of these lists.
#[pyclass(frozen, get_all, module = "subak", name = "NetworkInfo")]
pub struct NetworkView {
    nodes: Vec<String>,
    hosts: Vec<u32>,
    links: Vec<LinkInfoView>,
}

#[pymethods]
impl NetworkView {
    fn __repr__(&self) -> String {
        let (nodes, hosts, links) = (self.nodes.len(), self.hosts.len(), self.links.len());
        format!("NetworkInfo({nodes} nodes, {hosts} hosts, {links} links)")
    }
}

impl NetworkView {
    pub fn of(network: &Network) -> Self {
        let nodes = network.nodes();
        let hosts = nodes.iter_enumerated().filter(|(_, node)| node.kind == NodeKind::Host);
        let link = |link: &subak_core::Link| LinkInfoView {
            id: link.id.clone(),
            from_: link.from.map(|node| node.0),
            to: link.to.map(|node| node.0),
            capacity_bps: link.capacity_bps,
            delay_ns: link.delay_ns,
        };
        NetworkView {
            nodes: nodes.iter().map(|node| node.name.to_string()).collect(),
            hosts: hosts.map(|(node, _)| node.0).collect(),
            links: network.links().iter().map(link).collect(),
        }
    }
}
