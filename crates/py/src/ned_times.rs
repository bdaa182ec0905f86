//! Times of NED's iteration on this machine.

use crate::errors::OrInputError;
use crate::network::PyNetwork;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::Instant;
use subak_core::{InputError, LinkId, Offsets};
use subak_solve::ned::parallel::{Parallel, Partition};
use subak_solve::ned::straight::Straight;
use subak_solve::ned::{Cluster, Ned, NedIteration, NewFlow, Normalizer, Real};

/// Steps per measurement of time with threads. The threads start anew for each measurement.
const STEPS: usize = 100;
/// Steps before a measurement.
const WARMUP: usize = 200;

struct Flows {
    network: subak_core::Network,
    capacity_bps: Vec<f64>,
    paths: Vec<Vec<LinkId>>,
    groups: usize,
}

impl Flows {
    fn new_flows(&self) -> Vec<NewFlow<'_>> {
        self.paths.iter().map(|path| NewFlow { path, ln_gain: 0.0, demand_bps: f64::INFINITY }).collect()
    }

    fn iteration<T: Real>(&self) -> Result<NedIteration<T, Ned>, InputError> {
        let mut cluster = Cluster::new(&self.capacity_bps, 1.0)?;
        cluster.add_all(&self.new_flows())?;
        let mut iteration = NedIteration::new(cluster, Ned::default());
        (0..WARMUP).for_each(|_| iteration.step());
        Ok(iteration)
    }

    fn parallel(&self, threads: usize) -> Result<Parallel<f32>, InputError> {
        let partition = Partition::of(&self.network, self.groups)?;
        Parallel::new(&self.capacity_bps, 1.0, &self.new_flows(), &partition, None, threads)
    }

    /// The shortest times, us, by name.
    fn times(&self, seconds: f64, threads: usize) -> Result<[(&'static str, f64); 6], InputError> {
        let (mut single, mut double) = (self.iteration::<f32>()?, self.iteration::<f64>()?);
        let mut straight = Straight::<f32>::new(self.capacity_bps.len(), &self.paths);
        let mut rates = Vec::new();
        let (mut one, mut more) = (self.parallel(1)?, self.parallel(threads)?);
        Ok([
            ("single_us", best_us(seconds, || single.step())),
            ("double_us", best_us(seconds, || double.step())),
            (
                "normalized_us",
                best_us(seconds, || {
                    single.step();
                    single.normalize(Normalizer::Flow, &mut rates);
                }),
            ),
            ("straight_us", best_us(seconds, || straight.step())),
            ("blocks_us", best_us(seconds, || one.run(STEPS)) / STEPS as f64),
            ("threads_us", best_us(seconds, || more.run(STEPS)) / STEPS as f64),
        ])
    }

    /// Whether rates and prices are the same for any number of threads.
    fn is_same(&self) -> Result<bool, InputError> {
        let bits = |threads| {
            let mut ned = self.parallel(threads)?;
            ned.run(20);
            Ok(ned.prices().into_iter().chain(ned.rates_bps(true)).map(f64::to_bits).collect::<Vec<_>>())
        };
        let one = bits(1)?;
        Ok([2, 3, 4].into_iter().map(bits).collect::<Result<Vec<_>, InputError>>()?.iter().all(|more| *more == one))
    }
}

/// Shortest time of a call of `what`, us, over calls during `seconds`.
fn best_us(seconds: f64, mut what: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < seconds {
        let one = Instant::now();
        what();
        best = best.min(one.elapsed().as_secs_f64() * 1e6);
    }
    best
}

/// Times of an iteration of NED for flows over `network`, and whether all numbers of threads give the same bits if
/// `is_compared`.
#[pyfunction]
pub fn ned_times(
    py: Python<'_>,
    network: &PyNetwork,
    rows: (PyBuffer<u32>, PyBuffer<u32>),
    threads: usize,
    groups: usize,
    seconds: f64,
    is_compared: bool,
) -> PyResult<Py<PyDict>> {
    let (ptr, links) = (rows.0.to_vec(py)?, rows.1.to_vec(py)?);
    let network = network.network.clone();
    let measured = py.detach(|| {
        if ptr.first() != Some(&0) || !ptr.is_sorted() || ptr.last().copied() != Some(links.len() as u32) {
            let what = "the offsets do not go from 0 up to the number of links listed";
            return Err(InputError::new("link_ptr", what, "give where each flow's links begin, and the last end"));
        }
        let offsets = Offsets::<usize>::from(ptr);
        let path = |f: usize| links[offsets.row(f)].iter().map(|&l| LinkId(l)).collect::<Vec<_>>();
        let paths = (0..offsets.len()).map(path).collect::<Vec<_>>();
        let capacity_bps: Vec<f64> = network.links().iter().map(|l| l.capacity_bps).collect();
        if let Some(l) = links.iter().find(|&&l| l as usize >= capacity_bps.len()) {
            let what = format!("there is no link {l}");
            return Err(InputError::new("links", what, "give places in the list of links"));
        }
        let flows = Flows { network, capacity_bps, paths, groups };
        let same = is_compared.then(|| flows.is_same()).transpose()?;
        Ok((flows.times(seconds, threads)?, same))
    });
    let (times, same) = measured.or_input_error(py)?;
    let dict = PyDict::new(py);
    for (name, us) in times {
        dict.set_item(name, us)?;
    }
    if let Some(same) = same {
        dict.set_item("same_bits", same)?;
    }
    Ok(dict.unbind())
}
