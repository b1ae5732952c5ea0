//! Where a plugin's values live: a first block that is only filled, and then the ordinary heap.
//!
//! In: requests for memory. Out: memory. Most calls are answered by an instance that was made for them and is
//! thrown away with all that it holds, so the texts of its arguments and of its answer are laid side by side,
//! and nothing is done to give them back. What doesn't fit, and whatever is large, comes from the heap of the
//! standard library: an instance that lives for many calls doesn't grow by what it has returned. With the first large
//! value that heap grows by half a MiB at once.
#![allow(unsafe_code, reason = "an allocator hands out addresses")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;

/// One page of WebAssembly's memory.
const BYTES: usize = 64 * 1024;
/// Larger values come from the heap at once: they would use the block up.
const LARGEST: usize = 8 * 1024;
/// So far the heap grows with the first large value: each time that memory grows costs more than to fill a page of it,
/// and large values come in tens.
const FIRST_GROWTH: usize = 512 * 1024;

#[repr(align(16))]
struct Block(UnsafeCell<[MaybeUninit<u8>; BYTES]>);

/// The allocator of a plugin, which has one thread.
pub(crate) struct Memory {
    block: Block,
    /// So many bytes of the block are in use.
    used: Cell<usize>,
    has_grown: Cell<bool>,
}

// SAFETY: it is shared by nobody: the components of this contract have no threads.
#[cfg(all(target_arch = "wasm32", not(target_feature = "atomics")))]
unsafe impl Sync for Memory {}

#[cfg(all(feature = "memory", target_arch = "wasm32", not(target_feature = "atomics")))]
#[global_allocator]
static MEMORY: Memory = Memory::new();

impl Memory {
    pub(crate) const fn new() -> Memory {
        Memory {
            block: Block(UnsafeCell::new([MaybeUninit::uninit(); BYTES])),
            used: Cell::new(0),
            has_grown: Cell::new(false),
        }
    }

    fn start(&self) -> *mut u8 {
        self.block.0.get().cast()
    }

    /// Where in the block an address is; `None` where it is of the heap.
    fn offset_of(&self, address: *mut u8) -> Option<usize> {
        let offset = address.addr().wrapping_sub(self.start().addr());
        (offset < BYTES).then_some(offset)
    }
}

// SAFETY: parts of the block that are in use never overlap, since `used` only falls by what was handed out last;
// everything else is the system's.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // The block begins at a multiple of 16.
        let at = (self.used.get() + layout.align() - 1) & !(layout.align() - 1);
        if layout.size() <= LARGEST && layout.align() <= 16 && at + layout.size() <= BYTES {
            self.used.set(at + layout.size());
            // SAFETY: within the block.
            return unsafe { self.start().add(at) };
        }
        if layout.size() > LARGEST && !self.has_grown.replace(true) {
            // SAFETY: what is given back at once is what was handed out.
            unsafe {
                let room = Layout::new::<[u8; FIRST_GROWTH]>();
                let address = System.alloc(room);
                if !address.is_null() {
                    System.dealloc(address, room);
                }
            }
        }
        // SAFETY: as it came.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        match self.offset_of(address) {
            Some(offset) if offset + layout.size() == self.used.get() => self.used.set(offset),
            Some(_) => {}
            // SAFETY: it is not of the block, so it came from the system.
            None => unsafe { System.dealloc(address, layout) },
        }
    }

    unsafe fn realloc(&self, address: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(offset) = self.offset_of(address) else {
            // SAFETY: it is not of the block, so it came from the system.
            return unsafe { System.realloc(address, layout, size) };
        };
        let is_last = offset + layout.size() == self.used.get();
        if is_last && size <= LARGEST && offset + size <= BYTES {
            self.used.set(offset + size);
            return address;
        }
        if size <= layout.size() {
            return address;
        }
        // SAFETY: the caller promises that `size` with this alignment is a layout; both places hold the old size,
        // and are apart: what is in use is not handed out again.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                std::ptr::copy_nonoverlapping(address, new, layout.size());
                self.dealloc(address, layout);
            }
            new
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    /// Values of all sizes come, grow, shrink and go, in an order that a fixed seed draws, and each keeps its bytes.
    #[test]
    fn values_keep_their_bytes() {
        let memory = Memory::new();
        let mut held: Vec<(*mut u8, Layout, u8)> = Vec::new();
        let mut seed = 7_u32;
        let mut below = |bound: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) % bound
        };
        for round in 0..20_000_u32 {
            let mark = round as u8;
            let size = if below(50) == 0 { below(20_000) } else { below(200) } as usize + 1;
            // SAFETY: every address is used with the layout that it was handed out for, and once.
            unsafe {
                match below(5) {
                    0 | 1 => {
                        let layout = layout(size, 1 << below(6));
                        let address = memory.alloc(layout);
                        assert!(address.addr().is_multiple_of(layout.align()), "{layout:?}");
                        address.write_bytes(mark, size);
                        held.push((address, layout, mark));
                    }
                    2 if !held.is_empty() => {
                        // The last one as often as any other.
                        let at = if below(2) == 0 { held.len() - 1 } else { below(held.len() as u32) as usize };
                        let (address, old, mark) = held.swap_remove(at);
                        let new = layout(size, old.align());
                        let address = memory.realloc(address, old, size);
                        let kept = std::slice::from_raw_parts(address, size.min(old.size()));
                        assert!(kept.iter().all(|byte| *byte == mark), "{old:?} to {size}");
                        address.write_bytes(mark, size);
                        held.push((address, new, mark));
                    }
                    _ if !held.is_empty() => {
                        let at = if below(2) == 0 { held.len() - 1 } else { below(held.len() as u32) as usize };
                        let (address, layout, mark) = held.swap_remove(at);
                        let bytes = std::slice::from_raw_parts(address, layout.size());
                        assert!(bytes.iter().all(|byte| *byte == mark), "{layout:?}");
                        memory.dealloc(address, layout);
                    }
                    _ => {}
                }
            }
            assert!(memory.used.get() <= BYTES);
        }
    }

    #[test]
    fn what_grows_at_the_end_stays_where_it_is_and_what_is_large_leaves_the_block_alone() {
        let memory = Memory::new();
        // SAFETY: every address is used with the layout that it was handed out for, and once.
        unsafe {
            let first = memory.alloc(layout(10, 1));
            assert_eq!(memory.realloc(first, layout(10, 1), 100), first);
            let second = memory.alloc(layout(8, 8));
            assert_eq!(memory.used.get(), 112);
            let moved = memory.realloc(first, layout(100, 1), 200);
            assert_ne!(moved, first);
            assert_eq!(memory.used.get(), 312);
            memory.dealloc(moved, layout(200, 1));
            memory.dealloc(second, layout(8, 8));
            assert_eq!(memory.used.get(), 104, "what was last is used again");
            let large = memory.alloc(layout(LARGEST + 1, 8));
            assert_eq!((memory.offset_of(large), memory.used.get()), (None, 104));
            memory.dealloc(large, layout(LARGEST + 1, 8));
        }
    }

    #[test]
    fn a_full_block_leaves_the_rest_to_the_heap() {
        let memory = Memory::new();
        // SAFETY: every address is used with the layout that it was handed out for, and once.
        unsafe {
            let all: Vec<*mut u8> = (0..100).map(|_| memory.alloc(layout(1_024, 16))).collect();
            assert_eq!(all.iter().filter(|address| memory.offset_of(**address).is_some()).count(), 64);
            for address in all {
                memory.dealloc(address, layout(1_024, 16));
            }
        }
    }
}
