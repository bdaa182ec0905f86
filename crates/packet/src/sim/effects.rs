//! Execution of the effects that state machines request: pacing rates, timers, messages, pauses.

use super::Sim;
use crate::ends::{FlowState, blank};
use crate::event::{Actor, Event};
use crate::net::ControlFrame;
use subak_core::scheme::{Class, Effect, PacketKind, Refused, Requester, Scheme, To, Way};
use subak_core::{FlowId, LinkId, NodeId, SubflowId};

/// Node number in messages from and to flows, which concern no node's state machine.
const NOBODY: u32 = 0;
/// Maximum number of messages without delay of which each answers the one before: a message may be passed on through all
/// flows of a host.
const MOST_DEPTH: u32 = 400;

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

    /// Delivers a message that takes no time. Messages that answer each other without end are reported to the scheme, and
    /// dropped.
    fn at_once(&mut self, sender: Requester, deliver: impl FnOnce(&mut Self)) {
        if self.depth == MOST_DEPTH {
            return self.refuse(sender, Refused::Endless);
        }
        self.depth += 1;
        deliver(self);
        self.depth -= 1;
    }

    fn refuse(&self, sender: Requester, why: Refused) {
        self.scheme.on_refused(sender, why, self.net.now_ns());
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
            (Actor::Controller, To::Flow(flow)) if flow >= self.ends.next_flow() => {
                return self.refuse(Requester::Controller, Refused::NoFlow(flow));
            }
            (Actor::Controller, To::Flow(flow)) if self.ends.get(flow).is_none_or(FlowState::is_over) => {
                (flow, Way::ControllerToFlow, None, NOBODY)
            }
            (Actor::Controller, To::Flow(flow)) => {
                let ways = source_of(self, flow).and_then(|(node, _)| self.machines.ways[node]);
                (flow, Way::ControllerToFlow, ways.map(|(_, back)| back), NOBODY)
            }
            (Actor::Node(node), To::Controller) if self.machines.ways[node].is_none() => {
                return self.refuse(Requester::Node(node), Refused::NoWay);
            }
            (Actor::Controller, To::Node(node)) if self.machines.ways.get(node).copied().flatten().is_none() => {
                return self.refuse(Requester::Controller, Refused::NoWay);
            }
            (Actor::Node(node), To::Controller) => {
                (FlowId::NONE, Way::NodeToController, self.machines.ways[node].map(|(out, _)| out), node.0)
            }
            (Actor::Controller, To::Node(node)) => {
                let ways = self.machines.ways.get(node).copied().flatten();
                (FlowId::NONE, Way::ControllerToNode, ways.map(|(_, back)| back), node.0)
            }
            (Actor::Node(node), To::Flow(flow)) if flow >= self.ends.next_flow() => {
                return self.refuse(Requester::Node(node), Refused::NoFlow(flow));
            }
            (Actor::Node(node), To::Flow(flow)) => {
                // A message to an ended flow is dropped.
                let Some((src, _)) = source_of(self, flow) else { return };
                let sender = Requester::Node(node);
                if src != node {
                    return self.refuse(sender, Refused::Elsewhere(flow));
                }
                return self.at_once(sender, |sim| sim.tell_source(flow, subflow, message));
            }
            (Actor::Source(flow) | Actor::Sink(flow), To::Host) => {
                let Some((src, dst)) = source_of(self, flow) else { return };
                let (node, sender) = (if matches!(who, Actor::Source(_)) { src } else { dst }, Requester::Flow(flow));
                if self.machines.nodes.get(node).is_none_or(Option::is_none) {
                    return self.refuse(sender, Refused::NoMachine);
                }
                return self.at_once(sender, |sim| sim.at_node(node, |machine, io| machine.on_flow(io, flow, message)));
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
        // If the controller is at that node, the path has no links.
        let is_there = self.net.routes().of(route).is_empty();
        let sender = match who {
            Actor::Node(node) => Requester::Node(node),
            Actor::Controller => Requester::Controller,
            Actor::Source(_) | Actor::Sink(_) | Actor::Hop(_) => Requester::Flow(flow),
        };
        if is_there && self.depth == MOST_DEPTH {
            return self.refuse(sender, Refused::Endless);
        }
        let mut packet = blank(flow, subflow, route, self.net.now_ns());
        packet.kind = PacketKind::Ctl;
        packet.way = way;
        packet.number = number;
        packet.class = class;
        packet.bytes = bytes;
        packet.ctl = Some(Box::new(message));
        let id = self.net.insert(packet);
        if is_there {
            self.ends.hold(flow);
            self.at_once(sender, |sim| sim.on_ctl(id));
        } else {
            self.launch(id);
        }
    }
}
