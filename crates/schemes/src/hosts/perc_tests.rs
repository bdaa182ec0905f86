//! State machines of sources and links at hosts, tested without hosts: datagrams circle, and some are lost.

use super::perc::{Do, HostFlow, PercHosts, PercSender};
use crate::perc::fixed::{FixedLink, PercLinkSettings};
use crate::perc::wire::PercDatagram;
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::BinaryHeap;
use subak_core::rng::Stream;
use subak_core::scheme::PathInfo;
use subak_core::{InputError, Ns};

const RTT_NS: Ns = 1_000_000;
const MBPS: f64 = 1e6;

/// A network whose packets return after an RTT, and the pacing rates of its flows.
struct Net {
    hosts: PercHosts,
    links: Vec<(PercLinkSettings, FixedLink)>,
    paths: Vec<Vec<usize>>,
    senders: Vec<PercSender>,
    due: BinaryHeap<Reverse<(Ns, u64, usize)>>,
    held: BTreeMap<u64, TestEvent>,
    /// For each flow its pacing rate, the time since which it applies, and the integral of the rate over time.
    paces: Vec<(f64, Ns, f64)>,
    loss: f64,
    random: Stream,
}

enum TestEvent {
    Hear(Vec<u8>),
    Wake(u32),
}

impl Net {
    fn new(scheme: &str, params: Value, rates: &[f64], flows: &[(f64, &[usize])], loss: f64) -> Self {
        let Value::Object(params) = params else { unreachable!("it is written here") };
        let hosts = PercHosts::new(scheme, &params, 1.0, RTT_NS, 30.0 * MBPS, 1500).unwrap();
        let link = |rate: &f64| {
            let (set, round_ns) = hosts.link(rate * MBPS, 3);
            (set, FixedLink::new(round_ns, 0))
        };
        let links = rates.iter().map(link).collect();
        let sender = |(number, (weight, path)): (usize, &(f64, &[usize]))| {
            let least = path.iter().map(|&l| rates[l] * MBPS).fold(f64::INFINITY, f64::min);
            let path = PathInfo {
                hops: path.len() as u16,
                line_rate_bps: 100.0 * MBPS,
                min_capacity_bps: least,
                base_rtt_ns: RTT_NS,
            };
            let known = HostFlow { number: number as u32, weight: *weight, size_bytes: None, mss_bytes: 1446, path };
            hosts.sender(&known).unwrap()
        };
        let senders: Vec<_> = flows.iter().enumerate().map(sender).collect();
        let mut net = Net {
            links,
            paths: flows.iter().map(|(_, path)| path.to_vec()).collect(),
            senders,
            due: BinaryHeap::new(),
            held: BTreeMap::new(),
            paces: vec![(0.0, 0, 0.0); flows.len()],
            loss,
            random: Stream::new(1, "losses"),
            hosts,
        };
        for f in 0..flows.len() {
            let asked = net.senders[f].start(0);
            net.carry_out(f, 0, asked);
        }
        net
    }

    fn later(&mut self, at_ns: Ns, f: usize, event: TestEvent) {
        let number = self.held.last_key_value().map_or(0, |(number, _)| number + 1);
        self.held.insert(number, event);
        self.due.push(Reverse((at_ns, number, f)));
    }

    fn run(&mut self, until_ns: Ns) {
        while let Some(&Reverse((now_ns, number, f))) = self.due.peek().filter(|next| next.0.0 <= until_ns) {
            self.due.pop();
            let asked = match self.held.remove(&number) {
                Some(TestEvent::Wake(timer)) => self.senders[f].wake(now_ns, timer),
                Some(TestEvent::Hear(bytes)) => self.senders[f].hear(now_ns, &PercDatagram::read(&bytes).unwrap()),
                None => Vec::new(),
            };
            self.carry_out(f, now_ns, asked);
        }
    }

    fn carry_out(&mut self, f: usize, now_ns: Ns, asked: Vec<Do>) {
        for one in asked {
            match one {
                Do::Wake { timer, at_ns } => self.later(at_ns, f, TestEvent::Wake(timer)),
                Do::Pace(bps) => {
                    let (pace, since_ns, area) = &mut self.paces[f];
                    *area += *pace * (now_ns - *since_ns) as f64;
                    (*pace, *since_ns) = (bps / MBPS, now_ns);
                }
                Do::Send(bytes) => {
                    if let Some(back) = self.circle(f, now_ns, &bytes) {
                        self.later(now_ns + RTT_NS, f, TestEvent::Hear(back));
                    }
                }
            }
        }
    }

    /// Sends a packet over the path and back, with the updates of the kernel's program.
    fn circle(&mut self, f: usize, now_ns: Ns, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut datagram = PercDatagram::read(bytes)?;
        let path = self.paths[f].clone();
        for (hop, &l) in path.iter().enumerate() {
            let (set, link) = &mut self.links[l];
            link.pass(set, self.hosts.tables(), &mut datagram.packet, hop as u8, true, now_ns);
            datagram.hop += 1;
            if self.random.unit() < self.loss {
                return None;
            }
        }
        let mut datagram = PercDatagram::read(&PercDatagram::answer(&datagram.write())?)?;
        for (hop, &l) in path.iter().enumerate().rev().filter(|_| self.hosts.reverse()) {
            let (set, link) = &mut self.links[l];
            link.pass(set, self.hosts.tables(), &mut datagram.packet, hop as u8, false, now_ns + RTT_NS / 2);
            if self.random.unit() < self.loss {
                return None;
            }
        }
        Some(datagram.write())
    }

    /// Mean pacing rate of each flow over the whole run, Mb/s.
    fn means(&self, now_ns: Ns) -> Vec<f64> {
        let mean = |(pace, since_ns, area): &(f64, Ns, f64)| (area + pace * (now_ns - since_ns) as f64) / now_ns as f64;
        self.paces.iter().map(mean).collect()
    }
}

/// Links l20, l30 and l12 of figure 2.1 of the PERC thesis.
const RATES: [f64; 3] = [20.0, 30.0, 12.0];
const FLOWS: [(f64, &[usize]); 2] = [(1.0, &[0, 1]), (1.0, &[1, 2])];
const GOALS: [f64; 2] = [0.94 * 18.0, 0.94 * 12.0];

#[test]
fn paces_of_figure_2_1_are_max_min() {
    for scheme in ["s-perc", "s-perc-star"] {
        for params in [json!({}), json!({"division_kb": 52}), json!({"reverse": false}), json!({"round": "20ms"})] {
            let mut net = Net::new(scheme, params.clone(), &RATES, &FLOWS, 0.0);
            net.run(200_000_000);
            for ((pace, ..), goal) in net.paces.iter().zip(GOALS) {
                assert!((pace / goal - 1.0).abs() < 2e-3, "{scheme} {params}: {pace} of {goal}");
            }
        }
    }
}

#[test]
fn weights_count_and_may_change() {
    let flows: [(f64, &[usize]); 3] = [(4.0, &[0]), (1.5, &[0]), (0.5, &[0])];
    for scheme in ["s-perc", "s-perc-star"] {
        let mut net = Net::new(scheme, json!({}), &[30.0], &flows, 0.0);
        net.run(200_000_000);
        let paces: Vec<_> = net.paces.iter().map(|p| p.0 / 0.94).collect();
        assert!(
            paces.iter().zip([20.0, 7.5, 2.5]).all(|(p, goal)| (p / goal - 1.0).abs() < 1e-3),
            "{scheme} {paces:?}"
        );
        let asked = net.senders[0].weigh(200_000_000, 1.0);
        net.carry_out(0, 200_000_000, asked);
        net.run(600_000_000);
        let paces: Vec<_> = net.paces.iter().map(|p| p.0 / 0.94).collect();
        assert!(
            paces.iter().zip([10.0, 15.0, 5.0]).all(|(p, goal)| (p / goal - 1.0).abs() < 1e-3),
            "{scheme} {paces:?}"
        );
    }
}

#[test]
fn the_robust_one_recovers_from_losses() {
    let off = |scheme: &str, loss: f64| {
        let mut net = Net::new(scheme, json!({}), &RATES, &FLOWS, loss);
        net.run(20_000_000_000);
        let means = net.means(20_000_000_000);
        means.iter().zip(GOALS).map(|(mean, goal)| (mean / goal - 1.0).abs()).fold(0.0, f64::max)
    };
    assert!(off("s-perc-star", 0.0025) < 0.03, "1% of round trips: {}", off("s-perc-star", 0.0025));
    assert!(off("s-perc-star", 0.01) < 0.1, "1% at each link: {}", off("s-perc-star", 0.01));
    assert!(off("s-perc", 0.01) > 0.5, "{}", off("s-perc", 0.01));
}

#[test]
fn what_is_over_leaves_nothing_at_links() {
    for scheme in ["s-perc", "s-perc-star"] {
        let mut net = Net::new(scheme, json!({}), &RATES, &FLOWS, 0.0);
        net.run(100_000_000);
        for f in 0..FLOWS.len() {
            let asked = net.senders[f].finish(100_000_000);
            net.carry_out(f, 100_000_000, asked);
        }
        net.run(1_000_000_000);
        assert!(net.links.iter().all(|(_, link)| (link.sum_e, link.num_b, link.flows) == (0, 0, 0)), "{scheme}");
    }
}

#[test]
fn what_hosts_cannot_keep_to_is_refused() {
    let hosts = |scheme: &str, params: Value| -> Result<PercHosts, InputError> {
        let params: Map<String, Value> = params.as_object().cloned().unwrap_or_default();
        PercHosts::new(scheme, &params, 1.0, RTT_NS, 1e8, 1500)
    };
    for (scheme, params, place) in [
        ("s-perc", json!({"compact": true}), "params.compact"),
        ("s-perc-star", json!({"short": 1000}), "params.short"),
        ("s-perc", json!({"division_kb": 1000}), "params.division_kb"),
        ("n-perc", json!({}), "scheme"),
    ] {
        let refused = hosts(scheme, params).map(|_| ()).unwrap_err();
        assert_eq!(refused.place, place);
    }
    let path = PathInfo { hops: 9, line_rate_bps: 1e8, min_capacity_bps: 1e8, base_rtt_ns: RTT_NS };
    let flow = HostFlow { number: 0, weight: 1.0, size_bytes: None, mss_bytes: 1446, path };
    let made = hosts("s-perc", json!({})).unwrap();
    assert!(made.sender(&flow).is_err(), "packets hold eight links");
    let light = HostFlow { weight: 0.01, path: PathInfo { hops: 2, ..path }, ..flow };
    assert!(made.sender(&light).is_err());
}
