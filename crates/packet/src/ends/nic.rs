//! How NICs select packets, and the state of NICs with a single timer.

use super::{Ends, Next, NextSend};
use crate::event::SubId;
use subak_core::scheme::{Rules, Scheme};
use subak_core::{FlowId, IdVec, LinkId, Network, Nic, Ns};

/// How the NICs of a run select packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NicKind {
    /// A NIC has a packet queue. A subflow puts each packet there as soon as window and pacing allow it.
    Queue,
    /// A NIC has a queue for one packet of each subflow: per-flow round robin ([`Nic::TakesTurns`]).
    Turns,
    /// A NIC has no queue, and a single timer.
    OneTimer,
}

impl NicKind {
    /// The kind that `rules` require, or that the network has.
    pub fn of(rules: &Rules, network: &Network) -> Self {
        match rules.nic.unwrap_or(network.nic()) {
            _ if rules.pacing.one_timer => NicKind::OneTimer,
            Nic::TakesTurns => NicKind::Turns,
            _ => NicKind::Queue,
        }
    }
}

/// Round-robin state of a NIC with a single timer: the subflows that send over one link.
#[derive(Debug, Clone, Default)]
struct Turns {
    subs: Vec<(FlowId, SubId)>,
    /// Index of the subflow served last.
    last: usize,
    /// Expiry of the timer, ns; a past time means that the timer is not set.
    timer_ns: Option<Ns>,
}

/// NICs with a single timer, by link.
#[derive(Debug, Default)]
pub(super) struct Nics(IdVec<LinkId, Turns>);

impl Nics {
    /// Those of `links` links, if the NICs of the run are such.
    pub fn new(kind: NicKind, links: usize) -> Self {
        Nics(IdVec::filled(Turns::default(), if kind == NicKind::OneTimer { links } else { 0 }))
    }
}

/// Selection of a NIC with a single timer.
pub(crate) enum Selection {
    /// The next packet.
    Packet(SubId, Next),
    /// No packet may be sent before this time, ns, at which the timer is now set: that of this subflow.
    NotBefore(Ns, SubId),
    /// No packet may be sent, or the timer is already set.
    Nothing,
}

impl<S: Scheme> Ends<S> {
    /// Lists the subflow at its NIC; returns the NIC's link.
    pub fn list(&mut self, at: SubId) -> LinkId {
        let sub = &mut self.subs[at];
        if !std::mem::replace(&mut sub.listed, true) {
            self.nics.0[sub.nic].subs.push((sub.flow, at));
        }
        sub.nic
    }

    /// Whether any subflows are listed at the NIC.
    pub fn lists_any(&self, link: LinkId) -> bool {
        !self.nics.0[link].subs.is_empty()
    }

    /// Handles an expiry of a NIC's timer, which was set for the subflow; returns the NIC's link, unless the timer has
    /// been set to another time.
    pub fn expire(&mut self, at: SubId, now_ns: Ns) -> Option<LinkId> {
        let link = self.subs[at].nic;
        self.nics.0[link].timer_ns.take_if(|ns| *ns == now_ns).map(|_| link)
    }

    /// Selects the next packet of a NIC whose link is free. `is_paused`: a class of data is paused.
    pub fn select(&mut self, link: LinkId, is_paused: bool, now_ns: Ns) -> Selection {
        let mut nic = std::mem::take(&mut self.nics.0[link]);
        nic.subs.retain(|&(flow, at)| self.is_at_nic(flow, at, link));
        let (mut first, mut found) = (None, None);
        for k in 1..=nic.subs.len() {
            let place = (nic.last + k) % nic.subs.len();
            let (_, at) = nic.subs[place];
            let due_ns = match self.next(at, now_ns) {
                NextSend::Nothing => continue,
                NextSend::Now(next) | NextSend::Flood(next) if !is_paused => {
                    nic.last = place;
                    found = Some((at, next));
                    break;
                }
                NextSend::Now(_) | NextSend::Flood(_) => now_ns,
                NextSend::Full(due_ns) | NextSend::At(due_ns) => due_ns,
            };
            if first.is_none_or(|(first_ns, _)| due_ns < first_ns) {
                first = Some((due_ns, at));
            }
        }
        let selection = match (found, first) {
            (Some((at, next)), _) => Selection::Packet(at, next),
            (None, Some((due_ns, at))) if due_ns > now_ns && nic.timer_ns.is_none_or(|ns| ns < now_ns) => {
                nic.timer_ns = Some(due_ns);
                Selection::NotBefore(due_ns, at)
            }
            _ => Selection::Nothing,
        };
        self.nics.0[link] = nic;
        selection
    }

    /// Sets the timer of the subflow's NIC to an earlier time, if the subflow's pacing rate allows its next packet
    /// before the timer expires; returns that time, ns.
    pub fn advance_timer(&mut self, at: SubId, now_ns: Ns) -> Option<Ns> {
        let sub = &self.subs[at];
        if !self.pacer.moves_next(sub) {
            return None;
        }
        let due_ns = sub.pace_ns().max(now_ns);
        let timer_ns = &mut self.nics.0[sub.nic].timer_ns;
        timer_ns.is_some_and(|ns| ns > due_ns).then(|| *timer_ns.insert(due_ns))
    }

    /// Whether the flow is active and its subflow `at` sends over `link`.
    fn is_at_nic(&self, flow: FlowId, at: SubId, link: LinkId) -> bool {
        let lasts = self.flows.get(flow).is_some_and(|f| !f.torn_down || f.size_bytes != Some(f.acked_bytes));
        lasts && self.subs[at].listed && self.subs[at].nic == link
    }
}
