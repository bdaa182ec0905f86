//! Network utility maximization (NUMFabric, equation 1), exact: a damped Newton method on the dual.

mod newton;
mod order;
mod program;
mod response;

use crate::answer::{Answer, Status};
use crate::options::Options;
use crate::utility::Utility;
use newton::{Limits, Outcome, Start};
use program::Program;
use subak_core::{Case, Fault, IdVec, LinkId};

/// Maximizes the sum of `utilities`, one a flow, all of one kind and alpha > 0.
///
/// `warm` are prices of links from an earlier answer: close to the new ones, they save most of the way.
pub(crate) fn solve(
    case: &Case,
    utilities: &[Utility],
    options: &Options,
    warm: Option<&[f64]>,
) -> Result<Answer, Fault> {
    let tolerance = options.tolerance.max(1e-12);
    let limits = Limits { tolerance, max_iterations: options.max_iterations, start: Start::Cold };
    let mut program = Program::new(case, utilities)?;
    if let Some(prices) = warm {
        let start = program.scaled_prices(prices);
        let quick = Limits { max_iterations: limits.max_iterations.min(30), start: Start::Warm, ..limits };
        let outcome = newton::solve(&mut program, start, quick);
        if outcome.converged {
            return Ok(answer(case, &program, outcome, limits));
        }
        program = Program::new(case, utilities)?;
    }
    // A pooled problem that does not yield at once is taken carefully; single-path ones nearly always yield.
    let most = if case.flows.single_path() { limits.max_iterations } else { limits.max_iterations.min(60) };
    let start = program.price.clone();
    let mut outcome = newton::solve(&mut program, start, Limits { max_iterations: most, ..limits });
    if !outcome.converged && outcome.iterations < limits.max_iterations {
        program = Program::new(case, utilities)?;
        let start = program.price.clone();
        let kind = if program.paths.len() > MANY_PATHS { Start::Proximal } else { Start::Careful };
        outcome = newton::solve(&mut program, start, Limits { start: kind, ..limits });
    }
    Ok(answer(case, &program, outcome, limits))
}

/// Of more paths than this conjugate gradients do not reach the end of the pooled systems without proximal terms.
const MANY_PATHS: usize = 200;

/// Rates made feasible (each flow scaled by its worst overload, Flowtune's F-NORM) and both in the case's units.
fn answer(case: &Case, program: &Program, outcome: Outcome, limits: Limits) -> Answer {
    let Outcome { prices, response, iterations, converged, .. } = outcome;
    let (mut rate, mut load) = (response.rate, IdVec::<LinkId, f64>::filled(0.0, program.capacity.len()));
    rate.resize(program.paths.len(), 0.0);
    let price = |p: usize| program.sum(p, &prices);
    for f in 0..program.flows.len() {
        // A pooled flow takes what it wants at the price of its cheapest path.
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
    let ln_unit = -program.alpha * program.ln_level_unit;
    for (price, &l) in prices.iter().zip(&program.links) {
        link_price[l] = libm::exp(libm::log(*price) + ln_unit);
    }
    let status = match converged {
        true => Status::Optimal,
        false if iterations >= limits.max_iterations => Status::IterationLimit,
        false => Status::Stalled,
    };
    Answer { status, rates_bps, path_rates_bps, link_price, iterations, ..Answer::empty("newton-cg") }
}
