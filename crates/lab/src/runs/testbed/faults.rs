//! Faults of a spec as changes of a testbed's links.

use subak_core::backend::{Impairment, Injected, Kinds};
use subak_core::{LinkId, Ns};
use subak_testbed::{PacketFate, PacketImpairment, RelayChange, TimedChange};

/// The changes of `links` links that `faults` cause, in time order. Of changes at one time, recoveries come before
/// failures. A link recovers when its last outage ends. `wall_ns` converts times.
pub(super) fn changes(faults: &[Injected], links: usize, wall_ns: impl Fn(Ns) -> u64) -> Vec<TimedChange> {
    let mut changes = Vec::new();
    let mut add = |ns: Ns, link: LinkId, change| {
        if ns < Ns::MAX {
            changes.push(TimedChange { at_ns: wall_ns(ns), link: link.into(), change });
        }
    };
    for (fault, slot) in faults.iter().zip(0..) {
        match fault {
            Injected::Packets { impairment, kinds, links: some, probability, from_ns, until_ns } => {
                let &Kinds { data, ack, ctl } = kinds;
                let fate = match *impairment {
                    Impairment::Lost => PacketFate::Lost,
                    Impairment::Doubled => PacketFate::Doubled,
                    Impairment::Late(by_ns) => PacketFate::Late(wall_ns(by_ns)),
                };
                let all: Vec<LinkId> = LinkId::first(links).collect();
                for &link in some.as_ref().unwrap_or(&all) {
                    let now = PacketImpairment { slot, fate, probability: *probability, data, ack, ctl };
                    add(*from_ns, link, RelayChange::Impair(now));
                    add(*until_ns, link, RelayChange::Impair(PacketImpairment { probability: 0.0, ..now }));
                }
            }
            // An outage that hosts have no time for would otherwise recover before it fails.
            Injected::Down { down_ns, up_ns, .. } if *up_ns < Ns::MAX && wall_ns(*down_ns) >= wall_ns(*up_ns) => {}
            Injected::Down { link, down_ns, up_ns, .. } => {
                add(*down_ns, *link, RelayChange::Up(false));
                add(*up_ns, *link, RelayChange::Up(true));
            }
            // A testbed refuses the others.
            Injected::Capacity { .. } | Injected::Restart { .. } => {}
        }
    }
    changes.sort_by_key(|timed| (timed.at_ns, timed.change == RelayChange::Up(false), timed.link));
    let mut outages = vec![0_u32; links];
    changes.retain(|timed| {
        let held = &mut outages[timed.link as usize];
        match timed.change {
            RelayChange::Up(false) => *held += 1,
            RelayChange::Up(true) => *held -= 1,
            RelayChange::DelayNs(_) | RelayChange::Impair(_) => return true,
        }
        *held == u32::from(timed.change == RelayChange::Up(false))
    });
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_become_changes_in_time_order() {
        let late = Injected::Packets {
            impairment: Impairment::Late(10),
            kinds: Kinds { data: true, ack: false, ctl: false },
            links: None,
            probability: 0.5,
            from_ns: 30,
            until_ns: Ns::MAX,
        };
        let down = |down_ns, up_ns| Injected::Down { link: LinkId(1), down_ns, up_ns, keeps: false };
        let changes = changes(&[late, down(5, 10), down(10, Ns::MAX)], 2, |ns| ns * 2);
        let ups: Vec<_> = changes.iter().take(3).map(|c| (c.at_ns, c.link, c.change)).collect();
        assert_eq!(
            ups,
            [(10, 1, RelayChange::Up(false)), (20, 1, RelayChange::Up(true)), (20, 1, RelayChange::Up(false))]
        );
        let fate = PacketFate::Late(20);
        let impaired = PacketImpairment { slot: 0, fate, probability: 0.5, data: true, ack: false, ctl: false };
        let last: Vec<_> = changes[3..].iter().map(|c| (c.at_ns, c.link, c.change)).collect();
        assert_eq!(last, [0, 1].map(|link| (60, link, RelayChange::Impair(impaired))));
    }

    #[test]
    fn a_link_recovers_when_its_last_outage_ends() {
        let down = |link, down_ns, up_ns| Injected::Down { link: LinkId(link), down_ns, up_ns, keeps: false };
        let told = |faults: &[Injected], per_ns: fn(Ns) -> u64| -> Vec<_> {
            let as_text = |c: &TimedChange| (c.at_ns, c.link, c.change == RelayChange::Up(true));
            changes(faults, 2, per_ns).iter().map(as_text).collect()
        };
        // Overlapping, one within another, and at another link meanwhile.
        let overlapping = [down(0, 10, 30), down(0, 20, 40), down(1, 5, 25), down(1, 10, 15), down(0, 50, Ns::MAX)];
        assert_eq!(
            told(&overlapping, |ns| ns),
            [(5, 1, false), (10, 0, false), (25, 1, true), (40, 0, true), (50, 0, false)]
        );
        // The second never ends, nor does the link's outage.
        assert_eq!(told(&[down(0, 10, 30), down(0, 20, Ns::MAX)], |ns| ns), [(10, 0, false)]);
        // On hosts both times of the second are one.
        assert_eq!(told(&[down(0, 10, 30), down(0, 20, 21)], |ns| ns / 10), [(1, 0, false), (3, 0, true)]);
    }
}
