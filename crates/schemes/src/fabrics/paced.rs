//! A fabric that sends at the very rate wished, through plain queues, with a bound on what is under way: what DGD and
//! RCP* run on (NUMFabric, section 6, "Note on the implementation of DGD and RCP*").

use crate::over::{Fabric, FabricSource, Optimizer, Part, Rate};
use crate::queue::Fifo;
use subak_core::keys::AMOUNT;
use subak_core::scheme::{Carries, FlowInfo, Goal, Io, Param, Params, Port, Scheme, Settles};
use subak_core::{Fault, IdVec, Ns, SubflowId};

/// `params.window`.
const WINDOW: Param = Param::number(
    "window",
    2.0,
    AMOUNT,
    "most bytes under way, in products of the path's slowest link and its round trip",
);

/// The fabric.
#[derive(Debug, Clone, Copy)]
pub struct Paced {
    window: f64,
}

/// Its sender's side.
#[derive(Debug, Clone)]
pub struct PacedSource {
    mss_bytes: u32,
    subflows: IdVec<SubflowId, Subflow>,
}

#[derive(Debug, Clone, Copy)]
struct Subflow {
    window_bytes: u64,
    rate_bps: f64,
    started: bool,
}

impl Fabric for Paced {
    const PART: Part = Part {
        name: "paced",
        about: "sources that send at the rate wished, through plain queues",
        paper: "NUMFabric, section 6, \"Note on the implementation of DGD and RCP*\"",
        params: &[WINDOW],
        goal: Goal::Any,
        settles: Settles::AT_ONCE,
    };
    type Wish = Rate;
    type Header = ();
    type Ctl = ();
    type Queue<O: Optimizer<Wish = Rate>> = Fifo;
    type Source = PacedSource;
    type Hop = ();
    type Sink = ();

    fn new(params: &Params) -> Result<Self, Fault> {
        Ok(Paced { window: params.within("window", 0.01, 1e6)? })
    }
    fn queue<O: Optimizer<Wish = Rate>>(&self, port: &Port) -> Fifo {
        Fifo::new(port.buffer_bytes)
    }
    fn source(&self, flow: &FlowInfo) -> PacedSource {
        let window = |slowest_bps: f64, rtt_ns: Ns| {
            let packets = self.window * slowest_bps * rtt_ns as f64 / 8e9 / f64::from(flow.mtu_bytes);
            packets.ceil().max(1.0) as u64 * u64::from(flow.mss_bytes)
        };
        let subflow = |p: &subak_core::scheme::PathInfo| Subflow {
            window_bytes: window(p.min_capacity_bps, p.base_rtt_ns),
            rate_bps: p.min_capacity_bps,
            started: false,
        };
        PacedSource { mss_bytes: flow.mss_bytes, subflows: flow.paths.iter().map(subflow).collect() }
    }
    fn hop(&self, _port: &Port) {}
    fn sink(&self, _flow: &FlowInfo) {}
}

impl FabricSource<Paced> for PacedSource {
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

    fn rate_bps(&self, k: SubflowId) -> Option<f64> {
        Some(self.subflows[k].rate_bps)
    }
}
