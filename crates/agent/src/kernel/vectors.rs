//! Soze's functions in the kernel on batches of inputs, for tests against the reference implementation.

use super::{Shared, bytes_of, refused, value_of};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, ProgramInput};
use skeleton::types;
use std::mem::MaybeUninit;
use subak_schemes::soze::SozeSettings;

#[allow(missing_docs, dead_code, clippy::all)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/vectors.skel.rs"));
}

/// Test vector: an input and the results.
pub type TestVector = types::trial;

// SAFETY: `fixed.h` and `vectors.bpf.c` order the fields such that there is no padding.
unsafe impl Shared for types::trials {}

/// Computes the results of each of `trials` in the kernel.
pub fn answer(settings: &SozeSettings, trials: &mut [TestVector]) -> Result<(), String> {
    let mut room = MaybeUninit::uninit();
    let opened = skeleton::VectorsSkelBuilder::default().open(&mut room).map_err(refused)?;
    let loaded = opened.load().map_err(refused)?;
    let (map, key) = (&loaded.maps.trials, 0u32.to_ne_bytes());
    let law = law(settings);
    let mut held = types::trials { law, ..Default::default() };
    for batch in trials.chunks_mut(held.each.len()) {
        held.each[..batch.len()].copy_from_slice(batch);
        map.update(&key, bytes_of(&held), MapFlags::ANY).map_err(refused)?;
        loaded.progs.try_all.test_run(ProgramInput::default()).map_err(refused)?;
        let bytes = map.lookup(&key, MapFlags::ANY).map_err(refused)?.unwrap_or_default();
        let answered: types::trials = value_of(&bytes).ok_or("the kernel's answer is too short")?;
        batch.copy_from_slice(&answered.each[..batch.len()]);
    }
    Ok(())
}

fn law(settings: &SozeSettings) -> types::law {
    types::law {
        log2_alpha: settings.log2_alpha,
        log2_start: settings.log2_start,
        log2_least: settings.log2_least,
        log2_packet: settings.log2_packet,
        log2_most: settings.log2_most,
        slope: settings.slope,
        most_above_ns: settings.most_above_ns,
        k_ns: settings.k_ns,
        m: settings.m,
        exact: settings.exact.into(),
        floor_beta: settings.floor_beta.into(),
        window: settings.window.into(),
        ..types::law::default()
    }
}
