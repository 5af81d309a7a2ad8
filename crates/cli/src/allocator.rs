//! Which allocator serves this process: mimalloc for a gate, the system's for everything else.
//!
//! A gate makes requests on one thread and ends them on another, where the system's allocator spends a tenth of the
//! time. But mimalloc readies two megabytes before it gives the first byte, half a millisecond of every short command,
//! and agents run one of those before each thing they do.

#![allow(unsafe_code, reason = "the trait of an allocator is unsafe; each call goes on to one that upholds it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU8, Ordering};

use mimalloc::MiMalloc;
use rustix::fs::{Mode, OFlags};

#[global_allocator]
static ALLOCATOR: ByVerb = ByVerb;

/// Asked once and never changed, so that memory goes back where it came from.
static CHOICE: AtomicU8 = AtomicU8::new(UNASKED);
const UNASKED: u8 = 0;
const SYSTEMS: u8 = 1;
const MIMALLOC: u8 = 2;

struct ByVerb;

impl ByVerb {
    fn is_mimalloc() -> bool {
        match CHOICE.load(Ordering::Relaxed) {
            UNASKED => Self::choose(),
            choice => choice == MIMALLOC,
        }
    }

    #[cold]
    fn choose() -> bool {
        let choice = if serves() { MIMALLOC } else { SYSTEMS };
        match CHOICE.compare_exchange(UNASKED, choice, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => choice == MIMALLOC,
            Err(earlier) => earlier == MIMALLOC,
        }
    }
}

// SAFETY: every process uses one of two sound allocators, the same for all of its life.
unsafe impl GlobalAlloc for ByVerb {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if Self::is_mimalloc() {
            // SAFETY: the caller's promise, passed on.
            unsafe { MiMalloc.alloc(layout) }
        } else {
            // SAFETY: the caller's promise, passed on.
            unsafe { System.alloc(layout) }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if Self::is_mimalloc() {
            // SAFETY: the caller's promise, passed on.
            unsafe { MiMalloc.alloc_zeroed(layout) }
        } else {
            // SAFETY: the caller's promise, passed on.
            unsafe { System.alloc_zeroed(layout) }
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if Self::is_mimalloc() {
            // SAFETY: the choice has not changed since the memory was given.
            unsafe { MiMalloc.dealloc(memory, layout) }
        } else {
            // SAFETY: the choice has not changed since the memory was given.
            unsafe { System.dealloc(memory, layout) }
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if Self::is_mimalloc() {
            // SAFETY: the choice has not changed since the memory was given.
            unsafe { MiMalloc.realloc(memory, layout, size) }
        } else {
            // SAFETY: the choice has not changed since the memory was given.
            unsafe { System.realloc(memory, layout, size) }
        }
    }
}

/// Whether one of the first words is `serve`. Asked before anything can be allocated, so not of the standard library;
/// a wrong guess costs speed and nothing else.
fn serves() -> bool {
    let mut words = [0; 1024];
    let Ok(file) = rustix::fs::open(c"/proc/self/cmdline", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else {
        return false;
    };
    let read = rustix::io::read(&file, &mut words).unwrap_or(0);
    words.get(..read).unwrap_or_default().split(|byte| *byte == 0).any(|word| word == b"serve")
}
