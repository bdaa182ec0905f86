//! Python class of a network.

use crate::errors::OrInputError;
use crate::inputs::{read, utf8};
use crate::table::Table;
use arrow_array::{ArrayRef, Float64Array, StringArray, UInt64Array};
use pyo3::prelude::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use subak_core::document::json;
use subak_core::route::Metric;
use subak_core::{Link, NodeId, NodeKind};

/// Directed links between named nodes.
#[pyclass(subclass, module = "subak", name = "Network")]
pub struct PyNetwork {
    /// The network.
    pub network: subak_core::Network,
    /// Metric of shortest-path routing for flows without an explicit path.
    pub metric: Metric,
}

#[pymethods]
impl PyNetwork {
    /// Parses the network in `json`; a file that it names is relative to `folder`.
    #[new]
    fn new(py: Python<'_>, json: &[u8], folder: PathBuf) -> PyResult<Self> {
        parse(py, json, &folder)
    }

    /// Adds the directed link in `json`, in the form of a case; a new node is a host.
    fn add(&mut self, py: Python<'_>, json: &[u8]) -> PyResult<()> {
        let alone = parse(py, json, Path::new("."))?.network;
        for link in alone.links() {
            if self.network.is_down(&link.id) {
                let what = format!("a second link has the id \"{}\"", link.id);
                let fault = subak_core::InputError::new("id", what, "give every link an id of its own");
                return Err(fault).or_input_error(py);
            }
            let mut end =
                |node: Option<NodeId>| node.map(|n| self.network.node(&alone.nodes()[n].name, NodeKind::Host));
            let (from, to) = (end(link.from), end(link.to));
            self.network.add(Link { from, to, ..link.clone() }).or_input_error(py)?;
        }
        Ok(())
    }

    /// Names of the hosts, in the network's order.
    #[getter]
    fn hosts(&self) -> Vec<&str> {
        self.network.hosts().map(|n| self.node_name(n)).collect()
    }

    /// Names of all nodes, in the network's order.
    #[getter]
    fn nodes(&self) -> Vec<&str> {
        self.network.nodes().iter().map(|n| n.name.as_str()).collect()
    }

    /// Warnings of the file's reader, one sentence each: edges with a default capacity, links that are down,
    /// nodes that were taken for hosts.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        let guess = self.network.guess_note().filter(|_| self.network.guesses_some());
        self.network.notes().into_iter().chain(guess).collect()
    }

    /// One row per directed link, in the network's order: ``id``, ``from``, ``to``, ``capacity_bps``, ``delay_ns``,
    /// ``buffer_bytes`` (null: the simulator's default). Links of capacity 0, which carry nothing, come last.
    #[getter]
    fn links(&self) -> PyResult<Table> {
        let links: Vec<&Link> = self.network.links().iter().chain(self.network.down()).collect();
        let end = |of: fn(&Link) -> Option<NodeId>| -> ArrayRef {
            Arc::new(links.iter().map(|l| of(l).map(|n| self.node_name(n))).collect::<StringArray>())
        };
        Table::new(vec![
            ("id", Arc::new(StringArray::from_iter_values(links.iter().map(|l| l.id.as_str()))) as ArrayRef),
            ("from", end(|l| l.from)),
            ("to", end(|l| l.to)),
            ("capacity_bps", Arc::new(Float64Array::from_iter_values(links.iter().map(|l| l.capacity_bps)))),
            ("delay_ns", Arc::new(UInt64Array::from_iter_values(links.iter().map(|l| l.delay_ns)))),
            ("buffer_bytes", Arc::new(links.iter().map(|l| l.buffer_bytes).collect::<UInt64Array>())),
        ])
    }

    /// Indices in ``links`` of the links called ``ids``.
    fn link_numbers(&self, py: Python<'_>, ids: Vec<String>) -> PyResult<Vec<u32>> {
        let find = |id: &String| {
            self.network.find_link(id).map(|l| l.0).ok_or_else(|| {
                let (what, hint) = if self.network.is_down(id) {
                    (format!("the link \"{id}\" has the capacity 0"), "give it a capacity, or leave its flows away")
                } else {
                    (format!("there is no link \"{id}\""), "see the column id of links")
                };
                subak_core::InputError::new("links", what, hint)
            })
        };
        ids.iter().map(find).collect::<Result<_, _>>().or_input_error(py)
    }

    fn __repr__(&self) -> String {
        format!("<subak.Network: {} hosts, {} links>", self.network.hosts().count(), self.network.links().len())
    }
}

impl PyNetwork {
    fn node_name(&self, node: NodeId) -> &str {
        &self.network.nodes()[node].name
    }
}

/// Parses a network; a file that it names is relative to `folder`.
fn parse(py: Python<'_>, text: &[u8], folder: &Path) -> PyResult<PyNetwork> {
    let read = || {
        let value: Value = json::parse(utf8(text)?)?;
        subak_core::case::network_from_value(&value, &mut |name| read(folder, name))
    };
    let (network, metric) = py.detach(read).or_input_error(py)?;
    Ok(PyNetwork { network, metric })
}
