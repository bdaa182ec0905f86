//! Start-time fair queueing compared with its definition: rates by weight, order, drops, bounded memory.

use crate::link::{LoneLink, Swift, port};
use proptest::prelude::*;
use subak_core::scheme::{PacketKind, Queue};
use subak_core::{FlowId, IdVec};
use subak_schemes::queue::Stfq;

fn stfq(buffer_bytes: u64) -> LoneLink<Stfq> {
    LoneLink::new(Stfq::new(&port(buffer_bytes)))
}

#[test]
fn equations_12_and_13_by_hand() {
    // Weights 1 and 2, 1000 bytes: flow 0 starts at 0, 8000, 16000; flow 1 at 0, 4000, 8000, 12000.
    let mut link = stfq(1 << 20);
    for _ in 0..3 {
        link.push(0, 1000, 1.0);
    }
    for _ in 0..4 {
        link.push(1, 1000, 2.0);
    }
    let order = link.order();
    assert_eq!(order, [0, 1, 1, 0, 1, 1, 0], "equal starts leave in the order they came");
}

#[test]
fn a_weight_may_change_with_every_packet() {
    let mut link = stfq(1 << 20);
    for k in 0..40 {
        link.push(0, 1000, if k < 10 { 1.0 } else { 3.0 });
    }
    for _ in 0..40 {
        link.push(1, 1000, 1.0);
    }
    let order = link.order();
    let of_flow_0 = |range: std::ops::Range<usize>| order[range].iter().filter(|&&f| f == 0).count();
    assert_eq!(of_flow_0(0..20), 10);
    assert_eq!(of_flow_0(20..60), 30, "three of four from the change on");
}

#[test]
fn acknowledgements_wait_for_no_backlog() {
    let mut link = stfq(1 << 20);
    for _ in 0..10 {
        link.push(0, 1500, 1.0);
    }
    link.pop();
    link.push_kind(PacketKind::Ack, 1, 64, 1.0);
    assert_eq!(link.pop().map(|(_, flow)| flow), Some(1), "it starts at V, which the others are past");
}

#[test]
fn overflow_drops_the_largest_virtual_length_and_charges_nothing_for_it() {
    let mut link = stfq(4000);
    link.push(0, 1000, 1.0);
    let heavy = link.push(1, 1000, 0.1);
    link.push(2, 1000, 1.0);
    link.push(0, 1000, 1.0);
    link.push(2, 1000, 1.0);
    assert_eq!(link.dropped, [heavy]);
    let newest = link.push(2, 1000, 1.0);
    assert_eq!(link.dropped, [heavy, newest], "among equals the newest");
    link.push_kind(PacketKind::Ack, 3, 64, 1.0);
    assert!(Queue::<Swift>::bytes(&link.queue) <= 4000);
    assert_eq!(link.dropped.len(), 3, "data makes room for an acknowledgement");
    let order = link.order();
    assert_eq!(order.len(), 4);
    link.push(2, 1000, 1.0);
    link.push(4, 1000, 1.0);
    assert_eq!(link.pop().map(|(_, flow)| flow), Some(2), "flow 2 is not behind for what was dropped");
}

#[test]
fn flows_that_are_gone_are_forgotten() {
    let mut link = stfq(1 << 20);
    for flow in 0..100_000 {
        // One packet of each flow, which leaves at once. V stays at 0, so that only idle time removes the flows.
        link.push(flow, 1500, 1e-3);
        link.pop();
    }
    assert!(link.queue.flows() < 5000, "{} flows of 100,000 remembered", link.queue.flows());
}

proptest! {
    /// While two flows have packets in the queue, their service per weight differs by at most one virtual packet of
    /// each (Goyal et al., theorem 1). Other flows may start and end.
    #[test]
    fn shares_are_by_weight_within_a_virtual_packet(
        weights in prop::collection::vec(0.1f64..10.0, 2..8),
        lengths in prop::collection::vec(64u32..=1500, 50),
        guests in prop::collection::vec((0u32..300, 64u32..=1500, 0.1f64..10.0), 0..40),
    ) {
        let mut link = stfq(u64::MAX / 2);
        let n = weights.len();
        let mut waiting = vec![0u32; n];
        let (mut served, mut longest) = (vec![0.0; n], vec![0.0f64; n]);
        for (k, &bytes) in lengths.iter().enumerate() {
            for (f, &w) in weights.iter().enumerate() {
                let bytes = (bytes + (k * f) as u32 % 7 * 64).min(1500);
                link.push(f as u32, bytes, w);
                longest[f] = longest[f].max(f64::from(bytes) * 8.0 / w);
                waiting[f] += 1;
            }
        }
        for turn in 0u32.. {
            for (g, &(at, bytes, w)) in guests.iter().enumerate() {
                if at == turn {
                    link.push(100 + g as u32, bytes, w);
                }
            }
            let Some((id, flow)) = link.pop() else { break };
            let bytes = link.slab[id].bytes;
            let flow = flow as usize;
            if flow < n {
                waiting[flow] -= 1;
                served[flow] += f64::from(bytes) * 8.0 / weights[flow];
            }
            if waiting.contains(&0) {
                break;
            }
            for i in 0..n {
                for j in 0..i {
                    let bound = (longest[i] + longest[j]) * (1.0 + 1e-9);
                    prop_assert!((served[i] - served[j]).abs() <= bound, "{} and {}", served[i], served[j]);
                }
            }
        }
    }

    /// Packets of one flow stay in order, and every packet leaves or is dropped.
    #[test]
    fn order_within_a_flow_and_the_books(
        moves in prop::collection::vec((0u32..5, 64u32..=1500, 0.1f64..10.0, any::<bool>()), 1..300),
        buffer in 3000u64..20_000,
    ) {
        let mut link = stfq(buffer);
        let mut came = IdVec::<FlowId, _>::filled(Vec::new(), 5);
        let (mut pushed, mut left) = (0, 0);
        for (flow, bytes, weight, pop) in moves {
            if pop {
                left += usize::from(link.pop().is_some());
            } else {
                came[FlowId(flow)].push(link.push(flow, bytes, weight));
                pushed += 1;
            }
            prop_assert!(Queue::<Swift>::bytes(&link.queue) <= buffer);
        }
        while link.pop().is_some() {
            left += 1;
        }
        prop_assert_eq!(pushed, left + link.dropped.len());
        prop_assert_eq!(Queue::<Swift>::bytes(&link.queue), 0);
    }
}
