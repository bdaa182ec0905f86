//! NED over FlowBlocks (Flowtune, section 4), on several threads or in several processes, for a fixed set of flows.
//! [`NedIteration::with_threads`](super::NedIteration::with_threads) is for flows that start and end, on any network.
//!
//! Each FlowBlock computes rates from a private copy of the prices of its two LinkBlocks, and the sums for them. The
//! keeper of a LinkBlock adds up the copies, updates the prices and distributes them. Keepers are on the main
//! diagonal for upward LinkBlocks, and on the secondary diagonal for downward ones. No two threads write the same
//! memory.
//!
//! Sums are added in pairs, in an order that depends on the groups alone: results are the same bits for any number of
//! threads. Departure from the paper: it passes sums between processors in log n steps. Here the keeper reads all
//! copies of its LinkBlock, in the same order of additions, which needs one barrier instead of log n.

mod across;
mod barrier;
mod blocks;
mod partition;

pub use across::ProcessIndex;
pub use partition::Partition;

use super::cluster::{Cluster, FlowKey, NewFlow};
use super::diagonal;
use super::normalize::margin;
use super::real::Real;
use super::sync;
use barrier::Barrier;
use blocks::{FlowBlock, LinkBlock, SharedBlocks, flows_of, links_of};
use subak_core::{IdVec, InputError, LinkId};

/// NED over FlowBlocks.
#[derive(Debug)]
pub struct Parallel<T: Real> {
    gamma: T,
    threads: usize,
    /// Index of this process, which determines its FlowBlocks.
    share: ProcessIndex,
    unit_bps: f64,
    flow_blocks: Vec<FlowBlock<T>>,
    link_blocks: Vec<LinkBlock<T>>,
    shared: SharedBlocks<T>,
    /// FlowBlock of each flow, and the flow's key in it; `None` for a flow of another process.
    place: Vec<Option<(u32, FlowKey)>>,
}

impl<T: Real> Parallel<T> {
    /// NED with step size `gamma` (default [`super::safe_gamma`]) for utilities of `alpha`, on `threads` threads.
    pub fn new(
        capacity_bps: &[f64],
        alpha: f64,
        flows: &[NewFlow<'_>],
        partition: &Partition,
        gamma: Option<f64>,
        threads: usize,
    ) -> Result<Self, InputError> {
        Self::share_of(ProcessIndex::WHOLE, capacity_bps, alpha, flows, partition, gamma, threads)
    }

    /// One process' part of [`Parallel::new`], with only those of `flows` that belong to its FlowBlocks.
    /// [`Parallel::run_across`] runs it.
    pub fn share_of(
        share: ProcessIndex,
        capacity_bps: &[f64],
        alpha: f64,
        flows: &[NewFlow<'_>],
        partition: &Partition,
        gamma: Option<f64>,
        threads: usize,
    ) -> Result<Self, InputError> {
        if share.index >= share.count {
            let what = format!("process {} of {}", share.index, share.count);
            return Err(InputError::new("share", what, "count processes from 0"));
        }
        let whole = Cluster::<T>::new(capacity_bps, alpha)?;
        let links = links_of(partition, capacity_bps.len());
        let own = flows_of(partition, &whole, flows)?;
        let mut place = vec![None; flows.len()];
        let mut flow_blocks = Vec::with_capacity(own.len());
        for (b, all) in own.iter().enumerate() {
            let here = if share.has(b, own.len()) { &all[..] } else { &[] };
            let (block, keys) = FlowBlock::new(b, &whole, &links, here, flows)?;
            here.iter().zip(keys).for_each(|(&f, key)| place[f] = Some((b as u32, key)));
            flow_blocks.push(block);
        }
        let link_blocks: Vec<_> = (0..links.len()).map(|k| LinkBlock::new(k, &whole, &links)).collect();
        let longest = flows.iter().map(|f| f.path.len()).max().unwrap_or(1);
        Ok(Parallel {
            gamma: T::of(gamma.unwrap_or_else(|| diagonal::safe_gamma(longest))),
            threads: threads.clamp(1, flow_blocks.len()),
            share,
            unit_bps: whole.unit_bps(),
            shared: SharedBlocks::new(&flow_blocks, &link_blocks),
            flow_blocks,
            link_blocks,
            place,
        })
    }

    /// Runs `steps` iterations in this process alone.
    pub fn run(&mut self, steps: usize) {
        self.rounds(steps, false);
    }

    /// Runs `steps` iterations and applies F-NORM in each, as an allocator that sends all rates.
    pub fn run_normalized(&mut self, steps: usize) {
        self.rounds(steps, true);
    }

    fn rounds(&mut self, steps: usize, normalized: bool) {
        let Parallel { gamma, threads, flow_blocks, link_blocks, shared, place, .. } = self;
        let per_thread = flow_blocks.len().div_ceil(*threads);
        let threads = flow_blocks.len().div_ceil(per_thread);
        let barrier = Barrier::new(threads);
        let margin = margin::<T>(place.len());
        let work = |t: usize, blocks: &mut [FlowBlock<T>]| {
            let own: Vec<&LinkBlock<T>> = link_blocks.iter().filter(|k| k.keeper / per_thread == t).collect();
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
    pub fn prices(&self) -> IdVec<LinkId, f64> {
        let mut prices = IdVec::filled(0.0, self.link_blocks.iter().map(|block| block.links.len()).sum());
        for (k, block) in self.link_blocks.iter().enumerate() {
            for (&l, price) in block.links.iter().zip(&self.shared.kept(k).price) {
                prices[l] = price.f64();
            }
        }
        prices
    }

    /// The rates of the last iteration, bit/s, with F-NORM if `normalized`; 0 for a flow of another process.
    pub fn rates_bps(&self, normalized: bool) -> Vec<f64> {
        let margin = margin::<T>(self.place.len());
        let normal: Vec<Vec<T>> = match normalized {
            true => self.flow_blocks.iter().map(|block| block.normalized(&self.shared, margin)).collect(),
            false => Vec::new(),
        };
        let rate = |place: &Option<(u32, FlowKey)>| {
            let Some((b, key)) = *place else { return 0.0 };
            let b = b as usize;
            let block = &self.flow_blocks[b];
            let x = match normal.get(b) {
                Some(rates) => rates[key.slot()],
                None => block.response.rate(&block.cluster, key),
            };
            x.f64() * self.unit_bps
        };
        self.place.iter().map(rate).collect()
    }
}
