//! Counts of Subak's programs, maps and links in the kernel, whichever process loaded them.

use libbpf_rs::query::{LinkInfoIter, MapInfoIter, ProgInfoIter};
use serde::Serialize;

/// Number of Subak's objects in the kernel, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Present {
    /// Programs.
    pub programs: usize,
    /// Maps.
    pub maps: usize,
    /// Links, which attach programs to their hooks.
    pub links: usize,
}

/// Names of the programs, truncated to 15 letters as in the kernel.
const PROGRAMS: &[&str] = &[
    "soze_init",
    "soze_control",
    "soze_ssthresh",
    "soze_undo",
    "soze_state",
    "soze_sockets",
    "soze_weight",
    "soze_created",
    "enter",
    "leave",
    "perc_pass",
    "flowtune_init",
    "flowtune_event",
    "flowtune_acked",
    "flowtune_avoid",
    "flowtune_ssthre",
    "flowtune_state",
    "flowtune_undo",
    "flowtune_releas",
    "flowtune_socket",
    "flowtune_create",
    "flowtune_weight",
    "flowtune_presen",
    "flowtune_out",
    "flowtune_into",
];
/// Names of maps that only Subak's programs use.
const MAPS: &[&str] = &[
    "flows",
    "laws",
    "destinations",
    "groups",
    "ports",
    "perc_devices",
    "perc_ports",
    "grants",
    "leases",
    "carried",
    "partners",
    "ipv6_hosts",
    "subak_hosts",
];

/// Counts the objects.
pub fn present() -> Present {
    let is = |names: &[&str], name: &std::ffi::OsStr| names.iter().any(|n| name == *n);
    let programs: Vec<u32> = ProgInfoIter::default().filter(|p| is(PROGRAMS, &p.name)).map(|p| p.id).collect();
    let maps = MapInfoIter::default().filter(|m| is(MAPS, &m.name)).count();
    let links = LinkInfoIter::default().filter(|l| programs.contains(&l.prog_id)).count();
    Present { programs: programs.len(), maps, links }
}
