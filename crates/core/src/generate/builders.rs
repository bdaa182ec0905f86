//! The builders behind [`super::GENERATORS`]. Hosts are added first, so that host `hI` is node I.

use super::{Given, b4};
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
    let links_up = (spines.len() as u64 * given.count("links_per_spine")) as f64;
    let spine_rate = match given.oversubscription() {
        Some(ratio) => per_leaf as f64 * given.rate("host_rate") / (links_up * ratio),
        None => given.rate("spine_rate"),
    };
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
