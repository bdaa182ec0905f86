//! Numbers that say what they number, and lists that only such numbers open.
//!
//! A [`LinkId`](crate::LinkId) is a `u32` in memory and nothing more. But it is no [`NodeId`](crate::NodeId), and it opens
//! no list of nodes: an [`IdVec<LinkId, T>`](IdVec) takes links alone. [`id!`](crate::id) makes such a type.

use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Index, IndexMut, Range};

/// A number that is a place in a list.
pub trait Id: Copy + Ord + Hash + fmt::Debug {
    /// The id of the place `index`.
    fn from_index(index: usize) -> Self;
    /// Its place.
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

/// Makes ids: `id! { /// A queue by its place. pub struct QueueId(u32); }`. In memory, in files and on the screen an id is
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
            /// A number that no list reaches: it stands for none.
            pub const NONE: Self = $Name(<$number>::MAX);

            /// The id of the place `index`.
            #[inline]
            pub const fn from_index(index: usize) -> Self {
                $Name(index as $number)
            }

            /// Its place.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// Ids by their numbers.
            pub fn each<const N: usize>(numbers: [$number; N]) -> [Self; N] {
                numbers.map($Name)
            }

            /// The ids of the first `count` places.
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

        /// An id may be held against the number that stands in a test.
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

/// A list with one entry for each id: a `Vec` that `I` alone indexes. What needs no index, such as `iter` and `len`, is
/// there as on a slice. Ranges and plain numbers go over [`IdVec::raw`].
pub struct IdVec<I, T> {
    raw: Vec<T>,
    ids: PhantomData<fn(I) -> I>,
}

impl<I, T> IdVec<I, T> {
    /// An empty list.
    pub const fn new() -> Self {
        IdVec { raw: Vec::new(), ids: PhantomData }
    }

    /// The same as a plain slice.
    #[inline]
    pub fn raw(&self) -> &[T] {
        &self.raw
    }

    /// The same as a plain list, for what has no ids: to sort, to cut, to hand out.
    #[inline]
    pub fn raw_mut(&mut self) -> &mut Vec<T> {
        &mut self.raw
    }

    /// The same as a plain list.
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
    /// `count` entries, all `value`.
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

    /// Appends an entry; its id.
    #[inline]
    pub fn push(&mut self, entry: T) -> I {
        let id = self.next_id();
        self.raw.push(entry);
        id
    }

    /// Takes the last entry off.
    pub fn pop(&mut self) -> Option<T> {
        self.raw.pop()
    }

    /// The id that the next entry will have.
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

    /// All entries with their ids, to be changed.
    #[inline]
    pub fn iter_enumerated_mut(&mut self) -> impl DoubleEndedIterator<Item = (I, &mut T)> + ExactSizeIterator {
        self.raw.iter_mut().enumerate().map(|(index, entry)| (I::from_index(index), entry))
    }

    /// The entry of `id`, if there is one.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        self.raw.get(id.index())
    }

    /// The entry of `id`, if there is one, to be changed.
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

/// Where the rows of a compressed table begin and end: row `k` has the places `offsets[k]..offsets[k + 1]` of a list that
/// holds all rows one after the other. Four bytes a row.
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
    /// From the offsets themselves: one more than there are rows, the first of them 0.
    fn from(raw: Vec<u32>) -> Self {
        Offsets { raw, ids: PhantomData }
    }
}

impl<I: Id> Offsets<I> {
    /// The places of a row.
    #[inline]
    #[track_caller]
    pub fn row(&self, row: I) -> Range<usize> {
        self.raw[row.index()] as usize..self.raw[row.index() + 1] as usize
    }

    /// The places of several rows that follow each other.
    #[inline]
    #[track_caller]
    pub fn rows(&self, rows: Range<I>) -> Range<usize> {
        self.raw[rows.start.index()] as usize..self.raw[rows.end.index()] as usize
    }

    /// Where a row begins; of the row after the last, where the last one ends.
    #[inline]
    #[track_caller]
    pub fn start(&self, row: I) -> usize {
        self.raw[row.index()] as usize
    }

    /// Makes room for `more` rows.
    pub fn reserve(&mut self, more: usize) {
        self.raw.reserve(more);
    }

    /// Appends a row that ends before the place `end`.
    #[inline]
    pub fn push(&mut self, end: usize) {
        self.raw.push(end as u32);
    }

    /// The number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.raw.len() - 1
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.raw.len() == 1
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.raw.truncate(1);
    }

    /// The offsets themselves.
    #[inline]
    pub fn raw(&self) -> &[u32] {
        &self.raw
    }
}
