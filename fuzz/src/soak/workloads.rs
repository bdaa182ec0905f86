//! Random workloads of specs.

use super::draw::Draw;
use serde_json::{Value, json};

const SIZES: [&str; 9] = [
    "web-search",
    "data-mining",
    "enterprise",
    "facebook-web",
    "facebook-cache",
    "facebook-hadoop",
    "fb-hadoop",
    "ali-storage",
    "google-rpc",
];

/// A random workload for hosts h0, h1, ... and a duration in seconds.
pub fn workload(draw: &mut Draw, hosts: usize, duration_s: f64) -> Value {
    let bytes = draw.log(100.0, 300e3).round();
    let mut keys = match draw.below(7) {
        0 | 1 => {
            let mut keys =
                json!({"kind": "poisson", "load": draw.of(&[0.1, 0.4, 0.8, 0.95]), "one_way": draw.chance(0.2)});
            match draw.below(4) {
                0 => {
                    keys["sizes"] = json!("fixed");
                    keys["size"] = json!(bytes);
                }
                1 => keys["sizes"] = json!([[100, 0.3], [bytes + 200.0, 1.0]]),
                _ => keys["sizes"] = json!(draw.of(&SIZES)),
            }
            if keys["one_way"] == false && draw.chance(0.2) {
                keys["incasts"] = json!({"senders": draw.whole(1, 8), "size": bytes, "load": 0.1});
            }
            keys
        }
        2 => json!({
            "kind": "churn", "epoch": duration_s / draw.whole(1, 4) as f64, "flows_per_host": draw.of(&[0.5, 1.0, 3.0]),
            "replace": draw.unit(), "alternate": draw.chance(0.5),
        }),
        3 => {
            let mut keys =
                json!({"kind": "incast", "senders": draw.whole(1, 20), "interval": draw.of(&[0.0, duration_s / 50.0])});
            if draw.chance(0.8) {
                keys["size"] = json!(bytes);
            }
            keys
        }
        4 => {
            let mut keys = json!({"kind": "permutation", "one_way": draw.chance(0.3)});
            if draw.chance(0.4) {
                keys["subflows"] = json!(draw.whole(1, 4));
                keys["apart"] = json!(draw.chance(0.3));
                keys["hashed"] = json!(draw.chance(0.5));
            }
            if draw.chance(0.7) {
                keys["size"] = json!(bytes);
            }
            keys
        }
        5 => json!({
            "kind": "closed", "sizes": "fixed", "size": bytes, "clients": draw.whole(1, 3),
            "outstanding": draw.whole(1, 3), "think": draw.of(&[0.0, duration_s / 20.0]),
            "spread": draw.of(&[0.0, duration_s / 4.0]), "transfers": draw.whole(1, 12),
        }),
        _ if draw.chance(0.5) => jobs(draw, hosts, duration_s),
        _ => steps(draw, hosts, duration_s),
    };
    let each = !["steps", "jobs"].iter().any(|kind| keys["kind"] == *kind);
    if each && draw.chance(0.2) {
        keys["connections"] = json!(draw.whole(2, 3));
    }
    if each && draw.chance(0.2) {
        keys["weights"] = draw.of(&[json!({"uniform": [0.5, 8]}), json!({"powers": [1, 16]})]);
    }
    keys
}

fn host(draw: &mut Draw, hosts: usize) -> Value {
    json!(format!("h{}", draw.below(hosts)))
}

/// Random listed flows, some of which start after others.
fn steps(draw: &mut Draw, hosts: usize, duration_s: f64) -> Value {
    let mut flows = Vec::new();
    for k in 0..draw.whole(1, 12) {
        let pair = draw.some(hosts, 2);
        let mut flow = json!({"id": format!("f{k}"), "src": format!("h{}", pair[0]), "dst": format!("h{}", pair[1])});
        if draw.chance(0.7) {
            flow["size"] = json!(draw.log(1.0, 300e3).round());
        }
        flow["start"] = json!(draw.unit() * duration_s * 0.9);
        if k > 0 && draw.chance(0.3) {
            flow["after"] = json!([format!("f{}", draw.below(k as usize))]);
        } else if draw.chance(0.2) {
            flow["stop"] = json!(duration_s * 0.95);
        }
        if draw.chance(0.3) {
            flow["weight"] = json!(draw.log(0.1, 10.0));
        } else if draw.chance(0.2) {
            flow["weights"] = json!([[duration_s * draw.unit(), draw.log(0.1, 10.0)]]);
        }
        if draw.chance(0.2) {
            flow["demand"] = json!(draw.log(1e7, 1e10));
        }
        flow["deadline"] = json!(duration_s * draw.log(0.1, 10.0));
        flow["bandwidth_function"] = json!([[0, 0], [1, draw.log(1e8, 1e9)], [5, draw.log(1e9, 1e10)]]);
        flows.push(flow);
    }
    json!({"kind": "steps", "flows": flows, "jitter": draw.of(&[0.0, duration_s / 100.0])})
}

/// Random jobs of flows and tasks.
fn jobs(draw: &mut Draw, hosts: usize, duration_s: f64) -> Value {
    let mut jobs = Vec::new();
    for _ in 0..draw.whole(1, 4) {
        let mut tasks = Vec::new();
        for k in 0..draw.whole(2, 4) {
            let mut task = json!({"id": format!("t{k}"), "time": draw.of(&[0.0, duration_s / 30.0])});
            if draw.chance(0.5) {
                task["host"] = host(draw, hosts);
            }
            tasks.push(task);
        }
        let mut flows = Vec::new();
        for k in 0..draw.whole(1, 6) {
            let to = 1 + draw.below(tasks.len() - 1);
            let size = draw.log(10.0, 200e3).round();
            let mut flow = json!({"id": format!("f{k}"), "src": format!("t{}", draw.below(to)), "dst": format!("t{to}"), "size": size});
            if draw.chance(0.1) {
                flow["start"] = json!(duration_s / 40.0);
            }
            flows.push(flow);
        }
        let mut job = json!({"tasks": tasks, "flows": flows, "start": draw.unit() * duration_s * 0.3});
        if draw.chance(0.5) {
            job["budget"] = json!(draw.log(0.2, 20.0));
        }
        jobs.push(job);
    }
    let policies =
        ["even", "critical-path", "straggler", "constant-sum", "altruistic", "shortest-first", "longest-distance"];
    let mut keys =
        json!({"kind": "jobs", "jobs": jobs, "policy": draw.of(&policies), "every": (duration_s / 50.0).max(1e-6)});
    if draw.chance(0.2) {
        keys["width"] = json!(2);
    }
    if draw.chance(0.2) {
        keys["background"] = json!(1);
    }
    keys
}
