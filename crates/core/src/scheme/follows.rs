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
        for (param, value) in self.followed(info) {
            params.entry(param.key.name).or_insert(value.into());
        }
        params
    }

    /// The parameters of `info` that follow what it runs under, and their values.
    pub fn followed(&self, info: &Info) -> impl Iterator<Item = (&'static Param, f64)> {
        info.params.iter().filter_map(|param| self.value(param).map(|value| (param, value)))
    }

    fn value(&self, param: &Param) -> Option<f64> {
        match param.follows? {
            Follows::Alpha => self.policy.alpha(),
            Follows::Acks => match param.default() {
                ParamValue::Number(least) => Some((least + self.ack_share).min(MOST_SET_ASIDE)),
                ParamValue::Flag(_) | ParamValue::Word(_) => None,
            },
            Follows::Urgency => self.policy.ranks().then_some(UNBOUNDED),
        }
    }
}
