//! Soze's update in the kernel computes the same bits as the simulator's fixed-point update.
#![cfg(feature = "bpf")]

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use subak_agent::kernel::vectors::{TestVector, answer};
use subak_schemes::soze::{
    FixedSozeRate, Floor, Heard, Limits, Often, SenderRate, SenderState, SozeArithmetic, SozeLaw, Virtual, fixed,
};

/// Inputs per setting; the five settings together have a million.
const TRIALS: usize = 200_000;

fn laws() -> [SozeLaw; 5] {
    let exact = SozeLaw { arithmetic: SozeArithmetic::Fixed, ..Virtual::STANDARD.law };
    let paper = SozeLaw {
        alpha_bps: 100e9,
        beta_bps: 100e6,
        p_ns: 20e3,
        k_ns: 4e3,
        m: 0.25,
        state: SenderState::Rate,
        often: Often::Packet,
        floor: Floor::Packet,
        start_weights: 1.0,
        exact: false,
        ..exact
    };
    let slow = SozeLaw { alpha_bps: 100e6, beta_bps: 6.25e6, p_ns: 8e6, k_ns: 1e6, m: 0.78, ..paper };
    let window = SozeLaw { state: SenderState::Window, k_ns: 3e3, start_weights: 10.0, ..paper };
    [exact, paper, slow, SozeLaw { p_ns: 40e6, ..exact }, window]
}

#[test]
fn a_million_updates_are_those_of_the_simulator() {
    let mut random = Pcg64Mcg::new(0x5eed);
    for law in laws() {
        let limits = Limits { most_bps: 40e9, packet_bits: 12_000, rtt_ns: 10_000 };
        let SenderRate::Fixed(fixed) = SenderRate::new(&law, law.p_ns(10_000), 100e9, &limits) else {
            panic!("it is in integers")
        };
        let settings = fixed.settings();
        assert_eq!(settings.window, law.state == SenderState::Window);
        let mut trials: Vec<TestVector> = (0..TRIALS).map(|_| trial(&mut random)).collect();
        if let Err(why) = answer(&settings, &mut trials) {
            panic!("the kernel cannot be asked: {why}");
        }
        for (i, trial) in trials.iter().enumerate() {
            let expected = expected(fixed, settings.window, trial, limits);
            assert_eq!((trial.bounded, trial.bps, trial.log2_rtt), expected, "{law:?}, input {i}: {trial:?}");
        }
    }
}

/// A random input: rates from 1 bit/s to 2^45 bit/s, weights from 2^-10 to 2^10, any time and any delay.
fn trial(random: &mut Pcg64Mcg) -> TestVector {
    let mut below = |most: u64| random.next_u64() % most;
    TestVector {
        log2_rate: below(45 << 32) as i64,
        log2_weight: below(20 << 32) as i64 - (10 << 32),
        dt_ns: {
            let bits = below(64);
            below(1 << 63) >> bits
        },
        rtt_ns: {
            let bits = below(31);
            (below(1 << 31) >> bits) + 1
        },
        from_ns: {
            let bits = below(31);
            (below(1 << 31) >> bits) + 1
        },
        delay_ns: {
            let bits = below(32);
            (below(1 << 32) >> bits) as u32
        },
        ..TestVector::default()
    }
}

fn expected(rate: FixedSozeRate, window: bool, trial: &TestVector, limits: Limits) -> (i64, u64, i64) {
    let limits = Limits { rtt_ns: trial.rtt_ns, ..limits };
    let mut rate = SenderRate::Fixed(rate.at(trial.log2_rate, trial.log2_weight));
    if window {
        rate.keep_window(trial.from_ns, trial.rtt_ns);
    }
    let heard = Heard { delay_ns: trial.delay_ns, passed_ns: trial.dt_ns, rtt_ns: trial.rtt_ns };
    rate.hear(heard, false, &limits);
    let SenderRate::Fixed(after) = rate else { panic!("it is in integers") };
    (after.log2_rate(), fixed::exp2(after.log2_rate()), fixed::log2(trial.rtt_ns))
}
