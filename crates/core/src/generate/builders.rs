//! The builders behind [`super::GENERATORS`]. Hosts are added first, so that host `hI` is node I.

use super::{Given, b4, jellyfish as random};
use crate::{InputError, Network, NodeId, NodeKind, Ns};

fn hosts(network: &mut Network, count: usize) -> Vec<NodeId> {
    (0..count).map(|i| network.node(&format!("h{i}"), NodeKind::Host)).collect()
}

fn switches(network: &mut Network, name: &str, count: usize) -> Vec<NodeId> {
    (0..count).map(|i| network.node(&format!("{name}{i}"), NodeKind::Switch)).collect()
}

/// The time in key `name`, ns. The key must have a default.
fn delay(given: &Given, name: &str) -> Ns {
    given.time(name).expect("the key has a default")
}

pub(super) fn leaf_spine_links(given: &Given) -> Result<u128, InputError> {
    let [leaves, hosts, spines, parallel] =
        ["leaves", "hosts_per_leaf", "spines", "links_per_spine"].map(|k| u128::from(given.count(k)));
    let controller = if given.open_rate("controller_rate").is_some() { spines } else { 0 };
    let above = spines.saturating_mul(parallel).saturating_add(hosts).saturating_mul(leaves);
    Ok(above.saturating_add(controller).saturating_mul(2))
}

pub(super) fn leaf_spine(given: &Given, network: &mut Network) -> Result<(), InputError> {
    let (leaves, per_leaf) = (given.size("leaves"), given.size("hosts_per_leaf"));
    let hosts = hosts(network, leaves * per_leaf);
    let leaves = switches(network, "leaf", leaves);
    let spines = switches(network, "spine", given.size("spines"));
    let buffer = given.buffer();
    let spine_rate = spine_rate(given, per_leaf, spines.len() as u64 * given.count("links_per_spine"));
    for (i, &host) in hosts.iter().enumerate() {
        let leaf = leaves[i / per_leaf];
        network.connect(host, leaf, given.rate("host_rate"), delay(given, "host_delay"), buffer)?;
    }
    for &leaf in &leaves {
        for &spine in &spines {
            for _ in 0..given.count("links_per_spine") {
                network.connect(leaf, spine, spine_rate, delay(given, "link_delay"), buffer)?;
            }
        }
    }
    controller(given, network, &spines)
}

/// Capacity of each of a leaf's `links_up`, bit/s.
fn spine_rate(given: &Given, hosts: usize, links_up: u64) -> f64 {
    match given.oversubscription() {
        Some(ratio) => hosts as f64 * given.rate("host_rate") / (links_up as f64 * ratio),
        None => given.rate("spine_rate"),
    }
}

/// Adds a controller node with a link to each of `above`, if the spec sets `controller_rate`. The node is added last,
/// so that other nodes keep their numbers.
fn controller(given: &Given, network: &mut Network, above: &[NodeId]) -> Result<(), InputError> {
    let Some(rate_bps) = given.open_rate("controller_rate") else { return Ok(()) };
    let controller = network.node("controller", NodeKind::Switch);
    for &switch in above {
        network.connect(controller, switch, rate_bps, delay(given, "link_delay"), given.buffer())?;
    }
    Ok(())
}

pub(super) fn fat_tree_links(given: &Given) -> Result<u128, InputError> {
    let k = u128::from(given.count("k"));
    if k % 2 == 1 {
        return Err(InputError::new(
            "k",
            format!("a fat-tree of {k}-port switches does not come out"),
            "give an even k",
        ));
    }
    let controller = if given.open_rate("controller_rate").is_some() { k.saturating_mul(k) / 2 } else { 0 };
    Ok((k.saturating_mul(k).saturating_mul(k) / 2).saturating_mul(3).saturating_add(controller))
}

pub(super) fn fat_tree(given: &Given, network: &mut Network) -> Result<(), InputError> {
    let k = given.size("k");
    let half = k / 2;
    let (rate, delay, buffer) = (given.rate("rate"), delay(given, "link_delay"), given.buffer());
    let rate_above = rate / given.oversubscription().unwrap_or(1.0);
    let hosts = hosts(network, k * half * half);
    let leaves = switches(network, "leaf", k * half);
    let aggs = switches(network, "agg", k * half);
    let cores = switches(network, "core", half * half);
    for (i, &host) in hosts.iter().enumerate() {
        network.connect(host, leaves[i / half], rate, delay, buffer)?;
    }
    for (i, &leaf) in leaves.iter().enumerate() {
        let pod = i / half * half;
        for &agg in &aggs[pod..pod + half] {
            network.connect(leaf, agg, rate_above, delay, buffer)?;
        }
    }
    for (i, &agg) in aggs.iter().enumerate() {
        let first = i % half * half;
        for &core in &cores[first..first + half] {
            network.connect(agg, core, rate_above, delay, buffer)?;
        }
    }
    controller(given, network, &cores)
}

pub(super) fn rails_links(given: &Given) -> Result<u128, InputError> {
    let [servers, rails, spines] = ["servers", "rails", "spines"].map(|k| u128::from(given.count(k)));
    Ok(servers.saturating_add(spines).saturating_mul(rails).saturating_mul(2))
}

pub(super) fn rails(given: &Given, network: &mut Network) -> Result<(), InputError> {
    let (servers, rails) = (given.size("servers"), given.size("rails"));
    let hosts = hosts(network, servers * rails);
    let leaves = switches(network, "leaf", rails);
    let spines = switches(network, "spine", given.size("spines"));
    let buffer = given.buffer();
    let spine_rate = spine_rate(given, servers, spines.len() as u64);
    for (i, &host) in hosts.iter().enumerate() {
        network.connect(host, leaves[i % rails], given.rate("host_rate"), delay(given, "host_delay"), buffer)?;
    }
    for &leaf in &leaves {
        for &spine in &spines {
            network.connect(leaf, spine, spine_rate, delay(given, "link_delay"), buffer)?;
        }
    }
    Ok(())
}

pub(super) fn dragonfly_links(given: &Given) -> Result<u128, InputError> {
    let [routers, hosts, global] = ["routers", "hosts_per_router", "global_links"].map(|k| u128::from(given.count(k)));
    let groups = routers.saturating_mul(global).saturating_add(1);
    // Of both directions; a link between two routers or groups counts once for each.
    let of_router = hosts.saturating_mul(2).saturating_add(routers - 1).saturating_add(global);
    Ok(groups.saturating_mul(routers).saturating_mul(of_router))
}

pub(super) fn dragonfly(given: &Given, network: &mut Network) -> Result<(), InputError> {
    let [routers, per_router, global] = ["routers", "hosts_per_router", "global_links"].map(|k| given.size(k));
    let groups = routers * global + 1;
    let hosts = hosts(network, groups * routers * per_router);
    let switches = switches(network, "switch", groups * routers);
    let (rate, buffer) = (given.rate("rate"), given.buffer());
    for (i, &host) in hosts.iter().enumerate() {
        network.connect(host, switches[i / per_router], rate, delay(given, "link_delay"), buffer)?;
    }
    for group in switches.chunks(routers) {
        for (i, &router) in group.iter().enumerate() {
            for &other in &group[i + 1..] {
                network.connect(router, other, rate, delay(given, "link_delay"), buffer)?;
            }
        }
    }
    // The k-th link of a group, from 0, leads to the group k + 1 places further on.
    let (rate, delay) = (given.rate("global_rate"), delay(given, "global_delay"));
    for first in 0..groups {
        for second in first + 1..groups {
            let at = switches[first * routers + (second - first - 1) / global];
            let to = switches[second * routers + (groups + first - second - 1) / global];
            network.connect(at, to, rate, delay, buffer)?;
        }
    }
    Ok(())
}

pub(super) fn jellyfish_links(given: &Given) -> Result<u128, InputError> {
    let [switches, ports, hosts] = ["switches", "ports", "hosts_per_switch"].map(|k| u128::from(given.count(k)));
    if ports >= switches {
        let what = format!("{switches} switches have at most {} others", switches - 1);
        return Err(InputError::new("ports", what, "give fewer ports or more switches"));
    }
    if switches.saturating_mul(ports) % 2 == 1 {
        let what = format!("{switches} switches of {ports} ports leave one port free");
        return Err(InputError::new("ports", what, "give an even number of switches or of ports"));
    }
    Ok(switches.saturating_mul(hosts.saturating_mul(2).saturating_add(ports)))
}

pub(super) fn jellyfish(given: &Given, network: &mut Network) -> Result<(), InputError> {
    let [switches_wanted, ports, per_switch] = ["switches", "ports", "hosts_per_switch"].map(|k| given.size(k));
    let links = random::links(switches_wanted, ports, given.count("graph_seed")).ok_or_else(|| {
        InputError::new("ports", "no connected graph was found", "give more ports, or another graph_seed")
    })?;
    let hosts = hosts(network, switches_wanted * per_switch);
    let switches = switches(network, "switch", switches_wanted);
    let (rate, delay, buffer) = (given.rate("rate"), delay(given, "link_delay"), given.buffer());
    for (i, &host) in hosts.iter().enumerate() {
        network.connect(host, switches[i / per_switch], rate, delay, buffer)?;
    }
    for (a, b) in links {
        network.connect(switches[a], switches[b], rate, delay, buffer)?;
    }
    Ok(())
}

pub(super) fn dumbbell_links(given: &Given) -> Result<u128, InputError> {
    Ok(4 * u128::from(given.count("pairs")) + 2)
}

pub(super) fn dumbbell(given: &Given, network: &mut Network) -> Result<(), InputError> {
    let pairs = given.size("pairs");
    let hosts = hosts(network, 2 * pairs);
    let sides = switches(network, "switch", 2);
    for (i, &host) in hosts.iter().enumerate() {
        let side = sides[i / pairs];
        network.connect(host, side, given.rate("host_rate"), delay(given, "link_delay"), given.buffer())?;
    }
    let (rate, delay) = (given.rate("bottleneck_rate"), delay(given, "bottleneck_delay"));
    network.connect(sides[0], sides[1], rate, delay, given.buffer())?;
    Ok(())
}

pub(super) fn star_links(given: &Given) -> Result<u128, InputError> {
    Ok(2 * u128::from(given.count("hosts")))
}

pub(super) fn star(given: &Given, network: &mut Network) -> Result<(), InputError> {
    let hosts = hosts(network, given.size("hosts"));
    let center = switches(network, "switch", 1)[0];
    for host in hosts {
        network.connect(host, center, given.rate("rate"), delay(given, "link_delay"), given.buffer())?;
    }
    Ok(())
}

pub(super) fn chain_links(given: &Given) -> Result<u128, InputError> {
    Ok(4 * given.rates("rates").len() as u128 + 2)
}

pub(super) fn chain(given: &Given, network: &mut Network) -> Result<(), InputError> {
    let rates = given.rates("rates");
    let hosts = hosts(network, rates.len() + 1);
    let switches = switches(network, "switch", rates.len() + 1);
    for (&host, &switch) in hosts.iter().zip(&switches) {
        network.connect(host, switch, given.rate("host_rate"), delay(given, "host_delay"), given.buffer())?;
    }
    for (ends, &rate) in switches.windows(2).zip(rates) {
        network.connect(ends[0], ends[1], rate, delay(given, "link_delay"), given.buffer())?;
    }
    Ok(())
}

pub(super) fn wan_links(given: &Given) -> Result<u128, InputError> {
    let map = b4::map(given.word("topology"));
    Ok(2 * (map.sites.len() + map.links.len()) as u128)
}

pub(super) fn wan(given: &Given, network: &mut Network) -> Result<(), InputError> {
    let map = b4::map(given.word("topology"));
    let hosts = hosts(network, map.sites.len());
    let sites: Vec<NodeId> = map.sites.iter().map(|name| network.node(name, NodeKind::Switch)).collect();
    for (&host, &site) in hosts.iter().zip(&sites) {
        network.connect(host, site, given.rate("host_rate"), delay(given, "host_delay"), given.buffer())?;
    }
    for &(a, b, delay_ns) in &map.links {
        let delay_ns = given.time("link_delay").unwrap_or(delay_ns);
        network.connect(sites[a], sites[b], given.rate("rate"), delay_ns, given.buffer())?;
    }
    Ok(())
}
