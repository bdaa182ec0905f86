//! Priority flow control: shared buffers of switches, and paused links.

use subak_core::backend::PacketSizes;
use subak_core::scheme::{Class, Clock, Doubt, Lossless, Threshold};
use subak_core::{IdVec, InputError, LinkId, Network, NodeId, NodeKind, Ns};

/// Size of a pause frame on the wire, bytes (IEEE 802.1Qbb).
pub(crate) const FRAME_BYTES: u32 = 64;

/// Largest number of pause frames queued ahead of a pause frame: each class may just have been paused and resumed.
const FRAMES_AHEAD: u32 = 2 * CLASSES as u32;

/// Buffer of a large switch chip, bytes: chips have 16 to 64 MB.
const CHIP_BYTES: u64 = 64_000_000;

const CLASSES: usize = Class::ALL.len();

/// Start time of a class's pause that means "not paused".
const OPEN: Ns = Ns::MAX;

/// A control frame to the upstream end of a link.
#[derive(Debug, Clone)]
pub(crate) enum ControlFrame<C> {
    /// Message of a scheme's state machine.
    Message(C),
    /// A pause frame: class, and whether to pause or resume it.
    Pause(Class, bool),
}

/// Pauses of a link: start time of each class's present pause, and counters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gate {
    since_ns: [Ns; CLASSES],
    pauses: u64,
    paused_ns: u64,
}

impl Default for Gate {
    fn default() -> Self {
        Gate { since_ns: [OPEN; CLASSES], pauses: 0, paused_ns: 0 }
    }
}

impl Gate {
    pub fn set(&mut self, now_ns: Ns, class: Class, on: bool) {
        let since_ns = &mut self.since_ns[class.place()];
        match (*since_ns == OPEN, on) {
            (true, true) => {
                *since_ns = now_ns;
                self.pauses += 1;
            }
            (false, false) => {
                self.paused_ns += now_ns - *since_ns;
                *since_ns = OPEN;
            }
            _ => {}
        }
    }

    /// Start time of the present pause of `class`, ns; `None` if the class is not paused.
    pub fn since_ns(&self, class: Class) -> Option<Ns> {
        Some(self.since_ns[class.place()]).filter(|&since_ns| since_ns != OPEN)
    }

    /// Number of pauses so far, and their total duration, ns.
    pub fn so_far(&self, now_ns: Ns) -> (u64, u64) {
        let open_ns: u64 = self.since_ns.iter().filter(|&&s| s != OPEN).map(|s| now_ns - s).sum();
        (self.pauses, self.paused_ns + open_ns)
    }
}

/// Buffer that the ports of a node share.
#[derive(Debug, Clone, Copy, Default)]
struct Buffer {
    room_bytes: u64,
    used_bytes: u64,
}

/// State of the buffer for packets that arrived by one link.
#[derive(Debug, Clone, Copy, Default)]
struct Input {
    /// Bytes of each class in the shared buffer.
    shared_bytes: [u64; CLASSES],
    /// Bytes of each class in the headroom.
    over_bytes: [u64; CLASSES],
    headroom_bytes: u64,
    /// Reserved buffer per class, bytes.
    reserve_bytes: u64,
    /// Factor of the link's dynamic threshold relative to that of the slowest host's link.
    growth: f64,
    paused: [bool; CLASSES],
}

impl Input {
    /// Bytes of a class beyond its reserve, which use the shared buffer.
    fn counted_bytes(&self, c: usize) -> u64 {
        self.shared_bytes[c].saturating_sub(self.reserve_bytes)
    }
}

/// Buffers of all nodes, with the state of each ingress link.
#[derive(Debug)]
pub(crate) struct Pfc {
    rules: Lossless,
    buffers: IdVec<NodeId, Buffer>,
    inputs: IdVec<LinkId, Input>,
    ends: IdVec<LinkId, Option<NodeId>>,
}

impl Pfc {
    /// Empty buffers; an error if headroom and reserves need more than half of a switch's configured buffer.
    pub fn new(rules: Lossless, network: &Network, sizes: PacketSizes, clock: Clock) -> Result<Self, InputError> {
        let ends: IdVec<_, _> = network.links().iter().map(|link| link.to).collect();
        let mut pfc = Pfc { rules, buffers: IdVec::new(), inputs: IdVec::filled(Input::default(), ends.len()), ends };
        let mut needed = IdVec::filled(0, network.nodes().len());
        let of_hosts = network.hosts().flat_map(|host| network.out_links(host));
        let slowest_bps = of_hosts.map(|&l| network.links()[l].capacity_bps).fold(f64::INFINITY, f64::min);
        for (l, input) in pfc.inputs.iter_enumerated_mut() {
            let Some(node) = pfc.ends[l] else { continue };
            input.headroom_bytes = rules.headroom_bytes.unwrap_or_else(|| headroom_bytes(network, l, sizes, clock));
            input.reserve_bytes = rules.reserve_bytes;
            input.growth = doublings(network.links()[l].capacity_bps / slowest_bps);
            needed[node] += input.headroom_bytes + rules.reserve_bytes;
        }
        if let (Some(all_bytes), Some(most)) = (rules.buffer_bytes, needed.ids().max_by_key(|&node| needed[node]))
            && all_bytes / 2 < needed[most]
        {
            let (name, needed_bytes) = (&network.nodes()[most].name, needed[most]);
            let what = format!(
                "a buffer of {all_bytes} bytes, and node \"{name}\" needs {needed_bytes} for headroom and reserves"
            );
            let hint = format!("give at least {} bytes, or a smaller pfc_headroom", 2 * needed_bytes);
            return Err(InputError::new("params.pfc_buffer", what, hint));
        }
        for (node, needed_bytes) in needed.iter_enumerated() {
            let room_bytes = match rules.buffer_bytes {
                None => room_of_ports(network, node, *needed_bytes),
                Some(all_bytes) => all_bytes - needed_bytes,
            };
            pfc.buffers.push(Buffer { room_bytes, used_bytes: 0 });
        }
        Ok(pfc)
    }

    /// A warning if no buffer size is set, and headroom and reserves of a switch exceed the buffer of large switch
    /// chips.
    pub fn doubt(rules: Lossless, network: &Network, sizes: PacketSizes, clock: Clock) -> Option<Doubt> {
        let pfc = Pfc::new(rules, network, sizes, clock).ok().filter(|_| rules.buffer_bytes.is_none())?;
        let needed_bytes = |node: NodeId| -> u64 {
            let into = pfc.inputs.ids().filter(|&l| pfc.ends[l] == Some(node));
            into.map(|l| pfc.inputs[l].headroom_bytes + rules.reserve_bytes).sum()
        };
        let switches = network.nodes().ids().filter(|&n| network.nodes()[n].kind == NodeKind::Switch);
        let (most, node) = switches.map(|node| (needed_bytes(node), node)).max()?;
        let text = format!(
            "switch \"{}\" needs {:.1} MB for headroom and reserves, which is over half of the {} MB of a large chip: a real one \
             would drop packets; shorter links, fewer ports or a smaller pfc_headroom help, and pfc_buffer says what there is",
            network.nodes()[node].name,
            most as f64 / 1e6,
            CHIP_BYTES / 1_000_000
        );
        (most > CHIP_BYTES / 2).then_some(Doubt { kind: "pfc-headroom", text })
    }

    /// Shared buffer of `node`, bytes, without headroom.
    pub fn shared_bytes(&self, node: NodeId) -> u64 {
        self.buffers[node].room_bytes
    }

    /// Classes for which the node at the end of `link` has requested a pause.
    pub fn asked(&self, link: LinkId) -> [bool; CLASSES] {
        self.inputs[link].paused
    }

    fn threshold_bytes(&self, node: NodeId, growth: f64) -> u64 {
        let Buffer { room_bytes, used_bytes } = self.buffers[node];
        match self.rules.threshold {
            Threshold::Static(bytes) => bytes,
            Threshold::Dynamic(alpha) => {
                (alpha.max((alpha * growth).min(1.0)) * room_bytes.saturating_sub(used_bytes) as f64) as u64
            }
        }
    }

    /// Admits a packet that arrived over `link`. Returns whether there is buffer for the packet, and whether its
    /// class must be paused now.
    #[inline]
    pub fn admit(&mut self, link: LinkId, class: Class, bytes: u32) -> (bool, bool) {
        let Some(node) = self.ends[link] else { return (true, false) };
        let (bytes, c) = (u64::from(bytes), class.place());
        if class == Class::Control {
            let input = &mut self.inputs[link];
            let counted_bytes = input.counted_bytes(c);
            input.shared_bytes[c] += bytes;
            self.buffers[node].used_bytes += input.counted_bytes(c) - counted_bytes;
            return (true, false);
        }
        let threshold_bytes = self.threshold_bytes(node, self.inputs[link].growth);
        let buffer = &mut self.buffers[node];
        let input = &mut self.inputs[link];
        let counted_bytes = input.counted_bytes(c);
        let grown_bytes = (input.shared_bytes[c] + bytes).saturating_sub(input.reserve_bytes);
        let fits = buffer.used_bytes + grown_bytes - counted_bytes <= buffer.room_bytes;
        let over: u64 = input.over_bytes.iter().sum();
        if over == 0 && (grown_bytes == 0 || fits && grown_bytes <= threshold_bytes) {
            input.shared_bytes[c] += bytes;
            buffer.used_bytes += grown_bytes - counted_bytes;
            return (true, false);
        }
        let has_room = over + bytes <= input.headroom_bytes;
        input.over_bytes[c] += if has_room { bytes } else { 0 };
        (has_room, !std::mem::replace(&mut input.paused[c], true))
    }

    /// Removes a packet that arrived by `link` from the buffer; returns whether the packet's class may resume.
    #[inline]
    pub fn leave(&mut self, link: LinkId, class: Class, bytes: u32) -> bool {
        let Some(node) = self.ends[link] else { return false };
        let c = class.place();
        let input = &mut self.inputs[link];
        let from_over = input.over_bytes[c].min(u64::from(bytes));
        let from_shared = u64::from(bytes) - from_over;
        input.over_bytes[c] -= from_over;
        let counted_bytes = input.counted_bytes(c);
        input.shared_bytes[c] -= from_shared;
        self.buffers[node].used_bytes -= counted_bytes - input.counted_bytes(c);
        if !input.paused[c] || input.over_bytes[c] > 0 {
            return false;
        }
        let (held_bytes, growth) = (input.counted_bytes(c), input.growth);
        let threshold_bytes = self.threshold_bytes(node, growth);
        let lets_go = held_bytes == 0 || held_bytes + self.rules.resume_bytes <= threshold_bytes;
        if lets_go {
            self.inputs[link].paused[c] = false;
        }
        lets_go
    }
}

/// The smallest power of two that is at least `ratio`, and at least 1.
fn doublings(ratio: f64) -> f64 {
    // A tolerance of a billionth absorbs rounding errors above a power of two.
    2f64.powf((ratio * (1.0 - 1e-9)).log2().ceil().max(0.0))
}

/// Default shared buffer of `node`, bytes, without headroom: the sum of its ports' buffers. If the network sets no
/// buffers, shared buffer and headroom together are at most the buffer of a large chip. The shared buffer is at
/// least the headroom.
fn room_of_ports(network: &Network, node: NodeId, needed_bytes: u64) -> u64 {
    let ports = network.out_links(node);
    let sum_bytes = ports.iter().map(|&l| port_bytes(network, l)).sum::<u64>();
    match ports.iter().any(|&l| network.links()[l].buffer_bytes.is_some()) {
        true => sum_bytes,
        false => sum_bytes.min(CHIP_BYTES.saturating_sub(needed_bytes).max(needed_bytes)),
    }
}

/// Contribution of a link's port to its node's default buffer, bytes.
fn port_bytes(network: &Network, link: LinkId) -> u64 {
    let link = &network.links()[link];
    link.buffer_bytes.unwrap_or_else(|| crate::sizing::default_buffer_bytes(link.capacity_bps))
}

/// Headroom of a link, bytes: data that may arrive after a pause is triggered. The pause frame waits for a packet
/// and for earlier pause frames on the reverse link, and crosses that link. The sender then completes its current
/// packet, and the bytes on the link arrive.
fn headroom_bytes(network: &Network, l: LinkId, sizes: PacketSizes, clock: Clock) -> u64 {
    let link = &network.links()[l];
    let reverse_link = network.reverse_links()[l].map_or(link, |t| &network.links()[t]);
    let ahead_bytes = f64::from(sizes.mtu_bytes + FRAMES_AHEAD * FRAME_BYTES);
    let react_ns = ahead_bytes * 8e9 / reverse_link.capacity_bps + (reverse_link.delay_ns + link.delay_ns) as f64;
    let arrives_bytes = react_ns * link.capacity_bps / 8e9 * speedup(link.capacity_bps, sizes, clock);
    arrives_bytes.ceil() as u64 + 3 * u64::from(sizes.mtu_bytes)
}

/// Largest ratio of a link's actual speed to its capacity. With whole nanoseconds, transmission times are rounded
/// down by less than 1 ns per packet, which matters most for ACKs, the shortest packets.
fn speedup(capacity_bps: f64, sizes: PacketSizes, clock: Clock) -> f64 {
    let shortest_ns = (f64::from(sizes.ack_bytes) * 8e9 / capacity_bps).floor().max(1.0);
    match clock {
        Clock::Exact => 1.0,
        Clock::WholeNs => 1.0 + 1.0 / shortest_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headroom_is_for_links_that_are_faster_than_they_say() {
        let sizes = PacketSizes { mtu_bytes: 1048, header_bytes: 48, ack_bytes: 60 };
        assert_eq!(speedup(100e9, sizes, Clock::Exact), 1.0);
        // 60 bytes take 4 ns instead of 4.8 at 100 Gb/s, and 1 instead of 1.2 at 400 Gb/s.
        assert_eq!(speedup(100e9, sizes, Clock::WholeNs), 1.25);
        assert_eq!(speedup(400e9, sizes, Clock::WholeNs), 2.0);
        assert_eq!(speedup(1600e9, sizes, Clock::WholeNs), 2.0);
    }

    #[test]
    fn a_gate_counts_pauses_and_their_time() {
        let mut gate = Gate::default();
        for (at_ns, on) in [(10, true), (15, true), (40, false), (50, false), (100, true)] {
            gate.set(at_ns, Class::Low, on);
        }
        assert_eq!(
            (gate.so_far(130), gate.since_ns(Class::Low), gate.since_ns(Class::High)),
            ((2, 60), Some(100), None)
        );
    }
}
