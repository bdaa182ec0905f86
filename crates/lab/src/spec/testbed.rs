//! Scenarios that a testbed supports.

use crate::spec::choice::SchemeChoice;
use crate::spec::scenario::Scenario;
use subak_core::backend::{Impairment, Injected, Kinds};
use subak_core::quantity::{ns_from_json, shown};
use subak_core::{InputError, Ns};

pub(crate) const WAITING: &str = "a testbed has no flows that wait for others yet";
/// Sizes of full packets that links of a testbed carry, bytes on the wire.
const MTUS: std::ops::RangeInclusive<u32> = 576..=9216;
pub(crate) const KNOWN: &str = "take a workload whose flows start at known times, or simulate it";

/// Probability of the loss of control packets at every link for the whole run, which programs at links can inject;
/// `None` for other faults.
pub(crate) fn control_loss(fault: &Injected) -> Option<f64> {
    let Injected::Packets {
        impairment: Impairment::Lost,
        kinds,
        links: None,
        probability,
        from_ns: 0,
        until_ns: Ns::MAX,
    } = fault
    else {
        return None;
    };
    matches!(kinds, Kinds { data: false, ack: false, ctl: true }).then_some(*probability)
}

/// Parameters that are times of the kernel, ns of the hosts' time.
pub(crate) const KERNEL_TIMES: &[(&str, f64)] = &[("hystart_unit", 1e6), ("rto_min", 200e6)];

impl Scenario {
    /// An error if the spec has other times for the kernel's scheme than the kernel.
    pub(super) fn check_kernel_times(&self, scheme: &SchemeChoice) -> Result<(), InputError> {
        for (key, hosts_ns) in KERNEL_TIMES {
            let Some(value) = scheme.params.get(*key) else { continue };
            let (ns, kernels_ns) = (ns_from_json(value)? as f64, hosts_ns * self.scale);
            if (ns - kernels_ns).abs() > 1e-3 * kernels_ns {
                let what = format!("the kernel's {} does not have {}", scheme.name, shown(value));
                let hint =
                    format!("leave it away on a testbed, or write \"{kernels_ns}ns\", the kernel's at this scale");
                return Err(InputError::new(format!("params.{key}"), what, hint));
            }
        }
        Ok(())
    }

    /// An error if the testbed does not support the self.
    pub(super) fn check_testbed(&self) -> Result<(), InputError> {
        let refuse = |place: &str, what: &str, hint: &str| Err(InputError::new(place, what, hint));
        let network = self.topology.network();
        let described = self.topology.described_links();
        if described.iter().any(|link| link.from.is_none() || link.to.is_none()) {
            return refuse(
                "network",
                "a testbed needs nodes, and some links have no ends",
                "give each link from and to",
            );
        }
        if described.len() < network.links().len() {
            let hint = "leave the workload's own links away, or simulate it";
            return refuse("network", "some links are drawn for the flows alone", hint);
        }
        for (fault, place) in self.faults.iter().zip(&self.fault_places) {
            let what = match fault {
                Injected::Packets { .. } | Injected::Down { keeps: false, .. } => continue,
                Injected::Down { .. } => "a testbed's links lose what waits while they are down",
                Injected::Capacity { .. } => "a testbed's links keep their capacity",
                Injected::Restart { .. } => "a testbed restarts no machines",
            };
            return refuse(&format!("fault[{place}]"), what, "leave it away, or simulate it");
        }
        if let Some((place, _)) = self.drawn.first() {
            let what = "a testbed draws no links that fail";
            return refuse(&format!("fault[{place}].share"), what, "name the links, or simulate it");
        }
        let mtu_bytes = self.packet.mtu_bytes;
        if !MTUS.contains(&mtu_bytes) {
            let what = format!("packets of {mtu_bytes} bytes do not fit links of a testbed");
            return refuse("packets.mtu", &what, "give 576 to 9216 bytes, Ethernet header included");
        }
        if self.topology.spread().is_some() {
            let what = "a testbed spreads no packets: each flow has one path";
            return refuse("routing.kind", what, "take routing.kind = \"ecmp\", or simulate it");
        }
        if self.reroute_ns.is_some() {
            return refuse("routing.reroute", "a testbed finds no new routes", "leave it away, or simulate it");
        }
        if self.workload.has_jobs() {
            return refuse("workload", WAITING, KNOWN);
        }
        if self.measure.packets.is_some() || self.measure.paces_ns.is_some() {
            return refuse("measure", "a testbed records no packets and no paces", "measure fct, rates or queues");
        }
        if self.measure.convergence.iter().any(|c| !c.received) {
            return refuse("measure.convergence", "a testbed knows what was received alone", "write of = \"received\"");
        }
        Ok(())
    }
}
