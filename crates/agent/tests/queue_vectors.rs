//! The kernel's queues write the same telemetry bits as the simulator's: the filter and the virtual queue.
#![cfg(feature = "bpf")]

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use subak_agent::kernel::queue_vectors::{QueueVector, pass};
use subak_schemes::soze::{Filter, FixedVirtual, Leaving, Signal, SozeArithmetic, Virtual};

/// Packets per queue, a whole number of batches.
const PACKETS: usize = 1 << 15;

/// Packets with arbitrary times and backlogs; many have those of a busy queue.
fn packets(random: &mut Pcg64Mcg) -> Vec<QueueVector> {
    let one = |_| {
        let mut below = |most: u64| random.next_u64() % most;
        let is_usual = below(4) > 0;
        let mut of_bits = |bits: u64| {
            let less = below(bits);
            below(1 << bits) >> less
        };
        match is_usual {
            true => QueueVector {
                passed_ns: of_bits(18),
                queued_bytes: of_bits(18),
                bytes: 64 + of_bits(11) as u32,
                ..QueueVector::default()
            },
            false => QueueVector {
                passed_ns: of_bits(63),
                queued_bytes: of_bits(63),
                bytes: of_bits(16) as u32,
                ..QueueVector::default()
            },
        }
    };
    (0..PACKETS).map(one).collect()
}

#[test]
fn half_a_million_packets_are_told_what_the_simulator_tells_them() {
    let mut random = Pcg64Mcg::new(0x5eed);
    for capacity_bps in [10e6, 100e6, 25e9, 400e9] {
        for (signal, filter_ns) in [(Signal::Backlog, 0.0), (Signal::Backlog, 1e6), (Signal::Utilization, 40e3)] {
            let (full_ns, mut at_ns) = (9e6, 0u64);
            let mut filter = Filter::new(signal, filter_ns, full_ns, capacity_bps, SozeArithmetic::Fixed);
            let mut through = packets(&mut random);
            // The reference does not bound times, so that they must be small.
            through.iter_mut().for_each(|p| p.passed_ns >>= 15);
            pass(&filter.settings().expect("it is in integers"), &mut through).expect("the kernel can be asked");
            for (i, p) in through.iter().enumerate() {
                at_ns += p.passed_ns;
                let told = filter.tell_ns(at_ns, Leaving { bytes: p.bytes, wait_ns: 0, queued_bytes: p.queued_bytes });
                assert_eq!(Some(p.told_ns), told, "{signal:?}, {capacity_bps} bit/s, packet {i}: {p:?}");
            }
        }
        for rtt_ns in [10_000, 1_000_000] {
            let mut queue = FixedVirtual::new(&Virtual::STANDARD, rtt_ns, capacity_bps);
            let mut through = packets(&mut random);
            pass(&queue.settings(), &mut through).expect("the kernel can be asked");
            for (i, p) in through.iter().enumerate() {
                queue.drain(p.passed_ns, p.queued_bytes);
                queue.fill(p.bytes);
                let told = queue.signal_ns(p.queued_bytes);
                assert_eq!(p.told_ns, told, "{capacity_bps} bit/s, {rtt_ns} ns, packet {i}: {p:?}");
            }
        }
    }
}
