//! Synthetic Ethernet, IPv4, TCP and UDP headers of simulated packets. Payload is never captured; checksums are
//! computed for a payload of zeros.

const ETHERNET: usize = 14;
const IP: usize = 20;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// IPv4 address of node 0; node `n` has the address `n` higher. The controller has the last host address of 10.0.0.0/8.
const FIRST_ADDRESS: u32 = 0x0A00_0001;
const CONTROLLER: u32 = 0x0AFF_FFFE;
/// Base addresses of the source and the sink of a flow whose ends are not nodes of the network.
const LOOSE: [u32; 2] = [0xC612_0000, 0xC613_0000];
/// Ports are from the unregistered range, so that Wireshark infers no protocol from them.
const FIRST_PORT: u64 = 49_152;
const PORTS: u64 = 16_384;

/// TCP segment or UDP message of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) enum L4 {
    Data {
        seq: u32,
        payload: u32,
    },
    /// SACK blocks: first payload byte, and the byte after the last one. The header omits empty blocks.
    Ack {
        ack: u32,
        blocks: [(u32, u32); 2],
    },
    Message,
}

/// A packet as captured at a link.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    /// Numbers of the nodes at the start and the end of the link.
    pub hop_ends: [Option<u32>; 2],
    /// Numbers of the flow's source and destination nodes.
    pub flow_ends: [Option<u32>; 2],
    pub flow: Option<u64>,
    pub subflow: u64,
    pub way: &'a str,
    /// Number of the node that exchanges the message with the controller.
    pub node: u32,
    pub class: &'a str,
    pub ecn: bool,
    pub hops: u64,
    /// Size on the wire in the simulator, bytes.
    pub bytes: u32,
    pub l4: L4,
}

impl Frame<'_> {
    /// The headers, and the length of the whole frame, bytes: the simulator's packet size, or more if headers and
    /// payload are longer.
    pub fn bytes(&self) -> (Vec<u8>, u32) {
        let mut upper = self.upper();
        let room = (self.bytes as usize).saturating_sub(ETHERNET + IP + upper.len());
        let payload = match self.l4 {
            L4::Data { payload, .. } => payload as usize,
            L4::Ack { .. } => 0,
            L4::Message => room,
        };
        let [from, to] = self.addresses();
        let length = (IP + upper.len() + payload).min(usize::from(u16::MAX));
        let upper_length = (length - IP) as u16;
        let protocol = if matches!(self.l4, L4::Message) { UDP } else { TCP };
        let at = if protocol == UDP { 6 } else { 16 };
        if protocol == UDP {
            upper[4..6].copy_from_slice(&upper_length.to_be_bytes());
        }
        let sum = sum(&from) + sum(&to) + u32::from(protocol) + u32::from(upper_length) + sum(&upper);
        upper[at..at + 2].copy_from_slice(&folded(sum).to_be_bytes());
        let mut head = Vec::with_capacity(ETHERNET + IP + upper.len());
        let mac = |end: Option<u32>| [[2, 0].as_slice(), &end.map_or(0, |n| n + 1).to_be_bytes()].concat();
        head.extend(mac(self.hop_ends[1]));
        head.extend(mac(self.hop_ends[0]));
        head.extend([0x08, 0x00]);
        head.extend(self.ip(length as u16, protocol, from, to));
        head.extend(upper);
        (head, self.bytes.max((ETHERNET + length) as u32))
    }

    fn ip(&self, length: u16, protocol: u8, from: [u8; 4], to: [u8; 4]) -> [u8; IP] {
        let class = match self.class {
            "control" => 48, // CS6
            "high" => 46,    // EF
            _ => 0,
        };
        let congested = self.ecn && matches!(self.l4, L4::Data { .. });
        let mut ip = [0u8; IP];
        ip[0] = 0x45;
        ip[1] = class << 2 | if congested { 3 } else { 0 };
        ip[2..4].copy_from_slice(&length.to_be_bytes());
        ip[6] = 0x40; // not to be fragmented
        ip[8] = 64u64.saturating_sub(self.hops).max(1) as u8;
        ip[9] = protocol;
        ip[12..16].copy_from_slice(&from);
        ip[16..20].copy_from_slice(&to);
        let check = folded(sum(&ip));
        ip[10..12].copy_from_slice(&check.to_be_bytes());
        ip
    }

    /// Header of TCP or UDP, without the checksum.
    fn upper(&self) -> Vec<u8> {
        let flow = self.flow.unwrap_or(0);
        let source = FIRST_PORT + flow % PORTS;
        let sink = FIRST_PORT + (flow / PORTS + self.subflow) % PORTS;
        let back = matches!(self.l4, L4::Ack { .. }) || self.way == "back";
        let (from, to) = if back { (sink, source) } else { (source, sink) };
        let mut upper = Vec::new();
        upper.extend((from as u16).to_be_bytes());
        upper.extend((to as u16).to_be_bytes());
        let (seq, ack, flags) = match self.l4 {
            L4::Message => {
                upper.extend([0; 4]);
                return upper;
            }
            L4::Data { seq, .. } => (seq, 0, 0x10),
            L4::Ack { ack, .. } => (0, ack, 0x10 | if self.ecn { 0x40 } else { 0 }),
        };
        // The first payload byte of each side has sequence number 1, as after a handshake.
        upper.extend(seq.wrapping_add(1).to_be_bytes());
        upper.extend(ack.wrapping_add(1).to_be_bytes());
        let blocks: Vec<_> = match self.l4 {
            L4::Ack { blocks, .. } => blocks.into_iter().filter(|(left, right)| left < right).collect(),
            _ => Vec::new(),
        };
        let option_words = if blocks.is_empty() { 0 } else { 1 + 2 * blocks.len() };
        upper.push((5 + option_words as u8) << 4);
        upper.push(flags);
        upper.extend([0xFF, 0xFF, 0, 0, 0, 0]);
        if !blocks.is_empty() {
            upper.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
        }
        for (left, right) in blocks {
            upper.extend(left.wrapping_add(1).to_be_bytes());
            upper.extend(right.wrapping_add(1).to_be_bytes());
        }
        upper
    }

    fn addresses(&self) -> [[u8; 4]; 2] {
        let of = |node: Option<u32>, side: usize| match node {
            Some(node) => FIRST_ADDRESS.wrapping_add(node),
            None => LOOSE[side] + (self.flow.unwrap_or(0) & 0xFFFF) as u32,
        };
        let (source, sink) = (of(self.flow_ends[0], 0), of(self.flow_ends[1], 1));
        let node = FIRST_ADDRESS.wrapping_add(self.node);
        let (from, to) = match self.way {
            "back" => (sink, source),
            "flow-to-controller" => (source, CONTROLLER),
            "controller-to-flow" => (CONTROLLER, source),
            "node-to-controller" => (node, CONTROLLER),
            "controller-to-node" => (CONTROLLER, node),
            _ => (source, sink),
        };
        [from.to_be_bytes(), to.to_be_bytes()]
    }
}

/// Sum of the 16-bit words, the first step of the Internet checksum (RFC 1071).
fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&b| u32::from(b))).sum()
}

fn folded(sum: u32) -> u16 {
    let once = (sum & 0xFFFF) + (sum >> 16);
    !((once & 0xFFFF) + (once >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_worked_example() {
        // RFC 1071, section 3: 00 01 f2 03 f4 f5 f6 f7 sum to ddf2.
        let bytes = [0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7];
        assert_eq!(folded(sum(&bytes)), !0xDDF2);
    }
}
