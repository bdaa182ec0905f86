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
    /// Computes the exact rates, without packets.
    Oracle,
    /// Links compute explicit rates and send them in control packets.
    Proactive,
    /// Sources react to ECN marks, drops or delay.
    Reactive,
}

/// The allocation to which a scheme converges. The goal decides which policies the scheme accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// The optimum of any policy.
    Any,
    /// Weighted max-min.
    MaxMin,
    /// Max-min with equal weights: the scheme has no weights.
    EqualMaxMin,
    /// The largest sum of utilities, for the utility functions in this field.
    Utility(Utilities),
    /// An allocation of its own: the scheme ignores the policy and may run under any.
    Own,
}

/// Utilities under which a scheme comes near the optimum (measured in crates/packet/tests/it/table.rs).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Utilities {
    /// Largest alpha of alpha-fair utilities.
    pub most_alpha: f64,
    /// Smallest and largest alpha at which rates come within 15% of the optimum on every network that was tried. A run
    /// at another alpha is warned of.
    pub sound_alpha: (f64, f64),
    /// Whether utilities of fct, srpt and edf are included. Under them, weights of flows differ by many orders of
    /// magnitude.
    pub ranks: bool,
    /// Whether utilities of bandwidth functions are included.
    pub bandwidth_functions: bool,
    /// Whether utilities of the user's own are included.
    pub curves: bool,
    /// Cases in which rates are more than 15% off the optimum on some networks. A run is warned of them.
    pub doubtful: Doubtful,
    /// Largest alpha at which flows over several paths come near the optimum. A run at a larger one is warned of.
    pub pooled_alpha: f64,
}

/// Cases that a scheme serves, and in which its rates are far from the optimum on some networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doubtful {
    /// The policies fct, srpt and edf.
    pub ranks: bool,
    /// The policy bandwidth-function.
    pub bandwidth_functions: bool,
    /// Flows over several paths.
    pub pooled: bool,
}

impl Doubtful {
    /// No such case.
    pub const NONE: Doubtful = Doubtful { ranks: false, bandwidth_functions: false, pooled: false };
}

impl Utilities {
    /// All utilities.
    pub const ALL: Utilities = Utilities {
        most_alpha: f64::INFINITY,
        sound_alpha: (0.0, f64::INFINITY),
        ranks: true,
        bandwidth_functions: true,
        curves: false,
        doubtful: Doubtful::NONE,
        pooled_alpha: f64::INFINITY,
    };
    /// No utilities.
    pub const NONE: Utilities = Utilities { most_alpha: 0.0, ..Utilities::ALPHA_FAIR };
    /// Alpha-fair utilities alone.
    pub const ALPHA_FAIR: Utilities = Utilities { ranks: false, bandwidth_functions: false, ..Utilities::ALL };
}

impl Goal {
    /// Whether the scheme can run under `policy`. A linear utility (alpha 0) is refused: its slope has no inverse.
    pub fn serves(self, policy: Policy) -> bool {
        match (self, policy) {
            (Goal::Any | Goal::Own, _) => true,
            (Goal::MaxMin | Goal::EqualMaxMin, policy) => policy == Policy::MaxMin,
            (Goal::Utility(_), Policy::MaxMin) => false,
            (Goal::Utility(others), Policy::AlphaFair { alpha }) => alpha > 0.0 && alpha <= others.most_alpha,
            (Goal::Utility(others), Policy::BandwidthFunction { .. }) => others.bandwidth_functions,
            (Goal::Utility(others), Policy::Utility) => others.curves,
            (Goal::Utility(others), Policy::Fct { .. } | Policy::Srpt { .. } | Policy::Edf { .. }) => others.ranks,
        }
    }

    /// The range of alpha at which the scheme comes near the optimum, if `policy` is outside of it.
    pub fn sound_alpha(self, policy: Policy) -> Option<(f64, f64)> {
        let (Goal::Utility(Utilities { sound_alpha, .. }), Policy::AlphaFair { alpha }) = (self, policy) else {
            return None;
        };
        (alpha < sound_alpha.0 || alpha > sound_alpha.1).then_some(sound_alpha)
    }

    /// Cases in which the scheme's rates are far from the optimum on some networks.
    pub fn doubtful(self) -> Doubtful {
        match self {
            Goal::Utility(Utilities { doubtful, .. }) => doubtful,
            _ => Doubtful::NONE,
        }
    }

    /// Whether flows over several paths are far from the optimum of `policy` because of its alpha.
    pub fn pools_badly(self, policy: Policy) -> bool {
        matches!((self, policy), (Goal::Utility(of), Policy::AlphaFair { alpha }) if alpha > of.pooled_alpha)
    }

    /// The accepted policies, in words.
    pub fn policies(self) -> String {
        let Goal::Utility(Utilities { most_alpha, ranks, bandwidth_functions, .. }) = self else {
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

    /// Name of the allocation, in a word or two.
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

/// Metadata of a scheme: name, kind, parameters and source.
#[derive(Debug, Clone, Copy)]
pub struct Info {
    /// Name in specs and on the command line.
    pub name: &'static str,
    /// Description, one line.
    pub about: &'static str,
    /// Paper and section.
    pub paper: &'static str,
    /// The kind of scheme.
    pub kind: SchemeKind,
    /// Whether control messages alone determine the rates, so that the round-based backend can run the scheme.
    pub lives_on_control: bool,
    /// The allocation to which the scheme converges.
    pub goal: Goal,
    /// Whether a flow's weight changes its rate.
    pub weights: bool,
    /// Parameters of the scheme.
    pub params: &'static [Param],
    /// Tolerance and convergence time.
    pub settles: Settles,
    /// Proven bound on the rounds in which rates become exact.
    pub bound: Bound,
    /// How real hosts run the scheme.
    pub on_hosts: OnHosts,
    /// Whether flows of other schemes can use the same links.
    pub shares_links: SharesLinks,
}

impl Info {
    /// A reactive scheme without weights, parameters and promises, for the fields that a scheme leaves out.
    pub const DEFAULT: Info = Info {
        name: "",
        about: "",
        paper: "",
        kind: SchemeKind::Reactive,
        lives_on_control: false,
        goal: Goal::Own,
        weights: false,
        params: &[],
        settles: Settles::NEVER,
        bound: Bound::None,
        on_hosts: OnHosts::No,
        shares_links: SharesLinks::No("its links divide their capacity among its own flows"),
    };
}

/// Whether flows of a scheme can use the same links as flows of other schemes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharesLinks {
    /// They can: its links need no more than a drop-tail FIFO, or one for each class, ECN marks
    /// ([`Scheme::marks`](super::Scheme::marks)), and headers that other schemes' packets can lack.
    Yes,
    /// They cannot, for this reason: a clause about the scheme.
    No(&'static str),
}

/// Queue lengths at which a link sets ECN marks.
#[derive(Debug, Clone, PartialEq)]
pub struct Marks {
    /// The parameter that sets the length.
    pub param: String,
    /// Queue length from which on packets may be marked, bytes.
    pub low_bytes: u64,
    /// Queue length from which on every packet is marked, bytes.
    pub high_bytes: u64,
    /// Probability of a mark just below `high_bytes`; 1 for a step.
    pub most: f64,
}

impl Marks {
    /// Every packet that arrives at a queue of `bytes` or more is marked, which the parameter `param` sets.
    pub fn step(param: &str, bytes: u64) -> Self {
        Marks { param: param.to_string(), low_bytes: bytes, high_bytes: bytes, most: 1.0 }
    }

    /// Whether both mark the same packets.
    pub fn agree(&self, other: &Marks) -> bool {
        (self.low_bytes, self.high_bytes, self.most) == (other.low_bytes, other.high_bytes, other.most)
    }
}

/// A proven bound on the rounds in which rates become exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// 4 rounds for each iteration of the water-filling algorithm WF1 (PERC thesis, theorem 2.6.1).
    FourD,
    /// 4 rounds for each bottleneck link (PERC thesis, section 2.7).
    FourN,
    /// 6 rounds for each iteration of the water-filling algorithm WF2 (PERC thesis, theorem 3.4.4).
    SixW2,
    /// No bound is known.
    None,
}

/// How real hosts run a scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnHosts {
    /// They do not.
    No,
    /// By the kernel's own congestion control of that name, without parameters.
    Kernel,
    /// By eBPF programs at senders and queues.
    Programs,
    /// By control packets between agents, and eBPF programs at queues.
    Control,
    /// By the allocator's daemon and an endpoint at each host.
    Allocator,
}

impl OnHosts {
    /// Name in one word; `None` for a scheme that hosts do not run.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            OnHosts::No => None,
            OnHosts::Kernel => Some("kernel"),
            OnHosts::Programs => Some("programs"),
            OnHosts::Control => Some("control"),
            OnHosts::Allocator => Some("allocator"),
        }
    }
}

/// Tolerance and convergence time of a scheme, for a constant set of flows and one queue per host. With per-flow round
/// robin at the NIC convergence may take ten times as long: an overloaded NIC link measures no more than its capacity.
/// Tests check the tolerance and the time, with one queue per host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settles {
    /// Largest relative difference between a flow's rate, averaged over a hundred RTTs, and its rate under the
    /// scheme's [`Goal`].
    pub within: f64,
    /// Convergence time, RTTs.
    pub rtts: f64,
}

impl Settles {
    /// Exact rates without delay.
    pub const AT_ONCE: Settles = Settles { within: 0.0, rtts: 0.0 };
    /// No convergence: the scheme follows no policy.
    pub const NEVER: Settles = Settles { within: f64::INFINITY, rtts: f64::INFINITY };

    /// Whether a tolerance and a convergence time are stated.
    pub fn is_stated(self) -> bool {
        self.within < 1.0 && self.rtts.is_finite()
    }
}

/// A parameter of a scheme.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// Key below `params.` in a spec: name, type, default and description.
    pub key: Key,
    /// The property of the run from which the default is derived; `None` if the default is a constant.
    pub follows: Option<Follows>,
    /// Default under the round-based backend.
    pub in_rounds: InRounds,
    /// For a choice: the defaults of other parameters that each word sets.
    pub presets: &'static [Preset],
    /// The choice and its words under which the parameter has an effect; `None`: it always has.
    pub only: Option<(&'static str, &'static [&'static str])>,
    /// The number that replaces the parameter unless it is 0.
    pub unless: Option<&'static str>,
}

/// A word, and the defaults of other parameters that it sets.
pub type Preset = (&'static str, &'static [(&'static str, ParamValue)]);

/// The default of a parameter under the round-based backend, which simulates control messages alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum InRounds {
    /// The same as under other backends.
    Default,
    /// 0: the whole capacity is for data, and control messages are not limited.
    Zero,
    /// This many rounds.
    Rounds(f64),
    /// This many rounds if messages are lost, otherwise 0.
    RoundsIfLossy(f64),
}

impl Param {
    /// A parameter that is a number, with a default in base units.
    pub const fn number(name: &'static str, default: f64, value_type: ValueType, about: &'static str) -> Self {
        Param::of(name, value_type, ParamValue::Number(default), about)
    }
    /// A parameter that is true or false.
    pub const fn flag(name: &'static str, default: bool, about: &'static str) -> Self {
        Param::of(name, ValueType::Flag, ParamValue::Flag(default), about)
    }
    /// A parameter that is one of a few words; the first is the default.
    pub const fn choice(name: &'static str, words: &'static [&'static str], about: &'static str) -> Self {
        Param::of(name, ValueType::Word(words), ParamValue::Word(words[0]), about)
    }
    const fn of(name: &'static str, value_type: ValueType, default: ParamValue, about: &'static str) -> Self {
        let key = Key { name, value_type, default: DefaultValue::Set(default), about };
        Param { key, follows: None, in_rounds: InRounds::Default, presets: &[], only: None, unless: None }
    }
    /// The default.
    pub fn default(&self) -> ParamValue {
        let DefaultValue::Set(default) = self.key.default else { unreachable!("{} has a default", self.key.name) };
        default
    }
    /// The parameter with a default that is derived from `what`.
    #[must_use]
    pub const fn following(self, what: Follows) -> Self {
        Param { follows: Some(what), ..self }
    }
    /// The choice, with words that set defaults of other parameters.
    #[must_use]
    pub const fn presetting(self, presets: &'static [Preset]) -> Self {
        Param { presets, ..self }
    }
    /// The parameter with an effect only where the parameter `choice` is one of `words`.
    #[must_use]
    pub const fn only(self, choice: &'static str, words: &'static [&'static str]) -> Self {
        Param { only: Some((choice, words)), ..self }
    }
    /// The parameter with an effect only where the number `other` is 0.
    #[must_use]
    pub const fn unless(self, other: &'static str) -> Self {
        Param { unless: Some(other), ..self }
    }
    /// The parameter with another default under the round-based backend.
    #[must_use]
    pub const fn in_rounds(self, default: InRounds) -> Self {
        Param { in_rounds: default, ..self }
    }
}

/// The parameters of one scheme, each with a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Params(BTreeMap<&'static str, ParamValue>);

impl Params {
    /// Values for all parameters of `info`: those `given`, otherwise defaults. Unknown names and wrong units are
    /// errors.
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

    /// Names of the parameters `given` that have no effect, since another parameter has a value under which they are not
    /// read, each with the reason.
    pub fn unused(info: &Info, given: &serde_json::Map<String, serde_json::Value>) -> Vec<(&'static str, String)> {
        let Ok(params) = Params::resolve(info, given) else { return Vec::new() };
        let replaced = |param: &Param| {
            let other = param.unless.filter(|other| params.number(other) != 0.0)?;
            Some((param.key.name, format!("{other} is set, and replaces it")))
        };
        let by_choice = |param: &Param| {
            let (choice, words) = param.only.filter(|(choice, words)| !words.contains(&params.word(choice)))?;
            let read = words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" or ");
            Some((
                param.key.name,
                format!("{choice} is \"{}\": it is read with {choice} = {read}", params.word(choice)),
            ))
        };
        let reason = |param: &Param| by_choice(param).or_else(|| replaced(param));
        info.params.iter().filter(|param| given.contains_key(param.key.name)).filter_map(reason).collect()
    }

    /// The number `name` in base units. Panics if the scheme did not declare it.
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

    /// The number `name`; an error unless it lies in `low..=high`.
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

    /// Like [`Params::within`]; a fraction is an error too.
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

/// A flow, as its source and sink receive it at creation.
#[derive(Debug, Clone)]
pub struct FlowInfo {
    /// The flow.
    pub flow: FlowId,
    /// Weight of the flow.
    pub weight: f64,
    /// Utility function of the flow.
    pub utility: Arc<Utility>,
    /// Factor on the flow's utility that may grow over time.
    pub urgency: Urgency,
    /// Payload bytes to send; `None` for unlimited data.
    pub size_bytes: Option<u64>,
    /// Demand: largest rate, bit/s on the wire, over all subflows; infinite for no bound.
    pub demand_bps: f64,
    /// Payload bytes of a full packet.
    pub mss_bytes: u32,
    /// Bytes of a full packet on the wire.
    pub mtu_bytes: u32,
    /// The path of each subflow.
    pub paths: IdVec<SubflowId, PathInfo>,
    /// The source and destination nodes, if the network knows its nodes.
    pub ends: Option<(NodeId, NodeId)>,
    /// The largest base RTT of the network, ns: for schemes with one time constant for all flows.
    pub rtt_ns: Ns,
    /// The largest line rate of the network, bit/s: for schemes that scale rates by one constant.
    pub line_rate_bps: f64,
    /// The links of each subflow's path.
    pub links: IdVec<SubflowId, Vec<LinkId>>,
    /// Seed of the flow's random numbers: see [`crate::rng::Stream`].
    pub seed: u64,
    /// Index of the flow's scheme among those of the run; 0 if the run has one.
    pub scheme: u8,
}

impl FlowInfo {
    /// An endless flow of weight 1 over `paths` with standard packet sizes, for tests of state machines.
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
            scheme: 0,
            paths: paths.into(),
        }
    }
}

/// Properties of a subflow's path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathInfo {
    /// Number of links.
    pub hops: u16,
    /// Capacity of the path's first link, bit/s: the line rate.
    pub line_rate_bps: f64,
    /// Smallest capacity of the path's links, bit/s.
    pub min_capacity_bps: f64,
    /// Base RTT, ns: a full packet and its ACK on the idle network.
    pub base_rtt_ns: Ns,
}

impl PathInfo {
    /// A time constant of a scheme on this path, ns: `given_ns`, or if that is 0, `rtts` base RTTs and at least
    /// `least_ns`.
    pub fn time_ns(&self, given_ns: f64, rtts: f64, least_ns: f64) -> f64 {
        if given_ns > 0.0 { given_ns } else { (rtts * self.base_rtt_ns as f64).max(least_ns) }
    }
}

/// An output port, as its hop and queue see it. Fields used for every packet come first.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Port {
    /// Queue length, bytes (0 when the scheme is created).
    pub queued_bytes: u64,
    /// Propagation delay, ns.
    pub delay_ns: Ns,
    /// Queue length, packets.
    pub queued_packets: u32,
    /// The directed link that the port feeds.
    pub link: LinkId,
    /// Capacity, bit/s.
    pub capacity_bps: f64,
    /// Size of the queue, bytes.
    pub buffer_bytes: u64,
    /// Bytes of a full packet on the wire.
    pub mtu_bytes: u32,
    /// The node at which the link starts, if the network knows its nodes.
    pub from: Option<NodeId>,
    /// The node at which the link ends, if the network knows its nodes.
    pub to: Option<NodeId>,
    /// The largest base RTT of the network, ns: for schemes with one interval for all links.
    pub rtt_ns: Ns,
    /// Seed of the random numbers at this port: see [`crate::rng::Stream`].
    pub seed: u64,
}

impl Port {
    /// An idle port of a link of `capacity_bps`, for tests of state machines.
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
