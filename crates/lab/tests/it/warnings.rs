//! Warnings about a run, and the results that cause them.

use crate::common::{Scratch, ran, rows};
use subak_lab::{RunOutcome, Spec, Summary, summary};

fn go(name: &str, text: &str) -> (Scratch, RunOutcome) {
    ran(name, &Spec::from_toml(text).unwrap().validate().unwrap_or_else(|e| panic!("{e}")))
}

fn kinds(outcome: &RunOutcome) -> Vec<&'static str> {
    outcome.warnings.iter().map(|w| w.kind).collect()
}

fn metric(summary: &Summary, name: &str) -> f64 {
    summary.rows[0].metrics.iter().find(|m| m.0 == name).unwrap_or_else(|| panic!("no {name}")).1.mean
}

/// Runs a spec in which one host's link is down from 2 ms to `up`.
fn outage(up: &str) -> (Scratch, RunOutcome) {
    let text = format!(
        r#"
        network = {{kind = "star", hosts = 8, rate = "10Gbps"}}
        workload = {{kind = "poisson", sizes = "enterprise", load = 0.4}}
        scheme = [{{name = "dctcp"}}]
        fault = [{{kind = "down", link = "switch0->h1", down = "2ms"{up}}}]
        run = {{duration = "10ms", drain = "40ms"}}
    "#
    );
    go("outage", &text)
}

#[test]
fn a_permanent_outage_is_seen_and_does_not_improve_the_mean() {
    let mut means = Vec::new();
    for (up, ends) in [(", up = \"3ms\"", true), (", up = \"8ms\"", true), ("", false)] {
        let (dir, outcome) = outage(up);
        let summary = summary(&dir.0).unwrap();
        assert_eq!(metric(&summary, "unfinished") == 0.0, ends, "{up}");
        assert_eq!(metric(&summary, "flows"), metric(&summary, "completed") + metric(&summary, "unfinished"));
        assert_eq!(kinds(&outcome).contains(&"unfinished"), !ends, "{:?}", outcome.warnings);
        means.push(metric(&summary, "slowdown_mean"));
        // The mean over completed flows alone would fall.
        let finished: Vec<f64> = rows(&dir.0, "flow").iter().filter_map(|r| r["slowdown"].parse().ok()).collect();
        let of_finished = finished.iter().sum::<f64>() / finished.len() as f64;
        assert!(if ends { (of_finished / means[means.len() - 1] - 1.0).abs() < 1e-9 } else { of_finished < means[1] });
    }
    assert!(means[0] < means[1] && means[1] < means[2], "{means:?}");
}

#[test]
fn hosts_with_unlike_nics_are_said() {
    let spec = |nic: &str, schemes: &str| {
        let text = format!(
            r#"
            network = {{kind = "star", hosts = 4, rate = "10Gbps"{nic}}}
            workload = {{kind = "incast", senders = 3, size = "10KB"}}
            scheme = [{schemes}]
            run = {{duration = "1ms"}}
        "#
        );
        go("nics", &text).1
    };
    let [soze, hpcc, ideal] = ["soze", "hpcc", "ideal"].map(|name| format!("{{name = \"{name}\"}}"));
    let outcome = spec("", &format!("{soze}, {hpcc}, {ideal}"));
    let said = outcome.warnings.iter().find(|w| w.kind == "nic").unwrap_or_else(|| panic!("{outcome:?}"));
    assert!(
        said.text.contains("round robin under \"hpcc\"") && said.text.contains("queue under \"soze\";"),
        "{}",
        said.text
    );
    assert!(said.text.contains("nic = \"round-robin\""), "{}", said.text);
    for (nic, schemes) in
        [(", nic = \"round-robin\"", format!("{soze}, {hpcc}")), ("", hpcc), ("", format!("{soze}, {ideal}"))]
    {
        assert!(!kinds(&spec(nic, &schemes)).contains(&"nic"), "{nic} {schemes}");
    }
}

#[test]
fn nothing_finished_is_said() {
    let text = r#"
        network = {kind = "star", hosts = 4, rate = "10Gbps"}
        workload = {kind = "incast", senders = 3, size = "1MB"}
        scheme = [{name = "dctcp"}, {name = "ideal"}]
        fault = [{kind = "loss", kinds = ["data"], probability = 1}]
        run = {duration = "1ms", drain = "5ms"}
    "#;
    let (dir, outcome) = go("nothing", text);
    let said: Vec<_> = outcome.warnings.iter().filter(|w| w.kind == "nothing-finished").collect();
    assert_eq!(said.len(), 1, "{:?}", outcome.warnings);
    assert_eq!((said[0].scheme.as_deref(), said[0].trials.as_slice()), (Some("dctcp"), &[0][..]));
    let manifest: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(dir.0.join("manifest.json")).unwrap()).unwrap();
    let listed: Vec<_> = manifest["warnings"].as_array().unwrap().iter().map(|w| w["kind"].as_str().unwrap()).collect();
    // The fluid backend loses no packets, which is a warning.
    assert_eq!(listed, ["left-out", "nothing-finished"]);
}

#[test]
fn a_short_run_of_large_flows_is_still_ramping_and_has_few_of_them() {
    let text = r#"
        network = {kind = "star", hosts = 16, rate = "10Gbps"}
        workload = {kind = "poisson", sizes = "fixed", size = "20MB", load = 0.9}
        scheme = [{name = "ideal"}]
        run = {duration = "10ms"}
    "#;
    let (_dir, outcome) = go("ramp", text);
    let kinds = kinds(&outcome);
    assert!(kinds.contains(&"still-ramping") || kinds.contains(&"load-not-reached"), "{kinds:?}");
    let long = text.replace("20MB", "20KB").replace("0.9", "0.5");
    let (_dir, outcome) = go("steady", &long);
    assert_eq!(outcome.warnings, [], "many small flows at half load are worth believing");
}

#[test]
fn an_overloaded_cut_is_named() {
    let text = r#"
        network = {kind = "leaf-spine", leaves = 4, spines = 1, hosts_per_leaf = 4, oversubscription = 4}
        workload = {kind = "poisson", sizes = "fixed", size = "20KB", load = 0.6}
        scheme = [{name = "ideal"}]
        run = {duration = "10ms", drain = "0s"}
    "#;
    let (_dir, outcome) = go("cut", text);
    let said = outcome.warnings.iter().find(|w| w.kind == "overloaded").unwrap_or_else(|| panic!("{outcome:?}"));
    assert!(said.text.contains("flows offer the 4 links "), "{}", said.text);
    let (_dir, outcome) = go("no-cut", &text.replace("0.6", "0.15"));
    assert!(!kinds(&outcome).contains(&"overloaded"), "{outcome:?}");
}

#[test]
fn capacities_without_units_are_noticed() {
    let scratch = Scratch::new("units");
    std::fs::create_dir_all(&scratch.0).unwrap();
    let file = scratch.0.join("net.json");
    let link = |from: &str, to: &str| format!(r#"{{"from": "{from}", "to": "{to}", "capacity": 10000}}"#);
    std::fs::write(&file, format!("{{\"links\": [{}, {}]}}", link("a", "b"), link("b", "a"))).unwrap();
    let text = format!(
        r#"
        network = {{file = {:?}}}
        workload = {{kind = "steps", flows = [{{src = "a", dst = "b", size = "1KB"}}]}}
        scheme = [{{name = "ideal"}}]
        run = {{duration = "1s"}}
    "#,
        file.display().to_string()
    );
    let (_dir, outcome) = go("units-run", &text);
    let said = outcome.warnings.iter().find(|w| w.kind == "slow-link").unwrap_or_else(|| panic!("{outcome:?}"));
    assert!(said.text.contains("10000 bit/s") && said.text.contains("a->b"), "{}", said.text);
}

#[test]
fn a_graze_is_told_from_settling_and_criteria_are_never_averaged() {
    // From some time after convergence on, all data packets are lost: at the last sample, rates are outside the
    // tolerance.
    let text = r#"
        network = {links = [{id = "l1", capacity = "10Gbps", delay = "1us"}]}
        workload = {kind = "steps", flows = [{path = ["l1"]}]}
        scheme = [{name = "s-perc-star"}]
        fault = [{kind = "loss", kinds = ["data"], probability = 1, from = "3ms"}]
        measure = {convergence = [{hold = "300us", lasting = false}, {}]}
        run = {duration = "8ms"}
    "#;
    let (dir, outcome) = go("graze", text);
    assert!(kinds(&outcome).contains(&"graze"), "{:?}", outcome.warnings);
    let summary = summary(&dir.0).unwrap();
    let row = &summary.rows[0];
    assert!(row.metrics.iter().all(|m| m.0 != "converged_share"), "{:?}", row.metrics);
    let of = |criterion: usize, name: &str| {
        let metrics = &row.convergence[criterion].metrics;
        metrics.iter().find(|m| m.0 == name).unwrap_or_else(|| panic!("{metrics:?}")).1.mean
    };
    assert_eq!((of(0, "converged_share"), of(1, "converged_share")), (1.0, 0.0), "by default a graze does not count");
    assert_eq!((of(0, "near_at_end_share"), of(1, "near_at_end_share")), (0.0, 0.0));
    assert!(of(0, "end_error_p50") > 0.9, "nothing arrives at the end");
}

/// A spec with five switches in a ring, each with one host. Each host sends to the host two switches further, all
/// in the same direction.
fn ring(scheme: &str) -> String {
    let mut links = Vec::new();
    for k in 0..5 {
        for (a, b) in [(format!("h{k}"), format!("s{k}")), (format!("s{k}"), format!("s{}", (k + 1) % 5))] {
            links.push(format!(r#"{{from = "{a}", to = "{b}", capacity = "10Gbps", delay = "1us"}}"#));
            links.push(format!(r#"{{from = "{b}", to = "{a}", capacity = "10Gbps", delay = "1us"}}"#));
        }
    }
    let flows: Vec<_> =
        (0..5).map(|k| format!(r#"{{src = "h{k}", dst = "h{}", size = "2MB"}}"#, (k + 2) % 5)).collect();
    format!(
        r#"
        network = [{}]
        workload = {{kind = "steps", flows = [{}]}}
        scheme = [{scheme}]
        run = {{duration = "2ms", drain = "20ms"}}
    "#,
        links.join(", "),
        flows.join(", ")
    )
}

#[test]
fn a_deadlock_of_pauses_is_named_and_pauses_are_counted() {
    let stuck = r#"{name = "dcqcn", params = {k_min = 1e12, k_max = 1e12, pfc = "static", pfc_threshold = 15000}}"#;
    let (dir, outcome) = go("deadlock", &ring(stuck));
    let said: Vec<_> = outcome.warnings.iter().filter(|w| w.kind == "deadlock").collect();
    assert_eq!(said.len(), 1, "{:?}", outcome.warnings);
    for part in ["5 links wait for each other", "\"s0->s1\"", "\"s4->s0\"", "pfc = \"off\""] {
        assert!(said[0].text.contains(part), "{}", said[0].text);
    }
    let links = rows(&dir.0, "link");
    let named = |r: &std::collections::BTreeMap<String, String>| !r["deadlock_ns"].is_empty();
    assert_eq!(links.iter().filter(|r| named(r)).count(), 5);
    assert!(links.iter().filter(|r| named(r)).all(|r| r["pauses"] != "0" && r["paused_ns"] != "0"));
    let whole: u64 = links.iter().map(|r| r["pauses"].parse::<u64>().unwrap()).sum();
    assert_eq!(rows(&dir.0, "summary")[0]["pauses"], whole.to_string());
    assert_eq!(metric(&summary(&dir.0).unwrap(), "pauses"), whole as f64);
    let (_, outcome) = go("no-deadlock", &ring(r#"{name = "dcqcn"}"#));
    assert!(!kinds(&outcome).contains(&"deadlock"), "{:?}", outcome.warnings);
}

/// Under s-PERC, links keep the rates of flows whose last message was lost, which is a warning. s-PERC* and DCTCP
/// recover.
#[test]
fn who_does_not_survive_the_faults_of_a_spec_is_named_before_it_runs() {
    let text = |fault: &str| {
        format!(
            r#"
            network = {{kind = "star", hosts = 8, rate = "10Gbps"}}
            workload = {{kind = "poisson", sizes = "enterprise", load = 0.4}}
            scheme = [{{name = "s-perc"}}, {{name = "s-perc-star"}}, {{name = "dctcp"}}]
            {fault}
            run = {{duration = "5ms"}}
        "#
        )
    };
    for (fault, lost) in [
        (r#"fault = [{kind = "loss", probability = 0.01, kinds = ["ctl"]}]"#, true),
        (r#"fault = [{kind = "loss", probability = 0.01, kinds = ["data"]}]"#, false),
        ("", false),
    ] {
        let (dir, outcome) = go("no-recovery", &text(fault));
        let said = outcome.warnings.iter().filter(|w| w.kind == "no-recovery");
        let named: Vec<_> = said.map(|w| w.scheme.as_deref().unwrap()).collect();
        assert_eq!(named, if lost { vec!["s-perc"] } else { vec![] }, "{fault}: {:?}", outcome.warnings);
        // The summary counts the flows that lost control messages.
        let summary = summary(&dir.0).unwrap();
        let of_flows = rows(&dir.0, "flow").iter().filter(|r| r["scheme"] == "s-perc" && r["ctl_drops"] != "0").count();
        assert_eq!(metric(&summary, "flows_ctl_lost"), of_flows as f64);
        assert_eq!(of_flows > 0, lost);
    }
}

/// When a link is up again, links reset their flow counts. A warning about s-PERC is therefore given only for a
/// permanent outage.
#[test]
fn an_outage_that_ends_is_survived() {
    for (fault, named) in [
        (r#"{kind = "down", link = "leaf0->spine0", down = "1ms", up = "2ms"}"#, false),
        (r#"{kind = "down", link = "leaf0->spine0", down = "1ms"}"#, true),
    ] {
        let text = format!(
            r#"
            network = {{kind = "leaf-spine", leaves = 2, spines = 2, hosts_per_leaf = 2}}
            workload = {{kind = "permutation"}}
            scheme = [{{name = "s-perc"}}]
            fault = [{fault}]
            measure = {{fct = false}}
            run = {{duration = "3ms"}}
        "#
        );
        let (_, outcome) = go("outage", &text);
        assert_eq!(kinds(&outcome).contains(&"no-recovery"), named, "{fault}: {:?}", outcome.warnings);
    }
}

/// Runs Flowtune on a fat-tree of 128 hosts; returns the 99th percentile of the slowdown of flows up to 100 KB.
/// `own_node`: the allocator has a node of its own; `share`: fraction of the allocator's link for messages.
fn flowtune_on_a_fat_tree(own_node: bool, share: f64) -> (f64, RunOutcome) {
    let (node, at) = if own_node { (", controller_rate = \"40Gbps\"", "controller") } else { ("", "h0") };
    let (dir, outcome) = go(
        "fat-tree",
        &format!(
            r#"
            network = {{kind = "fat-tree", k = 8{node}}}
            workload = {{kind = "poisson", sizes = "facebook-cache", load = 0.4}}
            policy = {{kind = "alpha-fair", alpha = 1}}
            scheme = [{{name = "flowtune", params = {{control_share = {share}}}}}]
            controller = {{at = "{at}"}}
            run = {{duration = "6ms", seeds = 2}}
        "#
        ),
    );
    let summary = summary(&dir.0).unwrap();
    assert_eq!((metric(&summary, "unfinished"), metric(&summary, "dropped_packets")), (0.0, 0.0), "{at}");
    let small = rows(&dir.0, "flow").into_iter().filter(|r| r["size_bytes"].parse::<u64>().unwrap() <= 100_000);
    let mut slowdowns: Vec<f64> = small.map(|r| r["slowdown"].parse().unwrap()).collect();
    slowdowns.sort_by(f64::total_cmp);
    (slowdowns[slowdowns.len() * 99 / 100], outcome)
}

/// Regression: with an RTO that ignored the RTT, messages filled the link of the allocator's host, with 60,000
/// drops.
#[test]
fn an_allocator_at_a_host_leaves_its_link_to_data_and_rates_come_in_time() {
    let (own, outcome) = flowtune_on_a_fat_tree(true, 0.5);
    assert!(!kinds(&outcome).contains(&"messages"), "{:?}", outcome.warnings);
    let (at_host, _) = flowtune_on_a_fat_tree(false, 0.5);
    println!("99th percentile of slowdowns up to 100 KB: {own:.2} with a node of its own, {at_host:.2} at a host");
    assert!(at_host < 1.3 * own, "{at_host} at a host, {own} with a node of its own");
    // Pacing limits messages to a tenth of the link, if that is their share.
    let (_, outcome) = flowtune_on_a_fat_tree(false, 0.1);
    assert!(!kinds(&outcome).contains(&"messages"), "{:?}", outcome.warnings);
}

/// Warnings report the parts of files and lists that were ignored, and the number of hosts that send.
#[test]
fn what_was_left_out_is_said() {
    let dir = Scratch::new("left-out");
    std::fs::create_dir_all(&dir.0).unwrap();
    let graph = r#"{"nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}], "links": [
        {"source": "a", "target": "b", "capacity": 1e9, "note": 1}, {"source": "b", "target": "c"}, {"source": "b", "target": "b"}]}"#;
    std::fs::write(dir.0.join("g.json"), graph).unwrap();
    std::fs::write(dir.0.join("f.csv"), "start,src,dst,size\n0,a,c,1000\n1ms,a,c,1000\n5ms,c,a,1000\n").unwrap();
    let steps = r#"{kind = "steps", flows = [{src = "a", dst = "c", size = "1KB"}, {src = "c", dst = "a", start = "1ms", size = 9}]}"#;
    let of = |workload: &str| {
        let text = format!(
            r#"
            network = {{file = "g.json", capacity = "2Gbps"}}
            workload = {workload}
            scheme = [{{name = "ideal"}}]
            run = {{duration = "1ms"}}
        "#
        );
        std::fs::write(dir.0.join("spec.toml"), text).unwrap();
        ran("left-out-run", &Spec::load(&dir.0.join("spec.toml")).unwrap().validate().unwrap()).1.warnings
    };
    for (workload, late) in [(r#"{kind = "trace", file = "f.csv"}"#, "2 of 3 flows"), (steps, "1 of 2 flows")] {
        let warnings = of(workload);
        let of = |kind: &str| warnings.iter().filter(|w| w.kind == kind).map(|w| w.text.as_str()).collect::<Vec<_>>();
        assert!(of("workload").iter().any(|text| text.starts_with(late)), "{warnings:?}");
        for said in ["2 of 3 nodes send", "2 of 3 edges tell no speed", "1 edges lead to their own node", "\"note\""] {
            assert!(of("network").iter().any(|text| text.contains(said)), "{said}: {warnings:?}");
        }
    }
}

#[test]
fn a_demand_that_subflows_divide_is_said() {
    let said = |flows: &str| {
        let text = format!(
            r#"
            network = {{kind = "leaf-spine", leaves = 2, spines = 2, hosts_per_leaf = 2}}
            workload = {{kind = "steps", flows = [{flows}]}}
            scheme = [{{name = "s-perc"}}]
            run = {{duration = "1ms"}}
        "#
        );
        let warnings = go("divided", &text).1.warnings;
        warnings.into_iter().filter(|w| w.kind == "workload").map(|w| w.text).collect::<Vec<_>>()
    };
    let ends = r#"src = "h0", dst = "h2""#;
    let told = said(&format!(r#"{{{ends}, id = "both", subflows = 2, demand = "1Gbps"}}, {{{ends}}}"#));
    assert!(told.len() == 1 && told[0].starts_with("1 of 2 flows") && told[0].contains("\"both\""), "{told:?}");
    for one in [r#"demand = "1Gbps""#, "subflows = 2"] {
        assert_eq!(said(&format!("{{{ends}, {one}}}")), Vec::<String>::new(), "{one}");
    }
}

fn serves_max_min(scheme: &str) -> bool {
    !["numfabric\"", "xwi", "ned", "dgd"].iter().any(|name| scheme.contains(name))
}

/// Warnings about parameters of `scheme` on `network`: kind and text.
fn doubts(network: &str, scheme: &str) -> Vec<(&'static str, String)> {
    let text = format!(
        r#"
        network = {network}
        workload = {{kind = "incast", senders = 3, size = "10KB"}}
        policy = {{{}}}
        scheme = [{scheme}]
        run = {{duration = "1ms"}}
    "#,
        if serves_max_min(scheme) { r#"kind = "max-min""# } else { r#"kind = "alpha-fair", alpha = 1"# }
    );
    let outcome = go("doubts", &text).1;
    let own = |w: &&subak_lab::Warning| w.scheme.is_some() && !["few-flows", "nothing-finished"].contains(&w.kind);
    outcome.warnings.iter().filter(own).map(|w| (w.kind, w.text.clone())).collect()
}

const STAR: &str = r#"{kind = "star", hosts = 4, rate = "10Gbps""#;

#[test]
fn parameters_that_do_not_suit_the_network_are_said() {
    // Network keys, scheme, and the expected warning: kind and a part of its text; `None`: no warning.
    let cases = [
        (r#", buffer = "50KB""#, r#"name = "dctcp""#, Some(("marking", "97500 bytes"))),
        (r#", buffer = "99KB""#, r#"name = "dctcp""#, None),
        (r#", buffer = "50KB""#, r#"name = "dctcp", params = {k = 20}"#, None),
        (r#", buffer = "50KB""#, r#"name = "dctcp", params = {pfc = "dynamic"}"#, None),
        (
            r#", buffer = "50KB""#,
            r#"name = "dcqcn", params = {pfc = "off", k_min = "400KB", k_max = "500KB"}"#,
            Some(("marking", "k_min comes to 100000 bytes")),
        ),
        (r#", buffer = "50KB""#, r#"name = "dcqcn", params = {pfc = "off"}"#, None),
        (r#", buffer = "50KB""#, r#"name = "dcqcn", params = {k_min = "400KB", k_max = "500KB"}"#, None),
        (
            r#", link_delay = "50us""#,
            r#"name = "google-swift", params = {base_target = "60us"}"#,
            Some(("target", "62.0 us")),
        ),
        (r#", link_delay = "50us""#, r#"name = "google-swift""#, None),
        // 50 KB drain in 40 us.
        (
            r#", buffer = "50KB""#,
            r#"name = "google-swift", params = {base_target = "100us"}"#,
            Some(("target", "dropped before")),
        ),
        (
            r#", buffer = "50KB""#,
            r#"name = "timely", params = {pfc = "off", t_low = "90us", t_high = "900us"}"#,
            Some(("target", "t_low comes to an RTT of 90.0 us")),
        ),
        (r#", buffer = "50KB""#, r#"name = "timely", params = {t_low = "90us", t_high = "900us"}"#, None),
        (r#", buffer = "500KB""#, r#"name = "timely", params = {pfc = "off"}"#, None),
        (r#", buffer = "50KB""#, r#"name = "pfabric""#, Some(("buffer", "8 of 8 links"))),
        ("", r#"name = "pfabric""#, None),
        ("", r#"name = "hpcc""#, None),
        ("", r#"name = "hpcc", params = {t = "2ms"}"#, Some(("base-rtt", "2000.0 us"))),
        (r#", link_delay = "10ms""#, r#"name = "hpcc", params = {pfc = "static"}"#, Some(("pfc-headroom", "64 MB"))),
        (r#", link_delay = "10ms""#, r#"name = "hpcc", params = {pfc_buffer = "1GB"}"#, None),
    ];
    let cases = cases.into_iter().chain([
        ("", r#"name = "numfabric""#, None),
        (r#", link_delay = "500us""#, r#"name = "numfabric""#, None),
        (
            r#", link_delay = "10ms""#,
            r#"name = "numfabric""#,
            Some(("base-rtt", "above 5 ms, and on the longest path it is 40.0 ms")),
        ),
        (
            r#", link_delay = "500us""#,
            r#"name = "numfabric", params = {price_interval = "30us"}"#,
            Some(("price-interval", "30.0 us, and the longest base RTT is 2002")),
        ),
        (
            r#", link_delay = "500us""#,
            r#"name = "xwi-soze", params = {price_interval = "30us"}"#,
            Some(("price-interval", "300.0 us")),
        ),
        (
            r#", link_delay = "500us""#,
            r#"name = "ned/s-perc", params = {price_interval = "50us"}"#,
            Some(("price-interval", "50.0 us")),
        ),
        (r#", link_delay = "500us""#, r#"name = "ned/s-perc""#, None),
        ("", r#"name = "dgd""#, Some(("price-interval", "16.0 us, and the longest base RTT is 6.5 us"))),
        (r#", link_delay = "5us""#, r#"name = "dgd""#, None),
    ]);
    for (network, scheme, wanted) in cases {
        let told = doubts(&format!("{STAR}{network}}}"), &format!("{{{scheme}}}"));
        match wanted {
            Some((kind, figure)) => {
                assert!(
                    told.iter().any(|(k, text)| *k == kind && text.contains(figure)),
                    "{network} {scheme}: {told:?}"
                );
            }
            None => assert_eq!(told, [], "{network} {scheme}"),
        }
    }
}

/// DGD's default gains suit one line rate only; with another one, a warning is given.
#[test]
fn gains_for_another_line_rate_are_said() {
    let at = |rate: &str, params: &str| {
        let scheme = format!(r#"{{name = "dgd"{params}}}"#);
        doubts(&format!(r#"{{kind = "star", hosts = 4, rate = "{rate}"}}"#), &scheme)
    };
    for (rate, hint) in [("100Gbps", "a = 4.0e-11 and b = 1.2e-12"), ("1Gbps", "a = 4.0e-7 and b = 1.2e-8")] {
        let told = at(rate, "");
        assert!(told.iter().any(|(kind, text)| *kind == "gain" && text.contains(hint)), "{told:?}");
    }
    for transport in ["s-perc", "levels", "swift"] {
        let scheme = format!(r#"{{optimizer = "dgd", transport = "{transport}"}}"#);
        let told = doubts(r#"{kind = "star", hosts = 4, rate = "400Gbps"}"#, &scheme);
        assert!(told.iter().any(|(kind, _)| *kind == "gain"), "{transport}: {told:?}");
    }
    for (rate, params) in [("25Gbps", ""), ("100Gbps", ", params = {a = 4e-11, b = 1.2e-12}")] {
        let told = at(rate, params);
        assert!(told.iter().all(|(kind, _)| *kind != "gain"), "{told:?}");
    }
}

#[test]
fn shares_of_few_packets_are_said() {
    const FALL: &str = "fault = [{kind = \"capacity\", link = \"switch0->h7\", capacity = \"1Gbps\", at = \"50us\"}]";
    let kinds = |scheme: &str, rate: &str, weights: &[f64], size: &str, fault: &str| {
        let flow = |(i, weight): (usize, &f64)| format!("{{src = \"h{i}\", dst = \"h7\", weight = {weight}{size}}}");
        let flows: Vec<String> = weights.iter().enumerate().map(flow).collect();
        let text = format!(
            r#"
            network = {{kind = "star", hosts = 8, rate = "{rate}", link_delay = "1us"}}
            workload = {{kind = "steps", flows = [{}]}}
            policy = {{{}}}
            scheme = [{{{scheme}}}]
            {fault}
            run = {{duration = "100us"}}
        "#,
            flows.join(", "),
            if scheme.contains("swift") { "kind = \"alpha-fair\", alpha = 1" } else { "kind = \"max-min\"" }
        );
        let outcome = go("few-packets", &text).1;
        let told = outcome.warnings.into_iter().filter(|w| ["window", "gain"].contains(&w.kind));
        told.map(|w| (w.kind, w.text)).collect::<Vec<_>>()
    };
    let (four, weighted) = ([1.0; 4], [1.0, 1.0, 3.0, 3.0]);
    let (sized, endless) = (", size = \"100KB\"", "");
    for (scheme, rate, weights, size, kind) in [
        ("name = \"hpcc\"", "10Gbps", &four[..], endless, Some("window")),
        ("name = \"hpcc\"", "25Gbps", &four, endless, Some("window")),
        ("name = \"hpcc\"", "100Gbps", &four, endless, None),
        ("name = \"hpcc\"", "10Gbps", &four, sized, None),
        ("name = \"hpcc\"", "10Gbps", &four[..1], endless, None),
        ("name = \"timely\"", "10Gbps", &four, endless, Some("gain")),
        ("name = \"timely\"", "100Gbps", &four, endless, None),
        ("name = \"timely\"", "10Gbps", &four, sized, None),
        ("name = \"timely\", params = {delta = 0.02}", "10Gbps", &four, endless, None),
        ("name = \"soze\"", "1Gbps", &weighted, endless, Some("window")),
        ("name = \"soze\"", "100Gbps", &weighted, endless, None),
        ("name = \"soze\", params = {state = \"rate\", least_rate = \"beta\"}", "1Gbps", &weighted, endless, None),
        ("name = \"soze-virtual\"", "1Gbps", &weighted, endless, None),
        ("name = \"numfabric-swift\"", "1Gbps", &weighted, endless, Some("window")),
        ("name = \"numfabric-swift\"", "10Gbps", &weighted, endless, None),
    ] {
        let told = kinds(scheme, rate, weights, size, "");
        let found: Vec<&str> = told.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(found, kind.into_iter().collect::<Vec<_>>(), "{scheme} {rate} {weights:?}{size}: {told:?}");
    }
    let fallen = kinds("name = \"numfabric-swift\"", "10Gbps", &weighted, endless, FALL);
    assert!(fallen.len() == 1 && fallen[0].0 == "window", "{fallen:?}");
    let told = kinds("name = \"soze\"", "1Gbps", &weighted, endless, "");
    // The base RTT is 29 us: 0.125 Gb/s are 0.3 packets of 1500 bytes in it.
    assert!(
        told[0].1.starts_with("4 endless flows share a link, and the least share is 0.30 packets in 29.0 us"),
        "{told:?}"
    );
}

#[test]
fn one_base_rtt_for_all_flows_of_a_wide_network_is_said() {
    let told = doubts(r#"{kind = "wan", topology = "b4-18"}"#, r#"{name = "hpcc"}"#);
    assert!(told.iter().any(|(kind, _)| *kind == "base-rtt"), "{told:?}");
}

/// The demand of a listed flow is that of all its connections together, as its size is.
#[test]
fn connections_share_a_demand() {
    let text = |connections: usize| {
        format!(
            r#"
            network = {{kind = "star", hosts = 3, rate = "10Gbps"}}
            workload = {{kind = "steps", flows = [{{src = "h0", dst = "h2", demand = "2Gbps", connections = {connections}}}]}}
            scheme = [{{name = "ideal"}}, {{name = "s-perc-star"}}]
            measure = {{rates = "1ms"}}
            run = {{duration = "2ms"}}
        "#
        )
    };
    for connections in [1, 4] {
        let (dir, _) = go("connections", &text(connections));
        for scheme in ["ideal", "s-perc-star"] {
            let at_end =
                rows(&dir.0, "rate").into_iter().filter(|r| r["scheme"] == scheme && r["time_ns"] == "2000000");
            let rates: Vec<f64> = at_end.map(|r| r["rate_bps"].parse().unwrap()).collect();
            assert_eq!(rates.len(), connections, "{scheme}");
            // In packets of 1500 bytes, of which 1446 are payload.
            assert!((rates.iter().sum::<f64>() / 2e9 - 0.98).abs() < 0.03, "{scheme}: {rates:?}");
        }
    }
}

#[test]
fn schemes_that_are_far_off_over_several_paths_say_so() {
    let one = [("h0", "leaf0"), ("leaf0", "spine0"), ("spine0", "leaf1"), ("leaf1", "h2")];
    let path = |spine: &str| {
        let links = one.map(|(a, b)| format!("\"{a}->{b}\"").replace("spine0", spine));
        format!("[{}]", links.join(", "))
    };
    let text = |scheme: &str, paths: &[&str]| {
        format!(
            r#"
            network = {{kind = "leaf-spine", leaves = 2, spines = 2, hosts_per_leaf = 2, controller_rate = "10Gbps"}}
            workload = {{kind = "steps", flows = [{{paths = [{}]}}]}}
            policy = {{kind = "alpha-fair", alpha = 1}}
            controller = {{at = "controller"}}
            scheme = [{{name = "{scheme}"}}]
            run = {{duration = "100us"}}
        "#,
            paths.iter().map(|spine| path(spine)).collect::<Vec<_>>().join(", ")
        )
    };
    let far = ["flowtune", "rcp-star", "rcp-star/s-perc", "xwi-soze"];
    for scheme in far.into_iter().chain(["numfabric", "xwi/levels", "ned/swift", "ned-central/paced"]) {
        for paths in [&["spine0", "spine1"][..], &["spine0"]] {
            let (_dir, outcome) = go("pooled", &text(scheme, paths));
            let told = kinds(&outcome).contains(&"pooled");
            assert_eq!(told, paths.len() > 1 && far.contains(&scheme), "{scheme}: {:?}", outcome.warnings);
        }
    }
}

#[test]
fn subflows_of_unlike_rtts_are_said() {
    let text = |delay: &str, scheme: &str| {
        let cable = |a: &str, b: &str, delay: &str| {
            let one = |a: &str, b: &str| {
                format!("{{from = \"{a}\", to = \"{b}\", capacity = \"10Gbps\", delay = \"{delay}\"}}")
            };
            format!("{}, {}", one(a, b), one(b, a))
        };
        let cables = [
            cable("a", "s", "1us"),
            cable("s", "t", "1us"),
            cable("s", "u", delay),
            cable("u", "t", "1us"),
            cable("t", "b", "1us"),
        ];
        format!(
            r#"
            network = [{}]
            workload = {{kind = "steps", flows = [{{paths = [["a->s", "s->t", "t->b"], ["a->s", "s->u", "u->t", "t->b"]]}}]}}
            policy = {{kind = "alpha-fair", alpha = 1}}
            scheme = [{{name = "{scheme}"}}]
            run = {{duration = "100us"}}
        "#,
            cables.join(", ")
        )
    };
    for (delay, scheme, said) in
        [("1ms", "numfabric", true), ("1ms", "xwi-soze", true), ("10us", "numfabric", false), ("1ms", "ideal", false)]
    {
        let (_dir, outcome) = go("unlike", &text(delay, scheme));
        let told = outcome
            .warnings
            .iter()
            .any(|w| w.text.starts_with("base RTTs of the subflows of 1 of 1 flows (seed 1) differ"));
        assert_eq!(told, said, "{delay} {scheme}: {:?}", outcome.warnings);
    }
}

#[test]
fn starts_that_jitter_moves_beyond_the_run_are_told() {
    for size in ["", ", size = \"1kB\""] {
        let flow = format!("{{src = \"h0\", dst = \"h1\"{size}}}");
        let text = format!(
            r#"
            network = {{kind = "star", hosts = 4}}
            workload = {{kind = "steps", jitter = "3ms", flows = [{flow}, {flow}, {flow}, {flow}, {flow}, {flow}]}}
            scheme = [{{name = "dctcp"}}, {{name = "hpcc"}}]
            run = {{duration = "1ms"}}
        "#
        );
        let (dir, outcome) = go("jitter", &text);
        let told =
            outcome.warnings.iter().filter(|w| w.kind == "workload").map(|w| w.text.as_str()).collect::<Vec<_>>();
        assert!(told.len() == 1 && told[0].starts_with("6 of 6 flows start at or after run.duration if"), "{told:?}");
        assert!(rows(&dir.0, "flow").iter().all(|r| r["start_ns"].parse::<u64>().unwrap() < 1_000_000));
    }
}

#[test]
fn what_names_nothing_or_one_time_twice_is_refused() {
    let spec = |flow: &str, fault: &str| {
        let text = format!(
            r#"
            network = {{kind = "star", hosts = 4}}
            workload = {{kind = "steps", flows = [{{src = "h0", dst = "h1"{flow}}}]}}
            scheme = [{{name = "dctcp"}}]
            fault = [{{kind = "loss", probability = 0.5{fault}}}]
            run = {{duration = "1ms"}}
        "#
        );
        Spec::from_toml(&text).and_then(Spec::validate).map(drop)
    };
    assert!(spec(r#", weights = [["0.5ms", 3], ["0.6ms", 1]]"#, r#", kinds = ["data"]"#).is_ok());
    let twice = spec(r#", weights = [["0.5ms", 3], ["500us", 1]]"#, "").expect_err("it was taken");
    assert_eq!(
        twice.to_string(),
        "workload.flows[0].weights: two changes are at 500000 ns; give one weight for each time"
    );
    let none = spec("", ", kinds = []").expect_err("it was taken");
    assert!(none.place == "fault[0].kinds" && none.what == "the list is empty", "{none}");
}
