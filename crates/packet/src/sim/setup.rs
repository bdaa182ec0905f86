//! Setup of a simulation: ports with their state machines, faults, nodes, the controller.

use super::nodes::Machines;
use super::{Sim, SimSetup};
use crate::ends::Ends;
use crate::event::{Actor, Event};
use crate::net::{LogicalProcess, Net};
use subak_core::backend::{Injected, PacketSizes};
use subak_core::scheme::{Clock, Hop, Io, Scheme};
use subak_core::{InputError, Network};

impl<S: Scheme> Sim<S> {
    /// Creates a simulation without flows, and starts the links' state machines.
    ///
    /// # Panics
    ///
    /// If the scheme requires PFC and its headroom does not fit into the buffers: see [`Sim::checked`].
    pub fn new(scheme: S, network: &Network, sizes: PacketSizes, faults: &[Injected], seed: u64) -> Self {
        Sim::checked(scheme, network, sizes, faults, seed).expect("buffers have room for headroom")
    }

    /// Same as [`Sim::new`], but returns an error if PFC headroom does not fit into the buffers.
    pub fn checked(
        scheme: S,
        network: &Network,
        sizes: PacketSizes,
        faults: &[Injected],
        seed: u64,
    ) -> Result<Self, InputError> {
        Sim::in_part(scheme, network, sizes, faults, seed, None)
    }

    /// Same as [`Sim::checked`], for one logical process (LP) of a parallel run if `part` is set.
    pub(crate) fn in_part(
        scheme: S,
        network: &Network,
        sizes: PacketSizes,
        faults: &[Injected],
        seed: u64,
        part: Option<Box<LogicalProcess<S>>>,
    ) -> Result<Self, InputError> {
        let rules = scheme.rules();
        let sizes = sizes.with(rules.headers);
        let rtt_ns = crate::sizing::longest_rtt_ns(network, sizes);
        let set = SimSetup { sizes, seed, rtt_ns, line_rate_bps: crate::sizing::largest_line_bps(network) };
        let mut sim = Sim {
            set,
            net: Net::new(&scheme, network, sizes, rtt_ns, faults, seed, part)?,
            ends: Ends::new(&scheme, network, sizes),
            machines: Machines::none(network.nodes().len()),
            scheme,
            io: Io::default(),
            scratch: Vec::new(),
            depth: 0,
            network: network.clone(),
        };
        for fault in faults {
            if let Injected::Restart { machine, at_ns } = *fault {
                let restart = sim.machines.restarts.push(machine);
                if sim.net.has_machine(machine) {
                    sim.net.schedule(at_ns, Event::Restart(restart));
                }
            }
        }
        for link in sim.net.own_links() {
            sim.net.at_hop(link, |hop, _| hop.on_start(&mut sim.io));
            sim.carry_out(Actor::Hop(link));
        }
        sim.make_nodes();
        sim.start_controller();
        if faults.is_empty() && !sim.machines.has_nodes && rules.clock == Clock::Exact {
            sim.fix_departures();
        }
        Ok(sim)
    }

    /// Inserts events into the wheel in a random order given by `seed`.
    pub(crate) fn scramble(&mut self, seed: u64) {
        self.net.scramble(seed);
    }
}
