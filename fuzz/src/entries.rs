//! Entry points for fuzzing: functions that accept any bytes.

use std::hash::{DefaultHasher, Hash, Hasher};
use subak_control::{Allocator, BigSwitch, ControlSettings, Ecmp, Endpoint};
use subak_core::document::Format;
use subak_core::route::Routing;
use subak_core::{Case, Network, NodeKind, Ns};
use subak_wire::{Bundle, Datagram, Direction, Seal, Secret, claimed_endpoint};

/// Function that handles the bytes and returns a hash of what it did (the trace).
pub type EntryPoint = fn(&[u8]) -> u64;

/// All entry points, by name.
pub const ENTRIES: [(&str, EntryPoint); 8] = [
    ("datagram", datagram),
    ("bundle", bundle),
    ("exchange", exchange),
    ("sealed", sealed),
    ("control", control),
    ("netlink", netlink),
    ("case-json", |bytes| case(bytes, Format::Json)),
    ("case-toml", |bytes| case(bytes, Format::Toml)),
];

fn trace(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// A datagram is either refused with an error at an offset within the bytes, or encodes to the same bytes again.
fn datagram(bytes: &[u8]) -> u64 {
    match Datagram::decode(bytes) {
        Ok(datagram) => {
            let mut again = Vec::new();
            datagram.encode(&mut again).expect("what was decoded fits");
            assert_eq!(again, bytes);
            let bits = |n: usize| n.checked_ilog2();
            let records = [datagram.starts.len(), datagram.ends.len(), datagram.updates.len()].map(bits);
            trace((records, datagram.observed.is_some()))
        }
        Err(malformed) => {
            assert!(malformed.at <= bytes.len());
            trace(malformed.what)
        }
    }
}

fn bundle(bytes: &[u8]) -> u64 {
    match Bundle::decode(bytes) {
        Ok(bundle) => {
            let mut again = Vec::new();
            bundle.encode(&mut again).expect("what was decoded fits");
            assert_eq!(again, bytes);
            trace(bundle.parts.len().min(50))
        }
        Err(malformed) => trace(malformed.what),
    }
}

/// Parses a datagram before its tag is checked, and after a valid tag.
fn sealed(bytes: &[u8]) -> u64 {
    let endpoint = claimed_endpoint(bytes);
    let seal = Seal::new(&Secret::new([7; 32]), endpoint.unwrap_or(0), Direction::Up);
    assert!(seal.open(bytes).is_none(), "nobody guesses a tag");
    let mut own = bytes.to_vec();
    seal.seal(&mut own);
    assert_eq!(seal.open(&own), Some(bytes));
    let secret = std::str::from_utf8(bytes).ok().map(|text| Secret::from_hex(text).is_ok());
    trace((endpoint.is_some(), secret, datagram(bytes)))
}

/// An s-PERC control packet is either refused, or encodes to the same bytes again.
fn control(bytes: &[u8]) -> u64 {
    match subak_schemes::perc::wire::PercDatagram::read(bytes) {
        Some(datagram) => {
            assert_eq!(subak_schemes::perc::wire::PercDatagram::read(&datagram.write()), Some(datagram));
            trace((datagram.hop, datagram.back))
        }
        None => trace(bytes.len().min(200)),
    }
}

/// Parses a kernel's report of its queues.
fn netlink(bytes: &[u8]) -> u64 {
    let mut found = std::collections::BTreeMap::new();
    let done = subak_agent::read_queues(bytes, &mut found);
    trace((done.is_ok(), found.len().min(20)))
}

fn star() -> Network {
    let mut network = Network::new();
    let hosts: Vec<_> = (0..4).map(|h| network.node(&format!("h{h}"), NodeKind::Host)).collect();
    let hub = network.node("hub", NodeKind::Switch);
    for h in hosts {
        network.connect(h, hub, 10e9, 1000, None).expect("a valid link");
    }
    network
}

/// Drives an allocator and two endpoints, with one action per byte: begin, end, deliver, lose, duplicate, restart, or
/// an unauthenticated datagram. Links are never over-allocated, and no messages are pending at the end.
fn exchange(bytes: &[u8]) -> u64 {
    let network = star();
    let settings = ControlSettings { most_flowlets: 16, most_bytes: 90, ..ControlSettings::default() };
    let capacity_bps: Vec<f64> = network.links().iter().map(|l| l.capacity_bps).collect();
    let boot = |now_ns: Ns, epoch: u64| {
        let paths = Box::new(BigSwitch(Ecmp::new(&network, Routing::default())));
        let mut allocator =
            Allocator::new(now_ns, epoch << 32, &capacity_bps, paths, settings).expect("sound settings");
        (0..5).for_each(|endpoint| allocator.join(endpoint));
        allocator
    };
    let (mut boots, mut lives) = (1, [1, 1]);
    let mut allocator = boot(0, boots).first();
    let mut endpoints = [0, 1].map(|e| Endpoint::new(e, 1, settings));
    let mut mail: Vec<(bool, u32, Datagram)> = Vec::new();
    let (mut now_ns, mut told) = (0, 0u32);
    let mut bytes = bytes.iter().copied();
    while let Some(step) = bytes.next() {
        let which = usize::from(step >> 4 & 1);
        let connection = u64::from(step >> 5);
        match step & 15 {
            0..=2 => endpoints[which].begin(connection, u32::from(bytes.next().unwrap_or(2)) % 6, 0, 1.0),
            3 | 4 => endpoints[which].finish(connection),
            5 => endpoints[which].set_weight(connection, f32::from(bytes.next().unwrap_or(1)) + 0.5),
            6 => endpoints[which].remaining(now_ns, connection, 1000),
            7 => drop(mail.pop()),
            8 => mail.extend(mail.last().cloned()),
            9 if !mail.is_empty() => {
                let by = usize::from(bytes.next().unwrap_or(1)) % mail.len();
                mail.rotate_left(by);
            }
            10 if boots < 5 => {
                boots += 1;
                allocator = boot(now_ns, boots);
            }
            11 if lives[which] < 5 => {
                lives[which] += 1;
                endpoints[which] = Endpoint::new(which as u32, lives[which], settings);
            }
            12 => now_ns += settings.lease_ns,
            13 => {
                let stranger: Vec<u8> = bytes.by_ref().take(60).collect();
                if let Ok(datagram) = Datagram::decode(&stranger) {
                    allocator.take(now_ns, 2, &datagram);
                    endpoints[which].take(now_ns, &datagram);
                }
            }
            _ => {
                for (up, endpoint, datagram) in std::mem::take(&mut mail) {
                    if up {
                        allocator.take(now_ns, endpoint, &datagram);
                    } else if let Some(endpoint) = endpoints.get_mut(endpoint as usize) {
                        told += endpoint.take(now_ns, &datagram).len() as u32;
                    }
                }
            }
        }
        now_ns += 10_000;
        allocator.step(now_ns);
        for (number, endpoint) in endpoints.iter_mut().enumerate() {
            mail.extend(std::iter::from_fn(|| endpoint.poll(now_ns)).map(|d| (true, number as u32, d)));
        }
        mail.extend(std::iter::from_fn(|| allocator.poll(now_ns)).map(|d| (false, d.endpoint, d)));
        mail.truncate(50);
        assert!(allocator.flowlets() <= 3 * settings.most_flowlets);
        let most_bps = 10e9 * (1.0 - settings.threshold - settings.reserve) * (1.0 + 1e-6);
        for endpoint in &endpoints {
            assert!((0..8).filter_map(|c| endpoint.rate_bps(now_ns, c)).all(|bps| bps <= most_bps));
        }
    }
    let counters = allocator.counters();
    let bits = |n: u64| n.checked_ilog2();
    trace((bits(counters.stale), bits(counters.refused), bits(told.into()), counters.lapsed.min(1)))
}

/// A case is either parsed, or refused with an error that names a place.
fn case(bytes: &[u8], format: Format) -> u64 {
    let Ok(text) = std::str::from_utf8(bytes) else { return 0 };
    let read = &mut |_: &str| Err(subak_core::InputError::new("", "no files here", "give everything in the case"));
    match Case::parse(text, format, read) {
        Ok(case) => trace((case.network.links().len().min(20), case.flows.len().min(20))),
        // Problem and place quote the input; the hint rarely does.
        Err(fault) => trace(fault.hint.chars().filter(char::is_ascii_alphabetic).take(25).collect::<String>()),
    }
}
