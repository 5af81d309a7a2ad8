//! What a user's tables of programs may say, what is refused, and that no table makes a danger safe.

use super::*;
use crate::assess::Assessment;

const TOOL: &str = r#"
[set.output]
long = "json format="
[set.output.deny]
"--output" = "writes_files: writes the answer to a file"

[[program]]
names = ["deployctl", "dctl"]
summary = "asks about deployments"
style = "gnu"
short = "v c:"
long = "verbose"
paths = "-c --config"
deny = { "--exec" = "runs_programs: runs a hook" }
deny_sub = { "push release+undo" = "network: changes what customers see" }
match = ["deployctl status", "dctl -v log -n 5 web | head -3", "deployctl -c ./x.toml diff a.yml"]
no_match = ["deployctl push", "deployctl --exec x status", "deployctl diff --output=x a.yml"]

[[program.sub]]
names = ["status", "release list"]
use = ["output"]
operands = "words"

[[program.sub]]
names = ["log"]
numbers = "-n"
operands = "text"
max = 1
excess = "writes_files: the second is written"

[[program.sub]]
names = ["diff"]
use = ["output"]
operands = "paths"
"#;

fn rules(text: &str) -> Rules {
    Rules::parse_all(&[("own.toml", text)]).unwrap()
}

fn judged(text: &str, rules: &Rules) -> Assessment {
    assess(text, &Options { rules: Some(rules), ..Options::default() })
}

fn codes(text: &str, rules: &Rules) -> Vec<String> {
    judged(text, rules).reasons.into_iter().map(|reason| reason.code.into_owned()).collect()
}

#[test]
fn what_a_table_lists_is_safe_and_the_rest_asks() {
    let rules = rules(TOOL);
    for text in [
        "deployctl status",
        "/usr/local/bin/deployctl status --json web",
        "dctl release list --format=wide",
        "cd src && deployctl diff a.yml b.yml | wc -l",
        "deployctl --verb log -n5",
        "LC_ALL=C deployctl status",
        "echo \"$(date +%F)\"; timeout 5 deployctl status",
        "for f in a b; do deployctl diff \"$f.yml\"; done",
    ] {
        assert_eq!(codes(text, &rules), Vec::<String>::new(), "{text}");
        assert_ne!(assess(text, &Options::default()).risk, Risk::Safe, "{text}");
    }
    for (text, code) in [
        ("deployctl", "unknown_subcommand"),
        ("deployctl frob", "unknown_subcommand"),
        ("deployctl push", "network"),
        ("deployctl release undo 5", "network"),
        ("deployctl --exec x status", "runs_programs"),
        ("deployctl --ex x status", "runs_programs"),
        ("deployctl status --nope", "unknown_option"),
        ("deployctl status --output=x", "writes_files"),
        ("deployctl log -n x", "unknown_option"),
        ("deployctl log a b", "writes_files"),
        ("./deployctl status", "unknown_program"),
        ("deployctl $x", "dynamic_option"),
    ] {
        assert!(codes(text, &rules).iter().any(|given| given == code), "{text}: {:?}", codes(text, &rules));
    }
    let push = judged("deployctl push", &rules);
    assert_eq!(push.reasons[0].message, "changes what customers see");
    assert!(push.flags.network);
}

#[test]
fn every_other_check_is_still_in_force() {
    let rules = rules(TOOL);
    for text in [
        "deployctl diff .env",
        "deployctl diff ~/.ssh/id_rsa",
        "deployctl status ~/.aws/credentials",
        "deployctl -c ~/.ssh/id_ed25519 status",
        "deployctl diff < ~/.ssh/id_rsa",
        "cd ~/.ssh && deployctl diff id_rsa",
        "deployctl status > x",
        "deployctl status &",
        "FOO=1 deployctl status",
        "echo \"$GITHUB_TOKEN\" | deployctl status",
        "deployctl status \"$AWS_SECRET_ACCESS_KEY\"",
        "deployctl diff $(cat list)",
        "deployctl() { rm x; }; deployctl status",
        "sudo deployctl status",
        "ssh host deployctl status",
        "sh -c 'deployctl push'",
        "find . -exec deployctl push {} ;",
    ] {
        assert_ne!(judged(text, &rules).risk, Risk::Safe, "{text}");
    }
    for text in [
        "deployctl status | sh",
        "deployctl status | sudo bash",
        "eval \"$(deployctl status)\"",
        "LD_PRELOAD=/tmp/x.so deployctl status",
        "deployctl status; rm -rf /",
        "deployctl log \"$(rm -rf ~)\"",
        "deployctl status > ~/.bashrc",
    ] {
        assert_eq!(judged(text, &rules).risk, Risk::Dangerous, "{text}");
    }
    let environment = [("LD_PRELOAD", "/tmp/x.so")];
    let options = Options { rules: Some(&rules), environment: &environment, ..Options::default() };
    assert_eq!(assess("deployctl status", &options).risk, Risk::Dangerous);
}

/// Tables that call every program safe whatever it is told, as far as a table may speak of it at all.
fn blind(names: impl Iterator<Item = String>) -> Rules {
    let mut compiler = safe::Compiler::default();
    for name in names {
        let text = format!(
            "[[program]]\nnames = [\"{name}\"]\nsummary = \"x\"\nstyle = \"raw\"\noperands = \"text\"\nmatch = [\"x\"]\n"
        );
        let Ok(read) = Read::parse("", &text) else { continue };
        if safe::check_own(&read.programs).is_ok() {
            // A name that was there before is fine as it is.
            let _ = compiler.add(&read.programs);
        }
    }
    Rules { programs: Some(compiler.finish()), ..Rules::default() }
}

#[test]
fn no_table_makes_a_danger_safe() {
    let mut examples: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/rules/dangers")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let file = danger::File::read(&text, DeTable::parse(&text).unwrap()).unwrap();
        examples.extend(file.rules.into_iter().flat_map(|rule| rule.matches).map(Spanned::into_inner));
    }
    assert!(examples.len() > 500);
    let programs = |text: &String| -> Vec<String> {
        let commands = assess(text, &Options::default()).commands;
        let name = |simple: crate::Simple| Some(base_name(simple.argv.first()?.known()?).to_owned());
        commands.into_iter().filter_map(name).collect()
    };
    let rules = blind(examples.iter().flat_map(programs));
    assert!(rules.programs().unwrap().programs.len() > 50, "{}", rules.programs().unwrap().programs.len());
    for text in &examples {
        assert_eq!(judged(text, &rules).risk, assess(text, &Options::default()).risk, "{text}");
        assert_eq!(judged(text, &rules).risk, Risk::Dangerous, "{text}");
    }
}

#[test]
fn what_is_known_to_change_things_is_not_made_a_reader() {
    let names = ["rm", "mv", "cp", "touch", "scp", "rsync"];
    let rules = blind(names.iter().map(|name| (*name).to_owned()));
    for name in names {
        assert_ne!(judged(&format!("{name} x y"), &rules).risk, Risk::Safe, "{name}");
    }
}

#[test]
fn a_table_goes_on_where_only_the_version_is_built_in() {
    let rules = rules(
        r#"
[[program]]
names = ["brew"]
summary = "packages"
match = ["brew info jq", "brew deps --tree node"]
no_match = ["brew install jq", "brew info jq > x"]
[[program.sub]]
names = ["info", "deps"]
long = "tree json="
operands = "text"
"#,
    );
    for text in ["brew info jq", "brew deps --tree node", "brew --version", "brew list"] {
        assert_eq!(judged(text, &rules).risk, Risk::Safe, "{text}");
    }
    for text in ["brew install jq", "brew info --nope", "brew", "sudo brew info jq"] {
        assert_ne!(judged(text, &rules).risk, Risk::Safe, "{text}");
    }
    assert_ne!(assess("brew info jq", &Options::default()).risk, Risk::Safe);
}

#[test]
fn some_programs_are_not_for_a_table_to_speak_of() {
    let refused = [
        ("npx", "runs"),
        ("cmake", "runs"),
        ("claude", "runs"),
        ("git", "built in"),
        ("ls", "built in"),
        ("LS", "built in"),
        ("bash", "it is given"),
        ("zsh", "it is given"),
        ("Bash.EXE", "it is given"),
        ("python3.12", "it is given"),
        ("perl", "it is given"),
        ("node22", "it is given"),
        ("irb", "it is given"),
        ("vim", "it is given"),
        ("make", "it is given"),
        ("sudo", "runs"),
        ("doas", "runs"),
        ("su", "runs"),
        ("pkexec", "runs"),
        ("dzdo", "other rights"),
        ("sudoedit", "other rights"),
        ("env", "runs"),
        ("xargs", "runs"),
        ("timeout", "runs"),
        ("ssh", "runs"),
        ("busybox", "runs"),
        ("strace", "runs"),
        ("crontab", "runs"),
        ("countersign", "the gate itself"),
        ("countersign-0.2", "the gate itself"),
        ("Countersign.exe", "the gate itself"),
        ("source", ""),
        ("alias", ""),
        ("export", ""),
        ("shopt", "part of the shell"),
        ("", "no name"),
        ("./x", "no name"),
        ("/usr/bin/x", "no name"),
        ("a b", "no name"),
        ("x*", "no name"),
        ("-x", "no name"),
        (".", "no name"),
        ("dépl", "no name"),
    ];
    for (name, why) in refused {
        let text = format!(
            "\n[[program]]\nsummary = \"x\"\nnames = [\n  \"mytool\",\n  \"{name}\",\n]\nmatch = [\"mytool\"]\n"
        );
        let error = Rules::parse_all(&[("a.toml", &text)]).unwrap_err();
        assert!(error.line == 6 && error.message.contains(why), "{name}: {error}");
        assert!(error.message.starts_with(&format!("program `{name}` ")), "{error}");
    }
}

#[test]
fn a_program_that_runs_others_by_a_subcommand_is_described_without_it() {
    let pixi = |subs: &str| {
        let text = format!("[[program]]\nnames = [\"pixi\"]\nsummary = \"x\"\n{subs}\nmatch = [\"pixi show\"]\n");
        Rules::parse_all(&[("a.toml", &text)]).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(pixi("sub = [{ names = [\"show\"], operands = \"text\" }]"), Ok(()));
    assert!(pixi("operands = \"text\"").unwrap_err().contains("one by one"));
    for sub in ["run", "r*", "*", "run detached"] {
        let error = pixi(&format!("sub = [{{ names = [\"show\"] }}, {{ names = [\"{sub}\"] }}]")).unwrap_err();
        assert!(error.contains("would speak for it"), "{sub}: {error}");
    }
}

#[test]
fn a_broken_table_says_where() {
    let head = "[[program]]\nnames = [\"mytool\"]\nsummary = \"x\"\nmatch = [\"mytool\"]\n";
    for (more, line, message) in [
        ("shrt = \"v\"", 5, "unknown field `shrt`, expected one of `names`"),
        ("style = \"bsd\"", 5, "unknown variant `bsd`, expected one of `plain`"),
        ("operands = \"files\"", 5, "unknown variant `files`"),
        ("operands = 3", 5, "wanted string"),
        ("max = 300", 5, "invalid value"),
        ("check = \"git\"", 5, "unknown variant `git`"),
        ("long = \"all\\n--json\"", 5, "`--json`: names in `long` are written without dashes"),
        ("numbers = \"lines\"", 5, "`lines` is no option; write it with its dashes"),
        ("use = [\n  \"no\",\n]", 6, "no set is called `no`; write it as `[set.no]` in this file"),
        ("needs = [\"-l\"]", 5, "a list of options and a reason"),
        ("deny = { \"-o\" = \"writes: x\" }", 5, "`writes: x` is not `code: reason`, with a code of writes_files, "),
        ("deny = { \"-o\" = \"writes a file\" }", 5, "is not `code: reason`"),
        ("[[program.sub]]\noperands = \"text\"", 5, "a subcommand needs `names`"),
        ("[[program.sub]]\nnames = [\"a\"]\nmatch = [\"mytool a\"]", 6, "write those of its program"),
        ("[[program.sub]]\nnames = [\" \"]", 6, "a subcommand without a name"),
        ("takes = [\"-x\"]", 5, "unknown field `takes`"),
        ("[set.a]\nuse = [\"a\"]", 5, "set `a` may have `short`, `long`"),
        ("[environment]\nsafe = [\"LD_PRELOAD\"]", 5, "unknown field `environment`"),
        (
            "[[program]]\nnames = [\"mytool\"]\nsummary = \"x\"\nmatch = [\"mytool\"]",
            6,
            "there twice; describe it once",
        ),
        ("[[program]]\nnames = [\"other\"]\nmatch = [\"other\"]", 6, "needs a `summary`"),
        ("[[program]]\nsummary = \"x\"", 5, "a program needs `names`"),
        ("[[program]]\nnames = [\"other\"]\nsummary = \"x\"", 6, "needs at least one `match` example"),
        ("min = = 5", 5, ""),
    ] {
        let error = Rules::parse_all(&[("a.toml", &format!("{head}{more}\n"))]).unwrap_err();
        assert_eq!((error.file.as_str(), error.line), ("a.toml", line), "{more}: {error}");
        assert!(error.message.contains(message), "{more}: {error}");
    }
}

#[test]
fn examples_of_programs_are_run_with_all_files_in_force() {
    let program = |name: &str, rest: &str| {
        format!("[[program]]\nnames = [\"{name}\"]\nsummary = \"x\"\noperands = \"text\"\n{rest}\n")
    };
    let first = program("one", "match = [\"one a | two b\"]\nno_match = [\"one a > x\"]");
    let second = program("two", "match = [\"two b\"]");
    assert!(Rules::parse_all(&[("a.toml", &first), ("b.toml", &second)]).is_ok());
    let danger =
        "[[rule]]\nid = \"two_bad\"\nreason = \"x\"\nprograms = [\"two\"]\noperand = [\"is:b\"]\nmatch = [\"two b\"]\n";
    for (files, expected) in [
        (
            vec![first.as_str()],
            "0.toml:5: program `one`: its example `one a | two b` is not safe: `two` is not a known read-only program \
             (unknown_program)",
        ),
        (vec![&second, &first, danger], "0.toml:5: program `two`: its example `two b` is not safe: x (two_bad)"),
        (
            vec![&program("one", "match = [\"one\"]\nno_match = [\n\"one > x\",\n\"one b\"]")],
            "0.toml:8: program `one`: `one b` is safe, which it should not be",
        ),
        (vec![&program("one", "match = [\"ls\"]")], "0.toml:5: program `one`: its example `ls` does not start it"),
        (vec![&second, &second], "1.toml:2: program `two` is there twice; describe it once"),
        (
            vec![&program("touch", "match = [\"touch x\"]")],
            "0.toml:5: program `touch`: its example `touch x` is not safe: known to do more than read, whatever a \
             table of one's own says (more_than_reads)",
        ),
    ] {
        let names: Vec<String> = (0..files.len()).map(|at| format!("{at}.toml")).collect();
        let files: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(files).collect();
        assert_eq!(Rules::parse_all(&files).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_description_for_danger_rules_stays_one_and_hides_nothing_built_in() {
    let rule = "[[rule]]\nid = \"deploy_prod\"\nreason = \"x\"\nprograms = [\"deploy\"]\noperand = [\"is:prod\"]\n\
                match = [\"deploy -e eu prod\"]\nno_match = [\"deploy -e prod\"]\n";
    let described = format!("{rule}[[program]]\nnames = [\"deploy\"]\ntakes = [\"-e\"]\n");
    let rules = Rules::parse(&described).unwrap();
    assert!(rules.programs().is_none());
    assert_ne!(judged("deploy -e eu", &rules).risk, Risk::Safe);
    // Both at once: how dangers read its words, and what of it only reads.
    let both = format!(
        "{described}[[program]]\nnames = [\"deploy\"]\nsummary = \"x\"\nshort = \"e:\"\noperands = \"text\"\nmatch = [\"deploy -e prod\"]\n"
    );
    let rules = Rules::parse(&both).unwrap();
    assert_eq!(judged("deploy -e eu test", &rules).risk, Risk::Safe);
    assert_eq!(judged("deploy -e eu prod", &rules).risk, Risk::Dangerous);
    for name in ["rm", "sh", "cat", "sudo", "openclaw", "countersign", "python3"] {
        let text = format!("\n[[program]]\nnames = [\"{name}\"]\noperands = 0\n");
        let error = Rules::parse(&text).unwrap_err();
        assert!(error.line == 2 && error.message.contains("is built in"), "{error}");
    }
}

#[test]
fn what_the_manual_shows_is_read() {
    let manual = include_str!("../../../../docs/safety.md");
    let blocks = manual.split("```toml\n").skip(1).filter_map(|block| block.split("```").next());
    let files: Vec<&str> = blocks.filter(|block| block.starts_with("[[")).collect();
    assert_eq!(files.len(), 2);
    let rules = rules(&files.join("\n"));
    assert_eq!(judged("deployctl status web", &rules).risk, Risk::Safe);
    assert_eq!(judged("deployctl push", &rules).risk, Risk::Dangerous);
}

#[test]
fn sizes_are_bounded() {
    let words: String = (0..5_000).map(|n| format!("option{n} ")).collect();
    let mut text = format!("[set.all]\nlong = \"{words}\"\n");
    for n in 0..30 {
        text += &format!(
            "[[program]]\nnames = [\"tool-{n}x\"]\nsummary = \"x\"\nuse = [\"all\"]\nmatch = [\"tool-{n}x\"]\n"
        );
    }
    let error = Rules::parse(&text).unwrap_err();
    assert!(error.message.contains("options in all") && error.line > 3, "{error}");
    let names: String = (0..6_000).map(|n| format!("\"tool-{n}x\", ")).collect();
    let many = format!("[[program]]\nnames = [{names}]\nsummary = \"x\"\nmatch = [\"tool-1x\"]\n");
    assert!(Rules::parse(&many).unwrap_err().message.contains("programs in all"));
    let examples = "\"one\", ".repeat(10_001);
    let many = format!("[[program]]\nnames = [\"one\"]\nsummary = \"x\"\nmatch = [{examples}]\n");
    assert!(Rules::parse(&many).unwrap_err().message.contains("more than 10000 examples"));
    let subs: String = (0..21_000).map(|n| format!("\"s{n}\", ")).collect();
    let many = format!(
        "[[program]]\nnames = [\"one\"]\nsummary = \"x\"\nmatch = [\"one s1\"]\n[[program.sub]]\nnames = [{subs}]\n"
    );
    assert!(Rules::parse(&many).unwrap_err().message.contains("subcommands in all"));
}
