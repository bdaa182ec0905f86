//! One direction of a link: packets that wait for the link's delay, without clock, input or output.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use subak_core::rng::mix;
use subak_testbed::{PacketFate, PacketImpairment, RelayChange, RelayedCounts};

/// Memory of a waiting packet beside its bytes.
const OVERHEAD: u64 = 64;
/// Memory of a link without delay, bytes.
const LEAST_BYTES: u64 = 1 << 20;
/// Memory of a link of any delay, bytes.
const MOST_BYTES: u64 = 1 << 28;
/// UDP port of control packets.
const CONTROL_PORT: u16 = 5002;

/// A waiting packet. Packets of one time are ordered by their number.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    due_ns: u64,
    number: u64,
    packet: Vec<u8>,
}

/// One direction of a link.
#[derive(Debug)]
pub(super) struct DelayLine {
    rate_bps: f64,
    seed: u64,
    /// In the order of their numbers.
    impairments: Vec<PacketImpairment>,
    waiting: BinaryHeap<Reverse<Waiting>>,
    held_bytes: u64,
    /// Number of packets so far.
    packets: u64,
    /// Largest due time of a packet without additional delay, ns: later packets do not overtake it.
    last_ns: u64,
    counts: RelayedCounts,
}

impl DelayLine {
    pub fn new(rate_bps: f64, delay_ns: u64, seed: u64) -> Self {
        DelayLine {
            rate_bps,
            seed,
            impairments: Vec::new(),
            waiting: BinaryHeap::new(),
            held_bytes: 0,
            packets: 0,
            last_ns: 0,
            counts: RelayedCounts { up: true, delay_ns, ..RelayedCounts::default() },
        }
    }

    /// Accepts a packet that left the link's queue at `now_ns`.
    pub fn push(&mut self, now_ns: u64, packet: &[u8]) {
        self.packets += 1;
        if !self.counts.up {
            self.counts.cut_packets += 1;
            return;
        }
        let (mut copies, mut later_ns) = (1, 0);
        if !self.impairments.is_empty() {
            let kind = kind(packet);
            let met = |i: &&PacketImpairment| hits(i, kind) && self.uniform(i.slot) < i.probability;
            // As in the simulator, a packet meets one impairment at most: the first.
            match self.impairments.iter().find(met).map(|i| i.fate) {
                Some(PacketFate::Lost) => {
                    self.counts.lost_packets += 1;
                    return;
                }
                Some(PacketFate::Doubled) => copies = 2,
                Some(PacketFate::Late(ns)) => later_ns = ns,
                None => {}
            }
        }
        self.counts.doubled_packets += u64::from(copies > 1);
        self.counts.late_packets += u64::from(later_ns > 0);
        let due_ns = now_ns.saturating_add(self.counts.delay_ns).max(self.last_ns);
        self.last_ns = due_ns;
        for _ in 0..copies {
            self.hold(due_ns.saturating_add(later_ns), packet);
        }
    }

    fn hold(&mut self, due_ns: u64, packet: &[u8]) {
        let bytes = packet.len() as u64 + OVERHEAD;
        if self.held_bytes + bytes > self.most_bytes() {
            self.counts.overflow_packets += 1;
            return;
        }
        self.held_bytes += bytes;
        let number = self.packets;
        self.waiting.push(Reverse(Waiting { due_ns, number, packet: packet.to_vec() }));
    }

    /// Bound of the memory of waiting packets: twice the bytes of the delay, additional delays included.
    fn most_bytes(&self) -> u64 {
        let later = self.impairments.iter().map(|i| if let PacketFate::Late(ns) = i.fate { ns } else { 0 });
        let delay_ns = self.counts.delay_ns.saturating_add(later.max().unwrap_or(0));
        let bytes = 2.0 * self.rate_bps / 8.0 * (delay_ns as f64 / 1e9);
        (bytes as u64).saturating_add(LEAST_BYTES).min(MOST_BYTES)
    }

    /// A number from 0 to 1 for the current packet and an impairment; the same for equal seeds.
    fn uniform(&self, slot: u32) -> f64 {
        let word = mix(self.seed ^ mix(self.packets ^ mix(u64::from(slot) + 1)));
        (word >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The next packet that has arrived by `now_ns`, with its due time.
    pub fn pop(&mut self, now_ns: u64) -> Option<(u64, Vec<u8>)> {
        if self.next_ns()? > now_ns {
            return None;
        }
        let Reverse(first) = self.waiting.pop()?;
        self.held_bytes -= first.packet.len() as u64 + OVERHEAD;
        self.counts.carried_packets += 1;
        Some((first.due_ns, first.packet))
    }

    /// Time of the next arrival, ns.
    pub fn next_ns(&self) -> Option<u64> {
        self.waiting.peek().map(|Reverse(first)| first.due_ns)
    }

    pub fn change(&mut self, change: RelayChange) {
        match change {
            RelayChange::Up(up) => {
                self.counts.up = up;
                if !up {
                    self.counts.cut_packets += self.waiting.len() as u64;
                    self.waiting.clear();
                    self.held_bytes = 0;
                    self.last_ns = 0;
                }
            }
            RelayChange::DelayNs(ns) => self.counts.delay_ns = ns,
            RelayChange::Impair(new) => {
                self.impairments.retain(|old| old.slot != new.slot);
                if new.probability > 0.0 {
                    let at = self.impairments.partition_point(|old| old.slot < new.slot);
                    self.impairments.insert(at, new);
                }
                let (mut loss, mut unmet) = (0.0, 1.0);
                for i in self.impairments.iter().filter(|i| i.data) {
                    loss += if i.fate == PacketFate::Lost { unmet * i.probability } else { 0.0 };
                    unmet -= unmet * i.probability;
                }
                self.counts.loss = loss;
            }
        }
    }

    pub fn counts(&self) -> RelayedCounts {
        RelayedCounts { waiting_packets: self.waiting.len() as u64, ..self.counts }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PacketKind {
    Data,
    Ack,
    Control,
}

fn hits(impairment: &PacketImpairment, kind: PacketKind) -> bool {
    match kind {
        PacketKind::Data => impairment.data,
        PacketKind::Ack => impairment.ack,
        PacketKind::Control => impairment.ctl,
    }
}

/// Kind of an Ethernet packet: TCP without payload is an ACK, UDP of the control port a control packet.
fn kind(packet: &[u8]) -> PacketKind {
    let word = |at: usize| packet.get(at..at + 2).map_or(0, |two| u16::from_be_bytes([two[0], two[1]]));
    let byte = |at: usize| packet.get(at).copied().unwrap_or(0);
    if word(12) != 0x0800 {
        return PacketKind::Data;
    }
    let head = usize::from(byte(14) & 15) * 4;
    match byte(23) {
        6 => {
            let options_end = head + usize::from(byte(14 + head + 12) >> 4) * 4;
            if usize::from(word(16)) > options_end { PacketKind::Data } else { PacketKind::Ack }
        }
        17 if word(14 + head) == CONTROL_PORT || word(14 + head + 2) == CONTROL_PORT => PacketKind::Control,
        _ => PacketKind::Data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn line(delay_ns: u64) -> DelayLine {
        DelayLine::new(100e6, delay_ns, 7)
    }

    fn impaired(fate: PacketFate, probability: f64) -> RelayChange {
        RelayChange::Impair(PacketImpairment { slot: 0, fate, probability, data: true, ack: true, ctl: true })
    }

    /// A TCP packet over IPv4 with this payload.
    fn tcp(payload: usize) -> Vec<u8> {
        let mut packet = vec![0; 54 + payload];
        (packet[12], packet[14], packet[23], packet[46]) = (8, 0x45, 6, 0x50);
        packet[16..18].copy_from_slice(&(40 + payload as u16).to_be_bytes());
        packet
    }

    fn drained(line: &mut DelayLine, now_ns: u64) -> Vec<(u64, Vec<u8>)> {
        std::iter::from_fn(|| line.pop(now_ns)).collect()
    }

    #[test]
    fn packets_arrive_after_the_delay_and_keep_their_rate() {
        let mut line = line(10 * MS);
        let sent: Vec<u64> = (0..1000).map(|k| k * 120_000).collect();
        sent.iter().for_each(|&at_ns| line.push(at_ns, &at_ns.to_be_bytes()));
        assert_eq!(line.next_ns(), Some(10 * MS));
        assert!(line.pop(10 * MS - 1).is_none());
        assert_eq!(line.counts().waiting_packets, 1000);
        let arrived = drained(&mut line, u64::MAX);
        assert!(
            arrived
                .iter()
                .zip(&sent)
                .all(|((due_ns, packet), at_ns)| { *due_ns == at_ns + 10 * MS && packet[..] == at_ns.to_be_bytes() })
        );
        assert_eq!((line.counts().carried_packets, line.next_ns()), (1000, None));
    }

    #[test]
    fn a_share_of_packets_is_lost_the_same_for_a_seed() {
        let lost = |seed: u64| {
            let mut line = DelayLine::new(1e9, 0, seed);
            line.change(impaired(PacketFate::Lost, 0.01));
            for k in 0..100_000u64 {
                line.push(k, &k.to_be_bytes());
                line.pop(k);
            }
            (line.counts().lost_packets, line.counts().carried_packets)
        };
        let (gone, carried) = lost(1);
        assert!((900..1100).contains(&gone), "{gone}");
        assert_eq!(gone + carried, 100_000);
        assert_eq!(lost(1), lost(1));
        assert_ne!(lost(1), lost(2));
    }

    #[test]
    fn a_packet_meets_the_first_of_several_impairments() {
        let impair = |slot, fate, probability| {
            RelayChange::Impair(PacketImpairment { slot, fate, probability, data: true, ack: true, ctl: true })
        };
        let counts = |changes: &[RelayChange]| {
            let mut line = DelayLine::new(1e12, 0, 5);
            changes.iter().for_each(|&change| line.change(change));
            (0..10_000).for_each(|now_ns| line.push(now_ns, b"packet"));
            let RelayedCounts { loss, lost_packets, doubled_packets, late_packets, .. } = line.counts();
            (loss, lost_packets, doubled_packets, late_packets)
        };
        let (lost, late, twice) = (PacketFate::Lost, PacketFate::Late(MS), PacketFate::Doubled);
        assert_eq!(counts(&[impair(0, lost, 1.0), impair(1, late, 1.0)]), (1.0, 10_000, 0, 0));
        // The numbers count, not the order in which impairments began.
        assert_eq!(counts(&[impair(1, lost, 1.0), impair(0, late, 1.0)]), (0.0, 0, 0, 10_000));
        assert_eq!(counts(&[impair(0, twice, 1.0), impair(1, late, 1.0)]), (0.0, 0, 10_000, 0));
        // Two losses of a half leave a quarter.
        let (loss, lost_packets, ..) = counts(&[impair(0, lost, 0.5), impair(1, lost, 0.5)]);
        assert_eq!(loss, 0.75);
        assert!((7300..7700).contains(&lost_packets), "{lost_packets}");
    }

    #[test]
    fn late_packets_are_overtaken_and_others_are_not() {
        let mut line = line(MS);
        line.change(impaired(PacketFate::Late(5 * MS), 1.0));
        line.push(0, b"late");
        line.change(impaired(PacketFate::Late(5 * MS), 0.0));
        line.push(1, b"next");
        line.change(RelayChange::DelayNs(0));
        line.push(2, b"soon");
        let order: Vec<_> = drained(&mut line, u64::MAX);
        assert_eq!(order, [(MS + 1, b"next".to_vec()), (MS + 1, b"soon".to_vec()), (6 * MS, b"late".to_vec())]);
        assert_eq!(line.counts().late_packets, 1);
    }

    #[test]
    fn a_doubled_packet_arrives_twice() {
        let mut line = line(0);
        line.change(impaired(PacketFate::Doubled, 1.0));
        line.push(0, b"one");
        assert_eq!(drained(&mut line, 0).len(), 2);
        assert_eq!(line.counts().doubled_packets, 1);
    }

    #[test]
    fn memory_is_bounded() {
        let mut line = DelayLine::new(8e6, 100 * MS, 0);
        // The bound is 1 MiB and twice the 100 kB of the delay.
        for _ in 0..10_000 {
            line.push(0, &[0; 1500]);
        }
        let counts = line.counts();
        assert_eq!(counts.waiting_packets, (200_000 + (1 << 20)) / 1564);
        assert_eq!(counts.waiting_packets + counts.overflow_packets, 10_000);
        drained(&mut line, u64::MAX);
        line.push(1, &[0; 1500]);
        assert_eq!(line.counts().waiting_packets, 1);
        let mut longest = DelayLine::new(1e18, u64::MAX, 0);
        assert_eq!(longest.most_bytes(), MOST_BYTES);
        longest.push(u64::MAX, b"no overflow of times");
    }

    #[test]
    fn a_link_that_is_down_loses_what_is_on_it() {
        let mut line = line(MS);
        line.push(0, b"cut");
        line.change(RelayChange::Up(false));
        line.push(1, b"cut");
        assert!(line.pop(u64::MAX).is_none());
        line.change(RelayChange::Up(true));
        line.push(2, b"through");
        assert_eq!(drained(&mut line, u64::MAX), [(MS + 2, b"through".to_vec())]);
        assert_eq!((line.counts().cut_packets, line.counts().carried_packets), (2, 1));
    }

    #[test]
    fn packets_have_kinds() {
        let mut udp = tcp(20);
        udp[23] = 17;
        assert_eq!(kind(&udp), PacketKind::Data);
        udp[36..38].copy_from_slice(&5002u16.to_be_bytes());
        assert_eq!(kind(&udp), PacketKind::Control);
        assert_eq!((kind(&tcp(0)), kind(&tcp(1))), (PacketKind::Ack, PacketKind::Data));
        for bytes in 0..60 {
            kind(&udp[..bytes.min(udp.len())]);
            kind(&tcp(6)[..bytes]);
        }
        let mut line = line(0);
        let only =
            PacketImpairment { slot: 3, fate: PacketFate::Lost, probability: 1.0, data: false, ack: true, ctl: false };
        line.change(RelayChange::Impair(only));
        [tcp(0), tcp(100), udp].iter().for_each(|packet| line.push(0, packet));
        assert_eq!((line.counts().lost_packets, line.counts().waiting_packets), (1, 2));
        assert_eq!(line.counts().loss, 0.0);
    }
}
