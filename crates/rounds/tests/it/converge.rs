//! `converge` on cases: answers, traces, replays, and errors.

use serde_json::{Value, json};
use subak_core::{Case, Flow, Flows, Link, LinkId, Network, Policy};
use subak_rounds::{ConvergeOptions, RoundsPlan, converge};

/// Figure 2.1 of the PERC thesis: exact rates of 12 and 18 Gb/s.
fn case() -> Case {
    let mut network = Network::new();
    for (id, gbps) in [("l20", 20.0), ("l30", 30.0), ("l12", 12.0)] {
        let link =
            Link { id: id.into(), from: None, to: None, capacity_bps: gbps * 1e9, delay_ns: 0, buffer_bytes: None };
        network.add(link).unwrap();
    }
    let mut flows = Flows::new();
    flows.push(Flow::over("fB", vec![LinkId(0), LinkId(1)]), &network).unwrap();
    flows.push(Flow::over("fW", vec![LinkId(1), LinkId(2)]), &network).unwrap();
    Case { network, flows, policy: Policy::MaxMin }
}

fn rate(answer: &Value, flow: usize) -> f64 {
    answer["flows"][flow]["rate"].as_f64().unwrap()
}

#[test]
fn every_scheme_finds_figure_2_1() {
    for scheme in subak_rounds::names() {
        let answer = converge(&case(), scheme, &ConvergeOptions::default()).unwrap();
        assert_eq!(answer["converged"], true, "{scheme}");
        assert!((rate(&answer, 0) / 18e9 - 1.0).abs() < 1e-9, "{scheme}");
        assert!((rate(&answer, 1) / 12e9 - 1.0).abs() < 1e-9, "{scheme}");
        if let Some(bound) = answer["bound_rounds"].as_f64() {
            assert!(answer["rounds"].as_f64().unwrap() <= bound, "{scheme}");
        }
    }
}

#[test]
fn levels_and_the_chain_that_took_the_time() {
    let answer = converge(&case(), "s-perc", &ConvergeOptions::default()).unwrap();
    assert_eq!(answer["levels"][0]["links"], json!(["l12"]));
    assert_eq!(answer["levels"][1]["links"], json!(["l30"]));
    let chain: Vec<_> = answer["chain"].as_array().unwrap().iter().map(|c| c["link"].clone()).collect();
    assert_eq!(chain, [json!("l12"), json!("l30")]);
    assert_eq!(answer["bound_rounds"], 12.0);
}

#[test]
fn who_wants_nothing_gets_nothing_and_the_others_all() {
    let mut case = case();
    let without = converge(&case, "s-perc", &ConvergeOptions::default()).unwrap();
    let flow = |id: &str| Flow { demand_bps: Some(0.0), ..Flow::over(id, vec![LinkId(0), LinkId(2)]) };
    case.flows.push(flow("idle"), &case.network).unwrap();
    let answer = converge(&case, "s-perc", &ConvergeOptions::default()).unwrap();
    assert_eq!(
        answer["flows"][2],
        json!({"id": "idle", "rate": 0.0, "ideal": 0.0, "rounds": 0.0, "rounds_from_start": 0.0, "bottleneck": "demand of idle", "status": null})
    );
    assert_eq!(answer["flows"].as_array().unwrap()[..2], without["flows"].as_array().unwrap()[..]);
    assert_eq!((&answer["converged"], &answer["rounds"]), (&without["converged"], &without["rounds"]));
    // An error names the flow's place in the whole case, in which flows with demand 0 count too.
    let pooled = Flow { paths: vec![vec![LinkId(0)], vec![LinkId(1)]], ..Flow::over("pooled", vec![]) };
    case.flows.push(pooled, &case.network).unwrap();
    assert_eq!(converge(&case, "s-perc", &ConvergeOptions::default()).unwrap_err().place, "flows[3].paths");
    // Every flow has demand 0.
    case.flows.retain(|f| f == 2);
    let answer = converge(&case, "s-perc", &ConvergeOptions::default()).unwrap();
    assert_eq!((rate(&answer, 0), &answer["converged"]), (0.0, &json!(true)));
}

#[test]
fn a_demand_is_a_link_of_its_own() {
    let mut case = case();
    let flow = Flow { demand_bps: Some(5e9), ..Flow::over("d", vec![LinkId(0)]) };
    case.flows.push(flow, &case.network).unwrap();
    let answer = converge(&case, "s-perc", &ConvergeOptions::default()).unwrap();
    assert_eq!(answer["converged"], true);
    assert_eq!((rate(&answer, 0), rate(&answer, 2)), (15e9, 5e9));
    assert_eq!(answer["flows"][2]["bottleneck"], "demand of d");
}

/// The updates of figure 3.4 of the PERC thesis, in its order.
fn order() -> Value {
    json!([
        ["fB", "l20"],
        ["fB", "l30"],
        ["fW", "l30"],
        ["fW", "l12"],
        "round",
        ["fW", "l30"],
        ["fW", "l12"],
        ["fB", "l20"],
        ["fB", "l30"],
        "round",
        ["fW", "l30"],
        ["fW", "l12"],
        ["fB", "l30"],
        ["fB", "l20"],
        "round",
    ])
}

#[test]
fn a_given_order_is_replayed() {
    let options = ConvergeOptions { order: Some(order()), ..ConvergeOptions::default() };
    let answer = converge(&case(), "s-perc", &options).unwrap();
    let trace = answer["trace"].as_array().unwrap();
    assert_eq!(trace.len(), 12);
    assert_eq!((&trace[2]["b"], &trace[2]["ignore"], &trace[2]["e"]), (&json!(10e9), &json!(true), &Value::Null));
    assert_eq!((&trace[11]["a"], &trace[11]["state"]), (&json!(18e9), &json!("E")));
    assert_eq!(answer["converged"], true);
    assert_eq!(answer["rounds"], 2.0, "the last wrong updates are those of the second round");
    let answer =
        converge(&case(), "s-perc", &ConvergeOptions { order: Some(json!([["fB", "l20"]])), ..options }).unwrap();
    assert_eq!(answer["converged"], false);
}

#[test]
fn a_trace_lists_every_update() {
    let options = ConvergeOptions { plan: RoundsPlan { traced: true, ..RoundsPlan::default() }, order: None };
    let answer = converge(&case(), "s-perc", &options).unwrap();
    let trace = answer["trace"].as_array().unwrap();
    assert_eq!(trace.len() as u64, answer["updates"].as_u64().unwrap());
    for key in ["round", "flow", "link", "e", "b", "a", "state", "ignore", "SumE", "NumB", "MaxE"] {
        assert!(trace[0].get(key).is_some(), "{key}");
    }
}

#[test]
fn what_it_refuses() {
    let place =
        |case: &Case, scheme: &str, options: &ConvergeOptions| converge(case, scheme, options).unwrap_err().place;
    let options = ConvergeOptions::default();
    assert_eq!(place(&case(), "dctcp", &options), "scheme");
    assert_eq!(place(&case(), "nonsense", &options), "scheme");
    let other = Case { policy: Policy::AlphaFair { alpha: 1.0 }, ..case() };
    assert_eq!(place(&other, "s-perc", &options), "policy.kind");
    for (order, at) in [
        (json!({}), "order"),
        (json!([["fB"]]), "order[0]"),
        (json!(["round", ["nobody", "l20"]]), "order[1]"),
        (json!([["fB", "l12"]]), "order[0]"),
    ] {
        assert_eq!(place(&case(), "s-perc", &ConvergeOptions { order: Some(order), ..options.clone() }), at);
    }
    let plan = RoundsPlan { drop: f64::NAN, ..RoundsPlan::default() };
    assert_eq!(place(&case(), "s-perc", &ConvergeOptions { plan, order: None }), "drop");
    let mut several = case();
    let two = Flow { paths: vec![vec![LinkId(0)], vec![LinkId(1)]], ..Flow::over("m", vec![]) };
    several.flows.push(two, &several.network).unwrap();
    assert_eq!(place(&several, "s-perc", &options), "flows[2].paths");
}

#[test]
fn extremes_are_refused_or_run_without_overflow() {
    let mut slow = case();
    slow.network.link_mut(LinkId(1)).delay_ns = u64::MAX;
    let fault = converge(&slow, "s-perc", &ConvergeOptions::default()).unwrap_err();
    assert_eq!(fault.place, "flows[0].path");
    let mut heavy = case();
    heavy.flows.push(Flow { weight: 1e200, ..Flow::over("w", vec![LinkId(0)]) }, &heavy.network).unwrap();
    assert_eq!(converge(&heavy, "s-perc", &ConvergeOptions::default()).unwrap_err().place, "flows[2].weight");
    let mut tiny = case();
    for (link, capacity_bps) in [(0, 1e-300), (1, 1e300), (2, f64::MIN_POSITIVE)] {
        tiny.network.link_mut(LinkId(link)).capacity_bps = capacity_bps;
    }
    let plan = RoundsPlan { max_rounds: 20.0, ..RoundsPlan::default() };
    for scheme in subak_rounds::names() {
        converge(&tiny, scheme, &ConvergeOptions { plan: plan.clone(), order: None }).unwrap();
    }
}

#[test]
fn no_flows_are_an_empty_answer() {
    let empty = Case { flows: Flows::new(), ..case() };
    let answer = converge(&empty, "s-perc", &ConvergeOptions::default()).unwrap();
    assert_eq!((&answer["converged"], &answer["flows"]), (&json!(true), &json!([])));
}
