//! NED on several threads (Flowtune, section 4).
//!
//! Each FlowBlock computes rates from its own copy of its two LinkBlocks' prices, and sums for them; the copies are
//! aggregated by the keeper of each LinkBlock, on the main diagonal for upward ones and on the secondary diagonal for
//! downward ones, who moves the prices and gives them back. No two threads write the same place.
//!
//! Sums are added in pairs, in an order that follows from the groups alone: the bits are the same for any number of
//! threads. Departure: the paper passes sums along in log n steps between processors; here the keeper reads all copies of
//! its LinkBlock at once, in the same order of additions, which takes one wait instead of log n.

mod across;
mod barrier;
mod partition;

/// What threads meet through.
mod sync {
    pub use std::hint::spin_loop;
    pub use std::sync::atomic::{AtomicUsize, Ordering};
    pub use std::thread::yield_now;
}

pub use across::Share;
pub use partition::Partition;

use super::cluster::{Cluster, Key, NewFlow};
use super::diagonal;
use super::iteration::{Division, Response};
use super::kernels;
use super::normalize::margin;
use super::real::Real;
use barrier::Barrier;
use subak_core::{Fault, LinkId};

/// NED over FlowBlocks.
#[derive(Debug)]
pub struct Parallel<T: Real> {
    gamma: T,
    threads: usize,
    /// The part of the FlowBlocks that has its flows here.
    share: Share,
    unit_bps: f64,
    flow_blocks: Vec<FlowBlock<T>>,
    keepers: Vec<LinkBlock<T>>,
    shared: Shared<T>,
    /// The FlowBlock of each flow, and its key there; none for one whose rate another process has.
    place: Vec<Option<(u32, Key)>>,
}

/// The flows from one group to another, with private copies of what they need of links.
#[derive(Debug)]
struct FlowBlock<T> {
    cluster: Cluster<T>,
    response: Response<T>,
    /// The network's number of each link of the two LinkBlocks.
    links: Vec<LinkId>,
    price: Vec<T>,
    sums: Vec<[T; 2]>,
    /// Of the flow in each slot, where an iteration was normalized.
    rates: Vec<T>,
    /// Where its sums begin among the shared.
    first: usize,
}

/// The links up from a group, or down to it, and where the FlowBlocks that cross them put their sums.
#[derive(Debug)]
struct LinkBlock<T> {
    links: Vec<LinkId>,
    capacity: Vec<T>,
    /// Where each FlowBlock's sums of these links begin.
    copies: Vec<usize>,
    /// These FlowBlocks.
    crossing: Vec<usize>,
    /// The FlowBlock on the diagonal, whose thread keeps this.
    keeper: usize,
}

/// What threads tell each other; every place has one writer.
#[derive(Debug)]
struct Shared<T: Real> {
    /// Sums of each FlowBlock's links: load, then H.
    sums: Vec<[T::Shared; 2]>,
    price: Vec<T::Shared>,
    load: Vec<T::Shared>,
}

impl<T: Real> Parallel<T> {
    /// NED with `gamma` ([`super::safe_gamma`] if none) over utilities of `alpha`, on `threads` threads.
    pub fn new(
        capacity_bps: &[f64],
        alpha: f64,
        flows: &[NewFlow<'_>],
        partition: &Partition,
        gamma: Option<f64>,
        threads: usize,
    ) -> Result<Self, Fault> {
        Self::share_of(Share::WHOLE, capacity_bps, alpha, flows, partition, gamma, threads)
    }

    /// A process' share of [`Parallel::new`]: of all `flows` only those of its own FlowBlocks are kept. It iterates by
    /// [`Parallel::run_across`].
    pub fn share_of(
        share: Share,
        capacity_bps: &[f64],
        alpha: f64,
        flows: &[NewFlow<'_>],
        partition: &Partition,
        gamma: Option<f64>,
        threads: usize,
    ) -> Result<Self, Fault> {
        if share.index >= share.count {
            let what = format!("process {} of {}", share.index, share.count);
            return Err(Fault::new("share", what, "count processes from 0"));
        }
        let whole = Cluster::<T>::new(capacity_bps, alpha)?;
        let groups = partition.groups();
        let mut links = vec![Vec::new(); 2 * groups];
        (0..capacity_bps.len() as LinkId).for_each(|l| links[partition.block(l) as usize].push(l));
        let mut own = vec![Vec::new(); groups * groups];
        for (f, flow) in flows.iter().enumerate() {
            whole
                .check(flow)
                .and_then(|()| partition.flow_block(flow.path))
                .map_err(|e| e.below(&format!("flows[{f}]")))
                .map(|(from, to)| own[from * groups + to].push(f))?;
        }
        for (_, elsewhere) in own.iter_mut().enumerate().filter(|(b, _)| !share.has(*b, groups * groups)) {
            elsewhere.clear();
        }
        let unit = flows.first().map_or(0.0, |f| f.ln_gain);
        let mut place = vec![None; flows.len()];
        let (mut flow_blocks, mut first) = (Vec::new(), 0);
        for (b, own) in own.iter().enumerate() {
            let here = [&links[2 * (b / groups)][..], &links[2 * (b % groups) + 1]].concat();
            let block = FlowBlock::new(&whole, unit, here, own, flows, first)?;
            first += block.0.links.len();
            own.iter().zip(block.1).for_each(|(&f, key)| place[f] = Some((b as u32, key)));
            flow_blocks.push(block.0);
        }
        let longest = flows.iter().map(|f| f.path.len()).max().unwrap_or(1);
        let crossing = |k: usize| -> Vec<usize> {
            let (g, down) = (k / 2, k % 2 == 1);
            (0..groups).map(|o| if down { o * groups + g } else { g * groups + o }).collect()
        };
        let keepers = (0..2 * groups).map(|k| {
            let crossing = crossing(k);
            // The downward links come after the upward ones of the FlowBlock's source.
            let skip = |b: usize| if k % 2 == 1 { links[2 * (b / groups)].len() } else { 0 };
            LinkBlock {
                capacity: links[k].iter().map(|&l| whole.capacity[l as usize]).collect(),
                links: links[k].clone(),
                copies: crossing.iter().map(|&b| flow_blocks[b].first + skip(b)).collect(),
                crossing,
                keeper: if k % 2 == 0 { k / 2 * (groups + 1) } else { (groups - 1 - k / 2) * groups + k / 2 },
            }
        });
        let price = |c: &f64| {
            let price = T::Shared::default();
            if *c > 0.0 {
                T::ONE.put(&price)
            } else {
                T::INFINITY.put(&price)
            }
            price
        };
        Ok(Parallel {
            gamma: T::of(gamma.unwrap_or_else(|| diagonal::safe_gamma(longest))),
            threads: threads.clamp(1, groups * groups),
            share,
            unit_bps: whole.unit_bps(),
            keepers: keepers.collect(),
            flow_blocks,
            shared: Shared {
                sums: (0..first).map(|_| Default::default()).collect(),
                price: capacity_bps.iter().map(price).collect(),
                load: capacity_bps.iter().map(|_| Default::default()).collect(),
            },
            place,
        })
    }

    /// Makes `steps` iterations, of the whole.
    pub fn run(&mut self, steps: usize) {
        self.rounds(steps, false);
    }

    /// Makes `steps` iterations and puts the rates of each through F-NORM, as an allocator that hands out all of them.
    pub fn run_normalized(&mut self, steps: usize) {
        self.rounds(steps, true);
    }

    fn rounds(&mut self, steps: usize, normalized: bool) {
        let Parallel { gamma, threads, flow_blocks, keepers, shared, place, .. } = self;
        let per_thread = flow_blocks.len().div_ceil(*threads);
        let threads = flow_blocks.len().div_ceil(per_thread);
        let barrier = Barrier::new(threads);
        let margin = margin::<T>(place.len());
        let work = |t: usize, blocks: &mut [FlowBlock<T>]| {
            let own: Vec<&LinkBlock<T>> = keepers.iter().filter(|k| k.keeper / per_thread == t).collect();
            let tell = |blocks: &mut &mut [FlowBlock<T>]| blocks.iter_mut().for_each(|block| block.tell(shared));
            let gather = || own.iter().for_each(|links| links.aggregate(*gamma, shared));
            let end = |blocks: &mut &mut [FlowBlock<T>]| {
                if normalized {
                    blocks.iter_mut().for_each(|block| block.normalize(shared, margin));
                }
            };
            barrier.rounds(steps, &mut { blocks }, tell, gather, end);
        };
        std::thread::scope(|scope| {
            let mut parts = flow_blocks.chunks_mut(per_thread).enumerate();
            let (_, mine) = parts.next().expect("there is a group");
            for (t, blocks) in parts {
                let work = &work;
                scope.spawn(move || work(t, blocks));
            }
            work(0, mine);
        });
    }

    /// Price of each link, in the cluster's scale.
    pub fn prices(&self) -> impl Iterator<Item = f64> + '_ {
        self.shared.price.iter().map(|p| T::get(p).f64())
    }

    /// The rates of the last iteration, bit/s, by F-NORM if `normalized`; zero for a flow that another process has.
    pub fn rates_bps(&self, normalized: bool) -> Vec<f64> {
        let margin = margin::<T>(self.place.len());
        let normal: Vec<Vec<T>> = match normalized {
            true => self.flow_blocks.iter().map(|block| block.normalized(&self.shared, margin)).collect(),
            false => Vec::new(),
        };
        let rate = |place: &Option<(u32, Key)>| {
            let Some((b, key)) = *place else { return 0.0 };
            let block = &self.flow_blocks[b as usize];
            let x = match normal.get(b as usize) {
                Some(rates) => rates[key.0 as usize],
                None => block.response.rate(&block.cluster, key),
            };
            x.f64() * self.unit_bps
        };
        self.place.iter().map(rate).collect()
    }
}

impl<T: Real> FlowBlock<T> {
    fn new(
        whole: &Cluster<T>,
        ln_gain_unit: f64,
        links: Vec<LinkId>,
        own: &[usize],
        flows: &[NewFlow<'_>],
        first: usize,
    ) -> Result<(Self, Vec<Key>), Fault> {
        let mut cluster = whole.part(&links, ln_gain_unit);
        let local: std::collections::HashMap<LinkId, LinkId> = links.iter().zip(0..).map(|(&l, i)| (l, i)).collect();
        let paths: Vec<Vec<LinkId>> = own.iter().map(|&f| flows[f].path.iter().map(|l| local[l]).collect()).collect();
        let here: Vec<NewFlow<'_>> = own.iter().zip(&paths).map(|(&f, path)| NewFlow { path, ..flows[f] }).collect();
        let keys = cluster.add_all(&here)?;
        let mut price = vec![T::ONE; cluster.table()];
        price[cluster.padding() as usize] = T::ZERO;
        price[cluster.dead() as usize] = T::INFINITY;
        let sums = vec![[T::ZERO; 2]; links.len()];
        Ok((FlowBlock { cluster, response: Response::default(), links, price, sums, rates: Vec::new(), first }, keys))
    }

    /// F-NORM, into the block's own rates.
    fn normalize(&mut self, shared: &Shared<T>, margin: f64) {
        let mut rates = std::mem::take(&mut self.rates);
        self.normalize_into(shared, margin, &mut rates);
        self.rates = rates;
    }

    /// F-NORM's rates of the flow in each slot.
    fn normalized(&self, shared: &Shared<T>, margin: f64) -> Vec<T> {
        let mut rates = Vec::new();
        self.normalize_into(shared, margin, &mut rates);
        rates
    }

    /// Every FlowBlock's sum may be off by its own rounding, and the sum of them by as many roundings more.
    fn normalize_into(&self, shared: &Shared<T>, margin: f64, rates: &mut Vec<T>) {
        let FlowBlock { cluster, response, links, .. } = self;
        let mut ratios = vec![T::ZERO; cluster.table()];
        let margin = T::of(margin);
        for ((ratio, &l), &capacity) in ratios.iter_mut().zip(links).zip(&cluster.capacity) {
            let load = T::get(&shared.load[l as usize]);
            *ratio = if capacity > T::ZERO { load / capacity * margin } else { T::ZERO };
        }
        kernels::widest(response.divided(cluster, &ratios, rates));
    }

    /// Distribution of prices, rate update, and the sums for the links' keepers.
    fn tell(&mut self, shared: &Shared<T>) {
        for (price, &l) in self.price.iter_mut().zip(&self.links) {
            *price = T::get(&shared.price[l as usize]);
        }
        let FlowBlock { cluster, response, price, sums, .. } = self;
        kernels::widest(response.step(cluster, Division::Exact, price, sums));
        for (place, [load, h]) in shared.sums[self.first..].iter().zip(&self.sums) {
            load.put(&place[0]);
            h.put(&place[1]);
        }
    }
}

impl<T: Real> LinkBlock<T> {
    /// Aggregation, and the price update on the whole.
    fn aggregate(&self, gamma: T, shared: &Shared<T>) {
        for (r, (links, capacity)) in self.links.chunks(RUN).zip(self.capacity.chunks(RUN)).enumerate() {
            let sums = pairwise(&self.copies, &|first| {
                let mut run = [[T::ZERO; 2]; RUN];
                let copy = &shared.sums[first + r * RUN..][..links.len()];
                run.iter_mut().zip(copy).for_each(|(sums, [load, h])| *sums = [T::get(load), T::get(h)]);
                run
            });
            for ((&l, &capacity), &sums) in links.iter().zip(capacity).zip(&sums) {
                let price = &shared.price[l as usize];
                sums[0].put(&shared.load[l as usize]);
                if capacity > T::ZERO {
                    diagonal::step(gamma, capacity, sums, T::get(price)).put(price);
                }
            }
        }
    }
}

/// Links that are aggregated side by side.
const RUN: usize = 32;

/// The sum over `copies`, halves first: at the end of step m, groups of 2^m copies are summed up.
fn pairwise<T: Real>(copies: &[usize], of: &impl Fn(usize) -> [[T; 2]; RUN]) -> [[T; 2]; RUN] {
    match copies {
        [one] => of(*one),
        _ => {
            let (a, b) = copies.split_at(copies.len().next_power_of_two() / 2);
            let (mut a, b) = (pairwise(a, of), pairwise(b, of));
            for (a, b) in a.iter_mut().zip(&b) {
                a[0] += b[0];
                a[1] += b[1];
            }
            a
        }
    }
}
