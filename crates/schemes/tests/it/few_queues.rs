//! Approximations of start-time fair queueing by a few FIFOs: worked examples, order within a flow, nothing lost, and
//! many calendar queues against STFQ.

use crate::link::{LoneLink, Swift, port};
use proptest::prelude::*;
use std::collections::BTreeMap;
use subak_core::scheme::{PacketKind, Params, Queue};
use subak_schemes::queue::{Afq, Beyond, FairPlan, FairQueue, Service, Share, SpPifo, Stfq, WeightedQueues};
use subak_schemes::registry;

#[test]
fn sp_pifo_pushes_bounds_up_and_down() {
    // 1000 bytes, weights 1 and 2: flow 0 has ranks 0, 8000, 16000, and flow 1 has 0, 4000.
    let mut link = LoneLink::new(SpPifo::new(&port(1 << 20), 2));
    for flow in [0, 0, 0] {
        link.push(flow, 1000, 1.0);
    }
    assert_eq!(link.queue.bounds(), [0.0, 16000.0], "each rank is at or above the bound of the last FIFO");
    link.push(1, 1000, 2.0);
    assert_eq!(link.queue.bounds(), [0.0, 16000.0], "rank 0 goes to the first");
    link.push(1, 1000, 2.0);
    assert_eq!(link.queue.bounds(), [4000.0, 16000.0], "and so does 4000, which pushes its bound up");
    link.push(2, 1000, 1.0);
    assert_eq!(link.queue.bounds(), [0.0, 12000.0], "rank 0 is 4000 below, and pushes both bounds down");
    link.push(3, 1000, 1.0);
    link.push(3, 1000, 0.5);
    assert_eq!(link.queue.bounds(), [8000.0, 12000.0], "ranks 0 and 8000 go to the first");
    assert_eq!(link.order(), [1, 1, 2, 3, 3, 0, 0, 0]);
}

#[test]
fn sp_pifo_takes_v_from_the_packet_that_leaves() {
    let mut link = LoneLink::new(SpPifo::new(&port(1 << 20), 2));
    for _ in 0..3 {
        link.push(0, 1000, 1.0);
    }
    link.pop();
    link.pop();
    link.push(1, 1000, 1.0);
    assert_eq!(link.queue.bounds(), [8000.0, 16000.0], "the new flow starts at V, 8000");
    assert_eq!(link.order(), [1, 0]);
}

#[test]
fn one_fifo_of_sp_pifo_keeps_the_order_of_arrival() {
    let mut link = LoneLink::new(SpPifo::new(&port(1 << 20), 1));
    for flow in [0, 0, 1, 0, 2, 1] {
        link.push(flow, 1000, 1.0);
    }
    assert_eq!(link.order(), [0, 0, 1, 0, 2, 1]);
}

#[test]
fn calendar_queues_by_hand() {
    // Rounds of 8000: 1000 bytes of weight 1. Flow 0 has rounds 0, 1, 2; flow 1, of weight 2, has 0, 0, 1, 1.
    let mut link = LoneLink::new(Afq::new(&port(1 << 20), 4, 8000.0, Beyond::Drop, 0));
    for _ in 0..3 {
        link.push(0, 1000, 1.0);
    }
    for _ in 0..4 {
        link.push(1, 1000, 2.0);
    }
    let order: Vec<u32> = (0..4).map(|_| link.pop().unwrap().1).collect();
    assert_eq!(order, [0, 1, 1, 0]);
    assert_eq!(link.queue.round(), 1);
    link.push(2, 1000, 1.0);
    assert_eq!(link.order(), [1, 1, 2, 0], "a new flow joins the round that is served");
}

#[test]
fn a_packet_beyond_the_last_round_is_dropped_or_put_into_it() {
    let mut link = LoneLink::new(Afq::new(&port(1 << 20), 2, 8000.0, Beyond::Drop, 0));
    link.push(0, 1000, 1.0);
    link.push(0, 1000, 1.0);
    let late = link.push(0, 1000, 1.0);
    assert_eq!(link.dropped, [late]);
    link.pop();
    link.pop();
    link.push(0, 1000, 1.0);
    assert_eq!(link.order(), [0], "it was not charged");
    let mut link = LoneLink::new(Afq::new(&port(1 << 20), 2, 8000.0, Beyond::Last, 0));
    for _ in 0..4 {
        link.push(0, 1000, 1.0);
    }
    link.push(1, 1000, 1.0);
    link.push(1, 1000, 1.0);
    assert_eq!(link.order(), [0, 1, 0, 0, 0, 1]);
}

#[test]
fn a_calendar_without_packets_turns_to_the_round_that_comes() {
    // 1000 bytes of weight 0.25 are four rounds, and there are two.
    for beyond in [Beyond::Drop, Beyond::Last] {
        let mut link = LoneLink::new(Afq::new(&port(1 << 20), 2, 8000.0, beyond, 0));
        for _ in 0..5 {
            link.push(0, 1000, 0.25);
            assert_eq!(link.order(), [0]);
        }
        assert!(link.dropped.is_empty());
        link.push(0, 1000, 0.25);
        assert_eq!(link.queue.round(), 20);
        link.push(1, 1000, 1.0);
        assert_eq!(link.order(), [0, 1], "a new flow joins the round that is served");
    }
}

#[test]
fn a_sketch_of_one_column_charges_all_flows_together() {
    let mut link = LoneLink::new(Afq::new(&port(1 << 20), 8, 8000.0, Beyond::Drop, 1));
    for flow in [0, 0, 1, 2] {
        link.push(flow, 1000, 1.0);
    }
    assert_eq!(link.order(), [0, 0, 1, 2]);
    let mut exact = LoneLink::new(Afq::new(&port(1 << 20), 8, 8000.0, Beyond::Drop, 0));
    for flow in [0, 0, 1, 2] {
        exact.push(flow, 1000, 1.0);
    }
    assert_eq!(exact.order(), [0, 1, 2, 0]);
}

#[test]
fn a_weight_goes_to_the_queue_nearest_on_a_logarithmic_scale() {
    // Weights 1, 10 and 100: the borders are at the square roots of 10 and of 1000.
    let queues = WeightedQueues::new(&port(1 << 20), 3, (1.0, 100.0), Share::Queue, Service::Wfq);
    let places = [1e-9, 1.0, 3.1, 3.2, 31.6, 31.7, 100.0, 1e9].map(|weight| queues.place(weight));
    assert_eq!(places, [0, 0, 0, 1, 1, 2, 2, 2]);
}

#[test]
fn weights_of_the_queues_by_default_and_with_one_given() {
    // The lowest and the highest weight, and one at the middle of 3 queues: the square root of their product.
    let places = |given: serde_json::Value, weights: [f64; 3], full_weight: Option<f64>| {
        let params = Params::resolve(registry::find("numfabric-swift").unwrap(), given.as_object().unwrap()).unwrap();
        match FairPlan::new(&params).unwrap().queue(&port(1 << 20), full_weight) {
            FairQueue::Weighted(queues) => weights.map(|weight| queues.place(weight)),
            _ => panic!("queues of weights"),
        }
    };
    let with = |keys: &str| serde_json::from_str(&format!(r#"{{"queue": "weighted", "queues": 3{keys}}}"#)).unwrap();
    let middle = |low: f64, high: f64| [low, (low * high).sqrt(), high];
    assert_eq!(places(with(""), middle(1.0, 20.0), None), [0, 1, 2]);
    assert_eq!(places(with(""), middle(5e8, 1e10), Some(1e10)), [0, 1, 2]);
    assert_eq!(places(with(r#", "queue_low": 0.5"#), middle(0.5, 10.0), None), [0, 1, 2]);
    assert_eq!(places(with(r#", "queue_high": 0.01"#), middle(0.0005, 0.01), None), [0, 1, 2]);
    assert_eq!(places(with(r#", "queue_high": 0.01"#), middle(5e6, 1e8), Some(1e10)), [0, 1, 2]);
    assert_eq!(places(with(r#", "queue_low": 2, "queue_high": 8"#), middle(2.0, 8.0), None), [0, 1, 2]);
    let refused = with(r#", "queue_low": 8, "queue_high": 2"#);
    let params = Params::resolve(registry::find("numfabric-swift").unwrap(), refused.as_object().unwrap()).unwrap();
    assert_eq!(FairPlan::new(&params).unwrap_err().place, "params.queue_high");
}

/// Packets of each flow among the first 110 that leave queues of the weights 1 and 10.
fn served(share: Share, service: Service) -> Vec<usize> {
    let mut link = LoneLink::new(WeightedQueues::new(&port(u64::MAX / 2), 2, (1.0, 10.0), share, service));
    for _ in 0..200 {
        for (flow, weight) in [(0, 1.0), (1, 10.0), (2, 8.0)] {
            link.push(flow, 1500, weight);
        }
    }
    let order: Vec<u32> = (0..110).map(|_| link.pop().unwrap().1).collect();
    (0..3).map(|flow| order.iter().filter(|&&f| f == flow).count()).collect()
}

#[test]
fn flows_of_a_queue_share_one_weight_or_have_one_each() {
    for service in [Service::Wfq, Service::Drr] {
        // With the queue's weight 1 : 10 for both flows of the second queue, and 1 : 20 with its flows counted.
        let together = served(Share::Queue, service);
        assert!(together[0].abs_diff(10) <= 1 && together[1].abs_diff(together[2]) <= 1, "{together:?}");
        let each = served(Share::Flows, service);
        assert!(each[0].abs_diff(110 / 21) <= 1 && each[1].abs_diff(each[2]) <= 1, "{each:?}");
    }
}

#[test]
fn a_flow_counts_in_the_queue_of_its_last_packet() {
    // Shares are 1/2 and 1 for a flow each. Flow 1 has left the first queue when flow 0's packets come.
    let mut link = LoneLink::new(WeightedQueues::new(&port(1 << 20), 2, (1.0, 2.0), Share::Flows, Service::Wfq));
    for (flow, weight) in [(1, 1.0), (1, 2.0), (0, 1.0), (0, 1.0), (0, 1.0), (1, 2.0), (1, 2.0), (1, 2.0)] {
        link.push(flow, 1500, weight);
    }
    // Starts of the first queue: 0, 3000, 6000, 9000; of the second: 0, 1500, 3000, 4500.
    assert_eq!(link.order(), [1, 1, 1, 0, 1, 1, 0, 0]);
}

#[test]
fn a_flow_counts_for_one_to_two_intervals() {
    let order = |now_ns| {
        let mut link = LoneLink::new(WeightedQueues::new(&port(1 << 20), 2, (1.0, 2.0), Share::Flows, Service::Wfq));
        link.push(1, 1500, 1.0);
        link.pop();
        link.now_ns = now_ns;
        for (flow, weight) in [(0, 1.0), (0, 1.0), (0, 1.0), (2, 2.0), (2, 2.0), (2, 2.0), (2, 2.0), (2, 2.0)] {
            link.push(flow, 1500, weight);
        }
        link.order()
    };
    // 100 full packets take 120 us. The second queue's starts are 0, 1500, 3000, 4500 and 6000; the first queue's are 3000,
    // 4500 and 6000 while flow 1 counts, and then 3000, 6000 and 9000.
    assert_eq!(order(239_999), [2, 2, 0, 2, 0, 2, 0, 2]);
    assert_eq!(order(240_000), [2, 2, 0, 2, 2, 0, 2, 0]);
}

#[test]
fn service_by_virtual_finishes_remembers_what_an_empty_queue_was_served() {
    // Weights 1 and 2. The first queue sends one packet and is empty; its next one waits for two of the second queue.
    let order = |service| {
        let mut link = LoneLink::new(WeightedQueues::new(&port(1 << 20), 2, (1.0, 2.0), Share::Queue, service));
        link.push(0, 1500, 1.0);
        link.push(1, 1500, 2.0);
        let first = [link.pop().unwrap().1, link.pop().unwrap().1];
        link.push(0, 1500, 1.0);
        let mut order = first.to_vec();
        for _ in 0..3 {
            link.push(1, 1500, 2.0);
        }
        order.extend(link.order());
        order
    };
    assert_eq!(order(Service::Wfq), [0, 1, 1, 0, 1, 1]);
    assert_eq!(order(Service::Drr), [1, 0, 1, 0, 1, 1], "round robin serves them as if they were new");
}

#[test]
fn acknowledgements_wait_for_no_data() {
    fn check(queue: impl Queue<Swift>) {
        let mut link = LoneLink::new(queue);
        link.push(0, 1500, 1.0);
        link.push_kind(PacketKind::Ack, 1, 64, 1.0);
        assert_eq!(link.order(), [1, 0]);
    }
    check(SpPifo::new(&port(1 << 20), 2));
    check(Afq::new(&port(1 << 20), 2, 8000.0, Beyond::Last, 0));
    check(WeightedQueues::new(&port(1 << 20), 2, (1.0, 100.0), Share::Flows, Service::Wfq));
    check(WeightedQueues::new(&port(1 << 20), 2, (1.0, 100.0), Share::Flows, Service::Drr));
}

/// An arrival (flow, eighths of a kilobyte, weight as a power of two) or, with `None`, a departure.
type Move = Option<(u32, u32, i32)>;

fn moves() -> impl Strategy<Value = Vec<Move>> {
    prop::collection::vec(prop_oneof![3 => (0u32..6, 1u32..=12, -3i32..=3).prop_map(Some), 2 => Just(None)], 1..300)
}

/// Flows and numbers of the packets that leave, while packets come and go and then until the queue is empty; and how
/// many were dropped. Fails unless the queue has the packets and bytes that came and neither left nor were dropped, and
/// sends whenever it has a packet.
fn run(queue: impl Queue<Swift>, moves: &[Move]) -> (Vec<(u32, u32)>, usize) {
    let mut link = LoneLink::new(queue);
    let mut numbers = BTreeMap::new();
    let mut left: Vec<(u32, u32)> = Vec::new();
    for (k, step) in (0..).zip(moves) {
        match *step {
            Some((flow, eighths, power)) => {
                let id = link.push(flow, 125 * eighths, f64::from(power).exp2());
                numbers.insert(id, (flow, k));
            }
            None => left.extend(link.pop_if_any().map(|id| numbers[&id])),
        }
    }
    left.extend(std::iter::from_fn(|| link.pop_if_any()).map(|id| numbers[&id]));
    assert_eq!(link.queue.bytes(), 0);
    assert_eq!(left.len() + link.dropped.len(), numbers.len(), "nothing is lost");
    (left, link.dropped.len())
}

fn is_in_order_within_flows(left: &[(u32, u32)]) -> bool {
    let mut last = BTreeMap::new();
    left.iter().all(|&(flow, k)| last.insert(flow, k).is_none_or(|before| before < k))
}

/// SP-PIFO over STFQ as in its paper, written apart from the implementation: a list of arrivals with the number of the
/// FIFO, from which the first of the smallest number leaves.
fn sp_pifo_model(moves: &[Move], queues: usize) -> Vec<(u32, u32)> {
    let mut bounds = vec![0.0; queues];
    let (mut v, mut finishes, mut waiting, mut left) = (0.0f64, BTreeMap::new(), Vec::new(), Vec::new());
    let take = |waiting: &mut Vec<(usize, f64, u32, u32)>, v: &mut f64| {
        let at = (0..waiting.len()).min_by_key(|&at| waiting[at].0)?;
        let (_, rank, flow, k) = waiting.remove(at);
        *v = v.max(rank);
        Some((flow, k))
    };
    for (k, step) in (0..).zip(moves) {
        let Some((flow, eighths, power)) = *step else {
            left.extend(take(&mut waiting, &mut v));
            continue;
        };
        let rank = finishes.get(&flow).map_or(v, |&finish: &f64| finish.max(v));
        finishes.insert(flow, rank + f64::from(1000 * eighths) / f64::from(power).exp2());
        let mut fifo = queues - 1;
        while fifo > 0 && bounds[fifo] > rank {
            fifo -= 1;
        }
        let cost = bounds[fifo] - rank;
        bounds[fifo] = rank;
        if cost > 0.0 {
            bounds[1..].iter_mut().for_each(|bound| *bound -= cost);
        }
        waiting.push((fifo, rank, flow, k));
    }
    while let Some(next) = take(&mut waiting, &mut v) {
        left.push(next);
    }
    left
}

proptest! {
    /// Virtual lengths are multiples of 125 here, so that rounds of 125 hold one start each.
    #[test]
    fn many_short_rounds_are_start_time_fair_queueing(moves in moves()) {
        let buffer = u64::MAX / 2;
        let (stfq, _) = run(Stfq::new(&port(buffer)), &moves);
        let (afq, dropped) = run(Afq::new(&port(buffer), 1 << 18, 125.0, Beyond::Drop, 0), &moves);
        prop_assert_eq!(dropped, 0);
        prop_assert_eq!(&stfq, &afq);
        let (sketch, _) = run(Afq::new(&port(buffer), 1 << 18, 125.0, Beyond::Drop, 1 << 16), &moves);
        prop_assert_eq!(stfq, sketch, "six flows share no counter of both rows");
    }

    #[test]
    fn calendar_queues_keep_the_order_within_flows(moves in moves(), queues in 1usize..6, round in 100.0f64..1e5,
            columns in 0usize..4, is_dropping: bool, buffer in 3000u64..50_000) {
        let beyond = if is_dropping { Beyond::Drop } else { Beyond::Last };
        let (left, _) = run(Afq::new(&port(buffer), queues, round, beyond, columns), &moves);
        prop_assert!(is_in_order_within_flows(&left));
    }

    #[test]
    fn sp_pifo_is_its_model(moves in moves(), queues in 1usize..9) {
        let (left, dropped) = run(SpPifo::new(&port(u64::MAX / 2), queues), &moves);
        prop_assert_eq!(dropped, 0);
        prop_assert_eq!(left, sp_pifo_model(&moves, queues));
    }

    #[test]
    fn nothing_is_lost_where_buffers_are_full(moves in moves(), queues in 1usize..9, buffer in 3000u64..20_000) {
        run(SpPifo::new(&port(buffer), queues), &moves);
        for service in [Service::Wfq, Service::Drr] {
            let range = (0.125, 8.0);
            run(WeightedQueues::new(&port(buffer), queues, range, Share::Flows, service), &moves);
            let (left, _) = run(WeightedQueues::new(&port(buffer), 1, range, Share::Queue, service), &moves);
            prop_assert!(is_in_order_within_flows(&left));
        }
    }

    /// Where each flow keeps its weight and has a queue of its own, queues are served by weight within a packet or two.
    #[test]
    fn queues_of_one_flow_each_are_served_by_weight(
        queues in 2usize..6,
        lengths in prop::collection::vec(64u32..=1500, 40),
        is_wfq: bool,
    ) {
        let service = if is_wfq { Service::Wfq } else { Service::Drr };
        let mut link = LoneLink::new(WeightedQueues::new(&port(u64::MAX / 2), queues, (1.0, 16.0), Share::Flows, service));
        let weight = |k: u32| 16f64.powf(f64::from(k) / (queues - 1) as f64);
        let mut waiting = vec![0; queues];
        for (n, &bytes) in (0..).zip(&lengths) {
            for k in 0..queues as u32 {
                link.push(k, (bytes + 97 * k * n) % 1437 + 64, weight(k));
                waiting[k as usize] += 1;
            }
        }
        let mut bytes = vec![0.0; queues];
        while let Some((id, flow)) = link.pop() {
            bytes[flow as usize] += f64::from(link.slab[id].bytes);
            waiting[flow as usize] -= 1;
            if waiting.contains(&0) {
                break;
            }
            // A quantum is at most a full packet: within a round a queue is one quantum and one packet ahead or behind.
            let rounds: Vec<f64> = (0..queues as u32).map(|k| bytes[k as usize] * 16.0 / weight(k) / 1500.0).collect();
            for k in 0..queues as u32 {
                let slack = 1.0 + 16.0 / weight(k);
                let slowest = rounds[queues - 1];
                prop_assert!((rounds[k as usize] - slowest).abs() <= slack + 2.0, "{rounds:?}");
            }
        }
    }
}
