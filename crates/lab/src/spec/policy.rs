//! Policy of a spec: utility functions of flows, schemes that support the policy, and parameters that depend on the
//! policy.

use crate::spec::workload::Planned;
use serde_json::{Map, Value};
use std::sync::Arc;
use subak_core::quantity::quoted;
use subak_core::scheme::{Follows, Goal, Info};
use subak_core::utility::Urgency;
use subak_core::{FlowId, IdVec, InputError, Policy, Utility};

/// Sets the utility function of every flow under `policy`; max-min needs none.
pub(crate) fn apply(policy: Policy, flows: &mut IdVec<FlowId, Planned>) -> Result<(), InputError> {
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

/// Max-min, if the scheme supports no other policy and the spec has another one: the scheme then runs under
/// max-min.
pub(crate) fn only(goal: Goal, of_spec: Option<&Value>) -> Option<Policy> {
    let other = of_spec.and_then(|policy| policy.get("kind")).is_some_and(|kind| kind != Policy::MaxMin.name());
    (other && matches!(goal, Goal::MaxMin | Goal::EqualMaxMin)).then_some(Policy::MaxMin)
}

/// An error if the scheme does not converge to the optimum of `policy`, by definition or because of a parameter.
pub(crate) fn check(policy: Policy, info: &Info, given: &Map<String, Value>) -> Result<(), InputError> {
    if info.goal.serves(policy) {
        let follow = info.params.iter().filter(|p| p.follows == Some(Follows::Alpha));
        for (param, of_policy) in follow.flat_map(|p| policy.alpha().map(|alpha| (p, alpha))) {
            let Some(own) = given.get(param.key.name).filter(|own| own.as_f64() != Some(of_policy)) else { continue };
            let what =
                format!("scheme \"{}\" has params.{} = {own}, its policy {of_policy}", info.name, param.key.name);
            let hint = format!("leave params.{} away: the scheme takes it from the policy", param.key.name);
            return Err(InputError::new("policy", what, hint));
        }
        return Ok(());
    }
    let what = format!("scheme \"{}\" serves {}, not {}", info.name, info.goal.policies(), shown(policy));
    let hint = match (info.goal, policy) {
        (Goal::Utility(_), Policy::AlphaFair { alpha }) if alpha <= 0.0 => "give an alpha above zero, such as 1",
        (Goal::MaxMin | Goal::EqualMaxMin, _) => "give its [[scheme]] none but the policy {kind = \"max-min\"}",
        (_, Policy::MaxMin) => {
            "give its [[scheme]] a policy of its own, such as policy = {kind = \"alpha-fair\", alpha = 1}, or the spec"
        }
        _ => return Err(InputError::new("policy.kind", what, serving(policy))),
    };
    Err(InputError::new("policy.kind", what, hint))
}

/// Hint with the names of the schemes that converge to the optimum of `policy`.
fn serving(policy: Policy) -> String {
    let all = subak_schemes::registry::all().into_iter().filter(|info| info.goal != Goal::Own);
    let names: Vec<_> = all.filter(|info| info.goal.serves(policy)).map(|info| quoted(info.name)).collect();
    format!("choose one of: \"ideal\", {}", names.join(", "))
}

/// Label of a policy in results.
pub(crate) fn label(policy: Policy) -> String {
    match policy {
        Policy::AlphaFair { alpha } => format!("alpha-fair {alpha}"),
        policy => policy.name().to_string(),
    }
}

fn shown(policy: Policy) -> String {
    match policy {
        Policy::AlphaFair { alpha } => format!("alpha-fair with alpha = {alpha}"),
        policy => policy.name().to_string(),
    }
}
