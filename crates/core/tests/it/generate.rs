//! The shape, names, defaults and errors of every generator.

use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use subak_core::generate::{GENERATORS, described, network};
use subak_core::keys::{DefaultValue, ValueType};
use subak_core::{Network, NodeId, NodeKind};

fn build(value: serde_json::Value) -> Network {
    network(&value).unwrap().0
}

/// Small parameters of a generator, by its kind.
fn small(kind: &str) -> serde_json::Value {
    match kind {
        "leaf-spine" => json!({"kind": kind, "leaves": 3, "spines": 2, "hosts_per_leaf": 4}),
        "fat-tree" => json!({"kind": kind, "k": 4}),
        "rails" => json!({"kind": kind, "servers": 3, "rails": 4, "spines": 2}),
        "dragonfly" => json!({"kind": kind, "routers": 4, "hosts_per_router": 2, "global_links": 2}),
        "jellyfish" => json!({"kind": kind, "switches": 10, "ports": 3, "hosts_per_switch": 2}),
        "dumbbell" => json!({"kind": kind, "pairs": 3}),
        "star" => json!({"kind": kind, "hosts": 5}),
        "chain" => json!({"kind": kind, "rates": ["20Gbps", 30e9]}),
        "wan" => json!({"kind": kind, "topology": "b4-18"}),
        other => panic!("no small {other}"),
    }
}

#[test]
fn counts_names_and_twins() {
    for (kind, hosts, nodes, links, name) in [
        ("leaf-spine", 12, 17, 2 * (12 + 6), "leaf2->spine1"),
        ("fat-tree", 16, 16 + 8 + 8 + 4, 96, "agg7->core3"),
        ("rails", 12, 12 + 4 + 2, 2 * (12 + 8), "h6->leaf2"),
        // Nine groups of four routers.
        ("dragonfly", 72, 72 + 36, 2 * (72 + 9 * 6 + 36), "switch0->switch7"),
        ("jellyfish", 20, 30, 2 * (20 + 15), "h19->switch9"),
        ("dumbbell", 6, 8, 2 * 7, "switch0->switch1"),
        ("star", 5, 6, 10, "h4->switch0"),
        ("chain", 3, 6, 2 * 5, "switch1->switch2"),
        ("wan", 18, 36, 2 * (18 + 37), "Tokyo->TheDalles"),
    ] {
        let net = build(small(kind));
        assert_eq!((net.hosts().count(), net.nodes().len(), net.links().len()), (hosts, nodes, links), "{kind}");
        assert!(net.find_link(name).is_some(), "{kind} has {name}");
        assert!(net.reverse_links().iter().all(Option::is_some), "{kind}");
        for (i, h) in net.hosts().enumerate() {
            assert_eq!((h.index(), net.nodes()[h].name.clone()), (i, format!("h{i}")), "{kind}");
        }
        for link in net.links() {
            let name = |n: Option<NodeId>| net.nodes()[n.unwrap()].name.clone();
            assert_eq!(link.id, format!("{}->{}", name(link.from), name(link.to)), "{kind}");
        }
    }
}

#[test]
fn a_controller_of_a_leaf_spine_is_added_last_and_is_no_host() {
    let mut value = small("leaf-spine");
    let without = build(value.clone());
    value["controller_rate"] = json!("40Gbps");
    let with = build(value);
    assert_eq!((with.hosts().count(), with.nodes().len()), (without.hosts().count(), without.nodes().len() + 1));
    let (first, rest) = with.links().split_at(without.links().len());
    assert!(first.iter().zip(without.links()).all(|(a, b)| a.id == b.id));
    assert_eq!(rest.len(), 4);
    assert!(with.find_link("controller->spine1").is_some() && rest.iter().all(|l| l.capacity_bps == 40e9));
}

#[test]
fn fat_tree_is_wired_as_al_fares_et_al_have_it() {
    for k in [2usize, 4, 6, 16] {
        let net = build(json!({"kind": "fat-tree", "k": k}));
        assert_eq!((net.hosts().count(), net.links().len()), (k * k * k / 4, k * k * k * 3 / 2));
        let prefix = |n: NodeId| net.nodes()[n].name.trim_end_matches(|c: char| c.is_ascii_digit()).to_string();
        for node in net.nodes().ids() {
            let mut near: HashMap<String, usize> = HashMap::new();
            for &l in net.out_links(node) {
                *near.entry(prefix(net.links()[l].to.unwrap())).or_default() += 1;
            }
            let expected: &[(&str, usize)] = match prefix(node).as_str() {
                "h" => &[("leaf", 1)],
                "leaf" => &[("h", k / 2), ("agg", k / 2)],
                "agg" => &[("leaf", k / 2), ("core", k / 2)],
                _ => &[("agg", k)],
            };
            assert_eq!(near, expected.iter().map(|(n, c)| (n.to_string(), *c)).collect());
        }
        // A core reaches every pod once.
        for core in net.nodes().ids().filter(|&n| prefix(n) == "core") {
            let pods: HashSet<usize> = net
                .out_links(core)
                .iter()
                .map(|&l| {
                    let agg = net.links()[l].to.unwrap();
                    net.nodes()[agg].name["agg".len()..].parse::<usize>().unwrap() / (k / 2)
                })
                .collect();
            assert_eq!(pods.len(), k);
        }
    }
}

#[test]
fn rates_delays_buffers_and_parallel_links() {
    let net = build(json!({"kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 1, "links_per_spine": 3,
        "spine_rate": "100Gbps", "link_delay": "2us", "host_delay": "500ns", "buffer": "1.5MB"}));
    let link = |id: &str| net.links()[net.find_link(id).unwrap()].clone();
    assert_eq!((link("h1->leaf1").capacity_bps, link("h1->leaf1").delay_ns), (1e10, 500));
    for id in ["leaf0->spine0", "leaf0->spine0#1", "spine0->leaf1#2"] {
        assert_eq!((link(id).capacity_bps, link(id).delay_ns, link(id).buffer_bytes), (1e11, 2000, Some(1_500_000)));
    }
    let net = build(small("chain"));
    let link = |id: &str| net.links()[net.find_link(id).unwrap()].clone();
    assert_eq!((link("switch0->switch1").capacity_bps, link("switch2->switch1").capacity_bps), (2e10, 3e10));
    assert_eq!((link("h0->switch0").capacity_bps, link("h0->switch0").delay_ns), (3e10, 1000));
    assert_eq!(link("h0->switch0").buffer_bytes, None);
    let net = build(json!({"kind": "wan", "topology": "b4-12", "rate": "1Gbps"}));
    let link = |id: &str| net.links()[net.find_link(id).unwrap()].clone();
    assert_eq!((link("site8->site10").capacity_bps, link("site8->site10").delay_ns), (1e9, 10_000_000));
    assert_eq!((link("h11->site11").capacity_bps, link("h11->site11").delay_ns), (2e9, 2_500));
    assert!(net.nodes()[NodeId(12)].kind == NodeKind::Switch && net.find_link("site11->site10").is_some());
}

#[test]
fn oversubscription_sets_the_links_above_a_leaf() {
    let capacities = |value: Value, from: &str| {
        let net = build(value);
        let mut all: Vec<f64> = net.links().iter().filter(|l| l.id.starts_with(from)).map(|l| l.capacity_bps).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    };
    let mut tree = json!({"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 12, "links_per_spine": 2,
        "host_rate": "25Gbps", "oversubscription": 3});
    // 12 hosts of 25 Gb/s over four links up: 75 Gb/s each without oversubscription.
    assert_eq!(capacities(tree.clone(), "leaf0->spine"), [25e9]);
    assert_eq!(capacities(tree.clone(), "leaf0->h"), [25e9]);
    tree["oversubscription"] = json!(0.5);
    assert_eq!(capacities(tree.clone(), "spine1->leaf"), [150e9]);
    let fat = json!({"kind": "fat-tree", "k": 4, "rate": "100Gbps", "oversubscription": 4});
    for (from, expected) in [("leaf0->agg", 25e9), ("agg0->core", 25e9), ("core0->agg", 25e9), ("h0->leaf", 100e9)] {
        assert_eq!(capacities(fat.clone(), from), [expected], "{from}");
    }
    for (change, what) in [(json!(0), "0"), (json!("3"), "3"), (json!(2000), "2000")] {
        tree["oversubscription"] = change;
        let error = network(&tree).map(drop).expect_err("it was taken");
        assert!(error.place == "oversubscription" && error.what.contains(what), "{error}");
    }
    tree["oversubscription"] = json!(2);
    tree["spine_rate"] = json!("40Gbps");
    let error = network(&tree).map(drop).expect_err("it was taken");
    assert_eq!((error.place.as_str(), error.hint.as_str()), ("oversubscription", "give one of the two"));
}

/// Number of links of each switch to other switches.
fn degrees(net: &Network) -> Vec<usize> {
    let is_switch = |n: NodeId| net.nodes()[n].kind == NodeKind::Switch;
    let to_switches = |n: NodeId| net.out_links(n).iter().filter(|&&l| is_switch(net.links()[l].to.unwrap())).count();
    net.nodes().ids().filter(|&n| is_switch(n)).map(to_switches).collect()
}

#[test]
fn a_dragonfly_has_one_link_between_any_two_groups() {
    for (routers, global) in [(4, 2), (1, 3), (3, 1), (8, 4)] {
        let net = build(json!({"kind": "dragonfly", "routers": routers, "hosts_per_router": 1, "global_links": global,
                "global_rate": "40Gbps", "global_delay": "100us"}));
        assert!(degrees(&net).iter().all(|&n| n == routers - 1 + global));
        let group =
            |n: Option<NodeId>| net.nodes()[n.unwrap()].name["switch".len()..].parse::<usize>().unwrap() / routers;
        let mut pairs: Vec<(usize, usize)> = net
            .links()
            .iter()
            .filter(|l| l.delay_ns == 100_000 && l.capacity_bps == 40e9)
            .map(|l| (group(l.from), group(l.to)))
            .collect();
        pairs.sort_unstable();
        let groups = routers * global + 1;
        let expected: Vec<(usize, usize)> =
            (0..groups).flat_map(|a| (0..groups).filter(move |&b| b != a).map(move |b| (a, b))).collect();
        assert_eq!(pairs, expected, "{routers} {global}");
    }
}

#[test]
fn a_jellyfish_is_regular_connected_and_drawn_from_its_seed() {
    for (switches, ports) in [(10, 3), (20, 4), (7, 6), (50, 8), (200, 5), (3, 2)] {
        let graph = |seed: u64| {
            build(json!({"kind": "jellyfish", "switches": switches, "ports": ports, "hosts_per_switch": 1,
                "graph_seed": seed}))
        };
        let nets = [1, 2].map(graph);
        for net in &nets {
            assert!(degrees(net).iter().all(|&n| n == ports), "{switches} {ports}");
            let ids: HashSet<&str> = net.links().iter().map(|l| l.id.as_str()).collect();
            assert!(ids.len() == net.links().len() && ids.iter().all(|id| !id.contains('#')));
        }
        let named = |net: &Network| net.links().iter().map(|l| l.id.clone()).collect::<Vec<_>>();
        assert_eq!(named(&nets[0]), named(&graph(1)));
        assert!(named(&nets[0]) != named(&nets[1]) || ports == switches - 1);
    }
    for (switches, ports, place) in [(4, 4, "ports"), (5, 3, "ports"), (4, 1, "ports")] {
        let value = json!({"kind": "jellyfish", "switches": switches, "ports": ports, "hosts_per_switch": 1});
        let error = network(&value).map(drop).expect_err("it was taken");
        assert!(error.place == place && !error.hint.is_empty(), "{error}");
    }
}

#[test]
fn many_parallel_links_are_named_in_good_time() {
    let net =
        build(json!({"kind": "leaf-spine", "leaves": 1, "spines": 1, "hosts_per_leaf": 1, "links_per_spine": 50_000}));
    assert!(net.find_link("leaf0->spine0#49999").is_some());
}

#[test]
fn every_default_in_the_table_holds() {
    for generator in GENERATORS {
        let plain = build(small(generator.kind));
        for key in generator.keys {
            let (DefaultValue::Is(default), ValueType::Rate | ValueType::Time) = (key.default, key.value_type) else {
                continue;
            };
            let mut asked = small(generator.kind);
            asked[key.name] = json!(default);
            assert_eq!(build(asked).links(), plain.links(), "{} {}", generator.kind, key.name);
            let mut other = small(generator.kind);
            other[key.name] = json!(if matches!(key.value_type, ValueType::Rate) { "7Gbps" } else { "77us" });
            assert_ne!(build(other).links(), plain.links(), "{} {}", generator.kind, key.name);
        }
    }
}

#[test]
fn faults_name_place_and_mend() {
    for (value, place, what, hint) in [
        (json!([]), "", "a generated network is a table of keys and values, not a list of 0", "write"),
        (json!({}), "kind", "the kind of network is missing", "leaf-spine, fat-tree"),
        (
            json!({"kind": "fattree", "k": 4}),
            "kind",
            "unknown kind of network \"fattree\"",
            "did you mean \"fat-tree\"?",
        ),
        (json!({"kind": 7}), "kind", "the kind of network is a string, not 7", "double quotes"),
        (json!({"kind": "fat-tree"}), "k", "a fat-tree network needs \"k\"", "such as k: 4"),
        (json!({"kind": "fat-tree", "k": 5}), "k", "a fat-tree of 5-port switches does not come out", "even"),
        (json!({"kind": "fat-tree", "k": 0}), "k", "0 is not a whole number of one or more", "4"),
        (json!({"kind": "fat-tree", "k": -4}), "k", "-4 is not a whole number", "4"),
        (json!({"kind": "fat-tree", "k": 4.5}), "k", "4.5 is not a whole number", "4"),
        (json!({"kind": "fat-tree", "k": "4"}), "k", "\"4\" is not a whole number", "4"),
        (json!({"kind": "fat-tree", "k": 4, "rate": "0bps"}), "rate", "the capacity is zero", "10Gbps"),
        (json!({"kind": "fat-tree", "k": 4, "rate": "10 Gfoo"}), "rate", "\"Gfoo\" is not a unit of rate", "10Gbps"),
        (
            json!({"kind": "fat-tree", "k": 4, "link_dealy": 1}),
            "link_dealy",
            "unknown key \"link_dealy\"",
            "did you mean \"link_delay\"? known keys: kind, k",
        ),
        (json!({"kind": "fat-tree", "k": 4, "link_delay": -1}), "link_delay", "is negative", "12us"),
        (json!({"kind": "fat-tree", "k": 4, "buffer": 0}), "buffer", "the size is zero", "64KiB"),
        (
            json!({"kind": "star", "hosts": u64::MAX}),
            "",
            "this star would have 36893488147419103230 directed links",
            "at most 4000000",
        ),
        (json!({"kind": "fat-tree", "k": u64::MAX - 1}), "", "directed links", "at most 4000000"),
        (json!({"kind": "dumbbell", "pairs": 1u64 << 62}), "", "directed links", "at most 4000000"),
        (
            json!({"kind": "leaf-spine", "leaves": 1u64 << 60, "spines": 1u64 << 60, "hosts_per_leaf": 1u64 << 60}),
            "",
            "directed links",
            "at most 4000000",
        ),
        (json!({"kind": "chain", "rates": []}), "rates", "the list of rates is empty", "at least one"),
        (json!({"kind": "chain", "rates": [1, 0]}), "rates[1]", "the capacity is zero", "10Gbps"),
        (json!({"kind": "chain", "rates": "10Gbps"}), "rates", "the list of rates is a list, not \"10Gbps\"", "write"),
        (json!({"kind": "wan", "topology": "b4"}), "topology", "unknown name \"b4\"", "b4-12, b4-18"),
    ] {
        let fault = network(&value).unwrap_err();
        assert_eq!(fault.place, place, "{fault}");
        assert!(fault.what.contains(what), "{fault}");
        assert!(fault.hint.contains(hint), "{fault}");
    }
}

#[test]
fn the_table_as_data() {
    let table = described();
    assert_eq!(table.as_array().unwrap().len(), GENERATORS.len());
    let key = |kind: &str, name: &str| {
        let generator = table.as_array().unwrap().iter().find(|g| g["kind"] == kind).unwrap();
        generator["keys"].as_array().unwrap().iter().find(|k| k["name"] == name).unwrap().clone()
    };
    assert_eq!(key("leaf-spine", "leaves")["default"], "required");
    assert_eq!(
        (&key("leaf-spine", "spine_rate")["default"], &key("leaf-spine", "spine_rate")["unit"]),
        (&json!("40Gbps"), &json!("bit/s"))
    );
    assert_eq!(key("leaf-spine", "host_delay")["default"], "link_delay's");
    assert_eq!(key("wan", "host_rate")["default"], "twice rate");
    assert_eq!(key("chain", "host_rate")["default"], "the largest of rates");
    assert_eq!(key("wan", "topology")["unit"], "\"b4-12\" or \"b4-18\"");
}
