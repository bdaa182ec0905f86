//! Counters of the kernel's queues after a batch of packets, for comparison with the reference.

use super::queues::counts;
use super::{Shared, bytes_of, refused, value_of};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, ProgramInput};
use skeleton::types;
use std::mem::MaybeUninit;
use subak_schemes::soze::SozeLinkSettings;

#[allow(missing_docs, dead_code, clippy::all)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/queue_vectors.skel.rs"));
}

/// Test vector: a packet that leaves a queue, and the telemetry it receives.
pub type QueueVector = types::passing;

// SAFETY: `fixed.h` and `queue_vectors.bpf.c` order the fields such that there is no padding.
unsafe impl Shared for types::passings {}
// SAFETY: the fields of the type leave no padding.
unsafe impl Shared for types::counts {}

/// Runs the packets through one queue in the kernel, in order, and writes the resulting telemetry into each.
pub fn pass(link: &SozeLinkSettings, passings: &mut [QueueVector]) -> Result<(), String> {
    let mut room = MaybeUninit::uninit();
    let opened = skeleton::QueueVectorsSkelBuilder::default().open(&mut room).map_err(refused)?;
    let loaded = opened.load().map_err(refused)?;
    let (map, key) = (&loaded.maps.passings, 0u32.to_ne_bytes());
    // The same C structure, generated a second time for another program.
    let counts = value_of(bytes_of(&counts(link))).ok_or("the programs differ in what a queue counts")?;
    let mut held = types::passings { counts, ..Default::default() };
    let size = held.each.len();
    for batch in passings.chunks_exact_mut(size) {
        held.each.copy_from_slice(batch);
        map.update(&key, bytes_of(&held), MapFlags::ANY).map_err(refused)?;
        loaded.progs.pass_all.test_run(ProgramInput::default()).map_err(refused)?;
        let bytes = map.lookup(&key, MapFlags::ANY).map_err(refused)?.unwrap_or_default();
        held = value_of(&bytes).ok_or("the kernel's answer is too short")?;
        batch.copy_from_slice(&held.each);
    }
    Ok(())
}
