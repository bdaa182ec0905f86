//! Faults of a spec: their kinds, places and times.

mod cables;

use cables::QueuedFate;
pub(super) use cables::links_of;
pub(crate) use cables::{Breakdown, CableEvent};

use crate::spec::topology::{Topology, unknown_name};
use serde_json::{Value, json};
use subak_core::backend::{Impairment, Injected, Kinds, Machine};
use subak_core::keys::{Key, Low, SHARE, ValueType, table};
use subak_core::section::Section;
use subak_core::{InputError, Ns};

const KINDS: &[&str] = &["loss", "duplicate", "delay", "down", "capacity", "restart"];

const KIND: &[Key] = &[Key::required("kind", ValueType::Word(KINDS), "the kind of fault")];

const PACKETS: &[Key] = &[
    Key::required("probability", SHARE, "a number from 0 to 1"),
    Key::open("kinds", ValueType::List(&ValueType::Word(&["data", "ack", "ctl"])), "all", "kinds of packets"),
    Key::open("links", ValueType::List(&ValueType::Text), "all", "the links that they leave; `*` stands for any text"),
    Key::new("from", ValueType::Time, "0", "start of the impairment"),
    Key::open("until", ValueType::Time, "the end of the run", "end of the impairment"),
];

const LATER: &[Key] = &[Key::required("by", ValueType::Time, "additional delay of the packets, such as \"20us\"")];

const LINKS: &[Key] = &[
    Key::open("link", ValueType::Text, "links", "a link; `*` stands for any text"),
    Key::open("links", ValueType::List(&ValueType::Text), "link", "several"),
    Key::open("node", ValueType::Text, "link", "all links of a node; `*` stands for any text"),
    Key::open("nodes", ValueType::List(&ValueType::Text), "link", "all links of several nodes"),
    Key::open(
        "share",
        ValueType::Number(Low::Above(0.0), 1.0),
        "all",
        "fraction of these links that fail (at least one), drawn per seed; of the links between switches if none is named",
    ),
    Key::new("both", ValueType::Flag, "true", "the links in the opposite direction too"),
];

const OUTAGE: &[Key] = &[
    Key::new("down", ValueType::Time, "0", "time of the failure"),
    Key::open("up", ValueType::Time, "never", "time of the recovery"),
    Key::open(
        "period",
        ValueType::Time,
        "once",
        "period of a link flap: the links fail again once a period, until `up`",
    ),
    Key::open("lasts", ValueType::Time, "half the period", "duration of each failure"),
    Key::new(
        "waiting",
        ValueType::Word(WAITING),
        "drop",
        "fate of packets that are queued at a failed link, or arrive there: dropped, or kept until it recovers",
    ),
];

const WAITING: &[&str] = &["drop", "keep"];

const CHANGE: &[Key] = &[
    Key::required("capacity", ValueType::Rate, "new capacity of the link, such as \"10Gbps\""),
    Key::required("at", ValueType::Time, "the time of the change, such as \"5ms\""),
];

const RESTART: &[Key] = &[
    Key::open("machine", ValueType::Word(&["controller"]), "node or link", "the machine"),
    Key::open("node", ValueType::Text, "machine or link", "the machines at a node"),
    Key::open("link", ValueType::Text, "machine or node", "the machine at a link"),
    Key::required("at", ValueType::Time, "the time of the restart, such as \"5ms\""),
];

/// Keys of a fault of kind `kind`.
fn keys(kind: &str) -> &'static [&'static [Key]] {
    match kind {
        "delay" => &[LATER, PACKETS],
        "down" => &[LINKS, OUTAGE],
        "capacity" => &[LINKS, CHANGE],
        "restart" => &[RESTART],
        _ => &[PACKETS],
    }
}

/// Keys of all kinds of fault.
pub(super) fn keys_of_all() -> Vec<&'static [Key]> {
    KINDS.iter().flat_map(|kind| keys(kind)).copied().collect()
}

/// JSON Schema of a table of `[[fault]]`, for each kind of fault.
pub(super) fn described() -> Value {
    let one = |kind: &&str| {
        let keys: Vec<Key> = keys(kind).concat();
        json!({"kind": kind, "schema": table(&keys)})
    };
    KINDS.iter().map(one).collect()
}

/// Faults of one `[[fault]]` table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Planned {
    /// Faults of fixed links, nodes or state machines.
    pub known: Vec<Injected>,
    /// Fault whose links each seed selects at random.
    pub drawn: Option<Breakdown>,
}

/// Reads one table of `[[fault]]`, which becomes one fault per link. A fault must begin before the end of the run.
/// `topology` is `None` if the network is invalid; names are then not checked.
pub(crate) fn read(value: &Value, topology: Option<&Topology>, duration_ns: Ns) -> Result<Planned, InputError> {
    let mut section = Section::of(value, KIND)?;
    let kind = match section.must::<String>("kind").map_err(|fault| unknown_kind(fault, value)) {
        Ok(kind) => kind,
        Err(fault) => return section.end(Err(fault)),
    };
    let kind = kind.as_str();
    keys(kind).iter().for_each(|some| section.also(some));
    let known = |(known, key, begin_ns)| (Planned { known, drawn: None }, key, begin_ns);
    let (planned, key, begin_ns) = match kind {
        "loss" => known(impairment(&mut section, topology, Impairment::Lost)),
        "duplicate" => known(impairment(&mut section, topology, Impairment::Doubled)),
        "delay" => {
            let by_ns = section.take("by");
            known(impairment(&mut section, topology, Impairment::Late(by_ns)))
        }
        "down" => {
            let broken = cables::read(&mut section, topology);
            let (down_ns, event) = down(&mut section, duration_ns);
            (broken.with(event), "down", down_ns)
        }
        "capacity" => {
            let broken = cables::read(&mut section, topology);
            let capacity_bps = section.convert("capacity", capacity).unwrap_or(1e9);
            let at_ns = section.take("at");
            (broken.with(CableEvent::Capacity(capacity_bps, at_ns)), "at", at_ns)
        }
        "restart" => {
            let machine = machine(&mut section, topology);
            let at_ns = section.take("at");
            known((machine.into_iter().map(|machine| Injected::Restart { machine, at_ns }).collect(), "at", at_ns))
        }
        other => unreachable!("{other} is a kind of fault"),
    };
    let times = value.as_object().into_iter().flat_map(|table| table.keys()).filter_map(|key| other_time(kind, key));
    times.collect::<Vec<_>>().into_iter().for_each(|fault| section.refuse(fault));
    if begin_ns >= duration_ns {
        let what = format!("the fault begins at {} us, the run ends at {} us", begin_ns / 1000, duration_ns / 1000);
        section.note(InputError::new(key, what, "give a time within run.duration"));
    }
    section.end(Ok(planned))
}

/// Error for a time that faults of `kind` do not have, and other kinds do, with those that they have.
fn other_time(kind: &str, key: &str) -> Option<InputError> {
    const TIMES: &[&str] = &["at", "from", "until", "down", "up"];
    let own = keys(kind).iter().flat_map(|some| some.iter()).map(|key| key.name);
    let own: Vec<&str> = own.filter(|name| TIMES.contains(name)).collect();
    let is_other = TIMES.contains(&key) && !own.contains(&key);
    let what = format!("a fault of kind \"{kind}\" has no \"{key}\"");
    is_other.then(|| InputError::new(key, what, format!("its times are {}", own.join(" and "))))
}

/// The error for an unknown kind of fault, with a hint for common synonyms.
fn unknown_kind(fault: InputError, value: &Value) -> InputError {
    let word = value.get("kind").and_then(Value::as_str).unwrap_or_default();
    let meant = match word.to_lowercase().replace(['_', ' '], "-").as_str() {
        "outage" | "fail" | "failure" | "link-failure" | "cut" | "flap" => "down",
        "drop" | "drops" | "corruption" => "loss",
        "reorder" | "reordering" | "jitter" | "latency" => "delay",
        "rate" | "bandwidth" | "slow" | "degrade" => "capacity",
        "crash" | "reboot" | "reset" => "restart",
        _ => return fault,
    };
    fault.hinted(&format!("did you mean \"{meant}\"? known: {}", KINDS.join(", ")))
}

type Read = (Vec<Injected>, &'static str, Ns);

/// Reads a fault that impairs packets of some kinds: they are lost, duplicated or delayed.
fn impairment(section: &mut Section, topology: Option<&Topology>, impairment: Impairment) -> Read {
    let kinds = section.convert("kinds", kinds).unwrap_or(Kinds { data: true, ack: true, ctl: true });
    let probability = section.take("probability");
    let links = section.convert("links", |names: Vec<String>| cables::links_of(&names, topology));
    let from_ns = section.take("from");
    let until_ns = section.given("until").unwrap_or(Ns::MAX);
    in_order(section, "until", from_ns, until_ns);
    (vec![Injected::Packets { impairment, kinds, links, probability, from_ns, until_ns }], "from", from_ns)
}

/// Largest number of periodic outages of a link.
const MOST_FLAPS: Ns = 10_000;

/// Reads the outages of a link; also returns the start of the first one, ns.
fn down(section: &mut Section, duration_ns: Ns) -> (Ns, CableEvent) {
    let down_ns = section.take("down");
    let up_ns = section.given("up");
    in_order(section, "up", down_ns, up_ns.unwrap_or(Ns::MAX));
    let period_ns: Option<Ns> = section.given("period");
    let lasts_ns = section.given("lasts");
    let waiting = match section.take::<String>("waiting").as_str() {
        "keep" => QueuedFate::Kept,
        _ => QueuedFate::Dropped,
    };
    let Some(period_ns) = period_ns else {
        if lasts_ns.is_some() {
            let hint = "give the period after which they fail again, or up in place of lasts";
            section.note(InputError::new(
                "lasts",
                "it is how long each of several outages takes, and there is one",
                hint,
            ));
        }
        return (down_ns, CableEvent::Down(vec![(down_ns, up_ns.unwrap_or(Ns::MAX))], waiting));
    };
    let lasts_ns = lasts_ns.unwrap_or(period_ns / 2);
    if lasts_ns == 0 || lasts_ns >= period_ns {
        let key = if section.get("lasts").is_some() { "lasts" } else { "period" };
        section.note(InputError::new(
            key,
            "links would not come back before they fail again",
            "give 0 < lasts < period",
        ));
        return (down_ns, CableEvent::Down(Vec::new(), waiting));
    }
    let end_ns = up_ns.unwrap_or(duration_ns);
    let times = end_ns.saturating_sub(down_ns).div_ceil(period_ns);
    if times > MOST_FLAPS {
        let hint = format!("give a longer period: at most {MOST_FLAPS} times are possible");
        section.note(InputError::new("period", format!("the links would fail {times} times"), hint));
        return (down_ns, CableEvent::Down(Vec::new(), waiting));
    }
    let each = (0..times).map(|k| down_ns + k * period_ns).map(|from_ns| (from_ns, (from_ns + lasts_ns).min(end_ns)));
    (down_ns, CableEvent::Down(each.collect(), waiting))
}

fn in_order(section: &mut Section, key: &str, from_ns: Ns, until_ns: Ns) {
    if from_ns >= until_ns {
        section.note(InputError::new(key, "the fault ends when it begins, or before", "give a later time"));
    }
}

/// Reads which state machine restarts: `machine = "controller"`, `node = NAME` or `link = NAME`; `None` if invalid.
fn machine(section: &mut Section, topology: Option<&Topology>) -> Option<Machine> {
    let wrong = section.wrong();
    let controller = section.given::<String>("machine").map(|_| Machine::Controller);
    let node = section.convert("node", |name: String| {
        let Some(topology) = topology else { return Ok(Machine::Controller) };
        let nodes = topology.network().nodes();
        let found = topology.network().find_node(&name).map(Machine::Node);
        found.ok_or_else(|| unknown_name(&name, "node", &nodes.iter().map(|n| n.name.as_str()).collect::<Vec<_>>()))
    });
    let hop = section.convert("link", |name: String| cables::link(&name, topology).map(Machine::Hop));
    let mut given = [controller, node, hop].into_iter().flatten();
    let fault = match (given.next(), given.next()) {
        _ if section.wrong() > wrong => return None,
        (Some(machine), None) => return Some(machine),
        (None, _) => {
            let hint = "give machine = \"controller\", node = a name, or link = a name";
            InputError::new("machine", "it is missing", hint)
        }
        (Some(_), Some(_)) => {
            InputError::new("machine", "a restart is of one machine", "give one of machine, node, link")
        }
    };
    section.note(fault);
    None
}

fn capacity(rate_bps: f64) -> Result<f64, InputError> {
    match rate_bps >= 1e3 {
        true => Ok(rate_bps),
        false => Err(InputError::new("", format!("the capacity is {rate_bps} bit/s"), "give at least 1 kb/s")),
    }
}

fn kinds(names: Vec<String>) -> Result<Kinds, InputError> {
    let has = |name: &str| names.iter().any(|given| given == name);
    match names.is_empty() {
        true => Err(InputError::new(
            "",
            "the list is empty",
            "name data, ack or ctl, or leave kinds away: then all are meant",
        )),
        false => Ok(Kinds { data: has("data"), ack: has("ack"), ctl: has("ctl") }),
    }
}
