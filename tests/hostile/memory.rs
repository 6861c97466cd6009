//! An allocator that counts.

use crate::allocator::Watched;
use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

#[global_allocator]
static ALLOCATOR: Watched = Watched {
    asked: grow,
    freed: shrink,
};

/// Bytes in use now, and at most since the last [`measure`].
static NOW: AtomicUsize = AtomicUsize::new(0);
static MAX: AtomicUsize = AtomicUsize::new(0);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn grow(bytes: usize) {
    let now = NOW.fetch_add(bytes, Relaxed) + bytes;
    MAX.fetch_max(now, Relaxed);
}

fn shrink(bytes: usize) {
    NOW.fetch_sub(bytes, Relaxed);
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
