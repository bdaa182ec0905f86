//! What the PERC family takes: state at links, and bytes in control packets.

use serde_json::Map;
use subak_core::scheme::{Params, Scheme, Visit};
use subak_schemes::perc::{Perc, Rule, content_bytes, wire_bytes};
use subak_schemes::{charny, fair, n_perc, s_perc, s_perc_star};

/// Bytes of state at a link that `flows` flows have passed.
fn state_bytes<R: Rule>(flows: u32) -> usize
where
    Perc<R>: Scheme,
{
    let rule = R::new(&Params::resolve(&R::INFO, &Map::new()).unwrap()).unwrap();
    let mut link = rule.link(10e9);
    for flow in 0..flows {
        let visit = Visit { flow, subflow: 0, hop: 0, forward: true };
        rule.update(&mut link, &mut rule.fields(3), visit, 1.0, false);
    }
    R::state_bytes(&link)
}

/// Only a type without anything on the heap can be copied bit by bit: its size is all it takes, whatever the flows.
fn constant<L: Copy>() -> usize {
    std::mem::size_of::<L>()
}

#[test]
fn fair_and_charny_keep_state_a_flow_the_others_eight_bytes_a_link() {
    for flows in [0, 1, 10, 1000] {
        let table = 12 * flows as usize;
        assert_eq!(state_bytes::<fair::LocalMaxMin>(flows), table);
        assert_eq!(state_bytes::<charny::Stamped>(flows), 2 + table);
        assert!(state_bytes::<n_perc::Naive>(flows) <= 8);
        assert_eq!(state_bytes::<s_perc::Stateless>(flows), 8);
        // And SumE', NumB' and the round number in the shadow.
        assert_eq!(state_bytes::<s_perc_star::Robust>(flows), 8 + 5);
    }
    // The simulated links hold the same variables in wider numbers.
    assert!(constant::<n_perc::Link>() < constant::<s_perc::Link>());
    assert!(constant::<s_perc::Link>() < constant::<s_perc_star::Link>());
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
    let visit = Visit { flow: 0, subflow: 0, hop: 0, forward: true };
    for round in 0..1000 {
        rule.update(&mut link, &mut fields, visit, 1.0, false);
        rule.update(&mut link, &mut fields, visit, 1.0, false);
        assert_eq!(link.shadow(), (0.0, 1.0), "the flow counts once in round {round}");
        assert_ne!(fields.round_number[0], 0, "0 is for packets that no link has counted");
        rule.new_round(&mut link);
        assert_eq!(link.sums(), (0.0, 1.0));
    }
}
