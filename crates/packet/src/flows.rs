//! The flows of a simulation: found by number, forgotten once they are over.

use crate::flow::{FlowState, SubId};
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};
use subak_core::scheme::Scheme;
use subak_core::{FlowId, IdVec};

const PAGE: usize = 1024;
subak_core::id! {
    /// Where the state of a flow stands.
    struct Slot(u32);
}

/// Where the states of 1024 flows with consecutive numbers are; gone once all of them are forgotten.
struct Page {
    slots: [Slot; PAGE],
    /// Flows of the page that are not forgotten, or not added yet.
    left: usize,
}

/// States of flows. Numbers are never used again, places are.
pub(crate) struct Flows<S: Scheme> {
    pages: Vec<Option<Box<Page>>>,
    states: IdVec<Slot, FlowState<S>>,
    /// Places to be used again, by how many subflows they have.
    free: BTreeMap<u8, Vec<Slot>>,
    added: FlowId,
    /// Flows that came to an end since somebody asked.
    over: Vec<FlowId>,
}

impl<S: Scheme> Default for Flows<S> {
    fn default() -> Self {
        Flows { pages: Vec::new(), states: IdVec::new(), free: BTreeMap::new(), added: FlowId(0), over: Vec::new() }
    }
}

impl<S: Scheme> Flows<S> {
    /// The number of the next flow.
    pub fn next(&self) -> FlowId {
        self.added
    }

    /// The subflows' place of a forgotten flow with so many of them, for a new one.
    pub fn reusable(&self, subflows: u8) -> Option<SubId> {
        let slot = *self.free.get(&subflows)?.last()?;
        Some(self.states[slot].first_sub)
    }

    /// Takes a flow in. If [`Flows::reusable`] named a place, its subflows are there.
    pub fn add(&mut self, state: FlowState<S>) -> FlowId {
        let slot = match self.free.get_mut(&state.subflows).and_then(Vec::pop) {
            Some(slot) => {
                self.states[slot] = state;
                slot
            }
            None => self.states.push(state),
        };
        let flow = self.added;
        self.added = FlowId(flow.0 + 1);
        let at = flow.index();
        if at.is_multiple_of(PAGE) {
            self.pages.push(Some(Box::new(Page { slots: [Slot::NONE; PAGE], left: PAGE })));
        }
        if let Some(page) = &mut self.pages[at / PAGE] {
            page.slots[at % PAGE] = slot;
        }
        flow
    }

    #[inline]
    fn slot(&self, flow: FlowId) -> Option<Slot> {
        let page = self.pages.get(flow.index() / PAGE)?.as_deref()?;
        let slot = page.slots[flow.index() % PAGE];
        (slot != Slot::NONE).then_some(slot)
    }

    /// The flow, if it was added and is not forgotten.
    #[inline]
    pub fn get(&self, flow: FlowId) -> Option<&FlowState<S>> {
        Some(&self.states[self.slot(flow)?])
    }

    /// As [`Flows::get`].
    #[inline]
    pub fn get_mut(&mut self, flow: FlowId) -> Option<&mut FlowState<S>> {
        let slot = self.slot(flow)?;
        Some(&mut self.states[slot])
    }

    /// A packet or an event of the flow is on its way, so that it cannot be forgotten.
    #[inline]
    pub fn hold(&mut self, flow: FlowId) {
        if let Some(f) = self.get_mut(flow) {
            f.held += 1;
        }
    }

    /// One of them is gone.
    #[inline]
    pub fn release(&mut self, flow: FlowId) {
        if let Some(f) = self.get_mut(flow) {
            f.held -= 1;
            if f.is_over() {
                self.over.push(flow);
            }
        }
    }

    /// Notes the flow if it is over; to be asked where it ends without anything on its way.
    pub fn note_end(&mut self, flow: FlowId) {
        if self.get(flow).is_some_and(FlowState::is_over) {
            self.over.push(flow);
        }
    }

    /// Forgets what is over, after showing each such flow.
    pub fn forget(&mut self, mut show: impl FnMut(FlowId, &FlowState<S>)) {
        for flow in std::mem::take(&mut self.over) {
            // It may have been noted twice, or have come to life again by a message.
            let Some(slot) = self.slot(flow).filter(|&slot| self.states[slot].is_over()) else { continue };
            show(flow, &self.states[slot]);
            self.forget_one(flow);
        }
    }

    /// Forgets the flow.
    pub fn forget_one(&mut self, flow: FlowId) {
        let Some(slot) = self.slot(flow) else { return };
        self.free.entry(self.states[slot].subflows).or_default().push(slot);
        let page = &mut self.pages[flow.index() / PAGE];
        if let Some(p) = page {
            p.slots[flow.index() % PAGE] = Slot::NONE;
            p.left -= 1;
            if p.left == 0 {
                *page = None;
            }
        }
    }

    /// Discards noticed flow ends, which are wrong in a logical process.
    pub fn notice_no_ends(&mut self) {
        self.over.clear();
    }

    /// Every flow that is not forgotten.
    pub fn numbers(&self) -> impl Iterator<Item = FlowId> {
        let pages = self.pages.iter().enumerate().filter_map(|(at, page)| Some((at * PAGE, page.as_deref()?)));
        pages.flat_map(|(first, page)| {
            let known = page.slots.iter().enumerate().filter(|(_, slot)| **slot != Slot::NONE);
            known.map(move |(k, _)| FlowId::from_index(first + k))
        })
    }
}

impl<S: Scheme> Index<FlowId> for Flows<S> {
    type Output = FlowState<S>;
    #[inline]
    fn index(&self, flow: FlowId) -> &FlowState<S> {
        self.get(flow).expect("a flow of which something is on its way is not forgotten")
    }
}

impl<S: Scheme> IndexMut<FlowId> for Flows<S> {
    #[inline]
    fn index_mut(&mut self, flow: FlowId) -> &mut FlowState<S> {
        self.get_mut(flow).expect("a flow of which something is on its way is not forgotten")
    }
}
