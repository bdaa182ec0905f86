//! PowerTCP: windows follow power, the product of a link's current (arrival rate) and voltage (queue plus BDP).
//!
//! Addanki, Michel and Schmid, PowerTCP: Pushing the Performance Limits of Datacenter Networks, NSDI 2022, section 3 and
//! algorithm 1, with the telemetry of HPCC. From the records of two successive ACKs the sender computes for each link, with
//! queues q, q', bytes sent s, s' at times t, t', rate b and base RTT T:
//!
//! ```text
//! current = (q - q') / (t - t') + (s - s') / (t - t')      voltage = q + b T      power = current voltage / (b^2 T)
//! ```
//!
//! The largest power of the path, averaged over T, is the factor by which the window of an RTT ago was too large:
//! W = gamma (W_old / power + beta) + (1 - gamma) W. The pacing rate is W / T. At equilibrium each flow keeps beta bytes in
//! the queue. The window changes at every ACK, W_old once per RTT.

use crate::headers;
use crate::lossless::{self, Rdma};
use crate::queue::Priority;
use crate::telemetry::{self, IntHeader, Stamper, identity};
use subak_core::keys::{AMOUNT, ValueType};
use subak_core::scheme::{
    Ack, FlowInfo, Goal, Headers, Info, Io, Named, Param, Params, PathInfo, Port, Rules, Scheme, SchemeKind, Settles,
    SharesLinks, Source,
};
use subak_core::{IdVec, InputError, LinkId, Ns, SubflowId};

/// Smallest power, so that a path that was idle does not divide by zero.
const LEAST_POWER: f64 = 1e-6;

/// Window control by the power of the path's links.
#[derive(Debug, Clone, Copy)]
pub struct PowerTcp {
    headers: Headers,
    gamma: f64,
    beta_bytes: f64,
    flows: f64,
    t_ns: Ns,
    rdma: Rdma,
}

/// Sender of a flow.
#[derive(Debug)]
pub struct PowerTcpSource {
    scheme: PowerTcp,
    /// Ratio of payload to bytes on the wire.
    payload_share: f64,
    mss_bytes: u32,
    subflows: IdVec<SubflowId, PowerSubflow>,
}

/// A subflow; windows are in bytes on the wire.
#[derive(Debug, Clone)]
struct PowerSubflow {
    t_ns: f64,
    /// Largest window: line rate times T.
    most: f64,
    beta: f64,
    window: f64,
    /// Window of an RTT ago.
    old: f64,
    /// Normalized power of the path, averaged over T.
    power: f64,
    /// Number of the first segment whose ACK updates the old window again.
    update_from: u32,
    /// Identity of the subflow's path.
    path: u32,
    before: IntHeader,
}

impl Named for PowerTcp {
    const INFO: Info = Info {
        name: "powertcp",
        about: "PowerTCP: windows follow the product of a link's arrival rate and its queue plus BDP, from telemetry",
        paper: "Addanki, Michel and Schmid, NSDI 2022",
        kind: SchemeKind::Reactive,
        lives_on_control: false,
        goal: Goal::Own,
        weights: false,
        params: lossless::params![
            telemetry::HEADER,
            telemetry::ACK_HEADER,
            Param::number("gamma", 0.9, AMOUNT, "weight of the newest window in the average: above 0, up to 1"),
            Param::number(
                "beta",
                0.0,
                ValueType::Bytes,
                "additive increase, which each flow keeps in the queue; 0: the initial window over host_flows",
            ),
            Param::number("host_flows", 10.0, AMOUNT, "flows that are expected to share a NIC, for beta")
                .unless("beta"),
            Param::number("t", 0.0, ValueType::Time, "base RTT T of all flows; 0: the network's largest"),
        ],
        settles: Settles::NEVER,
        shares_links: SharesLinks::Yes,
        ..Info::DEFAULT
    };
}

impl Scheme for PowerTcp {
    type Data = IntHeader;
    type Ctl = ();
    type Queue = Priority;
    type Source = PowerTcpSource;
    type Hop = Stamper;
    type Sink = ();

    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(PowerTcp {
            headers: headers::read(params)?,
            gamma: params.within("gamma", 1e-3, 1.0)?,
            beta_bytes: params.number("beta"),
            flows: params.within("host_flows", 1.0, 1e9)?,
            t_ns: params.ns("t"),
            rdma: Rdma::new(params)?,
        })
    }
    fn rules(&self) -> Rules {
        Rules { one_path: true, headers: self.headers, per_hop: 1.4, ..self.rdma.rules() }
    }
    fn queue(&self, port: &Port) -> Priority {
        self.rdma.queue(port)
    }
    fn source(&self, flow: &FlowInfo) -> PowerTcpSource {
        let t_ns = if self.t_ns > 0 { self.t_ns } else { flow.rtt_ns };
        PowerTcpSource {
            scheme: *self,
            payload_share: f64::from(flow.mss_bytes) / f64::from(flow.mtu_bytes),
            mss_bytes: flow.mss_bytes,
            subflows: flow.paths.iter().zip(&flow.links).map(|(path, links)| self.subflow(t_ns, path, links)).collect(),
        }
    }
    fn hop(&self, port: &Port) -> Stamper {
        Stamper::new(port)
    }
    fn sink(&self, _flow: &FlowInfo) {}
}

impl PowerTcp {
    fn subflow(&self, t_ns: Ns, path: &PathInfo, links: &[LinkId]) -> PowerSubflow {
        // A window of T would not fill a path whose base RTT exceeds T.
        let t_ns = if self.t_ns > 0 { t_ns } else { t_ns.max(path.base_rtt_ns) } as f64;
        let most = path.line_rate_bps / 8e9 * t_ns;
        PowerSubflow {
            t_ns,
            most,
            beta: if self.beta_bytes > 0.0 { self.beta_bytes } else { most / self.flows },
            window: most,
            old: most,
            power: 1.0,
            update_from: 0,
            path: identity(links),
            before: IntHeader::default(),
        }
    }
}

impl PowerSubflow {
    /// Averages the largest normalized power of the path's links (algorithm 1, NORMPOWER).
    fn measure(&mut self, now: &IntHeader) {
        let (mut power, mut span_ns) = (0.0, 0.0);
        for (now, before) in now.links.iter().zip(&self.before.links).take(usize::from(now.hops)) {
            let Some((passed_ns, sent)) = now.since(before) else { continue };
            let rate = f64::from(now.bytes_per_ns);
            let (queue, queue_before) = (f64::from(now.queued_bytes), f64::from(before.queued_bytes));
            let current = (queue - queue_before) / passed_ns + sent / passed_ns;
            let voltage = queue + rate * self.t_ns;
            let of_link = current * voltage / (rate * rate * self.t_ns);
            if of_link > power {
                (power, span_ns) = (of_link, passed_ns);
            }
        }
        if span_ns > 0.0 {
            let weight = span_ns.min(self.t_ns) / self.t_ns;
            self.power = (self.power + weight * (power - self.power)).max(LEAST_POWER);
        }
    }

    /// The window after an ACK, bytes. `None` if the ACK is of another path, or if there is no earlier telemetry to compare
    /// with.
    fn on_ack(&mut self, scheme: &PowerTcp, ack: &Ack<IntHeader>) -> Option<f64> {
        if ack.data.path != self.path {
            return None;
        }
        let comparable = self.before.hops > 0 && self.before.hops == ack.data.hops;
        if comparable {
            self.measure(&ack.data);
            let wanted = self.old / self.power + self.beta;
            self.window = (scheme.gamma * wanted + (1.0 - scheme.gamma) * self.window).min(self.most);
        }
        if ack.segment >= self.update_from {
            self.update_from = ack.next_segment;
            self.old = self.window;
        }
        self.before = ack.data;
        comparable.then_some(self.window)
    }
}

impl PowerTcpSource {
    /// Sets window and pacing rate. A packet is sent while less than the window is in flight, so that a window below
    /// one packet still sends.
    fn pace(&self, io: &mut Io<PowerTcp>, k: SubflowId) {
        let s = &self.subflows[k];
        let payload = (s.window * self.payload_share) as u64 + u64::from(self.mss_bytes) - 1;
        io.pace(k, Some(s.window * 8e9 / s.t_ns), Some(payload));
    }
}

impl Source<PowerTcp> for PowerTcpSource {
    fn on_start(&mut self, io: &mut Io<PowerTcp>) {
        self.subflows.ids().for_each(|k| self.pace(io, k));
    }
    fn on_ack(&mut self, io: &mut Io<PowerTcp>, ack: &Ack<IntHeader>) {
        if self.subflows[ack.subflow].on_ack(&self.scheme, ack).is_some() {
            self.pace(io, ack.subflow);
        }
    }
    fn on_reroute(&mut self, io: &mut Io<PowerTcp>, subflow: SubflowId, path: &PathInfo, links: &[LinkId]) {
        let s = &mut self.subflows[subflow];
        let t_ns = s.t_ns as Ns;
        *s = PowerSubflow { update_from: s.update_from, ..self.scheme.subflow(t_ns, path, links) };
        self.pace(io, subflow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Record;

    /// A subflow at 100 Gb/s with T of 13 us: its window is 162,500 bytes and its beta a tenth of that.
    fn subflow() -> (PowerTcp, PowerSubflow) {
        let scheme = PowerTcp::new(&Params::resolve(&PowerTcp::INFO, &serde_json::Map::new()).unwrap()).unwrap();
        let path = PathInfo { hops: 3, line_rate_bps: 100e9, min_capacity_bps: 100e9, base_rtt_ns: 12_000 };
        let subflow = scheme.subflow(13_000, &path, &[LinkId(0)]);
        (scheme, subflow)
    }

    fn ack(segment: u32, at_ns: u32, sent_bytes: u32, queued_bytes: u32) -> Ack<IntHeader> {
        let mut data = IntHeader { hops: 1, ..IntHeader::default() };
        data.links[0] = Record { at_ns, sent_bytes, queued_bytes, bytes_per_ns: 12.5 };
        Ack {
            subflow: SubflowId(0),
            acked_bytes: 1000,
            rtt_ns: 13_000,
            ecn: false,
            in_flight_bytes: 0,
            remaining_bytes: 1,
            segment,
            next_segment: segment + 10,
            data,
        }
    }

    #[test]
    fn power_is_current_times_voltage() {
        let (scheme, mut s) = subflow();
        assert_eq!(s.on_ack(&scheme, &ack(0, 0, 0, 0)), None);
        // Over T the link sent at its rate and the queue grew by half a BDP: current 1.5 b, voltage 1.5 b T.
        let window = s.on_ack(&scheme, &ack(10, 13_000, 162_500, 81_250)).unwrap();
        assert!((s.power - 2.25).abs() < 1e-6, "{}", s.power);
        let wanted = 0.9 * (162_500.0 / 2.25 + 16_250.0) + 0.1 * 162_500.0;
        assert!((window - wanted).abs() < 1e-6, "{window} for {wanted}");
    }

    #[test]
    fn a_queue_that_drains_counts_for_less_than_one_that_grows() {
        let power = |first, then| {
            let (scheme, mut s) = subflow();
            s.on_ack(&scheme, &ack(0, 0, 0, first));
            s.on_ack(&scheme, &ack(10, 13_000, 162_500, then)).unwrap();
            s.power
        };
        assert!(power(120_000, 80_000) < power(80_000, 80_000) && power(80_000, 80_000) < power(40_000, 80_000));
    }

    #[test]
    fn at_equilibrium_the_queue_holds_beta() {
        // With W = W_old and power 1 + beta / (b T), the window stays: W / power + beta = W at W = b T + beta.
        let (scheme, mut s) = subflow();
        (s.most, s.window, s.old) = (1e9, 178_750.0, 178_750.0);
        s.on_ack(&scheme, &ack(0, 0, 0, 16_250));
        for k in 1..50 {
            let window = s.on_ack(&scheme, &ack(10 * k, 13_000 * k, 162_500 * k, 16_250)).unwrap();
            assert!((window - 178_750.0).abs() < 0.01, "{window}");
        }
    }

    #[test]
    fn the_old_window_changes_once_per_round_trip() {
        let (scheme, mut s) = subflow();
        s.on_ack(&scheme, &ack(0, 0, 0, 65_000));
        s.on_ack(&scheme, &ack(10, 13_000, 162_500, 65_000));
        let old = s.old;
        s.on_ack(&scheme, &ack(11, 14_000, 175_000, 65_000));
        assert_eq!(s.old, old);
        s.on_ack(&scheme, &ack(20, 26_000, 325_000, 65_000));
        assert!(s.old < old);
    }
}
