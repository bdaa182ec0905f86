//! Invalid specs are refused, with the place of each error, its cause and a hint.

use crate::common::{ran, rows};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use subak_core::InputError;
use subak_lab::{Spec, ValidSpec};

fn good() -> Value {
    json!({
        "schema": 1,
        "name": "good",
        "network": {"kind": "star", "hosts": 4, "rate": "10Gbps", "link_delay": "1us"},
        "routing": {"seed": 3, "symmetric": true},
        "workload": {"kind": "poisson", "sizes": "web-search", "load": 0.5},
        "policy": {"kind": "max-min"},
        "scheme": [{"name": "ideal"}, {"name": "dctcp", "label": "K", "params": {"k": 65}}],
        "measure": {"fct": true, "rates": "100us", "queues": "1ms"},
        "run": {"duration": "1ms", "seeds": 2, "warmup": "100us", "drain": "5ms"},
        "packets": {"mtu": 1500, "header": 54, "ack": 64},
        "fault": [
            {"kind": "loss", "kinds": ["data"], "probability": 0.01, "links": ["h0->switch0"], "from": 0, "until": "1ms"},
            {"kind": "down", "link": "switch0->h1", "down": "100us", "up": "200us"},
        ],
    })
}

fn validate(value: Value) -> Result<ValidSpec, InputError> {
    Spec::from_value(value, PathBuf::new())?.validate()
}

/// The valid spec `good` with the value at a JSON pointer replaced or removed. The parent must exist.
fn with(pointer: &str, value: Option<Value>) -> Value {
    let mut spec = good();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match spec.pointer_mut(parent).unwrap() {
        Value::Object(map) => match value {
            Some(value) => drop(map.insert(key.to_string(), value)),
            None => drop(map.remove(key)),
        },
        Value::Array(list) => list[key.parse::<usize>().unwrap()] = value.unwrap(),
        other => panic!("{other}"),
    }
    spec
}

#[test]
fn the_good_one_is_good() {
    let spec = validate(good()).unwrap();
    assert_eq!((spec.len(), spec.schemes[1].label.as_str(), spec.seeds.as_slice()), (4, "K", &[1, 2][..]));
}

#[test]
fn each_fault_is_named_with_its_place_and_a_mend() {
    let steps = |flow: Value| Some(json!({"kind": "steps", "flows": [flow]}));
    let convergence = |c: Value| Some(json!({"convergence": c}));
    let table: Vec<(&str, Option<Value>, &str)> = vec![
        ("/schema", Some(json!(2)), "schema"),
        ("/name", Some(json!(7)), "name"),
        ("/colour", Some(json!("red")), "colour"),
        ("/network", None, "network"),
        ("/network", Some(json!("star")), "network"),
        ("/network/kind", Some(json!("torus")), "network.kind"),
        ("/network/hosts", Some(json!(0)), "network.hosts"),
        ("/network/rate", Some(json!("10 parsecs")), "network.rate"),
        ("/run/duration", Some(json!("8640001s")), "run.duration"),
        ("/run/drain", Some(json!("7201s")), "run.drain"),
        ("/packets/mtu", Some(json!(65_536)), "packets.mtu"),
        (
            "/workload",
            Some(json!({"kind": "steps", "flows": [
                {"id": "a", "src": "h0", "dst": "h1"}, {"src": "h0", "dst": "h1"}, {"id": "a", "src": "h0", "dst": "h2"}]})),
            "workload.flows[2].id",
        ),
        ("/network/rate", Some(json!(-1)), "network.rate"),
        ("/network/rate", Some(json!("NaN")), "network.rate"),
        ("/network/rate", Some(json!([1e9, "fast"])), "network.rate[1]"),
        ("/network/nic", Some(json!("turn")), "network.nic"),
        ("/network/nic", Some(json!(true)), "network.nic"),
        ("/network/nic", Some(json!(["queue", "turnz"])), "network.nic[1]"),
        ("/network/hosts", Some(json!(1)), "workload.kind"),
        ("/network/rate", Some(json!(10)), "network"),
        ("/routing/seed", Some(json!(-1)), "routing.seed"),
        ("/workload", None, "workload"),
        ("/workload/kind", Some(json!("bursty")), "workload.kind"),
        ("/workload/load", Some(json!(1.2)), "workload.load"),
        ("/workload/load", Some(json!(0)), "workload.load"),
        ("/workload/load", Some(json!("60%")), "workload.load"),
        ("/workload/load", Some(json!([0.5, 1.5])), "workload.load[1]"),
        ("/workload/load", Some(json!([])), "workload.load"),
        ("/workload/load", None, "workload.load"),
        ("/workload/sizes", Some(json!("bing")), "workload.sizes"),
        ("/workload/sizes", Some(json!([["web-search"]])), "workload.sizes[0]"),
        ("/workload/epoch", Some(json!("1ms")), "workload.epoch"),
        ("/workload", Some(json!({"kind": "incast", "senders": 0})), "workload.senders"),
        ("/workload", Some(json!({"kind": "incast", "senders": 3, "receiver": "h9"})), "workload.receiver"),
        ("/workload", Some(json!({"kind": "churn"})), "workload.epoch"),
        ("/workload", Some(json!({"kind": "churn", "epoch": 0})), "workload.epoch"),
        ("/workload", steps(json!({})), "workload.flows[0]"),
        (
            "/workload",
            Some(json!({"kind": "steps", "jitter": "1ms",
                "flows": [{"src": "h0", "dst": "h1", "start": "1ms", "stop": "2ms"}]})),
            "workload.jitter",
        ),
        ("/workload", steps(json!({"src": "h0", "dst": "h0"})), "workload.flows[0].dst"),
        ("/workload", steps(json!({"src": "h0", "dst": "h7"})), "workload.flows[0].dst"),
        ("/workload", steps(json!({"path": []})), "workload.flows[0].paths[0]"),
        ("/workload", steps(json!({"path": ["h0->h1"]})), "workload.flows[0].paths[0][0]"),
        ("/workload", steps(json!({"path": ["h0->switch0", "h0->switch0"]})), "workload.flows[0].paths[0][1]"),
        ("/workload", steps(json!({"path": ["h0->switch0", "h1->switch0"]})), "workload.flows[0].paths[0][1]"),
        ("/workload", steps(json!({"src": "h0", "dst": "h1", "weight": 0})), "workload.flows[0].weight"),
        ("/workload", steps(json!({"src": "h0", "dst": "h1", "size": 0})), "workload.flows[0].size"),
        ("/workload", steps(json!({"src": "h0", "dst": "h1", "stop": 0})), "workload.flows[0].stop"),
        ("/workload", steps(json!({"src": "h0", "dst": "h1", "demand": 0})), "workload.flows[0].demand"),
        ("/policy/kind", Some(json!("fastest")), "policy.kind"),
        ("/policy/kind", Some(json!("alpha-fair")), "policy.alpha"),
        ("/policy/kind", Some(json!("edf")), "policy.kind"),
        ("/policy/kind", Some(json!("bandwidth-function")), "policy.kind"),
        ("/policy/alpha", Some(json!(1)), "policy.alpha"),
        ("/policy", Some(json!({"kind": "alpha-fair", "alpha": [1, -1]})), "policy.alpha[1]"),
        ("/policy", Some(json!({"kind": "fct", "epsilon": 1})), "policy.epsilon"),
        ("/scheme/0/name", Some(json!("numfabric")), "policy.kind"),
        ("/scheme", None, "scheme"),
        ("/scheme", Some(json!([])), "scheme"),
        ("/scheme", Some(json!({"name": "dctcp"})), "scheme"),
        ("/scheme/0/name", Some(json!("dctpc")), "scheme[0].name"),
        ("/scheme/0/param", Some(json!({})), "scheme[0].param"),
        ("/scheme/1/params", Some(json!({"kk": 1})), "scheme[1].params.kk"),
        ("/scheme/1/params", Some(json!({"k": "many"})), "scheme[1].params.k"),
        ("/scheme/0", Some(json!({"name": "dctcp", "label": "K"})), "scheme"),
        ("/measure/rates", Some(json!(0)), "measure.rates"),
        ("/measure/rates", Some(json!("50ns")), "measure.rates"),
        ("/measure/convergence", Some(json!({})), "measure.convergence"),
        ("/run", None, "run"),
        ("/run/duration", None, "run.duration"),
        ("/run/duration", Some(json!("0s")), "run.duration"),
        ("/run/duration", Some(json!("50 b")), "run.duration"),
        ("/run/duration", Some(json!("1000 days")), "run.duration"),
        ("/run/duration", Some(json!(1e7)), "run.duration"),
        ("/run/duration", Some(json!("7200s")), "workload"),
        ("/run/warmup", Some(json!("1ms")), "run.warmup"),
        ("/run/seeds", Some(json!(0)), "run.seeds"),
        ("/run/seeds", Some(json!([1, 1])), "run.seeds"),
        ("/run/seeds", Some(json!([1, 2.5])), "run.seeds[1]"),
        ("/packets/mtu", Some(json!(40)), "packets.header"),
        ("/packets/ack", Some(json!(0)), "packets.ack"),
        ("/fault/0/kind", Some(json!("fire")), "fault[0].kind"),
        ("/fault/0/probability", Some(json!(1.01)), "fault[0].probability"),
        ("/fault/0/probability", Some(json!([0.1, 2])), "fault[0].probability[1]"),
        ("/fault/0/kinds", Some(json!(["data", "mail"])), "fault[0].kinds[1]"),
        ("/fault/0/links", Some(json!(["nowhere"])), "fault[0].links[0]"),
        ("/fault/1/link", Some(json!("h0->h1")), "fault[1].link"),
        ("/fault/1/up", Some(json!("1us")), "fault[1].up"),
        ("/fault/1", Some(json!({"kind": "capacity", "link": "h0->switch0", "at": 0})), "fault[1].capacity"),
        ("/fault/1", Some(json!({"kind": "capacity", "link": "h0", "capacity": 1e9, "at": 0})), "fault[1].link"),
        (
            "/fault/1",
            Some(json!({"kind": "capacity", "link": "h0->switch0", "capacity": 0, "at": 0})),
            "fault[1].capacity",
        ),
        ("/fault/1", Some(json!({"kind": "capacity", "link": "h0->switch0", "capacity": 1e9})), "fault[1].at"),
    ];
    for (pointer, value, place) in table {
        let shown = format!("{pointer} = {value:?}");
        let Err(fault) = validate(with(pointer, value)) else { panic!("{shown} passed") };
        assert_eq!(fault.place, place, "{shown}: {fault}");
        assert!(!fault.what.is_empty() && !fault.hint.is_empty(), "{shown}: {fault:?}");
    }
    let fault = validate(with("/network", Some(json!({"file": "no such file.json"})))).unwrap_err();
    assert!(fault.file.is_some_and(|name| name.ends_with("no such file.json")) && !fault.hint.is_empty());
    let mut endless = with("/workload", Some(json!({"kind": "poisson", "sizes": "fixed", "size": 1000, "load": 1})));
    endless["run"]["duration"] = json!("2000s");
    assert!(validate(endless).unwrap_err().what.contains("flows"));
    let mut settling = with("/workload", Some(json!({"kind": "permutation"})));
    for bad in
        [json!({"within": 2}), json!({"of": "guessed"}), json!({"share": 0}), json!({"hold": "-1ms"}), json!({"x": 1})]
    {
        settling["measure"] = convergence(bad.clone()).unwrap();
        let fault = validate(settling.clone()).unwrap_err();
        assert!(fault.place.starts_with("measure.convergence."), "{bad}: {fault}");
    }
}

#[test]
fn schemes_and_workloads_that_cannot_serve_the_policy_are_refused() {
    let spec = |policy: Value, scheme: Value, workload: Value| {
        let mut spec = good();
        (spec["policy"], spec["scheme"], spec["workload"]) = (policy, json!([scheme]), workload);
        spec["measure"] = json!({});
        spec["fault"] = json!([]);
        validate(spec).map(drop).map_err(|e| e.place)
    };
    let log = json!({"kind": "alpha-fair", "alpha": 1});
    let fct = json!({"kind": "fct"});
    let functions = json!({"kind": "bandwidth-function"});
    let one = |more: Value| {
        let mut flow = json!({"src": "h0", "dst": "h1"});
        flow.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"kind": "steps", "flows": [flow]})
    };
    let (plain, sized) = (one(json!({})), one(json!({"size": "1MB"})));
    let function = one(json!({"bandwidth_function": [[0, 0], [2, "10Gbps"]]}));
    let named = |name: &str| json!({"name": name});
    let at = |place: &str| Err(place.to_string());
    for name in ["numfabric", "xwi-s-perc", "dgd", "rcp-star", "ideal", "dctcp", "pfabric", "reno"] {
        assert_eq!(spec(log.clone(), named(name), plain.clone()), Ok(()), "{name}");
        let serves = !["xwi-s-perc", "dgd", "rcp-star"].contains(&name);
        let served = if serves { Ok(()) } else { at("policy.kind") };
        assert_eq!(spec(fct.clone(), named(name), sized.clone()), served, "{name}");
        assert_eq!(spec(fct.clone(), named(name), plain.clone()), at("workload.flows[0].size"), "{name}");
    }
    for name in ["s-perc", "s-perc-star", "fair", "charny", "n-perc", "rcp", "numfabric-swift"] {
        assert_eq!(spec(json!({"kind": "max-min"}), named(name), plain.clone()), Ok(()), "{name}");
        // These schemes support one policy, and run under it.
        assert_eq!(spec(log.clone(), named(name), plain.clone()), Ok(()), "{name}");
        let asked = json!({"name": name, "policy": log.clone()});
        assert_eq!(spec(json!({"kind": "max-min"}), asked, plain.clone()), at("scheme[0].policy.kind"), "{name}");
    }
    assert_eq!(spec(json!({"kind": "max-min"}), named("dgd"), plain.clone()), at("policy.kind"));
    assert_eq!(spec(functions.clone(), named("numfabric"), function.clone()), Ok(()));
    assert_eq!(spec(functions.clone(), named("rcp-star"), function), at("policy.kind"));
    assert_eq!(spec(functions, named("numfabric"), plain.clone()), at("workload.flows[0].bandwidth_function"));
    let linear = json!({"kind": "alpha-fair", "alpha": 0});
    assert_eq!(spec(linear.clone(), named("ideal"), plain.clone()), Ok(()));
    assert_eq!(spec(linear, named("numfabric"), plain.clone()), at("policy.kind"));
    let swept = json!({"kind": ["alpha-fair", "max-min"], "alpha": 1});
    assert_eq!(spec(swept, named("ideal"), plain.clone()), at("policy.alpha"));
    let own = json!({"name": "rcp-star", "params": {"alpha": 2}});
    assert_eq!(spec(log, own, plain), at("policy"));
    let churn = json!({"kind": "churn", "epoch": "1ms"});
    assert_eq!(spec(fct, named("numfabric"), churn), at("policy.kind"));
    let edf = |more: Value| spec(json!({"kind": "edf"}), named("numfabric"), one(more));
    assert_eq!(edf(json!({"deadline": "2ms"})), Ok(()));
    assert_eq!(edf(json!({"deadline": 0})), at("workload.flows[0].deadline"));
    let twice = json!({"kind": "steps", "flows": [{"paths": [["h0->switch0"], ["h0->switch0"]]}]});
    assert_eq!(spec(json!({"kind": "max-min"}), named("ideal"), twice), at("workload.flows[0].paths[1]"));
}

#[test]
fn names_that_are_nearly_right_are_recognized() {
    let hint = |pointer: &str, value: Value| validate(with(pointer, Some(value))).unwrap_err().hint;
    assert!(hint("/scheme/0/name", json!("dctpc")).contains("did you mean \"dctcp\"?"));
    assert!(hint("/fault/1/link", json!("switch->h1")).contains("did you mean \"switch0->h1\"?"));
    assert!(hint("/fault/0/links", json!(["h0-switch0"])).contains("did you mean \"h0->switch0\"?"));
    let incast = json!({"kind": "incast", "senders": 2, "receiver": "host1"});
    assert!(hint("/workload", incast.clone()).contains("known: h0, h1, h2, h3"));
    // For a large network, the hint does not list all names.
    let mut large = with("/network/hosts", Some(json!(1000)));
    large["workload"] = json!({"kind": "incast", "senders": 2, "receiver": "h_77"});
    let fault = validate(large).unwrap_err();
    assert!(fault.hint.contains("did you mean") && fault.hint.len() < 100, "{fault}");
}

#[test]
fn samples_without_end_are_refused() {
    let spec = |rates: &str, queues: &str, hosts: u64| {
        let mut spec = with("/workload", Some(json!({"kind": "permutation"})));
        spec["network"]["hosts"] = json!(hosts);
        spec["run"]["duration"] = json!("50ms");
        spec["measure"] = json!({"rates": rates, "queues": queues});
        validate(spec)
    };
    // 300 links every 100 ns for 50 ms are 150 million rows; 20 million are allowed.
    let fault = spec("1ms", "100ns", 150).unwrap_err();
    assert_eq!((fault.place.as_str(), fault.hint.as_str()), ("measure.queues", "sample less often: every 1us or more"));
    assert!(spec("1ms", "1us", 150).is_ok());
    assert_eq!(spec("100ns", "1ms", 150).unwrap_err().place, "measure.rates");
    assert!(spec("100ns", "1ms", 40).is_ok());
}

#[test]
fn text_that_is_no_spec_is_refused() {
    for bad in ["", "= 1", "network = \"star", "[network]\nkind = 1\nkind = 2", "x = nan", "[[scheme]]\nname = []"] {
        let fault = Spec::from_toml(bad).and_then(Spec::validate).unwrap_err();
        assert!(!fault.what.is_empty() && !fault.hint.is_empty(), "{bad:?}: {fault:?}");
    }
    assert!(Spec::from_toml(&"[".repeat(200_000)).is_err());
    assert!(Spec::from_toml(&format!("a = {}", "[".repeat(200_000))).is_err());
    assert!(Spec::from_toml(&"\u{1}x".repeat(5_000_000)).is_err());
    let fault = Spec::load("no/such/spec.toml".as_ref()).unwrap_err();
    assert_eq!(fault.file.as_deref(), Some("no/such/spec.toml"));
}

#[test]
fn a_million_trials_are_too_many() {
    let many: Vec<f64> = (1..=1001).map(|i| f64::from(i) / 2000.0).collect();
    let mut spec = with("/workload/load", Some(json!(many)));
    spec["run"]["seeds"] = json!(1000);
    assert!(validate(spec).unwrap_err().what.contains("trials"));
}

/// Collects the JSON pointers of all values in a tree.
fn pointers(value: &Value, here: &str, found: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(k, v)| (k.clone(), v)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(i, v)| (i.to_string(), v)).collect(),
        _ => Vec::new(),
    };
    for (key, value) in inner {
        let place = format!("{here}/{key}");
        found.push(place.clone());
        pointers(value, &place, found);
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|x| serde_json::Number::from_f64(x).map_or(Value::Null, Value::Number)),
        Just(json!(1e308)),
        prop_oneof!["1us", "10Gbps", "64KiB", "h0", "chain", "churn", "s-perc", "switch0->h0", "fixed"]
            .prop_map(Value::from),
        "[ -~]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec(("[a-z.\\[\\]0]{0,5}", inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #[test]
    fn no_mutation_of_a_spec_makes_it_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any_value()), 1..4)
    ) {
        let mut spec = good();
        for (at, value) in changes {
            let mut places = Vec::new();
            pointers(&spec, "", &mut places);
            if let Some(place) = (!places.is_empty()).then(|| at.get(&places)).and_then(|p| spec.pointer_mut(p)) {
                *place = value;
            }
        }
        match validate(spec) {
            Ok(valid) => prop_assert!(valid.trial(0).cost.seconds >= 0.0),
            Err(fault) => prop_assert!(!fault.what.is_empty()),
        }
    }
}

#[test]
fn nine_faults_are_told_at_once_each_with_its_place_and_mend() {
    let spec = json!({
        "colour": "red",
        "network": {"kind": "star", "hosts": 0, "rate": "10 parsecs"},
        "workload": {"kind": "poisson", "sizes": "web-serch", "load": 7, "one_way": "yes"},
        "policy": {"kind": "proportional-fair"},
        "scheme": [{"name": "s-prec"}, {"name": "dctcp", "params": {"kk": 3}}],
        "measure": {"rates": "1ns"},
        "run": {"warmup": "1ms", "seeds": [1, 1]},
        "fault": [{"kind": "link-down", "link": "a->b"}, {"kind": "loss", "probability": 2}],
    });
    let fault = validate(spec).unwrap_err();
    let told: Vec<(String, String)> = fault.clone().each().into_iter().map(|f| (f.place, f.hint)).collect();
    let places: Vec<&str> = told.iter().map(|(place, _)| place.as_str()).collect();
    for place in [
        "colour",
        "network.hosts",
        "network.rate",
        "workload.sizes",
        "workload.load",
        "workload.one_way",
        "policy.kind",
        "scheme[0].name",
        "scheme[1].params.kk",
        "measure.rates",
        "run.duration",
        "run.seeds",
        "fault[0].kind",
        "fault[1].probability",
    ] {
        assert_eq!(places.iter().filter(|p| **p == place).count(), 1, "{place}: {places:#?}");
    }
    assert_eq!(places.len(), 14, "{places:#?}");
    assert!(told.iter().all(|(_, hint)| !hint.is_empty()), "{told:#?}");
    let hint = |place: &str| &told.iter().find(|(p, _)| p == place).unwrap().1;
    assert!(hint("policy.kind").contains("kind = \"alpha-fair\", alpha = 1"), "{}", hint("policy.kind"));
    assert!(hint("fault[0].kind").contains("did you mean \"down\"?"), "{}", hint("fault[0].kind"));
    assert!(hint("workload.sizes").contains("did you mean \"web-search\"?"));
    assert!(hint("scheme[0].name").contains("did you mean \"s-perc\"?"));
    assert!(hint("scheme[1].params.kk").contains("did you mean \"k\"?"));
    assert_eq!(fault.to_string().lines().count(), 14);
}

#[test]
fn faults_in_a_sweep_are_told_once_and_by_their_number() {
    let spec = json!({
        "network": {"kind": "star", "hosts": 4},
        "workload": {"kind": "poisson", "sizes": "web-search", "load": [0.5, 7, 9]},
        "scheme": [{"name": "ideal"}],
        "run": {"duration": "1ms", "warmup": "nine"},
    });
    let places: Vec<String> = validate(spec).unwrap_err().each().into_iter().map(|f| f.place).collect();
    assert_eq!(places, ["run.warmup", "workload.load[1]", "workload.load[2]"]);
}

/// Estimated cost, s, of the single trial of `scheme`.
fn cost_s(scheme: &str, rate: &str, policy: &str) -> f64 {
    let text = format!(
        "network = {{kind = \"star\", hosts = 8, rate = \"{rate}\"}}\npolicy = {policy}\n\
         workload = {{kind = \"permutation\", size = \"100kB\"}}\nscheme = [{{{scheme}}}]\n\
         run = {{duration = \"1s\", drain = \"100s\"}}"
    );
    Spec::from_toml(&text).unwrap().validate().unwrap_or_else(|e| panic!("{e}")).trial(0).cost.seconds
}

#[test]
fn costs_know_pairs_messages_and_timers() {
    let (max_min, fair) = ("{kind = \"max-min\"}", "{kind = \"alpha-fair\", alpha = 1}");
    let dctcp = cost_s("name = \"dctcp\"", "10Gbps", max_min);
    // Measured with 16 hosts and web-search flows: 2.3, 2.0, 1.45, 1.9 and 1.7 times the cost of DCTCP.
    for (scheme, policy, least, most) in [
        ("optimizer = \"xwi\", transport = \"s-perc\"", fair, 1.8, 3.0),
        ("optimizer = \"given\", transport = \"s-perc\"", max_min, 1.6, 2.5),
        ("name = \"numfabric\"", fair, 1.2, 1.8),
        ("name = \"s-perc\"", max_min, 1.5, 2.4),
        ("name = \"soze\"", max_min, 1.3, 2.1),
        ("name = \"hpcc\"", max_min, 1.2, 1.7),
    ] {
        let times = cost_s(scheme, "10Gbps", policy) / dctcp;
        assert!((least..most).contains(&times), "{scheme}: {times}");
    }
    // Timers with a fixed interval expire throughout a run that is long because of slow links: 28 million events
    // took 4.1 s.
    let slow = cost_s("name = \"pfabric\", params = {rto = \"45us\"}", "10kbps", max_min);
    assert!((0.8..20.0).contains(&slow), "{slow}");
    // Default intervals follow the base RTT, which is seconds on these links.
    for (scheme, policy) in [("pfabric", max_min), ("rcp", max_min), ("numfabric", fair)] {
        let slow = cost_s(&format!("name = \"{scheme}\""), "10kbps", policy);
        assert!(slow > 0.0 && slow < 0.1, "{scheme}: {slow}");
    }
    assert!(cost_s("name = \"numfabric\", params = {price_interval = \"30us\"}", "10kbps", fair) > 0.5);
    assert!(cost_s("name = \"dctcp\"", "10kbps", max_min) < 0.01);
}

#[test]
fn days_are_simulated_as_a_fluid_alone() {
    let spec = |scheme: &str, duration: &str| {
        let text = format!(
            "network = {{kind = \"star\", hosts = 3, rate = \"1Mbps\"}}\n\
             workload = {{kind = \"incast\", senders = 2, size = \"1GB\"}}\n\
             scheme = [{{name = \"{scheme}\"}}]\nrun = {{duration = \"{duration}\"}}"
        );
        Spec::from_toml(&text).unwrap().validate().map_err(|e| (e.place.clone(), e.to_string()))
    };
    let (dir, _) = ran("days", &spec("ideal", "10000s").unwrap());
    let ends: Vec<f64> = rows(&dir.0, "flow").iter().map(|row| row["fct_ns"].parse().unwrap()).collect();
    // 1 GB of payload in packets of 1446 of 1500 bytes, at half a megabit a second.
    let want_ns = 1e9 * 8.0 / 0.5e6 * 1500.0 / 1446.0 * 1e9;
    assert!(ends.iter().all(|end| (end / want_ns - 1.0).abs() < 0.01), "{ends:?}");
    let (place, said) = spec("dctcp", "10000s").unwrap_err();
    assert!(place == "run.duration" && said.contains("at most 2 hours"), "{place} {said}");
    assert_eq!(spec("ideal", "9000000s").unwrap_err().0, "run.duration");
}

/// Errors of `spec` at `place`.
fn faults_at(spec: Value, place: &str) -> Vec<InputError> {
    let read = Spec::from_value(spec, PathBuf::new()).and_then(Spec::validate);
    let all = read.err().map(|fault| std::iter::once(fault.clone()).chain(fault.more).collect::<Vec<_>>());
    all.unwrap_or_default().into_iter().filter(|fault| fault.place == place).collect()
}

/// Checks the bounds in the schemas of keys: values just inside are accepted, values just outside are refused.
/// `put` returns a spec with a value for a key.
fn check_bounds(section: &str, properties: &Map<String, Value>, put: &dyn Fn(&str, Value) -> Value) -> usize {
    let mut checked = 0;
    for (key, schema) in properties {
        let place = format!("{section}.{key}");
        let bound = |word: &str| schema[word].as_f64();
        let whole = schema["type"] == "integer";
        let json = |x: f64| if whole && x >= 0.0 { json!(x as u64) } else { json!(x) };
        let refused = |x: f64| assert!(!faults_at(put(key, json(x)), &place).is_empty(), "{place} = {x} is taken");
        let taken = |x: f64| {
            let faults = faults_at(put(key, json(x)), &place);
            assert!(faults.iter().all(|f| !f.what.contains("out of range")), "{place} = {x}: {faults:?}");
        };
        let step = if whole { 1.0 } else { 0.01 };
        if let Some(low) = bound("minimum") {
            // Times are rounded to whole nanoseconds, and 0.99 ns is 1 ns.
            refused(if low > 0.0 && !whole { low * 0.4 } else { low - 1.0 });
            taken(low);
            checked += 1;
        }
        if let Some(low) = bound("exclusiveMinimum") {
            refused(low);
            checked += 1;
        }
        // A large integer is not exact as a JSON number.
        if let Some(high) = bound("maximum").filter(|high| *high < 1e15) {
            refused(if whole { high + 1.0 } else { high * (1.0 + step) });
            taken(high);
            checked += 1;
        }
    }
    checked
}

#[test]
fn the_bounds_of_each_key_stand_in_its_declaration() {
    let all = subak_lab::spec::described();
    let none = Map::new();
    let properties = |schema: &Value| schema["properties"].as_object().cloned().unwrap_or_default();
    let mut checked = 0;
    for section in ["run", "packets", "measure", "testbed", "routing"] {
        let keys = properties(&all[section]["schema"]);
        checked += check_bounds(section, &keys, &|key, value| {
            let mut spec = good();
            let mut table = spec[section].as_object().unwrap_or(&none).clone();
            table.insert(key.into(), value);
            spec[section] = table.into();
            spec
        });
    }
    let convergence = properties(&all["measure"]["schema"]["properties"]["convergence"]["anyOf"][0]);
    checked += check_bounds("measure.convergence", &convergence, &|key, value| {
        let mut spec = good();
        spec["measure"] = json!({"convergence": {key: value}});
        spec
    });
    for entry in subak_lab::spec::workload::described().as_array().unwrap() {
        // Keys that workloads share are read only if the workload's own keys are valid.
        let own: Vec<&str> =
            entry["keys"].as_array().unwrap().iter().map(|key| key["name"].as_str().unwrap()).collect();
        let mut keys = properties(&entry["schema"]);
        keys.retain(|key, _| own.contains(&key.as_str()));
        checked += check_bounds("workload", &keys, &|key, value| {
            let mut spec = good();
            spec["workload"] = json!({"kind": entry["kind"], key: value});
            spec
        });
    }
    assert!(checked > 60, "{checked}");
}

#[test]
fn the_schema_refuses_times_in_text_that_the_run_refuses() {
    let all = subak_lab::spec::described();
    let every = &all["measure"]["schema"]["properties"]["convergence"]["anyOf"][0]["properties"]["every"];
    assert_eq!(every["minimum"], 1e-7);
    let pattern = every["not"]["pattern"].as_str().unwrap();
    // There is no engine for regular expressions, so that only parts of the pattern are checked.
    assert!(pattern.contains("[0-9]{0,2}") && pattern.ends_with("ns\\s*$"), "{pattern}");
    for (text, is_refused) in [("50ns", true), ("99ns", true), ("100ns", false), ("0.1us", false), ("0.09us", true)] {
        let mut spec = good();
        spec["workload"] = json!({"kind": "permutation"});
        spec["measure"] = json!({"convergence": {"every": text, "of": "assigned"}});
        assert_eq!(!faults_at(spec, "measure.convergence.every").is_empty(), is_refused, "{text}");
    }
}
