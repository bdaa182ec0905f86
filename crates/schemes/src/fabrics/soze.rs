//! Soze: senders bring their rate-per-weight to the one that the largest queueing delay of the path stands for.
//!
//! Wang and Ng, Soze: One Network Telemetry Is All You Need for Per-flow Weighted Bandwidth Allocation at Scale, section 3.
//! A hop smooths what its packets waited, and keeps the largest such delay in two bytes of the header. The receiver returns
//! it. The sender multiplies its rate by U = (T^-1(D) / (r / w))^m (equations 6 and 7), scaled so that the updates of a round
//! trip make one with m.

use crate::over::{Fabric, FabricHop, Optimizer, Part, Passing, Weight};
use crate::queue::Fifo;
use crate::soze::{Control, Law, MaxDelay, Often, Sender, Unit};
use subak_core::scheme::{Carries, FlowInfo, Goal, Io, PacketKind, Param, ParamUnit, Params, Port, Scheme, Settles};
use subak_core::{Fault, Ns};

/// What a hop takes for its signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    /// What the packet waited.
    Wait,
    /// What waits, over the link's rate, when the packet leaves.
    Backlog,
    /// What leaves over what could, of k + p.
    Utilization,
}

/// The fabric.
#[derive(Debug, Clone, Copy)]
pub struct Soze {
    law: Law,
    signal: Signal,
    filter_ns: f64,
}

const PARAMS: &[Param] = &[
    Param::number("p", 20e-6, ParamUnit::Seconds, "scale of queueing delays: that of beta less that of alpha"),
    Param::number("k", 3e-6, ParamUnit::Seconds, "queueing delay of a link that a flow has for itself"),
    Param::number("m", 0.25, ParamUnit::One, "exponent of an update: above 0 and below 2"),
    Param::number("smallest_weight", 1.0, ParamUnit::One, "alpha is the line rate over this weight"),
    Param::number("unit_flows", 1000.0, ParamUnit::One, "beta is alpha over this number of flows of that weight"),
    Param::number("filter", 10e-6, ParamUnit::Seconds, "time constant of the hop's filter over its signal; 0: none"),
    Param::choice(
        "signal",
        &["wait", "backlog", "utilization"],
        "what a hop tells: what the packet waited, what waits over the rate, or what it sends over what it could",
    ),
    Param::choice("update", &["packet", "rtt"], "the rate changes at each acknowledgement, or once a round trip"),
    Param::choice(
        "sender",
        &["published", "exact"],
        "exact: time counts in idle round trips, delays end at k + p, and the least rate is half of what beta gives",
    ),
    Param::choice("control", &["rate", "window"], "a rate paces packets, or makes a window of it and the round trip"),
    Param::number("dt", 1e-6, ParamUnit::Seconds, "longest time between updates for which p is checked (lemma 3.2)"),
    Param::number("start_weights", 10.0, ParamUnit::One, "a flow starts with its weight over this of the line rate"),
];

impl Fabric for Soze {
    const PART: Part = Part {
        name: "soze",
        about: "rates from the largest queueing delay of the path, which stands for a rate-per-weight (Soze)",
        paper: "Wang and Ng, Soze, section 3",
        params: PARAMS,
        goal: Goal::Own,
        settles: Settles::NEVER,
    };
    type Wish = Weight;
    type Header = MaxDelay;
    type Ctl = ();
    type Queue<O: Optimizer<Wish = Weight>> = Fifo;
    type Source = Sender;
    type Hop = Telemetry;
    type Sink = ();

    fn new(params: &Params) -> Result<Self, Fault> {
        let law = Law {
            smallest_weight: params.within("smallest_weight", 1e-6, 1e6)?,
            unit_flows: params.within("unit_flows", 2.0, 1e9)?,
            p_ns: params.within("p", 1e-9, 1.0)? * 1e9,
            integral_rtts: 0.0,
            k_ns: params.within("k", 0.0, 1.0)? * 1e9,
            m: exponent(params)?,
            control: if params.word("control") == "rate" { Control::Rate } else { Control::Window },
            often: if params.word("update") == "packet" { Often::Packet } else { Often::Rtt },
            start_weights: params.within("start_weights", 1e-3, 1e9)?,
            exact: params.word("sender") == "exact",
        };
        scale(&law, params.within("dt", 0.0, 1.0)? * 1e9)?;
        let signal = match params.word("signal") {
            "wait" => Signal::Wait,
            "backlog" => Signal::Backlog,
            _ => Signal::Utilization,
        };
        Ok(Soze { law, signal, filter_ns: params.within("filter", 0.0, 1.0)? * 1e9 })
    }
    fn queue<O: Optimizer<Wish = Weight>>(&self, port: &Port) -> Fifo {
        Fifo::new(port.buffer_bytes)
    }
    fn source(&self, flow: &FlowInfo) -> Sender {
        Sender::new(self.law, flow)
    }
    fn hop(&self, port: &Port) -> Telemetry {
        Telemetry {
            signal: self.signal,
            filter_ns: self.filter_ns,
            unit: self.law.unit(port.rtt_ns),
            full_ns: self.law.k_ns + self.law.p_ns(port.rtt_ns),
            smoothed: 0.0,
            at_ns: 0,
        }
    }
    fn sink(&self, _flow: &FlowInfo) {}
}

/// m, between the bounds of lemma 3.1.
pub(crate) fn exponent(params: &Params) -> Result<f64, Fault> {
    let m = params.number("m");
    if m > 0.0 && m < 2.0 {
        return Ok(m);
    }
    let why = "rates-per-weight come together only for 0 < m < 2 (Soze, lemma 3.1): the paper has 0.25";
    Err(Fault::new("params.m", format!("m is {m}"), format!("give a value above 0 and below 2; {why}")))
}

/// Refuses a p below the bound of lemma 3.2.
fn scale(law: &Law, dt_ns: f64) -> Result<(), Fault> {
    let least_ns = 0.5 * dt_ns * libm::log(law.unit_flows);
    if law.p_ns > least_ns {
        return Ok(());
    }
    let what = format!("p is {} us, and updates may be {} us apart", law.p_ns / 1e3, dt_ns / 1e3);
    let why = "delays settle only for p > dt / 2 ln(alpha / beta) (Soze, lemma 3.2)";
    Err(Fault::new("params.p", what, format!("give more than {:.3} us, or a smaller dt; {why}", least_ns / 1e3)))
}

/// The link's side: the smoothed signal.
#[derive(Debug, Clone)]
pub struct Telemetry {
    signal: Signal,
    filter_ns: f64,
    unit: Unit,
    /// k + p: what a full link tells where the signal is its utilization, ns.
    full_ns: f64,
    /// ns.
    smoothed: f64,
    at_ns: Ns,
}

impl Telemetry {
    /// What the link tells when a packet of `bytes` that waited `wait_ns` leaves, ns.
    #[inline]
    fn tell(&mut self, now_ns: Ns, bytes: u32, wait_ns: Ns, port: &Port) -> f64 {
        let ns_per_byte = 8e9 / port.capacity_bps;
        let passed_ns = (now_ns - std::mem::replace(&mut self.at_ns, now_ns)) as f64;
        let keep = if self.filter_ns > 0.0 { libm::exp(-passed_ns / self.filter_ns) } else { 0.0 };
        if self.signal == Signal::Utilization {
            // Each packet's time on the link, spread over the filter's time.
            let sent = f64::from(bytes) * ns_per_byte / self.filter_ns.max(1.0);
            self.smoothed = keep * self.smoothed + sent * self.full_ns;
            return self.smoothed;
        }
        let now = match self.signal {
            Signal::Wait => wait_ns as f64,
            _ => port.queued_bytes as f64 * ns_per_byte,
        };
        self.smoothed = keep * self.smoothed + (1.0 - keep) * now;
        self.smoothed
    }
}

impl FabricHop<Soze> for Telemetry {
    #[inline]
    fn on_dequeue<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>, packet: Passing<MaxDelay>, port: &Port) {
        let delay_ns = self.tell(io.now_ns, packet.bytes, packet.wait_ns, port);
        if packet.kind == PacketKind::Data {
            *packet.header = (*packet.header).max(self.unit.put(delay_ns));
        }
    }
}
