//! Backends: simulators and testbeds that run schemes. Only this module refers to backends and schemes by name.

use crate::spec::outside::Outside;
use crate::spec::swept::Swept;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use subak_core::backend::{Backend, Injected, PacketSizes};
use subak_core::keys::ValueType;
use subak_core::scheme::{
    Doubt, Goal, Info, LeastShare, Load, Param, Params, Scheme, SchemeKind, Settles, SimulationCost,
};
use subak_core::{InputError, Network, Nic, Ns, Policy};
use subak_fluid::Stated;
use subak_schemes::foreign::Definition;
use subak_schemes::{Chosen, Visitor, registry};

/// Estimated cost of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// Number of flows.
    pub flows: f64,
    /// Packet-hops: packets leaving one queue onto one link (0 in the flow-level backend).
    pub packet_hops: f64,
    /// Seconds of processor time on one core.
    pub seconds: f64,
}

/// A scheme of a spec with its parameters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SchemeChoice {
    /// Name; `OPTIMIZER/TRANSPORT` for a scheme composed of two parts.
    pub name: String,
    /// Label in results.
    pub label: String,
    /// Backend in the spec; `None`: the scheme's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// Parameters in the spec.
    pub params: Map<String, Value>,
    /// Label without the swept parameters; `None` if none is swept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Values of swept parameters (`params.k`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub swept: BTreeMap<String, Swept>,
    /// Policy of the scheme as written, if it differs from the spec's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Value>,
    /// The value of `policy`, parsed.
    #[serde(skip)]
    pub(crate) own_policy: Option<Policy>,
    /// Index in the spec's list of schemes.
    #[serde(skip)]
    pub(crate) place: usize,
    /// Definition of a scheme supplied by the user; `None` for a built-in one.
    #[serde(skip)]
    pub(crate) outside: Option<Outside>,
}

impl SchemeChoice {
    /// Backend and metadata of the scheme.
    pub fn backend(&self) -> Result<(&dyn BackendKind, Info), InputError> {
        if let Some(outside) = &self.outside {
            return Ok((outside.backend(), *outside.definition().info()));
        }
        find(&self.name, self.backend.as_deref())
    }
}

/// The input of a simulation.
#[derive(Debug, Clone, Copy)]
pub struct SimulationInput<'a> {
    /// The network before any flow starts.
    pub network: &'a Network,
    /// Sizes of packets on the wire.
    pub sizes: PacketSizes,
    /// Injected faults.
    pub faults: &'a [Injected],
    /// Seed of the random impairments of packets.
    pub seed: u64,
    /// Number of threads.
    pub threads: usize,
}

/// The expected work of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpectedWork {
    /// Number of flows.
    pub flows: f64,
    /// Packet-hops: packets leaving one queue onto one link.
    pub packet_hops: f64,
    /// Simulated time up to the spec's duration, s.
    pub seconds: f64,
    /// Number of hosts.
    pub hosts: f64,
    /// Number of links.
    pub links: f64,
    /// Mean number of concurrent flows.
    pub live: f64,
    /// Time until the last flow would end if the hosts' links were the only bottlenecks, s.
    pub busy_s: f64,
    /// Base RTT of a path over average links, s.
    pub rtt_s: f64,
}

/// Features of a scenario that some backends lack.
#[derive(Debug, Clone, Copy)]
pub struct Features {
    /// Whether queues are sampled.
    pub queues: bool,
    /// Whether pacing rates are sampled.
    pub paces: bool,
    /// Whether packets are recorded.
    pub packets: bool,
    /// Whether the scheduling of NICs is not the default.
    pub nic: bool,
    /// Whether the spec injects packet impairments or restarts of state machines.
    pub losses: bool,
    /// Whether the spec sets link delays.
    pub delays: bool,
    /// Whether the spec sets buffers of links.
    pub buffers: bool,
}

/// Keys with flag `true`, each with its reason. Entries of `keys`: key, flag (whether the spec sets it), reason why it
/// is unused.
fn given<const N: usize>(keys: [(&'static str, bool, &'static str); N]) -> Vec<(&'static str, &'static str)> {
    keys.into_iter().filter(|(_, given, _)| *given).map(|(key, _, why)| (key, why)).collect()
}

/// Maximum duration and drain of the packet-level backend, ns: two hours. Its clock counts units of 2^-10 ps and
/// overflows after five hours.
pub(crate) const SHORT_NS: Ns = 2 * 3600 * 1_000_000_000;

/// A kind of backend, with its schemes.
pub trait BackendKind: Sync {
    /// Name of the backend in specs.
    fn name(&self) -> &'static str;
    /// Description, one line.
    fn about(&self) -> &'static str;
    /// Metadata of the backend's schemes, in the order of the documentation.
    fn schemes(&self) -> Vec<Info>;
    /// Metadata of a scheme by name; the error lists the schemes of this backend.
    fn find(&self, name: &str) -> Result<Info, InputError>;
    /// Metadata of a scheme for which the spec requests this backend; the error says why the backend does not support
    /// it.
    fn take(&self, name: &str) -> Result<Info, InputError> {
        self.find(name)
    }
    /// Checks the parameters; returns the fraction of a link that the scheme lets data use.
    fn data_share(&self, name: &str, params: &Map<String, Value>) -> Result<f64, InputError>;
    /// Creates a simulation of the scheme called `name`.
    fn build(
        &self,
        name: &str,
        params: &Map<String, Value>,
        scene: SimulationInput,
    ) -> Result<Box<dyn Backend>, InputError>;
    /// Whether the scheme has a central controller; the spec must then place it at a node.
    fn has_controller(&self, name: &str, params: &Map<String, Value>, network: &Network) -> Result<bool, InputError> {
        let _ = (name, params, network);
        Ok(false)
    }
    /// Whether rates converge again after control messages were lost or links failed.
    fn recovers(&self, name: &str, params: &Map<String, Value>) -> bool {
        let _ = (name, params);
        true
    }
    /// Whether the scheme requires lossless switches (PFC).
    fn is_lossless(&self, name: &str, params: &Map<String, Value>) -> bool {
        let _ = (name, params);
        false
    }
    /// A warning for each parameter of the scheme whose value does not suit the network, or the flows' `least` share.
    fn doubts(
        &self,
        name: &str,
        params: &Map<String, Value>,
        network: &Network,
        sizes: PacketSizes,
        least: Option<LeastShare>,
    ) -> Vec<Doubt> {
        let _ = (name, params, network, sizes, least);
        Vec::new()
    }
    /// Why a fault has no effect on the scheme; `None` if it may have one.
    fn ignores(
        &self,
        name: &str,
        params: &Map<String, Value>,
        network: &Network,
        sizes: PacketSizes,
        fault: &Injected,
    ) -> Option<&'static str> {
        let _ = (name, params, network, sizes, fault);
        None
    }
    /// Why the scheme does not support packet spraying, and a hint; `None` if it does.
    fn keeps_to_one_path(&self, name: &str, params: &Map<String, Value>) -> Option<(&'static str, &'static str)> {
        let _ = (name, params);
        None
    }
    /// NIC scheduling under the scheme; `None` for a backend without NICs.
    fn nic(&self, name: &str, params: &Map<String, Value>, network: &Network) -> Option<Nic> {
        let _ = (name, params, network);
        None
    }
    /// Whether the backend is a testbed, for which `build` is not called.
    fn is_real(&self) -> bool {
        false
    }
    /// Keys of the spec that this backend ignores, each with the reason.
    fn leaves_out(&self, wishes: &Features) -> Vec<(&'static str, &'static str)> {
        let _ = wishes;
        Vec::new()
    }
    /// Names of the parameters `given` that this backend does not read.
    fn unread<'a>(&self, name: &str, given: &'a Map<String, Value>) -> Vec<&'a str> {
        let _ = (name, given);
        Vec::new()
    }
    /// Maximum duration and drain, ns.
    fn most_ns(&self) -> Ns {
        SHORT_NS
    }
    /// Estimated cost of a run of the scheme.
    fn cost(&self, name: &str, params: &Map<String, Value>, expected: ExpectedWork) -> Cost;
}

/// All backends.
pub const BACKENDS: &[&dyn BackendKind] = &[&Fluid, &Hosts, &Packets(None)];

/// Backend and metadata of the scheme called `name`. `asked`: backend in the spec; `None`: the first that has the
/// scheme.
pub fn find(name: &str, asked: Option<&str>) -> Result<(&'static dyn BackendKind, Info), InputError> {
    let known = BACKENDS.iter().find_map(|backend| backend.find(name).ok().map(|info| (*backend, info)));
    // The error of the last backend says why a pair of optimizer and transport is invalid.
    let known = known.ok_or_else(|| match BACKENDS.last().map(|backend| backend.find(name)) {
        Some(Err(fault)) if name.contains('/') => fault,
        _ => {
            let all = all();
            let names: Vec<_> = all.iter().map(|s| s.name).collect();
            subak_core::document::unknown_word(name, "scheme", &names).below("name")
        }
    })?;
    let Some(asked) = asked else { return Ok(known) };
    let Some(backend) = BACKENDS.iter().find(|backend| backend.name() == asked) else {
        let names: Vec<_> = BACKENDS.iter().map(|backend| backend.name()).collect();
        return Err(subak_core::document::unknown_word(asked, "backend", &names).below("backend"));
    };
    match backend.take(name) {
        Ok(info) => Ok((*backend, info)),
        Err(fault) if fault.place == "backend" => Err(fault),
        Err(_) => {
            let what = format!("the backend \"{asked}\" does not run scheme \"{name}\"");
            Err(InputError::new("backend", what, format!("leave backend away: \"{}\" runs it", known.0.name())))
        }
    }
}

/// Metadata of every scheme with a name, in the order of the backends.
pub fn all() -> Vec<Info> {
    BACKENDS.iter().flat_map(|backend| backend.schemes()).collect()
}

/// Properties of a scheme with default parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// Whether the scheme has a central controller.
    pub controller: bool,
    /// Whether rates converge again after control messages were lost or links failed.
    pub recovers: bool,
    /// Whether the scheme requires lossless switches (PFC).
    pub lossless: bool,
}

/// Properties of the scheme called `name`; the error lists the known schemes.
pub fn traits(name: &str) -> Result<Traits, InputError> {
    let (backend, _) = find(name, None)?;
    let params = Map::new();
    Ok(Traits {
        controller: backend.has_controller(name, &params, &Network::new())?,
        recovers: backend.recovers(name, &params),
        lossless: backend.is_lossless(name, &params),
    })
}

/// The packet-level backend, `subak-packet`. `None`: built-in schemes; otherwise one scheme supplied by the user.
#[derive(Debug, Clone)]
pub(crate) struct Packets(pub Option<Arc<dyn Definition>>);

impl Packets {
    /// The built-in scheme called `name`, or the scheme supplied by the user.
    fn chosen<'a>(&'a self, name: &'a str) -> Chosen<'a> {
        self.0.as_deref().map_or(Chosen::Named(name), Chosen::Foreign)
    }
}

struct HasController<'a>(&'a Network);

impl Visitor for HasController<'_> {
    type Out = bool;
    fn visit<S: Scheme>(self, scheme: S) -> bool {
        scheme.controller(self.0).is_some()
    }
}

struct Recovers;

impl Visitor for Recovers {
    type Out = bool;
    fn visit<S: Scheme>(self, scheme: S) -> bool {
        scheme.recovers()
    }
}

struct OnePath;

impl Visitor for OnePath {
    type Out = Option<(&'static str, &'static str)>;
    fn visit<S: Scheme>(self, scheme: S) -> Self::Out {
        if scheme.takes_one_path() {
            return Some(("holds what the links of a path tell against what they told before", ""));
        }
        let why = "has receivers that drop what comes out of order (go-back-N)";
        scheme.recovery().go_back.then_some((why, ", or the scheme's params.recovery = \"selective\""))
    }
}

struct IsLossless;

impl Visitor for IsLossless {
    type Out = bool;
    fn visit<S: Scheme>(self, scheme: S) -> bool {
        scheme.lossless().is_some()
    }
}

struct Asked(Load);

impl Visitor for Asked {
    type Out = SimulationCost;
    fn visit<S: Scheme>(self, scheme: S) -> SimulationCost {
        scheme.work(&self.0)
    }
}

struct Share;

impl Visitor for Share {
    type Out = f64;
    fn visit<S: Scheme>(self, scheme: S) -> f64 {
        scheme.data_share()
    }
}

impl BackendKind for Packets {
    fn name(&self) -> &'static str {
        "packet"
    }
    fn about(&self) -> &'static str {
        "every packet on its way through queues and links"
    }
    fn schemes(&self) -> Vec<Info> {
        self.0.as_ref().map_or_else(|| registry::schemes().to_vec(), |outside| vec![*outside.info()])
    }
    fn find(&self, name: &str) -> Result<Info, InputError> {
        self.0.as_ref().map_or_else(|| registry::find(name).copied(), |outside| Ok(*outside.info()))
    }
    fn data_share(&self, name: &str, params: &Map<String, Value>) -> Result<f64, InputError> {
        subak_schemes::with_scheme(self.chosen(name), params, Share)
    }
    fn build(
        &self,
        name: &str,
        params: &Map<String, Value>,
        scene: SimulationInput,
    ) -> Result<Box<dyn Backend>, InputError> {
        let SimulationInput { network, sizes, faults, seed, threads } = scene;
        subak_packet::build_on(threads, self.chosen(name), params, network, sizes, faults, seed)
    }
    fn has_controller(&self, name: &str, params: &Map<String, Value>, network: &Network) -> Result<bool, InputError> {
        subak_schemes::with_scheme(self.chosen(name), params, HasController(network))
    }
    fn nic(&self, name: &str, params: &Map<String, Value>, network: &Network) -> Option<Nic> {
        let own = registry::own_nic(self.chosen(name), params).ok()?;
        Some(own.unwrap_or(network.nic()))
    }
    fn recovers(&self, name: &str, params: &Map<String, Value>) -> bool {
        subak_schemes::with_scheme(self.chosen(name), params, Recovers).unwrap_or(true)
    }
    fn is_lossless(&self, name: &str, params: &Map<String, Value>) -> bool {
        subak_schemes::with_scheme(self.chosen(name), params, IsLossless).unwrap_or(false)
    }
    fn doubts(
        &self,
        name: &str,
        params: &Map<String, Value>,
        network: &Network,
        sizes: PacketSizes,
        least: Option<LeastShare>,
    ) -> Vec<Doubt> {
        subak_packet::doubts(self.chosen(name), params, network, sizes, least).unwrap_or_default()
    }
    fn ignores(
        &self,
        name: &str,
        params: &Map<String, Value>,
        network: &Network,
        sizes: PacketSizes,
        fault: &Injected,
    ) -> Option<&'static str> {
        subak_packet::ignores(self.chosen(name), params, network, sizes, fault).ok().flatten()
    }
    fn keeps_to_one_path(&self, name: &str, params: &Map<String, Value>) -> Option<(&'static str, &'static str)> {
        subak_schemes::with_scheme(self.chosen(name), params, OnePath).ok().flatten()
    }
    /// Cost model: 150 ns of CPU time per packet-hop of DCTCP, scaled by the scheme's factor, plus its timers and
    /// controller.
    fn cost(&self, name: &str, params: &Map<String, Value>, expected: ExpectedWork) -> Cost {
        let ExpectedWork { flows, packet_hops, seconds, hosts, links, live, busy_s, rtt_s } = expected;
        let load = Load { flows, hosts, seconds, links, live, busy_s, rtt_s };
        let work = subak_schemes::with_scheme(self.chosen(name), params, Asked(load)).unwrap_or_default();
        Cost {
            flows,
            packet_hops,
            seconds: packet_hops * 150e-9 * work.per_hop + work.timers * 150e-9 + work.central_s,
        }
    }
}

/// The fluid backend, `subak-fluid`: ideal rates, and any scheme whose convergence time is given.
struct Fluid;

impl Fluid {
    fn is_own(name: &str) -> bool {
        name == subak_fluid::INFO.name
    }
}

impl BackendKind for Fluid {
    fn name(&self) -> &'static str {
        "fluid"
    }
    fn about(&self) -> &'static str {
        "rates instead of packets"
    }
    fn schemes(&self) -> Vec<Info> {
        vec![subak_fluid::INFO]
    }
    fn find(&self, name: &str) -> Result<Info, InputError> {
        let known = self.schemes();
        let names: Vec<_> = known.iter().map(|s| s.name).collect();
        let found = known.iter().find(|s| s.name == name).copied();
        found.ok_or_else(|| subak_core::document::unknown_word(name, "scheme", &names))
    }
    fn take(&self, name: &str) -> Result<Info, InputError> {
        if Fluid::is_own(name) {
            return self.find(name);
        }
        let info = *registry::find(name)?;
        if info.goal != Goal::Own && info.settles.is_stated() {
            return Ok(info);
        }
        let what =
            format!("scheme \"{name}\" states no goal, or not how fast it settles: the fluid backend cannot run it");
        let states = |s: &&Info| s.goal != Goal::Own && s.settles.is_stated();
        let known: Vec<_> = registry::schemes().iter().filter(states).map(|s| s.name).collect();
        let hint = format!("leave backend away, or take one of: {}", known.join(", "));
        Err(InputError::new("backend", what, hint))
    }
    fn data_share(&self, name: &str, params: &Map<String, Value>) -> Result<f64, InputError> {
        match Fluid::is_own(name) {
            true => Params::resolve(&subak_fluid::INFO, params).map(|_| 1.0),
            false => subak_schemes::with_scheme(name, params, Share),
        }
    }
    fn build(
        &self,
        name: &str,
        params: &Map<String, Value>,
        scene: SimulationInput,
    ) -> Result<Box<dyn Backend>, InputError> {
        let SimulationInput { network, sizes, faults, .. } = scene;
        if Fluid::is_own(name) {
            return Ok(Box::new(subak_fluid::Fluid::ideal(params, network, sizes, faults)?));
        }
        let Info { goal, settles, .. } = self.take(name)?;
        let stated = Stated { goal, settles, data_share: self.data_share(name, params)? };
        match subak_fluid::Fluid::settling(stated, network, sizes, faults) {
            Some(fluid) => Ok(Box::new(fluid)),
            None => Err(InputError::new("backend", "the scheme states no goal", "leave backend away")),
        }
    }
    fn leaves_out(&self, wishes: &Features) -> Vec<(&'static str, &'static str)> {
        let Features { queues, paces, packets, nic, losses, buffers, .. } = *wishes;
        given([
            ("measure.queues", queues, "a fluid has no queues: their rows are 0"),
            ("measure.paces", paces, "a fluid has no windows and paces: there are no rows"),
            ("measure.packets", packets, "a fluid has no packets: none are recorded"),
            ("network.nic", nic, "a fluid has no packets"),
            ("the buffers of links", buffers, "a fluid has no queues"),
            ("fault", losses, "a fluid loses no packets"),
        ])
    }
    /// Of a scheme's parameters, only those that set the share of data have an effect.
    fn unread<'a>(&self, name: &str, given: &'a Map<String, Value>) -> Vec<&'a str> {
        let (false, Ok(info)) = (Fluid::is_own(name), self.take(name)) else { return Vec::new() };
        let share = |key: &str, value: Value| {
            let mut params = given.clone();
            params.insert(key.to_string(), value);
            self.data_share(name, &params).ok()
        };
        let sets_share = |key: &str, value: &Value| {
            let Some(param) = info.params.iter().find(|param| param.key.name == key) else { return true };
            let own = share(key, value.clone());
            probes(param, value).into_iter().any(|other| share(key, other).is_some_and(|other| Some(other) != own))
        };
        given.iter().filter(|(key, value)| !sets_share(key, value)).map(|(key, _)| key.as_str()).collect()
    }
    fn most_ns(&self) -> Ns {
        Ns::MAX
    }
    /// Cost model: each start and end of a flow takes 20 us of CPU time, plus 0.1 us times the square root of the
    /// number of flows.
    fn cost(&self, _name: &str, _params: &Map<String, Value>, expected: ExpectedWork) -> Cost {
        let flows = expected.flows;
        Cost { flows, packet_hops: 0.0, seconds: 2.0 * flows * (20e-6 + 1e-7 * flows.sqrt()) }
    }
}

/// Other values of a parameter that has the value `given`, some of which may be invalid.
fn probes(param: &Param, given: &Value) -> Vec<Value> {
    match param.key.value_type {
        ValueType::Flag => vec![false.into(), true.into()],
        ValueType::Word(words) => words.iter().map(|&word| word.into()).collect(),
        ValueType::Whole(low, high) => [low, high, 1, 2].map(Value::from).to_vec(),
        _ => {
            let own = given.as_f64().into_iter().flat_map(|number| [number / 2.0, number * 1.5]);
            own.chain([0.0, 0.01, 0.1, 1.0]).map(Value::from).collect()
        }
    }
}

/// The testbed backend: hosts in network namespaces of this machine, with the kernel's TCP.
struct Hosts;

/// Kernel congestion control without a simulated counterpart.
const KERNEL: &[Info] = &[Info {
    name: "bbr",
    about: "TCP BBR as the kernel has it, on a testbed alone",
    paper: "Cardwell et al., ACM Queue 2016",
    kind: SchemeKind::Reactive,
    lives_on_control: false,
    goal: Goal::Own,
    weights: false,
    params: &[],
    settles: Settles::NEVER,
}];

/// Kernel congestion controls with a simulated counterpart.
const IN_BOTH: &[&str] = &["cubic", "reno", "dctcp"];

/// Simulated schemes that hosts run as eBPF programs, with the same parameters.
const IN_EBPF: &[&str] = &["soze", "soze-virtual", "s-perc", "s-perc-star", "flowtune"];

impl BackendKind for Hosts {
    fn name(&self) -> &'static str {
        "testbed"
    }
    fn about(&self) -> &'static str {
        "network namespaces of this machine, and real TCP between them"
    }
    fn schemes(&self) -> Vec<Info> {
        KERNEL.to_vec()
    }
    fn find(&self, name: &str) -> Result<Info, InputError> {
        let names: Vec<_> = KERNEL.iter().map(|s| s.name).collect();
        let found = KERNEL.iter().find(|s| s.name == name).copied();
        found.ok_or_else(|| subak_core::document::unknown_word(name, "scheme", &names))
    }
    fn take(&self, name: &str) -> Result<Info, InputError> {
        if IN_BOTH.contains(&name) || IN_EBPF.contains(&name) {
            return registry::find(name).copied();
        }
        self.find(name).map_err(|_| {
            let own = KERNEL.iter().map(|s| s.name);
            let names: Vec<_> = IN_BOTH.iter().chain(IN_EBPF).copied().chain(own).collect();
            let what = format!("scheme \"{name}\" does not run on hosts");
            InputError::new("backend", what, format!("leave backend away, or take one of: {}", names.join(", ")))
        })
    }
    fn data_share(&self, name: &str, params: &Map<String, Value>) -> Result<f64, InputError> {
        if IN_EBPF.contains(&name) {
            if subak_schemes::perc::hosts::SCHEMES.contains(&name) {
                subak_schemes::perc::hosts::check(name, params)?;
            }
            let known = subak_schemes::flowtune::ON_HOSTS;
            if let Some(key) = params.keys().find(|key| name == "flowtune" && !known.contains(&key.as_str())) {
                let hint = format!("leave it away on a testbed, or take one of: {}", known.join(", "));
                return Err(InputError::new(format!("params.{key}"), "the allocator's daemon does not have it", hint));
            }
            return subak_schemes::with_scheme(name, params, Share);
        }
        match params.iter().find(|(key, value)| !(name == "cubic" && *key == "queue" && *value == "fifo")) {
            None if name == "cubic" && params.is_empty() => {
                let what = "the queues of a testbed are drop-tail, and the scheme's are fair by default";
                Err(InputError::new("params.queue", what, "write params.queue = \"fifo\""))
            }
            None => Ok(1.0),
            Some((key, _)) => {
                let what = format!("the kernel's {name} does not have it");
                Err(InputError::new(format!("params.{key}"), what, "leave it away on a testbed"))
            }
        }
    }
    fn build(
        &self,
        _name: &str,
        _params: &Map<String, Value>,
        _scene: SimulationInput,
    ) -> Result<Box<dyn Backend>, InputError> {
        Err(InputError::new("backend", "hosts are not simulated", "report this as a defect"))
    }
    fn is_real(&self) -> bool {
        true
    }
    fn leaves_out(&self, wishes: &Features) -> Vec<(&'static str, &'static str)> {
        const NO_DELAYS: &str =
            "links of a testbed have no delay of their own: a hop takes 20 to 50 us of the hosts' time";
        given([
            ("network", wishes.delays, NO_DELAYS),
            ("network.nic", wishes.nic, "hosts have the kernel's own queues"),
        ])
    }
    fn cost(&self, _name: &str, _params: &Map<String, Value>, expected: ExpectedWork) -> Cost {
        Cost { flows: expected.flows, packet_hops: 0.0, seconds: expected.seconds }
    }
}
