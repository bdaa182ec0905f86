//! Flowtune in the network: an allocator at the controller, an endpoint at each host, and TCP while no rate is valid.
//!
//! Perry et al., NSDI 2017. Allocator and endpoints are those of `subak-control`, over the simulated network. A flow
//! starts as TCP and informs its host's machine, which informs the allocator (section 5.3: "servers start a regular
//! TCP connection, and in parallel send a notification"). With a rate, the window is unlimited and the pacing rate is
//! that rate. After the lease, TCP continues with the window of that rate and the RTT (section 6).
//!
//! Where the paper uses TCP between hosts and allocator, messages have an RTO of their own, estimated from the RTT
//! and at least the paper's 20 us. The message rate is limited to a fraction of the links to the allocator. Prices
//! are updated by NED with restarted acceleration, an addition to the paper, unless `accelerated` is false.

mod centre;
mod host;

use crate::queue::Fifo;
use crate::tcp::{self, Window, Windows};
use centre::Centre;
use host::{HostMachine, MessageShare};
use std::collections::BTreeMap;
use std::sync::Arc;
use subak_control::{ControlSettings, PriceLaw, Turns};
use subak_core::backend::Capacities;
use subak_core::keys::{AMOUNT, ValueType};
use subak_core::scheme::{
    Ack, Class, Controller, Doubtful, FlowInfo, Follows, Goal, Info, Io, Load, Loss, Named, NodeInfo, NodeMachine,
    OnHosts, Packet, Param, Params, PathInfo, Port, Recovery, Rules, Scheme, SchemeKind, Settles, SharesLinks,
    SimulationCost, Source, To, Utilities,
};
use subak_core::{IdVec, InputError, LinkId, Network, NodeId, Ns, SubflowId, Utility};
use subak_wire::{Datagram, FlowletRate, GROUP_BYTES, HEADER_BYTES};

/// Parameters that the allocator daemon supports as well.
pub const ON_HOSTS: &[&str] = &["alpha", "accelerated", "interval", "threshold", "reserve", "lease"];

/// Burst of messages at the allocator, bytes: of all hosts to the allocator, and of the allocator to the hosts.
const BURST_BYTES: usize = 64_000;
/// Maximum duration of a burst at the message rate, s: limits bursts on slow links.
const BURST_S: f64 = 1e-3;
/// Code of a path that cannot be encoded; such a flow stays with TCP.
const NO_PATH: u32 = u32::MAX;

/// Rates from an allocator at the controller, and TCP while no rate is valid.
#[derive(Debug, Clone)]
pub struct Flowtune {
    settings: ControlSettings,
    interval_ns: Ns,
    windows: Windows,
    recovery: Recovery,
    messages: MessageShare,
    /// The network, set when the controller is created. Paths are encoded with it.
    network: Arc<std::sync::OnceLock<Network>>,
}

/// A message of the scheme.
#[derive(Debug, Clone)]
pub enum FlowtuneMessage {
    /// From a source to its host's machine: a subflow has something to send.
    Begin {
        /// Number of the subflow.
        subflow: SubflowId,
        /// The destination host.
        to: NodeId,
        /// Path of the subflow: an encoding of the link chosen at each node.
        path: u32,
        /// Weight of the subflow.
        weight: f32,
        /// Demand of the subflow, bit/s on the wire.
        demand_bps: f64,
    },
    /// From a source to its host's machine: at its present rate the flow ends within the time `ahead`.
    Ending {
        /// Number of the subflow.
        subflow: SubflowId,
    },
    /// From a source to its host's machine: the flow has ended.
    End {
        /// Number of the subflow.
        subflow: SubflowId,
    },
    /// From a host's machine to a source: a rate, bit/s, or `None` if no rate is valid.
    Rate(Option<f64>),
    /// A datagram between a host's machine and the allocator.
    Wire(Arc<[u8]>),
}

impl Named for Flowtune {
    const INFO: Info = Info {
        name: "flowtune",
        about: "a central allocator tells hosts the rates of their flowlets; TCP where none holds",
        paper: "Perry et al., Flowtune, NSDI 2017",
        kind: SchemeKind::Proactive,
        lives_on_control: false,
        // The allocator knows no pooled flows: each subflow is one of its own, with a part of the weight.
        goal: Goal::Utility(Utilities {
            doubtful: Doubtful { pooled: true, ..Doubtful::NONE },
            ..Utilities::ALPHA_FAIR
        }),
        weights: true,
        params: &[
            Param::number("alpha", 1.0, AMOUNT, "the policy's alpha").following(Follows::Alpha),
            Param::number("gamma", 0.4, AMOUNT, "step size, as a fraction of Newton's; half of it if accelerated"),
            Param::flag("accelerated", true, "NED with restarted acceleration"),
            Param::number("interval", 10e-6, ValueType::Time, "time between two iterations"),
            Param::number("passes", 1.0, AMOUNT, "normalizations of rates after an iteration"),
            Param::number("threshold", 0.01, AMOUNT, "relative change above which a rate is sent; links are filled less by it"),
            Param::number(
                "reserve",
                0.02,
                AMOUNT,
                "share of a link left to traffic without a rate yet; where traffic runs in both directions, the default is larger by \
                 the ACKs' share (64 of 1500 bytes: 0.043)",
            )
            .following(Follows::Acks),
            Param::number("lease", 2e-3, ValueType::Time, "validity of rates after the send time of the latest message that the allocator ACKed"),
            Param::number("ahead", 10e-6, ValueType::Time, "time before a flow's end, at its rate, at which the end is announced"),
            Param::number("control_rto_min", 20e-6, ValueType::Time, "minimum RTO of messages to and from the allocator"),
            Param::number(
                "control_rto_max",
                1.0,
                ValueType::Time,
                "maximum RTO of these messages: the RTO follows their RTT and doubles with each timeout in a row",
            ),
            Param::number(
                "control_ack_delay",
                10e-6,
                ValueType::Time,
                "maximum delay of an ACK of messages, within which one ACK covers several",
            ),
            Param::number(
                "control_share",
                0.5,
                AMOUNT,
                "maximum share of the links to and from the allocator for messages; at a host, an update to each host an iteration, if that is less",
            ),
            Param::number(
                "control_header",
                58.0,
                ValueType::Bytes,
                "bytes around a message of the exchange, whose own header has 36: Ethernet, IP, and TCP as the paper has it",
            ),
            tcp::INITIAL_WINDOW,
            tcp::REDUCTION,
            tcp::RTO_MIN,
            tcp::TIMEOUT,
            tcp::PROBE,
        ],
        settles: Settles { within: 0.05, rtts: 200.0 },
on_hosts: OnHosts::Allocator,
shares_links: SharesLinks::No("its controller divides links among its own flows"),
..Info::DEFAULT
};
}

impl Scheme for Flowtune {
    type Data = ();
    type Ctl = FlowtuneMessage;
    type Queue = Fifo;
    type Source = FlowtuneSource;
    type Hop = ();
    type Sink = ();

    fn new(params: &Params) -> Result<Self, InputError> {
        let lease_ns = (params.within("lease", 1e-5, 10.0)? * 1e9) as Ns;
        let accelerated = params.flag("accelerated");
        let gamma = params.within("gamma", 1e-6, 2.0)?;
        let settings = ControlSettings {
            law: if accelerated { PriceLaw::Accelerated } else { PriceLaw::Ned },
            gamma: Some(if accelerated { gamma / 2.0 } else { gamma }),
            alpha: params.within("alpha", 0.01, 100.0)?,
            passes: params.within("passes", 1.0, 100.0)? as usize,
            threshold: params.within("threshold", 0.0, 0.45)?,
            reserve: params.within("reserve", 0.0, 0.5)?,
            rto_min_ns: (params.within("control_rto_min", 1e-6, 1.0)? * 1e9) as Ns,
            rto_max_ns: (params.within("control_rto_max", 1e-6, 10.0)? * 1e9) as Ns,
            ack_delay_ns: (params.within("control_ack_delay", 0.0, 1.0)? * 1e9) as Ns,
            frame_bytes: params.within("control_header", 0.0, 1000.0)? as usize,
            ahead_ns: (params.within("ahead", 0.0, 1.0)? * 1e9) as Ns,
            ..ControlSettings::default().with_lease(lease_ns)
        };
        let interval_ns = (params.within("interval", 1e-6, 1.0)? * 1e9) as Ns;
        let update_bytes = settings.frame_bytes + HEADER_BYTES + GROUP_BYTES + FlowletRate::BYTES;
        let messages = MessageShare {
            most: params.within("control_share", 0.001, 1.0)?,
            host_bps: update_bytes as f64 * 8e9 / interval_ns as f64,
        };
        Ok(Flowtune {
            settings,
            interval_ns,
            messages,
            windows: Windows::of(params)?,
            recovery: tcp::recovery(params),
            network: Arc::default(),
        })
    }
    /// Simulation cost of a flow's start, end and rate messages, and of each host in an iteration.
    fn work(&self, load: &Load) -> SimulationCost {
        let iterations = load.seconds * 1e9 / self.interval_ns as f64;
        SimulationCost {
            central_s: 25e-6 * load.flows + 1e-6 * load.hosts * iterations,
            ..SimulationCost::per_hop(self.rules().per_hop)
        }
    }
    fn rules(&self) -> Rules {
        Rules { data_share: Some(self.settings.share()), recovery: self.recovery, per_hop: 1.4, ..Rules::default() }
    }
    fn queue(&self, port: &Port) -> Fifo {
        Fifo::new(port.buffer_bytes)
    }
    fn source(&self, flow: &FlowInfo) -> FlowtuneSource {
        let subflow = |path: &PathInfo| FlowtuneSubflow {
            window: self.windows.window(flow),
            rate_bps: None,
            base_rtt_ns: path.base_rtt_ns,
            is_ending: false,
        };
        FlowtuneSource {
            to: flow.ends.map(|(_, to)| to),
            weight: flow.utility.weight(self.settings.alpha).unwrap_or(flow.weight),
            demand_bps: flow.demand_bps,
            alpha: self.settings.alpha,
            ahead_ns: self.settings.ahead_ns,
            beat_ns: self.settings.beat_ns,
            links: flow.links.clone(),
            network: self.network.clone(),
            subflows: flow.paths.iter().map(subflow).collect(),
            is_done: false,
        }
    }
    fn hop(&self, _port: &Port) {}
    fn sink(&self, _flow: &FlowInfo) {}
    fn controller(&self, network: &Network) -> Option<Box<dyn Controller<Self>>> {
        let _ = self.network.set(network.clone());
        Some(Box::new(Centre {
            scheme: self.clone(),
            network: network.clone(),
            capacities: Capacities::of(network),
            allocator: None,
            steps_ns: 0,
            wakes_ns: Ns::MAX,
        }))
    }
    fn node(&self, node: &NodeInfo) -> Option<Box<dyn NodeMachine<Self>>> {
        node.is_host.then(|| {
            Box::new(HostMachine {
                node: node.node,
                settings: self.settings,
                messages: self.messages,
                endpoint: None,
                flows: BTreeMap::new(),
                wakes_ns: Ns::MAX,
            }) as Box<dyn NodeMachine<Self>>
        })
    }
}

/// Sends `datagram` across the network.
fn send(io: &mut Io<Flowtune>, to: To, datagram: &Datagram, settings: &ControlSettings) {
    let mut bytes = Vec::new();
    if datagram.encode(&mut bytes).is_some() {
        let frame = (bytes.len() + settings.frame_bytes) as u32;
        io.ctl(to, SubflowId(0), FlowtuneMessage::Wire(bytes.into()), Class::Control, frame);
    }
}

/// Sender of a flow.
#[derive(Debug, Clone)]
pub struct FlowtuneSource {
    to: Option<NodeId>,
    /// Weight w of the marginal utility w^alpha x^-alpha of the whole flow; each subflow announces an equal part.
    weight: f64,
    /// Demand of the flow, bit/s.
    demand_bps: f64,
    alpha: f64,
    ahead_ns: Ns,
    beat_ns: Ns,
    links: IdVec<SubflowId, Vec<LinkId>>,
    network: Arc<std::sync::OnceLock<Network>>,
    subflows: IdVec<SubflowId, FlowtuneSubflow>,
    is_done: bool,
}

#[derive(Debug, Clone)]
struct FlowtuneSubflow {
    window: Window,
    rate_bps: Option<f64>,
    base_rtt_ns: Ns,
    is_ending: bool,
}

impl FlowtuneSource {
    /// Announces all active subflows to the host's machine, which ignores repeated announcements.
    fn tell(&self, io: &mut Io<Flowtune>) {
        let Some(to) = self.to else { return };
        let share = self.subflows.len() as f64;
        for (k, _) in self.subflows.iter_enumerated().filter(|(_, s)| !s.is_ending) {
            let path = self.network.get().and_then(|n| Turns::code(n, &self.links[k])).unwrap_or(NO_PATH);
            let (weight, demand_bps) = ((self.weight / share) as f32, self.demand_bps / share);
            io.ctl(To::Host, k, FlowtuneMessage::Begin { subflow: k, to, path, weight, demand_bps }, Class::Control, 0);
        }
    }

    fn pace(&self, io: &mut Io<Flowtune>, k: SubflowId) {
        let s = &self.subflows[k];
        match s.rate_bps {
            Some(bps) => io.pace(k, Some(bps), None),
            None => io.pace(k, None, Some(s.window.bytes())),
        }
    }
}

impl Source<Flowtune> for FlowtuneSource {
    fn on_start(&mut self, io: &mut Io<Flowtune>) {
        for k in self.subflows.ids() {
            self.pace(io, k);
        }
        self.tell(io);
        io.timer(0, io.now_ns + self.beat_ns);
    }

    /// Announces the flow again: the host's machine may have restarted.
    fn on_timer(&mut self, io: &mut Io<Flowtune>, _timer: u32) {
        if self.is_done {
            return;
        }
        self.tell(io);
        io.timer(0, io.now_ns + self.beat_ns);
    }

    fn stamp(&mut self, _now_ns: Ns, packet: &mut Packet<Flowtune>, _remaining_bytes: u64) {
        self.subflows[packet.subflow].window.sent(packet.payload_bytes());
    }

    fn on_ack(&mut self, io: &mut Io<Flowtune>, ack: &Ack<()>) {
        let s = &mut self.subflows[ack.subflow];
        s.window.saw(ack);
        let Some(bps) = s.rate_bps else {
            s.window.grow(ack);
            self.pace(io, ack.subflow);
            return;
        };
        let left_ns = ack.remaining_bytes as f64 * 8e9 / bps.max(1.0);
        if left_ns <= self.ahead_ns as f64 && !s.is_ending && self.subflows.len() == 1 {
            self.subflows[SubflowId(0)].is_ending = true;
            io.ctl(To::Host, SubflowId(0), FlowtuneMessage::Ending { subflow: SubflowId(0) }, Class::Control, 0);
        }
    }

    fn on_ctl(&mut self, io: &mut Io<Flowtune>, subflow: SubflowId, message: FlowtuneMessage) {
        let (FlowtuneMessage::Rate(rate_bps), Some(s)) = (message, self.subflows.get_mut(subflow)) else { return };
        if let (None, Some(bps)) = (rate_bps, s.rate_bps) {
            s.window.resume(bps * s.base_rtt_ns as f64 / 8e9);
        }
        // A failed link gives rate 0, which is ignored: TCP detects when the link is back.
        s.rate_bps = rate_bps.filter(|&bps| bps > 0.0);
        self.pace(io, subflow);
    }

    fn on_loss(&mut self, io: &mut Io<Flowtune>, loss: &Loss) {
        let s = &mut self.subflows[loss.subflow];
        if s.rate_bps.is_none() {
            s.window.on_loss(loss);
            self.pace(io, loss.subflow);
        }
    }

    fn on_weight(&mut self, io: &mut Io<Flowtune>, weight: f64, utility: &Arc<Utility>) {
        self.weight = utility.weight(self.alpha).unwrap_or(weight);
        self.tell(io);
    }

    fn on_reroute(&mut self, io: &mut Io<Flowtune>, subflow: SubflowId, path: &PathInfo, links: &[LinkId]) {
        self.links[subflow] = links.to_vec();
        self.subflows[subflow].base_rtt_ns = path.base_rtt_ns;
        self.tell(io);
    }

    fn on_finish(&mut self, io: &mut Io<Flowtune>) {
        self.is_done = true;
        for subflow in self.subflows.ids() {
            io.ctl(To::Host, subflow, FlowtuneMessage::End { subflow }, Class::Control, 0);
        }
    }
}
