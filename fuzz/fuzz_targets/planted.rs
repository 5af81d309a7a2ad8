//! A dangerous command planted in a line that runs it, by wrappers, quoting and chains the input chooses: the line is
//! never safe, never allowed by an allowlist of harmless programs, and the planted program is among those reported.
#![no_main]

use countersign_shell::{Options, Risk, Verdict, Word, assess, verdict_of};
use libfuzzer_sys::fuzz_target;

const DANGERS: &[&str] = &[
    "rm -rf /", "rm -rf ~", "mkfs.ext4 /dev/sda1", "git push --force", "shutdown -h now", "chmod -R 777 /", "dd if=/dev/zero of=/dev/sda",
];
/// What surrounds a command without quoting it.
const AROUND: &[&str] = &[
    "@", "ls; @", "@; ls", "ls && @", "ls || @", "ls | @", "( @ )", "{ @; }", "if ls; then @; fi", "while @; do break; done",
    "for i in a b; do @; done", "case a in a) @;; esac", "! @", "time @", "echo $( @ )", "echo \"$( @ )\"", "x=$( @ )", "cat <( @ )", "f() { @; }; f",
    "[[ -n $( @ ) ]]", "echo ${x:-$( @ )}", "a=($( @ ))", "ls > >( @ )", "ls & @", "@ &", "coproc @", "ls\n@", "@ 2>&1", "(( $( @ ) ))", "echo $((1+$( @ )))",
    "case $( @ ) in a) ls;; esac", "echo {a,$( @ )}", "select i in a; do @; break; done", "until @; do break; done", "function f { @; }; f",
    "for ((i=0;i<1;i++)); do @; done", "cat <<E\n$( @ )\nE", "echo \"${x/a/$( @ )}\"", "ls # c\n@", "ls \\\n && @", "export x=$( @ )", "a[$( @ )]=1",
];
/// What takes a simple command as words.
const WRAPPERS: &[&str] = &[
    "env @", "nice @", "nohup @", "timeout 5 @", "sudo @", "xargs @", "stdbuf -oL @", "setsid @", "env A=1 @",
    "busybox @", "ionice -c3 @", "find . -exec @ \\;", "env -i @", "nice -n 5 @", "chroot / @",
];
/// The same, of this shell: nothing but text can be around them.
const BUILTINS: &[&str] =
    &["command @", "exec @", "builtin command @", "eval @", "command -p @", "LANG=C @", "exec -a n @", "command -- @"];
/// What takes shell text in quotes.
const CARRIERS: &[&str] =
    &["bash -c @", "sh -c @", "eval @", "trap @ EXIT", "bash <<< @", "env -S @", "su -c @", "ssh h @", "watch @", "bash -ec @", "script -c @ /dev/null"];

struct Choices<'b>(&'b [u8]);

impl Choices<'_> {
    fn next(&mut self, of: usize) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first) % of
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut choices = Choices(bytes);
    let danger = DANGERS[choices.next(DANGERS.len())];
    let program = danger.split(' ').next().unwrap_or(danger);
    let mut line = spelled(danger, choices.next(8));
    let mut simple = true;
    // Two layers of text inside text; beyond eight the engine says so and stops.
    let mut carried = 0;
    for _ in 0..choices.next(5) {
        match choices.next(4) {
            0 if simple => line = WRAPPERS[choices.next(WRAPPERS.len())].replace('@', &line),
            1 if carried < 2 && !line.contains('\n') => {
                carried += 1;
                let quoted = format!("'{}'", line.replace('\'', "'\\''"));
                let carrier = CARRIERS[choices.next(CARRIERS.len())];
                // `env -S` takes words, not shell text.
                if carrier.starts_with("env") && !simple {
                    continue;
                }
                line = carrier.replace('@', &quoted);
                simple = true;
            }
            2 if simple => {
                let builtin = BUILTINS[choices.next(BUILTINS.len())];
                // `eval` takes one layer of quotes off its words.
                if builtin.starts_with("eval") && line.contains(['\'', '"', '\\']) {
                    continue;
                }
                line = builtin.replace('@', &line);
                simple = false;
            }
            _ => {
                let around = AROUND[choices.next(AROUND.len())];
                // A heredoc's body must not hold the end of another one.
                if !(around.contains("<<E") && line.contains('\n')) {
                    line = around.replace('@', &line);
                    simple = false;
                }
            }
        }
    }
    let assessment = assess(&line, &Options::default());
    assert_ne!(assessment.risk, Risk::Safe, "{line}");
    let allowlist = ["ls", "echo *", "cat *", "env", "nice **", "bash", "timeout **", "true"];
    assert_ne!(verdict_of(&line, &allowlist, &Options::default()), Verdict::Allow, "{line}");
    let unknown = assessment.reasons.iter().any(|reason| {
        matches!(reason.code.as_str(), "unparsable" | "split_token" | "too_deep" | "dynamic_code" | "dynamic_program" | "uninspectable")
    });
    let reported = assessment.commands.iter().any(|simple| simple.argv.first().and_then(Word::known) == Some(program));
    assert!(unknown || reported, "{line}");
    assert!(unknown || assessment.risk == Risk::Dangerous, "{line}");
});

fn spelled(command: &str, how: usize) -> String {
    let (program, rest) = command.split_once(' ').unwrap_or((command, ""));
    let (head, tail) = program.split_at(1);
    match how {
        1 => format!("\\{program} {rest}"),
        2 => format!("'{program}' {rest}"),
        3 => format!("\"{program}\" {rest}"),
        4 => format!("{head}''{tail} {rest}"),
        5 => format!("$'{program}' {rest}"),
        6 => format!("{head}\"\"{tail}  {rest}"),
        _ => command.to_owned(),
    }
}
