//! Entry point: selects the method for a policy, and certifies the answer.

use crate::answer::{Answer, Certificate, LevelDual, LinkRows, Status};
use crate::certificate::{Loads, NOTHING, bottlenecks, prove};
use crate::fold::{Folded, fold};
use crate::levels::{self, Rise};
use crate::max_min::{self, MaxMin};
use crate::num;
use crate::options::{SolveMethod, SolveOptions};
use crate::utility::{BandwidthFunction, Utility};
use crate::{fair_share, sequence, throughput};
use std::time::Instant;
use subak_core::{Case, IdVec, InputError, LinkId, Policy};

/// Solves `case` exactly. An invalid case is an error. A case that could not be solved to the tolerance has an answer
/// whose status says so.
pub fn solve(case: &Case, options: &SolveOptions) -> Result<Answer, InputError> {
    solve_from(case, options, None)
}

/// Solves `case` like [`solve`]. Under a utility policy the iteration starts from `warm`, the link prices of an earlier
/// answer; if the change since then is small, this saves most iterations.
pub fn solve_from(case: &Case, options: &SolveOptions, warm: Option<&[f64]>) -> Result<Answer, InputError> {
    let start = Instant::now();
    let links = case.network.links().len();
    if let Some(warm) = warm.filter(|warm| warm.len() != links) {
        let what = format!("there are {} of {links} links", warm.len());
        return Err(InputError::new("prices", what, "give one price a link"));
    }
    if let Some(folded) = foldable(case, options) {
        let warm = warm.map(|prices| folded.prices(prices));
        let answer = unfinished(&folded.case, options, warm.as_deref(), true)?;
        let answer = finish(case, folded.unfolded(&answer), options, start, None);
        if answer.status == Status::Optimal {
            return Ok(answer);
        }
    }
    Ok(finish(case, unfinished(case, options, warm, false)?, options, start, None))
}

/// The case with equal links merged, if it has several paths a flow and any are equal.
fn foldable(case: &Case, options: &SolveOptions) -> Option<Folded> {
    (options.method == SolveMethod::Own && !case.flows.single_path()).then(|| fold(case)).flatten()
}

/// The answer without its certificate. Of a `folded` case, max-min over single paths has the duals of its levels, since
/// the original case has several paths a flow.
fn unfinished(case: &Case, options: &SolveOptions, warm: Option<&[f64]>, folded: bool) -> Result<Answer, InputError> {
    Ok(match (case.policy, case.flows.single_path()) {
        (Policy::MaxMin | Policy::BandwidthFunction { .. }, _) if options.method == SolveMethod::Clarabel => {
            let what = "Clarabel is a second method for utilities; this policy has an exact one only";
            return Err(InputError::new("solver", what, "use the default solver"));
        }
        (Policy::MaxMin, true) => single_path_max_min(case, folded),
        (Policy::MaxMin, false) => {
            let rises: Vec<Rise> = case.flows.weight().iter().map(|&w| Rise::Weight(w)).collect();
            levels::solve(case, &rises)?
        }
        (Policy::BandwidthFunction { .. }, true) if !folded => single_path_functions(case)?,
        (Policy::BandwidthFunction { .. }, _) => {
            let rises: Vec<Rise> = bandwidth_functions(case)?.into_iter().map(Rise::Function).collect();
            levels::solve(case, &rises)?
        }
        _ => by_utility(case, &utilities(case)?, options, warm)?,
    })
}

/// Maximizes the sum of `utilities`, one per flow, regardless of the case's policy: for example bandwidth functions
/// as utilities.
pub fn maximize(case: &Case, utilities: &[Utility], options: &SolveOptions) -> Result<Answer, InputError> {
    maximize_from(case, utilities, options, None)
}

/// Like [`maximize`], with a warm start from the link prices of an earlier answer, which saves most iterations after
/// a small change.
pub fn maximize_from(
    case: &Case,
    utilities: &[Utility],
    options: &SolveOptions,
    warm: Option<&[f64]>,
) -> Result<Answer, InputError> {
    let start = Instant::now();
    if let Some(folded) = foldable(case, options) {
        let warm = warm.map(|prices| folded.prices(prices));
        let answer = by_utility(&folded.case, utilities, options, warm.as_deref())?;
        let answer = finish(case, folded.unfolded(&answer), options, start, Some(utilities));
        if answer.status == Status::Optimal {
            return Ok(answer);
        }
    }
    let answer = by_utility(case, utilities, options, warm)?;
    Ok(finish(case, answer, options, start, Some(utilities)))
}

/// Maximizes the sum of `utilities`: linear ones by Clarabel as a linear program, others by this crate's Newton method,
/// or by Clarabel if the options select it.
fn by_utility(
    case: &Case,
    utilities: &[Utility],
    options: &SolveOptions,
    warm: Option<&[f64]>,
) -> Result<Answer, InputError> {
    let linear = utilities.first().is_some_and(|u| u.alphas().1 == 0.0);
    if linear {
        return Ok(throughput::solve(case, utilities, options));
    }
    if options.method == SolveMethod::Clarabel {
        return sequence::solve(case, utilities, options);
    }
    num::solve(case, utilities, options, warm)
}

fn bandwidth_functions(case: &Case) -> Result<Vec<BandwidthFunction>, InputError> {
    let function = |f: usize| match Utility::of(case, f)? {
        Utility::BandwidthFunction { function, .. } => Ok(function),
        Utility::Power { .. } | Utility::Curve { .. } => unreachable!("the policy gives bandwidth functions"),
    };
    (0..case.flows.len()).map(function).collect()
}

fn single_path_functions(case: &Case) -> Result<Answer, InputError> {
    let (rates, iterations) = fair_share::fill(case, bandwidth_functions(case)?);
    Ok(Answer {
        path_rates_bps: rates.clone(),
        rates_bps: rates,
        link_price: IdVec::filled(0.0, case.network.links().len()),
        iterations,
        ..Answer::empty("fair-share-filling")
    })
}

fn utilities(case: &Case) -> Result<Vec<Utility>, InputError> {
    (0..case.flows.len()).map(|f| Utility::of(case, f)).collect()
}

/// Adds bottlenecks, link loads, status and the certificate to an answer that has rates and prices. The certificate is
/// for the maximum of the sum of `utilities` if they are given, otherwise for the case's policy.
pub(crate) fn finish(
    case: &Case,
    mut answer: Answer,
    options: &SolveOptions,
    start: Instant,
    utilities: Option<&[Utility]>,
) -> Answer {
    if let Some(loads) = Loads::of(case, &answer) {
        answer.bottlenecks = bottlenecks(case, &answer, &loads, options.tolerance);
        answer.certificate = prove(case, &answer, utilities, &loads, &answer.bottlenecks);
        answer.link_load_bps = loads.load;
        if answer.certificate.worst() <= options.tolerance {
            answer.status = Status::Optimal;
        } else if answer.status == Status::Optimal {
            answer.status = Status::Inaccurate;
        }
    } else {
        // A NaN must not spread: the rates become 0, and the status says that there is no answer.
        answer.rates_bps.fill(0.0);
        answer.path_rates_bps.fill(0.0);
        answer.link_price.fill(0.0);
        answer.link_load_bps = IdVec::filled(0.0, case.network.links().len());
        answer.bottlenecks = LinkRows::of_nothing(case.flows.len());
        answer.certificate = NOTHING;
        answer.status = Status::Stalled;
    }
    answer.seconds = start.elapsed().as_secs_f64();
    answer
}

fn single_path_max_min(case: &Case, with_levels: bool) -> Answer {
    let capacity_bps: Vec<f64> = case.network.links().iter().map(|l| l.capacity_bps).collect();
    let flows = &case.flows;
    let mut rates = vec![0.0; flows.len()];
    let mut frozen_by = vec![max_min::NO_LINK; flows.len()];
    let rows = max_min::PathRows {
        capacity_bps: &capacity_bps,
        link_ptr: flows.link_ptr(),
        links: flows.links(),
        weight: flows.weight(),
        demand_bps: flows.demand_bps(),
        active: None,
    };
    let iterations = MaxMin::new().solve(&rows, &mut rates, &mut frozen_by);
    let bottlenecks = frozen_by.iter().map(|&l| (l != max_min::NO_LINK).then_some(l));
    let link_price = max_min_prices(case, bottlenecks.clone());
    let levels = if with_levels { levels_of(case, &rates, bottlenecks, &link_price) } else { Vec::new() };
    let answer = Answer::empty("water-filling");
    Answer { path_rates_bps: rates.clone(), rates_bps: rates, link_price, iterations, levels, ..answer }
}

/// Relative difference of water levels below which they count as one.
const SAME_LEVEL: f64 = 1e-12;

/// The duals of each water level of single-path max-min: the prices of the links that limit flows there.
fn levels_of(
    case: &Case,
    rates_bps: &[f64],
    bottlenecks: impl Iterator<Item = Option<LinkId>>,
    link_price: &IdVec<LinkId, f64>,
) -> Vec<LevelDual> {
    let mut of_link = IdVec::<LinkId, f64>::filled(0.0, link_price.len());
    for (f, l) in bottlenecks.enumerate().filter_map(|(f, l)| Some((f, l?))) {
        of_link[l] = of_link[l].max(rates_bps[f] / case.flows.weight()[f]);
    }
    let mut limits: Vec<(f64, LinkId)> =
        of_link.iter_enumerated().filter(|(l, _)| link_price[*l] > 0.0).map(|(l, &level)| (level, l)).collect();
    limits.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut levels: Vec<LevelDual> = Vec::new();
    for (level, l) in limits {
        match levels.last_mut().filter(|last| level <= last.level * (1.0 + SAME_LEVEL)) {
            Some(last) => last.prices.push((l, link_price[l])),
            None => levels.push(LevelDual { level, prices: vec![(l, link_price[l])] }),
        }
    }
    levels
}

/// Max-min price of each link: one over the total weight of the flows that the link limits, which is the increase of
/// their water level per bit/s of capacity. `bottlenecks` has one entry per flow, `None` for a flow at its demand.
pub(crate) fn max_min_prices(case: &Case, bottlenecks: impl Iterator<Item = Option<LinkId>>) -> IdVec<LinkId, f64> {
    let mut weight = IdVec::filled(0.0, case.network.links().len());
    for (l, w) in bottlenecks.zip(case.flows.weight()).filter_map(|(l, w)| Some((l?, w))) {
        weight[l] += w;
    }
    weight.into_iter().map(|w| if w > 0.0 { 1.0 / w } else { 0.0 }).collect()
}

impl Answer {
    pub(crate) fn empty(solver: &'static str) -> Self {
        Answer {
            status: Status::Optimal,
            rates_bps: Vec::new(),
            path_rates_bps: Vec::new(),
            bottlenecks: LinkRows::default(),
            link_load_bps: IdVec::new(),
            link_price: IdVec::new(),
            ln_price_unit: 0.0,
            levels: Vec::new(),
            certificate: Certificate::default(),
            solver,
            iterations: 0,
            seconds: 0.0,
        }
    }
}
