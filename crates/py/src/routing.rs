//! Python class of shortest-path routing.

use crate::answer::list;
use crate::errors::OrInputError;
use crate::network::PyNetwork;
use crate::random::{PySizes, PyStream};
use crate::table::Table;
use arrow_array::{ArrayRef, Float64Array, UInt32Array, UInt64Array};
use arrow_schema::ArrowError;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::Arc;
use subak_core::route::Router;
use subak_core::{InputError, NodeId};

/// Largest expected number of flows of a Poisson process.
const MOST_FLOWS: f64 = 1e8;

fn broken(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// Equal-cost multipath routing over shortest paths, as flows without a path have it in simulations.
///
/// At every node a hash of the seed, the flow's key and its ends selects the next link. With ``symmetric`` the reverse
/// path takes the reverse links.
#[pyclass(module = "subak", name = "Router")]
pub struct PyRouter {
    router: Router,
    network: subak_core::Network,
}

#[pymethods]
impl PyRouter {
    #[new]
    #[pyo3(signature = (network, *, seed = 1, symmetric = false))]
    fn new(network: &PyNetwork, seed: u64, symmetric: bool) -> Self {
        let network = network.network.clone();
        PyRouter { router: Router::new(&network, seed, symmetric), network }
    }

    /// The path from ``src`` to ``dst`` of the flow with this key: links numbered as in ``network.links``.
    #[pyo3(signature = (src, dst, key = 0))]
    fn path(&mut self, py: Python<'_>, src: &str, dst: &str, key: u64) -> PyResult<Vec<u32>> {
        let node = |place: &str, name: &str| {
            let unknown =
                || InputError::new(place, format!("there is no node \"{name}\""), "name a node of the network");
            self.network.find_node(name).ok_or_else(unknown)
        };
        let found = node("src", src).and_then(|src| Ok((src, node("dst", dst)?)));
        let path = found.and_then(|(src, dst)| self.router.path(src, dst, key));
        path.or_input_error(py).map(|path| path.into_iter().map(|l| l.0).collect())
    }

    /// Flows between random hosts whose sizes are drawn from ``sizes``, and whose starts are a Poisson process with a
    /// mean gap of ``gap_s`` seconds, before ``until_s``. The n-th flow has the key n.
    ///
    /// One row per flow: ``start_s``, ``size_bytes``, and ``path``, a list of links numbered as in ``network.links``.
    fn poisson(
        &mut self,
        py: Python<'_>,
        stream: &mut PyStream,
        sizes: &PySizes,
        gap_s: f64,
        until_s: f64,
    ) -> PyResult<Table> {
        let hosts: Vec<NodeId> = self.network.hosts().collect();
        let draw = || {
            if hosts.len() < 2 {
                let what = format!("the network has {} hosts", hosts.len());
                return Err(InputError::new("network", what, "give it two at least"));
            }
            for (place, value) in [("gap_s", gap_s), ("until_s", until_s)] {
                if !(value.is_finite() && value > 0.0) {
                    return Err(InputError::new(place, format!("it is {value}"), "give seconds above 0"));
                }
            }
            if until_s / gap_s > MOST_FLOWS {
                let what = format!("about {:.0} flows start", until_s / gap_s);
                return Err(InputError::new("until_s", what, "give an earlier end, or a longer gap"));
            }
            let (mut starts, mut bytes, mut links, mut ends) = (Vec::new(), Vec::new(), Vec::new(), vec![0]);
            let mut next_s = stream.0.exponential(gap_s);
            while next_s < until_s {
                let src = stream.0.below(hosts.len());
                let dst = (src + 1 + stream.0.below(hosts.len() - 1)) % hosts.len();
                links.extend(self.router.path(hosts[src], hosts[dst], starts.len() as u64)?.into_iter().map(|l| l.0));
                ends.push(links.len());
                starts.push(next_s);
                bytes.push(sizes.0.draw(&mut stream.0));
                next_s += stream.0.exponential(gap_s);
            }
            Ok((starts, bytes, links, ends))
        };
        let (starts, bytes, links, ends) = py.detach(draw).or_input_error(py)?;
        Table::new(vec![
            ("start_s", Arc::new(Float64Array::from(starts)) as ArrayRef),
            ("size_bytes", Arc::new(UInt64Array::from(bytes))),
            ("path", list(ends.into_iter(), Arc::new(UInt32Array::from(links))).map_err(broken)?),
        ])
    }
}
