//! A transport with telemetry. Links write the path's largest queueing delay into each data packet, and the receiver
//! echoes it. The source adapts its rate such that the delay corresponds to its weight. This is a minimal example,
//! not a published scheme.

use subak_core::keys::{AMOUNT, ValueType};
use subak_core::scheme::{
    Ack, Carries, FlowInfo, Goal, Io, PacketKind, Param, Params, PathInfo, Port, Scheme, Settles,
};
use subak_core::{IdVec, InputError, SubflowId};
use subak_schemes::over::{Optimizer, Part, Passing, Transport, TransportHop, TransportSource, Weight};
use subak_schemes::queue::Fifo;

/// The transport with its parameters.
#[derive(Debug, Clone, Copy)]
pub struct Telemetry {
    scale_ns: f64,
    gain: f64,
}

/// Telemetry of a packet: the largest queueing delay on its path, ns.
#[derive(Debug, Clone, Copy, Default)]
pub struct LargestWait(pub u32);

/// State of a source.
#[derive(Debug, Clone)]
pub struct TelemetrySource {
    transport: Telemetry,
    subflows: IdVec<SubflowId, TelemetrySubflow>,
}

#[derive(Debug, Clone, Copy)]
struct TelemetrySubflow {
    line_rate_bps: f64,
    rate_bps: f64,
    weight: f64,
}

impl Transport for Telemetry {
    const PART: Part = Part {
        name: "telemetry",
        about: "rates from the largest queueing delay of the path",
        paper: "none: after Soze, section 3",
        params: &[
            Param::number("scale", 50e-6, ValueType::Time, "a delay by which the rate for a weight falls to 37%"),
            Param::number("gain", 0.005, AMOUNT, "of a step towards the rate for the weight"),
        ],
        goal: Goal::Own,
        settles: Settles::NEVER,
    };
    type Wish = Weight;
    type Header = LargestWait;
    type Ctl = ();
    type Queue<O: Optimizer<Wish = Weight>> = Fifo;
    type Source = TelemetrySource;
    type Hop = Stamp;
    type Sink = ();

    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(Telemetry { scale_ns: params.within("scale", 1e-9, 1.0)? * 1e9, gain: params.within("gain", 0.0, 1.0)? })
    }
    fn queue<O: Optimizer<Wish = Weight>>(&self, port: &Port) -> Fifo {
        Fifo::new(port.buffer_bytes)
    }
    fn source(&self, flow: &FlowInfo) -> TelemetrySource {
        let subflow = |line_rate_bps: f64| TelemetrySubflow { line_rate_bps, rate_bps: line_rate_bps, weight: 1.0 };
        TelemetrySource { transport: *self, subflows: flow.paths.iter().map(|p| subflow(p.line_rate_bps)).collect() }
    }
    fn hop(&self, _port: &Port) -> Stamp {
        Stamp
    }
    fn sink(&self, _flow: &FlowInfo) {}
}

/// State of a link.
#[derive(Debug, Clone, Copy)]
pub struct Stamp;

impl TransportHop<Telemetry> for Stamp {
    fn on_dequeue<S: Scheme<Ctl: Carries<()>>>(&mut self, _io: &mut Io<S>, packet: Passing<LargestWait>, _port: &Port) {
        if packet.kind == PacketKind::Data {
            let wait_ns = packet.wait_ns.min(u64::from(u32::MAX)) as u32;
            packet.header.0 = packet.header.0.max(wait_ns);
        }
    }
}

impl TransportSource<Telemetry> for TelemetrySource {
    fn on_start<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>) {
        for (k, s) in self.subflows.iter_enumerated() {
            io.pace(k, Some(s.rate_bps), None);
        }
    }
    fn wish<S: Scheme<Ctl: Carries<()>>>(&mut self, _io: &mut Io<S>, k: SubflowId, Weight(weight): Weight) {
        self.subflows[k].weight = weight;
    }
    fn rate_bps(&self, k: SubflowId) -> Option<f64> {
        Some(self.subflows[k].rate_bps)
    }
    fn on_reroute<S: Scheme<Ctl: Carries<()>>>(&mut self, _io: &mut Io<S>, k: SubflowId, path: &PathInfo) {
        self.subflows[k].line_rate_bps = path.line_rate_bps;
    }
    fn on_ack<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>, ack: &Ack<S::Data>, header: &LargestWait) {
        let Telemetry { scale_ns, gain } = self.transport;
        let s = &mut self.subflows[ack.subflow];
        let target_bps = s.weight * s.line_rate_bps * libm::exp(-f64::from(header.0) / scale_ns);
        let step = libm::exp(gain * libm::log(target_bps / s.rate_bps));
        s.rate_bps = (s.rate_bps * step).clamp(1e-3 * s.line_rate_bps, s.line_rate_bps);
        io.pace(ack.subflow, Some(s.rate_bps), None);
    }
}
