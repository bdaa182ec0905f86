//! Specs with the fluid (flow-level) backend, and with centralized schemes.

use crate::common::{Scratch, rows};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use subak_core::scheme::Goal;
use subak_lab::{RunOptions, Spec, run};

type Rows = Vec<BTreeMap<String, String>>;

fn results(name: &str, text: &str, kind: &str) -> Rows {
    let spec = Spec::from_toml(text).unwrap().validate().unwrap_or_else(|e| panic!("{e}"));
    let dir = Scratch::new(name);
    let cancel = AtomicBool::new(false);
    let outcome = run(&spec, &dir.0, &RunOptions::alone(&cancel)).unwrap();
    assert!(outcome.merged, "{:?}", outcome.failed);
    rows(&dir.0, kind)
}

fn refusal(text: &str) -> String {
    match Spec::from_toml(text).and_then(Spec::validate) {
        Ok(_) => panic!("it was taken"),
        Err(fault) => fault.to_string(),
    }
}

fn reweighed(policy: &str, schemes: &str) -> String {
    format!(
        r#"
[network]
kind = "dumbbell"
pairs = 2
host_rate = "10Gbps"
bottleneck_rate = "10Gbps"

[workload]
kind = "steps"
flows = [
  {{id = "a", src = "h0", dst = "h2", weights = [["10ms", 4]]}},
  {{id = "b", src = "h1", dst = "h3"}},
]

[policy]
{policy}

{schemes}

[measure]
convergence = {{within = 0.1, share = 1.0, of = "assigned", lasting = true}}
rates = "1ms"

[run]
duration = "20ms"
"#
    )
}

#[test]
fn schemes_come_to_their_goal_as_fluids_and_move_when_a_weight_does() {
    let fair = "kind = \"alpha-fair\"\nalpha = 1";
    for (policy, scheme) in [("kind = \"max-min\"", "s-perc"), (fair, "numfabric"), (fair, "dgd")] {
        let text = reweighed(policy, &format!("[[scheme]]\nname = \"{scheme}\"\nbackend = \"fluid\""));
        let changes = results(&format!("fluid-{scheme}"), &text, "convergence");
        let times: Vec<_> = changes.iter().map(|r| r["time_ns"].as_str()).collect();
        assert_eq!(times, ["0", "10000000"], "{scheme}");
        assert!(changes.iter().all(|r| r["converged"] == "true" && r["scheme"] == format!("{scheme} fluid")));
        let rates = results(&format!("fluid-rates-{scheme}"), &text, "rate");
        let at = |ms: u64, flow: &str| -> f64 {
            let found = rates.iter().find(|r| r["time_ns"] == (ms * 1_000_000).to_string() && r["flow_id"] == flow);
            found.unwrap()["assigned_bps"].parse().unwrap()
        };
        assert!((at(10, "a") / at(10, "b") - 1.0).abs() < 0.02, "{scheme}: equal until 10 ms");
        assert!((at(19, "a") / at(19, "b") - 4.0).abs() < 0.4, "{scheme}: 4 to 1 after");
    }
}

#[test]
fn one_scheme_runs_under_both_backends_and_they_agree() {
    let both = "[[scheme]]\nname = \"s-perc\"\n[[scheme]]\nname = \"s-perc\"\nbackend = \"fluid\"";
    let flows = results("both", &reweighed("kind = \"max-min\"", both), "flow");
    let bytes = |scheme: &str, id: &str| -> f64 {
        let row = flows.iter().find(|r| r["scheme"] == scheme && r["flow_id"] == id).unwrap();
        row["received_bytes"].parse().unwrap()
    };
    for id in ["a", "b"] {
        let (packets, fluid) = (bytes("s-perc", id), bytes("s-perc fluid", id));
        assert!((fluid / packets - 1.0).abs() < 0.05, "flow {id}: {packets} in packets, {fluid} as a fluid");
    }
}

#[test]
fn minutes_are_simulated_in_as_many_events_as_flows() {
    let text = r#"
network = {kind = "star", hosts = 4, rate = "10Gbps"}
workload = {kind = "closed", sizes = "fixed", size = "5GB", think = "1s"}
scheme = [{name = "s-perc", backend = "fluid"}, {name = "xwi/swift", backend = "fluid", label = "n"}]
policy = {kind = "max-min"}
run = {duration = "60s"}
"#;
    let fault = refusal(text);
    assert!(fault.contains("policy.kind"), "a fluid keeps to the scheme's goal too: {fault}");
    let text = text.replace(", {name = \"xwi/swift\", backend = \"fluid\", label = \"n\"}", "");
    let summary = results("minutes", &text, "summary");
    let get = |key: &str| summary[0][key].parse::<u64>().unwrap();
    assert!(get("completed") > 20 && get("events") < 20 * get("flows"), "{summary:?}");
}

#[test]
fn what_the_fluid_backend_cannot_run_is_refused_with_the_reason() {
    let said = |keys: &str| refusal(&reweighed("kind = \"max-min\"", &format!("[[scheme]]\n{keys}")));
    for (keys, words) in [
        ("name = \"dctcp\"\nbackend = \"fluid\"", ["scheme[0].backend", "how fast it settles", "s-perc"]),
        ("name = \"pfabric\"\nbackend = \"fluid\"", ["scheme[0].backend", "states no goal", "leave backend away"]),
        ("name = \"s-perc\"\nbackend = \"fluids\"", ["scheme[0].backend", "fluids", "fluid"]),
        ("name = \"ideal\"\nbackend = \"packet\"", ["scheme[0].backend", "does not run", "\"fluid\" runs it"]),
        ("name = \"s-perk\"\nbackend = \"fluid\"", ["scheme[0].name", "s-perk", "s-perc"]),
        ("name = \"s-perc\"\nbackend = \"fluid\"\nparams.headroom = 7", ["scheme[0].params.headroom", "7", "give"]),
    ] {
        let fault = said(keys);
        assert!(words.iter().all(|w| fault.contains(w)), "{keys}: {fault}");
    }
}

#[test]
fn a_scheme_with_a_centre_wants_it_placed() {
    let fair = "kind = \"alpha-fair\"\nalpha = 1";
    let scheme = "[[scheme]]\noptimizer = \"ned-central\"\ntransport = \"paced\"\n";
    let fault = refusal(&reweighed(fair, scheme));
    assert!(fault.contains("controller") && fault.contains("at = \"h0\""), "{fault}");
    let placed = reweighed(fair, &format!("{scheme}\n[controller]\nat = \"h1\"\n"));
    let changes = results("central", &placed, "convergence");
    assert_eq!(changes.iter().map(|r| r["converged"].as_str()).collect::<Vec<_>>(), ["true", "true"], "{changes:?}");
    // The fluid backend needs no controller, since it simulates no messages.
    let fluid = reweighed(fair, &format!("{scheme}backend = \"fluid\"\n"));
    assert_eq!(results("central-fluid", &fluid, "convergence").len(), 2);
    let fault = refusal(&reweighed(fair, "[[scheme]]\noptimizer = \"ned-central\"\ntransport = \"swift\"\n"));
    assert!(fault.contains("controller") && fault.contains("ned-central/swift"), "{fault}");
    let fault = refusal(&reweighed(fair, "[[scheme]]\noptimizer = \"xwi\"\ntransport = \"paced\"\n"));
    assert!(fault.contains("outputs weights") && fault.contains("levels"), "{fault}");
}

/// Payload rate, Gb/s, of a flow without a demand that shares 10 Gb/s with a flow whose demand is 1 Gb/s.
fn beside_a_demand(scheme: &str, backend: &str) -> f64 {
    const BYTES: f64 = 40e6;
    let max_min = subak_lab::backends::find(scheme, None).unwrap().1.goal == Goal::MaxMin;
    let policy = if max_min { r#"{kind = "max-min"}"# } else { r#"{kind = "alpha-fair", alpha = 1}"# };
    let text = format!(
        r#"
[network]
kind = "star"
hosts = 3
rate = "10Gbps"

[workload]
kind = "steps"
flows = [
  {{id = "held", src = "h0", dst = "h2", demand = "1Gbps"}},
  {{id = "free", src = "h1", dst = "h2", size = {BYTES}, start = "5ms"}},
]

[[scheme]]
name = "{scheme}"
backend = "{backend}"
policy = {policy}

[controller]
at = "h0"

[run]
duration = "60ms"
"#
    );
    let flows = results(&format!("demand-{scheme}-{backend}").replace('/', "-"), &text, "flow");
    let free = flows.iter().find(|row| row["flow_id"] == "free").unwrap();
    BYTES * 8.0 / free["fct_ns"].parse::<f64>().unwrap()
}

#[test]
fn a_demand_gives_the_others_as_much_under_both_backends() {
    // 1446 of 1500 bytes are payload; each scheme leaves a fraction of the link to messages and free capacity.
    for scheme in
        ["s-perc", "s-perc-star", "fair", "charny", "flowtune", "numfabric", "xwi-s-perc", "ned-central/paced"]
    {
        let share =
            subak_lab::backends::find(scheme, None).unwrap().0.rules(scheme, &Default::default()).unwrap().share();
        let want = (10.0 * share - 1.0) * 1446.0 / 1500.0;
        let got = ["packet", "fluid"].map(|backend| beside_a_demand(scheme, backend));
        println!("{scheme}: {got:?}, {want}");
        for gbps in got {
            assert!((gbps / want - 1.0).abs() < 0.06, "{scheme}: {got:?} Gb/s, not {want}");
        }
    }
}
