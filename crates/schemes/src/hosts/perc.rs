//! s-PERC and s-PERC* on real hosts: settings of the links in the kernel, and the simulator's sources, over UDP
//! datagrams.

use crate::perc::division::Tables;
use crate::perc::fixed::{Fixed, FixedEntry, MOST_HOPS, PercLinkSettings, RateUnit, WEIGHT_BITS};
use crate::perc::wire::{self, PercDatagram};
use crate::perc::{HopCounts, Perc, PercMessage, PercSettings, PercSource, Rule, Tie};
use crate::registry;
use crate::s_perc::{COMPACT, SPerc, SPercField, SPercFields, Stateless};
use crate::s_perc_star::{Numbered, Robust, SPercStar};
use serde_json::{Map, Value};
use std::fmt::Debug;
use std::sync::Arc;
use subak_core::scheme::{Ack, Effect, FlowInfo, Io, Named, OnHosts, Params, PathInfo, Scheme, Source};
use subak_core::{FlowId, InputError, Ns, SubflowId, Utility};

/// Range of weights on hosts. Below it, rates per unit of weight overflow; above it, the sum of weights at a link.
const WEIGHTS: std::ops::RangeInclusive<f64> = 1.0 / 16.0..=4096.0;
/// Largest tables in the kernel, KB.
const MOST_KB: f64 = 512.0;
/// Largest delay of a control packet by host scheduling, in RTTs.
const LATE_RTTS: Ns = 4;
/// Default time after which s-PERC marks a control packet lost, ns. A late packet is harmless, but replacing it would
/// count the flow twice permanently.
const LOST_NS: Ns = 1_000_000_000;

/// A network of hosts whose flows share links by s-PERC or s-PERC*.
#[derive(Debug, Clone)]
pub struct PercHosts {
    member: Member,
    settings: PercSettings,
    tables: Option<Arc<Tables>>,
    tie: Tie,
    unit: RateUnit,
    rtt_ns: Ns,
    packet_bytes: u32,
}

#[derive(Debug, Clone)]
enum Member {
    Plain(Stateless),
    Robust(Robust),
}

/// Whether hosts run the scheme by control packets.
pub fn is_run(scheme: &str) -> bool {
    registry::find(scheme).is_ok_and(|info| info.on_hosts == OnHosts::Control)
}

/// Refuses schemes and parameters that hosts do not support.
pub fn check(scheme: &str, params: &Map<String, Value>) -> Result<(), InputError> {
    if !is_run(scheme) {
        let what = format!("scheme \"{scheme}\" does not send control packets between hosts");
        return Err(InputError::new("scheme", what, "take s-perc or s-perc-star"));
    }
    let resolved = Params::resolve(registry::find(scheme)?, params)?;
    if resolved.flag(COMPACT.key.name) {
        let what = "hosts' packets carry one rate for each link";
        return Err(InputError::new("params.compact", what, "leave it away on a testbed"));
    }
    if scheme == SPercStar::INFO.name && resolved.number(crate::perc::SHORT.key.name) > 0.0 {
        let what = "a testbed's queues do not let short flows go before others";
        return Err(InputError::new("params.short", what, "leave it away on a testbed"));
    }
    if resolved.number(crate::perc::DIVISION.key.name) > MOST_KB {
        let what = format!("hosts hold tables of at most {MOST_KB} KB");
        return Err(InputError::new("params.division_kb", what, "give less, or 0 to divide exactly"));
    }
    Ok(())
}

/// Refuses weights that packets cannot carry.
pub fn check_weight(weight: f64) -> Result<(), InputError> {
    if WEIGHTS.contains(&weight) {
        return Ok(());
    }
    let what = format!("a flow has a weight of {weight}");
    Err(InputError::new("weight", what, "give weights from 1/16 to 4096: they count by their ratios"))
}

impl PercHosts {
    /// Settings of `scheme` with a spec's parameters. Times in the spec are divided by `scale` to obtain the hosts'
    /// times. `rtt_ns`: largest base RTT between hosts; `most_bps`: largest rate of a link; `packet_bytes`: size of a
    /// full packet on the wire.
    pub fn new(
        scheme: &str,
        params: &Map<String, Value>,
        scale: f64,
        rtt_ns: Ns,
        most_bps: f64,
        packet_bytes: u32,
    ) -> Result<Self, InputError> {
        check(scheme, params)?;
        let params = Params::resolve(registry::find(scheme)?, params)?;
        let (member, read) = match scheme {
            "s-perc" => {
                let made = SPerc::new(&params)?;
                (Member::Plain(made.rule), made.settings)
            }
            _ => {
                let made = SPercStar::new(&params)?;
                (Member::Robust(made.rule), made.settings)
            }
        };
        let slow = |ns: Ns| (ns as f64 / scale).round() as Ns;
        let settings = PercSettings {
            rto_ns: match (slow(read.rto_ns), &member) {
                (0, Member::Plain(_)) => LOST_NS,
                (rto_ns, _) => rto_ns,
            },
            round_ns: slow(read.round_ns),
            first_round_ns: slow(read.first_round_ns),
            ..read
        };
        let kb = params.number(crate::perc::DIVISION.key.name);
        let tables = (kb > 0.0).then(|| Arc::new(Tables::within((kb * 1024.0) as usize)));
        let tie = Tie::read(&params)?.covering(tables.as_ref().map_or(0.0, |t| t.error()));
        Ok(PercHosts {
            member,
            settings,
            tables,
            tie,
            unit: RateUnit::of(most_bps),
            rtt_ns: rtt_ns.max(1),
            packet_bytes,
        })
    }

    /// Division tables of the links; `None` for exact division.
    pub fn tables(&self) -> Option<&Tables> {
        self.tables.as_deref()
    }

    /// Unit of the rates in packets.
    pub fn unit(&self) -> RateUnit {
        self.unit
    }

    /// Whether links also update packets on the reverse path.
    pub fn reverse(&self) -> bool {
        self.settings.reverse
    }

    /// Settings of a link of `capacity_bps`, and its first round in ns. Paths have at most `hops` links.
    pub fn link(&self, capacity_bps: f64, hops: u8) -> (PercLinkSettings, Ns) {
        let PercSettings { control, headroom, round_ns, first_round_ns, .. } = self.settings;
        let (log, power) = self.tables().map_or((0, 0), |t| (t.parts().0, t.parts().1));
        let control_bps = capacity_bps * control / 2.0;
        let bits = f64::from(wire::wire_bytes(hops)) * 8.0;
        let settings = PercLinkSettings {
            capacity: self.unit.capacity(capacity_bps * (1.0 - control - headroom)),
            packet_ns: if control_bps > 0.0 { (bits * 1e9 / control_bps).ceil() as u64 } else { 0 },
            patience_ns: if round_ns > 0 { 0 } else { self.rtt_ns.saturating_mul(10) },
            wait_ns: self.rtt_ns.saturating_mul(LATE_RTTS),
            tie: (self.tie.0 * 4_294_967_296.0).ceil() as u32,
            robust: matches!(self.member, Member::Robust(_)),
            log_index_bits: log as u8,
            power_index_bits: power as u8,
        };
        let first_ns = [round_ns, first_round_ns, self.rtt_ns.saturating_mul(2)].into_iter().find(|&ns| ns > 0);
        (settings, first_ns.unwrap_or(1))
    }

    /// The sender of a flow.
    pub fn sender(&self, flow: &HostFlow) -> Result<PercSender, InputError> {
        if usize::from(flow.path.hops) > MOST_HOPS || flow.path.hops == 0 {
            let what = format!("a flow's path has {} links, and packets hold {MOST_HOPS}", flow.path.hops);
            return Err(InputError::new("network", what, "take shorter paths, or simulate it"));
        }
        check_weight(flow.weight)?;
        let info = FlowInfo {
            weight: flow.weight,
            size_bytes: flow.size_bytes,
            mtu_bytes: self.packet_bytes,
            mss_bytes: flow.mss_bytes,
            utility: Arc::new(Utility::log(flow.weight)),
            ..FlowInfo::example(FlowId(flow.number), vec![flow.path])
        };
        let common = Common { unit: self.unit, number: flow.number, path: flow.path };
        Ok(PercSender(match &self.member {
            Member::Plain(rule) => Box::new(Machine::new(rule.clone(), self.settings, &info, common)),
            Member::Robust(rule) => Box::new(Machine::new(rule.clone(), self.settings, &info, common)),
        }))
    }
}

/// Description of a flow for its sender.
#[derive(Debug, Clone, Copy)]
pub struct HostFlow {
    /// Flow number in its packets.
    pub number: u32,
    /// Weight, from 1/16 to 4096.
    pub weight: f64,
    /// Payload, bytes; `None` for an unlimited flow.
    pub size_bytes: Option<u64>,
    /// Payload of a full packet, bytes.
    pub mss_bytes: u32,
    /// Path of the flow, with rates and times of the hosts' network.
    pub path: PathInfo,
}

/// Action that a sender requests of its host.
#[derive(Debug, Clone, PartialEq)]
pub enum Do {
    /// Send this datagram to the receiver.
    Send(Vec<u8>),
    /// Call [`PercSender::wake`] with this timer at this time.
    Wake {
        /// Timer number.
        timer: u32,
        /// Expiry, ns.
        at_ns: Ns,
    },
    /// Send data at this rate on the wire, bit/s.
    Pace(f64),
}

/// State machine of a flow's source, the same as in simulations.
#[derive(Debug)]
pub struct PercSender(Box<dyn Endpoint>);

impl PercSender {
    /// Starts the flow.
    pub fn start(&mut self, now_ns: Ns) -> Vec<Do> {
        self.0.drive(now_ns, What::Start)
    }
    /// Handles a control datagram that returned from the receiver.
    pub fn hear(&mut self, now_ns: Ns, datagram: &PercDatagram) -> Vec<Do> {
        self.0.drive(now_ns, What::Hear(datagram))
    }
    /// Handles an expired timer.
    pub fn wake(&mut self, now_ns: Ns, timer: u32) -> Vec<Do> {
        self.0.drive(now_ns, What::Wake(timer))
    }
    /// Sets the payload without ACK, and the part of it in flight, bytes.
    pub fn tell_left(&mut self, remaining_bytes: u64, in_flight_bytes: u64) {
        self.0.drive(0, What::Left(remaining_bytes, in_flight_bytes));
    }
    /// Sets the flow's weight, within the range that [`check_weight`] accepts.
    pub fn weigh(&mut self, now_ns: Ns, weight: f64) -> Vec<Do> {
        self.0.drive(now_ns, What::Weigh(weight.clamp(*WEIGHTS.start(), *WEIGHTS.end())))
    }
    /// Ends the flow.
    pub fn finish(&mut self, now_ns: Ns) -> Vec<Do> {
        self.0.drive(now_ns, What::Finish)
    }
}

enum What<'a> {
    Start,
    Hear(&'a PercDatagram),
    Wake(u32),
    Left(u64, u64),
    Weigh(f64),
    Finish,
}

trait Endpoint: Debug + Send {
    fn drive(&mut self, now_ns: Ns, what: What) -> Vec<Do>;
}

#[derive(Debug, Clone, Copy)]
struct Common {
    unit: RateUnit,
    number: u32,
    path: PathInfo,
}

/// A rule whose packets hosts can send.
trait Wired: Rule {
    fn entries(fields: &Self::Fields, unit: RateUnit) -> ([FixedEntry; MOST_HOPS], u32);
    fn fields(packet: &Fixed, unit: RateUnit) -> Self::Fields;
}

fn entry(field: &SPercField, unit: RateUnit) -> FixedEntry {
    let SPercField { a, b, bottlenecked, ignored } = *field;
    FixedEntry { a: unit.rate(a), b: unit.rate(b), bottlenecked, ignored, round_number: 0 }
}

fn field(entry: &FixedEntry, unit: RateUnit) -> SPercField {
    let FixedEntry { a, b, bottlenecked, ignored, .. } = *entry;
    SPercField { a: unit.bps(a), b: unit.bps(b), bottlenecked, ignored }
}

impl Wired for Stateless {
    fn entries(fields: &SPercFields, unit: RateUnit) -> ([FixedEntry; MOST_HOPS], u32) {
        let mut entries = [FixedEntry::NEW; MOST_HOPS];
        entries.iter_mut().zip(&fields.links).for_each(|(entry_, field)| *entry_ = entry(field, unit));
        (entries, unit.rate(f64::INFINITY))
    }
    fn fields(packet: &Fixed, unit: RateUnit) -> SPercFields {
        let links = packet.links.iter().take(packet.hops.into()).map(|entry| field(entry, unit)).collect();
        SPercFields { links, least: None, own: f64::INFINITY }
    }
}

impl Wired for Robust {
    fn entries(numbered: &Numbered, unit: RateUnit) -> ([FixedEntry; MOST_HOPS], u32) {
        let (mut entries, _) = Stateless::entries(&numbered.fields, unit);
        for (entry, &number) in entries.iter_mut().zip(&numbered.round_number) {
            entry.round_number = number;
        }
        (entries, unit.rate(numbered.fields.own))
    }
    fn fields(packet: &Fixed, unit: RateUnit) -> Numbered {
        let round_number = packet.links.iter().take(packet.hops.into()).map(|entry| entry.round_number).collect();
        Numbered {
            fields: SPercFields { own: unit.bps(packet.own), ..<Stateless as Wired>::fields(packet, unit) },
            round_number,
        }
    }
}

struct Machine<R: Wired> {
    source: PercSource<R>,
    io: Io<Perc<R>>,
    common: Common,
}

impl<R: Wired> Debug for Machine<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Machine").field("common", &self.common).finish_non_exhaustive()
    }
}

impl<R: Wired> Machine<R> {
    fn new(rule: R, settings: PercSettings, info: &FlowInfo, common: Common) -> Self {
        Machine { source: PercSource::new(rule, settings, info), io: Io::default(), common }
    }

    fn datagram(&self, message: &PercMessage<R>) -> PercDatagram {
        let Common { unit, number, path } = self.common;
        let (links, own) = R::entries(&message.fields, unit);
        let packet = Fixed {
            weight: weight(message.weight),
            was: weight(message.was),
            first: message.first,
            fin: message.fin,
            tx_us: us(message.tx_ns),
            period_us: us(message.period_ns),
            round_us: us(message.round_ns),
            own,
            hops: path.hops as u8,
            links,
        };
        PercDatagram { flow: number, serial: message.serial, back: false, hop: 0, unit, packet }
    }

    fn message(&self, datagram: &PercDatagram) -> PercMessage<R> {
        let packet = &datagram.packet;
        let [weight, was] = [packet.weight, packet.was].map(|w| f64::from(w) / f64::from(1u32 << WEIGHT_BITS));
        let [tx_ns, period_ns, round_ns] =
            [packet.tx_us, packet.period_us, packet.round_us].map(|us| Ns::from(us) * 1000);
        let fields = <R as Wired>::fields(packet, self.common.unit);
        let Fixed { first, fin, .. } = *packet;
        PercMessage {
            weight,
            was,
            serial: datagram.serial,
            first,
            fin,
            probe: false,
            tx_ns,
            period_ns,
            round_ns,
            counts: HopCounts::default(),
            fields,
        }
    }
}

impl<R: Wired> Endpoint for Machine<R> {
    fn drive(&mut self, now_ns: Ns, what: What) -> Vec<Do> {
        self.io.now_ns = self.io.now_ns.max(now_ns);
        let one = SubflowId(0);
        match what {
            What::Start => self.source.on_start(&mut self.io),
            What::Hear(datagram) => {
                let own = (self.common.number, self.common.unit, self.common.path.hops);
                if datagram.back && (datagram.flow, datagram.unit, u16::from(datagram.packet.hops)) == own {
                    let message = self.message(datagram);
                    self.source.on_ctl(&mut self.io, one, message);
                }
            }
            What::Wake(timer) => self.source.on_timer(&mut self.io, timer),
            What::Left(remaining_bytes, in_flight_bytes) => {
                let ack = Ack {
                    subflow: one,
                    acked_bytes: 0,
                    rtt_ns: self.common.path.base_rtt_ns,
                    ecn: false,
                    in_flight_bytes,
                    remaining_bytes,
                    segment: 0,
                    next_segment: 0,
                    data: (),
                };
                self.source.on_ack(&mut self.io, &ack);
            }
            What::Weigh(weight) => self.source.on_weight(&mut self.io, weight, &Arc::new(Utility::log(weight))),
            What::Finish => self.source.on_finish(&mut self.io),
        }
        let effects: Vec<_> = self.io.take_effects().collect();
        let line_bps = self.common.path.line_rate_bps;
        let done = |effect| match effect {
            Effect::Ctl { message, .. } => Some(Do::Send(self.datagram(&message).write())),
            Effect::Timer { timer, at_ns } => Some(Do::Wake { timer, at_ns }),
            Effect::Pace { rate_bps, .. } => Some(Do::Pace(rate_bps.map_or(line_bps, |bps| bps.min(line_bps)))),
            Effect::Pause { .. } => None,
        };
        effects.into_iter().filter_map(done).collect()
    }
}

/// Weight in fixed point with 16 fractional bits, at least 1.
fn weight(weight: f64) -> u32 {
    (weight * f64::from(1u32 << WEIGHT_BITS)).round().clamp(1.0, f64::from(u32::MAX)) as u32
}

fn us(ns: Ns) -> u32 {
    u32::try_from(ns.div_ceil(1000)).unwrap_or(u32::MAX)
}
