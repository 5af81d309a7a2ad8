//! Lines made to be slow: much of one thing up to the longest text that is read, deep nesting, and pairs of things
//! that invite comparing each with each.

use countersign_shell::MAX_TEXT;

/// Said again and again until the text is full: alone, and as the words of two commands.
const UNITS: &[&str] = &[
    "a;",
    "w|",
    "w&&",
    "w||",
    "w\n",
    "w&",
    "x=1 ",
    "x=1;",
    "$x ",
    "~ ",
    "* ",
    "*a ",
    "a ",
    "-a ",
    "/a ",
    "../ ",
    "/ ",
    "/*/ ",
    ".*/ ",
    "rm -rf /;",
    "cat ~/.ssh/id_rsa;",
    "curl x|sh;",
    "git -c a.b=c d;",
    "sudo ",
    "env ",
    "nice ",
    "{a,b}",
    "{1..9}",
    "{a,{b,c}}",
    "$(id) ",
    "`id` ",
    "<(id) ",
    "${x:-a} ",
    "$((1)) ",
    ">a ",
    "<a ",
    "<<<a ",
    "<<E\nE\n",
    "'a' ",
    "\"a\" ",
    "$'a' ",
    "\\a",
    "a=$(id) ",
    "for i in a; do id; done;",
    "if a; then b; fi;",
    "case a in a) b;; esac;",
    "f() { a; };",
    "eval 'a';",
    "sh -c 'a';",
    "bash -c 'ls';",
    "find . -exec rm {} \\;;",
    "xargs rm;",
    "x=rm;$x -rf /;",
    "a[1]=2;",
    "[[ a ]];",
    "((1));",
    "echo $a$b$c;",
    "python3 -c 'a';",
    "sed s/a/b/ x;",
    "awk '{print}' x;",
    "git push;",
    "aws s3 rm x;",
    "docker run -v /:/x y;",
    "npm run x;",
    "export A=b;",
    "alias a=b;",
    "trap a EXIT;",
    "make x;",
    "tee /etc/a;",
    "cp /a /b;",
    "chmod 777 a;",
    "a | b; ",
    "e{a,b,c,d};",
    "LD_PRELOAD=a b;",
    "ssh a 'b';",
    "tar xf a;",
    "psql -c 'drop';",
    "kubectl delete x;",
    "cat /etc/passwd;",
    "echo a > b;",
    "a b c d e f g;",
    "ls -la /x/y/z;",
    "git log --oneline;",
    "x=$y;",
    "unset x;",
    "read x;",
    "cd /;",
    "echo sh | bash;",
    "wget a;./a;",
    "curl -o a b;",
    "base64 -d a > b;",
    "printf '/bin/sh' > ab;",
    "x+=a;",
    "${x@P} ",
    "${!x} ",
    "a=(b c);",
    "declare -a x=(1);",
    "local x=1;",
    "exec 3<a;",
    "é",
    "ls é;",
    "sudo -u a b;",
    "env env env env env env a;",
];

/// Put around each other, as deep as the text allows.
const PAIRS: &[(&str, &str)] = &[
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
    ("echo $(echo ", ")"),
    ("a $(b) $(", ")"),
    ("x=$(", ")"),
    ("for i in 1 2; do x=$i; ", "; done"),
    ("if a; then x=1; else ", "; fi"),
];

/// Every line with what it is.
pub fn lines() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for unit in UNITS {
        for start in ["", "echo ", "rm -rf ", "cat "] {
            all.push((format!("{start}{unit:?} again and again"), format!("{start}{}", full(unit))));
        }
    }
    for (open, close) in PAIRS {
        let nested = |depth: usize| format!("{}id{}", open.repeat(depth), close.repeat(depth));
        let deepest = (MAX_TEXT - 16) / (open.len() + close.len());
        for depth in [10, 20, 40, 60, 1000, deepest] {
            all.push((format!("{open:?} {depth} deep"), nested(depth)));
        }
        for depth in [5, 20] {
            all.push((format!("{open:?} {depth} deep, again and again"), full(&format!("{};", nested(depth)))));
        }
    }
    all.extend(numbered());
    all.extend(unfolding());
    all.extend(long_words());
    all.retain(|(_, line)| line.len() <= MAX_TEXT);
    all
}

fn full(unit: &str) -> String {
    unit.repeat((MAX_TEXT - 16) / unit.len())
}

/// Different each time, so that nothing can be remembered: `make(0) make(1) …` to this length.
fn count(length: usize, make: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for number in 0.. {
        let next = make(number);
        if text.len() + next.len() > length {
            break;
        }
        text.push_str(&next);
    }
    text
}

fn numbered() -> Vec<(String, String)> {
    let (whole, half) = (MAX_TEXT - 32, MAX_TEXT / 2 - 32);
    let named = |name: &str, line: String| (name.to_owned(), line);
    let words = count(half, |n| format!(" a{n}"));
    let assignments = count(half, |n| format!("v{n}=a;"));
    let functions = count(half, |n| format!("f{n}(){{ a;}};"));
    vec![
        named("programs, all different", count(whole, |n| format!("{n:x};"))),
        named("words, all different", format!("echo{}", count(whole, |n| format!(" {n:x}")))),
        named("paths, all different", format!("rm -rf{}", count(whole, |n| format!(" /{n:x}")))),
        named("patterns, all different", format!("rm -rf{}", count(whole, |n| format!(" *{n:x}")))),
        named("commands and paths, all different", count(whole, |n| format!("rm -r /{n};"))),
        named("assignments, all different", count(whole, |n| format!("v{n}=a{n};"))),
        named("assignments, then subshells", format!("{assignments}{}", "(a);".repeat(1900))),
        named("assignments, then alternatives", format!("{assignments}{}", "a&&b;".repeat(1500))),
        named("assignments, then substitutions", format!("{assignments}{}", "$(a);".repeat(1500))),
        named("functions, then calls", format!("{functions}{}", count(half, |n| format!("g{n};")))),
        named("a loop over programs", format!("for i in{words}; do {}done", "$i x;".repeat(1500))),
        named("a loop over words", format!("for i in{words}; do {}done", "cat $i;".repeat(1100))),
        named("a loop over words, other commands", {
            format!("for i in{words}; do {}done", count(half, |n| format!("cat $i a{n};")))
        }),
        named("downloads and runs", count(whole, |n| format!("curl -o f{n} x;./g{n};"))),
        named("downloads, then runs", {
            format!("{}{}", count(half, |n| format!("curl -o {n} x;")), count(half, |n| format!("./g{n};")))
        }),
        named("secrets, then senders", {
            format!("{}{}", count(half, |n| format!("cat ~/.aws/x{n}|a;")), count(half, |n| format!("b{n}|curl x;")))
        }),
        named("planted files, then commands", {
            format!("{}{}", count(half, |n| format!("echo '/bin/sh'>f{n};")), count(half, |n| format!("b{n} c;")))
        }),
    ]
}

/// Each says little and stands for much.
fn unfolding() -> Vec<(String, String)> {
    let doubling = [
        ("a value", "a=xxxxxxxx;", "a=$a$a;", "rm $a $a $a"),
        ("an appended value", "a=xxxxxxxx;", "a+=$a;", "rm $a $a $a"),
        ("an exported value", "a=xxxxxxxx;", "export a=$a$a;", "rm $a $a $a"),
        ("the parameters", "set -- a b;", "set -- $@ $@;", "rm $@"),
        ("an array", "a=(x y);", "a=(\"${a[@]}\" \"${a[@]}\");", "rm ${a[@]}"),
        ("a loop's words", "a='x y';", "for i in $a $a; do a=$a\\ $i; done;", "rm $a"),
        ("a replacement", "a=xxxxxxxx;", "a=${a//x/$a};", "rm $a"),
        ("what may have run", "a=xxxxxxxx;", "ls && a=$a$a;", "rm $a"),
        ("code", "a='ls;';", "eval a=\\'$a$a\\';", "eval \"$a\""),
        ("names that hold names", "a='b b b b b b b b';b='c c c c c c c c';c='a a a a a a a a';", "((a));", "ls"),
    ];
    let mut all = Vec::new();
    for (name, first, again, last) in doubling {
        for times in [16, 40, (MAX_TEXT - 128) / again.len()] {
            all.push((format!("{name} doubled {times} times"), format!("{first}{}{last}", again.repeat(times))));
        }
    }
    let long = "/x".repeat(2000);
    all.push(("a long path in many commands".to_owned(), format!("a={long};{}", "rm -rf $a $a;".repeat(800))));
    all.push(("a long value looked at".to_owned(), format!("a={long};{}", "${a:+b} ${a#y};".repeat(700))));
    all.push(("braces before a long word".to_owned(), format!("echo {}{}", "{a,b}".repeat(8), "x".repeat(12_000))));
    all
}

fn long_words() -> Vec<(String, String)> {
    let half = MAX_TEXT / 2 - 16;
    let lines = [
        ("a range", "echo {1..99999999}".to_owned()),
        ("a product of braces", format!("echo {}", "{a,b,c,d,e,f,g,h,i,j}".repeat(700))),
        ("a product of paths", format!("rm -rf {}", "{/a,../b}".repeat(12))),
        ("a product of programs", "{a,b}".repeat(12)),
        ("one long word", "a".repeat(MAX_TEXT)),
        ("one long path", format!("cat {}", "/a".repeat(half))),
        ("one long path to remove", format!("rm -rf {}", "/a".repeat(half))),
        ("a path of 4,000 bytes", format!("cat {}", "/a".repeat(2000))),
        ("many parents", format!("cat {}", "../".repeat(1300))),
        ("one long pattern", format!("cat {}", "*a".repeat(half))),
        ("a pattern of 4,000 bytes", format!("cat {}", "*a".repeat(2000))),
        ("a path of patterns", format!("cat {}", "/*".repeat(2000))),
        ("a path of patterns to remove", format!("rm {}", "/*a?".repeat(1000))),
        ("statements of SQL", format!("psql -c '{}'", "a;".repeat(8000))),
        ("shells in a text", format!("echo '{}'", "/bin/sha".repeat(2000))),
        ("shells in an argument", format!("foo '{}'", "a/bin/sh".repeat(2000))),
        ("a sed script", format!("sed '{}' x", "s/[a/b/;".repeat(2000))),
        ("a broken sed script", format!("sed '{}' x", "s/[".repeat(5000))),
        ("an awk program", format!("awk '{}' x", "{print > \"a\"}".repeat(1200))),
        ("one long pipe", "cat a|".repeat(2700)),
        ("a python program", format!("python3 -c '{}'", "import os;".repeat(1600))),
        ("a script in a word", format!("sh -c '{}'", "a;".repeat(8000))),
        ("a script in a script", format!("sh -c \"sh -c '{}'\"", "a;".repeat(8000))),
        ("a script in wrappers", format!("nice nice nice nice nice nice nice sh -c '{}'", "ls;".repeat(5000))),
        ("words after wrappers", format!("nice nice nice nice nice nice a {}", "b ".repeat(8000))),
        ("words of parallel", format!("parallel a ::: {}", "b ".repeat(8000))),
        ("words of xargs", format!("xargs a {}", "b ".repeat(8000))),
        ("a here document", format!("cat <<E\n{}E\n", "a $x\n".repeat(3000))),
        ("a script in a here document", format!("bash <<'E'\n{}E\n", "ls\n".repeat(5000))),
        ("many actions of find", format!("find . {}", "-exec a {} + ".repeat(1200))),
        ("calls of a function", format!("f(){{ f;f;}};{}", "f;".repeat(8000))),
    ];
    lines.into_iter().map(|(name, line)| (name.to_owned(), line)).collect()
}
