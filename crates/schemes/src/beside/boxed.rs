//! Source and sink of a flow without the type of its scheme.

use super::{Beside, SharedHeader, SharedMessage};
use std::sync::Arc;
use subak_core::scheme::{Ack, Io, Loss, Packet, PathInfo, Reply, Sink, Source};
use subak_core::{LinkId, Ns, SubflowId, Utility};

/// The sender of a flow of one of several schemes.
pub struct BoxedSource(pub(super) Box<dyn Source<Beside>>);

/// The receiver of a flow of one of several schemes.
pub struct BoxedSink(pub(super) Box<dyn Sink<Beside>>);

impl Source<Beside> for BoxedSource {
    fn on_start(&mut self, io: &mut Io<Beside>) {
        self.0.on_start(io);
    }
    fn stamp(&mut self, now_ns: Ns, packet: &mut Packet<Beside>, remaining_bytes: u64) {
        self.0.stamp(now_ns, packet, remaining_bytes);
    }
    fn on_ack(&mut self, io: &mut Io<Beside>, ack: &Ack<SharedHeader>) {
        self.0.on_ack(io, ack);
    }
    fn on_ctl(&mut self, io: &mut Io<Beside>, subflow: SubflowId, message: SharedMessage) {
        self.0.on_ctl(io, subflow, message);
    }
    fn on_timer(&mut self, io: &mut Io<Beside>, timer: u32) {
        self.0.on_timer(io, timer);
    }
    fn on_loss(&mut self, io: &mut Io<Beside>, loss: &Loss) {
        self.0.on_loss(io, loss);
    }
    fn on_weight(&mut self, io: &mut Io<Beside>, weight: f64, utility: &Arc<Utility>) {
        self.0.on_weight(io, weight, utility);
    }
    fn on_leave(&mut self, io: &mut Io<Beside>, subflow: SubflowId) {
        self.0.on_leave(io, subflow);
    }
    fn on_left(&mut self, io: &mut Io<Beside>, subflow: SubflowId, message: SharedMessage, bytes: u32) {
        self.0.on_left(io, subflow, message, bytes);
    }
    fn on_reroute(&mut self, io: &mut Io<Beside>, subflow: SubflowId, path: &PathInfo, links: &[LinkId]) {
        self.0.on_reroute(io, subflow, path, links);
    }
    fn on_finish(&mut self, io: &mut Io<Beside>) {
        self.0.on_finish(io);
    }
}

impl Sink<Beside> for BoxedSink {
    fn on_data(&mut self, io: &mut Io<Beside>, packet: &Packet<Beside>) -> Reply<SharedHeader> {
        self.0.on_data(io, packet)
    }
    fn on_ctl(&mut self, io: &mut Io<Beside>, subflow: SubflowId, message: SharedMessage, bytes: u32) {
        self.0.on_ctl(io, subflow, message, bytes);
    }
    fn on_timer(&mut self, io: &mut Io<Beside>, timer: u32) {
        self.0.on_timer(io, timer);
    }
}
