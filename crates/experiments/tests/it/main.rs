//! Every experiment at a small size: its values agree with theory, its tables have their columns, and its progress
//! reaches the end.

use serde_json::{Map, Value, json};
use subak_experiments::{ExperimentKind, ExperimentPlan, all, run};

fn plan(runs: usize, settings: &Value) -> ExperimentPlan {
    ExperimentPlan { runs, seed: 1, settings: settings.as_object().cloned().unwrap_or_default() }
}

fn compute(name: &str, runs: usize, settings: &Value) -> Map<String, Value> {
    let mut seen = (0, 0);
    let mut progress = |done, of| seen = (done, of);
    let answer = run(name, &plan(runs, settings), &mut progress).unwrap();
    assert_eq!(seen.0, seen.1, "{name}: progress ends where it said it would");
    for table in answer["tables"].as_object().unwrap().values() {
        let columns = table["columns"].as_array().unwrap().len();
        assert!(table["rows"].as_array().unwrap().iter().all(|row| row.as_array().unwrap().len() == columns));
    }
    let values = answer["values"].as_object().unwrap().clone();
    assert!(!values.is_empty());
    values
}

fn every(values: &Map<String, Value>, key: &str) {
    assert_eq!(values[key]["hits"], values[key]["count"], "{key}: {}", values[key]);
}

#[test]
fn worked_examples() {
    let values = compute("perc-fig1.3", 1, &json!({}));
    for scheme in ["fair", "s-perc"] {
        let told = json!(["RTT 1: B 15", "RTT 1: C 10", "RTT 2: A 55", "RTT 2: B 20", "RTT 3: A 50"]);
        assert_eq!(values[&format!("{scheme} C")], told);
    }
    assert_eq!(compute("perc-fig2.3", 1, &json!({}))["update 8"], json!([20.0, 18.0, 18.0]));
    assert_eq!(compute("perc-fig3.2", 1, &json!({}))["update 1"], json!(["inf", 20.0, 20.0, "B"]));
    assert_eq!(compute("perc-fig3.4", 1, &json!({}))["update 3"], json!(["inf", 10.0, 10.0, "B", true]));
    assert_eq!(compute("perc-wfk", 1, &json!({}))["2.4 WF2 rates"], json!([3.0, 5.0, 5.0, 7.0]));
}

#[test]
fn random_setups() {
    let values = compute("perc-fig3.5", 24, &json!({"large": 200, "n_perc": 4}));
    every(&values, "s-perc_unweighted_within");
    every(&values, "fair_unweighted_within");
    assert!(values["n_perc_max"].as_f64() > values["s_perc_max"].as_f64());
    let values = compute("perc-rounds", 20, &json!({}));
    every(&values, "exact");
    assert_eq!(values["median"]["data"].as_array().unwrap().len(), 20);
}

#[test]
fn losses() {
    let values = compute("perc-drops", 4, &json!({"flows": 100, "rounds": 20}));
    every(&values, "within_0.01");
    let shorter = compute("perc-drops", 4, &json!({"flows": 100, "rounds": 20, "rto_us": 360}));
    assert_ne!(values, shorter, "the sources' timeout is heard");
}

#[test]
fn approximate_division() {
    every(&compute("perc-fig4.5", 3, &json!({"rtts": 300})), "within_30_52");
}

#[test]
fn xwi_over_the_ideal_fabric() {
    every(&compute("numfabric-xwi-ideal", 4, &json!({})), "in 500 1");
    every(&compute("numfabric-xwi-ideal", 4, &json!({"diminishing": 1})), "for good 4");
}

#[test]
fn unknown_names_and_settings_are_refused_and_the_known_ones_listed() {
    let fault = run("perc-fig9", &plan(1, &json!({})), &mut |_, _| {}).unwrap_err();
    assert!(all().iter().all(|(name, _)| fault.hint.contains(name)));
    let fault = run("perc-drops", &plan(1, &json!({"rto": 3})), &mut |_, _| {}).unwrap_err();
    assert_eq!(fault.place, "settings.rto");
    assert!(fault.hint.contains("rto_us"));
    let fault = run("perc-drops", &plan(1, &json!({"rto_us": -3})), &mut |_, _| {}).unwrap_err();
    assert_eq!((fault.place.as_str(), fault.what.as_str()), ("settings.rto_us", "it is -3"));
}

#[test]
fn each_has_its_kind() {
    assert!(
        all().contains(&("perc-wfk", ExperimentKind::Solver))
            && all().contains(&("perc-drops", ExperimentKind::Rounds))
    );
}

#[test]
fn flowtune() {
    let values = compute("flowtune-gamma", 1, &json!({"most_a_host": 1, "steps": 40, "warmup": 20}));
    assert_eq!(values["unsettled"], 0, "every gamma that is surely safe is");
    let values = compute("flowtune-fig17", 1, &json!({"steps": 60, "warmup": 20}));
    assert!(values["overload"].as_f64().unwrap() <= 1e-6);
    let values = compute("flowtune-fig16", 1, &json!({"steps": 60, "warmup": 20, "interval_us": 1, "steps_each": 2}));
    assert!(values["overload"].as_f64().unwrap() <= 1e-6);
    let values = compute("flowtune-table-multicore", 1, &json!({"seconds": 0.001, "rows": 1}));
    assert_eq!(values["same bits"], true);
}

#[test]
fn soze() {
    let values = compute("soze-params", 1, &json!({"exponents": 1}));
    let sharp = |key: &str| values[key].as_bool().unwrap();
    assert!(sharp("m inside settles") && sharp("p above settles") && sharp("delayed: above settles"));
    assert!(!sharp("m outside settles") && !sharp("p below settles") && !sharp("delayed: below settles"));
    every(&values, "all cures: settles");
    for missing in ["but what waits", "but no filter", "but p", "but exact senders"] {
        assert_eq!(values[&format!("all cures {missing}: settles")]["hits"], 0, "{missing}: each of these is needed");
    }
    let values = compute("soze-settles", 3, &json!({"several": 1}));
    every(&values, "soze-virtual one hop: settles, full, queues");
    every(&values, "soze-virtual several hops: settles, full, queues");
    let peak = values["soze-virtual several hops: peak"]["data"][0].as_f64().unwrap();
    assert!(peak < 30.0, "links begin with the delay of the start: nobody overshoots, and {peak} us is too much");
    every(&values, "soze-virtual one hop: settles after weights change");
    assert_eq!(values["soze one hop: settles"]["hits"], 0, "the paper's parameters leave out the feedback delay");
}

/// The fluid model converges to the water-filling rates, about as fast as packets do.
#[test]
fn soze_by_size() {
    let settings = json!({"ports": 4, "flows": 100, "packet_ports": 4, "flows_by_size": 100});
    let values = compute("soze-fig19", 1, &settings);
    assert!(values["size near"].as_f64().unwrap() >= 95.0 && values["few packets near"].as_f64().unwrap() >= 95.0);
    let rtts = |key: &str| values[key]["data"][0].as_f64().unwrap();
    let (packets, fluid) = (rtts("few packets 4 rtts"), rtts("few fluid 4 rtts"));
    // Rates in packets are averaged over 10 RTTs.
    assert!(packets < fluid + 30.0 && fluid < packets + 15.0, "{packets} in packets, {fluid} as a fluid");
    let values = compute("soze-fig18a", 1, &json!({"scale": 0.0005}));
    let off = |key: &str| values[key]["data"][0].as_f64().unwrap();
    assert!(off("soze-virtual") < off("soze-virtual connections"), "weights are finer than connections");
}
