//! Maps of Rocketfuel (Spring et al., SIGCOMM 2002): router-level maps (`.cch`), and lists of links with their latencies or
//! weights (`latencies.intra`, `weights.intra`). They have no capacities: one stands beside the file.

use super::drawn::{Drawn, time_in, words};
use super::{Defaults, at_line, refuse_beside};
use crate::quantity::quoted;
use crate::{InputError, Network};
use serde_json::Value;
use std::collections::BTreeSet;

/// Parses a router-level map: `uid @place [+] [bb] (neighbours) [&external] -> <uid> ... {-external} ... =name rn`.
/// Lines of external routers, whose uid is negative, and links to them are left out.
pub(super) fn network_of_map(text: &str, beside: &Defaults) -> Result<Network, InputError> {
    refuse_beside(beside, &["range", "unit"], "the format has no capacities")?;
    let hint = "write lines such as: 1 @Paris (2) -> <2> <3> =name r0";
    let mut drawn = Drawn::default();
    let mut ends = Vec::new();
    for (line, row) in words(text, "#") {
        let own = row[0];
        if own.strip_prefix('-').unwrap_or(own).parse::<u64>().is_err() {
            return Err(at_line(line, format!("{} is no number of a router", quoted(own)), hint));
        }
        if own.starts_with('-') {
            continue;
        }
        let arrow = row.iter().position(|word| *word == "->");
        let arrow = arrow.ok_or_else(|| at_line(line, "the line has no ->", hint))?;
        if !drawn.node(own, None) {
            return Err(at_line(line, format!("a second line describes router {own}"), "describe each router once"));
        }
        let neighbours = row[arrow..].iter().filter_map(|word| word.strip_prefix('<')?.strip_suffix('>'));
        ends.extend(neighbours.map(|other| (line, own, other)));
    }
    let mut seen = BTreeSet::new();
    for (line, from, to) in ends {
        drawn.check(to, line)?;
        if seen.insert((from.min(to), from.max(to))) {
            drawn.edge(from, to, []);
        }
    }
    drawn.network(false, &beside.of_backbone())
}

/// Parses a list of links with latencies: `from to milliseconds`.
pub(super) fn network_of_latencies(text: &str, beside: &Defaults) -> Result<Network, InputError> {
    refuse_beside(beside, &["delay"], "each link has its own")?;
    links(text, beside, |line, latency| Ok(("delay", time_in(line, latency, "ms")?)))
}

/// Parses a list of links with weights, which are not used: `from to weight`.
pub(super) fn network_of_weights(text: &str, beside: &Defaults) -> Result<Network, InputError> {
    links(text, beside, |_, weight| Ok(("weight", weight.into())))
}

/// Name and value of an attribute.
type Attribute = (&'static str, Value);

fn links(
    text: &str,
    beside: &Defaults,
    attribute: fn(usize, &str) -> Result<Attribute, InputError>,
) -> Result<Network, InputError> {
    refuse_beside(beside, &["range", "unit"], "the format has no capacities")?;
    let mut drawn = Drawn::default();
    let mut rows = Vec::new();
    for (line, row) in words(text, "#") {
        let [from, to, number] = row[..] else {
            return Err(at_line(line, "is no link", "give both ends and the latency in ms, or the weight"));
        };
        drawn.node(from, None);
        drawn.node(to, None);
        rows.push((from, to, attribute(line, number)?));
    }
    // A file lists a link in each direction; one that is listed in one direction only is a link each way.
    let listed: BTreeSet<_> = rows.iter().map(|(from, to, _)| (*from, *to)).collect();
    for (from, to, attribute) in rows {
        if !listed.contains(&(to, from)) {
            drawn.edge(to, from, [attribute.clone()]);
        }
        drawn.edge(from, to, [attribute]);
    }
    drawn.network(true, &beside.of_backbone())
}
