//! Workloads produce the flows that their keys specify.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use subak_lab::{RunOptions, Spec, run, summary};

use crate::common::{Scratch, rows};

const STAR: &str = "network = {kind = \"star\", hosts = 8, link_delay = \"1us\"}\n";

fn go(name: &str, spec: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let spec = Spec::from_toml(spec).and_then(Spec::validate).unwrap_or_else(|e| panic!("{e}"));
    let cancel = AtomicBool::new(false);
    let outcome = run(&spec, &scratch.0, &RunOptions { jobs: 2, ..RunOptions::alone(&cancel) }).unwrap();
    assert!(outcome.failed.is_empty() && outcome.merged, "{outcome:?}");
    scratch
}

fn get<'a>(row: &'a BTreeMap<String, String>, key: &str) -> &'a str {
    row.get(key).map_or("", String::as_str)
}

fn num(row: &BTreeMap<String, String>, key: &str) -> f64 {
    get(row, key).parse().unwrap_or_else(|_| panic!("{key} of {row:?}"))
}

#[test]
fn poisson_brings_the_load_asked_for() {
    let spec = format!(
        "{STAR}workload = {{kind = \"poisson\", sizes = [\"web-search\", [[\"1KB\", 0.5], [\"1MB\", 1]]], load = [0.2, 0.8]}}
         scheme = [{{name = \"ideal\"}}]\nrun = {{duration = \"400ms\", seeds = 2}}"
    );
    let dir = go("poisson", &spec);
    let mut wire: BTreeMap<(String, String), f64> = BTreeMap::new();
    for row in rows(&dir.0, "flow") {
        let size: u64 = get(&row, "size_bytes").parse().unwrap();
        let key = (get(&row, "load").to_string(), get(&row, "trial").to_string());
        *wire.entry(key).or_default() += subak_core::backend::PacketSizes::default().wire_bytes(size) as f64;
    }
    assert_eq!(wire.len(), 8);
    for ((load, trial), bytes) in wire {
        let measured = bytes * 8.0 / (8.0 * 10e9 * 0.4);
        let asked: f64 = load.parse().unwrap();
        // With the web-search sizes, a load of 0.8 has about 1900 flows; 8% of them have half of the bytes.
        assert!((measured / asked - 1.0).abs() < 0.15, "trial {trial}: {measured} for {asked}");
    }
}

#[test]
fn incasts_come_on_top_and_leave_the_other_flows_as_they_are() {
    let flows = |name: &str, more: &str| -> Vec<[String; 5]> {
        let spec = format!(
            "{STAR}workload = {{kind = \"poisson\", sizes = \"web-search\", load = 0.3{more}}}
             scheme = [{{name = \"ideal\"}}]\nrun = {{duration = \"50ms\"}}"
        );
        let of = |row| ["start_ns", "dst", "size_bytes", "src", "load"].map(|key| get(&row, key).to_string());
        rows(&go(name, &spec).0, "flow").into_iter().map(of).collect()
    };
    let plain = flows("no-incasts", "");
    let (incasts, others): (Vec<_>, Vec<_>) =
        flows("incasts", ", incasts = {senders = 10, size = \"12345B\", load = 0.1}")
            .into_iter()
            .partition(|flow| flow[2] == "12345");
    assert_eq!(others, plain);
    let mut groups: BTreeMap<[String; 2], Vec<String>> = BTreeMap::new();
    for [start, dst, _, src, _] in incasts {
        assert_ne!(src, dst);
        groups.entry([start, dst]).or_default().push(src);
    }
    // A load of 0.1 in 50 ms is 50 MB, about 380 incasts of 10 senders. There are 7 other hosts, so that three of
    // them send twice.
    assert!((300..460).contains(&groups.len()), "{}", groups.len());
    for mut senders in groups.into_values() {
        assert_eq!(senders.len(), 10);
        senders.sort();
        senders.dedup();
        assert_eq!(senders.len(), 7);
    }
}

#[test]
fn schemes_at_one_seed_see_the_same_flows_and_seeds_differ() {
    let spec = format!(
        "{STAR}workload = {{kind = \"poisson\", sizes = \"web-search\", load = 0.5}}
         scheme = [{{name = \"ideal\"}}, {{name = \"dctcp\"}}]\nrun = {{duration = \"20ms\", seeds = 2, drain = 0}}"
    );
    let dir = go("seeds", &spec);
    let mut flows: BTreeMap<String, Vec<[String; 5]>> = BTreeMap::new();
    for row in rows(&dir.0, "flow") {
        let of = ["flow", "src", "dst", "size_bytes", "start_ns"].map(|k| get(&row, k).to_string());
        flows.entry(get(&row, "trial").to_string()).or_default().push(of);
    }
    assert!(flows["0"].len() > 20);
    assert_eq!(flows["0"], flows["2"]);
    assert_ne!(flows["0"], flows["1"]);
}

#[test]
fn a_permutation_is_one_cycle_at_line_rate() {
    let spec = format!(
        "{STAR}workload = {{kind = \"permutation\"}}\nscheme = [{{name = \"ideal\"}}]\nrun = {{duration = \"1ms\"}}"
    );
    let dir = go("permutation", &spec);
    let to: BTreeMap<String, String> =
        rows(&dir.0, "flow").iter().map(|r| (get(r, "src").to_string(), get(r, "dst").to_string())).collect();
    let mut at = "h0".to_string();
    for _ in 0..8 {
        at = to[&at].clone();
    }
    assert_eq!((at.as_str(), to.len()), ("h0", 8));
    let comparison = summary(&dir.0).unwrap();
    let utilization = comparison.rows[0].metrics.iter().find(|m| m.0 == "utilization").unwrap().1;
    assert!((utilization.mean - 1.0).abs() < 1e-6, "{utilization:?}");
}

#[test]
fn senders_of_an_incast_that_would_start_after_the_end_take_no_part() {
    let spec = format!(
        "{STAR}workload = {{kind = \"incast\", senders = 5, size = \"1KB\", interval = [\"400us\", \"8e9s\"]}}
         scheme = [{{name = \"dctcp\"}}]\nrun = {{duration = \"1ms\"}}"
    );
    let dir = go("late-incast", &spec);
    let starts = |trial: &str| {
        let flows = rows(&dir.0, "flow").into_iter().filter(|r| get(r, "trial") == trial);
        flows.map(|r| num(&r, "start_ns")).collect::<Vec<_>>()
    };
    assert_eq!((starts("0"), starts("1")), (vec![0.0, 400_000.0, 800_000.0], vec![0.0]));
}

#[test]
fn an_incast_goes_to_one() {
    let spec = format!(
        "{STAR}workload = {{kind = \"incast\", senders = [3, 20], size = \"100KB\", receiver = \"h5\", interval = \"10us\"}}
         scheme = [{{name = \"ideal\"}}]\nrun = {{duration = \"1ms\"}}"
    );
    let dir = go("incast", &spec);
    let flows = rows(&dir.0, "flow");
    assert_eq!(flows.len(), 23);
    assert!(flows.iter().all(|f| get(f, "dst") == "h5" && get(f, "src") != "h5" && num(f, "fct_ns") > 0.0));
    assert_eq!(flows.iter().map(|f| num(f, "start_ns")).fold(0.0, f64::max), 190_000.0);
}

#[test]
fn churn_replaces_a_share_at_once() {
    let spec = format!(
        "{STAR}workload = {{kind = \"churn\", flows_per_host = 5, replace = 0.4, epoch = \"1ms\"}}
         scheme = [{{name = \"ideal\"}}]\nrun = {{duration = \"4ms\"}}
         measure = {{convergence = {{within = 0.01, share = 1, hold = \"100us\", of = \"assigned\"}}}}"
    );
    let dir = go("churn", &spec);
    let flows = rows(&dir.0, "flow");
    assert_eq!(flows.len(), 40 + 3 * 16);
    for at in [0, 1_000_000, 2_000_000, 3_000_000] {
        let (start, stop) = (|f: &&BTreeMap<_, _>| num(f, "start_ns"), |f: &&BTreeMap<_, _>| num(f, "stop_ns"));
        let live = flows.iter().filter(|f| start(f) <= f64::from(at) && stop(f) > f64::from(at)).count();
        let born = flows.iter().filter(|f| start(f) == f64::from(at)).count();
        assert_eq!((live, born), (40, if at == 0 { 40 } else { 16 }));
    }
    // The ideal scheme has the optimal rates at the first sample, 10 us after each change.
    let changes = rows(&dir.0, "convergence");
    assert_eq!(changes.len(), 4);
    assert!(
        changes.iter().all(|c| get(c, "converged") == "true" && num(c, "convergence_ns") == 10_000.0),
        "{changes:?}"
    );
}

#[test]
fn flows_come_and_go_between_two_bounds_over_paths_drawn_once() {
    let spec = format!(
        "{STAR}workload = {{kind = \"churn\", flows_per_host = 2, most_per_host = 4, replace = 0.5, alternate = true,
                           pairs_per_host = 5, epoch = \"1ms\"}}
         scheme = [{{name = \"ideal\"}}]\nrun = {{duration = \"40ms\"}}"
    );
    let dir = go("between", &spec);
    let flows = rows(&dir.0, "flow");
    let live = |at: f64| flows.iter().filter(move |f| num(f, "start_ns") <= at && num(f, "stop_ns") > at);
    let counts: Vec<usize> = (0..40).map(|ms| live(f64::from(ms) * 1e6).count()).collect();
    assert_eq!(counts[0], 16);
    assert!(counts.windows(2).all(|w| w[0].abs_diff(w[1]) == 8 && (16..=32).contains(&w[1])), "{counts:?}");
    assert!(counts.iter().collect::<std::collections::BTreeSet<_>>().len() == 3, "chance decides at 24: {counts:?}");
    let ends = |f: &BTreeMap<String, String>| (get(f, "src").to_string(), get(f, "dst").to_string());
    let drawn: std::collections::BTreeSet<_> = flows.iter().map(ends).collect();
    assert!(drawn.len() <= 40 && flows.len() > 100, "{} pairs, {} flows", drawn.len(), flows.len());
}

#[test]
fn a_churn_whose_numbers_do_not_fit_is_refused() {
    for (keys, place) in [
        ("most_per_host = 4", "workload.most_per_host"),
        ("most_per_host = 2.5, alternate = true", "workload.most_per_host"),
        ("most_per_host = 4, alternate = true, pairs_per_host = 3", "workload.pairs_per_host"),
        ("pairs_per_host = 1", "workload.pairs_per_host"),
    ] {
        let spec = format!(
            "{STAR}workload = {{kind = \"churn\", flows_per_host = 2, replace = 0.5, epoch = \"1ms\", {keys}}}
             scheme = [{{name = \"ideal\"}}]\nrun = {{duration = \"4ms\"}}"
        );
        let fault = Spec::from_toml(&spec).and_then(Spec::validate).unwrap_err();
        assert_eq!(fault.place, place, "{fault}");
    }
}

#[test]
fn received_rates_settle_at_once_but_for_the_filter() {
    let spec = format!(
        "{STAR}workload = {{kind = \"churn\", flows_per_host = 2, replace = 0.5, epoch = \"2ms\"}}
         scheme = [{{name = \"ideal\"}}]\nrun = {{duration = \"8ms\"}}
         measure = {{convergence = {{within = 0.1, share = 0.95, hold = \"1ms\", of = \"received\"}}}}"
    );
    let dir = go("received", &spec);
    let changes = rows(&dir.0, "convergence");
    assert_eq!(changes.len(), 4);
    for change in changes {
        // The filter takes 80 us ln(10) = 184 us from a rate of 0, and longer from a rate far above the new one.
        assert!(get(&change, "converged") == "true" && num(&change, "convergence_ns") < 200_000.0, "{change:?}");
        assert!(num(&change, "time_ns") > 0.0 || num(&change, "convergence_ns") < 11_000.0, "{change:?}");
    }
}

#[test]
fn rates_that_settle_and_leave_again_have_not_settled_for_good() {
    let spec = "network = {links = [{id = \"l1\", capacity = \"10Gbps\", delay = \"1us\"}]}
        workload = {kind = \"steps\", flows = [{path = [\"l1\"]}]}
        scheme = [{name = \"s-perc-star\"}]
        fault = [{kind = \"loss\", kinds = [\"data\"], probability = 1, from = \"3ms\", until = \"3.5ms\"}]
        measure = {convergence = [{hold = \"300us\", lasting = false}, {hold = \"300us\", lasting = true}]}
        run = {duration = \"8ms\"}";
    let dir = go("lasting", spec);
    let found = rows(&dir.0, "convergence");
    assert!(found.iter().all(|c| get(c, "converged") == "true"), "{found:?}");
    let ms: Vec<f64> = found.iter().map(|c| num(c, "convergence_ns") / 1e6).collect();
    assert!(ms[0] < 0.3 && (3.3..5.0).contains(&ms[1]), "{ms:?}");
}

#[test]
fn bare_links_are_enough_for_steps() {
    // PERC thesis, figure 2.1: links of 20, 30 and 12 Gb/s; flows get 18 and 12 Gb/s.
    let spec = "network = {links = [{id = \"l20\", capacity = \"20Gbps\", delay = \"1us\"},
                    {id = \"l30\", capacity = \"30Gbps\", delay = \"1us\"}, {id = \"l12\", capacity = \"12Gbps\", delay = \"1us\"}]}
        workload = {kind = \"steps\", flows = [{id = \"fB\", path = [\"l20\", \"l30\"]},
                    {id = \"fW\", path = [\"l30\", \"l12\"], start = \"500us\"}]}
        scheme = [{name = \"ideal\"}, {name = \"s-perc\"}]
        measure = {rates = \"100us\", convergence = {within = 0.005, share = 1, hold = \"300us\", of = \"assigned\", against = \"scheme\"}}
        run = {duration = \"1ms\"}";
    let dir = go("bare", spec);
    let last = |scheme: &str, flow: &str| {
        let found = rows(&dir.0, "rate");
        let mine = |r: &&BTreeMap<String, String>| get(r, "scheme") == scheme && get(r, "flow_id") == flow;
        num(found.iter().rfind(mine).unwrap(), "rate_bps")
    };
    assert!((last("ideal", "fB") - 18e9).abs() < 1e6 && (last("ideal", "fW") - 12e9).abs() < 1e6);
    assert!((last("s-perc", "fB") / last("s-perc", "fW") - 1.5).abs() < 0.02);
    let settled = rows(&dir.0, "convergence");
    assert_eq!(settled.len(), 4);
    assert!(settled.iter().all(|c| get(c, "converged") == "true" && num(c, "within_share") == 1.0), "{settled:?}");
}

#[test]
fn a_flow_alone_has_slowdown_one() {
    let spec = "network = {kind = \"leaf-spine\", leaves = 2, spines = 2, hosts_per_leaf = 2, spine_rate = \"25Gbps\"}
        workload = {kind = \"steps\", flows = [{src = \"h0\", dst = \"h3\", size = 1}, {src = \"h0\", dst = \"h1\", size = \"1MB\", start = \"10ms\"},
           {src = \"h3\", dst = \"h0\", size = 1446, start = \"20ms\", demand = \"1Gbps\"}, {src = \"h2\", dst = \"h1\", size = \"333333 B\", start = \"30ms\"},
           {src = \"h2\", dst = \"h1\", size = \"1MB\", start = \"40ms\", subflows = 2}]}
        scheme = [{name = \"ideal\"}]\nrun = {duration = \"50ms\"}";
    let dir = go("alone", spec);
    let flows = rows(&dir.0, "flow");
    assert_eq!(flows.len(), 5);
    assert!(flows.iter().all(|f| get(f, "slowdown") == "1" && get(f, "measured") == "true"), "{flows:?}");
}

#[test]
fn a_window_that_fills_the_pipe_gives_slowdown_one_in_packets_too() {
    // A DCTCP flow alone is neither paced nor limited by its window here: its FCT equals the formula to the
    // nanosecond.
    let spec = "network = {kind = \"leaf-spine\", leaves = 2, spines = 2, hosts_per_leaf = 2}
        workload = {kind = \"steps\", flows = [{src = \"h0\", dst = \"h3\", size = 1}, {src = \"h0\", dst = \"h1\", size = 10000, start = \"10ms\"},
           {src = \"h2\", dst = \"h1\", size = 2000000, start = \"20ms\"}]}
        scheme = [{name = \"dctcp\"}]\nrun = {duration = \"50ms\"}";
    let dir = go("pipe", spec);
    let flows = rows(&dir.0, "flow");
    assert!(flows.len() == 3 && flows.iter().all(|f| get(f, "slowdown") == "1"), "{flows:?}");
}
