//! Ideal flow completion times (FCTs) on the idle network, the denominator of slowdown.

use crate::backend::{PacketSizes, Route};
use crate::{LinkId, Network, Ns};

/// Transmission time of `bytes` at `rate_bps`, ns, rounded up. A tolerance of 0.001 ns absorbs errors of
/// floating-point sums. At rate 0, the time is `Ns::MAX`.
pub fn wire_time_ns(bytes: f64, rate_bps: f64) -> Ns {
    // A cast from float to integer saturates, so that a negative result becomes 0.
    (bytes * 8e9 / rate_bps - 1e-3).ceil() as Ns
}

/// Base RTT of a path, ns: a full packet and its ACK on the idle network.
pub fn round_trip_ns(network: &Network, route: &Route, sizes: PacketSizes) -> Ns {
    way_ns(network, &route.forward, sizes.mtu_bytes) + acknowledgement_ns(network, route, sizes)
}

/// Time of an ACK over the idle reverse path of `route`, ns.
pub fn acknowledgement_ns(network: &Network, route: &Route, sizes: PacketSizes) -> Ns {
    way_ns(network, &route.back, sizes.ack_bytes)
}

fn way_ns(network: &Network, links: &[LinkId], bytes: u32) -> Ns {
    let links = links.iter().map(|&l| &network.links()[l]);
    links.map(|link| link.delay_ns + wire_time_ns(f64::from(bytes), link.capacity_bps)).sum()
}

/// FCT of a flow that is alone in the network, ns. The links of `path` store and forward full packets and a shorter
/// last one. The source sends no faster than `demand_bps` on the wire. The result is exact, rounded up to a
/// nanosecond.
///
/// Packets of one length that queue at the source leave link `i` at intervals of the longest transmission among the
/// links so far. Only the last packet, if shorter, may catch up with the one before.
pub fn idle_fct_ns(network: &Network, path: &[LinkId], sizes: PacketSizes, size_bytes: u64, demand_bps: f64) -> Ns {
    let mss = u64::from(sizes.mss_bytes());
    let packets = size_bytes.div_ceil(mss);
    if packets == 0 {
        return path.iter().map(|&l| network.links()[l].delay_ns).sum();
    }
    let full_bits = 8.0 * f64::from(sizes.mtu_bytes);
    let last_bits = 8.0 * (size_bytes - (packets - 1) * mss + u64::from(sizes.header_bytes)) as f64;
    let mut slowest_bps = demand_bps;
    // `before_ns`: departure of the second-to-last packet from each link, without queueing behind the slowest;
    // `last_ns`: departure of the last packet.
    let mut before_ns = 0.0;
    let mut last_ns = (packets - 1) as f64 * full_bits * 1e9 / demand_bps;
    for &l in path {
        let link = &network.links()[l];
        slowest_bps = slowest_bps.min(link.capacity_bps);
        before_ns += full_bits * 1e9 / link.capacity_bps;
        if packets > 1 {
            let wait_ns = (packets - 2) as f64 * full_bits * 1e9 / slowest_bps;
            last_ns = f64::max(last_ns, before_ns + wait_ns);
        }
        last_ns += last_bits * 1e9 / link.capacity_bps + link.delay_ns as f64;
        before_ns += link.delay_ns as f64;
    }
    (last_ns - 1e-3).ceil() as Ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Link;
    use proptest::prelude::*;

    fn chain(links: &[(f64, Ns)]) -> (Network, Vec<LinkId>) {
        let mut network = Network::new();
        let add = |(i, &(capacity_bps, delay_ns)): (usize, &(f64, Ns))| {
            let link = Link { id: format!("l{i}"), from: None, to: None, capacity_bps, delay_ns, buffer_bytes: None };
            network.add(link).unwrap()
        };
        let path = links.iter().enumerate().map(add).collect();
        (network, path)
    }

    /// Reference for the transmission time: moves every packet over every link.
    fn packet_by_packet(links: &[(f64, Ns)], sizes: PacketSizes, size_bytes: u64, demand_bps: f64) -> f64 {
        let mss = u64::from(sizes.mss_bytes());
        let mut free = vec![0.0; links.len()];
        let (mut left, mut release, mut arrived) = (size_bytes, 0.0, 0.0);
        while left > 0 {
            let payload = left.min(mss);
            let bits = 8.0 * (payload + u64::from(sizes.header_bytes)) as f64;
            let mut at = release;
            for (&(capacity, delay), free) in links.iter().zip(&mut free) {
                *free = f64::max(at, *free) + bits * 1e9 / capacity;
                at = *free + delay as f64;
            }
            release += bits * 1e9 / demand_bps;
            left -= payload;
            arrived = at;
        }
        arrived
    }

    #[test]
    fn one_packet_over_two_links() {
        let (network, path) = chain(&[(10e9, 1000), (40e9, 2000)]);
        let sizes = PacketSizes { mtu_bytes: 1500, header_bytes: 40, ack_bytes: 40 };
        // 1200 ns and 300 ns to transmit, 3000 ns to travel.
        assert_eq!(idle_fct_ns(&network, &path, sizes, 1460, f64::INFINITY), 4500);
        // Two more packets wait for the slower link.
        assert_eq!(idle_fct_ns(&network, &path, sizes, 3 * 1460, f64::INFINITY), 4500 + 2 * 1200);
        // Paced at 5 Gb/s, the third leaves 4800 ns after the first.
        assert_eq!(idle_fct_ns(&network, &path, sizes, 3 * 1460, 5e9), 4500 + 4800);
    }

    proptest! {
        #[test]
        fn agrees_with_moving_every_packet(
            links in proptest::collection::vec((1u32..400, 0u64..5000), 1..6),
            size_bytes in 1u64..60_000,
            demand in proptest::option::of(1u32..100),
        ) {
            let links: Vec<_> = links.into_iter().map(|(c, d)| (f64::from(c) * 1e8, d)).collect();
            let demand_bps = demand.map_or(f64::INFINITY, |d| f64::from(d) * 1e8);
            let (network, path) = chain(&links);
            let sizes = PacketSizes::default();
            let exact = packet_by_packet(&links, sizes, size_bytes, demand_bps);
            let ours = idle_fct_ns(&network, &path, sizes, size_bytes, demand_bps) as f64;
            prop_assert!(ours >= exact - 1e-3 && ours <= exact + 1.001, "{ours} against {exact}");
        }
    }
}
