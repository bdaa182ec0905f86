//! s-PERC as a transport for weights that change (PERC thesis, section 3.2; NUMFabric names it in section 8).
//!
//! A control packet carries the present weight, and the weight with which links counted its flow on the previous trip,
//! so that links without per-flow state can update their sums.

use crate::over::{Optimizer, Part, Transport, TransportHop, TransportSink, TransportSource, Weight};
use crate::perc::{PercHop, PercMessage, PercSink, PercSource};
use crate::queue::Priority;
use crate::s_perc::{SPerc, Stateless};
use subak_core::scheme::{
    Ack, Carries, Effect, FlowInfo, Goal, Hop, Io, Named, Params, PathInfo, Port, Rules, Scheme, SchemeKind, Sink,
    Source, Visit,
};
use subak_core::{IdVec, InputError, SubflowId};

/// The transport s-perc: rates assigned by links in control packets.
#[derive(Debug, Clone)]
pub struct SPercTransport {
    s_perc: SPerc,
}

/// Runs `act` with `inner`, and copies the resulting effects to `outer`; calls `paced` with each new pacing rate.
fn relay<S: Scheme<Ctl: Carries<PercMessage<Stateless>>>>(
    inner: &mut Io<SPerc>,
    outer: &mut Io<S>,
    mut paced: impl FnMut(SubflowId, Option<f64>),
    act: impl FnOnce(&mut Io<SPerc>),
) {
    inner.now_ns = outer.now_ns;
    act(inner);
    for effect in inner.take_effects() {
        match effect {
            Effect::Ctl { to, subflow, message, class, bytes } => {
                outer.ctl(to, subflow, S::Ctl::of(message), class, bytes)
            }
            Effect::Timer { timer, at_ns } => outer.timer(timer, at_ns),
            Effect::Pause { link, class, on } => outer.pause(link, class, on),
            Effect::Pace { subflow, rate_bps, window_bytes } => {
                paced(subflow, rate_bps);
                outer.pace(subflow, rate_bps, window_bytes);
            }
        }
    }
}

impl Transport for SPercTransport {
    const PART: Part = Part {
        name: "s-perc",
        about: "weighted max-min that links allot without state of a flow (s-PERC)",
        paper: "PERC thesis, section 3.2",
        params: SPerc::INFO.params,
        goal: Goal::MaxMin,
        settles: SPerc::INFO.settles,
    };
    const KIND: SchemeKind = SchemeKind::Proactive;
    type Wish = Weight;
    type Header = ();
    type Ctl = PercMessage<Stateless>;
    type Queue<O: Optimizer<Wish = Weight>> = Priority;
    type Source = SPercSource;
    type Hop = SPercHop;
    type Sink = SPercSink;

    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(SPercTransport { s_perc: SPerc::new(params)? })
    }
    fn rules(&self) -> Rules {
        Rules { per_hop: 2.0, ..self.s_perc.rules() }
    }
    fn queue<O: Optimizer<Wish = Weight>>(&self, port: &Port) -> Priority {
        Priority::new(port.buffer_bytes)
    }
    fn source(&self, flow: &FlowInfo) -> SPercSource {
        SPercSource {
            source: self.s_perc.source(flow),
            io: Io::default(),
            rate_bps: IdVec::filled(None, flow.paths.len()),
            top_bps: flow.utility.top_bps(),
        }
    }
    fn hop(&self, port: &Port) -> SPercHop {
        SPercHop { hop: self.s_perc.hop(port), io: Io::default() }
    }
    fn sink(&self, flow: &FlowInfo) -> SPercSink {
        SPercSink { sink: self.s_perc.sink(flow), io: Io::default() }
    }
}

/// Sender: that of the scheme s-PERC, with weights that change.
#[derive(Debug)]
pub struct SPercSource {
    source: PercSource<Stateless>,
    io: Io<SPerc>,
    /// Latest allocation of each subflow, bit/s.
    rate_bps: IdVec<SubflowId, Option<f64>>,
    top_bps: f64,
}

impl SPercSource {
    fn relay<S: Scheme<Ctl: Carries<PercMessage<Stateless>>>>(
        &mut self,
        outer: &mut Io<S>,
        act: impl FnOnce(&mut PercSource<Stateless>, &mut Io<SPerc>),
    ) {
        let SPercSource { source, io, rate_bps, top_bps } = self;
        let note = |k: SubflowId, rate: Option<f64>| rate_bps[k] = rate.map(|r| r.min(*top_bps));
        relay(io, outer, note, |io| act(source, io));
    }
}

impl TransportSource<SPercTransport> for SPercSource {
    fn on_start<S: Scheme<Ctl: Carries<PercMessage<Stateless>>>>(&mut self, io: &mut Io<S>) {
        self.relay(io, |source, io| source.on_start(io));
    }
    fn wish<S: Scheme<Ctl: Carries<PercMessage<Stateless>>>>(
        &mut self,
        _io: &mut Io<S>,
        k: SubflowId,
        Weight(weight): Weight,
    ) {
        self.source.set_weight(k, weight);
    }
    fn rate_bps(&self, k: SubflowId) -> Option<f64> {
        self.rate_bps[k]
    }
    fn on_ack<S: Scheme<Ctl: Carries<PercMessage<Stateless>>>>(
        &mut self,
        io: &mut Io<S>,
        ack: &Ack<S::Data>,
        _header: &(),
    ) {
        self.source.heard(ack.subflow, io.now_ns);
    }
    fn on_ctl<S: Scheme<Ctl: Carries<PercMessage<Stateless>>>>(
        &mut self,
        io: &mut Io<S>,
        k: SubflowId,
        message: PercMessage<Stateless>,
    ) {
        self.relay(io, |source, io| source.on_ctl(io, k, message));
    }
    fn on_timer<S: Scheme<Ctl: Carries<PercMessage<Stateless>>>>(&mut self, io: &mut Io<S>, timer: u32) {
        self.relay(io, |source, io| source.on_timer(io, timer));
    }
    fn on_leave<S: Scheme<Ctl: Carries<PercMessage<Stateless>>>>(&mut self, io: &mut Io<S>, k: SubflowId) {
        self.relay(io, |source, io| source.on_leave(io, k));
    }
    fn on_left<S: Scheme<Ctl: Carries<PercMessage<Stateless>>>>(
        &mut self,
        io: &mut Io<S>,
        k: SubflowId,
        message: PercMessage<Stateless>,
        bytes: u32,
    ) {
        self.relay(io, |source, io| source.on_left(io, k, message, bytes));
    }
    fn on_reroute<S: Scheme<Ctl: Carries<PercMessage<Stateless>>>>(
        &mut self,
        io: &mut Io<S>,
        k: SubflowId,
        path: &PathInfo,
    ) {
        self.relay(io, |source, io| source.on_reroute(io, k, path, &[]));
    }
    fn on_finish<S: Scheme<Ctl: Carries<PercMessage<Stateless>>>>(&mut self, io: &mut Io<S>) {
        self.relay(io, |source, io| source.on_finish(io));
    }
}

/// State at a link: that of the scheme s-PERC.
#[derive(Debug)]
pub struct SPercHop {
    hop: PercHop<Stateless>,
    io: Io<SPerc>,
}

impl TransportHop<SPercTransport> for SPercHop {
    fn on_capacity(&mut self, port: &Port) {
        self.hop.on_capacity(port);
    }
    fn on_topology(&mut self, port: &Port) {
        self.hop.on_topology(port);
    }
    fn on_start<S: Scheme<Ctl: Carries<PercMessage<Stateless>>>>(&mut self, io: &mut Io<S>) {
        relay(&mut self.io, io, |_, _| (), |io| self.hop.on_start(io));
    }
    fn on_ctl<S: Scheme<Ctl: Carries<PercMessage<Stateless>>>>(
        &mut self,
        io: &mut Io<S>,
        message: &mut PercMessage<Stateless>,
        visit: Visit,
        port: &Port,
    ) {
        relay(&mut self.io, io, |_, _| (), |io| self.hop.on_ctl(io, message, visit, port));
    }
    fn on_timer<S: Scheme<Ctl: Carries<PercMessage<Stateless>>>>(&mut self, io: &mut Io<S>, timer: u32, port: &Port) {
        relay(&mut self.io, io, |_, _| (), |io| self.hop.on_timer(io, timer, port));
    }
}

/// Receiver: that of the scheme s-PERC.
#[derive(Debug)]
pub struct SPercSink {
    sink: PercSink,
    io: Io<SPerc>,
}

impl TransportSink<SPercTransport> for SPercSink {
    fn on_ctl<S: Scheme<Ctl: Carries<PercMessage<Stateless>>>>(
        &mut self,
        io: &mut Io<S>,
        k: SubflowId,
        message: PercMessage<Stateless>,
        bytes: u32,
    ) {
        relay(&mut self.io, io, |_, _| (), |io| self.sink.on_ctl(io, k, message, bytes));
    }
}
