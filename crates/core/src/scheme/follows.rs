//! Defaults of parameters that follow what a scheme runs under.

use super::info::{Info, Param};
use crate::Policy;
use crate::keys::ParamValue;
use serde_json::{Map, Value as Json};

/// A quantity that a parameter's default depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follows {
    /// The policy's alpha, where it has one. A value that differs from the policy's is refused.
    Alpha,
    /// Acknowledgements: what those of a full link in the other direction take of a link comes on top of the default.
    Acks,
    /// Whether the policy is max-min, which is the optimum of no utility.
    MaxMin,
    /// Whether the policy puts some flows before others, as fct, srpt and edf do: then it is as good as unbounded.
    Urgency,
}

/// A bound that never binds: at most so many line rates. NUMFabric's figure 7 was measured with it.
const UNBOUNDED: f64 = 1e6;

/// The largest share of a link that a default sets aside, whatever the sizes of packets.
const MOST_SET_ASIDE: f64 = 0.5;

/// The circumstances of a run that defaults depend on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Circumstances {
    /// The policy.
    pub policy: Policy,
    /// Fraction of a link used by the ACKs of a saturated reverse link; 0 if data and ACKs never share a link.
    pub ack_share: f64,
}

impl Circumstances {
    /// The parameters `given` for the scheme `info`, and those that follow what it runs under.
    pub fn complete(&self, info: &Info, given: &Map<String, Json>) -> Map<String, Json> {
        let mut params = given.clone();
        for param in info.params {
            if let Some(value) = self.value(param) {
                params.entry(param.key.name).or_insert(value);
            }
        }
        params
    }

    fn value(&self, param: &Param) -> Option<Json> {
        match param.follows? {
            Follows::MaxMin => Some((self.policy == Policy::MaxMin).into()),
            Follows::Alpha => self.policy.alpha().map(Json::from),
            Follows::Acks => match param.default() {
                ParamValue::Number(least) => Some((least + self.ack_share).min(MOST_SET_ASIDE).into()),
                ParamValue::Flag(_) | ParamValue::Word(_) => None,
            },
            Follows::Urgency => self.policy.ranks().then(|| UNBOUNDED.into()),
        }
    }
}
