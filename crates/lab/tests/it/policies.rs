//! Policies of specs: flows, schemes and exact rates follow the policy of the spec.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use subak_lab::{RunOptions, Spec, run};

use crate::common::{Scratch, rows};

fn go(text: &str, name: &str) -> Scratch {
    let dir = Scratch::new(name);
    let cancel = AtomicBool::new(false);
    let spec = Spec::from_toml(text).unwrap().validate().unwrap();
    let outcome = run(&spec, &dir.0, &RunOptions::alone(&cancel)).unwrap();
    assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
    dir
}

/// Last sampled rate, Gb/s, by `(scheme, flow id)`.
fn last_gbps(dir: &Scratch) -> BTreeMap<(String, String), f64> {
    let rates = rows(&dir.0, "rate").into_iter();
    rates.map(|r| ((r["scheme"].clone(), r["flow_id"].clone()), r["rate_bps"].parse::<f64>().unwrap() / 1e9)).collect()
}

/// A spec with one long flow over two links of 10 Gb/s, and one flow over each link. Under alpha-fairness the long
/// flow gets the fraction 1 / (1 + 2^(1/alpha)) of a link.
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
    // DCTCP gives all three flows about the same number of bytes per RTT, which is not proportionally fair.
    let dir = go(&chain("kind = \"alpha-fair\", alpha = 1", r#"{name = "numfabric"}, {name = "dctcp"}"#), "against");
    let converged = |scheme: &str| {
        let row = rows(&dir.0, "convergence").into_iter().find(|r| r["scheme"] == scheme).unwrap();
        row["converged"] == "true"
    };
    assert!(converged("numfabric") && !converged("dctcp"));
    let dir = go(&chain("kind = \"max-min\"", r#"{name = "numfabric-swift"}, {name = "s-perc"}"#), "max-min");
    for (_, gbps) in last_gbps(&dir) {
        assert!((gbps - 5.0).abs() < 0.5, "{gbps}");
    }
}

/// Runs flows of two pairs of hosts over one link of 10 Gb/s, whose capacity becomes 4 Gb/s at 4 ms.
fn narrowing(policy: &str, names: &[&str]) -> Scratch {
    let schemes: Vec<String> = names.iter().map(|n| format!("{{name = \"{n}\"}}")).collect();
    let text = format!(
        r#"
        network = {{kind = "dumbbell", pairs = 2, host_rate = "20Gbps", link_delay = "2.5us"}}
        workload = {{kind = "steps", flows = [{{id = "1", src = "h0", dst = "h2"}}, {{id = "2", src = "h1", dst = "h3"}}]}}
        policy = {{{policy}}}
        scheme = [{}]
        measure = {{rates = "2ms", convergence = {{within = 0.12, share = 1, hold = "1ms", lasting = false}}}}
        fault = [{{kind = "capacity", link = "switch0->switch1", capacity = "4Gbps", at = "4ms"}}]
        run = {{duration = "10ms"}}
    "#,
        schemes.join(", ")
    );
    go(&text, &format!("capacity-{}", names[1]))
}

#[test]
fn schemes_of_every_sort_hear_that_a_capacity_changes() {
    let max_min = ["ideal", "s-perc", "s-perc-star", "n-perc", "fair", "charny", "rcp", "numfabric-swift"];
    let optimizers = ["ideal", "numfabric", "xwi-s-perc", "dgd", "rcp-star"];
    for (policy, names) in [(r#"kind = "max-min""#, &max_min[..]), (r#"kind = "alpha-fair", alpha = 1"#, &optimizers)] {
        let dir = narrowing(policy, names);
        for row in rows(&dir.0, "rate") {
            let (time, rate): (u64, f64) = (row["time_ns"].parse().unwrap(), row["rate_bps"].parse().unwrap());
            let want = if time <= 4_000_000 { 5e9 } else { 2e9 };
            assert!(time % 4_000_000 != 0 || (rate / want - 1.0).abs() < 0.1, "{row:?}: not {want}");
        }
        let settled = rows(&dir.0, "convergence");
        assert_eq!(settled.len(), 2 * names.len(), "{settled:?}");
        let unsettled = settled.iter().filter(|r| r["converged"] != "true");
        let unsettled: Vec<_> = unsettled.map(|r| (&r["scheme"], &r["time_ns"], &r["within_share"])).collect();
        assert!(unsettled.is_empty(), "{unsettled:?}");
        // The link has 10 Gb/s for 4 ms, then 4 Gb/s for 6 ms.
        for row in rows(&dir.0, "link").iter().filter(|r| r["link"] == "switch0->switch1") {
            assert!(row["utilization"].parse::<f64>().unwrap() > 0.88, "{row:?}");
        }
    }
}

/// FCTs of flows over one link of 10 Gb/s under `policy`, ms, by `(scheme, flow id)`.
fn completion_ms(policy: &str, flows: &str, name: &str) -> BTreeMap<(String, String), f64> {
    let text = format!(
        r#"
        network = [{{id = "a", capacity = "10Gbps", delay = "7us"}}]
        workload = {{kind = "steps", flows = [{flows}]}}
        policy = {{{policy}}}
        scheme = [{{name = "ideal"}}, {{name = "numfabric", params.slowdown = 2}}]
        run = {{duration = "10ms"}}
    "#
    );
    let dir = go(&text, name);
    let flows = rows(&dir.0, "flow").into_iter();
    flows.map(|r| ((r["scheme"].clone(), r["flow_id"].clone()), r["fct_ns"].parse::<f64>().unwrap() / 1e6)).collect()
}

#[test]
fn completion_times_follow_sizes_what_remains_and_deadlines() {
    // The late flow is shorter than the size of the early flow, and longer than its remaining bytes.
    let sizes =
        r#"{id = "early", path = ["a"], size = "6MB"}, {id = "late", path = ["a"], size = "3MB", start = "4ms"}"#;
    let by_size = completion_ms(r#"kind = "fct""#, sizes, "fct");
    let by_rest = completion_ms(r#"kind = "srpt""#, sizes, "srpt");
    for scheme in ["ideal", "numfabric"] {
        let took = |of: &BTreeMap<(String, String), f64>, id: &str| of[&(scheme.to_string(), id.to_string())];
        assert!(took(&by_size, "late") < 3.0 && took(&by_size, "early") > 6.5, "{scheme}: {by_size:?}");
        assert!(took(&by_rest, "late") > 3.2 && took(&by_rest, "early") < 5.7, "{scheme}: {by_rest:?}");
    }
    let deadlines = r#"{id = "first", path = ["a"], size = "2MB", deadline = "3ms"},
        {id = "last", path = ["a"], size = "2MB", deadline = "9ms"}"#;
    let by_deadline = completion_ms(r#"kind = "edf", epsilon = 0.2"#, deadlines, "edf");
    for scheme in ["ideal", "numfabric"] {
        let took = |id: &str| by_deadline[&(scheme.to_string(), id.to_string())];
        assert!(took("first") < 2.6 && took("last") > 3.2, "{scheme}: {by_deadline:?}");
    }
}

#[test]
fn bandwidth_functions_pool_over_subflows() {
    // NUMFabric paper, figure 10: links of 5 and 3 Gb/s, and a middle link that has 5, then 17 Gb/s.
    let text = r#"
        network = [{id = "top", capacity = "5Gbps", delay = "7us"}, {id = "middle", capacity = "5Gbps", delay = "7us"},
            {id = "bottom", capacity = "3Gbps", delay = "7us"}]
        policy = {kind = "bandwidth-function"}
        scheme = [{name = "ideal"}]
        measure = {rates = "2ms"}
        fault = [{kind = "capacity", link = "middle", capacity = "17Gbps", at = "4ms"}]
        run = {duration = "8ms"}
        [[workload.flows]]
        id = "1"
        paths = [["top"], ["middle"]]
        bandwidth_function = [[0, 0], [2, "10Gbps"], [2.5, "15Gbps"], [5, "40Gbps"]]
        [[workload.flows]]
        id = "2"
        paths = [["middle"], ["bottom"]]
        bandwidth_function = [[0, 0], [2, 0], [2.5, "10Gbps"]]
        [workload]
        kind = "steps"
    "#;
    let dir = go(text, "functions");
    for row in rows(&dir.0, "rate") {
        let (time, rate): (u64, f64) = (row["time_ns"].parse().unwrap(), row["rate_bps"].parse().unwrap());
        let want = match (time <= 4_000_000, row["flow_id"].as_str()) {
            (true, "1") => 10e9,
            (true, _) => 3e9,
            (false, "1") => 15e9,
            (false, _) => 10e9,
        };
        assert!((rate / want - 1.0).abs() < 1e-3, "{row:?}: not {want}");
    }
}

#[test]
fn subflows_apart_share_for_themselves() {
    // If a flow's two subflows are separate flows, they get two shares of each host's link.
    let permutation = |more: &str| {
        let text = format!(
            r#"
            network = {{kind = "leaf-spine", leaves = 2, spines = 2, hosts_per_leaf = 3}}
            workload = {{kind = "permutation", subflows = 2, one_way = true{more}}}
            policy = {{kind = "alpha-fair", alpha = 1}}
            scheme = [{{name = "ideal"}}]
            measure = {{rates = "1ms"}}
            run = {{duration = "1ms"}}
        "#
        );
        let dir = go(&text, "apart");
        rows(&dir.0, "rate").iter().map(|r| r["rate_bps"].parse::<f64>().unwrap()).collect::<Vec<f64>>()
    };
    let (pooled, apart) = (permutation(""), permutation(", apart = true"));
    assert_eq!((pooled.len(), apart.len()), (3, 6));
    assert!(pooled.iter().all(|r| (r / 10e9 - 1.0).abs() < 1e-3), "{pooled:?}");
    assert!(apart.iter().all(|r| (r / 5e9 - 1.0).abs() < 1e-3), "{apart:?}");
}

#[test]
fn the_smallest_alpha_needs_numfabric_slowed_down() {
    // 128 flows between random hosts. ACKs take almost no capacity, so that the exact rates can be reached.
    let text = r#"
        network = {kind = "leaf-spine", leaves = 4, spines = 2, hosts_per_leaf = 8, link_delay = "2us", buffer = "1MB"}
        workload = {kind = "churn", flows_per_host = 4, replace = 0, epoch = "1s"}
        policy = {kind = "alpha-fair", alpha = 0.125}
        scheme = [{name = "ideal"}, {name = "numfabric", params = {time_scale = [1, 2]}}]
        packets = {ack = 1}
        measure = {rates = "10ms"}
        run = {duration = "20ms", seeds = 2}
    "#;
    let dir = go(text, "smallest");
    let mut last: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in rows(&dir.0, "rate").into_iter().filter(|r| r["time_ns"] == "20000000") {
        last.entry(row["scheme"].clone()).or_default().push(row["rate_bps"].parse().unwrap());
    }
    let near = |scheme: &str| {
        let near =
            last[scheme].iter().zip(&last["ideal"]).filter(|(got, want)| (*got / *want - 1.0).abs() <= 0.1).count();
        near as f64 / last["ideal"].len() as f64
    };
    let (fast, slow) = (near("numfabric time_scale=1"), near("numfabric time_scale=2"));
    assert!(slow >= 0.95 && fast < 0.9, "within 10%: {fast} of the flows, {slow} slowed down");
}

#[test]
fn weights_without_a_bound_let_short_flows_overtake() {
    // A flow of 100 KB starts during a flow of 10 MB; alone it would take 0.1 ms.
    let took = |most_weight: &str| {
        let text = format!(
            r#"
            network = [{{id = "a", capacity = "10Gbps", delay = "7us"}}]
            workload = {{kind = "steps", flows = [{{id = "long", path = ["a"], size = "10MB"}},
                {{id = "short", path = ["a"], size = "100KB", start = "2ms"}}]}}
            policy = {{kind = "fct"}}
            scheme = [{{name = "numfabric", params = {{slowdown = 2, initial_window = 14{most_weight}}}}}]
            run = {{duration = "10ms"}}
        "#
        );
        let dir = go(&text, "overtake");
        let short = rows(&dir.0, "flow").into_iter().find(|r| r["flow_id"] == "short").unwrap();
        short["slowdown"].parse::<f64>().unwrap()
    };
    let (capped, free) = (took(", most_weight = 1.5"), took(", most_weight = 1e6"));
    assert!(free < 1.1 && capped > 1.3, "{free} without a bound, {capped} with that of 1.5 line rates");
    assert_eq!(took(""), free, "under a policy that puts flows before others there is no bound");
}

#[test]
fn hashed_subflows_may_meet() {
    // Two leaves, two spines: some of four hashed subflows take the same path. Pooled subflows on one path count as
    // one, separate flows do not.
    let flows = |more: &str| {
        let text = format!(
            r#"
            network = {{kind = "leaf-spine", leaves = 2, spines = 2, hosts_per_leaf = 3}}
            workload = {{kind = "permutation", subflows = 4, one_way = true{more}}}
            policy = {{kind = "alpha-fair", alpha = 1}}
            scheme = [{{name = "ideal"}}]
            measure = {{rates = "1ms"}}
            run = {{duration = "1ms"}}
        "#
        );
        let dir = go(&text, "hashed");
        let up = rows(&dir.0, "link").into_iter().filter(|r| r["link"].starts_with("leaf0->spine"));
        let up: Vec<f64> = up.map(|r| r["data_bytes"].parse().unwrap()).collect();
        let rates = rows(&dir.0, "rate").iter().map(|r| r["rate_bps"].parse().unwrap()).collect::<Vec<f64>>();
        (rates, up)
    };
    let (pooled, _) = flows(", hashed = true");
    let (apart, uneven) = flows(", hashed = true, apart = true");
    let (distinct, even) = flows(", apart = true");
    assert_eq!((pooled.len(), apart.len(), distinct.len()), (3, 12, 6));
    assert!((even[0] / even[1] - 1.0).abs() < 1e-3 && (uneven[0] / uneven[1] - 1.0).abs() > 0.1, "{even:?} {uneven:?}");
    let fair = |all: &[f64]| all.iter().all(|r| (r / all[0] - 1.0).abs() < 1e-3);
    assert!(fair(&pooled) && fair(&apart), "{pooled:?} {apart:?}");
}

/// Three policies in one spec: each scheme is compared with the optimum of its own policy, and its label has the
/// policy's name.
#[test]
fn schemes_of_several_policies_run_beside_one_another() {
    let text = r#"
        network = {kind = "star", hosts = 6}
        workload = {kind = "poisson", sizes = "web-search", load = 0.6}
        scheme = [
            {name = "ideal"},
            {name = "s-perc"},
            {name = "ideal", policy = {kind = "fct"}},
            {name = "numfabric", policy = {kind = "fct"}},
            {name = "numfabric", policy = {kind = "alpha-fair", alpha = 1}},
            {name = "dctcp", label = "mine", policy = {kind = "max-min"}},
        ]
        run = {duration = "20ms"}
    "#;
    let spec = subak_lab::Spec::from_toml(text).unwrap().validate().unwrap();
    let labels: Vec<&str> = spec.schemes.iter().map(|s| s.label.as_str()).collect();
    assert_eq!(labels, ["ideal", "s-perc", "ideal (fct)", "numfabric (fct)", "numfabric (alpha-fair 1)", "mine"]);
    let dir = go(text, "several");
    let rows = subak_lab::summary(&dir.0).unwrap().rows;
    let mean = |label: &str| {
        let row = rows.iter().find(|r| r.scheme == label).unwrap();
        row.metrics.iter().find(|m| m.0 == "slowdown_mean").unwrap().1.mean
    };
    assert_eq!(rows.len(), 6);
    assert!(mean("ideal (fct)") < mean("ideal"), "{} {}", mean("ideal (fct)"), mean("ideal"));

    // The rates are the same as with this policy for the whole spec.
    let alone = r#"scheme = [{name = "numfabric"}]
        policy = {kind = "alpha-fair", alpha = 1}
        run"#;
    let start = text.find("scheme =").unwrap();
    let alone = go(&format!("{}{alone}{}", &text[..start], &text[text.find("run").unwrap() + 3..]), "alone");
    let of_spec = subak_lab::summary(&alone.0).unwrap().rows.remove(0).metrics;
    assert_eq!(of_spec, rows.iter().find(|r| r.scheme == "numfabric (alpha-fair 1)").unwrap().metrics);
    for (from, to, place) in [
        (r#"policy = {kind = "alpha-fair", alpha = 1}"#, r#"policy = {kind = "max-min"}"#, "scheme[4].policy.kind"),
        (r#"policy = {kind = "alpha-fair", alpha = 1}"#, r#"policy = {kind = "edf"}"#, "scheme[4].policy.kind"),
        (r#"policy = {kind = "alpha-fair", alpha = 1}"#, r#"policy = {kind = "fair"}"#, "scheme[4].policy.kind"),
    ] {
        let fault = subak_lab::Spec::from_toml(&text.replace(from, to)).unwrap().validate().unwrap_err();
        assert_eq!(fault.place, place, "{fault}");
    }
}

/// Schemes that support only max-min run under max-min, whichever policy the spec sets. The error for an unsupported
/// policy has the place of its key.
#[test]
fn schemes_of_one_policy_take_it() {
    let text = |policy: &str| {
        format!(
            r#"
            network = {{kind = "star", hosts = 4}}
            workload = {{kind = "poisson", sizes = "web-search", load = 0.5}}
            {policy}
            scheme = [{{name = "dctcp"}}, {{name = "s-perc"}}, {{name = "numfabric"}}, {{name = "charny", label = "mine"}}]
            run = {{duration = "1ms"}}
        "#
        )
    };
    let spec = Spec::from_toml(&text("policy = {kind = \"alpha-fair\", alpha = 1}")).unwrap().validate().unwrap();
    let labels: Vec<&str> = spec.schemes.iter().map(|s| s.label.as_str()).collect();
    assert_eq!(labels, ["dctcp", "s-perc (max-min)", "numfabric", "mine"]);
    let own: Vec<bool> = spec.schemes.iter().map(|s| s.policy.is_some()).collect();
    assert_eq!(own, [false, true, false, true]);
    let fault = Spec::from_toml(&text("")).unwrap().validate().unwrap_err();
    assert_eq!(fault.place, "policy.kind");
    assert!(fault.hint.contains("[[scheme]] a policy of its own, such as policy = {kind = \"alpha-fair\""), "{fault}");
    let alone = text("").replace(r#"{name = "numfabric"}"#, r#"{name = "numfabric", policy = {kind = "fct"}}"#);
    assert!(Spec::from_toml(&alone).unwrap().validate().is_ok(), "the way that the message names");
}
