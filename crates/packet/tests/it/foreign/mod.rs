//! Schemes supplied by the user: DCTCP, implemented through their interface, equals the built-in DCTCP, and an invalid
//! effect ends the run with an error message.

pub mod boxed_dctcp;
mod refusals;

use crate::parts::{ParallelScene, scene, seen_of};
use boxed_dctcp::BoxedDctcp;
use std::sync::Arc;
use subak_core::backend::{Backend, Injected, PacketSizes};
use subak_core::scheme::{FlowShares, Info, Params};
use subak_core::{InputError, Network};
use subak_schemes::Chosen;
use subak_schemes::foreign::{Definition, Faults, Foreign, Made};

/// A scheme definition whose implementation a function creates.
pub struct Mine<F>(pub F);

impl<F> std::fmt::Debug for Mine<F> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Mine")
    }
}

impl<F: Fn(Faults) -> Made + Send + Sync> Definition for Mine<F> {
    fn info(&self) -> &Info {
        &Info { name: "mine", about: "a scheme of a test", paper: "none", ..Info::DEFAULT }
    }
    fn identity(&self) -> &str {
        "mine"
    }
    fn make(&self, _params: &Params) -> Result<Made, InputError> {
        Ok((self.0)(Faults::of("mine")))
    }
}

fn start(definition: &dyn Definition, network: &Network, faults: &[Injected], seed: u64) -> Box<dyn Backend> {
    let (params, sizes) = (serde_json::Map::new(), PacketSizes::default());
    subak_packet::build(Chosen::Foreign(definition), &params, network, sizes, faults, seed).unwrap()
}

fn with_numbers(faults: Faults) -> Made {
    Made::WithNumbers(Foreign(Arc::new(BoxedDctcp::new(faults))))
}

fn plain(faults: Faults) -> Made {
    Made::Plain(Foreign(Arc::new(BoxedDctcp::new(faults))))
}

fn assert_equals_ours(scene: &ParallelScene, made: fn(Faults) -> Made) {
    let definition = Mine(made);
    let network = &scene.net.network;
    let (params, sizes) = (serde_json::Map::new(), PacketSizes::default());
    let ours = subak_packet::build("dctcp", &params, network, sizes, &scene.faults, scene.seed).unwrap();
    let (ours, theirs) = (seen_of(scene, ours), seen_of(scene, start(&definition, network, &scene.faults, scene.seed)));
    let differs = ours.lines().zip(theirs.lines()).find(|(one, other)| one != other);
    assert_eq!(differs, None, "seed {}", scene.seed);
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn a_boxed_dctcp_equals_ours_event_for_event() {
    for seed in 0..20 {
        let scene = scene("dctcp", seed, 3, 2, seed % 2 == 0);
        assert_equals_ours(&scene, with_numbers);
        assert_equals_ours(&scene, plain);
    }
}

#[test]
fn its_doubts_are_those_of_ours() {
    let mut network = crate::common::star(3, 10e9, 1000);
    let (params, sizes) = (serde_json::Map::new(), PacketSizes::default());
    let definition = Mine(plain);
    let both = |network: &Network| {
        let theirs =
            subak_packet::doubts(Chosen::Foreign(&definition), &params, network, sizes, FlowShares::default()).unwrap();
        (subak_packet::doubts("dctcp", &params, network, sizes, FlowShares::default()).unwrap(), theirs)
    };
    assert_eq!(both(&network), (vec![], vec![]));
    let first = network.links().ids().next().unwrap();
    network.link_mut(first).buffer_bytes = Some(20_000);
    let (ours, theirs) = both(&network);
    assert_eq!((ours.len(), &ours), (1, &theirs));
}
