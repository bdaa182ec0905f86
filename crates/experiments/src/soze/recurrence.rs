//! Recurrences behind Soze's bounds (appendices C and D), and one with feedback delay.

use subak_schemes::soze::Target;

/// Target function: alpha of 100 Gb/s, beta of 0.1 Gb/s (equation 38), k of section 4, and the given p, ns.
fn target(p_ns: f64) -> Target {
    Target { alpha_bps: 100e9, beta_bps: 0.1e9, p_ns, k_ns: 3e3 }
}

/// Lemma 3.1: whether two rates/weights converge to each other at a constant delay.
pub(super) fn comes_together(m: f64) -> bool {
    let target = target(20e3);
    let (mut a, mut b) = (4e9f64, 5e9f64);
    let delay_ns = target.delay_ns(4.5e9);
    for _ in 0..40 {
        let before = (b / a).ln().abs();
        (a, b) = (a * target.ratio(a, delay_ns, m), b * target.ratio(b, delay_ns, m));
        let after = (b / a).ln().abs();
        if after < 1e-9 {
            return true;
        }
        if after >= before * (1.0 - 1e-9) {
            return false;
        }
    }
    true
}

/// Lemma 3.2 (equations 28 and 29): whether the delay converges from an error of 1%, and whether it does so without
/// overshooting. p is in units of dt ln(alpha / beta), with dt the time between updates.
pub(super) fn delay_settles(p: f64) -> (bool, bool) {
    let (dt_ns, load) = (1e3, 100.0 / 100e9);
    let target = target(p * dt_ns * 1000f64.ln());
    let end_ns = target.delay_ns(1.0 / load);
    let first = 0.01 * target.p_ns / target.span();
    let (mut off, mut one_side, mut last) = (first, true, 0.0f64);
    for step in 0..4000 {
        let next = off + dt_ns * (load * target.share_bps(end_ns + off) - 1.0);
        one_side &= off * next >= 0.0 || next.abs() < 1e-6;
        off = next;
        if step > 3990 {
            last = last.max(off.abs());
        }
    }
    (last < 1e-3 * first, one_side)
}

/// Whether rates on one link converge from an error of 1% if senders receive the delay an RTT later. p is in units of
/// ln(alpha / beta) RTTs; the time step is a fiftieth of an RTT.
pub(super) fn delayed_settles(p: f64, m: f64) -> bool {
    const STEPS: usize = 50;
    let (mut share, mut delay) = (0.01f64, vec![0.0; STEPS + 1]);
    let (mut first, mut last) = (0.0f64, 0.0f64);
    for step in 0..600 * STEPS {
        let heard = delay[delay.len() - 1 - STEPS];
        share += (m / STEPS as f64) * (-heard / p - share);
        delay.push(delay[delay.len() - 1] + (share.exp() - 1.0) / STEPS as f64);
        if step < 20 * STEPS {
            first = first.max(share.abs());
        } else if step > 580 * STEPS {
            last = last.max(share.abs());
        }
    }
    last < 0.5 * first
}
