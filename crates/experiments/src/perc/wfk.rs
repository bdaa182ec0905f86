//! Figures 2.4 and 3.6 to 3.8 of the PERC thesis: the partitions, precedence graphs and freeze iterations of WF1, WF2
//! and water-filling.
//!
//! The figures show no numbers: capacities and paths are chosen to give the rates in the text.

use crate::{Context, ExperimentInfo};
use serde_json::{Value, json};
use subak_core::{Case, Flow, Flows, InputError, Link, LinkId, Network, Policy};
use subak_solve::freeze_iterations;
use subak_solve::structure::{Degree, EdgeKind, Structure, structure};

pub(super) const ENTRY: ExperimentInfo =
    ExperimentInfo { name: "perc-wfk", kind: crate::ExperimentKind::Solver, settings: &[], compute };

/// An edge: precedent link, kind, dependent link, and the medium link of an indirect edge.
type Edge = (u32, EdgeKind, u32, Option<u32>);

/// An example network. Links are numbered from 1.
struct Figure {
    /// Prefix of the network's keys in the results.
    key: &'static str,
    name: &'static str,
    /// Capacity of each link, Gb/s.
    links: &'static [f64],
    flows: &'static [(&'static str, &'static [u32])],
}

const DEGREES: [(&str, Degree); 3] = [("WF1", Degree::One), ("WF2", Degree::Two), ("WF-infinity", Degree::All)];

const FIGURES: &[Figure] = &[
    Figure {
        key: "2.4",
        name: "figures 2.4, 3.6 and 3.7",
        links: &[10.0, 15.0, 3.0],
        flows: &[("green", &[3, 2]), ("purple", &[1]), ("blue", &[1, 2]), ("orange", &[2])],
    },
    Figure {
        key: "3.8a",
        name: "figure 3.8a",
        links: &[10.0, 10.0, 6.0, 1.0],
        flows: &[("orange", &[4, 3]), ("green", &[3, 2]), ("blue", &[2, 1]), ("purple", &[1])],
    },
    Figure {
        key: "3.8b",
        name: "figure 3.8b",
        links: &[10.0, 18.0, 6.0, 1.0],
        flows: &[("orange", &[4, 3]), ("green", &[3, 2]), ("blue", &[1, 2]), ("purple", &[1]), ("brown", &[2])],
    },
];

fn compute(context: &mut Context) -> Result<(), InputError> {
    for figure in FIGURES {
        measure(context, figure)?;
    }
    context.report.note(
        "Partitions are those of the text where it names them; the others follow from Algorithm 7 by hand. Links are \
         numbered as in the figures.",
    );
    Ok(())
}

fn case_of(figure: &Figure) -> Result<Case, InputError> {
    let mut network = Network::new();
    for (n, gbps) in figure.links.iter().enumerate() {
        let id = (n + 1).to_string();
        network.add(Link { id, from: None, to: None, capacity_bps: gbps * 1e9, delay_ns: 0, buffer_bytes: None })?;
    }
    let mut flows = Flows::new();
    for (name, path) in figure.flows {
        flows.push(Flow::over(*name, path.iter().map(|l| LinkId(l - 1)).collect()), &network)?;
    }
    Ok(Case { network, flows, policy: Policy::MaxMin })
}

fn measure(context: &mut Context, figure: &Figure) -> Result<(), InputError> {
    let case = case_of(figure)?;
    let (mut rows, mut edges, mut depths) = (Vec::new(), Vec::new(), Vec::new());
    for (name, degree) in DEGREES {
        let found = structure(&case, degree)?;
        let from_1 = |part: &Vec<LinkId>| part.iter().map(|l| l.0 + 1).collect::<Vec<u32>>();
        let partition: Vec<Vec<u32>> = found.partition.iter().map(from_1).collect();
        let rates: Vec<f64> = found.rates_bps.iter().map(|r| r / 1e9).collect();
        let mut say = |what: &str, value: Value| context.report.value(&format!("{} {name} {what}", figure.key), value);
        say("partition", json!(partition));
        say("rates", json!(rates));
        say("precedence", json!(shown(&edges_of(&found))));
        for (n, partition) in partition.iter().enumerate() {
            let gbps: Vec<Value> = (1..=figure.links.len() as u32).map(|l| json!(share(&found, n + 1, l))).collect();
            for (l, gbps) in gbps.iter().enumerate().filter(|(_, gbps)| !gbps.is_null()) {
                say(&format!("link {} in iteration {}", l + 1, n + 1), gbps.clone());
            }
            rows.push(json!([name, n + 1, gbps, partition]));
        }
        edges.extend(edges_of(&found).into_iter().map(|(p, kind, l, via)| json!([name, p, kind.name(), l, via])));
        depths.push(found.longest_chain.len());
        if degree == Degree::Two {
            for (l, iteration) in freeze_iterations(&case, &found).into_iter().enumerate() {
                say(&format!("freeze of link {}", l + 1), json!(iteration));
            }
            say("bottlenecks", json!(bottlenecks(&case, &found)));
        }
    }
    context.report.value(&format!("{} chains", figure.key), depths);
    context.report.table(figure.name, &["algorithm", "iteration", "link_rates_gbps", "frozen"], rows);
    let columns = ["algorithm", "precedent", "kind", "link", "via"];
    context.report.table(&format!("precedence, {}", figure.name), &columns, edges);
    Ok(())
}

/// Fair-share rate of `link` in iteration `n`, Gb/s.
fn share(found: &Structure, n: usize, link: u32) -> Option<f64> {
    let shares = found.shares_bps.get(n - 1)?;
    shares.iter().find(|(l, _)| l.0 + 1 == link).map(|(_, share)| share / 1e9)
}

fn edges_of(found: &Structure) -> Vec<Edge> {
    found.precedence.iter().map(|p| (p.precedent.0 + 1, p.kind, p.link.0 + 1, p.via.map(|l| l.0 + 1))).collect()
}

/// The edges as text, sorted.
fn shown(edges: &[Edge]) -> Vec<String> {
    let one = |(from, kind, to, via): &Edge| {
        let via = via.map_or_else(String::new, |via| format!(" via {via}"));
        format!("{from} before {to} ({}{via})", kind.name())
    };
    let mut shown: Vec<String> = edges.iter().map(one).collect();
    shown.sort_unstable();
    shown
}

/// Bottleneck links of each flow: those of its path that are removed first.
fn bottlenecks(case: &Case, found: &Structure) -> Vec<Vec<u32>> {
    let removed = found.frozen_in(case.network.links().len());
    let at = |f: usize| -> Vec<u32> {
        let path = case.flows.links_of(f);
        let first = path.iter().filter_map(|&l| removed[l]).min();
        let mut links: Vec<u32> = path.iter().filter(|&&l| removed[l] == first).map(|l| l.0 + 1).collect();
        links.sort_unstable();
        links
    };
    (0..case.flows.len()).map(at).collect()
}
