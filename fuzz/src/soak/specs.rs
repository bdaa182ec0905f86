//! Soak test of whole runs of random specs: results are the same bytes on any number of threads, and tables are
//! consistent.

use super::draw::Draw;
use super::scenes::{network_keys, params, scheme};
use super::workloads::workload;
use super::{CaseResult, rows};
use crate::hold;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use subak_core::Policy;
use subak_lab::{RunOptions, Spec, Trial, ValidSpec};

/// Largest estimated cost of a run, s.
const MOST_COST_S: f64 = 0.4;
/// Largest estimated number of flows of a run.
const MOST_FLOWS: f64 = 5000.0;
/// Largest duration of a run.
const MOST_TIME: Duration = Duration::from_secs(40);

/// A random spec, which may be invalid.
pub fn spec(draw: &mut Draw) -> Value {
    let network = network_keys(draw);
    let hosts = subak_core::generate::network(&network).map_or(2, |(network, _)| network.hosts().count());
    let delay_s = network["link_delay"].as_f64().unwrap_or(1e-3);
    let duration_s = (delay_s * draw.log(20.0, 1000.0)).clamp(20e-6, 50e-3);
    let mut tree = json!({
        "name": "soak",
        "network": network,
        "workload": workload(draw, hosts, duration_s),
        "scheme": schemes(draw),
        "controller": {"at": "h0"},
        "run": {"duration": duration_s, "seeds": [draw.seed % 1000, 1000]},
    });
    if draw.chance(0.3) {
        tree["network"]["nic"] = json!(draw.of(&["queue", "round-robin"]));
    }
    if draw.chance(0.3) {
        tree["run"]["warmup"] = json!(duration_s * draw.unit());
    }
    if draw.chance(0.3) {
        tree["run"]["drain"] = json!(duration_s * draw.log(0.01, 10.0));
    }
    if draw.chance(0.6) {
        tree["routing"] = routing(draw, duration_s);
    }
    let epsilon = draw.of(&[0.05, 0.125, 0.5]);
    let alpha = draw.of(&[0.3, 1.0, 2.0]);
    // Some policies need fields that only listed flows have.
    let listed = tree["workload"]["kind"] == "steps";
    match draw.below(8) {
        0 | 1 => tree["policy"] = json!({"kind": "alpha-fair", "alpha": alpha}),
        2 => tree["policy"] = json!({"kind": draw.of(&["fct", "srpt"]), "epsilon": epsilon}),
        3 if listed => tree["policy"] = json!({"kind": "bandwidth-function"}),
        4 if listed => tree["policy"] = json!({"kind": "edf", "epsilon": epsilon}),
        _ => {}
    }
    let settles = ["churn", "incast", "permutation", "steps"].iter().any(|kind| tree["workload"]["kind"] == *kind);
    tree["measure"] = measure(draw, duration_s, settles);
    if draw.chance(0.5) {
        let faults: Vec<Value> = (0..draw.whole(1, 3)).map(|_| fault(draw, duration_s)).collect();
        tree["fault"] = json!(faults);
    }
    if draw.chance(0.1) {
        tree["packets"] = json!({"mtu": draw.whole(200, 9000), "header": 40, "ack": 40});
    }
    tree
}

fn schemes(draw: &mut Draw) -> Value {
    let mut all = Vec::new();
    for k in 0..draw.whole(1, 2) {
        let name = if draw.chance(0.2) { "ideal" } else { scheme(draw) };
        let mut one = match name.split_once('/') {
            Some((optimizer, transport)) => json!({"optimizer": optimizer, "transport": transport}),
            None => json!({"name": name}),
        };
        one["label"] = json!(format!("{name} {k}"));
        one["params"] = Value::Object(params(draw, name));
        let info = subak_schemes::registry::find(name);
        if info.is_ok_and(|info| !info.goal.serves(Policy::MaxMin)) {
            one["policy"] = json!({"kind": "alpha-fair", "alpha": 1});
        }
        if draw.chance(0.1) {
            one["backend"] = json!("fluid");
        }
        all.push(one);
    }
    json!(all)
}

fn routing(draw: &mut Draw, duration_s: f64) -> Value {
    let (kind, hash) = (draw.of(&["ecmp", "spray", "flowlet"]), draw.of(&["flow", "flow", "pair"]));
    let mut keys = json!({"seed": draw.below(100), "kind": kind, "symmetric": draw.chance(0.6), "hash": hash});
    if kind != "ecmp" {
        keys["ways"] = json!(draw.whole(1, 8));
    }
    if kind == "flowlet" {
        keys["gap"] = json!(draw.log(1e-7, 1e-3));
    }
    if draw.chance(0.3) {
        keys["reroute"] = json!(duration_s / 50.0);
    }
    if draw.chance(0.2) {
        keys["metric"] = json!(draw.of(&["hops", "delay"]));
    }
    keys
}

fn measure(draw: &mut Draw, duration_s: f64, settles: bool) -> Value {
    let mut keys = json!({"fct": draw.of(&[json!(true), json!(true), json!("sender")])});
    for key in ["rates", "queues", "paces"] {
        if draw.chance(0.3) {
            keys[key] = json!(duration_s / draw.whole(2, 30) as f64);
        }
    }
    if draw.chance(0.2) {
        keys["packets"] = json!({"until": duration_s / 10.0});
    }
    if settles && draw.chance(0.3) {
        let filter = duration_s / 20.0;
        keys["convergence"] =
            json!({"every": duration_s / 100.0, "filter": filter, "against": draw.of(&["policy", "scheme"])});
    }
    keys
}

/// A random fault, at links between switches or at any link.
fn fault(draw: &mut Draw, duration_s: f64) -> Value {
    let from = draw.unit() * duration_s * 0.9;
    let until = from + draw.unit() * duration_s;
    let kind = draw.of(&["loss", "duplicate", "delay", "down", "capacity", "restart"]);
    let mut keys = json!({"kind": kind});
    let set: &[(&str, Value)] = match kind {
        "down" => &[("down", json!(from)), ("up", json!(until + 1e-6))],
        "capacity" => &[("capacity", json!(draw.log(1e8, 1e11))), ("at", json!(from))],
        "restart" => &[("at", json!(from))],
        _ => &[("probability", json!(draw.log(1e-3, 0.2))), ("from", json!(from)), ("until", json!(until + 1e-6))],
    };
    set.iter().for_each(|(key, value)| keys[*key] = value.clone());
    match kind {
        "down" | "capacity" => {
            let (key, value) = draw.of(&[("share", json!(0.3)), ("node", json!("h1")), ("link", json!("*->h0"))]);
            keys[key] = value;
        }
        "restart" => {
            let (key, value) =
                draw.of(&[("machine", "controller"), ("node", "h0"), ("node", "switch0"), ("node", "leaf0")]);
            keys[key] = json!(value);
        }
        _ => {
            keys["kinds"] = draw.of(&[json!(["data", "ack", "ctl"]), json!(["data"]), json!(["ctl"])]);
            if kind == "delay" {
                keys["by"] = json!(duration_s * draw.unit() / 10.0);
            }
        }
    }
    if kind == "down" && draw.chance(0.3) {
        keys["period"] = json!(duration_s / 8.0);
        keys["lasts"] = json!(duration_s / 30.0);
    }
    keys
}

/// The checked spec, with a duration reduced until its cost is low; `None` if the spec is refused.
fn affordable(mut tree: Value) -> Result<Option<ValidSpec>, String> {
    for _ in 0..10 {
        let Some(spec) = checked(tree.clone())? else { return Ok(None) };
        let trials = spec.trials();
        let sum = |of: fn(&Trial) -> f64| trials.iter().map(of).sum::<f64>();
        if sum(|trial| trial.cost.seconds) <= MOST_COST_S && sum(|trial| trial.cost.flows) <= MOST_FLOWS {
            return Ok(Some(spec));
        }
        let shorter = tree["run"]["duration"].as_f64().unwrap_or(0.0) / 3.0;
        tree["run"]["duration"] = json!(shorter);
        // A warm-up that exceeds the shortened run is removed.
        tree["run"]["warmup"] = json!(0);
        let sections = tree.as_object_mut().ok_or("a spec is a table")?;
        sections.remove("fault");
        sections.insert("measure".to_string(), json!({"queues": shorter / 20.0}));
    }
    Ok(None)
}

fn checked(tree: Value) -> Result<Option<ValidSpec>, String> {
    match Spec::from_value(tree, PathBuf::new()).and_then(Spec::validate) {
        Ok(spec) => Ok(Some(spec)),
        Err(fault) => {
            hold!(!fault.what.is_empty() && !fault.hint.is_empty(), "an error that says nothing: {fault:?}");
            Ok(None)
        }
    }
}

/// A temporary folder, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(seed: u64) -> Self {
        let dir = std::env::temp_dir().join(format!("subak-soak-{}-{seed}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Draws a spec, runs it on one thread, then again on two with an interruption, and checks the results.
pub fn run(draw: &mut Draw) -> Result<CaseResult, String> {
    let tree = spec(draw);
    let Some(spec) = affordable(tree)? else { return Ok(CaseResult::Refused) };
    let scratch = Scratch::new(draw.seed);
    let (once, again) = (scratch.0.join("once"), scratch.0.join("again"));
    let told = |what: String| format!("{what}\nthe spec: {}", Value::Object(spec.tree().clone()));
    match ran(&spec, &once, 1, None) {
        Ok(true) => {}
        Ok(false) => return Ok(CaseResult::Cut),
        Err(what) => return Err(told(what)),
    }
    rows::check(&once, spec.tree()).map_err(told)?;
    let last = spec.len() - 1;
    if !ran(&spec, &again, 1, Some(last)).map_err(told)? || !ran(&spec, &again, 2, None).map_err(told)? {
        return Ok(CaseResult::Cut);
    }
    let mut files = vec!["results.parquet".to_string()];
    let packets = (0..spec.len()).map(|trial| format!("trials/{trial}.packets.parquet"));
    files.extend(packets.filter(|file| once.join(file).exists()));
    for file in files {
        let bytes = |dir: &Path| std::fs::read(dir.join(&file)).map_err(|e| format!("{file}: {e}"));
        hold!(bytes(&once)? == bytes(&again)?, "{}", told(format!("{file} differs from one run to the next")));
    }
    Ok(CaseResult::Whole)
}

/// Whether a run finished in time. An error if a trial failed.
fn ran(spec: &ValidSpec, dir: &Path, jobs: usize, only: Option<usize>) -> Result<bool, String> {
    let (cancel, begun) = (AtomicBool::new(false), Instant::now());
    let progress = |_| {
        if begun.elapsed() > MOST_TIME {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let options = RunOptions {
        jobs,
        threads: jobs,
        only,
        progress: &progress,
        cancel: &cancel,
        testbed: None,
        watched: None,
        remote: None,
    };
    let outcome = subak_lab::run(spec, dir, &options).map_err(|e| e.to_string())?;
    if let Some((trial, error)) = outcome.failed.iter().next() {
        return Err(format!("trial {trial} failed: {error}"));
    }
    hold!(outcome.cancelled || only.is_some() || outcome.merged, "it ended without a table: {outcome:?}");
    Ok(!outcome.cancelled)
}

/// A spec with a random change is either accepted or refused with an error; it never causes a panic.
pub fn spoilt(draw: &mut Draw) -> Result<CaseResult, String> {
    let mut held = CaseResult::Refused;
    for _ in 0..30 {
        let mut tree = spec(draw);
        for _ in 0..draw.whole(1, 3) {
            spoil(draw, &mut tree, 0);
        }
        if checked(tree)?.is_some() {
            held = CaseResult::Whole;
        }
    }
    Ok(held)
}

/// Changes a random value in the tree, rarely a whole section.
fn spoil(draw: &mut Draw, tree: &mut Value, depth: usize) {
    let deeper = draw.chance(if depth < 2 { 0.98 } else { 0.7 });
    match tree {
        Value::Object(map) if deeper && !map.is_empty() => {
            let at = draw.below(map.len());
            if let Some(value) = map.values_mut().nth(at) {
                spoil(draw, value, depth + 1);
            }
        }
        Value::Array(list) if deeper && !list.is_empty() => {
            let at = draw.below(list.len());
            spoil(draw, &mut list[at], depth + 1);
        }
        other => *other = odd(draw, other),
    }
}

fn odd(draw: &mut Draw, was: &Value) -> Value {
    let numbers = [0.0, -1.0, 1e-320, 1e-9, 0.5, 1.0, 3.0, 1e9, 1e18, 1.8e19, 1e300, -1e300];
    match draw.below(8) {
        0 => Value::Null,
        1 => json!(draw.chance(0.5)),
        2 => json!(draw.of(&["", "1", "1e999", "-5us", "10Gbps", "h0", "*", "nan", "é\u{0}", "1 parsec"])),
        3 => json!([was, was]),
        4 => json!([]),
        5 => Value::Object(Map::from_iter([(draw.of(&["kind", "file", "", "id"]).to_string(), was.clone())])),
        6 => json!(u64::MAX),
        _ => json!(draw.of(&numbers)),
    }
}
