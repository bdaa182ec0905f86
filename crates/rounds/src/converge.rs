//! `subak converge`: runs a scheme's control messages on the flows of a case and compares their rates with the exact
//! ones.

use crate::replay::{self, UpdateOrder};
use crate::run::{ConvergeOutcome, RoundsPlan, run};
use crate::setup::Setup;
use serde_json::{Value, json};
use subak_core::scheme::{Bound, UpdateRecord};
use subak_core::{Case, FlowId, IdVec, InputError, LinkId, Stranded};
use subak_schemes::registry;

/// Options of [`converge`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConvergeOptions {
    /// Seed, rounds, losses and the scheme's parameters. With [`RoundsPlan::traced`] the result lists every update.
    pub plan: RoundsPlan,
    /// An order of updates to replay instead of simulating messages; see [`UpdateOrder::read`].
    pub order: Option<Value>,
}

/// Runs `scheme` on `case` and returns the result of `subak converge`. The result says whether the rates became and
/// stayed exact, after how many rounds, and the theoretical bound (`null` if none is known). `rounds` counts as
/// theory does, from the time when every flow has started and been stable for a round; `rounds_from_start` counts
/// from the first flow's start.
///
/// A flow with demand 0 sends no messages: its rate is 0.
pub fn converge(case: &Case, scheme: &str, options: &ConvergeOptions) -> Result<Value, InputError> {
    let mut answer = converge_carried(case, scheme, options)?;
    let mut rows = answer["flows"].as_array().cloned().unwrap_or_default().into_iter();
    let stranded = |flow: &Stranded| {
        let why = flow.why.name();
        json!({"id": flow.id, "rate": 0.0, "ideal": 0.0, "rounds": 0.0, "rounds_from_start": 0.0, "bottleneck": null, "status": why})
    };
    let carried = |mut row: Value| {
        row["status"] = Value::Null;
        row
    };
    let row = |given: Result<usize, &Stranded>| match given {
        Ok(_) => rows.next().map(carried),
        Err(flow) => Some(stranded(flow)),
    };
    answer["flows"] = case.flows.in_order().filter_map(row).collect();
    answer["warnings"] = json!(case.notes());
    Ok(answer)
}

/// Runs the scheme on the flows that have a path. Flows with demand 0 stay out of the run; the result has rate 0 for
/// them.
fn converge_carried(case: &Case, scheme: &str, options: &ConvergeOptions) -> Result<Value, InputError> {
    let idle = |f: usize| case.flows.demand_bps()[f] <= 0.0;
    if !(0..case.flows.len()).any(idle) {
        return converge_all(case, scheme, options);
    }
    Setup::from_case(case)?; // what is wrong with a flow is said of its place in the whole case
    let mut busy = case.clone();
    busy.flows.name_by_number();
    busy.flows.retain(|f| !idle(f));
    let mut answer = converge_all(&busy, scheme, options)?;
    let mut rows = answer["flows"].as_array().cloned().unwrap_or_default().into_iter();
    let row = |f: usize| match idle(f) {
        true => {
            let id = case.flows.id(f);
            let bottleneck = format!("demand of {id}");
            Some(
                json!({"id": id, "rate": 0.0, "ideal": 0.0, "rounds": 0.0, "rounds_from_start": 0.0, "bottleneck": bottleneck}),
            )
        }
        false => rows.next(),
    };
    answer["flows"] = (0..case.flows.len()).filter_map(row).collect();
    Ok(answer)
}

fn converge_all(case: &Case, scheme: &str, options: &ConvergeOptions) -> Result<Value, InputError> {
    let setup = Setup::from_case(case)?;
    let plan = &options.plan;
    check(plan)?;
    if options.order.is_some() {
        check_replayed(plan)?;
    }
    let (ideal_bps, _) = setup.exact();
    let outcome = match &options.order {
        Some(order) => replay::run(scheme, &setup, &ideal_bps, plan, &UpdateOrder::read(order, case)?)?,
        None => run(scheme, &setup, &ideal_bps, plan)?,
    };
    let mut answer = summary(case, &setup, scheme, &ideal_bps, &outcome);
    if plan.traced || options.order.is_some() {
        answer["trace"] = outcome.trace.iter().map(|update| trace_row(case, update, &outcome)).collect();
    }
    Ok(answer)
}

/// An error for options that have no effect when updates are replayed.
fn check_replayed(plan: &RoundsPlan) -> Result<(), InputError> {
    let usual = RoundsPlan::default();
    let given = [
        ("seed", plan.seed != usual.seed),
        ("drop", plan.drop != usual.drop),
        ("max_rounds", plan.max_rounds != usual.max_rounds),
    ];
    let Some((key, _)) = given.into_iter().find(|(_, given)| *given) else { return Ok(()) };
    Err(InputError::new(key, "it has no effect where an order is replayed", "leave it away, or the order"))
}

fn check(plan: &RoundsPlan) -> Result<(), InputError> {
    let within = |name: &str, x: f64, low: f64, high: f64| match (low..=high).contains(&x) {
        true => Ok(()),
        false => Err(InputError::new(name, format!("{name} is {x}"), format!("give a value from {low} to {high}"))),
    };
    within("max_rounds", plan.max_rounds, 1.0, 1e6)?;
    within("drop", plan.drop, 0.0, 0.9)?;
    within("drop_rounds", plan.drop_rounds, 0.0, 1e6)?;
    within("stagger_rounds", plan.stagger_rounds, 0.0, 1e6)?;
    within("settle_rounds", plan.settle_rounds, 1.0, 1e6)?;
    within("tolerance", plan.tolerance, 1e-12, 1.0)
}

fn summary(
    case: &Case,
    setup: &Setup,
    scheme: &str,
    ideal_bps: &IdVec<FlowId, f64>,
    outcome: &ConvergeOutcome,
) -> Value {
    let bound = registry::find(scheme).map_or(Bound::None, |info| info.bound);
    let (levels, bound_rounds) = setup.bounded(bound);
    let link_name = |l: LinkId| match case.network.links().get(l) {
        Some(link) => link.id.clone(),
        // The virtual link of a demand: see `Setup::from_case`.
        None => setup
            .paths
            .iter()
            .position(|p| p[0] == l)
            .map_or_else(String::new, |f| format!("demand of {}", case.flows.id(f))),
    };
    let mut link_rounds = IdVec::<LinkId, f64>::filled(0.0, setup.wires.len());
    for (f, &l) in levels.bottleneck.iter_enumerated() {
        link_rounds[l] = link_rounds[l].max(outcome.flow_rounds[f]);
    }
    let level = |n: usize| {
        let links = levels.frozen_in(n);
        let rounds = levels.of_flow.ids().filter(|&f| levels.of_flow[f] == n).map(|f| outcome.flow_rounds[f]);
        json!({
            "level": n,
            "links": links.iter().map(|&l| link_name(l)).collect::<Vec<_>>(),
            "rounds": rounds.fold(0.0, f64::max),
        })
    };
    let chain = setup.slowest_chain(&levels, &link_rounds);
    let flow = |f: FlowId| {
        json!({
            "id": case.flows.id(f.index()),
            "rate": outcome.rates_bps[f],
            "ideal": ideal_bps[f],
            "rounds": outcome.flow_rounds[f],
            "rounds_from_start": outcome.flow_rounds_from_start[f],
            "bottleneck": link_name(levels.bottleneck[f]),
        })
    };
    json!({
        "schema": 1,
        "scheme": scheme,
        "converged": outcome.converged,
        "rounds": outcome.rounds,
        "rounds_from_start": outcome.rounds_from_start,
        "bound_rounds": bound_rounds,
        "levels": (1..=levels.count).map(level).collect::<Vec<_>>(),
        "chain": chain.iter().map(|&l| json!({"link": link_name(l), "rounds": link_rounds[l]}))
            .collect::<Vec<_>>(),
        "flows": FlowId::first(case.flows.len()).map(flow).collect::<Vec<_>>(),
        "updates": outcome.updates,
        "round": outcome.round_ns as f64 / 1e9,
        "drops": outcome.drops,
        "rounds_after_drop": outcome.rounds_after_drop,
    })
}

/// An update with names of the case; an infinite rate is `null`.
fn trace_row(case: &Case, update: &UpdateRecord, outcome: &ConvergeOutcome) -> Value {
    let rounds = (update.at_ns as f64 - outcome.start_ns as f64) / outcome.round_ns as f64;
    let link = case.network.links().get(update.link).map_or("demand", |link| link.id.as_str());
    let mut row = json!({"round": rounds, "flow": case.flows.id(update.flow.index()), "link": link});
    for &(name, x) in &update.values {
        row[name] = match name {
            "state" => json!(if x == 1.0 { "B" } else { "E" }),
            "ignore" => json!(x == 1.0),
            _ if x.is_finite() => json!(x),
            _ => Value::Null,
        };
    }
    row
}
