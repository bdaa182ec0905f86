//! Small networks.

use super::model::MOST;
use subak_core::LinkId;
use subak_core::rng::Stream;
use subak_rounds::{Setup, Wire};

/// A network of links of `gbps` and of flows over `paths`.
pub fn network(gbps: &[f64], paths: &[Vec<usize>]) -> Setup {
    let wire = |g: &f64| Wire { capacity_bps: g * 1e9, delay_ns: 10_000 };
    let path = |path: &Vec<usize>| path.iter().map(|&l| LinkId::from_index(l)).collect();
    Setup {
        wires: gbps.iter().map(wire).collect(),
        paths: paths.iter().map(path).collect(),
        weights: paths.iter().map(|_| 1.0).collect(),
    }
}

/// Figure 2.1 of the PERC thesis.
pub fn figure_2_1() -> Setup {
    network(&[20.0, 30.0, 12.0], &[vec![0, 1], vec![1, 2]])
}

/// Two links whose two flows cross both.
pub fn crossing() -> Setup {
    network(&[12.0, 18.0], &[vec![0, 1], vec![1, 0]])
}

/// Four links in a chain, three levels of bottlenecks.
pub fn chain() -> Setup {
    network(&[10.0, 20.0, 40.0, 80.0], &[vec![0, 1], vec![1, 2], vec![2, 3], vec![3]])
}

/// Every network of at most two links of 12 or 18 Gb/s and at most three flows, on which every link is used, once up to
/// the names of links and flows.
pub fn all_of_two_links() -> Vec<Setup> {
    let paths = [vec![0], vec![1], vec![0, 1], vec![1, 0]];
    let mut found = Vec::new();
    for flows in 1..=3 {
        found.push(network(&[12.0], &vec![vec![0]; flows]));
        for gbps in [[12.0, 12.0], [12.0, 18.0]] {
            for code in 0..paths.len().pow(flows as u32) {
                let chosen: Vec<usize> = (0..flows).map(|f| code / paths.len().pow(f as u32) % paths.len()).collect();
                // The mirror image has the other link's name, which counts if capacities differ.
                let mut mirror: Vec<usize> = chosen.iter().map(|p| p ^ 1).collect();
                mirror.sort_unstable();
                let flows: Vec<Vec<usize>> = chosen.iter().map(|&p| paths[p].clone()).collect();
                let used = [0, 1].iter().all(|l| flows.iter().any(|path| path.contains(l)));
                if chosen.is_sorted() && used && (gbps[0] != gbps[1] || chosen <= mirror) {
                    found.push(network(&gbps, &flows));
                }
            }
        }
    }
    found
}

/// A random network of `links` links of 12, 18, 24 or 36 Gb/s, and of `flows` flows over at most `hops` links each, on
/// which every link is used.
pub fn random(links: usize, flows: usize, hops: usize, seed: u64) -> Setup {
    assert!(links <= MOST && flows <= MOST && links <= flows * hops);
    let mut random = Stream::new(seed, "orders");
    loop {
        let gbps: Vec<f64> = (0..links).map(|_| [12.0, 18.0, 24.0, 36.0][random.below(4)]).collect();
        let mut path = || {
            let mut deck: Vec<usize> = (0..links).collect();
            random.shuffle(&mut deck);
            deck.truncate(1 + random.below(hops.min(links)));
            deck
        };
        let paths: Vec<Vec<usize>> = (0..flows).map(|_| path()).collect();
        if (0..links).all(|l| paths.iter().any(|path| path.contains(&l))) {
            return network(&gbps, &paths);
        }
    }
}
