//! Soak test of the solver: random networks and policies, extreme ones among them, and the certificate of each
//! answer.

use super::CaseResult;
use super::draw::Draw;
use crate::hold;
use subak_core::{Case, Flow, Flows, Link, LinkId, Network, Policy};
use subak_solve::{Answer, Incremental, SolveOptions, Status, certify, solve};

/// Tolerance of a certificate.
const TOLERANCE: f64 = 1e-8;
/// Largest relative excess of a link's load over its capacity.
const OVERLOAD: f64 = 1e-9;

/// A random problem. Capacities and weights span up to 1, 4 or 9 orders of magnitude.
pub fn problem(draw: &mut Draw) -> Result<Case, String> {
    let orders = draw.of(&[1.0, 4.0, 9.0]);
    let policy = policy(draw);
    let paths = draw.of(&[1, 1, 2, 4]);
    let links = draw.log(1.0, 60.0) as usize + 1;
    let capacity = |draw: &mut Draw| match draw.chance(0.5) {
        true => draw.of(&[1e9, 10e9, 40e9]),
        false => 1.6e12 * libm::pow(10.0, -orders * draw.unit()),
    };
    let mut network = Network::new();
    for l in 0..links {
        let capacity_bps = capacity(draw);
        let link = Link { id: format!("l{l}"), from: None, to: None, capacity_bps, delay_ns: 0, buffer_bytes: None };
        network.add(link).map_err(|e| e.to_string())?;
    }
    let mut flows = Flows::new();
    for f in 0..draw.log(1.0, 200.0) as usize {
        let flow = flow(draw, f, links, paths, orders);
        flows.push(flow, &network).map_err(|e| e.to_string())?;
    }
    Ok(Case { network, flows, policy })
}

fn policy(draw: &mut Draw) -> Policy {
    let epsilon = draw.of(&[0.1, 0.125, 0.5]);
    match draw.below(8) {
        0..=2 => Policy::MaxMin,
        3 => Policy::AlphaFair { alpha: 1.0 },
        4 => Policy::AlphaFair { alpha: draw.of(&[0.0, 0.2, 0.5, 2.0, 3.0]) },
        5 => Policy::AlphaFair { alpha: draw.log(0.1, 5.0) },
        6 => draw.of(&[Policy::Fct { epsilon }, Policy::Srpt { epsilon }, Policy::Edf { epsilon }]),
        _ => Policy::BANDWIDTH_FUNCTION,
    }
}

fn flow(draw: &mut Draw, number: usize, links: usize, paths: usize, orders: f64) -> Flow {
    let mut flow = Flow::over(format!("f{number}"), Vec::new());
    flow.paths.clear();
    for _ in 0..draw.whole(1, paths as u64) {
        let length = draw.whole(1, links.min(5) as u64) as usize;
        flow.paths.push(draw.some(links, length).into_iter().map(|l| LinkId(l as u32)).collect());
    }
    flow.paths.sort();
    flow.paths.dedup();
    let (far, bound_bps) = (libm::pow(10.0, orders * (draw.unit() - 0.5)), draw.log(1e4, 1e12));
    flow.weight = draw.of(&[1.0, 1.0, 2.5, far]);
    flow.demand_bps = draw.chance(0.2).then(|| draw.of(&[0.0, bound_bps, bound_bps]));
    flow.size_bytes = Some(draw.log(1.0, 1e10) as u64);
    flow.deadline_s = Some(draw.log(1e-6, 1.0));
    flow
}

/// Checks an answer; `false` if the answer's status says that it is not certified.
pub fn check(case: &Case, answer: &Answer) -> Result<bool, String> {
    let certificate = certify(case, answer);
    let (worst, over) = (certificate.worst(), certificate.infeasibility);
    // After a numerical failure the rates are 0 and the status says that there is no answer.
    let is_none = answer.certificate.infeasibility == f64::INFINITY && answer.status == Status::Stalled;
    let same = certificate == answer.certificate || is_none && answer.rates_bps.iter().all(|rate| *rate == 0.0);
    hold!(same, "{certificate:?} is not what the answer says: {:?}", answer.certificate);
    let certified = worst <= TOLERANCE;
    let optimal = answer.status == Status::Optimal;
    hold!(optimal == certified, "{:?} with {certificate:?}", answer.status);
    let mut numbers = answer.rates_bps.iter().chain(&answer.path_rates_bps).chain(&answer.link_price);
    hold!(numbers.all(|x| x.is_finite() && *x >= 0.0), "rates or prices that are none");
    hold!(over <= OVERLOAD, "a link or a demand is exceeded by {over}");
    let filling = matches!(case.policy, Policy::MaxMin) && case.flows.single_path();
    hold!(certified || !filling, "water-filling is always exact, and misses by {worst}");
    Ok(certified)
}

/// Solves a random problem twice, which must have the same result, and again after changes.
pub fn case(draw: &mut Draw) -> Result<CaseResult, String> {
    let case = problem(draw)?;
    let options = SolveOptions::default();
    let about = format!("{:?}, {} links, {} flows", case.policy, case.network.links().len(), case.flows.len());
    let said = |what: String| format!("{about}: {what}");
    let answer = match solve(&case, &options) {
        Ok(answer) => answer,
        Err(fault) => {
            hold!(!fault.what.is_empty() && !fault.hint.is_empty(), "an error that says nothing: {fault:?}");
            return Ok(CaseResult::Refused);
        }
    };
    let certified = check(&case, &answer).map_err(said)?;
    let again = solve(&case, &options).map_err(|e| e.to_string())?;
    hold!(bits(&again) == bits(&answer), "{about}: the same problem has two answers");
    if certified && draw.chance(0.3) {
        changes(draw, case).map_err(said)?;
    }
    Ok(if certified { CaseResult::Whole } else { CaseResult::Uncertified })
}

fn bits(answer: &Answer) -> Vec<u64> {
    answer.path_rates_bps.iter().chain(&answer.link_price).map(|x| x.to_bits()).collect()
}

/// Changes flows and weights, and checks each answer.
fn changes(draw: &mut Draw, case: Case) -> Result<(), String> {
    let ids: Vec<String> = (0..case.flows.len()).map(|f| case.flows.id(f).to_string()).collect();
    let mut live = Incremental::new(case);
    for _ in 0..draw.whole(1, 6) {
        let id = draw.of(&ids);
        let said = |e: subak_core::InputError| e.to_string();
        match draw.below(4) {
            0 if live.len() > 1 && live.contains(&id) => live.remove(&id).map_err(said)?,
            1 if live.contains(&id) => live.set_weight(&id, draw.log(0.1, 10.0)).map_err(said)?,
            2 if live.contains(&id) => live.set_demand(&id, draw.chance(0.5).then_some(1e9)).map_err(said)?,
            _ => live.set_capacity("l0", draw.log(1e8, 1e11)).map_err(said)?,
        }
        let (case, answer) = live.solve(&SolveOptions::default()).map_err(said)?;
        check(&case, &answer).map_err(|what| format!("after changes: {what}"))?;
    }
    Ok(())
}
