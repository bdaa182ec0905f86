//! An order on the scheme's machines: sources, links and sinks.

use super::model::{Explored, OrderLimits, Step};
use serde_json::{Map, json};
use subak_core::scheme::{Effect, FlowInfo, Hop, Io, Params, PathInfo, Port, Scheme, Sink, Source, Visit};
use subak_core::{FlowId, LinkId, SubflowId};
use subak_rounds::Setup;
use subak_schemes::perc::{Perc, PercMessage};

/// RTO_ctrl, ns. The clock stands still but for a source that waits for so long.
const RTO_NS: u64 = 1_000_000;

struct Machines<R: Explored> {
    io: Io<Perc<R>>,
    ports: Vec<Port>,
    hops: Vec<<Perc<R> as Scheme>::Hop>,
    timers: Vec<u32>,
    flows: Vec<FlowMachines<R>>,
}

struct FlowMachines<R: Explored> {
    path: Vec<usize>,
    source: <Perc<R> as Scheme>::Source,
    sink: <Perc<R> as Scheme>::Sink,
    watch: u32,
    packet: Option<PercMessage<R>>,
    at: usize,
}

/// The allocations that links write in `steps`, bit/s, by pass.
pub fn allocations<R: Explored>(setup: &Setup, limits: OrderLimits, steps: &[Step]) -> Vec<Option<f64>> {
    let mut machines = Machines::<R>::new(setup, limits);
    let pass = |step: &Step| match *step {
        Step::Pass(f) => Some(machines.pass(usize::from(f), limits)),
        Step::End(l) => {
            machines.end(usize::from(l));
            None
        }
        Step::EndAll => {
            (0..machines.hops.len()).for_each(|l| machines.end(l));
            None
        }
        Step::Lose(f) => {
            machines.flows[usize::from(f)].packet = None;
            None
        }
        Step::Leave(f) => {
            machines.flows[usize::from(f)].source.on_finish(&mut machines.io);
            assert_eq!(machines.io.take_effects().count(), 0, "a packet is out");
            None
        }
    };
    steps.iter().filter_map(pass).collect()
}

impl<R: Explored> Machines<R> {
    fn new(setup: &Setup, limits: OrderLimits) -> Self {
        let mut given = Map::new();
        for (name, value) in [("control", json!(0)), ("headroom", json!(0)), ("reverse", json!(limits.reverse))] {
            given.insert(name.into(), value);
        }
        given.insert("rto".into(), json!(RTO_NS as f64 / 1e9));
        given.insert("round".into(), json!(1));
        let scheme = Perc::<R>::new(&Params::resolve(&R::INFO, &given).unwrap()).unwrap();
        let mut io = Io::default();
        let port = |(link, wire): (LinkId, &subak_rounds::Wire)| Port {
            capacity_bps: wire.capacity_bps,
            ..Port::example(link, wire.capacity_bps)
        };
        let ports: Vec<Port> = setup.wires.iter_enumerated().map(port).collect();
        let mut hops: Vec<_> = ports.iter().map(|port| scheme.hop(port)).collect();
        let timers = hops.iter_mut().map(|hop| {
            hop.on_start(&mut io);
            timer_of(&mut io)
        });
        let timers = timers.collect();
        let flow = |(f, path): (FlowId, &Vec<LinkId>)| {
            let info =
                PathInfo { hops: path.len() as u16, line_rate_bps: 1e11, min_capacity_bps: 1e9, base_rtt_ns: 10_000 };
            let info = FlowInfo::example(f, vec![info]);
            let (mut source, sink) = (scheme.source(&info), scheme.sink(&info));
            source.on_start(&mut io);
            let (mut packet, mut watch) = (None, None);
            for effect in io.take_effects() {
                match effect {
                    Effect::Ctl { message, .. } => packet = Some(message),
                    Effect::Timer { timer, .. } => watch = Some(timer),
                    _ => {}
                }
            }
            let path = path.iter().map(|l| l.index()).collect();
            FlowMachines { path, source, sink, watch: watch.unwrap(), packet, at: 0 }
        };
        let flows = setup.paths.iter_enumerated().map(flow).collect();
        Machines { io, ports, hops, timers, flows }
    }

    fn end(&mut self, l: usize) {
        self.hops[l].on_timer(&mut self.io, self.timers[l], &self.ports[l]);
        self.timers[l] = timer_of(&mut self.io);
    }

    fn sent(&mut self) -> Option<PercMessage<R>> {
        let message = |effect| match effect {
            Effect::Ctl { message, .. } => Some(message),
            _ => None,
        };
        self.io.take_effects().filter_map(message).next()
    }

    /// Waits for RTO_ctrl. What a probe is for is known here: the path is there.
    fn restart(&mut self, f: usize) {
        self.io.now_ns += RTO_NS;
        let flow = &mut self.flows[f];
        flow.source.on_timer(&mut self.io, flow.watch);
        let mut packet = self.sent().unwrap();
        if packet.probe {
            self.flows[f].source.on_ctl(&mut self.io, SubflowId(0), packet);
            packet = self.sent().unwrap();
        }
        (self.flows[f].packet, self.flows[f].at) = (Some(packet), 0);
    }

    fn pass(&mut self, f: usize, limits: OrderLimits) -> Option<f64> {
        if self.flows[f].packet.is_none() {
            self.restart(f);
        }
        let flow = &mut self.flows[f];
        let hops = flow.path.len();
        let (hop, forward) = if flow.at < hops { (flow.at, true) } else { (2 * hops - 1 - flow.at, false) };
        let visit = Visit { flow: FlowId::from_index(f), subflow: SubflowId(0), hop: hop as u16, forward };
        let (l, packet) = (flow.path[hop], flow.packet.as_mut().unwrap());
        self.hops[l].on_ctl(&mut self.io, packet, visit, &self.ports[l]);
        let allocated = Perc::<R>::allocated(packet, hop as u16).filter(|_| !packet.fin);
        flow.at += 1;
        if flow.at == hops {
            let packet = flow.packet.take().unwrap();
            flow.sink.on_ctl(&mut self.io, SubflowId(0), packet, 64);
            self.flows[f].packet = self.sent();
        }
        let flow = &mut self.flows[f];
        if flow.at == if limits.reverse { 2 * hops } else { hops } {
            flow.at = 0;
            if let Some(packet) = flow.packet.take() {
                flow.source.on_ctl(&mut self.io, SubflowId(0), packet);
                self.flows[f].packet = self.sent();
            }
        }
        allocated
    }
}

fn timer_of<R: Explored>(io: &mut Io<Perc<R>>) -> u32 {
    let timer = |effect| match effect {
        Effect::Timer { timer, .. } => Some(timer),
        _ => None,
    };
    io.take_effects().filter_map(timer).next().unwrap()
}
