//! A transport that sends every subflow at a fixed rate (constant bit rate), and ignores the optimizer's target.

use subak_core::keys::AMOUNT;
use subak_core::scheme::{Carries, FlowInfo, Goal, Io, Param, Params, Port, Scheme, Settles};
use subak_core::{IdVec, InputError, SubflowId};
use subak_schemes::over::{Optimizer, Part, Transport, TransportSource, Weight};
use subak_schemes::queue::Fifo;

/// The transport with its parameters.
#[derive(Debug, Clone, Copy)]
pub struct FixedRate {
    share: f64,
}

/// State of a source: the rate of each subflow, bit/s.
#[derive(Debug, Clone)]
pub struct FixedSource {
    rates_bps: IdVec<SubflowId, f64>,
}

impl Transport for FixedRate {
    const PART: Part = Part {
        name: "fixed-rate",
        about: "a fixed share of the line rate for every subflow",
        paper: "none",
        params: &[Param::number("share", 0.1, AMOUNT, "of the line rate")],
        goal: Goal::Own,
        settles: Settles::NEVER,
    };
    type Wish = Weight;
    type Header = ();
    type Ctl = ();
    type Queue<O: Optimizer<Wish = Weight>> = Fifo;
    type Source = FixedSource;
    type Hop = ();
    type Sink = ();

    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(FixedRate { share: params.within("share", 1e-6, 1.0)? })
    }
    fn queue<O: Optimizer<Wish = Weight>>(&self, port: &Port) -> Fifo {
        Fifo::new(port.buffer_bytes)
    }
    fn source(&self, flow: &FlowInfo) -> FixedSource {
        FixedSource { rates_bps: flow.paths.iter().map(|path| self.share * path.line_rate_bps).collect() }
    }
    fn hop(&self, _port: &Port) {}
    fn sink(&self, _flow: &FlowInfo) {}
}

impl TransportSource<FixedRate> for FixedSource {
    fn on_start<S: Scheme<Ctl: Carries<()>>>(&mut self, io: &mut Io<S>) {
        for (k, &rate_bps) in self.rates_bps.iter_enumerated() {
            io.pace(k, Some(rate_bps), None);
        }
    }
    fn wish<S: Scheme<Ctl: Carries<()>>>(&mut self, _io: &mut Io<S>, _k: SubflowId, _wish: Weight) {}
    fn rate_bps(&self, k: SubflowId) -> Option<f64> {
        Some(self.rates_bps[k])
    }
}
