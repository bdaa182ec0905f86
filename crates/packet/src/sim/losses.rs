//! Packets that a queue or a link has lost.

use super::Sim;
use subak_core::LinkId;
use subak_core::scheme::{PacketId, Scheme};

impl<S: Scheme> Sim<S> {
    /// Accounts for the packets that the latest queue operation of `link` has dropped.
    pub(super) fn account_drops(&mut self, link: LinkId) {
        while let Some(id) = self.net.next_dropped(link) {
            if self.machines.has_nodes {
                self.tell_leaving(link, id);
            }
            self.net.give_room(id);
            self.account_drop(link, id);
        }
    }

    /// Accounts for a packet that a queue has dropped.
    pub(super) fn account_drop(&mut self, link: LinkId, id: PacketId) {
        self.net.count_drop(link, id);
        self.free_nic(id);
        self.lose(id);
    }

    /// Accounts for a packet that `link` has lost.
    pub(super) fn account_loss(&mut self, link: LinkId, id: PacketId) {
        self.net.count_loss(link, id);
        self.lose(id);
    }

    /// Drops all packets queued at `link`, which goes down, including those of paused classes.
    #[cold]
    pub(super) fn lose_waiting(&mut self, link: LinkId) {
        for id in self.net.empty(link) {
            if self.machines.has_nodes {
                self.tell_leaving(link, id);
            }
            self.net.give_room(id);
            self.free_nic(id);
            self.account_loss(link, id);
        }
    }

    fn lose(&mut self, id: PacketId) {
        let packet = self.net.packet(id);
        let (flow, kind) = (packet.flow, packet.kind);
        self.ends.count_loss(flow, kind);
        self.net.remove(id);
        self.ends.release(flow);
    }
}
