//! Figures 2.4 and 3.6 to 3.8: the partitions, precedence graphs and freeze iterations of WF1, WF2 and water-filling.
//!
//! The figures are pictures; capacities and paths here are those that fit the text's rates.

use super::Context;
use crate::driver::Wire;
use crate::setup::{DELAY_NS, Setup};
use serde_json::{Value, json};
use subak_core::{Case, Fault, LinkId};
use subak_solve::freeze_iterations;
use subak_solve::structure::{Degree, Kind, Structure, structure};

/// Precedent, how, of which link, and the medium link.
type Edge = (u32, Kind, u32, Option<u32>);

/// What is known of one example. Links are numbered from 1.
struct Figure {
    name: &'static str,
    /// Gb/s.
    links: &'static [f64],
    flows: &'static [(&'static str, &'static [u32])],
    /// Gb/s, in the order of the flows.
    rates: &'static [f64],
    /// The links at which the text says each flow is bottlenecked.
    bottlenecks: &'static [&'static [u32]],
    /// Links of each iteration of WF1, WF2, water-filling.
    partitions: [&'static [&'static [u32]]; 3],
    /// All edges of the precedence graphs that are drawn.
    edges: &'static [(Degree, &'static [Edge])],
    /// Rates that the text names: in which algorithm and iteration, of which link, Gb/s.
    shares: &'static [(Degree, usize, u32, f64)],
    /// Freeze iterations of WF2 that the text names.
    freezes: &'static [(u32, usize)],
}

const DEGREES: [(&str, Degree); 3] = [("WF1", Degree::One), ("WF2", Degree::Two), ("WF-infinity", Degree::All)];

const FIGURES: &[Figure] = &[
    Figure {
        name: "figures 2.4, 3.6 and 3.7",
        links: &[10.0, 15.0, 3.0],
        flows: &[("green", &[3, 2]), ("purple", &[1]), ("blue", &[1, 2]), ("orange", &[2])],
        rates: &[3.0, 5.0, 5.0, 7.0],
        bottlenecks: &[&[3], &[1], &[1], &[2]],
        partitions: [&[&[1, 3], &[2]], &[&[3], &[1], &[2]], &[&[3], &[1], &[2]]],
        edges: &[
            (Degree::One, &[(3, Kind::Direct, 2, None)]),
            (Degree::Two, &[(1, Kind::Direct, 2, None), (3, Kind::SecondDirect, 1, None)]),
        ],
        shares: &[
            (Degree::One, 1, 3, 3.0),
            (Degree::One, 1, 2, 5.0),
            (Degree::Two, 1, 1, 5.0),
            (Degree::Two, 1, 2, 5.0),
            (Degree::Two, 1, 3, 3.0),
            (Degree::Two, 2, 2, 6.0),
            (Degree::Two, 3, 2, 7.0),
        ],
        freezes: &[(1, 1)],
    },
    Figure {
        name: "figure 3.8a",
        links: &[10.0, 10.0, 6.0, 1.0],
        flows: &[("orange", &[4, 3]), ("green", &[3, 2]), ("blue", &[2, 1]), ("purple", &[1])],
        rates: &[1.0, 5.0, 5.0, 5.0],
        bottlenecks: &[&[4], &[2, 3], &[1, 2], &[1]],
        partitions: [&[&[1, 4], &[2, 3]], &[&[4], &[1, 2, 3]], &[&[4], &[1, 2, 3]]],
        edges: &[(
            Degree::Two,
            &[(4, Kind::Direct, 3, None), (4, Kind::Indirect, 2, Some(3)), (4, Kind::SecondIndirect, 1, Some(3))],
        )],
        shares: &[
            (Degree::Two, 1, 3, 3.0),
            (Degree::Two, 1, 1, 5.0),
            (Degree::Two, 2, 1, 5.0),
            (Degree::Two, 2, 2, 5.0),
            (Degree::Two, 2, 3, 5.0),
        ],
        freezes: &[],
    },
    Figure {
        name: "figure 3.8b",
        links: &[10.0, 18.0, 6.0, 1.0],
        flows: &[("orange", &[4, 3]), ("green", &[3, 2]), ("blue", &[1, 2]), ("purple", &[1]), ("brown", &[2])],
        rates: &[1.0, 5.0, 5.0, 5.0, 8.0],
        bottlenecks: &[&[4], &[3], &[1], &[1], &[2]],
        partitions: [&[&[1, 4], &[3], &[2]], &[&[4], &[1, 3], &[2]], &[&[4], &[1, 3], &[2]]],
        edges: &[(
            Degree::Two,
            &[
                (4, Kind::Direct, 3, None),
                (4, Kind::SecondIndirect, 1, Some(3)),
                (1, Kind::Direct, 2, None),
                (3, Kind::Direct, 2, None),
            ],
        )],
        shares: &[
            (Degree::Two, 1, 3, 3.0),
            (Degree::Two, 2, 1, 5.0),
            (Degree::Two, 2, 3, 5.0),
            (Degree::Two, 3, 2, 8.0),
        ],
        freezes: &[],
    },
];

pub(super) fn wfk(context: &mut Context) -> Result<(), Fault> {
    for figure in FIGURES {
        check(context, figure)?;
        context.ran += 1;
    }
    context.report.note(
        "Partitions are those of the text where it names them; the others follow from Algorithm 7 by hand. Links are \
         numbered as in the figures.",
    );
    Ok(())
}

fn case_of(figure: &Figure) -> Result<Case, Fault> {
    let wire = |&gbps: &f64| Wire { capacity_bps: gbps * 1e9, delay_ns: DELAY_NS };
    let setup = Setup {
        wires: figure.links.iter().map(wire).collect(),
        paths: figure.flows.iter().map(|(_, path)| path.iter().map(|l| l - 1).collect()).collect(),
        weights: vec![1.0; figure.flows.len()],
    };
    setup.to_case()
}

fn check(context: &mut Context, figure: &Figure) -> Result<(), Fault> {
    let case = case_of(figure)?;
    let (mut rows, mut edges, mut depths) = (Vec::new(), Vec::new(), Vec::new());
    for ((name, degree), published) in DEGREES.into_iter().zip(figure.partitions) {
        let found = structure(&case, degree)?;
        let from_1 = |part: &Vec<LinkId>| part.iter().map(|l| l + 1).collect::<Vec<u32>>();
        let partition: Vec<Vec<u32>> = found.partition.iter().map(from_1).collect();
        let rates: Vec<f64> = found.rates_bps.iter().map(|r| r / 1e9).collect();
        let must = "the rates and the partition, exactly";
        let pass = partition == published && rates == figure.rates;
        let measured = json!({"partition": partition, "rates_gbps": rates});
        let expected = json!({"partition": published, "rates_gbps": figure.rates});
        context.report.check(&format!("{name}, {}", figure.name), expected, measured, must, pass);
        for (n, partition) in partition.iter().enumerate() {
            let gbps: Vec<Value> = (1..=figure.links.len() as u32).map(|l| json!(share(&found, n + 1, l))).collect();
            rows.push(json!([name, n + 1, gbps, partition]));
        }
        edges.extend(edges_of(&found).into_iter().map(|(p, kind, l, via)| json!([name, p, kind.name(), l, via])));
        named(context, figure, name, &case, &found);
        depths.push(found.longest_chain.len());
    }
    let name = format!("links in the longest chain of WF1, WF2 and WF-infinity, {}", figure.name);
    let iterations = figure.partitions.map(<[_]>::len);
    context.report.check(&name, json!(iterations), json!(depths), "as many as iterations", depths == iterations);
    context.report.table(figure.name, &["algorithm", "iteration", "link_rates_gbps", "frozen"], rows);
    let columns = ["algorithm", "precedent", "kind", "link", "via"];
    context.report.table(&format!("precedence, {}", figure.name), &columns, edges);
    Ok(())
}

/// The rate of `link` in iteration `n`, Gb/s.
fn share(found: &Structure, n: usize, link: u32) -> Option<f64> {
    let shares = found.shares_bps.get(n - 1)?;
    shares.iter().find(|(l, _)| l + 1 == link).map(|(_, share)| share / 1e9)
}

fn edges_of(found: &Structure) -> Vec<Edge> {
    found.precedence.iter().map(|p| (p.precedent + 1, p.kind, p.link + 1, p.via.map(|l| l + 1))).collect()
}

/// What the text names of `degree`'s algorithm: rates, edges, freeze iterations, and where each flow is bottlenecked.
fn named(context: &mut Context, figure: &Figure, name: &str, case: &Case, found: &Structure) {
    for (_, n, link, gbps) in figure.shares.iter().filter(|(degree, ..)| *degree == found.degree) {
        let measured = share(found, *n, *link);
        let what = format!("{name}: rate of link {link} in iteration {n}, Gb/s, {}", figure.name);
        context.report.check(&what, *gbps, measured, "exactly", measured == Some(*gbps));
    }
    let show = |edges: &[Edge]| -> Value {
        let one = |(from, kind, to, via): &Edge| {
            let via = via.map_or_else(String::new, |via| format!(" via {via}"));
            format!("{from} before {to} ({}{via})", kind.name())
        };
        let mut shown: Vec<String> = edges.iter().map(one).collect();
        shown.sort_unstable();
        json!(shown)
    };
    for (_, published) in figure.edges.iter().filter(|(degree, _)| *degree == found.degree) {
        let edges = edges_of(found);
        let pass = edges.len() == published.len() && published.iter().all(|edge| edges.contains(edge));
        let what = format!("{name} precedence graph, {}", figure.name);
        context.report.check(&what, show(published), show(&edges), "the edges, their kinds and medium links", pass);
    }
    if found.degree != Degree::Two {
        return;
    }
    let freezes = freeze_iterations(case, found);
    for &(link, iteration) in figure.freezes {
        let measured = freezes[link as usize - 1];
        let what = format!("freeze iteration of link {link}, {}", figure.name);
        context.report.check(&what, iteration, measured, "the iteration", measured == Some(iteration));
    }
    let removed = found.frozen_in(figure.links.len());
    let at = |f: usize| -> Vec<u32> {
        let path = case.flows.links_of(f).iter().map(|l| l + 1);
        let first = path.clone().filter_map(|l| removed[l as usize - 1]).min();
        let mut links: Vec<u32> = path.filter(|&l| removed[l as usize - 1] == first).collect();
        links.sort_unstable();
        links
    };
    let measured: Vec<Vec<u32>> = (0..figure.flows.len()).map(at).collect();
    let what = format!("links at which the flows are bottlenecked, {}", figure.name);
    context.report.check(
        &what,
        json!(figure.bottlenecks),
        json!(measured),
        "the links",
        measured == figure.bottlenecks,
    );
}
