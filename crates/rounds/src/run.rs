//! One scheme over one setup, until its rates are right and stay right.

use crate::backend::{Assigned, Conditions, Rounds};
use crate::setup::Setup;
use serde_json::{Map, Value, json};
use subak_core::rng::Stream;
use subak_core::scheme::{InRounds, Scheme, UpdateRecord};
use subak_core::{FlowId, IdVec, InputError, LinkId, Ns};
use subak_schemes::{Visitor, registry, with_scheme};

/// Updates kept at most: what a run that never settles would fill memory with.
pub const MOST_TRACED: usize = 1_000_000;

/// Parameters of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundsPlan {
    /// Seeds starts, jitter, losses and the links' phases.
    pub seed: u64,
    /// The length of a round; `None` for the longest round trip.
    pub round_ns: Option<Ns>,
    /// Each crossing of a link takes up to this much longer, ns.
    pub jitter_ns: Ns,
    /// Flows start at random within this many rounds.
    pub stagger_rounds: f64,
    /// Give up so many rounds after the start.
    pub max_rounds: f64,
    /// Rates that were right for so many rounds will stay so.
    pub settle_rounds: f64,
    /// Probability that a message is lost on one crossing of one link.
    pub drop: f64,
    /// For how many rounds after the start messages are lost.
    pub drop_rounds: f64,
    /// Relative difference from the exact rate that counts as right.
    pub tolerance: f64,
    /// Keep every update, up to the first [`MOST_TRACED`].
    pub traced: bool,
    /// Keep every rate assigned to a source.
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

/// Result of a run. Times are in rounds since flows and the links' timers have been stable for one round, as section 3.4.4
/// counts; 0 if earlier.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvergeOutcome {
    /// Whether the rates became right and stayed so.
    pub converged: bool,
    /// The last wrong update.
    pub rounds: f64,
    /// The last wrong update of each flow.
    pub flow_rounds: IdVec<FlowId, f64>,
    /// As `rounds`, counted from the start of the first flow instead.
    pub rounds_from_start: f64,
    /// As `flow_rounds`, counted from the start of the first flow instead.
    pub flow_rounds_from_start: IdVec<FlowId, f64>,
    /// The link of each flow's last wrong update.
    pub flow_last_link: IdVec<FlowId, Option<LinkId>>,
    /// The rate at each flow's source at the end, bit/s.
    pub rates_bps: IdVec<FlowId, f64>,
    /// Updates at links.
    pub updates: u64,
    /// Length of a round, ns.
    pub round_ns: Ns,
    /// When counting began, ns.
    pub start_ns: Ns,
    /// Messages lost.
    pub drops: u64,
    /// Rounds from the last loss to the last wrong update; `None` without losses.
    pub rounds_after_drop: Option<f64>,
    /// Every update, if asked for, up to the first [`MOST_TRACED`].
    pub trace: Vec<UpdateRecord>,
    /// Every rate assigned to a source, if asked for.
    pub assigned: Vec<Assigned>,
}

/// Runs the scheme called `name` on `setup`, whose flows should have `ideal_bps`.
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

/// The plan's parameters, with what the scheme's own have for defaults under this backend.
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

/// The schemes that the round-based backend can run.
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
        // By then every link has started its timers: their phases are at most two rounds.
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
