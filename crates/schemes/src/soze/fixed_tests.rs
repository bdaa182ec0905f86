//! Integer and floating-point arithmetic of Soze: test vectors, which other programs use too, many small updates, and
//! arbitrary inputs.

use super::fixed::{ONE, exp2, log2, lost, rtts, times};
use super::rate::{Heard, Limits, SenderRate};
use super::*;
use proptest::prelude::*;

/// Parameters of the test vectors: the Soze paper's at 100 and 25 Gb/s, those of soze-virtual, and a slow link of
/// software switches.
fn set(name: &str) -> (SozeLaw, Limits, f64) {
    let paper = SozeLaw {
        alpha_bps: 100e9,
        beta_bps: 0.1e9,
        smallest_weight: 1.0,
        unit_flows: 2.0,
        p_ns: 20e3,
        least_p_ns: 0.0,
        integral_rtts: 0.0,
        k_ns: 3e3,
        m: 0.25,
        state: SenderState::Rate,
        often: Often::Packet,
        floor: Floor::Packet,
        start_weights: 10.0,
        exact: false,
        arithmetic: SozeArithmetic::Float,
    };
    let exact = SozeLaw { floor: Floor::Beta, exact: true, ..paper };
    let law = match name {
        "paper" => paper,
        "small" => SozeLaw { alpha_bps: 25e9, beta_bps: 25e6, m: 1.5, start_weights: 1.0, ..paper },
        "exact" => SozeLaw { beta_bps: 25e6, p_ns: 316e3, m: 1.0, start_weights: 1000.0, ..exact },
        "slow" => {
            SozeLaw { alpha_bps: 200e6, beta_bps: 12.5e6, p_ns: 8e6, k_ns: 1e6, m: 0.78, start_weights: 4.0, ..exact }
        }
        other => panic!("no setting {other}"),
    };
    let (most_bps, bytes, rtt_ns) = match name {
        "small" => (25e9, 1048, 9000),
        "exact" => (40e9, 1500, 13_000),
        "slow" => (200e6, 1500, 2_000_000),
        _ => (100e9, 1500, 13_000),
    };
    (law, Limits { most_bps, packet_bits: 8 * bytes, rtt_ns }, rtt_ns as f64)
}

fn rate(law: &SozeLaw, limits: &Limits, arithmetic: SozeArithmetic) -> SenderRate {
    SenderRate::new(&SozeLaw { arithmetic, ..*law }, law.p_ns, law.alpha_bps, limits)
}

/// Applies a row of `vectors.csv` to `rate`; the header of the file explains the columns.
fn carry_out(rate: &mut SenderRate, law: &SozeLaw, limits: &mut Limits, base_rtt_ns: u64, row: &[&str], started: bool) {
    let number = |k: usize| row[k].parse::<f64>().unwrap();
    match row[1] {
        "start" => rate.start(limits),
        "weigh" => drop(rate.weigh(number(2), law.exact && started, limits)),
        "time-out" => rate.time_out(limits),
        "path" => {
            (limits.most_bps, limits.rtt_ns) = (number(2), number(3) as u64);
            rate.bound(limits);
        }
        "hear" => {
            limits.rtt_ns = number(4) as u64;
            let rtt_ns = if law.exact { base_rtt_ns } else { limits.rtt_ns };
            rate.hear(Heard { delay_ns: number(2) as u32, passed_ns: number(3) as u64, rtt_ns }, false, limits);
        }
        other => panic!("no row {other}"),
    }
}

#[test]
fn both_forms_agree_with_the_vectors() {
    let text = include_str!("vectors.csv");
    let rows = text.lines().filter(|line| !line.starts_with('#')).skip(1).map(|line| line.split(',').collect());
    let mut now: Option<(String, SozeLaw, Limits, u64, SenderRate, SenderRate, bool)> = None;
    let mut wrong = Vec::new();
    for row in rows {
        let row: Vec<&str> = row;
        if now.as_ref().is_none_or(|now| now.0 != row[0]) {
            let (law, limits, base) = set(row[0]);
            let [float, fixed] = [SozeArithmetic::Float, SozeArithmetic::Fixed].map(|a| rate(&law, &limits, a));
            now = Some((row[0].to_string(), law, limits, base as u64, float, fixed, false));
        }
        let (_, law, limits, base, float, fixed, started) = now.as_mut().unwrap();
        let mut same = *limits;
        carry_out(float, law, &mut same, *base, &row, *started);
        carry_out(fixed, law, limits, *base, &row, *started);
        *started |= row[1] == "start";
        if !*started {
            continue;
        }
        let SenderRate::Fixed(integers) = *fixed else { unreachable!("it was made so") };
        let (want, log2_want): (f64, i64) = (row[5].parse().unwrap(), row[6].parse().unwrap());
        let off = [float.bps() / want - 1.0, fixed.bps() / want - 1.0].map(f64::abs);
        if off[0] > 1e-9 || off[1] > 1e-6 || integers.log2_rate() != log2_want {
            wrong.push(format!(
                "{} gives {} and {} ({})",
                row.join(","),
                float.bps(),
                fixed.bps(),
                integers.log2_rate()
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Relative distance of a rate to its goal, after feedback of one constant delay in `acks` ACKs per RTT.
fn short_of_the_goal(m: f64, exact: bool, acks: u64, first_bps: f64) -> f64 {
    let (paper, ..) = set(if exact { "exact" } else { "paper" });
    // Rates far above a packet per RTT, so that the minimum rate has no effect.
    let limits = Limits { most_bps: 100e9, packet_bits: 12_000, rtt_ns: 1_000_000 };
    let law = SozeLaw { m, ..paper };
    let mut rate = rate(&SozeLaw { start_weights: law.alpha_bps / first_bps, ..law }, &limits, SozeArithmetic::Fixed);
    rate.start(&limits);
    let delay_ns = (law.k_ns + 0.4 * law.p_ns) as u32;
    let heard = Heard { delay_ns, passed_ns: limits.rtt_ns / acks, rtt_ns: limits.rtt_ns };
    // Number of RTTs after which the logarithm of the rate differs from the goal's by a millionth.
    let round_trips = (14.0 / m).ceil() as u64;
    (0..round_trips * acks).for_each(|_| rate.hear(heard, false, &limits));
    rate.bps() / law.target(law.p_ns, law.alpha_bps).share_bps(f64::from(delay_ns)) - 1.0
}

#[test]
fn many_small_updates_come_as_far_as_one_large_one() {
    let mut wrong = Vec::new();
    for m in [0.05, 0.1, 0.25, 0.5, 0.78, 1.0] {
        for (exact, acks) in [(false, 1000), (false, 4000), (true, 1000), (true, 4000)] {
            for first_bps in [0.5e9, 60e9] {
                let off = short_of_the_goal(m, exact, acks, first_bps);
                if off.abs() > 1e-4 {
                    wrong.push(format!("m {m}, {acks} a round trip, from {first_bps}, exact {exact}: {off:.5}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "short of the goal:\n{}", wrong.join("\n"));
}

/// An event that changes a rate.
#[derive(Debug, Clone)]
enum Happens {
    Hear(u32, u64, u64),
    Weigh(f64),
    TimeOut,
    Path(f64, u64),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        8 => (0u32..400_000, 0u64..100_000, 5_000u64..200_000).prop_map(|(d, t, r)| Happens::Hear(d, t, r)),
        1 => (-2.0..3.0f64).prop_map(|w| Happens::Weigh(10f64.powf(w))),
        1 => Just(Happens::TimeOut),
        1 => (1e9..100e9f64, 5_000u64..200_000).prop_map(|(bps, rtt)| Happens::Path(bps, rtt)),
    ]
}

fn happen(rate: &mut SenderRate, what: &Happens, law: &SozeLaw, limits: &mut Limits) {
    match *what {
        Happens::Hear(delay_ns, passed_ns, rtt_ns) => {
            limits.rtt_ns = rtt_ns;
            rate.hear(Heard { delay_ns, passed_ns, rtt_ns }, false, limits);
        }
        Happens::Weigh(weight) => drop(rate.weigh(weight, law.exact, limits)),
        Happens::TimeOut => rate.time_out(limits),
        Happens::Path(most_bps, rtt_ns) => {
            (limits.most_bps, limits.rtt_ns) = (most_bps, rtt_ns);
            rate.bound(limits);
        }
    }
}

proptest! {
    #[test]
    fn both_forms_go_the_same_way(
        name in prop::sample::select(vec!["paper", "small", "exact"]), m in 0.01..1.99f64,
        all in prop::collection::vec(happens(), 1..60),
    ) {
        let (law, limits, _) = set(name);
        let law = SozeLaw { m, ..law };
        let mut forms = [SozeArithmetic::Float, SozeArithmetic::Fixed].map(|a| (rate(&law, &limits, a), limits));
        forms.iter_mut().for_each(|(rate, limits)| rate.start(limits));
        for what in &all {
            // The header field holds delays up to four times k + p.
            let what = match *what {
                Happens::Hear(delay, passed, rtt) => Happens::Hear(delay.min((4.0 * (law.k_ns + law.p_ns)) as u32), passed, rtt),
                ref other => other.clone(),
            };
            forms.iter_mut().for_each(|(rate, limits)| happen(rate, &what, &law, limits));
            let [float, fixed] = [forms[0].0.bps(), forms[1].0.bps()];
            prop_assert!((fixed / float - 1.0).abs() < 1e-4, "{} and {} after {:?}", float, fixed, what);
        }
    }

    /// No number overflows: the debug build would panic.
    #[test]
    fn nothing_overflows(
        alpha in 3.0..15.0f64, flows in 0.31..9.0f64, p in 0.0..9.0f64, k in 0.0..9.0f64, m in 1e-6..1.999_999f64, exact: bool,
        weight in prop::num::f64::POSITIVE, most in 3.0..13.0f64, bits in 1u64..600_000,
        delay_ns: u32, passed_ns: u64, rtt_ns in 1u64.., heard_rtt_ns in 1u64..,
    ) {
        let ten = |x: f64| 10f64.powf(x);
        let (paper, ..) = set("paper");
        let alpha_bps = ten(alpha);
        let law = SozeLaw {
            alpha_bps, beta_bps: alpha_bps / ten(flows), p_ns: ten(p), k_ns: ten(k), m, exact,
            floor: if exact { Floor::Beta } else { Floor::Packet }, ..paper
        };
        let limits = Limits { most_bps: ten(most), packet_bits: bits, rtt_ns };
        let mut rate = rate(&law, &limits, SozeArithmetic::Fixed);
        rate.weigh(weight, false, &limits);
        rate.start(&limits);
        for _ in 0..3 {
            rate.hear(Heard { delay_ns, passed_ns, rtt_ns: heard_rtt_ns }, false, &limits);
            rate.time_out(&limits);
        }
        prop_assert!(rate.bps() <= 1.001 * limits.most_bps, "{} of {}", rate.bps(), limits.most_bps);
    }

    #[test]
    fn logarithms_and_powers_are_inverse(value in 1u64..1 << 62) {
        let log = log2(value);
        prop_assert!((log as f64 / ONE as f64 - (value as f64).log2()).abs() < 3e-9);
        let again = exp2(log - 16 * ONE) as f64;
        prop_assert!((again / value as f64 - 1.0).abs() < 3e-9 || (again - value as f64).abs() <= 1.0);
    }

    #[test]
    fn products_and_what_is_lost_are_rounded(a in -(1i64 << 60)..1 << 60, b: u32, x in 0i64..70 << 32) {
        let exact = (i128::from(a) * i128::from(b) + (1 << 30)) >> 31;
        prop_assert_eq!(i128::from(times(a >> 2, b)), (i128::from(a >> 2) * i128::from(b) + (1 << 30)) >> 31);
        prop_assert!(exact.abs() <= 1 << 62);
        let want = 1.0 - (-(x as f64) / ONE as f64).exp2();
        prop_assert!((f64::from(lost(x)) / f64::from(1u32 << 31) - want).abs() < 2e-9);
    }

    #[test]
    fn times_in_round_trips_saturate(dt_ns: u64, rtt_ns: u64) {
        let got = rtts(dt_ns, rtt_ns);
        prop_assert!(got <= 64 << 32);
        if dt_ns <= u64::from(u32::MAX) && rtt_ns > 0 {
            let want = (dt_ns as f64 / rtt_ns as f64).min(64.0);
            prop_assert!((got as f64 / ONE as f64 - want).abs() < 1e-9 * want.max(1.0));
        }
    }

    #[test]
    fn both_filters_tell_the_same(
        signal in prop::sample::select(vec![Signal::Wait, Signal::Backlog, Signal::Utilization]),
        filter_ns in prop::sample::select(vec![0.0, 100.0, 10e3, 1e6]), capacity in 8.0..11.6f64,
        packets in prop::collection::vec((0u64..20_000, 64u32..9000, 0u64..100_000, 0u64..1_000_000), 1..200),
    ) {
        let capacity_bps = 10f64.powf(capacity);
        let mut filters = [SozeArithmetic::Float, SozeArithmetic::Fixed]
            .map(|numbers| Filter::new(signal, filter_ns, 23e3, capacity_bps, numbers));
        let unit = DelayUnit::of(23e3);
        let mut now_ns = 0;
        for &(gap_ns, bytes, wait_ns, queued_bytes) in &packets {
            now_ns += gap_ns;
            let leaving = Leaving { bytes, wait_ns, queued_bytes };
            let [float, fixed] = filters.each_mut().map(|filter| f64::from(unit.ns(filter.tell(now_ns, leaving))));
            prop_assert!((fixed - float).abs() <= 2.0 + 1e-3 * float, "{} and {} ns", float, fixed);
        }
    }

    #[test]
    fn both_virtual_queues_tell_the_same(
        capacity in 8.0..11.6f64, rtt_ns in 5_000u64..3_000_000,
        packets in prop::collection::vec((0u64..20_000, 64u32..9000, 0u64..400_000), 1..200),
    ) {
        let capacity_bps = 10f64.powf(capacity);
        let link = Virtual::STANDARD.link(rtt_ns);
        let mut delay_ns = link.start_ns;
        let mut fixed = FixedVirtual::new(&Virtual::STANDARD, rtt_ns, capacity_bps);
        fixed.begin();
        for &(passed_ns, bytes, queued_bytes) in &packets {
            let queued_ns = queued_bytes as f64 * 8e9 / capacity_bps;
            delay_ns = link.drained_ns(delay_ns, passed_ns as f64, queued_ns);
            delay_ns = link.filled_ns(delay_ns, f64::from(bytes) * 8e9 / capacity_bps);
            fixed.drain(passed_ns, queued_bytes);
            fixed.fill(bytes);
            let [float, fixed] = [link.signal_ns(delay_ns, queued_ns), f64::from(fixed.signal_ns(queued_bytes))];
            prop_assert!((fixed - float).abs() <= 2.0 + 1e-3 * float, "{} and {} ns", float, fixed);
        }
    }
}

#[test]
fn hosts_keep_a_window_or_a_rate() {
    let hosts = |state: &str| {
        let given = serde_json::json!({"state": state});
        crate::hosts::soze::SozeHosts::new("soze", given.as_object().unwrap(), 1.0, 10_000, 1e9)
    };
    let keeps_window = |state| hosts(state).unwrap().sender(1e9, 12_000).unwrap().window;
    assert!(keeps_window("window") && !keeps_window("rate"));
    let fault = hosts("window-of-rate").unwrap_err().to_string();
    assert!(fault.contains("params.state") && fault.contains("hosts keep a window or a rate"), "{fault}");
}
