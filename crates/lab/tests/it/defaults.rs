//! Defaults of schemes that depend on the workload, the network or the backend.

use crate::common::{Scratch, rows};
use std::sync::atomic::AtomicBool;
use subak_lab::{RunOptions, Spec, run};

fn go(name: &str, text: &str) -> Scratch {
    let spec = Spec::from_toml(text).unwrap().validate().unwrap_or_else(|e| panic!("{e}"));
    let dir = Scratch::new(name);
    let cancel = AtomicBool::new(false);
    let outcome = run(&spec, &dir.0, &RunOptions::alone(&cancel)).unwrap();
    assert!(outcome.merged, "{:?}", outcome.failed);
    dir
}

/// Data rate on the last link relative to its capacity, in the second half of the run.
fn data_share(workload: &str, more: &str) -> f64 {
    let text = format!(
        r#"
        network = {{kind = "dumbbell", pairs = 2, host_rate = "10Gbps", link_delay = "1us"}}
        workload = {{kind = "steps", flows = [{workload}]}}
        scheme = [{{name = "s-perc"}}]
        {more}
        run = {{duration = "8ms", warmup = "4ms"}}
    "#
    );
    let dir = go("headroom", &text);
    let links = rows(&dir.0, "link");
    links.iter().find(|r| r["link"] == "switch0->switch1").unwrap()["utilization"].parse().unwrap()
}

const THERE: &str = r#"{src = "h0", dst = "h2"}"#;
const BOTH: &str = r#"{src = "h0", dst = "h2"}, {src = "h2", dst = "h0"}"#;

#[test]
fn headroom_covers_acknowledgements_where_there_are_any() {
    // 4% for control packets, 2% so that queues drain, and 64 bytes of ACK for 1500 bytes in the other direction.
    let near = |share: f64, want: f64| assert!((share - want).abs() < 0.003, "{share}, not {want}");
    near(data_share(THERE, ""), 0.94);
    near(data_share(BOTH, ""), 0.94 - 64.0 / 1500.0);
    near(data_share(BOTH, "packets = {ack = 128}"), 0.94 - 128.0 / 1500.0);
}

#[test]
fn links_full_both_ways_keep_their_queues_short() {
    let wait = |params: &str| {
        let text = format!(
            r#"
            network = {{kind = "star", hosts = 16, rate = "10Gbps"}}
            workload = {{kind = "poisson", sizes = "web-search", load = 0.6}}
            scheme = [{{name = "s-perc"{params}}}]
            run = {{duration = "20ms", warmup = "5ms"}}
        "#
        );
        let dir = go("both-ways", &text);
        let waits = rows(&dir.0, "wait");
        let get = |row: &std::collections::BTreeMap<String, String>, key: &str| row[key].parse::<u64>().unwrap();
        let all: u64 = waits.iter().map(|w| get(w, "packets")).sum();
        let mut seen = 0;
        let p99 = waits.iter().find(|w| {
            seen += get(w, "packets");
            seen * 100 >= all * 99
        });
        get(p99.unwrap(), "wait_ns")
    };
    let (computed, papers) = (wait(""), wait(", params = {headroom = 0.02}"));
    assert!(computed < 10_000 && papers > 2 * computed, "{computed} ns, {papers} ns with the thesis' headroom");
}
