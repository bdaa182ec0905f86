//! The kernel's queues write the same telemetry bits as the simulator's: the filter and the virtual queue.
#![cfg(feature = "bpf")]

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use subak_agent::kernel::queue_vectors::{QueueVector, pass};
use subak_schemes::soze::{Filter, FixedVirtual, Leaving, Signal, SozeArithmetic, Virtual};

/// Packets per queue, a whole number of batches.
const PACKETS: usize = 1 << 15;

/// Packets with arbitrary times and backlogs; many have those of a busy queue. Each has its time as the reference counts
/// it too. For one of eight the kernel gets an earlier time: its processor read the clock before another's took the lock.
fn packets(random: &mut Pcg64Mcg, most_bits: u64) -> Vec<(u64, QueueVector)> {
    let mut at_ns = 0u64;
    let one = |_| {
        let mut below = |most: u64| random.next_u64() % most;
        let (is_usual, is_earlier) = (below(4) > 0, below(8) == 0);
        let mut of_bits = |bits: u64| {
            let less = below(bits);
            below(1 << bits) >> less
        };
        let (passed_ns, queued_bytes, bytes) = match is_usual {
            true => (of_bits(18), of_bits(18), 64 + of_bits(11)),
            false => (of_bits(most_bits), of_bits(63), of_bits(16)),
        };
        let earlier_ns = if is_earlier { passed_ns } else { 0 };
        at_ns += passed_ns - earlier_ns;
        let vector = QueueVector {
            now_ns: at_ns.saturating_sub(earlier_ns),
            queued_bytes,
            bytes: bytes as u32,
            ..QueueVector::default()
        };
        (at_ns, vector)
    };
    (0..PACKETS).map(one).collect()
}

#[test]
fn half_a_million_packets_are_told_what_the_simulator_tells_them() {
    let mut random = Pcg64Mcg::new(0x5eed);
    for capacity_bps in [10e6, 100e6, 25e9, 400e9] {
        for (signal, filter_ns) in [(Signal::Backlog, 0.0), (Signal::Backlog, 1e6), (Signal::Utilization, 40e3)] {
            let full_ns = 9e6;
            let mut filter = Filter::new(signal, filter_ns, full_ns, capacity_bps, SozeArithmetic::Fixed);
            // The reference of the filter does not bound times, so that they must be small.
            let (at_ns, mut through): (Vec<_>, Vec<_>) = packets(&mut random, 44).into_iter().unzip();
            pass(&filter.settings().expect("it is in integers"), &mut through).expect("the kernel can be asked");
            for (i, (at_ns, p)) in at_ns.into_iter().zip(through).enumerate() {
                let told = filter.tell_ns(at_ns, Leaving { bytes: p.bytes, wait_ns: 0, queued_bytes: p.queued_bytes });
                assert_eq!(Some(p.told_ns), told, "{signal:?}, {capacity_bps} bit/s, packet {i}: {p:?}");
            }
        }
        for rtt_ns in [10_000, 1_000_000] {
            let mut queue = FixedVirtual::new(&Virtual::STANDARD, rtt_ns, capacity_bps);
            let (at_ns, mut through): (Vec<_>, Vec<_>) = packets(&mut random, 47).into_iter().unzip();
            pass(&queue.settings(), &mut through).expect("the kernel can be asked");
            let mut before_ns = 0;
            for (i, (at_ns, p)) in at_ns.into_iter().zip(through).enumerate() {
                queue.drain(at_ns - std::mem::replace(&mut before_ns, at_ns), p.queued_bytes);
                queue.fill(p.bytes);
                let told = queue.signal_ns(p.queued_bytes);
                assert_eq!(p.told_ns, told, "{capacity_bps} bit/s, {rtt_ns} ns, packet {i}: {p:?}");
            }
        }
    }
}
