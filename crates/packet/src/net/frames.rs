//! Control frames between neighbours: those in flight, and their transmission.

use super::Net;
use super::pfc::ControlFrame;
use crate::event::{ControlFrameId, Event};
use subak_core::scheme::Scheme;
use subak_core::{IdVec, LinkId, Ns};

/// Control frames in flight.
pub(crate) struct Frames<C> {
    /// Frames by index; `None`: free index, which is listed in `free`.
    frames: IdVec<ControlFrameId, Option<ControlFrame<C>>>,
    free: Vec<ControlFrameId>,
}

impl<C> Default for Frames<C> {
    fn default() -> Self {
        Frames { frames: IdVec::new(), free: Vec::new() }
    }
}

impl<S: Scheme> Net<S> {
    /// Sends a control frame to the upstream end of `link`: over its reverse link, ahead of the queue there.
    pub fn send_control(&mut self, link: LinkId, frame: ControlFrame<S::Ctl>, bytes: u32) {
        let (arrives_ns, turn) = match self.ports[link].reverse_link {
            Some(reverse_link) => {
                let p = &mut self.ports[reverse_link];
                debug_assert!(p.departures.is_none(), "a machine that writes to neighbours minds departures");
                if p.held_down > 0 {
                    return;
                }
                (p.transmit_control(self.now_ns, bytes) + p.port.delay_ns, p.turn)
            }
            None => (self.now_ns + self.ports[link].port.delay_ns, 0),
        };
        if self.ports[link].begins_here {
            self.expect_control(frame, link, arrives_ns, turn);
        } else {
            self.post_control(frame, link, arrives_ns, turn);
        }
    }

    /// Schedules the arrival of the control frame at the upstream end of `link`.
    pub(super) fn expect_control(&mut self, frame: ControlFrame<S::Ctl>, link: LinkId, arrives_ns: Ns, turn: u8) {
        let place = self.frames.free.pop().unwrap_or_else(|| self.frames.frames.push(None));
        self.frames.frames[place] = Some(frame);
        self.wheel.push(arrives_ns, Event::ControlFrame(place, link, turn));
    }

    /// Removes a control frame, which has arrived.
    pub fn take_control(&mut self, frame: ControlFrameId) -> Option<ControlFrame<S::Ctl>> {
        self.frames.free.push(frame);
        let taken = self.frames.frames[frame].take();
        debug_assert!(taken.is_some(), "a control frame arrives once");
        taken
    }
}
