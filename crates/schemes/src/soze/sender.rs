//! Soze's sender: algorithm 1, applied once per RTT or at each packet.

use super::rate::{Heard, Limits, SILENT_RTTS, SenderRate};
use super::{DelayUnit, MaxDelay, Often, SenderState, SozeLaw};
use crate::over::{Transport, TransportSource, Weight};
use subak_core::scheme::{Ack, Carries, FlowInfo, Io, Loss, LossKind, PathInfo, Scheme};
use subak_core::{IdVec, Ns, SubflowId};

/// Time constant of the average of a subflow's rate, RTTs.
const HOLD_RTTS: f64 = 100.0;

/// Number of RTTs in which a flow whose rate just fell to the minimum sends a packet. The RTT then contains a queue that
/// is about to drain: a longer silence would leave the link empty.
const FIRST_SILENT_RTTS: u32 = 2;

/// Sender of a flow.
#[derive(Debug, Clone)]
pub struct SozeSender {
    law: SozeLaw,
    unit: DelayUnit,
    /// k + p, the delay of the smallest expected rate/weight, ns.
    longest_ns: f64,
    /// Time constant of [`SozeSubflow::held_bps`], ns.
    hold_ns: f64,
    mss_bytes: u32,
    mtu_bytes: u32,
    top_bps: f64,
    subflows: IdVec<SubflowId, SozeSubflow>,
}

#[derive(Debug, Clone, Copy)]
struct SozeSubflow {
    base_rtt_ns: Ns,
    limits: Limits,
    /// Latest measured RTT, ns.
    rtt_ns: Ns,
    /// Number of measured RTTs in which the minimum rate sends a packet, if that is longer than in [`SILENT_RTTS`] base
    /// RTTs: it doubles each RTT at the minimum rate, and halves each RTT above it.
    silent_rtts: u32,
    /// Time of the latest change of `silent_rtts`, ns.
    doubled_ns: Ns,
    rate: SenderRate,
    /// Average rate over the last RTTs, bit/s, for the optimizer of a flow with several subflows. The rate itself
    /// follows the weight immediately, so that a weight computed from it would reinforce itself.
    held_bps: f64,
    updated_ns: Ns,
    started: bool,
}

impl SozeSubflow {
    /// The RTT of which the minimum rate sends a packet in [`SILENT_RTTS`], ns.
    fn silent_rtt_ns(&self, exact: bool) -> Ns {
        if exact {
            self.base_rtt_ns.max(self.rtt_ns * u64::from(self.silent_rtts) / u64::from(SILENT_RTTS))
        } else {
            self.rtt_ns
        }
    }

    /// Doubles the silence at the minimum rate if the rate is still there, and halves it otherwise, once per RTT.
    fn adapt_silence(&mut self, now_ns: Ns) {
        if now_ns - self.doubled_ns < self.rtt_ns {
            return;
        }
        self.doubled_ns = now_ns;
        let next = if self.limits.is_least(self.rate.bps()) { 2 * self.silent_rtts } else { self.silent_rtts / 2 };
        self.silent_rtts = next.clamp(FIRST_SILENT_RTTS, SILENT_RTTS);
    }
}

impl SozeSender {
    /// Creates the sender of `flow`.
    pub fn new(law: SozeLaw, flow: &FlowInfo) -> Self {
        let (p_ns, top_bps) = (law.p_ns(flow.rtt_ns), flow.utility.top_bps());
        let subflow = |path: &PathInfo| {
            let limits = Limits {
                most_bps: path.line_rate_bps.min(top_bps),
                packet_bits: 8 * u64::from(flow.mtu_bytes),
                rtt_ns: path.base_rtt_ns.max(1),
            };
            let rate = SenderRate::new(&law, p_ns, flow.line_rate_bps, &limits);
            SozeSubflow {
                base_rtt_ns: path.base_rtt_ns.max(1),
                limits,
                rtt_ns: limits.rtt_ns,
                silent_rtts: if law.exact { FIRST_SILENT_RTTS } else { SILENT_RTTS },
                doubled_ns: 0,
                rate,
                held_bps: 0.0,
                updated_ns: 0,
                started: false,
            }
        };
        SozeSender {
            law,
            unit: law.unit(flow.rtt_ns),
            longest_ns: law.k_ns + p_ns,
            hold_ns: HOLD_RTTS * flow.rtt_ns.max(1) as f64,
            mss_bytes: flow.mss_bytes,
            mtu_bytes: flow.mtu_bytes,
            top_bps,
            subflows: flow.paths.iter().map(subflow).collect(),
        }
    }

    fn pace<S: Scheme>(&self, io: &mut Io<S>, k: SubflowId) {
        let s = &self.subflows[k];
        let (bps, rtt_ns) = (s.rate.bps(), s.rtt_ns as f64);
        let payload = f64::from(self.mss_bytes) / f64::from(self.mtu_bytes) / 8e9;
        let mss = u64::from(self.mss_bytes);
        match self.law.state {
            SenderState::Window | SenderState::WindowOfRate => {
                io.pace(k, None, Some(((bps * rtt_ns * payload) as u64).max(mss)))
            }
            // The window is twice the bytes in flight at the longest delay: it only bounds the bytes in flight on a
            // path without ACKs.
            SenderState::Rate => {
                let window = 2.0 * bps * (rtt_ns + self.longest_ns) * payload;
                io.pace(k, Some(bps), Some(window as u64 + 2 * mss));
            }
        }
    }
}

impl<F: Transport<Wish = Weight, Header = MaxDelay, Ctl = (), Source = SozeSender>> TransportSource<F> for SozeSender {
    fn on_start<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>) {
        for k in self.subflows.ids() {
            let s = &mut self.subflows[k];
            s.rate.start(&s.limits);
            (s.updated_ns, s.started, s.held_bps) = (io.now_ns, true, s.rate.bps());
            self.pace(io, k);
        }
    }

    #[inline]
    fn wish<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>, k: SubflowId, Weight(weight): Weight) {
        let s = &mut self.subflows[k];
        let at_once = self.law.exact && s.started;
        if s.rate.weigh(weight, at_once, &s.limits) && at_once {
            self.pace(io, k);
        }
    }

    fn rate_bps(&self, k: SubflowId) -> Option<f64> {
        let s = &self.subflows[k];
        Some(if self.subflows.len() == 1 { s.rate.bps() } else { s.held_bps })
    }

    fn on_reroute<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>, k: SubflowId, path: &PathInfo) {
        let s = &mut self.subflows[k];
        s.base_rtt_ns = path.base_rtt_ns.max(1);
        s.limits = Limits { most_bps: path.line_rate_bps.min(self.top_bps), rtt_ns: s.base_rtt_ns, ..s.limits };
        s.rtt_ns = s.base_rtt_ns;
        s.rate.bound(&s.limits);
        self.pace(io, k);
    }

    #[inline]
    fn on_ack<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>, ack: &Ack<S::Data>, header: &MaxDelay) {
        let s = &mut self.subflows[ack.subflow];
        let before_ns = std::mem::replace(&mut s.rtt_ns, ack.rtt_ns.max(1));
        s.limits.rtt_ns = s.silent_rtt_ns(self.law.exact);
        if self.law.state == SenderState::Window {
            s.rate.keep_window(before_ns, s.rtt_ns);
        }
        let rtt_ns = if self.law.exact { s.base_rtt_ns } else { s.rtt_ns };
        let passed_ns = io.now_ns - s.updated_ns;
        if self.law.often == Often::Rtt && passed_ns <= rtt_ns {
            return;
        }
        let heard = Heard { delay_ns: self.unit.ns(*header), passed_ns, rtt_ns };
        s.rate.hear(heard, self.law.often != Often::Packet, &s.limits);
        s.updated_ns = io.now_ns;
        if self.law.exact {
            s.adapt_silence(io.now_ns);
        }
        let newer = -libm::expm1(-(passed_ns as f64) / self.hold_ns);
        s.held_bps += newer * (s.rate.bps() - s.held_bps);
        self.pace(io, ack.subflow);
    }

    fn on_loss<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>, loss: &Loss) {
        if loss.kind == LossKind::Timeout {
            let s = &mut self.subflows[loss.subflow];
            s.rate.time_out(&s.limits);
            self.pace(io, loss.subflow);
        }
    }
}
