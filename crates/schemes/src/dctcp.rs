//! DCTCP: links set ECN marks at queue lengths above K, and senders reduce their windows by the fraction of marked
//! packets.
//!
//! Alizadeh et al., Data Center TCP, SIGCOMM 2010: equation 1 (alpha, updated once per window) and equation 2 (the
//! cut, once per window). Every packet is ACKed, so that each echo concerns one packet. K is specified at 10 Gb/s and
//! scales with the link. Alpha starts at 1, so that the first mark ends slow start with a halved window.

use crate::lossless;
use crate::queue::Fifo;
use crate::tcp::{self, Window, Windows};
use subak_core::keys::{AMOUNT, ValueType};
use subak_core::scheme::{
    Ack, Around, Doubt, FlowInfo, Goal, Hop, Info, Io, Loss, Lossless, Marks, Named, OnHosts, Packet, PacketKind,
    Param, Params, Port, Recovery, Rules, Scheme, SchemeKind, Settles, SharesLinks, Source,
};
use subak_core::{IdVec, InputError, Ns, SubflowId};

const REFERENCE_BPS: f64 = 10e9;

/// Window control by the fraction of ECN-marked packets, with the parameters of DCTCP.
#[derive(Debug, Clone)]
pub struct Dctcp {
    k_packets: f64,
    g: f64,
    windows: Windows,
    recovery: Recovery,
    lossless: Option<Lossless>,
}

/// Sender of a flow: a window and alpha per subflow.
#[derive(Debug, Clone)]
pub struct DctcpSource {
    g: f64,
    subflows: IdVec<SubflowId, DctcpSubflow>,
}

#[derive(Debug, Clone)]
struct DctcpSubflow {
    window: Window,
    alpha: f64,
    acked_bytes: u64,
    marked_bytes: u64,
    /// Number of the first segment of the next observation window.
    observe_until: u32,
}

/// Hop that sets ECN marks at a queue length above K.
#[derive(Debug, Clone)]
pub struct ThresholdMarker {
    k_bytes: u64,
}

impl Named for Dctcp {
    const INFO: Info = Info {
        name: "dctcp",
        about: "DCTCP: marking at a queue threshold, window cut by the marked share",
        paper: "Alizadeh et al., SIGCOMM 2010",
        kind: SchemeKind::Reactive,
        lives_on_control: false,
        goal: Goal::Own,
        weights: false,
        params: &[
            Param::number("k", 65.0, ValueType::Packets, "marking threshold at 10 Gb/s; scales with the link"),
            Param::number("g", 1.0 / 16.0, AMOUNT, "gain of the estimate of the marked share"),
            tcp::INITIAL_WINDOW,
            tcp::REDUCTION,
            tcp::RTO_MIN,
            tcp::TIMEOUT,
            tcp::PROBE,
            lossless::PFC_OFF,
            lossless::ALPHA,
            lossless::RESERVE,
            lossless::THRESHOLD,
            lossless::RESUME,
            lossless::BUFFER,
            lossless::HEADROOM,
        ],
        settles: Settles::NEVER,
        on_hosts: OnHosts::Kernel,
        shares_links: SharesLinks::Yes,
        ..Info::DEFAULT
    };
}

impl Scheme for Dctcp {
    type Data = ();
    type Ctl = ();
    type Queue = Fifo;
    type Source = DctcpSource;
    type Hop = ThresholdMarker;
    type Sink = ();

    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(Dctcp {
            k_packets: params.within("k", 1.0, 1e6)?,
            g: params.within("g", 1e-6, 1.0)?,
            windows: Windows::of(params)?,
            recovery: tcp::recovery(params),
            lossless: lossless::read(params)?,
        })
    }
    fn rules(&self) -> Rules {
        Rules { recovery: self.recovery, lossless: self.lossless, ..Rules::default() }
    }
    fn marks(&self, port: &Port) -> Option<Marks> {
        Some(Marks::step("k", self.hop(port).k_bytes))
    }
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        let dropped_first = || Doubt::of_marking(around, "k", |port| self.hop(port).k_bytes);
        if self.lossless.is_some() { Vec::new() } else { dropped_first().into_iter().collect() }
    }
    fn queue(&self, port: &Port) -> Fifo {
        Fifo::new(lossless::room_bytes(self.lossless, port))
    }
    fn source(&self, flow: &FlowInfo) -> DctcpSource {
        let subflow = DctcpSubflow {
            window: self.windows.window(flow),
            alpha: 1.0,
            acked_bytes: 0,
            marked_bytes: 0,
            observe_until: 0,
        };
        DctcpSource { g: self.g, subflows: IdVec::filled(subflow, flow.paths.len()) }
    }
    fn hop(&self, port: &Port) -> ThresholdMarker {
        let packets = (self.k_packets * port.capacity_bps / REFERENCE_BPS).max(2.0);
        ThresholdMarker { k_bytes: (packets * f64::from(port.mtu_bytes)) as u64 }
    }
    fn sink(&self, _flow: &FlowInfo) {}
}

impl Hop<Dctcp> for ThresholdMarker {
    fn observes_departures(&self) -> bool {
        false
    }
    fn has_state(&self) -> bool {
        false
    }

    #[inline]
    fn on_enqueue(&mut self, _io: &mut Io<Dctcp>, packet: &mut Packet<Dctcp>, port: &Port) {
        if packet.kind == PacketKind::Data && port.queued_bytes >= self.k_bytes {
            packet.ecn = true;
        }
    }
}

impl Source<Dctcp> for DctcpSource {
    fn on_start(&mut self, io: &mut Io<Dctcp>) {
        for (subflow, state) in self.subflows.iter_enumerated() {
            io.pace(subflow, None, Some(state.window.bytes()));
        }
    }

    fn stamp(&mut self, _now_ns: Ns, packet: &mut Packet<Dctcp>, _remaining_bytes: u64) {
        self.subflows[packet.subflow].window.sent(packet.payload_bytes());
    }

    fn on_ack(&mut self, io: &mut Io<Dctcp>, ack: &Ack<()>) {
        let s = &mut self.subflows[ack.subflow];
        s.window.saw(ack);
        s.acked_bytes += ack.acked_bytes;
        if ack.ecn {
            s.marked_bytes += ack.acked_bytes;
            if s.window.past_cut(ack.segment) {
                s.window.cut(1.0 - s.alpha / 2.0, ack.next_segment);
            }
        } else {
            s.window.grow(ack);
        }
        if ack.segment >= s.observe_until && s.acked_bytes > 0 {
            let marked = s.marked_bytes as f64 / s.acked_bytes as f64;
            s.alpha = (1.0 - self.g) * s.alpha + self.g * marked;
            s.acked_bytes = 0;
            s.marked_bytes = 0;
            s.observe_until = ack.next_segment;
        }
        io.pace(ack.subflow, None, Some(s.window.bytes()));
    }

    fn on_loss(&mut self, io: &mut Io<Dctcp>, loss: &Loss) {
        let s = &mut self.subflows[loss.subflow];
        s.window.on_loss(loss);
        io.pace(loss.subflow, None, Some(s.window.bytes()));
    }
}
