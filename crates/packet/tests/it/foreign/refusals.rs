//! Effects that no backend can execute are errors.

use super::{Mine, start};
use crate::common::{over_star, plan, star};
use std::sync::Arc;
use subak_core::scheme::{Class, FlowInfo, Hop, Io, Packet, Port, Source, To};
use subak_core::{LinkId, SubflowId};
use subak_schemes::foreign::{Facts, Faults, Foreign, Made, Makes, Numbers};

type Ask = fn(&mut Io<Foreign>);

/// A scheme that requests an effect: at its sources when a flow starts and at each timer, or at every link when a
/// packet arrives.
struct Asks {
    facts: Facts,
    faults: Faults,
    at_source: Ask,
    at_hop: Option<Ask>,
}

struct Asking(Ask);

impl Source<Foreign> for Asking {
    fn on_start(&mut self, io: &mut Io<Foreign>) {
        (self.0)(io);
    }
    fn on_timer(&mut self, io: &mut Io<Foreign>, _timer: u32) {
        (self.0)(io);
    }
}

impl Hop<Foreign> for Asking {
    fn on_enqueue(&mut self, io: &mut Io<Foreign>, _packet: &mut Packet<Foreign>, _port: &Port) {
        (self.0)(io);
    }
}

impl Makes for Asks {
    fn facts(&self) -> &Facts {
        &self.facts
    }
    fn faults(&self) -> &Faults {
        &self.faults
    }
    fn source(&self, _flow: &FlowInfo) -> Box<dyn Source<Foreign>> {
        Box::new(Asking(self.at_source))
    }
    fn hop(&self, _port: &Port) -> Option<Box<dyn Hop<Foreign>>> {
        self.at_hop.map(|ask| Box::new(Asking(ask)) as _)
    }
}

fn pace(io: &mut Io<Foreign>) {
    io.pace(SubflowId(0), None, Some(20_000));
}

fn send(io: &mut Io<Foreign>, to: To, subflow: u8, bytes: u32) {
    io.ctl(to, SubflowId(subflow), Numbers::default(), Class::Control, bytes);
}

/// Error message of a run with a scheme that requests these effects; `None` without error.
fn fault(at_source: Ask, at_hop: Option<Ask>) -> Option<String> {
    let definition = Mine(move |faults| {
        Made::WithNumbers(Foreign(Arc::new(Asks { facts: Facts::default(), faults, at_source, at_hop })))
    });
    let mut sim = start(&definition, &star(2, 10e9, 1000), &[], 1);
    sim.add(plan(over_star(0, 1), 5, Some(100_000)));
    sim.run_until(10_000_000);
    sim.fault().map(|fault| fault.to_string())
}

#[test]
fn what_no_backend_can_carry_out_ends_the_run_in_words() {
    let source = |ask: Ask, what: &str| {
        let want = format!("scheme \"mine\": on_start of flow 0 at 5 ns: {what}");
        let said = fault(ask, None).unwrap_or_default();
        assert!(said.starts_with(&want), "{said}\n{want}");
    };
    source(|io| io.pace(SubflowId(0), Some(f64::NAN), None), "the rate is not a number; give bit/s");
    source(|io| io.pace(SubflowId(0), Some(-1e9), None), "the rate is -1000000000; give");
    source(|io| io.pace(SubflowId(1), None, None), "there is no subflow 1; the flow has one subflow, number 0");
    source(|io| io.pause(LinkId(0), Class::Low, true), "it pauses a class; only a hop does");
    source(|io| send(io, To::Sink, 0, 0), "a message has 0 bytes; give 1 to 65535");
    source(|io| send(io, To::Sink, 0, 65_536), "a message has 65536 bytes");
    source(|io| send(io, To::Sink, 9, 64), "there is no subflow 9");
    source(|io| send(io, To::Source, 0, 64), "it sends a message to Source; a source writes to its sink");
    source(|io| send(io, To::Flow(subak_core::FlowId(7)), 0, 64), "it sends a message to Flow");
    let said = fault(|io| send(io, To::Host, 0, 64), None).unwrap_or_default();
    assert!(said.starts_with("scheme \"mine\": send of flow 0 at 5 ns: the flow's host has no state"), "{said}");
}

#[test]
fn a_hop_sets_no_pace_and_sends_no_message() {
    let said = fault(pace, Some(|io| io.pace(SubflowId(0), None, None))).unwrap();
    assert!(said.starts_with("scheme \"mine\": on_enqueue of link number 0 at 5 ns: it sets a pace"), "{said}");
    let said = fault(pace, Some(|io| send(io, To::Sink, 0, 64))).unwrap();
    assert!(said.contains("on_enqueue of link number 0 at 5 ns: it sends a message"), "{said}");
}

#[test]
fn timers_that_stand_still_end_the_run() {
    let said = fault(|io| io.timer(3, io.now_ns), None).unwrap();
    assert!(said.contains("on_timer of flow 0 at 5 ns: 10000 timers came due at the same time"), "{said}");
    // A timer set to a past time expires at once.
    let said = fault(|io| io.timer(3, 0), None).unwrap();
    assert!(said.contains("10000 timers came due"), "{said}");
    assert_eq!(fault(|io| io.timer(3, io.now_ns + 1000), None), None);
    let said = fault(|io| (0..=1_000_000).for_each(|k| io.timer(3, io.now_ns + 1 + k)), None).unwrap();
    assert!(said.contains("on_start of flow 0 at 5 ns: 1000000 timers are pending"), "{said}");
    assert_eq!(fault(|io| io.timer(3, u64::MAX), None), None);
}

#[test]
fn what_can_be_carried_out_is() {
    assert_eq!(fault(pace, None), None);
    assert_eq!(fault(|io| io.pace(SubflowId(0), Some(f64::INFINITY), Some(u64::MAX)), None), None);
    assert_eq!(fault(|io| io.pace(SubflowId(0), Some(1e300), None), None), None);
    assert_eq!(fault(|io| io.pace(SubflowId(0), Some(1e-300), Some(0)), None), None);
    assert_eq!(fault(pace, Some(|io| io.pause(LinkId(99), Class::Low, true))), None);
}
