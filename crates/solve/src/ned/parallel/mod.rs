//! NED on several threads (Flowtune, section 4).
//!
//! Each FlowBlock computes rates from its own copy of its two LinkBlocks' prices, and their sums. The copies are
//! aggregated by the keeper of each LinkBlock, on the main diagonal for upward ones and on the secondary diagonal for
//! downward ones, which updates the prices and distributes them. No two threads write the same memory.
//!
//! Sums are added in pairs, in an order that follows from the groups alone: the bits are the same for any number of
//! threads. Departure: the paper passes sums along in log n steps between processors; here the keeper reads all copies of
//! its LinkBlock at once, in the same order of additions, which takes one wait instead of log n.

mod across;
mod barrier;
mod blocks;
mod partition;

/// Primitives of thread synchronization, which tests replace.
mod sync {
    pub use std::hint::spin_loop;
    pub use std::sync::atomic::{AtomicUsize, Ordering};
    pub use std::thread::yield_now;
}

pub use across::ProcessIndex;
pub use partition::Partition;

use super::cluster::{Cluster, FlowKey, NewFlow};
use super::diagonal;
use super::normalize::margin;
use super::real::Real;
use barrier::Barrier;
use blocks::{FlowBlock, LinkBlock, SharedBlocks, flows_of, links_of};
use subak_core::{IdVec, InputError, LinkId};

/// NED over FlowBlocks.
#[derive(Debug)]
pub struct Parallel<T: Real> {
    gamma: T,
    threads: usize,
    /// Share of the FlowBlocks in this process.
    share: ProcessIndex,
    unit_bps: f64,
    flow_blocks: Vec<FlowBlock<T>>,
    link_blocks: Vec<LinkBlock<T>>,
    shared: SharedBlocks<T>,
    /// FlowBlock of each flow, and its key there; `None` for a flow of another process.
    place: Vec<Option<(u32, FlowKey)>>,
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
    ) -> Result<Self, InputError> {
        Self::share_of(ProcessIndex::WHOLE, capacity_bps, alpha, flows, partition, gamma, threads)
    }

    /// A process' share of [`Parallel::new`]: of all `flows` only those of its own FlowBlocks are kept. It iterates by
    /// [`Parallel::run_across`].
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

    /// Makes `steps` iterations, of the whole.
    pub fn run(&mut self, steps: usize) {
        self.rounds(steps, false);
    }

    /// Makes `steps` iterations and normalizes the rates of each by F-NORM, as an allocator that sends all of them.
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

    /// The rates of the last iteration, bit/s, by F-NORM if `normalized`; zero for a flow that another process has.
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
