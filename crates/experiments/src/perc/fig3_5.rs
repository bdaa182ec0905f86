//! Figure 3.5 and section 3.3 of the PERC thesis: thousands of random setups under s-PERC, weighted s-PERC, Fair and
//! n-PERC.

use crate::{Context, ExperimentInfo, ExperimentKind, largest, quantile};
use serde_json::{Value, json};
use subak_core::{InputError, LinkId};
use subak_rounds::{CapacityDraw, ConvergeOutcome, Degree, Random, RoundsPlan, Setup, run};
use subak_schemes::registry;

pub(super) const ENTRY: ExperimentInfo =
    ExperimentInfo { name: "perc-fig3.5", kind: ExperimentKind::Rounds, settings: SETTINGS, compute };

/// `large`: number of links and of flows in the large setups; `n_perc`: number of setups under n-PERC; `every`: the
/// plot shows one in this many updates.
const SETTINGS: &[&str] = &["large", "n_perc", "every"];

/// One setup under one scheme.
#[derive(Clone)]
struct DropsJob {
    scheme: &'static str,
    random: Random,
    forward_only: bool,
}

/// Rounds to convergence, and the theoretical bound.
struct Taken {
    converged: bool,
    rounds: f64,
    allowed: f64,
    levels: usize,
}

const P: [usize; 8] = [3, 5, 8, 10, 20, 40, 50, 80];

fn compute(context: &mut Context) -> Result<(), InputError> {
    let count = context.runs();
    let large = context.count("large", 1000, 1000)?;
    let slow = context.count("n_perc", count.div_ceil(8).clamp(4, 300), 100_000)?;
    let every = context.count("every", 4, 1000)?;
    let jobs = jobs(count, large, context.seed());
    let fair: Vec<DropsJob> = jobs.iter().step_by(4).map(|job| DropsJob { scheme: "fair", ..job.clone() }).collect();
    let naive: Vec<u64> = (0..slow as u64).map(|k| context.seed() + k).collect();
    let of = jobs.len() + fair.len() + naive.len();
    let taken = context.each(&jobs, of, take)?;
    report(context, "s-perc", &jobs, &taken);
    let taken = context.each(&fair, of, take)?;
    report(context, "fair", &fair, &taken);
    n_perc(context, &naive, of, every)?;
    context.report.setup("links_and_flows", format!("J = K = 100; every 24th setup J = K = {large}"));
    context.report.setup("hops", json!(P));
    context.report.setup("round", "the longest round trip");
    context.report.note(
        "n-PERC's worst depends on how many setups are drawn and on the order of their packets: the thesis saw 60 rounds in \
         thousands of setups.",
    );
    context.report.note(
        "A round is one constant no shorter than the longest round trip. Converged is the last update that differs from \
         max-min by more than a relative 1e-9, counted from one round after flows and links' timers are stable. Ties count \
         as equal within 1e-9.",
    );
    Ok(())
}

/// Setups that alternate the links per flow P, equal and mixed capacities, updates in both directions or forward
/// only, and weights of 1, 1 to 16, 1 to 1000.
fn jobs(count: usize, large: usize, seed: u64) -> Vec<DropsJob> {
    let job = |k: usize| {
        let size = if k % 24 == 23 { large } else { 100 };
        // Large setups alternate P too, so that few of them have the longest paths: these cost a hundred times the
        // others.
        let hops = P[(k + k / 24) % P.len()];
        let turn = k / P.len();
        DropsJob {
            scheme: "s-perc",
            random: Random {
                links: size,
                flows: size,
                hops,
                capacities: if turn.is_multiple_of(2) { CapacityDraw::Equal } else { CapacityDraw::Mixed },
                heaviest: [1, 1, 16, 1000][turn / 2 % 4],
                seed: seed + k as u64,
            },
            forward_only: turn.is_multiple_of(3),
        }
    };
    (0..count).map(job).collect()
}

fn take(job: &DropsJob) -> Result<Taken, InputError> {
    let setup = job.random.draw();
    let (ideal_bps, _) = setup.exact();
    let mut plan = RoundsPlan { seed: job.random.seed, ..RoundsPlan::default() };
    if job.forward_only {
        plan.params.insert("reverse".into(), json!(false));
    }
    let outcome = run(job.scheme, &setup, &ideal_bps, &plan)?;
    let (levels, allowed) = setup.bounded(registry::find(job.scheme)?.bound);
    Ok(Taken {
        converged: outcome.converged,
        rounds: outcome.rounds,
        allowed: allowed.unwrap_or(f64::INFINITY),
        levels: levels.count,
    })
}

fn report(context: &mut Context, scheme: &str, jobs: &[DropsJob], taken: &[Taken]) {
    let mut rows: Vec<Value> = Vec::new();
    for (kind, weighted) in [("unweighted", false), ("weighted", true)] {
        let chosen = || jobs.iter().zip(taken).filter(move |(job, _)| (job.random.heaviest > 1) == weighted);
        let within = chosen().filter(|(_, t)| t.converged && t.rounds <= t.allowed).count();
        let all = chosen().count();
        let share = chosen().map(|(_, t)| t.rounds / t.allowed).fold(0.0, f64::max);
        context.report.share(&format!("{scheme}_{kind}_within"), "setups", within, all);
        context.report.value(&format!("{scheme}_{kind}_share_of_bound"), share);
        for hops in P {
            let mine = || chosen().filter(|(job, _)| job.random.hops == hops);
            let mut rounds: Vec<f64> = mine().map(|(_, t)| t.rounds).collect();
            let worst = largest(&mine().map(|(_, t)| t.rounds / t.levels.max(1) as f64).collect::<Vec<_>>());
            if !rounds.is_empty() {
                let (n, most) = (rounds.len(), largest(&rounds));
                rows.push(json!([kind, hops, n, quantile(&mut rounds, 0.5), most, worst]));
            }
        }
    }
    let columns = ["weights", "P", "setups", "rounds_median", "rounds_max", "rounds_a_level_max"];
    context.report.table(scheme, &columns, rows);
}

/// Reports n-PERC and s-PERC on the same setups with P = 80 and staggered starts.
fn n_perc(context: &mut Context, seeds: &[u64], of: usize, every: usize) -> Result<(), InputError> {
    let setup =
        |seed: u64| Random { links: 100, flows: 100, hops: 80, capacities: CapacityDraw::Equal, heaviest: 1, seed };
    let both = |&seed: &u64| {
        let setup = setup(seed).draw();
        let (ideal_bps, _) = setup.exact();
        let plan = RoundsPlan { seed, stagger_rounds: 2.0, ..RoundsPlan::default() };
        let naive = run("n-perc", &setup, &ideal_bps, &plan)?;
        let stateless = run("s-perc", &setup, &ideal_bps, &plan)?;
        Ok((naive.converged, naive.rounds, stateless.rounds, setup.levels(Degree::Two).count))
    };
    let pairs = context.each(seeds, of, both)?;
    let far = pairs.iter().filter(|(_, naive, stateless, _)| *naive > 3.0 * stateless).count();
    let naive: Vec<f64> = pairs.iter().map(|p| p.1).collect();
    let stateless: Vec<f64> = pairs.iter().map(|p| p.2).collect();
    context.report.share("n_perc_over_3_times", "setups", far, pairs.len());
    context.report.sample("n_perc_median", "median", "setups", &naive);
    context.report.value("n_perc_max", largest(&naive));
    context.report.value("s_perc_max", largest(&stateless));
    context.report.value("worst_over_worst", largest(&naive) / largest(&stateless));
    context.report.value("n_perc_not_in_600", pairs.iter().filter(|p| !p.0).count());
    let rows = seeds
        .iter()
        .zip(&pairs)
        .map(|(seed, (converged, naive, stateless, levels))| json!([seed, converged, naive, stateless, levels]));
    let columns = ["seed", "n_perc_converged", "n_perc_rounds", "s_perc_rounds", "w2"];
    context.report.table("n-perc", &columns, rows.collect());
    let worst = (0..pairs.len()).max_by(|&a, &b| pairs[a].1.total_cmp(&pairs[b].1));
    if let Some(k) = worst {
        for scheme in ["n-perc", "s-perc"] {
            let picture = picture(&setup(seeds[k]).draw(), seeds[k], scheme, every)?;
            context.report.series(&format!("worst setup under {scheme}"), picture);
        }
    }
    Ok(())
}

/// Series of figure 3.5 for one setup: at each bottleneck link, fair-share rates (C - SumE) / NumB and MaxE over
/// time, Gb/s. The value is -1 where NumB is 0, as in the figure.
fn picture(setup: &Setup, seed: u64, scheme: &str, every: usize) -> Result<Value, InputError> {
    let (ideal_bps, _) = setup.exact();
    let plan = RoundsPlan { seed, stagger_rounds: 2.0, traced: true, ..RoundsPlan::default() };
    let ConvergeOutcome { trace, start_ns, round_ns, rounds, .. } = run(scheme, setup, &ideal_bps, &plan)?;
    let levels = setup.levels(Degree::Two);
    let link_series = |l: LinkId| {
        let capacity = setup.wires[l].capacity_bps;
        let mine = trace.iter().filter(|u| u.link == l).step_by(every);
        let points = mine.map(|u| {
            let value = |name: &str| u.values.iter().find(|(n, _)| *n == name).map_or(0.0, |(_, x)| *x);
            let num_b = value("NumB");
            let share = if num_b > 0.0 { (capacity - value("SumE")) / num_b / 1e9 } else { -1.0 };
            json!([(u.at_ns as f64 - start_ns as f64) / round_ns as f64, share, value("MaxE") / 1e9])
        });
        let n = levels.of_link[l];
        let ideal = levels.link_rates(n)[l] / 1e9;
        json!({
            "link": l.0, "level": n, "ideal_gbps": ideal, "columns": ["round", "fair_share_gbps", "MaxE_gbps"],
            "points": points.collect::<Vec<_>>(),
        })
    };
    let bottlenecks = setup.wires.ids().filter(|&l| levels.of_link[l] > 0);
    Ok(json!({"seed": seed, "rounds": rounds, "links": bottlenecks.map(link_series).collect::<Vec<_>>()}))
}
