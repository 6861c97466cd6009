//! The system's allocator, which tells what is asked of it.
#![allow(
    unsafe_code,
    reason = "an allocator is unsafe by its trait. Each call goes to the system's allocator as it comes, so what holds \
              for that one holds here"
)]

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator.
pub struct Watched {
    /// Told of each number of bytes that is asked for.
    pub asked: fn(usize),
    /// Told of each number of bytes that is given back.
    pub freed: fn(usize),
}

// SAFETY: each method has the contract of the system's, and does nothing else with memory.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        (self.asked)(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        (self.asked)(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        (self.freed)(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        (self.asked)(size);
        (self.freed)(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.realloc(memory, layout, size) }
    }
}
