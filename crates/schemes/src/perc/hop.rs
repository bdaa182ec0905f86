//! Link of the PERC schemes: calls the rule, counts flows to limit control packets, and runs the timer of rounds.

use super::{Perc, PercMessage, PercSettings, Rule};
use subak_core::rng::mix;
use subak_core::scheme::{Hop, Io, Port, UpdateRecord, Visit};
use subak_core::{LinkId, Ns};

const ROUND_OVER: u32 = 0;

/// State and logic at one directed link.
#[derive(Debug)]
pub struct PercHop<R: Rule> {
    rule: R,
    id: LinkId,
    link: R::Link,
    settings: PercSettings,
    /// Capacity for the control packets of one direction, bit/s; 0 for no limit.
    control_bps: f64,
    control_bytes: u32,
    /// Number of flows over this link.
    flows: u32,
    /// Number of times that the link has reset its flow state.
    count: u32,
    round: Option<Round>,
}

impl<R: Rule> PercHop<R> {
    pub(super) fn new(rule: R, settings: PercSettings, port: &Port) -> Self {
        let link = rule.link(settings.data_bps(port));
        PercHop {
            link,
            rule,
            id: port.link,
            control_bps: settings.control_bps(port),
            settings,
            control_bytes: super::MIN_CONTROL_BYTES,
            flows: 0,
            count: 0,
            round: R::ROUNDS
                .then(|| Round::new(settings.round_ns, settings.first_round_ns, port.rtt_ns, wait_ns(port))),
        }
    }

    /// State of the rule at this link.
    pub fn link(&self) -> &R::Link {
        &self.link
    }

    /// Tx_ctrl of this link (PERC thesis, section 4.1), ns: interval of a flow's control packets at which all flows
    /// together use the link's control capacity.
    fn tx_ns(&self) -> Ns {
        if self.control_bps == 0.0 {
            return 0;
        }
        let flows = R::flows(&self.link).unwrap_or(self.flows).max(1);
        let bits = f64::from(self.control_bytes) * 8.0 * f64::from(flows);
        (bits / self.control_bps * 1e9).ceil() as Ns
    }

    /// Whether this link has counted the packet's flow. After a reset it counts the flow again on the forward path.
    fn holds(&mut self, message: &mut PercMessage<R>, visit: Visit) -> bool {
        let holds = message.counts.of(visit.hop) == self.count;
        if holds || !visit.forward {
            return holds;
        }
        message.counts.set(visit.hop, self.count);
        self.rule.forgotten(&mut message.fields, visit.hop);
        self.flows += u32::from(!message.first);
        true
    }

    fn count(&mut self, message: &mut PercMessage<R>) {
        if message.first {
            self.flows += 1;
        }
        message.tx_ns = message.tx_ns.max(self.tx_ns());
        if message.fin {
            self.flows = self.flows.saturating_sub(1);
        }
    }
}

impl<R: Rule> Hop<Perc<R>> for PercHop<R> {
    fn on_start(&mut self, io: &mut Io<Perc<R>>) {
        if let Some(round) = &self.round {
            let phase_ns = mix(u64::from(self.id.0)) % round.ns;
            io.timer(ROUND_OVER, io.now_ns + 1 + phase_ns);
        }
    }

    fn on_capacity(&mut self, port: &Port) {
        self.rule.resize(&mut self.link, self.settings.data_bps(port));
        self.control_bps = self.settings.control_bps(port);
        if let Some(Round { adjust: Some(adjust), .. }) = &mut self.round {
            adjust.wait_ns = wait_ns(port);
        }
    }

    fn on_topology(&mut self, port: &Port) {
        self.link = self.rule.link(self.settings.data_bps(port));
        self.flows = 0;
        self.count += 1;
    }

    fn on_ctl(&mut self, io: &mut Io<Perc<R>>, message: &mut PercMessage<R>, visit: Visit, port: &Port) {
        if message.probe {
            return;
        }
        let holds = self.holds(message, visit);
        if visit.forward {
            self.control_bytes = super::wire_bytes(self.rule.content_bytes(visit.hop + 1)).max(self.control_bytes);
            self.count(message);
        }
        if let Some(round) = &mut self.round {
            round.saw(message.period_ns.max(message.tx_ns), io.now_ns);
            message.round_ns = message.round_ns.max(round.ns);
        }
        if !(visit.forward || self.settings.reverse && holds) {
            return;
        }
        if visit.forward && message.was != message.weight {
            self.rule.reweigh(&mut self.link, &message.fields, visit, message.was, message.weight);
        }
        let step = self.rule.update(&mut self.link, &mut message.fields, visit, message.weight, message.fin);
        io.trace(|at_ns| {
            let flag = |x: bool| f64::from(u8::from(x));
            let mut values = vec![
                ("e", step.e),
                ("b", step.b),
                ("a", step.a),
                ("state", flag(step.bottlenecked)),
                ("ignore", flag(step.ignored)),
            ];
            values.extend(R::watch(&self.link));
            UpdateRecord { at_ns, flow: visit.flow, link: port.link, values }
        });
    }

    fn on_timer(&mut self, io: &mut Io<Perc<R>>, _timer: u32, _port: &Port) {
        self.rule.new_round(&mut self.link);
        if let Some(round) = &self.round {
            io.timer(ROUND_OVER, io.now_ns + round.ns);
        }
    }
}

/// Largest delay of a control packet behind data packets, ns. It may wait for one at each link of its path, some of
/// which are slower than this one; a hundred packets of this link allow for that. Infinite if the packet size is
/// unknown.
fn wait_ns(port: &Port) -> Ns {
    let packet_ns = f64::from(port.mtu_bytes) * 8e9 / port.capacity_bps;
    if port.mtu_bytes == 0 { Ns::MAX } else { (100.0 * packet_ns) as Ns }
}

/// Time between two resets of MaxE at a link.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    ns: Ns,
    /// State of the adjustment; `None` if the time is constant.
    adjust: Option<Adjust>,
}

#[derive(Debug, Clone, Copy)]
struct Adjust {
    /// MaxRound, ns: time after which a round that is too long is halved; ten times the network's largest RTT.
    patience_ns: Ns,
    /// Largest delay of a control packet beyond its latest RTT, ns; a quarter of that RTT if it is less.
    wait_ns: Ns,
    /// Longest period seen in the present measurement, ns.
    longest_ns: Ns,
    since_ns: Ns,
}

impl Round {
    /// A constant `constant_ns` if that is not 0. Otherwise adjusted, starting from `first_ns` or, if that is 0, from
    /// twice the network's largest RTT `rtt_ns`. Control packets may be delayed by `wait_ns`.
    pub fn new(constant_ns: Ns, first_ns: Ns, rtt_ns: Ns, wait_ns: Ns) -> Self {
        if constant_ns > 0 {
            return Round { ns: constant_ns, adjust: None };
        }
        let rtt_ns = rtt_ns.max(1);
        let ns = if first_ns > 0 { first_ns } else { 2 * rtt_ns };
        Round { ns, adjust: Some(Adjust { patience_ns: 10 * rtt_ns, wait_ns, longest_ns: 0, since_ns: 0 }) }
    }

    /// Present time between two resets of MaxE, ns.
    pub fn ns(&self) -> Ns {
        self.ns
    }

    /// Adjusts the time after a packet with period `period_ns`. Doubles it immediately if it is too short for the
    /// period. Halves it if half of it was enough for all packets during MaxRound.
    fn saw(&mut self, period_ns: Ns, now_ns: Ns) {
        let Some(adjust) = &mut self.adjust else { return };
        adjust.longest_ns = adjust.longest_ns.max(period_ns);
        let enough_for = |period_ns: Ns| (period_ns + adjust.wait_ns.min(period_ns / 4)).max(1);
        while self.ns < enough_for(period_ns) {
            self.ns *= 2;
        }
        if now_ns - adjust.since_ns >= adjust.patience_ns {
            if self.ns / 2 >= enough_for(adjust.longest_ns) {
                self.ns /= 2;
            }
            adjust.longest_ns = period_ns;
            adjust.since_ns = now_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perc::HopCounts;
    use crate::s_perc::{SPerc, Stateless};
    use serde_json::Map;
    use subak_core::scheme::Named;
    use subak_core::scheme::{Effect, Params, Scheme};
    use subak_core::{FlowId, SubflowId};

    const RTT_NS: Ns = 10_000;

    fn port() -> Port {
        Port {
            link: LinkId(7),
            capacity_bps: 10e9,
            delay_ns: 1000,
            buffer_bytes: 1 << 20,
            mtu_bytes: 1500,
            rtt_ns: RTT_NS,
            ..Port::example(LinkId(0), 1.0)
        }
    }

    fn hop() -> (SPerc, PercHop<Stateless>) {
        let scheme = SPerc::new(&Params::resolve(&SPerc::INFO, &Map::new()).unwrap()).unwrap();
        let hop = scheme.hop(&port());
        (scheme, hop)
    }

    fn pass(hop: &mut PercHop<Stateless>, flow: u32, first: bool, fin: bool) -> PercMessage<Stateless> {
        let fields = Stateless::default().fields(1);
        let mut message = PercMessage {
            weight: 1.0,
            was: 1.0,
            serial: 1,
            first,
            fin,
            probe: false,
            tx_ns: 0,
            period_ns: RTT_NS,
            round_ns: 0,
            counts: HopCounts::default(),
            fields,
        };
        let visit = Visit { flow: FlowId(flow), subflow: SubflowId(0), hop: 0, forward: true };
        hop.on_ctl(&mut Io::default(), &mut message, visit, &port());
        message
    }

    #[test]
    fn control_packets_keep_to_their_share() {
        let (_, mut hop) = hop();
        assert_eq!(pass(&mut hop, 0, true, false).fields.links[0].b, 9.4e9, "4% control and 2% headroom are kept");
        for flow in 1..100 {
            pass(&mut hop, flow, true, false);
        }
        // 100 packets of 64 bytes every Tx_ctrl use half of 4% of 10 Gb/s, the control capacity of one direction.
        let tx_ns = pass(&mut hop, 0, false, false).tx_ns;
        assert_eq!(tx_ns, 256_000);
        assert_eq!(100.0 * 512.0 / (tx_ns as f64 / 1e9), 0.2e9);
        for flow in 1..100 {
            pass(&mut hop, flow, false, true);
        }
        assert_eq!(pass(&mut hop, 0, false, false).tx_ns, 2560);
    }

    #[test]
    fn round_follows_the_longest_period() {
        let mut round = Round::new(0, 0, RTT_NS, 120_000);
        assert_eq!(round.ns(), 2 * RTT_NS, "two round trips to start with");
        round.saw(RTT_NS, 0);
        assert_eq!(round.ns(), 2 * RTT_NS);
        round.saw(5 * RTT_NS, 100);
        assert_eq!(round.ns(), 8 * RTT_NS, "doubled at once until it covers the period");
        round.saw(7 * RTT_NS, 200);
        assert_eq!(round.ns(), 16 * RTT_NS, "8 round trips are too little where packets may wait");
        round.saw(RTT_NS, 11 * RTT_NS);
        assert_eq!(round.ns(), 16 * RTT_NS, "a long period was seen within MaxRound");
        round.saw(RTT_NS, 22 * RTT_NS);
        assert_eq!(round.ns(), 8 * RTT_NS, "halved after MaxRound of short ones");
        for k in 3..9 {
            round.saw(RTT_NS, 11 * k * RTT_NS);
        }
        assert_eq!(round.ns(), 2 * RTT_NS, "as long as half is enough");
        for k in 9..19 {
            round.saw(RTT_NS / 10, 11 * k * RTT_NS);
        }
        assert_eq!(round.ns(), RTT_NS / 8, "a link whose flows are all near has short rounds");
        let mut constant = Round::new(500, 0, RTT_NS, 120_000);
        constant.saw(7 * RTT_NS, 100);
        assert_eq!(constant.ns(), 500);
        assert_eq!(Round::new(0, 700, RTT_NS, 120_000).ns(), 700);
        let mut wide = Round::new(0, 100_000_000, 250_000_000, 120_000);
        wide.saw(190_000_000, 0);
        assert_eq!(wide.ns(), 200_000_000, "over long links packets wait for a small part of their round trip");
        wide.saw(199_900_000, 0);
        assert_eq!(wide.ns(), 400_000_000);
    }

    #[test]
    fn resets_come_every_round_in_the_links_own_phase() {
        let (scheme, mut hop) = hop();
        let mut other = scheme.hop(&Port { link: LinkId(8), ..port() });
        let mut io = Io::default();
        let due = |io: &mut Io<SPerc>| match io.take_effects().next() {
            Some(Effect::Timer { at_ns, .. }) => at_ns,
            effect => panic!("a timer is set, not {effect:?}"),
        };
        hop.on_start(&mut io);
        let first = due(&mut io);
        other.on_start(&mut io);
        assert_ne!(first, due(&mut io));
        io.now_ns = first;
        hop.on_timer(&mut io, ROUND_OVER, &port());
        assert_eq!(due(&mut io), first + 2 * RTT_NS);
    }
}
