//! Settings of a link in a kernel.

/// Settings of a link in a kernel, in integers: see `filter.rs` and `fixed_link.rs` for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what the filter or the virtual queue calls so")]
pub struct SozeLinkSettings {
    pub is_virtual: bool,
    pub ns_per_byte: u64,
    pub most_bytes: u64,
    pub decay: u64,
    pub longest_ns: u64,
    pub told_per_byte: u64,
    pub is_utilization: bool,
    pub eta: i64,
    pub queue: u64,
    pub k_ns: u64,
    pub per_empties: u64,
    pub most_excess_ns: u64,
    pub most_ns: i64,
    pub start_ns: i64,
    pub anew_ns: u64,
}
