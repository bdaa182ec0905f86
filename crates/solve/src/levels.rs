//! Multipath (pooled) max-min by water levels. A flow's rate rises with the level: by weight, or along its bandwidth
//! function.
//!
//! The rates of all flows that are not frozen rise together with the water level, each along its function B, until a
//! linear program bounds them. Its duals determine which of the flows are limited; these are frozen. Between corners of
//! the functions B is linear, so that each rise covers one piece. The duals of each water level are stored as its
//! certificate.

use crate::answer::{Answer, LevelDual, Status};
use crate::throughput::repair;
use crate::utility::BandwidthFunction;
use crate::vertex::{FrozenFlows, Vertex};
use subak_core::{Case, IdVec, InputError};

/// Largest number of paths: with this many a solve takes minutes.
pub const MOST_PATHS: usize = 200_000;

/// A flow's rate as a function of the water level.
pub(crate) enum Rise {
    /// In proportion to a weight.
    Weight(f64),
    /// Along a bandwidth function.
    Function(BandwidthFunction),
}

impl Rise {
    /// Rate at `level`, and slope above it.
    fn at(&self, level: f64) -> (f64, f64) {
        match self {
            Rise::Weight(weight) => (weight * level, *weight),
            Rise::Function(function) => (function.rate(level), function.slope(level)),
        }
    }

    /// Distance from `level`, where the rate is `rate`, to the next change of slope or to the rate `most`; and whether
    /// the rate reaches `most` there.
    fn ahead(&self, level: f64, rate: f64, most: f64) -> (f64, bool) {
        let (_, slope) = self.at(level);
        let next = match self {
            Rise::Weight(_) => f64::INFINITY,
            Rise::Function(function) => {
                function.points().iter().map(|p| p.0).find(|s| *s > level).unwrap_or(f64::INFINITY)
            }
        };
        if slope > 0.0 && self.at(next).0 >= most {
            // Computed from the rate: on a steep piece, rounding the level would change the rate too much.
            (((most - rate) / slope).max(0.0), true)
        } else {
            (next - level, false)
        }
    }

    /// Number of linear pieces.
    fn corners(&self) -> usize {
        match self {
            Rise::Weight(_) => 1,
            Rise::Function(function) => function.points().len(),
        }
    }

    fn top_bps(&self) -> f64 {
        match self {
            Rise::Weight(_) => f64::INFINITY,
            Rise::Function(function) => function.top_bps(),
        }
    }
}

struct Levels<'a> {
    case: &'a Case,
    rises: &'a [Rise],
    /// Rate of each frozen flow; `None` for a flow that still rises.
    stopped: Vec<Option<f64>>,
    level: f64,
}

/// Max-min rates of the flows by rising water levels; `rises` has one function per flow.
pub(crate) fn solve(case: &Case, rises: &[Rise]) -> Result<Answer, InputError> {
    let paths = case.flows.path_count();
    if paths > MOST_PATHS {
        return Err(InputError::new(
            "flows",
            format!("max-min over pooled paths takes up to {MOST_PATHS} paths, here are {paths}"),
            "give fewer flows or paths, one path a flow, or alpha-fair with a large alpha, which comes close",
        ));
    }
    let mut levels = Levels { case, rises, stopped: vec![None; case.flows.len()], level: 0.0 };
    let mut answer = Answer::empty("level-simplex");
    answer.link_price = IdVec::filled(0.0, case.network.links().len());
    let mut vertex = Vertex::new(case);
    if levels.run(&mut vertex, &mut answer).is_none() {
        answer.status = Status::Stalled;
    }
    answer.iterations = vertex.steps;
    for f in 0..case.flows.len() {
        let first = answer.path_rates_bps.len();
        answer.path_rates_bps.extend(case.flows.paths_of(f).map(|p| vertex.rate(f, p).max(0.0)));
        let rates = &mut answer.path_rates_bps[first..];
        let sum: f64 = rates.iter().sum();
        if let Some(rate) = levels.stopped[f]
            && sum > rate
        {
            rates.iter_mut().for_each(|x| *x *= rate / sum);
        }
    }
    repair(case, &mut answer);
    Ok(answer)
}

impl Levels<'_> {
    fn most(&self, f: usize) -> f64 {
        self.case.flows.demand_bps()[f].min(self.rises[f].top_bps())
    }

    /// Raises the water level until every flow is frozen; `None` if that fails.
    fn run(&mut self, vertex: &mut Vertex, answer: &mut Answer) -> Option<()> {
        self.stop_the_sated();
        // Each rise freezes a flow or passes a corner. The bound prevents an endless loop if rounding prevents both.
        let mut left = 2 * self.rises.iter().map(Rise::corners).sum::<usize>() + 10;
        while self.stopped.iter().any(Option::is_none) {
            left = left.checked_sub(1)?;
            let open: Vec<usize> = (0..self.stopped.len()).filter(|&f| self.stopped[f].is_none()).collect();
            let ahead = |&f: &usize| self.rises[f].ahead(self.level, vertex.base_bps(f), self.most(f));
            let ahead: Vec<(f64, bool)> = open.iter().map(ahead).collect();
            let reach = ahead.iter().map(|(distance, _)| *distance).fold(f64::INFINITY, f64::min);
            let mut slopes = vec![0.0; self.stopped.len()];
            open.iter().for_each(|&f| slopes[f] = self.rises[f].at(self.level).1);
            match vertex.rise(slopes, reach)? {
                Some(held) => self.hold(held, vertex, answer),
                None => {
                    self.level += reach;
                    let at_top = open.iter().zip(ahead).filter(|(_, (distance, tops))| *tops && *distance <= reach);
                    at_top.for_each(|(&f, _)| self.stopped[f] = Some(self.most(f)));
                }
            }
            self.stop_the_sated();
        }
        Some(())
    }

    /// Freezes the flows that the last rise limited, and adds the duals of the water level to the answer.
    fn hold(&mut self, held: FrozenFlows, vertex: &Vertex, answer: &mut Answer) {
        self.level += held.rise;
        for f in held.flows {
            let most = self.most(f);
            self.stopped[f].get_or_insert_with(|| vertex.base_bps(f).min(most));
        }
        held.gains.iter().for_each(|&(l, gain)| answer.link_price[l] = gain);
        answer.levels.push(LevelDual { level: self.level, prices: held.prices });
    }

    /// Freezes flows at their demand or at the largest rate of their function.
    fn stop_the_sated(&mut self) {
        for f in 0..self.stopped.len() {
            if self.stopped[f].is_none() && self.rises[f].at(self.level).0 >= self.most(f) * (1.0 - 1e-12) {
                self.stopped[f] = Some(self.most(f));
            }
        }
    }
}
