//! Range of Soze's parameters m and p: on the paper's recurrences, with feedback delay, and in packets on one
//! congested link.

use super::draw::{Hops, SIZES};
use super::recurrence::{comes_together, delay_settles, delayed_settles};
use super::watch::watch;
use crate::{Context, ExperimentInfo, ExperimentKind};
use serde_json::json;
use subak_core::InputError;
use subak_schemes::soze::least_integral;

pub(super) const ENTRY: ExperimentInfo =
    ExperimentInfo { name: "soze-params", kind: ExperimentKind::Packets, settings: SETTINGS, compute };

/// `exponents`: number of exponents m that are simulated in packets.
const SETTINGS: &[&str] = &["exponents"];

const INSIDE: [f64; 7] = [0.01, 0.25, 0.5, 1.0, 1.5, 1.9, 1.99];
const OUTSIDE: [f64; 5] = [0.0, 2.0, 2.01, 2.1, 3.0];
/// Values of p in the packet simulation, in units of ln(alpha / beta) RTTs; 0 means the paper's 20 us.
const SCALES: [f64; 6] = [0.0, 0.5, 1.0, 1.5, 2.0, 4.0];
const EXPONENTS: [f64; 3] = [0.25, 1.0, 1.9];

#[derive(Debug, Clone, Copy)]
struct ParamsJob {
    scale: f64,
    m: f64,
    signal: Signal,
    seed: u64,
}

/// Telemetry of links, and the type of senders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    /// Queueing delay of the packet, with the paper's filter.
    Wait,
    /// Queue length at the packet's departure, unfiltered.
    Backlog,
    /// Like `Backlog`, with the value `exact` of Soze's parameter `sender`.
    Exact,
    /// Like `Backlog`, with senders whose state is a congestion window; in the other variants it is a rate.
    Window,
}

impl Signal {
    const ALL: [(Signal, &str); 4] =
        [(Signal::Wait, "wait"), (Signal::Backlog, "backlog"), (Signal::Exact, "exact"), (Signal::Window, "window")];
}

fn compute(context: &mut Context) -> Result<(), InputError> {
    let networks = context.runs();
    let exponents = &EXPONENTS[..context.count("exponents", EXPONENTS.len(), EXPONENTS.len())?];
    on_recurrences(context);
    let mut jobs = Vec::new();
    for (signal, _) in Signal::ALL {
        for scale in SCALES {
            for &m in exponents {
                jobs.extend((0..networks as u64).map(|k| ParamsJob { scale, m, signal, seed: context.seed() + k }));
            }
        }
    }
    let of = jobs.len() + super::readings::COUNT * networks;
    let seen = context.each(&jobs, of, in_packets)?;
    let mut rows = Vec::new();
    for (signal, name) in Signal::ALL {
        for scale in SCALES {
            for &m in exponents {
                let mine = jobs.iter().zip(&seen).filter(|(j, _)| (j.scale, j.m, j.signal) == (scale, m, signal));
                let (hits, count) =
                    mine.fold((0, 0), |(hits, count), (_, (settled, _))| (hits + usize::from(*settled), count + 1));
                let p = if scale == 0.0 { "20 us".into() } else { scale.to_string() };
                context.report.share(&format!("{name}, p {p}, m {m}"), "networks", hits, count);
                rows.push(json!([name, scale, m, hits, count]));
            }
        }
    }
    super::readings::readings(context, context.seed()..context.seed() + networks as u64, of)?;
    context.report.table("packets", &["signal", "p_over_span_rtts", "m", "settled", "networks"], rows);
    Ok(())
}

fn on_recurrences(context: &mut Context) {
    let report = &mut context.report;
    report.value("m inside settles", INSIDE.iter().all(|&m| comes_together(m)));
    report.value("m outside settles", OUTSIDE.iter().any(|&m| comes_together(m)));
    report.value("p above settles", [0.505, 0.6, 0.9, 2.0, 10.0].iter().all(|&p| delay_settles(p).0));
    report.value("p below settles", [0.495, 0.4, 0.2].iter().any(|&p| delay_settles(p).0));
    report.value("p above the stricter bound swings", [1.01, 1.5, 5.0].iter().any(|&p| !delay_settles(p).1));
    report.value("p below the stricter bound swings", [0.6, 0.8, 0.95].iter().all(|&p| !delay_settles(p).1));
    let mut rows = Vec::new();
    for m in [0.1, 0.25, 0.5, 1.0, 1.5, 1.9] {
        for times in [0.8, 0.9, 0.95, 1.05, 1.1, 1.2] {
            let p = times * least_integral(m);
            rows.push((m, times, p, delayed_settles(p, m)));
        }
    }
    report.value("delayed: above settles", rows.iter().filter(|r| r.1 > 1.0).all(|r| r.3));
    report.value("delayed: below settles", rows.iter().filter(|r| r.1 < 1.0).any(|r| r.3));
    let rows = rows.into_iter().map(|(m, times, p, settles)| json!([m, times, p, settles])).collect();
    report.table("delayed", &["m", "times_the_bound", "p_over_span_rtts", "settles"], rows);
}

/// Whether the network converges within 200 RTTs, and the convergence time in RTTs.
fn in_packets(job: &ParamsJob) -> Result<(bool, f64), InputError> {
    let setup = Hops::One.draw(job.seed)?;
    let p_us = if job.scale == 0.0 { 20.0 } else { job.scale * 1000f64.ln() * setup.rtt_ns as f64 / 1e3 };
    let mut params = super::readings::rate_kept();
    params.insert("p".into(), json!(p_us * 1e-6));
    params.insert("m".into(), json!(job.m));
    if job.signal == Signal::Exact {
        params.insert("sender".into(), json!("exact"));
        params.insert("least_rate".into(), json!("beta"));
    }
    if job.signal != Signal::Wait {
        params.insert("signal".into(), json!("backlog"));
        params.insert("filter".into(), json!(0.0));
    }
    if job.signal == Signal::Window {
        params.insert("state".into(), json!("window"));
    }
    let mut sim = subak_packet::build("soze", &params, &setup.network, SIZES, &[], job.seed)?;
    let flows: Vec<_> = setup.plans.iter().map(|plan| sim.add(plan.clone())).collect();
    let limit = Hops::One.limit_rtts();
    let seen = watch(&mut *sim, &flows, &setup, 1.0, limit)?;
    Ok((seen.settled_rtts <= limit as f64, seen.settled_rtts))
}
