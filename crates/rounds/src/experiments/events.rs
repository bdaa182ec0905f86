//! Figure 1.3 and section 1.4: flows A, B and C arrive one by one on a chain of 70, 30 and 10 Gb/s.

use super::Context;
use crate::driver::{Conditions, Rounds, Wire};
use crate::run::{Plan, params};
use serde_json::{Value, json};
use subak_core::scheme::Scheme;
use subak_core::{Fault, Ns};
use subak_schemes::{Visitor, with_scheme};

/// Each flow has a link of its own before the shared ones, which alone takes time: all round trips are this long.
const RTT_NS: Ns = 20_000;
/// Time between arrivals, round trips.
const GAP_RTTS: u64 = 20;
const FLOWS: [&str; 3] = ["A", "B", "C"];
/// What section 1.4 says that the flows are told after each arrival: the round trip, the flow, its rate in Gb/s.
const TOLD: [&[(u64, usize, f64)]; 3] = [
    &[(1, 0, 70.0)],
    &[(1, 0, 35.0), (1, 1, 30.0), (2, 0, 40.0)],
    &[(1, 1, 15.0), (1, 2, 10.0), (2, 0, 55.0), (2, 1, 20.0), (3, 0, 50.0)],
];

struct Arrivals {
    seed: u64,
}

/// `(time in round trips, flow, rate in Gb/s)`, every change.
type Rates = Vec<(f64, usize, f64)>;

impl Visitor for Arrivals {
    type Out = Rates;
    const CONTROL_ONLY: bool = true;

    fn visit<S: Scheme>(self, scheme: S) -> Rates {
        let shared = [70e9, 30e9, 10e9].map(|capacity_bps| Wire { capacity_bps, delay_ns: 0 });
        let own = [Wire { capacity_bps: 1e12, delay_ns: RTT_NS / 2 }; 3];
        let wires: Vec<Wire> = shared.into_iter().chain(own).collect();
        let conditions = Conditions { jitter_ns: 0, drop: 0.0, drop_until_ns: 0, rtt_ns: RTT_NS, seed: self.seed };
        let mut rounds = Rounds::new(scheme, &wires, conditions, false);
        rounds.log_rates();
        let from_ns = 3 * RTT_NS;
        for (k, path) in [vec![3, 0], vec![4, 0, 1], vec![5, 1, 2]].into_iter().enumerate() {
            rounds.add(path, 1.0, from_ns + k as u64 * GAP_RTTS * RTT_NS, 0.0);
        }
        rounds.run_until(from_ns + 3 * GAP_RTTS * RTT_NS);
        let mut rates: Rates = Vec::new();
        let mut now = [f64::NAN; 3];
        for assigned in rounds.take_rates() {
            let flow = assigned.flow as usize;
            let gbps = assigned.rate_bps / 1e9;
            if gbps != now[flow] {
                now[flow] = gbps;
                rates.push(((assigned.at_ns - from_ns) as f64 / RTT_NS as f64, flow, gbps));
            }
        }
        rates
    }
}

pub(super) fn fig_1_3(context: &mut Context) -> Result<(), Fault> {
    for scheme in ["fair", "s-perc"] {
        let plan = Plan::default();
        let rates = with_scheme(scheme, &params(scheme, &plan, RTT_NS)?, Arrivals { seed: context.seed })?;
        context.ran += 1;
        judge(context, scheme, &rates);
        let points: Vec<Value> = rates.iter().map(|(at, flow, gbps)| json!([at, FLOWS[*flow], gbps])).collect();
        context
            .report
            .series
            .insert(scheme.into(), json!({"columns": ["rtts", "flow", "rate_gbps"], "points": points}));
    }
    context.report.setup("links_gbps", json!([70, 30, 10]));
    context.report.setup("paths", json!({"A": [1], "B": [1, 2], "C": [2, 3]}));
    Ok(())
}

fn judge(context: &mut Context, scheme: &str, rates: &Rates) {
    let mut rows = Vec::new();
    for (event, told) in TOLD.iter().enumerate() {
        let from = (event as u64 * GAP_RTTS) as f64;
        let mut changes: Vec<_> = rates.iter().filter(|(t, ..)| (from..from + GAP_RTTS as f64).contains(t)).collect();
        changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let show = |t: f64, flow: usize, gbps: f64| json!([t, FLOWS[flow], gbps]);
        let measured: Value = changes.iter().map(|&&(t, flow, gbps)| show(t - from, flow, gbps)).collect();
        let published: Value = told.iter().map(|&(t, flow, gbps)| show(t as f64, flow, gbps)).collect();
        let same = |(&&(t, flow, gbps), &(at, who, rate)): (&&(f64, usize, f64), &(u64, usize, f64))| {
            t - from <= at as f64 + 1e-9 && flow == who && (gbps / rate - 1.0).abs() < 1e-9
        };
        let pass = changes.len() == told.len() && changes.iter().zip(*told).all(same);
        let must = "the rates, [round trips after the start, flow, Gb/s], within 3 round trips";
        context.report.check(&format!("{scheme}: {} starts", FLOWS[event]), published, measured, must, pass);
        rows.extend(changes.iter().map(|(t, flow, gbps)| json!([FLOWS[event], t - from, FLOWS[*flow], gbps])));
    }
    context.report.table(scheme, &["event", "rtts_since", "flow", "rate_gbps"], rows);
}
