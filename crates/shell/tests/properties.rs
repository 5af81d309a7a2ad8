//! What holds for every line, not only for those somebody thought of: covering never grows by itself, danger does not
//! hide, and work stays in proportion to the text.

use std::time::{Duration, Instant};

use countersign_shell::{MAX_TEXT, Options, Risk, Verdict, assess, verdict_of};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn risk(line: &str) -> Risk {
    assess(line, &Options::default()).risk
}

fn allowed(line: &str, allowlist: &[&str]) -> bool {
    verdict_of(line, allowlist, &Options::default()) == Verdict::Allow
}

/// Commands that are not safe by themselves, with an entry that covers exactly them.
const COVERED: &[(&str, &str)] = &[
    ("cargo build", "cargo build"),
    ("npm ci", "npm ci"),
    ("make test", "make test"),
    ("touch a", "touch *"),
    ("cargo test --all", "cargo test **"),
    ("mkdir -p out", "mkdir -p *"),
];

/// `PROPTEST_CASES` asks for more.
/// The same lines in every run; a longer run takes others.
fn config() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    let rng_seed = if asked.is_some() { RngSeed::Random } else { RngSeed::Fixed(7) };
    ProptestConfig { cases: asked.unwrap_or(400), failure_persistence: None, rng_seed, ..ProptestConfig::default() }
}

fn any_tail() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{1,24}",
        Just("rm -rf x".to_owned()),
        Just("$(id)".to_owned()),
        Just("> x".to_owned()),
        Just("`id`".to_owned()),
        Just("curl x | sh".to_owned()),
        Just("\nevil".to_owned()),
        Just("--config=x".to_owned()),
        Just("${x@P}".to_owned()),
        Just("& evil".to_owned()),
        Just("<(evil)".to_owned()),
        Just("a=b evil".to_owned()),
    ]
}

fn joint() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just(";"), Just(" && "), Just(" || "), Just(" | "), Just("\n"), Just(" & "), Just(" ; "), Just(" |& ")]
}

fn dangers() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("rm -rf /"),
        Just("rm -rf ~"),
        Just("git push --force"),
        Just("mkfs.ext4 /dev/sda1"),
        Just("chmod -R 777 /"),
        Just("shutdown -h now"),
        Just("dd if=/dev/zero of=/dev/sda"),
    ]
}

/// What runs its inner command whatever that is; quotes are put around it where it is text.
fn wrapped(inner: &str, how: usize) -> String {
    let quoted = format!("'{}'", inner.replace('\'', "'\\''"));
    match how % 24 {
        0 => format!("( {inner} )"),
        1 => format!("{{ {inner}; }}"),
        2 => format!("ls && {inner}"),
        3 => format!("{inner} ; ls"),
        4 => format!("bash -c {quoted}"),
        5 => format!("eval {quoted}"),
        6 => format!("if ls; then {inner}; fi"),
        7 => format!("for i in 1 2; do {inner}; done"),
        8 => format!("echo $( {inner} )"),
        9 => format!("x=$( {inner} )"),
        10 => format!("cat <({inner})"),
        11 => format!("f() {{ {inner}; }}; f"),
        12 => format!("trap {quoted} EXIT"),
        13 => format!("case a in *) {inner};; esac"),
        14 => format!("sh -c {quoted}"),
        15 => format!("! {inner}"),
        16 => format!("bash <<< {quoted}"),
        17 => format!("while ls; do {inner}; done"),
        18 => format!("echo \"${{x:-$( {inner} )}}\""),
        19 => format!("[[ -n $( {inner} ) ]]"),
        20 => format!("ssh h {quoted}"),
        21 => format!("ls\n{inner}"),
        22 => format!("{inner} 2>&1"),
        _ => format!("ls | {inner}"),
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_added_must_be_covered_too(at in 0..COVERED.len(), joint in joint(), tail in any_tail()) {
        let (line, entry) = COVERED[at];
        prop_assert!(allowed(line, &[entry]));
        let longer = format!("{line}{joint}{tail}");
        if allowed(&longer, &[entry]) {
            // Then what was added is nothing, or allowed by itself.
            let nothing = tail.trim_start().starts_with('#') || tail.trim().is_empty();
            prop_assert!(nothing || allowed(&tail, &[entry]), "{longer:?}");
        }
    }

    #[test]
    fn fewer_entries_never_allow_more(line in any_tail(), at in 0..COVERED.len(), keep in any::<u8>()) {
        let (command, _) = COVERED[at];
        let line = format!("{command}; {line}");
        let all: Vec<&str> = COVERED.iter().map(|(_, entry)| *entry).chain(["evil", "rm **", "curl *", "*"]).collect();
        let some: Vec<&str> =
            all.iter().enumerate().filter(|(index, _)| keep >> (index % 8) & 1 == 1).map(|(_, entry)| *entry).collect();
        prop_assert!(allowed(&line, &some) <= allowed(&line, &all), "{line:?} under {some:?}");
    }

    #[test]
    fn danger_does_not_hide(danger in dangers(), first in 0..24usize, second in 0..24usize, third in 0..24usize) {
        let mut line = danger.to_owned();
        for how in [first, second, third] {
            line = wrapped(&line, how);
            prop_assert_eq!(risk(&line), Risk::Dangerous, "{}", line);
            prop_assert!(!allowed(&line, &["ls", "echo **", "cat **", "bash", "ssh **"]), "{}", line);
        }
    }

    #[test]
    fn risk_never_falls_when_a_command_is_added(a in any_tail(), b in dangers(), joint in joint()) {
        // What goes before must be whole: no open quote, bracket or comment that swallows the rest, and no
        // separator that makes the next one a mistake.
        let whole = !assess(&a, &Options::default()).reasons.iter().any(|reason| {
            matches!(&*reason.code, "unparsable" | "split_token" | "empty")
        });
        if whole && !a.contains('#') && !a.trim_end().ends_with(['\\', '&', ';', '|']) {
            prop_assert_eq!(risk(&format!("{a}{joint}{b}")), Risk::Dangerous, "{}{}{}", a, joint, b);
        }
    }
}

/// Four times the text, about four times the work.
#[test]
fn work_is_in_proportion_to_the_text() {
    for (piece, close) in [
        ("ls; ", ""),
        ("a=b ", ""),
        ("echo $(ls) ", ""),
        ("x=$x$x; ", ""),
        ("{a,b}", ""),
        ("'a'\"b\"", ""),
        ("$(", ")"),
        ("cat <<E\na\nE\n", ""),
        ("for i in a; do ", " done;"),
        ("cd a; cat b; ", ""),
        ("a[$i]=$((i+1)); ", ""),
        ("$x ", ""),
        ("ls | ", "wc"),
    ] {
        let line = |size: usize| {
            let count = size / (piece.len() + close.len());
            format!("{}{}", piece.repeat(count), close.repeat(count))
        };
        let time = |size: usize| {
            let line = line(size);
            let spent = (0..3).map(|_| {
                let start = Instant::now();
                let _answer = assess(&line, &Options::default());
                start.elapsed()
            });
            spent.min().unwrap_or_default()
        };
        let (quarter, whole) = (time(MAX_TEXT / 4), time(MAX_TEXT - 64));
        // Four times is linear; sixteen would be quadratic. Between them is room for a busy machine.
        let most = quarter * 9 + Duration::from_millis(100);
        assert!(whole < most, "`{piece}`: {quarter:?} for a quarter of it, {whole:?} for all");
        assert!(whole < Duration::from_secs(2), "`{piece}`: {whole:?}");
    }
}

#[test]
fn a_mebibyte_is_refused_at_once_and_ten_thousand_constructs_are_answered() {
    let start = Instant::now();
    assert_eq!(risk(&"ls; ".repeat(1 << 18)), Risk::Dangerous);
    assert!(start.elapsed() < Duration::from_millis(200), "{:?}", start.elapsed());
    for open in ["$(", "(", "{ ", "`", "if ", "[[ ", "${x:-", "a=(", "<(", "((", "\"$("] {
        let start = Instant::now();
        assert_ne!(risk(&open.repeat(10_000)), Risk::Safe, "{open}");
        assert!(start.elapsed() < Duration::from_secs(1), "{open}: {:?}", start.elapsed());
    }
}
