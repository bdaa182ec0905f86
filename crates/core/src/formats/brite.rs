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
    let (mut announced, mut nodes) = ([None, None], 0);
    let count = |row: &[&str]| row.iter().find_map(|word| word.trim_matches(['(', ')']).parse::<usize>().ok());
    for (line, row) in words(text, "") {
        match (row[0], &section) {
            ("Nodes:", _) => (section, announced[0]) = (Section::Nodes, count(&row)),
            ("Edges:", _) => (section, announced[1]) = (Section::Edges, count(&row)),
            (_, Section::Head) => {}
            (name, Section::Nodes) => {
                if !drawn.node(name, None) {
                    return Err(at_line(line, "a second node has this number", "give every node a number of its own"));
                }
                nodes += 1;
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
    for (what, announced, found) in [("nodes", announced[0], nodes), ("edges", announced[1], edges.len())] {
        if let Some(announced) = announced.filter(|&announced| announced != found) {
            let what = format!("{announced} {what} are announced, {found} follow");
            return Err(InputError::new("", what, "let the two agree: the file may be cut"));
        }
    }
    for (from, to, directed, attributes) in edges {
        if !directed {
            drawn.edge(to, from, attributes.clone());
        }
        drawn.edge(from, to, attributes);
    }
    drawn.network(true, &beside.of_backbone())
}
