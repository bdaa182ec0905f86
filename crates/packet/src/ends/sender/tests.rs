use super::*;
use proptest::prelude::*;

fn run(segments: u32) -> Blocks {
    Blocks::new(segments, 0, 0)
}

fn send(s: &mut Sender, now_ns: Ns) -> Next {
    let next = s.next(1000).unwrap();
    s.sent(next, now_ns);
    next
}

#[test]
fn a_segment_overtaken_by_three_is_lost_and_goes_first() {
    let mut s = Sender::new(Recovery::default(), 0);
    for t in 0..5 {
        send(&mut s, t);
    }
    assert_eq!(s.on_ack(1, run(0), 0, 1, 100), Acked { bytes: 1000, lost: None });
    assert_eq!(s.on_ack(2, run(1), 0, 2, 101), Acked { bytes: 1000, lost: None });
    assert_eq!(s.on_ack(3, run(2), 0, 3, 102), Acked { bytes: 1000, lost: Some(0) });
    assert_eq!(s.in_flight_bytes(), 1000);
    assert_eq!(send(&mut s, 103), Next { segment: 0, payload_bytes: 1000, again: true });
    assert_eq!(s.on_ack(0, run(0), 4, 103, 200).bytes, 1000);
    assert_eq!(s.on_ack(4, run(0), 5, 4, 201).bytes, 1000);
    assert!(s.segments.is_empty() && s.timeout_ns().is_none());
}

#[test]
fn the_timeout_doubles_until_something_arrives() {
    let recovery = Recovery { rto_min_ns: 1000, rto_max_ns: 3000, probe: false, ..Recovery::default() };
    let mut s = Sender::new(recovery, 0);
    send(&mut s, 0);
    assert_eq!(s.timeout_ns(), Some(1000));
    assert_eq!(s.on_timeout(1000), Some(0));
    assert_eq!(s.timeout_ns(), None);
    send(&mut s, 1000);
    assert_eq!(s.timeout_ns(), Some(3000));
    s.on_timeout(3000);
    send(&mut s, 3000);
    assert_eq!(s.timeout_ns(), Some(6000));
}

#[test]
fn silence_after_a_reroute_ends_early_where_a_full_window_holds_back_what_would_tell() {
    let recovery =
        Recovery { rto_min_ns: 1_000_000, reorder: None, probe: false, go_back: true, ..Recovery::default() };
    for (go_back, acked, due_ns) in
        [(true, false, 5000 + 200 + 200), (false, false, 1_000_100), (true, true, 1_005_050)]
    {
        let recovery = Recovery { go_back, ..recovery };
        let mut s = Sender::new(recovery, 100);
        for at_ns in [0, 1000, 1001] {
            send(&mut s, at_ns);
        }
        s.on_ack(0, run(0), 1, 0, 100);
        s.set_path(recovery, 100, 5000);
        if acked {
            s.on_ack(1, run(0), 2, 5000, 5050);
        }
        assert_eq!(s.timeout_ns().map(|at_ns| at_ns.min(1_005_050)), Some(due_ns), "{go_back} {acked}");
    }
}

#[test]
fn what_arrives_out_of_order_does_not_put_the_timeout_off() {
    let recovery = Recovery { rto_min_ns: 1000, reorder: None, probe: false, ..Recovery::default() };
    let mut s = Sender::new(recovery, 0);
    for at_ns in [0, 100, 850] {
        send(&mut s, at_ns);
    }
    // Segment 0 is lost, 1 arrives. When the RTO of segment 0 expires, segment 2 has been in flight for less than an
    // RTT.
    s.on_ack(1, run(0), 0, 100, 300);
    assert_eq!(s.timeout_ns(), Some(1000));
    assert_eq!((s.on_timeout(1000), s.in_flight_bytes()), (Some(0), 1000));
    assert_eq!(send(&mut s, 1000), Next { segment: 0, payload_bytes: 1000, again: true });
    assert_eq!(s.on_ack(0, run(0), 2, 1000, 1200).bytes, 1000);
    assert_eq!(s.timeout_ns(), Some(1200 + 1000));
}

/// RFC 6298, 5.3: the RTO of the time at which it starts. An RTT sample after that counts from the next start on.
#[test]
fn an_rtt_sample_does_not_move_a_timeout_that_runs() {
    for (acked_ns, sent_ns) in [(3000, 0), (1010, 1000)] {
        let recovery =
            Recovery { rto_min_ns: 1, rto_max_ns: 1_000_000, reorder: None, probe: false, ..Recovery::default() };
        let mut s = Sender::new(recovery, 100);
        for at_ns in [0, 0, sent_ns, 1000] {
            send(&mut s, at_ns);
        }
        s.on_ack(0, run(0), 1, 0, 1000);
        assert_eq!(s.timeout_ns(), Some(1000 + 1000 + 4 * 500));
        s.on_ack(2, run(0), 1, sent_ns, acked_ns);
        assert_eq!(s.timeout_ns(), Some(4000));
        s.on_ack(1, run(1), 3, 0, 3000);
        assert_eq!(s.timeout_ns(), Some(3000 + s.rto_ns()));
        assert_ne!(s.rto_ns(), 3000);
        // What arrives after an RTO ends its doubling for the next start only.
        s.on_timeout(10_000);
        let doubled_ns = s.rto_ns();
        send(&mut s, 10_000);
        send(&mut s, 10_000);
        s.on_ack(4, run(0), 3, 10_000, 10_100);
        assert_eq!(s.timeout_ns(), Some(10_000 + doubled_ns));
        s.on_ack(3, run(0), 5, 10_000, 10_200);
        send(&mut s, 10_300);
        assert_eq!(s.timeout_ns(), Some(10_300 + s.rto_ns()));
        assert!(s.rto_ns() < doubled_ns);
    }
}

/// RFC 6298, 5.4: the earliest segment, though the others were marked lost before it.
#[test]
fn each_timeout_sends_the_earliest_segment() {
    let recovery = Recovery { rto_min_ns: 1000, probe: false, timeout_loses_all: true, ..Recovery::default() };
    let mut s = Sender::new(recovery, 0);
    for _ in 0..3 {
        send(&mut s, 0);
    }
    for at_ns in [1000, 3000, 7000] {
        assert_eq!(s.timeout_ns(), Some(at_ns));
        assert_eq!(s.on_timeout(at_ns), Some(0));
        assert_eq!(send(&mut s, at_ns).segment, 0);
    }
    assert_eq!(send(&mut s, 7000).segment, 1);
}

#[test]
fn a_timeout_may_hold_all_lost() {
    let recovery = Recovery { rto_min_ns: 1000, probe: false, timeout_loses_all: true, ..Recovery::default() };
    let mut s = Sender::new(recovery, 0);
    for at_ns in [0, 100, 850] {
        send(&mut s, at_ns);
    }
    assert_eq!((s.on_timeout(1000), s.in_flight_bytes()), (Some(0), 0));
    let again: Vec<u32> = (0..3).map(|_| send(&mut s, 1000).segment).collect();
    assert_eq!(again, [0, 1, 2]);
}

#[test]
fn the_timeout_is_never_shorter_than_a_round_trip_unless_it_is_constant() {
    let ms = 1_000_000;
    let mut s = Sender::new(Recovery { probe: false, ..Recovery::default() }, 150 * ms);
    send(&mut s, 0);
    assert_eq!(s.timeout_ns(), Some(450 * ms));
    s.on_ack(0, run(0), 1, 0, 160 * ms);
    send(&mut s, 160 * ms);
    assert_eq!(s.timeout_ns(), Some(160 * ms + (160 + 4 * 80) * ms));
    let constant = Recovery { rto_min_ns: 45_000, rto_max_ns: 45_000, ..Recovery::default() };
    let mut s = Sender::new(constant, 150 * ms);
    send(&mut s, 0);
    assert_eq!(s.timeout_ns(), Some(45_000));
}

#[test]
fn a_lost_acknowledgement_is_made_good_by_the_next() {
    let (mut s, mut r) = (Sender::new(Recovery::default(), 0), Receiver::new(&Recovery::default()));
    for t in 0..6 {
        send(&mut s, t);
    }
    // Segment 0 is lost; 1 to 4 arrive, and only the ACK of segment 4 reaches the sender.
    for segment in 1..5 {
        r.arrived(segment);
    }
    assert_eq!((r.blocks(4), r.cumulative()), (run(3), 0));
    assert_eq!(s.on_ack(4, run(3), 0, 4, 100), Acked { bytes: 4000, lost: Some(0) });
    assert_eq!(s.in_flight_bytes(), 1000);
}

#[test]
fn a_lost_acknowledgement_before_a_hole_is_made_good_by_the_one_behind_it() {
    let (mut s, mut r) = (Sender::new(Recovery::default(), 0), Receiver::new(&Recovery::default()));
    for t in 0..9 {
        send(&mut s, t);
    }
    // Segments 0, 4 and 5 are lost, and so are the ACKs of 1 to 3.
    for segment in [1, 2, 3, 6, 7] {
        r.arrived(segment);
    }
    assert_eq!((r.blocks(7).run(7), r.blocks(7).earlier(7)), (6..7, 1..4));
    assert_eq!(s.on_ack(7, r.blocks(7), 0, 7, 100), Acked { bytes: 5000, lost: Some(0) });
    assert_eq!(s.in_flight_bytes(), 2000, "4 is lost too; 5 and 8 may be under way");
}

#[test]
fn a_probe_tells_what_is_lost_at_the_tail_without_a_timeout() {
    let mut s = Sender::new(Recovery { rto_min_ns: 1_000_000, ..Recovery::default() }, 10_000);
    for t in 0..4 {
        send(&mut s, t);
    }
    assert_eq!(s.on_ack(0, run(0), 1, 0, 10_000).bytes, 1000);
    // Segments 1 to 3 are lost; two RTTs and their variation after the last ACK, segment 3 is retransmitted.
    assert_eq!(s.timeout_ns(), Some(10_000 + 20_000 + 20_000));
    assert_eq!(s.probe(50_000), Some(Next { segment: 3, payload_bytes: 1000, again: true }));
    assert_eq!(s.timeout_ns(), Some(50_000 + 1_000_000), "one probe, then the RTO, which it restarts");
    assert_eq!(s.on_ack(3, run(0), 1, 50_000, 60_000), Acked { bytes: 1000, lost: Some(1) });
    assert_eq!(s.in_flight_bytes(), 0);
}

#[test]
fn a_mark_that_covers_a_segment_sent_again_does_not_tell_which_of_both_arrived() {
    let mut s = Sender::new(Recovery::default(), 10_000);
    for t in 0..6 {
        send(&mut s, t);
    }
    // Segments 2 to 5 overtake the first two on a shorter path: 0 and 1 are retransmitted, after a new segment.
    for segment in 2..6 {
        s.on_ack(segment, run(segment - 2), 0, u64::from(segment), 10_000);
    }
    for t in 20_000..20_003 {
        send(&mut s, t);
    }
    assert_eq!(s.in_flight_bytes(), 3000);
    // The first transmissions of 0 and 1 arrive after all. Their ACKs do not show that segments sent later are lost.
    assert_eq!(s.on_ack(0, run(0), 1, 0, 21_000).lost, None);
    assert_eq!(s.on_ack(1, run(0), 6, 1, 21_000), Acked { bytes: 1000, lost: None });
    for t in 22_000..22_004 {
        send(&mut s, t);
    }
    assert_eq!(s.on_ack(9, run(0), 6, 22_003, 32_000).lost, None, "the one before it is one of three");
}

proptest! {
    /// Over a channel that loses, delays and duplicates packets, each segment is delivered once and the counters balance.
    #[test]
    fn everything_arrives_once(seed in any::<u64>(), total in 1u32..200, loss in 0.0f64..0.4) {
        let mut rng = subak_core::rng::Stream::new(seed, "channel");
        let mut s = Sender::new(Recovery { rto_min_ns: 500, ..Recovery::default() }, 0);
        let mut r = Receiver::new(&Recovery::default());
        let mut under_way: Vec<(Ns, u32, Ns)> = Vec::new();
        let (mut now, mut fresh, mut delivered, mut acked) = (0, total, 0, 0);
        while acked < u64::from(total) * 1000 {
            now += 10;
            prop_assert!(now < 100_000_000, "no progress");
            if s.in_flight_bytes() < 20_000 && let Some(next) = s.next(if fresh > 0 { 1000 } else { 0 }) {
                fresh -= u32::from(!next.again);
                s.sent(next, now);
                for _ in 0..if rng.unit() < 0.1 { 2 } else { 1 } {
                    if rng.unit() >= loss {
                        under_way.push((now + 50 + rng.below(100) as u64, next.segment, now));
                    }
                }
            }
            if s.timeout_ns().is_some_and(|t| t <= now) {
                match s.probe(now) {
                    Some(next) if rng.unit() >= loss => under_way.push((now + 50, next.segment, now)),
                    Some(_) => {}
                    None => drop(s.on_timeout(now)),
                }
            }
            let (due, rest): (Vec<_>, Vec<_>) = under_way.into_iter().partition(|p| p.0 <= now);
            under_way = rest;
            for (_, segment, sent) in due {
                delivered += u32::from(r.arrived(segment) == SegmentArrival::New);
                if rng.unit() >= loss {
                    acked += s.on_ack(segment, r.blocks(segment), r.cumulative(), sent, now).bytes;
                }
            }
        }
        prop_assert_eq!(delivered, total);
        prop_assert_eq!(r.cumulative(), total);
        prop_assert!(s.segments.is_empty());
        prop_assert_eq!(s.in_flight_bytes(), 0);
    }
}
