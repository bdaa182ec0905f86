//! Networks and demands in the formats of other tools, through the reader that cases and specs use.

use serde_json::{Value, json};
use subak_core::case::{network_from_text, network_from_value};
use subak_core::{Case, InputError, Network};

fn network(path: &str, text: &str, beside: Value) -> Result<Network, InputError> {
    let mut value = beside;
    value["file"] = json!(path);
    network_from_value(&value, &mut |_| Ok(text.to_string())).map(|(network, _)| network)
}

/// Each link as `id capacity delay`, in Mbit/s and us.
fn links(network: &Network) -> Vec<String> {
    network.links().iter().map(|l| format!("{} {} {}", l.id, l.capacity_bps / 1e6, l.delay_ns / 1000)).collect()
}

fn fault(path: &str, text: &str, beside: Value) -> String {
    let fault = network(path, text, beside).unwrap_err();
    format!("{}: {}: {}", fault.place, fault.what, fault.hint)
}

pub(crate) const REPETITA: &str = "NODES 3\nlabel x y\n0_A 0 0\n1_B 1 0\n2_C 1 1\n\nEDGES 3\nlabel src dest weight bw delay\n\
                        e0 0 1 10 2400000 70\ne1 1 0 10 2400000 70\ne2 1 2 5 10000 1913\n";

#[test]
fn repetita() {
    let read = network("a.graph", REPETITA, json!({})).unwrap();
    assert_eq!(links(&read), ["0->1 2400 70", "1->0 2400 70", "1->2 10 1913"]);
    assert_eq!(read.hosts().count(), 3);
    assert!(read.notes().iter().any(|note| note.contains("\"weight\"")), "{:?}", read.notes());
    let read = network("a.graph", REPETITA, json!({"unit": "bps", "hosts": ["2"]})).unwrap();
    assert_eq!((links(&read)[2].as_str(), read.hosts().count()), ("1->2 0.01 1913", 1));
    let cut = REPETITA.lines().take(9).collect::<Vec<_>>().join("\n");
    assert_eq!(
        fault("a.graph", &cut, json!({})).split(": ").nth(1).unwrap(),
        "3 lines of EDGES are announced, 1 follow"
    );
    let wrong = REPETITA.replace("e2 1 2", "e2 1 3");
    assert!(fault("a.graph", &wrong, json!({})).starts_with("line 11: there is no node \"3\""));
    assert!(
        fault("a.graph", REPETITA, json!({"capacity": "1Gbps"})).contains("\"capacity\" beside the file is not used")
    );
}

/// The case with this network and flows from a file, with the same text for both.
fn case(
    network: Value,
    flows: Value,
    read: &mut dyn FnMut(&str) -> Result<String, InputError>,
) -> Result<Case, InputError> {
    Case::from_value(&json!({"network": network, "flows": flows}), read)
}

pub(crate) const NATIVE: &str = "?SNDlib native format; type: network; version: 1.0\n# network pdh\nMETA (\n unit = x\n)\n\
    NODES (\n N1 ( 7.0 50.1 )\n N2 ( 8.0 50.2 )\n N3 ( 9.0 50.3 )\n)\n\
    LINKS (\n L1 ( N1 N2 ) 40.00 0.00 0.00 0.00 ( 155.00 1.00 622.00 2.00 )\n L2 ( N2 N3 ) 0.00 0.00 0.00 0.00 ( 155.00 1.00 622.00 2.00 )\n\
    L3 ( N1 N3 ) 0.00 0.00 0.00 0.00 ( )\n)\nDEMANDS (\n D1 ( N1 N3 ) 2 30.00 UNLIMITED\n D2 ( N2 N1 ) 1 0.00 3\n)\nADMISSIBLE_PATHS ( \n)\n";

pub(crate) const XML: &str = r#"<?xml version="1.0" encoding="ISO-8859-1"?>
<network xmlns="http://sndlib.zib.de/network" version="1.0">
 <meta><unit>MBITPERSEC</unit></meta>
 <networkStructure>
  <nodes coordinatesType="geographical">
   <node id="N1"><coordinates><x>7.0</x><y>50.1</y></coordinates></node>
   <node id='N2'/>
  </nodes>
  <links>
   <link id="L1"><source>N1</source><target>N2</target>
    <preInstalledModule><capacity>0.0</capacity><cost>3.0</cost></preInstalledModule>
    <additionalModules><addModule><capacity>40.0</capacity><cost>9.0</cost></addModule></additionalModules>
   </link>
  </links>
 </networkStructure>
 <demands><demand id="D1"><source>N2</source><target>N1</target><routingUnit>1</routingUnit><demandValue>5.5</demandValue>
  <admissiblePaths><admissiblePath id="P0"><linkId>L1</linkId></admissiblePath></admissiblePaths></demand></demands>
</network>"#;

#[test]
fn sndlib() {
    let beside = json!({"unit": "Mbps", "range": "high", "capacity": "1Gbps", "delay": "5us"});
    let read = network("pdh.txt", NATIVE, beside.clone()).unwrap();
    let expected = ["N1->N2 40 5", "N2->N1 40 5", "N2->N3 622 5", "N3->N2 622 5", "N1->N3 1000 5", "N3->N1 1000 5"];
    assert_eq!(links(&read), expected);
    assert_eq!(read.hosts().count(), 3);
    assert!(fault("pdh.txt", NATIVE, json!({"range": "low"})).starts_with("unit: SNDlib's files state no unit"));
    assert!(
        fault("pdh.txt", NATIVE, json!({"unit": "Mbps"})).starts_with("line 13: link \"L2\" has modules of 155 to 622")
    );
    assert!(fault("pdh.txt", NATIVE, json!({"unit": "Mbps", "range": "low"})).contains("the edge has no capacity"));
    let read = network("two.xml", XML, json!({})).unwrap();
    assert_eq!(links(&read), ["N1->N2 40 0", "N2->N1 40 0"]);
    assert!(
        fault("two.xml", &XML.replace("<target>N2", "<target>N4"), json!({}))
            .starts_with("line 10: there is no node \"N4\"")
    );
    assert!(fault("two.xml", &XML[..XML.find("</links>").unwrap()], json!({})).contains("the file ends inside"));
    let (_, metric) = network_from_text(XML, "two.xml").unwrap();
    assert_eq!(format!("{metric:?}"), "Hops");
}

#[test]
fn demands_of_sndlib_and_repetita() {
    let mut read = |path: &str| {
        Ok(match path {
            "pdh.txt" => NATIVE,
            "two.xml" => XML,
            "a.graph" => REPETITA,
            _ => "DEMANDS 2\nlabel src dest bw\nd0 0 2 300\nd1 1 0 17\n",
        }
        .to_string())
    };
    let beside = json!({"file": "pdh.txt", "unit": "Mbps", "range": "high", "capacity": "1Gbps"});
    let flows = |case: &Case| -> Vec<String> {
        (0..case.flows.len()).map(|f| format!("{} {}", case.flows.id(f), case.flows.demand_bps()[f] / 1e6)).collect()
    };
    let found = case(beside, json!({"file": "pdh.txt", "unit": "Mbps"}), &mut read).unwrap();
    assert_eq!(flows(&found), ["D1 60"]);
    let pooled = json!({"file": "pdh.txt", "unit": "Mbps", "subflows": 2});
    let beside = json!({"file": "pdh.txt", "unit": "Mbps", "range": "high", "capacity": "1Gbps"});
    let whole = json!({"network": beside, "flows": pooled, "routing": {"paths": "shortest"}});
    let found = Case::from_value(&whole, &mut read).unwrap();
    assert_eq!((found.flows.len(), found.flows.path_count()), (1, 2));
    let found = case(json!({"file": "two.xml"}), json!({"file": "two.xml"}), &mut read).unwrap();
    assert_eq!(flows(&found), ["D1 5.5"]);
    let found = case(json!({"file": "a.graph"}), json!({"file": "a.demands"}), &mut read).unwrap();
    assert_eq!(flows(&found), ["d0 0.3", "d1 0.017"]);
}

pub(crate) const DOT: &str = "/* a pod */ graph \"lab\" {\n node [shape=box]; edge [capacity=\"10Gbps\", delay=\"2us\"]\n\
        h1 [kind=host]; h2 [kind=\"host\"]; subgraph cluster_0 { label = x; s1 [kind=switch]; s2 [kind=switch] }\n\
        h1:eth0 -- s1 -- s2 [capacity=\"40Gbps\"]; s2 -- h2\n s1 -- {s2; h2}\n}";

#[test]
fn dot() {
    let read = network("lab.dot", DOT, json!({})).unwrap();
    let both = |id: &str, id2: &str, rest: &str| [format!("{id} {rest}"), format!("{id2} {rest}")];
    let expected = [
        both("h1->s1", "s1->h1", "40000 2"),
        both("s1->s2", "s2->s1", "40000 2"),
        both("s2->h2", "h2->s2", "10000 2"),
        both("s1->h2", "h2->s1", "10000 2"),
        both("s1->s2#1", "s2->s1#1", "10000 2"),
    ];
    let mut found = links(&read);
    let mut expected = expected.concat();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(read.hosts().count(), 2);
    assert!(read.notes().iter().any(|note| note.contains("\"port\"")), "{:?}", read.notes());
    let read =
        network("d.gv", "digraph { a -> b [capacity=5]; b -> a [capacity=2] }", json!({"unit": "Mbps"})).unwrap();
    assert_eq!(links(&read), ["a->b 5 0", "b->a 2 0"]);
    assert!(fault("d.dot", "graph { a -- b [bw=10] }", json!({})).contains("did you mean \"capacity\"?"));
    assert!(fault("d.dot", "graph {\n a -- b [capacity=1e9", json!({})).starts_with("line 2: "));
    let read =
        network("d.dot", "graph { a -- \"b\\\n1\" [label=<<b>x</b>>, capacity=\"1\"+\"e9\"] }", json!({})).unwrap();
    assert_eq!(links(&read), ["a->b1 1000 0", "b1->a 1000 0"]);
    let strict = "strict graph { s -- t [capacity=1e9, delay=\"1e-6\"]; t -- s [capacity=3e9] }";
    assert_eq!(links(&network("d.dot", strict, json!({})).unwrap()), ["s->t 3000 1", "t->s 3000 1"]);
    let strict = strict.replace("--", "->").replace("graph", "digraph");
    assert_eq!(links(&network("d.dot", &strict, json!({})).unwrap()), ["s->t 1000 1", "t->s 3000 0"]);
    assert!(fault("d.dot", "graph { a -> b [capacity=1] }", json!({})).contains("-> is no edge here"));
    assert!(fault("d.dot", "digraph { a -- b [capacity=1] }", json!({})).contains("-- is no edge here"));
    assert!(fault("d.dot", &"graph { { ".repeat(100), json!({})).contains("line 1"));
}

pub(crate) const BRITE: &str = "Topology: ( 3 Nodes, 2 Edges )\nModel (1 - RTWaxman): 3 3 3 1\n\nNodes: ( 3 )\n0 1 3 2 2 -1 RT_NODE\n1 5 3 2 2 -1 RT_NODE\n\
        2 6 3 2 2 -1 RT_NODE\n\nEdges: ( 2 )\n0 0 1 3.0 1.1 10.0 -1 -1 E_RT U\n1 1 2 3.0 0.5 622.0 -1 -1 E_RT D\n";

#[test]
fn brite() {
    let read = network("a.brite", BRITE, json!({})).unwrap();
    assert_eq!(links(&read), ["1->0 10 1100", "0->1 10 1100", "1->2 622 500"]);
    assert!(
        fault("a.brite", &BRITE.replace("1 1 2 3.0", "1 1 9 3.0"), json!({}))
            .starts_with("line 11: there is no node \"9\"")
    );
}

pub(crate) const MAP: &str = "1 @Paris,+France + bb (2) &1 -> <2> <3> {-7} =a.x.net r0\n2 @Lyon (1) -> <1> =b.x.net! r1\n3 @Nice (1) -> <1> =c r1\n-7 =ext r1\n";

#[test]
fn rocketfuel() {
    let read = network("1221.cch", MAP, json!({"capacity": "1Gbps"})).unwrap();
    assert_eq!(links(&read), ["1->2 1000 0", "2->1 1000 0", "1->3 1000 0", "3->1 1000 0"]);
    assert!(fault("1221.cch", MAP, json!({})).contains("the edge has no capacity"));
    let list = "Paris1 Lyon2 3\nLyon2 Paris1 3\nParis1 Nice3 2.5\n";
    let read = network("1221/latencies.intra", list, json!({"capacity": "1Gbps"})).unwrap();
    assert_eq!(
        links(&read),
        ["Paris1->Lyon2 1000 3000", "Lyon2->Paris1 1000 3000", "Nice3->Paris1 1000 2500", "Paris1->Nice3 1000 2500"]
    );
    let read = network("weights.intra", list, json!({"capacity": "1Gbps", "delay": "1ms"})).unwrap();
    assert_eq!(links(&read)[3], "Paris1->Nice3 1000 1000");
    assert!(read.notes().iter().any(|note| note.contains("\"weight\"")));
}

pub(crate) const TUTORIAL: &str = r#"{"hosts": {"h1": {"ip": "10.0.1.1/24"}, "h2": {}}, "switches": {"s1": {}, "s2": {}},
        "links": [["h1", "s1-p1"], ["s1-p2", "s2-p1", "5ms", 0.5], ["h2", "s2-p2", 2]]}"#;

#[test]
fn mininet_and_p4() {
    let read = network("topology.json", TUTORIAL, json!({"capacity": "10Mbps"})).unwrap();
    let expected =
        ["h1->s1 10 0", "s1->h1 10 0", "s1->s2 0.5 5000", "s2->s1 0.5 5000", "h2->s2 10 2000", "s2->h2 10 2000"];
    assert_eq!(links(&read), expected);
    assert_eq!(read.hosts().count(), 2);
    let utils = r#"{"p4_src": "a.p4", "topology": {"default_bw": 100, "links": [["h1", "s1"], ["h2", "s1", {"bw": 5, "queue_length": 9}]],
        "hosts": {"h1": {}, "h2": {}}, "switches": {"s1": {}}}}"#;
    let read = network("p4app.json", utils, json!({})).unwrap();
    assert_eq!(links(&read), ["h1->s1 100 0", "s1->h1 100 0", "h2->s1 5 0", "s1->h2 5 0"]);
    let general = utils.replace("\"default_bw\": 100", "\"default\": {\"bw\": 10, \"delay\": 2, \"weight\": 7}");
    let read = network("p4app.json", &general, json!({"capacity": "1Gbps"})).unwrap();
    assert_eq!(links(&read), ["h1->s1 10 2000", "s1->h1 10 2000", "h2->s1 5 2000", "s1->h2 5 2000"]);
    assert!(read.notes().iter().any(|note| note.contains("\"weight\"")), "{:?}", read.notes());
    let editor = r#"{"application": {}, "controllers": [], "hosts": [{"number": "1", "opts": {"hostname": "h1"}}],
        "switches": [{"number": "1", "opts": {"hostname": "s1"}}], "links": [{"src": "h1", "dest": "s1", "opts": {"bw": 10, "delay": "5ms"}}]}"#;
    let read = network("lab.mn", editor, json!({})).unwrap();
    assert_eq!(links(&read), ["h1->s1 10 5000", "s1->h1 10 5000"]);
    let lossy = editor.replace("\"bw\": 10", "\"bw\": 10, \"loss\": 2");
    assert!(fault("lab.mn", &lossy, json!({})).starts_with("links[0].loss: the link loses packets"));
    let unknown = TUTORIAL.replace("[\"h2\", \"s2-p2\", 2]", "[\"h2\", \"s3-p2\", 2]");
    assert!(
        fault("topology.json", &unknown, json!({"capacity": 1e7})).starts_with("links[2]: there is no node \"s3\"")
    );
}

pub(crate) const TEAVAR: &str =
    "to_node   from_node   capacity          prob_failure\n1           2          5000000           .004\n";

#[test]
fn teavar() {
    let read = network("topology.txt", TEAVAR, json!({"unit": "kbps"})).unwrap();
    assert_eq!(links(&read), ["1->2 5000 0"]);
    assert!(read.notes().iter().any(|note| note.contains("prob_failure")));
    assert!(fault("topology.txt", TEAVAR, json!({})).starts_with("unit: TEAVAR's files state no unit"));
}

#[test]
fn formats_that_are_not_read_are_named() {
    let fault = network_from_text("<gexf/>", "a.gexf").unwrap_err();
    assert!(!fault.what.is_empty());
    let fault = network_from_text("a b\n", "a.edgelist").unwrap_err();
    assert!(fault.hint.contains("networkx.node_link_data"), "{fault}");
    assert!(
        network("a.json", "{\"nodes\": [], \"links\": []}", json!({"unit": "apples"}))
            .unwrap_err()
            .what
            .contains("no unit of rates")
    );
}
