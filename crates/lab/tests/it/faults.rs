//! Faults of cables, nodes, groups of links or nodes, a fraction of the network, and flapping links.

use crate::common::{Scratch, ran, rows};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use subak_core::InputError;
use subak_lab::{RunOutcome, Spec, ValidSpec};

/// A spec with `faults`: flows between all hosts of three leaves under four spines.
fn spec(faults: Value) -> Result<ValidSpec, InputError> {
    let tree = json!({
        "network": {"kind": "leaf-spine", "leaves": 3, "spines": 4, "hosts_per_leaf": 2},
        "workload": {"kind": "poisson", "sizes": "fixed", "size": 3000, "load": 0.3},
        "scheme": [{"name": "ideal"}],
        "fault": faults,
        "measure": {"queues": "50us"},
        "run": {"duration": "2ms", "seeds": 3},
    });
    Spec::from_value(tree, PathBuf::new())?.validate()
}

fn go(name: &str, faults: Value) -> (Scratch, RunOutcome) {
    ran(name, &spec(faults).unwrap_or_else(|e| panic!("{e}")))
}

/// Links that carried no data, by seed. The run is long enough that every working link carries data.
fn silent(dir: &Scratch) -> BTreeMap<u64, BTreeSet<String>> {
    let mut silent = BTreeMap::<_, BTreeSet<_>>::new();
    for row in rows(&dir.0, "link") {
        let of_seed = silent.entry(row["seed"].parse().unwrap()).or_default();
        if row["data_bytes"] == "0" {
            of_seed.insert(row["link"].clone());
        }
    }
    silent
}

fn cables(names: &[&str]) -> BTreeSet<String> {
    let both = |name: &&str| {
        let (a, b) = name.split_once("->").unwrap();
        [format!("{a}->{b}"), format!("{b}->{a}")]
    };
    names.iter().flat_map(both).collect()
}

#[test]
fn a_link_fails_in_both_directions_unless_told_otherwise() {
    let all = cables(&["leaf0->spine1"]);
    let one = BTreeSet::from(["leaf0->spine1".to_string()]);
    for (fault, wanted) in [
        (json!([{"kind": "down", "link": "leaf0->spine1"}]), &all),
        (json!([{"kind": "down", "link": "leaf0->spine1", "both": false}]), &one),
    ] {
        let (dir, _) = go("both", fault);
        assert!(silent(&dir).values().all(|links| links == wanted), "{:?}", silent(&dir));
    }
}

#[test]
fn a_node_and_a_group_take_all_their_links_with_them() {
    let spine = cables(&["leaf0->spine2", "leaf1->spine2", "leaf2->spine2"]);
    let two = &spine | &cables(&["leaf0->spine3", "leaf1->spine3", "leaf2->spine3"]);
    for (fault, wanted) in [
        (json!({"kind": "down", "node": "spine2"}), &spine),
        (json!({"kind": "down", "nodes": ["spine2", "spine3"]}), &two),
        (json!({"kind": "down", "links": ["*->spine2", "*->spine3"]}), &two),
        (json!({"kind": "down", "link": "spine2->*"}), &spine),
    ] {
        let (dir, _) = go("node", json!([fault]));
        assert!(silent(&dir).values().all(|links| links == wanted), "{fault}: {:?}", silent(&dir));
    }
}

#[test]
fn each_seed_draws_its_share_of_the_cables() {
    let faults = json!([{"kind": "down", "share": 0.25}]);
    let (dir, _) = go("share", faults.clone());
    let drawn = silent(&dir);
    assert_eq!(drawn.len(), 3);
    for links in drawn.values() {
        // 3 of 12 cables between switches fail in both directions; links that lead only to failed ones carry no
        // data either.
        assert!((6..=12).contains(&links.len()), "{links:?}");
        assert!(links.iter().all(|l| l.contains("spine")), "{links:?}");
        let back = |l: &String| l.split_once("->").map(|(a, b)| format!("{b}->{a}")).unwrap();
        assert!(links.iter().all(|l| links.contains(&back(l))), "{links:?}");
    }
    assert!(drawn.values().collect::<BTreeSet<_>>().len() > 1, "every seed drew the same: {drawn:?}");
    let again = go("share-again", faults);
    assert_eq!(silent(&again.0), drawn);
    // A share of named links fails: at least one.
    let (dir, _) = go("one", json!([{"kind": "down", "node": "spine0", "share": 0.01}]));
    for links in silent(&dir).values() {
        assert!(links.len() == 2 && links.iter().all(|l| l.contains("spine0")), "{links:?}");
    }
}

#[test]
fn two_draws_of_one_spec_are_two() {
    let one = json!({"kind": "capacity", "share": 0.5, "capacity": "1kbps", "at": 0});
    let (dir, _) = go("two-draws", json!([one, one, one]));
    // If both faults selected the same links, half of the cables would not be affected.
    let whole = |links: &BTreeSet<String>| links.iter().filter(|l| l.contains("spine")).count();
    let slow = |seed| {
        let rows = rows(&dir.0, "link");
        let mine = rows.iter().filter(|r| r["seed"] == seed && r["link"].contains("spine"));
        mine.filter(|r| r["data_bytes"].parse::<u64>().unwrap() < 1000).map(|r| r["link"].clone()).collect()
    };
    assert!(["1", "2", "3"].iter().any(|seed| whole(&slow(*seed)) > 12));
}

#[test]
fn links_flap_until_the_outage_is_over() {
    let flap = json!([{"kind": "down", "node": "spine*", "down": "200us", "up": "1100us", "period": "400us", "lasts": "100us"}]);
    let (dir, _) = go("flap", flap);
    // The links are down in [200, 300), [600, 700) and [1000, 1100) us; samples are 50 us apart.
    let mut sent = BTreeMap::<u64, u64>::new();
    for row in rows(&dir.0, "queue").iter().filter(|r| r["seed"] == "1" && r["link"].contains("spine")) {
        *sent.entry(row["time_ns"].parse().unwrap()).or_default() += row["data_bytes"].parse::<u64>().unwrap();
    }
    let quiet: Vec<u64> = sent.iter().filter(|s| *s.1 == 0 && *s.0 > 100_000).map(|s| s.0 / 1000).collect();
    assert_eq!(quiet, [250, 300, 650, 700, 1050, 1100]);
}

#[test]
fn what_cannot_be_broken_is_refused_with_its_place() {
    for (fault, place) in [
        (json!({"kind": "down"}), "link"),
        (json!({"kind": "down", "node": "spine9"}), "node"),
        (json!({"kind": "down", "node": "core*"}), "node"),
        (json!({"kind": "down", "nodes": ["spine0", "spin1"]}), "nodes[1]"),
        (json!({"kind": "down", "nodes": []}), "nodes"),
        (json!({"kind": "down", "links": ["leaf*->core*"]}), "links[0]"),
        (json!({"kind": "down", "link": "leaf0->spine0", "node": "spine0"}), "links"),
        (json!({"kind": "down", "node": "spine0", "both": false}), "both"),
        (json!({"kind": "down", "share": 0}), "share"),
        (json!({"kind": "down", "share": 1.5}), "share"),
        (json!({"kind": "down", "share": "5%"}), "share"),
        (json!({"kind": "down", "node": "spine0", "lasts": "1us"}), "lasts"),
        (json!({"kind": "down", "node": "spine0", "period": 0}), "period"),
        (json!({"kind": "down", "node": "spine0", "period": "1us", "lasts": "1us"}), "lasts"),
        (json!({"kind": "down", "node": "spine0", "period": "2ns"}), "period"),
        (json!({"kind": "capacity", "node": "spine9", "capacity": "1Gbps", "at": 0}), "node"),
        (json!({"kind": "loss", "links": ["*->spine7"], "probability": 0.1}), "links[0]"),
    ] {
        let Err(refused) = spec(json!([fault])) else { panic!("{fault} was taken") };
        assert_eq!(refused.place, format!("fault[0].{place}"), "{fault}: {refused}");
        assert!(!refused.hint.is_empty(), "{refused}");
    }
}

/// Numbers of lost and of retransmitted packets in a run in which a link to a receiving host fails. `waiting`:
/// fate of queued packets.
fn lost_and_again(waiting: &str) -> (u64, u64) {
    let text = format!(
        r#"
        network = {{kind = "star", hosts = 9, rate = "10Gbps"}}
        workload = {{kind = "incast", senders = 8, size = "20KB"}}
        scheme = [{{name = "reno"}}]
        fault = [{{kind = "down", link = "switch0->h0", both = false, down = "20us", up = "60us"{waiting}}}]
        run = {{duration = "1ms"}}
    "#
    );
    let (dir, _) = ran("waiting", &Spec::from_toml(&text).unwrap().validate().unwrap_or_else(|e| panic!("{e}")));
    let summary = rows(&dir.0, "summary").remove(0);
    (summary["lost_packets"].parse().unwrap(), summary["retransmissions"].parse().unwrap())
}

#[test]
fn a_link_that_fails_drops_what_waits_unless_told_to_keep_that() {
    let [(lost, again), dropped, (kept, few)] =
        ["", ", waiting = \"drop\"", ", waiting = \"keep\""].map(lost_and_again);
    assert_eq!((lost, again), dropped, "drop is the default");
    assert!(lost > 20 && kept <= 2 && few < again, "{lost} lost, {again} again; {kept} lost, {few} again");
    let fault = spec(json!([{"kind": "down", "link": "leaf0->spine1", "waiting": "kep"}])).unwrap_err();
    assert!(fault.to_string().contains("did you mean \"keep\""), "{fault}");
}
