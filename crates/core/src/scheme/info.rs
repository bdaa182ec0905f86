//! A scheme's metadata, and its view of flows and ports.

use super::follows::Follows;
use crate::document::nearest;
use crate::keys::{DefaultValue, FromValue, Key, ParamValue, ValueType};
use crate::utility::Urgency;
use crate::{FlowId, IdVec, InputError, InputErrors, LinkId, NodeId, Ns, Policy, SubflowId, Utility};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The kind of scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemeKind {
    /// Computes the exact rates; no packets.
    Oracle,
    /// Explicit rates from the links, in control packets of their own.
    Proactive,
    /// Reacts to marks, drops or delay.
    Reactive,
}

/// The allocation that a scheme converges to, which decides the policies it can serve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// The optimum of any policy.
    Any,
    /// Weighted max-min.
    MaxMin,
    /// Max-min of equal weights: it knows of none.
    EqualMaxMin,
    /// The largest sum of alpha-fair utilities, and of these others.
    Utility(Utilities),
    /// Its own: it knows of no policy, and may run under any.
    Own,
}

/// Utilities under which a scheme comes near the optimum (measured in crates/packet/tests/it/table.rs).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Utilities {
    /// Alpha-fair ones up to this alpha.
    pub most_alpha: f64,
    /// Those of fct, srpt and edf: weights of flows differ by many orders of magnitude.
    pub ranks: bool,
    /// Those of bandwidth functions.
    pub bandwidth_functions: bool,
}

impl Utilities {
    /// All of them.
    pub const ALL: Utilities = Utilities { most_alpha: f64::INFINITY, ranks: true, bandwidth_functions: true };
    /// None.
    pub const NONE: Utilities = Utilities { most_alpha: 0.0, ..Utilities::ALPHA_FAIR };
    /// Alpha-fair utilities alone.
    pub const ALPHA_FAIR: Utilities = Utilities { ranks: false, bandwidth_functions: false, ..Utilities::ALL };
}

impl Goal {
    /// Whether it serves `policy`. A linear utility (alpha 0) is refused: its slope has no inverse.
    pub fn serves(self, policy: Policy) -> bool {
        match (self, policy) {
            (Goal::Any | Goal::Own, _) => true,
            (Goal::MaxMin | Goal::EqualMaxMin, policy) => policy == Policy::MaxMin,
            (Goal::Utility(_), Policy::MaxMin) => false,
            (Goal::Utility(others), Policy::AlphaFair { alpha }) => alpha > 0.0 && alpha <= others.most_alpha,
            (Goal::Utility(others), Policy::BandwidthFunction) => others.bandwidth_functions,
            (Goal::Utility(others), Policy::Fct { .. } | Policy::Srpt { .. } | Policy::Edf { .. }) => others.ranks,
        }
    }

    /// The policies that it serves, in words.
    pub fn policies(self) -> String {
        let Goal::Utility(Utilities { most_alpha, ranks, bandwidth_functions }) = self else {
            return match self {
                Goal::MaxMin => "max-min",
                Goal::EqualMaxMin => "max-min, no weights",
                Goal::Any | Goal::Own | Goal::Utility(_) => "any",
            }
            .to_string();
        };
        let bound =
            if most_alpha.is_finite() { format!("alpha-fair up to alpha {most_alpha}") } else { "alpha-fair".into() };
        match (ranks, bandwidth_functions) {
            (true, true) => "all but max-min".to_string(),
            (true, false) => format!("{bound}, fct, srpt, edf"),
            (false, true) => format!("{bound}, bandwidth-function"),
            (false, false) => bound,
        }
    }

    /// In a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Goal::Any => "any policy",
            Goal::MaxMin => "max-min",
            Goal::EqualMaxMin => "max-min of equal weights",
            Goal::Utility(Utilities { bandwidth_functions: true, .. }) => "utilities",
            Goal::Utility(_) => "alpha-fair utilities",
            Goal::Own => "its own",
        }
    }
}

/// A scheme's name, kind, parameters and source.
#[derive(Debug, Clone, Copy)]
pub struct Info {
    /// Name in specs and on the command line.
    pub name: &'static str,
    /// One line on what it is.
    pub about: &'static str,
    /// Paper and section.
    pub paper: &'static str,
    /// The kind of scheme.
    pub kind: SchemeKind,
    /// Whether it lives on control messages alone, so that the round-based backend can run it.
    pub lives_on_control: bool,
    /// The allocation it converges to.
    pub goal: Goal,
    /// Whether a flow's weight changes its rate.
    pub weights: bool,
    /// Its parameters.
    pub params: &'static [Param],
    /// Tolerance and convergence time.
    pub settles: Settles,
}

/// Tolerance and convergence time of a scheme, for a constant set of flows and one queue per host. With per-flow round
/// robin at the NIC convergence may take ten times as long: an overloaded NIC link measures no more than its capacity.
/// The tests check both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settles {
    /// Largest relative difference between a flow's rate, on average over a hundred round trips, and its goal.
    pub within: f64,
    /// Round trips after which that holds.
    pub rtts: f64,
}

impl Settles {
    /// Exactly, and at once.
    pub const AT_ONCE: Settles = Settles { within: 0.0, rtts: 0.0 };
    /// It has no goal but its own.
    pub const NEVER: Settles = Settles { within: f64::INFINITY, rtts: f64::INFINITY };

    /// Whether it comes nearer its goal at all, in a time that it says.
    pub fn is_stated(self) -> bool {
        self.within < 1.0 && self.rtts.is_finite()
    }
}

/// A parameter of a scheme.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// Its name below `params.` in a spec, what it holds, its default, and what it does.
    pub key: Key,
    /// The quantity that the default is derived from, where the backend knows it.
    pub follows: Option<Follows>,
    /// Its default under the round-based backend.
    pub in_rounds: InRounds,
    /// Of a choice: the defaults of other parameters that its words bring.
    pub presets: &'static [Preset],
}

/// A word, and the defaults that it brings where a spec gives no value.
pub type Preset = (&'static str, &'static [(&'static str, ParamValue)]);

/// The default of a parameter under the round-based backend, which simulates control messages alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum InRounds {
    /// The same as under other backends.
    Default,
    /// 0: the whole capacity is for data, and nothing limits control messages.
    Zero,
    /// This many rounds.
    Rounds(f64),
    /// This many rounds where messages are lost, otherwise 0.
    RoundsIfLossy(f64),
}

impl Param {
    /// A number, `default` in base units.
    pub const fn number(name: &'static str, default: f64, value_type: ValueType, about: &'static str) -> Self {
        Param::of(name, value_type, ParamValue::Number(default), about)
    }
    /// Yes or no.
    pub const fn flag(name: &'static str, default: bool, about: &'static str) -> Self {
        Param::of(name, ValueType::Flag, ParamValue::Flag(default), about)
    }
    /// One of a few words, the first by default.
    pub const fn choice(name: &'static str, words: &'static [&'static str], about: &'static str) -> Self {
        Param::of(name, ValueType::Word(words), ParamValue::Word(words[0]), about)
    }
    const fn of(name: &'static str, value_type: ValueType, default: ParamValue, about: &'static str) -> Self {
        let key = Key { name, value_type, default: DefaultValue::Set(default), about };
        Param { key, follows: None, in_rounds: InRounds::Default, presets: &[] }
    }
    /// Its value where none is given.
    pub fn default(&self) -> ParamValue {
        let DefaultValue::Set(default) = self.key.default else { unreachable!("{} has a default", self.key.name) };
        default
    }
    /// The same, following `what`.
    #[must_use]
    pub const fn following(self, what: Follows) -> Self {
        Param { follows: Some(what), ..self }
    }
    /// The same choice, whose words bring other parameters' defaults.
    #[must_use]
    pub const fn presetting(self, presets: &'static [Preset]) -> Self {
        Param { presets, ..self }
    }
    /// The same, with another default under the round-based backend.
    #[must_use]
    pub const fn in_rounds(self, default: InRounds) -> Self {
        Param { in_rounds: default, ..self }
    }
}

/// The parameters of one scheme, each with a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Params(BTreeMap<&'static str, ParamValue>);

impl Params {
    /// The defaults of `info`, overridden by `given`; refuses names that the scheme does not have and values
    /// of another unit.
    pub fn resolve(info: &Info, given: &serde_json::Map<String, serde_json::Value>) -> Result<Self, InputError> {
        let mut values: BTreeMap<_, _> = info.params.iter().map(|p| (p.key.name, p.default())).collect();
        for param in info.params.iter().filter(|p| !p.presets.is_empty()) {
            let word = given.get(param.key.name).and_then(|v| v.as_str());
            let (_, others) = param.presets.iter().find(|(name, _)| Some(*name) == word).unwrap_or(&("", &[]));
            values.extend(others.iter().copied());
        }
        let mut faults = InputErrors::default();
        for (name, value) in given {
            let place = format!("params.{name}");
            let Some(param) = info.params.iter().find(|p| p.key.name == name) else {
                faults.push(unknown_param(info, name).below(&place));
                continue;
            };
            let read = ParamValue::read(param.key.value_type, value).map_err(|e| e.below(&place));
            values.extend(faults.keep(read).map(|v| (param.key.name, v)));
        }
        faults.done()?;
        Ok(Params(values))
    }

    /// The number `name` in base units. Asking for a parameter that the scheme did not declare is a bug.
    pub fn number(&self, name: &str) -> f64 {
        match self.0.get(name) {
            Some(ParamValue::Number(x)) => *x,
            other => unreachable!("parameter {name} is declared as a number, found {other:?}"),
        }
    }

    /// The duration `name`, ns.
    pub fn ns(&self, name: &str) -> Ns {
        (self.number(name) * 1e9).round() as Ns
    }

    /// The flag `name`.
    pub fn flag(&self, name: &str) -> bool {
        match self.0.get(name) {
            Some(ParamValue::Flag(x)) => *x,
            other => unreachable!("parameter {name} is declared as a flag, found {other:?}"),
        }
    }

    /// The word `name`.
    pub fn word(&self, name: &str) -> &'static str {
        match self.0.get(name) {
            Some(ParamValue::Word(word)) => word,
            other => unreachable!("parameter {name} is declared as a choice, found {other:?}"),
        }
    }

    /// Refuses `name` unless it lies in `low..=high`.
    pub fn within(&self, name: &str, low: f64, high: f64) -> Result<f64, InputError> {
        let x = self.number(name);
        if (low..=high).contains(&x) {
            return Ok(x);
        }
        Err(InputError::new(
            format!("params.{name}"),
            format!("{name} is {x}"),
            format!("give a value from {low} to {high}"),
        ))
    }

    /// The same; refuses a fraction too.
    pub fn whole(&self, name: &str, low: f64, high: f64) -> Result<f64, InputError> {
        let x = self.within(name, low, high)?;
        match x.fract() == 0.0 {
            true => Ok(x),
            false => Err(InputError::new(format!("params.{name}"), format!("{name} is {x}"), "give a whole number")),
        }
    }
}

fn unknown_param(info: &Info, name: &str) -> InputError {
    let known: Vec<_> = info.params.iter().map(|p| p.key.name).collect();
    let hint = match nearest(name, &known) {
        _ if known.is_empty() => "it takes none".to_string(),
        Some(near) => format!("did you mean \"{near}\"? it takes: {}", known.join(", ")),
        None => format!("it takes: {}", known.join(", ")),
    };
    InputError::new("", format!("scheme \"{}\" has no parameter \"{name}\"", info.name), hint)
}

/// A flow as its source and sink see it at creation.
#[derive(Debug, Clone)]
pub struct FlowInfo {
    /// The flow.
    pub flow: FlowId,
    /// Its weight.
    pub weight: f64,
    /// Its utility function.
    pub utility: Arc<Utility>,
    /// Growth of its utility over time.
    pub urgency: Urgency,
    /// Payload bytes to send; `None` for a flow without end.
    pub size_bytes: Option<u64>,
    /// The most that it can send, bit/s on the wire, all subflows together; infinite where nothing bounds it.
    pub demand_bps: f64,
    /// Payload bytes of a full packet.
    pub mss_bytes: u32,
    /// Bytes of a full packet on the wire.
    pub mtu_bytes: u32,
    /// One for each subflow.
    pub paths: IdVec<SubflowId, PathInfo>,
    /// Where it starts and where it ends, if the network knows its nodes.
    pub ends: Option<(NodeId, NodeId)>,
    /// The longest round trip on the idle network, ns: for schemes with one time for all flows.
    pub rtt_ns: Ns,
    /// The largest line rate of the network, bit/s: for schemes with one scale of rates for all flows.
    pub line_rate_bps: f64,
    /// The links of each path, one list for each subflow.
    pub links: IdVec<SubflowId, Vec<LinkId>>,
    /// Seed of its random numbers: see [`crate::rng::Stream`].
    pub seed: u64,
}

impl FlowInfo {
    /// An endless flow of weight one over `paths`, of ordinary packets, as tests of machines need it.
    pub fn example(flow: FlowId, paths: Vec<PathInfo>) -> Self {
        FlowInfo {
            flow,
            weight: 1.0,
            utility: Arc::new(Utility::log(1.0)),
            urgency: Urgency::Constant,
            size_bytes: None,
            demand_bps: f64::INFINITY,
            mss_bytes: 1446,
            mtu_bytes: 1500,
            links: paths.iter().map(|p| LinkId::first(p.hops.into()).collect()).collect(),
            ends: None,
            rtt_ns: paths.iter().map(|p| p.base_rtt_ns).max().unwrap_or(1),
            line_rate_bps: paths.iter().map(|p| p.line_rate_bps).fold(0.0, f64::max),
            seed: 0,
            paths: paths.into(),
        }
    }
}

/// Properties of a subflow's path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathInfo {
    /// Links on it.
    pub hops: u16,
    /// Capacity of its first link, bit/s: the line rate.
    pub line_rate_bps: f64,
    /// Capacity of its narrowest link, bit/s.
    pub min_capacity_bps: f64,
    /// Round trip of a full packet and its acknowledgement on the idle network, ns.
    pub base_rtt_ns: Ns,
}

impl PathInfo {
    /// A time of a scheme on this path, ns: `given_ns`, or where that is 0, `rtts` base RTTs and at least `least_ns`.
    pub fn time_ns(&self, given_ns: f64, rtts: f64, least_ns: f64) -> f64 {
        if given_ns > 0.0 { given_ns } else { (rtts * self.base_rtt_ns as f64).max(least_ns) }
    }
}

/// An output port as its hop and queue know it; what is looked at or written for every packet comes first.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Port {
    /// Bytes waiting now (0 when the scheme is made).
    pub queued_bytes: u64,
    /// Propagation delay, ns.
    pub delay_ns: Ns,
    /// Packets waiting now.
    pub queued_packets: u32,
    /// The directed link behind it.
    pub link: LinkId,
    /// Capacity, bit/s.
    pub capacity_bps: f64,
    /// Room in the queue, bytes.
    pub buffer_bytes: u64,
    /// Bytes of a full packet on the wire.
    pub mtu_bytes: u32,
    /// Where it leaves, if the network knows its nodes.
    pub from: Option<NodeId>,
    /// Where it arrives, if the network knows its nodes.
    pub to: Option<NodeId>,
    /// The longest round trip on the idle network, ns: what schemes with one interval for all links start from.
    pub rtt_ns: Ns,
    /// Seed of the random numbers at this port: see [`crate::rng::Stream`].
    pub seed: u64,
}

impl Port {
    /// An idle port before a link of `capacity_bps`, as tests of machines need it.
    pub fn example(link: LinkId, capacity_bps: f64) -> Self {
        Port {
            link,
            from: None,
            to: None,
            seed: 0,
            capacity_bps,
            delay_ns: 1000,
            buffer_bytes: 150_000,
            mtu_bytes: 1500,
            rtt_ns: 12_000,
            queued_bytes: 0,
            queued_packets: 0,
        }
    }
}
