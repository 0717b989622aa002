//! The most memory that a simulation ever has.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator, counting what is allocated and the most that ever was.
pub(super) struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

impl Counting {
    /// Forgets the peak until now; returns what is allocated.
    pub(super) fn restart_peak() -> usize {
        let allocated = ALLOCATED.load(Relaxed);
        PEAK.store(allocated, Relaxed);
        allocated
    }

    pub(super) fn peak() -> usize {
        PEAK.load(Relaxed)
    }

    fn more(bytes: usize) {
        PEAK.fetch_max(ALLOCATED.fetch_add(bytes, Relaxed) + bytes, Relaxed);
    }

    fn less(bytes: usize) {
        ALLOCATED.fetch_sub(bytes, Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator as it came; counting touches no memory of
// theirs and does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Counting::more(layout.size());
        // SAFETY: the caller's promises are those the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Counting::more(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        Counting::less(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // For a moment both may be there.
        Counting::more(size);
        Counting::less(layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, size) }
    }
}
