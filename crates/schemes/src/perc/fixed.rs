//! A link of s-PERC and of s-PERC* in integers, as kernels and switches run it. It is the reference of the eBPF program: it
//! adds, multiplies and shifts words of 64 bits, and has unsigned division only.
//!
//! Rates are per unit of weight, in a unit that is one for the network ([`RateUnit`]), and have 31 bits, so that their bits of
//! state fit beside them. Weights have 16 bits after the point. A product of both has less than 64 bits whatever a packet
//! holds, and sums take away the very same integers that they added.
//!
//! Rates count as equal that differ by the tables' error and one unit, which is what rounding loses.
//!
//! A round ends with the first packet after its time. No state is read between two packets, so that this is the same as a timer.

use super::division::Tables;

/// The most links of a path.
pub const MOST_HOPS: usize = 8;
/// Binary places of a weight.
pub const WEIGHT_BITS: u32 = 16;
/// Largest rate; as a limit it means none.
pub const NO_LIMIT: u32 = (1 << 31) - 1;
/// Largest weight by which a link divides.
pub const MOST_WEIGHT: i64 = u32::MAX as i64;
/// Number of rounds after which round numbers repeat.
pub const ROUND_NUMBERS: u64 = 255;
/// The longest round that a packet may ask for.
const MOST_ROUND_NS: u64 = 1 << 62;
/// Doublings of a round in one step, at most.
const MOST_DOUBLINGS: u32 = 40;

/// The unit of rates in packets: 2 to the power of this, bit/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateUnit(pub i8);

impl RateUnit {
    /// For a network whose fastest link has `capacity_bps`: that link has 2^26 to 2^27 units, and a flow of weight 1/16 all of
    /// it.
    pub fn of(capacity_bps: f64) -> Self {
        let (_, exponent) = libm::frexp(capacity_bps);
        RateUnit((exponent - 27).clamp(-64, 64) as i8)
    }
    /// The nearest rate.
    pub fn rate(self, bps: f64) -> u32 {
        libm::ldexp(bps, -i32::from(self.0)).round().clamp(0.0, f64::from(NO_LIMIT)) as u32
    }
    /// bit/s.
    pub fn bps(self, rate: u32) -> f64 {
        if rate >= NO_LIMIT { f64::INFINITY } else { libm::ldexp(f64::from(rate), self.0.into()) }
    }
    /// Capacity in fixed point, with `WEIGHT_BITS` fractional bits.
    pub fn capacity(self, bps: f64) -> u64 {
        u64::from(self.rate(bps)) << WEIGHT_BITS
    }
}

/// Field of a control packet for one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FixedEntry {
    /// Allocation.
    pub a: u32,
    /// Bottleneck rate.
    pub b: u32,
    /// s = B.
    pub bottlenecked: bool,
    /// The ignore bit.
    pub ignored: bool,
    /// The link's round in which the packet was counted last; 0 for not yet.
    pub round_number: u8,
}

impl FixedEntry {
    /// Entry of a new flow.
    pub const NEW: FixedEntry = FixedEntry { a: 0, b: 0, bottlenecked: false, ignored: true, round_number: 0 };
}

/// The fields of a packet that links read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fixed {
    /// Weight of the flow, and that of the trip before.
    pub weight: u32,
    /// See `weight`.
    pub was: u32,
    /// Whether it is the flow's first.
    pub first: bool,
    /// Whether the flow is leaving.
    pub fin: bool,
    /// Tx_ctrl, us.
    pub tx_us: u32,
    /// The flow's period, us.
    pub period_us: u32,
    /// Longest `round` of a link on the path, us.
    pub round_us: u32,
    /// b\[l0\].
    pub own: u32,
    /// Links of the path.
    pub hops: u8,
    /// Entries, one for each link of the path.
    pub links: [FixedEntry; MOST_HOPS],
}

/// Settings of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PercLinkSettings {
    /// Capacity for data: see [`RateUnit::capacity`].
    pub capacity: u64,
    /// One control packet of one direction's share, ns; 0: no limit.
    pub packet_ns: u64,
    /// MaxRound, ns; 0: `round` is constant.
    pub patience_ns: u64,
    /// Largest delay of a control packet beyond its period, ns.
    pub wait_ns: u64,
    /// Rates within this count as equal, 32 binary places.
    pub tie: u32,
    /// s-PERC*.
    pub robust: bool,
    /// Index bits of the tables of logarithms and of powers; 0: exact division.
    pub log_index_bits: u8,
    /// See `log_index_bits`.
    pub power_index_bits: u8,
}

/// State of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FixedLink {
    /// SumE and SumE', in units of rates times weights.
    pub sum_e: i64,
    /// See `sum_e`.
    pub shadow_sum_e: i64,
    /// NumB and NumB'.
    pub num_b: i64,
    /// See `num_b`.
    pub shadow_num_b: i64,
    /// MaxE and MaxE'.
    pub max_e: u32,
    /// See `max_e`.
    pub max_e_next: u32,
    /// roundNumber.
    pub round_number: u32,
    /// N, and the flows of which a packet was seen in this round.
    pub flows: u32,
    /// See `flows`.
    pub seen: u32,
    /// `round`, and when the present one began.
    pub round_ns: u64,
    /// See `round_ns`.
    pub began_ns: u64,
    /// The longest period seen since `since_ns`.
    pub longest_ns: u64,
    /// See `longest_ns`.
    pub since_ns: u64,
}

impl FixedLink {
    /// Without flows, in a first round of `round_ns` that began at `began_ns`.
    pub fn new(round_ns: u64, began_ns: u64) -> Self {
        let round_ns = round_ns.max(1);
        FixedLink { round_number: 1, round_ns, began_ns, since_ns: began_ns, ..FixedLink::default() }
    }

    /// Updates a packet at its `hop`-th link; on the reverse path, only if links update packets there.
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

    /// Advances rounds to `now_ns`. Two of them clear the state, however many have passed.
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

    /// Computes Tx_ctrl, and counts flows where rounds do not.
    fn count(&mut self, set: &PercLinkSettings, packet: &mut Fixed) {
        if packet.first && !set.robust {
            self.flows = self.flows.saturating_add(1);
        }
        packet.tx_us = packet.tx_us.max(us(u64::from(self.flows.max(1)).wrapping_mul(set.packet_ns)));
        if packet.fin && !set.robust {
            self.flows = self.flows.saturating_sub(1);
        }
    }

    /// Records a packet with period `period_ns`: see [`super::Round`]. The largest delay is a setting here, not a share of
    /// the period.
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

    /// Algorithms 6 and 8.
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
    /// `x` / `y`, rounded to the nearest.
    fn divide(&self, tables: Option<&Tables>, x: u64, y: u64) -> u32 {
        let quotient = tables.map_or((x + y / 2) / y, |tables| tables.quotient(x, y));
        quotient.min(u64::from(NO_LIMIT)) as u32
    }
}

/// Line 9: the least rate that any other link propagates, or the flow's own demand.
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

/// `x` times `fraction`, which has 32 binary places.
fn part(x: u64, fraction: u32) -> u64 {
    (x >> 32) * u64::from(fraction) + (((x & u64::from(u32::MAX)) * u64::from(fraction)) >> 32)
}

/// At least so many microseconds.
fn us(ns: u64) -> u32 {
    ns.div_ceil(1000).min(u64::from(u32::MAX)) as u32
}
