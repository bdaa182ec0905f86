//! Python interface of the allocator's core under flows that start and end.

use crate::errors::OrInputError;
use crate::network::PyNetwork;
use crate::table::Table;
use arrow_array::{ArrayRef, Float64Array, UInt64Array};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use std::sync::Arc;
use subak_control::{Allocation, AllocationPlan, AllocationTick, AnnouncedFlow};
use subak_core::{InputError, Ns};

/// Ticks between two checks for Ctrl-C.
const TICKS: usize = 50;

/// Sources and destinations, as indices of hosts; starts in s, and sizes in bytes.
type Announced = (PyBuffer<u32>, PyBuffer<u32>, PyBuffer<f64>, PyBuffer<u64>);

/// Runs the allocator and its endpoints over flows for `ticks` ticks. `counts` are the hosts of an intermediary, the
/// first tick and the ticks between two comparisons. Returns a row for each tick.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are the keywords of a Python function")]
pub fn allocate(
    py: Python<'_>,
    network: &PyNetwork,
    flows: Announced,
    seed: u64,
    tick_ns: Ns,
    ticks: usize,
    gamma: Option<f64>,
    counts: (usize, usize, usize),
) -> PyResult<Table> {
    let (sources, destinations) = (flows.0.to_vec(py)?, flows.1.to_vec(py)?);
    let (starts_s, sizes) = (flows.2.to_vec(py)?, flows.3.to_vec(py)?);
    let (group, compare_from, compare_every) = counts;
    let made = py.detach(|| {
        let count = sources.len();
        if [destinations.len(), starts_s.len(), sizes.len()] != [count; 3] {
            let what = "there are sources, destinations, starts and sizes of different numbers of flows";
            return Err(InputError::new("flows", what, "give one of each for each flow"));
        }
        let flow = |f: usize| AnnouncedFlow {
            src: sources[f] as usize,
            dst: destinations[f] as usize,
            start_s: starts_s[f],
            size_bytes: sizes[f],
        };
        let plan = AllocationPlan { seed, tick_ns, gamma, group, compare_from, compare_every };
        Allocation::new(network.network.clone(), (0..count).map(flow).collect(), plan)
    });
    let mut allocation = made.or_input_error(py)?;
    let mut rows: Vec<AllocationTick> = Vec::with_capacity(ticks);
    while rows.len() < ticks {
        let these = TICKS.min(ticks - rows.len());
        let some: Result<(), InputError> = py.detach(|| {
            (0..these).try_for_each(|_| {
                rows.push(allocation.tick()?);
                Ok(())
            })
        });
        some.or_input_error(py)?;
        py.check_signals()?;
    }
    let count = |of: fn(&AllocationTick) -> usize| -> ArrayRef {
        Arc::new(rows.iter().map(|row| Some(of(row) as u64)).collect::<UInt64Array>())
    };
    let compared = |of: fn((f64, f64)) -> f64| -> ArrayRef {
        Arc::new(rows.iter().map(|row| row.compared_bps.map(of)).collect::<Float64Array>())
    };
    Table::new(vec![
        ("flows", count(|row| row.flows)),
        ("datagrams", count(|row| row.datagrams)),
        ("rates", count(|row| row.rates)),
        ("bytes", count(|row| row.bytes)),
        ("rate_bps", compared(|both| both.0)),
        ("optimum_bps", compared(|both| both.1)),
    ])
}
