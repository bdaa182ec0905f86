use super::*;
use crate::reno::Reno;
use proptest::prelude::*;
use subak_core::{FlowId, IdVec, LinkId};

const MS: Ns = 1_000_000;

fn packet(flow: u32, bytes: u32, segment: u32, enqueued_ns: Ns) -> Packet<Reno> {
    Packet { bytes, enqueued_ns, ..Packet::blank(FlowId(flow)).carrying(segment, bytes) }
}

fn queue(quantum: u32, limit_bytes: u64) -> SfqCodel {
    let plan = SfqPlan { target_ns: 5 * MS, interval_ns: 100 * MS, bins: 1024, quantum, drops_tail: false, device: 0 };
    plan.queue(&Port { buffer_bytes: limit_bytes, ..Port::example(LinkId(0), 1e9) })
}

/// Times, ns from the first one, at which CoDel drops. The queueing delay is always above the target, and the link is
/// free once per `step_ns`.
fn drops(codel: &mut Codel, from_ns: Ns, step_ns: Ns, steps: u64) -> Vec<Ns> {
    let timing = Timing { target_ns: 5 * MS, interval_ns: 100 * MS };
    let mut times = Vec::new();
    for now_ns in (0..steps).map(|k| from_ns + k * step_ns) {
        while codel.drops(now_ns, timing, 6 * MS, 15_000, 1500) {
            times.push(now_ns);
        }
    }
    times
}

#[test]
fn drops_come_closer_by_the_square_root_of_their_number() {
    // Nichols and Jacobson, Controlling Queue Delay, 2012: the first drop after an interval above the target, the next
    // ones interval/sqrt(n) apart: 100, 70.7, 57.7, 50, 44.7, 40.8, 37.8, 35.4 ms.
    let times = drops(&mut Codel::default(), 0, 10_000, 60_000);
    assert_eq!(times[0], 100 * MS);
    let mut law_ns = 100.0 * MS as f64;
    for (n, &time) in times.iter().enumerate().skip(1) {
        law_ns += 100.0 * MS as f64 / (n as f64).sqrt();
        assert!((time as f64 - law_ns).abs() < 20_000.0, "drop {n} at {time}, by the law {law_ns}");
    }
    let gaps: Vec<f64> = times.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e6).collect();
    for (gap, law) in gaps.iter().zip([100.0, 70.7, 57.7, 50.0, 44.7, 40.8, 37.8, 35.4]) {
        assert!((gap - law).abs() < 0.06, "{gaps:?}");
    }
}

#[test]
fn dropping_ends_below_the_target_and_goes_on_from_its_rate_if_it_comes_back_soon() {
    let timing = Timing { target_ns: 5 * MS, interval_ns: 100 * MS };
    let mut codel = Codel::default();
    let before = drops(&mut codel, 0, MS, 600);
    assert!(!codel.drops(600 * MS, timing, 4 * MS, 15_000, 1500));
    // An interval passes before the next drop. The gaps then continue from the count that was reached before.
    let soon = drops(&mut codel, 601 * MS, MS, 300);
    assert_eq!(soon[0], 701 * MS);
    let gap = 100.0 / ((before.len() - 1) as f64).sqrt();
    assert!(((soon[1] - soon[0]) as f64 / 1e6 - gap).abs() <= 1.0, "{soon:?}, {gap}");
    // After more than sixteen intervals, the count starts again at 1.
    assert!(!codel.drops(2_600 * MS, timing, 0, 15_000, 1500));
    let late = drops(&mut codel, 4_000 * MS, MS, 300);
    assert_eq!(late[1] - late[0], 100 * MS);
}

#[test]
fn a_last_packet_is_never_dropped_however_long_it_waited() {
    let mut codel = Codel::default();
    let timing = Timing { target_ns: 5 * MS, interval_ns: 100 * MS };
    assert!((0..1000).all(|k| !codel.drops(k * MS, timing, 900 * MS, 1500, 1500)));
}

#[test]
fn times_follow_the_round_trip_if_asked() {
    let plan = SfqPlan { target_ns: 0, interval_ns: 0, bins: 1, quantum: 0, drops_tail: false, device: 0 };
    let port = Port { rtt_ns: 100_000, ..Port::example(LinkId(0), 10e9) };
    assert_eq!(plan.timing(&port), Timing { target_ns: 5000, interval_ns: 100_000 });
    // A twentieth of 12 us would be less than the time of a full packet.
    let port = Port { rtt_ns: 12_000, ..Port::example(LinkId(0), 10e9) };
    assert_eq!(plan.timing(&port), Timing { target_ns: 1200, interval_ns: 12_000 });
}

/// Packets and bytes of each flow among the first `served` packets that leave. `flows` has each flow's packet size in
/// bytes.
fn served(quantum: u32, flows: &[u32], served: usize) -> Vec<(usize, u64)> {
    let (mut slab, mut dropped) = (Slab::<Reno>::default(), Vec::new());
    let mut queue = queue(quantum, u64::MAX);
    for n in 0..served as u32 {
        for (flow, &bytes) in (0..).zip(flows) {
            let id = slab.insert(packet(flow, bytes, n, 0));
            queue.push(0, id, &mut slab, &mut dropped);
        }
    }
    let mut got = IdVec::<FlowId, _>::filled((0, 0), flows.len());
    for _ in 0..served {
        let Pop::Packet(id) = queue.pop(0, &mut slab, &mut dropped) else { panic!("it is not empty") };
        let of = &mut got[slab[id].flow];
        *of = (of.0 + 1, of.1 + u64::from(slab[id].bytes));
    }
    got.into_raw()
}

#[test]
fn turns_share_bytes_or_packets() {
    let got = served(1514, &[1500, 500, 100], 3000);
    let share = |k: usize| got[k].1 as f64 / got[0].1 as f64;
    assert!((share(1) - 1.0).abs() < 0.03 && (share(2) - 1.0).abs() < 0.03, "{got:?}");
    let got = served(0, &[1500, 500, 100], 300);
    assert_eq!(got.iter().map(|g| g.0).collect::<Vec<_>>(), [100, 100, 100]);
}

#[test]
fn one_that_begins_goes_before_those_that_go_on() {
    let (mut slab, mut dropped) = (Slab::<Reno>::default(), Vec::new());
    let mut queue = queue(1514, u64::MAX);
    let push = |queue: &mut SfqCodel, slab: &mut Slab<Reno>, flow| {
        let id = slab.insert(packet(flow, 1500, 0, 0));
        queue.push(0, id, slab, &mut Vec::new());
    };
    (0..20).for_each(|_| push(&mut queue, &mut slab, 1));
    (0..20).for_each(|_| push(&mut queue, &mut slab, 2));
    let mut next = |queue: &mut SfqCodel, slab: &mut Slab<Reno>| match queue.pop(0, slab, &mut dropped) {
        Pop::Packet(id) => slab[id].flow,
        other => panic!("{other:?}"),
    };
    for _ in 0..6 {
        next(&mut queue, &mut slab);
    }
    push(&mut queue, &mut slab, 3);
    assert_eq!(next(&mut queue, &mut slab), 3);
}

/// Segments that a full queue drops of 8 packets: seven of one flow, then one of another.
fn dropped_of_8(drops_tail: bool) -> Vec<u32> {
    let (mut slab, mut dropped) = (Slab::<Reno>::default(), Vec::new());
    let mut queue = SfqCodel { drops_tail, ..queue(1514, 10_000) };
    for n in 0..8 {
        let id = slab.insert(packet(u32::from(n == 7), 1400, n, 0));
        queue.push(0, id, &mut slab, &mut dropped);
    }
    dropped.iter().map(|&id| slab[id].segment()).collect()
}

#[test]
fn the_longest_loses_the_packet_at_its_head_or_at_its_tail() {
    assert_eq!(dropped_of_8(false), [0], "RFC 8290");
    assert_eq!(dropped_of_8(true), [6], "ns-2's program");
}

#[test]
fn a_device_holds_packets_beyond_the_buffer() {
    let left_of_4 = |device_room: usize| {
        let (mut slab, mut dropped) = (Slab::<Reno>::default(), Vec::new());
        let mut queue = SfqCodel { device_room, drops_tail: true, ..queue(1514, 1500) };
        for n in 0..4 {
            let id = slab.insert(packet(n, 1500, n, 0));
            queue.push(0, id, &mut slab, &mut dropped);
        }
        let held = (Queue::<Reno>::packets(&queue), Queue::<Reno>::bytes(&queue));
        let mut left = Vec::new();
        while let Pop::Packet(id) = queue.pop(0, &mut slab, &mut dropped) {
            left.push(slab[id].segment());
        }
        (held, left)
    };
    assert_eq!(left_of_4(0).0, (1, 1500));
    assert_eq!(left_of_4(1).0, (2, 3000));
    assert_eq!(left_of_4(2), ((3, 4500), vec![0, 1, 3]), "of equally long bins the first one loses");
}

proptest! {
    /// Each packet leaves once or is dropped, flows stay in order, and the queue's counters balance.
    #[test]
    fn nothing_is_lost_or_doubled(
        steps in prop::collection::vec((0u32..6, 40u32..1500, 0u64..20 * MS, 0usize..3), 1..300),
        quantum in prop::sample::select(vec![0u32, 300, 1514]), limit in 2_000u64..50_000, drops_tail: bool,
    ) {
        let (mut slab, mut dropped) = (Slab::<Reno>::default(), Vec::new());
        let mut queue = SfqCodel { drops_tail, ..queue(quantum, limit) };
        let (mut now_ns, mut left, mut last) = (0, 0, IdVec::<FlowId, _>::filled(None, 6));
        for (n, &(flow, bytes, gap_ns, pops)) in steps.iter().enumerate() {
            now_ns += gap_ns;
            let id = slab.insert(packet(flow, bytes, n as u32, now_ns));
            queue.push(now_ns, id, &mut slab, &mut dropped);
            prop_assert!(Queue::<Reno>::bytes(&queue) <= limit);
            for _ in 0..pops {
                if let Pop::Packet(id) = queue.pop(now_ns, &mut slab, &mut dropped) {
                    left += 1;
                    prop_assert!(last[slab[id].flow] < Some(slab[id].segment()));
                    last[slab[id].flow] = Some(slab[id].segment());
                }
            }
        }
        while let Pop::Packet(_) = queue.pop(now_ns, &mut slab, &mut dropped) {
            left += 1;
        }
        prop_assert_eq!(left + dropped.len(), steps.len());
        prop_assert_eq!((Queue::<Reno>::bytes(&queue), Queue::<Reno>::packets(&queue)), (0, 0));
    }
}

#[test]
fn a_packet_without_a_header_fills_one_cache_line() {
    assert_eq!(size_of::<Packet<Reno>>(), 64);
}
