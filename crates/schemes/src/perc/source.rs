//! Sources and sinks of the PERC schemes: each subflow has at most one control packet in flight.
//!
//! Schemes with the parameters `short` and `demand` treat short flows and the ends of long ones as in section 4.1 of
//! the thesis. A short flow starts at line rate, has priority, and sends no control packet at all if its size is at
//! most a BDP. The control packet carries the remaining bytes over an RTT as the rate of a virtual link of the flow's
//! own. A flow that this link limits sends at line rate. Bytes in flight do not count as remaining; unsent and lost
//! ones do. The same virtual link carries the flow's demand, in every PERC scheme (section 5.1): its rate is the
//! smaller of the two.

use super::{HopCounts, Perc, PercMessage, PercSettings, Rule, wire_bytes};
use std::sync::Arc;
use subak_core::scheme::{Ack, Class, FlowInfo, Io, Loss, Packet, PathInfo, Sink, Source, To};
use subak_core::{IdVec, LinkId, Ns, SubflowId, Utility};

const SEND: u32 = 0;
const WATCH: u32 = 1;
const TIMERS: u32 = 2;

/// Sender of a flow. Subflows are independent flows with equal parts of the weight: PERC has no resource pooling.
#[derive(Debug)]
pub struct PercSource<R: Rule> {
    rule: R,
    rto_ns: Ns,
    mtu_bytes: u32,
    mss_bytes: u32,
    /// Whether the flow starts at line rate and has priority.
    short: bool,
    /// Whether control packets carry the remaining bytes as a rate.
    tells: bool,
    /// Demand of a subflow, bit/s.
    can_send_bps: f64,
    /// Payload without ACK, bytes; `u64::MAX` for an unlimited flow.
    remaining_bytes: u64,
    subflows: IdVec<SubflowId, PercSubflow<R>>,
    finishing: bool,
}

#[derive(Debug)]
struct PercSubflow<R: Rule> {
    path: PathInfo,
    weight: f64,
    serial: u32,
    sent_ns: Ns,
    /// RTT of the subflow's latest control packet, ns.
    rtt_ns: Ns,
    tx_ns: Ns,
    round_ns: Ns,
    /// Payload in flight, bytes.
    in_flight_bytes: u64,
    place: PacketState<R>,
    /// Whether no control packet has returned yet.
    fresh: bool,
    /// Reset counts of the links, from the control packet that returned last.
    counts: HopCounts,
    /// Number of consecutive control packets that were lost.
    lost: u32,
    /// Time of the latest ACK, ns.
    heard_ns: Ns,
}

impl<R: Rule> PercSubflow<R> {
    /// Interval between two control packets of the subflow, ns.
    fn period_ns(&self) -> Ns {
        self.rtt_ns.max(self.tx_ns).max(1)
    }
}

/// Place of a subflow's control packet.
#[derive(Debug)]
enum PacketState<R: Rule> {
    /// In the network.
    Out,
    /// At the source, until Tx_ctrl has passed since it was sent.
    Held(PercMessage<R>),
    /// There is no control packet: the flow has ended, or has not sent one.
    Gone,
}

impl<R: Rule> PercSource<R> {
    pub(crate) fn new(rule: R, settings: PercSettings, flow: &FlowInfo) -> Self {
        let weight = flow.weight / flow.paths.len().max(1) as f64;
        let subflow = |path: &PathInfo| PercSubflow {
            path: *path,
            weight,
            serial: 0,
            sent_ns: 0,
            rtt_ns: path.base_rtt_ns,
            tx_ns: 0,
            round_ns: 0,
            in_flight_bytes: 0,
            place: PacketState::Gone,
            fresh: true,
            counts: HopCounts::default(),
            lost: 0,
            heard_ns: 0,
        };
        PercSource {
            rule,
            rto_ns: settings.rto_ns,
            mtu_bytes: flow.mtu_bytes,
            mss_bytes: flow.mss_bytes,
            short: flow.size_bytes.is_some_and(|size| size <= settings.short_bytes),
            tells: settings.demand,
            can_send_bps: flow.demand_bps / flow.paths.len().max(1) as f64,
            remaining_bytes: flow.size_bytes.unwrap_or(u64::MAX),
            subflows: flow.paths.iter().map(subflow).collect(),
            finishing: false,
        }
    }

    /// Sets the weight of subflow `k`, from its next control packet on.
    pub fn set_weight(&mut self, k: SubflowId, weight: f64) {
        self.subflows[k].weight = weight;
    }

    /// Records an ACK of subflow `k`.
    pub fn heard(&mut self, k: SubflowId, now_ns: Ns) {
        self.subflows[k].heard_ns = now_ns;
    }

    /// Sends the control packet of a new flow.
    fn start(&mut self, io: &mut Io<Perc<R>>, k: SubflowId) {
        let message = self.new_packet(k);
        self.send(io, k, message);
    }

    fn new_packet(&self, k: SubflowId) -> PercMessage<R> {
        let hops = self.subflows[k].path.hops;
        let fields = self.rule.fields(hops);
        let PercSubflow { fresh: first, weight, .. } = self.subflows[k];
        let (was, tx_ns, period_ns, round_ns) = (weight, 0, 0, 0);
        let counts = self.subflows[k].counts.clone();
        let (serial, fin, probe) = (0, false, false);
        PercMessage { weight, was, serial, first, fin, probe, tx_ns, period_ns, round_ns, counts, fields }
    }

    fn send(&mut self, io: &mut Io<Perc<R>>, k: SubflowId, mut message: PercMessage<R>) {
        let own_bps = self.can_send_bps.min(self.left_bps(k));
        let hops = self.hops_in_packet(k);
        let subflow = &mut self.subflows[k];
        subflow.serial = subflow.serial.wrapping_add(1);
        subflow.sent_ns = io.now_ns;
        message.serial = subflow.serial;
        message.tx_ns = 0;
        message.period_ns = subflow.period_ns();
        message.round_ns = 0;
        message.was = std::mem::replace(&mut message.weight, subflow.weight);
        message.fin = self.finishing;
        self.rule.demand(&mut message.fields, own_bps / message.weight);
        subflow.place = if message.fin { PacketState::Gone } else { PacketState::Out };
        io.ctl(To::Sink, k, message, Class::Control, wire_bytes(self.rule.content_bytes(hops)));
    }

    /// Number of links that the packet of subflow `k` has room for.
    fn hops_in_packet(&self, k: SubflowId) -> u16 {
        let own = self.can_send_bps.is_finite() && !R::NAMES_OWN_LINK;
        self.subflows[k].path.hops + u16::from(own)
    }

    fn patience_ns(&self, k: SubflowId) -> Ns {
        let subflow = &self.subflows[k];
        if self.rto_ns > 0 {
            return self.rto_ns;
        }
        // Two rounds after the packet's last pass, links have removed the flow and reallocated its rate: the source
        // must stop sending then.
        match (subflow.round_ns, subflow.period_ns()) {
            (0, period_ns) => 8 * period_ns,
            (round_ns, period_ns) => 2 * round_ns + 2 * period_ns,
        }
    }

    /// Rate on the wire at which sending the remaining bytes takes one RTT, bit/s.
    fn left_bps(&self, k: SubflowId) -> f64 {
        if !self.tells || self.remaining_bytes == u64::MAX {
            return f64::INFINITY;
        }
        let in_flight: u64 = self.subflows.iter().map(|s| s.in_flight_bytes).sum();
        let left = self.remaining_bytes.saturating_sub(in_flight) as f64;
        let wire = f64::from(self.mtu_bytes) / f64::from(self.mss_bytes);
        left * wire * 8e9 / self.subflows[k].path.base_rtt_ns.max(1) as f64
    }

    /// Whether subflow `k` can send the whole flow in its first RTT.
    fn fits(&self, k: SubflowId) -> bool {
        let path = &self.subflows[k].path;
        let wire = self.remaining_bytes as f64 * f64::from(self.mtu_bytes) / f64::from(self.mss_bytes);
        wire * 8e9 <= path.line_rate_bps * path.base_rtt_ns as f64
    }

    /// Minimum pacing rate: one packet per RTT, but at most a thousandth of the path's capacity, so that minimum
    /// rates never add up to a load. It lets a flow end even if its control packets are always lost.
    fn floor_bps(&self, path: &PathInfo) -> f64 {
        let packet_an_rtt = f64::from(self.mtu_bytes) * 8e9 / path.base_rtt_ns.max(1) as f64;
        packet_an_rtt.min(path.min_capacity_bps / 1000.0)
    }

    /// Handles a late control packet: marks it lost, and starts the flow again once the path is up.
    fn watch(&mut self, io: &mut Io<Perc<R>>, k: SubflowId) {
        let patience = self.patience_ns(k);
        let subflow = &mut self.subflows[k];
        let mut due = io.now_ns + patience;
        match subflow.place {
            PacketState::Gone => return,
            PacketState::Held(_) => {}
            PacketState::Out if subflow.sent_ns + patience > io.now_ns => due = subflow.sent_ns + patience,
            PacketState::Out if self.finishing => {
                subflow.place = PacketState::Gone;
                return;
            }
            PacketState::Out => {
                let subflow = &mut self.subflows[k];
                subflow.lost += 1;
                // While ACKs arrive, the loss was random: a restart risks one wrongly counted flow at links, which
                // recovering members remove. On a dead path there would be many.
                let is_live = subflow.heard_ns > subflow.sent_ns + patience / 2;
                let probe = !is_live && (subflow.lost > 1 || !R::RECOVERS);
                let path = subflow.path;
                if R::RECOVERS {
                    io.pace(k, Some(0.0), None);
                } else if probe {
                    // Links before the failure have reallocated the rate: data on the dead path must not use it.
                    io.pace(k, Some(self.floor_bps(&path)), None);
                }
                let message = PercMessage { probe, ..self.new_packet(k) };
                self.send(io, k, message);
            }
        }
        io.timer(TIMERS * u32::from(k) + WATCH, due);
    }
}

impl<R: Rule> Source<Perc<R>> for PercSource<R> {
    fn on_start(&mut self, io: &mut Io<Perc<R>>) {
        for k in self.subflows.ids() {
            if self.short {
                io.pace(k, Some(self.subflows[k].path.line_rate_bps), None);
                if self.fits(k) {
                    continue;
                }
            }
            self.start(io, k);
            io.timer(TIMERS * u32::from(k) + WATCH, io.now_ns + self.patience_ns(k));
        }
    }

    fn stamp(&mut self, _now_ns: Ns, packet: &mut Packet<Perc<R>>, remaining_bytes: u64) {
        self.remaining_bytes = remaining_bytes;
        self.subflows[packet.subflow].in_flight_bytes += u64::from(packet.payload_bytes());
        if self.short {
            packet.class = Class::High;
        }
    }

    fn on_ack(&mut self, io: &mut Io<Perc<R>>, ack: &Ack<()>) {
        self.remaining_bytes = ack.remaining_bytes;
        self.subflows[ack.subflow].in_flight_bytes = ack.in_flight_bytes;
        self.heard(ack.subflow, io.now_ns);
    }

    fn on_loss(&mut self, _io: &mut Io<Perc<R>>, loss: &Loss) {
        self.subflows[loss.subflow].in_flight_bytes = loss.in_flight_bytes;
    }

    fn on_ctl(&mut self, io: &mut Io<Perc<R>>, k: SubflowId, mut message: PercMessage<R>) {
        let subflow = &mut self.subflows[k];
        if message.serial != subflow.serial || !matches!(subflow.place, PacketState::Out) {
            return; // Given up before: the flow has another packet by now.
        }
        subflow.lost = 0;
        if message.probe {
            return match self.finishing {
                true => subflow.place = PacketState::Gone,
                false => self.start(io, k),
            };
        }
        subflow.fresh = false;
        subflow.counts.clone_from(&message.counts);
        subflow.rtt_ns = io.now_ns - subflow.sent_ns;
        subflow.tx_ns = message.tx_ns;
        subflow.round_ns = message.round_ns;
        message.first = false;
        let rate = self.rule.returned(&mut message.fields) * message.weight;
        let (next_ns, path) = (subflow.sent_ns + subflow.tx_ns, subflow.path);
        if !self.finishing {
            // The flow is limited by its remaining bytes, not by a link: send the rest at once.
            let last = self.left_bps(k) <= rate;
            let rate = if last { path.line_rate_bps } else { rate.max(self.floor_bps(&path)) };
            io.pace(k, Some(rate), None);
        }
        if self.finishing || next_ns <= io.now_ns {
            self.send(io, k, message);
        } else {
            self.subflows[k].place = PacketState::Held(message);
            io.timer(TIMERS * u32::from(k) + SEND, next_ns);
        }
    }

    fn on_timer(&mut self, io: &mut Io<Perc<R>>, timer: u32) {
        let k = SubflowId((timer / TIMERS) as u8);
        if timer % TIMERS == WATCH {
            return self.watch(io, k);
        }
        self.release(io, k);
    }

    fn on_weight(&mut self, _io: &mut Io<Perc<R>>, weight: f64, _utility: &Arc<Utility>) {
        let part = weight / self.subflows.len().max(1) as f64;
        self.subflows.iter_mut().for_each(|s| s.weight = part);
    }

    /// Sends a control packet that is held at the source as a teardown, so that the links of the old path remove the
    /// flow.
    fn on_leave(&mut self, io: &mut Io<Perc<R>>, k: SubflowId) {
        let bytes = wire_bytes(self.rule.content_bytes(self.hops_in_packet(k)));
        let place = &mut self.subflows[k].place;
        if matches!(place, PacketState::Held(_))
            && let PacketState::Held(message) = std::mem::replace(place, PacketState::Out)
        {
            tear_down(io, k, message, bytes);
        }
    }

    /// Handles a control packet that was in flight at the reroute: sends it on the old path again, as a teardown.
    fn on_left(&mut self, io: &mut Io<Perc<R>>, k: SubflowId, message: PercMessage<R>, bytes: u32) {
        if !message.probe {
            tear_down(io, k, message, bytes);
        }
    }

    /// Starts the flow on the new path.
    fn on_reroute(&mut self, io: &mut Io<Perc<R>>, k: SubflowId, path: &PathInfo, _links: &[LinkId]) {
        let subflow = &mut self.subflows[k];
        (subflow.path, subflow.rtt_ns, subflow.fresh) = (*path, path.base_rtt_ns, true);
        subflow.counts = HopCounts::default();
        if !matches!(subflow.place, PacketState::Gone) {
            self.start(io, k);
        }
    }

    fn on_finish(&mut self, io: &mut Io<Perc<R>>) {
        self.finishing = true;
        for k in self.subflows.ids() {
            self.release(io, k);
        }
    }
}

impl<R: Rule> PercSource<R> {
    /// Sends a control packet that is held at the source. At the flow's end it is the teardown; a packet in flight
    /// becomes the teardown when it returns.
    fn release(&mut self, io: &mut Io<Perc<R>>, k: SubflowId) {
        let place = &mut self.subflows[k].place;
        if matches!(place, PacketState::Held(_))
            && let PacketState::Held(message) = std::mem::replace(place, PacketState::Out)
        {
            self.send(io, k, message);
        }
    }
}

/// Sends the teardown on a path that the flow leaves: links subtract the flow from their counts.
fn tear_down<R: Rule>(io: &mut Io<Perc<R>>, k: SubflowId, message: PercMessage<R>, bytes: u32) {
    let last = PercMessage { was: message.weight, first: false, fin: true, tx_ns: 0, round_ns: 0, ..message };
    io.ctl(To::Sink, k, last, Class::Control, bytes);
}

/// Receiver: returns each control packet except the teardown.
#[derive(Debug, Clone, Copy)]
pub struct PercSink;

impl<R: Rule> Sink<Perc<R>> for PercSink {
    fn on_ctl(&mut self, io: &mut Io<Perc<R>>, subflow: SubflowId, message: PercMessage<R>, bytes: u32) {
        if !message.fin {
            io.ctl(To::Source, subflow, message, Class::Control, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::s_perc::SPerc;
    use serde_json::{Map, json};
    use subak_core::FlowId;
    use subak_core::scheme::Named;
    use subak_core::scheme::{Effect, Params, Scheme};

    const RTT_NS: Ns = 10_000;

    fn scheme(control: f64) -> SPerc {
        let given = Map::from_iter([("control".to_string(), json!(control))]);
        SPerc::new(&Params::resolve(&SPerc::INFO, &given).unwrap()).unwrap()
    }

    fn source(scheme: &SPerc) -> <SPerc as Scheme>::Source {
        let path = PathInfo { hops: 2, line_rate_bps: 1e10, min_capacity_bps: 1e10, base_rtt_ns: RTT_NS };
        let utility = Arc::new(Utility::log(2.0));
        scheme.source(&FlowInfo { weight: 2.0, utility, ..FlowInfo::example(FlowId(0), vec![path]) })
    }

    const ACK: Ack<()> = Ack {
        subflow: SubflowId(0),
        acked_bytes: 1000,
        rtt_ns: RTT_NS,
        ecn: false,
        in_flight_bytes: 0,
        remaining_bytes: 1 << 20,
        segment: 0,
        next_segment: 1,
        data: (),
    };

    type Sent = Vec<<SPerc as Scheme>::Ctl>;

    /// Effects of the source: packets, timers, pacing rates.
    fn effects(io: &mut Io<SPerc>) -> (Sent, Vec<(u32, Ns)>, Vec<f64>) {
        let (mut sent, mut timers, mut paces) = (Vec::new(), Vec::new(), Vec::new());
        for effect in io.take_effects() {
            match effect {
                Effect::Ctl { message, .. } => sent.push(message),
                Effect::Timer { timer, at_ns } => timers.push((timer, at_ns)),
                Effect::Pace { rate_bps, .. } => paces.push(rate_bps.unwrap()),
                Effect::Pause { .. } => unreachable!("a source holds no queue"),
            }
        }
        (sent, timers, paces)
    }

    /// The control packet `message` as it returns with allocation `a` at both links.
    fn back(mut message: PercMessage<crate::s_perc::Stateless>, a: f64) -> PercMessage<crate::s_perc::Stateless> {
        message.fields.links.iter_mut().for_each(|field| field.a = a);
        message
    }

    #[test]
    fn data_waits_for_the_first_rate_and_packets_circle() {
        let mut source = source(&scheme(0.0));
        let mut io = Io::default();
        source.on_start(&mut io);
        let (mut sent, _, paces) = effects(&mut io);
        assert!(sent[0].first && paces.is_empty());
        io.now_ns = RTT_NS;
        source.on_ctl(&mut io, SubflowId(0), back(sent.remove(0), 3e9));
        let (sent, _, paces) = effects(&mut io);
        assert_eq!(paces, [6e9], "3 Gb/s a unit of weight");
        assert!(!sent[0].first && !sent[0].fin, "the packet goes out again at once");
    }

    #[test]
    fn a_packet_waits_for_tx_ctrl() {
        let mut source = source(&scheme(0.04));
        let mut io = Io::default();
        source.on_start(&mut io);
        let mut message = effects(&mut io).0.remove(0);
        message.tx_ns = 3 * RTT_NS;
        io.now_ns = RTT_NS;
        source.on_ctl(&mut io, SubflowId(0), back(message, 1e9));
        let (sent, timers, _) = effects(&mut io);
        assert!(sent.is_empty());
        assert_eq!(timers, [(SEND, 3 * RTT_NS)]);
        io.now_ns = 3 * RTT_NS;
        source.on_timer(&mut io, SEND);
        assert_eq!(effects(&mut io).0.len(), 1);
    }

    #[test]
    fn a_lost_packet_starts_the_flow_anew_and_counts_no_more_when_it_turns_up() {
        let mut source = source(&scheme(0.0));
        let mut io = Io::default();
        source.on_start(&mut io);
        let lost = effects(&mut io).0.remove(0);
        io.now_ns = 8 * RTT_NS;
        source.on_timer(&mut io, WATCH);
        let (mut sent, timers, _) = effects(&mut io);
        assert!(sent[0].probe, "whether the path is there is asked first");
        assert_eq!(timers, [(WATCH, 16 * RTT_NS)], "and it is watched again");
        source.on_ctl(&mut io, SubflowId(0), back(lost, 9e9));
        let (again, _, paces) = effects(&mut io);
        assert!(again.is_empty() && paces.is_empty(), "the old packet ends here");
        source.on_ctl(&mut io, SubflowId(0), back(sent.remove(0), 7e9));
        let (mut sent, _, paces) = effects(&mut io);
        assert!(paces.is_empty() && !sent[0].probe);
        assert_eq!(sent[0].fields, crate::s_perc::SPercFields::new(2, false), "as a new flow");
        source.on_ctl(&mut io, SubflowId(0), back(sent.remove(0), 1e9));
        assert_eq!(effects(&mut io).2, [2e9]);
    }

    #[test]
    fn a_lost_packet_of_a_path_that_acknowledges_data_starts_the_flow_anew_at_once() {
        let mut source = source(&scheme(0.0));
        let mut io = Io::default();
        source.on_start(&mut io);
        effects(&mut io);
        // An ACK of data that was in flight when the path failed does not show that the path is up.
        for (heard_ns, wanted) in [(RTT_NS, true), (15 * RTT_NS, false)] {
            io.now_ns = heard_ns;
            source.on_ack(&mut io, &ACK);
            io.now_ns = heard_ns.next_multiple_of(8 * RTT_NS);
            source.on_timer(&mut io, WATCH);
            assert_eq!(effects(&mut io).0[0].probe, wanted, "acknowledged at {heard_ns} ns");
        }
    }

    #[test]
    fn the_last_packet_says_that_the_flow_leaves() {
        let mut source = source(&scheme(0.0));
        let mut io = Io::default();
        source.on_start(&mut io);
        let out = effects(&mut io).0.remove(0);
        source.on_finish(&mut io);
        assert!(effects(&mut io).0.is_empty(), "the packet that is out holds what links must take back");
        source.on_ctl(&mut io, SubflowId(0), back(out, 1e9));
        let (sent, _, paces) = effects(&mut io);
        assert!(sent[0].fin && paces.is_empty());
        source.on_timer(&mut io, WATCH);
        let (sent, timers, _) = effects(&mut io);
        assert!(sent.is_empty() && timers.is_empty(), "nothing is left to do");
    }

    #[test]
    fn tiny_rates_are_floored_so_that_every_flow_ends() {
        let mut source = source(&scheme(0.0));
        let mut io = Io::default();
        source.on_start(&mut io);
        let out = effects(&mut io).0.remove(0);
        source.on_ctl(&mut io, SubflowId(0), back(out, 0.0));
        assert_eq!(effects(&mut io).2, [1e10 / 1000.0]);
    }
}
