//! Format of a control packet between hosts, in a UDP datagram. Numbers are big-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | "PERC" |
//! | 1, 1 | version; flags: 1 first, 2 leaving, 4 on the reverse path |
//! | 1, 1 | number of links crossed, counted from the source; number of links of the path |
//! | 1, 3 | exponent of the unit of rates (power of two, signed); zeros |
//! | 4, 4 | flow, serial |
//! | 4, 4 | weight, and weight on the previous trip, with 16 fractional bits |
//! | 4, 4, 4 | Tx_ctrl (minimum interval between control packets), period of the flow, longest round of the links, us |
//! | 4 | b\[l0\], rate of the virtual link of the flow's demand |
//! | 9 per link | a, with s as its first bit; b, with the ignore bit as its first; round number |

use super::fixed::{Fixed, FixedEntry, MOST_HOPS, NO_LIMIT, RateUnit};

/// UDP port of control packets on hosts.
pub const PORT: u16 = 5002;
/// Size of the header before the links' fields, bytes.
pub const HEAD_BYTES: usize = 44;
/// Size of a link's fields, bytes.
pub const LINK_BYTES: usize = 9;
/// Bytes of Ethernet, IPv4 and UDP headers.
pub const HEADERS_BYTES: u32 = 14 + 20 + 8;
/// Largest size of a datagram, bytes.
pub const MOST_BYTES: usize = HEAD_BYTES + MOST_HOPS * LINK_BYTES;

const MAGIC: [u8; 4] = *b"PERC";
const VERSION: u8 = 1;
const FIRST: u8 = 1;
const FIN: u8 = 2;
const BACK: u8 = 4;

/// A control packet as a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PercDatagram {
    /// Number of the flow at its source.
    pub flow: u32,
    /// Serial number of the control packet at its source.
    pub serial: u32,
    /// Whether the datagram is on the reverse path.
    pub back: bool,
    /// Number of links already crossed, counted from the source.
    pub hop: u8,
    /// Unit of the rates in the datagram.
    pub unit: RateUnit,
    /// The fields that links read and write.
    pub packet: Fixed,
}

/// Bytes on the wire of a control packet over `hops` links.
pub fn wire_bytes(hops: u8) -> u32 {
    HEADERS_BYTES + (HEAD_BYTES + usize::from(hops) * LINK_BYTES) as u32
}

impl PercDatagram {
    /// Encodes the control packet.
    pub fn write(&self) -> Vec<u8> {
        let PercDatagram { flow, serial, back, hop, unit, packet } = self;
        let flag = |on: bool, bit: u8| if on { bit } else { 0 };
        let mut bytes = Vec::with_capacity(MOST_BYTES);
        bytes.extend(MAGIC);
        bytes.extend([VERSION, flag(packet.first, FIRST) | flag(packet.fin, FIN) | flag(*back, BACK)]);
        bytes.extend([*hop, packet.hops, unit.0 as u8, 0, 0, 0]);
        let Fixed { weight, was, tx_us, period_us, round_us, own, .. } = *packet;
        for word in [*flow, *serial, weight, was, tx_us, period_us, round_us, own] {
            bytes.extend(word.to_be_bytes());
        }
        for link in packet.links.iter().take(packet.hops.into()) {
            bytes.extend(with_bit(link.a, link.bottlenecked));
            bytes.extend(with_bit(link.b, link.ignored));
            bytes.push(link.round_number);
        }
        bytes
    }

    /// Parses a control packet; `None` if `bytes` are anything else.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (head, rows) = bytes.split_at_checked(HEAD_BYTES)?;
        let (hop, hops) = (head[6], head[7]);
        let known = head[..4] == MAGIC && head[4] == VERSION && hop <= hops && (1..=MOST_HOPS).contains(&hops.into());
        if !known || rows.len() != usize::from(hops) * LINK_BYTES {
            return None;
        }
        let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let mut links = [FixedEntry::NEW; MOST_HOPS];
        for (link, row) in links.iter_mut().zip(rows.chunks_exact(LINK_BYTES)) {
            let [a, b] = [[row[0], row[1], row[2], row[3]], [row[4], row[5], row[6], row[7]]].map(u32::from_be_bytes);
            *link = FixedEntry {
                a: a & NO_LIMIT,
                b: b & NO_LIMIT,
                bottlenecked: a > NO_LIMIT,
                ignored: b > NO_LIMIT,
                round_number: row[8],
            };
        }
        let on = |bit: u8| head[5] & bit != 0;
        let [weight, was, tx_us, period_us, round_us, own] = [20, 24, 28, 32, 36, 40].map(word);
        let (first, fin) = (on(FIRST), on(FIN));
        let packet = Fixed { weight, was, first, fin, tx_us, period_us, round_us, own, hops, links };
        Some(PercDatagram {
            flow: word(12),
            serial: word(16),
            back: on(BACK),
            hop,
            unit: RateUnit(head[8] as i8),
            packet,
        })
    }

    /// A receiver's reply: the same datagram on the reverse path. `None` for the teardown, and for anything but a
    /// control packet.
    pub fn answer(bytes: &[u8]) -> Option<Vec<u8>> {
        let there = PercDatagram::read(bytes).filter(|datagram| !datagram.back && !datagram.packet.fin)?;
        Some(PercDatagram { back: true, ..there }.write())
    }
}

fn with_bit(rate: u32, bit: bool) -> [u8; 4] {
    (rate.min(NO_LIMIT) | u32::from(bit) << 31).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            words in any::<[u32; 8]>(), rates in any::<[u32; 16]>(), bits in any::<[u8; 8]>(), hops in 1u8..=8, unit: i8,
        ) {
            let entry = |k: usize| FixedEntry {
                a: rates[2 * k] & NO_LIMIT, b: rates[2 * k + 1] & NO_LIMIT,
                bottlenecked: bits[k] & 1 == 1, ignored: bits[k] & 2 == 2, round_number: bits[k],
            };
            let [weight, was, tx_us, period_us, round_us, own, flow, serial] = words;
            let (first, fin) = (bits[0] & 4 == 4, bits[0] & 8 == 8);
            let links = std::array::from_fn(|k| if k < hops.into() { entry(k) } else { FixedEntry::NEW });
            let packet = Fixed { weight, was, first, fin, tx_us, period_us, round_us, own, hops, links };
            let back = bits[0] & 16 == 16;
            let sent = PercDatagram { flow, serial, back, hop: bits[1] % (hops + 1), unit: RateUnit(unit), packet };
            let bytes = sent.write();
            prop_assert_eq!(bytes.len() + HEADERS_BYTES as usize, wire_bytes(hops) as usize);
            prop_assert_eq!(PercDatagram::read(&bytes), Some(sent));
            prop_assert_eq!(PercDatagram::answer(&bytes).is_some(), !fin && !back);
        }

        #[test]
        fn anything_may_come(mut bytes in prop::collection::vec(any::<u8>(), 0..130), ours: bool) {
            if ours && bytes.len() > 8 {
                bytes[..5].copy_from_slice(b"PERC\x01");
            }
            if let Some(read) = PercDatagram::read(&bytes) {
                prop_assert_eq!(read.write().len(), bytes.len());
            }
        }
    }
}
