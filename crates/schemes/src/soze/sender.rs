//! The sender's side: algorithm 1, once a round trip or at each packet.

use super::{MOST_RATIO, MaxDelay, Target, Unit, Update};
use crate::over::{Fabric, FabricSource, Weight};
use subak_core::Ns;
use subak_core::scheme::{Ack, Carries, FlowInfo, Io, Loss, LossKind, PathInfo, Scheme};

/// How a rate becomes packets (section 3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Packets are paced.
    Rate,
    /// A window of the rate times the measured round trip.
    Window,
}

/// How often the rate is updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Often {
    /// At each acknowledgement, by its share of a round trip (section 3.3).
    Packet,
    /// Once a measured round trip (algorithm 1).
    Rtt,
}

/// How senders go from a delay to a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Law {
    /// alpha is the line rate over this weight.
    pub smallest_weight: f64,
    /// beta is alpha over this number.
    pub unit_flows: f64,
    /// p, ns; 0: `integral_rtts` of ln(alpha / beta) round trips.
    pub p_ns: f64,
    /// p over ln(alpha / beta), in the network's longest round trips.
    pub integral_rtts: f64,
    /// k, ns.
    pub k_ns: f64,
    /// m.
    pub m: f64,
    /// Rate or window.
    pub control: Control,
    /// How often.
    pub often: Often,
    /// The sum of weights that a flow expects when it starts.
    pub start_weights: f64,
    /// Whether the path's idle round trip counts time, the exponent is that of the exact integral, delays end at k + p, the least
    /// rate is a share of beta, and a new weight changes the rate at once. Otherwise as the paper says it.
    pub exact: bool,
}

impl Law {
    /// p in a network whose longest round trip is `rtt_ns`, ns.
    pub fn p_ns(&self, rtt_ns: Ns) -> f64 {
        if self.p_ns > 0.0 {
            return self.p_ns;
        }
        self.integral_rtts * libm::log(self.unit_flows) * rtt_ns as f64
    }

    /// The delay that stands for the rate-per-weight that flows start with, ns.
    pub fn start_delay_ns(&self, rtt_ns: Ns) -> f64 {
        let span = libm::log(self.unit_flows);
        let start = libm::log((self.start_weights / self.smallest_weight).max(1.0));
        self.k_ns + self.p_ns(rtt_ns) * start / span
    }

    /// The target function of a flow at a line of that rate.
    pub fn target(&self, p_ns: f64, line_rate_bps: f64) -> Target {
        let alpha_bps = line_rate_bps / self.smallest_weight;
        Target { alpha_bps, beta_bps: alpha_bps / self.unit_flows, p_ns, k_ns: self.k_ns }
    }

    /// The update of such a flow.
    pub fn update(&self, target: Target) -> Update {
        Update { target, m: self.m, exact: self.exact }
    }

    /// The field's unit in such a network.
    pub fn unit(&self, rtt_ns: Ns) -> Unit {
        Unit::of(self.k_ns + self.p_ns(rtt_ns))
    }
}

/// A sender.
#[derive(Debug, Clone)]
pub struct Sender {
    law: Law,
    unit: Unit,
    p_ns: f64,
    mss_bytes: u32,
    mtu_bytes: u32,
    top_bps: f64,
    subflows: Vec<Subflow>,
}

#[derive(Debug, Clone, Copy)]
struct Subflow {
    path: PathInfo,
    target: Target,
    weight: f64,
    rate_bps: f64,
    /// The last round trip measured, ns.
    rtt_ns: f64,
    updated_ns: Ns,
    started: bool,
}

/// A flow that sent less than a packet in so many round trips would hear of nothing.
const SILENT_RTTS: f64 = 32.0;

impl Sender {
    /// The sender of `flow`.
    pub fn new(law: Law, flow: &FlowInfo) -> Self {
        let p_ns = law.p_ns(flow.rtt_ns);
        let subflow = |path: &PathInfo| Subflow {
            path: *path,
            target: target(&law, p_ns, path),
            weight: 1.0,
            rate_bps: 0.0,
            rtt_ns: path.base_rtt_ns as f64,
            updated_ns: 0,
            started: false,
        };
        Sender {
            law,
            unit: law.unit(flow.rtt_ns),
            p_ns,
            mss_bytes: flow.mss_bytes,
            mtu_bytes: flow.mtu_bytes,
            top_bps: flow.utility.top_bps(),
            subflows: flow.paths.iter().map(subflow).collect(),
        }
    }

    fn bounded(&self, s: &Subflow, rate_bps: f64) -> f64 {
        let packet_bps = f64::from(self.mtu_bytes) * 8e9 / s.rtt_ns;
        let least = match self.law.exact {
            true => s.target.least_bps(s.weight).max(packet_bps / SILENT_RTTS),
            false => packet_bps,
        };
        let most = s.path.line_rate_bps.min(self.top_bps);
        rate_bps.clamp(least.min(most), most)
    }

    fn pace<S: Scheme>(&self, io: &mut Io<S>, k: u8) {
        let s = &self.subflows[usize::from(k)];
        let payload = f64::from(self.mss_bytes) / f64::from(self.mtu_bytes) / 8e9;
        let mss = u64::from(self.mss_bytes);
        match self.law.control {
            Control::Window => {
                let window = s.rate_bps * s.rtt_ns * payload;
                io.pace(k, None, Some((window as u64).max(mss)));
            }
            // What is under way is bounded by twice what the longest delay holds, for paths that answer no more.
            Control::Rate => {
                let window = 2.0 * s.rate_bps * (s.rtt_ns + s.target.k_ns + s.target.p_ns) * payload;
                io.pace(k, Some(s.rate_bps), Some(window as u64 + 2 * mss));
            }
        }
    }
}

fn target(law: &Law, p_ns: f64, path: &PathInfo) -> Target {
    law.target(p_ns, path.line_rate_bps)
}

impl<F: Fabric<Wish = Weight, Header = MaxDelay, Ctl = (), Source = Sender>> FabricSource<F> for Sender {
    fn on_start<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>) {
        for k in 0..self.subflows.len() {
            let s = self.subflows[k];
            let first = self.bounded(&s, s.path.line_rate_bps * s.weight / self.law.start_weights);
            let s = &mut self.subflows[k];
            (s.rate_bps, s.updated_ns, s.started) = (first, io.now_ns, true);
            self.pace(io, k as u8);
        }
    }

    #[inline]
    fn wish<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>, k: u8, Weight(weight): Weight) {
        let s = &mut self.subflows[usize::from(k)];
        let before = std::mem::replace(&mut s.weight, weight);
        if before == weight || !self.law.exact || !s.started {
            return;
        }
        let s = *s;
        self.subflows[usize::from(k)].rate_bps = self.bounded(&s, s.rate_bps * weight / before);
        self.pace(io, k);
    }

    fn rate_bps(&self, k: u8) -> Option<f64> {
        Some(self.subflows[usize::from(k)].rate_bps)
    }

    fn on_reroute<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>, k: u8, path: &PathInfo) {
        let (law, p_ns) = (self.law, self.p_ns);
        let s = &mut self.subflows[usize::from(k)];
        (s.path, s.target, s.rtt_ns) = (*path, target(&law, p_ns, path), path.base_rtt_ns as f64);
        let s = self.subflows[usize::from(k)];
        self.subflows[usize::from(k)].rate_bps = self.bounded(&s, s.rate_bps);
        self.pace(io, k);
    }

    #[inline]
    fn on_ack<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>, ack: &Ack<S::Data>, header: &MaxDelay) {
        let k = usize::from(ack.subflow);
        self.subflows[k].rtt_ns = ack.rtt_ns.max(1) as f64;
        let s = self.subflows[k];
        let rtt_ns = if self.law.exact { s.path.base_rtt_ns as f64 } else { s.rtt_ns };
        let rtts = (io.now_ns - s.updated_ns) as f64 / rtt_ns;
        let rtts = match self.law.often {
            Often::Rtt if rtts <= 1.0 => return,
            Often::Rtt => 1.0,
            Often::Packet => rtts,
        };
        let update = self.law.update(s.target);
        let rate_bps = self.bounded(&s, update.next_bps(s.rate_bps, s.weight, self.unit.ns(*header), rtts));
        let s = &mut self.subflows[k];
        (s.rate_bps, s.updated_ns) = (rate_bps, io.now_ns);
        self.pace(io, ack.subflow);
    }

    fn on_loss<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>, loss: &Loss) {
        // A dropped packet was in a full queue. Where none comes back, that queue is all there is to go by.
        if loss.kind == LossKind::Timeout {
            let s = self.subflows[usize::from(loss.subflow)];
            self.subflows[usize::from(loss.subflow)].rate_bps = self.bounded(&s, s.rate_bps / MOST_RATIO);
            self.pace(io, loss.subflow);
        }
    }
}
