//! s-PERC's function in the kernel on single packets, for tests against the reference implementation.

use super::refused;
use libbpf_rs::ProgramInput;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use skeleton::types;
use std::mem::MaybeUninit;
use subak_schemes::perc::division::Tables;
use subak_schemes::perc::fixed::{Fixed, FixedEntry, FixedLink, PercLinkSettings};

#[allow(missing_docs, dead_code, clippy::all)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/perc_vectors.skel.rs"));
}

/// Test vector: a packet and a link, before and after the link has updated the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PercVector {
    /// Time, ns.
    pub now_ns: u64,
    /// Index of the link on the packet's path.
    pub hop: u8,
    /// Whether the packet travels from source to sink.
    pub forward: bool,
    /// The packet's header.
    pub packet: Fixed,
    /// The link's state. The state before the packet is used only if `anew` is set.
    pub link: FixedLink,
    /// Whether the link's state is set from `link`; otherwise it continues from the previous vector.
    pub anew: bool,
}

/// Runs the vectors in the kernel, in order, and writes the resulting packet and link state into each.
pub fn answer(set: &PercLinkSettings, tables: Option<&Tables>, passings: &mut [PercVector]) -> Result<(), String> {
    let mut room = MaybeUninit::uninit();
    let opened = skeleton::PercVectorsSkelBuilder::default().open(&mut room).map_err(refused)?;
    let mut loaded = opened.load().map_err(refused)?;
    let room = loaded.maps.bss_data.as_deref_mut().ok_or("the program has no tables")?;
    if let Some(tables) = tables {
        let (_, _, logs, powers) = tables.parts();
        room.logs.get_mut(..logs.len()).ok_or("the tables are too large")?.copy_from_slice(logs);
        room.powers.get_mut(..powers.len()).ok_or("the tables are too large")?.copy_from_slice(powers);
    }
    room.set = settings(set);
    for passing in passings {
        let room = loaded.maps.bss_data.as_deref_mut().ok_or("the program has no state")?;
        room.packet = packet(&passing.packet);
        if passing.anew {
            room.link = link(&passing.link);
        }
        (room.now_ns, room.hop, room.forward) = (passing.now_ns, passing.hop.into(), passing.forward.into());
        loaded.progs.pass_one.test_run(ProgramInput::default()).map_err(refused)?;
        let room = loaded.maps.bss_data.as_deref().ok_or("the program has no state")?;
        (passing.packet, passing.link) = (fixed(&room.packet), fixed_link(&room.link));
    }
    Ok(())
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

fn link(link: &FixedLink) -> types::link {
    types::link {
        sum_e: link.sum_e,
        shadow_sum_e: link.shadow_sum_e,
        num_b: link.num_b,
        shadow_num_b: link.shadow_num_b,
        max_e: link.max_e,
        max_e_next: link.max_e_next,
        round_number: link.round_number,
        flows: link.flows,
        seen: link.seen,
        reserved: 0,
        round_ns: link.round_ns,
        began_ns: link.began_ns,
        longest_ns: link.longest_ns,
        since_ns: link.since_ns,
    }
}

fn fixed_link(link: &types::link) -> FixedLink {
    FixedLink {
        sum_e: link.sum_e,
        shadow_sum_e: link.shadow_sum_e,
        num_b: link.num_b,
        shadow_num_b: link.shadow_num_b,
        max_e: link.max_e,
        max_e_next: link.max_e_next,
        round_number: link.round_number,
        flows: link.flows,
        seen: link.seen,
        round_ns: link.round_ns,
        began_ns: link.began_ns,
        longest_ns: link.longest_ns,
        since_ns: link.since_ns,
    }
}

fn packet(packet: &Fixed) -> types::packet {
    types::packet {
        weight: packet.weight,
        was: packet.was,
        tx_us: packet.tx_us,
        period_us: packet.period_us,
        round_us: packet.round_us,
        own: packet.own,
        first: packet.first.into(),
        fin: packet.fin.into(),
        hops: packet.hops,
        reserved: 0,
        links: packet.links.map(|entry| types::entry {
            a: entry.a,
            b: entry.b,
            bottlenecked: entry.bottlenecked.into(),
            ignored: entry.ignored.into(),
            round_number: entry.round_number,
            reserved: 0,
        }),
    }
}

fn fixed(packet: &types::packet) -> Fixed {
    Fixed {
        weight: packet.weight,
        was: packet.was,
        first: packet.first != 0,
        fin: packet.fin != 0,
        tx_us: packet.tx_us,
        period_us: packet.period_us,
        round_us: packet.round_us,
        own: packet.own,
        hops: packet.hops,
        links: packet.links.map(|entry| FixedEntry {
            a: entry.a,
            b: entry.b,
            bottlenecked: entry.bottlenecked != 0,
            ignored: entry.ignored != 0,
            round_number: entry.round_number,
        }),
    }
}
