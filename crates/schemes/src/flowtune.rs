//! Flowtune in the network: an allocator at the controller, an endpoint at each host, TCP where no rate holds.
//!
//! Perry et al., NSDI 2017. Allocator and endpoints are those of `subak-control`; here they get the network's packets and
//! time. A flow starts as TCP and tells its host's machine, which tells the allocator (section 5.3: "servers start a regular
//! TCP connection, and in parallel send a notification"). When a rate comes, the window opens and the pace is the rate's.
//! When the lease is over, TCP goes on from the window that the rate and the round trip make (section 6).
//!
//! Where the paper uses TCP between hosts and allocator, the exchange has its own way to notice losses: a timeout that follows the
//! round trip, at least the paper's 20 us. Messages are paced to a share of the links to the allocator. Prices move by NED with restarted acceleration unless `accelerated` is false: that is ours.

use crate::queue::Fifo;
use crate::tcp::{self, Window, Windows};
use std::collections::BTreeMap;
use std::sync::Arc;
use subak_control::{Allocator, Endpoint, Law, Settings, Turns};
use subak_core::driver::{Capacities, LinkChange};
use subak_core::scheme::{
    Ack, Class, Controller, FlowInfo, Follows, Goal, Info, Io, Kind, Load, Loss, Named, Node, NodeInfo, Packet, Param,
    ParamUnit, Params, PathInfo, Place, Port, Recovery, Scheme, Settles, Source, To, Work,
};
use subak_core::{Fault, FlowId, LinkId, Network, NodeId, Ns, Utility};
use subak_wire::{Datagram, GROUP_BYTES, HEADER_BYTES, Update};

/// Bytes of messages that may come to the allocator at once, of all hosts, and that it may send at once.
const BURST_BYTES: usize = 64_000;
/// In which a slow link carries what comes at once, s.
const BURST_S: f64 = 1e-3;
/// A path that cannot be told: the flow stays with TCP.
const NO_PATH: u32 = u32::MAX;

/// The scheme.
#[derive(Debug, Clone)]
pub struct Flowtune {
    settings: Settings,
    interval_ns: Ns,
    windows: Windows,
    recovery: Recovery,
    messages: MessageShare,
    /// The network, once the controller is made: paths are told as turns at its nodes.
    network: Arc<std::sync::OnceLock<Network>>,
}

/// A message.
#[derive(Debug, Clone)]
pub enum Message {
    /// From a source to its host's machine: a subflow has something to send.
    Begin {
        /// Which.
        subflow: u8,
        /// The host at the other end.
        to: NodeId,
        /// Its links, as turns.
        path: u32,
        /// Its weight.
        weight: f32,
    },
    /// From a source: the flow will be done before the allocator can hear of it.
    Ending {
        /// Which.
        subflow: u8,
    },
    /// From a source: the flow is done.
    End {
        /// Which.
        subflow: u8,
    },
    /// From the machine to a source: a rate, bit/s, or that none holds.
    Rate(Option<f64>),
    /// Between a host's machine and the allocator.
    Wire(Arc<[u8]>),
}

impl Named for Flowtune {
    const INFO: Info = Info {
        name: "flowtune",
        about: "a central allocator tells hosts the rates of their flowlets; TCP where none holds",
        paper: "Perry et al., Flowtune, NSDI 2017",
        kind: Kind::Proactive,
        lives_on_control: false,
        goal: Goal::AlphaFair,
        params: &[
            Param::number("alpha", 1.0, ParamUnit::One, "the policy's alpha").following(Follows::Alpha),
            Param::number("gamma", 0.4, ParamUnit::One, "the share of Newton's step that a price moves by; half of it if accelerated"),
            Param::flag("accelerated", true, "NED with restarted acceleration"),
            Param::number("interval", 10e-6, ParamUnit::Seconds, "time between two iterations"),
            Param::number("passes", 1.0, ParamUnit::One, "how often rates are normalized after an iteration"),
            Param::number("threshold", 0.01, ParamUnit::One, "a rate that moved by that share is told; links are filled less by it"),
            Param::number(
                "reserve",
                0.02,
                ParamUnit::One,
                "the share of a link left to what is not scheduled yet; where traffic runs both ways, the default is larger by \
                 what acknowledgements take (64 of 1500 bytes: 0.043)",
            )
            .following(Follows::Acks),
            Param::number("lease", 2e-3, ParamUnit::Seconds, "rates hold for so long after the last message that the allocator acknowledged was sent"),
            Param::number("ahead", 10e-6, ParamUnit::Seconds, "a flow's end is told so long before it, at its rate"),
            Param::number("control_rto_min", 20e-6, ParamUnit::Seconds, "least timeout of messages to and from the allocator"),
            Param::number(
                "control_rto_max",
                1.0,
                ParamUnit::Seconds,
                "the timeout follows the round trip and doubles with each in a row, up to this",
            ),
            Param::number(
                "control_ack_delay",
                10e-6,
                ParamUnit::Seconds,
                "an acknowledgement of messages waits so long, at most, for others to go with",
            ),
            Param::number(
                "control_share",
                0.5,
                ParamUnit::One,
                "messages take that share of the links to and from the allocator, at most; at a host, an update to each host an iteration, if that is less",
            ),
            Param::number(
                "control_header",
                58.0,
                ParamUnit::Bytes,
                "bytes around a message of the exchange, whose own header has 36: Ethernet, IP, and TCP as the paper has it",
            ),
            tcp::INITIAL_WINDOW,
            tcp::REDUCTION,
            tcp::RTO_MIN,
            tcp::TIMEOUT,
            tcp::PROBE,
        ],
        settles: Settles { within: 0.05, rtts: 200.0 },
    };
}

impl Scheme for Flowtune {
    type Data = ();
    type Ctl = Message;
    type Queue = Fifo;
    type Source = FlowtuneSource;
    type Hop = ();
    type Sink = ();

    fn new(params: &Params) -> Result<Self, Fault> {
        let lease_ns = (params.within("lease", 1e-5, 10.0)? * 1e9) as Ns;
        let accelerated = params.flag("accelerated");
        let gamma = params.within("gamma", 1e-6, 2.0)?;
        let settings = Settings {
            law: if accelerated { Law::Accelerated } else { Law::Ned },
            gamma: Some(if accelerated { gamma / 2.0 } else { gamma }),
            alpha: params.within("alpha", 0.01, 100.0)?,
            passes: params.within("passes", 1.0, 100.0)? as usize,
            threshold: params.within("threshold", 0.0, 0.5)?,
            reserve: params.within("reserve", 0.0, 0.45)?,
            rto_min_ns: (params.within("control_rto_min", 1e-6, 1.0)? * 1e9) as Ns,
            rto_max_ns: (params.within("control_rto_max", 1e-6, 10.0)? * 1e9) as Ns,
            ack_delay_ns: (params.within("control_ack_delay", 0.0, 1.0)? * 1e9) as Ns,
            frame_bytes: params.within("control_header", 0.0, 1000.0)? as usize,
            ahead_ns: (params.within("ahead", 0.0, 1.0)? * 1e9) as Ns,
            ..Settings::default().with_lease(lease_ns)
        };
        let interval_ns = (params.within("interval", 1e-6, 1.0)? * 1e9) as Ns;
        let update_bytes = settings.frame_bytes + HEADER_BYTES + GROUP_BYTES + Update::BYTES;
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
    /// Taking a flow's start and end, and telling it and others their rates; and the look at each host in an iteration.
    fn work(&self, load: &Load) -> Work {
        let iterations = load.seconds * 1e9 / self.interval_ns as f64;
        Work { central_s: 25e-6 * load.flows + 1e-6 * load.hosts * iterations, ..Work::default() }
    }
    fn data_share(&self) -> f64 {
        self.settings.share()
    }
    fn recovery(&self) -> Recovery {
        self.recovery
    }
    fn queue(&self, port: &Port) -> Fifo {
        Fifo::new(port.buffer_bytes)
    }
    fn source(&self, flow: &FlowInfo) -> FlowtuneSource {
        let subflow = |path: &PathInfo| Subflow {
            window: self.windows.window(flow),
            rate_bps: None,
            base_rtt_ns: path.base_rtt_ns,
            is_ending: false,
        };
        FlowtuneSource {
            to: flow.ends.map(|(_, to)| to),
            weight: flow.utility.weight(self.settings.alpha).unwrap_or(flow.weight),
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
    fn node(&self, node: &NodeInfo) -> Option<Box<dyn Node<Self>>> {
        node.is_host.then(|| {
            Box::new(Host {
                node: node.node,
                settings: self.settings,
                messages: self.messages,
                endpoint: None,
                flows: BTreeMap::new(),
                wakes_ns: Ns::MAX,
            }) as Box<dyn Node<Self>>
        })
    }
}

/// Sends `datagram` across the network.
fn send(io: &mut Io<Flowtune>, to: To, datagram: &Datagram, settings: &Settings) {
    let mut bytes = Vec::new();
    if datagram.encode(&mut bytes).is_some() {
        let frame = (bytes.len() + settings.frame_bytes) as u32;
        io.ctl(to, 0, Message::Wire(bytes.into()), Class::Control, frame);
    }
}

/// The sender of a flow.
#[derive(Debug, Clone)]
pub struct FlowtuneSource {
    to: Option<NodeId>,
    /// Of w^alpha x^-alpha, over the subflows.
    weight: f64,
    alpha: f64,
    ahead_ns: Ns,
    beat_ns: Ns,
    links: Vec<Vec<LinkId>>,
    network: Arc<std::sync::OnceLock<Network>>,
    subflows: Vec<Subflow>,
    is_done: bool,
}

#[derive(Debug, Clone)]
struct Subflow {
    window: Window,
    rate_bps: Option<f64>,
    base_rtt_ns: Ns,
    is_ending: bool,
}

impl FlowtuneSource {
    /// Tells the host's machine of all subflows that go on. It knows those that it was told of before.
    fn tell(&self, io: &mut Io<Flowtune>) {
        let Some(to) = self.to else { return };
        let share = self.subflows.len() as f64;
        for (k, _) in self.subflows.iter().enumerate().filter(|(_, s)| !s.is_ending) {
            let path = self.network.get().and_then(|n| Turns::code(n, &self.links[k])).unwrap_or(NO_PATH);
            let weight = (self.weight / share) as f32;
            io.ctl(To::Host, k as u8, Message::Begin { subflow: k as u8, to, path, weight }, Class::Control, 0);
        }
    }

    fn pace(&self, io: &mut Io<Flowtune>, k: u8) {
        let s = &self.subflows[k as usize];
        match s.rate_bps {
            Some(bps) => io.pace(k, Some(bps), None),
            None => io.pace(k, None, Some(s.window.bytes())),
        }
    }
}

impl Source<Flowtune> for FlowtuneSource {
    fn on_start(&mut self, io: &mut Io<Flowtune>) {
        for k in 0..self.subflows.len() as u8 {
            self.pace(io, k);
        }
        self.tell(io);
        io.timer(0, io.now_ns + self.beat_ns);
    }

    /// The host's machine may have been restarted: it is told again.
    fn on_timer(&mut self, io: &mut Io<Flowtune>, _timer: u32) {
        if self.is_done {
            return;
        }
        self.tell(io);
        io.timer(0, io.now_ns + self.beat_ns);
    }

    fn stamp(&mut self, _now_ns: Ns, packet: &mut Packet<Flowtune>, _remaining_bytes: u64) {
        self.subflows[packet.subflow as usize].window.sent(packet.payload_bytes);
    }

    fn on_ack(&mut self, io: &mut Io<Flowtune>, ack: &Ack<()>) {
        let s = &mut self.subflows[ack.subflow as usize];
        s.window.saw(ack);
        let Some(bps) = s.rate_bps else {
            s.window.grow(ack);
            self.pace(io, ack.subflow);
            return;
        };
        let left_ns = ack.remaining_bytes as f64 * 8e9 / bps.max(1.0);
        if left_ns <= self.ahead_ns as f64 && !s.is_ending && self.subflows.len() == 1 {
            self.subflows[0].is_ending = true;
            io.ctl(To::Host, 0, Message::Ending { subflow: 0 }, Class::Control, 0);
        }
    }

    fn on_ctl(&mut self, io: &mut Io<Flowtune>, subflow: u8, message: Message) {
        let (Message::Rate(rate_bps), Some(s)) = (message, self.subflows.get_mut(subflow as usize)) else { return };
        if let (None, Some(bps)) = (rate_bps, s.rate_bps) {
            s.window.resume(bps * s.base_rtt_ns as f64 / 8e9);
        }
        // A link that failed gives no rate: TCP finds out when it is back.
        s.rate_bps = rate_bps.filter(|&bps| bps > 0.0);
        self.pace(io, subflow);
    }

    fn on_loss(&mut self, io: &mut Io<Flowtune>, loss: &Loss) {
        let s = &mut self.subflows[loss.subflow as usize];
        if s.rate_bps.is_none() {
            s.window.on_loss(loss);
            self.pace(io, loss.subflow);
        }
    }

    fn on_weight(&mut self, io: &mut Io<Flowtune>, weight: f64, utility: &Arc<Utility>) {
        self.weight = utility.weight(self.alpha).unwrap_or(weight);
        self.tell(io);
    }

    fn on_reroute(&mut self, io: &mut Io<Flowtune>, subflow: u8, path: &PathInfo, links: &[LinkId]) {
        self.links[subflow as usize] = links.to_vec();
        self.subflows[subflow as usize].base_rtt_ns = path.base_rtt_ns;
        self.tell(io);
    }

    fn on_finish(&mut self, io: &mut Io<Flowtune>) {
        self.is_done = true;
        for subflow in 0..self.subflows.len() as u8 {
            io.ctl(To::Host, subflow, Message::End { subflow }, Class::Control, 0);
        }
    }
}

/// What messages may take of the links to and from the allocator.
#[derive(Debug, Clone, Copy)]
struct MessageShare {
    /// The largest share.
    most: f64,
    /// A message with one update to a host at each iteration, bit/s.
    host_bps: f64,
}

/// So much at once, but no more than the share comes to in a millisecond.
fn burst_bytes(most: usize, share_bps: f64) -> usize {
    most.min((share_bps * BURST_S / 8.0) as usize)
}

impl MessageShare {
    /// Of links of `capacity_bps` in all. At a host data has the rest, and so messages have no more than they need.
    fn bps(&self, place: &Place, capacity_bps: f64) -> f64 {
        let most_bps = self.most * capacity_bps;
        if place.host.is_some() { most_bps.min(place.hosts as f64 * self.host_bps) } else { most_bps }
    }
}

/// The machine of a host.
struct Host {
    node: NodeId,
    settings: Settings,
    messages: MessageShare,
    endpoint: Option<Endpoint>,
    flows: BTreeMap<u64, Told>,
    /// When the timer is set for.
    wakes_ns: Ns,
}

/// A connection as its source told of it, and whether a rate holds.
#[derive(Debug, Clone, Copy)]
struct Told {
    path: u32,
    weight: f32,
    is_granted: bool,
}

fn connection(flow: FlowId, subflow: u8) -> u64 {
    u64::from(flow) << 8 | u64::from(subflow)
}

impl Host {
    /// The endpoint; a machine that was restarted has another life.
    fn endpoint(&mut self, now_ns: Ns) -> &mut Endpoint {
        let (node, settings) = (self.node, self.settings);
        self.endpoint.get_or_insert_with(|| Endpoint::new(node, now_ns + 1, settings))
    }

    /// Says what there is to say, and wakes when there will be more.
    fn speak(&mut self, io: &mut Io<Flowtune>) {
        let now_ns = io.now_ns;
        let settings = self.settings;
        let endpoint = self.endpoint(now_ns);
        while let Some(datagram) = endpoint.poll(now_ns) {
            send(io, To::Controller, &datagram, &settings);
        }
        let ends = [endpoint.due_ns(), endpoint.next_end_ns(now_ns)];
        if let Some(due_ns) = ends.into_iter().flatten().min().map(|due| due.max(now_ns + 1))
            && (self.wakes_ns <= now_ns || due_ns < self.wakes_ns)
        {
            self.wakes_ns = due_ns;
            io.timer(0, due_ns);
        }
    }

    fn grant(&mut self, io: &mut Io<Flowtune>, connection: u64) {
        let now_ns = io.now_ns;
        let rate_bps = self.endpoint(now_ns).rate_bps(now_ns, connection);
        if let Some(told) = self.flows.get_mut(&connection) {
            told.is_granted = rate_bps.is_some();
            let (flow, subflow) = ((connection >> 8) as FlowId, connection as u8);
            io.ctl(To::Flow(flow), subflow, Message::Rate(rate_bps), Class::Control, 0);
        }
    }
}

impl Node<Flowtune> for Host {
    /// Greets the allocator. The hosts' shares make up the share of the links that messages may take.
    fn on_controller(&mut self, io: &mut Io<Flowtune>, place: &Place) {
        let share_bps = self.messages.bps(place, place.into_bps) / place.hosts.max(1) as f64;
        let burst_bytes = burst_bytes((BURST_BYTES / place.hosts.max(1)).max(2 * self.settings.most_bytes), share_bps);
        self.endpoint(io.now_ns).set_pace(share_bps, burst_bytes);
        self.speak(io);
    }

    fn on_flow(&mut self, io: &mut Io<Flowtune>, flow: FlowId, message: Message) {
        let now_ns = io.now_ns;
        match message {
            Message::Begin { subflow, to, path, weight } => {
                let connection = connection(flow, subflow);
                let told = Told { path, weight, is_granted: false };
                match self.flows.get(&connection).copied() {
                    None => self.endpoint(now_ns).begin(connection, to, path, weight),
                    Some(before) if (before.path, before.weight) == (path, weight) => return,
                    Some(_) => {
                        self.endpoint(now_ns).set_weight(connection, weight);
                        self.endpoint(now_ns).reroute(connection, path);
                    }
                }
                self.flows.entry(connection).and_modify(|t| (t.path, t.weight) = (path, weight)).or_insert(told);
            }
            Message::Ending { subflow } => self.endpoint(now_ns).remaining(now_ns, connection(flow, subflow), 0),
            Message::End { subflow } => {
                let connection = connection(flow, subflow);
                if self.flows.remove(&connection).is_some() {
                    self.endpoint(now_ns).finish(connection);
                }
            }
            Message::Rate(_) | Message::Wire(_) => return,
        }
        self.speak(io);
    }

    fn on_ctl(&mut self, io: &mut Io<Flowtune>, message: Message) {
        let Message::Wire(bytes) = message else { return };
        let Ok(datagram) = Datagram::decode(&bytes) else { return };
        let now_ns = io.now_ns;
        for connection in self.endpoint(now_ns).take(now_ns, &datagram) {
            self.grant(io, connection);
        }
        self.speak(io);
    }

    fn on_timer(&mut self, io: &mut Io<Flowtune>, _timer: u32) {
        let now_ns = io.now_ns;
        if now_ns < self.wakes_ns {
            return;
        }
        let granted: Vec<u64> = self.flows.iter().filter(|(_, told)| told.is_granted).map(|(c, _)| *c).collect();
        for connection in granted {
            if self.endpoint(now_ns).rate_bps(now_ns, connection).is_none() {
                self.grant(io, connection);
            }
        }
        self.speak(io);
    }
}

/// The allocator's machine.
struct Centre {
    scheme: Flowtune,
    network: Network,
    capacities: Capacities,
    allocator: Option<Allocator>,
    /// When the next iteration is due, and the next message before it.
    steps_ns: Ns,
    wakes_ns: Ns,
}

const STEP: u32 = 0;
const SPEAK: u32 = 1;

impl Centre {
    /// Says what there is to say, and wakes if there will be more before the next iteration.
    fn speak(&mut self, io: &mut Io<Flowtune>) {
        let Some(allocator) = &mut self.allocator else { return };
        while let Some(datagram) = allocator.poll(io.now_ns) {
            send(io, To::Node(datagram.endpoint), &datagram, &self.scheme.settings);
        }
        if let Some(due_ns) = allocator.due_ns().map(|due_ns| due_ns.max(io.now_ns + 1))
            && due_ns < self.steps_ns
            && (self.wakes_ns <= io.now_ns || due_ns < self.wakes_ns)
        {
            self.wakes_ns = due_ns;
            io.timer(SPEAK, due_ns);
        }
    }
}

impl Controller<Flowtune> for Centre {
    fn on_start(&mut self, io: &mut Io<Flowtune>) {
        let paths = Box::new(Turns::new(&self.network));
        let allocator = Allocator::new(io.now_ns, io.now_ns + 1, self.capacities.bps(), paths, self.scheme.settings);
        // Settings and capacities were checked before.
        self.allocator = allocator.ok().map(|mut allocator| {
            self.network.hosts().for_each(|host| allocator.join(host));
            if io.now_ns == 0 { allocator.first() } else { allocator }
        });
        self.steps_ns = io.now_ns + self.scheme.interval_ns;
        io.timer(STEP, self.steps_ns);
    }

    fn on_place(&mut self, io: &mut Io<Flowtune>, place: &Place) {
        let Some(allocator) = &mut self.allocator else { return };
        let [into_bps, out_bps] = [place.into_bps, place.out_bps].map(|bps| self.scheme.messages.bps(place, bps));
        allocator.set_pace(out_bps, burst_bytes(BURST_BYTES, out_bps));
        if let Some(host) = place.host {
            allocator.set_place(host, into_bps, out_bps);
        }
        self.speak(io);
    }

    fn on_node(&mut self, io: &mut Io<Flowtune>, node: NodeId, message: Message) {
        let (Message::Wire(bytes), Some(allocator)) = (message, &mut self.allocator) else { return };
        if let Ok(datagram) = Datagram::decode(&bytes) {
            allocator.take(io.now_ns, node, &datagram);
            self.speak(io);
        }
    }

    fn on_link(&mut self, _io: &mut Io<Flowtune>, link: LinkId, change: LinkChange) {
        let capacity_bps = self.capacities.change(link, change);
        if let Some(allocator) = &mut self.allocator {
            let _ = allocator.set_capacity(link, capacity_bps);
        }
    }

    fn on_timer(&mut self, io: &mut Io<Flowtune>, timer: u32) {
        if timer == STEP
            && let Some(allocator) = &mut self.allocator
        {
            allocator.step(io.now_ns);
            self.steps_ns = io.now_ns + self.scheme.interval_ns;
            io.timer(STEP, self.steps_ns);
        }
        self.speak(io);
    }
}
