//! Links of s-PERC and s-PERC*: an eBPF program before each queue.

use super::queues::attach;
use super::{Shared, bytes_of, refused};
use crate::namespace::Namespace;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject, libbpf_sys};
use rustix::fd::OwnedFd;
use skeleton::types;
use std::mem::MaybeUninit;
use subak_schemes::hosts::perc::PercHosts;
use subak_schemes::perc::fixed::{FixedLink, PercLinkSettings};

#[allow(missing_docs, dead_code, clippy::all)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/perc.skel.rs"));
}

// SAFETY: `perc.h` and `perc.bpf.c` order their members so that none leaves a gap.
unsafe impl Shared for types::port {}

/// A link with its queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PercLink {
    /// Number of the device that has the queue.
    pub device: u32,
    /// Index of the reverse link; `None` if there is none.
    pub twin: Option<u32>,
    pub rate_bps: f64,
    /// Number of links of the longest path.
    pub hops: u8,
    /// Fraction of control packets that the link drops, for tests of losses.
    pub loss: f64,
    pub seed: u64,
}

/// The loaded programs. Dropping this value, or the end of the process, removes them.
pub(crate) struct Loaded {
    skeleton: skeleton::PercSkel<'static>,
    links: Vec<OwnedFd>,
    ports: u32,
}

impl Loaded {
    /// Loads the program, attached to no link yet.
    pub fn new(hosts: &PercHosts) -> Result<Self, String> {
        // Leaked once per process, since the skeleton must live as long as the process.
        let room: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut opened = skeleton::PercSkelBuilder::default().open(room).map_err(refused)?;
        opened.maps.rodata_data.as_deref_mut().ok_or("the program has no settings")?.unit = hosts.unit().0.into();
        let mut skeleton = opened.load().map_err(refused)?;
        if let Some(tables) = hosts.tables() {
            let (_, _, logs, powers) = tables.parts();
            let room = skeleton.maps.bss_data.as_deref_mut().ok_or("the program has no tables")?;
            room.logs.get_mut(..logs.len()).ok_or("the tables are too large")?.copy_from_slice(logs);
            room.powers.get_mut(..powers.len()).ok_or("the tables are too large")?.copy_from_slice(powers);
        }
        Ok(Loaded { skeleton, links: Vec::new(), ports: 0 })
    }

    /// Attaches the program to a link whose queue is in the namespace `place`. Device numbers are unique over all
    /// nodes.
    pub fn add(&mut self, place: &Namespace, link: PercLink, hosts: &PercHosts) -> Result<(), String> {
        let (set, round_ns) = hosts.link(link.rate_bps, link.hops);
        let random = subak_core::rng::mix(link.seed ^ u64::from(self.ports)) | 1;
        // A random start, so that the rounds of different links are not synchronized.
        let began_ns = crate::traffic::clock_ns().saturating_sub(random % round_ns.max(1));
        let port = types::port {
            twin: link.twin.filter(|_| hosts.reverse()).map_or(0, |twin| twin + 1),
            set: settings(&set),
            link: empty(&FixedLink::new(round_ns, began_ns)),
            loses: (link.loss * 4_294_967_296.0) as u64,
            random,
            ..types::port::default()
        };
        let (number, maps) = (self.ports.to_ne_bytes(), &self.skeleton.maps);
        self.ports += 1;
        maps.perc_ports.update(&number, bytes_of(&port), MapFlags::ANY).map_err(refused)?;
        maps.perc_devices.update(&link.device.to_ne_bytes(), &number, MapFlags::ANY).map_err(refused)?;
        let program = &self.skeleton.progs.perc_pass;
        self.links.push(place.within(|| attach(program, link.device, libbpf_sys::BPF_TCX_EGRESS))?);
        Ok(())
    }
}

fn settings(set: &PercLinkSettings) -> types::link_settings {
    types::link_settings {
        capacity: set.capacity,
        packet_ns: set.packet_ns,
        patience_ns: set.patience_ns,
        wait_ns: set.wait_ns,
        tie: set.tie,
        robust: set.robust.into(),
        log_index_bits: set.log_index_bits,
        power_index_bits: set.power_index_bits,
        reserved: 0,
    }
}

fn empty(link: &FixedLink) -> types::link {
    types::link {
        round_number: link.round_number,
        round_ns: link.round_ns,
        began_ns: link.began_ns,
        since_ns: link.since_ns,
        ..types::link::default()
    }
}
