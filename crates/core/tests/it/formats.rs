//! Node-link JSON and GraphML: files that networkx writes are read, and errors name what is invalid.

use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use subak_core::formats::{Defaults, graphml, node_link};
use subak_core::{LinkId, Network, NodeKind};

/// Id, capacity, delay and buffer of each link.
fn links(network: &Network) -> Vec<(String, f64, u64, Option<u64>)> {
    network.links().iter().map(|l| (l.id.clone(), l.capacity_bps, l.delay_ns, l.buffer_bytes)).collect()
}

fn kinds(network: &Network) -> Vec<(&str, NodeKind)> {
    network.nodes().iter().map(|n| (n.name.as_str(), n.kind)).collect()
}

#[test]
fn node_link_as_networkx_writes_it() {
    let graph = json!({
        "directed": false, "multigraph": true, "graph": {"name": "lab"},
        "nodes": [{"id": "a", "color": "red"}, {"id": "s", "kind": "switch"}, {"id": 7, "type": "router"}],
        "links": [
            {"source": "a", "target": "s", "capacity": "10Gbps", "delay": "2us", "key": 0, "weight": 3},
            {"source": "a", "target": "s", "capacity": 1e9, "buffer": "64KiB", "key": 1},
            {"source": "s", "target": 7, "capacity": 5e9, "delay": 1e-6, "key": 0}
        ]
    });
    let network = node_link::network(&graph).unwrap();
    let expected = [
        ("a->s", 1e10, 2000, None),
        ("s->a", 1e10, 2000, None),
        ("a->s#1", 1e9, 0, Some(65536)),
        ("s->a#1", 1e9, 0, Some(65536)),
        ("s->7", 5e9, 1000, None),
        ("7->s", 5e9, 1000, None),
    ];
    assert_eq!(links(&network), expected.map(|(id, c, d, b)| (id.to_string(), c, d, b)));
    assert_eq!(kinds(&network), [("a", NodeKind::Host), ("s", NodeKind::Switch), ("7", NodeKind::Host)]);
    let mut directed = graph;
    directed["directed"] = json!(true);
    directed["edges"] = directed.as_object_mut().unwrap().remove("links").unwrap();
    let network = node_link::network(&directed).unwrap();
    assert_eq!(links(&network).iter().map(|l| l.0.as_str()).collect::<Vec<_>>(), ["a->s", "a->s#1", "s->7"]);
}

const GRAPHML: &str = r#"<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
  <!-- d3 is somebody else's -->
  <key id="d0" for="edge" attr.name="capacity" attr.type="string"><default>1 Gbps</default></key>
  <key id="d1" for="edge" attr.name="delay" attr.type="double" />
  <key id="d2" for="node" attr.name="kind" attr.type="string" />
  <key id="d3" for="node" attr.name="label" attr.type="string" />
  <key id="d4" for="edge" attr.name="buffer" attr.type="long" />
  <graph edgedefault="undirected">
    <edge source="a&amp;b" target="s"><data key="d0">10Gbps</data><data key="d1">2e-06</data></edge>
    <node id="a&amp;b"><data key="d3">A <![CDATA[& B]]></data></node>
    <node id="s"><data key="d2">switch</data></node>
    <node id="c"/>
    <edge source="s" target="c" directed="true"><data key="d4"> 65536 </data></edge>
  </graph>
</graphml>"#;

#[test]
fn graphml_as_networkx_writes_it() {
    let network = graphml::network(GRAPHML).unwrap();
    let expected = [("a&b->s", 1e10, 2000, None), ("s->a&b", 1e10, 2000, None), ("s->c", 1e9, 0, Some(65536))];
    assert_eq!(links(&network), expected.map(|(id, c, d, b)| (id.to_string(), c, d, b)));
    assert_eq!(kinds(&network), [("a&b", NodeKind::Host), ("s", NodeKind::Switch), ("c", NodeKind::Host)]);
}

#[test]
fn faults_of_node_link_graphs() {
    let graph = |edge: Value| {
        json!({"nodes": [{"id": "a"}, {"id": "b"}],
            "links": [{"source": "b", "target": "a", "capacity": 1}, edge]})
    };
    let nodes = |nodes: Value| json!({"nodes": nodes, "links": []});
    let ab = |key: &str, value: Value| {
        let mut edge = json!({"source": "a", "target": "b", "capacity": 1});
        edge[key] = value;
        graph(edge)
    };
    let mut twice = ab("key", json!(0));
    twice["multigraph"] = json!(false);
    for (value, place, what, hint) in [
        (json!(1), "", "a graph is a table of keys and values, not 1", "nodes"),
        (json!({"links": []}), "nodes", "the graph has no list of nodes", "node_link_data"),
        (json!({"nodes": []}), "links", "the graph has no list of links", "node_link_data"),
        (json!({"nodes": 1, "links": []}), "nodes", "nodes is a list, not 1", "[...]"),
        (json!({"nodes": [], "links": [], "edges": []}), "edges", "both", "keep one"),
        (
            json!({"nodes": [], "links": [], "multigraf": true}),
            "multigraf",
            "unknown key",
            "did you mean \"multigraph\"?",
        ),
        (json!({"nodes": [], "links": [], "directed": 1}), "directed", "1 is neither true nor false", "true or false"),
        (nodes(json!([1])), "nodes[0]", "a node is a table", "id"),
        (nodes(json!([{}])), "nodes[0].id", "\"id\" is missing", "id"),
        (nodes(json!([{"id": [1]}])), "nodes[0].id", "a list of 1 is neither a string nor a whole number", "id"),
        (nodes(json!([{"id": ""}])), "nodes[0].id", "the node's id is empty", "name"),
        (nodes(json!([{"id": 1}, {"id": "1"}])), "nodes[1].id", "a second node has the id \"1\"", "of its own"),
        (
            nodes(json!([{"id": "a", "kind": "hots"}])),
            "nodes[0].kind",
            "unknown kind of node \"hots\"",
            "did you mean \"host\"?",
        ),
        (nodes(json!([{"id": "a", "kind": 1}])), "nodes[0].kind", "a node's kind is a string, not 1", "quotes"),
        (graph(json!([])), "links[1]", "an edge is a table", "capacity"),
        (graph(json!({"target": "b", "capacity": 1})), "links[1].source", "\"source\" is missing", "id"),
        (
            graph(json!({"source": "a", "target": "c", "capacity": 1})),
            "links[1].target",
            "there is no node \"c\"",
            "list of nodes",
        ),
        (graph(json!({"source": "a", "target": "b"})), "links[1].capacity", "the edge has no capacity", "10Gbps"),
        (ab("capacity", json!("fast")), "links[1].capacity", "\"fast\" is not a rate", "10Gbps"),
        (ab("dealy", json!(1)), "links[1].dealy", "unknown attribute \"dealy\"", "did you mean \"delay\"?"),
        (ab("Buffer", json!(1)), "links[1].Buffer", "unknown attribute \"Buffer\"", "did you mean \"buffer\"?"),
        (ab("delay", json!(-1)), "links[1].delay", "negative", "12us"),
        (ab("buffer", json!("1s")), "links[1].buffer", "\"s\" is not a unit of size", "64KiB"),
        (twice, "links[1]", "a second edge connects \"a\" and \"b\"", "multigraph"),
    ] {
        let fault = node_link::network(&value).expect_err(&value.to_string());
        assert_eq!(fault.place, place, "{value}: {fault}");
        assert!(fault.what.contains(what), "{value}: {fault}");
        assert!(fault.hint.contains(hint), "{value}: {fault}");
    }
}

#[test]
fn faults_of_graphml() {
    for (old, new, place, what) in [
        ("10Gbps", "10Gb", "edges[0].capacity", "\"Gb\" is not a unit of rate"),
        ("10Gbps", "NaN", "edges[0].capacity", "\"NaN\" is not a rate"),
        ("<default>1 Gbps</default>", "", "edges[1].capacity", "the edge has no capacity"),
        ("2e-06", "-2e-06", "edges[0].delay", "negative"),
        ("target=\"c\"", "target=\"x\"", "edges[1].target", "there is no node \"x\""),
        ("target=\"c\"", "", "line 14, column 5", "a <edge> has no attribute \"target\""),
        ("id=\"c\"", "id=\"s\"", "nodes[2].id", "a second node has the id \"s\""),
        ("attr.name=\"delay\"", "attr.name=\"dealy\"", "line 5, column 3", "unknown attribute \"dealy\""),
        ("key=\"d1\"", "key=\"d9\"", "line 10, column 87", "the key \"d9\" is not declared"),
        ("<node id=\"c\"/>", "<hyperedge/>", "line 13, column 5", "the graph has a hyperedge"),
        ("<node id=\"c\"/>", "<graph edgedefault=\"directed\"/>", "line 13, column 5", "second graph"),
        ("undirected", "both", "line 9, column 3", "\"both\" is not a direction"),
        ("edgedefault=\"undirected\"", "", "line 9, column 3", "the graph has no edgedefault"),
        ("&amp;", "&lol;", "line 10, column 5", "malformed"),
        ("A <", "&lol; <", "line 11, column 39", "unknown entity \"lol\""),
        ("</graphml>", "", "", "ends inside an element"),
        ("</graph>", "</graf>", "line 15, column 3", "expected `</graph>`"),
        ("<node id=\"c\"/>", "<node id=\"c\" id=\"d\"/>", "line 13, column 5", "the attribute \"id\" is given twice"),
        ("key=\"d1\"", "key=\"d0\"", "line 10, column 87", "the data \"capacity\" is given twice"),
        (
            "<data key=\"d2\">",
            "<data key=\"d2\">host</data><data key=\"d2\">",
            "line 12, column 65",
            "the data \"kind\" is given twice",
        ),
    ] {
        assert!(GRAPHML.contains(old));
        let text = GRAPHML.replacen(old, new, 1);
        let fault = graphml::network(&text).expect_err(new);
        assert_eq!(fault.place, place, "{old} -> {new}: {fault}");
        assert!(fault.what.contains(what), "{old} -> {new}: {fault}");
        assert!(!fault.hint.is_empty());
    }
    for (text, what) in [
        ("<svg/>", "the outermost element is \"svg\""),
        ("<graphml/>", "the file has no graph"),
        ("", "the file has no graph"),
    ] {
        assert_eq!(graphml::network(text).unwrap_err().what, what);
    }
}

/// An edge: source, target, capacity in Mbit/s, delay in ns.
type Edge = (usize, usize, u32, u32);

/// A random graph: names and edges.
fn graphs() -> impl Strategy<Value = (Vec<String>, Vec<Edge>)> {
    let names = proptest::collection::btree_set("[a-zA-Z0-9 <>&\"'é_-]{1,6}", 2..8);
    names
        .prop_map(|names: BTreeSet<String>| names.into_iter().filter(|n| n.trim() == n).collect::<Vec<_>>())
        .prop_filter("two nodes", |names| names.len() >= 2)
        .prop_flat_map(|names| {
            let n = names.len();
            let edge =
                (0..n, 1..n, 1u32..1_000_000, 0u32..1_000_000).prop_map(move |(a, by, c, d)| (a, (a + by) % n, c, d));
            (Just(names), proptest::collection::vec(edge, 0..12))
        })
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

proptest! {
    #[test]
    fn both_formats_say_what_was_written((names, edges) in graphs(), directed: bool) {
        let nodes: Vec<_> = names.iter().map(|name| json!({"id": name})).collect();
        let links: Vec<_> = edges.iter().map(|&(a, b, mbps, ns)| json!({"source": names[a], "target": names[b],
            "capacity": format!("{mbps} Mbps"), "delay": f64::from(ns) * 1e-9})).collect();
        let from_json = node_link::network(&json!({"directed": directed, "multigraph": true, "nodes": nodes, "links": links})).unwrap();

        let mut xml = format!("<graphml><key id='c' for='edge' attr.name='capacity'/><key id='d' for='edge' attr.name='delay'/>\
            <graph edgedefault='{}'>", if directed { "directed" } else { "undirected" });
        names.iter().for_each(|name| write!(xml, "<node id=\"{}\"/>", escaped(name)).unwrap());
        for &(a, b, mbps, ns) in &edges {
            write!(xml, "<edge source=\"{}\" target=\"{}\"><data key='c'>{mbps}e6</data><data key='d'>{ns}ns</data></edge>",
                escaped(&names[a]), escaped(&names[b])).unwrap();
        }
        let from_xml = graphml::network(&(xml + "</graph></graphml>")).unwrap();

        prop_assert_eq!(from_json.links(), from_xml.links());
        prop_assert_eq!(from_json.nodes(), from_xml.nodes());
        let each = if directed { 1 } else { 2 };
        prop_assert_eq!(from_json.links().len(), each * edges.len());
        for (i, &(a, b, mbps, ns)) in edges.iter().enumerate() {
            let link = &from_json.links()[LinkId::from_index(each * i)];
            prop_assert_eq!((link.capacity_bps, link.delay_ns), (f64::from(mbps) * 1e6, u64::from(ns)));
            let ends = [link.from, link.to].map(|n| from_json.nodes()[n.unwrap()].name.as_str());
            prop_assert_eq!(ends, [names[a].as_str(), names[b].as_str()]);
        }
    }
}

/// The network in `value`; every file that it names has the contents `text`.
fn network_of(value: Value, text: &str) -> Result<Network, subak_core::InputError> {
    subak_core::case::network_from_value(&value, &mut |_| Ok(text.to_string())).map(|(network, _)| network)
}

#[test]
fn speeds_of_the_topology_zoo_and_what_stands_beside_a_file() {
    let text = r#"<graphml><key id="r" for="edge" attr.name="LinkSpeedRaw"/><key id="l" for="edge" attr.name="LinkLabel"/>
        <graph edgedefault="undirected"><node id="0"/><node id="1"/><node id="2"/><node id="3"/>
        <edge source="0" target="1"><data key="r">10000000000.0</data><data key="l">OC-3</data></edge>
        <edge source="1" target="2"><data key="l">155 Mbps</data></edge>
        <edge source="2" target="3"/></graph></graphml>"#;
    let network = network_of(json!({"file": "z.graphml", "capacity": "1Gbps", "delay": "2ms"}), text).unwrap();
    let speeds: Vec<_> = network.links().iter().step_by(2).map(|l| (l.capacity_bps, l.delay_ns)).collect();
    assert_eq!(speeds, [(1e10, 2_000_000), (155e6, 2_000_000), (1e9, 2_000_000)]);
    let fault = network_of(json!({"file": "z.graphml"}), text).unwrap_err();
    assert!(fault.place == "edges[2].capacity" && fault.hint.contains("beside the file"), "{fault}");
    let fault = network_of(json!({"file": "z.graphml", "capacity": 0}), text).unwrap_err();
    assert_eq!(fault.place, "capacity", "{fault}");
    let graph = r#"{"nodes": [{"id": "a"}, {"id": "b"}], "links": [{"source": "a", "target": "b"}]}"#;
    assert_eq!(
        network_of(json!({"file": "g.json", "capacity": 5}), graph).unwrap().links()[LinkId(0)].capacity_bps,
        5.0
    );
    for (name, said) in [("a.gml", "no graph"), ("a.csv", "CSV"), ("a.json.gz", "compressed")] {
        let fault = network_of(json!({"file": name}), "").unwrap_err();
        assert!(fault.what.contains(said) && !fault.hint.is_empty(), "{fault}");
    }
}

#[test]
fn topologies_of_hpcc() {
    let text = "3 1 2\n2\n0 2 100Gbps 1000ns 0.000000\n1 2 25Gbps 0.001ms 0\n";
    let network = network_of(json!({"file": "topology.txt"}), text).unwrap();
    let expected = [("0->2", 1e11), ("2->0", 1e11), ("1->2", 25e9), ("2->1", 25e9)];
    assert_eq!(links(&network), expected.map(|(id, c)| (id.to_string(), c, 1000, None)));
    assert_eq!(kinds(&network), [("0", NodeKind::Host), ("1", NodeKind::Host), ("2", NodeKind::Switch)]);
    for (text, place, what) in [
        ("", "line 1", "empty"),
        ("3 1\n", "line 1", "2 numbers, not three or four"),
        ("3 x 2\n", "line 1", "\"x\" is no whole number"),
        ("3 1 2\n9\n", "line 2", "no node \"9\""),
        ("3 2 2\n2\n", "line 2", "1 switches are listed, 2 announced"),
        ("3 1 2\n2\n0 2 100Gbps 1us 0\n", "line 1", "1 links, 2 announced"),
        ("3 1 1\n2\n0 2 100Gbps 1us 0.01\n", "line 3", "loses packets"),
        ("3 1 1\n2 2\n0 2 100Gbps 1us 0\n", "line 2", "node 2 is listed twice"),
        ("3 1 1\n2 1\n0 2 100Gbps 1us 0\n", "line 2", "2 switches are listed, 1 announced"),
        ("3 1 1\n2\n0 2 fast 1us 0\n", "line 3", "\"fast\" is not a rate"),
        ("99999999 1 1\n2\n", "line 1", "99999999 nodes"),
    ] {
        let fault = network_of(json!({"file": "topology.txt"}), text).expect_err(text);
        assert!(fault.place == place && fault.what.contains(what), "{text:?}: {fault}");
    }
}

/// Topology files of simulators derived from HPCC's, each with its own additions.
#[test]
fn topologies_of_simulators_made_from_hpcc() {
    let plain =
        network_of(json!({"file": "t.txt"}), "4 2 3\n2 3\n0 2 10Gbps 1us 0\n1 3 10Gbps 1us 0\n2 3 25Gbps 2us 0\n");
    let plain = plain.unwrap();
    assert!(plain.notes().is_empty());
    for (text, notes) in [
        // The number of racks in the first line, and rates as floats.
        ("4 2 2 3\n2 3\n0 2 10000000000.0 1us 0\n1 3 10000000000.0 0.000001s 0\n2 3 25e9 2000ns 0\n", 0),
        // Text after the announced links, and a link beyond the announced number.
        ("4 2 3\n2 3\n0 2 10Gbps 1us 0\n1 3 10Gbps 1us 0\n2 3 25Gbps 2us 0\n\nhosts are 0 and 1\n0 3 1Gbps 1us 0\n", 1),
        // Switches in several lines, comments, and a byte order mark.
        ("\u{feff}# nodes\n4 2 3 // head\n2\n3\n0 2 10Gbps 1us 0\n\n1 3 10Gbps 1us 0 # right\n2 3 25Gbps 2us 0.0\n", 0),
        // Links without a loss rate.
        ("4 2 3\n2 3\n0 2 10Gbps 1us 0\n1 3 10Gbps 1us\n2 3 25Gbps 2us\n", 1),
    ] {
        let network = network_of(json!({"file": "t.txt"}), text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!((links(&network), kinds(&network)), (links(&plain), kinds(&plain)), "{text}");
        assert_eq!(network.notes().len(), notes, "{:?}", network.notes());
    }
    let short = network_of(json!({"file": "t.txt"}), "3 1 2\n2\n0 2 10Gbps 1us 0\n\n1 2 1Gbps 1us\n").unwrap();
    assert!(short.notes()[0].starts_with("1 of 2 links states no share of losses"), "{:?}", short.notes());
    assert!(short.notes()[0].contains("in line 5"), "{:?}", short.notes());
    let network =
        network_of(json!({"file": "t.txt"}), "3 1 3\n2\n0 2 10Gbps 1us 0\n1 2 0Gbps 1us 0\n1 1 1Gbps 1us 0\n");
    let network = network.unwrap();
    assert_eq!(network.links().len(), 2);
    assert!(network.is_down("1->2") && network.is_down("2->1") && network.notes().len() == 2, "{:?}", network.notes());
}

/// An edge attribute under another name is refused, and the error has the known name. Ignored attributes are noted.
#[test]
fn attributes_by_other_names_are_refused_and_others_noted() {
    let edge = |key: &str, capacity: Value| {
        let edge = json!({"source": "a", "target": "b", key: "5Gbps"});
        let mut edge = edge.as_object().unwrap().clone();
        if !capacity.is_null() {
            edge.insert("capacity".into(), capacity);
        }
        json!({"nodes": [{"id": "a"}, {"id": "b"}], "links": [edge], "capacity": "1Gbps"})
    };
    for name in ["bw", "bandwidth", "rate", "cap", "Capacity", "speed", "bandwidth_gbps", "Link Speed", "capacity_bps"]
    {
        let fault = node_link::network(&edge(name, Value::Null)).expect_err(name);
        assert!(fault.hint.contains("\"capacity\"") && fault.what.contains(name), "{fault}");
    }
    for (name, own) in [("latency", "delay"), ("delay_ms", "delay"), ("queue_size", "buffer"), ("bufer", "buffer")] {
        let fault = node_link::network(&edge(name, json!(1e9))).expect_err(name);
        assert!(fault.hint.contains(&format!("\"{own}\"")), "{fault}");
    }
    // If the edge also has a capacity, such an attribute is only noted.
    let network = node_link::network(&edge("bandwidth", json!(3e9))).unwrap();
    assert_eq!(network.links()[LinkId(0)].capacity_bps, 3e9);
    assert!(network.notes()[0].contains("\"bandwidth\""), "{:?}", network.notes());
    for (place, graph) in [
        ("graph.delay", json!({"nodes": [], "links": [], "graph": {"delay": 1}})),
        ("graph.Capacity", json!({"nodes": [], "links": [], "graph": {"Capacity": 1}})),
        ("nodes[0].kind", json!({"nodes": [{"id": "a", "kind": "router"}], "links": []})),
        ("nodes[0].Kind", json!({"nodes": [{"id": "a", "Kind": "host"}], "links": []})),
    ] {
        assert_eq!(node_link::network(&graph).unwrap_err().place, place);
    }
    let text = r#"<graphml><key id="k" for="node" attr.name="kind"/><graph edgedefault="directed">
        <node id="a"><data key="k">router</data></node></graph></graphml>"#;
    assert!(graphml::network(text).unwrap_err().what.contains("unknown kind of node \"router\""));
}

/// Node attributes in GraphML: one that marks a host under another name is refused; others that might are noted.
#[test]
fn attributes_of_nodes_in_graphml_are_not_dropped() {
    let read = |keys: &str, data: &str| {
        graphml::network(&format!(
            r#"<graphml>{keys}<key id="c" for="edge" attr.name="capacity"/><graph edgedefault="undirected">
            <node id="a">{data}</node><node id="b"/><node id="c"/>
            <edge source="a" target="b"><data key="c">1Gbps</data></edge>
            <edge source="b" target="c"><data key="c">1Gbps</data></edge></graph></graphml>"#
        ))
    };
    let key = |name: &str| format!(r#"<key id="k" for="node" attr.name="{name}"/>"#);
    for (name, value) in [("role", "host"), ("node_type", "Switch"), ("is_host", "true"), ("isSwitch", "False")] {
        let fault = read(&key(name), &format!(r#"<data key="k">{value}</data>"#)).expect_err(name);
        assert!(fault.place == format!("nodes[0].{name}") && fault.hint.contains("\"kind\""), "{fault}");
        let default = format!(r#"<key id="k" for="node" attr.name="{name}"><default>{value}</default></key>"#);
        assert_eq!(read(&default, "").expect_err(name).place, format!("nodes[0].{name}"));
    }
    for (name, value, noted) in [("type", "router", true), ("Role", "spine", true), ("label", "host", false)] {
        let network = read(&key(name), &format!(r#"<data key="k">{value}</data>"#)).unwrap();
        let said = format!("attributes of nodes that are not read: \"{name}\"");
        assert_eq!(network.notes().iter().any(|note| note.contains(&said)), noted, "{:?}", network.notes());
    }
    let kind = r#"<key id="t" for="node" attr.name="kind"/>"#;
    let both = r#"<data key="k">router</data><data key="t">switch</data>"#;
    let network = read(&(key("role") + kind), both).unwrap();
    assert!(network.notes().iter().all(|note| !note.contains("role")), "{:?}", network.notes());
    // An attribute of edges is an error at the graph.
    let text = r#"<graphml><key id="d" for="graph" attr.name="delay"/><graph edgedefault="directed">
        <data key="d">1ms</data></graph></graphml>"#;
    assert_eq!(graphml::network(text).unwrap_err().place, "graph.delay");
}

/// Labels with ranges have no speed unless a key selects an end. Edges with the default speed are counted.
#[test]
fn ranges_are_refused_and_defaults_counted() {
    let edges = |labels: &[&str]| {
        let edge = |(i, label): (usize, &&str)| json!({"source": i, "target": i + 1, "LinkLabel": label});
        let links: Vec<Value> = labels.iter().enumerate().map(edge).collect();
        let nodes: Vec<Value> = (0..=labels.len()).map(|i| json!({"id": i})).collect();
        json!({"nodes": nodes, "links": links}).to_string()
    };
    let bps = |network: &Network| network.links().iter().step_by(2).map(|l| l.capacity_bps).collect::<Vec<_>>();
    let text = edges(&["1-20Gbps", "45 Mbps DS-3", "dark fibre", "2x10Gb/s"]);
    let beside = |more: Value| {
        let mut map = json!({"file": "z.json", "capacity": "3Gbps"});
        map.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        map
    };
    let fault = network_of(beside(json!({})), &text).unwrap_err();
    assert!(fault.place == "links[0].LinkLabel" && fault.hint.contains("range"), "{fault}");
    for (end, first) in [("low", 1e9), ("high", 20e9)] {
        let network = network_of(beside(json!({"range": end})), &text).unwrap();
        assert_eq!(bps(&network), [first, 44.736e6, 3e9, 20e9]);
        let notes = network.notes().join("\n");
        assert!(notes.contains("1 of 4 edges tell no speed (labels such as \"dark fibre\")"), "{notes}");
        assert!(notes.contains(&format!("1 edges tell a range of speeds and have its {end} end")), "{notes}");
    }
    assert!(network_of(beside(json!({"range": "mean"})), &text).unwrap_err().place == "range");
    // If no edge has a label, every edge has the default, as intended: no note.
    let network = network_of(beside(json!({})), &edges(&["", ""])).unwrap();
    assert!(network.notes().is_empty(), "{:?}", network.notes());
}

/// Failed links and self-loops do not make a file invalid; flows without a path get rate 0.
#[test]
fn what_graphml_says_of_edges_elsewhere_is_used_or_refused() {
    let file = |keys: &str, edge: &str, data: &str| {
        format!(
            "<graphml>{keys}<graph edgedefault=\"undirected\"><node id=\"a\"/><node id=\"b\">{data}</node>\
             <edge source=\"a\" target=\"b\"{edge}/></graph></graphml>"
        )
    };
    let beside = Defaults { capacity_bps: Some(3e9), ..Defaults::default() };
    let read = |text: &str| graphml::network_with(text, &beside);
    let key = |name: &str, default: &str| {
        format!("<key id=\"d0\" for=\"edge\" attr.name=\"{name}\"><default>{default}</default></key>")
    };
    // A default counts as the data of each edge.
    let labelled = read(&file(&key("LinkLabel", "10 Gbps"), "", "")).unwrap();
    assert_eq!(labelled.links().iter().map(|l| l.capacity_bps).collect::<Vec<_>>(), [10e9, 10e9]);
    for (text, what) in [
        (file(&key("bw", "5e9"), "", ""), "unknown attribute \"bw\""),
        (file(&key("bandwidth", "5e9"), "", ""), "unknown attribute \"bandwidth\""),
        (file("", " capacity=\"10Gbps\"", ""), "an <edge> has the attribute \"capacity\""),
        (file("", " delay=\"1ms\"", ""), "an <edge> has the attribute \"delay\""),
        (file("", " bw=\"1\"", ""), "unknown attribute \"bw\""),
        (
            file(&key("capacity", "1Gbps"), "", "<data key=\"d0\">5Gbps</data>"),
            "the key \"d0\" is declared for edges, and a node has it",
        ),
    ] {
        let fault = read(&text).expect_err(&text);
        assert!(fault.what.contains(what), "{text}: {fault}");
    }
    let json = |graph: Value| {
        let whole = json!({"graph": graph, "nodes": [{"id": "a"}, {"id": "b"}],
                           "links": [{"source": "a", "target": "b", "capacity": 1e9}]});
        node_link::network_with(&whole, &Defaults::default())
    };
    assert!(json(json!({"bandwidth": "3Gbps"})).unwrap_err().what.contains("unknown attribute \"bandwidth\""));
    assert!(json(json!({"name": "two nodes", "Network": "mine"})).is_ok());
}

#[test]
fn a_link_that_has_failed_does_not_refuse_the_case() {
    let link = |a: &str, b: &str, bps: f64| json!({"source": a, "target": b, "capacity": bps});
    let nodes: Vec<Value> = ["a", "b", "c", "d"].map(|id| json!({"id": id})).into();
    let links = json!([link("a", "b", 8.0), link("b", "b", 1.0), link("b", "c", 0.0), link("c", "d", 4.0)]);
    let case = |flows: Value| {
        let case = json!({"network": {"nodes": nodes, "links": links}, "flows": flows});
        subak_core::Case::from_value(&case, &mut |_| unreachable!())
    };
    let all = case(json!([
        {"src": "a", "dst": "d"}, {"src": "a", "dst": "b"}, {"path": ["b->c"]}, {"id": "x", "paths": [["c->d"], ["b->c"]]}
    ]));
    let all = all.unwrap();
    let order: Vec<_> =
        all.flows.in_order().map(|f| f.map(|f| all.flows.id(f)).map_err(|s| (s.id.as_str(), s.why.name()))).collect();
    let ok = |id: &str| Ok(id.to_string());
    assert_eq!(order, [Err(("0", "no-path")), ok("1"), Err(("2", "link-down")), ok("x")]);
    let notes = all.notes().join("\n");
    assert!(
        notes.contains("1 edges lead to their own node") && notes.contains("2 links have the capacity 0"),
        "{notes}"
    );
    assert!(notes.contains("2 of 4 flows cannot send"), "{notes}");
    // If no flow can send, the input is probably wrong: an error.
    let fault = case(json!([{"src": "a", "dst": "d"}])).unwrap_err();
    assert!(fault.place == "flows[0].dst" && fault.what.contains("no path leads"), "{fault}");
    let fault = case(json!([{"path": ["b->c"]}])).unwrap_err();
    assert!(fault.what.contains("capacity 0"), "{fault}");
    let dead = json!({"nodes": nodes, "links": [link("a", "b", 0.0)]});
    assert!(node_link::network(&dead).unwrap_err().what.contains("every edge has the capacity 0"));
}

/// In a list of links, capacity 0 means a failed link, as in files.
#[test]
fn a_listed_link_of_capacity_zero_is_down() {
    let case = |links: Value, flows: Value| {
        let case = json!({"network": {"links": links}, "flows": flows});
        subak_core::Case::from_value(&case, &mut |_| unreachable!())
    };
    let links = json!([
        {"id": "x", "capacity": 1e9}, {"id": "y", "capacity": "0 Gbps"},
        {"from": "a", "to": "b", "capacity": 1e9}, {"from": "b", "to": "c", "capacity": 0}
    ]);
    let flows = json!([
        {"path": ["x"]}, {"path": ["x", "y"]}, {"paths": [["y"], ["x"]]}, {"src": "a", "dst": "c"}, {"path": ["b->c"]}
    ]);
    let all = case(links.clone(), flows).unwrap();
    let order: Vec<_> = all.flows.in_order().map(|f| f.map_err(|s| s.why.name())).collect();
    assert_eq!(order, [Ok(0), Err("link-down"), Ok(1), Err("no-path"), Err("link-down")]);
    assert!(all.notes()[0].contains("2 links have the capacity 0"), "{:?}", all.notes());
    let down: Vec<_> =
        all.network.down().map(|link| (link.id.as_str(), link.capacity_bps, link.from.is_some())).collect();
    assert_eq!(down, [("b->c", 0.0, true), ("y", 0.0, false)]);
    let fault = case(links, json!([{"path": ["y"]}])).unwrap_err();
    assert!(fault.what.contains("capacity 0"), "{fault}");
    for (first, second) in [(0, 1), (1, 0), (0, 0)] {
        let twice =
            json!([{"id": "z", "capacity": 1}, {"id": "y", "capacity": first}, {"id": "y", "capacity": second}]);
        let fault = case(twice, json!([])).unwrap_err();
        assert!(fault.place == "network.links[2].id" && fault.what.contains("a second link"), "{fault}");
    }
    let fault = case(json!([{"id": "y", "capacity": 0.0}]), json!([])).unwrap_err();
    assert!(fault.what.contains("every link has the capacity 0"), "{fault}");
    for wrong in [json!(-1), json!("-0.1 Gbps"), json!("0 parsecs"), json!(null)] {
        assert!(case(json!([{"id": "y", "capacity": wrong}, {"id": "x", "capacity": 1}]), json!([])).is_err());
    }
}

/// A directed edge of capacity 0 keeps the id that it has.
#[test]
fn a_failed_edge_keeps_its_id() {
    let graph = |ids: [&str; 2], capacities: [f64; 2]| {
        let edge =
            |k: usize, a: &str, b: &str| json!({"source": a, "target": b, "id": ids[k], "capacity": capacities[k]});
        let nodes = json!([{"id": "a"}, {"id": "b"}]);
        node_link::network(&json!({"directed": true, "nodes": nodes, "links": [edge(0, "a", "b"), edge(1, "b", "a")]}))
    };
    let network = graph(["x", "y"], [0.0, 1e9]).unwrap();
    assert!(network.is_down("x") && !network.is_down("a->b") && network.find_link("y").is_some());
    for capacities in [[0.0, 1e9], [1e9, 0.0]] {
        let fault = graph(["x", "x"], capacities).unwrap_err();
        assert!(fault.what.contains("a second link has the id \"x\""), "{fault}");
    }
}

/// An id of an undirected edge, and attributes of edges that nodes have, are noted; a number is an id of a directed edge.
#[test]
fn ids_and_attributes_in_the_wrong_place_are_noted() {
    let graph = |directed: bool, node: Value| {
        let edge = json!({"source": "a", "target": "b", "capacity": 1e9, "id": 7});
        let nodes = [json!({"id": "a", "kind": "host"}), node];
        node_link::network(&json!({"directed": directed, "nodes": nodes, "links": [edge]})).unwrap()
    };
    let plain = json!({"id": "b", "kind": "host"});
    let directed = graph(true, plain.clone());
    assert!(directed.find_link("7").is_some() && directed.notes().is_empty(), "{:?}", directed.notes());
    assert_eq!(graph(false, plain).notes(), ["attributes of edges that are not read: \"id\""]);
    let notes = graph(true, json!({"id": "b", "kind": "host", "capacity": 1e9, "buffer": 5})).notes();
    assert!(
        notes.len() == 1 && notes[0].starts_with("attributes of nodes that are not read: \"buffer\", \"capacity\""),
        "{notes:?}"
    );
}

/// The key `hosts` beside a file determines which nodes are hosts.
#[test]
fn hosts_are_named_beside_the_file() {
    let ring = json!({"nodes": [{"id": 0}, {"id": 1}, {"id": 2}, {"id": 3}], "links": [
        {"source": 0, "target": 1}, {"source": 1, "target": 2}, {"source": 2, "target": 0}, {"source": 2, "target": 3}]});
    let hosts = |beside: Value| {
        let network = network_of(beside, &ring.to_string())?;
        Ok((network.hosts().map(|h| h.0).collect::<Vec<_>>(), network.guess_note().is_some()))
    };
    let beside = |hosts: Value| json!({"file": "g.json", "capacity": 1e9, "hosts": hosts});
    assert_eq!(hosts(json!({"file": "g.json", "capacity": 1e9})), Ok((vec![3], true)));
    assert_eq!(hosts(beside(json!("leaves"))), Ok((vec![3], false)));
    // Kinds of some nodes, and of all that could be hosts.
    let with = |kinds: &[(usize, &str)]| {
        let mut text = ring.clone();
        kinds.iter().for_each(|(n, kind)| text["nodes"][*n]["kind"] = json!(kind));
        let network = network_of(json!({"file": "g.json", "capacity": 1e9}), &text.to_string()).unwrap();
        (network.hosts().map(|h| h.0).collect::<Vec<_>>(), network.guess_note().is_some())
    };
    assert_eq!(with(&[(0, "host")]), (vec![0, 3], true));
    assert_eq!(with(&[(0, "host"), (3, "switch")]), (vec![0], true));
    assert_eq!(with(&[(0, "host"), (1, "switch"), (2, "switch"), (3, "switch")]), (vec![0], false));
    let note = |kinds: &[(usize, &str)]| {
        let mut text = ring.clone();
        kinds.iter().for_each(|(n, kind)| text["nodes"][*n]["kind"] = json!(kind));
        network_of(json!({"file": "g.json", "capacity": 1e9}), &text.to_string())
            .unwrap()
            .guess_note()
            .unwrap_or_default()
    };
    assert!(note(&[]).starts_with("1 of 4 nodes send and receive, those with one neighbour"), "{}", note(&[]));
    assert!(note(&[(0, "host")]).starts_with("3 of 4 nodes have no kind: 1 of them"), "{}", note(&[(0, "host")]));
    assert!(note(&[]).contains("give the nodes the attribute kind"), "{}", note(&[]));
    let round = json!({"nodes": [{"id": 0}, {"id": 1}, {"id": 2}], "links": [
        {"source": 0, "target": 1}, {"source": 1, "target": 2}, {"source": 2, "target": 0}]})
    .to_string();
    let fault = network_of(beside(json!("leaves")), &round).unwrap_err();
    assert!(fault.place == "hosts" && fault.what.contains("no node has one neighbour"), "{fault}");
    let all = network_of(json!({"file": "g.json", "capacity": 1e9}), &round).unwrap();
    assert!(all.hosts().count() == 3 && !all.guesses_some(), "{:?}", all.guess_note());
    assert_eq!(hosts(beside(json!("all"))), Ok((vec![0, 1, 2, 3], false)));
    assert_eq!(hosts(beside(json!([1, "0"]))), Ok((vec![0, 1], false)));
    for (given, place) in
        [(json!("al"), "hosts"), (json!(["7"]), "hosts[0]"), (json!([0, true]), "hosts[1]"), (json!(3), "hosts")]
    {
        let fault: subak_core::InputError = hosts(beside(given)).unwrap_err();
        assert_eq!(fault.place, place, "{fault}");
    }
    // A format that states which nodes are hosts refuses the key `hosts`.
    for (file, text) in
        [("t.txt", "2 0 1\n0 1 1Gbps 1us\n"), ("g.json", r#"{"kind": "star", "hosts": 2}"#), ("g.json", "[]")]
    {
        let fault = network_of(json!({"file": file, "hosts": "all"}), text).unwrap_err();
        assert!(fault.what.contains("\"hosts\" beside the file is not used"), "{fault}");
    }
}

/// The flows of a case are the same from a list, a table and a matrix.
#[test]
fn flows_of_a_case_in_a_file() {
    let case = |flows: Value, text: &str| {
        let case = json!({"network": {"kind": "star", "hosts": 3}, "flows": flows}).to_string();
        subak_core::Case::parse(&case, subak_core::document::Format::Json, &mut |_| Ok(text.to_string()))
    };
    let list = case(
        json!([{"id": "h0->h1", "src": "h0", "dst": "h1", "demand": 5e6}, {"id": "h2->h0", "src": "h2", "dst": "h0", "demand": 2.5e6}]),
        "",
    );
    let list = format!("{:?}", list.unwrap().flows);
    for (flows, text) in [
        (json!({"file": "f.csv"}), "id,src,dst,demand\nh0->h1,h0,h1,5Mbps\nh2->h0,h2,h0,2500000\n"),
        (json!({"file": "f.csv", "unit": "Mbps"}), "\u{feff}dst, src, demand, id\nh1,h0,5,h0->h1\nh0,h2,2.5,h2->h0\n"),
        (json!({"file": "m.csv", "unit": "Mbps"}), "from,h0,h1,h2\nh0,0,5,\nh2,2.5,0,0\n"),
        (
            json!({"file": "f.json"}),
            r#"[{"id": "h0->h1", "src": "h0", "dst": "h1", "demand": 5e6},
            {"id": "h2->h0", "src": "h2", "dst": "h0", "demand": "2.5Mbps"}]"#,
        ),
    ] {
        assert_eq!(format!("{:?}", case(flows, text).unwrap().flows), list, "{text}");
    }
    for (flows, text, place, what) in [
        (json!({"file": "f.dat"}), "", "flows.file", "does not follow from its name"),
        (json!({"fiel": "f.csv"}), "", "flows.fiel", "unknown key"),
        (json!({"file": "f.csv"}), "src,dst,dmand\nh0,h1,1\n", "line 1", "unknown column \"dmand\""),
        (json!({"file": "f.csv"}), "src;dst;demand\nh0;h1;1\n", "line 1", "separated by a semicolon"),
        (json!({"file": "f.csv"}), "src\tdst\nh0\th1\n", "line 1", "separated by a tab"),
        (json!({"file": "f.csv"}), "src dst demand\nh0 h1 1\n", "line 1", "separated by blanks"),
        (json!({"file": "f.csv"}), "# demands of May\nsrc,dst\nh0,h1\n", "line 1", "the first line is a comment"),
        (json!({"file": "f.csv"}), "# of, May\nsrc,dst\nh0,h1\n", "line 1", "the first line is a comment"),
        (json!({"file": "f.csv"}), "src,dest,demand\nh0,h1,1\n", "line 1", "\"src\" and \"dest\" are not those of"),
        (json!({"file": "f.csv"}), "src,ziel,demand\nh0,h1,1\n", "line 1", "no column \"src\" or \"dst\""),
        (json!({"file": "f.csv"}), "src,dst,dst\nh0,h1,h2\n", "line 1", "the column \"dst\" is there twice"),
        (json!({"file": "f.csv"}), "src,dst\nh0,\n", "line 2", "\"dst\" is empty"),
        (json!({"file": "f.csv"}), "src,dst\nh0\n", "line 2", "no row of the table"),
        (json!({"file": "m.csv"}), ",h0,h1\nh0,3,\n", "line 2", "to itself"),
        (json!({"file": "f.json"}), "{}", "", "no list"),
        (json!({"file": "f.csv"}), "src,dst,demand\nh0,h1,much\n", "flows[0].demand", "\"much\" is not a rate"),
    ] {
        let fault = case(flows, text).expect_err(text);
        assert!(fault.place.contains(place) && fault.what.contains(what), "{text:?}: {fault:?}");
    }
}

proptest! {
    /// Any text is either read or refused, without a panic.
    #[test]
    fn any_text_is_read_or_refused(
        text in "[ -~\n]{0,120}",
        rows in prop::collection::vec((0u32..5, 0u32..5, "[0-9.]{1,4}(Gbps|bps|x)?"), 0..6),
    ) {
        let hpcc: String = rows.iter().map(|(a, b, rate)| format!("{a} {b} {rate} 1us 0\n")).collect();
        let table: String = rows.iter().map(|(a, b, rate)| format!("h{a},h{b},{rate}\n")).collect();
        for text in [text.clone(), format!("4 1 {}\n3\n{hpcc}", rows.len()), format!("src,dst,demand\n{table}{text}")] {
            for name in ["topology.txt", "graph.graphml"] {
                let _ = network_of(json!({"file": name, "capacity": 1}), &text);
            }
            let case = json!({"network": {"kind": "star", "hosts": 3}, "flows": {"file": "flows.csv", "unit": "Mbps"}});
            let read = subak_core::Case::from_value(&case, &mut |_| Ok(text.clone()));
            prop_assert!(read.is_ok() || !read.unwrap_err().hint.is_empty());
        }
    }
}
