//! The permutation workload: leaves of 16 hosts at 10 Gb/s, 4 spines at 40 Gb/s, 2 us per link, and one endless flow
//! from every host to another.

use rustix::time::{ClockId, clock_gettime};
use subak_core::backend::{FlowPlan, PacketSizes, Route, Sharing};
use subak_core::rng::Stream;
use subak_core::{LinkId, Network, NodeKind};

#[allow(dead_code, reason = "each benchmark has its sizes")]
pub const LEAVES: usize = 9;
pub const HOSTS: usize = 16;
const SPINES: usize = 4;

pub struct Fabric {
    network: Network,
    /// Links of each host to and from its leaf.
    access: Vec<(LinkId, LinkId)>,
    /// Links of each leaf to and from each spine.
    core: Vec<[(LinkId, LinkId); SPINES]>,
}

pub fn fabric(leaves: usize) -> Fabric {
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

/// The destination of each host's flow.
pub fn permutation(hosts: usize) -> Vec<usize> {
    let mut rng = Stream::new(1, "permutation");
    let mut to: Vec<usize> = (0..hosts).collect();
    for i in (1..hosts).rev() {
        to.swap(i, rng.below(i)); // Sattolo: one cycle, so nobody sends to itself
    }
    to
}

fn plans(fabric: &Fabric) -> Vec<FlowPlan> {
    let hosts = fabric.access.len();
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
        FlowPlan::new(vec![Route { forward, back }])
    };
    permutation(hosts).into_iter().enumerate().map(one).collect()
}

#[allow(dead_code, reason = "each benchmark prints its part")]
pub struct Figures {
    pub ns_per_hop: f64,
    pub goodput_gbps: f64,
    pub hops: u64,
    pub events: u64,
    pub sharing: Sharing,
}

/// Same as [`measure_on`] on one thread, with its CPU time as the measured time.
#[allow(dead_code, reason = "each benchmark measures its own")]
pub fn measure(scheme: &str, leaves: usize, micros: u64) -> Figures {
    measure_on(1, scheme, leaves, micros * 1000, cpu_seconds)
}

/// Runs the permutation workload for `duration_ns` of simulated time; `seconds` is the clock by which the run is
/// timed.
pub fn measure_on(threads: usize, scheme: &str, leaves: usize, duration_ns: u64, seconds: impl Fn() -> f64) -> Figures {
    let fabric = fabric(leaves);
    let params = serde_json::Map::new();
    let mut sim = subak_packet::build_on(threads, scheme, &params, &fabric.network, PacketSizes::default(), &[], 1)
        .expect("the scheme is registered");
    let flows: Vec<_> = plans(&fabric).into_iter().map(|plan| sim.add(plan)).collect();
    let start = seconds();
    sim.run_until(duration_ns);
    let seconds = seconds() - start;
    let received: u64 = flows.iter().map(|&f| sim.flow(f).received_wire_bytes).sum();
    Figures {
        ns_per_hop: seconds * 1e9 / sim.packet_hops() as f64,
        goodput_gbps: received as f64 * 8.0 / duration_ns as f64,
        hops: sim.packet_hops(),
        events: sim.events(),
        sharing: sim.sharing(),
    }
}

#[allow(dead_code, reason = "some measure by the wall")]
fn cpu_seconds() -> f64 {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}
