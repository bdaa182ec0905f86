//! Execution of the effects that state machines request: pacing rates, timers, messages, pauses.

use super::Sim;
use crate::ends::{FlowState, blank};
use crate::event::{Actor, Event};
use crate::net::ControlFrame;
use subak_core::scheme::{Class, Effect, Excess, PacketKind, Scheme, To, Way};
use subak_core::{FlowId, LinkId, NodeId, SubflowId};

/// Node number in messages from and to flows, which concern no node's state machine.
const NOBODY: u32 = 0;
/// Maximum number of messages without delay of which each answers the one before.
const MOST_DEPTH: u32 = 100;

impl<S: Scheme> Sim<S> {
    /// Executes the effects that state machine `who` requested.
    #[inline]
    pub(super) fn carry_out(&mut self, who: Actor) {
        if self.io.effects_mut().is_empty() {
            return;
        }
        let mut effects = std::mem::take(&mut self.scratch);
        std::mem::swap(self.io.effects_mut(), &mut effects);
        for effect in effects.drain(..) {
            match (effect, who) {
                (Effect::Pace { subflow, rate_bps, window_bytes }, Actor::Source(flow)) => {
                    let at = self.ends.set_pace(flow, subflow, rate_bps, window_bytes);
                    self.rate_is_set(at);
                }
                (Effect::Timer { timer, at_ns }, who) => {
                    if let Actor::Source(flow) | Actor::Sink(flow) = who {
                        self.ends.hold(flow);
                    }
                    let event = match who {
                        Actor::Source(flow) => Event::SourceTimer(flow, timer),
                        Actor::Sink(flow) => Event::SinkTimer(flow, timer),
                        Actor::Hop(link) => Event::HopTimer(link, timer, self.life(who)),
                        Actor::Node(node) => Event::NodeTimer(node, timer, self.life(who)),
                        Actor::Controller => Event::ControllerTimer(timer, self.life(who)),
                    };
                    self.net.schedule(at_ns, event);
                }
                (Effect::Ctl { to, subflow, message, class, bytes }, who) => {
                    self.send_ctl(who, subflow, to, message, class, bytes);
                }
                (Effect::Pause { class, on, .. }, Actor::Hop(link)) => self.pause(link, class, on),
                (Effect::Pause { link, class, on }, Actor::Node(node)) if self.leaves(link, node) => {
                    self.pause(link, class, on);
                }
                (Effect::Pause { .. }, who) => debug_assert!(false, "{who:?} cannot hold that queue"),
                (Effect::Pace { .. }, _) => debug_assert!(false, "only a source sets a pace"),
            }
        }
        self.scratch = effects;
    }

    fn leaves(&self, link: LinkId, node: NodeId) -> bool {
        self.net.port(link).is_some_and(|port| port.from == Some(node))
    }

    /// Delivers a message between `flow` and its host, which takes no time. Messages that answer each other without end
    /// are reported to the scheme, and dropped.
    fn at_once(&mut self, flow: FlowId, deliver: impl FnOnce(&mut Self)) {
        if self.depth == MOST_DEPTH {
            return self.scheme.on_excess(Excess::Messages(flow), self.net.now_ns());
        }
        self.depth += 1;
        deliver(self);
        self.depth -= 1;
    }

    fn send_ctl(&mut self, who: Actor, subflow: SubflowId, to: To, message: S::Ctl, class: Class, bytes: u32) {
        let source_of = |sim: &Self, flow: FlowId| {
            // A message to an ended flow is dropped, whether the flow's state has been removed or not.
            let f = sim.ends.get(flow).filter(|f| !f.is_over())?;
            sim.net.path_ends(sim.net.routes().of(sim.ends.sub(f.first_sub).forward))
        };
        let (flow, way, route, number) = match (who, to) {
            (Actor::Source(flow), To::Sink) => {
                let (path, turn) = self.ends.message_path(flow, subflow);
                (flow, Way::Out, Some(path.forward), turn)
            }
            (Actor::Sink(flow), To::Source) => {
                let (path, turn) = self.ends.message_path(flow, subflow);
                (flow, Way::Back, Some(path.back), turn)
            }
            (Actor::Source(flow), To::Controller) => {
                let ways = source_of(self, flow).and_then(|(node, _)| self.machines.ways[node]);
                (flow, Way::FlowToController, ways.map(|(out, _)| out), NOBODY)
            }
            // A message to an ended flow is dropped even if the flow has state: the time of its removal must not
            // change results.
            (Actor::Controller, To::Flow(flow)) if self.ends.get(flow).is_none_or(FlowState::is_over) => {
                (flow, Way::ControllerToFlow, None, NOBODY)
            }
            (Actor::Controller, To::Flow(flow)) => {
                let ways = source_of(self, flow).and_then(|(node, _)| self.machines.ways[node]);
                (flow, Way::ControllerToFlow, ways.map(|(_, back)| back), NOBODY)
            }
            (Actor::Node(node), To::Controller) => {
                (FlowId::NONE, Way::NodeToController, self.machines.ways[node].map(|(out, _)| out), node.0)
            }
            (Actor::Controller, To::Node(node)) => {
                let ways = self.machines.ways.get(node).copied().flatten();
                (FlowId::NONE, Way::ControllerToNode, ways.map(|(_, back)| back), node.0)
            }
            (Actor::Node(_), To::Flow(flow)) if self.ends.get(flow).is_none_or(FlowState::is_over) => return,
            (Actor::Node(_), To::Flow(flow)) => {
                return self.at_once(flow, |sim| sim.tell_source(flow, subflow, message));
            }
            (Actor::Source(flow), To::Host) => {
                let Some((node, _)) = source_of(self, flow) else { return };
                return self.at_once(flow, |sim| sim.at_node(node, |machine, io| machine.on_flow(io, flow, message)));
            }
            (Actor::Sink(flow), To::Host) => {
                let Some((_, node)) = source_of(self, flow) else { return };
                return self.at_once(flow, |sim| sim.at_node(node, |machine, io| machine.on_flow(io, flow, message)));
            }
            (Actor::Hop(_) | Actor::Node(_), To::Neighbour(link)) => {
                return self.net.send_control(link, ControlFrame::Message(message), bytes);
            }
            _ => {
                debug_assert!(false, "{who:?} cannot send to {to:?}");
                return;
            }
        };
        // Without a path to the destination, the message is lost.
        let Some(route) = route else { return };
        let mut packet = blank(flow, subflow, route, self.net.now_ns());
        packet.kind = PacketKind::Ctl;
        packet.way = way;
        packet.number = number;
        packet.class = class;
        packet.bytes = bytes;
        packet.ctl = Some(Box::new(message));
        let id = self.net.insert(packet);
        // If the controller is at that node, the path has no links.
        if self.net.routes().of(route).is_empty() {
            self.ends.hold(flow);
            self.on_ctl(id);
        } else {
            self.launch(id);
        }
    }
}
