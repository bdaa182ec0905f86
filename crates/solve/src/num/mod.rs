//! Network utility maximization (NUMFabric, equation 1), exact: a damped Newton method on the dual.

mod newton;
mod program;
mod response;

use crate::answer::{Answer, Status};
use crate::solver::Options;
use crate::utility::Utility;
use newton::{Limits, Outcome};
use program::Program;
use subak_core::{Case, Fault};

/// Maximizes the sum of `utilities`, one a flow, all of one kind and alpha > 0.
pub(crate) fn solve(case: &Case, utilities: &[Utility], options: &Options) -> Result<Answer, Fault> {
    let mut program = Program::new(case, utilities)?;
    let start = program.price.clone();
    let limits = Limits { tolerance: options.tolerance.max(1e-12), max_iterations: options.max_iterations };
    let outcome = newton::solve(&mut program, start, limits);
    Ok(answer(case, &program, outcome, limits))
}

/// Rates made feasible (each flow scaled by its worst overload, Flowtune's F-NORM) and both in the case's units.
fn answer(case: &Case, program: &Program, outcome: Outcome, limits: Limits) -> Answer {
    let Outcome { prices, response, iterations, converged, .. } = outcome;
    let over: Vec<f64> = response.load.iter().zip(&program.capacity).map(|(l, c)| (l / c).max(1.0)).collect();
    let mut path_rates_bps = vec![0.0; case.flows.path_count()];
    let mut rates_bps = vec![0.0; case.flows.len()];
    for (f, &flow) in program.flows.iter().enumerate() {
        let mut sum = 0.0;
        for p in program.paths_of(f) {
            let worst = program.path(p).iter().map(|&l| over[l as usize]).fold(1.0, f64::max);
            let rate = response.rate[p] / worst * program.rate_unit_bps;
            path_rates_bps[program.paths[p] as usize] = rate;
            sum += rate;
        }
        rates_bps[flow as usize] = sum;
    }
    let mut link_price = vec![0.0; case.network.links().len()];
    let ln_unit = -program.alpha * program.ln_level_unit;
    for (price, &l) in prices.iter().zip(&program.links) {
        link_price[l as usize] = libm::exp(libm::log(*price) + ln_unit);
    }
    let status = match converged {
        true => Status::Optimal,
        false if iterations >= limits.max_iterations => Status::IterationLimit,
        false => Status::Stalled,
    };
    Answer { status, rates_bps, path_rates_bps, link_price, iterations, ..Answer::empty("newton-cg") }
}
