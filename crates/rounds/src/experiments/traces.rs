//! Figures 2.3, 3.2 and 3.4: two flows over three links, the updates in the order listed, every number of every row.
//!
//! Where the text's cells are garbled, the algorithm decides; the notes say which.

use super::Context;
use crate::converge::{Options, converge};
use serde_json::{Value, json};
use subak_core::{Case, Fault, Flow, Flows, Link, Network, Policy};

/// One row of a figure: flow, link, then the figure's numbers in Gb/s, `None` for infinity.
struct Row {
    flow: &'static str,
    link: &'static str,
    e: Option<f64>,
    b: f64,
    a: f64,
    state: Option<&'static str>,
    ignore: Option<bool>,
}

const B: Option<&str> = Some("B");
const E: Option<&str> = Some("E");

fn row(flow: &'static str, link: &'static str, e: f64, b: f64, a: f64) -> Row {
    Row { flow, link, e: Some(e).filter(|e| e.is_finite()), b, a, state: None, ignore: None }
}

fn case() -> Result<Case, Fault> {
    let mut network = Network::new();
    for (id, gbps) in [("l20", 20.0), ("l30", 30.0), ("l12", 12.0)] {
        let id = id.to_string();
        network.add(Link { id, from: None, to: None, capacity_bps: gbps * 1e9, delay_ns: 0, buffer_bytes: None })?;
    }
    let mut flows = Flows::new();
    flows.push(Flow::over("fB", vec![0, 1]), &network)?;
    flows.push(Flow::over("fW", vec![1, 2]), &network)?;
    Ok(Case { network, flows, policy: Policy::MaxMin })
}

/// Replays `rounds` of updates and holds each against its row.
fn replay(context: &mut Context, scheme: &str, rounds: &[Vec<Row>]) -> Result<(), Fault> {
    let mut order = Vec::new();
    for rows in rounds {
        order.extend(rows.iter().map(|row| json!([row.flow, row.link])));
        order.push(json!("round"));
    }
    let answer = converge(&case()?, scheme, &Options { order: Some(Value::Array(order)), ..Options::default() })?;
    let published = rounds.iter().enumerate().flat_map(|(k, rows)| rows.iter().map(move |row| (k + 1, row)));
    let updates = answer["trace"].as_array().cloned().unwrap_or_default();
    let (mut right, mut cells, mut table) = (0, 0, Vec::new());
    for ((round, row), update) in published.zip(&updates) {
        let gbps = |name: &str| update[name].as_f64().map(|x| x / 1e9);
        let mut held = vec![gbps("e") == row.e, gbps("b") == Some(row.b), gbps("a") == Some(row.a)];
        held.extend(row.state.map(|s| update["state"] == s));
        held.extend(row.ignore.map(|i| update["ignore"] == i));
        right += held.iter().filter(|h| **h).count();
        cells += held.len();
        let sums = ["SumE", "MaxE", "MaxE'"].map(|name| json!(gbps(name)));
        table.push(json!([
            round, row.flow, row.link, gbps("e"), gbps("b"), gbps("a"), update["state"], update["ignore"], sums[0],
            update["NumB"], sums[1], sums[2],
            {"e": row.e, "b": row.b, "a": row.a, "state": row.state, "ignore": row.ignore}, held.iter().all(|h| *h),
        ]));
    }
    let columns = [
        "round",
        "flow",
        "link",
        "e_gbps",
        "b_gbps",
        "a_gbps",
        "state",
        "ignore",
        "SumE_gbps",
        "NumB",
        "MaxE_gbps",
        "MaxE'_gbps",
        "published",
        "equal",
    ];
    context.ran = 1;
    context.report.table("updates", &columns, table);
    context.report.setup("links_gbps", json!({"l20": 20, "l30": 30, "l12": 12}));
    context.report.setup("flows", json!({"fB": ["l20", "l30"], "fW": ["l30", "l12"]}));
    context.report.setup("scheme", scheme);
    context.report.check("cells", cells, right, "every number of every row", right == cells && cells > 0);
    context.report.note("f_W and f_G are the same flow. An e without limit is null. MaxE is shown after the update.");
    Ok(())
}

pub(super) fn fig_2_3(context: &mut Context) -> Result<(), Fault> {
    let inf = f64::INFINITY;
    let rounds = [
        vec![
            row("fB", "l20", inf, 20.0, 20.0),
            row("fB", "l30", 20.0, 30.0, 20.0),
            row("fW", "l30", inf, 15.0, 15.0),
            row("fW", "l12", 15.0, 12.0, 12.0),
        ],
        vec![
            row("fW", "l30", 12.0, 15.0, 12.0),
            row("fW", "l12", 15.0, 12.0, 12.0),
            row("fB", "l20", 30.0, 20.0, 20.0),
            row("fB", "l30", 20.0, 18.0, 18.0),
        ],
    ];
    context.report.note("At the end of round 2 the text swaps b[l30] of f_B (18) and f_W (15).");
    replay(context, "fair", &rounds)
}

/// The updates that figures 3.2 and 3.4 share, but for what n-PERC and s-PERC make of f_W.
fn state(row: Row, state: Option<&'static str>) -> Row {
    Row { state, ..row }
}

pub(super) fn fig_3_2(context: &mut Context) -> Result<(), Fault> {
    let inf = f64::INFINITY;
    let rounds = [
        vec![
            state(row("fB", "l20", inf, 20.0, 20.0), B),
            state(row("fB", "l30", 20.0, 30.0, 20.0), E),
            state(row("fW", "l30", inf, 10.0, 10.0), B),
            state(row("fW", "l12", 10.0, 12.0, 10.0), E),
        ],
        vec![
            state(row("fW", "l30", 12.0, 10.0, 10.0), B),
            state(row("fW", "l12", 10.0, 12.0, 10.0), E),
            state(row("fB", "l20", 30.0, 20.0, 20.0), B),
            state(row("fB", "l30", 20.0, 15.0, 15.0), B),
        ],
        vec![
            state(row("fW", "l30", 12.0, 15.0, 12.0), E),
            state(row("fW", "l12", 15.0, 12.0, 12.0), B),
            state(row("fB", "l30", 20.0, 18.0, 18.0), B),
            state(row("fB", "l20", 18.0, 20.0, 18.0), E),
        ],
    ];
    context.report.note(
        "The text's link states do not follow from its own rows: after round 1 l30 has NumB = 1 and SumE = 20, and after \
         rounds 1 and 2 l12 has NumB = 0 and SumE = 10.",
    );
    replay(context, "n-perc", &rounds)
}

pub(super) fn fig_3_4(context: &mut Context) -> Result<(), Fault> {
    let inf = f64::INFINITY;
    let full = |row: Row, state, ignore| Row { state, ignore: Some(ignore), ..row };
    let rounds = [
        vec![
            full(row("fB", "l20", inf, 20.0, 20.0), B, false),
            full(row("fB", "l30", 20.0, 30.0, 20.0), E, false),
            full(row("fW", "l30", inf, 10.0, 10.0), B, true),
            full(row("fW", "l12", inf, 12.0, 12.0), B, false),
        ],
        vec![
            full(row("fW", "l30", 12.0, 10.0, 10.0), B, true),
            full(row("fW", "l12", inf, 12.0, 12.0), B, false),
            full(row("fB", "l20", 30.0, 20.0, 20.0), B, false),
            full(row("fB", "l30", 20.0, 15.0, 15.0), B, true),
        ],
        vec![
            full(row("fW", "l30", 12.0, 15.0, 12.0), E, false),
            full(row("fW", "l12", 15.0, 12.0, 12.0), B, false),
            full(row("fB", "l30", 20.0, 18.0, 18.0), B, false),
            full(row("fB", "l20", 18.0, 20.0, 18.0), E, false),
        ],
    ];
    context.report.note(
        "Garbled in the text: after round 1 f_W carries b[l30] = 10 (ignored), after round 2 f_B b[l20] = 20 and b[l30] = 15 \
         (ignored), after round 3 l30 has NumB = 1 and SumE = 12.",
    );
    replay(context, "s-perc", &rounds)
}
