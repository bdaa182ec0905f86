//! Links and flows of an iteration, in the layout of its loops; flows can be added and removed.
//!
//! Capacities are scaled to order 1, and gains (marginal utilities at rate 1) so that the first flow's is 1: prices
//! stay near 1 and single precision suffices. A failed link has capacity 0 and an infinite price, so that flows over it
//! have rate 0.

use super::LANES;
use super::real::Real;
use super::slices::{Slices, tiled};
use subak_core::{Case, IdVec, InputError, LinkId, Utility};

/// Handle of a flow of a [`Cluster`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowKey(pub(super) u32);

impl FlowKey {
    /// Number of the flow, from 0 on; numbers of removed flows are reused.
    pub fn number(self) -> u32 {
        self.0 - 1
    }

    /// Key of the flow with this number, which need not exist.
    pub fn of_number(number: u32) -> Self {
        FlowKey(number.saturating_add(1))
    }

    /// Index of the flow in the rates of `Iteration::normalize`; reused after its removal.
    pub fn slot(self) -> usize {
        self.0 as usize
    }
}

/// Slot without a flow, with the dead link as its path and rate 0. Unused table entries refer to this slot.
const EMPTY: u32 = 0;

/// Links with capacities, and flows with paths and utilities U'(x) = gain x^-alpha.
#[derive(Debug, Clone)]
pub struct Cluster<T> {
    pub(super) alpha: f64,
    unit_bps: f64,
    /// Upper bound of a flow's rate, as a multiple of the narrowest capacity on the flow's path.
    most_lines: f64,
    ln_gain_unit: Option<f64>,
    pub(super) capacity: IdVec<LinkId, T>,
    /// Number of links of the longest path: rows per block of flows.
    pub(super) width: usize,
    /// Blocks of 16 flows, each with `width` rows of links.
    pub(super) paths: Vec<[LinkId; LANES]>,
    /// Lower bound of each flow's path price: at this price the flow's rate is its narrowest link's capacity, or its
    /// demand.
    pub(super) floor: Vec<[T; LANES]>,
    pub(super) gain: Vec<[T; LANES]>,
    ln_gain: Vec<f64>,
    /// Demand of each flow, in the cluster's scale.
    demand: Vec<f64>,
    /// Whether any flow has had a finite demand.
    has_demands: bool,
    free: Vec<u32>,
    /// One past the largest slot ever used.
    top: u32,
    uneven: usize,
    pub(super) slices: Slices,
    /// Number of changes of flows and links. Price updates recompute stored values after a change.
    pub(super) version: u64,
}

impl<T: Real> Cluster<T> {
    /// Links of these capacities, bit/s, without flows, for utilities of `alpha` > 0. Capacity 0 means a failed link.
    pub fn new(capacity_bps: &[f64], alpha: f64) -> Result<Self, InputError> {
        let wrong = |place: &str, what: String, hint| Err(InputError::new(place, what, hint));
        if !(alpha.is_finite() && alpha > 0.0) {
            return wrong("alpha", format!("alpha is {alpha}"), "give a positive alpha; 1 is the logarithm");
        }
        if capacity_bps.len() >= (u32::MAX - 2) as usize {
            return wrong("capacity", format!("{} links", capacity_bps.len()), "give fewer than 2^32 - 2");
        }
        check_capacities(capacity_bps)?;
        let live = capacity_bps.iter().filter(|&&c| c > 0.0);
        let unit_bps = live.clone().sum::<f64>() / live.count().max(1) as f64;
        let unit_bps = if unit_bps > 0.0 { unit_bps } else { 1.0 };
        let mut cluster = Cluster {
            alpha,
            unit_bps,
            most_lines: 1.0,
            ln_gain_unit: None,
            capacity: capacity_bps.iter().map(|c| T::of(c / unit_bps)).collect(),
            width: 1,
            paths: Vec::new(),
            floor: Vec::new(),
            gain: Vec::new(),
            ln_gain: Vec::new(),
            demand: Vec::new(),
            has_demands: false,
            free: Vec::new(),
            top: 1,
            uneven: 0,
            slices: Slices::build(capacity_bps.len(), EMPTY, std::iter::empty::<(u32, std::iter::Empty<LinkId>)>()),
            version: 0,
        };
        cluster.grow();
        cluster.free.retain(|&slot| slot != EMPTY);
        Ok(cluster)
    }

    /// Sets the upper bound of a flow's rate, as a multiple of the narrowest capacity on the flow's path (default 1),
    /// for experiments. The bound applies to flows that are added later.
    pub fn with_most_lines(mut self, times: f64) -> Result<Self, InputError> {
        if !(times.is_finite() && times >= 1.0) {
            return Err(InputError::new("most_lines", format!("it is {times}"), "give a number of at least 1"));
        }
        self.most_lines = times;
        Ok(self)
    }

    /// A cluster of some of the links, renumbered, without flows. The scale of capacities is the same; a gain with the
    /// logarithm `ln_gain_unit` becomes 1.
    pub(super) fn part(&self, links: &[LinkId], ln_gain_unit: f64) -> Self {
        let mut part = Cluster::new(&vec![0.0; links.len()], self.alpha).expect("zeros are sound");
        part.capacity = links.iter().map(|&l| self.capacity[l]).collect();
        part.unit_bps = self.unit_bps;
        part.most_lines = self.most_lines;
        part.ln_gain_unit = Some(ln_gain_unit);
        part
    }

    /// The links, flows and utilities of `case`; also returns the flows' keys in order.
    pub fn of(case: &Case) -> Result<(Self, Vec<FlowKey>), InputError> {
        let (alpha, flows) = NewFlow::all_of(case)?;
        let capacity_bps: Vec<f64> = case.network.links().iter().map(|l| l.capacity_bps).collect();
        let mut cluster = Cluster::new(&capacity_bps, alpha)?;
        let keys = cluster.add_all(&flows)?;
        Ok((cluster, keys))
    }

    /// Adds a flow of `weight` over `path`. An error's place is relative to the flow, for example `weight`.
    pub fn add(&mut self, path: &[LinkId], weight: f64) -> Result<FlowKey, InputError> {
        self.add_within(path, weight, f64::INFINITY)
    }

    /// Adds a flow of `weight` over `path` with a demand, bit/s. An error's place is relative to the flow, for example
    /// `weight`.
    pub fn add_within(&mut self, path: &[LinkId], weight: f64, demand_bps: f64) -> Result<FlowKey, InputError> {
        let ln_gain = self.alpha * ln_weight(weight)?;
        let flow = NewFlow { path, ln_gain, demand_bps };
        self.check(&flow)?;
        Ok(self.insert(&flow))
    }

    /// Adds many flows: all of them, or on an error none. Large sets are numbered by their position in the network,
    /// which reduces memory traffic per step.
    pub fn add_all(&mut self, flows: &[NewFlow<'_>]) -> Result<Vec<FlowKey>, InputError> {
        for (f, flow) in flows.iter().enumerate() {
            self.check(flow).map_err(|e| e.below(&format!("flows[{f}]")))?;
        }
        self.widen(flows.iter().map(|f| f.path.len()).max().unwrap_or(0));
        if let Some(first) = flows.first() {
            self.ln_gain_unit.get_or_insert(first.ln_gain);
        }
        let mut keys = vec![FlowKey(EMPTY); flows.len()];
        for f in tiled(flows.iter().map(|flow| flow.path)) {
            keys[f] = self.place(&flows[f]);
        }
        self.rebuild();
        Ok(keys)
    }

    /// Checks a flow. An error's place is relative to the flow, for example `weight`.
    pub(super) fn check(&self, flow: &NewFlow<'_>) -> Result<(), InputError> {
        let NewFlow { path, ln_gain, demand_bps } = *flow;
        let links = self.capacity.len();
        let fault = |place: &str, what: String, hint: &str| Err(InputError::new(place, what, hint));
        if path.is_empty() {
            return fault("path", "it has no links".into(), "give at least one");
        }
        if let Some(l) = path.iter().find(|&&l| l.index() >= links) {
            return fault("path", format!("there is no link {l}; there are {links}"), "give links that exist");
        }
        if (1..path.len()).any(|i| path[..i].contains(&path[i])) {
            return fault("path", "it crosses a link twice".into(), "give each link once");
        }
        if !ln_gain.is_finite() {
            return fault("weight", "it is not finite and positive".into(), "give a finite, positive weight");
        }
        check_demand(demand_bps)
    }

    /// Assigns a slot to a checked flow and adds it to its links.
    fn insert(&mut self, flow: &NewFlow<'_>) -> FlowKey {
        let key = self.place(flow);
        let fits = flow.path.iter().all(|&l| self.slices.add(l, key.0, EMPTY));
        if !fits {
            self.rebuild();
        }
        key
    }

    /// Assigns a slot to a checked flow.
    fn place(&mut self, flow: &NewFlow<'_>) -> FlowKey {
        self.widen(flow.path.len());
        if self.free.is_empty() {
            self.grow();
        }
        let slot = self.free.pop().expect("there are free slots now");
        self.top = self.top.max(slot + 1);
        let s = slot as usize;
        let (block, lane) = (s / LANES, s % LANES);
        for k in 0..self.width {
            self.paths[block * self.width + k][lane] = flow.path.get(k).copied().unwrap_or(self.padding());
        }
        self.ln_gain[s] = flow.ln_gain;
        self.demand[s] = flow.demand_bps / self.unit_bps;
        self.has_demands |= flow.demand_bps.is_finite();
        self.weigh(slot);
        self.uneven += usize::from(self.gain[block][lane] != T::ONE);
        self.version += 1;
        FlowKey(slot)
    }

    /// Computes gain and smallest price of the flow in `slot`.
    fn weigh(&mut self, slot: u32) {
        let s = slot as usize;
        let unit = *self.ln_gain_unit.get_or_insert(self.ln_gain[s]);
        let gain = libm::exp(self.ln_gain[s] - unit).clamp(1e-30, 1e30);
        let narrowest = self.path(FlowKey(slot)).map(|l| self.capacity[l].f64()).fold(f64::INFINITY, f64::min);
        let most = (narrowest * self.most_lines).min(self.demand[s]);
        // With a failed link the price is infinite, so that any floor is valid.
        let floor = if most > 0.0 { gain * libm::pow(most, -self.alpha) } else { gain };
        self.gain[s / LANES][s % LANES] = T::of(gain);
        // Rounded up, so that the rate at the floor does not exceed the bound.
        self.floor[s / LANES][s % LANES] = T::of(floor) * (T::ONE + T::EPSILON);
    }

    /// Lowers `rates`, by slot and in the cluster's scale, to the flows' demands.
    pub(super) fn bound(&self, rates: &mut [T]) {
        if self.has_demands {
            for (rate, &demand) in rates.iter_mut().zip(&self.demand).filter(|(rate, demand)| rate.f64() > **demand) {
                *rate = T::of(demand);
            }
        }
    }

    /// Removes a flow.
    pub fn remove(&mut self, key: FlowKey) -> Result<(), InputError> {
        self.known(key)?;
        let path: Vec<LinkId> = self.path(key).collect();
        path.iter().for_each(|&l| self.slices.remove(l, key.0, EMPTY));
        let (block, lane) = (key.0 as usize / LANES, key.0 as usize % LANES);
        self.uneven -= usize::from(self.gain[block][lane] != T::ONE);
        self.bury(key.0);
        self.free.push(key.0);
        self.version += 1;
        Ok(())
    }

    /// Changes a flow's weight.
    pub fn set_weight(&mut self, key: FlowKey, weight: f64) -> Result<(), InputError> {
        let ln_gain = self.alpha * ln_weight(weight)?;
        self.known(key)?;
        let (block, lane) = (key.0 as usize / LANES, key.0 as usize % LANES);
        self.uneven -= usize::from(self.gain[block][lane] != T::ONE);
        self.ln_gain[key.slot()] = ln_gain;
        self.weigh(key.0);
        self.uneven += usize::from(self.gain[block][lane] != T::ONE);
        self.version += 1;
        Ok(())
    }

    /// Sets a flow's demand, bit/s; infinite for no bound.
    pub fn set_demand(&mut self, key: FlowKey, demand_bps: f64) -> Result<(), InputError> {
        check_demand(demand_bps)?;
        self.known(key)?;
        self.demand[key.slot()] = demand_bps / self.unit_bps;
        self.has_demands |= demand_bps.is_finite();
        self.weigh(key.0);
        self.version += 1;
        Ok(())
    }

    /// Changes a link's capacity, bit/s; 0 means that it fails.
    pub fn set_capacity(&mut self, link: LinkId, capacity_bps: f64) -> Result<(), InputError> {
        check_capacities(&[capacity_bps])?;
        let links = self.capacity.len();
        let Some(capacity) = self.capacity.get_mut(link) else {
            return Err(InputError::new(
                "link",
                format!("there is no link {link}; there are {links}"),
                "give one that exists",
            ));
        };
        *capacity = T::of(capacity_bps / self.unit_bps);
        let crossing: Vec<u32> = self.slices.flows(link).collect();
        crossing.into_iter().for_each(|slot| self.weigh(slot));
        self.version += 1;
        Ok(())
    }

    fn known(&self, key: FlowKey) -> Result<(), InputError> {
        match (key.0 as usize) < self.ln_gain.len() && self.alive(key.0) {
            true => Ok(()),
            false => Err(InputError::new(
                "flow",
                format!("there is no flow {}", key.number()),
                "give the key of a flow that is there",
            )),
        }
    }

    /// Whether the flow exists.
    pub fn contains(&self, key: FlowKey) -> bool {
        self.known(key).is_ok()
    }

    fn alive(&self, slot: u32) -> bool {
        self.paths[slot as usize / LANES * self.width][slot as usize % LANES] != self.dead()
    }

    /// The links of a flow.
    pub fn path(&self, key: FlowKey) -> impl Iterator<Item = LinkId> + '_ {
        let (block, lane) = (key.0 as usize / LANES, key.0 as usize % LANES);
        let rows = &self.paths[block * self.width..(block + 1) * self.width];
        rows.iter().map(move |row| row[lane]).take_while(|&l| l < self.padding())
    }

    /// The flows, in the order of their slots.
    pub fn keys(&self) -> impl Iterator<Item = FlowKey> + Clone + '_ {
        (0..self.ln_gain.len() as u32).filter(|&slot| self.alive(slot)).map(FlowKey)
    }

    /// One past the largest flow number ever used.
    pub fn numbers(&self) -> usize {
        self.top as usize - 1
    }

    /// The number of flows.
    pub fn len(&self) -> usize {
        self.ln_gain.len() - 1 - self.free.len()
    }

    /// Whether there are no flows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of links.
    pub fn links(&self) -> usize {
        self.capacity.len()
    }

    /// Largest number of links of any path so far.
    pub fn longest_path(&self) -> usize {
        self.width
    }

    /// Unit of scaled rates and capacities, bit/s.
    pub fn unit_bps(&self) -> f64 {
        self.unit_bps
    }

    /// Unit of scaled prices, utility per bit/s.
    pub fn price_unit(&self) -> f64 {
        libm::exp(self.ln_gain_unit.unwrap_or(0.0) - self.alpha * libm::log(self.unit_bps))
    }

    /// Whether all utilities are logarithms of the same gain, so that rates are inverse prices.
    pub(super) fn plain(&self) -> bool {
        self.uneven == 0 && self.alpha == 1.0
    }

    /// Number of blocks of flows ever used.
    pub(super) fn blocks(&self) -> usize {
        (self.top as usize).div_ceil(LANES)
    }

    /// Length of a table with one value per link and one each for [`Cluster::padding`] and [`Cluster::dead`].
    pub(super) fn table(&self) -> usize {
        (self.capacity.len() + 2).next_power_of_two()
    }

    /// Entry that pads short paths: a link with price 0 that never saturates.
    pub(super) fn padding(&self) -> LinkId {
        self.capacity.next_id()
    }

    /// Link of infinite price, the path of a slot without a flow.
    pub(super) fn dead(&self) -> LinkId {
        LinkId::from_index(self.capacity.len() + 1)
    }

    fn bury(&mut self, slot: u32) {
        let (block, lane, dead) = (slot as usize / LANES, slot as usize % LANES, self.dead());
        for k in 0..self.width {
            self.paths[block * self.width + k][lane] = dead;
        }
        self.floor[block][lane] = T::ONE;
        self.gain[block][lane] = T::ONE;
    }

    /// Doubles the number of blocks: tables of flows have a power of two as their length.
    fn grow(&mut self) {
        let blocks = (2 * self.floor.len()).max(1);
        let first = self.ln_gain.len() as u32;
        self.paths.resize(blocks * self.width, [self.dead(); LANES]);
        self.floor.resize(blocks, [T::ONE; LANES]);
        self.gain.resize(blocks, [T::ONE; LANES]);
        self.ln_gain.resize(blocks * LANES, 0.0);
        self.demand.resize(blocks * LANES, f64::INFINITY);
        self.free.splice(0..0, (first..(blocks * LANES) as u32).rev());
    }

    fn widen(&mut self, width: usize) {
        if width <= self.width {
            return;
        }
        let old = std::mem::take(&mut self.paths);
        for rows in old.chunks(self.width) {
            self.paths.extend_from_slice(rows);
            let more = std::array::from_fn(|i| if rows[0][i] == self.dead() { self.dead() } else { self.padding() });
            self.paths.extend(std::iter::repeat_n(more, width - self.width));
        }
        self.width = width;
    }

    fn rebuild(&mut self) {
        self.slices = Slices::build(self.links(), EMPTY, self.keys().map(|k| (k.0, self.path(k))));
    }
}

/// A flow to add.
#[derive(Debug, Clone, Copy)]
pub struct NewFlow<'a> {
    /// Links of the path.
    pub path: &'a [LinkId],
    /// Logarithm of the flow's marginal utility at 1 bit/s.
    pub ln_gain: f64,
    /// Demand, bit/s; infinite for no bound.
    pub demand_bps: f64,
}

impl<'a> NewFlow<'a> {
    /// The alpha of `case`'s utilities, and its flows. Pooled paths, and policies without a common power utility, are
    /// errors.
    pub fn all_of(case: &'a Case) -> Result<(f64, Vec<Self>), InputError> {
        if !case.flows.single_path() {
            let what = "a flow has several paths; NED has one price a path and one rate a flow";
            return Err(InputError::new("flows", what, "give each flow one path, or use the exact solver"));
        }
        let mut flows = Vec::with_capacity(case.flows.len());
        let mut alpha = case.policy.alpha().unwrap_or(1.0);
        for f in 0..case.flows.len() {
            let power = match Utility::of(case, f)? {
                Utility::Power { alpha: own, ln_gain } if flows.is_empty() || own == alpha => Ok((own, ln_gain)),
                Utility::Power { .. } => Err("flows have utilities of several alphas; the iteration has one"),
                Utility::BandwidthFunction { .. } => Err("bandwidth functions have no iteration here"),
                Utility::Curve { .. } => Err("utilities through points have no iteration here"),
            };
            let hint = "use alpha-fair, fct, srpt or edf, or the exact solver";
            let (own, ln_gain) = power.map_err(|what| InputError::new("policy", what, hint))?;
            alpha = own;
            flows.push(NewFlow { path: case.flows.links_of(f), ln_gain, demand_bps: case.flows.demand_bps()[f] });
        }
        Ok((alpha, flows))
    }
}

fn ln_weight(weight: f64) -> Result<f64, InputError> {
    match weight.is_finite() && weight > 0.0 {
        true => Ok(libm::log(weight)),
        false => Err(InputError::new("weight", format!("it is {weight}"), "give a finite, positive weight")),
    }
}

fn check_demand(demand_bps: f64) -> Result<(), InputError> {
    match demand_bps > 0.0 {
        true => Ok(()),
        false => Err(InputError::new("demand", format!("it is {demand_bps}"), "give a positive rate")),
    }
}

fn check_capacities(capacity_bps: &[f64]) -> Result<(), InputError> {
    match capacity_bps.iter().find(|c| !(c.is_finite() && **c >= 0.0)) {
        None => Ok(()),
        Some(c) => Err(InputError::new(
            "capacity",
            format!("a link has capacity {c}"),
            "give finite rates, zero for a failed link",
        )),
    }
}
