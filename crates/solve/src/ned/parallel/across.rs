//! The same iteration across several processes (Flowtune, section 4: "the partitioning distributes the allocator on multiple
//! machines"). Each process has some of the FlowBlocks, and keeps the LinkBlocks whose diagonal is among them. Twice an
//! iteration it tells each other process what that one needs: sums of the LinkBlocks that it keeps, then prices.
//!
//! The bits are those of one process: sums travel as they are, and keepers add them up in the same order. What connects two
//! processes is any stream of bytes, such as a socket; nothing here opens one. Departure: the paper adds up within a
//! machine before it sends; here every copy is sent, which costs bandwidth and keeps the order of additions.

use super::{LinkBlock, Parallel};
use crate::ned::real::Real;
use std::io::{self, Read, Write};
use std::ops::Range;

/// A process among others: which of `count` it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// From 0 on.
    pub index: usize,
    /// Processes in all.
    pub count: usize,
}

impl Share {
    /// All of it.
    pub const WHOLE: Share = Share { index: 0, count: 1 };

    /// The FlowBlocks, of so many, that process `index` has.
    pub(super) fn blocks_of(self, index: usize, blocks: usize) -> Range<usize> {
        let each = blocks.div_ceil(self.count);
        (index * each).min(blocks)..((index + 1) * each).min(blocks)
    }

    pub(super) fn has(self, block: usize, blocks: usize) -> bool {
        self.blocks_of(self.index, blocks).contains(&block)
    }
}

/// What passes between this process and another, as places in the shared tables.
#[derive(Debug, Default)]
struct Traffic {
    sums_out: Vec<Range<usize>>,
    sums_in: Vec<Range<usize>>,
    /// LinkBlocks whose prices go out, or come in.
    prices_out: Vec<usize>,
    prices_in: Vec<usize>,
}

impl<T: Real> Parallel<T> {
    /// Makes `steps` iterations together with the other processes. `peers` has a stream to each of them, by their index;
    /// what stands at this process' own index is not used. All processes make the same call, for the same flows,
    /// partition and gamma. An error is a stream's, or says that the other process has another problem.
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
            let Parallel { gamma, flow_blocks, keepers, shared, .. } = self;
            flow_blocks[mine.clone()].iter_mut().for_each(|block| block.tell(shared));
            let out = |q: usize| {
                let mut bytes =
                    Vec::with_capacity(traffic[q].sums_out.iter().map(Range::len).sum::<usize>() * 2 * T::BYTES);
                for pair in traffic[q].sums_out.iter().flat_map(|range| &shared.sums[range.clone()]) {
                    pair.iter().for_each(|x| T::get(x).write(&mut bytes));
                }
                bytes
            };
            let take = |q: usize, bytes: &[u8]| {
                let places = traffic[q].sums_in.iter().flat_map(|range| &shared.sums[range.clone()]).flatten();
                places.zip(bytes.chunks_exact(T::BYTES)).for_each(|(place, bytes)| T::read(bytes).put(place));
                Ok(())
            };
            let size = |q: usize| traffic[q].sums_in.iter().map(Range::len).sum::<usize>() * 2 * T::BYTES;
            exchange(share.index, peers, out, take, size)?;
            keepers.iter().filter(|k| mine.contains(&k.keeper)).for_each(|k| k.aggregate(*gamma, shared));
            let out = |q: usize| {
                let mut bytes = Vec::new();
                for l in traffic[q].prices_out.iter().flat_map(|&k| &keepers[k].links) {
                    T::get(&shared.price[*l as usize]).write(&mut bytes);
                    T::get(&shared.load[*l as usize]).write(&mut bytes);
                }
                bytes
            };
            let take = |q: usize, bytes: &[u8]| {
                let links = traffic[q].prices_in.iter().flat_map(|&k| &keepers[k].links);
                for (l, pair) in links.zip(bytes.chunks_exact(2 * T::BYTES)) {
                    T::read(&pair[..T::BYTES]).put(&shared.price[*l as usize]);
                    T::read(&pair[T::BYTES..]).put(&shared.load[*l as usize]);
                }
                Ok(())
            };
            let size =
                |q: usize| traffic[q].prices_in.iter().map(|&k| keepers[k].links.len()).sum::<usize>() * 2 * T::BYTES;
            exchange(share.index, peers, out, take, size)?;
        }
        Ok(())
    }

    /// Bytes that this process sends in an iteration.
    pub fn bytes_sent(&self) -> usize {
        let of = |q: usize| {
            let Traffic { sums_out, prices_out, .. } = self.traffic(q);
            let links: usize = prices_out.iter().map(|&k| self.keepers[k].links.len()).sum();
            2 * T::BYTES * (sums_out.iter().map(Range::len).sum::<usize>() + links)
        };
        (0..self.share.count).map(of).sum()
    }

    /// What passes between this process and process `other`.
    fn traffic(&self, other: usize) -> Traffic {
        let mut traffic = Traffic::default();
        if other == self.share.index {
            return traffic;
        }
        let blocks = self.flow_blocks.len();
        let [mine, theirs] = [self.share.index, other].map(|q| self.share.blocks_of(q, blocks));
        for (k, links) in self.keepers.iter().enumerate() {
            let copies = |of: &Range<usize>| -> Vec<Range<usize>> { links.copies_of(of).collect() };
            if theirs.contains(&links.keeper) {
                let own = copies(&mine);
                traffic.prices_in.extend((!own.is_empty()).then_some(k));
                traffic.sums_out.extend(own);
            }
            if mine.contains(&links.keeper) {
                let own = copies(&theirs);
                traffic.prices_out.extend((!own.is_empty()).then_some(k));
                traffic.sums_in.extend(own);
            }
        }
        traffic
    }

    /// What both ends have to have in common.
    fn hello(&self, steps: usize) -> Vec<u8> {
        let sizes = [steps, self.share.count, self.flow_blocks.len(), self.shared.price.len(), self.shared.sums.len()];
        let words = sizes.map(|n| n as u64).into_iter().chain([T::BYTES as u64, self.gamma.f64().to_bits()]);
        words.flat_map(u64::to_le_bytes).collect()
    }
}

impl<T: Real> LinkBlock<T> {
    /// Where the FlowBlocks in `blocks` put their sums of these links.
    fn copies_of(&self, blocks: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let own = self.copies.iter().zip(&self.crossing).filter(|(_, b)| blocks.contains(*b));
        own.map(|(&first, _)| first..first + self.links.len())
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

/// Tells every other process, and hears from it. Of two, the one of the lower index speaks first, and each turns to the
/// others in the order of their indices: so somebody can always go on, however little a stream holds.
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
