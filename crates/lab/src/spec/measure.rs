//! Measurements: the section `measure` of a spec.

use crate::spec::backends::MOST_NS;
use crate::spec::fault::links_of;
use crate::spec::packets;
use crate::spec::packets::Recorded;
use crate::spec::topology::{Topology, unknown_name};
use crate::spec::workload::Traffic;
use serde_json::{Value, json};
use subak_core::backend::PacketSizes;
use subak_core::keys::each;
use subak_core::keys::{Key, Low, ValueType};
use subak_core::section::Section;
use subak_core::{InputError, LinkId, Ns};

/// Largest number of samples of one kind in a trial; they are about a gigabyte of results.
const MOST_SAMPLES: f64 = 2e7;

/// Default dwell time, in sampling intervals: rates may be within the tolerance at a single sample by coincidence.
const LOOKS_TO_HOLD: u64 = 10;

/// The measurements of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Measure {
    /// Whether FCTs are recorded.
    pub fct: bool,
    /// Whether a flow completes with its last ACK, not with the arrival of its last byte.
    pub at_sender: bool,
    /// Sampling interval of the flows' rates, ns.
    pub rates_ns: Option<Ns>,
    /// Classes of flows whose rates are sampled; `None`: all flows.
    pub rate_classes: Option<Vec<String>>,
    /// Sampling interval of the queues, ns.
    pub queues_ns: Option<Ns>,
    /// Links whose queues are sampled, in order; `None`: all.
    pub queue_links: Option<Vec<LinkId>>,
    /// Sampling interval of the flows' windows and pacing rates, ns.
    pub paces_ns: Option<Ns>,
    /// Classes of flows whose windows and pacing rates are sampled; `None`: all flows.
    pub pace_classes: Option<Vec<String>>,
    /// Selection of the packets that are recorded.
    pub packets: Option<Recorded>,
    /// Criteria by which convergence is measured.
    pub convergence: Vec<Convergence>,
}

/// A criterion of convergence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Convergence {
    /// Tolerance of a flow's rate, relative to its optimum.
    pub within: f64,
    /// Smallest fraction of flows within the tolerance.
    pub share: f64,
    /// Dwell time, ns: time for which rates must stay within the tolerance.
    pub hold_ns: Ns,
    /// Whether rates must stay within the tolerance until the next change of the flows, or the end of the run.
    pub lasting: bool,
    /// Whether rates are measured at the destination; otherwise they are those assigned to the source.
    pub received: bool,
    /// Whether rates are compared with the rates that the scheme aims at; otherwise with the policy's optimum.
    pub own_goal: bool,
    /// Whether the capacity that ACKs use is subtracted from the links when the goal is computed.
    pub acks: bool,
    /// Sampling interval, ns.
    pub every_ns: Ns,
    /// Time constant of the filter of received rates, ns.
    pub filter_ns: Ns,
    /// Whether the spec gives a filter.
    pub filter_given: bool,
}

impl Measure {
    /// An error if a rate filter is too short for the mean flow rate `share_bps`. With packets at intervals P, an
    /// average with time constant T varies by a fraction P / 2T in both directions. This fraction must be below
    /// `within`.
    pub fn check_filters(&self, share_bps: f64, packet: PacketSizes) -> Result<(), InputError> {
        let gap_ns = f64::from(packet.mtu_bytes) * 8e9 / share_bps;
        let too_short = |c: &&Convergence| c.received && gap_ns / (2.0 * c.filter_ns as f64) > c.within;
        let Some(c) = self.convergence.iter().find(too_short).filter(|_| gap_ns.is_finite()) else { return Ok(()) };
        let what = format!(
            "a flow has {:.0} Mb/s of the hosts' links, a packet every {:.0} us: a filter of {} us swings by more than {}",
            share_bps / 1e6,
            gap_ns / 1e3,
            c.filter_ns as f64 / 1e3,
            c.within
        );
        let hint = format!("give a filter of at least {:.0}us, or of = \"assigned\"", (gap_ns / c.within / 1e3).ceil());
        Err(InputError::new("convergence.filter", what, hint))
    }

    /// An error if the sampling intervals cause too many samples of `links` queues or of `live` concurrent flows.
    pub fn check_samples(&self, links: f64, live: f64, duration_ns: Ns) -> Result<(), InputError> {
        let wanted = [
            ("rates", self.rates_ns, live, "flows"),
            ("queues", self.queues_ns, self.queue_links.as_ref().map_or(links, |some| some.len() as f64), "links"),
            ("paces", self.paces_ns, live, "flows"),
        ];
        for (key, interval_ns, each, of) in wanted {
            let Some(interval_ns) = interval_ns else { continue };
            let rows = each * (duration_ns as f64 / interval_ns as f64);
            if rows > MOST_SAMPLES {
                let what = format!("some {rows:.1e} samples a trial, of {each:.0} {of} at once");
                let least_us = (each * duration_ns as f64 / MOST_SAMPLES / 1e3).ceil();
                return Err(InputError::new(key, what, format!("sample less often: every {least_us}us or more")));
            }
        }
        Ok(())
    }
}

/// The keys of `[measure]`.
pub(super) const MEASURE: &[Key] = &[
    Key::new(
        "fct",
        ValueType::Either(&[ValueType::Flag, ValueType::Word(ENDS)]),
        "true",
        "a row for each flow with its FCT and slowdown. `\"sender\"`: a flow ends when its sender has the last ACK, not when its last byte arrives (`\"receiver\"`, or true); the ideal FCT is longer by the same time",
    ),
    Key::open(
        "rates",
        ValueType::Either(&[INTERVAL, ValueType::Table(SAMPLED_FLOWS)]),
        "none",
        "interval between samples of each running flow's rate, or a table that selects flows: {every = \"10us\", classes = [\"web\"]}",
    ),
    Key::open(
        "queues",
        ValueType::Either(&[INTERVAL, ValueType::Table(SAMPLED_LINKS)]),
        "none",
        "interval between samples of each queue, or a table that selects links: {every = \"10us\", links = [\"leaf0->*\"]}",
    ),
    Key::open(
        "paces",
        ValueType::Either(&[INTERVAL, ValueType::Table(SAMPLED_FLOWS)]),
        "none",
        "interval between samples of each subflow's window and pace, as its source set them, or a table as of `rates`",
    ),
    Key::new(
        "packets",
        ValueType::Either(&[ValueType::Flag, ValueType::Table(packets::KEYS)]),
        "false",
        "packet events to record: true for all, or a table that selects some",
    ),
    Key::open(
        "convergence",
        ValueType::Either(&[ValueType::Table(CONVERGENCE), ValueType::List(&ValueType::Table(CONVERGENCE))]),
        "none",
        "criterion of convergence after each change of the flows, not with `poisson`; a list of tables gives several criteria",
    ),
];

/// Ends of a flow whose view determines its completion.
const ENDS: &[&str] = &["receiver", "sender"];

pub(super) fn measure(
    value: Option<&Value>,
    workload: Option<&Traffic>,
    topology: Option<&Topology>,
) -> Result<Measure, InputError> {
    let mut measure = Measure { fct: true, ..Measure::default() };
    let Some(value) = value else { return Ok(measure) };
    let mut section = Section::of(value, MEASURE)?;
    (measure.fct, measure.at_sender) = section.convert("fct", completion).unwrap_or((true, false));
    let classes = |names: Vec<String>| classes_of(names, workload);
    let links = |names: Vec<String>| {
        let mut links = links_of(&names, topology)?;
        links.sort_unstable();
        links.dedup();
        Ok(links)
    };
    let rates = section.nested("rates", |v| sampled(v, SAMPLED_FLOWS, "classes", classes)).unzip();
    let queues = section.nested("queues", |v| sampled(v, SAMPLED_LINKS, "links", links)).unzip();
    let paces = section.nested("paces", |v| sampled(v, SAMPLED_FLOWS, "classes", classes)).unzip();
    (measure.rates_ns, measure.rate_classes) = (rates.0, rates.1.flatten());
    (measure.queues_ns, measure.queue_links) = (queues.0, queues.1.flatten());
    (measure.paces_ns, measure.pace_classes) = (paces.0, paces.1.flatten());
    let packets = |v: &Value| topology.map_or(Ok(None), |topology| Recorded::read(v, topology));
    measure.packets = section.nested("packets", packets).flatten();
    measure.convergence = section
        .nested("convergence", |v| if v.is_array() { each(v, convergence) } else { Ok(vec![convergence(v)?]) })
        .unwrap_or_default();
    if !measure.convergence.is_empty() && workload.is_some_and(|w| !w.settles()) {
        let what = "flows come and go all the time: rates cannot settle";
        section.note(InputError::new("convergence", what, "use it with churn, incast, permutation or steps"));
    }
    section.end(Ok(measure))
}

/// Reads an interval, or a table of an interval and of what is sampled, which `select` finds.
fn sampled<T>(
    value: &Value,
    keys: &'static [Key],
    which: &'static str,
    select: impl FnOnce(Vec<String>) -> Result<T, InputError>,
) -> Result<(Ns, Option<T>), InputError> {
    if !value.is_object() {
        let table = json!({"every": value});
        let mut section = Section::of(&table, keys)?;
        let every_ns = section.take("every");
        let plain = |fault: InputError| InputError { place: String::new(), ..fault };
        return section.end(Ok((every_ns, None))).map_err(plain);
    }
    let mut section = Section::of(value, keys)?;
    let read = (section.take("every"), section.convert(which, select));
    section.end(Ok(read))
}

/// The classes called `names`, which the workload must have.
fn classes_of(names: Vec<String>, workload: Option<&Traffic>) -> Result<Vec<String>, InputError> {
    let Some(workload) = workload else { return Ok(names) };
    let known = workload.classes();
    if names.is_empty() || known.is_empty() {
        let (what, hint) = match known.is_empty() {
            true => ("the workload has no classes", "name the workload, or leave classes away"),
            false => ("the list is empty", "name at least one, or leave the key away for all"),
        };
        return Err(InputError::new("", what, hint));
    }
    match names.iter().position(|name| !known.contains(&name.as_str())) {
        None => Ok(names),
        Some(k) => Err(unknown_name(&names[k], "class", &known).below(&format!("[{k}]"))),
    }
}

/// Reads whether FCTs are measured, and whether a flow completes at its sender.
fn completion(value: Value) -> Result<(bool, bool), InputError> {
    Ok((value != false, value == "sender"))
}

/// Type of a sampling interval, at least 100 ns.
const INTERVAL: ValueType = ValueType::Span(100, MOST_NS);

const EVERY: Key = Key::required("every", INTERVAL, "sampling interval");

/// Keys of a table of sampled flows.
const SAMPLED_FLOWS: &[Key] = &[
    EVERY,
    Key::open("classes", ValueType::List(&ValueType::Text), "all", "classes of flows, by their workload's name"),
];

/// Keys of a table of sampled links.
const SAMPLED_LINKS: &[Key] =
    &[EVERY, Key::open("links", ValueType::List(&ValueType::Text), "all", "ids of links; * stands for any text")];

/// Type of a fraction above 0, up to 1.
const PART: ValueType = ValueType::Number(Low::Above(0.0), 1.0);

/// The keys of `[measure.convergence]`.
const CONVERGENCE: &[Key] = &[
    Key::new("within", PART, "0.1", "tolerance of a rate, relative to its goal"),
    Key::new("share", PART, "0.95", "fraction of the flows that must be within the tolerance"),
    Key::open("hold", ValueType::Time, "10 samples", "dwell time within the tolerance"),
    Key::new(
        "lasting",
        ValueType::Flag,
        "true",
        "whether rates must stay within the tolerance until the next change of the flows or the end of the run",
    ),
    Key::new(
        "of",
        ValueType::Word(&["assigned", "received"]),
        "received",
        "rates that are compared with the goal: `received` at the destination, filtered; or `assigned`, as the source sets them: its pacing rate, or without pacing its window over its RTT",
    ),
    Key::new(
        "against",
        ValueType::Word(&["policy", "scheme"]),
        "policy",
        "goal: `policy`: the exact rates under the policy, on whole links; `scheme`: under the scheme's own goal, on the part of each link that it leaves to data",
    ),
    Key::new(
        "acks",
        ValueType::Flag,
        "false",
        "whether the goal reserves capacity on each link for the ACKs of the flows that cross it in the opposite direction",
    ),
    Key::new("every", INTERVAL, "10us", "sampling interval"),
    Key::new("filter", INTERVAL, "80us", "time constant of the filter over received rates. See below"),
];

fn convergence(value: &Value) -> Result<Convergence, InputError> {
    let mut section = Section::of(value, CONVERGENCE)?;
    let every_ns: Ns = section.take("every");
    let convergence = Convergence {
        within: section.take("within"),
        share: section.take("share"),
        hold_ns: section.given("hold").unwrap_or(every_ns.saturating_mul(LOOKS_TO_HOLD)),
        lasting: section.take("lasting"),
        received: section.take::<String>("of") != "assigned",
        own_goal: section.take::<String>("against") == "scheme",
        acks: section.take("acks"),
        every_ns,
        filter_given: value.get("filter").is_some(),
        filter_ns: section.take("filter"),
    };
    section.end(Ok(convergence))
}
