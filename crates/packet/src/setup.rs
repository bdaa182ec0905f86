//! Setup of a simulation: ports with their state machines, faults, nodes, the controller.

use crate::event::{Actor, Event};
use crate::flows::Flows;
use crate::impairments::{Impairments, Rule};
use crate::nodes::Machines;
use crate::pfc::Pfc;
use crate::port::PortState;
use crate::process::LogicalProcess;
use crate::routes::Routes;
use crate::sim::{Sim, SimCounts, SimSetup};
use crate::turns::Turns;
use crate::waiting::Handled;
use crate::wheel::Wheel;
use hdrhistogram::Histogram;
use subak_core::backend::{Injected, PacketSizes};
use subak_core::rng::Stream;
use subak_core::scheme::{Hop, Io, Scheme, Slab};
use subak_core::{IdVec, InputError, LinkId, Network, Nic};

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
        Sim::part(scheme, network, sizes, faults, seed, None)
    }

    /// Same as [`Sim::checked`], for one logical process (LP) of a parallel run if `part` is set.
    pub(crate) fn part(
        scheme: S,
        network: &Network,
        sizes: PacketSizes,
        faults: &[Injected],
        seed: u64,
        part: Option<Box<LogicalProcess<S>>>,
    ) -> Result<Self, InputError> {
        let rules = scheme.rules();
        let sizes = sizes.with(rules.headers);
        let pfc = rules.lossless.map(|pfc| Pfc::new(pfc, network, sizes, rules.clock)).transpose()?;
        let rtt_ns = crate::sizing::longest_rtt_ns(network, sizes);
        let reverse_links = network.reverse_links();
        let ports = network.links().iter_enumerated().map(|(l, link)| {
            let port = crate::doubts::port(l, link, sizes, rtt_ns, seed);
            PortState::new(&scheme, port, reverse_links[l])
        });
        let mut ports: IdVec<LinkId, PortState<S>> = ports.collect();
        let mut inputs = IdVec::filled(0u16, network.nodes().len());
        for (l, port) in ports.iter_enumerated_mut() {
            // Links without nodes are distinguished by their own numbers.
            port.input = match port.port.to {
                Some(to) => {
                    inputs[to] = inputs[to].wrapping_add(1);
                    inputs[to]
                }
                None => l.0 as u16,
            };
        }
        let set = SimSetup {
            sizes,
            seed,
            rtt_ns,
            line_rate_bps: crate::sizing::largest_line_bps(network),
            takes_turns: !rules.pacing.one_timer && rules.nic.unwrap_or(network.nic()) == Nic::TakesTurns,
            clock: rules.clock,
            pacing: rules.pacing,
            go_back: rules.recovery.go_back,
            acks: rules.acks,
            fixes_departures: false,
            at_sender: false,
        };
        let nics = IdVec::filled(Turns::default(), if rules.pacing.one_timer { ports.len() } else { 0 });
        let mut sim = Sim {
            ports,
            nics,
            set,
            pfc,
            scheme,
            now_ns: 0,
            handled: Handled::none(),
            wheel: Wheel::new(crate::sizing::bucket_shift(network)),
            slab: Slab::default(),
            routes: Routes::default(),
            flows: Flows::default(),
            subs: IdVec::new(),
            io: Io::default(),
            scratch: Vec::new(),
            answers: None,
            network: network.clone(),
            machines: Machines::none(network.nodes().len()),
            impairments: Impairments { link_changes: Injected::link_changes(faults).into(), ..Impairments::default() },
            dropped: Vec::new(),
            watcher: None,
            counts: SimCounts {
                open_flows: 0,
                unfinished: 0,
                finished: Vec::new(),
                // The histogram's range is fixed, since recording saturates instead of resizing. 2^40 ns is about
                // 18 minutes.
                waits: Histogram::new_with_bounds(1, 1 << 40, 2).expect("two digits and a proper range"),
                packet_hops: 0,
                events: 0,
            },
            part,
        };
        sim.mark_part();
        for fault in faults {
            sim.inject(fault);
        }
        for (k, &(at_ns, ..)) in sim.impairments.link_changes.iter_enumerated() {
            sim.wheel.push(at_ns, Event::LinkChange(k));
        }
        for link in sim.ports.ids().filter(|&link| sim.ports[link].begins_here).collect::<Vec<_>>() {
            sim.ports[link].hop.on_start(&mut sim.io);
            sim.carry_out(Actor::Hop(link));
        }
        sim.make_nodes();
        sim.start_controller();
        if faults.is_empty() {
            sim.fix_departures();
        }
        Ok(sim)
    }

    /// Inserts events into the wheel in a random order given by `seed`, for tests. Results must not depend on it,
    /// since several threads insert events in any order.
    pub fn scramble(&mut self, seed: u64) {
        self.wheel.scramble(seed);
    }

    fn inject(&mut self, fault: &Injected) {
        match fault.clone() {
            Injected::Packets { impairment, kinds, links, probability, from_ns, until_ns } => {
                self.impairments.rules.push(Rule { impairment, kinds, links, probability, from_ns, until_ns });
                if self.impairments.rngs.is_empty() {
                    self.impairments.rngs = self.ports.iter().map(|p| Stream::new(p.port.seed, "mishaps")).collect();
                }
            }
            Injected::Restart { machine, at_ns } => {
                let restart = self.impairments.restarts.push(machine);
                if self.has_machine(machine) {
                    self.wheel.push(at_ns, Event::Restart(restart));
                }
            }
            Injected::Down { link, down_ns, up_ns, keeps } => {
                self.impairments.has_downs = true;
                if !keeps {
                    self.impairments.drops.entry(link).or_default().push((down_ns, up_ns));
                }
            }
            Injected::Capacity { .. } => {}
        }
    }
}
