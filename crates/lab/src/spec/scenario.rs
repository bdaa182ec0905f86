//! A scenario: the spec at one sweep point, as common input of all schemes and seeds.

use crate::files::Beside;
use crate::spec::backends::{self, BackendKind, BesideInput, Cost, ExpectedWork, Features, MOST_NS, SHORT_NS};
use crate::spec::choice::SchemeChoice;
use crate::spec::controller;
use crate::spec::fault::{self, Breakdown};
use crate::spec::measure::{Measure, measure};
use crate::spec::topology::Topology;
use crate::spec::workload::Traffic;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use subak_core::backend::{Injected, LinkChange, PacketSizes, Route};
use subak_core::case::policy_from_value;
use subak_core::keys::each;
use subak_core::keys::{Key, Low, ValueType};
use subak_core::quantity::quoted;
use subak_core::scheme::{Circumstances, Goal, OnHosts};
use subak_core::section::Section;
use subak_core::{InputError, InputErrors, LinkId, Nic, NodeId, Ns, Policy};

/// Shortest delay that the hosts add to a link, ns of their time: a hop takes up to half of it without.
const LEAST_DELAY_NS: f64 = 100_000.0;

/// The spec at one sweep point.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub axis_values: Vec<Value>,
    pub topology: Arc<Topology>,
    pub workload: Traffic,
    pub policy: Policy,
    pub measure: Measure,
    pub packet: PacketSizes,
    pub faults: Vec<Injected>,
    /// Index in the spec of each of these faults.
    pub fault_places: Vec<usize>,
    /// Faults whose links each seed selects at random, with their indices in the spec.
    pub drawn: Vec<(usize, Breakdown)>,
    pub duration_ns: Ns,
    pub warmup_ns: Ns,
    pub drain_ns: Ns,
    /// Path from each host to the controller and back.
    pub controller: Option<Vec<(NodeId, Route)>>,
    /// Delay from a link's failure or recovery to rerouting, ns; `None`: no rerouting.
    pub reroute_ns: Option<Ns>,
    /// Whether the spec or a file sets link delays; otherwise they are defaults.
    pub delays_given: bool,
    /// Keys in the spec, as `SECTION.KEY`, that other keys may leave without effect.
    pub given: Vec<&'static str>,
    /// Scale factor: testbed rate / spec rate = spec time / testbed time.
    pub scale: f64,
    /// RTT of the testbed hosts in addition to the spec's links, ns.
    pub hosts_rtt_ns: Ns,
}

impl Scenario {
    /// Sections of a spec that belong to a scenario.
    pub const SECTIONS: &[&str] =
        &["network", "routing", "workload", "policy", "measure", "run", "packets", "fault", "controller", "testbed"];

    /// Reads a spec in which each swept key has a single value. `topologies`: cache of networks by their
    /// description.
    pub fn read(
        tree: &Map<String, Value>,
        files: &Beside,
        topologies: &mut HashMap<String, Arc<Topology>>,
    ) -> Result<Scenario, InputError> {
        let section = |key: &str| tree.get(key);
        let needed = |key: &str, hint: &str| {
            section(key).ok_or_else(|| InputError::new(key, format!("the section \"{key}\" is missing"), hint))
        };
        let mut faults = InputErrors::default();
        let routing = section("routing");
        let network = needed("network", "say over which network, for example kind = \"star\", hosts = 16");
        let topology = faults.keep(network.and_then(|n| topology(n, routing, files, topologies)));
        let workload = needed("workload", "say which flows, for example kind = \"poisson\"");
        let workload = workload.and_then(|w| Traffic::read(w, files).map_err(|e| e.below("workload")));
        let workload = faults.keep(workload);
        let packet = faults.keep(packets(section("packets")).map_err(|e| e.below("packets"))).unwrap_or_default();
        let run = needed("run", "say for how long: duration = \"50ms\"");
        let times = faults.keep(run.and_then(|run| times(run).map_err(|e| e.below("run"))));
        let policy = section("policy").map_or(Ok(Policy::MaxMin), policy_from_value).map_err(|e| e.below("policy"));
        let policy = faults.keep(policy);
        let measure = faults
            .keep(measure(section("measure"), workload.as_ref(), topology.as_deref()).map_err(|e| e.below("measure")));
        let duration_ns = times.map_or(Ns::MAX, |(duration_ns, ..)| duration_ns);
        if let (Some(workload), Some(topology), Some(_)) = (&workload, &topology, times) {
            faults.keep(workload.check(topology, packet, duration_ns).map_err(|e| e.below("workload")));
        }
        if let (Some(workload), Some(policy)) = (&workload, policy) {
            faults.keep(workload.check_policy(policy));
        }
        if let (Some(topology), Some(workload)) = (&topology, section("workload")) {
            for (place, table) in workloads(workload) {
                subflows(topology, &place, table).into_iter().for_each(|fault| faults.push(fault));
            }
        }
        let injected = section("fault").map_or(Ok(Vec::new()), |list| {
            each(list, |f| fault::read(f, topology.as_deref(), duration_ns)).map_err(|e| e.below("fault"))
        });
        let injected = faults.keep(injected).unwrap_or_default();
        let drawn = injected.iter().enumerate().filter_map(|(place, f)| f.drawn.clone().map(|drawn| (place, drawn)));
        let drawn = drawn.collect();
        let known = |(place, f): (usize, fault::Planned)| f.known.into_iter().map(move |injected| (place, injected));
        let (fault_places, injected) = injected.into_iter().enumerate().flat_map(known).unzip();
        let controller =
            section("controller").zip(topology.as_ref()).map(|(c, topology)| controller::read(c, topology));
        let controller = faults.keep(controller.transpose().map_err(|e| e.below("controller"))).flatten();
        let hosts = faults.keep(hosts(section("testbed")).map_err(|e| e.below("testbed"))).unwrap_or((1.0, 0));
        faults.done()?;
        let made = || {
            let (duration_ns, warmup_ns, drain_ns) = times?;
            let topology = topology?;
            Some(Scenario {
                axis_values: Vec::new(),
                reroute_ns: topology.reroute_ns(),
                topology,
                workload: workload?,
                policy: policy?,
                measure: measure?,
                packet,
                faults: injected,
                fault_places,
                drawn,
                duration_ns,
                warmup_ns,
                drain_ns,
                controller,
                delays_given: tree.get("network").is_some_and(gives_delays),
                given: given(tree),
                scale: hosts.0,
                hosts_rtt_ns: hosts.1,
            })
        };
        let made = made().ok_or_else(|| InputError::new("", "a section is missing", "report this as a defect"))?;
        made.check_measure().map_err(|e| e.below("measure"))?;
        Ok(made)
    }

    fn check_measure(&self) -> Result<(), InputError> {
        let live = self.workload.expected(&self.topology, self.packet, self.duration_ns).live;
        self.measure.check_samples(self.topology.described_links().len() as f64, live, self.duration_ns)?;
        self.measure.check_filters(mean_share_bps(&self.topology, live), self.packet)
    }

    /// The scenario with the policy of `scheme`, if the scheme has its own.
    pub fn under(&self, scheme: &SchemeChoice) -> Cow<'_, Scenario> {
        match scheme.own_policy {
            Some(policy) => Cow::Owned(Scenario { policy, ..self.clone() }),
            None => Cow::Borrowed(self),
        }
    }

    /// The scenario of a run with `seed`, which selects the links of random faults.
    pub fn drawn(&self, seed: u64) -> Cow<'_, Scenario> {
        if self.drawn.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut drawn = self.clone();
        drawn.faults.extend(self.drawn.iter().flat_map(|(place, some)| some.injected(seed, *place)));
        drawn.drawn.clear();
        Cow::Owned(drawn)
    }

    /// An error for schemes that do not support the policy.
    pub fn check_schemes(&self, schemes: &[SchemeChoice]) -> Result<(), InputError> {
        let check = |scheme: &SchemeChoice| {
            let (backend, info) = scheme.backend()?;
            if info.goal == Goal::EqualMaxMin && self.workload.has_weights() {
                let what = format!("scheme \"{}\" knows of no weights, and some flows have one", info.name);
                return Err(InputError::new("workload", what, "leave the weights away, or the scheme out of the spec"));
            }
            self.check_times(backend, &scheme.label)?;
            let policy = crate::spec::policy::check(self.policy, &info, &scheme.params);
            if backend.is_real() {
                self.check_testbed()?;
                if info.on_hosts == OnHosts::Kernel {
                    let place = format!("scheme[{}]", scheme.place);
                    self.check_kernel_times(scheme).map_err(|e| e.below(&place))?;
                }
            }
            let one_path = backend.keeps_to_one_path(&scheme.name, &scheme.params);
            if let Some((why, other)) = one_path.filter(|_| self.topology.spread().is_some()) {
                let what = format!("scheme \"{}\" {why}: its packets cannot take several paths", scheme.label);
                return Err(InputError::new("routing.kind", what, format!("take routing.kind = \"ecmp\"{other}")));
            }
            // Whether there is a controller does not depend on data and ACKs sharing links, so that `true` is as
            // good as `false`.
            let params = self.circumstances(true).complete(&info, &scheme.params);
            if self.controller.is_none() && backend.has_controller(&scheme.name, &params, self.topology.network())? {
                let what = format!("scheme \"{}\" has a central controller, and the spec does not place it", info.name);
                let controller = InputError::new("controller", what, crate::spec::controller::hint(&self.topology));
                return Err(InputError::all(policy.err().into_iter().chain([controller.clone()])).unwrap_or(controller));
            }
            policy
        };
        let named = schemes.first().map(|scheme| &*scheme.named).unwrap_or_default();
        let all = schemes.iter().filter(|scheme| !scheme.is_joint).chain(named);
        InputError::all(all.filter_map(|scheme| check(scheme).err())).map_or(Ok(()), Err)?;
        schemes.iter().try_for_each(|scheme| self.check_members(scheme))
    }

    /// An error if the schemes of the run's flows cannot share links.
    fn check_members(&self, scheme: &SchemeChoice) -> Result<(), InputError> {
        let members = scheme.members(&self.workload);
        if members.iter().all(|other| other.is_like(members[0])) {
            return Ok(());
        }
        backends::check_beside(&self.of_members(&members)?, self.topology.network(), self.packet)
    }

    /// Schemes of a run with their parameters, for the backend.
    pub fn of_members<'a>(&self, members: &[&'a SchemeChoice]) -> Result<Vec<BesideInput<'a>>, InputError> {
        let one = |choice: &&'a SchemeChoice| {
            let (_, info) = choice.backend()?;
            let params = self.circumstances(true).complete(&info, &choice.params);
            let definition = choice.outside.as_ref().map(|outside| outside.definition());
            Ok(BesideInput { label: &choice.label, name: &choice.name, definition, params })
        };
        members.iter().map(one).collect()
    }

    /// An error for a duration or a drain above the backend's maximum.
    fn check_times(&self, backend: &dyn BackendKind, label: &str) -> Result<(), InputError> {
        let most_ns = backend.most_ns();
        let times = [("run.duration", self.duration_ns), ("run.drain", self.drain_ns)];
        let Some((key, _)) = times.into_iter().find(|(_, ns)| *ns > most_ns) else { return Ok(()) };
        let what = format!("scheme {} runs for at most {} hours", quoted(label), most_ns / 3_600_000_000_000);
        Err(InputError::new(key, what, "shorten it, or take the scheme ideal alone, which has no packets"))
    }

    /// Capacity between warm-up and the end of the duration, bits: of the links out of sending hosts, which a load
    /// of 1 fills, and of the links into all hosts.
    pub fn load_bits(&self) -> (f64, f64) {
        let seconds = (self.duration_ns - self.warmup_ns) as f64 * 1e-9;
        let topology = &self.topology;
        let hosts = topology.hosts();
        let is_one_way = self.workload.is_one_way();
        let senders = if is_one_way { &hosts[..hosts.len() / 2] } else { hosts };
        let links = topology.described_links().iter();
        let into = links.filter(|l| l.to.is_some_and(|n| topology.is_host(n))).map(|l| l.capacity_bps);
        (senders.iter().map(|&h| topology.access_bps(h)).sum::<f64>() * seconds, into.sum::<f64>() * seconds)
    }

    /// Properties of the run on which defaults of parameters depend. `both_ways`: data and ACKs share links.
    pub fn circumstances(&self, both_ways: bool) -> Circumstances {
        Circumstances {
            policy: self.policy,
            ack_share: if both_ways { self.packet.ack_share() } else { 0.0 },
            smallest_weight: self.workload.smallest_weight(),
        }
    }

    /// An error if the spec records packets of a flow that does not exist with `seed`.
    pub fn check_recorded(&self, seed: u64) -> Result<(), InputError> {
        let Some(recorded) = &self.measure.packets else { return Ok(()) };
        let flows =
            self.workload.flows(&self.topology, seed, self.packet, &self.drawn(seed).faults, self.duration_ns)?;
        recorded.flows(&flows).map(|_| ()).map_err(|e| e.below("packets").below("measure"))
    }

    /// Bits that link `l` can carry in the last `span_ns` of the duration, with changes of its capacity.
    pub fn could_carry(&self, l: LinkId, span_ns: Ns) -> f64 {
        let mut capacity_bps = self.topology.network().links()[l].capacity_bps;
        let (mut bits, mut from_ns) = (0.0, self.duration_ns.saturating_sub(span_ns));
        for (at_ns, link, change) in Injected::link_changes(&self.faults) {
            if let LinkChange::Capacity(next_bps) = change
                && link == l
            {
                let until_ns = at_ns.clamp(from_ns, self.duration_ns);
                bits += capacity_bps * (until_ns - from_ns) as f64 * 1e-9;
                (capacity_bps, from_ns) = (next_bps, until_ns);
            }
        }
        bits + capacity_bps * (self.duration_ns - from_ns) as f64 * 1e-9
    }

    /// Estimated cost of a run with `scheme`.
    pub fn cost(&self, scheme: &SchemeChoice) -> Cost {
        let expected = self.workload.expected(&self.topology, self.packet, self.duration_ns);
        let links = self.topology.network().links().len() as f64;
        let hops = if links > 2.0 * self.topology.hosts().len() as f64 { 4.0 } else { 2.0 };
        let packet_hops = 2.0 * hops * expected.wire_bytes / f64::from(self.packet.mtu_bytes);
        match scheme.backend() {
            Ok((backend, info)) => {
                let (seconds, hosts) = (self.duration_ns as f64 * 1e-9, self.topology.hosts().len() as f64);
                let params = self.circumstances(true).complete(&info, &scheme.params);
                let (flows, live, busy_s) = (expected.flows, expected.live, self.busy_s(expected.wire_bytes));
                let rtt_s = hops * self.mean_hop_s();
                let expected = ExpectedWork { flows, packet_hops, seconds, hosts, links, live, busy_s, rtt_s };
                backend.cost(&scheme.name, &params, expected)
            }
            Err(_) => Cost { flows: expected.flows, packet_hops, seconds: 0.0 },
        }
    }

    /// Features of the scenario that some backends lack.
    pub fn wishes(&self) -> Features {
        let Measure { queues_ns, paces_ns, packets, .. } = &self.measure;
        let network = self.topology.network();
        let of_packets = |fault: &Injected| matches!(fault, Injected::Packets { .. } | Injected::Restart { .. });
        Features {
            queues: queues_ns.is_some(),
            paces: paces_ns.is_some(),
            packets: packets.is_some(),
            nic: network.nic() != Nic::default(),
            losses: self.faults.iter().any(of_packets),
            buffers: network.links().iter().any(|link| link.buffer_bytes.is_some()),
            delays: self.delays_given && network.links().iter().any(|link| self.is_too_short(link.delay_ns)),
        }
    }

    /// Whether a testbed cannot add this delay to a link.
    fn is_too_short(&self, delay_ns: Ns) -> bool {
        delay_ns > 0 && (delay_ns as f64) < LEAST_DELAY_NS * self.scale
    }

    /// Mean over links of the time in which a full packet crosses the link and its ACK crosses back, s.
    fn mean_hop_s(&self) -> f64 {
        let links = self.topology.network().links();
        let packet_bits = 8.0 * f64::from(self.packet.mtu_bytes);
        let sum: f64 = links.iter().map(|l| 2e-9 * l.delay_ns as f64 + packet_bits / l.capacity_bps).sum();
        sum / (links.len() as f64).max(1.0)
    }

    /// Time until the last flow ends if the hosts' links are the only bottlenecks and carry `wire_bytes` in total,
    /// s.
    fn busy_s(&self, wire_bytes: f64) -> f64 {
        let access_bps: f64 = self.topology.hosts().iter().map(|&h| self.topology.access_bps(h)).sum();
        let arrivals_s = if self.workload.loads().is_some() { self.duration_ns as f64 * 1e-9 } else { 0.0 };
        let carried_s = wire_bytes * 8.0 / access_bps.max(1.0);
        carried_s.max(arrivals_s).min((self.duration_ns + self.drain_ns) as f64 * 1e-9)
    }

    /// Load in the spec, without incasts, if the workload has one.
    pub fn load(&self) -> Option<f64> {
        self.workload.loads().map(|(load, _)| load)
    }

    /// Total load of all flows, if the workload has one.
    pub fn whole_load(&self) -> Option<f64> {
        self.workload.loads().map(|(_, load)| load)
    }
}

/// Whether `network` sets link delays, so that they are not a generator's default.
fn gives_delays(network: &Value) -> bool {
    network.get("kind").is_none() || network.as_object().is_some_and(|map| map.keys().any(|key| key.contains("delay")))
}

/// Whether a table, or one of its flows, has several subflows or paths.
fn has_subflows(workload: &Map<String, Value>) -> bool {
    let flows = workload.get("flows").and_then(Value::as_array).into_iter().flatten();
    let paths = |flow: &Map<String, Value>| flow.get("paths").and_then(Value::as_array).is_some_and(|p| p.len() > 1);
    several(workload) || flows.filter_map(Value::as_object).any(|flow| several(flow) || paths(flow))
}

/// Whether a table has several subflows.
fn several(table: &Map<String, Value>) -> bool {
    table.get("subflows").and_then(Value::as_u64).is_some_and(|n| n > 1)
}

/// Those of [`Scenario::given`] that `tree` has.
fn given(tree: &Map<String, Value>) -> Vec<&'static str> {
    const KEYS: &[&str] = &[
        "network.nic",
        "network.controller_rate",
        "policy",
        "routing.hash",
        "routing.kind",
        "routing.seed",
        "testbed",
        "workload.subflows",
    ];
    let has = |path: &str| match path.split_once('.') {
        Some(("workload", "subflows")) => {
            tree.get("workload").is_some_and(|workload| workloads(workload).any(|(_, table)| has_subflows(table)))
        }
        Some((section, key)) => tree.get(section).is_some_and(|section| section.get(key).is_some()),
        None => tree.contains_key(path),
    };
    KEYS.iter().copied().filter(|path| has(path)).collect()
}

/// The tables of the section `workload`, each with its place.
fn workloads(section: &Value) -> impl Iterator<Item = (String, &Map<String, Value>)> {
    let tables = section.as_array().into_iter().flatten().enumerate();
    let listed = tables.filter_map(|(i, table)| Some((format!("workload[{i}]"), table.as_object()?)));
    section.as_object().map(|table| ("workload".to_string(), table)).into_iter().chain(listed)
}

/// An error if flows have subflows and packets are sprayed too.
fn subflows(topology: &Topology, place: &str, workload: &Map<String, Value>) -> Option<InputError> {
    topology.spread()?;
    let what = "routing.kind spreads the packets of each flow over its paths already";
    let fault = |key: String| InputError::new(key, what, "leave subflows away, or take routing.kind = \"ecmp\"");
    let flows = workload.get("flows").and_then(Value::as_array).into_iter().flatten();
    let at = flows.filter_map(Value::as_object).position(several);
    match at {
        Some(i) => Some(fault(format!("{place}.flows[{i}].subflows"))),
        None => several(workload).then(|| fault(format!("{place}.subflows"))),
    }
}

/// The topology of `network`, from the cache if it was read before.
fn topology(
    network: &Value,
    routing: Option<&Value>,
    files: &Beside,
    known: &mut HashMap<String, Arc<Topology>>,
) -> Result<Arc<Topology>, InputError> {
    let key = format!("{network} {routing:?}");
    if let Some(known) = known.get(&key) {
        return Ok(Arc::clone(known));
    }
    let read = Arc::new(Topology::read(network, routing, files)?);
    known.insert(key, Arc::clone(&read));
    Ok(read)
}

/// Mean rate per flow when `live` flows share the hosts' links evenly, bit/s.
fn mean_share_bps(topology: &Topology, live: f64) -> f64 {
    let links = topology.network().links().iter();
    let from_hosts = links.filter(|l| l.from.is_some_and(|n| topology.is_host(n))).map(|l| l.capacity_bps);
    from_hosts.sum::<f64>() / live.max(1.0)
}

/// The keys of `[run]`.
pub(super) const RUN: &[Key] = &[
    Key::required("duration", ValueType::Span(1, MOST_NS), "time during which flows start, such as \"50ms\""),
    Key::new(
        "warmup",
        ValueType::Span(0, MOST_NS),
        "0",
        "flows that start before this time are excluded from statistics",
    ),
    Key::open(
        "drain",
        ValueType::Span(0, MOST_NS),
        "20 durations",
        "time after `duration` that flows have to complete. A run ends as soon as all have completed",
    ),
    Key::new(
        "seeds",
        ValueType::Either(&[ValueType::Whole(1, 100_000), ValueType::List(&ValueType::Whole(0, i64::MAX as u64))]),
        "1",
        "number of seeds, which are then 1, 2, ...; or a list of seeds",
    ),
    Key::open(
        "zip",
        ValueType::List(&ValueType::Text),
        "every combination",
        "swept keys whose lists go side by side, such as [\"network.file\", \"workload.file\"]: the first values of all, then the second ones",
    ),
];

/// Reads duration, warm-up and drain, ns.
fn times(value: &Value) -> Result<(Ns, Ns, Ns), InputError> {
    let mut section = Section::of(value, RUN)?;
    let duration_ns = section.convert("duration", Ok).unwrap_or(Ns::MAX);
    let warmup_ns: Ns = section.take("warmup");
    if warmup_ns >= duration_ns {
        section.note(InputError::new(
            "warmup",
            "the warm-up is not shorter than the run",
            "give a time below the duration",
        ));
    }
    // In nearly every run even the largest flows end within the default drain. A run stops once all flows have
    // ended.
    let most_ns = if duration_ns > SHORT_NS { MOST_NS } else { SHORT_NS };
    let drain_ns = section.given("drain").unwrap_or(duration_ns.saturating_mul(20).min(most_ns));
    section.get("seeds");
    section.get("zip");
    section.end(Ok((duration_ns, warmup_ns, drain_ns)))
}

/// The keys of `[testbed]`.
pub(super) const TESTBED: &[Key] = &[
    Key::new(
        "scale",
        ValueType::Number(Low::From(1e-6), 1e3),
        "1",
        "rates of the hosts over those of the spec, and times of the spec over those of the hosts: at 0.01 a link of 10 Gb/s \
         has 100 Mb/s",
    ),
    Key::new(
        "rtt",
        ValueType::Time,
        "1ms",
        "RTT that the hosts add to that of the spec's links, by the hosts' clock; schemes with parameters sized to the RTT \
         include it",
    ),
];

/// Reads the scale factor, and the RTT of the hosts without links, ns.
fn hosts(value: Option<&Value>) -> Result<(f64, Ns), InputError> {
    let none = Value::from(Map::new());
    let mut section = Section::of(value.unwrap_or(&none), TESTBED)?;
    let read = (section.take("scale"), section.take("rtt"));
    section.end(Ok(read))
}

/// The keys of `[packets]`.
pub(super) const PACKETS: &[Key] = &[
    Key::new("mtu", ValueType::SizeTo(65_535), "1500", "a full packet on the wire"),
    Key::new("header", ValueType::SizeTo(65_535), "54", "headers of each"),
    Key::new("ack", ValueType::SizeTo(65_535), "64", "size of an ACK on the wire"),
];

fn packets(value: Option<&Value>) -> Result<PacketSizes, InputError> {
    let mut sizes = PacketSizes::default();
    let Some(value) = value else { return Ok(sizes) };
    let mut section = Section::of(value, PACKETS)?;
    let mut bytes = |name| section.take::<u64>(name) as u32;
    sizes.mtu_bytes = bytes("mtu");
    sizes.header_bytes = bytes("header");
    sizes.ack_bytes = bytes("ack");
    if section.is_sound() && sizes.header_bytes >= sizes.mtu_bytes {
        section.note(InputError::new("header", "headers leave no room for payload", "give fewer bytes than the mtu"));
    }
    section.end(Ok(sizes))
}
