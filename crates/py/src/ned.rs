//! Python class of NED and its baselines, run step by step.

use crate::errors::OrInputError;
use crate::inputs::utf8;
use crate::network::PyNetwork;
use crate::table::Table;
use arrow_array::{ArrayRef, Float32Array, Float64Array, UInt32Array};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use std::sync::Arc;
use subak_core::case::policy_from_value;
use subak_core::document::json;
use subak_core::flows::Extra;
use subak_core::quantity::rate_bps_from_json;
use subak_core::{InputError, LinkId, Offsets, Policy, Utility};
use subak_solve::ned::{
    AnyUpdate, Cluster, FlowKey, Ned as NedLaw, NedIteration, NedMethod, NewFlow, Normalizer, Real, Reciprocal,
    ServedFlow, ServedInterval, Serving, ServingPlan, worst_off,
};

/// Work between two checks for Ctrl-C: the number of iterations times the number of flows and links.
const VISITS: usize = 20_000_000;

/// Intervals between two checks for Ctrl-C while flows are served.
const INTERVALS: usize = 200;

/// An iteration in one of the two precisions.
enum Now {
    Single(NedIteration<f32, AnyUpdate<f32>>),
    Double(NedIteration<f64, AnyUpdate<f64>>),
}

/// Evaluates `$body` with `$iteration` of either precision.
macro_rules! either {
    ($now:expr, $iteration:ident => $body:expr) => {
        match $now {
            Now::Single($iteration) => $body,
            Now::Double($iteration) => $body,
        }
    };
}

/// State of an optimizer's iterations.
#[pyclass(subclass, module = "subak._subak", name = "Ned")]
pub struct PyNed {
    now: Now,
    network: subak_core::Network,
    policy: Policy,
    /// Whether flows, weights or capacities have changed since rates were computed.
    changed: bool,
}

/// Offsets and links of paths; then weights, demands, sizes and deadlines, each with one value per flow or empty.
type Flows = (PyBuffer<u32>, PyBuffer<u32>, PyBuffer<f64>, PyBuffer<f64>, PyBuffer<f64>, PyBuffer<f64>);

/// Offsets and links of paths; weights, starts in s, and sizes in bytes, one per flow.
type ServedFlows = (PyBuffer<u32>, PyBuffer<u32>, PyBuffer<f64>, PyBuffer<f64>, PyBuffer<u64>);

#[pymethods]
impl PyNed {
    /// Creates the optimizer `method` over `network`'s links with all prices 1; `precision` is `single`, `double` or
    /// `approximate`. Before normalization no rate is above `most_lines` times the narrowest capacity of its path.
    /// `bounded`: a step reduces a price of NED to no less than a quarter. `threads` run a step.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "they are the keywords of a Python function")]
    fn new(
        py: Python<'_>,
        network: &PyNetwork,
        policy: &[u8],
        method: &str,
        gamma: Option<f64>,
        precision: &str,
        most_lines: f64,
        bounded: bool,
        threads: usize,
    ) -> PyResult<Self> {
        let network = network.network.clone();
        let made = || {
            let policy = policy_from_value(&json::parse(utf8(policy)?)?).map_err(|e| e.below("policy"))?;
            let capacity_bps: Vec<f64> = network.links().iter().map(|l| l.capacity_bps).collect();
            let alpha = policy.alpha().ok_or_else(|| {
                let what = format!("{} is not the optimum of one utility's kind", policy.name());
                InputError::new("policy.kind", what, "use alpha-fair, fct, srpt or edf, or the exact solver")
            })?;
            let method = NedMethod::named(method)?;
            if bounded && method != NedMethod::Ned {
                let what = format!("the prices of {} are not bounded", method.name());
                return Err(InputError::new("bounded", what, "leave it away, or take the method ned"));
            }
            let made = Making { capacity_bps: &capacity_bps, alpha, method, gamma, most_lines, bounded };
            let mut now = match precision {
                "double" => Now::Double(made.iteration()?),
                "single" => Now::Single(made.iteration()?),
                "approximate" => Now::Single(made.iteration()?.with_division(Reciprocal::Approximate)),
                other => {
                    let hint = "give single, double or approximate";
                    return Err(InputError::new("precision", format!("there is no precision \"{other}\""), hint));
                }
            };
            either!(&mut now, iteration => iteration.set_threads(threads));
            Ok(PyNed { now, network, policy, changed: true })
        };
        made().or_input_error(py)
    }

    /// Adds flows, all of them or none; returns their numbers.
    fn add_flows(&mut self, py: Python<'_>, flows: Flows) -> PyResult<Table> {
        let (ptr, links) = (flows.0.to_vec(py)?, flows.1.to_vec(py)?);
        let columns = [flows.2.to_vec(py)?, flows.3.to_vec(py)?, flows.4.to_vec(py)?, flows.5.to_vec(py)?];
        let (policy, now, network) = (self.policy, &mut self.now, &self.network);
        let added = py.detach(|| {
            let links: Vec<LinkId> = links.into_iter().map(LinkId).collect();
            let flows = flows_of(policy, network, ptr, &links, &columns)?;
            either!(now, iteration => iteration.cluster_mut().add_all(&flows))
        });
        let keys = added.or_input_error(py)?;
        self.changed = true;
        column("number", Arc::new(keys.into_iter().map(FlowKey::number).collect::<UInt32Array>()))
    }

    /// Removes the flows with these numbers, all of them or none.
    fn remove_flows(&mut self, py: Python<'_>, numbers: PyBuffer<u32>) -> PyResult<()> {
        let numbers = numbers.to_vec(py)?;
        let keys: Vec<FlowKey> = numbers.into_iter().map(FlowKey::of_number).collect();
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        let twice = sorted.windows(2).find(|w| w[0] == w[1]).map(|w| w[0].number());
        if let Some(number) = twice {
            let what = format!("flow {number} is named twice");
            return Err(InputError::new("numbers", what, "name each flow once")).or_input_error(py);
        }
        either!(&mut self.now, iteration => {
            let cluster = iteration.cluster_mut();
            if let Some(key) = keys.iter().find(|k| !cluster.contains(**k)) {
                let what = format!("there is no flow {}", key.number());
                return Err(InputError::new("numbers", what, "give the numbers that add answered")).or_input_error(py);
            }
            keys.iter().try_for_each(|&key| cluster.remove(key)).or_input_error(py)?;
        });
        self.changed = true;
        Ok(())
    }

    /// Changes the weight of the flow with this number, under alpha-fairness only.
    fn set_weight(&mut self, py: Python<'_>, number: u32, weight: f64) -> PyResult<()> {
        if !matches!(self.policy, Policy::AlphaFair { .. }) {
            let what = format!("{} weighs flows by their size or deadline too", self.policy.name());
            return Err(InputError::new("weight", what, "remove the flow and add it anew")).or_input_error(py);
        }
        self.changed = true;
        either!(&mut self.now, iteration => iteration.cluster_mut().set_weight(FlowKey::of_number(number), weight))
            .or_input_error(py)
    }

    /// Changes a link's capacity, given as JSON: bit/s or text; 0 fails the link.
    fn set_capacity_json(&mut self, py: Python<'_>, link: &str, capacity: &[u8]) -> PyResult<()> {
        let (network, now) = (&self.network, &mut self.now);
        let mut change = || {
            let value = json::parse(utf8(capacity)?)?;
            let capacity_bps = rate_bps_from_json(&value).map_err(|e| e.below("capacity"))?;
            let l = network.find_link(link).ok_or_else(|| {
                InputError::new("link", format!("there is no link \"{link}\""), "name a link of the network")
            })?;
            either!(now, iteration => iteration.cluster_mut().set_capacity(l, capacity_bps))
        };
        change().or_input_error(py)?;
        self.changed = true;
        Ok(())
    }

    /// Sets the prices of all links, in utility per bit/s.
    fn set_prices(&mut self, py: Python<'_>, prices: PyBuffer<f64>) -> PyResult<()> {
        let prices = prices.to_vec(py)?;
        let links = self.network.links().len();
        let mut set = || {
            if prices.len() != links {
                let what = format!("there are {} of {links} links", prices.len());
                return Err(InputError::new("prices", what, "give one price a link"));
            }
            either!(&mut self.now, iteration => {
                let set = |(l, p): (usize, &f64)| iteration.set_price(LinkId::from_index(l), *p);
                prices.iter().enumerate().filter(|(_, p)| p.is_finite()).try_for_each(set)
            })
        };
        set().or_input_error(py)?;
        self.changed = true;
        Ok(())
    }

    /// Runs `n` iterations, without holding the interpreter's lock.
    fn steps(&mut self, py: Python<'_>, n: u64) -> PyResult<()> {
        let visits = either!(&self.now, iteration => iteration.cluster().len() + iteration.cluster().links());
        let most = (VISITS / visits.max(1)).max(1) as u64;
        let mut left = n;
        while left > 0 {
            let these = left.min(most);
            let now = &mut self.now;
            py.detach(|| either!(now, iteration => (0..these).for_each(|_| iteration.step())));
            self.changed = false;
            left -= these;
            py.check_signals()?;
        }
        Ok(())
    }

    /// Number of iterations.
    #[getter]
    fn iterations(&self) -> u64 {
        either!(&self.now, iteration => iteration.steps())
    }

    /// Rate of each flow, by number, bit/s.
    fn rates_table(&mut self, py: Python<'_>, normalizer: &str) -> PyResult<Table> {
        let normalizer = normalizer_of(normalizer).or_input_error(py)?;
        self.follow(py);
        let (now, numbers) = (&self.now, either!(&self.now, iteration => iteration.cluster().numbers()));
        let array = py.detach(|| -> ArrayRef {
            match now {
                Now::Single(now) => Arc::new(Float32Array::from(now.rates_by_number(normalizer)).slice(1, numbers)),
                Now::Double(now) => Arc::new(Float64Array::from(now.rates_by_number(normalizer)).slice(1, numbers)),
            }
        });
        column("rate_bps", array)
    }

    /// Rates of the flows with these numbers, bit/s, in double precision. F-NORM is applied `passes` times.
    fn rates_of_table(
        &mut self,
        py: Python<'_>,
        numbers: PyBuffer<u32>,
        normalizer: &str,
        passes: usize,
    ) -> PyResult<Table> {
        let keys: Vec<FlowKey> = numbers.to_vec(py)?.into_iter().map(FlowKey::of_number).collect();
        let normalizer = normalizer_of(normalizer).or_input_error(py)?;
        if passes == 0 || (passes > 1 && normalizer != Normalizer::Flow) {
            let what = format!("it is {passes}");
            let hint = "give 1, or more with the normalizer flow";
            return Err(InputError::new("passes", what, hint)).or_input_error(py);
        }
        self.follow(py);
        let now = &self.now;
        let rates = py.detach(|| either!(now, iteration => rates_of(iteration, normalizer, passes, &keys)));
        column("rate_bps", Arc::new(Float64Array::from(rates.or_input_error(py)?)))
    }

    /// Runs `n` iterations. Returns the largest relative error of a normalized rate after each: the rates of the flows
    /// with these numbers, compared with `want`.
    fn errors_table(
        &mut self,
        py: Python<'_>,
        n: u64,
        numbers: PyBuffer<u32>,
        want: PyBuffer<f64>,
        normalizer: &str,
    ) -> PyResult<Table> {
        let keys: Vec<FlowKey> = numbers.to_vec(py)?.into_iter().map(FlowKey::of_number).collect();
        let want = want.to_vec(py)?;
        let normalizer = normalizer_of(normalizer).or_input_error(py)?;
        if want.len() != keys.len() {
            let what = format!("there are {} for {} flows", want.len(), keys.len());
            return Err(InputError::new("rates_bps", what, "give one a flow")).or_input_error(py);
        }
        let mut errors = Vec::new();
        for _ in 0..n {
            let now = &mut self.now;
            let step = || {
                either!(now, iteration => {
                    iteration.step();
                    rates_of(iteration, normalizer, 1, &keys)
                })
            };
            errors.push(worst_off(&py.detach(step).or_input_error(py)?, &want));
            self.changed = false;
            py.check_signals()?;
        }
        column("error", Arc::new(Float64Array::from(errors)))
    }

    /// Serves flows that start and end: offsets, links, weights, starts in s and sizes in bytes. `times` are the length
    /// of an interval in s, and the number of intervals; `counts` the steps per interval, the passes of F-NORM, the
    /// first interval and the intervals between two comparisons. Returns a row for each interval.
    fn serve_flows(
        &mut self,
        py: Python<'_>,
        flows: ServedFlows,
        times: (f64, usize),
        counts: (usize, usize, usize, usize),
    ) -> PyResult<Table> {
        let (ptr, links) = (flows.0.to_vec(py)?, flows.1.to_vec(py)?);
        let (weights, starts_s, sizes) = (flows.2.to_vec(py)?, flows.3.to_vec(py)?, flows.4.to_vec(py)?);
        let (interval_s, intervals) = times;
        let (steps, passes, compare_from, compare_every) = counts;
        let plan = ServingPlan { interval_s, steps, passes, compare_from, compare_every };
        let served = || {
            let Policy::AlphaFair { alpha } = self.policy else {
                let what = format!("flows under {} are not served", self.policy.name());
                return Err(InputError::new("policy", what, "take alpha-fair"));
            };
            if !either!(&self.now, iteration => iteration.cluster().is_empty()) {
                return Err(InputError::new("flows", "the optimizer has flows already", "remove them first"));
            }
            let count = ptr.len().saturating_sub(1);
            let sound = ptr.first() == Some(&0) && ptr.is_sorted() && ptr.last().copied() == Some(links.len() as u32);
            if !sound || [weights.len(), starts_s.len(), sizes.len()] != [count; 3] {
                let what = "there are paths, weights, starts and sizes of different numbers of flows";
                return Err(InputError::new("flows", what, "give one of each for each flow"));
            }
            let offsets = Offsets::<usize>::from(ptr);
            let flow = |f: usize| ServedFlow {
                path: links[offsets.row(f)].iter().map(|&l| LinkId(l)).collect(),
                weight: weights[f],
                start_s: starts_s[f],
                size_bytes: sizes[f],
            };
            Serving::new((0..count).map(flow).collect(), self.network.clone(), alpha, plan)
        };
        let mut serving = py.detach(served).or_input_error(py)?;
        let mut rows: Vec<ServedInterval> = Vec::with_capacity(intervals);
        let mut heard = Ok(());
        while rows.len() < intervals && heard.is_ok() {
            let (now, these) = (&mut self.now, INTERVALS.min(intervals - rows.len()));
            let some: Result<(), InputError> = py.detach(|| {
                either!(now, iteration => {
                    let mut rates = Vec::new();
                    (0..these).try_for_each(|_| {
                        rows.push(serving.step(iteration, &mut rates)?);
                        Ok(())
                    })
                })
            });
            heard = some.or_input_error(py).and_then(|()| py.check_signals());
        }
        let now = &mut self.now;
        either!(now, iteration => serving.end(iteration)).or_input_error(py)?;
        self.changed = true;
        heard?;
        let compared = |of: fn((f64, f64)) -> f64| -> ArrayRef {
            Arc::new(rows.iter().map(|row| row.compared_bps.map(of)).collect::<Float64Array>())
        };
        let number = |of: fn(&ServedInterval) -> f64| -> ArrayRef {
            Arc::new(rows.iter().map(|row| Some(of(row))).collect::<Float64Array>())
        };
        Table::new(vec![
            ("flows", Arc::new(rows.iter().map(|row| Some(row.flows as u32)).collect::<UInt32Array>()) as ArrayRef),
            ("rate_bps", number(|row| row.rate_bps)),
            ("overload", number(|row| row.overload)),
            ("excess_gbps", number(|row| row.excess_gbps)),
            ("uniform_bps", compared(|both| both.0)),
            ("optimum_bps", compared(|both| both.1)),
        ])
    }

    /// Price of each link, in utility per bit/s; infinite for a failed link.
    fn prices_table(&self) -> PyResult<Table> {
        let prices: Vec<f64> = either!(&self.now, iteration => iteration.prices().collect());
        column("price", Arc::new(Float64Array::from(prices)))
    }

    /// Load of each link before normalization, bit/s.
    fn loads_table(&mut self, py: Python<'_>) -> PyResult<Table> {
        self.follow(py);
        let loads: Vec<f64> = either!(&self.now, iteration => iteration.loads_bps().collect());
        column("load_bps", Arc::new(Float64Array::from(loads)))
    }

    fn __len__(&self) -> usize {
        either!(&self.now, iteration => iteration.cluster().len())
    }

    fn __contains__(&self, number: u32) -> bool {
        either!(&self.now, iteration => iteration.cluster().contains(FlowKey::of_number(number)))
    }

    fn __repr__(&self) -> String {
        format!("<subak.Ned: {} flows, {} iterations>", self.__len__(), self.iterations())
    }
}

impl PyNed {
    /// Recomputes rates at the present prices if flows or capacities have changed since the last step.
    fn follow(&mut self, py: Python<'_>) {
        if std::mem::take(&mut self.changed) {
            let now = &mut self.now;
            py.detach(|| either!(now, iteration => iteration.respond()));
        }
    }
}

/// How an iteration is made.
struct Making<'a> {
    capacity_bps: &'a [f64],
    alpha: f64,
    method: NedMethod,
    gamma: Option<f64>,
    most_lines: f64,
    bounded: bool,
}

impl Making<'_> {
    fn iteration<T: Real>(&self) -> Result<NedIteration<T, AnyUpdate<T>>, InputError> {
        let cluster = Cluster::new(self.capacity_bps, self.alpha)?.with_most_lines(self.most_lines)?;
        let mut law = self.method.law(self.gamma)?;
        if self.bounded {
            law = Box::new(self.gamma.map_or_else(NedLaw::default, NedLaw::with_gamma).bounded());
        }
        Ok(NedIteration::new(cluster, law))
    }
}

/// The normalized rates of `keys`, bit/s.
fn rates_of<T: Real>(
    iteration: &NedIteration<T, AnyUpdate<T>>,
    normalizer: Normalizer,
    passes: usize,
    keys: &[FlowKey],
) -> Result<Vec<f64>, InputError> {
    let cluster = iteration.cluster();
    if let Some(key) = keys.iter().find(|key| !cluster.contains(**key)) {
        let what = format!("there is no flow {}", key.number());
        return Err(InputError::new("numbers", what, "give the numbers that add answered"));
    }
    let mut rates = Vec::new();
    iteration.normalize(normalizer, &mut rates);
    (1..passes).for_each(|_| iteration.normalize_again(&mut rates));
    let unit_bps = cluster.unit_bps();
    Ok(keys.iter().map(|key| rates.get(key.slot()).map_or(0.0, |x| x.f64() * unit_bps)).collect())
}

/// The normalizer called `name`.
pub fn normalizer_of(name: &str) -> Result<Normalizer, InputError> {
    match name {
        "none" => Ok(Normalizer::None),
        "uniform" => Ok(Normalizer::Uniform),
        "flow" => Ok(Normalizer::Flow),
        other => {
            let hint = "give flow (F-NORM), uniform (U-NORM) or none";
            Err(InputError::new("normalizer", format!("there is no normalizer \"{other}\""), hint))
        }
    }
}

/// Converts flows to the form of the iteration.
fn flows_of<'a>(
    policy: Policy,
    network: &subak_core::Network,
    ptr: Vec<u32>,
    links: &'a [LinkId],
    [weight, demand_bps, size_bytes, deadline_s]: &[Vec<f64>; 4],
) -> Result<Vec<NewFlow<'a>>, InputError> {
    let count = ptr.len().saturating_sub(1);
    let sound = ptr.first() == Some(&0) && ptr.windows(2).all(|w| w[0] <= w[1]);
    if !sound || ptr.last().copied() != Some(links.len() as u32) {
        let what = "the offsets do not go from 0 up to the number of links listed";
        return Err(InputError::new("link_ptr", what, "give where each flow's links begin, and the end of the last"));
    }
    for (name, column) in
        [("weight", weight), ("demand_bps", demand_bps), ("size_bytes", size_bytes), ("deadline_s", deadline_s)]
    {
        if !column.is_empty() && column.len() != count {
            let what = format!("there are {} for {count} flows", column.len());
            return Err(InputError::new(name, what, "give one a flow"));
        }
    }
    let (sized, timed) =
        (matches!(policy, Policy::Fct { .. } | Policy::Srpt { .. }), matches!(policy, Policy::Edf { .. }));
    for (name, column, used) in [("size_bytes", size_bytes, sized), ("deadline_s", deadline_s, timed)] {
        if !column.is_empty() && !used {
            let what = format!("the policy \"{}\" does not use it", policy.name());
            return Err(InputError::new(name, what, "leave it away, or take a policy that does"));
        }
    }
    let offsets = Offsets::from(ptr);
    let flow = |f: usize| {
        let at = |e: InputError| e.below(&format!("flows[{f}]"));
        let weight = weight.get(f).copied().unwrap_or(1.0);
        if !(weight.is_finite() && weight > 0.0) {
            return Err(at(InputError::new("weight", format!("it is {weight}"), "give a finite, positive weight")));
        }
        let size_bytes = size_bytes.get(f).map(|s| *s as u64);
        let extra = Extra { size_bytes, deadline_s: deadline_s.get(f).copied(), ..Extra::default() };
        let Utility::Power { ln_gain, .. } = Utility::under(policy, weight, &extra).map_err(at)? else {
            unreachable!("the policy has an alpha");
        };
        let path = &links[offsets.row(f)];
        // The iteration itself refuses unknown links.
        if path.iter().all(|l| l.index() < network.links().len()) {
            network.check_joined(path).map_err(|e| at(e.below("path")))?;
        }
        Ok(NewFlow { path, ln_gain, demand_bps: demand_bps.get(f).copied().unwrap_or(f64::INFINITY) })
    };
    (0..count).map(flow).collect()
}

fn column(name: &str, values: ArrayRef) -> PyResult<Table> {
    Table::new(vec![(name, values)])
}
