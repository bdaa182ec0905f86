//! Python class of a simulation that its caller advances.

use crate::errors::OrInputError;
use crate::runs::{PySpec, apart};
use crate::table::Table;
use arrow_array::{ArrayRef, Float64Array, StringArray, UInt32Array, UInt64Array};
use pyo3::prelude::*;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use subak_core::FlowId;
use subak_core::InputError;
use subak_core::backend::{FlowView, LinkView};
use subak_core::quantity::rate_bps_from_json;
use subak_lab::workload::Planned;
use subak_lab::{StepEnd, Stepping};

/// The simulation behind `subak.Simulation`.
#[pyclass(subclass, module = "subak._subak", name = "Simulation")]
pub struct PySimulation(Mutex<Stepping>);

#[pymethods]
impl PySimulation {
    #[new]
    #[pyo3(signature = (spec))]
    fn new(py: Python<'_>, spec: &PySpec) -> PyResult<Self> {
        // Schemes in Python are made here, on the thread that holds the interpreter.
        Stepping::new(&spec.0).or_input_error(py).map(|made| PySimulation(Mutex::new(made)))
    }

    /// The warnings about a spec; `is_open`: flows and faults are still to come.
    #[staticmethod]
    fn warnings(spec: &PySpec, is_open: bool) -> Vec<String> {
        Stepping::warnings(&spec.0, is_open).into_iter().map(|warning| warning.text).collect()
    }

    /// Adds the flows in `list`, a JSON list; returns the number of the first.
    fn add_flows(&mut self, py: Python<'_>, list: &[u8]) -> PyResult<u32> {
        let first = tree(list).and_then(|list| self.get().add(list)).or_input_error(py)?;
        Ok(first.0)
    }

    fn change_weight(&mut self, py: Python<'_>, flow: u32, weight: f64) -> PyResult<()> {
        self.get().set_weight(FlowId(flow), weight).or_input_error(py)
    }

    fn stop_flow(&mut self, py: Python<'_>, flow: u32) -> PyResult<()> {
        self.get().stop(FlowId(flow)).or_input_error(py)
    }

    fn change_paths(&mut self, py: Python<'_>, flow: u32, paths: Vec<Vec<String>>) -> PyResult<()> {
        self.get().reroute(FlowId(flow), &paths).or_input_error(py)
    }

    fn set_up(&mut self, py: Python<'_>, link: &str, up: bool, both: bool) -> PyResult<()> {
        self.get().set_up(link, up, both).or_input_error(py)
    }

    /// Sets a link's capacity, a JSON value: a number in bit/s, or text with a unit.
    fn change_capacity(&mut self, py: Python<'_>, link: &str, capacity: &[u8], both: bool) -> PyResult<()> {
        let capacity = tree(capacity).and_then(|value| rate_bps_from_json(&value)).map_err(|e| e.below("capacity"));
        capacity.and_then(|bps| self.get().set_capacity(link, bps, both)).or_input_error(py)
    }

    /// Advances to `until_ns`, or until the event `end`: `time`, `finish` or `done`. Returns the flows that finished.
    fn advance(&mut self, py: Python<'_>, until_ns: u64, end: &str) -> PyResult<Vec<u32>> {
        let end = match end {
            "finish" => StepEnd::Finish,
            "done" => StepEnd::Done,
            _ => StepEnd::Time,
        };
        let cancel = AtomicBool::new(false);
        let simulation = self.get();
        let ended = apart(py, &cancel, || simulation.run(until_ns, end, &cancel), |py| py.check_signals())?;
        ended.or_input_error(py)?;
        Ok(self.get().take_finished().into_iter().map(|flow| flow.0).collect())
    }

    /// Advances to each of `times_ns`, and returns the assigned rate of each flow at each of them. An interruption ends
    /// it at an earlier time.
    fn sample_rates(&mut self, py: Python<'_>, times_ns: Vec<u64>) -> PyResult<Table> {
        let cancel = AtomicBool::new(false);
        let simulation = self.get();
        let work = || {
            let (mut times, mut flows, mut rates) = (Vec::new(), Vec::new(), Vec::new());
            for time_ns in times_ns {
                if !simulation.run(time_ns, StepEnd::Time, &cancel)? {
                    break;
                }
                for (flow, _, view) in simulation.flows() {
                    times.push(time_ns);
                    flows.push(flow.0);
                    rates.push(view.assigned_bps);
                }
            }
            Ok((times, flows, rates))
        };
        let sampled = apart(py, &cancel, work, |py| py.check_signals())?;
        let (times, flows, rates) = sampled.or_input_error(py)?;
        Table::new(vec![
            ("time_ns", Arc::new(UInt64Array::from(times)) as ArrayRef),
            ("flow", Arc::new(UInt32Array::from(flows))),
            ("assigned_bps", Arc::new(Float64Array::from(rates))),
        ])
    }

    /// Begins the peaks of queues anew.
    fn restart_peaks(&mut self) {
        self.get().restart_peaks();
    }

    /// Current simulated time, ns.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.see().now_ns()
    }

    /// Number of events that were handled.
    #[getter]
    fn events(&self) -> u64 {
        self.see().events()
    }

    /// A row for each flow.
    fn flows_table(&self) -> PyResult<Table> {
        let simulation = self.see();
        let rows: Vec<_> = simulation.flows().collect();
        let fct_ns = |planned: &Planned, view: &FlowView| Some(view.finished_ns? - planned.plan.start_ns);
        let name = |node: Option<subak_core::NodeId>| node.map(|node| simulation.node(node));
        let count = |value: fn(&FlowView) -> u64| -> ArrayRef {
            Arc::new(rows.iter().map(|(.., view)| Some(value(view))).collect::<UInt64Array>())
        };
        Table::new(vec![
            ("flow", Arc::new(rows.iter().map(|(f, ..)| Some(f.0)).collect::<UInt32Array>()) as ArrayRef),
            ("flow_id", Arc::new(rows.iter().map(|(_, p, _)| p.id.as_deref()).collect::<StringArray>())),
            ("src", Arc::new(rows.iter().map(|(_, p, _)| name(p.src)).collect::<StringArray>())),
            ("dst", Arc::new(rows.iter().map(|(_, p, _)| name(p.dst)).collect::<StringArray>())),
            ("weight", Arc::new(rows.iter().map(|(_, p, _)| Some(p.plan.weight)).collect::<Float64Array>())),
            ("size_bytes", Arc::new(rows.iter().map(|(_, p, _)| p.plan.size_bytes).collect::<UInt64Array>())),
            ("start_ns", Arc::new(rows.iter().map(|(_, p, _)| Some(p.plan.start_ns)).collect::<UInt64Array>())),
            ("fct_ns", Arc::new(rows.iter().map(|(_, p, view)| fct_ns(p, view)).collect::<UInt64Array>())),
            ("sent_bytes", count(|view| view.sent_bytes)),
            ("received_bytes", count(|view| view.received_bytes)),
            ("retransmissions", count(|view| view.retransmissions)),
            ("drops", count(|view| view.drops)),
            ("assigned_bps", Arc::new(rows.iter().map(|(.., v)| Some(v.assigned_bps)).collect::<Float64Array>())),
        ])
    }

    /// A row for each link.
    fn links_table(&self) -> PyResult<Table> {
        let simulation = self.see();
        let rows: Vec<_> = simulation.links().collect();
        let count = |value: fn(&LinkView) -> u64| -> ArrayRef {
            Arc::new(rows.iter().map(|(.., view)| Some(value(view))).collect::<UInt64Array>())
        };
        Table::new(vec![
            ("link", Arc::new(rows.iter().map(|(name, ..)| Some(*name)).collect::<StringArray>()) as ArrayRef),
            ("capacity_bps", Arc::new(rows.iter().map(|(_, bps, _)| Some(*bps)).collect::<Float64Array>())),
            ("queued_bytes", count(|view| view.queued_bytes)),
            ("queued_packets", count(|view| view.queued_packets)),
            ("peak_queued_bytes", count(|view| view.peak_queued_bytes)),
            ("data_bytes", count(|view| view.data_bytes)),
            ("ack_bytes", count(|view| view.ack_bytes)),
            ("ctl_bytes", count(|view| view.ctl_bytes)),
            ("dropped_packets", count(|view| view.dropped_packets)),
            ("lost_packets", count(|view| view.lost_packets)),
            ("pauses", count(|view| view.pauses)),
            ("paused_ns", count(|view| view.paused_ns)),
        ])
    }

    /// A row for each note of the scheme so far.
    fn notes_table(&self) -> PyResult<Table> {
        let mut simulation = self.see();
        let notes = simulation.notes().to_vec();
        Table::new(vec![
            ("time_ns", Arc::new(notes.iter().map(|n| Some(n.time_ns)).collect::<UInt64Array>()) as ArrayRef),
            ("flow", Arc::new(notes.iter().map(|n| n.flow.map(|f| f.0)).collect::<UInt32Array>())),
            ("link", Arc::new(notes.iter().map(|n| n.link.map(|l| simulation.link(l))).collect::<StringArray>())),
            ("subflow", Arc::new(notes.iter().map(|n| n.subflow.map(|k| u32::from(k.0))).collect::<UInt32Array>())),
            ("name", Arc::new(notes.iter().map(|n| Some(&*n.name)).collect::<StringArray>())),
            ("value", Arc::new(notes.iter().map(|n| Some(n.value)).collect::<Float64Array>())),
        ])
    }

    /// A row for each subflow of a flow.
    fn paces_table(&self, py: Python<'_>, flow: u32) -> PyResult<Table> {
        let paces = self.see().paces(FlowId(flow)).or_input_error(py)?;
        Table::new(vec![
            ("subflow", Arc::new((0..paces.len() as u32).map(Some).collect::<UInt32Array>()) as ArrayRef),
            ("window_bytes", Arc::new(paces.iter().map(|p| p.window_bytes).collect::<UInt64Array>())),
            ("pace_bps", Arc::new(paces.iter().map(|p| p.pace_bps).collect::<Float64Array>())),
            ("in_flight_bytes", Arc::new(paces.iter().map(|p| Some(p.in_flight_bytes)).collect::<UInt64Array>())),
        ])
    }
}

impl PySimulation {
    // The interpreter's borrow of the object excludes a second caller, so that the lock is always free.
    fn get(&mut self) -> &mut Stepping {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn see(&self) -> MutexGuard<'_, Stepping> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tree(json: &[u8]) -> Result<serde_json::Value, InputError> {
    serde_json::from_slice(json)
        .map_err(|e| InputError::new("", e.to_string(), "give dicts, lists, strings and numbers"))
}
