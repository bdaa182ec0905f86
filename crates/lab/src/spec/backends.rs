//! Backends: simulators and testbeds that run schemes. Only this module refers to backends and schemes by name.

use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use subak_core::backend::{Backend, Injected, PacketSizes};
use subak_core::keys::ValueType;
use subak_core::scheme::{Doubt, FlowShares, Goal, Info, Load, OnHosts, Param, Params, Rules};
use subak_core::{InputError, Network, Nic, Ns};
use subak_fluid::Stated;
use subak_schemes::foreign::Definition;
use subak_schemes::{AnyScheme, Chosen, Member, registry};

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
    /// Whether the spec sets link delays that are too short for a testbed.
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

/// Maximum duration and drain of any backend, ns: 100 days, up to which doubles are exact to a nanosecond.
pub(in crate::spec) const MOST_NS: Ns = 100 * 24 * 3600 * 1_000_000_000;

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
    /// Checks the parameters; returns the properties of the scheme as far as the backend has them.
    fn rules(&self, name: &str, params: &Map<String, Value>) -> Result<Rules, InputError>;
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
    /// A warning for each parameter of the scheme whose value does not suit the network, or the flows' `least` share.
    fn doubts(
        &self,
        name: &str,
        params: &Map<String, Value>,
        network: &Network,
        sizes: PacketSizes,
        flows: FlowShares,
    ) -> Vec<Doubt> {
        let _ = (name, params, network, sizes, flows);
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
        let rules = self.rules(name, params).ok()?;
        if rules.one_path {
            return Some(("holds what the links of a path tell against what they told before", ""));
        }
        let why = "has receivers that drop what comes out of order (go-back-N)";
        rules.recovery.go_back.then_some((why, ", or the scheme's params.recovery = \"selective\""))
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
    let rules = backend.rules(name, &params).unwrap_or_default();
    Ok(Traits {
        controller: backend.has_controller(name, &params, &Network::new())?,
        recovers: rules.recovers,
        lossless: rules.lossless.is_some(),
    })
}

/// One of several schemes on a network, with its parameters.
#[derive(Debug, Clone)]
pub struct BesideInput<'a> {
    /// Label in results.
    pub label: &'a str,
    /// Name of the scheme.
    pub name: &'a str,
    /// Definition of a scheme supplied by the user.
    pub definition: Option<&'a dyn Definition>,
    /// Its parameters.
    pub params: Map<String, Value>,
}

impl BesideInput<'_> {
    fn member(&self) -> Member<'_> {
        let chosen = self.definition.map_or(Chosen::Named(self.name), Chosen::Foreign);
        Member { label: self.label, chosen, params: &self.params }
    }
}

/// An error if the schemes cannot share links of the network.
pub fn check_beside(schemes: &[BesideInput], network: &Network, sizes: PacketSizes) -> Result<(), InputError> {
    let members: Vec<Member> = schemes.iter().map(BesideInput::member).collect();
    subak_packet::beside(&members, network, sizes).map(|_| ())
}

/// A simulation of several schemes on one network; a flow's plan has the index of its scheme.
pub fn build_beside(schemes: &[BesideInput], scene: SimulationInput) -> Result<Box<dyn Backend>, InputError> {
    let members: Vec<Member> = schemes.iter().map(BesideInput::member).collect();
    let SimulationInput { network, sizes, faults, seed, threads } = scene;
    subak_packet::build_beside(threads, &members, network, sizes, faults, seed)
}

/// The packet-level backend, `subak-packet`. `None`: built-in schemes; otherwise one scheme supplied by the user.
#[derive(Debug, Clone)]
pub(crate) struct Packets(pub Option<Arc<dyn Definition>>);

impl Packets {
    /// The built-in scheme called `name`, or the scheme supplied by the user.
    fn chosen<'a>(&'a self, name: &'a str) -> Chosen<'a> {
        self.0.as_deref().map_or(Chosen::Named(name), Chosen::Foreign)
    }

    fn scheme(&self, name: &str, params: &Map<String, Value>) -> Result<Box<dyn AnyScheme>, InputError> {
        subak_schemes::scheme(self.chosen(name), params)
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
    fn rules(&self, name: &str, params: &Map<String, Value>) -> Result<Rules, InputError> {
        self.scheme(name, params).map(|scheme| scheme.rules())
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
        self.scheme(name, params).map(|scheme| scheme.has_controller(network))
    }
    fn nic(&self, name: &str, params: &Map<String, Value>, network: &Network) -> Option<Nic> {
        let rules = self.rules(name, params).ok()?;
        Some(rules.nic.unwrap_or(network.nic()))
    }
    fn doubts(
        &self,
        name: &str,
        params: &Map<String, Value>,
        network: &Network,
        sizes: PacketSizes,
        flows: FlowShares,
    ) -> Vec<Doubt> {
        subak_packet::doubts(self.chosen(name), params, network, sizes, flows).unwrap_or_default()
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
    /// Cost model: 150 ns of CPU time per packet-hop of DCTCP, scaled by the scheme's factor, plus its timers and
    /// controller.
    fn cost(&self, name: &str, params: &Map<String, Value>, expected: ExpectedWork) -> Cost {
        let ExpectedWork { flows, packet_hops, seconds, hosts, links, live, busy_s, rtt_s } = expected;
        let load = Load { flows, hosts, seconds, links, live, busy_s, rtt_s };
        let work = self.scheme(name, params).map(|scheme| scheme.work(&load)).unwrap_or_default();
        Cost {
            flows,
            packet_hops,
            seconds: packet_hops * 150e-9 * work.per_hop + work.timers * 150e-9 + work.central_s,
        }
    }
}

/// The share of links for data of a built-in scheme, for a backend without its packets.
fn only_share(name: &str, params: &Map<String, Value>) -> Result<Rules, InputError> {
    let Rules { data_share, .. } = subak_schemes::scheme(name, params)?.rules();
    Ok(Rules { data_share, ..Rules::default() })
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
    fn rules(&self, name: &str, params: &Map<String, Value>) -> Result<Rules, InputError> {
        match Fluid::is_own(name) {
            true => Params::resolve(&subak_fluid::INFO, params).map(|_| Rules::default()),
            false => only_share(name, params),
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
            if let Some(local) = subak_fluid::Fluid::repaired(params, network, sizes, faults)? {
                return Ok(Box::new(local));
            }
            return Ok(Box::new(subak_fluid::Fluid::ideal(params, network, sizes, faults)?));
        }
        let Info { goal, settles, .. } = self.take(name)?;
        let stated = Stated { goal, settles, data_share: self.rules(name, params)?.share() };
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
    /// A fluid reads only the parameters of a scheme that set its share of data.
    fn unread<'a>(&self, name: &str, given: &'a Map<String, Value>) -> Vec<&'a str> {
        let (false, Ok(info)) = (Fluid::is_own(name), self.take(name)) else { return Vec::new() };
        let share = |key: &str, value: Value| {
            let mut params = given.clone();
            params.insert(key.to_string(), value);
            self.rules(name, &params).ok().map(|rules| rules.share())
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
    on_hosts: OnHosts::Kernel,
    ..Info::DEFAULT
}];

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
        if let Ok(info) = registry::find(name)
            && info.on_hosts != OnHosts::No
        {
            return Ok(*info);
        }
        self.find(name).map_err(|_| {
            let simulated = registry::schemes().iter().filter(|info| info.on_hosts != OnHosts::No);
            let names: Vec<_> = simulated.chain(KERNEL).map(|info| info.name).collect();
            let what = format!("scheme \"{name}\" does not run on hosts");
            InputError::new("backend", what, format!("leave backend away, or take one of: {}", names.join(", ")))
        })
    }
    fn rules(&self, name: &str, params: &Map<String, Value>) -> Result<Rules, InputError> {
        match registry::find(name).map_or(OnHosts::Kernel, |info| info.on_hosts) {
            OnHosts::No | OnHosts::Kernel => {}
            OnHosts::Programs => return only_share(name, params),
            OnHosts::Control => {
                subak_schemes::hosts::perc::check(name, params)?;
                return only_share(name, params);
            }
            OnHosts::Allocator => {
                let known = subak_schemes::flowtune::ON_HOSTS;
                if let Some(key) = params.keys().find(|key| !known.contains(&key.as_str())) {
                    let hint = format!("leave it away on a testbed, or take one of: {}", known.join(", "));
                    let what = "the allocator's daemon does not have it";
                    return Err(InputError::new(format!("params.{key}"), what, hint));
                }
                return only_share(name, params);
            }
        }
        if name == "cubic" && !params.contains_key("queue") {
            let what = "the queues of a testbed are drop-tail, and the scheme's are fair by default";
            return Err(InputError::new("params.queue", what, "write params.queue = \"fifo\""));
        }
        // A spec for both backends has the kernel's values.
        let kernels = |key: &str, value: &Value| match key {
            "queue" => name == "cubic" && value == "fifo",
            "hystart" => name == "cubic" && value == true,
            "reduction" => value == "prr",
            "initial_window" => value.as_f64() == Some(10.0),
            // Their values depend on the scale.
            "hystart_unit" => name == "cubic",
            "rto_min" => true,
            _ => false,
        };
        match params.iter().find(|(key, value)| !kernels(key, value)) {
            None => Ok(Rules::default()),
            Some((key, value)) => {
                let what = format!("the kernel's {name} does not have {value}");
                let hint = match key.as_str() {
                    "queue" | "hystart" | "hystart_unit" if name != "cubic" => "leave it away on a testbed",
                    "queue" => "write params.queue = \"fifo\"",
                    "hystart" => "leave it away on a testbed, or write true",
                    "reduction" => "leave it away on a testbed, or write \"prr\"",
                    "initial_window" => "leave it away on a testbed, or write 10",
                    _ => "leave it away on a testbed",
                };
                Err(InputError::new(format!("params.{key}"), what, hint))
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
        const NO_DELAYS: &str = "delays below 100 us of the hosts' time: a hop takes 20 to 50 us without";
        given([("network", wishes.delays, NO_DELAYS)])
    }
    fn cost(&self, _name: &str, _params: &Map<String, Value>, expected: ExpectedWork) -> Cost {
        Cost { flows: expected.flows, packet_hops: 0.0, seconds: expected.seconds }
    }
}
