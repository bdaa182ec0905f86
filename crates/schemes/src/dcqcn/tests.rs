use super::*;
use subak_core::FlowId;

fn scheme() -> Dcqcn {
    Dcqcn::new(&Params::resolve(&Dcqcn::INFO, &serde_json::Map::new()).unwrap()).unwrap()
}

#[test]
fn marks_begin_at_k_min_and_are_certain_at_k_max() {
    let red = scheme().red;
    let p = [0, 5_000, 102_500, 199_999, 200_000].map(|queued| red.probability(queued));
    assert_eq!((p[0], p[1], p[4]), (0.0, 0.0, 1.0));
    assert!((p[2] - 0.005).abs() < 1e-9 && (p[3] - 0.01).abs() < 1e-6, "{p:?}");
}

#[test]
fn the_first_cut_halves_and_later_ones_follow_alpha() {
    let (scheme, mut s) = (scheme(), DcqcnSubflow::new(40e9));
    s.cut(&scheme, 50_000);
    assert_eq!((s.rate_bps, s.target_bps, s.alpha), (20e9, 40e9, 1.0));
    // Four times 55 us without a CNP: alpha falls four times.
    s.cut(&scheme, 50_000 + 4 * 55_000);
    let alpha: f64 = (1.0f64 - 1.0 / 256.0).powi(4);
    assert!((s.rate_bps - 20e9 * (1.0 - alpha / 2.0)).abs() < 1.0, "{}", s.rate_bps);
    assert!((s.alpha - (alpha * 255.0 / 256.0 + 1.0 / 256.0)).abs() < 1e-12, "{}", s.alpha);
}

#[test]
fn five_steps_halfway_back_then_additive_then_hyper() {
    let (scheme, mut s) = (scheme(), DcqcnSubflow::new(40e9));
    (s.rate_bps, s.target_bps) = (10e9, 20e9);
    for k in 1..=5 {
        s.raise(&scheme);
        s.timed += 1;
        assert!((20e9 - s.rate_bps - 10e9 / f64::from(1 << k)).abs() < 1.0, "{}", s.rate_bps);
    }
    s.raise(&scheme);
    assert!((s.target_bps - 20.04e9).abs() < 1.0);
    (s.timed, s.counted) = (6, 6);
    s.raise(&scheme);
    assert!((s.target_bps - 20.24e9).abs() < 1.0);
}

#[test]
fn without_clamp_cuts_in_a_row_keep_the_target() {
    let (mut scheme, mut s) = (scheme(), DcqcnSubflow::new(40e9));
    scheme.clamp = false;
    (s.rate_bps, s.timed) = (30e9, 1);
    for at_ns in [1000, 2000, 3000] {
        s.cut(&scheme, at_ns);
        assert_eq!(s.target_bps, 30e9);
    }
    assert!(s.rate_bps < 4e9, "{}", s.rate_bps);
    s.raise(&scheme);
    s.timed += 1;
    assert!((s.rate_bps - 17e9).abs() < 1e9, "halfway back to what it was before: {}", s.rate_bps);
}

fn simulator() -> Dcqcn {
    let given = serde_json::json!({"preset": "hpcc-simulator"});
    Dcqcn::new(&Params::resolve(&Dcqcn::INFO, given.as_object().unwrap()).unwrap()).unwrap()
}

#[test]
fn in_the_simulator_cuts_come_on_a_grid_from_the_first_notification_on() {
    let (scheme, mut s) = (simulator(), DcqcnSubflow::new(100e9));
    assert_eq!(s.notify(&scheme, 10_000), Some(14_001));
    assert_eq!(s.notify(&scheme, 12_500), None, "one cut for both");
    s.cut(&scheme, 14_001);
    // Alpha was 1, and was updated four times: the CNP at 12.5 us falls into the third interval.
    let alpha = (0..4).fold(1.0, |a, k| a + if k == 2 { (1.0 - a) / 256.0 } else { -a / 256.0 });
    assert!((s.rate_bps - 100e9 * (1.0 - alpha / 2.0)).abs() < 1.0, "{}", s.rate_bps);
    assert_eq!(s.target_bps, 100e9, "the first cut after an increase would lower it");
    assert_eq!(s.notify(&scheme, 30_500), Some(34_001));
    assert_eq!(s.notify(&scheme, 34_000), None);
}

#[test]
fn in_the_simulator_alpha_tends_to_one_under_lasting_congestion() {
    let (scheme, mut s) = (simulator(), DcqcnSubflow::new(100e9));
    s.alpha = 0.0;
    (0..20_000u64).for_each(|k| {
        s.notify(&scheme, 500 * k);
    });
    s.bring_alpha_to(&scheme, 10_000_000);
    assert!(s.alpha > 0.999, "{}", s.alpha);
    s.bring_alpha_to(&scheme, 10_000_000 + 256_000);
    assert!((s.alpha - 0.37).abs() < 0.01, "{}", s.alpha);
}

#[test]
fn in_the_simulator_one_additive_step_comes_before_hyper_increase() {
    let (scheme, mut s) = (simulator(), DcqcnSubflow::new(100e9));
    (s.rate_bps, s.target_bps) = (10e9, 20e9);
    for target_bps in [20e9, 20.02e9, 20.22e9, 20.42e9] {
        s.raise(&scheme);
        s.timed += 1;
        assert!((s.target_bps - target_bps).abs() < 1.0, "{}", s.target_bps);
    }
}

#[test]
fn a_preset_gives_way_to_what_is_given() {
    let given = serde_json::json!({"preset": "hpcc-simulator", "timer": "100us"});
    let scheme = Dcqcn::new(&Params::resolve(&Dcqcn::INFO, given.as_object().unwrap()).unwrap()).unwrap();
    assert_eq!((scheme.timer_ns, scheme.cut_ns, scheme.by_acks), (100_000, 4000, true));
    let unknown = serde_json::json!({"preset": "ns-3"});
    assert!(Params::resolve(&Dcqcn::INFO, unknown.as_object().unwrap()).is_err());
}

#[test]
fn every_preset_names_parameters_that_there_are() {
    for info in [Dcqcn::INFO, crate::timely::Timely::INFO, crate::hpcc::Hpcc::INFO] {
        for (word, others) in info.params.iter().flat_map(|p| p.presets) {
            for (name, value) in *others {
                let param = info.params.iter().find(|p| p.key.name == *name).expect(name);
                let same = std::mem::discriminant(&param.default()) == std::mem::discriminant(value);
                assert!(same, "{}, {word}: {name}", info.name);
            }
        }
    }
}

#[test]
fn a_receiver_notifies_once_in_50_us() {
    let sink = &mut scheme().sink(&FlowInfo::example(
        FlowId(0),
        vec![PathInfo { hops: 2, line_rate_bps: 40e9, min_capacity_bps: 40e9, base_rtt_ns: 9000 }],
    ));
    let mut io = Io::<Dcqcn>::default();
    let mut sent = Vec::new();
    for at_us in 0..120 {
        io.now_ns = at_us * 1000;
        let mut packet = crate::dcqcn::tests::packet();
        packet.ecn = at_us != 0;
        sink.on_data(&mut io, &packet);
        sent.extend(io.take_effects().map(|_| at_us));
    }
    assert_eq!(sent, [1, 51, 101]);
}

pub(super) fn packet() -> Packet<Dcqcn> {
    Packet { bytes: 1500, hop: 1, ..Packet::blank(FlowId(0)).carrying(0, 1446) }
}
