//! Typed ids, and lists that are indexed by one type of id.
//!
//! A [`LinkId`](crate::LinkId) is stored as a `u32`, but is a type of its own. It cannot be mixed up with a
//! [`NodeId`](crate::NodeId), and an [`IdVec<LinkId, T>`](IdVec) accepts no other index. The macro [`id!`](crate::id)
//! defines such a type.

use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Index, IndexMut, Range};

/// An index into a list, with a type of its own.
pub trait Id: Copy + Ord + Hash + fmt::Debug {
    /// The id with number `index`.
    fn from_index(index: usize) -> Self;
    /// The id's number.
    fn index(self) -> usize;
}

impl Id for usize {
    #[inline]
    fn from_index(index: usize) -> Self {
        index
    }

    #[inline]
    fn index(self) -> usize {
        self
    }
}

/// Defines id types: `id! { /// A queue by its number. pub struct QueueId(u32); }`. An id is stored and printed as
/// its number.
#[macro_export]
macro_rules! id {
    ($($(#[$meta:meta])* $seen:vis struct $Name:ident($number:ty);)+) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        $seen struct $Name(pub $number);

        #[allow(dead_code, reason = "what one id does, all can do")]
        impl $Name {
            /// Sentinel for "no id": the largest number.
            pub const NONE: Self = $Name(<$number>::MAX);

            /// The id with number `index`.
            #[inline]
            pub const fn from_index(index: usize) -> Self {
                $Name(index as $number)
            }

            /// The id's number.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// Ids with these numbers.
            pub fn each<const N: usize>(numbers: [$number; N]) -> [Self; N] {
                numbers.map($Name)
            }

            /// The ids 0 to `count - 1`.
            #[inline]
            pub fn first(count: usize) -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator + Clone {
                (0..count).map(Self::from_index)
            }
        }

        impl $crate::ids::Id for $Name {
            #[inline]
            fn from_index(index: usize) -> Self {
                $Name::from_index(index)
            }

            #[inline]
            fn index(self) -> usize {
                $Name::index(self)
            }
        }

        impl From<$number> for $Name {
            #[inline]
            fn from(number: $number) -> Self {
                $Name(number)
            }
        }

        impl From<$Name> for u32 {
            #[inline]
            fn from(id: $Name) -> u32 {
                id.0.into()
            }
        }

        impl From<$Name> for u64 {
            #[inline]
            fn from(id: $Name) -> u64 {
                id.0.into()
            }
        }

        /// Compares an id with a number, for tests.
        impl PartialEq<$number> for $Name {
            #[inline]
            fn eq(&self, number: &$number) -> bool {
                self.0 == *number
            }
        }

        impl std::fmt::Debug for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&self.0, f)
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }
    )+ };
}

/// A `Vec` that is indexed by ids of type `I` only. Methods without an index, such as `iter` and `len`, are those of
/// slices. Access by range or plain number goes through [`IdVec::raw`].
pub struct IdVec<I, T> {
    raw: Vec<T>,
    ids: PhantomData<fn(I) -> I>,
}

impl<I, T> IdVec<I, T> {
    /// An empty list.
    pub const fn new() -> Self {
        IdVec { raw: Vec::new(), ids: PhantomData }
    }

    /// The entries as a slice.
    #[inline]
    pub fn raw(&self) -> &[T] {
        &self.raw
    }

    /// The entries as a `Vec`, for operations without ids such as sorting or draining.
    #[inline]
    pub fn raw_mut(&mut self) -> &mut Vec<T> {
        &mut self.raw
    }

    /// Converts into a plain `Vec`.
    #[inline]
    pub fn into_raw(self) -> Vec<T> {
        self.raw
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.raw.clear();
    }
}

impl<I: Id, T> IdVec<I, T> {
    /// A list of `count` copies of `value`.
    pub fn filled(value: T, count: usize) -> Self
    where
        T: Clone,
    {
        vec![value; count].into()
    }

    /// Grows or shrinks to `count` entries; new ones are `value`.
    pub fn resize(&mut self, count: usize, value: T)
    where
        T: Clone,
    {
        self.raw.resize(count, value);
    }

    /// Appends an entry and returns its id.
    #[inline]
    pub fn push(&mut self, entry: T) -> I {
        let id = self.next_id();
        self.raw.push(entry);
        id
    }

    /// Removes and returns the last entry.
    pub fn pop(&mut self) -> Option<T> {
        self.raw.pop()
    }

    /// The id of the next entry to be appended.
    #[inline]
    pub fn next_id(&self) -> I {
        I::from_index(self.raw.len())
    }

    /// The ids of all entries.
    #[inline]
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + Clone + use<I, T> {
        (0..self.raw.len()).map(I::from_index)
    }

    /// All entries with their ids.
    #[inline]
    pub fn iter_enumerated(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator {
        self.raw.iter().enumerate().map(|(index, entry)| (I::from_index(index), entry))
    }

    /// All entries with their ids, mutable.
    #[inline]
    pub fn iter_enumerated_mut(&mut self) -> impl DoubleEndedIterator<Item = (I, &mut T)> + ExactSizeIterator {
        self.raw.iter_mut().enumerate().map(|(index, entry)| (I::from_index(index), entry))
    }

    /// The entry of `id`, if there is one.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        self.raw.get(id.index())
    }

    /// The entry of `id`, if there is one, mutable.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.raw.get_mut(id.index())
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;

    #[inline]
    #[track_caller]
    fn index(&self, id: I) -> &T {
        &self.raw[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.raw[id.index()]
    }
}

impl<I, T> Deref for IdVec<I, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.raw
    }
}

impl<I, T> DerefMut for IdVec<I, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.raw
    }
}

impl<I, T> From<Vec<T>> for IdVec<I, T> {
    #[inline]
    fn from(raw: Vec<T>) -> Self {
        IdVec { raw, ids: PhantomData }
    }
}

impl<I, T> From<IdVec<I, T>> for Vec<T> {
    #[inline]
    fn from(list: IdVec<I, T>) -> Self {
        list.raw
    }
}

impl<I, T> FromIterator<T> for IdVec<I, T> {
    fn from_iter<E: IntoIterator<Item = T>>(entries: E) -> Self {
        Vec::from_iter(entries).into()
    }
}

impl<I, T> Extend<T> for IdVec<I, T> {
    fn extend<E: IntoIterator<Item = T>>(&mut self, entries: E) {
        self.raw.extend(entries);
    }
}

impl<I, T> IntoIterator for IdVec<I, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.raw.into_iter()
    }
}

impl<'a, I, T> IntoIterator for &'a IdVec<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.raw.iter()
    }
}

impl<'a, I, T> IntoIterator for &'a mut IdVec<I, T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.raw.iter_mut()
    }
}

impl<I, T> Default for IdVec<I, T> {
    fn default() -> Self {
        IdVec::new()
    }
}

impl<I, T: Clone> Clone for IdVec<I, T> {
    fn clone(&self) -> Self {
        self.raw.clone().into()
    }

    fn clone_from(&mut self, source: &Self) {
        self.raw.clone_from(&source.raw);
    }
}

impl<I, T: PartialEq> PartialEq for IdVec<I, T> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl<I, T: PartialEq> PartialEq<Vec<T>> for IdVec<I, T> {
    fn eq(&self, other: &Vec<T>) -> bool {
        self.raw == *other
    }
}

impl<I, T: PartialEq, const N: usize> PartialEq<[T; N]> for IdVec<I, T> {
    fn eq(&self, other: &[T; N]) -> bool {
        self.raw == *other
    }
}

impl<I, T: Eq> Eq for IdVec<I, T> {}

impl<I, T: fmt::Debug> fmt::Debug for IdVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)
    }
}

/// Row boundaries of a compressed table: row `k` has the entries `offsets[k]..offsets[k + 1]` of a list with all rows
/// concatenated. Four bytes a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offsets<I = usize> {
    raw: Vec<u32>,
    ids: PhantomData<fn(I) -> I>,
}

impl<I> Default for Offsets<I> {
    fn default() -> Self {
        vec![0].into()
    }
}

impl<I> From<Vec<u32>> for Offsets<I> {
    /// Makes the table from its offsets: one more than there are rows, the first of them 0.
    fn from(raw: Vec<u32>) -> Self {
        Offsets { raw, ids: PhantomData }
    }
}

impl<I: Id> Offsets<I> {
    /// The range of entries of a row.
    #[inline]
    #[track_caller]
    pub fn row(&self, row: I) -> Range<usize> {
        self.raw[row.index()] as usize..self.raw[row.index() + 1] as usize
    }

    /// The range of entries of consecutive rows.
    #[inline]
    #[track_caller]
    pub fn rows(&self, rows: Range<I>) -> Range<usize> {
        self.raw[rows.start.index()] as usize..self.raw[rows.end.index()] as usize
    }

    /// First entry of a row; for the row after the last, the number of entries.
    #[inline]
    #[track_caller]
    pub fn start(&self, row: I) -> usize {
        self.raw[row.index()] as usize
    }

    /// Reserves memory for `more` rows.
    pub fn reserve(&mut self, more: usize) {
        self.raw.reserve(more);
    }

    /// Appends a row that ends before entry `end`.
    #[inline]
    pub fn push(&mut self, end: usize) {
        self.raw.push(end as u32);
    }

    /// The number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.raw.len() - 1
    }

    /// Whether there are no rows.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.raw.len() == 1
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.raw.truncate(1);
    }

    /// The offsets, one more than there are rows.
    #[inline]
    pub fn raw(&self) -> &[u32] {
        &self.raw
    }
}
