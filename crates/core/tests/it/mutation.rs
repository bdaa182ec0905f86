//! Reading a document ends with a consistent network and flows, or with a readable error. Tested with thousands of
//! damaged documents, and with structures that break parsers.

use crate::foreign_formats::{BRITE, DOT, MAP, NATIVE, REPETITA, TEAVAR, TUTORIAL, XML};
use proptest::prelude::*;
use serde_json::{Value, json};
use subak_core::document::Format;
use subak_core::formats::{Defaults, gml, graphml};
use subak_core::rng::Stream;
use subak_core::{Case, InputError, Network, case};

const FILE: &str = r#"{"nodes": [{"id": 1}, {"id": "s", "kind": "switch"}, {"id": "b"}], "multigraph": true,
    "edges": [{"source": 1, "target": "s", "capacity": "1Gbps", "delay": 1e-6}, {"source": "s", "target": "b", "capacity": 5}]}"#;

const GRAPHML: &str = r#"<graphml><key id="c" for="edge" attr.name="capacity"><default>1 Gbps</default></key>
    <graph edgedefault="undirected"><node id="1"/><node id="s"/><node id="b"/>
    <edge source="1" target="s"><data key="c">10Gbps</data></edge><edge source="s" target="b"/></graph></graphml>"#;

const GML_PARTS: &[&str] = &[
    "graph",
    "[",
    "]",
    "node",
    "edge",
    "id",
    "source",
    "target",
    "capacity",
    "label",
    "directed",
    "0",
    "1",
    "-1e9",
    "\"a&b\"",
    "\"",
    "#\n",
    "\n",
    "\u{feff}",
    "é",
    "node [ id 0 ]",
    "node [ id 1 ]",
    "edge [ source 0 target 1 capacity 5 ]",
    "graph [",
];

const JSON: [&str; 4] = [
    r#"{"schema": 1, "network": {"links": [{"id": "l20", "capacity": "20Gbps"}, {"id": "l30", "capacity": 30e9,
        "delay": "1.5us", "buffer": "64KiB", "from": "a", "to": "b"}]}, "flows": [{"id": "fB", "path": ["l20", "l30"],
        "weight": 1.5, "demand": "5Gbps"}, {"id": "m", "paths": [["l20"], ["l30"]]}], "policy": {"kind": "max-min"}}"#,
    r#"{"network": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "link_delay": "1us"},
        "routing": {"seed": 3, "symmetric": true, "metric": "delay", "hash": "pair"}, "policy": {"kind": "alpha-fair", "alpha": 2},
        "flows": [{"src": "h0", "dst": "h3", "subflows": 2, "size": "1MB"}, {"src": "h1", "dst": "h2", "deadline": 1}]}"#,
    r#"{"network": {"file": "net.json"}, "policy": {"kind": "srpt", "epsilon": 0.1},
        "flows": [{"src": "1", "dst": "b", "size": 100}]}"#,
    r#"{"network": {"nodes": [{"id": "a"}, {"id": "b"}], "links": [{"source": "a", "target": "b", "capacity": 9}]},
        "flows": [{"path": ["a->b"], "bandwidth_function": [[0, 0], [2, "10Gbps"], [2.5, 1e11]]}],
        "policy": {"kind": "bandwidth-function"}}"#,
];

const TOML: &str = r#"policy = {kind = "edf"}
network = {kind = "wan", topology = "b4-12", rate = "1 Gbps"}
routing.symmetric = true
[[flows]]
src = "site0"
dst = "h11"
deadline = 2e-3
[[flows]]
path = ["h3->site3", "site3->site6"]
weight = 2
deadline = "1s"
"#;

/// Fragments that often break parsers.
const SHARDS: [&str; 40] = [
    "NaN",
    "-1",
    "0",
    "1e308",
    "1e-400",
    "1e999",
    "-0",
    "18446744073709551616",
    "null",
    "true",
    "\"\"",
    "[]",
    "{}",
    "[[",
    "{\"a\":",
    "\\u0000",
    "\\ud800",
    "\u{0}",
    "\u{feff}",
    "é",
    "\u{1f600}",
    "\"",
    "'",
    ",",
    ":",
    "=",
    "\n",
    "[[flows]]",
    "<",
    "&#0;",
    "<![CDATA[",
    "]]>",
    "<!--",
    "<graph>",
    "inf",
    "nan",
    "1979-05-27",
    "\"-5Gbps\"",
    "\"1e99999Gbps\"",
    "#",
];

/// Damages `text` in one to three places.
fn damage(text: &str, rng: &mut Stream) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..1 + rng.below(3) {
        let at = rng.below(bytes.len() + 1);
        let end = at + rng.below((bytes.len() - at).min(30) + 1);
        match rng.below(8) {
            0 => bytes.splice(at..end, []).for_each(drop),
            1 => bytes.splice(at..at, SHARDS[rng.below(SHARDS.len())].bytes()).for_each(drop),
            2 => bytes.splice(at..end, SHARDS[rng.below(SHARDS.len())].bytes()).for_each(drop),
            3 => bytes.splice(at..at, bytes[at..end].to_vec()).for_each(drop),
            4 => bytes.truncate(at.max(1)),
            5 => bytes.iter_mut().skip(at).take(1).for_each(|b| *b ^= 1 << rng.below(8)),
            // A mild damage: another digit, so that the document often stays valid with another value.
            _ => bytes
                .iter_mut()
                .skip(at)
                .filter(|b| b.is_ascii_digit())
                .take(1)
                .for_each(|b| *b = b'0' + rng.below(10) as u8),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Replaces, removes, renames or duplicates something inside `value`.
fn deform(value: &mut Value, rng: &mut Stream) {
    let junk = || {
        [
            json!(null),
            json!(-1),
            json!(0),
            json!(1e308),
            json!(""),
            json!("x"),
            json!([]),
            json!({}),
            json!(true),
            json!([[[]]]),
            json!("-5Gbps"),
            json!("10Gbps"),
            json!("1us"),
            json!({"kind": "star", "hosts": 2}),
            json!(3),
        ]
    };
    let go_deeper = rng.below(4) > 0;
    match value {
        Value::Array(items) if !items.is_empty() && go_deeper => {
            let i = rng.below(items.len());
            match rng.below(8) {
                0 => drop(items.remove(i)),
                1 => items.push(items[i].clone()),
                _ => deform(&mut items[i], rng),
            }
        }
        Value::Object(map) if !map.is_empty() && go_deeper => {
            let key = map.keys().nth(rng.below(map.len())).cloned().unwrap_or_default();
            match rng.below(8) {
                0 => drop(map.remove(&key)),
                1 => {
                    let value = map.remove(&key).unwrap_or_default();
                    map.insert(format!("{key}x"), value);
                }
                _ => deform(&mut map[&key], rng),
            }
        }
        other => *other = junk()[rng.below(junk().len())].clone(),
    }
}

fn files(path: &str) -> Result<String, InputError> {
    match path {
        "net.json" => Ok(FILE.to_string()),
        _ => Err(InputError::new("", "no such file", "name one that is there")),
    }
}

/// Checks the invariants of a case that was read.
fn assert_sound(case: &Case) {
    assert_network(&case.network);
    let links = case.network.links().len();
    for f in 0..case.flows.len() {
        assert!(case.flows.weight()[f].is_finite() && case.flows.weight()[f] > 0.0);
        assert!(case.flows.demand_bps()[f] >= 0.0);
        assert!(!case.flows.paths_of(f).is_empty());
        for p in case.flows.paths_of(f) {
            let mut path = case.flows.links_of(p).to_vec();
            assert!(!path.is_empty() && path.iter().all(|&l| l.index() < links));
            path.sort_unstable();
            assert!(path.windows(2).all(|w| w[0] != w[1]));
        }
    }
}

fn assert_network(network: &Network) {
    for link in network.links() {
        assert!(link.capacity_bps.is_finite() && link.capacity_bps > 0.0 && !link.id.is_empty());
        assert!(link.from.is_some() == link.to.is_some() && (link.from.is_none() || link.from != link.to));
    }
}

/// Checks that an error message can be printed.
fn assert_readable(fault: &InputError) {
    assert!(!fault.what.is_empty() && !fault.hint.is_empty(), "{fault:?}");
    assert!(fault.to_string().len() < 2000, "{fault:?}");
}

/// Number of documents that were read, and number of documents that were refused.
#[derive(Debug, Default)]
struct Tally(usize, usize);

impl Tally {
    fn case(&mut self, read: Result<Case, InputError>) {
        match read {
            Ok(case) => {
                assert_sound(&case);
                self.0 += 1;
            }
            Err(fault) => {
                assert_readable(&fault);
                self.1 += 1;
            }
        }
    }

    /// Checks that both numbers are large enough for the test to be meaningful.
    fn assert_both(&self, least: usize) {
        assert!(self.0 >= least && self.1 >= least, "{self:?}");
    }
}

#[test]
fn damaged_json_cases() {
    let mut rng = Stream::new(1, "json");
    for text in JSON {
        let mut tally = Tally::default();
        assert_sound(&Case::parse(text, Format::Json, &mut files).unwrap());
        for _ in 0..8_000 {
            tally.case(Case::parse(&damage(text, &mut rng), Format::Json, &mut files));
        }
        tally.assert_both(100);
    }
}

#[test]
fn deformed_values() {
    let mut rng = Stream::new(2, "values");
    for text in JSON {
        let whole: Value = serde_json::from_str(text).unwrap();
        let mut tally = Tally::default();
        for _ in 0..8_000 {
            let mut value = whole.clone();
            (0..1 + rng.below(3)).for_each(|_| deform(&mut value, &mut rng));
            tally.case(Case::from_value(&value, &mut files));
        }
        tally.assert_both(100);
    }
}

#[test]
fn damaged_toml_cases() {
    let mut rng = Stream::new(3, "toml");
    let mut tally = Tally::default();
    assert_sound(&Case::parse(TOML, Format::Toml, &mut files).unwrap());
    for _ in 0..8_000 {
        tally.case(Case::parse(&damage(TOML, &mut rng), Format::Toml, &mut files));
    }
    tally.assert_both(100);
}

#[test]
fn damaged_network_files() {
    let mut rng = Stream::new(4, "files");
    let case = json!({"network": {"file": "f"}, "flows": [{"src": "1", "dst": "b"}]});
    for text in [FILE, GRAPHML] {
        let mut tally = Tally::default();
        assert_sound(&Case::from_value(&case, &mut |_| Ok(text.to_string())).unwrap());
        for _ in 0..8_000 {
            let damaged = damage(text, &mut rng);
            tally.case(Case::from_value(&case, &mut |_| Ok(damaged.clone())));
        }
        tally.assert_both(100);
    }
}

/// Formats of other tools: the file's name, a text, and the keys beside it.
const FOREIGN: [(&str, &str, &str); 8] = [
    ("a.graph", REPETITA, "{}"),
    ("a.txt", NATIVE, r#"{"unit": "Mbps", "range": "low", "capacity": 1e9}"#),
    ("a.xml", XML, r#"{"unit": "Mbps", "capacity": 1e9}"#),
    ("a.dot", DOT, "{}"),
    ("a.brite", BRITE, "{}"),
    ("a.cch", MAP, r#"{"capacity": 1e9}"#),
    ("a.json", TUTORIAL, r#"{"capacity": 1e9}"#),
    ("a.txt", TEAVAR, r#"{"unit": "kbps"}"#),
];

/// Reads a network in a format of another tool.
fn foreign(path: &str, text: &str, beside: &str) -> Result<Network, InputError> {
    let mut value: Value = serde_json::from_str(beside).unwrap();
    value["file"] = path.into();
    case::network_from_value(&value, &mut |_| Ok(text.to_string())).map(|(network, _)| network)
}

#[test]
fn damaged_files_of_other_tools() {
    let mut rng = Stream::new(6, "foreign");
    for (path, text, beside) in FOREIGN {
        let mut tally = Tally::default();
        foreign(path, text, beside).unwrap();
        for _ in 0..4_000 {
            match foreign(path, &damage(text, &mut rng), beside) {
                Ok(network) => {
                    assert_network(&network);
                    tally.0 += 1;
                }
                Err(fault) => {
                    assert_readable(&fault);
                    tally.1 += 1;
                }
            }
        }
        tally.assert_both(100);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_part_of_a_gml_is_read_or_refused(
        parts in prop::collection::vec(prop::sample::select(GML_PARTS), 0..40),
    ) {
        if let Err(fault) = gml::network_with(&parts.join(" "), &Defaults::default()) {
            assert_readable(&fault);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}", bytes: Vec<u8>) {
        for text in [text, String::from_utf8_lossy(&bytes).into_owned()] {
            for format in [Format::Json, Format::Toml] {
                if let Err(fault) = Case::parse(&text, format, &mut files) {
                    assert_readable(&fault);
                }
            }
            for fault in [graphml::network(&text), gml::network_with(&text, &Defaults::default())].map(Result::err) {
                fault.iter().for_each(assert_readable);
            }
        }
    }
}

/// Documents that must be refused without stack overflow, hang, or a message as long as the document.
#[test]
fn nesting_and_nonsense() {
    const DEEP: usize = 200_000;
    const LONG: usize = 10_000_000;
    let deep_json = [
        "[".repeat(DEEP),
        "{\"a\":".repeat(DEEP),
        format!("{{\"flows\": {}", "[".repeat(DEEP)),
        format!("{{\"flows\": [{}", "{\"path\":[".repeat(DEEP)),
        format!("{{\"network\": {}{}}}", "[".repeat(DEEP), "]".repeat(DEEP)),
        format!("{{\"flows\": {}{}}}", "[".repeat(DEEP), "]".repeat(DEEP)),
    ];
    let deep_toml = [
        format!("a = {}", "[".repeat(DEEP)),
        format!("a = {}", "{a=".repeat(DEEP)),
        format!("[{}]", vec!["a"; DEEP].join(".")),
        format!("{} = 1", vec!["a"; DEEP].join(".")),
    ];
    let deep_xml = [
        "<graphml>".repeat(DEEP),
        format!("<graphml>{}{}</graphml>", "<a>".repeat(DEEP), "</a>".repeat(DEEP)),
        format!("<graphml><graph edgedefault='directed'>{}", "<node id='a'>".repeat(DEEP)),
    ];
    let mut rng = Stream::new(5, "nonsense");
    let noise: String = (0..LONG).map(|_| char::from(32 + rng.below(95) as u8)).collect();
    let long = [
        noise,
        "x".repeat(LONG),
        format!("\"{}\"", "x".repeat(LONG)),
        format!("{{\"{}\": 1}}", "x".repeat(LONG)),
        format!("{{\"network\": {{\"kind\": \"{}\"}}}}", "x".repeat(LONG)),
        format!("{{\"network\": [{{\"id\": \"a\", \"capacity\": \"{}\"}}]}}", "9".repeat(LONG)),
        format!("<graphml {}>", (0..500_000).map(|i| format!("a{i}='' ")).collect::<String>()),
        format!("<graphml><{}>", "x".repeat(LONG)),
        "<".repeat(LONG),
    ];
    for text in deep_json.iter().chain(&deep_toml).chain(&deep_xml).chain(&long) {
        for format in [Format::Json, Format::Toml] {
            let fault = Case::parse(text, format, &mut files).unwrap_err();
            assert_readable(&fault);
        }
        assert_readable(&graphml::network(text).unwrap_err());
        assert_readable(&gml::network_with(text, &Defaults::default()).unwrap_err());
        for (path, _, beside) in FOREIGN {
            assert_readable(&foreign(path, text, beside).unwrap_err());
        }
    }
    for text in ["graph { ".to_string() + &"{ ".repeat(DEEP), "<network>".to_string() + &"<a>".repeat(DEEP)] {
        let path = if text.starts_with('<') { "a.xml" } else { "a.dot" };
        let fault = foreign(path, &text, "{}").unwrap_err();
        assert!(fault.what.contains("nested too deeply"), "{fault}");
    }
    let nodes = |letter| (0..5000).map(|i| format!("{letter}{i} ")).collect::<String>();
    let wide = format!("graph {{ {{ {} }} -- {{ {} }} }}", nodes('a'), nodes('b'));
    assert!(foreign("a.dot", &wide, "{}").unwrap_err().what.contains("too many edges"));
    for text in ["graph [".repeat(DEEP), format!("graph [ node [ id {} ] ]", "[ a ".repeat(DEEP))] {
        let fault = gml::network_with(&text, &Defaults::default()).unwrap_err();
        assert!(fault.what.contains("nested too deeply") || fault.what.contains("no key begins"), "{fault}");
    }
    for text in [&deep_json[1], &deep_json[4], &deep_json[5]] {
        assert!(Case::parse(text, Format::Json, &mut files).unwrap_err().what.contains("nested too deeply"));
    }
    assert!(graphml::network(&deep_xml[1]).unwrap_err().what.contains("nested too deeply"));
}

#[test]
fn a_large_case_is_read_whole() {
    const FLOWS: usize = 200_000;
    let mut text = String::from(r#"{"network": {"kind": "fat-tree", "k": 8}, "flows": ["#);
    for f in 0..FLOWS {
        let comma = if f == 0 { "" } else { "," };
        text += &format!(
            r#"{comma}{{"id": "f{f}", "src": "h{}", "dst": "h{}", "weight": {}}}"#,
            f % 128,
            (f + 1 + f / 128 % 127) % 128,
            1 + f % 3
        );
    }
    text += "]}";
    let case = Case::parse(&text, Format::Json, &mut files).unwrap();
    assert_eq!(case.flows.len(), FLOWS);
    assert_eq!(case.flows.weight()[FLOWS - 1], (1 + (FLOWS - 1) % 3) as f64);
    assert_sound(&case);
    let broken = text.replace("\"f199999\"", "\"f199998\"");
    let fault = Case::parse(&broken, Format::Json, &mut files).unwrap_err();
    assert_eq!(
        (fault.place.as_str(), fault.what.as_str()),
        ("flows[199999].id", "flows[199998] has the id \"f199998\" already")
    );
}
