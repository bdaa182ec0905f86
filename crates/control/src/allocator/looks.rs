//! Queries of the allocator: endpoints, flowlets and links.

use super::Allocator;
use subak_core::{LinkId, Ns};

/// State of a flowlet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowletStatus {
    /// Endpoint that sends.
    pub from: u32,
    /// Endpoint that receives.
    pub to: u32,
    /// Number of the flowlet at its endpoint.
    pub flowlet: u32,
    /// Requested weight.
    pub weight: f64,
    /// Rate last sent or queued, bit/s; 0 without a path or a rate.
    pub bps: f64,
}

/// State of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PeerState {
    /// Number of the endpoint.
    pub endpoint: u32,
    /// Tenant whose quota limits the weights of the endpoint's flowlets.
    pub tenant: u32,
    /// Whether the endpoint has proved that it receives the allocator's datagrams, and was not silent for too long
    /// since.
    pub is_joined: bool,
    /// Number of the endpoint's flowlets.
    pub flowlets: usize,
    /// Arrival time of the endpoint's latest accepted datagram, ns.
    pub heard_ns: Ns,
    /// Smoothed RTT, ns; 0 before the first sample.
    pub rtt_ns: Ns,
    /// Number of times that the endpoint's lease has expired since it joined.
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

    /// All joined endpoints.
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

    /// Allocated rate of each link, bit/s: the sum of the rates sent to the link's flowlets.
    pub fn promised_bps(&self) -> Vec<f64> {
        let mut promised = vec![0.0; self.capacity_bps.len()];
        let cluster = self.iteration.cluster();
        for key in self.peers.iter().flatten().flat_map(|peer| peer.flowlets.values()).filter_map(|known| known.key) {
            let bps = self.slots[key.slot()].bps;
            cluster.path(key).for_each(|link| promised[link.index()] += bps);
        }
        promised
    }

    /// Capacity of a link, bit/s; zero if it is down or unknown.
    pub fn capacity_bps(&self, link: LinkId) -> f64 {
        self.capacity_bps.get(link).copied().unwrap_or(0.0)
    }

    /// Rate of unscheduled traffic on a link, bit/s.
    pub fn unscheduled_bps(&self, link: LinkId) -> f64 {
        self.unscheduled_bps.get(link).copied().unwrap_or(0.0)
    }

    /// Rate that may be allocated on a link, bit/s: capacity less reserve, unscheduled traffic and losses.
    pub fn available_bps(&self, link: LinkId) -> f64 {
        self.available_of(link, self.capacity_bps(link))
    }

    /// Lost rate attributed to a link when losses were last examined, bit/s.
    pub fn lost_bps(&self, link: LinkId) -> f64 {
        self.overloads.lost_bps(link)
    }

    /// Whether the allocator sends no rates yet, since those of an earlier allocator may still be valid.
    pub fn is_holding_back(&self) -> bool {
        self.quiet_until_ns > 0
    }
}
