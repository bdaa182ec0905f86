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
