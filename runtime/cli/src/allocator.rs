//! The allocator of every program that links this crate, and the limit of the blocks that it retains.
//!
//! Loading projects and answering queries allocate many small blocks on several threads, for which mimalloc is fast.
//! By default, it also retains large freed blocks, separately for each thread. Pages of results are read and encoded
//! with large buffers on changing threads, so a server would retain more than 100 MiB of them. Not here: the memory of
//! engines, which have their own allocators.

use std::ffi::{c_int, c_long};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The option `mi_option_arena_max_object_size` of mimalloc 3: larger blocks, in KiB, come from the operating system
/// and are returned to it when they are freed.
const MAX_RETAINED_BLOCK: c_int = 45;
/// The value of the option unless the environment sets `MIMALLOC_ARENA_MAX_OBJECT_SIZE`. Another value shows that the
/// number belongs to another option of another version of mimalloc.
const DEFAULT_KIB: c_long = 2 * 1_024 * 1_024;
/// The largest retained block. Pages of smaller objects are at most this large.
const RETAINED_KIB: c_long = 512;

#[allow(unsafe_code, reason = "declares two functions of mimalloc; they accept every number and have no pointers")]
unsafe extern "C" {
    safe fn mi_option_get(option: c_int) -> c_long;
    safe fn mi_option_set(option: c_int, value: c_long);
}

/// Returns large blocks to the operating system as soon as they are freed, unless the environment configures this.
pub(crate) fn limit_retained_blocks() {
    if mi_option_get(MAX_RETAINED_BLOCK) == DEFAULT_KIB {
        mi_option_set(MAX_RETAINED_BLOCK, RETAINED_KIB);
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_RETAINED_BLOCK, RETAINED_KIB, limit_retained_blocks, mi_option_get};

    #[test]
    fn limit_of_retained_blocks_applies() {
        limit_retained_blocks();
        assert_eq!(mi_option_get(MAX_RETAINED_BLOCK), RETAINED_KIB);
    }
}
