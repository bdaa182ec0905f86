//! Prefetching of memory: loads a value into the cache before it is used, while the processor does other work.

/// Size of a cache line, bytes.
const LINE_BYTES: usize = 64;

/// Prefetches the first `bytes` of `of` into the cache. It is a hint: it never blocks and never changes a result.
#[inline(always)]
pub fn fetch<T>(of: &T, bytes: usize) {
    let begin = std::ptr::from_ref(of).cast::<i8>();
    for line in (0..bytes.min(size_of::<T>())).step_by(LINE_BYTES) {
        fetch_line(begin.wrapping_add(line));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[allow(unsafe_code, reason = "a hint: it reads nothing, and no address can be wrong")]
fn fetch_line(at: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at) };
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
#[allow(unsafe_code, reason = "a hint: it reads nothing, and no address can be wrong")]
fn fetch_line(at: *const i8) {
    unsafe { std::arch::asm!("prfm pldl1keep, [{at}]", at = in(reg) at, options(nostack, readonly, preserves_flags)) };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
fn fetch_line(_at: *const i8) {}
