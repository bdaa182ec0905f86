//! Closed-loop workloads, weight changes, and reroutes around failed links.

use crate::common::{Scratch, ran, rows};
use std::sync::atomic::AtomicBool;
use subak_lab::{RunOptions, Spec, run};

fn flows_of(name: &str, text: &str) -> Vec<std::collections::BTreeMap<String, String>> {
    let spec = Spec::from_toml(text).unwrap().validate().unwrap_or_else(|e| panic!("{e}"));
    let dir = Scratch::new(name);
    let cancel = AtomicBool::new(false);
    let outcome = run(&spec, &dir.0, &RunOptions::alone(&cancel)).unwrap();
    assert!(outcome.merged, "{:?}", outcome.failed);
    rows(&dir.0, "flow")
}

fn refusal(text: &str) -> String {
    match Spec::from_toml(text).and_then(|spec| spec.validate()) {
        Ok(_) => panic!("it was taken"),
        Err(fault) => fault.to_string(),
    }
}

const DAG: &str = r#"
[network]
kind = "star"
hosts = 6
rate = "10Gbps"

[workload]
kind = "steps"
flows = [
  {id = "join", src = "h3", dst = "h4", size = "100kB", after = ["left", "right"]},
  {id = "first", src = "h0", dst = "h1", size = "100kB", start = "10us"},
  {id = "left", src = "h1", dst = "h2", size = "400kB", after = ["first"]},
  {id = "right", src = "h1", dst = "h3", size = "100kB", after = ["first"], start = "50us"},
  {id = "last", src = "h4", dst = "h5", size = "100kB", after = ["join"]},
]

[[scheme]]
name = "dctcp"
[[scheme]]
name = "s-perc"
[[scheme]]
name = "ideal"

[run]
duration = "20ms"
"#;

#[test]
fn five_transfers_that_depend_on_each_other_complete_in_their_order() {
    let rows = flows_of("dag", DAG);
    for scheme in ["dctcp", "s-perc", "ideal"] {
        let times = |id: &str| -> (u64, u64) {
            let row = rows.iter().find(|r| r["scheme"] == scheme && r["flow_id"] == id).unwrap();
            let start: u64 = row["start_ns"].parse().unwrap();
            (start, start + row["fct_ns"].parse::<u64>().unwrap())
        };
        let (first, left, right, join, last) =
            (times("first"), times("left"), times("right"), times("join"), times("last"));
        assert_eq!(first.0, 10_000);
        // A flow starts a link delay after its last dependency has ended, or later by its own delay.
        assert_eq!(left.0, first.1 + 1000, "{scheme}");
        assert_eq!(right.0, first.1 + 50_000, "{scheme}");
        assert_eq!(join.0, left.1.max(right.1) + 1000, "{scheme}");
        assert_eq!(last.0, join.1 + 1000, "{scheme}");
    }
}

#[test]
fn what_cannot_be_waited_for_is_refused_with_its_place() {
    let fault = refusal(&DAG.replace(r#"start = "10us""#, r#"after = ["last"]"#));
    assert!(fault.contains("circle") && fault.contains("workload.flows[") && fault.contains("after"), "{fault}");
    let fault = refusal(&DAG.replace(r#"after = ["join"]"#, r#"after = ["joint"]"#));
    assert!(fault.contains("flows[4].after[0]") && fault.contains("join"), "{fault}");
    let fault = refusal(&DAG.replace(r#"dst = "h1", size = "100kB""#, r#"dst = "h1""#));
    assert!(fault.contains("never ends"), "{fault}");
}

#[test]
fn transfers_that_would_begin_after_the_duration_do_not() {
    let rows = flows_of("short-dag", &DAG.replace("20ms", "200us"));
    let last = rows.iter().find(|r| r["scheme"] == "dctcp" && r["flow_id"] == "last").unwrap();
    assert_eq!((last["start_ns"].as_str(), last["fct_ns"].as_str()), ("", ""));
}

const OUTAGE: &str = r#"
[network]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4

[workload]
kind = "permutation"
size = "2MB"

[[scheme]]
name = "dctcp"
[[scheme]]
name = "s-perc-star"
[[scheme]]
name = "ideal"

[[fault]]
kind = "down"
link = "leaf0->spine0"
both = true
down = "200us"

[run]
duration = "5ms"
drain = "50ms"
"#;

#[test]
fn a_failed_link_is_routed_around_in_both_directions() {
    let finished = |name: &str, text: &str, scheme: &str| {
        let rows = flows_of(name, text);
        let mine: Vec<_> = rows.into_iter().filter(|r| r["scheme"] == scheme).collect();
        (mine.iter().filter(|r| !r["fct_ns"].is_empty()).count(), mine.len())
    };
    for scheme in ["dctcp", "s-perc-star", "ideal"] {
        let (stuck, all) = finished("outage", OUTAGE, scheme);
        assert!(stuck < all, "{scheme}: the outage must bite");
        let around = format!("{OUTAGE}\n[routing]\nreroute = \"100us\"\n");
        assert_eq!(finished("around", &around, scheme), (all, all), "{scheme}");
    }
}

/// A link between a leaf and a spine is down three times for 1 ms. With rerouting, utilization falls by at most
/// 12%.
#[test]
fn outages_that_are_routed_around_cost_little_more_than_the_link() {
    let utilization = |scheme: &str, fault: &str| -> f64 {
        let text = format!(
            r#"
            network = {{kind = "leaf-spine", leaves = 2, spines = 2, hosts_per_leaf = 4, spine_rate = "10Gbps", host_rate = "10Gbps"}}
            workload = {{kind = "permutation"}}
            scheme = [{{name = "{scheme}"}}]
            measure = {{fct = false}}
            fault = [{fault}]
            routing = {{reroute = "200us"}}
            run = {{duration = "20ms", warmup = "2ms"}}
        "#
        );
        let spec = Spec::from_toml(&text).unwrap().validate().unwrap_or_else(|e| panic!("{e}"));
        rows(&ran("outages", &spec).0.0, "summary")[0]["utilization"].parse().unwrap()
    };
    let outages =
        r#"{kind = "down", link = "leaf0->spine0", down = "4ms", up = "16ms", period = "4ms", lasts = "1ms"}"#;
    for scheme in ["hpcc", "rcp", "s-perc", "dctcp"] {
        let (whole, left) = (utilization(scheme, ""), utilization(scheme, outages));
        assert!(left > 0.88 * whole, "{scheme}: {left} of {whole}");
    }
}

/// The controller is at leaf 0. Data between hosts of leaf 1 stays at that leaf, but their messages to the
/// controller cross a spine.
#[test]
fn messages_to_the_controller_are_routed_around_a_failed_link() {
    let times = |scheme: &str, fault: &str| -> Vec<f64> {
        let text = format!(
            r#"
            network = {{kind = "leaf-spine", leaves = 2, spines = 2, hosts_per_leaf = 2, host_rate = "10Gbps", spine_rate = "10Gbps"}}
            workload = {{kind = "steps", flows = [
                {{src = "h2", dst = "h3", size = "4MB"}}, {{src = "h1", dst = "h3", size = "1MB", start = "2ms"}},
            ]}}
            policy = {{kind = "alpha-fair", alpha = 1}}
            controller = {{at = "h0"}}
            scheme = [{{{scheme}}}]
            fault = [{fault}]
            routing = {{reroute = "100us"}}
            run = {{duration = "3ms", drain = "20ms"}}
        "#
        );
        let rows = flows_of("controller-around", &text);
        rows.iter().map(|row| row["fct_ns"].parse().unwrap_or(f64::INFINITY)).collect()
    };
    for scheme in [r#"name = "flowtune""#, r#"optimizer = "ned-central", transport = "paced""#] {
        let want = times(scheme, "");
        for spine in ["spine0", "spine1"] {
            let got = times(scheme, &format!(r#"{{kind = "down", link = "leaf1->{spine}", down = "500us"}}"#));
            let is_near = got.iter().zip(&want).all(|(got, want)| (got / want - 1.0).abs() < 0.05);
            assert!(is_near && got.len() == 2, "{scheme} without {spine}: {got:?}, and {want:?} with it");
        }
    }
}

#[test]
fn faults_that_make_no_sense_are_refused_with_their_place() {
    let bad = |from: &str, to: &str| refusal(&OUTAGE.replace(from, to));
    assert!(bad("200us", "6ms").contains("fault[0].down"), "{}", bad("200us", "6ms"));
    let fault = bad("leaf0->spine0", "leaf0->spine7");
    assert!(fault.contains("fault[0].link") && fault.contains("leaf0->spine"), "{fault}");
    let fault = bad("[run]", "[controller]\nat = \"h77\"\n\n[run]");
    assert!(fault.contains("controller.at") && fault.contains("h77"), "{fault}");
    let restart = "kind = \"restart\"\nnode = \"h0\"\nmachine = \"controller\"\nat = \"1ms\"";
    let fault = bad("kind = \"down\"\nlink = \"leaf0->spine0\"\nboth = true\ndown = \"200us\"", restart);
    assert!(fault.contains("one machine"), "{fault}");
}

const REWEIGHED: &str = r#"
[network]
kind = "dumbbell"
pairs = 2
host_rate = "10Gbps"
bottleneck_rate = "10Gbps"

[workload]
kind = "steps"
flows = [
  {id = "a", src = "h0", dst = "h2", weights = [["2ms", 4]]},
  {id = "b", src = "h1", dst = "h3"},
]

[[scheme]]
name = "s-perc"
[[scheme]]
name = "numfabric-swift"
[[scheme]]
name = "ideal"

[measure]
convergence = {within = 0.1, share = 1.0}

[run]
duration = "4ms"
"#;

#[test]
fn weights_change_in_a_spec_and_the_goal_with_them() {
    let spec = Spec::from_toml(REWEIGHED).unwrap().validate().unwrap_or_else(|e| panic!("{e}"));
    let dir = Scratch::new("reweighed");
    let cancel = AtomicBool::new(false);
    run(&spec, &dir.0, &RunOptions::alone(&cancel)).unwrap();
    let changes = rows(&dir.0, "convergence");
    for scheme in ["s-perc", "numfabric-swift", "ideal"] {
        let mine: Vec<_> = changes.iter().filter(|r| r["scheme"] == scheme).collect();
        let times: Vec<_> = mine.iter().map(|r| r["time_ns"].as_str()).collect();
        assert_eq!(times, ["0", "2000000"], "{scheme}: the change of weight is a change");
        assert!(mine.iter().all(|r| r["converged"] == "true"), "{scheme}: {mine:?}");
    }
    let bytes: Vec<f64> = rows(&dir.0, "flow")
        .iter()
        .filter(|r| r["scheme"] == "ideal")
        .map(|r| r["received_bytes"].parse().unwrap())
        .collect();
    // Equal rates for 2 ms, then 4 to 1, so that bytes are as 1 + 1.6 to 1 + 0.4.
    assert!((bytes[0] / bytes[1] - 2.6 / 1.4).abs() < 0.01, "{bytes:?}");
}
