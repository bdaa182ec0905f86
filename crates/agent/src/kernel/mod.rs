//! The programs that run in the kernel, and what they are set to.
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

use std::mem::size_of;

/// Says what the kernel refuses.
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

/// A type that programs in the kernel share: integers without gaps, any bytes of which are a value.
///
/// # Safety
/// It is `repr(C)`, holds integers and arrays of such types alone, and has no padding.
unsafe trait Shared: Copy + Default {}

/// The bytes of a value.
fn bytes_of<T: Shared>(value: &T) -> &[u8] {
    // SAFETY: the type has no padding, so that every byte is set.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// The value of these bytes; nothing if they are too few.
fn value_of<T: Shared>(bytes: &[u8]) -> Option<T> {
    // SAFETY: there are enough bytes, and any of them are a value.
    (bytes.len() >= size_of::<T>()).then(|| unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
}
