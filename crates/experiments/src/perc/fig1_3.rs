//! Figure 1.3 and section 1.4 of the PERC thesis: flows A, B and C arrive one by one on a chain of 70, 30 and 10
//! Gb/s.

use crate::{Context, ExperimentInfo, ExperimentKind};
use serde_json::{Value, json};
use subak_core::scheme::Scheme;
use subak_core::{IdVec, InputError, LinkId, Ns};
use subak_rounds::run::params;
use subak_rounds::{Conditions, Rounds, RoundsPlan, Wire};
use subak_schemes::{Visitor, with_scheme};

pub(super) const ENTRY: ExperimentInfo =
    ExperimentInfo { name: "perc-fig1.3", kind: ExperimentKind::Rounds, settings: &[], compute };

/// RTT of every flow, ns. Half of the RTT is the delay of the flow's own first link; the other links have no delay.
const RTT_NS: Ns = 20_000;
/// Time between arrivals, RTTs.
const GAP_RTTS: u64 = 20;
const FLOWS: [&str; 3] = ["A", "B", "C"];
struct Arrivals {
    seed: u64,
}

/// Every change of a rate: time in RTTs, flow, and rate in Gb/s.
type Rates = Vec<(f64, usize, f64)>;

impl Visitor for Arrivals {
    type Out = Rates;
    const CONTROL_ONLY: bool = true;

    fn visit<S: Scheme>(self, scheme: S) -> Rates {
        let shared = [70e9, 30e9, 10e9].map(|capacity_bps| Wire { capacity_bps, delay_ns: 0 });
        let own = [Wire { capacity_bps: 1e12, delay_ns: RTT_NS / 2 }; 3];
        let wires: IdVec<LinkId, Wire> = shared.into_iter().chain(own).collect();
        let conditions = Conditions { jitter_ns: 0, drop: 0.0, drop_until_ns: 0, rtt_ns: RTT_NS, seed: self.seed };
        let mut rounds = Rounds::new(scheme, &wires, conditions, false);
        rounds.log_rates();
        let from_ns = 3 * RTT_NS;
        for (k, path) in [vec![3, 0], vec![4, 0, 1], vec![5, 1, 2]].into_iter().enumerate() {
            rounds.add(path.into_iter().map(LinkId).collect(), 1.0, from_ns + k as u64 * GAP_RTTS * RTT_NS, 0.0);
        }
        rounds.run_until(from_ns + 3 * GAP_RTTS * RTT_NS);
        let mut rates: Rates = Vec::new();
        let mut now = [f64::NAN; 3];
        for assigned in rounds.take_rates() {
            let flow = assigned.flow.index();
            let gbps = assigned.rate_bps / 1e9;
            if gbps != now[flow] {
                now[flow] = gbps;
                rates.push(((assigned.at_ns - from_ns) as f64 / RTT_NS as f64, flow, gbps));
            }
        }
        rates
    }
}

fn compute(context: &mut Context) -> Result<(), InputError> {
    for scheme in ["fair", "s-perc"] {
        let plan = RoundsPlan::default();
        let rates = with_scheme(scheme, &params(scheme, &plan, RTT_NS)?, Arrivals { seed: context.seed() })?;
        context.ran += 1;
        told(context, scheme, &rates);
        let points: Vec<Value> = rates.iter().map(|(at, flow, gbps)| json!([at, FLOWS[*flow], gbps])).collect();
        context.report.series(scheme, json!({"columns": ["rtts", "flow", "rate_gbps"], "points": points}));
    }
    context.report.setup("links_gbps", json!([70, 30, 10]));
    context.report.setup("paths", json!({"A": [1], "B": [1, 2], "C": [2, 3]}));
    Ok(())
}

/// Reports the rates assigned to each flow after each arrival, and the number of RTTs from the arrival.
fn told(context: &mut Context, scheme: &str, rates: &Rates) {
    let mut rows = Vec::new();
    for (event, arriving) in FLOWS.iter().enumerate() {
        let from = (event as u64 * GAP_RTTS) as f64;
        let mut changes: Vec<_> = rates.iter().filter(|(t, ..)| (from..from + GAP_RTTS as f64).contains(t)).collect();
        changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let say = |&&(t, flow, gbps): &&(f64, usize, f64)| {
            // Rounded, so that a rate which is exact up to rounding errors compares as equal.
            let gbps = (gbps * 1e9).round() / 1e9;
            format!("RTT {:.0}: {} {gbps}", (t - from - 1e-9).ceil(), FLOWS[flow])
        };
        let said: Vec<String> = changes.iter().map(say).collect();
        context.report.value(&format!("{scheme} {arriving}"), said);
        rows.extend(changes.iter().map(|(t, flow, gbps)| json!([arriving, t - from, FLOWS[*flow], gbps])));
    }
    context.report.table(scheme, &["event", "rtts_since", "flow", "rate_gbps"], rows);
}
