//! Topology files of the HPCC simulator and of simulators derived from it. The first line has the numbers of nodes,
//! switches and links, the second the switches. Each further line is a link: both ends, rate, delay and loss rate. A
//! line makes a link in each direction. A line without a loss rate has a rate of 0, which is noted. Nodes are named by
//! their numbers. Lines after the announced number of links are ignored, as in these simulators.
//!
//! In PowerTCP's variant, the first line has the numbers of nodes, switches, racks and links.

use super::{Defaults, at_line, refuse_beside};
use crate::quantity::{ns_from_json, quoted, rate_bps_from_json};
use crate::{InputError, Link, Network, NodeId, NodeKind};
use serde_json::Value;

/// Largest number of nodes; bounds memory.
const MOST_NODES: usize = 1 << 20;

/// The non-empty lines of a file without comments, each with its line number from 1.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let plain = |line: &'_ str| -> usize { line.find('#').or_else(|| line.find("//")).unwrap_or(line.len()) };
    let numbered = (1..).zip(text.trim_start_matches('\u{feff}').lines());
    numbered.map(move |(n, line)| (n, line[..plain(line)].trim())).filter(|(_, line)| !line.is_empty())
}

/// Note that `count` lines after the announced number of `what` are not read; `None` if `count` is 0.
pub fn behind(count: usize, what: &str) -> Option<String> {
    (count > 0).then(|| format!("{count} lines behind the {what} that the file announces are not read"))
}

fn numbers(line: usize, text: &str) -> Result<Vec<usize>, InputError> {
    let one = |word: &str| {
        word.parse().map_err(|_| at_line(line, format!("{} is no whole number", quoted(word)), "give nodes by number"))
    };
    text.split_whitespace().map(one).collect()
}

/// Parses a network. No key beside the file is used, since the format has all values.
pub fn network_with(text: &str, beside: &Defaults) -> Result<Network, InputError> {
    refuse_beside(beside, &[], "HPCC's topology says it itself")?;
    network(text)
}

/// Parses a network.
pub fn network(text: &str) -> Result<Network, InputError> {
    let mut lines = lines(text);
    let (first, head) =
        lines.next().ok_or_else(|| at_line(1, "the file is empty", "give nodes, switches and links"))?;
    let (nodes, switches, links) = match numbers(first, head)?[..] {
        [nodes, switches, links] => (nodes, switches, links),
        [nodes, switches, _racks, links] => (nodes, switches, links),
        ref other => {
            let what = format!("the first line has {} numbers, not three or four", other.len());
            let hint = "give those of nodes, switches and links, or of nodes, switches, racks and links";
            return Err(at_line(first, what, hint));
        }
    };
    if nodes > MOST_NODES {
        return Err(at_line(first, format!("{nodes} nodes"), &format!("give at most {MOST_NODES}")));
    }
    let mut network = Network::new();
    let kinds = kinds(&mut lines, first, nodes, switches)?;
    let ids: Vec<_> = kinds.iter().enumerate().map(|(n, kind)| network.node(&n.to_string(), *kind)).collect();
    let (mut count, mut short) = (0, Vec::new());
    for (line, text) in lines.by_ref().take(links) {
        link(&mut network, &ids, text).map_err(|e| at_line(line, e.what, &e.hint))?;
        count += 1;
        if text.split_whitespace().count() == 4 {
            short.push(line);
        }
    }
    if count < links {
        let what = format!("the file has {count} links, {links} announced");
        return Err(at_line(first, what, "let the two agree: the file may be cut"));
    }
    network.note_all(behind(lines.count(), "links"));
    if let Some(first) = short.first() {
        let (lines, verb) = (short.len(), if short.len() == 1 { "states" } else { "state" });
        network.note_all([format!(
            "{lines} of {links} links {verb} no share of losses, which counts as 0: the first of them in line {first}; HPCC's simulator \
             would take the next line's first number for it"
        )]);
    }
    Ok(network)
}

/// Kinds of all nodes. The numbers of the switches may span several lines.
fn kinds<'a>(
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
    first: usize,
    nodes: usize,
    switches: usize,
) -> Result<Vec<NodeKind>, InputError> {
    let mut kinds = vec![NodeKind::Host; nodes];
    let (mut listed, mut last) = (0, first);
    while listed < switches {
        let Some((line, list)) = lines.next() else {
            let what = format!("{listed} switches are listed, {switches} announced");
            return Err(at_line(last, what, "list the numbers of all switches"));
        };
        last = line;
        for word in list.split_whitespace() {
            let node = node(word, nodes).map_err(|e| at_line(line, e.what, &e.hint))?;
            if std::mem::replace(&mut kinds[node], NodeKind::Switch) == NodeKind::Switch {
                return Err(at_line(line, format!("node {node} is listed twice as a switch"), "list each switch once"));
            }
            listed += 1;
        }
    }
    if listed > switches {
        return Err(at_line(last, format!("{listed} switches are listed, {switches} announced"), "let the two agree"));
    }
    Ok(kinds)
}

fn node(word: &str, nodes: usize) -> Result<usize, InputError> {
    let found = word.parse::<usize>().ok().filter(|&n| n < nodes);
    found.ok_or_else(|| InputError::new("", format!("there is no node {}", quoted(word)), "count nodes from 0"))
}

/// Adds the link of one line.
fn link(network: &mut Network, ids: &[NodeId], text: &str) -> Result<(), InputError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (from, to, rate, delay, lost) = match words[..] {
        [from, to, rate, delay] => (from, to, rate, delay, "0"),
        [from, to, rate, delay, lost] => (from, to, rate, delay, lost),
        _ => {
            return Err(InputError::new("", "is no link", "give source, destination, rate, delay and share of losses"));
        }
    };
    if lost.parse::<f64>() != Ok(0.0) {
        let hint = "write 0 here, and give the spec a fault of kind \"loss\" at this link";
        return Err(InputError::new("", format!("the link loses packets: {}", quoted(lost)), hint));
    }
    let (from, to) = (ids[node(from, ids.len())?], ids[node(to, ids.len())?]);
    let capacity_bps = rate_bps_from_json(&Value::from(rate))?;
    let delay_ns = ns_from_json(&Value::from(delay))?;
    if from == to || capacity_bps == 0.0 {
        let ends = (Some(from), Some(to));
        let link = Link { id: String::new(), from: ends.0, to: ends.1, capacity_bps, delay_ns, buffer_bytes: None };
        network.leave_out(false, link);
        return Ok(());
    }
    network.connect(from, to, capacity_bps, delay_ns, None).map(|_| ())
}
