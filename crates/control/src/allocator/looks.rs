//! Queries of the allocator: endpoints, flowlets and links.

use super::Allocator;
use subak_core::{LinkId, Ns};

/// A flowlet as the allocator has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowletStatus {
    /// The endpoint that sends.
    pub from: u32,
    /// Where to.
    pub to: u32,
    /// Its number among those of its endpoint.
    pub flowlet: u32,
    /// The weight that it asked for.
    pub weight: f64,
    /// Latest rate sent or to be sent, bit/s; zero without a path or a rate.
    pub bps: f64,
}

/// An endpoint as the allocator has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PeerState {
    /// Its number.
    pub endpoint: u32,
    /// Whose quota it counts towards.
    pub tenant: u32,
    /// It showed that it hears the allocator, and was not silent for too long since.
    pub is_joined: bool,
    /// How many it has.
    pub flowlets: usize,
    /// When its last datagram was taken.
    pub heard_ns: Ns,
    /// Its round trip, smoothed; 0 if none was measured.
    pub rtt_ns: Ns,
    /// Times that it was silent for too long, since it joined.
    pub lapses: u64,
}

impl Allocator {
    /// All flowlets, by endpoint and number.
    pub fn flows(&self) -> impl Iterator<Item = FlowletStatus> + '_ {
        let peers = self.peers.iter().enumerate().filter_map(|(number, peer)| Some((number, peer.as_ref()?)));
        peers.flat_map(move |(number, peer)| {
            peer.flowlets.iter().map(move |(&flowlet, known)| {
                let bps = known.key.map_or(0.0, |key| self.slots[key.slot()].bps);
                let start = &known.start;
                FlowletStatus { from: number as u32, to: start.to, flowlet, weight: f64::from(start.weight), bps }
            })
        })
    }

    /// All endpoints that may speak.
    pub fn peers(&self) -> impl Iterator<Item = PeerState> + '_ {
        let peers = self.peers.iter().enumerate().filter_map(|(number, peer)| Some((number, peer.as_ref()?)));
        peers.map(|(number, peer)| PeerState {
            endpoint: number as u32,
            tenant: peer.tenant,
            is_joined: peer.channel.is_joined(),
            flowlets: peer.flowlets.len(),
            heard_ns: peer.channel.heard_ns(),
            rtt_ns: peer.channel.rtt().smoothed_ns(),
            lapses: peer.lapses,
        })
    }

    /// Granted rates of each link, bit/s: the sum of the rates sent over it.
    pub fn promised_bps(&self) -> Vec<f64> {
        let mut promised = vec![0.0; self.capacity_bps.len()];
        let cluster = self.iteration.cluster();
        for key in self.peers.iter().flatten().flat_map(|peer| peer.flowlets.values()).filter_map(|known| known.key) {
            let bps = self.slots[key.slot()].bps;
            cluster.path(key).for_each(|link| promised[link.index()] += bps);
        }
        promised
    }

    /// Capacity of a link, bit/s; zero if it is down, or is not there.
    pub fn capacity_bps(&self, link: LinkId) -> f64 {
        self.capacity_bps.get(link).copied().unwrap_or(0.0)
    }

    /// So much of a link is taken by what nobody schedules, bit/s.
    pub fn unscheduled_bps(&self, link: LinkId) -> f64 {
        self.unscheduled_bps.get(link).copied().unwrap_or(0.0)
    }

    /// So much may be promised on a link, bit/s: its capacity without reserve, other traffic, and what flows lost there.
    pub fn available_bps(&self, link: LinkId) -> f64 {
        self.available_of(link, self.capacity_bps(link))
    }

    /// What flows lost of their rates where a link explains it, at the last inspection, bit/s.
    pub fn lost_bps(&self, link: LinkId) -> f64 {
        self.overloads.lost_bps(link)
    }

    /// Whether rates are held back until those of an allocator before have run out.
    pub fn is_holding_back(&self) -> bool {
        self.quiet_until_ns > 0
    }
}
