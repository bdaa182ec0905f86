//! Policies end to end: what a spec asks for is what flows, schemes and the oracle go by.

use std::sync::atomic::AtomicBool;
use subak_lab::{Options, Spec, run};

mod common;
use common::{Scratch, rows};

fn go(text: &str, name: &str) -> Scratch {
    let dir = Scratch::new(name);
    let cancel = AtomicBool::new(false);
    let spec = Spec::from_toml(text).unwrap().validate().unwrap();
    let outcome = run(&spec, &dir.0, &Options { jobs: 1, only: None, progress: &|_| {}, cancel: &cancel }).unwrap();
    assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
    dir
}

/// The last rate, Gb/s, of each flow under each scheme: `(scheme, flow id)` to rate.
fn last_gbps(dir: &Scratch) -> std::collections::BTreeMap<(String, String), f64> {
    let rates = rows(&dir.0, "rate").into_iter();
    rates.map(|r| ((r["scheme"].clone(), r["flow_id"].clone()), r["rate_bps"].parse::<f64>().unwrap() / 1e9)).collect()
}

/// One long flow over two links of 10 Gb/s, and one over each: alpha-fairness gives the long one 1 / (1 + 2^(1/alpha)).
fn chain(policy: &str, schemes: &str) -> String {
    format!(
        r#"
        network = [{{id = "a", capacity = "10Gbps", delay = "4us"}}, {{id = "b", capacity = "10Gbps", delay = "4us"}}]
        workload = {{kind = "steps", flows = [
            {{id = "long", path = ["a", "b"]}}, {{id = "1", path = ["a"]}}, {{id = "2", path = ["b"]}}]}}
        policy = {{{policy}}}
        scheme = [{schemes}]
        measure = {{rates = "2ms", convergence = {{hold = "1ms"}}}}
        run = {{duration = "4ms"}}
    "#
    )
}

#[test]
fn alpha_fair_rates_of_every_optimizer_and_of_the_oracle() {
    for alpha in [0.5, 1.0, 2.0] {
        let policy = format!("kind = \"alpha-fair\", alpha = {alpha}");
        let dir = go(&chain(&policy, r#"{name = "ideal"}, {name = "numfabric"}, {name = "rcp-star"}"#), "alpha");
        let long = 10.0 / (1.0 + 2f64.powf(1.0 / alpha));
        for ((scheme, flow), gbps) in last_gbps(&dir) {
            let want = if flow == "long" { long } else { 10.0 - long };
            let tolerance = if scheme == "ideal" { 1e-3 } else { 0.05 };
            assert!((gbps / want - 1.0).abs() <= tolerance, "alpha {alpha}, {scheme}, {flow}: {gbps} for {want}");
        }
        for row in rows(&dir.0, "convergence") {
            assert_eq!(row["converged"], "true", "alpha {alpha}: {row:?}");
        }
    }
}

#[test]
fn convergence_is_held_against_the_policys_optimum() {
    // DCTCP gives all three about the same number of bytes a round trip: not what proportional fairness wants.
    let dir = go(&chain("kind = \"alpha-fair\", alpha = 1", r#"{name = "numfabric"}, {name = "dctcp"}"#), "against");
    let converged = |scheme: &str| {
        let row = rows(&dir.0, "convergence").into_iter().find(|r| r["scheme"] == scheme).unwrap();
        row["converged"] == "true"
    };
    assert!(converged("numfabric") && !converged("dctcp"));
    let dir = go(&chain("kind = \"max-min\"", r#"{name = "swift"}, {name = "s-perc"}"#), "max-min");
    for (_, gbps) in last_gbps(&dir) {
        assert!((gbps - 5.0).abs() < 0.5, "{gbps}");
    }
}
