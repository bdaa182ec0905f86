//! Python class of a scheme's control messages, advanced by its caller.

use crate::errors::OrInputError;
use crate::network::PyNetwork;
use crate::table::Table;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, StringArray, UInt32Array, UInt64Array};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use subak_core::{FlowId, InputError, LinkId, Ns, Offsets};
use subak_rounds::{Conditions, Recorded, RoundsPlan, SteppedRounds};

/// The messages behind `subak.Rounds`.
#[pyclass(subclass, module = "subak._subak", name = "Rounds")]
pub struct PyRounds(Mutex<SteppedRounds>);

/// Offsets and links of paths; weights and start times, one per flow.
type NewFlows = (PyBuffer<u32>, PyBuffer<u32>, PyBuffer<f64>, PyBuffer<u64>);

#[pymethods]
impl PyRounds {
    /// Messages of `scheme` over the links of `network`. `times_ns` are the length of a round, the jitter, and the end
    /// of losses; `recorded` says whether updates and rates are recorded.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "they are the keywords of a Python function")]
    fn new(
        py: Python<'_>,
        network: &PyNetwork,
        scheme: &str,
        params: &[u8],
        seed: u64,
        times_ns: (Ns, Ns, Ns),
        drop: f64,
        tolerance: f64,
        recorded: (bool, bool),
    ) -> PyResult<Self> {
        let make = || {
            let params: Map<String, Value> = serde_json::from_slice(params)
                .map_err(|e| InputError::new("params", e.to_string(), "give names with their values"))?;
            let (rtt_ns, jitter_ns, drop_until_ns) = times_ns;
            let plan = RoundsPlan { seed, drop, tolerance, params, ..RoundsPlan::default() };
            let conditions = Conditions { jitter_ns, drop, drop_until_ns, rtt_ns, seed };
            let recorded = Recorded { updates: recorded.0, rates: recorded.1 };
            SteppedRounds::new(network.network.clone(), scheme, &plan, conditions, recorded)
        };
        make().or_input_error(py).map(|made| PyRounds(Mutex::new(made)))
    }

    /// Adds flows, all of them or none; returns the number of the first.
    fn add_flows(&mut self, py: Python<'_>, flows: NewFlows) -> PyResult<u32> {
        let (ptr, links) = (flows.0.to_vec(py)?, flows.1.to_vec(py)?);
        let (weights, starts) = (flows.2.to_vec(py)?, flows.3.to_vec(py)?);
        let count = weights.len();
        let add = || {
            let sound = ptr.first() == Some(&0) && ptr.windows(2).all(|w| w[0] <= w[1]);
            let ends = ptr.last().copied() == Some(links.len() as u32);
            if !(sound && ends && ptr.len() == count + 1 && starts.len() == count) {
                let what = "the offsets do not go from 0 up to the number of links listed";
                return Err(InputError::new("link_ptr", what, "give where each flow's links begin, and the last end"));
            }
            let offsets = Offsets::<usize>::from(ptr);
            let path = |f: usize| links[offsets.row(f)].iter().map(|&l| LinkId(l)).collect();
            self.get().add_all((0..count).map(|f| (path(f), weights[f], starts[f])).collect())
        };
        add().or_input_error(py).map(|first| first.0)
    }

    fn change_weight(&mut self, py: Python<'_>, flow: u32, weight: f64) -> PyResult<()> {
        self.get().set_weight(FlowId(flow), weight).or_input_error(py)
    }

    fn stop_flow(&mut self, py: Python<'_>, flow: u32) -> PyResult<()> {
        self.get().stop(FlowId(flow)).or_input_error(py)
    }

    /// Advances to `until_ns`, without holding the interpreter's lock.
    fn advance(&mut self, py: Python<'_>, until_ns: Ns) -> PyResult<()> {
        let now_ns = self.get().now_ns();
        if until_ns < now_ns {
            let what = format!("{until_ns} ns is before the present, {now_ns} ns");
            return Err(InputError::new("until", what, "give a later time")).or_input_error(py);
        }
        let mut heard = Ok(());
        let rounds = self.get();
        py.detach(|| {
            rounds.run_until(until_ns, || {
                heard = Python::attach(|py| py.check_signals());
                heard.is_ok()
            });
        });
        heard
    }

    /// Current simulated time, ns.
    #[getter]
    fn now_ns(&self) -> Ns {
        self.see().now_ns()
    }

    /// Number of messages that links have updated.
    #[getter]
    fn updates(&self) -> u64 {
        self.see().updates()
    }

    /// Number of lost messages.
    #[getter]
    fn drops(&self) -> u64 {
        self.see().drops().0
    }

    /// Time of the last loss, ns; None without one.
    #[getter]
    fn last_drop_ns(&self) -> Option<Ns> {
        self.see().drops().1
    }

    /// Time of the last update that told a running flow another rate than its exact one, ns; None without one.
    #[getter]
    fn last_wrong_ns(&self) -> Option<Ns> {
        self.see().last_wrong_ns()
    }

    /// The number of rounds that theory allows until all rates are exact; None if there is no bound.
    #[getter]
    fn bound_rounds(&self, py: Python<'_>) -> Option<f64> {
        py.detach(|| self.see().bound_rounds())
    }

    /// A row for each flow.
    fn flows_table(&mut self) -> PyResult<Table> {
        self.get().follow();
        let rounds = self.see();
        let rows: Vec<_> = rounds.flows().collect();
        let link = |l: LinkId| rounds.network().links()[l].id.as_str();
        Table::new(vec![
            ("flow", Arc::new(rows.iter().map(|row| Some(row.0.0)).collect::<UInt32Array>()) as ArrayRef),
            ("weight", Arc::new(rows.iter().map(|row| Some(row.1)).collect::<Float64Array>())),
            ("start_ns", Arc::new(rows.iter().map(|row| Some(row.2)).collect::<UInt64Array>())),
            ("stopped", Arc::new(rows.iter().map(|row| Some(row.3)).collect::<BooleanArray>())),
            ("rate_bps", Arc::new(rows.iter().map(|row| Some(row.4.rate_bps)).collect::<Float64Array>())),
            ("exact_bps", Arc::new(rows.iter().map(|row| Some(row.4.ideal_bps)).collect::<Float64Array>())),
            ("updates", Arc::new(rows.iter().map(|row| Some(row.4.updates)).collect::<UInt64Array>())),
            ("last_wrong_ns", Arc::new(rows.iter().map(|row| row.4.last_wrong_ns).collect::<UInt64Array>())),
            (
                "last_wrong_link",
                Arc::new(rows.iter().map(|row| row.4.last_wrong_link.map(link)).collect::<StringArray>()),
            ),
        ])
    }

    /// A row for each rate that was assigned to a source since the last call.
    fn take_rates(&mut self) -> PyResult<Table> {
        let rates = self.get().take_rates();
        Table::new(vec![
            ("time_ns", Arc::new(rates.iter().map(|r| Some(r.at_ns)).collect::<UInt64Array>()) as ArrayRef),
            ("flow", Arc::new(rates.iter().map(|r| Some(r.flow.0)).collect::<UInt32Array>())),
            ("rate_bps", Arc::new(rates.iter().map(|r| Some(r.rate_bps)).collect::<Float64Array>())),
        ])
    }

    /// A row for each update of a message at a link since the last call, with a column for each of its values.
    fn take_updates(&mut self) -> PyResult<Table> {
        let updates = self.get().take_updates();
        let mut names: Vec<&'static str> = Vec::new();
        for (name, _) in updates.iter().flat_map(|u| &u.values) {
            if !names.contains(name) {
                names.push(name);
            }
        }
        let value = |name: &str| -> Float64Array {
            updates.iter().map(|u| u.values.iter().find(|(n, _)| *n == name).map(|(_, x)| *x)).collect()
        };
        let mut columns = vec![
            ("time_ns", Arc::new(updates.iter().map(|u| Some(u.at_ns)).collect::<UInt64Array>()) as ArrayRef),
            ("flow", Arc::new(updates.iter().map(|u| Some(u.flow.0)).collect::<UInt32Array>())),
            ("link", Arc::new(updates.iter().map(|u| Some(u.link.0)).collect::<UInt32Array>())),
        ];
        columns.extend(names.iter().map(|name| (*name, Arc::new(value(name)) as ArrayRef)));
        Table::new(columns)
    }

    fn __len__(&self) -> usize {
        self.see().flows().count()
    }
}

impl PyRounds {
    // The interpreter's borrow of the object excludes a second caller, so that the lock is always free.
    fn get(&mut self) -> &mut SteppedRounds {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn see(&self) -> MutexGuard<'_, SteppedRounds> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
