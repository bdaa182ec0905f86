//! Topologies of BRITE (Medina et al., 2001): sections `Nodes: (n)` and `Edges: (m)`. Bandwidth is in Mbit/s and delay
//! in milliseconds, as ns-3 and CloudSim read them.

use super::drawn::{Drawn, rate_in, time_in, words};
use super::{Defaults, at_line, refuse_beside};
use crate::{InputError, Network};

const UNIT: &str = "Mbps";

enum Section {
    Head,
    Nodes,
    Edges,
}

/// Parses a topology.
pub(super) fn network(text: &str, beside: &Defaults) -> Result<Network, InputError> {
    refuse_beside(beside, &["capacity", "delay", "range"], "each edge has its own")?;
    let unit = beside.unit.as_deref().unwrap_or(UNIT);
    let (mut drawn, mut section) = (Drawn::default(), Section::Head);
    // A file states whether each edge is directed; a file of both kinds has links each way as two edges.
    let mut edges = Vec::new();
    for (line, row) in words(text, "") {
        match (row[0], &section) {
            ("Nodes:", _) => section = Section::Nodes,
            ("Edges:", _) => section = Section::Edges,
            (_, Section::Head) => {}
            (name, Section::Nodes) => {
                if !drawn.node(name, None) {
                    return Err(at_line(line, "a second node has this number", "give every node a number of its own"));
                }
            }
            (_, Section::Edges) => {
                let [_, from, to, _, delay, capacity, ..] = row[..] else {
                    let hint = "give id, source, destination, length, delay, bandwidth, both ASes and type";
                    return Err(at_line(line, "is no edge", hint));
                };
                drawn.check(from, line)?;
                drawn.check(to, line)?;
                let attributes = [("capacity", rate_in(line, capacity, unit)?), ("delay", time_in(line, delay, "ms")?)];
                edges.push((from, to, row.last() == Some(&"D"), attributes));
            }
        }
    }
    if edges.is_empty() {
        return Err(InputError::new("", "the file has no edges", "give the sections Nodes: and Edges:, as BRITE does"));
    }
    for (from, to, directed, attributes) in edges {
        if !directed {
            drawn.edge(to, from, attributes.clone());
        }
        drawn.edge(from, to, attributes);
    }
    drawn.network(true, &beside.of_backbone())
}
