//! A weighted RCP: a link keeps one level, bit/s per unit of weight, for all its flows, and a subflow sends at its
//! weight times the smallest level of its path, through drop-tail FIFOs. In a steady state links are full, and rates
//! are weighted max-min.
//!
//! After Dukkipati, Rate Control Protocol, Stanford 2007, whose rate update applies to the level: every base RTT T a
//! link sets
//!
//! ```text
//! L <- L (1 + (T/d) (a (C - y) - b Q/d) / C)
//! ```
//!
//! with y the arriving load, Q the shortest queue that a packet found since the last update and d the average RTT that
//! packets carry, at least the base RTT and the time to drain Q.
//!
//! The optimizer chooses the unit of weights, so that the capacity does not bound a level as it bounds RCP's rate. A
//! packet carries its sender's rate over its weight. A link's level is at most twice the largest such value of an
//! interval, so that the level of a link that is not a bottleneck does not grow without bound. After `IDLE_RTTS`
//! without data, the level starts again at half the value of the next packet.

use crate::over::{Optimizer, Part, Passing, Transport, TransportHop, TransportSource, Weight};
use crate::queue::Fifo;
use subak_core::keys::AMOUNT;
use subak_core::scheme::{
    Ack, Carries, FlowInfo, Goal, Headers, Io, PacketKind, Param, Params, PathInfo, Port, Rules, Scheme, Settles,
};
use subak_core::{IdVec, InputError, Ns, SubflowId};

/// Number of base RTTs without data after which the next packet sets a link's level anew.
const IDLE_RTTS: u32 = 100;
/// Initial level of a link, as a fraction of the rate over weight in its first packet.
const FIRST: f64 = 0.5;
/// Minimum rate, as a fraction of the line rate: a sender learns a higher level only from ACKs.
const LEAST: f64 = 1e-3;
/// Minimum number of full packets between two updates: the load of fewer is noisy.
const PACKETS: f64 = 10.0;
/// Weight of one packet in the average RTT.
const RTT_GAIN: f64 = 0.02;

/// The transport levels: weighted RCP.
#[derive(Debug, Clone, Copy)]
pub struct Levels {
    a: f64,
    b: f64,
    window: f64,
    headers: Headers,
}

/// Header of a data packet.
#[derive(Debug, Clone, Copy, Default)]
pub struct LevelHeader {
    /// Smallest level of the links crossed, bit/s per unit of weight; 0 before the first link.
    level_bps: f64,
    /// The sender's rate over its weight, bit/s.
    own_bps: f64,
    /// The subflow's latest RTT, ns; 0 if it is not known.
    rtt_ns: u32,
}

impl Transport for Levels {
    const PART: Part = Part {
        name: "levels",
        about: "sources that send at their weight times the least level of their links (weighted RCP)",
        paper: "after Dukkipati, Rate Control Protocol, Stanford 2007",
        params: &[
            Param::number("level_a", 0.4, AMOUNT, "gain on free capacity"),
            Param::number("level_b", 0.2, AMOUNT, "gain on the queue"),
            Param::number("window", 2.0, AMOUNT, "maximum bytes in flight, in BDPs of the path's slowest link"),
        ],
        goal: Goal::MaxMin,
        settles: Settles { within: 0.05, rtts: 200.0 },
    };
    /// A level converges only some RTTs after weights have changed.
    const SLOWDOWN: f64 = 10.0;
    type Wish = Weight;
    type Header = LevelHeader;
    type Ctl = ();
    type Queue<O: Optimizer<Wish = Weight>> = Fifo;
    type Source = LevelSource;
    type Hop = Level;
    type Sink = ();

    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(Levels {
            a: params.within("level_a", 1e-3, 10.0)?,
            b: params.within("level_b", 0.0, 10.0)?,
            window: params.within("window", 0.01, 1e6)?,
            headers: Headers { data_bytes: 12, ack_bytes: 4 },
        })
    }
    fn rules(&self) -> Rules {
        Rules { headers: self.headers, per_hop: 1.3, ..Rules::default() }
    }
    fn queue<O: Optimizer<Wish = Weight>>(&self, port: &Port) -> Fifo {
        Fifo::new(port.buffer_bytes)
    }
    fn source(&self, flow: &FlowInfo) -> LevelSource {
        let subflow = |path: &PathInfo| LevelSubflow {
            weight: 1.0,
            level_bps: None,
            rtt_ns: 0,
            line_rate_bps: path.line_rate_bps,
            demand_bps: flow.demand_bps,
            window_bytes: self.window_bytes(path, flow),
        };
        LevelSource {
            levels: *self,
            flow_mss_bytes: flow.mss_bytes,
            flow_mtu_bytes: flow.mtu_bytes,
            subflows: flow.paths.iter().map(subflow).collect(),
        }
    }
    fn hop(&self, port: &Port) -> Level {
        Level {
            levels: *self,
            level_bps: 0.0,
            rtt_ns: port.rtt_ns as f64,
            largest_own_bps: 0.0,
            arrived_bytes: 0,
            interval_ns: Level::interval_ns(port),
            least_queue_bytes: u64::MAX,
            idle: 0,
        }
    }
    fn sink(&self, _flow: &FlowInfo) {}
}

impl Levels {
    fn window_bytes(&self, path: &PathInfo, flow: &FlowInfo) -> u64 {
        window_bytes(self.window, path, flow.mss_bytes, flow.mtu_bytes)
    }
}

fn window_bytes(window: f64, path: &PathInfo, mss_bytes: u32, mtu_bytes: u32) -> u64 {
    let bytes = window * path.min_capacity_bps * path.base_rtt_ns as f64 / 8e9;
    (bytes / f64::from(mtu_bytes)).ceil().max(1.0) as u64 * u64::from(mss_bytes)
}

/// Sender: sends at its weight times the smallest level of its path.
#[derive(Debug, Clone)]
pub struct LevelSource {
    levels: Levels,
    flow_mss_bytes: u32,
    flow_mtu_bytes: u32,
    subflows: IdVec<SubflowId, LevelSubflow>,
}

#[derive(Debug, Clone, Copy)]
struct LevelSubflow {
    weight: f64,
    /// Smallest level of the path, bit/s per unit of weight; `None` before the first ACK.
    level_bps: Option<f64>,
    rtt_ns: u32,
    line_rate_bps: f64,
    /// Demand of the flow, bit/s.
    demand_bps: f64,
    window_bytes: u64,
}

impl LevelSubflow {
    fn rate_bps(&self) -> f64 {
        let level_bps = self.level_bps.unwrap_or(f64::INFINITY);
        (self.weight * level_bps).clamp(LEAST * self.line_rate_bps, self.line_rate_bps)
    }
}

impl LevelSource {
    fn pace<S: Scheme<Ctl: Carries<()>>>(&self, io: &mut Io<S>, k: SubflowId) {
        let s = &self.subflows[k];
        let window_bytes = s.level_bps.map_or(u64::from(self.flow_mss_bytes), |_| s.window_bytes);
        io.pace(k, Some(s.rate_bps().min(s.demand_bps)), Some(window_bytes));
    }
}

impl TransportSource<Levels> for LevelSource {
    fn on_start<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>) {
        self.subflows.ids().for_each(|k| self.pace(io, k));
    }
    #[inline]
    fn wish<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>, k: SubflowId, Weight(weight): Weight) {
        let s = &mut self.subflows[k];
        s.weight = weight;
        if s.level_bps.is_some() {
            self.pace(io, k);
        }
    }
    #[inline]
    fn header(&mut self, k: SubflowId, _bytes: u32) -> LevelHeader {
        let s = &self.subflows[k];
        LevelHeader { level_bps: 0.0, own_bps: s.rate_bps() / s.weight, rtt_ns: s.rtt_ns }
    }
    #[inline]
    fn on_ack<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>, ack: &Ack<S::Data>, header: &LevelHeader) {
        let s = &mut self.subflows[ack.subflow];
        s.rtt_ns = ack.rtt_ns.min(u64::from(u32::MAX)) as u32;
        if header.level_bps > 0.0 {
            s.level_bps = Some(header.level_bps);
        }
        self.pace(io, ack.subflow);
    }
    fn on_reroute<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>, k: SubflowId, path: &PathInfo) {
        let s = &mut self.subflows[k];
        s.line_rate_bps = path.line_rate_bps;
        s.window_bytes = window_bytes(self.levels.window, path, self.flow_mss_bytes, self.flow_mtu_bytes);
        self.pace(io, k);
    }
    fn rate_bps(&self, k: SubflowId) -> Option<f64> {
        self.subflows[k].level_bps.map(|_| self.subflows[k].rate_bps())
    }
}

/// Link: its level, and the measurements by which the level is updated.
#[derive(Debug, Clone)]
pub struct Level {
    levels: Levels,
    /// L, bit/s per unit of weight; 0 before the first packet.
    level_bps: f64,
    /// d, the average RTT of packets, ns.
    rtt_ns: f64,
    /// Largest rate over weight in packets since the last update, bit/s.
    largest_own_bps: f64,
    arrived_bytes: u64,
    interval_ns: Ns,
    /// Shortest queue that an arriving packet found since the last update, bytes: the packet itself is no queue.
    least_queue_bytes: u64,
    /// Number of updates since the last data packet.
    idle: u32,
}

const UPDATE: u32 = 0;

impl Level {
    /// Time between two updates, ns: the base RTT T, and at least the time of [`PACKETS`] full packets.
    fn interval_ns(port: &Port) -> Ns {
        let packets_ns = PACKETS * 8e9 * f64::from(port.mtu_bytes) / port.capacity_bps;
        port.rtt_ns.max(packets_ns as Ns).max(1)
    }

    fn update(&mut self, port: &Port) {
        let interval_ns = self.interval_ns as f64;
        let load_bps = self.arrived_bytes as f64 * 8e9 / interval_ns;
        self.arrived_bytes = 0;
        self.idle = self.idle.saturating_add(1);
        if self.largest_own_bps == 0.0 {
            if self.idle > IDLE_RTTS {
                self.level_bps = 0.0;
            }
            return;
        }
        let queue_ns = self.least_queue_bytes.min(port.queued_bytes) as f64 * 8e9 / port.capacity_bps;
        let rtt_ns = self.rtt_ns.max(port.rtt_ns as f64 + queue_ns).max(interval_ns);
        let free = self.levels.a * (1.0 - load_bps / port.capacity_bps) - self.levels.b * queue_ns / rtt_ns;
        let factor = (1.0 + interval_ns / rtt_ns * free).max(0.5);
        self.level_bps = (self.level_bps * factor).min(2.0 * self.largest_own_bps);
        self.largest_own_bps = 0.0;
        self.least_queue_bytes = u64::MAX;
    }
}

impl TransportHop<Levels> for Level {
    fn on_start<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>) {
        io.timer(UPDATE, io.now_ns + 1);
    }
    #[inline]
    fn on_enqueue<S: Scheme<Ctl: Carries<()>>>(&mut self, _io: &mut Io<S>, packet: Passing<LevelHeader>, port: &Port) {
        self.arrived_bytes += u64::from(packet.bytes);
        self.least_queue_bytes = self.least_queue_bytes.min(port.queued_bytes);
        if packet.kind != PacketKind::Data {
            return;
        }
        self.idle = 0;
        self.largest_own_bps = self.largest_own_bps.max(packet.header.own_bps);
        if self.level_bps == 0.0 {
            self.level_bps = FIRST * packet.header.own_bps;
        }
        let rtt_ns = f64::from(packet.header.rtt_ns);
        if rtt_ns >= port.rtt_ns as f64 {
            self.rtt_ns += RTT_GAIN * (rtt_ns - self.rtt_ns);
        }
    }
    #[inline]
    fn on_dequeue<S: Scheme<Ctl: Carries<()>>>(&mut self, _io: &mut Io<S>, packet: Passing<LevelHeader>, _port: &Port) {
        let header = packet.header;
        if packet.kind == PacketKind::Data && (header.level_bps == 0.0 || self.level_bps < header.level_bps) {
            header.level_bps = self.level_bps;
        }
    }
    fn on_timer<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>, timer: u32, port: &Port) {
        if timer == UPDATE {
            self.update(port);
            self.interval_ns = Level::interval_ns(port);
            io.timer(UPDATE, io.now_ns + self.interval_ns);
        }
    }
}
