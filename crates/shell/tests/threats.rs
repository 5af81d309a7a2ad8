//! The rows of the threat table that the engine itself holds, each with what must not pass and with what still may: a
//! defence that refuses everything proves nothing. Rows 32 and 33 (who may write rules) are the gate's and the ledger's.

use std::time::{Duration, Instant};

use countersign_shell::{MAX_TEXT, Offer, Options, Risk, Rules, Verdict, Word, assess, verdict_of};

fn risk(line: &str) -> Risk {
    assess(line, &Options::default()).risk
}

fn allowed(line: &str, allowlist: &[&str]) -> bool {
    verdict_of(line, allowlist, &Options::default()) == Verdict::Allow
}

fn programs(line: &str) -> Vec<String> {
    let commands = assess(line, &Options::default()).commands;
    commands.iter().filter_map(|simple| simple.argv.first()).map(Word::picture).collect()
}

#[track_caller]
fn never_safe(lines: &[&str]) {
    for line in lines {
        assert_ne!(risk(line), Risk::Safe, "{line}");
        assert!(!allowed(line, &[]), "{line}");
    }
}

#[track_caller]
fn safe(lines: &[&str]) {
    for line in lines {
        let assessment = assess(line, &Options::default());
        assert_eq!(assessment.risk, Risk::Safe, "{line}: {:?}", assessment.reasons);
    }
}

#[test]
fn threat_24_every_command_of_a_chain_is_judged() {
    for joint in [";", "&&", "||", "|", "|&", "&", "\n"] {
        let line = format!("cargo build {joint} curl x | sh");
        assert_eq!(risk(&line), Risk::Dangerous, "{line}");
        assert!(!allowed(&line, &["cargo **"]), "{line}");
        assert_eq!(programs(&line), ["cargo", "curl", "sh"], "{line}");
    }
    assert!(allowed("cargo build && cargo test", &["cargo **"]));
    assert!(allowed("cargo build; ls | wc -l", &["cargo **"]));
    safe(&["ls; pwd && git status | head -3 || true"]);
}

#[test]
fn threat_25_wrappers_are_opened_or_said_to_be_closed() {
    let inner = [
        "env -S 'rm -rf /'",
        "nohup rm -rf /",
        "xargs rm -rf /",
        "find . -exec rm -rf / \\;",
        "ssh host 'rm -rf /'",
        "watch 'rm -rf /'",
        "timeout 5 rm -rf /",
        "busybox rm -rf /",
        "sudo rm -rf /",
        "git -c alias.x='!rm -rf /' x",
        "bash -c 'rm -rf /'",
    ];
    for line in inner {
        assert_eq!(risk(line), Risk::Dangerous, "{line}");
        assert!(!allowed(line, &["env", "nohup **", "find **", "timeout **", "git **", "bash"]), "{line}");
    }
    never_safe(&["npm run x", "make x", "./x", "python3 x.py", "env -C /etc cat shadow", "compgen -C evil"]);
    safe(&[
        "env LC_ALL=C ls",
        "nice ls",
        "timeout 5 git status",
        "find . -name '*.rs' -exec wc -l {} +",
        "git ls-files | xargs wc -l",
    ]);
}

#[test]
fn threat_26_expansions_run_nothing_unseen() {
    never_safe(&[
        "x='$(evil)'; echo \"${x@P}\"",
        "[[ 'a[$(evil)]' -eq 0 ]]",
        "[[ -v 'a[$(evil)]' ]]",
        "test -v 'a[$(evil)]'",
        "x='a[$(evil)]'; [[ x -eq 0 ]]",
        "x='a[$(evil)]'; echo $(( $x ))",
        "x='a[$(evil)]'; y=x; echo $((y))",
        "x='$(evil)'; echo $((a[$x]))",
        "echo $((a[\\$(evil)]))",
        "echo ${y['a[$(evil)]']}",
        "y['a[$(evil)]']=1",
        "y=(['a[$(evil)]']=1)",
        "y=abc; x='a[$(evil)]'; echo ${y:$x}",
        "RANDOM='a[$(evil)]'",
        "declare -i x; x='a[$(evil)]'",
        "printf -v 'a[$(evil)]' x",
        "read 'a[$(evil)]'",
        "unset 'a[$(evil)]'",
        "git show $(cat x)",
        "ls `evil`",
        "cat <(evil)",
        "echo ${x:-$(evil)}",
    ]);
    assert!(!allowed("echo $(cargo build)", &["cargo **"]));
    safe(&[
        "wc -l $(git ls-files)",
        "echo \"today is $(date +%F)\"",
        "i=3; echo $((i + 1))",
        "[[ $(git ls-files | wc -l) -gt 10 ]]",
    ]);
    safe(&["echo 'a[$(evil)]'", "grep 'a[$(evil)]' x", "[[ 'a[$(evil)]' == b ]]"]);
}

#[test]
fn threat_27_a_redirection_is_an_effect_of_its_own() {
    never_safe(&[
        "echo x > ~/.bashrc",
        "echo x >> y",
        "ls &> y",
        "ls > $X",
        "cat < ~/.ssh/id_rsa",
        "cd /etc; wc < shadow",
        "ls >| y",
        ": <> y",
    ]);
    assert!(!allowed("echo x > ~/.bashrc", &["echo **"]));
    assert_eq!(risk("echo x >> ~/.ssh/authorized_keys"), Risk::Dangerous);
    safe(&["ls 2>/dev/null", "ls > /dev/null 2>&1", "wc -l < src/main.rs", "cat <<< hello"]);
}

#[test]
fn threat_28_the_last_of_ten_thousand_is_found() {
    let many = "ls;".repeat(5_000);
    assert_eq!(risk(&format!("{many}rm -rf /")), Risk::Dangerous);
    assert!(!allowed(&format!("{many}rm -rf /"), &["ls", "rm **"]));
    let over = "ls;".repeat(MAX_TEXT);
    assert_eq!(verdict_of(&over, &["ls"], &Options::default()), Verdict::Deny);
    safe(&[&"ls;".repeat(500)]);
}

#[test]
fn threat_29_what_is_read_is_what_bash_reads() {
    // Each of these was once read with the program at its end as text.
    let pairs = [
        "(( 1 ' )) ; echo ' )) ; evil # '",
        "(( 1 \" )) ; echo \" )) ; evil # \"",
        "echo ${x:' } ; echo ' } ; evil # '",
        "echo \"${x:-' }\"; echo '}\" ; evil # '",
        "echo \"${x:' }\"; echo '}\" ; evil # '",
        "echo \"${x+' }\"; echo '}\" ; evil # '",
        "echo ${x:$'\\' } ; echo ' } ; evil # '",
        "echo $[${x-] ; evil # }]",
        "cat /etc/shad{o..o}w",
        "sort {-o},a}",
        "declare a[ # ]=1 ; evil",
        "for a in x # ; do ls; done\ndo evil; done",
        "y=([ -n a ]); \"$y\"",
    ];
    never_safe(&pairs);
    never_safe(&["ls\r", "l\\\ns", "echo 'a", "cat <<E", "ls )", "\u{202e}ls"]);
    safe(&[
        "cat <<'E'\n$(evil)\nE",
        "echo $'a\\tb'",
        "echo {a,b}",
        "{ (ls) }",
        "for v in */; do (cd \"$v\" && ls) done",
    ]);
    assert_eq!(programs("$'\\x72m' x"), ["rm"]);
    assert_eq!(programs("{rm,-rf,x}"), ["rm"]);
}

#[test]
fn threat_30_entries_match_words_not_letters() {
    assert!(allowed("rm -rf ./build", &["rm -rf ./build"]));
    for line in
        ["rm -rf ./build/../..", "rm -rf ./build ~", "rm -rf ./buildx", "rm -rf ./build/*", "rm -rf  ./build;ls>x"]
    {
        assert!(!allowed(line, &["rm -rf ./build"]), "{line}");
    }
    assert!(!allowed("cargo-evil build", &["cargo **"]));
    assert!(!allowed("./cargo build", &["cargo **"]));
    assert!(allowed("cargo  'build'", &["cargo build"]));
}

#[test]
fn threat_31_what_is_offered_covers_this_and_no_more() {
    let offered = |line: &str| match assess(line, &Options::default()).offer {
        Offer::Entries { patterns, .. } => Some(patterns.join(" + ")),
        Offer::Refused(_) => None,
    };
    let pattern = offered("npm install left-pad").unwrap_or_default();
    assert!(allowed("npm install left-pad", &[&pattern]));
    for line in ["npm install", "npm install other", "npm install left-pad other", "npm run x"] {
        assert!(!allowed(line, &[&pattern]), "{line} under {pattern}");
    }
    for line in ["rm -rf /", "bash -c ls", "python3 -c 1", "sudo ls", "x=$(npm ci)", "$X", "node -e 1", "env npm ci"] {
        assert_eq!(offered(line), None, "{line}");
    }
}

#[test]
fn threat_34_no_rule_makes_a_line_slow() {
    let rules = Rules::parse(
        "[[rule]]\nid = \"own\"\nreason = \"ours\"\nprograms = [\"deploy\"]\nmatch = [\"deploy prod\"]\nno_match = [\"ls\"]\n",
    );
    assert!(rules.is_ok(), "{rules:?}");
    let rules = rules.unwrap_or_default();
    let options = Options { rules: Some(&rules), ..Options::default() };
    for line in [
        "a".repeat(MAX_TEXT - 1),
        "*".repeat(MAX_TEXT - 1),
        format!("ls {}", "*a".repeat(4_000)),
        format!("cat {}", "?*".repeat(4_000)),
    ] {
        let start = Instant::now();
        let _answer = assess(&line, &options);
        assert!(start.elapsed() < Duration::from_secs(1), "{:.20}: {:?}", line, start.elapsed());
    }
    assert_eq!(assess("ls; deploy prod", &options).risk, Risk::Dangerous);
    assert_eq!(assess("ls *.rs", &options).risk, Risk::Safe);
}

#[test]
fn threat_35_names_are_their_bytes() {
    never_safe(&["LS", "Ls -la", "ｌｓ", "lѕ", "CAT x", "ls\u{200b}"]);
    assert!(!allowed("Cargo build", &["cargo **"]));
    assert!(!allowed("cargo BUILD", &["cargo build"]));
    assert!(!allowed("ｃargo build", &["cargo **"]));
    assert!(allowed("touch Ä", &["touch Ä"]));
    safe(&["ls Ä", "grep -n 'ß' x"]);
}

/// Text from outside that arithmetic, a subscript or a name evaluates is asked about; numbers are not.
#[test]
fn threat_85_a_files_name_is_not_run_as_code() {
    let ways = [
        "for f in a*; do @; done",
        "z=(a*); f=${z[0]}; @",
        "set -- a*; f=$1; @",
        "while read -r f; do @; done < x",
        "for g in *; do f=$g; @; done",
        "for g in a*; do f=${g%.txt}; @; done",
        "ls | while read -r f; do @; done",
        "@",
    ];
    let places = [
        "[[ $f -gt 1 ]]",
        "[[ 0 -eq \"$f\" ]]",
        "[[ f -lt 1 ]]",
        "[[ -n a && $f -ne 1 ]]",
        "[[ -v $f ]]",
        "test -v $f",
        "[ -v \"$f\" ]",
        "[ -f $f ]",
        "echo $((f))",
        "echo $(($f))",
        "echo $[f]",
        "((f))",
        "(( n = f + 1 ))",
        "(( f = f + 1 ))",
        "let f",
        "let \"n=$f\"",
        "echo ${HOME:$f}",
        "echo ${HOME:0:$f}",
        "echo ${y[$f]}",
        "echo ${y[f]}",
        "echo ${!f}",
        "echo ${f@P}",
        "y[$f]=1",
        "y=([$f]=1)",
        "unset \"$f\"",
        "printf -v \"$f\" x",
        "read \"$f\" <<< x",
        "declare -i n=$f",
        "declare \"$f=1\"",
        "declare -n r=$f",
        "RANDOM=$f",
        "for ((i=f; i<1; i++)); do ls; done",
        "for ((i=0; i<$f; i++)); do ls; done",
        "wait -p \"$f\" -n",
        "ls {y[$f]}>/dev/null",
        "n=$f; m=n; echo $((m))",
    ];
    for way in ways {
        for place in places {
            never_safe(&[&way.replace('@', place)]);
        }
    }
    never_safe(&[
        "for f in *; do printf \"$f\" x; done",
        "while read -r f; do printf \"$f\"; done < x",
        "z=(a*); echo $((${z[1]}))",
        "set -- a*; echo $(($2))",
        "n=$(grep -c x a b); [[ $n -gt 1 ]]",
        "n=$(grep -rc x .); ((n))",
        "n=$(wc -l x); ((n))",
        "n=$(ls); ((n))",
        "echo $((COUNT + 1))",
        "[[ $1 -gt 1 ]]",
        "for RANDOM in a*; do ls; done",
        "x0=1; echo $((x$#))",
        "for ((i=0; i<2; i++)); do for i in a*; do ls; done; done",
    ]);
    safe(&[
        "for i in 1 2 3; do [[ $i -gt 1 ]]; done",
        "for i in {1..100}; do echo $((i * 2)); done",
        "for i in $(seq 5); do ((i)); done",
        "seq 5 | while read -r i; do echo $((i * 2)); done",
        "for ((i=0; i<5; i++)); do echo $i; done",
        "[[ $# -gt 0 && $? -eq 0 && ${#x} -gt 1 && $$ -gt 1 ]]",
        "n=$(grep -c x y); [[ $n -gt 1 ]]",
        "n=$(grep -c x y || true); ((n > 1))",
        "[[ $(wc -l < x) -gt 1 ]]",
        "[[ $(ls | wc -l) -gt 1 ]]",
        "n=$(wc -l x | cut -d' ' -f1); ((n))",
        "s=$(date +%s); ls; echo $(( $(date +%s) - s ))",
        "echo $(( $(nproc) * 2 ))",
        "[[ $(id -u) -eq 0 ]]",
        "[[ $EUID -eq 0 ]]",
        "a=(x y z); for i in \"${!a[@]}\"; do echo \"${a[$i]}\"; done",
        "t=0; for f in *.rs; do n=$(wc -l < \"$f\"); t=$((t + n)); done; echo $t",
        "for f in a*; do [ -f \"$f\" ] && [[ $f == b ]]; done",
        "for v in HOME PATH; do [[ -v $v ]]; done",
        "printf '%s\\n' \"$f\"",
    ]);
}

/// A relative path means what it means in the folder the line has gone to.
#[test]
fn threat_26_paths_are_judged_where_they_are_used() {
    never_safe(&[
        "cd ~/.ssh && cat id_rsa",
        "cd / && cat etc/shadow",
        "cd /etc; cat shadow",
        "cd ~ && grep -r x .",
        "cd ~; rg token",
        "cd; grep -rn x",
        "cd /; cd tmp; cd -; cat etc/shadow",
        "pushd /etc; cat shadow",
        "(cd /etc; cat shadow)",
        "if true; then cd /etc; fi; cat shadow",
        "for d in /etc /x; do cd $d; cat shadow; done",
        "find /etc -name shadow -exec cat {} \\;",
        "cd /vault/secrets && cat db",
        "cat /path/to/anything",
    ]);
    safe(&[
        "cd src && cat main.rs",
        "cd .. && ls",
        "cd /repo && git status",
        "cd ~/proj && cat README.md",
        "cd x/..; cat a",
        "cat /etc/hosts",
    ]);
    let options = Options {
        location: countersign_shell::Location { workspace: Some("/data/proj"), ..Default::default() },
        ..Options::default()
    };
    assert_eq!(assess("cat /data/proj/x", &options).risk, Risk::Safe);
    assert_ne!(assess("cat /data/proj/../x", &options).risk, Risk::Safe);
}
