//! Cases in all their formats, and the errors of invalid ones.

use proptest::prelude::*;
use serde_json::{Value, json};
use subak_core::document::Format;
use subak_core::{Case, InputError, LinkId, Network, NodeKind, Policy};

fn no_file(path: &str) -> Result<String, InputError> {
    Err(InputError::new("", format!("no file {path}"), "name one that is there"))
}

fn from_json(text: &str) -> Result<Case, InputError> {
    Case::parse(text, Format::Json, &mut no_file)
}

/// Parses a value both as text and as a JSON value; the results must agree.
fn parse(value: &Value) -> Result<Case, InputError> {
    let streamed = from_json(&value.to_string());
    let whole = Case::from_value(value, &mut no_file);
    match (&streamed, &whole) {
        (Ok(a), Ok(b)) => assert_same(a, b),
        (Err(a), Err(b)) => assert_eq!(a, b),
        _ => panic!("streamed {streamed:?}, whole {whole:?}"),
    }
    whole
}

fn assert_same(a: &Case, b: &Case) {
    assert_eq!(a.network.links(), b.network.links());
    assert_eq!(a.network.nodes(), b.network.nodes());
    assert_eq!(a.policy, b.policy);
    assert_eq!(format!("{:?}", a.flows), format!("{:?}", b.flows));
}

fn names(network: &Network, path: &[LinkId]) -> Vec<String> {
    path.iter().map(|&l| network.links()[l].id.clone()).collect()
}

fn paths(case: &Case, flow: usize) -> Vec<Vec<String>> {
    case.flows.paths_of(flow).map(|p| names(&case.network, case.flows.links_of(p))).collect()
}

#[test]
fn the_case_of_the_interfaces() {
    let case = parse(&json!({
        "network": {"links": [{"id": "l20", "capacity": "20Gbps"}, {"id": "l30", "capacity": 30e9}]},
        "flows": [
            {"id": "fB", "path": ["l20", "l30"], "weight": 1, "demand": "5Gbps"},
            {"id": "m", "paths": [["l20"], ["l30"]]}
        ],
        "policy": {"kind": "max-min"}
    }))
    .unwrap();
    assert_eq!(case.policy, Policy::MaxMin);
    assert_eq!(case.network.links().iter().map(|l| l.capacity_bps).collect::<Vec<_>>(), [20e9, 30e9]);
    assert_eq!(paths(&case, 0), [["l20", "l30"]]);
    assert_eq!(paths(&case, 1), [["l20"], ["l30"]]);
    assert_eq!(case.flows.demand_bps(), [5e9, f64::INFINITY]);
    assert_eq!((case.flows.id(0), case.flows.id(1)), ("fB".into(), "m".into()));
}

#[test]
fn toml_says_the_same() {
    let text = r#"
        schema = 1
        policy = {kind = "edf"}
        [network]
        kind = "dumbbell"
        pairs = 2
        bottleneck_rate = "5 Gbps"
        [routing]
        seed = 3
        symmetric = true
        [[flows]]
        id = "a"
        src = "h0"
        dst = "h2"
        deadline = "2ms"
        [[flows]]
        id = "b"
        path = ["h3->switch1", "switch1->h2"]
        weight = 2
        deadline = 0.5
    "#;
    let toml = Case::parse(text, Format::Toml, &mut no_file).unwrap();
    let json = parse(&json!({
        "schema": 1,
        "network": {"kind": "dumbbell", "pairs": 2, "bottleneck_rate": 5e9},
        "routing": {"seed": 3, "symmetric": true},
        "flows": [
            {"id": "a", "src": "h0", "dst": "h2", "deadline": 0.002},
            {"id": "b", "path": ["h3->switch1", "switch1->h2"], "weight": 2, "deadline": 0.5}
        ],
        "policy": {"kind": "edf", "epsilon": 0.125}
    }));
    assert_same(&toml, &json.unwrap());
    assert_eq!(paths(&toml, 0), [["h0->switch0", "switch0->switch1", "switch1->h2"]]);
    assert_eq!(toml.flows.extra(0).unwrap().deadline_s, Some(0.002));
}

#[test]
fn an_empty_case_and_one_without_flows() {
    for value in
        [json!({}), json!({"flows": []}), json!({"network": []}), json!({"network": {"links": []}, "flows": []})]
    {
        let case = parse(&value).unwrap();
        assert_eq!((case.flows.len(), case.network.links().len()), (0, 0));
    }
    let case = parse(&json!({"network": {"kind": "star", "hosts": 3}, "policy": {"kind": "srpt"}})).unwrap();
    assert_eq!((case.flows.len(), case.network.links().len()), (0, 6));
    assert_eq!(Case::parse("", Format::Toml, &mut no_file).unwrap().flows.len(), 0);
}

#[test]
fn flows_may_come_before_the_network() {
    let text = r#"{"flows": [{"path": ["a"]}, {"path": ["a"]}], "network": [{"id": "a", "capacity": 1}]}"#;
    let case = from_json(text).unwrap();
    assert_eq!((case.flows.len(), case.flows.id(1)), (2, "1".into()));
}

#[test]
fn everything_a_flow_can_say() {
    let case = parse(&json!({
        "network": [{"id": "a", "capacity": 1e9}],
        "flows": [
            {"path": ["a"], "size": "1.5MB", "deadline": "3ms", "weight": 0.25, "demand": 0,
             "bandwidth_function": [[0, 0], [2, "10Gbps"], [2.5, 1e10]]},
            {"path": ["a"]}
        ]
    }))
    .unwrap();
    let extra = case.flows.extra(0).unwrap();
    assert_eq!((extra.size_bytes, extra.deadline_s), (Some(1_500_000), Some(0.003)));
    assert_eq!(extra.bandwidth_function.as_deref(), Some(&[(0.0, 0.0), (2.0, 1e10), (2.5, 1e10)][..]));
    assert_eq!((case.flows.weight(), case.flows.demand_bps()), (&[0.25, 1.0][..], &[0.0, f64::INFINITY][..]));
    let plain = case.flows.extra(1).cloned().unwrap_or_default();
    assert_eq!((plain.size_bytes, plain.deadline_s, plain.bandwidth_function), (None, None, None));
}

#[test]
fn every_policy() {
    let network = json!([{"id": "a", "capacity": 1}]);
    let flow = json!({"path": ["a"], "size": 1, "deadline": 1, "bandwidth_function": [[0, 0], [1, 1]]});
    for (policy, expected) in [
        (json!({"kind": "max-min"}), Policy::MaxMin),
        (json!({"kind": "alpha-fair", "alpha": 0}), Policy::AlphaFair { alpha: 0.0 }),
        (json!({"kind": "alpha-fair", "alpha": 2.5}), Policy::AlphaFair { alpha: 2.5 }),
        (json!({"kind": "fct"}), Policy::Fct { epsilon: 0.125 }),
        (json!({"kind": "srpt", "epsilon": 0.1}), Policy::Srpt { epsilon: 0.1 }),
        (json!({"kind": "edf", "epsilon": 0.5}), Policy::Edf { epsilon: 0.5 }),
        (json!({"kind": "bandwidth-function"}), Policy::BANDWIDTH_FUNCTION),
    ] {
        let case = parse(&json!({"network": network, "flows": [flow], "policy": policy})).unwrap();
        assert_eq!(case.policy, expected);
    }
}

#[test]
fn ends_are_routed_by_name_and_stay_when_others_come() {
    let flow = |id: &str| json!({"id": id, "src": "h0", "dst": "h63", "subflows": 4});
    let with = |flows: Value| {
        parse(&json!({"network": {"kind": "fat-tree", "k": 8}, "flows": flows, "routing": {"seed": 5}})).unwrap()
    };
    let (one, two) = (with(json!([flow("a")])), with(json!([flow("b"), flow("a")])));
    assert_eq!(paths(&one, 0).len(), 4);
    assert_eq!(paths(&one, 0), paths(&two, 1));
    assert_ne!(paths(&two, 0), paths(&two, 1));
}

#[test]
fn wide_area_networks_are_routed_by_delay_and_others_by_hops() {
    let triangle = json!([
        {"from": "a", "to": "b", "capacity": 1, "delay": "9us"},
        {"from": "a", "to": "c", "capacity": 1, "delay": "1us"},
        {"from": "c", "to": "b", "capacity": 1, "delay": "1us"}
    ]);
    let with = |routing: Value| {
        let case = json!({"network": triangle, "flows": [{"src": "a", "dst": "b"}], "routing": routing});
        paths(&parse(&case).unwrap(), 0)
    };
    assert_eq!(with(json!({})), [["a->b"]]);
    assert_eq!(with(json!({"metric": "delay"})), [["a->c", "c->b"]]);
    let b4 = |routing: Value| {
        let flows: Vec<_> = (1..18).map(|i| json!({"src": "h0", "dst": format!("h{i}")})).collect();
        let case = json!({"network": {"kind": "wan", "topology": "b4-18"}, "flows": flows, "routing": routing});
        (0..17).map(|f| paths(&parse(&case).unwrap(), f)).collect::<Vec<_>>()
    };
    assert_eq!(b4(json!({})), b4(json!({"metric": "delay"})));
    assert_ne!(b4(json!({})), b4(json!({"metric": "hops"})));
}

#[test]
fn network_files() {
    let graph = r#"{"directed": false, "multigraph": false, "graph": {}, "nodes": [{"id": "a"}, {"id": "b"}],
        "edges": [{"source": "a", "target": "b", "capacity": "1Gbps"}]}"#;
    let bad = graph.replace("1Gbps", "1Gfoo");
    let mut files = |path: &str| match path {
        "net.json" => Ok(graph.to_string()),
        "bad.json" => Ok(bad.clone()),
        "net.toml" => Ok("kind = \"star\"\nhosts = 2".to_string()),
        "again.json" => Ok(r#"{"file": "again.json"}"#.to_string()),
        "broken.json" => Ok("[\n  {,".to_string()),
        other => no_file(other),
    };
    let mut with = |path: &str| Case::from_value(&json!({"network": {"file": path}}), &mut files);
    assert_eq!(with("net.json").unwrap().network.links().len(), 2);
    assert_eq!(with("net.toml").unwrap().network.links()[LinkId(0)].id, "h0->switch0");
    let fault = with("bad.json").unwrap_err();
    assert_eq!((fault.file.as_deref(), fault.place.as_str()), (Some("bad.json"), "edges[0].capacity"));
    let fault = with("broken.json").unwrap_err();
    assert_eq!((fault.file.as_deref(), fault.place.as_str()), (Some("broken.json"), "line 2, column 4"));
    assert_eq!(with("again.json").unwrap_err().what, "a network file names another file");
    assert_eq!(with("none.json").unwrap_err().place, "network.file");
}

#[test]
fn nodes_of_listed_links_are_hosts_where_they_hang_on_one_neighbour() {
    let kinds = |links: Value| {
        let network = parse(&json!({"network": links})).unwrap().network;
        network.nodes().iter().map(|n| (n.name.clone(), n.kind)).collect::<Vec<_>>()
    };
    let link = |a: &str, b: &str| json!({"from": a, "to": b, "capacity": 1});
    assert_eq!(
        kinds(json!([link("a", "s"), link("s", "a"), link("s", "b")])),
        [("a".to_string(), NodeKind::Host), ("s".to_string(), NodeKind::Switch), ("b".to_string(), NodeKind::Host)]
    );
    let ring = kinds(json!([link("a", "b"), link("b", "c"), link("c", "a")]));
    assert!(ring.iter().all(|(_, kind)| *kind == NodeKind::Host));
}

/// A case whose flow 1 is `flow`.
fn with_flow(flow: Value) -> Value {
    let links = json!([{"id": "l20", "capacity": "20Gbps"}, {"id": "l30", "capacity": 30e9}]);
    json!({"network": links, "flows": [{"id": "ok", "path": ["l20"]}, flow]})
}

/// A case with a flow that has every key that policies require, except `missing`.
fn without(missing: &str, policy: &str) -> Value {
    let mut flow = json!({"path": ["a"], "size": 1, "deadline": 1, "bandwidth_function": [[0, 0], [1, 1]]});
    flow.as_object_mut().unwrap().remove(missing);
    json!({"network": [{"id": "a", "capacity": 1}], "flows": [flow], "policy": {"kind": policy}})
}

fn on(network: Value) -> Value {
    json!({"network": network, "flows": []})
}

fn under(policy: Value) -> Value {
    json!({"network": [], "policy": policy})
}

fn assert_faults(table: impl IntoIterator<Item = (Value, &'static str, &'static str, &'static str)>) {
    for (value, place, what, hint) in table {
        let fault = parse(&value).expect_err(&format!("{value}"));
        assert_eq!(fault.place, place, "{value}: {fault}");
        assert!(fault.what.contains(what), "{value}: {fault}");
        assert!(fault.hint.contains(hint), "{value}: {fault}");
    }
}

#[test]
fn faults_of_the_case_and_its_policy() {
    assert_faults([
        (json!({"netwrok": []}), "netwrok", "unknown key \"netwrok\"", "did you mean \"network\"?"),
        (json!({"a b": []}), "[\"a b\"]", "unknown key \"a b\"", "known keys: schema, network"),
        (json!({"schema": 2}), "schema", "unknown schema 2", "give 1"),
        (json!({"network": 3}), "network", "the network is 3", "a list of links"),
        (json!({"network": {}}), "network", "the network is empty", "a list of links"),
        (json!({"network": {"lnks": []}}), "network.lnks", "unknown key \"lnks\"", "did you mean \"links\"?"),
        (json!({"network": {"file": 3}}), "network.file", "the network's file is a string, not 3", "quotes"),
        (json!({"network": {"file": "x", "kind": "star"}}), "network.kind", "unknown key \"kind\"", "known keys: file"),
        (json!({"network": {"file": "gone"}}), "network.file", "no file gone", "name one"),
        (json!({"network": {"kind": "star"}}), "network.hosts", "a star network needs \"hosts\"", "such as hosts: 4"),
        (
            under(json!("max-min")),
            "policy",
            "the policy is a table of keys and values, not \"max-min\"",
            "{\"kind\": \"max-min\"}",
        ),
        (under(json!({})), "policy.kind", "\"kind\" is missing", "max-min, alpha-fair"),
        (under(json!({"kind": "maxmin"})), "policy.kind", "unknown value \"maxmin\"", "did you mean \"max-min\"?"),
        (under(json!({"kind": "max-min", "alpha": 1})), "policy.alpha", "unknown key \"alpha\"", "known keys: kind"),
        (under(json!({"kind": "alpha-fair"})), "policy.alpha", "\"alpha\" is missing", "zero or more"),
        (under(json!({"kind": "alpha-fair", "alpha": -1})), "policy.alpha", "-1 is out of range", "a number from 0"),
        (under(json!({"kind": "alpha-fair", "alpha": "1"})), "policy.alpha", "\"1\" is not a number", "without quotes"),
        (under(json!({"kind": "alpha-fair", "alpha": null})), "policy.alpha", "null is not a number", "give a number"),
        (under(json!({"kind": "fct", "epsilon": 1})), "policy.epsilon", "epsilon is 1", "between 0 and 1"),
        (under(json!({"kind": "fct", "epsilon": 0})), "policy.epsilon", "0 is out of range", "above 0 up to 1"),
        (under(json!({"kind": "edf", "epsilom": 0.1})), "policy.epsilom", "unknown key", "did you mean \"epsilon\"?"),
        (json!({"routing": {"sede": 1}}), "routing.sede", "unknown key \"sede\"", "did you mean \"seed\"?"),
        (json!({"routing": {"seed": -1}}), "routing.seed", "-1 is out of range", "a whole number from 0"),
        (json!({"routing": {"symmetric": 1}}), "routing.symmetric", "1 is neither true nor false", "true or false"),
        (json!({"routing": {"metric": "hop"}}), "routing.metric", "unknown value \"hop\"", "did you mean \"hops\"?"),
        (json!({"routing": {"hash": "flows"}}), "routing.hash", "unknown value \"flows\"", "did you mean \"flow\"?"),
        (json!({"routing": true}), "routing", "true is not a table", "keys and values"),
    ]);
}

#[test]
fn faults_of_links() {
    let id = |id: Value| json!([{"id": id, "capacity": 1}]);
    let capacity = |capacity: Value| json!([{"id": "ok", "capacity": 1}, {"id": "l", "capacity": capacity}]);
    let more = |key: &str, value: Value| {
        let mut link = json!({"id": "l", "capacity": 1});
        link[key] = value;
        json!({"links": [link]})
    };
    assert_faults([
        (on(json!([3])), "network[0]", "a link is a table of keys and values, not 3", "{\"id\""),
        (on(json!([{"id": "l"}])), "network[0].capacity", "the link has no capacity", "10Gbps"),
        (on(json!([{"capacity": 1}])), "network[0].id", "the link has no id", "such as \"l1\""),
        (on(id(json!(7))), "network[0].id", "a link's id is a string, not 7", "quotes"),
        (on(id(json!(""))), "network[0].id", "the name is empty", "give a name"),
        (on(json!([{"id": "l", "capacity": 0}])), "network[0].capacity", "every link has the capacity 0", "10Gbps"),
        (on(capacity(json!(-1))), "network[1].capacity", "the rate \"-1\" is negative", "10Gbps"),
        (on(capacity(json!("10Gbs"))), "network[1].capacity", "\"Gbs\" is not a unit of rate", "10Gbps"),
        (on(capacity(json!("NaN"))), "network[1].capacity", "\"NaN\" is not a rate", "10Gbps"),
        (on(capacity(json!("infinity"))), "network[1].capacity", "\"infinity\" is not a rate", "10Gbps"),
        (on(capacity(json!("1e400"))), "network[1].capacity", "\"1e400\" is not a finite rate", "10Gbps"),
        (on(capacity(json!(true))), "network[1].capacity", "true is not a rate", "10Gbps"),
        (on(more("delay", json!("1m"))), "network.links[0].delay", "\"m\" is not a unit of time", "12us"),
        (on(more("buffer", json!(0.5))), "network.links[0].buffer", "0.5 bytes is not a whole number", "whole"),
        (on(more("buffer", json!(0))), "network.links[0].buffer", "the size is zero", "64KiB"),
        (on(more("from", json!("a"))), "network.links[0].to", "the link has \"from\" but no \"to\"", "both"),
        (on(more("to", json!("a"))), "network.links[0].from", "the link has \"to\" but no \"from\"", "both"),
        (on(more("from", json!(1))), "network.links[0].from", "a node's name is a string, not 1", "quotes"),
        (on(more("Capacity", json!(1))), "network.links[0].Capacity", "unknown key", "did you mean \"capacity\"?"),
        (on(json!([{"from": "a", "to": "a", "capacity": 1}])), "network[0].to", "from a node to itself", "different"),
        (
            on(json!([{"id": "x", "capacity": 1}, {"id": "x", "capacity": 2}])),
            "network[1].id",
            "a second link has the id \"x\"",
            "of its own",
        ),
    ]);
}

#[test]
fn faults_of_flows() {
    let share = |points: Value| with_flow(json!({"path": ["l20"], "bandwidth_function": points}));
    assert_faults([
        (with_flow(json!(7)), "flows[1]", "a flow is a table of keys and values, not 7", "path"),
        (
            with_flow(json!({"path": ["l20"], "wieght": 2})),
            "flows[1].wieght",
            "unknown key",
            "did you mean \"weight\"?",
        ),
        (with_flow(json!({})), "flows[1].path", "the flow has no path", "\"src\" and \"dst\""),
        (with_flow(json!({"path": []})), "flows[1].path", "the path has no link", "at least one"),
        (with_flow(json!({"paths": []})), "flows[1].paths", "the flow has no path", "at least one"),
        (with_flow(json!({"paths": [["l20"], []]})), "flows[1].paths[1]", "the path has no link", "at least one"),
        (with_flow(json!({"paths": [[]]})), "flows[1].paths[0]", "the path has no link", "at least one"),
        (with_flow(json!({"paths": [["l20", "l20"]]})), "flows[1].paths[0][1]", "crosses link \"l20\" twice", "once"),
        (with_flow(json!({"path": "l20"})), "flows[1].path", "a path is a list, not \"l20\"", "[\"l1\""),
        (with_flow(json!({"path": [20]})), "flows[1].path[0]", "a link's id is a string, not 20", "quotes"),
        (
            with_flow(json!({"path": ["l20", "l21"]})),
            "flows[1].path[1]",
            "there is no link \"l21\"",
            "did you mean \"l20\"?",
        ),
        (
            with_flow(json!({"path": ["uplink"]})),
            "flows[1].path[0]",
            "there is no link \"uplink\"",
            "the network has: l20, l30",
        ),
        (
            with_flow(json!({"path": ["l20", "l30", "l20"]})),
            "flows[1].path[2]",
            "the path crosses link \"l20\" twice",
            "once",
        ),
        (
            with_flow(json!({"paths": [["l20"], ["l20"]]})),
            "flows[1].paths[1]",
            "two paths of the flow are the same",
            "once",
        ),
        (with_flow(json!({"path": ["l20"], "paths": [["l20"]]})), "flows[1].path", "in two ways", "keep one"),
        (with_flow(json!({"path": ["l20"], "src": "a"})), "flows[1].path", "in two ways", "keep one"),
        (
            with_flow(json!({"path": ["l20"], "subflows": 2})),
            "flows[1].subflows",
            "subflows need \"src\" and \"dst\"",
            "paths",
        ),
        (
            with_flow(json!({"id": "ok", "path": ["l20"]})),
            "flows[1].id",
            "flows[0] has the id \"ok\" already",
            "of its own",
        ),
        (with_flow(json!({"id": 7, "path": ["l20"]})), "flows[1].id", "a flow's id is a string, not 7", "quotes"),
        (with_flow(json!({"src": "a", "dst": "b"})), "flows[1].src", "do not say where they lead", "path"),
        (with_flow(json!({"path": ["l20"], "weight": 0})), "flows[1].weight", "the weight is zero", "positive"),
        (
            with_flow(json!({"path": ["l20"], "weight": -2})),
            "flows[1].weight",
            "the value is negative: -2",
            "zero or more",
        ),
        (
            with_flow(json!({"path": ["l20"], "weight": "2"})),
            "flows[1].weight",
            "\"2\" is not a number",
            "without quotes",
        ),
        (
            with_flow(json!({"path": ["l20"], "demand": "5 Gb"})),
            "flows[1].demand",
            "\"Gb\" is not a unit of rate",
            "10Gbps",
        ),
        (with_flow(json!({"path": ["l20"], "demand": null})), "flows[1].demand", "null is not a rate", "10Gbps"),
        (with_flow(json!({"path": ["l20"], "size": 0})), "flows[1].size", "the size is zero", "64KiB"),
        (with_flow(json!({"path": ["l20"], "size": -5})), "flows[1].size", "the size \"-5\" is negative", "64KiB"),
        (with_flow(json!({"path": ["l20"], "deadline": 0})), "flows[1].deadline", "the deadline is zero", "seconds"),
        (share(json!([[0, 0]])), "flows[1].bandwidth_function", "1 of at least two points", "[[0, 0]"),
        (share(json!("x")), "flows[1].bandwidth_function", "a bandwidth function is a list, not \"x\"", "[[0, 0]"),
        (
            share(json!([[0, 1], [1, 1]])),
            "flows[1].bandwidth_function[0]",
            "starts at [0, 1], not at [0, 0]",
            "[[0, 0]",
        ),
        (
            share(json!([[0, 0], [1, 5], [2, 4]])),
            "flows[1].bandwidth_function[2]",
            "falls from 5 to 4 bit/s",
            "[[0, 0]",
        ),
        (
            share(json!([[0, 0], [1, 5], [1, 6]])),
            "flows[1].bandwidth_function[2]",
            "goes from 1 to 1: it must grow",
            "[[0, 0]",
        ),
        (share(json!([[0, 0], [1, -5]])), "flows[1].bandwidth_function[1][1]", "is negative", "10Gbps"),
        (share(json!([[0, 0], [-1, 5]])), "flows[1].bandwidth_function[1][0]", "negative", "zero or more"),
        (share(json!([[0, 0], [1, 2, 3]])), "flows[1].bandwidth_function[1]", "a list of 3 is not a point", "[[0, 0]"),
        (without("size", "fct"), "flows[0].size", "policy \"fct\" needs the flow's size", "1MB"),
        (without("size", "srpt"), "flows[0].size", "policy \"srpt\" needs the flow's size", "1MB"),
        (without("deadline", "edf"), "flows[0].deadline", "policy \"edf\" needs the flow's deadline", "10ms"),
        (
            without("bandwidth_function", "bandwidth-function"),
            "flows[0].bandwidth_function",
            "needs the flow's bandwidth_function",
            "[[0, 0]",
        ),
    ]);
}

#[test]
fn faults_of_ends() {
    let links = json!([
        {"from": "a", "to": "b", "capacity": 1}, {"from": "c", "to": "d", "capacity": 1}, {"from": "b", "to": "e", "capacity": 1}
    ]);
    let ends = |flow: Value| json!({"network": links, "flows": [flow]});
    assert_faults([
        (
            ends(json!({"src": "a", "dst": "x1"})),
            "flows[0].dst",
            "there is no node \"x1\"",
            "the network has: a, b, c, d, e",
        ),
        (ends(json!({"src": "a"})), "flows[0].dst", "\"dst\" is missing", "both"),
        (ends(json!({"dst": "a"})), "flows[0].src", "\"src\" is missing", "both"),
        (ends(json!({"src": 1, "dst": "a"})), "flows[0].src", "a node's name is a string, not 1", "quotes"),
        (ends(json!({"src": "a", "dst": "d"})), "flows[0].dst", "no path leads from \"a\" to \"d\"", "connect them"),
        (ends(json!({"src": "b", "dst": "a"})), "flows[0].dst", "no path leads from \"b\" to \"a\"", "connect them"),
        (ends(json!({"src": "a", "dst": "a"})), "flows[0].dst", "the same, \"a\"", "different"),
        (
            ends(json!({"src": "a", "dst": "b", "subflows": 0})),
            "flows[0].subflows",
            "0 is not a number of subflows",
            "1 to 255",
        ),
        (ends(json!({"src": "a", "dst": "b", "subflows": 1000})), "flows[0].subflows", "1000 is not", "1 to 255"),
        (
            ends(json!({"path": ["a->b", "c->d"]})),
            "flows[0].path[1]",
            "link \"c->d\" leaves \"c\", but \"a->b\" leads to \"b\"",
            "start where",
        ),
    ]);
    assert_eq!(paths(&parse(&ends(json!({"path": ["a->b", "b->e"]}))).unwrap(), 0), [["a->b", "b->e"]]);
}

#[test]
fn syntax_errors_name_line_and_column() {
    for (text, place, what) in [
        ("", "", "the document is empty"),
        ("  \n", "", "the document is empty"),
        ("{\"network\": [\n  {\"id\": \"a\", \"capacity\": NaN}]}", "line 2, column 27", "JSON has no NaN"),
        ("{\"network\": [{\"id\": \"a\", \"capacity\": -Infinity}]}", "line 1, column 39", "JSON has no Infinity"),
        ("{\"flows\": [{\"weight\": Infinity}]}", "line 1, column 23", "JSON has no Infinity"),
        ("{\"network\": [,]}", "line 1, column 14", "expected value"),
        ("{\"network\": []", "line 1, column 14", "EOF"),
        ("{\"network\": []} x", "line 1, column 17", "trailing"),
        ("{\"network\": [], \"network\": []}", "line 1, column 25", "the key \"network\" is given twice"),
        ("{\"flows\": [{\"weight\": 1, \"weight\": 1}]}", "line 1, column 33", "the key \"weight\" is given twice"),
        ("{\"flows\": [{\"weight\": 1e999}]}", "line 1, column 27", "the number is too large"),
        ("{\"flows\": 7}", "line 1, column 11", "expected a list in \"flows\""),
        ("{\"flows\": {}}", "flows.file", "it is missing"),
        ("[]", "line 1, column 2", "expected a table of keys and values"),
        ("\u{1}", "line 1, column 1", "expected value"),
    ] {
        let fault = from_json(text).unwrap_err();
        assert!(fault.what.contains(what), "{text}: {fault}");
        assert_eq!(fault.place, place, "{text}: {fault}");
        assert!(!fault.hint.is_empty());
    }
    for (text, place, what) in [
        ("network = [\n 1, = ]", "line 2, column 5", ""),
        ("a = 1\na = 2", "line 2, column 1", "duplicate key"),
        ("policy = {kind = \"alpha-fair\", alpha = nan}", "policy.alpha", "the value is NaN"),
        ("policy = {kind = \"alpha-fair\", alpha = inf}", "policy.alpha", "the value is inf"),
        ("[[flows]]\n[[flows]]\nweight = -inf", "flows[1].weight", "the value is -inf"),
        ("[[flows]]\nweight = 2020-01-01", "flows[0].weight", "the value is a date, 2020-01-01"),
        ("flows = 3", "flows", "the list of flows is a list, not 3"),
    ] {
        let fault = Case::parse(text, Format::Toml, &mut no_file).unwrap_err();
        assert!(fault.what.contains(what), "{text}: {fault}");
        assert_eq!(fault.place, place, "{text}: {fault}");
    }
    assert_eq!(from_json("\u{feff}{}").unwrap().flows.len(), 0);
}

/// A random flow: links as a set of bits, weight, demand, size, deadline.
type Plan = (u8, u32, Option<u32>, Option<u32>, Option<u32>);

proptest! {
    #[test]
    fn a_case_reads_as_it_was_written(
        links in proptest::collection::vec((1u32..1_000_000, 0u32..10_000, proptest::option::of(1u32..1_000_000)), 8),
        flows in proptest::collection::vec((1u8.., 1u32..1000, any::<Option<u32>>(), proptest::option::of(1u32..), proptest::option::of(1u32..)), 0..20),
        units: bool, alpha in 0.0f64..10.0,
    ) {
        let number = |x: u32, base: f64, unit: &str| if units { json!(format!("{x} {unit}")) } else { json!(f64::from(x) * base) };
        let written: Vec<Value> = links.iter().enumerate().map(|(i, (mbps, ns, bytes))| {
            let mut link = json!({"id": format!("l{i}"), "capacity": number(*mbps, 1e6, "Mbps"), "delay": number(*ns, 1e-9, "ns")});
            if let Some(bytes) = bytes {
                link["buffer"] = number(*bytes, 1.0, "B");
            }
            link
        }).collect();
        let path = |bits: u8| LinkId::first(8).filter(|i| bits >> i.0 & 1 == 1).collect::<Vec<_>>();
        let flow = |(i, &(bits, weight, demand, size, deadline)): (usize, &Plan)| {
            let mut flow = json!({"id": format!("f{i}"), "weight": f64::from(weight) / 8.0,
                "path": path(bits).iter().map(|l| format!("l{l}")).collect::<Vec<_>>()});
            if let Some(kbps) = demand { flow["demand"] = number(kbps, 1e3, "kb/s") }
            if let Some(bytes) = size { flow["size"] = number(bytes, 1.0, "B") }
            if let Some(us) = deadline { flow["deadline"] = number(us, 1e-6, "us") }
            flow
        };
        let value = json!({"network": written, "flows": flows.iter().enumerate().map(flow).collect::<Vec<_>>(),
            "policy": {"kind": "alpha-fair", "alpha": alpha}});
        let case = parse(&value).unwrap();
        prop_assert_eq!(case.policy, Policy::AlphaFair { alpha });
        for (link, &(mbps, ns, bytes)) in case.network.links().iter().zip(&links) {
            prop_assert_eq!((link.capacity_bps, link.delay_ns, link.buffer_bytes), (f64::from(mbps) * 1e6, u64::from(ns), bytes.map(u64::from)));
        }
        for (f, &(bits, weight, demand, size, deadline)) in flows.iter().enumerate() {
            prop_assert_eq!(case.flows.links_of(case.flows.paths_of(f).start), &path(bits)[..]);
            prop_assert_eq!(case.flows.weight()[f], f64::from(weight) / 8.0);
            prop_assert_eq!(case.flows.demand_bps()[f], demand.map_or(f64::INFINITY, |kbps| f64::from(kbps) * 1e3));
            let extra = case.flows.extra(f).cloned().unwrap_or_default();
            prop_assert_eq!(extra.size_bytes, size.map(u64::from));
            let off = |us: u32| (extra.deadline_s.unwrap_or(f64::NAN) / (f64::from(us) * 1e-6) - 1.0).abs();
            prop_assert!(deadline.map_or(extra.deadline_s.is_none(), |us| off(us) < 1e-15));
        }
    }
}

#[test]
fn nine_faults_are_told_at_once_each_with_its_place_and_mend() {
    let bad = json!({
        "colour": "red",
        "network": [{"id": "a", "capacity": "10Gbps"}, {"id": "b", "capacity": "1Gbps"}],
        "policy": {"kind": "proportional_fair"},
        "routing": {"seed": -1, "metric": "hop"},
        "flows": [
            {"id": "f", "path": ["c"], "weight": 0, "sise": 3},
            {"id": "f", "path": ["b"]},
            {"path": ["b"], "demand": "fast"},
            {"weight": 2},
        ],
    });
    let faults = parse(&bad).unwrap_err().each();
    let places: Vec<&str> = faults.iter().map(|f| f.place.as_str()).collect();
    let want = [
        "colour",
        "policy.kind",
        "routing.seed",
        "routing.metric",
        "flows[0].sise",
        "flows[0].path[0]",
        "flows[0].weight",
        "flows[1].id",
        "flows[2].demand",
        "flows[3].path",
    ];
    assert_eq!(places, want, "{faults:#?}");
    assert!(faults.iter().all(|f| !f.hint.is_empty()), "{faults:#?}");
    assert!(faults[1].hint.contains("kind = \"alpha-fair\", alpha = 1"), "{}", faults[1].hint);
    assert!(faults[3].hint.contains("did you mean \"hops\"?") && faults[4].hint.contains("did you mean \"size\"?"));

    // Over an invalid network, flows are still checked for the errors that do not depend on the network.
    let bad = json!({
        "network": [{"id": "a"}, {"capacity": "1 furlong"}, {"id": "b", "capacity": -1, "delay": "x", "bufer": 1}],
        "flows": [{"path": ["c"], "weight": "heavy"}],
    });
    let places: Vec<String> = parse(&bad).unwrap_err().each().into_iter().map(|f| f.place).collect();
    let want = [
        "network[0].capacity",
        "network[1].id",
        "network[1].capacity",
        "network[2].bufer",
        "network[2].capacity",
        "network[2].delay",
        "flows[0].weight",
    ];
    assert_eq!(places, want);
}

#[test]
fn of_many_wrong_flows_a_few_are_told() {
    let flows: Vec<Value> = (0..100_000).map(|_| json!({"path": ["nowhere"]})).collect();
    let text = json!({"network": [{"id": "a", "capacity": 1}], "flows": flows}).to_string();
    assert_eq!(from_json(&text).unwrap_err().each().len(), subak_core::input_error::MOST_FAULTS);
}
