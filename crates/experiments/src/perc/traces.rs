//! Figures 2.3, 3.2 and 3.4 of the PERC thesis: two flows over three links, with every number of each update in the
//! order of the figure.

use crate::Context;
use serde_json::{Value, json};
use subak_core::{Case, Flow, Flows, InputError, Link, LinkId, Network, Policy};
use subak_rounds::{ConvergeOptions, converge};

/// Order of a figure's updates, by round: flow and link.
pub(super) type Order = [[(&'static str, &'static str); 4]];

pub(super) const B20: (&str, &str) = ("fB", "l20");
pub(super) const B30: (&str, &str) = ("fB", "l30");
pub(super) const W30: (&str, &str) = ("fW", "l30");
pub(super) const W12: (&str, &str) = ("fW", "l12");

fn case() -> Result<Case, InputError> {
    let mut network = Network::new();
    for (id, gbps) in [("l20", 20.0), ("l30", 30.0), ("l12", 12.0)] {
        let id = id.to_string();
        network.add(Link { id, from: None, to: None, capacity_bps: gbps * 1e9, delay_ns: 0, buffer_bytes: None })?;
    }
    let mut flows = Flows::new();
    flows.push(Flow::over("fB", LinkId::each([0, 1]).into()), &network)?;
    flows.push(Flow::over("fW", LinkId::each([1, 2]).into()), &network)?;
    Ok(Case { network, flows, policy: Policy::MaxMin })
}

/// Replays the updates in `order`. A row has e, b and a of the thesis in Gb/s, then the values that `more` names.
pub(super) fn replay(context: &mut Context, scheme: &str, order: &Order, more: &[&str]) -> Result<(), InputError> {
    let mut steps = Vec::new();
    for round in order {
        steps.extend(round.iter().map(|(flow, link)| json!([flow, link])));
        steps.push(json!("round"));
    }
    let answer = converge(
        &case()?,
        scheme,
        &ConvergeOptions { order: Some(Value::Array(steps)), ..ConvergeOptions::default() },
    )?;
    let rounds = order.iter().enumerate().flat_map(|(k, round)| round.iter().map(move |step| (k + 1, step)));
    let updates = answer["trace"].as_array().cloned().unwrap_or_default();
    let mut table = Vec::new();
    for (n, ((round, (flow, link)), update)) in rounds.zip(&updates).enumerate() {
        let gbps = |name: &str| update[name].as_f64().map(|x| x / 1e9);
        // An unlimited rate e is shown as "inf".
        let mut told = vec![gbps("e").map_or_else(|| json!("inf"), |e| json!(e)), json!(gbps("b")), json!(gbps("a"))];
        told.extend(more.iter().map(|name| update[*name].clone()));
        context.report.value(&format!("update {}", n + 1), told);
        let sums = ["SumE", "MaxE", "MaxE'"].map(|name| json!(gbps(name)));
        table.push(json!([
            round,
            flow,
            link,
            gbps("e"),
            gbps("b"),
            gbps("a"),
            update["state"],
            update["ignore"],
            sums[0],
            update["NumB"],
            sums[1],
            sums[2],
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
    ];
    context.report.table("updates", &columns, table);
    context.report.setup("links_gbps", json!({"l20": 20, "l30": 30, "l12": 12}));
    context.report.setup("flows", json!({"fB": ["l20", "l30"], "fW": ["l30", "l12"]}));
    context.report.setup("scheme", scheme);
    context.report.note("f_W and f_G are the same flow. MaxE is shown after the update.");
    Ok(())
}

/// Order of the updates in figures 3.2 and 3.4.
pub(super) const THREE_ROUNDS: &Order = &[[B20, B30, W30, W12], [W30, W12, B20, B30], [W30, W12, B30, B20]];
