//! Short lines that stand for long ones, put together from statements that each may double what was built before:
//! memory (`-rss_limit_mb`, and what one request may allocate) and time (`-timeout`) stay in bounds.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign_shell::{MAX_TEXT, Options, assess};
use libfuzzer_sys::fuzz_target;

struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const PIECES: &[&str] = &[
    "a=$a$a;", "a+=$b;", "b=$a\\ $a;", "export b=$a$b;", "set -- $@ $@ $a;", "a=(\"${a[@]}\" $b \"${a[@]}\");", "a=${a//x/$b};",
    "b=${a:-$b}$b;", "for c in $a $b; do b=$c$b; done;", "eval \"$a;$b\";", "cat <<< $a$b;", "rm $a $b $@;", "a={$a,$b}{$a,$b};",
    "printf -v a %s $a$b;", "ls && a=$a$b || b=$b$b;", "(a=$a$a; rm $a);", "a=xxxxyyyy;", "b='ls;ls ';", "echo $((a)) ${b:$a};",
    "[[ $a -gt $b ]];", "sh -c \"$a$b\";", "a=`echo $a$a`;", "$a $b;", "b=${a^^}$b;", "while read a; do b=$a$b$b; done;",
    "f() { a=$a$a; f; };", "env $a $b $a;", "if ls; then ", "fi;", "for i in 1 2; do ", "done;", "$(", ")", "{ ", "};", "${a:-", "}",
];

fuzz_target!(|bytes: &[u8]| {
    let mut line = String::new();
    for byte in bytes {
        let piece = PIECES[usize::from(*byte) % PIECES.len()];
        if line.len() + piece.len() > MAX_TEXT {
            break;
        }
        line.push_str(piece);
    }
    let before = ALLOCATED.load(Ordering::Relaxed);
    let _assessment = assess(&line, &Options::default());
    let took = ALLOCATED.load(Ordering::Relaxed) - before;
    assert!(took <= (48 << 20) + 12_800 * line.len(), "{took} bytes for {}: {line:.200}", line.len());
});
