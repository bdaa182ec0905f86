//! One iteration of FlowBlocks and LinkBlocks, and the tables they exchange.

use super::Partition;
use crate::ned::cluster::{Cluster, FlowKey, NewFlow};
use crate::ned::diagonal;
use crate::ned::iteration::{FlowRates, Reciprocal};
use crate::ned::real::Real;
use crate::ned::team::Team;
use std::ops::Range;
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use subak_core::{InputError, LinkId};

/// Tables shared by the threads. Each table has one writer, and none is read and written between the same two barriers,
/// so that locks never block.
#[derive(Debug)]
pub(super) struct SharedBlocks<T> {
    /// For each FlowBlock the load and H of each link that its flows cross, upward links first.
    sums: Vec<RwLock<Vec<[T; 2]>>>,
    /// State of each LinkBlock.
    kept: Vec<RwLock<Kept<T>>>,
}

/// State of a LinkBlock's links. Its keeper, the thread of the diagonal FlowBlock, writes it.
#[derive(Debug, Default)]
pub(super) struct Kept<T> {
    pub price: Vec<T>,
    pub load: Vec<T>,
}

impl<T: Real> SharedBlocks<T> {
    /// Tables without flows; prices are 1, or infinite for failed links.
    pub fn new(flow_blocks: &[FlowBlock<T>], link_blocks: &[LinkBlock<T>]) -> Self {
        let sums = |block: &FlowBlock<T>| RwLock::new(vec![[T::ZERO; 2]; block.links()]);
        let kept = |block: &LinkBlock<T>| {
            let price = block.capacity.iter().map(|&c| if c > T::ZERO { T::ONE } else { T::INFINITY }).collect();
            RwLock::new(Kept { price, load: vec![T::ZERO; block.links.len()] })
        };
        SharedBlocks { sums: flow_blocks.iter().map(sums).collect(), kept: link_blocks.iter().map(kept).collect() }
    }

    /// The sums of a FlowBlock.
    pub fn sums(&self, block: usize) -> RwLockReadGuard<'_, Vec<[T; 2]>> {
        self.sums[block].read().expect(NO_PANIC)
    }

    /// Like [`SharedBlocks::sums`], for writing.
    pub fn sums_mut(&self, block: usize) -> RwLockWriteGuard<'_, Vec<[T; 2]>> {
        self.sums[block].write().expect(NO_PANIC)
    }

    /// State of a LinkBlock.
    pub fn kept(&self, block: usize) -> RwLockReadGuard<'_, Kept<T>> {
        self.kept[block].read().expect(NO_PANIC)
    }

    /// Like [`SharedBlocks::kept`], for writing.
    pub fn kept_mut(&self, block: usize) -> RwLockWriteGuard<'_, Kept<T>> {
        self.kept[block].write().expect(NO_PANIC)
    }
}

const NO_PANIC: &str = "no thread panics while it holds a table";

/// The flows from one group to another, with a private copy of the link state that they need.
#[derive(Debug)]
pub(super) struct FlowBlock<T> {
    number: usize,
    pub cluster: Cluster<T>,
    pub response: FlowRates<T>,
    /// LinkBlock upwards from the source group, and LinkBlock down to the destination group. Each has the range of its
    /// links in the FlowBlock's tables.
    link_blocks: [(usize, Range<usize>); 2],
    price: Vec<T>,
    /// The team of its thread alone: FlowBlocks have a thread each.
    alone: Team,
    /// Normalized rate of the flow in each slot.
    rates: Vec<T>,
}

impl<T: Real> FlowBlock<T> {
    /// FlowBlock `number` with the flows `own` out of `flows`; also returns the keys of these flows. `links` has the
    /// links of each LinkBlock.
    pub fn new(
        number: usize,
        whole: &Cluster<T>,
        links: &[Vec<LinkId>],
        own: &[usize],
        flows: &[NewFlow<'_>],
    ) -> Result<(Self, Vec<FlowKey>), InputError> {
        let groups = links.len() / 2;
        let [up, down] = [2 * (number / groups), 2 * (number % groups) + 1];
        let here = [&links[up][..], &links[down]].concat();
        let unit = flows.first().map_or(0.0, |f| f.ln_gain);
        let mut cluster = whole.part(&here, unit);
        let local: std::collections::HashMap<LinkId, LinkId> =
            here.iter().zip(0..).map(|(&l, i)| (l, LinkId(i))).collect();
        let paths: Vec<Vec<LinkId>> = own.iter().map(|&f| flows[f].path.iter().map(|l| local[l]).collect()).collect();
        let own: Vec<NewFlow<'_>> = own.iter().zip(&paths).map(|(&f, path)| NewFlow { path, ..flows[f] }).collect();
        let keys = cluster.add_all(&own)?;
        let mut price = vec![T::ONE; cluster.table()];
        price[cluster.padding().index()] = T::ZERO;
        price[cluster.dead().index()] = T::INFINITY;
        let middle = links[up].len();
        let link_blocks = [(up, 0..middle), (down, middle..here.len())];
        let (response, alone, rates) = (FlowRates::default(), Team::new(1), Vec::new());
        Ok((FlowBlock { number, cluster, response, link_blocks, price, alone, rates }, keys))
    }

    fn links(&self) -> usize {
        self.link_blocks[1].1.end
    }

    /// Reads prices, updates rates, and writes the sums for the keepers.
    pub fn tell(&mut self, shared: &SharedBlocks<T>) {
        let FlowBlock { cluster, response, price, link_blocks, alone, .. } = self;
        for (block, range) in link_blocks {
            price[range.clone()].copy_from_slice(&shared.kept(*block).price);
        }
        response.respond(cluster, Reciprocal::Exact, price, &mut shared.sums_mut(self.number), alone);
    }

    /// Applies F-NORM and stores the rates.
    pub fn normalize(&mut self, shared: &SharedBlocks<T>, margin: f64) {
        let mut rates = std::mem::take(&mut self.rates);
        self.normalize_into(shared, margin, &mut rates);
        self.rates = rates;
    }

    /// Rates normalized by F-NORM, by slot.
    pub fn normalized(&self, shared: &SharedBlocks<T>, margin: f64) -> Vec<T> {
        let mut rates = Vec::new();
        self.normalize_into(shared, margin, &mut rates);
        rates
    }

    /// Writes rates normalized by F-NORM to `rates`, by slot. The margin accounts for rounding errors within each
    /// FlowBlock's sum and in their total.
    fn normalize_into(&self, shared: &SharedBlocks<T>, margin: f64, rates: &mut Vec<T>) {
        let FlowBlock { cluster, response, link_blocks, alone, .. } = self;
        let mut ratios = vec![T::ZERO; cluster.table()];
        let margin = T::of(margin);
        for (block, range) in link_blocks {
            let loads = &shared.kept(*block).load;
            let links = ratios[range.clone()].iter_mut().zip(&cluster.capacity.raw()[range.clone()]);
            for ((ratio, &capacity), &load) in links.zip(loads) {
                *ratio = if capacity > T::ZERO { load / capacity * margin } else { T::ZERO };
            }
        }
        response.divide(cluster, &ratios, rates, alone);
    }
}

/// The links up from a group, or down to it, and the FlowBlocks that cross them.
#[derive(Debug)]
pub(super) struct LinkBlock<T> {
    number: usize,
    pub links: Vec<LinkId>,
    capacity: Vec<T>,
    /// Numbers of the FlowBlocks that cross these links, each with the position of the links in the FlowBlock's tables.
    copies: Vec<(usize, usize)>,
    /// FlowBlock on the diagonal, whose thread updates the prices.
    pub keeper: usize,
}

impl<T: Real> LinkBlock<T> {
    /// LinkBlock `number`; `links` has the links of each LinkBlock.
    pub fn new(number: usize, whole: &Cluster<T>, links: &[Vec<LinkId>]) -> Self {
        let (groups, g) = (links.len() / 2, number / 2);
        let copy = |other: usize| match number % 2 {
            0 => (g * groups + other, 0),
            // Downward links come after the upward links of the FlowBlock's source group.
            _ => (other * groups + g, links[2 * other].len()),
        };
        LinkBlock {
            number,
            links: links[number].clone(),
            capacity: links[number].iter().map(|&l| whole.capacity[l]).collect(),
            copies: (0..groups).map(copy).collect(),
            keeper: if number.is_multiple_of(2) { g * (groups + 1) } else { (groups - 1 - g) * groups + g },
        }
    }

    /// FlowBlocks out of `blocks` that cross these links: their numbers, and the range of these links in the
    /// FlowBlock's tables.
    pub fn copies_of(&self, blocks: &Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
        let own = self.copies.iter().filter(|(block, _)| blocks.contains(block));
        own.map(|&(block, first)| (block, first..first + self.links.len()))
    }

    /// Adds up the copies and updates the prices.
    pub fn aggregate(&self, gamma: T, shared: &SharedBlocks<T>) {
        let tables: Vec<_> = self.copies.iter().map(|&(block, first)| (shared.sums(block), first)).collect();
        let copies: Vec<&[[T; 2]]> = tables.iter().map(|(sums, first)| &sums[*first..]).collect();
        let Kept { price, load } = &mut *shared.kept_mut(self.number);
        let runs = price.chunks_mut(RUN).zip(load.chunks_mut(RUN)).zip(self.capacity.chunks(RUN));
        for (r, ((price, load), capacity)) in runs.enumerate() {
            let sums = pairwise(&copies, r * RUN, price.len());
            for (((price, load), &capacity), &sums) in price.iter_mut().zip(load).zip(capacity).zip(&sums) {
                *load = sums[0];
                let moved = diagonal::step(gamma, capacity, sums, *price, T::ZERO);
                *price = if capacity > T::ZERO { moved } else { *price };
            }
        }
    }
}

/// Number of links whose sums are added up at once.
const RUN: usize = 32;

/// Pairwise sum over `copies` of `count` links from `first` on: after step m, groups of 2^m copies are added up.
fn pairwise<T: Real>(copies: &[&[[T; 2]]], first: usize, count: usize) -> [[T; 2]; RUN] {
    match copies {
        [one] => {
            let mut run = [[T::ZERO; 2]; RUN];
            run[..count].copy_from_slice(&one[first..first + count]);
            run
        }
        _ => {
            let (a, b) = copies.split_at(copies.len().next_power_of_two() / 2);
            let (mut a, b) = (pairwise(a, first, count), pairwise(b, first, count));
            for (a, b) in a.iter_mut().zip(&b) {
                a[0] += b[0];
                a[1] += b[1];
            }
            a
        }
    }
}

/// The links of each LinkBlock.
pub(super) fn links_of(partition: &Partition, links: usize) -> Vec<Vec<LinkId>> {
    let mut of = vec![Vec::new(); 2 * partition.groups()];
    LinkId::first(links).for_each(|l| of[partition.block(l)].push(l));
    of
}

/// The flows of each FlowBlock, by their numbers.
pub(super) fn flows_of<T: Real>(
    partition: &Partition,
    whole: &Cluster<T>,
    flows: &[NewFlow<'_>],
) -> Result<Vec<Vec<usize>>, InputError> {
    let groups = partition.groups();
    let mut of = vec![Vec::new(); groups * groups];
    for (f, flow) in flows.iter().enumerate() {
        let block = whole.check(flow).and_then(|()| partition.flow_block(flow.path));
        let (from, to) = block.map_err(|e| e.below(&format!("flows[{f}]")))?;
        of[from * groups + to].push(f);
    }
    Ok(of)
}
