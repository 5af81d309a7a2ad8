//! Threat 87: a short line that stands for a very long one costs no more than its length allows. Memory is counted by
//! the allocator of this test alone; steps by the time of the thread, far above what a release build needs.
#![expect(unsafe_code, reason = "an allocator that counts can only be written so")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::{Duration, Instant};

use countersign_shell::{MAX_TEXT, Options, Risk, assess};
use proptest::prelude::*;

struct Counting;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static ALL: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    let _ = NOW.try_with(|now| {
        now.set(now.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now.get())));
    });
    if bytes > 0 {
        let _ = ALL.try_with(|all| all.set(all.get() + bytes));
    }
}

// SAFETY: every call goes on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the same pointer and layout as were given out.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What assessing takes at most at once, and in all.
fn memory(line: &str) -> (isize, isize) {
    let before = NOW.get();
    PEAK.set(before);
    ALL.set(0);
    let _ = std::hint::black_box(assess(line, &Options::default()));
    (PEAK.get() - before, ALL.get())
}

/// Some for any line, and more the longer it is: well below 50 MB for the longest.
const ANY: usize = 6 << 20;
const EACH: usize = 1600;

#[track_caller]
fn holds(line: &str) {
    let start = Instant::now();
    let (peak, all) = memory(line);
    let most = (ANY + EACH * line.len()) as isize;
    assert!(peak <= most, "{peak} bytes at once for {} bytes: {line:.120}", line.len());
    assert!(all <= 8 * most, "{all} bytes in all for {} bytes: {line:.120}", line.len());
    assert!(start.elapsed() < Duration::from_secs(2), "{:?} for {} bytes: {line:.120}", start.elapsed(), line.len());
}

fn doubled(first: &str, again: &str, times: usize, last: &str) -> String {
    format!("{first}{}{last}", again.repeat(times))
}

fn lines() -> Vec<String> {
    let mut all = Vec::new();
    for times in [10, 40, 400, 1000] {
        for last in
            ["", "rm $a $a $a", "eval $a", "echo $((a))", "cat <<< $a", "[[ $a -eq 1 ]]", "$a", "cp \"$a\" ~/$a"]
        {
            all.push(doubled("a=xxxxxxxx;", "a=$a$a;", times, last));
            all.push(doubled("a='x y ';", "a+=$a;", times, last));
            all.push(doubled("export a=xxxx;", "export a=$a$a;", times, last));
            all.push(doubled("declare a=xxxx;", "declare a=\"$a$a\";", times, last));
            all.push(doubled("a=xxxxxxxx;", "printf -v a %s $a$a;", times, last));
            all.push(doubled("a=xxxxxxxx;", "a=${a//x/$a};", times, last));
            all.push(doubled("a=xxxxxxxx;", "a=${b:-$a$a};", times, last));
            all.push(doubled("a=xxxxxxxx;", "a=${a^^}${a,,};", times, last));
            all.push(doubled("a=xxxxxxxx;", "for a in $a $a; do ls; done;", times.min(400), last));
            all.push(doubled("a=xxxxxxxx;", "ls && a=$a$a;", times, last));
            all.push(doubled("a=xxxxxxxx;", "read a <<< $a$a;", times, last));
            all.push(doubled("a='ls;';", "eval a=\\'$a$a\\';", times.min(600), last));
        }
        all.push(doubled("set -- a b;", "set -- $@ $@;", times, "rm $@"));
        all.push(doubled("set -- a b;", "set -- \"$*\" \"$*\";", times, "rm $@"));
        all.push(doubled("a=(x y);", "a=(\"${a[@]}\" \"${a[@]}\");", times.min(400), "rm \"${a[@]}\""));
        all.push(doubled("a=(x y);", "a+=(\"${a[@]}\");", times, "rm ${a[@]}"));
        all.push(doubled("a='b b';b='c c';c='d d';d='e e';", "a=$a\\ $a;b=a\\ a;", times, "echo $((a))"));
        all.push(format!("a={};{}", "x".repeat(4000), "rm $a $a $a;".repeat(times)));
        all.push(format!("a={};{}", "/x".repeat(2000), "rm -rf $a $a;".repeat(times)));
        all.push(format!("a={};{}", "x".repeat(4000), ": ${a:+b} ${a#y} ${a/q/r};".repeat(times.min(400))));
        all.push(format!("cat <<E\n{}\nE\n", "$a".repeat(times)));
    }
    for depth in [4, 8, 16, 30] {
        all.push(format!("echo {}", "{a,b}".repeat(depth)));
        all.push(format!("echo {}{}", "{a,b}".repeat(depth.min(8)), "x".repeat(12_000)));
        all.push(format!("{}id{}", "echo {a,b}$(".repeat(depth), ")".repeat(depth)));
        all.push(format!("{}x{}", "echo ${a:=".repeat(depth), "}".repeat(depth)));
        all.push(format!("x=abc; echo {}1{}", "${x:".repeat(depth), "}".repeat(depth)));
        all.push(format!("{}ls{}", "for i in a b; do ".repeat(depth), "; done".repeat(depth)));
    }
    let many = |unit: &str| unit.repeat((MAX_TEXT - 64) / unit.len());
    all.push(format!("{{ {} }} <<E\n{}\nE\n", "ls;".repeat(2000), "x".repeat(8000)));
    all.push(format!("f() {{ f; f; }}; {}", many("f;")));
    all.push(many("echo $((x + y));"));
    all.push(many("[[ $x -gt 1 ]];"));
    all.retain(|line| line.len() <= MAX_TEXT);
    all
}

#[test]
fn threat_87_short_lines_that_unfold_stay_small() {
    for line in lines() {
        holds(&line);
    }
}

#[test]
fn threat_87_what_unfolds_beyond_reading_is_dangerous_and_said_so() {
    for line in [
        doubled("a=xxxxxxxx;", "a=$a$a;", 40, "echo $a"),
        doubled("a=xxxxxxxx;", "export a=$a$a;", 40, "ls"),
        doubled("set -- a b;", "set -- $@ $@;", 40, "ls"),
        doubled("a=(x y);", "a=(\"${a[@]}\" \"${a[@]}\");", 40, "ls"),
        doubled("a=xx;", "a+=$a;", 60, "ls"),
    ] {
        let assessment = assess(&line, &Options::default());
        assert_eq!(assessment.risk, Risk::Dangerous, "{line:.60}");
        assert!(assessment.reasons.iter().any(|reason| reason.code == "unfolds_too_far"), "{:?}", assessment.reasons);
        assert!(!assessment.coverable && !assessment.parsed);
    }
    // What anybody could read is read.
    for line in ["a=x; a=$a$a; a=$a$a; echo $a", "echo {a,b}{c,d}", "for i in {1..100}; do echo $i; done"] {
        assert_eq!(assess(line, &Options::default()).risk, Risk::Safe, "{line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Statements that each may double what the ones before them built.
    #[test]
    fn threat_87_doubling_is_paid_for(pieces in proptest::collection::vec(prop_oneof![
        Just("a=$a$a;"), Just("a+=$b;"), Just("b=$a\\ $a;"), Just("export b=$a$b;"), Just("set -- $@ $@ $a;"),
        Just("a=(\"${a[@]}\" $b \"${a[@]}\");"), Just("a=${a//x/$b};"), Just("b=${a:-$b}$b;"), Just("for c in $a $b; do b=$c$b; done;"),
        Just("eval \"$a;$b\";"), Just("cat <<< $a$b;"), Just("rm $a $b $@;"), Just("a={$a,$b}{$a,$b};"), Just("b=({$b,x}{$b,y});"),
        Just("printf -v a %s $a$b;"), Just("ls && a=$a$b || b=$b$b;"), Just("(a=$a$a; rm $a);"), Just("a=xxxxyyyy;"), Just("b='ls;ls ';"),
        Just("echo $((a)) ${b:$a};"), Just("[[ $a -gt $b ]];"), Just("sh -c \"$a$b\";"), Just("a=`echo $a$a`;"), Just("$a $b;"), Just("b=${a^^}$b;"),
        Just("while read a; do b=$a$b$b; done;"), Just("f() { a=$a$a; f; };"), Just("a=$(echo xxxxxxxxxxxx);"), Just("env $a $b $a;"),
    ], 1..600)) {
        let mut line: String = pieces.concat();
        line.truncate(MAX_TEXT);
        holds(&line);
    }
}
