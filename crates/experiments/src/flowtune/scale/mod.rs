//! Flowtune beyond one allocator that knows every path (section 6): intermediaries, one big switch, one allocator per
//! pod. Also the fraction of communication in a parallel iteration (section 5.2).

mod knowledge;
mod telling;

use super::table_multicore;
use crate::{Context, ExperimentInfo, ExperimentKind};
use knowledge::UtilityLoss;
use serde_json::{Value, json};
use subak_core::InputError;

pub(super) const ENTRY: ExperimentInfo =
    ExperimentInfo { name: "flowtune-scale", kind: ExperimentKind::Solver, settings: SETTINGS, compute };

/// `steps`: measured steps of 10 us; `warmup`: steps before them; `flows_a_host`: flows per host where rates are
/// compared with the optimum; `k`: ports of the fat-tree's switches; `seconds`: measuring time of an iteration;
/// `rows`: rows of the table of section 5.2.
const SETTINGS: &[&str] = &["steps", "warmup", "flows_a_host", "k", "seconds", "rows"];

/// Hosts per intermediary: one rack, and three racks; 1 means no intermediary.
const GROUPS: [usize; 3] = [1, 16, 48];

fn compute(context: &mut Context) -> Result<(), InputError> {
    telling(context)?;
    big_switch(context)?;
    pods(context)?;
    communication(context)
}

/// Measures the bytes sent to endpoints, and the cost of intermediaries.
fn telling(context: &mut Context) -> Result<(), InputError> {
    let (steps, warmup) = (context.count("steps", 3000, 1_000_000)?, context.count("warmup", 1000, 1_000_000)?);
    let jobs: Vec<_> = seeds(context).into_iter().flat_map(|seed| GROUPS.map(|group| (seed, group))).collect();
    let ran = context.each(&jobs, 3 * jobs.len(), |&(seed, group)| telling::run(seed, group, steps, warmup))?;
    let of = |group: usize, get: fn(&telling::Ran) -> f64| -> Vec<f64> {
        jobs.iter().zip(&ran).filter(|(job, _)| job.1 == group).map(|(_, ran)| get(ran)).collect()
    };
    let direct = of(1, |r| r.servers_a_nic);
    for group in GROUPS {
        context.report.sample(&format!("servers a NIC {group}"), "mean", "runs", &of(group, |r| r.servers_a_nic));
        context.report.sample(&format!("of the optimum {group}"), "mean", "runs", &of(group, |r| r.of_optimum));
        if group > 1 {
            let over = of(group, |r| r.servers_a_nic);
            context.report.ratio(&format!("gain {group}"), "mean", "runs", &over, &direct);
        }
    }
    context.report.sample("records of a datagram", "mean", "runs", &of(1, |r| r.records));
    context.report.sample("gain of bare records", "mean", "runs", &of(1, |r| r.bare_gain));
    let row = |((seed, group), r): (&(u64, usize), &telling::Ran)| {
        json!([group, seed, r.servers_a_nic, r.of_optimum, r.records, r.bare_gain])
    };
    let columns = ["hosts", "seed", "servers_a_nic", "of_optimum", "records", "bare_gain"];
    context.report.table("telling", &columns, jobs.iter().zip(&ran).map(row).collect());
    Ok(())
}

/// Compares rates of an allocator that knows only the hosts' links with the optimum.
fn big_switch(context: &mut Context) -> Result<(), InputError> {
    let flows = context.count("flows_a_host", 8, 1000)?;
    for (name, spine_bps) in [("full", 40e9), ("a quarter", 10e9)] {
        let seeds = seeds(context);
        let of = 3 * GROUPS.len() * seeds.len();
        let costs = context.each(&seeds, of, |&seed| knowledge::big_switch(spine_bps, flows, seed))?;
        tell(context, &format!("big switch, {name}"), &costs);
    }
    Ok(())
}

/// Compares rates of one allocator per pod with those of a single one.
fn pods(context: &mut Context) -> Result<(), InputError> {
    let (flows, k) = (context.count("flows_a_host", 8, 1000)?, context.count("k", 8, 16)?);
    for (name, inside) in [("anywhere", 0.0), ("half within", 0.5)] {
        let seeds = seeds(context);
        let of = 3 * GROUPS.len() * seeds.len();
        let costs = context.each(&seeds, of, |&seed| knowledge::pods(k, inside, flows, seed))?;
        tell(context, &format!("pods, {name}"), &costs);
    }
    Ok(())
}

fn tell(context: &mut Context, name: &str, costs: &[UtilityLoss]) {
    let of = |get: fn(&UtilityLoss) -> f64| costs.iter().map(get).collect::<Vec<_>>();
    context.report.sample(&format!("throughput: {name}"), "mean", "runs", &of(|c| c.throughput));
    context.report.sample(&format!("points: {name}"), "mean", "runs", &of(|c| c.points));
    context.report.sample(&format!("overload: {name}"), "mean", "runs", &of(|c| c.overload));
    let rows: Vec<Value> = costs.iter().map(|c| json!([c.throughput, c.points, c.overload])).collect();
    context.report.table(name, &["throughput", "points", "overload"], rows);
}

/// Reports the fraction of an iteration on two threads that is communication.
fn communication(context: &mut Context) -> Result<(), InputError> {
    let seconds = context.number("seconds", 0.3, 1e-4, 100.0)?;
    let rows = context.count("rows", 7, 7)?;
    let mut seen: Vec<Vec<f64>> = vec![Vec::new(); rows];
    for seed in seeds(context) {
        for (share, row) in seen.iter_mut().zip(0..rows) {
            share.push(table_multicore::communication(row, seed, seconds)?);
        }
    }
    for (row, shares) in seen.iter().enumerate() {
        context.report.sample(&format!("communication {}", table_multicore::name(row)), "median", "runs", shares);
    }
    Ok(())
}

fn seeds(context: &Context) -> Vec<u64> {
    (0..context.runs() as u64).map(|run| context.seed() + run).collect()
}
