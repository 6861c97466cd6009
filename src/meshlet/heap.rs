//! C++'s operators `new` and `delete`, for meshoptimizer in browsers: `wasm32-unknown-unknown` has
//! no C++ library. They take memory from Rust's heap.

#![expect(unsafe_code, reason = "C++ calls the functions by their names")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

/// Bytes in front of an allocation, which hold its size. As many as its alignment.
const HEAD: usize = 16;

/// The layout of an allocation with its head. The allocator refuses a size that is too large.
fn layout(size: usize) -> Layout {
    let whole = Layout::from_size_align(size.saturating_add(HEAD), HEAD);
    whole.unwrap_or_else(|_| handle_alloc_error(Layout::new::<[u8; HEAD]>()))
}

/// `operator new(unsigned long)`.
#[unsafe(no_mangle)]
extern "C" fn _Znwm(size: usize) -> *mut u8 {
    let layout = layout(size);
    // SAFETY: the layout has a size, and the head is within it and aligned.
    unsafe {
        let head = alloc(layout);
        if head.is_null() {
            handle_alloc_error(layout);
        }
        head.cast::<usize>().write(size);
        head.add(HEAD)
    }
}

/// `operator delete(void*)`.
///
/// # Safety
/// `allocation` is null or of [`_Znwm`], and is not used any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn _ZdlPv(allocation: *mut u8) {
    if allocation.is_null() {
        return;
    }
    // SAFETY: `_Znwm` wrote the head, and made the allocation with this layout.
    unsafe {
        let head = allocation.sub(HEAD);
        dealloc(head, layout(head.cast::<usize>().read()));
    }
}
