//! DCTCP as a user would implement it: only through the interface for schemes supplied by the user.

use subak_core::scheme::{Ack, FlowInfo, Io, Loss, LossKind, Packet, Recovery, Rules, Source};
use subak_core::{IdVec, Ns, SubflowId};
use subak_schemes::foreign::{Facts, Faults, Foreign, Header, Makes, Marking, QueueLength};

const G: f64 = 1.0 / 16.0;

pub struct BoxedDctcp {
    facts: Facts,
    faults: Faults,
}

impl BoxedDctcp {
    pub fn new(faults: Faults) -> Self {
        let recovery = Recovery { rto_min_ns: 1_000_000, ..Recovery::default() };
        let marks = Some(Marking::step("k", QueueLength::Packets(65.0)));
        BoxedDctcp { facts: Facts { rules: Rules { recovery, ..Rules::default() }, marks, ..Facts::default() }, faults }
    }
}

impl<D: Header> Makes<D> for BoxedDctcp {
    fn facts(&self) -> &Facts {
        &self.facts
    }
    fn faults(&self) -> &Faults {
        &self.faults
    }
    fn source(&self, flow: &FlowInfo) -> Box<dyn Source<Foreign<D>>> {
        let mss = f64::from(flow.mss_bytes);
        let subflow = Subflow { mss, cwnd: 10.0 * mss, ssthresh: f64::INFINITY, alpha: 1.0, ..Subflow::default() };
        Box::new(Sender(IdVec::filled(subflow, flow.paths.len())))
    }
}

struct Sender(IdVec<SubflowId, Subflow>);

#[derive(Clone, Default)]
struct Subflow {
    mss: f64,
    cwnd: f64,
    ssthresh: f64,
    recover: u32,
    recovering: bool,
    alpha: f64,
    acked: u64,
    marked: u64,
    observe_until: u32,
}

impl Subflow {
    fn cut(&mut self, factor: f64, next_segment: u32) {
        self.ssthresh = (self.cwnd * factor).max(2.0 * self.mss);
        self.cwnd = self.ssthresh;
        self.recover = next_segment;
    }

    fn grow<D>(&mut self, ack: &Ack<D>) {
        if ack.segment >= self.recover {
            self.recovering = false;
        }
        let used = (ack.in_flight_bytes + ack.acked_bytes) as f64 + self.mss >= self.cwnd;
        if used && !self.recovering {
            let acked = ack.acked_bytes as f64;
            self.cwnd += if self.cwnd < self.ssthresh { acked } else { self.mss * acked / self.cwnd };
        }
    }
}

impl<D: Header> Source<Foreign<D>> for Sender {
    fn on_start(&mut self, io: &mut Io<Foreign<D>>) {
        for (subflow, s) in self.0.iter_enumerated() {
            io.pace(subflow, None, Some(s.cwnd as u64));
        }
    }
    fn stamp(&mut self, _now_ns: Ns, _packet: &mut Packet<Foreign<D>>, _remaining_bytes: u64) {}
    fn on_ack(&mut self, io: &mut Io<Foreign<D>>, ack: &Ack<D>) {
        let s = &mut self.0[ack.subflow];
        s.acked += ack.acked_bytes;
        if ack.ecn {
            s.marked += ack.acked_bytes;
            if ack.segment >= s.recover {
                s.cut(1.0 - s.alpha / 2.0, ack.next_segment);
            }
        } else {
            s.grow(ack);
        }
        if ack.segment >= s.observe_until && s.acked > 0 {
            s.alpha = (1.0 - G) * s.alpha + G * (s.marked as f64 / s.acked as f64);
            (s.acked, s.marked, s.observe_until) = (0, 0, ack.next_segment);
        }
        io.pace(ack.subflow, None, Some(s.cwnd as u64));
    }
    fn on_loss(&mut self, io: &mut Io<Foreign<D>>, loss: &Loss) {
        let s = &mut self.0[loss.subflow];
        if loss.segment >= s.recover {
            s.cut(0.5, loss.next_segment);
            s.recovering = loss.kind != LossKind::Timeout;
        }
        if loss.kind == LossKind::Timeout {
            s.cwnd = loss.in_flight_bytes as f64 + s.mss;
            s.recovering = false;
        }
        io.pace(loss.subflow, None, Some(s.cwnd as u64));
    }
}
