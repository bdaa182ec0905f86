//! Topologies of TEAVAR (Bogle et al., SIGCOMM 2019): a line of titles, then two nodes, the capacity of the link from the
//! first to the second, and its probability of failure, which is not used. The first column is called `to_node`, and TEAVAR
//! reads it as the source. A file states no unit of capacities.

use super::drawn::{Drawn, rate_in, words};
use super::{Defaults, at_line, refuse_beside};
use crate::{InputError, Network};

/// Whether a text begins as a topology of TEAVAR.
pub(super) fn is_topology(text: &str) -> bool {
    let mut titles = text.split_whitespace();
    titles.next() == Some("to_node") && titles.next() == Some("from_node")
}

/// Parses a topology.
pub(super) fn network(text: &str, beside: &Defaults) -> Result<Network, InputError> {
    refuse_beside(beside, &["capacity", "range"], "each link has its own")?;
    let unit = beside.unit.as_deref().ok_or_else(|| {
        InputError::new("unit", "TEAVAR's files state no unit", "give one beside the file, such as unit = \"kbps\"")
    })?;
    let mut drawn = Drawn::default();
    for (line, row) in words(text, "").skip(1) {
        let [from, to, capacity, fails] = row[..] else {
            return Err(at_line(line, "is no link", "give two nodes, capacity and probability of failure"));
        };
        drawn.node(from, None);
        drawn.node(to, None);
        drawn.edge(from, to, [("capacity", rate_in(line, capacity, unit)?), ("prob_failure", fails.into())]);
    }
    drawn.network(true, &beside.of_backbone())
}
