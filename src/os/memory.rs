//! Allocator settings. The one file where `unsafe` is allowed.
#![allow(unsafe_code)]

/// Keeps the allocator to one arena: each further one reserves 64 MiB of address space, which
/// matters under strict overcommit and on 32-bit boards, and costs resident memory. To be called
/// before the first thread is started.
pub fn use_one_arena() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt only sets a parameter of the allocator, and no other thread runs yet.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
