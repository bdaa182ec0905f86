//! Soze on virtual queues: the same senders and header, with the delay of a virtual queue as the signal.
//!
//! A link's virtual queue counts arrivals, and is drained at a fraction eta of the capacity. While there is a real
//! queue, the virtual queue is drained more slowly, so that senders empty the real queue. p follows from the largest
//! RTT: feedback arrives after an RTT, which the paper's bounds neglect (`docs/transports/soze-virtual.md`). A link
//! without traffic has the delay of the initial rate of flows, so that many flows that start at once do not overshoot.

use super::soze::{ALPHA, ARITHMETIC, HEADER, SMALLEST_WEIGHT, arithmetic, exponent, header_bytes};
use crate::over::{Optimizer, Part, Passing, Transport, TransportHop, Weight};
use crate::queue::Fifo;
use crate::soze::{
    DelayUnit, FixedVirtual, Floor, MaxDelay, Often, SenderState, SozeArithmetic, SozeLaw, SozeSender, Virtual,
    VirtualLink, least_integral,
};
use subak_core::keys::{AMOUNT, ValueType};
use subak_core::scheme::{
    Around, Carries, Doubt, FlowInfo, Follows, Goal, Headers, Io, PacketKind, Param, Params, Port, Rules, Scheme,
    Settles,
};
use subak_core::{InputError, Ns};

/// The transport soze-virtual: Soze on virtual queues.
#[derive(Debug, Clone, Copy)]
pub struct SozeVirtual {
    set: Virtual,
    header_bytes: u32,
}

impl SozeVirtual {
    /// Parameters of senders and links.
    pub(crate) fn set(&self) -> Virtual {
        self.set
    }

    /// A warning if data crosses both ways links that are slower than others and short: rates of the two ways may rise
    /// and fall together, because the ACKs of each wait in the queue of the other.
    fn phase_doubt(&self, around: &Around) -> Option<Doubt> {
        let fastest_bps = around.ports.iter().map(|port| port.capacity_bps).fold(0.0, f64::max);
        let packets = |port: &Port| port.capacity_bps * port.rtt_ns as f64 / (8e9 * f64::from(around.mtu_bytes));
        let is_short = |port: &&Port| port.capacity_bps < fastest_bps && packets(port) < SHORT_PACKETS;
        let port = around.ports.iter().find(is_short)?;
        let text = format!(
            "data of endless flows and ACKs share links, and link \"{}\" carries {:.1} packets in the longest base RTT: with params.integral \
             of {}, rates of the two ways may rise and fall together and use a third of such links; take integral = {CALM_INTEGRAL}",
            around.network.links()[port.link].id,
            packets(port),
            self.set.law.integral_rtts
        );
        (around.flows.both_ways && self.set.law.integral_rtts < CALM_INTEGRAL).then_some(Doubt { kind: "acks", text })
    }
}

/// Packets in an RTT below which both ways of a link may oscillate together.
const SHORT_PACKETS: f64 = 32.0;
/// `integral` with which they did not on the networks that were tried, but for one of 0.3 Gb/s.
const CALM_INTEGRAL: f64 = 6.0;

const PARAMS: &[Param] = &[
    Param::number("headroom", 0.02, AMOUNT, "share of a link not used by data").following(Follows::Acks),
    Param::number("integral", 3.0, AMOUNT, "p over ln(alpha / beta), in the network's longest RTTs"),
    Param::number("empties", 4.0, AMOUNT, "RTTs in which a real queue falls by 63%"),
    Param::number("queue_weight", 2.0, AMOUNT, "weight of a real queue in the signal, next to the virtual one"),
    Param::number("k", 3e-6, ValueType::Time, "virtual delay of a link that a flow has for itself"),
    Param::number("m", 1.0, AMOUNT, "exponent of an RTT's update: above 0 and below 2"),
    ALPHA,
    SMALLEST_WEIGHT,
    Param::number(
        "unit_flows",
        400_000.0,
        AMOUNT,
        "alpha over beta: number of flows of that weight; a slower link serves proportionally fewer",
    ),
    Param::number("start_weights", 1000.0, AMOUNT, "a flow starts with its weight over this of alpha's line"),
    Param::number(
        "anew",
        100.0,
        AMOUNT,
        "RTTs without data after which a link begins again with the initial delay; 0: never",
    ),
    ARITHMETIC,
    HEADER,
];

impl Transport for SozeVirtual {
    const PART: Part = Part {
        name: "soze-virtual",
        about: "rates from the largest delay of the path's virtual queues (Soze, changed)",
        paper: "after Wang and Ng, Soze, section 3",
        params: PARAMS,
        goal: Goal::MaxMin,
        settles: Settles { within: 0.05, rtts: 200.0 },
    };
    const SLOWDOWN: f64 = 10.0;
    type Wish = Weight;
    type Header = MaxDelay;
    type Ctl = ();
    type Queue<O: Optimizer<Wish = Weight>> = Fifo;
    type Source = SozeSender;
    type Hop = VirtualQueue;
    type Sink = ();

    fn new(params: &Params) -> Result<Self, InputError> {
        let law = SozeLaw {
            alpha_bps: params.within("alpha_rate", 0.0, 1e15)?,
            beta_bps: 0.0,
            smallest_weight: params.within("smallest_weight", 1e-6, 1e6)?,
            unit_flows: params.within("unit_flows", 2.0, 1e9)?,
            p_ns: 0.0,
            least_p_ns: 0.0,
            integral_rtts: params.within("integral", 0.0, 1e6)?,
            k_ns: params.within("k", 0.0, 1.0)? * 1e9,
            m: exponent(params)?,
            state: SenderState::Rate,
            often: Often::Packet,
            floor: Floor::Beta,
            start_weights: params.within("start_weights", 1e-3, 1e9)?,
            exact: true,
            arithmetic: arithmetic(params),
        };
        let queue = params.within("queue_weight", 0.0, 100.0)?;
        stable(&law, queue)?;
        let set = Virtual {
            law,
            eta: 1.0 - params.within("headroom", 0.0, 0.9)?,
            empties_rtts: params.within("empties", 0.1, 1e9)?,
            queue,
            anew_rtts: params.within("anew", 0.0, 1e12)?,
        };
        Ok(SozeVirtual { set, header_bytes: header_bytes(params)? })
    }
    fn rules(&self) -> Rules {
        let headers = Headers { data_bytes: self.header_bytes, ack_bytes: self.header_bytes };
        Rules { data_share: Some(self.set.eta), headers, per_hop: 1.65, ..Rules::default() }
    }
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        self.phase_doubt(around).into_iter().collect()
    }
    fn queue<O: Optimizer<Wish = Weight>>(&self, port: &Port) -> Fifo {
        Fifo::new(port.buffer_bytes)
    }
    fn source(&self, flow: &FlowInfo) -> SozeSender {
        SozeSender::new(self.set.law, flow)
    }
    fn hop(&self, port: &Port) -> VirtualQueue {
        VirtualQueue::new(&self.set, port)
    }
    fn sink(&self, _flow: &FlowInfo) {}
}

/// Refuses a p for which the loop of senders and virtual queue is unstable.
fn stable(law: &SozeLaw, queue: f64) -> Result<(), InputError> {
    let least = (1.0 + queue) * least_integral(law.m);
    if law.integral_rtts > least {
        return Ok(());
    }
    let what = format!("integral is {} RTTs", law.integral_rtts);
    let why = "senders react to a rate one RTT later, and overshoot without end";
    Err(InputError::new(
        "params.integral",
        what,
        format!("give more than {least:.3} with this m and this queue_weight: {why}"),
    ))
}

/// Link: a virtual queue, whose delay is the signal.
#[derive(Debug, Clone)]
pub struct VirtualQueue {
    unit: DelayUnit,
    /// Time without data after which the virtual queue is reset to its initial delay, ns; 0: never.
    anew_ns: f64,
    counts: CountedBytes,
    at_ns: Ns,
    /// Time of the latest arrival of data, ns.
    data_ns: Option<Ns>,
    /// Time of a full packet at the initial capacity, ns.
    packet_ns: f64,
    /// Factor by which the link's clock runs slower than the senders': the ratio of the largest base RTTs after and before
    /// a fall of its capacity.
    slower: f64,
}

#[derive(Debug, Clone)]
enum CountedBytes {
    Float { set: VirtualLink, delay_ns: f64 },
    Fixed(Box<FixedVirtual>),
}

impl VirtualQueue {
    fn new(set: &Virtual, port: &Port) -> Self {
        let link = set.link(port.rtt_ns);
        VirtualQueue {
            unit: set.law.unit(port.rtt_ns),
            anew_ns: link.anew_ns,
            counts: match set.law.arithmetic {
                SozeArithmetic::Float => CountedBytes::Float { set: link, delay_ns: 0.0 },
                SozeArithmetic::Fixed => {
                    CountedBytes::Fixed(Box::new(FixedVirtual::new(set, port.rtt_ns, port.capacity_bps)))
                }
            },
            at_ns: 0,
            data_ns: None,
            packet_ns: packet_ns(port),
            slower: 1.0,
        }
    }

    /// Drains the virtual queue for the time up to `now_ns`.
    #[inline]
    fn drain(&mut self, now_ns: Ns, port: &Port) {
        let passed_ns = (now_ns - std::mem::replace(&mut self.at_ns, now_ns)) as f64 / self.slower;
        match &mut self.counts {
            CountedBytes::Float { set, delay_ns } => {
                *delay_ns = set.drained_ns(*delay_ns, passed_ns, queued_ns(port) / self.slower);
            }
            CountedBytes::Fixed(queue) => queue.drain(passed_ns as Ns, port.queued_bytes),
        }
    }

    /// Handles an arrival of data: after `anew_ns` without data, the virtual delay is reset to the initial one.
    #[inline]
    fn begin(&mut self, now_ns: Ns) {
        let before = self.data_ns.replace(now_ns);
        if self.anew_ns > 0.0 && before.is_none_or(|before| (now_ns - before) as f64 > self.anew_ns * self.slower) {
            match &mut self.counts {
                CountedBytes::Float { set, delay_ns } => *delay_ns = set.start_ns,
                CountedBytes::Fixed(queue) => queue.begin(),
            }
        }
    }

    #[inline]
    fn fill(&mut self, bytes: u32, port: &Port) {
        match &mut self.counts {
            CountedBytes::Float { set, delay_ns } => {
                let sent_ns = f64::from(bytes) * 8e9 / port.capacity_bps;
                *delay_ns = set.filled_ns(*delay_ns, sent_ns / self.slower);
            }
            CountedBytes::Fixed(queue) => queue.fill(bytes),
        }
    }

    /// The delay that the link signals, as a value of the header field.
    #[inline]
    fn tell(&self, port: &Port) -> MaxDelay {
        match &self.counts {
            CountedBytes::Float { set, delay_ns } => {
                self.unit.put(set.signal_ns(*delay_ns, queued_ns(port) / self.slower))
            }
            CountedBytes::Fixed(queue) => self.unit.put_ns(queue.signal_ns(port.queued_bytes)),
        }
    }
}

/// Time of a full packet, ns.
fn packet_ns(port: &Port) -> f64 {
    f64::from(port.mtu_bytes) * 8e9 / port.capacity_bps
}

/// Queue length, ns at the link's rate.
#[inline]
fn queued_ns(port: &Port) -> f64 {
    port.queued_bytes as f64 * 8e9 / port.capacity_bps
}

impl TransportHop<SozeVirtual> for VirtualQueue {
    #[inline]
    fn on_enqueue<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>, packet: Passing<MaxDelay>, port: &Port) {
        if packet.kind != PacketKind::Data {
            return;
        }
        self.drain(io.now_ns, port);
        self.begin(io.now_ns);
        self.fill(packet.bytes, port);
    }
    #[inline]
    fn on_dequeue<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>, packet: Passing<MaxDelay>, port: &Port) {
        self.drain(io.now_ns, port);
        if packet.kind == PacketKind::Data {
            *packet.header = (*packet.header).max(self.tell(port));
        }
    }
    /// A packet of a slower link takes longer, and the network's largest RTT grows by that.
    fn on_capacity(&mut self, port: &Port) {
        let longer_ns = (packet_ns(port) - self.packet_ns).max(0.0);
        self.slower = 1.0 + longer_ns / port.rtt_ns.max(1) as f64;
        if let CountedBytes::Fixed(queue) = &mut self.counts {
            queue.resize(port.capacity_bps * self.slower);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use subak_core::LinkId;

    const RTT_NS: Ns = 10_000;

    fn queue(anew_rtts: f64) -> VirtualQueue {
        VirtualQueue::new(
            &Virtual { anew_rtts, ..Virtual::STANDARD },
            &Port { rtt_ns: RTT_NS, ..Port::example(LinkId(0), 10e9) },
        )
    }

    fn delay_ns(link: &mut VirtualQueue) -> &mut f64 {
        match &mut link.counts {
            CountedBytes::Float { delay_ns, .. } => delay_ns,
            CountedBytes::Fixed(_) => unreachable!("the default is floating point"),
        }
    }

    #[test]
    fn the_defaults_are_the_standard_that_a_fluid_may_run() {
        let info =
            subak_core::scheme::Info { params: PARAMS, ..<crate::dctcp::Dctcp as subak_core::scheme::Named>::INFO };
        let params = Params::resolve(&info, &serde_json::Map::new()).unwrap();
        assert_eq!(SozeVirtual::new(&params).unwrap().set, Virtual::STANDARD);
    }

    #[test]
    fn a_link_begins_with_the_delay_of_the_start_and_does_so_again_after_a_long_silence() {
        let mut link = queue(100.0);
        link.begin(5 * RTT_NS);
        // The delay of a thousandth of the line rate: p is 3 ln(400,000) RTTs, and the delay above k is p ln(1000) /
        // ln(400,000).
        let start_ns = *delay_ns(&mut link);
        assert!((start_ns - (3e3 + 3.0 * 1000f64.ln() * RTT_NS as f64)).abs() < 1e-6);
        *delay_ns(&mut link) = 40e3;
        link.begin(105 * RTT_NS);
        assert_eq!(*delay_ns(&mut link), 40e3, "100 round trips are not more than 100");
        link.begin(206 * RTT_NS);
        assert_eq!(*delay_ns(&mut link), start_ns);
    }

    #[test]
    fn it_may_begin_empty() {
        let mut link = queue(0.0);
        link.begin(RTT_NS);
        link.begin(1000 * RTT_NS);
        assert_eq!(*delay_ns(&mut link), 0.0);
    }
}
