//! DCQCN: switches mark as RED does, receivers answer ECN marks with CNPs, senders reduce and raise their rates.
//!
//! Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015, section 3. A receiver of a marked
//! packet sends a congestion notification packet (CNP), at most one per flow in each interval `cnp`. For each CNP the
//! sender updates (equation 1)
//!
//! ```text
//! R_T = R_C,   R_C = R_C (1 - alpha / 2),   alpha = (1 - g) alpha + g
//! ```
//!
//! and alpha = (1 - g) alpha after each `alpha_timer` without a CNP (equation 2). A timer and a byte counter, both
//! restarted by a cut, raise the rate R_C when they expire: each time R_C = (R_T + R_C) / 2. The first five expiries
//! leave the target R_T unchanged (fast recovery). Later ones first raise R_T by `ai` (additive increase), or by `hai`
//! once both have expired more than five times (hyper increase).
//!
//! There is no window. A flow starts at line rate. Alpha is computed on demand, without a timer.
//!
//! HPCC's released simulator has another DCQCN, modelled on a vendor's NIC. Packets are marked at departure, and each
//! ACK of a marked packet counts as a CNP. Alpha is updated once per interval, and cuts are aligned to intervals that
//! begin with the first CNP. Each of these is a parameter; the preset `hpcc-simulator` sets all of them.

mod rate;

use crate::lossless::{self, Rdma};
use crate::queue::Priority;
use crate::red::{Red, RedMarker};
use rate::DcqcnSubflow;
use subak_core::keys::{AMOUNT, ParamValue, ValueType};
use subak_core::scheme::{
    Ack, Around, Class, Doubt, FlowInfo, Goal, Hop, Info, Io, Marks, Named, Packet, PacketKind, Param, Params,
    PathInfo, Port, Preset, Reply, Rules, Scheme, SchemeKind, Settles, SharesLinks, Sink, Source, To,
};
use subak_core::{IdVec, InputError, LinkId, Ns, SubflowId};

/// Values of run.py in HPCC's released simulator; rates are fractions of its line rate, 100 Gb/s.
const PRESETS: &[Preset] = &[(
    "hpcc-simulator",
    &[
        ("mark", ParamValue::Word("departure")),
        ("notify", ParamValue::Word("acks")),
        ("alpha_update", ParamValue::Word("interval")),
        ("alpha_timer", ParamValue::Number(1e-6)),
        ("cut_interval", ParamValue::Number(4e-6)),
        ("timer", ParamValue::Number(300e-6)),
        ("counter", ParamValue::Number(0.0)),
        ("clamp", ParamValue::Flag(false)),
        ("fast", ParamValue::Number(1.0)),
        ("ai", ParamValue::Number(0.0002)),
        ("hai", ParamValue::Number(0.002)),
        ("min_rate", ParamValue::Number(0.01)),
        ("k_min", ParamValue::Number(160e3)),
        ("k_max", ParamValue::Number(640e3)),
        ("p_max", ParamValue::Number(0.2)),
        ("ack_priority", ParamValue::Word("first-at-nic")),
        ("pfc_reserve", ParamValue::Number(4096.0)),
        ("clock", ParamValue::Word("whole-ns")),
        ("new_rate", ParamValue::Word("next-packet")),
        ("nic_timer", ParamValue::Word("one")),
    ],
)];
/// Size of a CNP on the wire, bytes.
const CNP_BYTES: u32 = 64;
/// Link rate for which the marking thresholds are specified, bit/s.
const REFERENCE_BPS: f64 = 40e9;

/// Rate control by CNPs, with the parameters of DCQCN.
#[derive(Debug, Clone, Copy)]
pub struct Dcqcn {
    red: Red,
    marks_on_leaving: bool,
    /// Whether ACKs serve as CNPs.
    by_acks: bool,
    cnp_ns: Ns,
    g: f64,
    alpha_ns: Ns,
    /// Whether alpha is updated once per interval, with or without CNPs.
    alpha_by_interval: bool,
    cut_ns: Ns,
    timer_ns: Ns,
    counter_bytes: u64,
    clamp: bool,
    fast: u32,
    ai: f64,
    hai: f64,
    min_rate: f64,
    rdma: Rdma,
}

/// A congestion notification packet (CNP), sent by a receiver for ECN-marked data.
#[derive(Debug, Clone, Copy)]
pub struct Notification;

/// Sender of a flow.
#[derive(Debug)]
pub struct DcqcnSource {
    scheme: Dcqcn,
    subflows: IdVec<SubflowId, DcqcnSubflow>,
    finished: bool,
}

/// Hop that sets ECN marks.
#[derive(Debug)]
pub struct DcqcnHop {
    marker: RedMarker,
    on_leaving: bool,
}

/// Receiver, with the time of each subflow's latest CNP.
#[derive(Debug)]
pub struct DcqcnSink {
    by_acks: bool,
    cnp_ns: Ns,
    last_ns: IdVec<SubflowId, Option<Ns>>,
}

impl Named for Dcqcn {
    const INFO: Info = Info {
        name: "dcqcn",
        about: "DCQCN: RED marks, notifications by the receiver, rates cut and raised as in QCN",
        paper: "Zhu et al., SIGCOMM 2015",
        kind: SchemeKind::Reactive,
        lives_on_control: false,
        goal: Goal::Own,
        weights: false,
        params: lossless::params![
            Param::choice("preset", &["paper", "hpcc-simulator"], "whose DCQCN: defaults of the others")
                .presetting(PRESETS),
            Param::choice(
                "mark",
                &["arrival", "departure"],
                "time at which the queue length marks a packet: at its arrival, or at its departure"
            ),
            Param::choice("notify", &["cnp", "acks"], "feedback of ECN marks to the sender: CNPs, or every ACK"),
            Param::choice(
                "alpha_update",
                &["notification", "interval"],
                "alpha grows with each CNP, or with each interval of alpha_timer with a CNP",
            ),
            Param::number(
                "cut_interval",
                0.0,
                ValueType::Time,
                "minimum time between cuts, and from the first CNP to the first cut; 0: a cut with each CNP",
            ),
            Param::number(
                "k_min",
                5_000.0,
                ValueType::Bytes,
                "queue length at which marking begins, at 40 Gb/s; scales with the link"
            ),
            Param::number(
                "k_max",
                200_000.0,
                ValueType::Bytes,
                "queue length from which all packets are marked, at 40 Gb/s; scales with the link"
            ),
            Param::number("p_max", 0.01, AMOUNT, "marking probability just below k_max"),
            Param::number("cnp", 50e-6, ValueType::Time, "minimum time between two CNPs of a flow")
                .only("notify", &["cnp"]),
            Param::number("g", 1.0 / 256.0, AMOUNT, "gain of alpha"),
            Param::number("alpha_timer", 55e-6, ValueType::Time, "time without a CNP after which alpha falls"),
            Param::number("timer", 55e-6, ValueType::Time, "interval of the rate's increases"),
            Param::number(
                "counter",
                10e6,
                ValueType::Bytes,
                "ACKed payload after which the rate also increases; 0: by the timer alone"
            ),
            Param::flag("clamp", true, "every cut lowers the target rate; else only the first after the timer expired"),
            Param::number("fast", 5.0, AMOUNT, "steps of fast recovery"),
            Param::number("ai", 0.001, AMOUNT, "additive increase, as a share of the line rate"),
            Param::number("hai", 0.005, AMOUNT, "hyper increase, as a share of the line rate"),
            Param::number("min_rate", 0.001, AMOUNT, "minimum rate, as a fraction of the line rate"),
        ],
        settles: Settles::NEVER,
        shares_links: SharesLinks::Yes,
        ..Info::DEFAULT
    };
}

impl Scheme for Dcqcn {
    type Data = ();
    type Ctl = Notification;
    type Queue = Priority;
    type Source = DcqcnSource;
    type Hop = DcqcnHop;
    type Sink = DcqcnSink;

    fn new(params: &Params) -> Result<Self, InputError> {
        let red = Red {
            low_bytes: params.within("k_min", 0.0, 1e12)?,
            high_bytes: params.within("k_max", 1.0, 1e12)?,
            most: params.within("p_max", 0.0, 1.0)?,
        };
        if red.low_bytes > red.high_bytes {
            return Err(InputError::new("params.k_min", "k_min is above k_max", "give a k_min of at most k_max"));
        }
        Ok(Dcqcn {
            red,
            marks_on_leaving: params.word("mark") == "departure",
            by_acks: params.word("notify") == "acks",
            alpha_by_interval: params.word("alpha_update") == "interval",
            cut_ns: params.ns("cut_interval"),
            cnp_ns: params.ns("cnp"),
            g: params.within("g", 1e-9, 1.0)?,
            alpha_ns: params.ns("alpha_timer").max(1),
            timer_ns: params.ns("timer").max(100),
            counter_bytes: params.number("counter") as u64,
            clamp: params.flag("clamp"),
            fast: params.whole("fast", 0.0, 1e6)? as u32,
            ai: params.within("ai", 0.0, 1.0)?,
            hai: params.within("hai", 0.0, 1.0)?,
            min_rate: params.within("min_rate", 1e-9, 1.0)?,
            rdma: Rdma::new(params)?,
        })
    }
    fn rules(&self) -> Rules {
        Rules { per_hop: 1.25, ..self.rdma.rules() }
    }
    fn marks(&self, port: &Port) -> Option<Marks> {
        let Red { low_bytes, high_bytes, most } = self.red_at(port);
        let bytes = |length: f64| length.ceil() as u64;
        Some(Marks { param: "k_min".to_string(), low_bytes: bytes(low_bytes), high_bytes: bytes(high_bytes), most })
    }
    fn queue(&self, port: &Port) -> Priority {
        self.rdma.queue(port)
    }
    /// Warns of port buffers that overflow before packets are marked. Under PFC there is no such warning, because the
    /// ports of a switch share its buffer.
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        let dropped_first = || Doubt::of_marking(around, "k_min", |port| self.red_at(port).low_bytes.ceil() as u64);
        if self.rdma.pfc.is_some() { Vec::new() } else { dropped_first().into_iter().collect() }
    }
    fn source(&self, flow: &FlowInfo) -> DcqcnSource {
        DcqcnSource {
            scheme: *self,
            subflows: flow.paths.iter().map(|path| DcqcnSubflow::new(path.line_rate_bps)).collect(),
            finished: false,
        }
    }
    fn hop(&self, port: &Port) -> DcqcnHop {
        DcqcnHop { marker: RedMarker::new(self.red_at(port), port.seed), on_leaving: self.marks_on_leaving }
    }
    fn sink(&self, flow: &FlowInfo) -> DcqcnSink {
        DcqcnSink { by_acks: self.by_acks, cnp_ns: self.cnp_ns, last_ns: IdVec::filled(None, flow.paths.len()) }
    }
}

impl Dcqcn {
    /// The thresholds at `port`, which scale with its capacity.
    fn red_at(&self, port: &Port) -> Red {
        let scale = port.capacity_bps / REFERENCE_BPS;
        let Red { low_bytes, high_bytes, most } = self.red;
        Red { low_bytes: low_bytes * scale, high_bytes: high_bytes * scale, most }
    }
}

impl DcqcnHop {
    #[inline]
    fn mark(&mut self, packet: &mut Packet<Dcqcn>, port: &Port) {
        // NICs serve flows round robin: a queue at the first link is no congestion.
        if packet.kind == PacketKind::Data && packet.hop > 0 {
            packet.ecn |= self.marker.marks(port.queued_bytes);
        }
    }
}

impl Hop<Dcqcn> for DcqcnHop {
    fn has_state(&self) -> bool {
        false
    }
    #[inline]
    fn on_enqueue(&mut self, _io: &mut Io<Dcqcn>, packet: &mut Packet<Dcqcn>, port: &Port) {
        if !self.on_leaving {
            self.mark(packet, port);
        }
    }
    #[inline]
    fn on_dequeue(&mut self, _io: &mut Io<Dcqcn>, packet: &mut Packet<Dcqcn>, port: &Port) {
        if self.on_leaving {
            self.mark(packet, port);
        }
    }
}

impl Sink<Dcqcn> for DcqcnSink {
    fn on_data(&mut self, io: &mut Io<Dcqcn>, packet: &Packet<Dcqcn>) -> Reply<()> {
        let last_ns = &mut self.last_ns[packet.subflow];
        if packet.ecn && !self.by_acks && last_ns.is_none_or(|at_ns| io.now_ns >= at_ns + self.cnp_ns) {
            *last_ns = Some(io.now_ns);
            io.ctl(To::Source, packet.subflow, Notification, Class::Control, CNP_BYTES);
        }
        Reply::Ack(())
    }
}

impl DcqcnSource {
    fn notified(&mut self, io: &mut Io<Dcqcn>, subflow: SubflowId) {
        match self.subflows[subflow].notify(&self.scheme, io.now_ns) {
            Some(due_ns) if due_ns <= io.now_ns => self.cut(io, subflow),
            Some(due_ns) => io.timer(2 * u32::from(subflow) + 1, due_ns),
            None => {}
        }
    }

    fn cut(&mut self, io: &mut Io<Dcqcn>, subflow: SubflowId) {
        let s = &mut self.subflows[subflow];
        s.cut(&self.scheme, io.now_ns);
        io.pace(subflow, Some(s.rate_bps), None);
        if !std::mem::replace(&mut s.has_timer, true) {
            io.timer(2 * u32::from(subflow), s.due_ns);
        }
    }
}

impl Source<Dcqcn> for DcqcnSource {
    fn on_start(&mut self, io: &mut Io<Dcqcn>) {
        for (k, s) in self.subflows.iter_enumerated() {
            io.pace(k, Some(s.rate_bps), None);
        }
    }
    fn on_ctl(&mut self, io: &mut Io<Dcqcn>, subflow: SubflowId, _cnp: Notification) {
        self.notified(io, subflow);
    }
    fn on_ack(&mut self, io: &mut Io<Dcqcn>, ack: &Ack<()>) {
        let s = &mut self.subflows[ack.subflow];
        s.bytes += ack.acked_bytes;
        if self.scheme.counter_bytes > 0 && s.bytes >= self.scheme.counter_bytes && !s.is_at_line_rate() {
            s.bytes %= self.scheme.counter_bytes;
            s.raise(&self.scheme);
            s.counted += 1;
            io.pace(ack.subflow, Some(s.rate_bps), None);
        }
        if self.scheme.by_acks && ack.ecn {
            self.notified(io, ack.subflow);
        }
    }
    fn on_timer(&mut self, io: &mut Io<Dcqcn>, timer: u32) {
        let (subflow, cuts) = (SubflowId((timer / 2) as u8), timer % 2 == 1);
        if self.finished {
            return;
        }
        if cuts {
            return self.cut(io, subflow);
        }
        let s = &mut self.subflows[subflow];
        if s.is_at_line_rate() {
            s.has_timer = false;
            return;
        }
        if s.due_ns <= io.now_ns {
            s.due_ns = io.now_ns + self.scheme.timer_ns;
            s.raise(&self.scheme);
            s.timed += 1;
            io.pace(subflow, Some(s.rate_bps), None);
        }
        io.timer(timer, s.due_ns);
    }
    fn on_reroute(&mut self, io: &mut Io<Dcqcn>, subflow: SubflowId, path: &PathInfo, _links: &[LinkId]) {
        let s = &mut self.subflows[subflow];
        let (has_timer, cuts) = (s.has_timer, s.cuts);
        *s = DcqcnSubflow { has_timer, cuts, ..DcqcnSubflow::new(path.line_rate_bps) };
        io.pace(subflow, Some(s.rate_bps), None);
    }
    fn on_finish(&mut self, _io: &mut Io<Dcqcn>) {
        self.finished = true;
    }
}

#[cfg(test)]
mod tests;
