//! pFabric: packets carry the remaining bytes of their flow, links prefer packets with the fewest, and senders start
//! at line rate (Alizadeh et al., SIGCOMM 2013, sections 4.2 and 4.3).
//!
//! The sender is a simplified TCP. The initial window is a BDP. Losses are detected only by a constant RTO of a few
//! RTTs, after which the window restarts from one packet. After five consecutive RTOs the sender stops sending data. It
//! then sends a probe (a header only) once per RTO, until one is answered.
//!
//! The paper sprays packets over all paths; here a flow keeps its assigned paths. ACKs and probes have 0 remaining
//! bytes, and thus the highest priority.

use crate::queue::{PFabricQueue, Ranked};
use crate::tcp::Window;
use subak_core::keys::{AMOUNT, ValueType};
use subak_core::scheme::{
    Ack, Around, Class, Doubt, FlowInfo, Goal, Info, Io, Load, Loss, Named, Packet, PacketKind, Param, Params,
    PathInfo, Port, Recovery, Reply, Rules, Scheme, SchemeKind, Settles, SharesLinks, SimulationCost, Sink, Source, To,
};
use subak_core::{IdVec, InputError, LinkId, Ns, SubflowId};

/// Size of a probe on the wire, bytes.
const PROBE_BYTES: u32 = 64;
/// Default RTO, as a multiple of the base RTT.
const RTO_RTTS: u32 = 3;
/// Minimum of the default RTO, ns.
const RTO_NS: Ns = 45_000;

/// Priority queues by remaining bytes, and senders that start at line rate.
#[derive(Debug, Clone, Copy)]
pub struct PFabric {
    buffer_packets: f64,
    window_packets: f64,
    rto_ns: Ns,
    patience: u32,
}

/// Remaining payload bytes of a packet's flow, at most `u32::MAX`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Remaining(u32);

impl Remaining {
    /// The field for a flow with `bytes` remaining.
    pub fn of(bytes: u64) -> Self {
        Remaining(bytes.min(u64::from(u32::MAX)) as u32)
    }
}

/// Sender of a flow.
#[derive(Debug)]
pub struct PFabricSource {
    scheme: PFabric,
    mss_bytes: u32,
    mtu_bytes: u32,
    subflows: IdVec<SubflowId, PfabricSubflow>,
    remaining: Remaining,
    finished: bool,
}

#[derive(Debug)]
struct PfabricSubflow {
    window: Window,
    most_bytes: u64,
    rto_ns: Ns,
    /// Number of consecutive RTOs since the last ACK.
    timeouts: u32,
    probing: bool,
    /// Whether the probe timer runs.
    ticks: bool,
}

impl Named for PFabric {
    const INFO: Info = Info {
        name: "pfabric",
        about: "pFabric: links serve the flows with the least left to send, senders start at line rate",
        paper: "Alizadeh et al., SIGCOMM 2013",
        kind: SchemeKind::Reactive,
        lives_on_control: false,
        goal: Goal::Own,
        weights: false,
        params: &[
            Param::number("buffer", 0.0, ValueType::Packets, "size of every queue; 0: two BDPs of the longest RTT"),
            Param::number("initial_window", 0.0, ValueType::Packets, "initial window; 0: the path's BDP"),
            Param::number(
                "rto",
                0.0,
                ValueType::Time,
                "constant retransmission timeout; 0: three base RTTs of the path, and at least 45 us",
            ),
            Param::number("patience", 5.0, AMOUNT, "timeouts in a row before a sender only probes"),
        ],
        settles: Settles::NEVER,
        shares_links: SharesLinks::No("its queues serve packets by the bytes that their flows have left"),
        ..Info::DEFAULT
    };
}

impl Scheme for PFabric {
    type Data = Remaining;
    type Ctl = Remaining;
    type Queue = PFabricQueue;
    type Source = PFabricSource;
    type Hop = ();
    type Sink = PFabricSink;

    /// Simulation cost, with one constant RTO timer per flow.
    fn work(&self, load: &Load) -> SimulationCost {
        let rto_s = match self.rto_ns {
            0 => (f64::from(RTO_RTTS) * load.rtt_s).max(RTO_NS as f64 * 1e-9),
            given => given as f64 * 1e-9,
        };
        SimulationCost { timers: load.live * load.busy_s / rto_s, ..SimulationCost::per_hop(self.rules().per_hop) }
    }
    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(PFabric {
            buffer_packets: params.whole("buffer", 0.0, 1e6)?,
            window_packets: params.whole("initial_window", 0.0, 1e6)?,
            rto_ns: params.ns("rto"),
            patience: params.whole("patience", 1.0, 1e6)? as u32,
        })
    }
    fn rules(&self) -> Rules {
        let (rto_ns, rto_rtts) = match self.rto_ns {
            0 => (RTO_NS, RTO_RTTS),
            given => (given.max(1000), 0),
        };
        let recovery = Recovery {
            reorder: None,
            probe: false,
            rto_min_ns: rto_ns,
            rto_rtts,
            rto_max_ns: rto_ns,
            ..Recovery::default()
        };
        Rules { recovery, per_hop: 1.35, ..Rules::default() }
    }
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        let given = around.network.links().iter().filter(|link| link.buffer_bytes.is_some()).count();
        let text = format!(
            "the buffer that the network gives {given} of {} links is not used: queues have the scheme's own size, params.buffer \
             in packets, and by default two BDPs of the longest RTT",
            around.ports.len()
        );
        if given > 0 { vec![Doubt { kind: "buffer", text }] } else { Vec::new() }
    }
    fn queue(&self, port: &Port) -> PFabricQueue {
        let mtu = u64::from(port.mtu_bytes);
        let packets = match self.buffer_packets {
            0.0 => (2.0 * bdp_packets(port.capacity_bps, port.rtt_ns, port.mtu_bytes)).max(4.0),
            given => given,
        };
        PFabricQueue::new((packets as u64).max(1) * mtu)
    }
    fn source(&self, flow: &FlowInfo) -> PFabricSource {
        PFabricSource {
            scheme: *self,
            mss_bytes: flow.mss_bytes,
            mtu_bytes: flow.mtu_bytes,
            subflows: flow.paths.iter().map(|path| self.subflow(path, flow.mss_bytes, flow.mtu_bytes)).collect(),
            remaining: Remaining::of(flow.size_bytes.unwrap_or(u64::MAX)),
            finished: false,
        }
    }
    fn hop(&self, _port: &Port) {}
    fn sink(&self, _flow: &FlowInfo) -> PFabricSink {
        PFabricSink
    }
}

impl PFabric {
    fn subflow(&self, path: &PathInfo, mss_bytes: u32, mtu_bytes: u32) -> PfabricSubflow {
        let bdp = bdp_packets(path.line_rate_bps, path.base_rtt_ns, mtu_bytes).max(1.0);
        let first = if self.window_packets > 0.0 { self.window_packets } else { bdp };
        // A window larger than the queues on the path would only fill them.
        let most = if self.buffer_packets > 0.0 { self.buffer_packets - 1.0 } else { 2.0 * bdp - 1.0 };
        PfabricSubflow {
            window: Window::new(mss_bytes, first),
            most_bytes: (most.max(first) * f64::from(mss_bytes)) as u64,
            rto_ns: (path.time_ns(self.rto_ns as f64, RTO_RTTS.into(), RTO_NS as f64) as Ns).max(1000),
            timeouts: 0,
            probing: false,
            ticks: false,
        }
    }
}

/// BDP in full packets, rounded up.
fn bdp_packets(rate_bps: f64, rtt_ns: Ns, mtu_bytes: u32) -> f64 {
    (rate_bps * rtt_ns as f64 / 8e9 / f64::from(mtu_bytes)).ceil()
}

impl Ranked for PFabric {
    fn rank(packet: &Packet<Self>) -> u64 {
        let remaining = match packet.kind {
            PacketKind::Ctl => packet.ctl.as_deref().copied().unwrap_or_default(),
            PacketKind::Data | PacketKind::Ack => packet.data,
        };
        remaining.0.into()
    }
}

impl PFabricSource {
    fn go_on(&self, io: &mut Io<PFabric>, k: SubflowId) {
        let s = &self.subflows[k];
        io.pace(k, None, Some(s.window.bytes().min(s.most_bytes).max(u64::from(self.mss_bytes))));
    }

    fn probe(&mut self, io: &mut Io<PFabric>, k: SubflowId) {
        io.ctl(To::Sink, k, self.remaining, Class::Low, PROBE_BYTES);
        let s = &mut self.subflows[k];
        s.ticks = true;
        io.timer(k.into(), io.now_ns + s.rto_ns);
    }

    /// Handles an ACK, or the reply to a probe.
    fn heard(&mut self, k: SubflowId) {
        let s = &mut self.subflows[k];
        s.timeouts = 0;
        s.probing = false;
    }
}

impl Source<PFabric> for PFabricSource {
    fn on_start(&mut self, io: &mut Io<PFabric>) {
        for k in self.subflows.ids() {
            self.go_on(io, k);
        }
    }
    fn stamp(&mut self, _now_ns: Ns, packet: &mut Packet<PFabric>, remaining_bytes: u64) {
        self.remaining = Remaining::of(remaining_bytes);
        packet.data = self.remaining;
    }
    fn on_ack(&mut self, io: &mut Io<PFabric>, ack: &Ack<Remaining>) {
        self.heard(ack.subflow);
        let s = &mut self.subflows[ack.subflow];
        if s.window.bytes() < s.most_bytes {
            s.window.grow(ack);
        }
        self.go_on(io, ack.subflow);
    }
    fn on_loss(&mut self, io: &mut Io<PFabric>, loss: &Loss) {
        let s = &mut self.subflows[loss.subflow];
        s.window.on_loss(loss);
        s.timeouts += 1;
        if s.timeouts < self.scheme.patience {
            return self.go_on(io, loss.subflow);
        }
        s.probing = true;
        io.pace(loss.subflow, Some(0.0), None);
        // Segments in flight time out one after the other, but there is only one probe at a time.
        if !self.subflows[loss.subflow].ticks {
            self.probe(io, loss.subflow);
        }
    }
    fn on_ctl(&mut self, io: &mut Io<PFabric>, k: SubflowId, _probe: Remaining) {
        self.heard(k);
        self.go_on(io, k);
    }
    fn on_timer(&mut self, io: &mut Io<PFabric>, timer: u32) {
        let k = SubflowId(timer as u8);
        self.subflows[k].ticks = false;
        if self.subflows[k].probing && !self.finished {
            self.probe(io, k);
        }
    }
    fn on_reroute(&mut self, io: &mut Io<PFabric>, k: SubflowId, path: &PathInfo, _links: &[LinkId]) {
        let ticks = self.subflows[k].ticks;
        self.subflows[k] = PfabricSubflow { ticks, ..self.scheme.subflow(path, self.mss_bytes, self.mtu_bytes) };
        self.go_on(io, k);
    }
    fn on_finish(&mut self, _io: &mut Io<PFabric>) {
        self.finished = true;
    }
}

/// Receiver: ACKs data, and returns probes.
#[derive(Debug, Clone, Copy)]
pub struct PFabricSink;

impl Sink<PFabric> for PFabricSink {
    fn on_data(&mut self, _io: &mut Io<PFabric>, _packet: &Packet<PFabric>) -> Reply<Remaining> {
        Reply::Ack(Remaining::default())
    }
    fn on_ctl(&mut self, io: &mut Io<PFabric>, k: SubflowId, _probe: Remaining, bytes: u32) {
        io.ctl(To::Source, k, Remaining::default(), Class::Low, bytes);
    }
}
