//! Max-min over pooled paths, weighted or in the fair share of bandwidth functions, by a sequence of linear programs.
//!
//! All open flows rise together along their functions B until a linear program says they cannot; its duals say which of
//! them are held, and these stay. Between the functions' corners B is linear, so each program covers one piece. The
//! duals at which a level was reached are kept: they are the proof of it.

use crate::answer::{Answer, LevelDual, Status};
use crate::certificate::{certify, narrowest};
use crate::conic::Program;
use crate::throughput::repair;
use crate::utility::BandwidthFunction;
use subak_core::{Case, Fault, IdVec, LinkId};

/// The most paths taken: programs of this size take about a minute together.
pub const MOST_PATHS: usize = 2000;

/// A dual's share of the whole below which a flow is not counted as held by it.
pub(crate) const HELD: f64 = 1e-5;

/// How a flow's rate rises with the level.
pub(crate) enum Rise {
    /// In proportion to a weight.
    Weight(f64),
    /// Along a bandwidth function.
    Function(BandwidthFunction),
}

impl Rise {
    /// The rate at `level`, and its slope above it.
    fn at(&self, level: f64) -> (f64, f64) {
        match self {
            Rise::Weight(weight) => (weight * level, *weight),
            Rise::Function(function) => (function.rate(level), function.slope(level)),
        }
    }

    /// The first level above `level` at which the slope changes or the rate reaches `most`.
    fn corner(&self, level: f64, most: f64) -> f64 {
        match self {
            Rise::Weight(weight) => most / weight,
            Rise::Function(function) => {
                let next = function.points().iter().map(|p| p.0).find(|s| *s > level).unwrap_or(f64::INFINITY);
                if function.rate(next) > most { function.fair_share(most).max(level) } else { next }
            }
        }
    }

    /// The pieces it has.
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
    /// The rate of each flow that has stopped.
    stopped: Vec<Option<f64>>,
    level: f64,
    capacity: IdVec<LinkId, f64>,
    unit_bps: f64,
    /// Whether programs are solved at a vertex.
    exactly: bool,
}

/// Max-min in the level. `rises` has one a flow.
///
/// What interior points leave uncertified is solved again at vertices, where the programs are small enough.
pub(crate) fn solve(case: &Case, rises: &[Rise], tolerance: f64) -> Result<Answer, Fault> {
    let paths = case.flows.path_count();
    if paths > MOST_PATHS {
        return Err(Fault::new(
            "flows",
            format!("max-min over pooled paths takes up to {MOST_PATHS} paths, here are {paths}"),
            "give fewer flows or paths, one path a flow, or alpha-fair with a large alpha, which comes close",
        ));
    }
    let answer = solve_once(case, rises, false);
    let miss = certify(case, &answer).worst();
    if miss > tolerance {
        let again = solve_once(case, rises, true);
        if certify(case, &again).worst() < miss {
            return Ok(again);
        }
    }
    Ok(answer)
}

fn solve_once(case: &Case, rises: &[Rise], exactly: bool) -> Answer {
    let unit_bps = case.network.links().iter().fold(1.0, |a: f64, l| a.max(l.capacity_bps));
    let mut levels = Levels {
        case,
        rises,
        stopped: vec![None; case.flows.len()],
        level: 0.0,
        capacity: case.network.links().iter().map(|l| l.capacity_bps / unit_bps).collect(),
        unit_bps,
        exactly,
    };
    let mut answer = Answer::empty(if exactly { "level-lps-simplex" } else { "level-lps" });
    answer.path_rates_bps = vec![0.0; case.flows.path_count()];
    answer.link_price = IdVec::filled(0.0, levels.capacity.len());
    levels.run(&mut answer);
    for (f, stopped) in levels.stopped.iter().enumerate() {
        let sum: f64 = answer.path_rates_bps[case.flows.paths_of(f)].iter().sum();
        if let Some(rate) = stopped
            && sum > *rate
        {
            answer.path_rates_bps[case.flows.paths_of(f)].iter_mut().for_each(|x| *x *= rate / sum);
        }
    }
    repair(case, &mut answer);
    answer
}

impl Levels<'_> {
    fn most(&self, f: usize) -> f64 {
        self.case.flows.demand_bps()[f].min(self.rises[f].top_bps())
    }

    fn run(&mut self, answer: &mut Answer) {
        self.stop_the_sated();
        // Each program stops a flow or passes a corner; one that rounding keeps from both would be solved for ever.
        let mut left = 2 * self.rises.iter().map(Rise::corners).sum::<usize>() + 10;
        while self.stopped.iter().any(Option::is_none) {
            if left == 0 {
                answer.status = Status::Stalled;
                return;
            }
            left -= 1;
            let open = (0..self.stopped.len()).filter(|&f| self.stopped[f].is_none());
            let corner = open.map(|f| self.rises[f].corner(self.level, self.most(f))).fold(f64::INFINITY, f64::min);
            let reach = self.reach(corner);
            let program = self.program(reach);
            let found = if self.exactly { program.0.solve_exactly() } else { program.0.solve(1e-11) };
            answer.iterations += found.iterations;
            if !found.solved {
                answer.status = Status::Stalled;
                return;
            }
            for f in 0..self.stopped.len() {
                let scale = self.scale(f, reach);
                for p in self.case.flows.paths_of(f) {
                    answer.path_rates_bps[p] = (found.x[p] * scale).max(0.0);
                }
            }
            let rise = found.x[program.1].clamp(0.0, 1.0);
            if rise >= 1.0 - 1e-9 && reach >= corner - self.level {
                self.level = corner;
            } else {
                self.level += rise * reach;
                self.hold(&found.dual[program.2..], answer);
            }
            self.stop_the_sated();
        }
    }

    /// How far the level may rise in one program: to the corner, or further than any flow could fill its paths.
    fn reach(&self, corner: f64) -> f64 {
        let bound = |f: usize| {
            let (base, slope) = self.rises[f].at(self.level);
            let all: f64 = self.case.flows.paths_of(f).map(|p| self.narrowest(p)).sum::<f64>() * self.unit_bps;
            if slope > 0.0 { 2.0 * (all - base).max(0.1 * all) / slope } else { f64::INFINITY }
        };
        let open = (0..self.stopped.len()).filter(|&f| self.stopped[f].is_none());
        open.map(bound).fold(corner - self.level, f64::min)
    }

    /// The rate that flow `f` is measured in: what it has once the level has risen by `reach`.
    fn scale(&self, f: usize, reach: f64) -> f64 {
        let rate = self.stopped[f].unwrap_or_else(|| {
            let (base, slope) = self.rises[f].at(self.level);
            base + slope * reach
        });
        if rate > 0.0 { rate } else { self.unit_bps }
    }

    /// The program: rates of the paths in their flows' scale, and the rise of the level as a share of its reach. Returns
    /// it with the number of the rise's variable and of the first link's row; flows' rows follow the links'.
    fn program(&self, reach: f64) -> (Program, usize, usize) {
        let flows = &self.case.flows;
        let mut program = Program::default();
        for f in 0..flows.len() {
            let scale = self.scale(f, reach) / self.unit_bps;
            for p in flows.paths_of(f) {
                let rate = program.variable(0.0);
                program.at_most(vec![(rate, -1.0)], 0.0, (self.narrowest(p) / scale).min(1.0));
            }
        }
        let rise = program.variable(-1.0);
        program.at_most(vec![(rise, 1.0)], 1.0, 1.0);
        program.at_most(vec![(rise, -1.0)], 0.0, 1.0);
        let mut crossing = IdVec::<LinkId, _>::filled(Vec::new(), self.capacity.len());
        for f in 0..flows.len() {
            let scale = self.scale(f, reach) / self.unit_bps;
            for p in flows.paths_of(f) {
                flows.links_of(p).iter().for_each(|&l| crossing[l].push((p, scale / self.capacity[l])));
            }
        }
        let mut first = None;
        for row in crossing {
            let number = program.at_most(row, 1.0, 1.0);
            first.get_or_insert(number);
        }
        for f in 0..flows.len() {
            // What has stopped may give way by the accuracy of the programs, so that the next one has a solution.
            let accuracy = if self.exactly { 1e-15 } else { 1e-12 };
            let (base, slope) = match self.stopped[f] {
                Some(rate) => (rate * (1.0 - accuracy), 0.0),
                None => self.rises[f].at(self.level),
            };
            let scale = self.scale(f, reach);
            let mut row: Vec<_> = flows.paths_of(f).map(|p| (p, -1.0)).collect();
            row.push((rise, slope * reach / scale));
            program.at_most(row, -base / scale, 1.0);
        }
        (program, rise, first.unwrap_or(0))
    }

    fn narrowest(&self, p: usize) -> f64 {
        self.case.flows.links_of(p).iter().map(|&l| self.capacity[l]).fold(f64::INFINITY, f64::min)
    }

    /// Stops the flows that the duals of the links hold at the level, and keeps the duals.
    fn hold(&mut self, dual: &[f64], answer: &mut Answer) {
        let links: Vec<(LinkId, f64)> = self
            .capacity
            .iter_enumerated()
            .zip(dual)
            .map(|((l, capacity), dual)| (l, dual.max(0.0) / (capacity * self.unit_bps)))
            .collect();
        let worth: f64 = links.iter().map(|(l, p)| p * self.capacity[*l] * self.unit_bps).sum();
        let paid = links.into_iter().filter(|(l, p)| p * self.capacity[*l] * self.unit_bps > 1e-9 * worth);
        let level = LevelDual { level: self.level, prices: paid.collect() };
        let price = LevelDual::prices_of(self.case, &level.prices_of_paths(self.case));
        let open: Vec<usize> = (0..self.stopped.len()).filter(|&f| self.stopped[f].is_none()).collect();
        let part = |f: usize| price[f] * narrowest(self.case, f);
        let most = open.iter().map(|&f| part(f)).fold(0.0, f64::max);
        for &f in &open {
            if part(f) >= (HELD * worth).min(most) {
                self.stopped[f] = Some(self.rises[f].at(self.level).0.min(self.most(f)));
            }
        }
        let all: f64 = open.iter().map(|&f| price[f] * self.rises[f].at(self.level).1).sum();
        for (l, p) in &level.prices {
            answer.link_price[*l] = answer.link_price[*l].max(p / all.max(f64::MIN_POSITIVE));
        }
        answer.levels.push(level);
    }

    /// Stops flows at their demand or at the top of their function.
    fn stop_the_sated(&mut self) {
        for f in 0..self.stopped.len() {
            if self.stopped[f].is_none() && self.rises[f].at(self.level).0 >= self.most(f) * (1.0 - 1e-12) {
                self.stopped[f] = Some(self.most(f));
            }
        }
    }
}
