//! The policy of a spec: what it makes of flows, which schemes can serve it, and what these are told of it.

use crate::workload::Planned;
use serde_json::{Map, Value};
use std::sync::Arc;
use subak_core::scheme::{Goal, Info};
use subak_core::utility::Urgency;
use subak_core::{Fault, Policy, Utility};

/// Gives every flow its utility under `policy`; under max-min it has none.
pub(crate) fn apply(policy: Policy, flows: &mut [Planned]) -> Result<(), Fault> {
    if policy == Policy::MaxMin {
        return Ok(());
    }
    for (f, flow) in flows.iter_mut().enumerate() {
        let utility = Utility::under(policy, flow.plan.weight, &flow.extra);
        flow.plan.utility = Some(Arc::new(utility.map_err(|e| e.below(&format!("flows[{f}]")))?));
        flow.plan.urgency = Urgency::under(policy, &flow.extra);
    }
    Ok(())
}

/// Refuses a scheme that aims at something else than `policy`: by its nature, or by an `alpha` of its own.
pub(crate) fn check(policy: Policy, info: &Info, given: &Map<String, Value>) -> Result<(), Fault> {
    if info.goal.serves(policy) {
        let (alpha, told) = (given.get("alpha"), params(policy, info, &Map::new()));
        return match told.get("alpha").zip(alpha).filter(|(of_policy, given)| of_policy.as_f64() != given.as_f64()) {
            None => Ok(()),
            Some((of_policy, given)) => {
                let what = format!("scheme \"{}\" has params.alpha = {given}, its policy {of_policy}", info.name);
                Err(Fault::new("policy", what, "leave params.alpha away: the scheme takes it from the policy"))
            }
        };
    }
    let what = format!("scheme \"{}\" brings rates to {}, not to {}", info.name, info.goal.name(), shown(policy));
    let mend = match (info.goal, policy) {
        (_, Policy::AlphaFair { .. }) if info.goal != Goal::MaxMin => "give an alpha above zero, such as 1".to_string(),
        (Goal::MaxMin, _) => "take the kind \"max-min\", or the scheme out of the spec".to_string(),
        _ => "take the kind \"alpha-fair\" with alpha = 1, or the scheme out of the spec".to_string(),
    };
    Err(Fault::new("policy.kind", what, mend))
}

fn shown(policy: Policy) -> String {
    match policy {
        Policy::AlphaFair { alpha } => format!("alpha-fair with alpha = {alpha}"),
        policy => policy.name().to_string(),
    }
}

/// The parameters `given` and, for a scheme that has it, the policy's `alpha`.
pub(crate) fn params(policy: Policy, info: &Info, given: &Map<String, Value>) -> Map<String, Value> {
    let mut params = given.clone();
    let alpha = match policy {
        Policy::AlphaFair { alpha } => alpha,
        Policy::Fct { epsilon } | Policy::Srpt { epsilon } | Policy::Edf { epsilon } => epsilon,
        Policy::MaxMin | Policy::BandwidthFunction => return params,
    };
    if info.goal == Goal::AlphaFair && !params.contains_key("alpha") {
        params.insert("alpha".to_string(), alpha.into());
    }
    params
}
