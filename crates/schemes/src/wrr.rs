//! AIMD over weighted round robin: switches share links by weight, senders adapt their windows to the queueing delay.
//!
//! A baseline of Soze (Soze, section 5.3, figure 17c). A sender adds a packet to its window if the queueing delay was
//! below 20 us, and reduces the window by a fifth if it was longer; here once per window. The delay at the sender's
//! own link does not count, since its flows are served round robin there.

use crate::queue::{QuantumUnit, RoundRobin, Weighed};
use crate::tcp;
use std::sync::Arc;
use subak_core::keys::{AMOUNT, ValueType};
use subak_core::scheme::{
    Ack, FlowInfo, Goal, Hop, Info, Io, Loss, LossKind, Named, Packet, PacketKind, Param, Params, Port, Recovery,
    Reply, Rules, Scheme, SchemeKind, Settles, SharesLinks, Sink, Source,
};
use subak_core::{IdVec, InputError, Nic, Ns, SubflowId, Utility};

/// AIMD senders over weighted round-robin queues.
#[derive(Debug, Clone, Copy)]
pub struct Wrr {
    unit: QuantumUnit,
    queues: u64,
    target_ns: Ns,
    step: f64,
    cut: f64,
    initial: f64,
    recovery: Recovery,
}

/// WRR header of a packet.
#[derive(Debug, Clone, Copy)]
pub struct WrrHeader {
    weight: f64,
    /// Forward: queueing delay at the first link, ns. In ACKs: queueing delay at all other links, ns.
    waited_ns: Ns,
}

impl WrrHeader {
    /// Header for a flow of this weight.
    pub fn of(weight: f64) -> Self {
        WrrHeader { weight, waited_ns: 0 }
    }
}

impl Default for WrrHeader {
    fn default() -> Self {
        WrrHeader::of(1.0)
    }
}

impl Weighed for WrrHeader {
    fn weight(&self) -> f64 {
        self.weight
    }
}

/// Sender of a flow.
#[derive(Debug)]
pub struct WrrSource {
    scheme: Wrr,
    weight: f64,
    mss: f64,
    subflows: IdVec<SubflowId, WrrSubflow>,
}

#[derive(Debug, Clone, Copy)]
struct WrrSubflow {
    /// Congestion window, packets.
    window: f64,
    /// Number of the first segment whose ACK may change the window again.
    until: u32,
}

/// Hop that writes the queueing delay at the first link into the packet.
#[derive(Debug, Clone, Copy)]
pub struct FirstWait;

/// Receiver of a flow.
#[derive(Debug, Clone, Copy)]
pub struct WrrSink;

impl Named for Wrr {
    const INFO: Info = Info {
        name: "wrr",
        about: "weighted round robin at the links, windows by additive increase and multiplicative decrease on delay",
        paper: "Wang and Ng, Soze, section 5.3, figure 17c; Shreedhar and Varghese, SIGCOMM 1995",
        kind: SchemeKind::Reactive,
        lives_on_control: false,
        goal: Goal::Own,
        weights: true,
        params: &[
            Param::choice(
                "unit",
                &["packets", "bytes"],
                "unit of a quantum: weighted (packets) or deficit (bytes) round robin",
            ),
            Param::number("queues", 0.0, AMOUNT, "physical queues before a link; 0: one for each flow"),
            Param::number("target", 20e-6, ValueType::Time, "queueing delay below which the window grows"),
            Param::number("step", 1.0, ValueType::Packets, "additive increase of the window, once a window"),
            Param::number("cut", 0.2, AMOUNT, "fraction of a cut"),
            tcp::INITIAL_WINDOW,
            tcp::RTO_MIN,
            tcp::TIMEOUT,
            tcp::PROBE,
        ],
        settles: Settles::NEVER,
        shares_links: SharesLinks::No("its queues share links by the weights of its own flows"),
        ..Info::DEFAULT
    };
}

impl Scheme for Wrr {
    type Data = WrrHeader;
    type Ctl = ();
    type Queue = RoundRobin;
    type Source = WrrSource;
    type Hop = FirstWait;
    type Sink = WrrSink;

    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(Wrr {
            unit: if params.word("unit") == "bytes" { QuantumUnit::Bytes } else { QuantumUnit::Packets },
            queues: params.whole("queues", 0.0, 1e6)? as u64,
            target_ns: params.ns("target"),
            step: params.within("step", 1e-6, 1e6)?,
            cut: params.within("cut", 0.0, 0.99)?,
            initial: params.within("initial_window", 1.0, 1e6)?,
            recovery: tcp::recovery(params),
        })
    }
    fn rules(&self) -> Rules {
        Rules { recovery: self.recovery, nic: Some(Nic::TakesTurns), per_hop: 1.75, ..Rules::default() }
    }
    fn queue(&self, port: &Port) -> RoundRobin {
        RoundRobin::new(self.unit, self.queues, port.mtu_bytes, port.buffer_bytes)
    }
    fn source(&self, flow: &FlowInfo) -> WrrSource {
        WrrSource {
            scheme: *self,
            weight: flow.weight,
            mss: f64::from(flow.mss_bytes),
            subflows: IdVec::filled(WrrSubflow { window: self.initial, until: 0 }, flow.paths.len()),
        }
    }
    fn hop(&self, _port: &Port) -> FirstWait {
        FirstWait
    }
    fn sink(&self, _flow: &FlowInfo) -> WrrSink {
        WrrSink
    }
}

impl Hop<Wrr> for FirstWait {
    #[inline]
    fn on_dequeue(&mut self, _io: &mut Io<Wrr>, packet: &mut Packet<Wrr>, _port: &Port) {
        if packet.kind == PacketKind::Data && packet.hop == 0 {
            packet.data.waited_ns = packet.waited_ns;
        }
    }
}

impl Sink<Wrr> for WrrSink {
    fn on_data(&mut self, _io: &mut Io<Wrr>, packet: &Packet<Wrr>) -> Reply<WrrHeader> {
        let waited_ns = packet.waited_ns.saturating_sub(packet.data.waited_ns);
        Reply::Ack(WrrHeader { waited_ns, ..packet.data })
    }
}

impl WrrSource {
    fn go_on(&self, io: &mut Io<Wrr>, k: SubflowId) {
        let window = self.subflows[k].window;
        io.pace(k, None, Some((window * self.mss) as u64));
    }
}

impl Source<Wrr> for WrrSource {
    fn on_start(&mut self, io: &mut Io<Wrr>) {
        self.subflows.ids().for_each(|k| self.go_on(io, k));
    }
    fn stamp(&mut self, _now_ns: Ns, packet: &mut Packet<Wrr>, _remaining_bytes: u64) {
        packet.data.weight = self.weight;
    }
    fn on_ack(&mut self, io: &mut Io<Wrr>, ack: &Ack<WrrHeader>) {
        let Wrr { target_ns, step, cut, .. } = self.scheme;
        let s = &mut self.subflows[ack.subflow];
        if ack.segment < s.until {
            return;
        }
        s.until = ack.next_segment;
        let used = (ack.in_flight_bytes + ack.acked_bytes) as f64 >= (s.window - 1.0) * self.mss;
        if ack.data.waited_ns > target_ns {
            s.window = (s.window * (1.0 - cut)).max(1.0);
        } else if used {
            s.window += step;
        }
        self.go_on(io, ack.subflow);
    }
    fn on_loss(&mut self, io: &mut Io<Wrr>, loss: &Loss) {
        let cut = if loss.kind == LossKind::Timeout { 0.5 } else { self.scheme.cut };
        let s = &mut self.subflows[loss.subflow];
        if loss.segment >= s.until || loss.kind == LossKind::Timeout {
            s.window = (s.window * (1.0 - cut)).max(1.0);
            s.until = loss.next_segment;
        }
        self.go_on(io, loss.subflow);
    }
    fn on_weight(&mut self, _io: &mut Io<Wrr>, weight: f64, _utility: &Arc<Utility>) {
        self.weight = weight;
    }
}
