//! Soze: a sender's rate/weight converges to the value that the largest queueing delay of its path stands for.
//!
//! Wang and Ng, Soze: One Network Telemetry Is All You Need for Per-flow Weighted Bandwidth Allocation at Scale, section 3.
//! A hop smooths the queueing delays of its packets, and writes the delay into two bytes of the header if it is the largest
//! so far. The receiver returns it. The sender multiplies its rate by U = (T^-1(D) / (r / w))^m (equations 6 and 7). An
//! update is scaled to the time since the previous one, so that all updates of an RTT have the effect of one.

use crate::over::{Optimizer, Part, Passing, Transport, TransportHop, Weight};
use crate::queue::Fifo;
use crate::soze::{Filter, Floor, Leaving, MaxDelay, Often, SenderState, Signal, SozeArithmetic, SozeLaw, SozeSender};
use subak_core::InputError;
use subak_core::keys::{AMOUNT, ValueType};
use subak_core::scheme::{
    Around, Carries, Doubt, FlowInfo, Follows, Goal, Headers, Io, PacketKind, Param, Params, Port, Rules, Scheme,
    Settles,
};

/// The transport soze: rates from the path's largest queueing delay.
#[derive(Debug, Clone, Copy)]
pub struct Soze {
    law: SozeLaw,
    signal: Signal,
    filter_ns: f64,
    header_bytes: u32,
}

impl Soze {
    /// Parameters of senders, the signal of links, and the time constant of the links' filter, ns.
    pub(crate) fn parts(&self) -> (SozeLaw, Signal, f64) {
        (self.law, self.signal, self.filter_ns)
    }
}

/// Parameter `header`: size of the Soze header, bytes.
pub(crate) const HEADER: Param = Param::number(
    "header",
    2.0,
    ValueType::Bytes,
    "bytes of the delay in each data packet and ACK; 4 as an option of TCP",
);
pub(crate) const ALPHA: Param = Param::number(
    "alpha_rate",
    0.0,
    ValueType::RateOrZero,
    "largest rate-per-weight of the network (alpha); 0: its largest line rate over smallest_weight",
);
pub(crate) const SMALLEST_WEIGHT: Param =
    Param::number("smallest_weight", 1.0, AMOUNT, "alpha is the largest line rate of the network over this weight")
        .following(Follows::SmallestWeight);
pub(crate) const ARITHMETIC: Param = Param::choice(
    "arithmetic",
    &["float", "fixed"],
    "senders and filters count in floating point, or in integers as kernels and switches do",
);

/// p of the Soze paper's simulations, whose base RTTs are about 16 us; ns.
const PAPERS_P_NS: f64 = 20_000.0;
/// Upper bound of ln(alpha / beta) times the base RTT over the default p. A sender with a window is stable below 7.9 at
/// m = 0.25 (`docs/transports/soze.md`); the Soze paper has 5.5.
const MOST_GAIN: f64 = 6.0;

const PARAMS: &[Param] = &[
    Param::number(
        "p",
        0.0,
        ValueType::Time,
        "scale of queueing delays: that of beta less that of alpha; 0: 20 us, or ln(alpha / beta) / 6 base RTTs if longer",
    ),
    Param::number("k", 3e-6, ValueType::Time, "queueing delay of a link that a flow has for itself"),
    Param::number("m", 0.25, AMOUNT, "exponent of an update: above 0 and below 2"),
    ALPHA,
    Param::number(
        "beta_rate",
        0.0,
        ValueType::RateOrZero,
        "smallest rate-per-weight expected (beta), where alpha_rate is given; 0: alpha over unit_flows",
    ),
    SMALLEST_WEIGHT,
    Param::number("unit_flows", 1000.0, AMOUNT, "beta is alpha over this number of flows of that weight")
        .following(Follows::SmallestFlows),
    Param::number("filter", 0.0, ValueType::Time, "time constant of the hop's filter over its signal; 0: none"),
    Param::choice(
        "signal",
        &["backlog", "wait", "utilization"],
        "telemetry of a hop: queue length over its rate, queueing delay of the packet, or utilization",
    ),
    Param::choice(
        "update",
        &["packet", "whole", "rtt"],
        "rate update: at each ACK by its share of an RTT, at each ACK by all of U, or once an RTT",
    ),
    Param::choice(
        "sender",
        &["published", "exact"],
        "exact: time counts in base RTTs, delays end at k + p, and a new weight changes the rate at once",
    ),
    Param::choice(
        "least_rate",
        &["packet", "beta"],
        "minimum rate: a packet an RTT, or half of the flow's rate at beta",
    ),
    Param::choice(
        "state",
        &["window", "rate", "window-of-rate"],
        "state variable: a window (rate: window over RTT), a rate that paces packets, or a rate that determines a window",
    ),
    Param::number("dt", 1e-6, ValueType::Time, "longest time between updates for which p is checked (lemma 3.2)"),
    Param::number("start_weights", 10.0, AMOUNT, "a flow starts with its weight over this of alpha's line"),
    ARITHMETIC,
    HEADER,
];

impl Transport for Soze {
    const PART: Part = Part {
        name: "soze",
        about: "rates from the largest queueing delay of the path, which stands for a rate-per-weight (Soze)",
        paper: "Wang and Ng, Soze, section 3",
        params: PARAMS,
        // Rates are weighted max-min only while each flow has some packets per RTT, since a window is at least one
        // packet.
        goal: Goal::Own,
        settles: Settles::NEVER,
    };
    type Wish = Weight;
    type Header = MaxDelay;
    type Ctl = ();
    type Queue<O: Optimizer<Wish = Weight>> = Fifo;
    type Source = SozeSender;
    type Hop = SozeTelemetry;
    type Sink = ();

    fn new(params: &Params) -> Result<Self, InputError> {
        let law = SozeLaw {
            alpha_bps: params.within("alpha_rate", 0.0, 1e15)?,
            beta_bps: params.within("beta_rate", 0.0, 1e15)?,
            smallest_weight: params.within("smallest_weight", 1e-6, 1e6)?,
            unit_flows: params.within("unit_flows", 2.0, 1e9)?,
            p_ns: params.within("p", 0.0, 1.0)? * 1e9,
            least_p_ns: PAPERS_P_NS,
            integral_rtts: 1.0 / MOST_GAIN,
            k_ns: params.within("k", 0.0, 1.0)? * 1e9,
            m: exponent(params)?,
            state: match params.word("state") {
                "rate" => SenderState::Rate,
                "window" => SenderState::Window,
                _ => SenderState::WindowOfRate,
            },
            often: match params.word("update") {
                "packet" => Often::Packet,
                "whole" => Often::Whole,
                _ => Often::Rtt,
            },
            floor: if params.word("least_rate") == "packet" { Floor::Packet } else { Floor::Beta },
            start_weights: params.within("start_weights", 1e-3, 1e9)?,
            exact: params.word("sender") == "exact",
            arithmetic: arithmetic(params),
        };
        range(&law)?;
        scale(&law, params.within("dt", 0.0, 1.0)? * 1e9)?;
        let signal = match params.word("signal") {
            "wait" => Signal::Wait,
            "backlog" => Signal::Backlog,
            _ => Signal::Utilization,
        };
        let filter_ns = params.within("filter", 0.0, 1.0)? * 1e9;
        if signal == Signal::Utilization && filter_ns == 0.0 {
            let what = "filter is 0, and signal is \"utilization\", which is that of some time";
            return Err(InputError::new("params.filter", what, "give a time, such as \"10us\""));
        }
        Ok(Soze { law, signal, filter_ns, header_bytes: header_bytes(params)? })
    }
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        let is_bound = self.law.state != SenderState::Rate || self.law.floor == Floor::Packet;
        let doubt = Doubt::of_window(around, 0.0, 1.0, "each flow sends a packet in an RTT, and weights are lost");
        doubt.filter(|_| is_bound).into_iter().collect()
    }
    fn rules(&self) -> Rules {
        let headers = Headers { data_bytes: self.header_bytes, ack_bytes: self.header_bytes };
        Rules { headers, per_hop: 1.7, ..Rules::default() }
    }
    fn queue<O: Optimizer<Wish = Weight>>(&self, port: &Port) -> Fifo {
        Fifo::new(port.buffer_bytes)
    }
    fn source(&self, flow: &FlowInfo) -> SozeSender {
        SozeSender::new(self.law, flow)
    }
    fn hop(&self, port: &Port) -> SozeTelemetry {
        let full_ns = self.law.k_ns + self.law.p_ns(port.rtt_ns);
        SozeTelemetry(Filter::new(self.signal, self.filter_ns, full_ns, port.capacity_bps, self.law.arithmetic))
    }
    fn sink(&self, _flow: &FlowInfo) {}
}

/// Reads m; refuses values outside the bounds of Soze's lemma 3.1.
pub(crate) fn exponent(params: &Params) -> Result<f64, InputError> {
    let m = params.number("m");
    if m > 0.0 && m < 2.0 {
        return Ok(m);
    }
    let why = "rates-per-weight come together only for 0 < m < 2 (Soze, lemma 3.1): the paper has 0.25";
    Err(InputError::new("params.m", format!("m is {m}"), format!("give a value above 0 and below 2; {why}")))
}

/// Reads the parameter `header`, bytes.
pub(crate) fn header_bytes(params: &Params) -> Result<u32, InputError> {
    Ok(params.whole("header", 0.0, 1000.0)? as u32)
}

/// Reads the parameter `arithmetic`.
pub(crate) fn arithmetic(params: &Params) -> SozeArithmetic {
    if params.word("arithmetic") == "float" { SozeArithmetic::Float } else { SozeArithmetic::Fixed }
}

/// Refuses a beta without an alpha, or above half of alpha.
fn range(law: &SozeLaw) -> Result<(), InputError> {
    if law.beta_bps == 0.0 || law.beta_bps <= 0.5 * law.alpha_bps {
        return Ok(());
    }
    let (alpha, beta) = (law.alpha_bps / 1e9, law.beta_bps / 1e9);
    match alpha > 0.0 {
        true => {
            let what = format!("beta_rate is {beta} Gb/s, and alpha_rate is {alpha} Gb/s");
            let hint = format!("give at most half of alpha_rate, {} Gb/s, or a larger alpha_rate", 0.5 * alpha);
            Err(InputError::new("params.beta_rate", what, hint))
        }
        false => {
            let hint = "give alpha_rate, the largest rate-per-weight, or unit_flows in its place";
            Err(InputError::new("params.beta_rate", "beta_rate is given and alpha_rate is not", hint))
        }
    }
}

/// Refuses a p below the bound of Soze's lemma 3.2.
fn scale(law: &SozeLaw, dt_ns: f64) -> Result<(), InputError> {
    let (least_ns, p_ns) = (0.5 * dt_ns * law.span(), law.p_ns(0));
    if p_ns > least_ns {
        return Ok(());
    }
    let what = format!("p is {} us, and updates may be {} us apart", p_ns / 1e3, dt_ns / 1e3);
    let why = "delays settle only for p > dt / 2 ln(alpha / beta) (Soze, lemma 3.2)";
    Err(InputError::new("params.p", what, format!("give more than {:.3} us, or a smaller dt; {why}", least_ns / 1e3)))
}

/// Link: writes its filtered signal into data packets, if it is the largest of the path so far.
#[derive(Debug, Clone)]
pub struct SozeTelemetry(Filter);

impl TransportHop<Soze> for SozeTelemetry {
    #[inline]
    fn on_dequeue<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>, packet: Passing<MaxDelay>, port: &Port) {
        let leaving = Leaving { bytes: packet.bytes, wait_ns: packet.wait_ns, queued_bytes: port.queued_bytes };
        let told = self.0.tell(io.now_ns, leaving);
        if packet.kind == PacketKind::Data {
            *packet.header = (*packet.header).max(told);
        }
    }
    fn on_capacity(&mut self, port: &Port) {
        self.0.resize(port.capacity_bps);
    }
}
