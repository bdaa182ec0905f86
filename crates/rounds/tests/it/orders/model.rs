//! The orders in which control packets of a PERC scheme may pass links, as a transition system.
//!
//! A link ends its round after it has had the packet of every flow that it counts. Between two ends of its round, it
//! has each of these packets once (`OrderLimits::visits` times at most). Each link ends its round once before any link ends
//! it twice. A round is over when all links have ended it. A lost packet's flow starts again: at each of its links,
//! the new packet comes `OrderLimits::rto` to `rto + 1` ends of the link's round after the last pass of the old one. A flow's first
//! packet comes before the second end. Time has no other part.
//!
//! Links and packets are the scheme's own: [`Rule::update`] and [`Rule::new_round`].

use std::hash::{DefaultHasher, Hash, Hasher};
use subak_core::scheme::Visit;
use subak_core::{FlowId, SubflowId};
use subak_rounds::Setup;
use subak_schemes::perc::Rule;
use subak_schemes::s_perc::SPercFields;

/// Largest number of links, and of flows.
pub const MOST: usize = 4;
/// Rates of states are compared as multiples of this fraction of the largest capacity: far below the tolerance of ties.
const GRAIN: f64 = 1.0 / (1u64 << 40) as f64;

/// A rule whose links can be copied, and whose state can be compared.
pub trait Explored: Rule<Link: Copy> {
    /// The fields of s-PERC in a packet.
    fn of_links(fields: &Self::Fields) -> &SPercFields;
    /// The numbers of the links' rounds in a packet, if it has them.
    fn round_numbers(fields: &Self::Fields) -> Option<&[u8]>;
}

/// The events of an order, and the number of each.
#[derive(Debug, Clone, Copy)]
pub struct OrderLimits {
    /// Packets of a flow that a link has between two ends of its round, at most.
    pub visits: u8,
    /// Least number of ends of a link's round between the passes of a lost packet and of the next one.
    pub rto: u8,
    /// Whether links update packets in both directions.
    pub reverse: bool,
    /// Whether all links end their rounds at once.
    pub common: bool,
    /// Whether rates are exact before anything is lost.
    pub settled: bool,
    /// Number of losses.
    pub losses: u8,
    /// The flow that ends.
    pub leaves: Option<usize>,
}

impl OrderLimits {
    /// Every order with a loss at any time.
    pub const LOSS: OrderLimits =
        OrderLimits { visits: 1, rto: 2, reverse: false, common: false, settled: false, losses: 1, leaves: None };
}

/// A step of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The flow's packet passes its next link.
    Pass(u8),
    /// The link ends its round.
    End(u8),
    /// All links end their rounds.
    EndAll,
    /// The flow's packet is lost, and its next one waits for RTO_ctrl.
    Lose(u8),
    /// The flow ends: its packet's next trip is the teardown.
    Leave(u8),
}

/// Links, flows, and exact rates.
pub struct Model<R: Explored> {
    pub rule: R,
    pub limits: OrderLimits,
    pub capacities_bps: Vec<f64>,
    pub paths: Vec<Vec<usize>>,
    /// Exact rates of the flows at the end, bit/s.
    ideal_bps: Vec<f64>,
    grain_bps: f64,
}

/// State of the links and of the packets.
#[derive(Clone)]
pub struct State<R: Explored> {
    links: Vec<R::Link>,
    packets: Vec<Packet<R>>,
    /// Packets of a flow since the last end of the link's round, by link and flow.
    passes: [[u8; MOST]; MOST],
    /// Ends of the link's round since it had the flow's packet, by link and flow.
    ends: [[u8; MOST]; MOST],
    /// Links that have ended the present round.
    ended: u8,
    losses: u8,
}

#[derive(Clone)]
struct Packet<R: Explored> {
    fields: R::Fields,
    /// Number of passes in the present trip.
    at: u8,
    /// Links that have had this packet, as bits by hop.
    counted: u8,
    /// Whether the flow's packet was lost, and this one has not come to all links.
    again: bool,
    finishing: bool,
    fin: bool,
    gone: bool,
}

/// A step, the state that it leads to, and what was seen.
pub struct Taken<R: Explored> {
    pub state: State<R>,
    /// The allocation that a link wrote, bit/s.
    pub allocated_bps: Option<f64>,
    /// Whether it differs from the flow's exact rate.
    pub wrong: bool,
    /// Whether a round is over.
    pub round: bool,
}

impl<R: Explored> Model<R> {
    pub fn new(rule: R, setup: &Setup, limits: OrderLimits) -> Self {
        let stays = |f: &FlowId| limits.leaves != Some(f.index());
        let kept: Vec<FlowId> = setup.paths.ids().filter(stays).collect();
        let rest = Setup {
            wires: setup.wires.clone(),
            paths: kept.iter().map(|&f| setup.paths[f].clone()).collect(),
            weights: kept.iter().map(|&f| setup.weights[f]).collect(),
        };
        let mut ideal_bps = vec![0.0; setup.paths.len()];
        for (f, rate) in kept.iter().zip(rest.exact().0) {
            ideal_bps[f.index()] = rate;
        }
        let capacities_bps = setup.capacities_bps();
        assert!(capacities_bps.len() <= MOST && ideal_bps.len() <= MOST);
        let grain_bps = GRAIN * capacities_bps.iter().copied().fold(0.0, f64::max);
        let path = |path: &Vec<subak_core::LinkId>| path.iter().map(|l| l.index()).collect();
        Model { rule, limits, capacities_bps, paths: setup.paths.iter().map(path).collect(), ideal_bps, grain_bps }
    }

    /// The first state: every flow's first packet is on its way to its first link.
    pub fn first(&self) -> State<R> {
        let packet = |path: &Vec<usize>| Packet {
            fields: self.fresh(path.len()),
            at: 0,
            counted: 0,
            again: false,
            finishing: false,
            fin: false,
            gone: false,
        };
        let mut state = State {
            links: self.capacities_bps.iter().map(|&c| self.rule.link(c)).collect(),
            packets: self.paths.iter().map(packet).collect(),
            passes: [[0; MOST]; MOST],
            ends: [[0; MOST]; MOST],
            ended: 0,
            losses: 0,
        };
        if self.limits.settled {
            for _ in 0..40 {
                state = self.one_round(state);
            }
        }
        state.losses = self.limits.losses;
        state
    }

    /// A round in which flows pass one after the other.
    fn one_round(&self, mut state: State<R>) -> State<R> {
        for f in 0..self.paths.len() {
            for _ in 0..self.trip(f) {
                state = self.take(&state, Step::Pass(f as u8)).state;
            }
        }
        let ends = (0..self.capacities_bps.len()).map(|l| Step::End(l as u8));
        ends.fold(state, |state, step| self.take(&state, step).state)
    }

    fn fresh(&self, hops: usize) -> R::Fields {
        let mut fields = self.rule.fields(hops as u16);
        self.rule.demand(&mut fields, f64::INFINITY);
        fields
    }

    /// Number of passes in a trip.
    fn trip(&self, f: usize) -> usize {
        self.paths[f].len() * if self.limits.reverse { 2 } else { 1 }
    }

    /// Hop of the next pass, and its direction.
    fn hop(&self, f: usize, at: u8) -> (usize, bool) {
        let (at, hops) = (usize::from(at), self.paths[f].len());
        if at < hops { (at, true) } else { (2 * hops - 1 - at, false) }
    }

    /// Whether nothing more is lost, and no flow ends.
    pub fn quiet(&self, state: &State<R>) -> bool {
        state.losses == 0 && self.limits.leaves.is_none_or(|f| state.packets[f].gone)
    }

    fn may_pass(&self, state: &State<R>, f: usize) -> bool {
        let packet = &state.packets[f];
        if packet.gone {
            return false;
        }
        let (hop, _) = self.hop(f, packet.at);
        let l = self.paths[f][hop];
        if packet.counted & 1 << hop != 0 {
            return state.passes[l][f] < self.limits.visits;
        }
        !packet.again || state.ends[l][f] >= self.limits.rto
    }

    fn may_end(&self, state: &State<R>, l: usize) -> bool {
        if state.ended & 1 << l != 0 {
            return false;
        }
        let ready = |(f, path): (usize, &Vec<usize>)| {
            let packet = &state.packets[f];
            let Some(hop) = path.iter().position(|&m| m == l).filter(|_| !packet.gone) else { return true };
            if packet.counted & 1 << hop != 0 {
                state.passes[l][f] > 0
            } else if packet.fin {
                true
            } else {
                state.ends[l][f] < if packet.again { self.limits.rto + 1 } else { 1 }
            }
        };
        self.paths.iter().enumerate().all(ready)
    }

    /// Calls `visit` with each step that is possible in `state`.
    pub fn steps(&self, state: &State<R>, mut visit: impl FnMut(Step)) {
        let links = self.capacities_bps.len();
        for f in (0..self.paths.len()).filter(|&f| self.may_pass(state, f)) {
            visit(Step::Pass(f as u8));
        }
        if self.limits.common {
            if (0..links).all(|l| self.may_end(state, l)) {
                visit(Step::EndAll);
            }
        } else {
            (0..links).filter(|&l| self.may_end(state, l)).for_each(|l| visit(Step::End(l as u8)));
        }
        if state.losses > 0 {
            (0..self.paths.len()).filter(|&f| !state.packets[f].gone).for_each(|f| visit(Step::Lose(f as u8)));
        }
        if let Some(f) = self.limits.leaves.filter(|&f| !state.packets[f].finishing) {
            visit(Step::Leave(f as u8));
        }
    }

    /// The state after `step`.
    pub fn take(&self, state: &State<R>, step: Step) -> Taken<R> {
        let mut taken = Taken { state: state.clone(), allocated_bps: None, wrong: false, round: false };
        match step {
            Step::Pass(f) => self.pass(&mut taken, usize::from(f)),
            Step::End(l) => self.end(&mut taken, usize::from(l)),
            Step::EndAll => (0..self.capacities_bps.len()).for_each(|l| self.end(&mut taken, l)),
            Step::Lose(f) => self.lose(&mut taken.state, usize::from(f)),
            Step::Leave(f) => taken.state.packets[usize::from(f)].finishing = true,
        }
        taken
    }

    fn pass(&self, taken: &mut Taken<R>, f: usize) {
        let state = &mut taken.state;
        let packet = &mut state.packets[f];
        let (hop, forward) = self.hop(f, packet.at);
        let l = self.paths[f][hop];
        let visit = Visit { flow: FlowId::from_index(f), subflow: SubflowId(0), hop: hop as u16, forward };
        self.rule.update(&mut state.links[l], &mut packet.fields, visit, 1.0, packet.fin);
        if let Some(a) = R::allocated(&packet.fields, hop as u16).filter(|_| !packet.fin) {
            taken.allocated_bps = Some(a);
            taken.wrong = (a - self.ideal_bps[f]).abs() > 1e-9 * self.ideal_bps[f];
        }
        (state.passes[l][f], state.ends[l][f]) = (state.passes[l][f] + 1, 0);
        packet.counted |= 1 << hop;
        if packet.fin {
            packet.counted &= !(1 << hop);
            (state.passes[l][f], state.ends[l][f]) = (0, 0);
        }
        if packet.counted.count_ones() as usize == self.paths[f].len() {
            packet.again = false;
        }
        packet.at += 1;
        if usize::from(packet.at) == self.trip(f) || packet.fin && usize::from(packet.at) == self.paths[f].len() {
            packet.at = 0;
            if packet.fin {
                self.forget(state, f);
            } else {
                self.rule.returned(&mut packet.fields);
                packet.fin = packet.finishing;
            }
        }
    }

    fn forget(&self, state: &mut State<R>, f: usize) {
        let packet = &mut state.packets[f];
        (packet.gone, packet.at, packet.counted, packet.again) = (true, 0, 0, false);
        packet.fields = self.fresh(self.paths[f].len());
        for l in 0..MOST {
            (state.passes[l][f], state.ends[l][f]) = (0, 0);
        }
    }

    fn end(&self, taken: &mut Taken<R>, l: usize) {
        let state = &mut taken.state;
        self.rule.new_round(&mut state.links[l]);
        for (f, path) in self.paths.iter().enumerate() {
            let Some(hop) = path.iter().position(|&m| m == l) else { continue };
            let packet = &state.packets[f];
            state.passes[l][f] = 0;
            let counts = !(packet.gone || packet.fin && packet.counted & 1 << hop == 0);
            state.ends[l][f] = if counts { state.ends[l][f] + 1 } else { 0 };
        }
        state.ended |= 1 << l;
        if state.ended.count_ones() as usize == self.capacities_bps.len() {
            state.ended = 0;
            taken.round = true;
        }
    }

    fn lose(&self, state: &mut State<R>, f: usize) {
        state.losses -= 1;
        let packet = &mut state.packets[f];
        if packet.finishing {
            return self.forget(state, f);
        }
        packet.fields = self.fresh(self.paths[f].len());
        (packet.at, packet.counted, packet.again) = (0, 0, true);
        for l in 0..MOST {
            state.passes[l][f] = 0;
        }
    }

    /// A hash of what the future depends on. Numbers of rounds count as equal or not to the link's.
    pub fn key(&self, state: &State<R>) -> u128 {
        let mut bits: Vec<i64> = Vec::with_capacity(96);
        let grain = |x: f64| (x / self.grain_bps).round() as i64;
        let mut numbers = [0; MOST];
        for (l, link) in state.links.iter().enumerate() {
            for (name, value) in R::watch(link) {
                match name {
                    "roundNumber" => numbers[l] = value as u8,
                    "NumB" | "NumB'" => bits.push(value as i64),
                    _ => bits.push(grain(value)),
                }
            }
        }
        for (f, packet) in state.packets.iter().enumerate() {
            let flags = [packet.again, packet.finishing, packet.fin, packet.gone];
            bits.push(i64::from(packet.at) << 16 | i64::from(packet.counted) << 8);
            bits.extend(flags.map(i64::from));
            for (hop, field) in R::of_links(&packet.fields).links.iter().enumerate() {
                // A link reads the allocation of a flow in state E, and other links a rate that is not ignored.
                bits.push(if field.bottlenecked { -1 } else { grain(field.a) });
                bits.push(if field.ignored { -1 } else { grain(field.b) });
                let l = self.paths[f][hop];
                bits.push(match R::round_numbers(&packet.fields).map(|n| n[hop]) {
                    None | Some(0) => 0,
                    Some(number) if number == numbers[l] => 1,
                    Some(_) => 2,
                });
            }
        }
        let hash = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, &bits, state.passes, state.ends, state.ended, state.losses).hash(&mut hasher);
            u128::from(hasher.finish())
        };
        hash(0) << 64 | hash(1)
    }
}
