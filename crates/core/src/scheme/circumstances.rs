//! Defaults of parameters that depend on the run: on the policy, the weights, or the share of ACKs.

use super::follows::Follows;
use super::info::{Goal, Info, Param};
use crate::Policy;
use crate::keys::ParamValue;
use serde_json::{Map, Value as Json};

/// A bound that never binds, as a multiple of the line rate. The experiment on NUMFabric's figure 7 uses this bound.
const UNBOUNDED: f64 = 1e6;

/// Largest share of a link that a default reserves, for any packet sizes.
const MOST_SET_ASIDE: f64 = 0.5;

/// Properties of a run on which defaults depend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Circumstances {
    /// The policy.
    pub policy: Policy,
    /// Fraction of a link used by the ACKs of a saturated reverse link; 0 if data and ACKs never share a link.
    pub ack_share: f64,
    /// Smallest weight of a flow, divided equally among its subflows.
    pub smallest_weight: f64,
}

impl Circumstances {
    /// The parameters `given` for the scheme `info`, completed by the defaults that depend on the run.
    pub fn complete(&self, info: &Info, given: &Map<String, Json>) -> Map<String, Json> {
        let mut params = given.clone();
        for param in info.params {
            if let Some(value) = self.value(info, param) {
                params.entry(param.key.name).or_insert(value);
            }
        }
        params
    }

    fn value(&self, info: &Info, param: &Param) -> Option<Json> {
        match param.follows? {
            Follows::MaxMin => Some((self.policy == Policy::MaxMin).into()),
            Follows::Alpha => self.policy.alpha().map(Json::from),
            Follows::Acks => number(param).map(|least| (least + self.ack_share).min(MOST_SET_ASIDE).into()),
            Follows::Urgency => self.policy.ranks().then(|| UNBOUNDED.into()),
            Follows::SmallestWeight | Follows::SmallestFlows if matches!(info.goal, Goal::Utility(_)) => None,
            Follows::SmallestWeight => number(param).map(|most| most.min(self.smallest_weight).into()),
            Follows::SmallestFlows => number(param).map(|flows| (flows / self.smallest_weight.min(1.0)).into()),
        }
    }
}

/// The default of a parameter that is a number.
fn number(param: &Param) -> Option<f64> {
    match param.default() {
        ParamValue::Number(number) => Some(number),
        ParamValue::Flag(_) | ParamValue::Word(_) => None,
    }
}
