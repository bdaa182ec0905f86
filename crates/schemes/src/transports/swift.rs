//! Swift: network-wide weighted max-min by fair queues at the links and windows at the hosts (NUMFabric, section 4.1).
//!
//! A packet carries its length over its flow's weight, by which links order it ([`Stfq`](crate::queue::Stfq), or an
//! approximation by a few FIFOs). The receiver measures the time between packets. The sender computes a rate from it,
//! smooths the rate into R, and sets its window to R (d0 + dt), d0 being the base RTT. That is just enough to keep a
//! packet queued at the bottleneck. A sender starts with a burst, sends nothing on the first ACK, and knows R from the
//! second ACK on.
//!
//! Additions to the paper: samples weigh by their length, 1 - exp(-gap / ewma_time). After [`FORGET_NS`] without
//! packets a sample replaces the average. The window is rounded up to full packets. R counts bytes on the wire. A flow
//! whose utility does not grow above some rate (the top of a bandwidth function) is paced at that rate.

use crate::headers::{self, ACK_HEADER, HEADER};
use crate::over::{Arrived, Optimizer, Part, Transport, TransportSink, TransportSource, Weight};
use crate::queue::fair::{BEYOND, HIGH, LOW, QUEUE, QUEUES, SERVICE, SHARE, SKETCH};
use crate::queue::{FairPlan, FairQueue, VirtualLength};
use subak_core::keys::{AMOUNT, ValueType};
use subak_core::scheme::{
    Ack, Around, Carries, Doubt, FlowInfo, Goal, Headers, Io, Param, Params, PathInfo, Port, Recovery, Reply, Rules,
    Scheme, Settles,
};
use subak_core::{IdVec, InputError, Ns, SubflowId};

/// Parameter `dt`: slack in the congestion window, as a time.
const DT: Param = Param::number(
    "dt",
    0.0,
    ValueType::Time,
    "slack in the window R (d0 + dt): about the queueing delay at the bottleneck; 0: 0.15 base RTTs, from 6 to 300us",
);
/// Parameter `ewma_time`: time constant of the average of rate samples.
const EWMA_TIME: Param = Param::number(
    "ewma_time",
    0.0,
    ValueType::Time,
    "time constant of the filter over rate samples; 0: 20us, and 5ns for each ns of base RTT above 25us, up to 5ms",
);
/// Parameter `initial_window`: packets of the burst at a flow's start.
const INITIAL_WINDOW: Param =
    Param::number("initial_window", 3.0, ValueType::Packets, "packets of the burst at a flow's start");
/// Parameter `time_scale`: factor of `ewma_time`.
const TIME_SCALE: Param = Param::number("time_scale", 1.0, AMOUNT, "multiplies ewma_time");

/// `dt` of NUMFabric's table 2, ns, for an RTT of 16 us.
const DT_NS: f64 = 6e3;
/// `ewma_time` of NUMFabric's table 2, ns, for an RTT of 16 us.
const EWMA_NS: f64 = 20e3;
/// Base RTT up to which `DT_NS` and `EWMA_NS` are the defaults, ns.
const PAPER_RTT_NS: f64 = 25e3;
/// Default `dt` at longer RTTs, in base RTTs.
const DT_RTTS: f64 = 0.15;
/// Maximum of the default `dt`, ns, since default buffers hold 360 us.
const MOST_DT_NS: f64 = 300e3;
/// Increase of the default `ewma_time` for each ns of base RTT above [`PAPER_RTT_NS`].
const EWMA_RTTS: f64 = 5.0;
/// Number of links of a path, with those of its hosts, over which a flow has its rate with `DT_NS` at 10 Gb/s.
const LINKS: u16 = 7;
/// Number of links on the longest path of a leaf-spine network.
const LEAF_SPINE_LINKS: u16 = 4;
/// Base RTT above which Swift does not converge, ns.
const MOST_RTT_NS: f64 = 5e6;

/// Time without a packet after which the next sample replaces the average, ns.
pub const FORGET_NS: Ns = 8_000_000;

/// The transport swift: fair queues, and windows from packet gaps.
#[derive(Debug, Clone, Copy)]
pub struct SwiftTransport {
    dt_ns: f64,
    ewma_ns: f64,
    time_scale: f64,
    initial_packets: u64,
    fair: FairPlan,
    headers: Headers,
}

/// Swift header of a packet.
#[derive(Debug, Clone, Copy, Default)]
pub struct SwiftHeader {
    /// Packet length in bits over the flow's weight.
    pub virtual_len: f64,
    /// In ACKs: time between the arrivals of the previous packet and of the ACKed one, ns; 0 for the first.
    pub gap_ns: u32,
}

impl VirtualLength for SwiftHeader {
    #[inline]
    fn virtual_len(&self) -> f64 {
        self.virtual_len
    }
}

impl Transport for SwiftTransport {
    const PART: Part = Part {
        name: "swift",
        about: "network-wide weighted max-min by fair queues and packet-pair windows (NUMFabric's Swift; Google's is google-swift)",
        paper: "NUMFabric, section 4.1",
        params: &[
            DT,
            EWMA_TIME,
            INITIAL_WINDOW,
            TIME_SCALE,
            QUEUE,
            QUEUES,
            LOW,
            HIGH,
            SERVICE,
            SHARE,
            BEYOND,
            SKETCH,
            HEADER,
            ACK_HEADER,
        ],
        goal: Goal::MaxMin,
        settles: Settles { within: 0.02, rtts: 20.0 },
    };
    type Wish = Weight;
    type Header = SwiftHeader;
    type Ctl = ();
    type Queue<O: Optimizer<Wish = Weight>> = FairQueue;
    type Source = SwiftSource;
    type Hop = ();
    type Sink = SwiftSink;

    fn new(params: &Params) -> Result<Self, InputError> {
        let time_scale = params.within("time_scale", 0.01, 1000.0)?;
        Ok(SwiftTransport {
            dt_ns: params.within("dt", 0.0, 1.0)? * 1e9,
            ewma_ns: params.within("ewma_time", 0.0, 1.0)? * 1e9,
            time_scale,
            initial_packets: params.within("initial_window", 2.0, 1e6)? as u64,
            fair: FairPlan::new(params)?,
            headers: headers::read(params)?,
        })
    }
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        let dt_ns = around.flows.least.map_or(0.0, |least| self.dt_ns(least.rtt_ns as Ns));
        let of_shares = || Doubt::of_window(around, dt_ns, 1.0, "windows are rounded up, and weights lost");
        let window = self.doubt_of_window(around).or_else(of_shares);
        [SwiftTransport::doubt_of_rtt(around), self.doubt_of_dt(around), window].into_iter().flatten().collect()
    }
    fn rules(&self) -> Rules {
        let recovery = Recovery { patient: self.fair.reorders(), ..Recovery::default() };
        Rules { recovery, headers: self.headers, per_hop: 1.3, ..Rules::default() }
    }
    fn queue<O: Optimizer<Wish = Weight>>(&self, port: &Port) -> FairQueue {
        // Exact where all line rates are equal or above 8.6 Gb/s: a port does not know those of other links.
        let full_weight = Weight::of_rate(port.capacity_bps).0 * Weight::factor(port.capacity_bps);
        let full_weight = O::WEIGHTS_OF_RATES.then_some(full_weight);
        self.fair.queue(port, full_weight)
    }
    fn source(&self, flow: &FlowInfo) -> SwiftSource {
        let subflow = |path: &PathInfo| SwiftSubflow {
            d0_ns: path.base_rtt_ns,
            dt_ns: self.dt_ns(path.base_rtt_ns),
            ewma_ns: self.ewma_ns(path.base_rtt_ns),
            weight: 1.0,
            acks: 0,
            rate_bps: None,
            window_packets: self.initial_packets,
        };
        let top_bps = flow.utility.top_bps();
        SwiftSource {
            transport: *self,
            mss_bytes: flow.mss_bytes,
            mtu_bytes: flow.mtu_bytes,
            top_bps: top_bps.is_finite().then_some(top_bps),
            subflows: flow.paths.iter().map(subflow).collect(),
        }
    }
    fn hop(&self, _port: &Port) {}
    fn sink(&self, flow: &FlowInfo) -> SwiftSink {
        SwiftSink { last_ns: IdVec::filled(None, flow.paths.len()) }
    }
}

impl SwiftTransport {
    fn doubt_of_rtt(around: &Around) -> Option<Doubt> {
        let rtt_ns = around.paths?.1.base_rtt_ns;
        let text = format!(
            "Swift does not converge where the base RTT is above {} ms, and on the longest path it is {:.1} ms; s-perc, levels and \
             soze-virtual are transports for such paths",
            MOST_RTT_NS / 1e6,
            rtt_ns as f64 / 1e6
        );
        (rtt_ns as f64 > MOST_RTT_NS).then_some(Doubt { kind: "base-rtt", text })
    }

    /// Warns if a flow over many full links waits for longer than `dt`: its window does not cover a packet in each of
    /// their queues.
    fn doubt_of_dt(&self, around: &Around) -> Option<Doubt> {
        let path = around.paths?.1;
        let mtu_bytes = f64::from(around.ports.first()?.mtu_bytes);
        let (dt_ns, needs_ns) =
            (self.dt_ns(path.base_rtt_ns), f64::from(path.hops) * mtu_bytes * 8e9 / path.min_capacity_bps);
        let text = format!(
            "params.dt comes to {:.1} us on a path of {} links, whose full packets take up to {:.1} us: if nearly all of them \
             are full, a flow over them may get 20 to 40% too little; take dt = \"{:.0}us\", or another transport than swift",
            dt_ns / 1e3,
            path.hops,
            needs_ns / 1e3,
            (needs_ns / 1e3).ceil()
        );
        let is_long = path.hops > LINKS && dt_ns < needs_ns;
        // Rates on a leaf-spine network, with paths of up to four links, are right with a smaller `dt` too.
        let is_slow = path.hops > LEAF_SPINE_LINKS && 2.0 * dt_ns < needs_ns;
        (is_long || is_slow).then_some(Doubt { kind: "window", text })
    }

    /// Warns if windows of one packet fill a link: two flows of equal rates then keep them when weights change.
    fn doubt_of_window(&self, around: &Around) -> Option<Doubt> {
        let shortest_ns = around.paths?.0.base_rtt_ns as f64;
        let packets = |port: &Port| {
            let packet_ns = f64::from(port.mtu_bytes) * 8e9 / port.capacity_bps;
            let d0_ns = shortest_ns + packet_ns;
            (d0_ns + self.dt_ns(d0_ns as Ns)) / packet_ns
        };
        let narrow = |port: &&Port| packets(port) < 2.0;
        let first = around.ports.iter().find(narrow)?;
        let text = format!(
            "link \"{}\" carries {:.1} packets in the time d0 + dt of the windows, and so do {} of {} links: two flows with windows of \
             one packet fill it, and keep equal rates there when their weights change; take a larger dt, or another transport \
             than swift",
            around.network.links()[first.link].id,
            packets(first),
            around.ports.iter().filter(narrow).count(),
            around.ports.len()
        );
        Some(Doubt { kind: "window", text })
    }

    /// `dt` on a path of this base RTT, ns.
    fn dt_ns(&self, base_rtt_ns: Ns) -> f64 {
        if self.dt_ns > 0.0 { self.dt_ns } else { (DT_RTTS * base_rtt_ns as f64).clamp(DT_NS, MOST_DT_NS) }
    }

    /// Time constant of the filter over rate samples, on a path of this base RTT, ns.
    fn ewma_ns(&self, base_rtt_ns: Ns) -> f64 {
        let longer_ns = (base_rtt_ns as f64).clamp(PAPER_RTT_NS, MOST_RTT_NS) - PAPER_RTT_NS;
        self.time_scale * if self.ewma_ns > 0.0 { self.ewma_ns } else { EWMA_NS + EWMA_RTTS * longer_ns }
    }
}

/// Sender of a flow.
#[derive(Debug, Clone)]
pub struct SwiftSource {
    transport: SwiftTransport,
    mss_bytes: u32,
    mtu_bytes: u32,
    top_bps: Option<f64>,
    subflows: IdVec<SubflowId, SwiftSubflow>,
}

#[derive(Debug, Clone, Copy)]
struct SwiftSubflow {
    /// d0, the base RTT, ns.
    d0_ns: Ns,
    dt_ns: f64,
    ewma_ns: f64,
    weight: f64,
    acks: u32,
    /// R, the average of rate samples, bit/s; `None` before the first.
    rate_bps: Option<f64>,
    window_packets: u64,
}

impl SwiftSource {
    fn pace<S: Scheme>(&self, io: &mut Io<S>, k: SubflowId) {
        let window = self.subflows[k].window_packets * u64::from(self.mss_bytes);
        io.pace(k, self.top_bps, Some(window));
    }

    /// Adds a rate sample of `bits` in `gap_ns`, and updates the window.
    #[inline]
    fn sample(&mut self, k: SubflowId, bits: f64, gap_ns: f64) {
        let s = &mut self.subflows[k];
        let sample = bits * 1e9 / gap_ns;
        let rate = match s.rate_bps {
            Some(rate) if gap_ns <= FORGET_NS as f64 => {
                let keep = libm::exp(-gap_ns / s.ewma_ns);
                keep * rate + (1.0 - keep) * sample
            }
            _ => sample,
        };
        s.rate_bps = Some(rate);
        let bytes = rate * (s.d0_ns as f64 + s.dt_ns) / 8e9;
        s.window_packets = (bytes / f64::from(self.mtu_bytes)).ceil().max(1.0) as u64;
    }
}

impl TransportSource<SwiftTransport> for SwiftSource {
    fn on_start<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>) {
        for k in self.subflows.ids() {
            self.pace(io, k);
        }
    }

    #[inline]
    fn wish<S: Scheme<Ctl: Carries<()>>>(&mut self, _io: &mut Io<S>, k: SubflowId, Weight(weight): Weight) {
        self.subflows[k].weight = weight;
    }

    #[inline]
    fn rate_bps(&self, k: SubflowId) -> Option<f64> {
        self.subflows[k].rate_bps
    }

    fn on_reroute<S: Scheme<Ctl: Carries<()>>>(&mut self, _io: &mut Io<S>, k: SubflowId, path: &PathInfo) {
        let s = &mut self.subflows[k];
        s.d0_ns = path.base_rtt_ns;
        s.dt_ns = self.transport.dt_ns(path.base_rtt_ns);
        s.ewma_ns = self.transport.ewma_ns(path.base_rtt_ns);
    }

    #[inline]
    fn header(&mut self, k: SubflowId, bytes: u32) -> SwiftHeader {
        SwiftHeader { virtual_len: f64::from(bytes) * 8.0 / self.subflows[k].weight, gap_ns: 0 }
    }

    #[inline]
    fn on_ack<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>, ack: &Ack<S::Data>, header: &SwiftHeader) {
        let k = ack.subflow;
        let before = self.subflows[k].window_packets;
        if header.gap_ns > 0 && ack.acked_bytes > 0 {
            let overhead = u64::from(self.mtu_bytes - self.mss_bytes);
            self.sample(k, ((ack.acked_bytes + overhead) * 8) as f64, f64::from(header.gap_ns));
        } else if self.subflows[k].acks == 0 {
            self.subflows[k].window_packets = before - 1; // The first acknowledgement releases nothing.
        }
        self.subflows[k].acks = self.subflows[k].acks.saturating_add(1);
        if self.subflows[k].window_packets != before {
            self.pace(io, ack.subflow);
        }
    }
}

/// Receiver: arrival time of the latest packet of each subflow.
#[derive(Debug, Clone)]
pub struct SwiftSink {
    last_ns: IdVec<SubflowId, Option<Ns>>,
}

impl TransportSink<SwiftTransport> for SwiftSink {
    #[inline]
    fn on_data<S: Scheme<Ctl: Carries<()>>>(
        &mut self,
        io: &mut Io<S>,
        packet: &Arrived<SwiftHeader>,
    ) -> Reply<SwiftHeader> {
        let last = self.last_ns[packet.subflow].replace(io.now_ns);
        let gap_ns = last.map_or(0, |last| (io.now_ns - last).clamp(1, u64::from(u32::MAX)) as u32);
        Reply::Ack(SwiftHeader { gap_ns, ..packet.header })
    }
}
