//! Figures 2.4 and 3.6 to 3.8: the partitions, precedence graphs and freeze iterations of WF1, WF2 and water-filling.
//!
//! The figures are pictures; capacities and paths here are those that fit the text's rates.

use super::Context;
use crate::driver::Wire;
use crate::levels::{Kind, Reach};
use crate::setup::{DELAY_NS, Setup};
use serde_json::{Value, json};
use subak_core::Fault;

struct Figure {
    name: &'static str,
    /// Gb/s, links numbered from 1.
    links: &'static [f64],
    flows: &'static [(&'static str, &'static [u32])],
    /// Gb/s, in the order of the flows.
    rates: &'static [f64],
    /// Links of each iteration of WF1, WF2, water-filling.
    partitions: [&'static [&'static [u32]]; 3],
    /// Edges of the WF2 precedence graph that the text names: precedent, kind, of which link.
    edges: &'static [(u32, Kind, u32)],
    /// Freeze iterations that the text names.
    freezes: &'static [(u32, usize)],
}

const FIGURES: &[Figure] = &[
    Figure {
        name: "figures 2.4, 3.6 and 3.7",
        links: &[10.0, 15.0, 3.0],
        flows: &[("green", &[3, 2]), ("purple", &[1]), ("blue", &[1, 2]), ("orange", &[2])],
        rates: &[3.0, 5.0, 5.0, 7.0],
        partitions: [&[&[1, 3], &[2]], &[&[3], &[1], &[2]], &[&[3], &[1], &[2]]],
        edges: &[(1, Kind::Direct, 2), (3, Kind::SecondDirect, 1)],
        freezes: &[(1, 1)],
    },
    Figure {
        name: "figure 3.8a",
        links: &[10.0, 10.0, 6.0, 1.0],
        flows: &[("orange", &[4, 3]), ("green", &[3, 2]), ("blue", &[2, 1]), ("purple", &[1])],
        rates: &[1.0, 5.0, 5.0, 5.0],
        partitions: [&[&[1, 4], &[2, 3]], &[&[4], &[1, 2, 3]], &[&[4], &[1, 2, 3]]],
        edges: &[(4, Kind::Direct, 3), (4, Kind::Indirect, 2), (4, Kind::SecondIndirect, 1)],
        freezes: &[(1, 1)],
    },
    Figure {
        name: "figure 3.8b",
        links: &[10.0, 18.0, 6.0, 1.0],
        flows: &[("orange", &[4, 3]), ("green", &[3, 2]), ("blue", &[1, 2]), ("purple", &[1]), ("brown", &[2])],
        rates: &[1.0, 5.0, 5.0, 5.0, 8.0],
        partitions: [&[&[1, 4], &[3], &[2]], &[&[4], &[1, 3], &[2]], &[&[4], &[1, 3], &[2]]],
        edges: &[(4, Kind::Direct, 3), (4, Kind::SecondIndirect, 1), (1, Kind::Direct, 2), (3, Kind::Direct, 2)],
        freezes: &[(1, 1)],
    },
];

pub(super) fn wfk(context: &mut Context) -> Result<(), Fault> {
    for figure in FIGURES {
        check(context, figure);
        context.ran += 1;
    }
    context.report.note(
        "Partitions are those of the text where it names them; the others follow from Algorithm 7 by hand. Links are \
         numbered as in the figures.",
    );
    Ok(())
}

fn check(context: &mut Context, figure: &Figure) {
    let wire = |&gbps: &f64| Wire { capacity_bps: gbps * 1e9, delay_ns: DELAY_NS };
    let setup = Setup {
        wires: figure.links.iter().map(wire).collect(),
        paths: figure.flows.iter().map(|(_, path)| path.iter().map(|l| l - 1).collect()).collect(),
        weights: vec![1.0; figure.flows.len()],
    };
    let mut rows = Vec::new();
    let reaches = [("WF1", Reach::One), ("WF2", Reach::Two), ("WF-infinity", Reach::All)];
    for ((name, reach), published) in reaches.into_iter().zip(figure.partitions) {
        let levels = setup.levels(reach);
        let links_of = |n: usize| -> Vec<u32> {
            (1..=figure.links.len() as u32).filter(|&l| levels.of_link[l as usize - 1] == n).collect()
        };
        let partition: Vec<Vec<u32>> = (1..=levels.count).map(links_of).collect();
        let rates: Vec<f64> = levels.rate.iter().map(|r| r / 1e9).collect();
        let must = "the rates and the partition, exactly";
        let pass = partition == published && rates == figure.rates;
        let measured = json!({"partition": partition, "rates_gbps": rates});
        let expected = json!({"partition": published, "rates_gbps": figure.rates});
        context.report.check(&format!("{name}, {}", figure.name), expected, measured, must, pass);
        for (n, partition) in partition.iter().enumerate() {
            let shares = setup.link_rates(&levels, n + 1);
            let gbps = shares.iter().map(|r| if r.is_finite() { json!(r / 1e9) } else { Value::Null });
            rows.push(json!([name, n + 1, gbps.collect::<Vec<_>>(), partition]));
        }
    }
    graph(context, figure, &setup);
    let columns = ["algorithm", "iteration", "link_rates_gbps", "frozen"];
    context.report.table(figure.name, &columns, rows);
}

fn graph(context: &mut Context, figure: &Figure, setup: &Setup) {
    let levels = setup.levels(Reach::Two);
    let mut edges = Vec::new();
    for l in 0..figure.links.len() as u32 {
        let before = levels.of_link[l as usize].saturating_sub(1).max(1);
        let rates = setup.link_rates(&levels, before);
        for p in levels.precedents(&setup.paths, &rates, l, true) {
            edges.push((p.link + 1, p.kind, l + 1));
        }
    }
    let show = |edges: &[(u32, Kind, u32)]| -> Value {
        edges.iter().map(|(from, kind, to)| json!([from, format!("{kind:?}"), to])).collect()
    };
    let pass = edges.len() == figure.edges.len() && figure.edges.iter().all(|edge| edges.contains(edge));
    let name = format!("WF2 precedence graph, {}", figure.name);
    context.report.check(&name, show(figure.edges), show(&edges), "the edges and their kinds", pass);
    for &(link, iteration) in figure.freezes {
        let measured = setup.freeze_iteration(&levels, link - 1);
        let name = format!("freeze iteration of link {link}, {}", figure.name);
        context.report.check(&name, iteration, measured, "the iteration", measured == Some(iteration));
    }
}
