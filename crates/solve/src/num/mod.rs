//! Network utility maximization (NUMFabric, equation 1), exact: a damped Newton method on the dual.

mod dense;
mod newton;
mod order;
mod program;
mod response;

use crate::answer::{Answer, Status};
use crate::options::SolveOptions;
use crate::utility::Utility;
use newton::{Limits, Outcome, Start};
use program::{Form, Program};
use subak_core::{Case, IdVec, InputError, LinkId};

/// Maximizes the sum of `utilities`, one per flow, with alpha > 0. Bandwidth functions are not mixed with others.
///
/// `warm` are link prices of an earlier answer; if they are close to the new ones, they save most iterations.
pub(crate) fn solve(
    case: &Case,
    utilities: &[Utility],
    options: &SolveOptions,
    warm: Option<&[f64]>,
) -> Result<Answer, InputError> {
    let tolerance = options.tolerance.max(1e-12);
    let limits = Limits { tolerance, max_iterations: options.max_iterations, start: Start::Cold };
    // At small alpha, rates are very sensitive to prices: the unknowns are rates then.
    let flat = utilities.iter().any(|u| !matches!(u, Utility::BandwidthFunction { .. }) && u.alphas().0 < 1.0);
    let pooled = !case.flows.single_path();
    let form = if flat && pooled { Form::Rates } else { Form::Prices };
    if let Some(prices) = warm {
        let mut program = Program::new(case, utilities, form)?;
        let start = program.scaled_prices(prices);
        let quick = Limits { max_iterations: limits.max_iterations.min(30), start: Start::Warm, ..limits };
        let outcome = newton::solve(&mut program, start, quick);
        if outcome.converged {
            return Ok(answer(case, &program, outcome, limits));
        }
    }
    let attempt = |form, start, most: u64| {
        let mut program = Program::new(case, utilities, form)?;
        let prices = program.price.clone();
        let max_iterations = limits.max_iterations.min(most);
        let outcome = newton::solve(&mut program, prices, Limits { start, max_iterations, ..limits });
        Ok((program, outcome))
    };
    // A multipath problem that does not converge quickly is solved more carefully; single-path problems nearly always
    // converge.
    let (mut program, mut outcome) = attempt(form, Start::Cold, if pooled { QUICK } else { MANY })?;
    for (other, most) in [(Form::Rates, QUICK), (Form::Within, MANY)] {
        if flat && other != form && !outcome.converged {
            (program, outcome) = attempt(other, Start::Cold, most)?;
        }
    }
    if !outcome.converged && outcome.iterations < limits.max_iterations {
        let hard = program.paths.len() > MANY_PATHS && program.capacity.len() > newton::MOST_IN_FULL;
        let start = if hard { Start::Proximal } else { Start::Careful };
        (program, outcome) = attempt(if flat { Form::Rates } else { form }, start, u64::MAX)?;
    }
    Ok(answer(case, &program, outcome, limits))
}

/// Number of iterations within which most problems converge.
const QUICK: u64 = 60;
/// Number of iterations within which nearly all problems converge.
const MANY: u64 = 500;

/// Number of paths above which conjugate gradients fail on the pooled systems without proximal terms.
const MANY_PATHS: usize = 200;

/// The answer in the case's units, with rates made feasible: each flow's rate is divided by the largest overload on its
/// path (Flowtune's F-NORM).
fn answer(case: &Case, program: &Program, outcome: Outcome, limits: Limits) -> Answer {
    let Outcome { prices, response, iterations, converged, .. } = outcome;
    let (mut rate, mut load) = (response.rate, IdVec::<LinkId, f64>::filled(0.0, program.capacity.len()));
    rate.resize(program.paths.len(), 0.0);
    let price = |p: usize| program.sum(p, &prices);
    for f in 0..program.flows.len() {
        // Rate that a pooled flow would have at the price of its cheapest path.
        let wanted = program.respond(f, program.paths_of(f).map(price).fold(f64::INFINITY, f64::min)).0;
        let sum: f64 = rate[program.paths_of(f)].iter().sum();
        for p in program.paths_of(f) {
            rate[p] = match program.paths_of(f).len() {
                1 => wanted,
                _ if sum > 0.0 => rate[p] * (wanted / sum),
                _ => 0.0,
            };
            program.path(p).iter().for_each(|&l| load[l] += rate[p]);
        }
    }
    let mut path_rates_bps = vec![0.0; case.flows.path_count()];
    let mut rates_bps = vec![0.0; case.flows.len()];
    for (f, &flow) in program.flows.iter().enumerate() {
        for p in program.paths_of(f) {
            let over = |&l: &LinkId| load[l] / program.capacity[l];
            let worst = program.path(p).iter().map(over).fold(1.0, f64::max);
            let rate = rate[p] / worst * program.rate_unit_bps;
            path_rates_bps[program.paths[p].index()] = rate;
            rates_bps[flow.index()] += rate;
        }
    }
    let mut link_price = IdVec::filled(0.0, case.network.links().len());
    let ln_price_unit = program.ln_price_unit();
    let ln_unit = -program.alpha * program.ln_level_unit - ln_price_unit;
    for (price, &l) in prices.iter().zip(&program.links).filter(|(_, l)| **l != LinkId::NONE) {
        link_price[l] = libm::exp(libm::log(*price) + ln_unit);
    }
    let status = match converged {
        true => Status::Optimal,
        false if iterations >= limits.max_iterations => Status::IterationLimit,
        false => Status::Stalled,
    };
    Answer { status, rates_bps, path_rates_bps, link_price, ln_price_unit, iterations, ..Answer::empty("newton-cg") }
}
