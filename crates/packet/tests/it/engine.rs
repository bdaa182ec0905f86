//! Features of the simulator that no built-in scheme uses, tested with simple schemes: pauses between switches,
//! changing weights, and hosts that batch messages for a restarting controller. Also tests that the order of
//! events does not depend on insertion.

use crate::common::*;
use crate::controller::ways;
use std::collections::BTreeMap;
use subak_core::backend::{Backend, FlowPlan, Impairment, Injected, Kinds, Machine, NOT_YET, PacketSizes};
use subak_core::scheme::*;
use subak_core::{FlowId, InputError, LinkId, Network, NodeId, NodeKind, Ns, SubflowId};
use subak_packet::{Sim, build_scrambled};
use subak_schemes::queue::Fifo;

const US: u64 = 1000;
const MS: u64 = 1_000_000;

/// A scheme that always sends a window of 60 KB at line rate; `pauses`: switches pause their neighbours.
#[derive(Debug, Clone, Copy)]
struct Blast {
    pauses: bool,
}

#[derive(Debug, Clone, Copy)]
enum Frame {
    Pause,
    Resume,
}

struct Blaster;

/// State machine of a switch with a shared buffer: bytes by ingress link, and whether that link is paused.
struct Switch {
    came: BTreeMap<LinkId, (u64, bool)>,
    held_bytes: u64,
}

/// State machine of a link that obeys pauses.
struct Obeying;

const BUFFER_BYTES: u64 = 200_000;
const PAUSE_BYTES: u64 = 15_000;
const RESUME_BYTES: u64 = 8_000;

impl Scheme for Blast {
    type Data = ();
    type Ctl = Frame;
    type Queue = Fifo;
    type Source = Blaster;
    type Hop = Obeying;
    type Sink = ();
    fn new(_params: &Params) -> Result<Self, InputError> {
        Ok(Blast { pauses: true })
    }
    fn queue(&self, _port: &Port) -> Fifo {
        Fifo::new(u64::MAX)
    }
    fn source(&self, _flow: &FlowInfo) -> Blaster {
        Blaster
    }
    fn hop(&self, _port: &Port) -> Obeying {
        Obeying
    }
    fn sink(&self, _flow: &FlowInfo) {}
    fn node(&self, node: &NodeInfo) -> Option<Box<dyn NodeMachine<Self>>> {
        (!node.is_host)
            .then(|| Box::new(Switch { came: BTreeMap::new(), held_bytes: 0 }) as Box<dyn NodeMachine<Self>>)
            .filter(|_| self.pauses)
            .or_else(|| (!node.is_host).then(|| Box::new(Bare { held_bytes: 0 }) as Box<dyn NodeMachine<Self>>))
    }
}

impl Source<Blast> for Blaster {
    fn on_start(&mut self, io: &mut Io<Blast>) {
        io.pace(SubflowId(0), None, Some(60_000));
    }
}

impl Hop<Blast> for Obeying {
    fn on_neighbour(&mut self, io: &mut Io<Blast>, frame: Frame, port: &Port) {
        io.pause(port.link, Class::Low, matches!(frame, Frame::Pause));
    }
}

impl NodeMachine<Blast> for Switch {
    fn admits(&mut self, io: &mut Io<Blast>, packet: &Packet<Blast>, _port: &Port) -> bool {
        let bytes = u64::from(packet.bytes);
        if self.held_bytes + bytes > BUFFER_BYTES {
            return false;
        }
        self.held_bytes += bytes;
        if let Some(link) = io.came_by {
            let (held, paused) = self.came.entry(link).or_default();
            *held += bytes;
            if *held > PAUSE_BYTES && !std::mem::replace(paused, true) {
                io.ctl(To::Neighbour(link), SubflowId(0), Frame::Pause, Class::Control, 64);
            }
        }
        true
    }
    fn on_leave(&mut self, io: &mut Io<Blast>, packet: &Packet<Blast>, _port: &Port) {
        self.held_bytes -= u64::from(packet.bytes);
        if let Some(link) = io.came_by {
            let (held, paused) = self.came.entry(link).or_default();
            *held -= u64::from(packet.bytes);
            if *held < RESUME_BYTES && std::mem::replace(paused, false) {
                io.ctl(To::Neighbour(link), SubflowId(0), Frame::Resume, Class::Control, 64);
            }
        }
    }
}

/// State machine of a switch with the same shared buffer, but without pauses.
struct Bare {
    held_bytes: u64,
}

impl NodeMachine<Blast> for Bare {
    fn admits(&mut self, _io: &mut Io<Blast>, packet: &Packet<Blast>, _port: &Port) -> bool {
        let fits = self.held_bytes + u64::from(packet.bytes) <= BUFFER_BYTES;
        self.held_bytes += if fits { u64::from(packet.bytes) } else { 0 };
        fits
    }
    fn on_leave(&mut self, _io: &mut Io<Blast>, packet: &Packet<Blast>, _port: &Port) {
        self.held_bytes -= u64::from(packet.bytes);
    }
}

/// Eight senders at one switch, one receiver at another. Link 2 k is the uplink of sender k, link 16 joins the
/// switches.
fn two_switches() -> (Network, Vec<FlowPlan>) {
    let mut network = Network::new();
    let [near, far] = ["near", "far"].map(|name| network.node(name, NodeKind::Switch));
    for k in 0..8 {
        let host = network.node(&format!("h{k}"), NodeKind::Host);
        network.connect(host, near, 10e9, 1000, None).unwrap();
    }
    network.connect(near, far, 40e9, 1000, None).unwrap();
    let receiver = network.node("receiver", NodeKind::Host);
    network.connect(far, receiver, 10e9, 1000, None).unwrap();
    let route = |k: u32| route([2 * k, 16, 18], [19, 17, 2 * k + 1]);
    (network, (0..8).map(|k| plan(route(k), 0, Some(1_000_000))).collect())
}

#[test]
fn pauses_between_switches_lose_nothing_where_a_scheme_without_them_does() {
    for pauses in [true, false] {
        let (network, plans) = two_switches();
        let mut sim = Sim::new(Blast { pauses }, &network, PacketSizes::default(), &[], 1);
        let flows: Vec<_> = plans.into_iter().map(|p| sim.add(p)).collect();
        sim.run_until_done(200 * MS);
        assert!(flows.iter().all(|&f| sim.flow(f).finished_ns.is_some()), "pauses: {pauses}");
        let dropped: u64 = (0..20).map(|l| sim.link(LinkId(l)).dropped_packets).sum();
        let pauses_sent: u64 = (0..20).map(|l| sim.link(LinkId(l)).ctl_bytes).sum();
        assert_eq!((dropped == 0, pauses_sent > 0), (pauses, pauses), "{dropped} dropped");
        if pauses {
            // 8 MB at 10 Gb/s take 6.6 ms on the wire: pausing keeps the last link busy.
            let last = flows.iter().filter_map(|&f| sim.flow(f).finished_ns).max().unwrap();
            assert!(last < 7 * MS, "{last}");
        }
    }
}

/// A scheme with an allocator that receives batches of flows from hosts, and divides 8 Gb/s among the flows.
#[derive(Debug, Clone, Copy)]
struct Batched;

#[derive(Debug, Clone)]
enum Word {
    /// From a source to its host: there is a new flow.
    Hello,
    /// From a host to the controller: all its flows.
    Flows(Vec<FlowId>),
    /// From the controller to a host: the rate of each of its flows.
    Rate(f64),
}

struct Asking;

/// State machine of a host. It sends its list of flows every 50 us, so that a restarted controller receives the
/// list again.
#[derive(Default)]
struct HostOf {
    flows: Vec<FlowId>,
}

#[derive(Default)]
struct Allocator {
    by_node: BTreeMap<NodeId, Vec<FlowId>>,
}

const REPEAT_NS: Ns = 50 * US;

impl Scheme for Batched {
    type Data = ();
    type Ctl = Word;
    type Queue = Fifo;
    type Source = Asking;
    type Hop = ();
    type Sink = ();
    fn new(_params: &Params) -> Result<Self, InputError> {
        Ok(Batched)
    }
    fn queue(&self, port: &Port) -> Fifo {
        Fifo::new(port.buffer_bytes)
    }
    fn source(&self, _flow: &FlowInfo) -> Asking {
        Asking
    }
    fn hop(&self, _port: &Port) {}
    fn sink(&self, _flow: &FlowInfo) {}
    fn node(&self, node: &NodeInfo) -> Option<Box<dyn NodeMachine<Self>>> {
        node.is_host.then(|| Box::new(HostOf::default()) as Box<dyn NodeMachine<Self>>)
    }
    fn controller(&self, _network: &Network) -> Option<Box<dyn Controller<Self>>> {
        Some(Box::new(Allocator::default()))
    }
}

impl Source<Batched> for Asking {
    fn on_start(&mut self, io: &mut Io<Batched>) {
        io.ctl(To::Host, SubflowId(0), Word::Hello, Class::Control, 0);
    }
    fn on_ctl(&mut self, io: &mut Io<Batched>, subflow: SubflowId, word: Word) {
        if let Word::Rate(rate_bps) = word {
            io.pace(subflow, Some(rate_bps), None);
        }
    }
}

impl NodeMachine<Batched> for HostOf {
    fn on_start(&mut self, io: &mut Io<Batched>) {
        io.timer(0, io.now_ns + REPEAT_NS);
    }
    fn on_flow(&mut self, _io: &mut Io<Batched>, flow: FlowId, _word: Word) {
        self.flows.push(flow);
    }
    fn on_timer(&mut self, io: &mut Io<Batched>, _timer: u32) {
        if !self.flows.is_empty() {
            io.ctl(To::Controller, SubflowId(0), Word::Flows(self.flows.clone()), Class::Control, 64);
        }
        io.timer(0, io.now_ns + REPEAT_NS);
    }
    fn on_ctl(&mut self, io: &mut Io<Batched>, word: Word) {
        for &flow in &self.flows {
            io.ctl(To::Flow(flow), SubflowId(0), word.clone(), Class::Control, 0);
        }
    }
}

impl Controller<Batched> for Allocator {
    fn on_node(&mut self, io: &mut Io<Batched>, node: NodeId, word: Word) {
        if let Word::Flows(flows) = word {
            self.by_node.insert(node, flows);
        }
        let all: usize = self.by_node.values().map(Vec::len).sum();
        for &node in self.by_node.keys() {
            io.ctl(To::Node(node), SubflowId(0), Word::Rate(8e9 / all as f64), Class::Control, 64);
        }
    }
}

#[test]
fn hosts_batch_for_a_controller_that_survives_its_restart() {
    let network = star(6, 10e9, 1000);
    let restart = Injected::Restart { machine: Machine::Controller, at_ns: 2 * MS };
    let faults = [restart, lose(0.05, Kinds { data: false, ack: false, ctl: true })];
    let mut sim = Sim::new(Batched, &network, PacketSizes::default(), &faults, 3);
    sim.place_controller(&ways(&network, 5));
    // Five flows at each of four hosts.
    let flows: Vec<_> = (0..20).map(|k| sim.add(plan(over_star(1 + k % 4, 0), 0, None))).collect();
    for (until_ns, what) in [(MS, "at first"), (4 * MS, "after the restart")] {
        sim.run_until(until_ns);
        for &f in &flows {
            let rate = sim.flow(f).assigned_bps;
            assert!((rate / 0.4e9 - 1.0).abs() < 1e-9, "{what}: flow {f} has {rate}");
        }
    }
    // In 50 us each host sends one message, and the controller sends at most four: the number does not grow with
    // flows.
    let sent = sim.link(LinkId(11)).ctl_bytes / 64;
    assert!((250..=4 * 80).contains(&sent), "{sent} messages reached the controller in 80 rounds of four hosts");
}

/// Shares of four flows over one link: with equal weights, with a weight of 5 for the first flow, and with equal weights again.
fn reweighed(scheme: &str, policy_has_utilities: bool) -> [Vec<f64>; 3] {
    let network = star(5, 10e9, 1000);
    let mut sim = start(scheme, &network, &[], 1);
    let flows: Vec<_> = (1..=4).map(|h| sim.add(plan(over_star(h, 0), 0, None))).collect();
    let shares = |from_ns: Ns, until_ns: Ns, sim: &mut dyn Backend| -> Vec<f64> {
        sim.run_until(from_ns);
        let before: Vec<u64> = flows.iter().map(|&f| sim.flow(f).received_wire_bytes).collect();
        sim.run_until(until_ns);
        let got: Vec<f64> =
            flows.iter().zip(before).map(|(&f, b)| (sim.flow(f).received_wire_bytes - b) as f64).collect();
        let all: f64 = got.iter().sum();
        got.iter().map(|g| g / all).collect()
    };
    let equal = shares(700 * US, MS, &mut *sim);
    let set = |weight: f64, sim: &mut dyn Backend| {
        let utility = policy_has_utilities.then(|| std::sync::Arc::new(subak_core::Utility::log(weight)));
        sim.set_weight(flows[0], weight, utility);
    };
    set(5.0, &mut *sim);
    let unequal = shares(1300 * US, 2 * MS, &mut *sim);
    set(1.0, &mut *sim);
    [equal, unequal, shares(2300 * US, 3 * MS, &mut *sim)]
}

#[test]
fn a_weight_that_changes_moves_the_rates_and_back() {
    let perc = ["fair", "charny", "n-perc", "s-perc", "s-perc-star", "numfabric-swift"].map(|scheme| (scheme, false));
    for (scheme, utilities) in perc.into_iter().chain([("numfabric", true)]) {
        let [equal, after, again] = reweighed(scheme, utilities);
        for shares in [&equal, &again] {
            assert!(shares.iter().all(|share| (share - 0.25).abs() < 0.02), "{scheme}: {equal:?}, then {again:?}");
        }
        assert!((after[0] - 0.625).abs() < 0.03, "{scheme}: {after:?}");
        assert!(after[1..].iter().all(|share| (share - 0.125).abs() < 0.02), "{scheme}: {after:?}");
    }
}

#[test]
fn a_flow_that_waits_sends_nothing_whatever_changes_and_starts_as_changed() {
    // The controller is at the last host.
    let network = star(6, 10e9, 1000);
    for scheme in schemes() {
        let run = |changes: bool| {
            let mut sim = start(scheme, &network, &[], 1);
            place_controller(&mut *sim, &network);
            let waits = sim.add(FlowPlan { start_ns: NOT_YET, ..plan(over_star(1, 0), 0, Some(3000)) });
            let later = sim.add(plan(over_star(2, 0), MS, Some(3000)));
            sim.add(plan(over_star(3, 0), 0, Some(30_000)));
            for flow in [waits, later].into_iter().filter(|_| changes) {
                sim.set_weight(flow, 2.0, None);
                sim.reroute(flow, &[over_star(4, 0)]);
            }
            sim.run_until(900 * US);
            for flow in [waits, later] {
                let view = sim.flow(flow);
                assert_eq!((view.sent_bytes, view.finished_ns), (0, None), "{scheme}: {view:?}");
            }
            let said = network.links().ids().map(|l| sim.link(l).ctl_bytes).collect::<Vec<u64>>();
            sim.start_flow(waits, MS);
            sim.run_until_done(MS * 1000);
            for flow in [waits, later] {
                let view = sim.flow(flow);
                assert!(view.finished_ns.is_some_and(|at| at > MS), "{scheme}: {view:?}");
            }
            (said, sim.link(LinkId(8)).data_bytes)
        };
        let (unchanged, changed) = (run(false), run(true));
        assert_eq!(changed.0, unchanged.0, "{scheme}: messages of flows that wait");
        assert!(changed.1 >= 6000 && unchanged.1 == 0, "{scheme}: both flows take the new path");
    }
}

#[test]
fn events_inserted_in_another_order_give_the_same_run() {
    let every = |impairment_of, probability| impairment(impairment_of, probability, EVERY_KIND);
    let faults =
        [every(Impairment::Lost, 0.005), every(Impairment::Doubled, 0.005), every(Impairment::Late(20 * US), 0.005)];
    let network = star(6, 10e9, 1000);
    for info in subak_schemes::registry::all() {
        let run = |order| {
            let sizes = PacketSizes::default();
            let sim = build_scrambled(order, info.name, &Default::default(), &network, sizes, &faults, 5);
            let mut sim = sim.unwrap();
            place_controller(&mut *sim, &network);
            // Many flows have events at the same times: starts, sizes and path lengths are equal.
            let flows: Vec<_> = (0..30usize)
                .map(|k| {
                    sim.add(plan(over_star(k % 6, (k + 1 + k / 6) % 6), (k / 10) as u64 * 100 * US, Some(300_000)))
                })
                .collect();
            sim.run_until_done(500 * MS);
            let views: Vec<_> = flows.iter().map(|&f| sim.flow(f)).collect();
            let links: Vec<_> = (0..12).map(|l| sim.link(LinkId(l))).collect();
            (views, links, sim.events(), sim.packet_hops())
        };
        let plain = run(100);
        assert!(plain.2 > 10_000, "{}", info.name);
        for seed in 1..3 {
            assert!(run(seed) == plain, "{}, order {seed}", info.name);
        }
    }
}

#[test]
fn doubled_and_late_packets_deliver_every_byte_once() {
    for scheme in schemes() {
        let faults = [
            impairment(Impairment::Doubled, 0.02, EVERY_KIND),
            impairment(Impairment::Late(50 * US), 0.02, EVERY_KIND),
        ];
        let mut sim = start(scheme, &star(4, 10e9, 1000), &faults, 2);
        let flows: Vec<_> = (0..3).map(|k| sim.add(plan(over_star(k, 3), 0, Some(500_000)))).collect();
        sim.run_until_done(2_000 * MS);
        for f in flows {
            let view = sim.flow(f);
            assert_eq!((view.received_bytes, view.finished_ns.is_some()), (500_000, true), "{scheme}: {view:?}");
            assert!(view.duplicate_bytes > 0, "{scheme}: the fault must bite");
        }
    }
}

#[test]
fn flows_in_step_do_not_lock_each_other_out_of_a_full_queue() {
    for scheme in ["reno", "dctcp"] {
        for offset_ns in [0, 1200, 30_000, 1_000_000] {
            let mut sim = start(scheme, &star(3, 10e9, 1000), &[], 1);
            let flows = [sim.add(plan(over_star(1, 0), 0, None)), sim.add(plan(over_star(2, 0), offset_ns, None))];
            sim.run_until(100 * MS);
            let bytes = flows.map(|f| sim.flow(f).received_bytes as f64);
            let least = bytes[0].min(bytes[1]) / (bytes[0] + bytes[1]);
            assert!(least > 0.25, "{scheme}, {offset_ns} ns apart: one has {:.1}%", 100.0 * least);
        }
    }
}
