//! Utility maximization as a sequence of quadratic programs for Clarabel: an independent second method.
//!
//! A single conic program (exponential and power cones) reaches a gap of 1e-12, but rates are accurate only to its
//! square root: near the optimum the utility is flat to second order, and cones relate rates to prices through the
//! gap alone. In a quadratic program prices enter linearly, and interior points satisfy linear equations up to
//! rounding. Each round therefore uses the second-order model of the utilities at the last rates; its duals are the
//! prices.

use crate::answer::{Answer, Status};
use crate::certificate::{certify_maximum, narrowest_link};
use crate::conic::Program;
use crate::options::SolveOptions;
use crate::throughput::repair;
use crate::utility::Utility;
use subak_core::{Case, IdVec, InputError, LinkId};

/// Largest number of rounds.
const MOST_ROUNDS: u64 = 100;

/// Rounds without a better certificate after which the scaling changes, or the solve stops.
const PATIENCE: usize = 8;

/// Exponents by which variables are scaled with their flow's payment, tried in turn while the certificate exceeds the
/// tolerance. The first balances utilities that differ by orders of magnitude, as with large alphas. The others help
/// if weights or capacities differ by many orders too.
const SCALINGS: [f64; 3] = [0.5, 0.0, 1.0];

/// Logarithm of the largest price in utility per bit/s.
const LN_LARGEST: f64 = 500.0;

/// Smallest ratio of a flow's rate after a round to its rate before.
const LEAST_PART: f64 = 0.1;

/// Maximizes the sum of `utilities`, powers with alpha > 0.
pub(crate) fn solve(case: &Case, utilities: &[Utility], options: &SolveOptions) -> Result<Answer, InputError> {
    if utilities.iter().any(|u| matches!(u, Utility::BandwidthFunction { .. })) {
        let what = "utilities of bandwidth functions have kinks, which this second method cannot cross";
        return Err(InputError::new("policy.kind", what, "use the default solver"));
    }
    if utilities.iter().any(|u| matches!(u, Utility::Curve { .. })) {
        let what = "Clarabel is a second method for alpha-fair utilities; the case has utilities through points";
        return Err(InputError::new("solver", what, "use the default solver"));
    }
    let mut sequence = Sequence::new(case, utilities);
    let mut best = sequence.answer(IdVec::filled(0.0, case.network.links().len()));
    let mut least = f64::INFINITY;
    let (mut iterations, mut since, mut scalings) = (0, 0, SCALINGS.into_iter().skip(1));
    let mut status = Status::IterationLimit;
    for _ in 0..MOST_ROUNDS.min(options.max_iterations) {
        let round = sequence.round(options.tolerance);
        since = if round.is_none() { PATIENCE } else { since + 1 };
        if let Some((prices, took)) = round {
            iterations += took;
            let answer = sequence.answer(prices);
            let worst = certify_maximum(case, utilities, &answer).worst();
            if worst < least {
                (best, least, since) = (answer, worst, 0);
            }
        }
        if since >= PATIENCE {
            match scalings.next() {
                Some(power) => (sequence.power, since) = (power, 0),
                None => status = Status::Stalled,
            }
        }
        if least <= options.tolerance || status == Status::Stalled {
            break;
        }
    }
    Ok(Answer { status, iterations, ..best })
}

struct Sequence<'a> {
    case: &'a Case,
    utilities: &'a [Utility],
    /// Flows with a positive demand.
    flows: Vec<usize>,
    /// The rate of each path, bit/s.
    rate: Vec<f64>,
    /// Current exponent of [`SCALINGS`].
    power: f64,
    /// Logarithm of the price unit of the last round.
    ln_price_unit: f64,
}

/// The model of one round.
struct Model {
    program: Program,
    /// Index of each path's variable in the program; `None` for a path without one.
    variable: Vec<Option<usize>>,
    /// Index of each link's row in the program; `None` for a link without one.
    row: IdVec<LinkId, Option<usize>>,
    ln_unit: f64,
}

impl<'a> Sequence<'a> {
    /// Starts each path at the smallest equal share of its links' capacities, or of its flow's demand if that is less.
    fn new(case: &'a Case, utilities: &'a [Utility]) -> Self {
        let flows: Vec<usize> = (0..case.flows.len()).filter(|&f| case.flows.demand_bps()[f] > 0.0).collect();
        let mut crossing = IdVec::filled(0.0, case.network.links().len());
        for p in flows.iter().flat_map(|&f| case.flows.paths_of(f)) {
            case.flows.links_of(p).iter().for_each(|&l| crossing[l] += 1.0);
        }
        let mut rate = vec![0.0; case.flows.path_count()];
        for &f in &flows {
            let paths = case.flows.paths_of(f);
            let most = case.flows.demand_bps()[f] / paths.len() as f64;
            for p in paths {
                let share = |&l: &LinkId| case.network.links()[l].capacity_bps / crossing[l];
                rate[p] = case.flows.links_of(p).iter().map(share).fold(most, f64::min);
            }
        }
        Sequence { case, utilities, flows, rate, power: SCALINGS[0], ln_price_unit: 0.0 }
    }

    fn total(&self, f: usize) -> f64 {
        self.rate[self.case.flows.paths_of(f)].iter().sum()
    }

    /// ln (U'(y) y): logarithm of the payment of flow `f` at its rate y.
    fn ln_payment(&self, f: usize) -> f64 {
        let y = self.total(f);
        self.utilities[f].ln_marginal(y) + libm::log(y)
    }

    fn scale(&self, f: usize, ln_unit: f64) -> f64 {
        libm::exp(self.power * (self.ln_payment(f) - ln_unit))
    }

    /// Solves one model and updates the rates. Returns the links' prices and Clarabel's number of iterations.
    fn round(&mut self, tolerance: f64) -> Option<(IdVec<LinkId, f64>, u64)> {
        let model = self.model();
        let found = model.program.solve((tolerance * 1e-6).max(1e-14));
        if !found.solved {
            return None;
        }
        let mut wanted = vec![0.0; self.rate.len()];
        for &f in &self.flows {
            let y = self.total(f);
            let scale = self.scale(f, model.ln_unit);
            for p in self.case.flows.paths_of(f) {
                wanted[p] = model.variable[p].map_or(0.0, |v| found.x[v].max(0.0) * y / scale);
            }
        }
        let step = self.step(&wanted);
        self.rate.iter_mut().zip(&wanted).for_each(|(x, w)| *x += step * (w - *x));
        let links = self.case.network.links();
        let widest = links.iter().map(|l| l.capacity_bps).fold(f64::MIN_POSITIVE, f64::max);
        let ln_unit = model.ln_unit - libm::log(widest);
        // In utility per bit/s if that is within the range of doubles.
        self.ln_price_unit = if ln_unit.abs() < LN_LARGEST { 0.0 } else { ln_unit };
        let ln_unit = ln_unit - self.ln_price_unit;
        let price = |(row, link): (&Option<usize>, &subak_core::Link)| {
            let of_dual = |r: usize| libm::exp(libm::log(found.dual[r].max(0.0)) + ln_unit);
            row.map_or(0.0, |r| of_dual(r) / (link.capacity_bps / widest))
        };
        Some((model.row.iter().zip(links).map(price).collect(), found.iterations))
    }

    /// Step length from the present rates towards `wanted`: 1, or less if the utility would decrease at the end of the
    /// step.
    fn step(&self, wanted: &[f64]) -> f64 {
        let ln_unit = self.flows.iter().map(|&f| self.ln_payment(f)).fold(f64::NEG_INFINITY, f64::max);
        let slope = |step: f64| -> f64 {
            let of = |&f: &usize| {
                let (from, to) = (self.total(f), wanted[self.case.flows.paths_of(f)].iter().sum::<f64>());
                let at = from + step * (to - from);
                libm::exp(self.utilities[f].ln_marginal(at) + libm::log(from) - ln_unit) * (to / from - 1.0)
            };
            self.flows.iter().map(of).sum()
        };
        let first = slope(0.0);
        let mut step = 1.0;
        // A step so short that rounding hides the slope is used whole.
        while first > 1e-9 && slope(step) < -0.5 * first && step > 1e-6 {
            step *= 0.5;
        }
        step
    }

    /// The quadratic model: maximize the sum of U' y ((r - 1) - alpha (r - 1)^2 / 2). A flow's present rate is y and
    /// its new rate r y. The unit is the largest payment U' y.
    fn model(&self) -> Model {
        let links = self.case.network.links();
        let ln_unit = self.flows.iter().map(|&f| self.ln_payment(f)).fold(f64::NEG_INFINITY, f64::max);
        let mut program = Program::default();
        let mut variable = vec![None; self.rate.len()];
        let mut crossing = IdVec::<LinkId, _>::filled(Vec::new(), links.len());
        for &f in &self.flows {
            let (alpha, y) = (self.utilities[f].alphas().0, self.total(f));
            let payment = libm::exp(self.ln_payment(f) - ln_unit);
            let scale = self.scale(f, ln_unit);
            let paths = self.case.flows.paths_of(f);
            let first = program.cost.len();
            for p in paths.clone() {
                let v = program.variable(-(1.0 + alpha) * payment / scale);
                variable[p] = Some(v);
                (first..=v).for_each(|u| program.quadratic.push((u, v, alpha * payment / scale / scale)));
                for &l in self.case.flows.links_of(p) {
                    crossing[l].push((v, y / scale / links[l].capacity_bps));
                }
            }
            let sum = |factor: f64| (first..program.cost.len()).map(|v| (v, factor)).collect::<Vec<_>>();
            let (least, all) = (sum(-1.0), sum(1.0));
            if paths.len() > 1 {
                for (v, p) in (first..).zip(paths) {
                    program.at_most(vec![(v, -1.0)], 0.0, scale * narrowest_link(self.case, p) / y);
                }
            }
            program.at_most(least, -LEAST_PART * scale, scale);
            let demand = self.case.flows.demand_bps()[f];
            if demand.is_finite() {
                program.at_most(all, scale * demand / y, scale * demand / y);
            }
        }
        let row = crossing.into_iter().map(|row| (!row.is_empty()).then(|| program.at_most(row, 1.0, 1.0))).collect();
        Model { program, variable, row, ln_unit }
    }

    /// The present rates, made feasible, with prices.
    fn answer(&self, link_price: IdVec<LinkId, f64>) -> Answer {
        let (path_rates_bps, ln_price_unit) = (self.rate.clone(), self.ln_price_unit);
        let mut answer = Answer { path_rates_bps, link_price, ln_price_unit, ..Answer::empty("clarabel") };
        repair(self.case, &mut answer);
        answer
    }
}
