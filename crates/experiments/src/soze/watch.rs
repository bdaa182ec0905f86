//! Criterion of convergence: every flow's assigned rate, averaged over 10 RTTs, is within 3% of the exact one.

use super::draw::{Setup, exact};
use crate::largest;
use subak_core::backend::Backend;
use subak_core::{FlowId, InputError, LinkId};

/// Samples per RTT.
const EACH: usize = 4;
/// Length of the moving average, RTTs.
const OVER: usize = 10;
const WITHIN: f64 = 0.03;
/// Dwell time of convergence, RTTs.
pub(super) const HELD: usize = 50;

/// Measurements of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observations {
    /// First RTT from which all rates stay within 3% to the end; infinite if they are not within 3% at the last
    /// sample.
    pub(super) settled_rtts: f64,
    /// Relative error of the median flow at the end.
    pub(super) median_off: f64,
    /// Largest relative error of a flow at the end.
    pub(super) worst_off: f64,
    /// During the dwell time: smallest ratio of load to target load over links that should be full.
    pub(super) utilization: f64,
    /// Longest real queueing delay since the start, us.
    pub(super) peak_us: f64,
    /// Longest real queueing delay during the dwell time, us.
    pub(super) held_peak_us: f64,
}

/// Runs `sim` for `limit` RTTs and [`HELD`] more.
pub(super) fn watch(
    sim: &mut dyn Backend,
    flows: &[FlowId],
    setup: &Setup,
    share: f64,
    limit: usize,
) -> Result<Observations, InputError> {
    let (want, full) = exact(&setup.network, &setup.plans, share)?;
    let from_ns = sim.now_ns();
    let mut averages = Averages::new(flows.len());
    let mut seen = Observations {
        settled_rtts: 0.0,
        median_off: f64::NAN,
        worst_off: f64::NAN,
        utilization: f64::INFINITY,
        peak_us: 0.0,
        held_peak_us: 0.0,
    };
    let mut sent_before = Vec::new();
    sim.restart_peaks();
    for step in 1..=(limit + HELD) * EACH {
        sim.run_until(from_ns + step as u64 * setup.rtt_ns / EACH as u64);
        averages.add(flows.iter().map(|&f| sim.flow(f).assigned_bps).collect());
        let off: Vec<f64> = averages.now().iter().zip(&want).map(|(got, want)| (got / want - 1.0).abs()).collect();
        if off.is_empty() || largest(&off) > WITHIN {
            seen.settled_rtts = step as f64 / EACH as f64;
        }
        if step == limit * EACH {
            seen.peak_us = peak_us(sim, setup);
            sim.restart_peaks();
            sent_before = full.iter().map(|&l| sim.link(l).data_bytes).collect();
        }
        if step == (limit + HELD) * EACH {
            seen.worst_off = largest(&off);
            seen.median_off = crate::quantile(&mut off.clone(), 0.5);
            if seen.worst_off > WITHIN {
                seen.settled_rtts = f64::INFINITY;
            }
        }
    }
    seen.held_peak_us = peak_us(sim, setup);
    seen.peak_us = seen.peak_us.max(seen.held_peak_us);
    let seconds = HELD as f64 * setup.rtt_ns as f64 * 1e-9;
    for (&l, before) in full.iter().zip(sent_before) {
        let sent_bps = (sim.link(l).data_bytes - before) as f64 * 8.0 / seconds;
        seen.utilization = seen.utilization.min(sent_bps / (share * setup.network.links()[l].capacity_bps));
    }
    Ok(seen)
}

/// Longest queueing delay of any link, us.
pub(super) fn peak_us(sim: &dyn Backend, setup: &Setup) -> f64 {
    let peak = |l: LinkId| sim.link(l).peak_queued_bytes as f64 * 8e6 / setup.network.links()[l].capacity_bps;
    setup.network.links().ids().map(peak).fold(0.0, f64::max)
}

/// Moving averages over the last [`OVER`] RTTs.
pub(super) struct Averages {
    samples: std::collections::VecDeque<Vec<f64>>,
    sums: Vec<f64>,
}

impl Averages {
    /// Samples per RTT.
    pub(super) const EACH: usize = EACH;

    pub(super) fn new(flows: usize) -> Self {
        Averages { samples: std::collections::VecDeque::new(), sums: vec![0.0; flows] }
    }

    pub(super) fn add(&mut self, sample: Vec<f64>) {
        self.sums.iter_mut().zip(&sample).for_each(|(sum, x)| *sum += x);
        self.samples.push_back(sample);
        if self.samples.len() > OVER * EACH
            && let Some(old) = self.samples.pop_front()
        {
            self.sums.iter_mut().zip(&old).for_each(|(sum, x)| *sum -= x);
        }
    }

    /// Current averages; empty until there are enough samples.
    pub(super) fn now(&self) -> Vec<f64> {
        let enough = self.samples.len() == OVER * EACH;
        self.sums.iter().filter(|_| enough).map(|sum| sum / (OVER * EACH) as f64).collect()
    }
}
