//! A controller in the network: a simple allocator that divides one link among all flows. Sources request rates over
//! a network that loses messages.

use crate::common::*;
use subak_core::backend::{Backend, Kinds, PacketSizes, Route};
use subak_core::scheme::*;
use subak_core::{FlowId, InputError, LinkId, Network, NodeId, Ns, SubflowId};
use subak_schemes::queue::Fifo;

#[derive(Clone)]
struct Toy;

#[derive(Debug, Clone)]
enum Message {
    Hello,
    Rate(f64),
}

struct Asker {
    answered: bool,
}

struct Allocator {
    flows: Vec<FlowId>,
}

const RETRY_NS: Ns = 50_000;

impl Scheme for Toy {
    type Data = ();
    type Ctl = Message;
    type Queue = Fifo;
    type Source = Asker;
    type Hop = ();
    type Sink = ();
    fn new(_params: &Params) -> Result<Self, InputError> {
        Ok(Toy)
    }
    fn queue(&self, port: &Port) -> Fifo {
        Fifo::new(port.buffer_bytes)
    }
    fn source(&self, _flow: &FlowInfo) -> Asker {
        Asker { answered: false }
    }
    fn hop(&self, _port: &Port) {}
    fn sink(&self, _flow: &FlowInfo) {}
    fn controller(&self, _network: &Network) -> Option<Box<dyn Controller<Self>>> {
        Some(Box::new(Allocator { flows: Vec::new() }))
    }
}

impl Source<Toy> for Asker {
    fn on_start(&mut self, io: &mut Io<Toy>) {
        io.ctl(To::Controller, SubflowId(0), Message::Hello, Class::Control, 64);
        io.timer(0, io.now_ns + RETRY_NS);
    }
    fn on_timer(&mut self, io: &mut Io<Toy>, _timer: u32) {
        if !self.answered {
            self.on_start(io);
        }
    }
    fn on_ctl(&mut self, io: &mut Io<Toy>, subflow: SubflowId, message: Message) {
        if let Message::Rate(rate_bps) = message {
            self.answered = true;
            io.pace(subflow, Some(rate_bps), None);
        }
    }
}

impl Controller<Toy> for Allocator {
    fn on_ctl(&mut self, io: &mut Io<Toy>, flow: FlowId, _message: Message) {
        if !self.flows.contains(&flow) {
            self.flows.push(flow);
        }
        for &f in &self.flows {
            io.ctl(To::Flow(f), SubflowId(0), Message::Rate(8e9 / self.flows.len() as f64), Class::Control, 64);
        }
    }
}

/// Routes from every host of a star to the controller at `at`.
pub fn ways(network: &Network, at: usize) -> Vec<(NodeId, Route)> {
    let there = |h: usize| if h == at { Route { forward: vec![], back: vec![] } } else { over_star(h, at) };
    network.hosts().enumerate().map(|(h, node)| (node, there(h))).collect()
}

#[test]
fn sources_get_their_rates_from_a_controller_across_a_lossy_network() {
    let network = star(6, 10e9, 1000);
    let faults = [lose(0.2, Kinds { data: false, ack: false, ctl: true })];
    let mut sim = subak_packet::Sim::new(Toy, &network, PacketSizes::default(), &faults, 7);
    let sim: &mut dyn Backend = &mut sim;
    sim.place_controller(&ways(&network, 5));
    let flows: Vec<_> = (1..=4).map(|h| sim.add(plan(over_star(h, 0), 0, None))).collect();
    // This allocator does not resend lost rates, so that rates may be stale: the test checks only that requests and
    // answers cross the network.
    sim.run_until(20_000_000);
    for &f in &flows {
        let view = sim.flow(f);
        assert!(view.assigned_bps >= 2e9, "flow {f} was never answered");
        assert!(view.received_bytes > 0);
    }
    assert!(
        sim.link(LinkId(11)).ctl_bytes > 0 && sim.link(LinkId(10)).ctl_bytes > 0,
        "messages cross the controller's own links"
    );
}
