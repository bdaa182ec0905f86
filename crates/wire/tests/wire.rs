//! Decoding inverts encoding, sizes are the paper's, and no bytes cause a panic.

use proptest::prelude::*;
use subak_wire::*;

fn datagrams() -> impl Strategy<Value = Datagram> {
    let rate = || any::<u16>().prop_map(Rate16::from_code);
    let start = (any::<u32>(), any::<u32>(), any::<u32>(), 1e-30f32..1e30, prop::option::of(rate()))
        .prop_map(|(flowlet, to, path, weight, demand)| Start { flowlet, to, path, weight, demand });
    let end = any::<u32>().prop_map(|flowlet| FlowletEnd { flowlet });
    let update = (any::<u32>(), rate()).prop_map(|(flowlet, rate)| FlowletRate { flowlet, rate });
    let observed = (rate(), rate()).prop_map(|(out, into)| Observed { out, into });
    let records = (
        prop::collection::vec(start, 0..20),
        prop::collection::vec(end, 0..20),
        prop::collection::vec(update, 0..20),
        prop::option::of(observed),
        prop::collection::vec(
            (any::<u32>(), any::<u16>()).prop_map(|(flowlet, share)| FlowletLoss { flowlet, share }),
            0..4,
        ),
    );
    (any::<[bool; 2]>(), any::<[u32; 4]>(), any::<[u64; 2]>(), records).prop_map(
        |([up, asks], words, epochs, (mut starts, ends, updates, observed, losses))| {
            // Starts with a demand are in a group of their own, after the others.
            starts.sort_by_key(|start: &Start| start.demand.is_some());
            Datagram {
                direction: if up { Direction::Up } else { Direction::Down },
                asks,
                endpoint: words[0],
                epoch: epochs[0],
                peer_epoch: epochs[1],
                number: words[1],
                ack: words[2],
                ack_mask: words[3],
                starts,
                ends,
                updates,
                observed,
                losses,
            }
        },
    )
}

fn encoded(datagram: &Datagram) -> Vec<u8> {
    let mut bytes = Vec::new();
    datagram.encode(&mut bytes).unwrap();
    bytes
}

#[test]
fn records_take_the_papers_bytes() {
    let empty = Datagram::new(Direction::Up, 1, 1);
    assert_eq!(encoded(&empty).len(), HEADER_BYTES);
    let start = Start { flowlet: 1, to: 2, path: 3, weight: 1.0, demand: None };
    let update = FlowletRate { flowlet: 1, rate: Rate16::at_most(1e9) };
    for count in 1..4 {
        let body = |d: Datagram| encoded(&d).len() - HEADER_BYTES - GROUP_BYTES;
        assert_eq!(body(Datagram { starts: vec![start; count], ..empty.clone() }), 16 * count);
        let bounded = Start { demand: Some(Rate16::at_most(1e9)), ..start };
        assert_eq!(body(Datagram { starts: vec![bounded; count], ..empty.clone() }), 18 * count);
        assert_eq!(body(Datagram { ends: vec![FlowletEnd { flowlet: 1 }; count], ..empty.clone() }), 4 * count);
        assert_eq!(body(Datagram { updates: vec![update; count], ..empty.clone() }), 6 * count);
    }
}

#[test]
fn too_much_for_one_datagram_is_refused() {
    let update = FlowletRate { flowlet: 1, rate: Rate16::ZERO };
    let mut datagram = Datagram { updates: vec![update; 10_922], ..Datagram::new(Direction::Down, 1, 1) };
    assert_eq!(encoded(&datagram).len(), HEADER_BYTES + MOST_BYTES);
    datagram.updates.push(update);
    let mut bytes = Vec::new();
    assert!(datagram.encode(&mut bytes).is_none() && bytes.is_empty());
}

#[test]
fn malformed_bytes_are_told_with_their_place() {
    let start = Start { flowlet: 1, to: 2, path: 3, weight: 1.0, demand: None };
    let sound = encoded(&Datagram { starts: vec![start], ..Datagram::new(Direction::Up, 1, 1) });
    let with = |at: usize, byte: u8| {
        let mut bytes = sound.clone();
        bytes[at] = byte;
        Datagram::decode(&bytes).unwrap_err().to_string()
    };
    assert_eq!(with(0, 2), "byte 0: a version that is not known");
    assert_eq!(with(1, 4), "byte 1: flags that are not known");
    assert_eq!(with(3, 18), "byte 55: records beyond the length that the header has");
    assert_eq!(with(3, 20), "byte 55: the bytes end in the middle of a number");
    assert_eq!(with(36, 9), "byte 36: a kind of record that is not known");
    assert_eq!(with(36, 0), "byte 36: groups out of their order");
    assert_eq!(with(38, 0), "byte 37: a group without records");
    assert_eq!(with(38, 2), "byte 55: the bytes end in the middle of a number");
    assert_eq!(with(51, 0xBF), "byte 51: a weight that is not positive");
    let longer = [&sound[..], &[0]].concat();
    assert_eq!(Datagram::decode(&longer).unwrap_err().to_string(), "byte 55: bytes behind the end");
}

proptest! {
    #[test]
    fn what_is_encoded_comes_back(datagram in datagrams()) {
        let bytes = encoded(&datagram);
        prop_assert_eq!(bytes.len(), HEADER_BYTES + datagram.body_bytes());
        prop_assert_eq!(Datagram::decode(&bytes).unwrap(), datagram.clone());
        for end in 0..bytes.len() {
            prop_assert!(Datagram::decode(&bytes[..end]).is_err());
        }
    }

    /// A decoded message encodes to the same bytes: each message has one form.
    #[test]
    fn any_bytes_are_a_message_in_its_one_form_or_malformed(
        mut bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..200), datagrams().prop_map(|d| encoded(&d))],
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        match Datagram::decode(&bytes) {
            Ok(datagram) => prop_assert_eq!(encoded(&datagram), bytes.clone()),
            Err(malformed) => prop_assert!(malformed.at <= bytes.len()),
        }
        let _ = Bundle::decode(&bytes);
    }

    #[test]
    fn bundles_come_back_whole_and_small(parts in prop::collection::vec(datagrams(), 1..20), most in 100usize..2000) {
        let parts: Vec<_> = parts.into_iter().map(|d| Datagram { direction: Direction::Down, ..d }).collect();
        let bundles = Bundle::pack(parts.clone(), most);
        let mut back = Vec::new();
        for bundle in bundles {
            let mut bytes = Vec::new();
            bundle.encode(&mut bytes).unwrap();
            prop_assert!(bytes.len() <= most || bundle.parts.len() == 1);
            back.extend(Bundle::decode(&bytes).unwrap().parts);
        }
        prop_assert_eq!(back, parts);
    }

    #[test]
    fn a_rate_is_rounded_down_by_at_most_a_step(bps in 1.0f64..1e19) {
        let rate = Rate16::at_most(bps).bps();
        prop_assert!(rate == 0.0 && bps < 1.001 || rate <= bps && rate > bps / 1.00098, "{} for {}", rate, bps);
    }
}

#[test]
fn every_rate_comes_back() {
    for code in 0..=u16::MAX {
        assert_eq!(Rate16::at_most(Rate16::from_code(code).bps()).code(), code);
    }
    assert_eq!([f64::NAN, -1.0, 0.0, 0.5].map(Rate16::at_most), [Rate16::ZERO; 4]);
    assert_eq!(Rate16::at_most(f64::INFINITY).code(), u16::MAX);
}
