//! Integer arithmetic compared with floating point: one update, and the rates after convergence.

use super::division::{PercDivision, Tables};
use super::fixed::*;
use proptest::prelude::*;
use std::sync::Arc;

const CAPACITY_BPS: f64 = 10e9;

fn settings(kb: usize, robust: bool) -> (PercLinkSettings, Option<Arc<Tables>>, f64) {
    let tables = (kb > 0).then(|| Arc::new(Tables::within(kb * 1024)));
    let (log, power) = tables.as_ref().map_or((0, 0), |t| (t.parts().0, t.parts().1));
    let error = tables.as_ref().map_or(1e-9, |t| t.error());
    let set = PercLinkSettings {
        capacity: RateUnit::of(CAPACITY_BPS).capacity(CAPACITY_BPS),
        tie: (error * 4_294_967_296.0).ceil() as u32,
        robust,
        log_index_bits: log as u8,
        power_index_bits: power as u8,
        ..PercLinkSettings::default()
    };
    (set, tables, error)
}

fn packet(weight: f64, hops: u8) -> Fixed {
    let weight = (weight * 65_536.0) as u32;
    Fixed {
        weight,
        was: weight,
        first: true,
        fin: false,
        tx_us: 0,
        period_us: 10,
        round_us: 0,
        own: NO_LIMIT,
        hops,
        links: [FixedEntry::NEW; MOST_HOPS],
    }
}

/// Weighted water-filling: rates per unit of weight, bit/s.
fn water(capacities: &[f64], flows: &[(f64, Vec<usize>)]) -> Vec<f64> {
    let mut rates = vec![f64::NAN; flows.len()];
    loop {
        let level = |l: usize| {
            let over = || flows.iter().zip(&rates).filter(|((_, path), _)| path.contains(&l));
            let held: f64 = over().filter(|(_, r)| !r.is_nan()).map(|((w, _), r)| w * r).sum();
            let open: f64 = over().filter(|(_, r)| r.is_nan()).map(|((w, _), _)| w).sum();
            (capacities[l] - held) / open
        };
        let lowest = (0..capacities.len()).map(|l| (level(l), l)).filter(|(r, _)| r.is_finite());
        let Some((rate, link)) = lowest.min_by(|x, y| x.0.total_cmp(&y.0)) else { return rates };
        for ((_, path), r) in flows.iter().zip(&mut rates) {
            if r.is_nan() && path.contains(&link) {
                *r = rate;
            }
        }
    }
}

proptest! {
    /// One update of a link in any state. The error of b is at most that of the tables plus half a unit. A flow is
    /// classified differently only if b and e are nearly equal.
    #[test]
    fn an_update_is_the_floats_but_for_what_tables_lose(
        kb in prop::sample::select(vec![0usize, 13, 52, 340]), robust: bool,
        elsewhere in 0.0..1.0f64, others in 0.0..300.0f64, weight in 0.1..20.0f64, max_e in 0.0..1.0f64, limit in 0.0..1.0f64,
    ) {
        let (set, tables, error) = settings(kb, robust);
        let unit = RateUnit::of(CAPACITY_BPS);
        let mut link = FixedLink::new(1_000_000, 0);
        link.sum_e = (elsewhere * set.capacity as f64) as i64;
        link.num_b = (others * 65_536.0) as i64;
        link.max_e = unit.rate(max_e * CAPACITY_BPS);
        let mut packet = packet(weight, 2);
        packet.links[1] = FixedEntry { b: unit.rate(limit * limit * CAPACITY_BPS), ignored: false, ..FixedEntry::NEW };
        let e = unit.bps(packet.links[1].b);
        let left = (set.capacity as i64 - link.sum_e) as f64 / 65_536.0;
        let num_b = (link.num_b + i64::from(packet.weight)) as f64 / 65_536.0;
        link.pass(&set, tables.as_deref(), &mut packet, 0, true, 1);
        let exact = unit.bps(1) * left / num_b;
        let FixedEntry { a, b, bottlenecked, ignored, .. } = packet.links[0];
        let off = (unit.bps(b) - exact).abs();
        prop_assert!(off <= exact * error + unit.bps(1), "b {} is off {exact} by {off}", unit.bps(b));
        let margin = 2.0 * error + 2.0 * unit.bps(1) / exact.max(unit.bps(1));
        let near = |rate: f64| (rate / exact - 1.0).abs() <= margin;
        prop_assert!(bottlenecked == (exact <= e) || near(e), "b {exact}, e {e}");
        prop_assert!(ignored == (exact < unit.bps(link.max_e)) || near(max_e * CAPACITY_BPS) || !bottlenecked);
        let least = exact.min(e);
        prop_assert!((unit.bps(a) - least).abs() <= least * margin + unit.bps(2), "a {} of {least}", unit.bps(a));
    }

    /// The integer quotient equals that of the tables in floating point.
    #[test]
    fn quotients_are_those_of_the_tables(kb in prop::sample::select(vec![13usize, 52, 340]), x in 1u64..1_000_000_000_000, y in 1u64..1 << 32) {
        let tables = Arc::new(Tables::within(kb * 1024));
        let float = PercDivision::Table(tables.clone()).divide(x as f64, y as f64);
        let quotient = tables.quotient(x, y) as f64;
        // The floating-point tables scale a weight by a power of two, which changes the entry only by rounding.
        prop_assert!((quotient - float).abs() <= 0.5 + 1e-6 * float, "{x} / {y}: {quotient} and {float}");
    }

    /// Packets with any content cause no overflow (the debug build would panic), and no rate above the capacity.
    #[test]
    fn anything_may_come(
        kb in prop::sample::select(vec![0usize, 340]), robust: bool, adjusts: bool,
        packets in prop::collection::vec((any::<[u32; 6]>(), any::<[u32; 16]>(), any::<u64>(), any::<[u8; 4]>()), 1..40),
    ) {
        let (set, tables, _) = settings(kb, robust);
        let set = PercLinkSettings { patience_ns: u64::from(adjusts), packet_ns: u64::MAX / 7, wait_ns: u64::MAX, ..set };
        let mut link = FixedLink::new(1, 0);
        for (words, rates, now_ns, bytes) in packets {
            let [weight, was, tx_us, period_us, round_us, own] = words;
            let mut packet = Fixed {
                weight, was, tx_us, period_us, round_us, own, first: bytes[0] & 1 == 1, fin: bytes[0] & 2 == 2,
                hops: bytes[1] % 10,
                links: std::array::from_fn(|k| FixedEntry {
                    a: rates[2 * k] & NO_LIMIT, b: rates[2 * k + 1] & NO_LIMIT,
                    bottlenecked: rates[2 * k] > NO_LIMIT, ignored: rates[2 * k + 1] > NO_LIMIT, round_number: bytes[2],
                }),
            };
            link.pass(&set, tables.as_deref(), &mut packet, bytes[3] % 10, bytes[0] & 4 == 4, now_ns >> (bytes[2] % 64));
            prop_assert!(packet.links.iter().all(|l| l.a <= NO_LIMIT && l.b <= NO_LIMIT));
        }
    }

    /// Circling packets converge to max-min on random networks, to within the error of the tables along a chain of links.
    #[test]
    fn rates_end_at_max_min(
        kb in prop::sample::select(vec![0usize, 13, 340]), robust: bool,
        capacities in prop::collection::vec(0.1..1.0f64, 5),
        paths in prop::collection::vec((prop::sample::select(vec![1.0, 0.5, 2.0, 3.0]), prop::sample::subsequence((0..5usize).collect::<Vec<_>>(), 1..5)), 1..20),
    ) {
        let (set, tables, error) = settings(kb, robust);
        let unit = RateUnit::of(CAPACITY_BPS);
        let capacities: Vec<f64> = capacities.iter().map(|c| c * CAPACITY_BPS).collect();
        let sets: Vec<_> = capacities.iter().map(|&c| PercLinkSettings { capacity: unit.capacity(c), ..set }).collect();
        // An update takes 50 ns, and a round is the time in which all packets circle twice.
        let round_ns = 200 * paths.iter().map(|(_, path)| path.len() as u64).sum::<u64>();
        let mut links = vec![FixedLink::new(round_ns, 0); capacities.len()];
        let mut packets: Vec<_> = paths.iter().map(|(weight, path)| packet(*weight, path.len() as u8)).collect();
        let mut now_ns = 0;
        for _ in 0..300 {
            for (packet, (_, path)) in packets.iter_mut().zip(&paths) {
                for (forward, hops) in [(true, (0..path.len()).collect::<Vec<_>>()), (false, (0..path.len()).rev().collect())] {
                    for hop in hops {
                        now_ns += 50;
                        links[path[hop]].pass(&sets[path[hop]], tables.as_deref(), packet, hop as u8, forward, now_ns);
                    }
                }
                packet.first = false;
            }
        }
        for ((packet, (_, path)), goal) in packets.iter().zip(&paths).zip(water(&capacities, &paths)) {
            let rate = packet.links[..path.len()].iter().map(|l| unit.bps(l.a)).fold(f64::INFINITY, f64::min);
            let off = (rate / goal - 1.0).abs();
            prop_assert!(off <= 10.0 * error + 1e-5, "{rate} is off {goal} by {off}");
        }
    }
}
