//! RCP: every link offers one rate to all its flows, and adjusts it by spare capacity and queue length.
//!
//! Dukkipati, Rate Control Protocol, Stanford 2007; the reactive baseline of the PERC thesis (sections 2.7, 4.3,
//! 5.1). Every interval T a link updates
//!
//! ```text
//! R <- R (1 + (T/d) (alpha (C - y) - beta Q/d) / C)
//! ```
//!
//! with y the arrival rate, Q the queue length, d the moving average of the RTTs that packets carry, and T the
//! smaller of d and `timeslot`. A packet carries the smallest R of its path; the sender's pacing rate is the R that
//! the ACK returns.
//!
//! A flow requests its first rate in a small packet of its own, which costs one RTT. The same packet is sent as a
//! probe whenever no rate was received for `probe`, so that a flow at a low rate learns of a higher one. The phases
//! of the links' intervals depend on the link's number; the authors' program draws them at random.

use crate::headers;
use crate::queue::Fifo;
use subak_core::keys::{AMOUNT, ValueType};
use subak_core::scheme::{
    Ack, Class, FlowInfo, Goal, Headers, Hop, Info, Io, Load, Loss, LossKind, Named, Packet, PacketKind, Param, Params,
    PathInfo, Port, Recovery, Rules, Scheme, SchemeKind, Settles, SimulationCost, Sink, Source, To, Visit,
};
use subak_core::{IdVec, InputError, LinkId, Ns, SubflowId};

/// Size of a request or probe on the wire, bytes.
const PROBE_BYTES: u32 = 64;
/// Minimum of the default time between two requests, ns.
const PROBE_NS: f64 = 100e3;

/// One offered rate per link, with the parameters of RCP.
#[derive(Debug, Clone, Copy)]
pub struct Rcp {
    alpha: f64,
    beta: f64,
    initial: f64,
    initial_rtt_ns: Ns,
    timeslot_ns: Ns,
    probe_ns: Ns,
    min_rate_bps: f64,
    rto_min_ns: Ns,
    headers: Headers,
}

/// RCP header of a packet.
#[derive(Debug, Clone, Copy, Default)]
pub struct RcpHeader {
    /// Smallest rate offered on the path so far, bit/s; 0 before the first link.
    pub rate_bps: f64,
    /// The flow's latest RTT, ns; 0 if unknown.
    pub rtt_ns: u32,
}

impl RcpHeader {
    fn offer(&mut self, rate_bps: f64) {
        self.rate_bps = if self.rate_bps > 0.0 { self.rate_bps.min(rate_bps) } else { rate_bps };
    }
}

/// A request for a rate.
#[derive(Debug, Clone, Copy)]
pub struct RcpRequest {
    header: RcpHeader,
    sent_ns: Ns,
}

/// Sender of a flow.
#[derive(Debug)]
pub struct RcpSource {
    scheme: Rcp,
    subflows: IdVec<SubflowId, RcpSubflow>,
    finished: bool,
}

#[derive(Debug, Clone, Copy)]
struct RcpSubflow {
    rtt_ns: u32,
    heard_ns: Ns,
    probe_ns: Ns,
}

/// Link: the rate that it offers, and the measurements by which it adjusts the rate.
#[derive(Debug, Clone)]
pub struct RcpHop {
    scheme: Rcp,
    capacity_bps: f64,
    rate_bps: f64,
    /// Moving average d of the RTTs that packets carry, ns.
    rtt_ns: f64,
    /// Interval T between two adjustments of the rate, ns.
    interval_ns: f64,
    arrived_bytes: u64,
    /// Bytes of packets that carry an RTT, since the last adjustment of the rate.
    told_bytes: f64,
    /// Sum of bytes times RTT of these packets, bytes times ns.
    told_byte_ns: f64,
}

impl Rcp {
    const PARAMS: &[Param] = &[
        Param::number("alpha", 0.4, AMOUNT, "gain of spare capacity"),
        Param::number("beta", 0.2, AMOUNT, "gain of the queue"),
        Param::number("initial", 0.5, AMOUNT, "initial rate of a link, as a fraction of its capacity"),
        Param::number("initial_rtt", 0.0, ValueType::Time, "initial average RTT; 0: the network's longest"),
        Param::number("timeslot", 10e-3, ValueType::Time, "longest interval between corrections"),
        Param::number(
            "request_timeout",
            0.0,
            ValueType::Time,
            "time without a rate after which a sender sends a request; 0: the path's base RTT, and at least 100 us",
        ),
        Param::number("min_rate", 1.2e6, ValueType::Rate, "minimum rate of a link"),
        Param::number("rto_min", 0.0, ValueType::Time, "minimum RTO; 0: the RTT when the buffers of the path are full"),
        Param::number("header", 8.0, ValueType::Bytes, "bytes of the rate and the RTT in each data packet"),
        Param::number("ack_header", 4.0, ValueType::Bytes, "bytes of the returned rate in each ACK"),
    ];
}

impl Named for Rcp {
    const INFO: Info = Info {
        name: "rcp",
        about: "RCP: one rate a link for all its flows, corrected by spare capacity and queue",
        paper: "Dukkipati, Stanford 2007; PERC thesis, sections 2.7 and 4.3",
        kind: SchemeKind::Reactive,
        lives_on_control: false,
        goal: Goal::EqualMaxMin,
        weights: false,
        params: Rcp::PARAMS,
        settles: Settles { within: 0.15, rtts: 300.0 },
        ..Info::DEFAULT
    };
}

impl Scheme for Rcp {
    type Data = RcpHeader;
    type Ctl = RcpRequest;
    type Queue = Fifo;
    type Source = RcpSource;
    type Hop = RcpHop;
    type Sink = RcpSink;

    /// Simulation cost, with one timer per sender that checks whether to send a request.
    fn work(&self, load: &Load) -> SimulationCost {
        let probe_s = if self.probe_ns > 0 { self.probe_ns as f64 * 1e-9 } else { load.rtt_s.max(PROBE_NS * 1e-9) };
        SimulationCost { timers: load.live * load.busy_s / probe_s, ..SimulationCost::per_hop(self.rules().per_hop) }
    }
    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(Rcp {
            alpha: params.within("alpha", 0.0, 2.0)?,
            beta: params.within("beta", 0.0, 2.0)?,
            initial: params.within("initial", 1e-6, 1.0)?,
            initial_rtt_ns: params.ns("initial_rtt"),
            timeslot_ns: params.ns("timeslot").max(1),
            probe_ns: params.ns("request_timeout"),
            min_rate_bps: params.within("min_rate", 1.0, 1e12)?,
            rto_min_ns: params.ns("rto_min"),
            headers: headers::read(params)?,
        })
    }
    fn rules(&self) -> Rules {
        let recovery = Recovery { rto_min_ns: self.rto_min_ns, ..Recovery::default() };
        Rules { recovery, headers: self.headers, per_hop: 1.45, ..Rules::default() }
    }
    fn queue(&self, port: &Port) -> Fifo {
        Fifo::new(port.buffer_bytes)
    }
    fn source(&self, flow: &FlowInfo) -> RcpSource {
        RcpSource {
            scheme: *self,
            subflows: flow
                .paths
                .iter()
                .map(|path| RcpSubflow { rtt_ns: 0, heard_ns: 0, probe_ns: self.probe_ns(path) })
                .collect(),
            finished: false,
        }
    }
    fn hop(&self, port: &Port) -> RcpHop {
        let rtt_ns = if self.initial_rtt_ns > 0 { self.initial_rtt_ns } else { port.rtt_ns }.max(1) as f64;
        RcpHop {
            scheme: *self,
            capacity_bps: port.capacity_bps,
            rate_bps: (self.initial * port.capacity_bps).max(self.min_rate_bps),
            rtt_ns,
            interval_ns: rtt_ns.min(self.timeslot_ns as f64),
            arrived_bytes: 0,
            told_bytes: 0.0,
            told_byte_ns: 0.0,
        }
    }
    fn sink(&self, _flow: &FlowInfo) -> RcpSink {
        RcpSink
    }
}

impl Rcp {
    fn probe_ns(&self, path: &PathInfo) -> Ns {
        (path.time_ns(self.probe_ns as f64, 1.0, PROBE_NS) as Ns).max(1000)
    }
}

impl RcpHop {
    /// Rate that the link offers at present, bit/s.
    pub fn rate_bps(&self) -> f64 {
        self.rate_bps
    }

    fn saw(&mut self, bytes: u32, header: &RcpHeader) {
        self.arrived_bytes += u64::from(bytes);
        if header.rtt_ns > 0 {
            self.told_bytes += f64::from(bytes);
            self.told_byte_ns += f64::from(bytes) * f64::from(header.rtt_ns);
        }
    }

    /// Adjusts the rate at the end of an interval.
    fn correct(&mut self, queued_bytes: u64) {
        let (interval, d) = (self.interval_ns, self.rtt_ns);
        let arrival_bps = self.arrived_bytes as f64 * 8e9 / interval;
        if self.told_bytes > 0.0 {
            let seen = self.told_byte_ns / self.told_bytes;
            // At a low rate few packets carry an RTT: a smaller average then has less weight.
            let gain =
                if seen >= d { interval / d } else { self.rate_bps / self.capacity_bps * seen / d * interval / d };
            self.rtt_ns += gain.clamp(0.0, 1.0) * (seen - d);
        }
        let Rcp { alpha, beta, min_rate_bps, timeslot_ns, .. } = self.scheme;
        let d = self.rtt_ns;
        let drain_bps = queued_bytes as f64 * 8e9 / d;
        let spare = alpha * (self.capacity_bps - arrival_bps) - beta * drain_bps;
        let factor = 1.0 + interval / d * spare / self.capacity_bps;
        self.rate_bps = (self.rate_bps * factor).clamp(min_rate_bps.min(self.capacity_bps), self.capacity_bps);
        self.interval_ns = d.min(timeslot_ns as f64).max(1.0);
        self.arrived_bytes = 0;
        self.told_bytes = 0.0;
        self.told_byte_ns = 0.0;
    }
}

impl Hop<Rcp> for RcpHop {
    fn on_start(&mut self, io: &mut Io<Rcp>) {
        io.timer(0, io.now_ns + self.interval_ns as Ns);
    }
    fn on_capacity(&mut self, port: &Port) {
        self.capacity_bps = port.capacity_bps;
        self.rate_bps = self.rate_bps.min(port.capacity_bps);
    }
    fn on_enqueue(&mut self, _io: &mut Io<Rcp>, packet: &mut Packet<Rcp>, _port: &Port) {
        self.saw(packet.bytes, &packet.data);
    }
    fn on_dequeue(&mut self, _io: &mut Io<Rcp>, packet: &mut Packet<Rcp>, _port: &Port) {
        if packet.kind == PacketKind::Data {
            packet.data.offer(self.rate_bps);
        }
    }
    fn on_ctl(&mut self, _io: &mut Io<Rcp>, request: &mut RcpRequest, visit: Visit, _port: &Port) {
        if visit.forward {
            self.saw(PROBE_BYTES, &request.header);
            request.header.offer(self.rate_bps);
        }
    }
    fn on_timer(&mut self, io: &mut Io<Rcp>, _timer: u32, port: &Port) {
        self.correct(port.queued_bytes);
        io.timer(0, io.now_ns + (self.interval_ns as Ns).max(1));
    }
}

impl RcpSource {
    fn request_rate(&mut self, io: &mut Io<Rcp>, k: SubflowId) {
        let header = RcpHeader { rate_bps: 0.0, rtt_ns: self.subflows[k].rtt_ns };
        io.ctl(To::Sink, k, RcpRequest { header, sent_ns: io.now_ns }, Class::Low, PROBE_BYTES);
    }

    fn heard(&mut self, io: &mut Io<Rcp>, k: SubflowId, header: RcpHeader, rtt_ns: Ns) {
        let s = &mut self.subflows[k];
        (s.rtt_ns, s.heard_ns) = (rtt_ns.min(Ns::from(u32::MAX)) as u32, io.now_ns);
        if header.rate_bps > 0.0 {
            io.pace(k, Some(header.rate_bps), None);
        }
    }
}

impl Source<Rcp> for RcpSource {
    fn on_start(&mut self, io: &mut Io<Rcp>) {
        for k in self.subflows.ids() {
            self.request_rate(io, k);
            io.timer(k.into(), io.now_ns + self.subflows[k].probe_ns);
        }
    }
    fn stamp(&mut self, _now_ns: Ns, packet: &mut Packet<Rcp>, _remaining_bytes: u64) {
        packet.data = RcpHeader { rate_bps: 0.0, rtt_ns: self.subflows[packet.subflow].rtt_ns };
    }
    fn on_ack(&mut self, io: &mut Io<Rcp>, ack: &Ack<RcpHeader>) {
        self.heard(io, ack.subflow, ack.data, ack.rtt_ns);
    }
    /// Stops sending data after an RTO without any reply, until a rate is received.
    fn on_loss(&mut self, io: &mut Io<Rcp>, loss: &Loss) {
        let RcpSubflow { heard_ns, probe_ns, .. } = self.subflows[loss.subflow];
        if loss.kind == LossKind::Timeout && heard_ns + probe_ns <= io.now_ns {
            io.pace(loss.subflow, Some(0.0), None);
            self.request_rate(io, loss.subflow);
        }
    }
    fn on_ctl(&mut self, io: &mut Io<Rcp>, k: SubflowId, request: RcpRequest) {
        self.heard(io, k, request.header, io.now_ns - request.sent_ns);
    }
    fn on_timer(&mut self, io: &mut Io<Rcp>, timer: u32) {
        if self.finished {
            return;
        }
        let k = SubflowId(timer as u8);
        let RcpSubflow { heard_ns, probe_ns, .. } = self.subflows[k];
        let mut due_ns = heard_ns + probe_ns;
        if due_ns <= io.now_ns {
            self.request_rate(io, k);
            due_ns = io.now_ns + probe_ns;
        }
        io.timer(timer, due_ns);
    }
    fn on_reroute(&mut self, _io: &mut Io<Rcp>, k: SubflowId, path: &PathInfo, _links: &[LinkId]) {
        self.subflows[k].probe_ns = self.scheme.probe_ns(path);
    }
    fn on_finish(&mut self, _io: &mut Io<Rcp>) {
        self.finished = true;
    }
}

/// Receiver: returns rates. Links on the reverse path are not measured, so ACKs carry no RTT.
#[derive(Debug, Clone, Copy)]
pub struct RcpSink;

impl Sink<Rcp> for RcpSink {
    fn on_data(&mut self, _io: &mut Io<Rcp>, packet: &Packet<Rcp>) -> subak_core::scheme::Reply<RcpHeader> {
        subak_core::scheme::Reply::Ack(RcpHeader { rtt_ns: 0, ..packet.data })
    }
    fn on_ctl(&mut self, io: &mut Io<Rcp>, k: SubflowId, request: RcpRequest, bytes: u32) {
        io.ctl(To::Source, k, request, Class::Low, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop() -> RcpHop {
        let params = Params::resolve(&Rcp::INFO, &serde_json::Map::new()).unwrap();
        let port = Port {
            link: LinkId(0),
            capacity_bps: 10e9,
            delay_ns: 1000,
            buffer_bytes: 150_000,
            mtu_bytes: 1500,
            rtt_ns: 12_000,
            ..Port::example(LinkId(0), 1.0)
        };
        Rcp::new(&params).unwrap().hop(&port)
    }

    #[test]
    fn the_rate_follows_the_equation() {
        let mut hop = hop();
        assert_eq!(hop.rate_bps(), 5e9);
        // Half the capacity arrives, and the queue is empty: R (1 + 0.4 * 0.5).
        hop.saw(7500, &RcpHeader { rate_bps: 0.0, rtt_ns: 12_000 });
        hop.correct(0);
        assert!((hop.rate_bps() - 6e9).abs() < 1.0, "{}", hop.rate_bps());
        // All of the capacity arrives, and the queue is one BDP: R (1 - 0.2).
        hop.saw(15_000, &RcpHeader { rate_bps: 0.0, rtt_ns: 12_000 });
        hop.correct(15_000);
        assert!((hop.rate_bps() - 4.8e9).abs() < 1.0, "{}", hop.rate_bps());
    }

    #[test]
    fn the_rate_stays_between_floor_and_capacity() {
        let mut hop = hop();
        for _ in 0..100 {
            hop.correct(0);
        }
        assert_eq!(hop.rate_bps(), 10e9);
        for _ in 0..200 {
            hop.saw(15_000, &RcpHeader::default());
            hop.correct(150_000);
        }
        assert_eq!(hop.rate_bps(), 1.2e6);
    }

    #[test]
    fn the_average_round_trip_rises_faster_than_it_falls() {
        let mut hop = hop();
        let tell = |hop: &mut RcpHop, rtt_ns| {
            hop.saw(1500, &RcpHeader { rate_bps: 0.0, rtt_ns });
            hop.correct(0);
        };
        tell(&mut hop, 24_000);
        assert_eq!(hop.rtt_ns, 24_000.0);
        tell(&mut hop, 12_000);
        assert!(hop.rtt_ns > 12_000.0 && hop.rtt_ns < 24_000.0, "{}", hop.rtt_ns);
    }

    #[test]
    fn a_packet_leaves_with_the_least_rate() {
        let mut header = RcpHeader::default();
        header.offer(4e9);
        header.offer(7e9);
        header.offer(3e9);
        assert_eq!(header.rate_bps, 3e9);
    }
}
