//! Speed of the allocator's core on one processor core, at the paper's smallest and largest networks. It measures
//! messages decoded and encoded a second, and the time from a flowlet's start to its rate (one iteration, then
//! sending). Times are the thread's processor time, which other load of the machine hardly changes.
//!
//! `cargo bench -p subak-control`

use rustix::time::{ClockId, clock_gettime};
use subak_control::{Allocator, ControlSettings, Ecmp, Endpoint};
use subak_core::generate;
use subak_core::rng::Stream;
use subak_core::route::Routing;
use subak_core::{IdVec, LinkId, NodeId};
use subak_wire::Datagram;

const RACK: usize = 48;
const SPINES: usize = 8;
const ROUNDS: usize = 300;
const CAPACITIES: usize = 100_000;

fn main() {
    println!(
        "{:>6} {:>8} {:>16} {:>16} {:>16} {:>16} {:>16} {:>16}",
        "nodes",
        "flowlets",
        "taken, million/s",
        "start, p50 us",
        "start, p99 us",
        "iteration, us",
        "updates a round",
        "a capacity, ns"
    );
    for (nodes, flowlets) in [(384, 3072), (4608, 49152)] {
        measure(nodes, flowlets);
    }
}

fn cpu_s() -> f64 {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

fn measure(nodes: usize, flowlets: usize) {
    let value = serde_json::json!({"kind": "leaf-spine", "leaves": nodes / RACK, "hosts_per_leaf": RACK, "spines": SPINES,
        "host_rate": 40e9, "spine_rate": 40e9});
    let (network, _) = generate::network(&value).expect("a sound network");
    let hosts: Vec<NodeId> = network.hosts().collect();
    let capacity_bps: Vec<f64> = network.links().iter().map(|l| l.capacity_bps).collect();
    let settings = ControlSettings::for_endpoints(nodes);
    let paths = Box::new(Ecmp::new(&network, Routing::default()));
    let numbers = network.nodes().len();
    let mut allocator = Allocator::new(0, 1, &capacity_bps, paths, settings).expect("sound settings").first();
    hosts.iter().for_each(|&h| allocator.join(h.0));
    let mut endpoints: IdVec<NodeId, Option<Endpoint>> = (0..numbers).map(|_| None).collect();
    for &h in &hosts {
        endpoints[h] = Some(Endpoint::new(h.0, 1, settings));
    }
    let mut rng = Stream::new(1, "bench");
    let mut connections = Vec::new();
    let mut begin = |endpoints: &mut IdVec<NodeId, Option<Endpoint>>, connections: &mut Vec<(NodeId, u64)>, k: u64| {
        let (a, b) = (rng.below(hosts.len()), rng.below(hosts.len() - 1));
        let (from, to) = (hosts[a], hosts[if b >= a { b + 1 } else { b }]);
        let path = rng.bits() as u32;
        endpoints[from].as_mut().expect("a host").begin(k, to.0, path, 1.0);
        connections.push((from, k));
    };
    for k in 0..flowlets as u64 {
        begin(&mut endpoints, &mut connections, k);
    }
    let (mut taken, mut taking_s, mut stepping_s) = (0u64, 0.0, 0.0);
    let mut starts_us = Vec::new();
    let mut updates = 0;
    for round in 0..ROUNDS {
        let now_ns = round as u64 * 10_000;
        if round > 0 {
            // One flowlet in a hundred is replaced.
            for k in 0..flowlets / 100 {
                let (from, connection) = connections.swap_remove((round * 7919 + k * 31) % connections.len());
                endpoints[from].as_mut().expect("a host").finish(connection);
                begin(&mut endpoints, &mut connections, (round * flowlets + k + flowlets) as u64);
            }
        }
        let mail: Vec<(u32, Vec<u8>)> = hosts
            .iter()
            .filter_map(|&h| {
                let datagram = endpoints[h].as_mut()?.poll(now_ns)?;
                let mut bytes = Vec::new();
                datagram.encode(&mut bytes)?;
                Some((h.0, bytes))
            })
            .collect();
        let begin_s = cpu_s();
        for (from, bytes) in &mail {
            allocator.take(now_ns, *from, &Datagram::decode(bytes).expect("it was encoded"));
        }
        let took_s = cpu_s() - begin_s;
        allocator.step(now_ns);
        let stepped_s = cpu_s() - begin_s;
        let mut replies = Vec::new();
        while let Some(datagram) = allocator.poll(now_ns) {
            let mut bytes = Vec::with_capacity(64);
            let _ = datagram.encode(&mut bytes);
            updates += datagram.updates.len();
            replies.push(datagram);
            // The reply to a start that was received when the round began.
            starts_us.push((cpu_s() - begin_s) * 1e6);
        }
        if round > 0 {
            taken += mail.len() as u64;
            taking_s += took_s;
            stepping_s += stepped_s - took_s;
        } else {
            starts_us.clear();
        }
        for datagram in replies {
            if let Some(endpoint) = endpoints[NodeId(datagram.endpoint)].as_mut() {
                endpoint.take(now_ns, &datagram);
            }
        }
    }
    let begin_s = cpu_s();
    for k in 0..CAPACITIES {
        let link = rng.below(capacity_bps.len());
        allocator.set_unscheduled(LinkId(link as u32), (k % 7) as f64 * 1e9).expect("a link");
    }
    let capacity_ns = (cpu_s() - begin_s) * 1e9 / CAPACITIES as f64;
    starts_us.sort_by(f64::total_cmp);
    let place = |q: f64| ((starts_us.len() - 1) as f64 * q) as usize;
    let at = |q: f64| starts_us[place(q)];
    println!(
        "{nodes:>6} {flowlets:>8} {:>16.2} {:>16.0} {:>16.0} {:>16.0} {:>16.0} {capacity_ns:>16.0}",
        taken as f64 / taking_s / 1e6,
        at(0.5),
        at(0.99),
        stepping_s / (ROUNDS - 1) as f64 * 1e6,
        updates as f64 / ROUNDS as f64,
    );
}
