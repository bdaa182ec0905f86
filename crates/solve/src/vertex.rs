//! Rates of pooled flows at a vertex of the feasible set as a common level rises: a simplex method that continues
//! from the previous basis.
//!
//! Each flow has a key path, whose rate is the flow's rate minus the rates of its other paths (generalized upper
//! bounds, Dantzig and Van Slyke, 1967). The remaining basis therefore has only one row per saturated link. Its inverse
//! is stored in doubles, the rates in double-doubles that are corrected by their residuals. Capacities are perturbed by
//! distinct amounts far below a double's last digit, so that no two links saturate at once and no vertex repeats.
//!
//! When the level can rise no further, the links' prices prove it. Variables that would cost something at these prices
//! are then fixed, and the next rise uses only the others.

use crate::double_double::DoubleDouble;
use subak_core::rng::Stream;
use subak_core::{Case, Flows, IdVec, LinkId};

/// Perturbation of capacities and rates, as a fraction of the largest capacity.
const APART: f64 = 1e-25;

/// Prices and gains below this fraction of the largest price are rounding errors: exact ones are ratios of small
/// integers, whatever the weights.
const ZERO: f64 = 1e-9;

/// A change is a rounding error if it is below this fraction of the sum of its terms' magnitudes.
const ROUNDING: f64 = 1e-11;

/// Largest number of entries of the inverse of the basis.
const MOST_ENTRIES: usize = 1 << 25;

/// Flows and links that are fixed at a water level.
#[derive(Debug, PartialEq)]
pub(crate) struct FrozenFlows {
    /// Rise of the water level.
    pub rise: f64,
    /// Permanently saturated links, with the level's increase per unit of their capacity.
    pub gains: Vec<(LinkId, f64)>,
    /// Prices of the certificate: at them no flow has a cheaper path than those it uses.
    pub prices: Vec<(LinkId, f64)>,
    /// Flows with a price: a higher rate of one requires a lower rate of another.
    pub flows: Vec<usize>,
}

/// Links and paths fixed at an earlier level, and the level's prices.
struct Bar {
    prices: Vec<(LinkId, f64)>,
    links: Vec<LinkId>,
    paths: Vec<usize>,
}

/// A variable of the linear program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variable {
    Level,
    Path(usize),
    /// The idle capacity of a link.
    Idle(LinkId),
}

/// Basis status of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Path {
    /// Nonbasic, at zero.
    Out,
    /// Fixed at zero.
    Barred,
    /// Key path: its rate is the flow's rate minus those of the flow's other paths.
    Key,
    /// Basic, with this column number.
    In(usize),
}

/// Basis status of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkStatus {
    /// Basic: it may have idle capacity.
    Free,
    /// Saturated and nonbasic.
    Full,
    /// Permanently saturated.
    Barred,
    /// Permanently saturated, as implied by other links of its level; basic.
    Implied,
}

/// Change of the basic variables per unit of the entering variable; rounding errors are set to 0.
struct PivotStep {
    columns: Vec<DoubleDouble>,
    keys: Vec<DoubleDouble>,
    idle: IdVec<LinkId, DoubleDouble>,
}

pub(crate) struct Vertex<'a> {
    flows: &'a Flows,
    flow_of_path: Vec<usize>,
    capacity: IdVec<LinkId, DoubleDouble>,
    /// Perturbation of capacities.
    apart_bps: f64,
    /// Rate of each flow before this rise, bit/s.
    base: Vec<DoubleDouble>,
    /// Perturbation of each rate, so that no two flows tie.
    apart: Vec<DoubleDouble>,
    /// Increase of each flow's rate per unit of the level in this rise.
    slope: Vec<f64>,
    key: Vec<usize>,
    paths: Vec<Path>,
    links: IdVec<LinkId, LinkStatus>,
    /// Rise of the level since the base rates were updated.
    risen: DoubleDouble,
    /// Bound of this rise of the level.
    reach: f64,
    /// Columns of the basis other than keys and idle capacities.
    columns: Vec<Variable>,
    /// Value of each of `columns`.
    values: Vec<DoubleDouble>,
    /// Rows of the inverse of the basis, one per column; 0 at basic links.
    rows: Vec<Vec<f64>>,
    key_rate: Vec<DoubleDouble>,
    idle: IdVec<LinkId, DoubleDouble>,
    /// Load of each link by key paths before this rise, bit/s.
    load: IdVec<LinkId, DoubleDouble>,
    /// Increase of the load by key paths per unit of the level.
    slopes: IdVec<LinkId, DoubleDouble>,
    bars: Vec<Bar>,
    /// Largest gain at the latest full pricing.
    most_gained: f64,
    /// Variables with at least half of the largest gain at the latest full pricing.
    promising: Vec<Variable>,
    pub steps: u64,
    most_steps: u64,
}

impl<'a> Vertex<'a> {
    /// Starts with all rates 0 and no rising flow.
    pub fn new(case: &'a Case) -> Self {
        let flows = &case.flows;
        let links = case.network.links();
        let mut stream = Stream::new(1, "vertex");
        let unit = links.iter().map(|l| l.capacity_bps).fold(0.0, f64::max) * APART;
        let mut wider = |x: f64| DoubleDouble::from(x) + (unit * (1.0 + stream.unit())).into();
        let capacity: IdVec<LinkId, DoubleDouble> = links.iter().map(|l| wider(l.capacity_bps)).collect();
        let base: Vec<DoubleDouble> = (0..flows.len()).map(|_| wider(0.0)).collect();
        let key: Vec<usize> = (0..flows.len()).map(|f| flows.paths_of(f).start).collect();
        let mut paths = vec![Path::Out; flows.path_count()];
        key.iter().for_each(|&p| paths[p] = Path::Key);
        let mut load = IdVec::filled(DoubleDouble::default(), links.len());
        for (&p, &base) in key.iter().zip(&base) {
            flows.links_of(p).iter().for_each(|&l| load[l] += base);
        }
        Vertex {
            flows,
            apart_bps: unit,
            flow_of_path: (0..flows.len()).flat_map(|f| flows.paths_of(f).map(move |_| f)).collect(),
            idle: capacity.clone(),
            slopes: IdVec::filled(DoubleDouble::default(), links.len()),
            links: IdVec::filled(LinkStatus::Free, links.len()),
            capacity,
            key_rate: base.clone(),
            apart: base.clone(),
            base,
            slope: vec![0.0; flows.len()],
            key,
            paths,
            risen: DoubleDouble::default(),
            reach: 0.0,
            columns: Vec::new(),
            values: Vec::new(),
            rows: Vec::new(),
            load,
            bars: Vec::new(),
            most_gained: 0.0,
            promising: Vec::new(),
            steps: 0,
            most_steps: 1000 + 50 * (links.len() + flows.path_count()) as u64,
        }
    }

    /// Rate of path `p` of flow `f`, bit/s.
    pub fn rate(&self, f: usize, p: usize) -> f64 {
        match self.paths[p] {
            Path::Key => self.key_rate[f].0,
            Path::In(k) => self.values[k].0,
            Path::Out | Path::Barred => 0.0,
        }
    }

    /// Rate of flow `f` at the end of the last rise, bit/s.
    pub fn base_bps(&self, f: usize) -> f64 {
        let rate = (self.base[f] - self.apart[f]).0;
        if rate > self.apart_bps * 1e4 { rate } else { 0.0 }
    }

    /// Raises each flow by its slope times the rise of the level, up to `reach`. Returns the constraints that limit
    /// flows below `reach`, if any. `None` if no link limits them, the problem is too large, or its numbers differ
    /// too much.
    pub fn rise(&mut self, slopes: Vec<f64>, reach: f64) -> Option<Option<FrozenFlows>> {
        self.slope = slopes;
        self.reach = reach;
        self.slopes.raw_mut().fill(DoubleDouble::default());
        for (&p, &slope) in self.key.iter().zip(&self.slope).filter(|(_, slope)| **slope > 0.0) {
            self.flows.links_of(p).iter().for_each(|&l| self.slopes[l] += slope.into());
        }
        let ended = self.climb();
        self.settle();
        ended
    }

    /// Adds the rise since the last call to the base rates.
    fn settle(&mut self) {
        let risen = std::mem::take(&mut self.risen);
        for (base, &slope) in self.base.iter_mut().zip(&self.slope) {
            *base += risen * slope;
        }
        for (load, &slope) in self.load.raw_mut().iter_mut().zip(&self.slopes) {
            *load += risen * slope;
        }
    }

    fn climb(&mut self) -> Option<Option<FrozenFlows>> {
        let mut entering = Variable::Level;
        self.promising.clear();
        loop {
            self.steps += 1;
            if self.steps > self.most_steps || self.rows.len() * self.links.len() > MOST_ENTRIES {
                return None;
            }
            let step = self.step(entering);
            let (length, leaving) = self.leaving(&step, entering)?;
            self.go(entering, length, &step);
            if entering == Variable::Level && leaving == Variable::Level {
                self.refresh()?;
                return Some(None);
            }
            self.exchange(entering, leaving, length)?;
            self.refresh()?;
            if leaving == Variable::Level {
                self.risen = self.reach.into();
                self.refresh()?;
                return Some(None);
            }
            let prices = self.prices();
            match self.entering(&prices) {
                Some(better) => entering = better,
                None => return self.hold(prices).map(Some),
            }
        }
    }

    /// Adds `by` times the column of `variable` to `to`: link loads minus those of its flow's key path.
    fn add_column(&self, variable: Variable, by: DoubleDouble, to: &mut IdVec<LinkId, DoubleDouble>) {
        match variable {
            Variable::Level => to.raw_mut().iter_mut().zip(&self.slopes).for_each(|(x, &slope)| *x += slope * by),
            Variable::Idle(l) => to[l] += by,
            Variable::Path(p) => {
                self.flows.links_of(p).iter().for_each(|&l| to[l] += by);
                self.flows.links_of(self.key[self.flow_of_path[p]]).iter().for_each(|&l| to[l] -= by);
            }
        }
    }

    /// `row` times the column of `variable`.
    fn along(&self, row: &[f64], variable: Variable) -> f64 {
        match variable {
            Variable::Level => row.iter().zip(&self.slopes).map(|(a, slope)| a * slope.0).sum(),
            Variable::Idle(l) => row[l.index()],
            Variable::Path(p) => self.price(row, p) - self.price(row, self.key[self.flow_of_path[p]]),
        }
    }

    fn level_column(&self) -> Option<usize> {
        self.columns.iter().position(|c| *c == Variable::Level)
    }

    /// Change of every basic variable per unit of `entering`.
    fn step(&self, entering: Variable) -> PivotStep {
        let mut asked = IdVec::filled(DoubleDouble::default(), self.links.len());
        self.add_column(entering, DoubleDouble::from(-1.0), &mut asked);
        let (first, size) = self.answer(&asked);
        let mut columns: Vec<DoubleDouble> = first.into_iter().map(DoubleDouble::from).collect();
        let left = |columns: &[DoubleDouble]| {
            let mut left = asked.clone();
            self.columns.iter().zip(columns).for_each(|(&c, &x)| self.add_column(c, -x, &mut left));
            left
        };
        let mut terms: IdVec<LinkId, f64> = asked.iter().map(|x| x.0.abs()).collect();
        for (&c, x) in self.columns.iter().zip(&columns) {
            self.add_size(c, x.0.abs(), &mut terms);
        }
        let mut missing = left(&columns);
        // One step of iterative refinement, so that values which should be 0 have only rounding errors of their own
        // terms.
        let (more, _) = self.answer(&missing);
        columns.iter_mut().zip(more).for_each(|(x, more)| *x += more.into());
        missing = left(&columns);
        let idle = missing.iter().zip(&terms).map(|(x, terms)| rounded(*x, *terms)).collect();
        let rise = match entering {
            Variable::Level => DoubleDouble::from(1.0),
            _ => self.level_column().map_or(DoubleDouble::default(), |k| columns[k]),
        };
        let mut keys: Vec<DoubleDouble> = self.slope.iter().map(|&slope| rise * slope).collect();
        let mut key_terms: Vec<f64> = keys.iter().map(|x| x.0.abs()).collect();
        let mut others = |p: usize, x: DoubleDouble| {
            let f = self.flow_of_path[p];
            keys[f] -= x;
            key_terms[f] += x.0.abs();
        };
        for (&c, &x) in self.columns.iter().zip(&columns) {
            if let Variable::Path(p) = c {
                others(p, x);
            }
        }
        if let Variable::Path(p) = entering {
            others(p, DoubleDouble::from(1.0));
        }
        PivotStep {
            columns: columns.iter().zip(&size).map(|(x, size)| rounded(*x, *size)).collect(),
            keys: keys.iter().zip(&key_terms).map(|(x, terms)| rounded(*x, *terms)).collect(),
            idle,
        }
    }

    /// For each basic column the value with which saturated links have the loads `asked`, and the sum of the magnitudes
    /// of its terms, which bounds rounding errors.
    fn answer(&self, asked: &IdVec<LinkId, DoubleDouble>) -> (Vec<f64>, Vec<f64>) {
        let asked: Vec<(usize, f64)> = (asked.iter_enumerated())
            .filter(|(l, x)| x.0 != 0.0 && matches!(self.links[*l], LinkStatus::Full | LinkStatus::Barred))
            .map(|(l, x)| (l.index(), x.0))
            .collect();
        let of_row = |row: &Vec<f64>| {
            let terms = asked.iter().map(|&(l, x)| row[l] * x);
            terms.fold((0.0, 0.0), |(sum, size): (f64, f64), term| (sum + term, size + term.abs()))
        };
        self.rows.iter().map(of_row).unzip()
    }

    /// Adds `by` times the magnitudes of the entries of `variable`'s column to `to`.
    fn add_size(&self, variable: Variable, by: f64, to: &mut IdVec<LinkId, f64>) {
        match variable {
            Variable::Level => {
                to.raw_mut().iter_mut().zip(&self.slopes).for_each(|(x, slope)| *x += slope.0.abs() * by)
            }
            Variable::Idle(l) => to[l] += by,
            Variable::Path(p) => {
                self.flows.links_of(p).iter().for_each(|&l| to[l] += by);
                self.flows.links_of(self.key[self.flow_of_path[p]]).iter().for_each(|&l| to[l] += by);
            }
        }
    }

    /// Variable that leaves the basis first as `entering` grows, with the value of `entering` at that point.
    fn leaving(&self, step: &PivotStep, entering: Variable) -> Option<(DoubleDouble, Variable)> {
        let mut first: Option<(DoubleDouble, Variable)> = None;
        let mut meet = |value: DoubleDouble, change: DoubleDouble, variable: Variable| {
            let value = if value.0 < 0.0 { DoubleDouble::default() } else { value };
            let at = value / change;
            if first.is_none_or(|(before, _)| at.below(before)) {
                first = Some((at, variable));
            }
        };
        let room = DoubleDouble::from(self.reach) - self.risen;
        if entering == Variable::Level && self.reach.is_finite() {
            meet(room, DoubleDouble::from(1.0), Variable::Level);
        }
        for (k, (&variable, &change)) in self.columns.iter().zip(&step.columns).enumerate() {
            match variable {
                Variable::Level if change.0 > 0.0 && self.reach.is_finite() => meet(room, change, variable),
                Variable::Path(_) if change.0 < 0.0 => meet(self.values[k], -change, variable),
                _ => {}
            }
        }
        for (f, &change) in step.keys.iter().enumerate().filter(|(_, change)| change.0 < 0.0) {
            meet(self.key_rate[f], -change, Variable::Path(self.key[f]));
        }
        for (l, &change) in step.idle.iter_enumerated() {
            if change.0 < 0.0 && self.links[l] == LinkStatus::Free {
                meet(self.idle[l], -change, Variable::Idle(l));
            }
        }
        first
    }

    /// Moves along `step`: changes the values of columns by `length` times the step. Key path rates and idle capacities
    /// follow from the columns.
    fn go(&mut self, entering: Variable, length: DoubleDouble, step: &PivotStep) {
        for (k, &change) in step.columns.iter().enumerate() {
            self.values[k] += length * change;
        }
        match (entering, self.level_column()) {
            (Variable::Level, _) => self.risen += length,
            (_, Some(k)) => self.risen = self.values[k],
            _ => {}
        }
    }

    /// Replaces `leaving` in the basis by `entering`, at `value`.
    fn exchange(&mut self, entering: Variable, leaving: Variable, value: DoubleDouble) -> Option<()> {
        if let Variable::Path(p) = leaving
            && self.paths[p] == Path::Key
        {
            let f = self.flow_of_path[p];
            match self.flows.paths_of(f).find_map(|q| if let Path::In(k) = self.paths[q] { Some(k) } else { None }) {
                Some(k) => self.change_key(f, k),
                None => return self.replace_key(f, entering),
            }
        }
        let (row, place) = match leaving {
            Variable::Idle(l) => (self.row_of_idle(l), None),
            Variable::Level => (Vec::new(), self.level_column()),
            Variable::Path(p) => match self.paths[p] {
                Path::In(k) => (Vec::new(), Some(k)),
                _ => return None,
            },
        };
        let mut row = match place {
            Some(k) => self.take(k),
            None => row,
        };
        let pivot = self.along(&row, entering);
        if pivot == 0.0 || !pivot.is_finite() {
            return None;
        }
        row.iter_mut().for_each(|a| *a /= pivot);
        let entries: Vec<(usize, f64)> = row.iter().copied().enumerate().filter(|(_, a)| *a != 0.0).collect();
        for k in 0..self.rows.len() {
            let by = self.along(&self.rows[k], entering);
            if by != 0.0 {
                let row = &mut self.rows[k];
                entries.iter().for_each(|&(l, a)| row[l] -= by * a);
            }
        }
        match leaving {
            Variable::Idle(l) => self.links[l] = LinkStatus::Full,
            Variable::Path(p) => self.paths[p] = Path::Out,
            Variable::Level => {}
        }
        match entering {
            Variable::Idle(l) => {
                self.links[l] = LinkStatus::Free;
                self.rows.iter_mut().for_each(|row| row[l.index()] = 0.0);
            }
            _ => {
                if let Variable::Path(p) = entering {
                    self.paths[p] = Path::In(self.columns.len());
                }
                self.columns.push(entering);
                self.values.push(value);
                self.rows.push(row);
            }
        }
        Some(())
    }

    /// Removes column `k` from the basis; returns its row.
    fn take(&mut self, k: usize) -> Vec<f64> {
        self.columns.swap_remove(k);
        self.values.swap_remove(k);
        if let Some(&Variable::Path(p)) = self.columns.get(k) {
            self.paths[p] = Path::In(k);
        }
        self.rows.swap_remove(k)
    }

    /// The row of the inverse for the idle capacity of link `l`.
    fn row_of_idle(&self, l: LinkId) -> Vec<f64> {
        let mut row = vec![0.0; self.links.len()];
        row[l.index()] = 1.0;
        let mut unit = vec![0.0; self.links.len()];
        unit[l.index()] = 1.0;
        for (k, &c) in self.columns.iter().enumerate() {
            let at = self.along(&unit, c);
            if at != 0.0 {
                row.iter_mut().zip(&self.rows[k]).for_each(|(a, b)| *a -= at * b);
            }
        }
        row
    }

    /// Exchanges the path of column `k` and the key path of flow `f`: the vertex is the same.
    fn change_key(&mut self, f: usize, k: usize) {
        let Variable::Path(new) = self.columns[k] else { return };
        let old = self.key[f];
        let mut row = std::mem::take(&mut self.rows[k]);
        for p in self.flows.paths_of(f) {
            if let Path::In(q) = self.paths[p]
                && q != k
            {
                row.iter_mut().zip(&self.rows[q]).for_each(|(a, b)| *a += b);
            }
        }
        if let Some(level) = self.level_column() {
            let slope = self.slope[f];
            row.iter_mut().zip(&self.rows[level]).for_each(|(a, b)| *a -= slope * b);
        }
        row.iter_mut().for_each(|a| *a = -*a);
        self.rows[k] = row;
        self.columns[k] = Variable::Path(old);
        std::mem::swap(&mut self.values[k], &mut self.key_rate[f]);
        self.paths[old] = Path::In(k);
        self.set_key(f, new);
    }

    /// Makes path `p` the key path of flow `f` in the link loads.
    fn set_key(&mut self, f: usize, p: usize) {
        let old = std::mem::replace(&mut self.key[f], p);
        self.paths[p] = Path::Key;
        let (base, slope) = (self.base[f], DoubleDouble::from(self.slope[f]));
        for &l in self.flows.links_of(old) {
            self.load[l] -= base;
            self.slopes[l] -= slope;
        }
        for &l in self.flows.links_of(p) {
            self.load[l] += base;
            self.slopes[l] += slope;
        }
    }

    /// Makes `entering`, a path, the key path of flow `f`, which has no other basic path.
    fn replace_key(&mut self, f: usize, entering: Variable) -> Option<()> {
        let Variable::Path(new) = entering else { return None };
        if self.flow_of_path[new] != f {
            return None;
        }
        let slope = self.slope[f];
        if let Some(level) = self.level_column()
            && slope > 0.0
        {
            // The level's column changes by the slope times that of the new key path.
            let along: Vec<f64> = self.rows.iter().map(|row| self.along(row, entering)).collect();
            let by = slope / (1.0 + slope * along[level]);
            if !by.is_finite() {
                return None;
            }
            let row = self.rows[level].clone();
            for (k, along) in along.iter().enumerate().filter(|(_, along)| **along != 0.0) {
                self.rows[k].iter_mut().zip(&row).for_each(|(a, b)| *a -= by * along * b);
            }
        }
        self.paths[self.key[f]] = Path::Out;
        self.set_key(f, new);
        Some(())
    }

    /// Remaining capacity of each link at the present basis.
    fn left(&self) -> IdVec<LinkId, DoubleDouble> {
        let mut left = self.capacity.iter().zip(&self.load).map(|(c, load)| *c - *load).collect();
        if self.level_column().is_none() {
            self.add_column(Variable::Level, -self.risen, &mut left);
        }
        self.columns.iter().zip(&self.values).for_each(|(&c, &x)| self.add_column(c, -x, &mut left));
        left
    }

    /// Corrects the values of columns by the residuals at saturated links, and computes key path rates and idle
    /// capacities from them.
    fn refresh(&mut self) -> Option<()> {
        let mut left = self.left();
        left.raw_mut()
            .iter_mut()
            .filter(|x| x.0.abs() < self.apart_bps * 1e-6)
            .for_each(|x| *x = DoubleDouble::default());
        let (more, _) = self.answer(&left);
        self.values.iter_mut().zip(more).for_each(|(value, more)| *value += more.into());
        if let Some(k) = self.level_column() {
            self.risen = self.values[k];
        }
        self.idle = self.left();
        for (f, rate) in self.key_rate.iter_mut().enumerate() {
            *rate = self.base[f] + self.risen * self.slope[f];
        }
        for (&c, &x) in self.columns.iter().zip(&self.values) {
            if let Variable::Path(p) = c {
                self.key_rate[self.flow_of_path[p]] -= x;
            }
        }
        self.values.iter().all(|x| x.0.is_finite()).then_some(())
    }

    /// Prices of links: increase of the level per unit of capacity.
    fn prices(&self) -> Vec<f64> {
        let Some(level) = self.level_column() else { return vec![0.0; self.links.len()] };
        let mut prices = self.rows[level].clone();
        for (k, &c) in self.columns.iter().enumerate() {
            let miss = f64::from(u8::from(k == level)) - self.along(&prices, c);
            if miss.abs() > 1e-15 {
                prices.iter_mut().zip(&self.rows[k]).for_each(|(y, a)| *y += miss * a);
            }
        }
        prices
    }

    fn price(&self, prices: &[f64], p: usize) -> f64 {
        self.flows.links_of(p).iter().map(|l| prices[l.index()]).sum()
    }

    /// Price of a path minus that of its flow's key path.
    fn dearer(&self, prices: &[f64], p: usize) -> f64 {
        self.along(prices, Variable::Path(p))
    }

    /// The entering variable: the best candidate of the latest full pricing if it still has half of the gain,
    /// otherwise the best of a new full pricing.
    fn entering(&mut self, prices: &[f64]) -> Option<Variable> {
        let best = |gains: &[(f64, Variable)]| gains.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0));
        let again: Vec<(f64, Variable)> = (self.promising.iter())
            .filter(|&&v| match v {
                Variable::Path(p) => self.paths[p] == Path::Out,
                Variable::Idle(l) => self.links[l] == LinkStatus::Full,
                Variable::Level => false,
            })
            .map(|&v| (-self.along(prices, v), v))
            .collect();
        let least = ZERO * largest(prices);
        if let Some((gain, better)) = best(&again)
            && gain > least.max(self.most_gained / 2.0)
        {
            return Some(better);
        }
        let mut gains = Vec::new();
        for (f, &key) in self.key.iter().enumerate() {
            let of_key = self.price(prices, key);
            for p in self.flows.paths_of(f).filter(|&p| self.paths[p] == Path::Out) {
                gains.push((of_key - self.price(prices, p), Variable::Path(p)));
            }
        }
        let full = self.links.iter_enumerated().filter(|(_, link)| **link == LinkStatus::Full);
        gains.extend(full.map(|(l, _)| (-prices[l.index()], Variable::Idle(l))));
        let (gain, better) = best(&gains).filter(|(gain, _)| *gain > least)?;
        self.most_gained = gain;
        self.promising = gains.into_iter().filter(|(g, _)| *g > gain / 2.0).map(|(_, v)| v).collect();
        Some(better)
    }

    /// Ends a rise whose level can rise no further: fixes the variables that would cost something at `prices`, and
    /// returns the certificate's prices.
    fn hold(&mut self, mut prices: Vec<f64>) -> Option<FrozenFlows> {
        let least = ZERO * largest(&prices);
        prices.iter_mut().filter(|y| y.abs() <= least).for_each(|y| *y = 0.0);
        let flows = (0..self.key.len()).filter(|&f| self.price(&prices, self.key[f]) > least).collect();
        let full: Vec<LinkId> =
            self.links.ids().filter(|&l| self.links[l] == LinkStatus::Full && prices[l.index()] > 0.0).collect();
        let paths: Vec<usize> =
            (0..self.paths.len()).filter(|&p| self.paths[p] == Path::Out && self.dearer(&prices, p) > least).collect();
        full.iter().for_each(|&l| self.links[l] = LinkStatus::Barred);
        paths.iter().for_each(|&p| self.paths[p] = Path::Barred);
        let dearest = full.iter().copied().max_by(|a, b| prices[a.index()].total_cmp(&prices[b.index()]))?;
        self.exchange(Variable::Idle(dearest), Variable::Level, DoubleDouble::default())?;
        self.links[dearest] = LinkStatus::Implied;
        self.refresh()?;
        let gains = full.iter().map(|&l| (l, prices[l.index()])).collect();
        let own = some(&prices, |y| y != 0.0);
        self.lift(&mut prices, least);
        self.bars.push(Bar { prices: own, links: full, paths });
        Some(FrozenFlows { rise: self.risen.0, gains, prices: some(&prices, |y| y > 0.0), flows })
    }

    /// Adds prices of earlier levels to `prices` until no variable that was fixed at an earlier level would raise this
    /// one. The bound on the level stays the same: at the added prices, the value of the capacity equals the flows'
    /// payments.
    fn lift(&self, prices: &mut [f64], least: f64) {
        let mut earlier = vec![0.0; prices.len()];
        for bar in self.bars.iter().rev() {
            bar.prices.iter().for_each(|&(l, y)| earlier[l.index()] = y);
            let short = |now: f64, then: f64| if now < -least { -now / then } else { 0.0 };
            let by_path = bar.paths.iter().map(|&p| short(self.dearer(prices, p), self.dearer(&earlier, p)));
            let by_link = bar.links.iter().map(|l| short(prices[l.index()], earlier[l.index()]));
            let by = by_path.chain(by_link).fold(0.0, f64::max);
            if by > 0.0 {
                prices.iter_mut().zip(&earlier).for_each(|(y, more)| *y += by * more);
            }
            bar.prices.iter().for_each(|(l, _)| earlier[l.index()] = 0.0);
        }
        let rounding = 1e-15 * largest(prices);
        prices.iter_mut().filter(|y| **y < rounding).for_each(|y| *y = 0.0);
    }
}

/// Links whose price satisfies `wanted`, with their prices.
fn some(prices: &[f64], wanted: impl Fn(f64) -> bool) -> Vec<(LinkId, f64)> {
    prices.iter().enumerate().filter(|(_, y)| wanted(**y)).map(|(l, y)| (LinkId::from_index(l), *y)).collect()
}

fn largest(prices: &[f64]) -> f64 {
    prices.iter().fold(0.0, |a: f64, y| a.max(y.abs()))
}

/// `x`, a sum of terms of total size `terms`; 0 if it is a rounding error.
fn rounded(x: DoubleDouble, terms: f64) -> DoubleDouble {
    if x.0.abs() <= ROUNDING * terms { DoubleDouble::default() } else { x }
}
