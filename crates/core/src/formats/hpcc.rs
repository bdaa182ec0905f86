//! Topologies of the simulator HPCC: the numbers of nodes, switches and links; the switches; then a line a link with both
//! ends, rate, delay and share of packets lost. A link is one in each direction, and nodes are called by their numbers.

use crate::quantity::{capacity_from_json, ns_from_json, quoted};
use crate::{Fault, Network, NodeKind};
use serde_json::Value;

/// Most nodes: 32-bit numbers of links, and memory.
const MOST_NODES: usize = 1 << 20;

/// The network that `text` describes.
pub fn network(text: &str) -> Result<Network, Fault> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let at = |line: usize, what: String, mend: &str| Fault::new(format!("line {line}"), what, mend);
    let numbers = |(line, text): (usize, &str)| -> Result<Vec<usize>, Fault> {
        let one = |word: &str| {
            word.parse().map_err(|_| at(line, format!("{} is no whole number", quoted(word)), "give nodes by number"))
        };
        text.split_whitespace().map(one).collect()
    };
    let head = lines.next().ok_or_else(|| at(1, "the file is empty".into(), "give nodes, switches and links"))?;
    let [nodes, switches, links] = numbers(head)?[..] else {
        return Err(at(
            head.0,
            "the first line has not three numbers".into(),
            "give those of nodes, switches and links",
        ));
    };
    if nodes > MOST_NODES {
        return Err(at(head.0, format!("{nodes} nodes"), &format!("give at most {MOST_NODES}")));
    }
    let mut kinds = vec![NodeKind::Host; nodes];
    let node = |line: usize, word: &str| {
        let found = word.parse::<usize>().ok().filter(|&n| n < nodes);
        found.ok_or_else(|| at(line, format!("there is no node {}", quoted(word)), "count nodes from 0"))
    };
    if switches > 0 {
        let (line, list) =
            lines.next().ok_or_else(|| at(2, "the switches are missing".into(), "list their numbers"))?;
        for word in list.split_whitespace() {
            kinds[node(line, word)?] = NodeKind::Switch;
        }
        let listed = kinds.iter().filter(|kind| **kind == NodeKind::Switch).count();
        if listed != switches {
            return Err(at(line, format!("{listed} switches are listed, {switches} announced"), "let the two agree"));
        }
    }
    let mut network = Network::new();
    let ids: Vec<_> = kinds.iter().enumerate().map(|(n, kind)| network.node(&n.to_string(), *kind)).collect();
    let mut count = 0;
    for (line, text) in lines {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (from, to, rate, delay, lost) = match words[..] {
            [from, to, rate, delay] => (from, to, rate, delay, "0"),
            [from, to, rate, delay, lost] => (from, to, rate, delay, lost),
            _ => {
                return Err(at(line, "is no link".into(), "give source, destination, rate, delay and share of losses"));
            }
        };
        if lost.parse::<f64>() != Ok(0.0) {
            let mend = "write 0 here, and give the spec a fault of kind \"loss\" at this link";
            return Err(at(line, format!("the link loses packets: {}", quoted(lost)), mend));
        }
        let (from, to) = (node(line, from)?, node(line, to)?);
        if from == to {
            return Err(at(line, format!("the link leads from node {from} to itself"), "connect two different nodes"));
        }
        let capacity_bps = capacity_from_json(&Value::from(rate)).map_err(|e| at(line, e.what, &e.mend))?;
        let delay_ns = ns_from_json(&Value::from(delay)).map_err(|e| at(line, e.what, &e.mend))?;
        let added = network.connect(ids[from], ids[to], capacity_bps, delay_ns, None);
        added.map_err(|e| at(line, e.what, &e.mend))?;
        count += 1;
    }
    if count != links {
        let what = format!("the file has {count} links, {links} announced");
        return Err(at(head.0, what, "let the two agree: the file may be cut"));
    }
    Ok(network)
}
