//! What bash would start, for lines that are hard to read.

use super::Walk;
use crate::word::Word;

fn walk(line: &str) -> Walk {
    super::walk(line, crate::Location::default(), None)
}

fn commands(line: &str) -> Vec<String> {
    walk(line)
        .simples
        .iter()
        .map(|simple| simple.argv.iter().map(Word::picture).collect::<Vec<_>>().join(" "))
        .collect()
}

#[track_caller]
fn runs(line: &str, expected: &[&str]) {
    let found = commands(line);
    for command in expected {
        assert!(found.iter().any(|one| one == command), "`{line}` runs `{command}`; found {found:?}");
    }
}

#[test]
fn words_are_what_bash_makes_of_them() {
    for line in [
        "rm -rf /",
        "r''m -rf /",
        r"\rm -rf /",
        r#""rm" -rf '/'"#,
        "$'\\x72m' -rf /",
        "{rm,-rf,/}",
        "rm${IFS}-rf${IFS}/",
        "a=r; b=m; $a$b -rf /",
        "X='rm -rf /'; $X",
        "a=(rm -rf /); \"${a[@]}\"",
        "set -- rm -rf /; \"$@\"",
        "rm \\\n -rf /",
        "x=rmm; ${x%m} -rf /",
        "x=xrm; ${x#x} -rf /",
        "x=axrm; ${x:2} -rf /",
        "x=rX; ${x/X/m} -rf /",
        "printf -v x %s rm; $x -rf /",
        "declare x=rm; $x -rf /",
        "for c in rm; do $c -rf /; done",
        "for c in ls rm; do $c -rf /; done",
        "x=r; x+=m; $x -rf /",
        "${x:-rm} -rf /",
        "true && x=rm; $x -rf /",
        "rm -rf /tmp/..; rm -rf /",
        "$(echo rm) -rf /",
        "$(printf r%s m) -rf /",
        "`echo rm -rf /`",
        "rm $(echo -rf /)",
    ] {
        runs(line, &["rm -rf /"]);
    }
}

#[test]
fn commands_are_found_wherever_they_hide() {
    for line in [
        "echo $(id)",
        "echo `id`",
        "echo \"$(id)\"",
        "echo \"`id`\"",
        "cat <(id)",
        "echo >(id)",
        "echo ${x:-$(id)}",
        "echo ${x:-${y:-${z:-$(id)}}}",
        "echo $((a[$(id)]))",
        "[[ -v a[$(id)] ]]",
        "[[ -v 'a[$(id)]' ]]",
        "(( x = $(id) ))",
        "test -v 'a[$(id)]'",
        "echo ${ id; }",
        "echo ${| id; }",
        "x='$(id)'; echo ${x@P}",
        "cat <<E\n$(id)\nE",
        "cat <<E\n`id`\nE",
        "cat <<< $(id)",
        "a[$(id)]=1",
        "a=($(id))",
        "if id; then :; fi",
        "while id; do :; done",
        "until id; do :; done",
        "for ((i=$(id);;)); do :; done",
        "case $(id) in x) ;; esac",
        "case x in $(id)) ;; esac",
        "case x in x) id;; esac",
        "f() { id; }",
        "function f { id; }",
        "coproc id",
        "coproc X { id; }",
        "time id",
        "! id",
        "{ id; }",
        "( id )",
        "ls | id",
        "ls |& id",
        "ls && id",
        "ls || id",
        "ls; id",
        "ls & id",
        "ls\nid",
        "ls > $(id)",
        "trap id EXIT",
        "eval id",
        "eval \"i\"\"d\"",
        "bash -c id",
        "bash -c 'bash -c id'",
        "bash <<< id",
        "bash <<E\nid\nE",
        "bash <<'E'\nid\nE",
        "cat <<'E' > x\ntext\nE\nid",
        "source /dev/stdin <<< id",
        "find . -exec id \\;",
        "find . -name x -exec id {} +",
        "echo 'a' \"b $(id)\"",
        "select x in a; do id; done",
        "echo $[ $(id) ]",
        "echo \"${x:+$(id)}\"",
        "echo ${x/a/$(id)}",
        "echo ${x:$(id)}",
        "declare -a x=($(id))",
        "export X=$(id)",
        "ls # comment\nid",
        "$((echo a); id)",
        "[[ a =~ $(id) ]]",
        "echo \"$(echo \"$(id)\")\"",
        "let 'a[$(id)]=1'",
        "x='a[$(id)]'; echo $((x))",
        "echo {a,$(id)}",
        "ssh host id",
        "echo @($(id)|b)",
        "mapfile -C id -c 1",
        "alias x=id",
        "sh -c '\"$0\"' id",
        "sh -c '\"$@\"' x id",
        "xargs id",
        "env id",
        "env -S id",
        "$SHELL -c id",
        "exec id",
        "if true; then\n  cat <<E\nx\nE\n  id\nfi",
        "a=1 b=2 id",
        ">x id",
        "id 2>&1 >x",
        "echo a#b; id",
        "echo \\\" ; id",
        "[ -f x ] && { ls; id; }",
        "time -p id",
        "echo $(case x in x) id;; esac)",
        "[[ 'a[$(id)]' -eq 0 ]]",
        "x='a[$(id)]'; echo ${!x}",
        "echo ${x:a[$(id)]}",
    ] {
        let found = commands(line);
        assert!(found.iter().any(|one| one == "id" || one.starts_with("id ")), "`{line}` runs id; found {found:?}");
    }
}

#[test]
fn text_that_only_mentions_commands_runs_none_of_them() {
    for line in [
        "echo 'a $(id)'",
        "echo \"a \\$(id)\"",
        "echo a\\;id",
        "cat <<'E'\n$(id)\nE",
        "echo id",
        "ls # ; id",
        "echo '`id`'",
        "echo \"a; id\"",
        "echo $'a\\';id'",
    ] {
        let found = commands(line);
        assert!(!found.iter().any(|one| one == "id"), "`{line}`: {found:?}");
        assert!(!walk(line).constructs.unparsable, "`{line}` parses");
    }
}

#[test]
fn what_bash_refuses_is_not_understood_either() {
    for line in [
        "echo 'a",
        "echo \"a",
        "echo $(ls",
        "echo `ls",
        "( ls",
        "{ ls",
        "if ls; then",
        "ls &&",
        "ls |",
        "| ls",
        "; ls",
        "cat <<E\na",
        "ls )",
        "for x in a; do ls",
        "case x in",
        "ls ;; id",
        "echo ${x",
        "&& ls",
        "()",
        "done",
        "echo (a)",
        "ls & ; id",
    ] {
        assert!(walk(line).constructs.unparsable, "`{line}`");
    }
}

#[test]
fn spans_point_into_the_text_as_given() {
    let line = "ls; bash -c 'cat a; rm -rf /'";
    let walk = walk(line);
    let rm = walk.simples.iter().find(|s| s.argv.first().and_then(Word::known) == Some("rm")).expect("rm is found");
    assert_eq!(line.get(rm.span.start..rm.span.end), Some("rm -rf /"));
}

#[test]
fn what_a_loop_assigns_holds_when_it_starts_again() {
    for line in [
        "x=ls; while a; do $x -rf /; x=rm; done",
        "x=ls; for i in 1 2; do x=ls; while a; do $x -rf /; x=rm; done; done",
        "x=rm; if a; then x=ls; fi; $x -rf /",
        "x=rm; a && x=ls; $x -rf /",
        "x=rm; ( x=ls ); $x -rf /",
        "x=rm; x=ls cat; $x -rf /",
        "x=rm; ls | x=ls; $x -rf /",
        "f() { x=ls; }; x=rm; $x -rf /",
        "x=rm; bash -c 'x=ls'; $x -rf /",
        "eval x=rm; $x -rf /",
    ] {
        runs(line, &["rm -rf /"]);
    }
}

#[test]
fn what_is_read_is_not_evaluated_in_silence() {
    for line in [
        "read n < f; echo $((n))",
        "read n < f; echo $(($n))",
        "read n < f; [[ $n -eq 1 ]]",
        "read n < f; echo ${a[$n]}",
        "read n < f; echo ${x:n}",
        "read n < f; (( n > 1 ))",
        "echo ${!x}",
        "for PATH in a; do ls; done",
        "ls $(find . -exec cat {} +)",
        "ls $(grep -elc f)",
        "ls $(ls | grep -r x)",
        "ls $(git log --name-only)",
        "sort $(date +--compress-program=sh)",
        "sort $(basename /--output=x)",
        "sort $(seq -f --output=x 1)",
        "sort $(find . -printf --output=%p)",
        "sort $(pwd | tr / -)",
        "sort $(ls | tail -c 9)",
        "sort $(basename -- --output=x)",
        "sort $(echo --output=x)",
        "sort $(printf %s --compress-program=sh)",
        "sort $(x | grep -l --label=--output=x y)",
    ] {
        assert!(!walk(line).findings.is_empty(), "{line}");
    }
    for line in
        ["n=5; echo $((n + 1))", "echo ${!x[@]}", "n=5; [[ $n -gt 3 ]]", "ls $(find . -name '*.rs' | sort | head -5)"]
    {
        assert!(walk(line).findings.is_empty(), "{line}: {:?}", walk(line).findings);
    }
}
