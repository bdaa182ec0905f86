//! Sizes in the PERC schemes: state at links, and bytes of control packets.

use serde_json::Map;
use subak_core::rng::Stream;
use subak_core::scheme::{Named, Params, Visit};
use subak_core::{FlowId, SubflowId};
use subak_schemes::perc::{Perc, Rule, content_bytes, wire_bytes};
use subak_schemes::{charny, fair, n_perc, s_perc, s_perc_star};

/// Bytes of state at a link after packets of `flows` flows, and the number of its observable variables.
fn state<R: Rule>(flows: u32) -> (usize, usize)
where
    Perc<R>: Named,
{
    let rule = R::new(&Params::resolve(&R::INFO, &Map::new()).unwrap()).unwrap();
    let mut link = rule.link(10e9);
    for flow in 0..flows {
        let visit = Visit { flow: FlowId(flow), subflow: SubflowId(0), hop: 0, forward: true };
        rule.update(&mut link, &mut rule.fields(3), visit, 1.0, false);
    }
    (R::state_bytes(&link), R::watch(&link).len())
}

/// Bytes of a link's state that is `Copy`, and thus without heap memory: it does not grow with the number of flows.
fn constant<L: Copy>() -> usize {
    std::mem::size_of::<L>()
}

#[test]
fn fair_and_charny_keep_state_a_flow_the_others_a_few_variables_a_link() {
    for flows in [0, 1, 10, 1000] {
        // The rate, the mark and the flow's number, of 4 bytes each at least.
        let table = 12 * flows as usize;
        assert!(state::<fair::LocalMaxMin>(flows).0 >= constant::<f64>() + table);
        assert!(state::<charny::Stamped>(flows).0 >= constant::<f64>() + table);
        // SumE and NumB; MaxE and MaxE'; SumE', NumB' and the round number. 2 bytes each: s-PERC's are 8.
        assert_eq!(state::<n_perc::Naive>(flows), (constant::<n_perc::NPercLink>(), 2));
        assert_eq!(state::<s_perc::Stateless>(flows), (constant::<s_perc::SPercLink>(), 4));
        assert_eq!(state::<s_perc_star::Robust>(flows), (constant::<s_perc_star::SPercStarLink>(), 7));
    }
    assert!(constant::<n_perc::NPercLink>() < constant::<s_perc::SPercLink>());
    assert!(constant::<s_perc::SPercLink>() < constant::<s_perc_star::SPercStarLink>());
}

#[test]
fn control_packets_are_as_large_as_section_4_1_says() {
    assert_eq!(content_bytes(4, false, true), 46, "a, b, s, ignore bit and round number of four hops");
    assert_eq!(content_bytes(4, true, true), 30, "the least rate and its link in place of four rates");
    assert_eq!(wire_bytes(46), 64, "four hops fit the minimum frame");
    assert_eq!(wire_bytes(content_bytes(8, false, true)), 18 + 83, "longer paths take longer packets");
    assert!(content_bytes(4, false, false) < 46, "s-PERC carries neither round number nor size");
}

#[test]
fn the_round_number_is_one_byte_that_wraps_past_zero() {
    let rule = s_perc_star::Robust::default();
    let mut link = rule.link(10e9);
    let mut fields = rule.fields(1);
    let visit = Visit { flow: FlowId(0), subflow: SubflowId(0), hop: 0, forward: true };
    for round in 0..1000 {
        rule.update(&mut link, &mut fields, visit, 1.0, false);
        rule.update(&mut link, &mut fields, visit, 1.0, false);
        assert_eq!(link.shadow(), (0.0, 1.0), "the flow counts once in round {round}");
        assert_ne!(fields.round_number[0], 0, "0 is for packets that no link has counted");
        rule.new_round(&mut link);
        assert_eq!(link.sums(), (0.0, 1.0));
    }
}

/// Ten million updates of 64 flows whose limit rates change constantly. A link's sums equal those of the packets, to
/// within the rounding of this test's own sum.
#[test]
fn sums_do_not_drift_over_ten_million_updates() {
    let rule = s_perc::Stateless::default();
    let mut link = rule.link(10e9);
    let mut packets: Vec<_> = (0..64).map(|k| (1.0 + f64::from(k % 7) / 3.0, rule.fields(2))).collect();
    let mut random = Stream::new(1, "drift");
    for _ in 0..10_000_000 {
        let flow = random.below(packets.len());
        let (weight, fields) = &mut packets[flow];
        let elsewhere = 400e6 * random.unit();
        fields.links[1] = s_perc::SPercField { a: elsewhere, b: elsewhere, bottlenecked: true, ignored: false };
        let visit = Visit { flow: FlowId(flow as u32), subflow: SubflowId(0), hop: 0, forward: true };
        rule.update(&mut link, fields, visit, *weight, false);
    }
    let (mut sum_e, mut num_b) = (0.0, 0.0);
    for (weight, fields) in &packets {
        match fields.links[0].bottlenecked {
            true => num_b += weight,
            false => sum_e += fields.links[0].a * weight,
        }
    }
    assert!(sum_e > 1e9 && num_b > 1.0, "both kinds of flows are there");
    assert!((link.sum_e() - sum_e).abs() < 1e-15 * 10e9 * 64.0, "{} against {sum_e}", link.sum_e());
    assert!((link.num_b() - num_b).abs() < 1e-12, "{} against {num_b}", link.num_b());
}

/// A packet that its source has marked lost passes a link after the flow was restarted. Two rounds later it has no
/// effect.
#[test]
fn what_a_given_up_packet_left_behind_is_gone_after_two_rounds() {
    let rule = s_perc_star::Robust::default();
    let mut link = rule.link(10e9);
    let visit = Visit { flow: FlowId(0), subflow: SubflowId(0), hop: 0, forward: true };
    let (mut old, mut new) = (rule.fields(1), rule.fields(1));
    rule.update(&mut link, &mut old, visit, 1.0, false);
    rule.new_round(&mut link);
    rule.update(&mut link, &mut new, visit, 1.0, false);
    rule.update(&mut link, &mut old, visit, 1.0, false);
    assert_eq!(link.sums().1, 2.0, "for now the flow counts twice");
    for _ in 0..2 {
        rule.new_round(&mut link);
        rule.update(&mut link, &mut new, visit, 1.0, false);
    }
    assert_eq!((link.sums().1, new.fields.links[0].b), (1.0, 10e9));
}
