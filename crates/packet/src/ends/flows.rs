//! States of flows by number. States of ended flows are removed.

use super::flow::FlowState;
use crate::event::SubId;
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};
use subak_core::scheme::Scheme;
use subak_core::{FlowId, IdVec};

const PAGE: usize = 1024;
subak_core::id! {
    /// Index of a flow's state.
    struct Slot(u32);
}

/// Indices of the states of 1024 consecutive flows. A page is freed when all its flows are removed.
struct Page {
    slots: [Slot; PAGE],
    /// Number of flows of the page that have a state or are not added yet.
    left: usize,
}

/// States of flows. Numbers of flows are never reused, but indices of states are.
pub(crate) struct Flows<S: Scheme> {
    pages: Vec<Option<Box<Page>>>,
    states: IdVec<Slot, FlowState<S>>,
    /// Free indices of states, by the number of subflows of their former flows.
    free: BTreeMap<u8, Vec<Slot>>,
    added: FlowId,
    /// Flows recorded as ended since the last removal of states.
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

    /// First of `subflows` consecutive subflow indices that a removed flow has left free.
    pub fn reusable(&self, subflows: u8) -> Option<SubId> {
        let slot = *self.free.get(&subflows)?.last()?;
        Some(self.states[slot].first_sub)
    }

    /// Adds a flow. If [`Flows::reusable`] returned an index, the flow's subflows must be there.
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

    /// State of the flow, if it was added and not removed.
    #[inline]
    pub fn get(&self, flow: FlowId) -> Option<&FlowState<S>> {
        Some(&self.states[self.slot(flow)?])
    }

    /// Mutable state of the flow, if it was added and not removed.
    #[inline]
    pub fn get_mut(&mut self, flow: FlowId) -> Option<&mut FlowState<S>> {
        let slot = self.slot(flow)?;
        Some(&mut self.states[slot])
    }

    /// Counts a packet or an event of the flow, whose state is kept as long as it has any.
    #[inline]
    pub fn hold(&mut self, flow: FlowId) {
        if let Some(f) = self.get_mut(flow) {
            f.held += 1;
        }
    }

    /// Subtracts a packet or an event of the flow from the flow's count; records the flow as ended if it is over.
    #[inline]
    pub fn release(&mut self, flow: FlowId) {
        if let Some(f) = self.get_mut(flow) {
            f.held -= 1;
            if f.is_over() {
                self.over.push(flow);
            }
        }
    }

    /// Records the flow as ended if it is over. To be called where a flow may end without packets or events left.
    pub fn note_end(&mut self, flow: FlowId) {
        if self.get(flow).is_some_and(FlowState::is_over) {
            self.over.push(flow);
        }
    }

    /// Removes the states of recorded ended flows, and passes each to `show` before.
    pub fn forget(&mut self, mut show: impl FnMut(FlowId, &FlowState<S>)) {
        for flow in std::mem::take(&mut self.over) {
            // A flow may have been recorded twice, or a message may have made it active again.
            let Some(slot) = self.slot(flow).filter(|&slot| self.states[slot].is_over()) else { continue };
            show(flow, &self.states[slot]);
            self.forget_one(flow);
        }
    }

    /// Removes the flow's state.
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

    /// Discards recorded ends of flows: a single logical process (LP) does not know whether a flow is over in all
    /// LPs.
    pub fn notice_no_ends(&mut self) {
        self.over.clear();
    }

    /// Numbers of all flows with a state.
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
