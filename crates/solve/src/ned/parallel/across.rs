//! The iteration across several processes (Flowtune, section 4: "the partitioning distributes the allocator on multiple
//! machines"). Each process has some of the FlowBlocks, and the LinkBlocks whose diagonal FlowBlock is among them.
//! Twice per iteration a process sends messages to each other process: sums of the receiver's LinkBlocks, then prices.
//!
//! Results are the same bits as in one process: sums are sent unrounded, and added in the same order. Processes are
//! connected by any byte streams, such as sockets; nothing here opens one. Departure from the paper: it adds up
//! within a machine before sending. Here every copy is sent, which costs bandwidth but keeps the order of additions.

use super::Parallel;
use super::blocks::Kept;
use crate::ned::real::Real;
use std::io::{self, Read, Write};
use std::ops::Range;
use subak_core::LinkId;
use subak_core::rng::mix;

/// Index of a process among `count` processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessIndex {
    /// From 0 on.
    pub index: usize,
    /// Number of processes.
    pub count: usize,
}

impl ProcessIndex {
    /// A single process.
    pub const WHOLE: ProcessIndex = ProcessIndex { index: 0, count: 1 };

    /// The FlowBlocks of process `index`, out of `blocks`.
    pub(super) fn blocks_of(self, index: usize, blocks: usize) -> Range<usize> {
        let each = blocks.div_ceil(self.count);
        (index * each).min(blocks)..((index + 1) * each).min(blocks)
    }

    pub(super) fn has(self, block: usize, blocks: usize) -> bool {
        self.blocks_of(self.index, blocks).contains(&block)
    }
}

/// Messages of one iteration between this process and another, in their order.
#[derive(Debug, Default)]
struct Traffic {
    /// FlowBlocks whose sums are sent, each with a range of links in its tables.
    sums_out: Vec<(usize, Range<usize>)>,
    /// FlowBlocks whose sums are received, each with a range of links in its tables.
    sums_in: Vec<(usize, Range<usize>)>,
    /// LinkBlocks whose prices are sent, each with its number of links.
    prices_out: Vec<(usize, usize)>,
    /// LinkBlocks whose prices are received, each with its number of links.
    prices_in: Vec<(usize, usize)>,
}

fn bytes_of_sums<T: Real>(ranges: &[(usize, Range<usize>)]) -> usize {
    ranges.iter().map(|(_, range)| range.len()).sum::<usize>() * 2 * T::BYTES
}

fn bytes_of_prices<T: Real>(blocks: &[(usize, usize)]) -> usize {
    blocks.iter().map(|(_, links)| links).sum::<usize>() * 2 * T::BYTES
}

impl<T: Real> Parallel<T> {
    /// Runs `steps` iterations together with the other processes. `peers` has a stream to each of them, by index; the
    /// entry of this process is not used. Every process must call this method with the same flows, partition and gamma.
    /// An error comes from a stream, or says that another process has a different problem.
    pub fn run_across<S: Read + Write>(&mut self, steps: usize, peers: &mut [Option<S>]) -> io::Result<()> {
        let share = self.share;
        if peers.len() != share.count || (0..share.count).any(|q| q != share.index && peers[q].is_none()) {
            let what = format!("a stream to each of the other {} processes is needed", share.count - 1);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let traffic: Vec<Traffic> = (0..share.count).map(|q| self.traffic(q)).collect();
        let hello = self.hello(steps);
        exchange(share.index, peers, |_| hello.clone(), |_, theirs| same(&hello, theirs), |_| hello.len())?;
        let mine = share.blocks_of(share.index, self.flow_blocks.len());
        for _ in 0..steps {
            self.flow_blocks[mine.clone()].iter_mut().for_each(|block| block.tell(&self.shared));
            let out = |q: usize| self.sums_to(&traffic[q]);
            let take = |q: usize, bytes: &[u8]| self.take_sums(&traffic[q], bytes);
            exchange(share.index, peers, out, take, |q| bytes_of_sums::<T>(&traffic[q].sums_in))?;
            let kept = self.link_blocks.iter().filter(|k| mine.contains(&k.keeper));
            kept.for_each(|k| k.aggregate(self.gamma, &self.shared));
            let out = |q: usize| self.prices_to(&traffic[q]);
            let take = |q: usize, bytes: &[u8]| self.take_prices(&traffic[q], bytes);
            exchange(share.index, peers, out, take, |q| bytes_of_prices::<T>(&traffic[q].prices_in))?;
        }
        Ok(())
    }

    fn sums_to(&self, traffic: &Traffic) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(bytes_of_sums::<T>(&traffic.sums_out));
        for (block, range) in &traffic.sums_out {
            self.shared.sums(*block)[range.clone()].as_flattened().iter().for_each(|x| x.write(&mut bytes));
        }
        bytes
    }

    fn take_sums(&self, traffic: &Traffic, bytes: &[u8]) -> io::Result<()> {
        let mut numbers = bytes.chunks_exact(T::BYTES).map(T::read);
        for (block, range) in &traffic.sums_in {
            let mut sums = self.shared.sums_mut(*block);
            sums[range.clone()].as_flattened_mut().iter_mut().zip(&mut numbers).for_each(|(place, x)| *place = x);
        }
        Ok(())
    }

    fn prices_to(&self, traffic: &Traffic) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(bytes_of_prices::<T>(&traffic.prices_out));
        for &(block, _) in &traffic.prices_out {
            let Kept { price, load } = &*self.shared.kept(block);
            price.iter().chain(load).for_each(|x| x.write(&mut bytes));
        }
        bytes
    }

    fn take_prices(&self, traffic: &Traffic, bytes: &[u8]) -> io::Result<()> {
        let mut numbers = bytes.chunks_exact(T::BYTES).map(T::read);
        for &(block, _) in &traffic.prices_in {
            let Kept { price, load } = &mut *self.shared.kept_mut(block);
            price.iter_mut().chain(load).zip(&mut numbers).for_each(|(place, x)| *place = x);
        }
        Ok(())
    }

    /// Number of bytes that this process sends per iteration.
    pub fn bytes_sent(&self) -> usize {
        let traffic = (0..self.share.count).map(|q| self.traffic(q));
        traffic.map(|t| bytes_of_sums::<T>(&t.sums_out) + bytes_of_prices::<T>(&t.prices_out)).sum()
    }

    /// Messages between this process and process `other`.
    fn traffic(&self, other: usize) -> Traffic {
        let mut traffic = Traffic::default();
        if other == self.share.index {
            return traffic;
        }
        let blocks = self.flow_blocks.len();
        let [mine, theirs] = [self.share.index, other].map(|q| self.share.blocks_of(q, blocks));
        for (k, block) in self.link_blocks.iter().enumerate() {
            let prices = (k, block.links.len());
            if theirs.contains(&block.keeper) {
                let own: Vec<_> = block.copies_of(&mine).collect();
                traffic.prices_in.extend((!own.is_empty()).then_some(prices));
                traffic.sums_out.extend(own);
            }
            if mine.contains(&block.keeper) {
                let own: Vec<_> = block.copies_of(&theirs).collect();
                traffic.prices_out.extend((!own.is_empty()).then_some(prices));
                traffic.sums_in.extend(own);
            }
        }
        traffic
    }

    /// Message with the settings that both processes must share.
    fn hello(&self, steps: usize) -> Vec<u8> {
        // A message of constant size, so that both ends wait for the same number of bytes.
        let links = self.link_blocks.iter().flat_map(|block| block.links.iter().chain(&[LinkId::NONE]));
        let partition = links.fold(0, |hash, &l| mix(hash ^ u64::from(l.0)));
        let sizes = [steps, self.share.count, self.flow_blocks.len(), T::BYTES].map(|n| n as u64);
        let words = sizes.into_iter().chain([partition, self.gamma.f64().to_bits()]);
        words.flat_map(u64::to_le_bytes).collect()
    }
}

fn same(ours: &[u8], theirs: &[u8]) -> io::Result<()> {
    match ours == theirs {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the other process has another network, partition, precision, gamma or number of steps",
        )),
    }
}

/// Exchanges messages with every other process, in the order of indices. Of two processes the one with the lower
/// index sends first, which avoids deadlocks with any buffer size.
fn exchange<S: Read + Write>(
    index: usize,
    peers: &mut [Option<S>],
    out: impl Fn(usize) -> Vec<u8>,
    take: impl Fn(usize, &[u8]) -> io::Result<()>,
    size: impl Fn(usize) -> usize,
) -> io::Result<()> {
    for (q, stream) in peers.iter_mut().enumerate().filter(|(q, _)| *q != index) {
        let Some(stream) = stream else { continue };
        let mut heard = vec![0; size(q)];
        let told = out(q);
        if index < q {
            stream.write_all(&told)?;
            stream.flush()?;
            stream.read_exact(&mut heard)?;
        } else {
            stream.read_exact(&mut heard)?;
            stream.write_all(&told)?;
            stream.flush()?;
        }
        take(q, &heard)?;
    }
    Ok(())
}
