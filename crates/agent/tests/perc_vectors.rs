//! s-PERC's link in the kernel computes the same bits as the fixed-point link of the schemes.
#![cfg(feature = "bpf")]

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use subak_agent::kernel::perc_vectors::{PercVector, answer};
use subak_schemes::perc::division::Tables;
use subak_schemes::perc::fixed::{Fixed, FixedEntry, FixedLink, NO_LIMIT, PercLinkSettings, RateUnit};

/// Packets per setting; the eight settings together have a million.
const PACKETS: usize = 125_000;

#[test]
fn a_million_packets_leave_what_the_reference_does() {
    let mut random = Pcg64Mcg::new(0x5eed);
    for kb in [0, 13, 52, 340] {
        let tables = (kb > 0).then(|| Tables::within(kb * 1024));
        for robust in [false, true] {
            let (log, power) = tables.as_ref().map_or((0, 0), |t| (t.parts().0, t.parts().1));
            let set = PercLinkSettings {
                capacity: RateUnit::of(100e6).capacity(94e6),
                packet_ns: 632_000,
                patience_ns: if random.next_u64().is_multiple_of(4) { 0 } else { 10_000_000 },
                wait_ns: 12_000_000,
                tie: (tables.as_ref().map_or(1e-9, Tables::error) * 4_294_967_296.0).ceil() as u32,
                robust,
                log_index_bits: log as u8,
                power_index_bits: power as u8,
            };
            let mut passings = passings(&mut random);
            let asked = passings.clone();
            if let Err(why) = answer(&set, tables.as_ref(), &mut passings) {
                panic!("the kernel cannot be asked: {why}");
            }
            let mut link = asked[0].link;
            for (i, (mut expected, answered)) in asked.into_iter().zip(passings).enumerate() {
                let PercVector { hop, forward, now_ns, .. } = expected;
                if expected.anew {
                    link = expected.link;
                }
                link.pass(&set, tables.as_ref(), &mut expected.packet, hop, forward, now_ns);
                expected.link = link;
                assert_eq!(answered, expected, "{set:?}, packet {i}");
            }
        }
    }
}

/// Random packets. Half start new flows with weights near one, a quarter have arbitrary fields, and the rest belong
/// to a few flows. Occasionally the link's state is reset.
fn passings(random: &mut Pcg64Mcg) -> Vec<PercVector> {
    let mut now_ns = 1_000_000_000_000;
    let mut below = |most: u64| random.next_u64() % most;
    let mut flows = [Fixed { weight: 1 << 16, ..anything(&mut below) }; 12];
    let mut passings: Vec<PercVector> = (0..PACKETS)
        .map(|_| {
            let bits = below(24);
            now_ns += below(1 << 26) >> bits;
            let flow = below(12) as usize;
            let mut packet = match below(4) {
                0 => flows[flow],
                1 => anything(&mut below),
                _ => {
                    let mut new = Fixed { weight: 1 + below(1 << 18) as u32, first: true, ..anything(&mut below) };
                    new.links[..4].fill(FixedEntry::NEW);
                    new
                }
            };
            packet.hops = 1 + below(10) as u8;
            flows[flow] = packet;
            let link = FixedLink::new(1 + below(1 << 22), now_ns);
            PercVector { now_ns, hop: below(9) as u8, forward: below(2) == 0, packet, link, anew: below(40) == 0 }
        })
        .collect();
    passings[0].anew = true;
    passings
}

fn anything(below: &mut impl FnMut(u64) -> u64) -> Fixed {
    let mut number = |bits: u64| {
        let fewer = below(bits);
        (below(1 << bits) >> fewer) as u32
    };
    let entry = |number: &mut dyn FnMut(u64) -> u32| FixedEntry {
        a: number(31),
        b: number(31),
        bottlenecked: number(1) == 1,
        ignored: number(1) == 1,
        round_number: number(8) as u8,
    };
    Fixed {
        weight: number(32),
        was: number(32),
        first: number(3) == 0,
        fin: number(3) == 0,
        tx_us: number(32),
        period_us: number(14),
        round_us: number(14),
        own: number(32).min(NO_LIMIT),
        hops: 1 + number(3) as u8,
        links: std::array::from_fn(|_| entry(&mut number)),
    }
}
