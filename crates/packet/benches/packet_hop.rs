//! Nanoseconds a packet-hop on the permutation workload: 9 leaves x 16 hosts at 10 Gb/s, 4 spines at 40 Gb/s, 2 us a
//! link, one long flow from every host. CPU time of the thread; the median of five runs.
//!
//! `cargo bench -p subak-packet --bench packet_hop -- [MILLISECONDS [SCHEME]]`

use rustix::time::{ClockId, clock_gettime};
use subak_core::driver::{FlowPlan, PacketSizes, Route};
use subak_core::rng::Stream;
use subak_core::{Network, NodeKind};

const LEAVES: usize = 9;
const HOSTS: usize = 16;
const SPINES: usize = 4;

struct Fabric {
    network: Network,
    /// Links of host `h`: up, down.
    access: Vec<(u32, u32)>,
    /// Links of leaf and spine: up, down.
    core: Vec<[(u32, u32); SPINES]>,
}

fn fabric(leaves: usize) -> Fabric {
    let mut network = Network::new();
    let spines: Vec<_> = (0..SPINES).map(|s| network.node(&format!("spine{s}"), NodeKind::Switch)).collect();
    let mut access = Vec::new();
    let mut core = Vec::new();
    for leaf in 0..leaves {
        let node = network.node(&format!("leaf{leaf}"), NodeKind::Switch);
        core.push(std::array::from_fn(|s| network.connect(node, spines[s], 40e9, 2000, None).expect("a valid link")));
        for h in 0..HOSTS {
            let host = network.node(&format!("h{}", leaf * HOSTS + h), NodeKind::Host);
            access.push(network.connect(host, node, 10e9, 2000, None).expect("a valid link"));
        }
    }
    Fabric { network, access, core }
}

fn plans(fabric: &Fabric) -> Vec<FlowPlan> {
    let hosts = fabric.access.len();
    let mut rng = Stream::new(1, "permutation");
    let mut to: Vec<usize> = (0..hosts).collect();
    for i in (1..hosts).rev() {
        to.swap(i, rng.below(i)); // Sattolo: one cycle, so nobody sends to itself
    }
    let one = |(src, dst): (usize, usize)| {
        let (a, b) = (src / HOSTS, dst / HOSTS);
        let mut forward = vec![fabric.access[src].0];
        let mut back = vec![fabric.access[dst].0];
        if a != b {
            let s = subak_core::rng::mix((src * hosts + dst) as u64) as usize % SPINES;
            forward.extend([fabric.core[a][s].0, fabric.core[b][s].1]);
            back.extend([fabric.core[b][s].0, fabric.core[a][s].1]);
        }
        forward.push(fabric.access[dst].1);
        back.push(fabric.access[src].1);
        FlowPlan {
            routes: vec![Route { forward, back }],
            start_ns: 0,
            stop_ns: None,
            size_bytes: None,
            weight: 1.0,
            demand_bps: f64::INFINITY,
            utility: None,
            controller: None,
        }
    };
    to.into_iter().enumerate().map(one).collect()
}

struct Figures {
    ns_per_hop: f64,
    goodput_gbps: f64,
    hops: u64,
}

fn measure(scheme: &str, leaves: usize, millis: u64) -> Figures {
    let fabric = fabric(leaves);
    let params = serde_json::Map::new();
    let mut sim = subak_packet::build(scheme, &params, &fabric.network, PacketSizes::default(), &[], 1)
        .expect("the scheme is registered");
    let flows: Vec<_> = plans(&fabric).into_iter().map(|plan| sim.add(plan)).collect();
    let start = cpu_seconds();
    sim.run_until(millis * 1_000_000);
    let seconds = cpu_seconds() - start;
    let received: u64 = flows.iter().map(|&f| sim.flow(f).received_wire_bytes).sum();
    Figures {
        ns_per_hop: seconds * 1e9 / sim.packet_hops() as f64,
        goodput_gbps: received as f64 * 8.0 / (millis as f64 * 1e6),
        hops: sim.packet_hops(),
    }
}

fn cpu_seconds() -> f64 {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let millis = args.next().and_then(|a| a.parse().ok()).unwrap_or(10);
    let only = args.next();
    println!("{:<10} {:>6} {:>14} {:>14} {:>12}", "scheme", "hosts", "ns/packet-hop", "Gb/s received", "packet-hops");
    for info in subak_schemes::SCHEMES.iter().filter(|s| s.drivers.packet) {
        if only.as_ref().is_none_or(|name| name == info.name) {
            row(info.name, LEAVES, millis);
        }
    }
    for leaves in [1, 9, 64] {
        row("dctcp", leaves, (millis * 9 / leaves as u64).max(1));
    }
}

fn row(scheme: &str, leaves: usize, millis: u64) {
    let mut runs: Vec<_> = (0..5).map(|_| measure(scheme, leaves, millis)).collect();
    runs.sort_by(|a, b| a.ns_per_hop.total_cmp(&b.ns_per_hop));
    let f = &runs[runs.len() / 2];
    println!("{:<10} {:>6} {:>14.1} {:>14.1} {:>12}", scheme, leaves * HOSTS, f.ns_per_hop, f.goodput_gbps, f.hops);
}
