//! The ends' side of the family: one control packet a subflow is under way at any time.

use super::{Message, Perc, Rule, Settings, wire_bytes};
use subak_core::Ns;
use subak_core::scheme::{Class, FlowInfo, Io, PathInfo, Sink, Source, To};

const SEND: u32 = 0;
const WATCH: u32 = 1;
const TIMERS: u32 = 2;

/// The sender of a flow. Subflows are flows of their own with equal parts of the weight: the family does not pool.
#[derive(Debug)]
pub struct PercSource<R: Rule> {
    rule: R,
    rto_ns: Ns,
    mtu_bytes: u32,
    subflows: Vec<Subflow<R>>,
    finishing: bool,
}

#[derive(Debug)]
struct Subflow<R: Rule> {
    path: PathInfo,
    weight: f64,
    serial: u32,
    sent_ns: Ns,
    tx_ns: Ns,
    place: Place<R>,
    /// Whether no packet has come back yet.
    fresh: bool,
}

/// Where a subflow's packet is.
#[derive(Debug)]
enum Place<R: Rule> {
    /// In the network.
    Out,
    /// Here, until it may leave again.
    Held(Message<R>),
    /// Nowhere: the flow has left.
    Gone,
}

impl<R: Rule> PercSource<R> {
    pub(super) fn new(rule: R, settings: Settings, flow: &FlowInfo) -> Self {
        let weight = flow.weight / flow.paths.len().max(1) as f64;
        let subflow = |path: &PathInfo| Subflow {
            path: *path,
            weight,
            serial: 0,
            sent_ns: 0,
            tx_ns: 0,
            place: Place::Gone,
            fresh: true,
        };
        PercSource {
            rule,
            rto_ns: settings.rto_ns,
            mtu_bytes: flow.mtu_bytes,
            subflows: flow.paths.iter().map(subflow).collect(),
            finishing: false,
        }
    }

    /// Subflow `k` has this weight from its next trip on.
    pub fn set_weight(&mut self, k: u8, weight: f64) {
        self.subflows[k as usize].weight = weight;
    }

    /// A packet as for a new flow.
    fn start(&mut self, io: &mut Io<Perc<R>>, k: u8) {
        let hops = self.subflows[k as usize].path.hops;
        let fields = self.rule.fields(hops);
        let Subflow { fresh: first, weight, .. } = self.subflows[k as usize];
        self.send(io, k, Message { weight, was: weight, serial: 0, first, fin: false, tx_ns: 0, fields });
    }

    fn send(&mut self, io: &mut Io<Perc<R>>, k: u8, mut message: Message<R>) {
        let subflow = &mut self.subflows[k as usize];
        subflow.serial = subflow.serial.wrapping_add(1);
        subflow.sent_ns = io.now_ns;
        message.serial = subflow.serial;
        message.tx_ns = 0;
        message.was = std::mem::replace(&mut message.weight, subflow.weight);
        message.fin = self.finishing;
        subflow.place = if message.fin { Place::Gone } else { Place::Out };
        let bytes = wire_bytes(self.rule.content_bytes(subflow.path.hops));
        io.ctl(To::Sink, k, message, Class::Control, bytes);
    }

    fn patience_ns(&self, k: u8) -> Ns {
        let subflow = &self.subflows[k as usize];
        if self.rto_ns > 0 { self.rto_ns } else { 8 * subflow.path.base_rtt_ns.max(subflow.tx_ns).max(1) }
    }

    /// Slowest pace: one packet a round trip, but no more than a thousandth of the path, so that floors never load it.
    /// A flow whose packets the network keeps losing still ends.
    fn floor_bps(&self, path: &PathInfo) -> f64 {
        let packet_an_rtt = f64::from(self.mtu_bytes) * 8e9 / path.base_rtt_ns.max(1) as f64;
        packet_an_rtt.min(path.min_capacity_bps / 1000.0)
    }

    /// The packet is late: hold it lost and start the flow anew.
    fn watch(&mut self, io: &mut Io<Perc<R>>, k: u8) {
        let patience = self.patience_ns(k);
        let subflow = &mut self.subflows[k as usize];
        let mut due = io.now_ns + patience;
        match subflow.place {
            Place::Gone => return,
            Place::Held(_) => {}
            Place::Out if subflow.sent_ns + patience > io.now_ns => due = subflow.sent_ns + patience,
            Place::Out if self.finishing => {
                subflow.place = Place::Gone;
                return;
            }
            Place::Out => {
                if R::RECOVERS {
                    io.pace(k, Some(0.0), None);
                }
                self.start(io, k);
            }
        }
        io.timer(TIMERS * u32::from(k) + WATCH, due);
    }
}

impl<R: Rule> Source<Perc<R>> for PercSource<R> {
    fn on_start(&mut self, io: &mut Io<Perc<R>>) {
        for k in 0..self.subflows.len() as u8 {
            self.start(io, k);
            io.timer(TIMERS * u32::from(k) + WATCH, io.now_ns + self.patience_ns(k));
        }
    }

    fn on_ctl(&mut self, io: &mut Io<Perc<R>>, k: u8, mut message: Message<R>) {
        let subflow = &mut self.subflows[k as usize];
        if message.serial != subflow.serial || !matches!(subflow.place, Place::Out) {
            return; // Given up before: the flow has another packet by now.
        }
        subflow.fresh = false;
        subflow.tx_ns = message.tx_ns;
        message.first = false;
        let rate = self.rule.returned(&mut message.fields) * message.weight;
        let (next_ns, path) = (subflow.sent_ns + subflow.tx_ns, subflow.path);
        if !self.finishing {
            io.pace(k, Some(rate.max(self.floor_bps(&path))), None);
        }
        if self.finishing || next_ns <= io.now_ns {
            self.send(io, k, message);
        } else {
            self.subflows[k as usize].place = Place::Held(message);
            io.timer(TIMERS * u32::from(k) + SEND, next_ns);
        }
    }

    fn on_timer(&mut self, io: &mut Io<Perc<R>>, timer: u32) {
        let k = (timer / TIMERS) as u8;
        if timer % TIMERS == WATCH {
            return self.watch(io, k);
        }
        self.release(io, k);
    }

    fn on_finish(&mut self, io: &mut Io<Perc<R>>) {
        self.finishing = true;
        for k in 0..self.subflows.len() as u8 {
            self.release(io, k);
        }
    }
}

impl<R: Rule> PercSource<R> {
    /// Sends the packet that is held here, if there is one. One that is out says goodbye when it comes back.
    fn release(&mut self, io: &mut Io<Perc<R>>, k: u8) {
        let place = &mut self.subflows[k as usize].place;
        if matches!(place, Place::Held(_))
            && let Place::Held(message) = std::mem::replace(place, Place::Out)
        {
            self.send(io, k, message);
        }
    }
}

/// The receiver: sends packets back, but for the last.
#[derive(Debug, Clone, Copy)]
pub struct PercSink;

impl<R: Rule> Sink<Perc<R>> for PercSink {
    fn on_ctl(&mut self, io: &mut Io<Perc<R>>, subflow: u8, message: Message<R>, bytes: u32) {
        if !message.fin {
            io.ctl(To::Source, subflow, message, Class::Control, bytes);
        }
    }
}
