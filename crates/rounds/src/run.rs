//! Runs one scheme on one setup until its rates stay exact.

use crate::backend::{Assigned, Conditions, Rounds};
use crate::setup::Setup;
use serde_json::{Map, Value, json};
use subak_core::rng::Stream;
use subak_core::scheme::{InRounds, Scheme, UpdateRecord};
use subak_core::{FlowId, IdVec, InputError, LinkId, Ns};
use subak_schemes::{Visitor, registry, with_scheme};

/// Largest number of traced updates; bounds memory if a run does not converge.
pub const MOST_TRACED: usize = 1_000_000;

/// Parameters of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundsPlan {
    /// Seed of start times, jitter, losses and phases of the links' timers.
    pub seed: u64,
    /// Length of a round, ns; `None` for the largest base RTT.
    pub round_ns: Option<Ns>,
    /// Largest additional delay of a message on a link, ns.
    pub jitter_ns: Ns,
    /// Flows start at random times within this many rounds.
    pub stagger_rounds: f64,
    /// Number of rounds after the start at which the run ends without convergence.
    pub max_rounds: f64,
    /// Number of rounds for which rates must stay exact to count as converged.
    pub settle_rounds: f64,
    /// Probability that a message is lost on a link.
    pub drop: f64,
    /// Number of rounds after the start in which messages are lost.
    pub drop_rounds: f64,
    /// Relative difference from the exact rate up to which a rate counts as exact.
    pub tolerance: f64,
    /// Whether updates are traced, up to the first [`MOST_TRACED`].
    pub traced: bool,
    /// Whether rates assigned to sources are recorded.
    pub log_rates: bool,
    /// The scheme's parameters.
    pub params: Map<String, Value>,
}

impl Default for RoundsPlan {
    fn default() -> Self {
        RoundsPlan {
            seed: 1,
            round_ns: None,
            jitter_ns: 10,
            stagger_rounds: 1.0,
            max_rounds: 600.0,
            settle_rounds: 5.0,
            drop: 0.0,
            drop_rounds: 100.0,
            tolerance: 1e-9,
            traced: false,
            log_rates: false,
            params: Map::new(),
        }
    }
}

/// Result of a run. Rounds count from the time when flows and the links' timers have been stable for one round (PERC
/// thesis, section 3.4.4); earlier times are 0.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvergeOutcome {
    /// Whether the rates became exact and stayed so.
    pub converged: bool,
    /// Rounds until the last update that differed from the exact rate.
    pub rounds: f64,
    /// Rounds until each flow's last update that differed from its exact rate.
    pub flow_rounds: IdVec<FlowId, f64>,
    /// `rounds`, counted from the start of the first flow.
    pub rounds_from_start: f64,
    /// `flow_rounds`, counted from the start of the first flow.
    pub flow_rounds_from_start: IdVec<FlowId, f64>,
    /// Link of each flow's last update that differed from its exact rate.
    pub flow_last_link: IdVec<FlowId, Option<LinkId>>,
    /// Final rate of each flow's source, bit/s.
    pub rates_bps: IdVec<FlowId, f64>,
    /// Number of updates at links.
    pub updates: u64,
    /// Length of a round, ns.
    pub round_ns: Ns,
    /// Time from which rounds are counted, ns.
    pub start_ns: Ns,
    /// Number of lost messages.
    pub drops: u64,
    /// Rounds from the last loss to the last update that differed from an exact rate; `None` without losses.
    pub rounds_after_drop: Option<f64>,
    /// Updates, if traced, up to the first [`MOST_TRACED`].
    pub trace: Vec<UpdateRecord>,
    /// Rates assigned to sources, if recorded.
    pub assigned: Vec<Assigned>,
}

/// Runs the scheme called `name` on `setup`; `ideal_bps` are the exact rates.
pub fn run(
    name: &str,
    setup: &Setup,
    ideal_bps: &IdVec<FlowId, f64>,
    plan: &RoundsPlan,
) -> Result<ConvergeOutcome, InputError> {
    let round_ns = plan.round_ns.unwrap_or_else(|| setup.rtt_ns(plan.jitter_ns));
    let params = params(name, plan, round_ns)?;
    with_scheme(name, &params, RoundsRun { setup, ideal_bps, plan, round_ns })
}

/// The plan's parameters, completed by the scheme's defaults under this backend.
pub fn params(name: &str, plan: &RoundsPlan, round_ns: Ns) -> Result<Map<String, Value>, InputError> {
    let mut params = plan.params.clone();
    let seconds = |rounds: f64| json!(rounds * round_ns as f64 / 1e9);
    for param in registry::find(name).map_err(|e| InputError { place: "scheme".into(), ..e })?.params {
        let default = match param.in_rounds {
            InRounds::Default => continue,
            InRounds::Zero => json!(0),
            InRounds::Rounds(rounds) => seconds(rounds),
            InRounds::RoundsIfLossy(rounds) => {
                if plan.drop > 0.0 {
                    seconds(rounds)
                } else {
                    json!(0)
                }
            }
        };
        params.entry(param.key.name).or_insert(default);
    }
    Ok(params)
}

/// Names of the schemes that this backend can run.
pub fn names() -> Vec<&'static str> {
    registry::schemes().iter().filter(|info| info.lives_on_control).map(|info| info.name).collect()
}

struct RoundsRun<'a> {
    setup: &'a Setup,
    ideal_bps: &'a IdVec<FlowId, f64>,
    plan: &'a RoundsPlan,
    round_ns: Ns,
}

impl Visitor for RoundsRun<'_> {
    type Out = ConvergeOutcome;
    const CONTROL_ONLY: bool = true;

    fn visit<S: Scheme>(self, scheme: S) -> ConvergeOutcome {
        let RoundsRun { setup, ideal_bps, plan, round_ns } = self;
        let rounds_ns = |rounds: f64| (rounds * round_ns as f64).round() as Ns;
        // Every link has started its timers by then: within one round, see [`Rounds::new`].
        let first_ns = 3 * round_ns;
        let last_start_ns = first_ns + rounds_ns(plan.stagger_rounds);
        let start_ns = last_start_ns + round_ns;
        let conditions = Conditions {
            jitter_ns: plan.jitter_ns,
            drop: plan.drop,
            drop_until_ns: start_ns + rounds_ns(plan.drop_rounds),
            rtt_ns: round_ns,
            seed: plan.seed,
        };
        let mut rounds = Rounds::new(scheme, &setup.wires, conditions, plan.traced);
        rounds.tolerance = plan.tolerance;
        if plan.log_rates {
            rounds.log_rates();
        }
        let mut starts = Stream::new(plan.seed, "starts");
        let mut first_start_ns = Ns::MAX;
        for (f, path) in setup.paths.iter_enumerated() {
            let at_ns = first_ns + rounds_ns(plan.stagger_rounds * starts.unit());
            first_start_ns = first_start_ns.min(at_ns);
            rounds.add(path.clone(), setup.weights[f], at_ns, ideal_bps[f]);
        }
        let quiet_from_ns = if plan.drop > 0.0 { conditions.drop_until_ns } else { start_ns };
        let give_up_ns = quiet_from_ns + rounds_ns(plan.max_rounds);
        let settle_ns = rounds_ns(plan.settle_rounds);
        let mut trace = Vec::new();
        let mut now_ns = start_ns;
        let converged = loop {
            rounds.run_until(now_ns);
            let room = MOST_TRACED.saturating_sub(trace.len());
            trace.extend(rounds.take_trace().into_iter().take(room));
            let wrong_ns = rounds.last_wrong_ns().unwrap_or(0).max(quiet_from_ns);
            if now_ns >= wrong_ns + settle_ns {
                break true;
            }
            if now_ns >= give_up_ns {
                break false;
            }
            now_ns += round_ns;
        };
        report(&mut rounds, converged, [first_start_ns, start_ns], round_ns, trace)
    }
}

fn report<S: Scheme>(
    rounds: &mut Rounds<S>,
    converged: bool,
    [first_start_ns, start_ns]: [Ns; 2],
    round_ns: Ns,
    trace: Vec<UpdateRecord>,
) -> ConvergeOutcome {
    let since = |from_ns: Ns, at_ns: Option<Ns>| at_ns.unwrap_or(0).saturating_sub(from_ns) as f64 / round_ns as f64;
    let assigned = rounds.take_rates();
    let seen = |f: FlowId| rounds.seen(f);
    let flows = FlowId::first(rounds.flow_count());
    let (drops, last_drop_ns) = rounds.drops();
    ConvergeOutcome {
        converged,
        rounds: since(start_ns, rounds.last_wrong_ns()),
        rounds_from_start: since(first_start_ns, rounds.last_wrong_ns()),
        flow_rounds_from_start: flows.clone().map(|f| since(first_start_ns, seen(f).last_wrong_ns)).collect(),
        flow_rounds: flows.clone().map(|f| since(start_ns, seen(f).last_wrong_ns)).collect(),
        flow_last_link: flows.clone().map(|f| seen(f).last_wrong_link).collect(),
        rates_bps: flows.map(|f| seen(f).rate_bps).collect(),
        updates: rounds.updates(),
        round_ns,
        start_ns,
        drops,
        rounds_after_drop: last_drop_ns.map(|at_ns| since(at_ns, rounds.last_wrong_ns())),
        trace,
        assigned,
    }
}
