//! Settings of allocator and stacks. The one file where `unsafe` is allowed.
#![allow(unsafe_code)]

use std::env;

use crate::limits::THREAD_STACK_BYTES;

/// What the standard library reads, once, for threads that ask for no size of their own.
const MIN_STACK: &str = "RUST_MIN_STACK";

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

/// Gives the threads that libraries start small stacks too, unless the environment names a size. To
/// be called before the first thread is started.
pub fn use_small_stacks() {
    if env::var_os(MIN_STACK).is_none() {
        // SAFETY: no other thread runs yet that could read the environment meanwhile.
        unsafe { env::set_var(MIN_STACK, THREAD_STACK_BYTES.to_string()) };
    }
}
