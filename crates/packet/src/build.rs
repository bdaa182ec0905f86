//! Construction of a simulation from a scheme's name.

use crate::parallel::LogicalProcesses;
use crate::sim::Sim;
use subak_core::backend::{Backend, Injected, PacketSizes};
use subak_core::scheme::{Port, Scheme};
use subak_core::{InputError, Network};
use subak_schemes::{Beside, Chosen, Member, Visitor};

/// Creates a simulation of the scheme called `name` on one thread, with no flows. `params` is as in a spec. `seed`
/// determines which packets are impaired.
pub fn build<'a>(
    name: impl Into<Chosen<'a>>,
    params: &serde_json::Map<String, serde_json::Value>,
    network: &Network,
    sizes: PacketSizes,
    faults: &[Injected],
    seed: u64,
) -> Result<Box<dyn Backend>, InputError> {
    build_on(1, name, params, network, sizes, faults, seed)
}

/// Same as [`build`], on up to `threads` threads. Results do not depend on the number of threads. A packet watcher
/// requires one thread. One thread is used in four cases: only one switch has hosts; a link has no end nodes or no
/// delay; the scheme has a controller or state machines at nodes; there are more than 15 impairment rules.
pub fn build_on<'a>(
    threads: usize,
    name: impl Into<Chosen<'a>>,
    params: &serde_json::Map<String, serde_json::Value>,
    network: &Network,
    sizes: PacketSizes,
    faults: &[Injected],
    seed: u64,
) -> Result<Box<dyn Backend>, InputError> {
    // The simulation of every scheme is compiled in this crate, not in the crates that call this function.
    build_chosen(name.into(), params, SimBuilder { threads, network, sizes, faults, seed, order: None })
}

/// A simulation of several schemes on one network, on up to `threads` threads: a flow has the scheme of index
/// [`FlowPlan::scheme`](subak_core::backend::FlowPlan::scheme).
pub fn build_beside(
    threads: usize,
    members: &[Member],
    network: &Network,
    sizes: PacketSizes,
    faults: &[Injected],
    seed: u64,
) -> Result<Box<dyn Backend>, InputError> {
    check(network, sizes)?;
    let schemes = beside(members, network, sizes)?;
    SimBuilder { threads, network, sizes, faults, seed, order: None }.visit(schemes)
}

/// The schemes `members` on one network; an error if they cannot share its links.
pub fn beside(members: &[Member], network: &Network, sizes: PacketSizes) -> Result<Beside, InputError> {
    let schemes = Beside::of(members, network.nic())?;
    let sizes = sizes.with(schemes.rules().headers);
    let rtt_ns = crate::sizing::longest_rtt_ns(network, sizes);
    let links = network.links().iter_enumerated();
    let ports: Vec<Port> = links.map(|(l, link)| crate::sizing::port(l, link, sizes, rtt_ns, 0)).collect();
    schemes.check(&ports, network).map(|()| schemes)
}

/// Same as [`build`], for tests: events enter the wheel in a random order given by `order`. Results must not depend on
/// it, since several threads insert events in any order.
pub fn build_scrambled<'a>(
    order: u64,
    name: impl Into<Chosen<'a>>,
    params: &serde_json::Map<String, serde_json::Value>,
    network: &Network,
    sizes: PacketSizes,
    faults: &[Injected],
    seed: u64,
) -> Result<Box<dyn Backend>, InputError> {
    let builder = SimBuilder { threads: 1, network, sizes, faults, seed, order: Some(order) };
    build_chosen(name.into(), params, builder)
}

fn build_chosen(
    chosen: Chosen,
    params: &serde_json::Map<String, serde_json::Value>,
    builder: SimBuilder,
) -> Result<Box<dyn Backend>, InputError> {
    check(builder.network, builder.sizes)?;
    subak_schemes::with_scheme(chosen, params, builder)?
}

struct SimBuilder<'a> {
    threads: usize,
    network: &'a Network,
    sizes: PacketSizes,
    faults: &'a [Injected],
    seed: u64,
    order: Option<u64>,
}

impl Visitor for SimBuilder<'_> {
    type Out = Result<Box<dyn Backend>, InputError>;
    const RUNS: bool = true;
    fn visit<S: Scheme>(self, scheme: S) -> Self::Out {
        let SimBuilder { threads, network, sizes, faults, seed, order } = self;
        if threads > 1
            && let Some(parts) = LogicalProcesses::checked(&scheme, network, sizes, faults, seed, threads)?
        {
            return Ok(Box::new(parts));
        }
        let mut sim = Sim::checked(scheme, network, sizes, faults, seed)?;
        if let Some(order) = order {
            sim.scramble(order);
        }
        Ok(Box::new(sim))
    }
}

fn check(network: &Network, sizes: PacketSizes) -> Result<(), InputError> {
    if sizes.header_bytes >= sizes.mtu_bytes || sizes.mtu_bytes > 65_535 || sizes.ack_bytes == 0 {
        let what = format!("packets of {} bytes with {} of headers", sizes.mtu_bytes, sizes.header_bytes);
        return Err(InputError::new(
            "packets",
            what,
            "leave room for payload, and let a packet have at most 65535 bytes",
        ));
    }
    for link in network.links() {
        if link.capacity_bps < 1e3 {
            let what = format!("link \"{}\" has {} bit/s", link.id, link.capacity_bps);
            return Err(InputError::new("network", what, "the packet simulator wants at least 1 kb/s"));
        }
    }
    Ok(())
}
