//! Python class of Soze on virtual queues as a fluid, run step by step.

use crate::errors::OrInputError;
use crate::network::PyNetwork;
use crate::table::Table;
use arrow_array::Float64Array;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use std::sync::Arc;
use subak_core::{IdVec, InputError, LinkId, Offsets};
use subak_schemes::soze::{NewFluidFlow, SozeFluid, Virtual};

/// Work between two checks for Ctrl-C: the number of steps times the number of visits of links.
const VISITS: usize = 10_000_000;

/// The recurrence behind `subak.SozeFluid`.
#[pyclass(subclass, module = "subak._subak", name = "SozeFluid")]
pub struct PySozeFluid(SozeFluid);

/// Offsets and links of paths; weights and base RTTs, one per flow.
type NewFlows = (PyBuffer<u32>, PyBuffer<u32>, PyBuffer<f64>, PyBuffer<u64>);

#[pymethods]
impl PySozeFluid {
    /// Flows of `soze-virtual` with its standard parameters over `network`.
    #[new]
    fn new(py: Python<'_>, network: &PyNetwork, flows: NewFlows) -> PyResult<Self> {
        let (ptr, links) = (flows.0.to_vec(py)?, flows.1.to_vec(py)?);
        let (weights, rtts_ns) = (flows.2.to_vec(py)?, flows.3.to_vec(py)?);
        let capacity_bps: IdVec<LinkId, f64> = network.network.links().iter().map(|l| l.capacity_bps).collect();
        let make = || {
            let count = weights.len();
            let sound = ptr.first() == Some(&0) && ptr.windows(2).all(|w| w[0] <= w[1]);
            let ends = ptr.last().copied() == Some(links.len() as u32);
            if !(sound && ends && ptr.len() == count + 1 && rtts_ns.len() == count) {
                let what = "the flows have paths, weights and round trips of different numbers";
                return Err(InputError::new("flows", what, "give one of each for each flow"));
            }
            let offsets = Offsets::<usize>::from(ptr);
            let flow = |f: usize| {
                let path: Vec<LinkId> = links[offsets.row(f)].iter().map(|&l| LinkId(l)).collect();
                NewFluidFlow { path, weight: weights[f], rtt_ns: rtts_ns[f] }
            };
            SozeFluid::new(&Virtual::STANDARD, capacity_bps, &(0..count).map(flow).collect::<Vec<_>>())
        };
        py.detach(make).or_input_error(py).map(PySozeFluid)
    }

    /// Runs `n` steps, without holding the interpreter's lock.
    fn steps(&mut self, py: Python<'_>, n: u64) -> PyResult<()> {
        let most = (VISITS / self.0.visits().max(1)).max(1) as u64;
        let mut left = n;
        while left > 0 {
            let these = left.min(most);
            py.detach(|| (0..these).for_each(|_| self.0.step()));
            left -= these;
            py.check_signals()?;
        }
        Ok(())
    }

    /// Number of steps.
    #[getter]
    fn iterations(&self) -> u64 {
        self.0.steps()
    }

    /// Length of a step, ns: a quarter of the largest base RTT.
    #[getter]
    fn step_ns(&self) -> f64 {
        self.0.step_ns()
    }

    /// Largest real queueing delay so far, ns.
    #[getter]
    fn peak_ns(&self) -> f64 {
        self.0.peak_ns()
    }

    /// Fraction of the flows whose rate is within the relative tolerance `within` of `want`.
    fn share_near(&self, py: Python<'_>, want: PyBuffer<f64>, within: f64) -> PyResult<f64> {
        let want = want.to_vec(py)?;
        if want.len() != self.0.rates_bps().len() {
            let what = format!("there are {} rates for {} flows", want.len(), self.0.rates_bps().len());
            return Err(InputError::new("rates", what, "give one a flow")).or_input_error(py);
        }
        Ok(py.detach(|| self.0.near(&want, within)))
    }

    /// Rate of each flow, bit/s.
    fn rates_table(&self) -> PyResult<Table> {
        Table::new(vec![("rate_bps", Arc::new(self.0.rates_bps().map(Some).collect::<Float64Array>()))])
    }

    fn __len__(&self) -> usize {
        self.0.rates_bps().len()
    }
}
