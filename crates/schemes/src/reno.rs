//! TCP NewReno over drop-tail queues: the baseline that adapts its rate to losses.
//!
//! Window: RFC 5681 and 6582. The backend's selective ACKs identify losses, so that a window with several losses is
//! repaired within one RTT and reduced once.

use crate::queue::Fifo;
use crate::tcp::{self, Window, Windows};
use subak_core::scheme::{
    Ack, FlowInfo, Goal, Info, Io, Loss, Named, OnHosts, Packet, Params, Port, Recovery, Rules, Scheme, SchemeKind,
    Settles, SharesLinks, Source,
};
use subak_core::{IdVec, InputError, Ns, SubflowId};

/// TCP NewReno senders over drop-tail queues.
#[derive(Debug, Clone)]
pub struct Reno {
    windows: Windows,
    recovery: Recovery,
}

/// Congestion windows of a sender, one per subflow.
#[derive(Debug, Clone)]
pub struct RenoSource {
    windows: IdVec<SubflowId, Window>,
}

impl Named for Reno {
    const INFO: Info = Info {
        name: "reno",
        about: "TCP NewReno over drop-tail queues",
        paper: "RFC 5681, RFC 6582",
        kind: SchemeKind::Reactive,
        lives_on_control: false,
        goal: Goal::Own,
        weights: false,
        params: &[tcp::INITIAL_WINDOW, tcp::REDUCTION, tcp::RTO_MIN, tcp::TIMEOUT, tcp::PROBE],
        settles: Settles::NEVER,
        on_hosts: OnHosts::Kernel,
        shares_links: SharesLinks::Yes,
        ..Info::DEFAULT
    };
}

impl Scheme for Reno {
    type Data = ();
    type Ctl = ();
    type Queue = Fifo;
    type Source = RenoSource;
    type Hop = ();
    type Sink = ();

    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(Reno { windows: Windows::of(params)?, recovery: tcp::recovery(params) })
    }
    fn rules(&self) -> Rules {
        Rules { recovery: self.recovery, ..Rules::default() }
    }
    fn queue(&self, port: &Port) -> Fifo {
        Fifo::new(port.buffer_bytes)
    }
    fn source(&self, flow: &FlowInfo) -> RenoSource {
        RenoSource { windows: IdVec::filled(self.windows.window(flow), flow.paths.len()) }
    }
    fn hop(&self, _port: &Port) {}
    fn sink(&self, _flow: &FlowInfo) {}
}

impl Source<Reno> for RenoSource {
    fn on_start(&mut self, io: &mut Io<Reno>) {
        for (subflow, window) in self.windows.iter_enumerated() {
            io.pace(subflow, None, Some(window.bytes()));
        }
    }

    fn stamp(&mut self, _now_ns: Ns, packet: &mut Packet<Reno>, _remaining_bytes: u64) {
        self.windows[packet.subflow].sent(packet.payload_bytes());
    }

    fn on_ack(&mut self, io: &mut Io<Reno>, ack: &Ack<()>) {
        let window = &mut self.windows[ack.subflow];
        window.saw(ack);
        window.grow(ack);
        io.pace(ack.subflow, None, Some(window.bytes()));
    }

    fn on_loss(&mut self, io: &mut Io<Reno>, loss: &Loss) {
        let window = &mut self.windows[loss.subflow];
        window.on_loss(loss);
        io.pace(loss.subflow, None, Some(window.bytes()));
    }
}
