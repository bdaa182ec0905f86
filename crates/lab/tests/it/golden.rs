//! Snapshots of results: every scheme on a small network, without faults, with losses and with a link down.
//!
//! A changed row is a change of behaviour. Check it, state the reason in the commit message, and accept it with
//! `INSTA_UPDATE=always cargo test -p subak-lab --test it golden`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::AtomicBool;
use subak_core::Policy;
use subak_core::scheme::Info;
use subak_lab::{RunOptions, Spec, run};

use crate::common::{Scratch, rows};

const BASE: &str = r#"
[network]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
spine_rate = "20Gbps"

[workload]
kind = "poisson"
sizes = "enterprise"
load = 0.6

[controller]
at = "h0"

[run]
duration = "3ms"
drain = "200ms"
"#;

const LOSS: &str = r#"
[[fault]]
kind = "loss"
probability = 0.01
from = "500us"
until = "2500us"
"#;

const DOWN: &str = r#"
[[fault]]
kind = "down"
link = "leaf0->spine0"
both = false
down = "1ms"
up = "1500us"
"#;

/// Two specs with `fault`: one with the schemes that support max-min, and one with the others under proportional
/// fairness.
fn specs(name: &str, fault: &str) -> [String; 2] {
    let unnamed = subak_schemes::registry::all().into_iter().filter(|info| info.name.contains('/'));
    let is_simulated = |info: &Info| subak_lab::backends::find(info.name, None).is_ok_and(|found| !found.0.is_real());
    let named = subak_lab::backends::all().into_iter().filter(is_simulated);
    let schemes: Vec<_> = named.chain(unnamed).collect();
    let packet = || schemes.iter();
    [("kind = \"max-min\"", true), ("kind = \"alpha-fair\"\nalpha = 1", false)].map(|(policy, max_min)| {
        let mut text = format!("schema = 1\nname = \"{name}\"\n{BASE}{fault}\n[policy]\n{policy}\n");
        for info in packet().filter(|s| s.goal.serves(Policy::MaxMin) == max_min) {
            let keys = match info.name.split_once('/') {
                Some((optimizer, transport)) => format!("optimizer = \"{optimizer}\"\ntransport = \"{transport}\""),
                None => format!("name = \"{}\"", info.name),
            };
            write!(text, "\n[[scheme]]\n{keys}\n").unwrap();
        }
        text
    })
}

/// The 99th percentile of `slowdowns`, without interpolation.
fn p99(mut slowdowns: Vec<f64>) -> f64 {
    slowdowns.sort_by(f64::total_cmp);
    let at = (slowdowns.len() * 99).div_ceil(100).max(1) - 1;
    slowdowns.get(at).copied().unwrap_or(f64::NAN)
}

fn table(name: &str, fault: &str) -> String {
    let mut table = format!(
        "{:<14} {:>9} {:>12} {:>8} {:>7} {:>6} {:>6} {:>9}\n",
        "scheme", "completed", "goodput_gbps", "p99", "dropped", "lost", "again", "events"
    );
    for (k, spec) in specs(name, fault).iter().enumerate() {
        add_rows(&mut table, spec, &Scratch::new(&format!("{name}{k}")));
    }
    table
}

fn add_rows(table: &mut String, spec: &str, dir: &Scratch) {
    let spec = Spec::from_toml(spec).unwrap().validate().unwrap();
    let cancel = AtomicBool::new(false);
    let outcome = run(&spec, &dir.0, &RunOptions { jobs: 0, threads: 3, ..RunOptions::alone(&cancel) }).unwrap();
    assert!(outcome.merged, "{:?}", outcome.failed);
    let mut slowdowns: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in rows(&dir.0, "flow") {
        if let Ok(slowdown) = row["slowdown"].parse() {
            slowdowns.entry(row["scheme"].clone()).or_default().push(slowdown);
        }
    }
    for row in rows(&dir.0, "summary") {
        let get = |key: &str| row[key].parse::<f64>().unwrap_or(0.0);
        let goodput_gbps = get("received_bytes") * 8.0 / get("time_ns");
        let p99 = p99(slowdowns.remove(&row["scheme"]).unwrap_or_default());
        let completed = format!("{}/{}", row["completed"], row["flows"]);
        writeln!(
            table,
            "{:<14} {completed:>9} {goodput_gbps:>12.4} {p99:>8.3} {:>7} {:>6} {:>6} {:>9}",
            row["scheme"],
            get("dropped_packets"),
            get("lost_packets"),
            get("retransmissions"),
            get("events"),
        )
        .unwrap();
    }
}

#[test]
fn under_load() {
    insta::assert_snapshot!(table("load", ""));
}

#[test]
fn under_losses() {
    insta::assert_snapshot!(table("loss", LOSS));
}

#[test]
fn with_a_link_down() {
    insta::assert_snapshot!(table("down", DOWN));
}
