//! Paths are valid, loop-free, shortest and balanced. Symmetric paths are each other's reverse.

use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use subak_core::rng::Stream;
use subak_core::route::{Hash, Metric, Router, Routing, SubflowPaths, key_of};
use subak_core::{IdVec, Link, LinkId, Network, NodeId, NodeKind, generate};

fn build(value: Value) -> Network {
    generate::network(&value).unwrap().0
}

/// A random network: some links in both directions, some in one, some parallel, and some isolated nodes.
fn random(seed: u64, nodes: usize, links: usize) -> Network {
    let mut rng = Stream::new(seed, "network");
    let mut net = Network::new();
    for i in 0..nodes {
        net.node(&format!("n{i}"), NodeKind::Host);
    }
    for _ in 0..links {
        let (a, b) = (NodeId::from_index(rng.below(nodes)), NodeId::from_index(rng.below(nodes)));
        let delay_ns = rng.below(4) as u64;
        if rng.below(3) > 0 {
            net.connect(a, b, 1e9, delay_ns, None).unwrap();
        } else {
            let id = net.free_id(a, b);
            net.add(Link { id, from: Some(a), to: Some(b), capacity_bps: 1e9, delay_ns, buffer_bytes: None }).unwrap();
        }
    }
    net
}

type Cost = (u64, u64);

/// Cost of each link; `None` if routes must not use it.
fn costs(net: &Network, metric: Metric, symmetric: bool) -> IdVec<LinkId, Option<Cost>> {
    let reverse_links = net.reverse_links();
    let delay = |l: LinkId| net.links()[l].delay_ns;
    net.links()
        .ids()
        .map(|l| match (reverse_links[l], symmetric) {
            (None, true) => None,
            (Some(reverse_link), true) => Some((delay(l) + delay(reverse_link), 1)),
            (_, false) => Some((delay(l), 1)),
        })
        .map(|cost| cost.map(|(delay, one)| if metric == Metric::Hops { (0, one) } else { (delay, one) }))
        .collect()
}

/// Distances by the Bellman-Ford algorithm, as a slow and simple reference for the router.
fn distances_from(net: &Network, costs: &IdVec<LinkId, Option<Cost>>, src: NodeId) -> IdVec<NodeId, Option<Cost>> {
    let mut best = IdVec::filled(None, net.nodes().len());
    best[src] = Some((0, 0));
    for _ in 0..net.nodes().len() {
        for (l, link) in net.links().iter_enumerated() {
            let (a, b) = (link.from.unwrap(), link.to.unwrap());
            if let (Some((d, h)), Some((dd, dh))) = (best[a], costs[l]) {
                let through = (d + dd, h + dh);
                if best[b].is_none_or(|old| through < old) {
                    best[b] = Some(through);
                }
            }
        }
    }
    best
}

fn cost_of(path: &[LinkId], costs: &IdVec<LinkId, Option<Cost>>) -> Cost {
    path.iter().map(|&l| costs[l].unwrap()).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
}

fn assert_leads(net: &Network, path: &[LinkId], src: NodeId, dst: NodeId) {
    let mut at = src;
    let mut seen = HashSet::from([src]);
    for &l in path {
        let link = &net.links()[l];
        assert_eq!(link.from, Some(at));
        at = link.to.unwrap();
        assert!(seen.insert(at), "the path loops");
    }
    assert_eq!(at, dst);
}

/// Number of shortest paths, by the reference distances.
fn count(net: &Network, costs: &IdVec<LinkId, Option<Cost>>, src: NodeId, dst: NodeId) -> usize {
    let from = distances_from(net, costs, src);
    let mut ways = HashMap::from([(src, 1usize)]);
    let mut order: Vec<NodeId> = from.ids().filter(|&n| from[n].is_some()).collect();
    order.sort_by_key(|&n| from[n]);
    for node in order.into_iter().filter(|&n| n != src) {
        let mut total = 0;
        for (l, link) in net.links().iter_enumerated().filter(|(_, link)| link.to == Some(node)) {
            let before = link.from.unwrap();
            if let (Some((d, h)), Some((dd, dh))) = (from[before], costs[l])
                && Some((d + dd, h + dh)) == from[node]
            {
                total += ways[&before];
            }
        }
        ways.insert(node, total);
    }
    ways.get(&dst).copied().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn paths_are_valid_and_shortest(seed: u64, nodes in 2usize..12, links in 0usize..30, by_delay: bool, symmetric: bool, key: u64) {
        let net = random(seed, nodes, links);
        let metric = if by_delay { Metric::Delay } else { Metric::Hops };
        let mut router = Router::by(&net, Routing { seed, symmetric, metric, ..Routing::default() });
        let costs = costs(&net, metric, symmetric);
        let reverse_links = net.reverse_links();
        for src in NodeId::first(nodes) {
            let best = distances_from(&net, &costs, src);
            for dst in NodeId::first(nodes).filter(|&dst| dst != src) {
                let Some(least) = best[dst] else {
                    let fault = router.path(src, dst, key).unwrap_err();
                    let named = format!("from \"n{src}\" to \"n{dst}\"");
                    prop_assert!(fault.what.contains(&named));
                    continue;
                };
                let path = router.path(src, dst, key).unwrap();
                assert_leads(&net, &path, src, dst);
                prop_assert_eq!(cost_of(&path, &costs), least);
                prop_assert_eq!(&router.path(src, dst, key).unwrap(), &path);
                if symmetric {
                    let reverse: Vec<LinkId> = path.iter().rev().map(|&l| reverse_links[l].unwrap()).collect();
                    prop_assert_eq!(&router.path(dst, src, key).unwrap(), &reverse);
                    prop_assert_eq!(&router.route(src, dst, key).unwrap().back, &reverse);
                } else if let Ok(route) = router.route(src, dst, key) {
                    assert_leads(&net, &route.back, dst, src);
                }
            }
        }
    }

    #[test]
    fn k_paths_are_all_there_are(seed: u64, nodes in 2usize..8, links in 5usize..40, symmetric: bool, key: u64, k in 1usize..12) {
        let net = random(seed, nodes, links);
        let mut router = Router::new(&net, seed, symmetric);
        let costs = costs(&net, Metric::Hops, symmetric);
        for (src, dst) in [(0, 1), (1, 0)].map(|(a, b)| (NodeId(a), NodeId(b))) {
            let there = count(&net, &costs, src, dst);
            let Ok(paths) = router.k_paths(src, dst, key, k) else {
                prop_assert_eq!(there, 0);
                continue;
            };
            prop_assert_eq!(paths.len(), k.min(there));
            prop_assert_eq!(paths.iter().collect::<HashSet<_>>().len(), paths.len());
            prop_assert_eq!(&paths[0], &router.path(src, dst, key).unwrap());
            let least = cost_of(&paths[0], &costs);
            for path in &paths {
                assert_leads(&net, path, src, dst);
                prop_assert_eq!(cost_of(path, &costs), least);
            }
        }
    }
}

/// Chi-square statistic of draws that should be uniform.
fn chi_square(counts: &HashMap<Vec<LinkId>, usize>, choices: usize) -> f64 {
    let expected = counts.values().sum::<usize>() as f64 / choices as f64;
    let seen: f64 = counts.values().map(|&n| (n as f64 - expected).powi(2) / expected).sum();
    seen + (choices - counts.len()) as f64 * expected
}

#[test]
fn keys_spread_evenly_over_all_paths() {
    for (value, choices) in [
        (json!({"kind": "fat-tree", "k": 8}), 16),
        (json!({"kind": "leaf-spine", "leaves": 4, "spines": 5, "hosts_per_leaf": 2, "links_per_spine": 3}), 45),
    ] {
        let net = build(value);
        let far = net.hosts().last().unwrap();
        for symmetric in [false, true] {
            let mut router = Router::new(&net, 7, symmetric);
            let mut counts: HashMap<Vec<LinkId>, usize> = HashMap::new();
            for key in 0..choices as u64 * 1000 {
                *counts.entry(router.path(NodeId(0), far, key).unwrap()).or_default() += 1;
            }
            // The statistic has mean choices - 1 and standard deviation sqrt(2 (choices - 1)). The bound is five of
            // these above the mean.
            let bound = (choices - 1) as f64 + 5.0 * (2.0 * (choices - 1) as f64).sqrt();
            let statistic = chi_square(&counts, choices);
            assert!(statistic < bound, "{statistic} > {bound}");
        }
    }
}

#[test]
fn flows_of_a_pair_stay_together() {
    let net = build(json!({"kind": "fat-tree", "k": 8}));
    for symmetric in [false, true] {
        let mut router = Router::by(&net, Routing { seed: 7, symmetric, hash: Hash::Pair, ..Routing::default() });
        let first = router.path(NodeId(0), NodeId(127), 0).unwrap();
        assert!((1..1000).all(|key| router.path(NodeId(0), NodeId(127), key).unwrap() == first));
        let taken: HashSet<_> =
            (64..128).map(|dst| router.path(NodeId(0), NodeId(dst), 1).unwrap()[..3].to_vec()).collect();
        assert!(taken.len() > 8, "pairs differ: {} of 16 ways up", taken.len());
        let of = |router: &mut Router, key| {
            router.routes(NodeId(0), NodeId(127), key, 4).unwrap().into_iter().map(|r| r.forward)
        };
        let subflows: Vec<_> = of(&mut router, 3).collect();
        assert_eq!((subflows.len(), &subflows[0]), (4, &first));
        assert!(of(&mut router, 4).eq(subflows.iter().cloned()), "nor do the subflows' paths depend on the key");
        let mut flows = Router::by(&net, Routing { seed: 7, symmetric, ..Routing::default() });
        assert!(of(&mut flows, 0).eq(subflows), "they spread as those of a flow with key 0");
    }
}

#[test]
fn pairs_spread_evenly_over_the_links_of_a_layer() {
    let net = build(json!({"kind": "fat-tree", "k": 8}));
    let mut router = Router::new(&net, 3, true);
    let mut load = IdVec::<LinkId, usize>::filled(0, net.links().len());
    let hosts = net.hosts().count() as u32;
    for src in 0..hosts {
        for dst in (0..hosts).filter(|dst| dst / 16 != src / 16) {
            router.path(NodeId(src), NodeId(dst), 0).unwrap().iter().for_each(|&l| load[l] += 1);
        }
    }
    // Expected load of each of the 128 links from aggregation to core switches. Loads are binomial: the bound is five
    // standard deviations.
    let expected = f64::from(hosts * (hosts - 16)) / 128.0;
    for (l, link) in net.links().iter_enumerated().filter(|(_, l)| l.id.starts_with("agg") && l.id.contains("core")) {
        assert!(
            (load[l] as f64 - expected).abs() < 5.0 * expected.sqrt() * 1.5,
            "{}: {} of {expected}",
            link.id,
            load[l]
        );
    }
}

#[test]
fn the_seed_and_the_key_matter() {
    let net = build(json!({"kind": "fat-tree", "k": 8}));
    let paths = |seed: u64, key: u64| {
        let mut router = Router::new(&net, seed, false);
        (64..128).map(|dst| router.path(NodeId(0), NodeId(dst), key).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(paths(1, 1), paths(1, 1));
    assert_ne!(paths(1, 1), paths(2, 1));
    assert_ne!(paths(1, 1), paths(1, 2));
    assert_ne!(key_of("f1"), key_of("f2"));
}

/// The wide-area network of the PERC thesis: the longest shortest path is 26432 km.
#[test]
fn b4_goes_by_delay() {
    let (net, metric) = generate::network(&json!({"kind": "wan", "topology": "b4-18"})).unwrap();
    assert_eq!(metric, Metric::Delay);
    let mut router = Router::by(&net, Routing { seed: 1, symmetric: true, metric, ..Routing::default() });
    let mut longest = 0;
    for src in 0..18 {
        for dst in (0..18).filter(|&dst| dst != src) {
            let path = router.path(NodeId(src), NodeId(dst), 0).unwrap();
            longest = longest.max(path.iter().map(|&l| net.links()[l].delay_ns).sum());
        }
    }
    let expected = 26432 * 10_000 / 3 + 2 * 2_500;
    assert!(longest.abs_diff(expected) <= 5, "{longest} ns, {expected} expected");
}

/// By hops, with random ties, the mean RTT is 76 ms and paths have up to seven links, as in table 5.1 of the PERC
/// thesis. By delay the mean RTT is 73 ms over up to eight links.
#[test]
fn b4_by_hops_has_the_round_trips_of_the_thesis() {
    let (net, _) = generate::network(&json!({"kind": "wan", "topology": "b4-18"})).unwrap();
    let mut router = Router::new(&net, 1, true);
    let (mut sum_ns, mut most, mut paths) = (0, 0, 0);
    for (src, dst) in (0..18).flat_map(|src| (0..18).map(move |dst| (src, dst))).filter(|(src, dst)| src != dst) {
        for key in 0..100 {
            let path = router.path(NodeId(src), NodeId(dst), key).unwrap();
            sum_ns += path.iter().map(|&l| 2 * net.links()[l].delay_ns).sum::<u64>();
            most = most.max(path.len());
            paths += 1;
        }
    }
    let mean_ms = sum_ns as f64 / f64::from(paths) / 1e6;
    assert!((mean_ms - 76.0).abs() < 0.5, "{mean_ms} ms");
    assert_eq!(most, 7);
}

#[test]
fn bad_ends_are_refused() {
    let mut net = Network::new();
    let [a, b] = ["a", "b"].map(|name| net.node(name, NodeKind::Host));
    net.add(Link { id: "ab".into(), from: Some(a), to: Some(b), capacity_bps: 1.0, delay_ns: 0, buffer_bytes: None })
        .unwrap();
    let mut router = Router::new(&net, 0, false);
    assert_eq!(router.path(a, b, 0), Ok(vec![LinkId(0)]));
    assert_eq!(router.path(b, a, 0).unwrap_err().what, "no path leads from \"b\" to \"a\"");
    assert_eq!(router.route(a, b, 0).unwrap_err().what, "no path leads from \"b\" to \"a\"");
    assert_eq!(router.path(a, a, 0).unwrap_err().what, "the source and the destination are the same, \"a\"");
    assert_eq!(router.path(a, NodeId(9), 0).unwrap_err().what, "there is no node number 9");
    let mut symmetric = Router::new(&net, 0, true);
    let fault = symmetric.path(a, b, 0).unwrap_err();
    assert_eq!(fault.what, "no path leads from \"a\" to \"b\" by links with a reverse link");
    assert!(Router::new(&Network::new(), 0, true).path(NodeId(0), NodeId(1), 0).is_err());
}

#[test]
fn delays_near_the_limit_do_not_overflow() {
    let mut net = Network::new();
    let nodes: Vec<_> = (0..5).map(|i| net.node(&format!("n{i}"), NodeKind::Host)).collect();
    for ends in nodes.windows(2) {
        net.connect(ends[0], ends[1], 1.0, u64::MAX / 2, None).unwrap();
    }
    for symmetric in [false, true] {
        let mut router = Router::by(&net, Routing { symmetric, metric: Metric::Delay, ..Routing::default() });
        assert_eq!(router.path(NodeId(0), NodeId(4), 0).unwrap().len(), 4);
    }
}

/// With more destinations than the cache of distances has room for, the paths stay the same.
#[test]
fn tables_that_were_dropped_come_again() {
    const NODES: u32 = 4200;
    let mut net = Network::new();
    (0..NODES).for_each(|i| _ = net.node(&format!("n{i}"), NodeKind::Host));
    for i in 0..NODES {
        net.connect(NodeId(i), NodeId((i + 1) % NODES), 1.0, 0, None).unwrap();
    }
    let mut router = Router::new(&net, 0, false);
    let first = router.path(NodeId(0), NodeId(5), 0).unwrap();
    for dst in 1..NODES {
        assert_eq!(router.path(NodeId((dst + 2) % NODES), NodeId(dst), 0).unwrap().len(), 2);
    }
    assert_eq!(router.path(NodeId(0), NodeId(5), 0).unwrap(), first);
}

/// All paths without a loop, by a search in depth.
fn all_paths(net: &Network, costs: &IdVec<LinkId, Option<Cost>>, src: NodeId, dst: NodeId) -> Vec<Vec<LinkId>> {
    fn walk(
        net: &Network,
        costs: &IdVec<LinkId, Option<Cost>>,
        dst: NodeId,
        seen: &mut Vec<NodeId>,
        path: &mut Vec<LinkId>,
        found: &mut Vec<Vec<LinkId>>,
    ) {
        let here = seen[seen.len() - 1];
        if here == dst {
            found.push(path.clone());
            return;
        }
        for (l, link) in net.links().iter_enumerated() {
            let to = link.to.unwrap();
            if link.from == Some(here) && costs[l].is_some() && !seen.contains(&to) {
                seen.push(to);
                path.push(l);
                walk(net, costs, dst, seen, path, found);
                path.pop();
                seen.pop();
            }
        }
    }
    let mut found = Vec::new();
    walk(net, costs, dst, &mut vec![src], &mut Vec::new(), &mut found);
    found
}

/// The least number of links that a path shares with `used`, and the least cost of such a path.
fn least_shared(paths: &[Vec<LinkId>], costs: &IdVec<LinkId, Option<Cost>>, used: &HashSet<LinkId>) -> (usize, Cost) {
    let length = |path: &Vec<LinkId>| (path.iter().filter(|&l| used.contains(l)).count(), cost_of(path, costs));
    paths.iter().map(length).min().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The costs of the k shortest paths are the k least of all paths without a loop, in order; a path that is to be
    /// disjoint shares no more links with those before it than any path has to.
    #[test]
    fn several_paths_are_those_of_an_exhaustive_search(
        seed: u64, nodes in 2usize..7, links in 0usize..14, by_delay: bool, symmetric: bool, key: u64, k in 1usize..9,
    ) {
        let net = random(seed, nodes, links);
        let metric = if by_delay { Metric::Delay } else { Metric::Hops };
        let costs = costs(&net, metric, symmetric);
        let router = |paths| Router::by(&net, Routing { seed, symmetric, metric, paths, ..Routing::default() });
        let (mut shortest, mut disjoint) = (router(SubflowPaths::Shortest), router(SubflowPaths::Disjoint));
        for src in NodeId::first(nodes) {
            for dst in NodeId::first(nodes).filter(|&dst| dst != src) {
                let all = all_paths(&net, &costs, src, dst);
                if all.is_empty() {
                    prop_assert!(shortest.k_paths(src, dst, key, k).is_err() && disjoint.k_paths(src, dst, key, k).is_err());
                    continue;
                }
                let mut expected: Vec<Cost> = all.iter().map(|path| cost_of(path, &costs)).collect();
                expected.sort_unstable();
                expected.truncate(k);
                let found = shortest.k_paths(src, dst, key, k).unwrap();
                prop_assert_eq!(found.iter().map(|path| cost_of(path, &costs)).collect::<Vec<_>>(), expected);
                prop_assert_eq!(found.iter().collect::<HashSet<_>>().len(), found.len());
                found.iter().for_each(|path| assert_leads(&net, path, src, dst));
                let found = disjoint.k_paths(src, dst, key, k).unwrap();
                let mut used = HashSet::new();
                for path in &found {
                    assert_leads(&net, path, src, dst);
                    let least = least_shared(&all, &costs, &used);
                    let shared = path.iter().filter(|&l| used.contains(l)).count();
                    prop_assert_eq!((shared, cost_of(path, &costs)), least);
                    used.extend(path.iter().copied());
                }
                prop_assert_eq!(found.iter().collect::<HashSet<_>>().len(), found.len());
            }
        }
    }
}

/// Flows of one pair spread over equally long paths, by their keys.
#[test]
fn several_paths_spread_over_equal_ones() {
    let net = build(json!({"kind": "leaf-spine", "leaves": 2, "spines": 8, "hosts_per_leaf": 2}));
    let ends = [0, 3].map(|h| net.find_node(&format!("h{h}")).unwrap());
    for paths in [SubflowPaths::Shortest, SubflowPaths::Disjoint] {
        let mut router = Router::by(&net, Routing { paths, ..Routing::default() });
        let mut used = HashMap::new();
        for key in 0..200 {
            for path in router.k_paths(ends[0], ends[1], key, 2).unwrap() {
                *used.entry(path[1]).or_insert(0) += 1;
            }
        }
        assert!(used.len() == 8 && used.values().all(|&n| n > 25), "{used:?}");
    }
}
