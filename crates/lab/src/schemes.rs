//! Schemes by name, whichever driver runs them.

use serde::Serialize;
use serde_json::{Map, Value};
use subak_core::driver::{Driver, Injected, PacketSizes};
use subak_core::scheme::{Info, Scheme};
use subak_core::{Fault, Network, Policy};
use subak_schemes::Visitor;

/// A scheme with its parameters, as a spec lists it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SchemeChoice {
    /// The scheme's name.
    pub name: String,
    /// What results call it.
    pub label: String,
    /// The parameters given.
    pub params: Map<String, Value>,
}

/// Every scheme: the fluid optimum first, then those of the packet simulator.
pub fn all() -> Vec<Info> {
    std::iter::once(subak_fluid::INFO).chain(subak_schemes::SCHEMES.iter().copied()).collect()
}

/// What the scheme called `name` says of itself.
pub fn info(name: &str) -> Option<Info> {
    all().into_iter().find(|s| s.name == name)
}

struct Check;

impl Visitor for Check {
    type Out = ();
    fn visit<S: Scheme>(self, _: S) {}
}

/// Refuses parameters that the scheme does not have, or that make no sense to it.
pub(crate) fn check(name: &str, params: &Map<String, Value>) -> Result<(), Fault> {
    if name == subak_fluid::INFO.name {
        return subak_core::scheme::Params::resolve(&subak_fluid::INFO, params).map(|_| ());
    }
    subak_schemes::with_scheme(name, params, Check)
}

/// A simulation of the scheme on an idle network, told of the policy.
pub(crate) fn build(
    scheme: &SchemeChoice,
    policy: Policy,
    network: &Network,
    sizes: PacketSizes,
    faults: &[Injected],
    seed: u64,
) -> Result<Box<dyn Driver>, Fault> {
    let (name, mut params) = (scheme.name.as_str(), scheme.params.clone());
    if let Some(info) = info(name) {
        params = crate::policy::params(policy, &info, &params);
    }
    if name == subak_fluid::INFO.name {
        return Ok(Box::new(subak_fluid::Ideal::new(&params, network, sizes, faults)?));
    }
    subak_packet::build(name, &params, network, sizes, faults, seed)
}

/// The share of a link's capacity that a scheme means to give to data: s-PERC and its kin leave some to control packets
/// and as headroom.
pub(crate) fn data_share(scheme: &SchemeChoice) -> f64 {
    let Some(info) = info(&scheme.name) else { return 1.0 };
    let Ok(params) = subak_core::scheme::Params::resolve(&info, &scheme.params) else { return 1.0 };
    let kept = ["control", "headroom"].iter().filter(|name| info.params.iter().any(|p| p.name == **name));
    1.0 - kept.map(|name| params.number(name)).sum::<f64>()
}
