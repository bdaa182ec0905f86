//! XCP: links write into each packet the allowed change of its sender's window.
//!
//! Katabi, Handley and Rohrs, Congestion Control for High Bandwidth-Delay Product Networks, SIGCOMM 2002. Packets carry the
//! sender's window and RTT. Once an interval, the average RTT d, a link computes
//!
//! ```text
//! phi = alpha d S - beta Q                                  (equation 1: S spare rate, Q smallest queue length)
//! h   = max(0, gamma y - |phi|)                             (equation 2: shuffled traffic, y bytes arrived)
//! H_feedback = xi_p rtt^2 s / cwnd - xi_n rtt s             (equations 4, 7 and 8)
//! ```
//!
//! and writes the smallest feedback of the path into the header. The sender adds it to its window. The average of RTTs
//! counts each flow once. The total feedback of an interval is at most that of equations 1 and 2: without this bound,
//! an interval with more packets than the previous one would distribute too much.

use crate::queue::Fifo;
use crate::tcp;
use subak_core::keys::{AMOUNT, ValueType};
use subak_core::scheme::{
    Ack, FlowInfo, Goal, Hop, Info, Io, Loss, LossKind, Named, Packet, PacketKind, Param, Params, Port, Recovery,
    Rules, Scheme, SchemeKind, Settles, Source,
};
use subak_core::{IdVec, InputError, Ns, SubflowId};

/// Number of the timer that ends control intervals.
const CONTROL: u32 = 0;
/// Number of the timer that samples the smallest queue length.
const QUEUE: u32 = 1;
/// Lower bound of the sampling time of the queue, and of the control interval, ns.
const LEAST_NS: f64 = 1000.0;

/// Window control by the links' feedback, with the parameters of XCP.
#[derive(Debug, Clone, Copy)]
pub struct Xcp {
    alpha: f64,
    beta: f64,
    gamma: f64,
    first_ns: Ns,
    initial: f64,
    recovery: Recovery,
}

/// XCP header of a packet.
#[derive(Debug, Clone, Copy, Default)]
pub struct XcpHeader {
    /// The sender's congestion window, bytes.
    cwnd: f32,
    /// Feedback: change of the window, bytes.
    feedback: f32,
    /// The sender's RTT, ns; 0 if unknown: links then give no feedback.
    rtt_ns: u32,
}

/// Sender of a flow.
#[derive(Debug, Clone)]
pub struct XcpSource {
    mss: f64,
    subflows: IdVec<SubflowId, XcpSubflow>,
}

#[derive(Debug, Clone, Copy)]
struct XcpSubflow {
    cwnd: f64,
    rtt_ns: Ns,
    line_bps: f64,
    /// Number of the first segment sent after the last cut.
    recover: u32,
}

/// XCP state of a link.
#[derive(Debug, Clone)]
pub struct XcpHop {
    scheme: Xcp,
    capacity_bps: f64,
    /// Average RTT d of flows, ns: the control interval.
    rtt_ns: f64,
    arrived_bytes: f64,
    /// Sum of rtt s / cwnd over the packets of this interval; s is the payload.
    sum_rtt: f64,
    /// Sum of rtt^2 s / cwnd over the packets of this interval.
    sum_rtt2: f64,
    /// Sum of s over the packets of this interval, bytes.
    sum_bytes: f64,
    /// Smallest queue length since the latest sample, bytes.
    least_bytes: Option<u64>,
    /// Smallest queue length at the latest sample, bytes.
    queue_bytes: f64,
    gains: Gains,
}

/// Feedback of an interval: factors xi_p and xi_n, and what remains of the total positive and negative feedback,
/// bytes/ns.
#[derive(Debug, Clone, Copy, Default)]
struct Gains {
    up: f64,
    down: f64,
    left_up: f64,
    left_down: f64,
}

impl Named for Xcp {
    const INFO: Info = Info {
        name: "xcp",
        about: "XCP: links tell each packet by how much its sender's window may change",
        paper: "Katabi et al., SIGCOMM 2002",
        kind: SchemeKind::Reactive,
        lives_on_control: false,
        goal: Goal::Own,
        weights: false,
        params: &[
            Param::number("alpha", 0.4, AMOUNT, "gain of spare capacity"),
            Param::number("beta", 0.226, AMOUNT, "gain of the queue"),
            Param::number("gamma", 0.1, AMOUNT, "share of the traffic that is shuffled each interval"),
            Param::number(
                "first_interval",
                0.0,
                ValueType::Time,
                "first control interval of a link; 0: the network's longest RTT",
            ),
            Param::number("initial_window", 2.0, ValueType::Packets, "window at the start of a flow"),
            tcp::RTO_MIN,
            tcp::TIMEOUT,
            tcp::PROBE,
        ],
        settles: Settles::NEVER,
        ..Info::DEFAULT
    };
}

impl Scheme for Xcp {
    type Data = XcpHeader;
    type Ctl = ();
    type Queue = Fifo;
    type Source = XcpSource;
    type Hop = XcpHop;
    type Sink = ();

    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(Xcp {
            alpha: params.within("alpha", 0.0, 2.0)?,
            beta: params.within("beta", 0.0, 2.0)?,
            gamma: params.within("gamma", 0.0, 1.0)?,
            first_ns: (params.within("first_interval", 0.0, 100.0)? * 1e9) as Ns,
            initial: params.within("initial_window", 1.0, 1e6)?,
            recovery: tcp::recovery(params),
        })
    }
    fn rules(&self) -> Rules {
        Rules { recovery: self.recovery, per_hop: 1.45, ..Rules::default() }
    }
    fn queue(&self, port: &Port) -> Fifo {
        Fifo::new(port.buffer_bytes)
    }
    fn source(&self, flow: &FlowInfo) -> XcpSource {
        let mss = f64::from(flow.mss_bytes);
        let subflow = |line_bps| XcpSubflow { cwnd: self.initial * mss, rtt_ns: 0, line_bps, recover: 0 };
        XcpSource { mss, subflows: flow.paths.iter().map(|path| subflow(path.line_rate_bps)).collect() }
    }
    fn hop(&self, port: &Port) -> XcpHop {
        XcpHop {
            scheme: *self,
            capacity_bps: port.capacity_bps,
            rtt_ns: (if self.first_ns > 0 { self.first_ns } else { port.rtt_ns } as f64).max(LEAST_NS),
            arrived_bytes: 0.0,
            sum_rtt: 0.0,
            sum_rtt2: 0.0,
            sum_bytes: 0.0,
            least_bytes: None,
            queue_bytes: 0.0,
            gains: Gains::default(),
        }
    }
    fn sink(&self, _flow: &FlowInfo) {}
}

impl XcpHop {
    fn saw(&mut self, bytes: u32, header: &XcpHeader) {
        let bytes = f64::from(bytes);
        if header.rtt_ns == 0 {
            return;
        }
        let rtt = f64::from(header.rtt_ns);
        let part = rtt * bytes / f64::from(header.cwnd);
        self.sum_rtt += part;
        self.sum_rtt2 += part * rtt;
        self.sum_bytes += bytes;
    }

    /// Ends a control interval.
    fn control(&mut self) {
        let Xcp { alpha, beta, gamma, .. } = self.scheme;
        let d = self.rtt_ns;
        let spare_bytes = self.capacity_bps / 8e9 * d - self.arrived_bytes;
        let phi = alpha * spare_bytes - beta * self.queue_bytes;
        let shuffled = (gamma * self.arrived_bytes - phi.abs()).max(0.0);
        let (left_up, left_down) = ((shuffled + phi.max(0.0)) / d, (shuffled + (-phi).max(0.0)) / d);
        let over = |left: f64, sum: f64| if sum > 0.0 { left / sum } else { 0.0 };
        self.gains =
            Gains { up: over(left_up, self.sum_rtt), down: over(left_down, self.sum_bytes), left_up, left_down };
        if self.sum_rtt > 0.0 {
            self.rtt_ns = (self.sum_rtt2 / self.sum_rtt).max(LEAST_NS);
        }
        (self.arrived_bytes, self.sum_rtt, self.sum_rtt2, self.sum_bytes) = (0.0, 0.0, 0.0, 0.0);
    }

    /// Feedback for a packet: change of its sender's window, bytes.
    fn feedback(&mut self, bytes: u32, header: &XcpHeader) -> f64 {
        let (rtt, bytes, cwnd) = (f64::from(header.rtt_ns), f64::from(bytes), f64::from(header.cwnd));
        let up = self.gains.up * rtt * rtt * bytes / cwnd;
        let down = self.gains.down * rtt * bytes;
        let feedback = (up - down).min(f64::from(header.feedback));
        // Increase and decrease are charged separately, even if an earlier link allows less.
        self.gains.left_up -= (feedback + down).max(0.0) / rtt;
        self.gains.left_down -= down / rtt;
        if self.gains.left_up <= 0.0 {
            self.gains.up = 0.0;
        }
        if self.gains.left_down <= 0.0 {
            self.gains.down = 0.0;
        }
        feedback
    }

    /// Ends a sampling period of the smallest queue length; returns the length of the next period, ns.
    fn look(&mut self, queued_bytes: u64) -> f64 {
        self.queue_bytes = self.least_bytes.take().unwrap_or(queued_bytes) as f64;
        let drain_ns = queued_bytes as f64 * 8e9 / self.capacity_bps.max(1.0);
        (self.rtt_ns - drain_ns).max(LEAST_NS)
    }
}

impl Hop<Xcp> for XcpHop {
    fn on_start(&mut self, io: &mut Io<Xcp>) {
        for timer in [CONTROL, QUEUE] {
            io.timer(timer, io.now_ns + self.rtt_ns as Ns);
        }
    }
    fn on_capacity(&mut self, port: &Port) {
        self.capacity_bps = port.capacity_bps;
    }
    fn on_enqueue(&mut self, _io: &mut Io<Xcp>, packet: &mut Packet<Xcp>, port: &Port) {
        self.arrived_bytes += f64::from(packet.bytes);
        self.least_bytes = Some(self.least_bytes.map_or(port.queued_bytes, |least| least.min(port.queued_bytes)));
        if packet.kind == PacketKind::Data {
            self.saw(packet.payload_bytes(), &packet.data);
        }
    }
    fn on_dequeue(&mut self, _io: &mut Io<Xcp>, packet: &mut Packet<Xcp>, _port: &Port) {
        if packet.kind == PacketKind::Data && packet.data.rtt_ns > 0 {
            packet.data.feedback = self.feedback(packet.payload_bytes(), &packet.data) as f32;
        }
    }
    fn on_timer(&mut self, io: &mut Io<Xcp>, timer: u32, port: &Port) {
        let next_ns = if timer == CONTROL {
            self.control();
            self.rtt_ns
        } else {
            self.look(port.queued_bytes)
        };
        io.timer(timer, io.now_ns + next_ns as Ns);
    }
}

impl XcpSource {
    fn go_on(&self, io: &mut Io<Xcp>, k: SubflowId) {
        io.pace(k, None, Some(self.subflows[k].cwnd as u64));
    }
}

impl Source<Xcp> for XcpSource {
    fn on_start(&mut self, io: &mut Io<Xcp>) {
        self.subflows.ids().for_each(|k| self.go_on(io, k));
    }

    fn stamp(&mut self, _now_ns: Ns, packet: &mut Packet<Xcp>, _remaining_bytes: u64) {
        let s = &self.subflows[packet.subflow];
        // Feedback that would bring the sender to its line rate, spread over the packets of a window.
        let wanted = s.line_bps * s.rtt_ns as f64 / 8e9 - s.cwnd;
        let share = f64::from(packet.payload_bytes()) / s.cwnd;
        let rtt_ns = s.rtt_ns.min(Ns::from(u32::MAX)) as u32;
        packet.data = XcpHeader { cwnd: s.cwnd as f32, feedback: (wanted * share) as f32, rtt_ns };
    }

    fn on_ack(&mut self, io: &mut Io<Xcp>, ack: &Ack<XcpHeader>) {
        let s = &mut self.subflows[ack.subflow];
        s.rtt_ns = ack.rtt_ns;
        if ack.data.rtt_ns > 0 {
            s.cwnd = (s.cwnd + f64::from(ack.data.feedback)).max(self.mss);
        }
        self.go_on(io, ack.subflow);
    }

    fn on_loss(&mut self, io: &mut Io<Xcp>, loss: &Loss) {
        let s = &mut self.subflows[loss.subflow];
        if loss.kind == LossKind::Timeout {
            // Segments sent within the last RTT are still in flight; one more segment may be sent.
            s.cwnd = loss.in_flight_bytes as f64 + self.mss;
            s.recover = loss.next_segment;
        } else if loss.segment >= s.recover {
            s.cwnd = (s.cwnd / 2.0).max(self.mss);
            s.recover = loss.next_segment;
        }
        self.go_on(io, loss.subflow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use subak_core::LinkId;

    /// A link of 8 Gb/s (a byte per nanosecond) with an interval of 100 us (100,000 bytes).
    fn hop() -> XcpHop {
        let params = Params::resolve(&Xcp::INFO, &serde_json::Map::new()).unwrap();
        Xcp::new(&params).unwrap().hop(&Port { rtt_ns: 100_000, ..Port::example(LinkId(0), 8e9) })
    }

    fn header(cwnd: f32, rtt_ns: u32) -> XcpHeader {
        XcpHeader { cwnd, feedback: f32::MAX, rtt_ns }
    }

    /// Lets `packets` packets of 1000 bytes arrive.
    fn come(hop: &mut XcpHop, packets: u32, header: XcpHeader) {
        for _ in 0..packets {
            hop.arrived_bytes += 1000.0;
            hop.saw(1000, &header);
        }
    }

    fn told(hop: &mut XcpHop, packets: u32, header: XcpHeader) -> f64 {
        (0..packets).map(|_| hop.feedback(1000, &header)).sum()
    }

    #[test]
    fn a_half_idle_link_hands_out_alpha_of_what_is_spare() {
        // XCP, equation 1: phi = 0.4 x 50 000 bytes; nothing is shuffled, since phi is more than a tenth of the
        // traffic.
        let mut hop = hop();
        let flow = header(50_000.0, 100_000);
        come(&mut hop, 50, flow);
        hop.control();
        assert!((told(&mut hop, 50, flow) - 20_000.0).abs() < 1e-3);
    }

    #[test]
    fn a_full_link_takes_back_beta_of_its_queue() {
        // phi = -0.226 x 60 000 = -13 560 bytes; a tenth of the traffic, 10 000, is less than that.
        let mut hop = hop();
        let flow = header(100_000.0, 100_000);
        come(&mut hop, 100, flow);
        hop.queue_bytes = 60_000.0;
        hop.control();
        assert!((told(&mut hop, 100, flow) + 13_560.0).abs() < 1e-3);
    }

    #[test]
    fn a_full_link_without_a_queue_shuffles_a_tenth_of_its_traffic() {
        // XCP, equation 2: h = 10 000 bytes. Every flow gains the same, 5000 each, and loses a tenth of its window.
        let mut hop = hop();
        let (large, small) = (header(80_000.0, 100_000), header(20_000.0, 100_000));
        come(&mut hop, 80, large);
        come(&mut hop, 20, small);
        hop.control();
        assert!((told(&mut hop, 80, large) - (5000.0 - 8000.0)).abs() < 1e-3);
        assert!((told(&mut hop, 20, small) - (5000.0 - 2000.0)).abs() < 1e-3);
    }

    #[test]
    fn gains_are_the_same_in_rate_whatever_the_round_trip() {
        // XCP, equations 3 and 4: the change of the window is in proportion to the RTT, so that the change of the rate
        // an RTT later is the same.
        let mut hop = hop();
        let (near, far) = (header(10_000.0, 50_000), header(40_000.0, 200_000));
        come(&mut hop, 20, near);
        come(&mut hop, 20, far);
        hop.control();
        let (a, b) = (told(&mut hop, 20, near), told(&mut hop, 20, far));
        assert!((b / a - 4.0).abs() < 1e-6, "{a} {b}");
        // Both flows receive feedback for 100 us; as rates, the windows' changes are a / 50 us and b / 200 us.
        assert!((a / 50_000.0 + b / 200_000.0 - 0.4 * 60_000.0 / 100_000.0).abs() < 1e-6, "{a} {b}");
    }

    #[test]
    fn round_trips_are_averaged_by_flow_and_the_least_feedback_stays() {
        let mut hop = hop();
        come(&mut hop, 10, header(10_000.0, 50_000));
        come(&mut hop, 90, header(180_000.0, 100_000));
        hop.control();
        // Each flow's sum of rtt s / cwnd is the time that it was seen for: here 50 us each.
        assert!((hop.rtt_ns - 75_000.0).abs() < 1.0, "{}", hop.rtt_ns);
        let narrow = XcpHeader { feedback: -3.0, ..header(10_000.0, 50_000) };
        assert_eq!(hop.feedback(1000, &narrow), -3.0);
    }

    #[test]
    fn a_burst_is_told_no_more_than_the_interval_has() {
        let mut hop = hop();
        let flow = header(10_000.0, 100_000);
        come(&mut hop, 10, flow);
        hop.control();
        // phi = 0.4 x 90 000.
        let sum = told(&mut hop, 100, flow);
        assert!((36_000.0..40_000.0).contains(&sum), "{sum}");
    }

    #[test]
    fn the_queue_that_counts_is_the_least() {
        let mut hop = hop();
        hop.least_bytes = Some(3000);
        // 20 000 bytes drain in 20 us.
        assert!((hop.look(20_000) - 80_000.0).abs() < 1e-6);
        assert_eq!(hop.queue_bytes, 3000.0);
        hop.look(0);
        assert_eq!(hop.queue_bytes, 0.0);
    }
}
