//! Worked examples of the PERC thesis by numbers: two flows over links of 20, 30 and 12 Gb/s. Control packets are
//! handled in the order of the figures.

use serde_json::{Map, json};
use std::collections::BTreeMap;
use subak_core::scheme::{FlowInfo, Hop, Io, Named, Params, PathInfo, Port, Source, UpdateRecord, Visit};
use subak_core::{FlowId, LinkId, SubflowId};

const G: f64 = 1e9;

/// The links and flows of figures 2.1, 3.1 and 3.3 of the PERC thesis.
struct Example<S: Named> {
    links: BTreeMap<&'static str, (S::Hop, Port)>,
    flows: BTreeMap<&'static str, (u32, Vec<&'static str>, S::Ctl)>,
    io: Io<S>,
}

impl<S: Named> Example<S> {
    fn new() -> Self {
        let mut given = Map::new();
        given.extend([("control".to_string(), json!(0)), ("headroom".to_string(), json!(0))]);
        let scheme = S::new(&Params::resolve(&S::INFO, &given).unwrap()).unwrap();
        let mut io = Io::traced();
        let links = [("l20", 20.0), ("l30", 30.0), ("l12", 12.0)];
        let links = links.iter().enumerate().map(|(k, &(name, gbps))| {
            let port = Port {
                link: LinkId(k as u32),
                capacity_bps: gbps * G,
                delay_ns: 0,
                buffer_bytes: 0,
                mtu_bytes: 1500,
                rtt_ns: 10,
                ..Port::example(LinkId(0), 1.0)
            };
            (name, (scheme.hop(&port), port))
        });
        let flows = [("fB", vec!["l20", "l30"]), ("fW", vec!["l30", "l12"])];
        let flows = flows.into_iter().enumerate().map(|(k, (name, path))| {
            let path_info = PathInfo {
                hops: path.len() as u16,
                line_rate_bps: 20.0 * G,
                min_capacity_bps: 12.0 * G,
                base_rtt_ns: 10,
            };
            let info = FlowInfo::example(FlowId(k as u32), vec![path_info]);
            scheme.source(&info).on_start(&mut io);
            let message = io.take_effects().find_map(|effect| match effect {
                subak_core::scheme::Effect::Ctl { message, .. } => Some(message),
                _ => None,
            });
            (name, (k as u32, path, message.expect("a source starts with a control packet")))
        });
        Example { links: links.collect(), flows: flows.collect(), io }
    }

    /// Handles the packet of `flow` at `link`. Returns the update, rates in Gb/s.
    fn update(&mut self, flow: &str, link: &str) -> BTreeMap<&'static str, f64> {
        let (id, path, message) = self.flows.get_mut(flow).unwrap();
        let hop = path.iter().position(|l| *l == link).unwrap() as u16;
        let (machine, port) = self.links.get_mut(link).unwrap();
        machine.on_ctl(
            &mut self.io,
            message,
            Visit { flow: FlowId(*id), subflow: SubflowId(0), hop, forward: true },
            port,
        );
        let UpdateRecord { values, .. } = self.io.take_trace().pop().expect("each update is traced");
        let rates = |name: &str| !["state", "ignore", "NumB"].contains(&name);
        values.into_iter().map(|(name, x)| (name, if rates(name) { x / G } else { x })).collect()
    }

    fn end_round(&mut self) {
        for (machine, port) in self.links.values_mut() {
            machine.on_timer(&mut self.io, 0, port);
        }
    }
}

const INF: f64 = f64::INFINITY;
const B: f64 = 1.0;
const E: f64 = 0.0;
const T: f64 = 1.0;
const F: f64 = 0.0;

fn holds(update: &BTreeMap<&'static str, f64>, row: usize, expected: &[(&str, f64)]) {
    for &(name, x) in expected {
        let y = update[name];
        assert!(x == y || (x - y).abs() <= 1e-12 * x.abs(), "update {row}: {name} is {y}, the figure says {x}");
    }
}

#[test]
fn figure_3_4_s_perc() {
    let mut example = Example::<subak_schemes::s_perc::SPerc>::new();
    // Flow, link, MaxE before, e, b, a, state, ignore bit.
    let rows = [
        ("fB", "l20", 0.0, INF, 20.0, 20.0, B, F),
        ("fB", "l30", 0.0, 20.0, 30.0, 20.0, E, F),
        ("fW", "l30", 20.0, INF, 10.0, 10.0, B, T),
        ("fW", "l12", 0.0, INF, 12.0, 12.0, B, F),
        ("fW", "l30", 20.0, 12.0, 10.0, 10.0, B, T),
        ("fW", "l12", 0.0, INF, 12.0, 12.0, B, F),
        ("fB", "l20", 0.0, 30.0, 20.0, 20.0, B, F),
        ("fB", "l30", 20.0, 20.0, 15.0, 15.0, B, T),
        ("fW", "l30", 0.0, 12.0, 15.0, 12.0, E, F),
        ("fW", "l12", 0.0, 15.0, 12.0, 12.0, B, F),
        ("fB", "l30", 12.0, 20.0, 18.0, 18.0, B, F),
        ("fB", "l20", 0.0, 18.0, 20.0, 18.0, E, F),
    ];
    // Link, NumB, SumE, MaxE and MaxE' after each round and its reset.
    let links = [
        [("l20", 1.0, 0.0, 0.0), ("l30", 1.0, 20.0, 20.0), ("l12", 1.0, 0.0, 0.0)],
        [("l20", 1.0, 0.0, 0.0), ("l30", 2.0, 0.0, 0.0), ("l12", 1.0, 0.0, 0.0)],
        [("l20", 0.0, 18.0, 18.0), ("l30", 1.0, 12.0, 12.0), ("l12", 1.0, 0.0, 0.0)],
    ];
    // b[l] of f_B (l20, l30) and of f_W (l30, l12) at the end of each round, with the ignore bit.
    let packets = [
        [[(20.0, false), (30.0, false)], [(10.0, true), (12.0, false)]],
        [[(20.0, false), (15.0, true)], [(10.0, true), (12.0, false)]],
        [[(20.0, false), (18.0, false)], [(15.0, false), (12.0, false)]],
    ];
    for (round, states) in links.iter().enumerate() {
        for (k, &(flow, link, max_e, e, b, a, state, ignore)) in rows[4 * round..4 * round + 4].iter().enumerate() {
            let before = example.links[link].0.link().max_e().now / G;
            assert_eq!(before, max_e, "MaxE before update {}", 4 * round + k + 1);
            let update = example.update(flow, link);
            let expected = [("e", e), ("b", b), ("a", a), ("state", state), ("ignore", ignore)];
            holds(&update, 4 * round + k + 1, &expected);
        }
        example.end_round();
        for &(link, num_b, sum_e, max_e) in states {
            let state = example.links[link].0.link();
            assert_eq!((state.num_b(), state.sum_e() / G), (num_b, sum_e), "{link} after round {}", round + 1);
            let after = state.max_e();
            assert_eq!((after.now / G, after.next), (max_e, 0.0), "{link} after round {}", round + 1);
        }
        for (flow, held) in ["fB", "fW"].iter().zip(packets[round]) {
            let carried: Vec<_> = example.flows[flow].2.fields.links.iter().map(|f| (f.b / G, f.ignored)).collect();
            assert_eq!(carried, held, "{flow} after round {}", round + 1);
        }
    }
}

#[test]
fn figure_3_2_n_perc() {
    let mut example = Example::<subak_schemes::n_perc::NPerc>::new();
    // Flow, link, e, b, a, state.
    let rows = [
        ("fB", "l20", INF, 20.0, 20.0, B),
        ("fB", "l30", 20.0, 30.0, 20.0, E),
        ("fW", "l30", INF, 10.0, 10.0, B),
        ("fW", "l12", 10.0, 12.0, 10.0, E),
        ("fW", "l30", 12.0, 10.0, 10.0, B),
        ("fW", "l12", 10.0, 12.0, 10.0, E),
        ("fB", "l20", 30.0, 20.0, 20.0, B),
        ("fB", "l30", 20.0, 15.0, 15.0, B),
        ("fW", "l30", 12.0, 15.0, 12.0, E),
        ("fW", "l12", 15.0, 12.0, 12.0, B),
        ("fB", "l30", 20.0, 18.0, 18.0, B),
        ("fB", "l20", 18.0, 20.0, 18.0, E),
    ];
    // NumB and SumE after each round. In the thesis' text, l30 after round 1 and l12 after rounds 1 and 2 do not follow
    // from its own updates: f_W is bottlenecked at l30 (NumB 1) and elsewhere at l12 (SumE 10).
    let links = [
        [("l20", 1.0, 0.0), ("l30", 1.0, 20.0), ("l12", 0.0, 10.0)],
        [("l20", 1.0, 0.0), ("l30", 2.0, 0.0), ("l12", 0.0, 10.0)],
        [("l20", 0.0, 18.0), ("l30", 1.0, 12.0), ("l12", 1.0, 0.0)],
    ];
    for (round, states) in links.iter().enumerate() {
        for (k, &(flow, link, e, b, a, state)) in rows[4 * round..4 * round + 4].iter().enumerate() {
            let update = example.update(flow, link);
            holds(&update, 4 * round + k + 1, &[("e", e), ("b", b), ("a", a), ("state", state)]);
        }
        for &(link, num_b, sum_e) in states {
            let (sum, num) = example.links[link].0.link().sums();
            assert_eq!((num, sum / G), (num_b, sum_e), "{link} after round {}", round + 1);
        }
    }
    let carried = |flow: &str| -> Vec<f64> { example.flows[flow].2.fields.iter().map(|f| f.b / G).collect() };
    // The last rate is that of the virtual link, infinite without a demand.
    let none = f64::INFINITY;
    assert_eq!((carried("fW"), carried("fB")), (vec![15.0, 12.0, none], vec![20.0, 18.0, none]));
}

#[test]
fn figure_2_3_fair() {
    let mut example = Example::<subak_schemes::fair::Fair>::new();
    // Flow, link, e, b, a.
    let rows = [
        ("fB", "l20", INF, 20.0, 20.0),
        ("fB", "l30", 20.0, 30.0, 20.0),
        ("fW", "l30", INF, 15.0, 15.0),
        ("fW", "l12", 15.0, 12.0, 12.0),
        ("fW", "l30", 12.0, 15.0, 12.0),
        ("fW", "l12", 15.0, 12.0, 12.0),
        ("fB", "l20", 30.0, 20.0, 20.0),
        ("fB", "l30", 20.0, 18.0, 18.0),
    ];
    // Limit rates of f_B and f_W stored at each link after each round.
    let none = None::<f64>;
    let links = [
        [("l20", Some(INF), none), ("l30", Some(20.0), Some(INF)), ("l12", none, Some(15.0))],
        [("l20", Some(30.0), none), ("l30", Some(20.0), Some(12.0)), ("l12", none, Some(15.0))],
    ];
    for (round, states) in links.iter().enumerate() {
        for (k, &(flow, link, e, b, a)) in rows[4 * round..4 * round + 4].iter().enumerate() {
            let update = example.update(flow, link);
            holds(&update, 4 * round + k + 1, &[("e", e), ("b", b), ("a", a)]);
        }
        for &(link, blue, white) in states {
            let state = example.links[link].0.link();
            let stored = |flow| state.limit(flow).map(|e| e / G);
            assert_eq!((stored(FlowId(0)), stored(FlowId(1))), (blue, white), "{link} after round {}", round + 1);
        }
    }
    // The thesis' text has f_B's and f_W's bottleneck rates at l30 swapped.
    let carried = |flow: &str| -> Vec<f64> { example.flows[flow].2.fields.iter().map(|f| f.b / G).collect() };
    let none = f64::INFINITY;
    assert_eq!((carried("fB"), carried("fW")), (vec![20.0, 18.0, none], vec![15.0, 12.0, none]));
}
