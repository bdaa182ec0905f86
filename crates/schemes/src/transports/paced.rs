//! A transport that sends exactly at the target rates, through drop-tail FIFOs or fair queues, with a bound on the bytes in flight. It is
//! the transport of DGD and RCP* (NUMFabric, section 6, "Note on the implementation of DGD and RCP*").

use crate::headers::{self, ACK_HEADER, HEADER};
use crate::over::{Optimizer, Part, Rate, Transport, TransportSource};
use crate::queue::{FairOrFifo, Fifo, QuantumUnit, RoundRobin, Weighed};
use subak_core::keys::AMOUNT;
use subak_core::scheme::{
    Ack, Carries, FlowInfo, Goal, Headers, Io, Param, Params, PathInfo, Port, Rules, Scheme, Settles,
};
use subak_core::{IdVec, InputError, Ns, SubflowId};

/// Parameter `window`: maximum bytes in flight, in BDPs of the path.
const WINDOW: Param = Param::number("window", 2.0, AMOUNT, "bytes in flight, at most, in BDPs of the path");

/// Parameter `queue`: the authors of NUMFabric ran DGD and RCP* over fair queues.
const QUEUE: Param =
    Param::choice("queue", &["fifo", "fair"], "queue of a link: drop-tail FIFO, or deficit round robin over the flows");

/// The transport paced: sends at the target rates.
#[derive(Debug, Clone, Copy)]
pub struct Paced {
    window: f64,
    is_fair: bool,
    headers: Headers,
}

impl Weighed for () {
    fn weight(&self) -> f64 {
        1.0
    }
}

/// Sender: paces each subflow at its target rate.
#[derive(Debug, Clone)]
pub struct PacedSource {
    window: f64,
    mtu_bytes: u32,
    mss_bytes: u32,
    subflows: IdVec<SubflowId, PacedSubflow>,
}

#[derive(Debug, Clone, Copy)]
struct PacedSubflow {
    window_bytes: u64,
    rate_bps: f64,
    /// RTT of the latest ACK, ns; 0 before the first.
    rtt_ns: Ns,
    started: bool,
}

impl Transport for Paced {
    const PART: Part = Part {
        name: "paced",
        about: "sources that send at the rate wished, through plain or fair queues",
        paper: "NUMFabric, section 6, \"Note on the implementation of DGD and RCP*\"",
        params: &[WINDOW, QUEUE, HEADER, ACK_HEADER],
        goal: Goal::Any,
        settles: Settles::AT_ONCE,
    };
    type Wish = Rate;
    type Header = ();
    type Ctl = ();
    type Queue<O: Optimizer<Wish = Rate>> = FairOrFifo<RoundRobin>;
    type Source = PacedSource;
    type Hop = ();
    type Sink = ();

    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(Paced {
            window: params.within("window", 0.01, 1e6)?,
            is_fair: params.word("queue") == "fair",
            headers: headers::read(params)?,
        })
    }
    fn rules(&self) -> Rules {
        Rules { headers: self.headers, per_hop: 1.3, ..Rules::default() }
    }
    fn queue<O: Optimizer<Wish = Rate>>(&self, port: &Port) -> FairOrFifo<RoundRobin> {
        if self.is_fair {
            FairOrFifo::Fair(RoundRobin::new(QuantumUnit::Bytes, 0, port.mtu_bytes, port.buffer_bytes))
        } else {
            FairOrFifo::Fifo(Fifo::new(port.buffer_bytes))
        }
    }
    fn source(&self, flow: &FlowInfo) -> PacedSource {
        let (mtu_bytes, mss_bytes) = (flow.mtu_bytes, flow.mss_bytes);
        let mut source = PacedSource { window: self.window, mtu_bytes, mss_bytes, subflows: IdVec::new() };
        for path in &flow.paths {
            let window_bytes = source.window_bytes(path);
            source.subflows.push(PacedSubflow {
                window_bytes,
                rate_bps: path.min_capacity_bps,
                rtt_ns: 0,
                started: false,
            });
        }
        source
    }
    fn hop(&self, _port: &Port) {}
    fn sink(&self, _flow: &FlowInfo) {}
}

impl PacedSource {
    fn window_bytes(&self, path: &PathInfo) -> u64 {
        let bytes = self.window * path.min_capacity_bps * path.base_rtt_ns as f64 / 8e9;
        (bytes / f64::from(self.mtu_bytes)).ceil().max(1.0) as u64 * u64::from(self.mss_bytes)
    }
}

impl TransportSource<Paced> for PacedSource {
    fn on_start<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>) {
        for (k, s) in self.subflows.iter_enumerated_mut() {
            s.started = true;
            io.pace(k, Some(s.rate_bps), Some(s.window_bytes.max(u64::from(self.mss_bytes))));
        }
    }

    #[inline]
    fn wish<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>, k: SubflowId, Rate(rate_bps): Rate) {
        let s = &mut self.subflows[k];
        s.rate_bps = rate_bps;
        if s.started {
            io.pace(k, Some(rate_bps), Some(s.window_bytes));
        }
    }

    #[inline]
    fn on_ack<S: Scheme<Ctl: Carries<()>>>(&mut self, _io: &mut Io<S>, ack: &Ack<S::Data>, _header: &()) {
        self.subflows[ack.subflow].rtt_ns = ack.rtt_ns;
    }

    fn on_reroute<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>, k: SubflowId, path: &PathInfo) {
        self.subflows[k].window_bytes = self.window_bytes(path);
        let wish = Rate(self.subflows[k].rate_bps);
        self.wish(io, k, wish);
    }

    fn rate_bps(&self, k: SubflowId) -> Option<f64> {
        let s = &self.subflows[k];
        let wire_bits = 8.0 * s.window_bytes as f64 * f64::from(self.mtu_bytes) / f64::from(self.mss_bytes);
        Some(s.rate_bps.min(wire_bits * 1e9 / s.rtt_ns.max(1) as f64))
    }
}
