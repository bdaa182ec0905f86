//! The drivers: what can run a scheme. One entry each; nothing else in this crate knows a driver or a scheme by name.

use crate::spec::setting::Cost;
use serde::Serialize;
use serde_json::{Map, Value};
use subak_core::driver::{Driver, Injected, PacketSizes};
use subak_core::scheme::{Info, Params, Scheme};
use subak_core::{Fault, Network};
use subak_schemes::{Visitor, registry};

/// A scheme with its parameters, as a spec lists it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SchemeChoice {
    /// The scheme's name; `OPTIMIZER/FABRIC` for a pair.
    pub name: String,
    /// What results call it.
    pub label: String,
    /// The parameters given.
    pub params: Map<String, Value>,
}

/// What a simulation is of.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The idle network.
    pub network: &'a Network,
    /// Sizes of packets on the wire.
    pub sizes: PacketSizes,
    /// What goes wrong.
    pub faults: &'a [Injected],
    /// Decides which packets losses take.
    pub seed: u64,
}

/// What a run is expected to have to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// Flows.
    pub flows: f64,
    /// Packets leaving one queue onto one link.
    pub packet_hops: f64,
}

/// A driver.
pub trait DriverKind: Sync {
    /// What it is called.
    fn name(&self) -> &'static str;
    /// One line on what it is.
    fn about(&self) -> &'static str;
    /// The schemes that it runs, in the order in which people see them.
    fn schemes(&self) -> Vec<Info>;
    /// The scheme of that name; a fault says which there are.
    fn find(&self, name: &str) -> Result<Info, Fault>;
    /// Refuses parameters that make no sense; the share of a link that the scheme means to give to data.
    fn data_share(&self, name: &str, params: &Map<String, Value>) -> Result<f64, Fault>;
    /// A simulation of the scheme.
    fn build(&self, name: &str, params: &Map<String, Value>, scene: Scene) -> Result<Box<dyn Driver>, Fault>;
    /// What a run takes.
    fn cost(&self, expected: Expected) -> Cost;
}

/// Every driver of `subak run`.
pub const DRIVERS: &[&dyn DriverKind] = &[&Fluid, &Packets];

/// The driver that runs the scheme called `name`, and what the scheme says of itself.
pub fn find(name: &str) -> Result<(&'static dyn DriverKind, Info), Fault> {
    let known = DRIVERS.iter().find_map(|driver| driver.find(name).ok().map(|info| (*driver, info)));
    // The last driver knows why a pair is none.
    known.ok_or_else(|| match DRIVERS.last().map(|driver| driver.find(name)) {
        Some(Err(fault)) if name.contains('/') => fault,
        _ => {
            let all = all();
            let names: Vec<_> = all.iter().map(|s| s.name).collect();
            subak_core::document::unknown_word(name, "scheme", &names).below("name")
        }
    })
}

/// Every scheme that has a name, in the order of the drivers.
pub fn all() -> Vec<Info> {
    DRIVERS.iter().flat_map(|driver| driver.schemes()).collect()
}

/// `subak-packet`.
struct Packets;

struct Share;

impl Visitor for Share {
    type Out = f64;
    fn visit<S: Scheme>(self, scheme: S) -> f64 {
        scheme.data_share()
    }
}

impl DriverKind for Packets {
    fn name(&self) -> &'static str {
        "packet"
    }
    fn about(&self) -> &'static str {
        "every packet on its way through queues and links"
    }
    fn schemes(&self) -> Vec<Info> {
        registry::schemes().to_vec()
    }
    fn find(&self, name: &str) -> Result<Info, Fault> {
        registry::find(name).copied()
    }
    fn data_share(&self, name: &str, params: &Map<String, Value>) -> Result<f64, Fault> {
        subak_schemes::with_scheme(name, params, Share)
    }
    fn build(&self, name: &str, params: &Map<String, Value>, scene: Scene) -> Result<Box<dyn Driver>, Fault> {
        subak_packet::build(name, params, scene.network, scene.sizes, scene.faults, scene.seed)
    }
    /// 150 ns a packet-hop of data or acknowledgement.
    fn cost(&self, expected: Expected) -> Cost {
        let Expected { flows, packet_hops } = expected;
        Cost { flows, packet_hops, seconds: packet_hops * 150e-9 }
    }
}

/// `subak-fluid`.
struct Fluid;

impl DriverKind for Fluid {
    fn name(&self) -> &'static str {
        "fluid"
    }
    fn about(&self) -> &'static str {
        "rates instead of packets"
    }
    fn schemes(&self) -> Vec<Info> {
        vec![subak_fluid::INFO]
    }
    fn find(&self, name: &str) -> Result<Info, Fault> {
        let known = self.schemes();
        let names: Vec<_> = known.iter().map(|s| s.name).collect();
        let found = known.iter().find(|s| s.name == name).copied();
        found.ok_or_else(|| subak_core::document::unknown_word(name, "scheme", &names))
    }
    fn data_share(&self, _name: &str, params: &Map<String, Value>) -> Result<f64, Fault> {
        Params::resolve(&subak_fluid::INFO, params).map(|_| 1.0)
    }
    fn build(&self, _name: &str, params: &Map<String, Value>, scene: Scene) -> Result<Box<dyn Driver>, Fault> {
        Ok(Box::new(subak_fluid::Ideal::new(params, scene.network, scene.sizes, scene.faults)?))
    }
    /// 0.1 us for each flow that is there when one comes or goes.
    fn cost(&self, expected: Expected) -> Cost {
        let flows = expected.flows;
        Cost { flows, packet_hops: 0.0, seconds: 2.0 * flows * (20e-6 + 1e-7 * flows.sqrt()) }
    }
}
