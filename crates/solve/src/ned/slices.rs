//! The flows of each link, in sliced rows: 16 links together, with the k-th flow of each in one row of 16. Links can
//! then sum over their flows without scattered writes. Links with similar numbers of flows share a slice.

use super::LANES;
use std::ops::Range;
use subak_core::{IdVec, LinkId};

/// Spare entries of a link for future flows: an eighth of its flows plus this number.
const SPARE: usize = 4;

/// Links are sorted by their index without this many low bits, then by their number of flows: links with close indices
/// have flows in close slots (see `tiled`).
const NEAR: u32 = 8;
/// Number of entries below which the flows' rates fit into the first-level cache in any order.
const MOST_IN_CACHE: u64 = 30_000;

/// Morton order of `paths` by first and last link. Flows that are close in this order have nearly the same first and
/// last links, so that a link reads few places whether it is at the start or the end of paths.
pub(super) fn tiled<'a>(paths: impl ExactSizeIterator<Item = &'a [LinkId]>) -> Vec<usize> {
    let spread = |x: LinkId| {
        let mut x = u64::from(x.0);
        for (shift, mask) in [
            (16, 0x0000_ffff_0000_ffff),
            (8, 0x00ff_00ff_00ff_00ff),
            (4, 0x0f0f_0f0f_0f0f_0f0f),
            (2, 0x3333_3333_3333_3333),
            (1, 0x5555_5555_5555_5555),
        ] {
            x = (x | x << shift) & mask;
        }
        x
    };
    let code = |path: &[LinkId]| spread(path[0]) | spread(path[path.len() - 1]) << 1;
    let mut order: Vec<(u64, usize)> = paths.map(code).zip(0..).collect();
    if order.len() as u64 * 4 > MOST_IN_CACHE {
        order.sort_unstable();
    }
    order.into_iter().map(|(_, f)| f).collect()
}

/// The flows of each link.
#[derive(Debug, Clone, Default)]
pub(super) struct Slices {
    /// Rows of flow slots; unused entries hold the empty slot.
    pub entries: Vec<[u32; LANES]>,
    /// First row of each slice.
    pub start: Vec<u32>,
    /// One past the last row reserved for each slice.
    end: Vec<u32>,
    /// Number of unused rows that slices left when they were moved.
    left: usize,
    /// Number of used entries.
    places: usize,
    /// Number of used entries when the slices were built.
    built: usize,
    /// Number of rows of each slice that contain flows.
    pub used: Vec<u32>,
    /// The link in each lane of each slice; `u32::MAX` for none.
    pub link: Vec<[LinkId; LANES]>,
    /// Position of each link: slice times 16 plus lane.
    place: IdVec<LinkId, u32>,
    /// The number of flows of each link.
    pub degree: IdVec<LinkId, u32>,
}

impl Slices {
    /// Groups `paths`, each the slot of a flow and its links, into slices of rows; the slot `empty` pads the last one.
    pub fn build<P: Iterator<Item = LinkId>>(
        links: usize,
        empty: u32,
        paths: impl Iterator<Item = (u32, P)> + Clone,
    ) -> Self {
        let mut degree = IdVec::filled(0u32, links);
        for (_, path) in paths.clone() {
            path.for_each(|l| degree[l] += 1);
        }
        let mut order: Vec<LinkId> = LinkId::first(links).collect();
        let places: u64 = degree.iter().map(|&d| u64::from(d)).sum();
        let near = if places > MOST_IN_CACHE { NEAR } else { u32::BITS - 1 };
        order.sort_by_key(|&l| (l.0 >> near, degree[l]));
        let mut slices =
            Slices { place: IdVec::filled(0, links), degree: IdVec::filled(0, links), ..Slices::default() };
        for group in order.chunks(LANES) {
            let mut lanes = [LinkId::NONE; LANES];
            for (lane, &l) in group.iter().enumerate() {
                lanes[lane] = l;
                slices.place[l] = (slices.link.len() * LANES + lane) as u32;
            }
            let most = degree[group[group.len() - 1]] as usize;
            slices.link.push(lanes);
            slices.start.push(slices.entries.len() as u32);
            slices.entries.resize(slices.entries.len() + most + most / 8 + SPARE, [empty; LANES]);
            slices.end.push(slices.entries.len() as u32);
            slices.used.push(0);
        }
        for (slot, path) in paths {
            for l in path {
                let there = slices.add(l, slot, empty);
                debug_assert!(there, "the slice was made to hold it");
            }
        }
        slices.built = slices.places;
        slices
    }

    /// Adds a flow to a link; false if there is no free entry and the slices must be rebuilt.
    pub fn add(&mut self, link: LinkId, slot: u32, empty: u32) -> bool {
        let (slice, lane) = self.locate(link);
        let k = self.degree[link];
        if self.start[slice] + k >= self.end[slice] && !self.relocate(slice, empty) {
            return false;
        }
        let row = (self.start[slice] + k) as usize;
        self.entries[row][lane] = slot;
        self.degree[link] = k + 1;
        self.places += 1;
        self.used[slice] = self.used[slice].max(k + 1);
        true
    }

    /// Moves a full slice to more rows at the end. False if as many rows are abandoned as are in use, or flows have
    /// doubled, since links with similar numbers of flows are then no longer together. Rebuilding at each full slice
    /// took most of an allocator's time.
    fn relocate(&mut self, slice: usize, empty: u32) -> bool {
        let rows = self.start[slice] as usize..self.end[slice] as usize;
        let (count, first) = (rows.len(), self.entries.len());
        if 2 * (self.left + count) > first || self.places > 2 * self.built {
            return false;
        }
        self.left += count;
        self.entries.extend_from_within(rows);
        self.entries.resize(first + count + count / 4 + SPARE, [empty; LANES]);
        (self.start[slice], self.end[slice]) = (first as u32, self.entries.len() as u32);
        true
    }

    /// Removes a flow from a link; the link's last flow moves to its entry.
    pub fn remove(&mut self, link: LinkId, slot: u32, empty: u32) {
        let (slice, lane) = self.locate(link);
        let first = self.start[slice] as usize;
        let last = first + self.degree[link] as usize - 1;
        let own = (first..=last).find(|&k| self.entries[k][lane] == slot).expect("the link has the flow");
        self.entries[own][lane] = self.entries[last][lane];
        self.entries[last][lane] = empty;
        self.degree[link] -= 1;
        self.places -= 1;
        let most = self.link[slice].iter().filter(|&&l| l != LinkId::NONE).map(|&l| self.degree[l]).max();
        self.used[slice] = most.unwrap_or(0);
    }

    /// Position of each link in a table of all slices' lanes.
    pub fn places(&self) -> &[u32] {
        self.place.raw()
    }

    /// Ranges of slices with about equal numbers of rows, several for each thread; one range for few rows.
    pub fn parts(&self, threads: usize, least: usize) -> Vec<Range<usize>> {
        let rows: usize = self.used.iter().map(|&used| used as usize).sum();
        let parts = if threads == 1 || rows < threads * least { 1 } else { 4 * threads };
        let (mut ranges, mut first, mut seen) = (Vec::with_capacity(parts), 0, 0);
        for (s, &used) in self.used.iter().enumerate() {
            seen += used as usize;
            if seen * parts >= rows * (ranges.len() + 1) && ranges.len() + 1 < parts {
                ranges.push(first..s + 1);
                first = s + 1;
            }
        }
        ranges.push(first..self.used.len());
        ranges
    }

    /// The slots of the flows of a link.
    pub fn flows(&self, link: LinkId) -> impl Iterator<Item = u32> + '_ {
        let (slice, lane) = self.locate(link);
        let first = self.start[slice] as usize;
        self.entries[first..].iter().take(self.degree[link] as usize).map(move |row| row[lane])
    }

    fn locate(&self, link: LinkId) -> (usize, usize) {
        let place = self.place[link] as usize;
        (place / LANES, place % LANES)
    }
}
