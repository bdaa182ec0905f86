//! A link of s-PERC and s-PERC* in integer arithmetic, as in kernels and switches: the reference of the eBPF program.
//! It uses additions, multiplications, shifts of 64-bit words, and unsigned division only.
//!
//! Rates are per unit of weight, in one unit for the whole network ([`RateUnit`]), and have 31 bits, so that a state
//! bit fits beside each. Weights have 16 fractional bits. A product of both is below 2^64 for any packet content, and
//! sums subtract exactly the integers that they added.
//!
//! Rates count as equal if they differ by at most the tables' error plus one unit of rounding.
//!
//! A round ends with the first packet after its time. No state is read between packets, so that this is equivalent to
//! a timer.

use super::division::Tables;

/// Largest number of links of a path.
pub const MOST_HOPS: usize = 8;
/// Fractional bits of a weight.
pub const WEIGHT_BITS: u32 = 16;
/// Largest rate; as a limit it means "no limit".
pub const NO_LIMIT: u32 = (1 << 31) - 1;
/// Largest total weight by which a link divides.
pub const MOST_WEIGHT: i64 = u32::MAX as i64;
/// Number of rounds after which round numbers repeat.
pub const ROUND_NUMBERS: u64 = 255;
/// Longest round that a packet may request, ns.
const MOST_ROUND_NS: u64 = 1 << 62;
/// Largest number of doublings of a round in one step.
const MOST_DOUBLINGS: u32 = 40;

/// Unit of rates in packets, as a power of two: the unit is 2^`.0` bit/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateUnit(pub i8);

impl RateUnit {
    /// Unit for a network whose fastest link has `capacity_bps`: that link has 2^26 to 2^27 units, so that even a
    /// flow of weight 1/16 can get all of it.
    pub fn of(capacity_bps: f64) -> Self {
        let (_, exponent) = libm::frexp(capacity_bps);
        RateUnit((exponent - 27).clamp(-64, 64) as i8)
    }
    /// Converts a rate in bit/s to units, rounded to the nearest.
    pub fn rate(self, bps: f64) -> u32 {
        libm::ldexp(bps, -i32::from(self.0)).round().clamp(0.0, f64::from(NO_LIMIT)) as u32
    }
    /// Converts a rate in units to bit/s; infinite for [`NO_LIMIT`].
    pub fn bps(self, rate: u32) -> f64 {
        if rate >= NO_LIMIT { f64::INFINITY } else { libm::ldexp(f64::from(rate), self.0.into()) }
    }
    /// Capacity in fixed point, with `WEIGHT_BITS` fractional bits.
    pub fn capacity(self, bps: f64) -> u64 {
        u64::from(self.rate(bps)) << WEIGHT_BITS
    }
}

/// Fields of a control packet for one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FixedEntry {
    /// Allocation, rate units per unit of weight.
    pub a: u32,
    /// Bottleneck rate, rate units per unit of weight.
    pub b: u32,
    /// Whether the flow is bottlenecked at this link (s = B).
    pub bottlenecked: bool,
    /// The ignore bit: whether other links must ignore `b`.
    pub ignored: bool,
    /// The link's round in which the packet was last counted; 0 if it has not been.
    pub round_number: u8,
}

impl FixedEntry {
    /// Entry of a new flow.
    pub const NEW: FixedEntry = FixedEntry { a: 0, b: 0, bottlenecked: false, ignored: true, round_number: 0 };
}

/// Fields of a control packet that links read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fixed {
    /// Weight of the flow on the packet's present trip.
    pub weight: u32,
    /// Weight of the flow on the packet's previous trip.
    pub was: u32,
    /// Whether this is the flow's first control packet.
    pub first: bool,
    /// Whether this is the flow's teardown.
    pub fin: bool,
    /// Tx_ctrl, us: minimum interval between two control packets of the flow.
    pub tx_us: u32,
    /// The flow's period, us: the larger of its last RTT and Tx_ctrl.
    pub period_us: u32,
    /// Longest round (time between two resets of MaxE) of a link on the path, us.
    pub round_us: u32,
    /// b\[l0\]: rate of the virtual link that stands for the flow's demand, rate units per unit of weight.
    pub own: u32,
    /// Number of links of the path.
    pub hops: u8,
    /// Entries, one for each link of the path.
    pub links: [FixedEntry; MOST_HOPS],
}

/// Settings of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PercLinkSettings {
    /// Capacity for data: see [`RateUnit::capacity`].
    pub capacity: u64,
    /// Transmission time of a control packet at the control capacity of one direction, ns; 0 for no limit.
    pub packet_ns: u64,
    /// MaxRound, ns: time after which a round that is too long is halved; 0 if rounds have a constant length.
    pub patience_ns: u64,
    /// Largest delay of a control packet in addition to its period, ns.
    pub wait_ns: u64,
    /// Relative tolerance within which rates count as equal, with 32 fractional bits.
    pub tie: u32,
    /// Whether the link runs s-PERC* instead of s-PERC.
    pub robust: bool,
    /// Index bits of the table of logarithms; 0 for exact division.
    pub log_index_bits: u8,
    /// Index bits of the table of powers; 0 for exact division.
    pub power_index_bits: u8,
}

/// State of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FixedLink {
    /// SumE, allocations of the flows bottlenecked at other links: rate units times weight units.
    pub sum_e: i64,
    /// SumE': SumE of the flows with a packet in this round (s-PERC*).
    pub shadow_sum_e: i64,
    /// NumB, weights of the flows bottlenecked here: weight units.
    pub num_b: i64,
    /// NumB': NumB of the flows with a packet in this round (s-PERC*).
    pub shadow_num_b: i64,
    /// MaxE: largest allocation of a flow bottlenecked at another link, in this round and the previous one.
    pub max_e: u32,
    /// MaxE': the same in this round alone.
    pub max_e_next: u32,
    /// Number of the round, from 1 to [`ROUND_NUMBERS`].
    pub round_number: u32,
    /// N, the number of flows.
    pub flows: u32,
    /// Number of flows with a packet in this round.
    pub seen: u32,
    /// Length of a round, ns.
    pub round_ns: u64,
    /// Start of the present round, ns.
    pub began_ns: u64,
    /// Longest time between two control packets of a flow (its RTT), measured since `since_ns`, ns.
    pub longest_ns: u64,
    /// Start of the measurement of `longest_ns`, ns.
    pub since_ns: u64,
}

impl FixedLink {
    /// A link without flows, in its first round of `round_ns`, which began at `began_ns`.
    pub fn new(round_ns: u64, began_ns: u64) -> Self {
        let round_ns = round_ns.max(1);
        FixedLink { round_number: 1, round_ns, began_ns, since_ns: began_ns, ..FixedLink::default() }
    }

    /// Updates a control packet at the `hop`-th link of its path. Call it on the reverse path only if links update
    /// control packets in both directions.
    pub fn pass(
        &mut self,
        set: &PercLinkSettings,
        tables: Option<&Tables>,
        packet: &mut Fixed,
        hop: u8,
        forward: bool,
        now_ns: u64,
    ) {
        if hop >= packet.hops || usize::from(packet.hops) > MOST_HOPS {
            return;
        }
        self.turn(set, now_ns);
        if forward {
            self.count(set, packet);
        }
        self.saw(set, 1000 * u64::from(packet.period_us.max(packet.tx_us)), now_ns);
        packet.round_us = packet.round_us.max(us(self.round_ns));
        if forward && !set.robust && packet.was != packet.weight {
            self.reweigh(&packet.links[usize::from(hop)], packet.was, packet.weight);
        }
        self.update(set, tables, packet, hop);
    }

    /// Ends the rounds up to `now_ns`. Two of them clear all that rounds reset, so that further ones make no
    /// difference.
    fn turn(&mut self, set: &PercLinkSettings, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.began_ns);
        if passed_ns < self.round_ns {
            return;
        }
        let rounds = passed_ns / self.round_ns;
        self.began_ns += rounds * self.round_ns;
        for _ in 0..rounds.min(2) {
            self.max_e = self.max_e_next;
            self.max_e_next = 0;
            if set.robust {
                (self.sum_e, self.num_b, self.flows) = (self.shadow_sum_e, self.shadow_num_b, self.seen);
                (self.shadow_sum_e, self.shadow_num_b, self.seen) = (0, 0, 0);
            }
        }
        self.round_number = ((u64::from(self.round_number) + rounds - 1) % ROUND_NUMBERS) as u32 + 1;
    }

    /// Computes Tx_ctrl. In s-PERC, also counts flows by their first and last packets; in s-PERC*, rounds count flows.
    fn count(&mut self, set: &PercLinkSettings, packet: &mut Fixed) {
        if packet.first && !set.robust {
            self.flows = self.flows.saturating_add(1);
        }
        packet.tx_us = packet.tx_us.max(us(u64::from(self.flows.max(1)).wrapping_mul(set.packet_ns)));
        if packet.fin && !set.robust {
            self.flows = self.flows.saturating_sub(1);
        }
    }

    /// Adjusts the length of rounds to `period_ns`, the period that a control packet carries, as [`super::Round`] does.
    /// Here the maximum queueing delay is a setting of the link, not a fraction of the period.
    fn saw(&mut self, set: &PercLinkSettings, period_ns: u64, now_ns: u64) {
        if set.patience_ns == 0 {
            return;
        }
        let enough_for = |period_ns: u64| period_ns.saturating_add(set.wait_ns).min(MOST_ROUND_NS);
        self.longest_ns = self.longest_ns.max(period_ns);
        for _ in 0..MOST_DOUBLINGS {
            if self.round_ns >= enough_for(period_ns) {
                break;
            }
            self.round_ns *= 2;
        }
        if now_ns.saturating_sub(self.since_ns) >= set.patience_ns {
            if self.round_ns / 2 >= enough_for(self.longest_ns) {
                self.round_ns /= 2;
            }
            self.longest_ns = period_ns;
            self.since_ns = now_ns;
        }
    }

    fn reweigh(&mut self, old: &FixedEntry, was: u32, weight: u32) {
        if old.bottlenecked {
            self.num_b = self.num_b.wrapping_add(i64::from(weight) - i64::from(was));
        } else {
            self.sum_e = self.sum_e.wrapping_sub(share(old.a, was)).wrapping_add(share(old.a, weight));
        }
    }

    /// Algorithm 6 (s-PERC) or 8 (s-PERC*) of the PERC thesis.
    fn update(&mut self, set: &PercLinkSettings, tables: Option<&Tables>, packet: &mut Fixed, hop: u8) {
        let (old, weight) = (packet.links[usize::from(hop)], i64::from(packet.weight));
        let held = share(old.a, packet.weight);
        if !old.bottlenecked {
            self.sum_e = self.sum_e.wrapping_sub(held);
            self.num_b = self.num_b.wrapping_add(weight);
        }
        if set.robust {
            if u32::from(old.round_number) != self.round_number {
                self.shadow_num_b = self.shadow_num_b.wrapping_add(weight);
                self.seen = self.seen.wrapping_add(1);
                self.flows = self.flows.wrapping_add(u32::from(old.round_number == 0));
            } else if !old.bottlenecked {
                self.shadow_sum_e = self.shadow_sum_e.wrapping_sub(held);
                self.shadow_num_b = self.shadow_num_b.wrapping_add(weight);
            }
        }
        let e = limit_rate(packet, hop, set.robust);
        let left = (set.capacity as i64).wrapping_sub(self.sum_e).clamp(0, set.capacity as i64) as u64;
        let num_b = self.num_b.min(MOST_WEIGHT).max(weight).max(1) as u64;
        let b = set.divide(tables, left.max(1), num_b);
        let (limited, largest) = (u64::from(e) * num_b, u64::from(self.max_e) * num_b);
        let bottlenecked = e == NO_LIMIT || left <= limited + part(limited, set.tie) + num_b;
        let ignored = left + num_b < largest - part(largest, set.tie);
        let a = if bottlenecked { b.min(e) } else { e };
        let round_number = if set.robust { self.round_number as u8 } else { old.round_number };
        packet.links[usize::from(hop)] = FixedEntry { a, b, bottlenecked, ignored, round_number };
        if packet.fin {
            self.num_b = self.num_b.wrapping_sub(weight);
            if set.robust {
                self.shadow_num_b = self.shadow_num_b.wrapping_sub(weight);
                self.seen = self.seen.saturating_sub(1);
                self.flows = self.flows.saturating_sub(1);
            }
        } else if !bottlenecked {
            let given = share(a, packet.weight);
            self.num_b = self.num_b.wrapping_sub(weight);
            self.sum_e = self.sum_e.wrapping_add(given);
            if set.robust {
                self.shadow_num_b = self.shadow_num_b.wrapping_sub(weight);
                self.shadow_sum_e = self.shadow_sum_e.wrapping_add(given);
            }
            self.max_e = self.max_e.max(a);
            self.max_e_next = self.max_e_next.max(a);
        }
    }
}

impl PercLinkSettings {
    /// `x` / `y`, rounded to the nearest integer.
    fn divide(&self, tables: Option<&Tables>, x: u64, y: u64) -> u32 {
        let quotient = tables.map_or((x + y / 2) / y, |tables| tables.quotient(x, y));
        quotient.min(u64::from(NO_LIMIT)) as u32
    }
}

/// The smallest rate that any other link propagates, or the flow's demand (PERC thesis, Algorithms 6 and 8, line 9).
fn limit_rate(packet: &Fixed, hop: u8, robust: bool) -> u32 {
    let mut least = if robust { packet.own.min(NO_LIMIT) } else { NO_LIMIT };
    for (k, link) in packet.links.iter().enumerate() {
        if k < usize::from(packet.hops) && k != usize::from(hop) && !link.ignored && link.b < least {
            least = link.b;
        }
    }
    least
}

/// Link capacity that an allocation of `a` uses: below 2^63.
fn share(a: u32, weight: u32) -> i64 {
    i64::from(a) * i64::from(weight)
}

/// `x` times `fraction`, which has 32 fractional bits.
fn part(x: u64, fraction: u32) -> u64 {
    (x >> 32) * u64::from(fraction) + (((x & u64::from(u32::MAX)) * u64::from(fraction)) >> 32)
}

/// A time in microseconds, rounded up.
fn us(ns: u64) -> u32 {
    ns.div_ceil(1000).min(u64::from(u32::MAX)) as u32
}
