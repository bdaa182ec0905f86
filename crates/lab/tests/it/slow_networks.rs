//! Links stay full whatever the unit of the weights, and however slow the network is.

use crate::common::{Scratch, ran, rows};
use subak_lab::Spec;

/// Runs flows `h1`, `h2`, ... to `h0` of a star. Returns the use of the shared link, and the flows' parts of it.
fn shares(scheme: &str, policy: &str, rate: &str, weights: &[f64], ms: u64) -> (f64, Vec<f64>) {
    let flows: Vec<String> = weights
        .iter()
        .enumerate()
        .map(|(f, weight)| format!("{{src = \"h{}\", dst = \"h0\", weight = {weight}}}", f + 1))
        .collect();
    let text = format!(
        r#"
        network = {{kind = "star", hosts = 8, rate = "{rate}", link_delay = "10us"}}
        workload = {{kind = "steps", flows = [{}]}}
        policy = {{{policy}}}
        scheme = [{{{scheme}}}]
        controller = {{at = "h7"}}
        measure = {{fct = false, rates = "{}us"}}
        run = {{duration = "{ms}ms", warmup = "{}ms"}}
    "#,
        flows.join(", "),
        500 * ms,
        ms / 2
    );
    let text = if scheme.contains("central") { text } else { text.replace("controller = {at = \"h7\"}", "") };
    let (dir, _): (Scratch, _) =
        ran("slow", &Spec::from_toml(&text).unwrap().validate().unwrap_or_else(|e| panic!("{e}")));
    let links = rows(&dir.0, "link");
    let used: f64 = links.iter().find(|r| r["link"] == "switch0->h0").unwrap()["utilization"].parse().unwrap();
    let rates = rows(&dir.0, "rate");
    let last: Vec<f64> = rates[rates.len() - weights.len()..].iter().map(|r| r["rate_bps"].parse().unwrap()).collect();
    let all: f64 = last.iter().sum();
    (used, last.iter().map(|rate| rate / all).collect())
}

const MAX_MIN: &str = "kind = \"max-min\"";
const LOG: &str = "kind = \"alpha-fair\", alpha = 1";

#[test]
fn small_weights_fill_a_link_under_soze() {
    for scheme in
        ["name = \"soze\"", "name = \"soze-virtual\"", "name = \"soze-virtual\", params = {arithmetic = \"fixed\"}"]
    {
        for weights in [&[0.1, 0.3][..], &[0.01], &[0.02, 0.02, 0.06], &[1.0, 3.0], &[50.0, 150.0]] {
            let (used, found) = shares(scheme, MAX_MIN, "10Gbps", weights, 40);
            assert!(used > 0.95, "{scheme} {weights:?}: {used} of the link");
            let all: f64 = weights.iter().sum();
            for (share, weight) in found.iter().zip(weights) {
                assert!((share * all / weight - 1.0).abs() < 0.06, "{scheme} {weights:?}: {found:?}");
            }
        }
    }
}

#[test]
fn a_weight_of_soze_may_fall_below_all_initial_ones() {
    let text = r#"
        network = {kind = "star", hosts = 3, rate = "10Gbps", link_delay = "10us"}
        workload = {kind = "steps", flows = [{src = "h1", dst = "h0", weights = [["5ms", 0.1]]}]}
        scheme = [{name = "soze"}, {name = "soze-virtual"}]
        run = {duration = "40ms", warmup = "20ms"}
    "#;
    let (dir, _) = ran("falls", &Spec::from_toml(text).unwrap().validate().unwrap());
    for link in rows(&dir.0, "link").iter().filter(|r| r["link"] == "switch0->h0") {
        let used: f64 = link["utilization"].parse().unwrap();
        assert!(used > 0.95, "{}: {used}", link["scheme"]);
    }
}

#[test]
fn target_rates_as_weights_fill_slow_networks() {
    for pair in ["exact-central/soze-virtual", "ned/soze-virtual", "xwi/soze-virtual", "ned/s-perc", "xwi/swift"] {
        let (optimizer, transport) = pair.split_once('/').unwrap();
        let scheme = format!("optimizer = \"{optimizer}\", transport = \"{transport}\"");
        for (rate, ms) in [("10Gbps", 40), ("1Gbps", 100), ("300Mbps", 300)] {
            let (used, found) = shares(&scheme, LOG, rate, &[1.0, 3.0], ms);
            assert!(used > 0.9, "{pair} at {rate}: {used} of the link");
            assert!((found[0] - 0.25).abs() < 0.03, "{pair} at {rate}: {found:?}");
        }
    }
}

/// Uses of the two ways of a dumbbell's middle link under soze-virtual, and the kinds of the run's warnings.
fn both_ways(params: &str, rate: &str, ways: &str) -> ([f64; 2], Vec<&'static str>) {
    let text = format!(
        r#"
        network = {{kind = "dumbbell", pairs = 2, host_rate = "10Gbps", bottleneck_rate = "{rate}", link_delay = "10us"}}
        workload = {{kind = "steps", flows = [{{src = "h0", dst = "h2"}}, {{src = "h1", dst = "h3"}}{ways}]}}
        scheme = [{{name = "soze-virtual"{params}}}]
        measure = {{fct = false}}
        run = {{duration = "60ms", warmup = "30ms"}}
    "#
    );
    let (dir, outcome) = ran("ways", &Spec::from_toml(&text).unwrap().validate().unwrap());
    let links = rows(&dir.0, "link");
    let used = |id: &str| links.iter().find(|r| r["link"] == id).unwrap()["utilization"].parse().unwrap();
    let told = outcome.warnings.iter().map(|w| w.kind).collect();
    ([used("switch0->switch1"), used("switch1->switch0")], told)
}

#[test]
fn ways_of_a_short_link_that_may_oscillate_together_are_warned_of() {
    let back = ", {src = \"h2\", dst = \"h0\"}, {src = \"h3\", dst = \"h1\"}";
    let (used, told) = both_ways("", "1Gbps", back);
    assert!(used.iter().all(|&used| used < 0.6), "the fault has gone, and so may its warning: {used:?}");
    assert!(told.contains(&"acks"), "{told:?}");
    for (params, rate, ways) in [(", params = {integral = 6}", "1Gbps", back), ("", "1Gbps", ""), ("", "10Gbps", back)]
    {
        let (used, told) = both_ways(params, rate, ways);
        assert!(used[0] > 0.9 && !told.contains(&"acks"), "{params} {rate} {ways}: {used:?}, {told:?}");
    }
}

/// Kinds of the warnings about a spec with these flows and schemes.
fn told(policy: &str, flows: &str, schemes: &str) -> Vec<&'static str> {
    let text = format!(
        r#"
        network = {{kind = "leaf-spine", leaves = 2, spines = 2, hosts_per_leaf = 2, host_rate = "10Gbps", spine_rate = "10Gbps", controller_rate = "10Gbps"}}
        controller = {{at = "controller"}}
        workload = {{kind = "steps", flows = [{flows}]}}
        policy = {{{policy}}}
        scheme = [{schemes}]
        run = {{duration = "100us"}}
    "#
    );
    let (_, outcome) = ran("told", &Spec::from_toml(&text).unwrap().validate().unwrap_or_else(|e| panic!("{e}")));
    outcome.warnings.iter().map(|w| w.kind).filter(|kind| ["pooled", "weights"].contains(kind)).collect()
}

#[test]
fn pooled_flows_under_schemes_that_do_not_pool_are_warned_of() {
    let pooled = r#"{src = "h0", dst = "h2", subflows = 2}, {src = "h1", dst = "h3"}"#;
    let ned = |transport: &str| format!(r#"{{optimizer = "ned", transport = "{transport}"}}"#);
    let alpha = |alpha: u32| format!("kind = \"alpha-fair\", alpha = {alpha}");
    for (policy, scheme, is_told) in [
        (MAX_MIN.to_string(), r#"{name = "s-perc"}"#.to_string(), true),
        (MAX_MIN.to_string(), r#"{name = "rcp"}"#.to_string(), true),
        (MAX_MIN.to_string(), r#"{optimizer = "exact-central", transport = "s-perc"}"#.to_string(), false),
        (MAX_MIN.to_string(), r#"{name = "s-perc", backend = "fluid"}"#.to_string(), false),
        (alpha(1), ned("paced"), false),
        (alpha(2), ned("paced"), true),
        (alpha(2), ned("s-perc"), true),
        (alpha(2), r#"{optimizer = "ned-central", transport = "paced"}"#.to_string(), false),
        (alpha(5), r#"{optimizer = "ned-central", transport = "paced"}"#.to_string(), true),
        (alpha(5), r#"{name = "numfabric"}"#.to_string(), false),
    ] {
        assert_eq!(told(&policy, pooled, &scheme).contains(&"pooled"), is_told, "{policy} {scheme}");
        let alone = pooled.replace(", subflows = 2", "");
        assert!(told(&policy, &alone, &scheme).is_empty(), "{policy} {scheme} without subflows");
    }
}

#[test]
fn weights_far_from_1_are_warned_of_under_schemes_of_fixed_gains() {
    let flows = |weight: f64| format!(r#"{{src = "h0", dst = "h2", weight = {weight}}}, {{src = "h1", dst = "h3"}}"#);
    for (scheme, weight, is_told) in [
        ("dgd", 0.05, true),
        ("dgd", 4.0, false),
        ("dgd", 50.0, true),
        ("rcp-star", 0.25, true),
        ("rcp-star", 2.0, false),
        ("rcp-star", 100.0, true),
        ("numfabric", 0.05, false),
    ] {
        let found = told(LOG, &flows(weight), &format!(r#"{{name = "{scheme}"}}"#));
        assert_eq!(found.contains(&"weights"), is_told, "{scheme} {weight}: {found:?}");
    }
}
