//! eBPF programs in the kernel, and their settings.
#![allow(unsafe_code)]

pub mod flowtune;
pub(crate) mod perc;
pub mod perc_vectors;
pub mod present;
pub mod queue_vectors;
pub mod queues;
pub(crate) mod soze;
pub mod vectors;
pub mod weights;

use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore, MapHandle};
use std::collections::BTreeSet;
use std::mem::size_of;

/// Error text for a refusal by the kernel.
fn refused(what: libbpf_rs::Error) -> String {
    let said = format!("{what:#}");
    match what.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => {
            format!("{said}: run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON")
        }
        libbpf_rs::ErrorKind::AlreadyExists => {
            format!("{said}: another agent has this name in the kernel: end it, or give another --name")
        }
        _ => said,
    }
}

/// Name of the maps whose keys are the cookies of an agent's network namespaces.
const HOSTS: &str = "subak_hosts";

/// Cookies of the network namespaces that belong to agents' hosts, except those of the map with this id.
fn namespaces_except(own: u32) -> BTreeSet<u64> {
    let others = MapInfoIter::default().filter(|map| map.name == *HOSTS && map.id != own);
    // An agent may end at any time, and its map with it.
    let maps: Vec<MapHandle> = others.filter_map(|map| MapHandle::from_map_id(map.id).ok()).collect();
    let keys = maps.iter().flat_map(|map| map.keys());
    keys.filter_map(|key| Some(u64::from_ne_bytes(*key.first_chunk()?))).collect()
}

/// Opens the agent's map with this id and name.
fn map_of(id: u32, name: &str) -> Result<MapHandle, String> {
    let hint = "give a number that `subak-agent` printed when it was ready";
    let map = MapHandle::from_map_id(id).map_err(|e| match e.kind() {
        libbpf_rs::ErrorKind::NotFound => format!("--map: no map has the number {id}; {hint}"),
        _ => format!("--map: {id}: {}", refused(e)),
    })?;
    match map.name().to_string_lossy() {
        found if found == name => Ok(map),
        found => Err(format!("--map: {id} is the map \"{found}\", and \"{name}\" is needed; {hint}")),
    }
}

/// A type shared with programs in the kernel: integers without padding, for which all bytes are valid values.
///
/// # Safety
///
/// It is `repr(C)`, consists of integers and arrays of such types, and has no padding.
unsafe trait Shared: Copy + Default {}

/// The bytes of a value.
fn bytes_of<T: Shared>(value: &T) -> &[u8] {
    // SAFETY: the type has no padding, so that every byte is initialized.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// The value with these bytes; `None` if they are too few.
fn value_of<T: Shared>(bytes: &[u8]) -> Option<T> {
    // SAFETY: there are enough bytes, and any bytes are a valid value.
    (bytes.len() >= size_of::<T>()).then(|| unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
}
