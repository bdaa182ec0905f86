//! Networks from a few numbers: leaf-spine, rails, fat-tree, dragonfly, jellyfish, dumbbell, star, chain and two wide-area
//! networks.
//!
//! [`GENERATORS`] is the single description of every kind: its keys, units and defaults. Input is parsed by it, and
//! help is generated from it.

mod b4;
mod builders;
mod jellyfish;

use crate::document::{check_keys, table, text, unknown_word};
use crate::keys::{self, DefaultValue, FromValue, Key, Low, ValueType};
use crate::route::Metric;
use crate::{InputError, InputErrors, Network, Ns, quantity};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Largest number of directed links of a generated network.
pub const MOST_LINKS: u128 = 4_000_000;

/// One kind of network.
#[derive(Debug, Clone, Copy)]
pub struct Generator {
    /// Name of the kind of network, the value of key `kind`.
    pub kind: &'static str,
    /// The topology and its node names, one sentence.
    pub about: &'static str,
    /// Keys beside `kind`.
    pub keys: &'static [Key],
    /// The default routing metric.
    pub metric: Metric,
    /// Function that returns the number of directed links, or an error for invalid sizes.
    links: fn(&Given) -> Result<u128, InputError>,
    build: fn(&Given, &mut Network) -> Result<(), InputError>,
}

const fn key(name: &'static str, value_type: ValueType, default: DefaultValue, about: &'static str) -> Key {
    Key { name, value_type, default, about }
}

const COUNT: ValueType = ValueType::Whole(1, 1_000_000_000_000_000);
const RATES: ValueType = ValueType::List(&ValueType::Rate);

const fn size(name: &'static str, about: &'static str) -> Key {
    Key::required(name, COUNT, about)
}

const fn controller_rate(about: &'static str) -> Key {
    key("controller_rate", ValueType::Rate, DefaultValue::Open("no such node"), about)
}

const LINK_DELAY: Key = key("link_delay", ValueType::Time, DefaultValue::Is("1us"), "propagation delay of each link");
const HOST_DELAY: Key =
    key("host_delay", ValueType::Time, DefaultValue::Same("link_delay"), "propagation delay of the hosts' links");
const HOST_RATE: Key = key("host_rate", ValueType::Rate, DefaultValue::Is("10Gbps"), "capacity of the hosts' links");
const RATE: Key = key("rate", ValueType::Rate, DefaultValue::Is("10Gbps"), "capacity of each link");
const SPINE_RATE: Key =
    key("spine_rate", ValueType::Rate, DefaultValue::Is("40Gbps"), "capacity of each link between leaf and spine");
const OF_A_LEAF: Key =
    oversubscription("capacity of a leaf's host links over that of its links to spines, in place of spine_rate");
const fn oversubscription(about: &'static str) -> Key {
    let ratio = ValueType::Number(Low::Above(0.0), 1000.0);
    key(OVERSUBSCRIPTION, ratio, DefaultValue::Open("as the capacities give it"), about)
}
const OVERSUBSCRIPTION: &str = "oversubscription";
const BUFFER: Key =
    key("buffer", ValueType::Size, DefaultValue::Open("the simulator's"), "room in the queue before each link");

/// All network generators.
pub const GENERATORS: &[Generator] = &[
    Generator {
        kind: "leaf-spine",
        about: "Hosts h0, h1, ... in order at leaf0, leaf1, ...; every leaf is connected to every spine0, spine1, ...",
        keys: &[
            size("leaves", "leaf switches"),
            size("spines", "spine switches"),
            size("hosts_per_leaf", "hosts at each leaf"),
            HOST_RATE,
            SPINE_RATE,
            OF_A_LEAF,
            key("links_per_spine", COUNT, DefaultValue::Is("1"), "parallel links from a leaf to each spine"),
            LINK_DELAY,
            HOST_DELAY,
            BUFFER,
            controller_rate("capacity of a link from each spine to a node called controller"),
        ],
        metric: Metric::Hops,
        links: builders::leaf_spine_links,
        build: builders::leaf_spine,
    },
    Generator {
        kind: "fat-tree",
        about: "The three-level fat-tree of k-port switches: k pods of k/2 leaves and k/2 agg switches, (k/2)^2 cores, \
                k^3/4 hosts. Nodes are numbered through the pods in order; agg j of a pod is connected to the j-th k/2 \
                cores.",
        keys: &[
            size("k", "ports of each switch, even"),
            RATE,
            oversubscription(
                "capacity of a leaf's host links over that of its links to agg switches; links above have the same",
            ),
            LINK_DELAY,
            BUFFER,
            controller_rate("capacity of a link from each core to a node called controller"),
        ],
        metric: Metric::Hops,
        links: builders::fat_tree_links,
        build: builders::fat_tree,
    },
    Generator {
        kind: "rails",
        about: "Servers with a NIC for each rail: NIC r of server s is host h(s rails + r), at leafR of its rail. Every leaf is \
                connected to every spine0, spine1, ...",
        keys: &[
            size("servers", "servers"),
            size("rails", "NICs of each server, and leaf switches"),
            size("spines", "spine switches"),
            HOST_RATE,
            SPINE_RATE,
            OF_A_LEAF,
            LINK_DELAY,
            HOST_DELAY,
            BUFFER,
        ],
        metric: Metric::Hops,
        links: builders::rails_links,
        build: builders::rails,
    },
    Generator {
        kind: "dragonfly",
        about: "Groups of routers, all connected to each other in a group, with one link between any two groups (Kim et al., ISCA \
                2008): routers times global_links plus 1 groups. Routers switch0, switch1, ... are numbered through the groups in \
                order, hosts through the routers.",
        keys: &[
            size("routers", "routers of each group"),
            size("hosts_per_router", "hosts at each router"),
            size("global_links", "links of each router to other groups"),
            RATE,
            key("global_rate", ValueType::Rate, DefaultValue::Same("rate"), "capacity of each link between groups"),
            LINK_DELAY,
            key(
                "global_delay",
                ValueType::Time,
                DefaultValue::Same("link_delay"),
                "propagation delay of each link between groups",
            ),
            BUFFER,
        ],
        metric: Metric::Hops,
        links: builders::dragonfly_links,
        build: builders::dragonfly,
    },
    Generator {
        kind: "jellyfish",
        about: "A random regular graph of switch0, switch1, ... (Singla et al., NSDI 2012), drawn from a seed, with hosts in order at \
                the switches.",
        keys: &[
            size("switches", "switches"),
            size("ports", "links of each switch to other switches"),
            size("hosts_per_switch", "hosts at each switch"),
            key("graph_seed", ValueType::Whole(0, u64::MAX), DefaultValue::Is("1"), "seed of the graph"),
            RATE,
            LINK_DELAY,
            BUFFER,
        ],
        metric: Metric::Hops,
        links: builders::jellyfish_links,
        build: builders::jellyfish,
    },
    Generator {
        kind: "dumbbell",
        about: "Hosts h0 to h(pairs-1) at switch0, as many more at switch1, one link between the switches.",
        keys: &[
            size("pairs", "hosts on each side"),
            HOST_RATE,
            key(
                "bottleneck_rate",
                ValueType::Rate,
                DefaultValue::Is("10Gbps"),
                "capacity of the link between the switches",
            ),
            LINK_DELAY,
            key(
                "bottleneck_delay",
                ValueType::Time,
                DefaultValue::Same("link_delay"),
                "delay of the link between the switches",
            ),
            BUFFER,
        ],
        metric: Metric::Hops,
        links: builders::dumbbell_links,
        build: builders::dumbbell,
    },
    Generator {
        kind: "star",
        about: "Hosts h0, h1, ... at one switch0.",
        keys: &[size("hosts", "hosts"), RATE, LINK_DELAY, BUFFER],
        metric: Metric::Hops,
        links: builders::star_links,
        build: builders::star,
    },
    Generator {
        kind: "chain",
        about: "switch0, switch1, ... in a row, one more than there are rates; host hI at each switchI.",
        keys: &[
            key("rates", RATES, DefaultValue::Required, "capacities of the links between the switches, in order"),
            key("host_rate", ValueType::Rate, DefaultValue::Largest("rates"), "capacity of the hosts' links"),
            LINK_DELAY,
            HOST_DELAY,
            BUFFER,
        ],
        metric: Metric::Hops,
        links: builders::chain_links,
        build: builders::chain,
    },
    Generator {
        kind: "wan",
        about: "Google's B4 with 12 sites (Jain et al., SIGCOMM 2013) or with 18 (PERC thesis, section 5.1). A site is \
                a switch of its name with one host: h0 at the first site in alphabetical order (with 18), or at site0 \
                (with 12).",
        keys: &[
            key("topology", ValueType::Word(&["b4-12", "b4-18"]), DefaultValue::Required, "which network"),
            key("rate", ValueType::Rate, DefaultValue::Is("10Gbps"), "capacity of each link between sites"),
            key("host_rate", ValueType::Rate, DefaultValue::Twice("rate"), "capacity of the hosts' links"),
            key(
                "link_delay",
                ValueType::Time,
                DefaultValue::Open(
                    "b4-18: distance over the speed of light; b4-12, whose distances are not published: 10ms",
                ),
                "propagation delay of each link between sites",
            ),
            key("host_delay", ValueType::Time, DefaultValue::Is("2.5us"), "propagation delay of the hosts' links"),
            BUFFER,
        ],
        metric: Metric::Delay,
        links: builders::wan_links,
        build: builders::wan,
    },
];

/// [`GENERATORS`] as JSON for help and documentation: a list of `kind`, `about`, `metric`, `schema` and `keys`, each
/// key with `name`, `unit`, `default` and `about`.
pub fn described() -> Value {
    let generator = |g: &Generator| {
        let metric = if g.metric == Metric::Hops { "hops" } else { "delay" };
        let keys: Vec<Value> = g.keys.iter().map(Key::described).collect();
        json!({"kind": g.kind, "about": g.about, "metric": metric, "keys": keys, "schema": keys::table(g.keys)})
    };
    GENERATORS.iter().map(generator).collect()
}

/// Generates the network of a table with `kind` and that kind's keys; also returns the default routing metric.
pub fn network(value: &Value) -> Result<(Network, Metric), InputError> {
    let map = table(value, "a generated network", "{\"kind\": \"star\", \"hosts\": 4}")?;
    let kinds: Vec<_> = GENERATORS.iter().map(|g| g.kind).collect();
    let kind = map.get("kind").ok_or_else(|| {
        InputError::new("kind", "the kind of network is missing", format!("give one of: {}", kinds.join(", ")))
    })?;
    let kind = text(kind, "the kind of network").map_err(|e| e.below("kind"))?;
    let generator = GENERATORS
        .iter()
        .find(|g| g.kind == kind)
        .ok_or_else(|| unknown_word(kind, "kind of network", &kinds).below("kind"))?;
    let given = Given::read(generator, map)?;
    let links = (generator.links)(&given)?;
    if links > MOST_LINKS {
        return Err(InputError::new(
            "",
            format!("this {kind} would have {links} directed links"),
            format!("choose sizes that give at most {MOST_LINKS}"),
        ));
    }
    let mut network = Network::new();
    (generator.build)(&given, &mut network)?;
    Ok((network, generator.metric))
}

/// The value of a key, in base units.
#[derive(Debug, Clone, PartialEq)]
enum KeyValue {
    Count(u64),
    Rate(f64),
    Rates(Vec<f64>),
    Time(Ns),
    Size(u64),
    Number(f64),
    Word(&'static str),
}

/// Values of the keys of one network; keys without value and default are absent.
#[derive(Debug)]
struct Given(BTreeMap<&'static str, KeyValue>);

impl Given {
    fn read(generator: &Generator, map: &Map<String, Value>) -> Result<Self, InputError> {
        let names: Vec<_> = std::iter::once("kind").chain(generator.keys.iter().map(|k| k.name)).collect();
        let mut faults = InputErrors::default();
        faults.keep(check_keys(map, &names));
        if map.contains_key(OVERSUBSCRIPTION) && map.contains_key("spine_rate") {
            let what = "spine_rate sets the capacity of the same links";
            faults.keep::<()>(Err(InputError::new(OVERSUBSCRIPTION, what, "give one of the two")));
        }
        let mut given = Given(BTreeMap::new());
        for key in generator.keys {
            let held = match (map.get(key.name), key.default) {
                (Some(value), _) => faults.keep(read(key.value_type, value).map_err(|e| e.below(key.name))),
                (None, DefaultValue::Required) => faults.keep(Err(missing(generator, key))),
                // The key that this default follows from may be the invalid one.
                (None, _) if !faults.is_empty() => None,
                (None, DefaultValue::Open(_)) => None,
                (None, DefaultValue::Is(default)) => Some(read_default(key.value_type, default)?),
                (None, DefaultValue::Set(_)) => unreachable!("{} has its default in words", key.name),
                (None, DefaultValue::Same(other)) => given.0.get(other).cloned(),
                (None, DefaultValue::Twice(other)) => Some(KeyValue::Rate(2.0 * given.rate(other))),
                (None, DefaultValue::Largest(other)) => {
                    Some(KeyValue::Rate(given.rates(other).iter().copied().fold(0.0, f64::max)))
                }
            };
            if let Some(held) = held {
                given.0.insert(key.name, held);
            }
        }
        faults.done().map(|()| given)
    }

    fn count(&self, name: &str) -> u64 {
        match self.0.get(name) {
            Some(KeyValue::Count(n)) => *n,
            other => unreachable!("{name} is a count, found {other:?}"),
        }
    }

    /// A number of nodes or links, as `usize`.
    fn size(&self, name: &str) -> usize {
        self.count(name) as usize
    }

    fn rate(&self, name: &str) -> f64 {
        match self.0.get(name) {
            Some(KeyValue::Rate(bps)) => *bps,
            other => unreachable!("{name} is a rate, found {other:?}"),
        }
    }

    /// A rate in bit/s; `None` if the key has neither value nor default.
    fn open_rate(&self, name: &str) -> Option<f64> {
        match self.0.get(name) {
            Some(KeyValue::Rate(bps)) => Some(*bps),
            _ => None,
        }
    }

    /// The ratio of a leaf's capacities; `None` if the links' own capacities give it.
    fn oversubscription(&self) -> Option<f64> {
        match self.0.get(OVERSUBSCRIPTION) {
            Some(KeyValue::Number(ratio)) => Some(*ratio),
            _ => None,
        }
    }

    fn rates(&self, name: &str) -> &[f64] {
        match self.0.get(name) {
            Some(KeyValue::Rates(bps)) => bps,
            other => unreachable!("{name} is a list of rates, found {other:?}"),
        }
    }

    /// A time in ns; `None` if the key has neither value nor default.
    fn time(&self, name: &str) -> Option<Ns> {
        match self.0.get(name) {
            Some(KeyValue::Time(ns)) => Some(*ns),
            None => None,
            other => unreachable!("{name} is a time, found {other:?}"),
        }
    }

    fn buffer(&self) -> Option<u64> {
        match self.0.get("buffer") {
            Some(KeyValue::Size(bytes)) => Some(*bytes),
            _ => None,
        }
    }

    fn word(&self, name: &str) -> &'static str {
        match self.0.get(name) {
            Some(KeyValue::Word(word)) => word,
            other => unreachable!("{name} is a word, found {other:?}"),
        }
    }
}

fn missing(generator: &Generator, key: &Key) -> InputError {
    InputError::new(
        key.name,
        format!("a {} network needs \"{}\" ({}: {})", generator.kind, key.name, key.about, key.value_type.name()),
        format!("give it, such as {}: {}", key.name, example(key.value_type)),
    )
}

fn example(value_type: ValueType) -> String {
    match value_type {
        ValueType::Rate => "\"10Gbps\"".into(),
        ValueType::List(_) => "[\"20Gbps\", \"30Gbps\"]".into(),
        ValueType::Time => "\"1us\"".into(),
        ValueType::Size => "\"64KiB\"".into(),
        ValueType::Word(words) => format!("\"{}\"", words[0]),
        _ => "4".into(),
    }
}

fn read_default(value_type: ValueType, default: &str) -> Result<KeyValue, InputError> {
    match value_type {
        ValueType::Whole(..) => read(value_type, &Value::from(default.parse::<u64>().unwrap_or(0))),
        _ => read(value_type, &Value::from(default)),
    }
}

fn read(value_type: ValueType, value: &Value) -> Result<KeyValue, InputError> {
    match value_type {
        ValueType::Whole(..) => count(value).map(KeyValue::Count),
        ValueType::Rate => quantity::capacity_from_json(value).map(KeyValue::Rate),
        ValueType::Number(..) => f64::read(value_type, value).map(KeyValue::Number),
        ValueType::List(_) => {
            let rates = crate::document::list(value, "the list of rates", "[\"20Gbps\", \"30Gbps\"]")?;
            if rates.is_empty() {
                return Err(InputError::new("", "the list of rates is empty", "give at least one rate"));
            }
            let rate = |(i, v)| quantity::capacity_from_json(v).map_err(|e| e.below(&format!("[{i}]")));
            rates.iter().enumerate().map(rate).collect::<Result<_, _>>().map(KeyValue::Rates)
        }
        ValueType::Time => quantity::ns_from_json(value).map(KeyValue::Time),
        ValueType::Size => quantity::positive_bytes_from_json(value).map(KeyValue::Size),
        ValueType::Word(words) => {
            let word = text(value, "this")?;
            let found = words.iter().find(|w| **w == word);
            found.map(|w| KeyValue::Word(w)).ok_or_else(|| unknown_word(word, "name", words))
        }
        other => unreachable!("no network has a key that holds {}", other.name()),
    }
}

fn count(value: &Value) -> Result<u64, InputError> {
    let whole = value
        .as_u64()
        .or_else(|| value.as_f64().filter(|x| x.fract() == 0.0 && (1.0..1e15).contains(x)).map(|x| x as u64));
    whole.filter(|n| *n > 0).ok_or_else(|| {
        InputError::new(
            "",
            format!("{} is not a whole number of one or more", quantity::shown(value)),
            "give one, such as 4",
        )
    })
}
