//! An allocator that counts.
#![allow(
    unsafe_code,
    reason = "an allocator is unsafe by its trait. Each call goes to the system's allocator as it comes, so what holds \
              for that one holds here"
)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes in use now, and at most since the last [`measure`].
static NOW: AtomicUsize = AtomicUsize::new(0);
static MAX: AtomicUsize = AtomicUsize::new(0);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn grow(bytes: usize) {
    let now = NOW.fetch_add(bytes, Relaxed) + bytes;
    MAX.fetch_max(now, Relaxed);
}

// SAFETY: each method has the contract of the system's, and does nothing else with memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grow(size);
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// While it is held, nothing else is measured: for tests that need much memory themselves.
pub fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(|error| error.into_inner())
}

/// What a function returns, and how many bytes it needed at once, with what other threads of this
/// program needed meanwhile.
pub fn measure<T>(act: impl FnOnce() -> T) -> (T, usize) {
    let _guard = alone();
    let before = NOW.load(Relaxed);
    MAX.store(before, Relaxed);
    let result = act();
    (result, MAX.load(Relaxed).saturating_sub(before))
}

#[test]
fn what_is_asked_for_is_counted() {
    let (len, max) = measure(|| vec![1u8; 100 << 20].len());
    assert!(len == 100 << 20 && max >= len, "{max}");
    // Not touched, and asked for all the same.
    let (capacity, max) = measure(|| Vec::<u64>::with_capacity(25 << 20).capacity());
    assert!(capacity == 25 << 20 && max >= 200 << 20, "{max}");
}
