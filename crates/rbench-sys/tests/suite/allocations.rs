//! Counts allocations by thread, for tests of their number and size.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static COUNTING: Counting = Counting;

struct Counting;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static HELD_BYTES: Cell<i64> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<i64> = const { Cell::new(0) };
}

fn count(bytes: i64) {
    if bytes > 0 {
        CALLS.set(CALLS.get() + 1);
    }
    HELD_BYTES.set(HELD_BYTES.get() + bytes);
    PEAK_BYTES.set(PEAK_BYTES.get().max(HELD_BYTES.get()));
}

// SAFETY: every call goes to the system's allocator unchanged; the counters are plain
// cells that neither allocate nor are dropped.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Number of allocations that `work` makes in this thread.
pub fn calls(work: impl FnOnce()) -> u64 {
    let before = CALLS.get();
    work();
    CALLS.get() - before
}

/// Peak number of bytes that `work` holds in this thread.
pub fn peak_bytes(work: impl FnOnce()) -> i64 {
    let before = HELD_BYTES.get();
    PEAK_BYTES.set(before);
    work();
    PEAK_BYTES.get() - before
}

#[test]
fn allocations_are_counted() {
    assert_eq!(calls(|| drop(std::hint::black_box(vec![0_u8; 5000]))), 1);
    let peak = peak_bytes(|| {
        for _ in 0..3 {
            drop(std::hint::black_box(vec![0_u8; 5000]));
        }
    });
    assert_eq!(peak, 5000);
    assert_eq!(calls(|| ()), 0);
}
