//! Packet spraying and flowlets in specs.

use crate::common::{Scratch, ran, rows};
use serde_json::{Value, json};
use std::path::PathBuf;
use subak_core::InputError;
use subak_lab::{RunOutcome, Spec, ValidSpec};

fn spec(routing: Value, schemes: Value, workload: Value) -> Result<ValidSpec, InputError> {
    let tree = json!({
        "network": {"kind": "leaf-spine", "leaves": 2, "spines": 4, "hosts_per_leaf": 4, "spine_rate": "10Gbps"},
        "routing": routing,
        "workload": workload,
        "scheme": schemes,
        "run": {"duration": "2ms"},
    });
    Spec::from_value(tree, PathBuf::new())?.validate()
}

fn permutation() -> Value {
    json!({"kind": "permutation", "size": "10MB"})
}

fn go(name: &str, routing: Value, schemes: Value) -> (Scratch, RunOutcome) {
    ran(name, &spec(routing, schemes, permutation()).unwrap_or_else(|e| panic!("{e}")))
}

fn slowest(dir: &Scratch, scheme: &str) -> f64 {
    let rows = rows(&dir.0, "flow");
    let mine = rows.iter().filter(|r| r["scheme"] == scheme).map(|r| r["slowdown"].parse::<f64>().unwrap());
    mine.fold(0.0, f64::max)
}

#[test]
fn spraying_takes_every_path_and_collisions_are_gone() {
    let schemes = json!([{"name": "dctcp"}, {"name": "ideal"}]);
    let (ecmp, _) = go("ecmp", json!({}), schemes.clone());
    let (spray, outcome) = go("spray", json!({"kind": "spray"}), schemes.clone());
    let across = |dir: &Scratch| -> Vec<usize> {
        let rows = rows(&dir.0, "flow");
        rows.iter().filter(|r| r["path"].contains("spine")).map(|r| r["path"].split(" | ").count()).collect()
    };
    assert!(across(&ecmp).iter().all(|n| *n == 1));
    assert!(across(&spray).iter().all(|n| *n == 4));
    // The spines have the capacity of the hosts: sprayed flows hardly wait, and some hashed flows collide.
    let all = [&ecmp, &spray].map(|dir| ["dctcp", "ideal"].map(|scheme| slowest(dir, scheme)));
    assert!((1.0..1.1).contains(&all[1][1]) && all[0][1] > 1.5, "{all:?}");
    assert!(all[1][0] < 1.25 && all[0][0] > 1.5, "{all:?}");
    assert!(outcome.warnings.iter().all(|w| w.kind != "spread"));
    let (flowlet, _) = go("flowlet", json!({"kind": "flowlet", "gap": "1us"}), schemes);
    assert!(across(&flowlet).iter().all(|n| *n == 4));
}

#[test]
fn a_scheme_that_knows_one_path_is_warned_of() {
    let (_, outcome) = go("one-path", json!({"kind": "spray"}), json!([{"name": "s-perc"}, {"name": "dctcp"}]));
    let told: Vec<_> = outcome.warnings.iter().filter(|w| w.kind == "spread").collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].text.starts_with("\"s-perc\" set") && !told[0].text.contains("dctcp"), "{}", told[0].text);
}

#[test]
fn what_cannot_be_spread_is_refused_with_its_place() {
    let dctcp = json!([{"name": "dctcp"}]);
    let refused = |routing: Value, schemes: &Value, workload: Value| {
        spec(routing, schemes.clone(), workload).map(drop).expect_err("it was taken")
    };
    for (routing, place) in [
        (json!({"kind": "spry"}), "routing.kind"),
        (json!({"kind": "spray", "gap": "1us"}), "routing.gap"),
        (json!({"kind": "flowlet", "gap": -1}), "routing.gap"),
        (json!({"kind": "spray", "max_paths": 0}), "routing.max_paths"),
        (json!({"max_paths": 4}), "routing.max_paths"),
        (json!({"kind": "spray", "way": 4}), "routing.way"),
    ] {
        let fault = refused(routing.clone(), &dctcp, permutation());
        assert_eq!(fault.place, place, "{routing}: {fault}");
        assert!(!fault.hint.is_empty(), "{fault}");
    }
    let go_back = json!([{"name": "dcqcn", "params": {"recovery": "go-back-n"}}]);
    let fault = refused(json!({"kind": "spray"}), &go_back, permutation());
    assert!(fault.place == "routing.kind" && fault.hint.contains("selective"), "{fault}");
    let fault = refused(json!({"kind": "spray"}), &json!([{"name": "hpcc"}]), permutation());
    assert!(fault.place == "routing.kind" && !fault.hint.contains("selective"), "{fault}");
    let selective = json!([{"name": "dcqcn", "params": {"recovery": "selective"}}]);
    assert!(spec(json!({"kind": "spray"}), selective, permutation()).is_ok());
}

#[test]
fn subflows_and_spraying_exclude_each_other() {
    let workload = json!({"kind": "permutation", "size": "1MB", "subflows": 2});
    let fault =
        spec(json!({"kind": "spray"}), json!([{"name": "dctcp"}]), workload).map(drop).expect_err("it was taken");
    assert!(fault.place == "workload.subflows" && fault.hint.contains("ecmp"), "{fault}");
    let one = json!({"src": "h0", "dst": "h5", "size": "1kB"});
    let two = json!({"src": "h0", "dst": "h5", "size": "1kB", "subflows": 2});
    let workload = json!({"kind": "steps", "flows": [one, two]});
    let fault =
        spec(json!({"kind": "spray"}), json!([{"name": "dctcp"}]), workload).map(drop).expect_err("it was taken");
    assert_eq!(fault.place, "workload.flows[1].subflows");
}
