//! Lines that read one way when a quote or a mark counts inside a construct, and another way when it does not: a
//! reader that gets one of them wrong takes the program at the end for text.

/// Constructs with a place inside them.
const CONSTRUCTS: &[&str] = &[
    "(( 1 @ ))",
    "echo $(( 1 @ ))",
    "echo \"$(( 1 @ ))\"",
    "echo $[ 1 @ ]",
    "for ((i=0@; i<1; i++)); do :; done",
    "echo ${x:@ }",
    "echo \"${x:@ }\"",
    "echo ${x:-@ }",
    "echo \"${x:-@ }\"",
    "echo \"${x:+@ }\"",
    "echo \"${x=@ }\"",
    "echo ${x#@ }",
    "echo \"${x#@ }\"",
    "echo \"${x%%@ }\"",
    "echo ${x/@/ }",
    "echo \"${x/a/@ }\"",
    "echo \"${x//@/a}\"",
    "echo ${x^@ }",
    "echo \"${x,,@ }\"",
    "echo ${x[@ ]}",
    "echo \"${x[@ ]}\"",
    "echo ${x@Q@ }",
    "a[@ ]=1",
    "a=([@ ]=1)",
    "a=(@ )",
    "declare a[@ ]=1",
    "let a[@ ]=1",
    "export a=(@ )",
    "[[ a =~ @ ]]",
    "[[ a =~ (@ ) ]]",
    "[[ a == @ ]]",
    "[[ a -eq @ ]]",
    "[[ -n a && @ ]]",
    "case a in @ ) :;; esac",
    "case @ in a) :;; esac",
    "echo $(echo @ )",
    "echo \"$(echo @ )\"",
    "echo `echo @ `",
    "echo \"`echo @ `\"",
    "cat <(echo @ )",
    "echo {a,@ }",
    "echo @(a|@ )",
    "for x in @ ; do :; done",
    "f() { echo @ ; }",
    "echo $'@ '",
    "echo $\"@ \"",
    "echo \"@ \"",
    "echo '@ '",
    "echo a@ ",
    "cat <<< @ ",
    "echo > /dev/null @ ",
    "${ echo @ ; }",
    "echo \"${x:-${y:-@ }}\"",
    "echo \"${x:-$(echo @ )}\"",
    "echo $(( ${x:-@ } ))",
    "cat <<E\n${x:-@}\nE\n",
    "cat <<E\n$((1 @))\nE\n",
    "cat <<'E'\n@\nE\n",
];
const MARKS: &[&str] =
    &["'", "\"", "`", "\\", "#", " #", "$'", "$\"", "{", "}", "(", ")", "\\'", "\\\"", "$(", "${", "<<E", "]", "["];

/// Each construct with each mark, and the rest of the line as either reading would have it.
pub fn lines() -> Vec<String> {
    let mut all = Vec::new();
    for construct in CONSTRUCTS {
        for mark in MARKS {
            let (open, close) = construct.rsplit_once('@').unwrap_or((construct, ""));
            // `${x@Q@}`: the last mark is the place.
            let with = format!("{open}{mark}{close}");
            let other = mark.trim_start_matches(['\\', '$', ' ']);
            all.push(format!("{with}; evil"));
            all.push(format!("{with} ; echo {other}{close} ; evil # {other}"));
            all.push(format!("{with} ; echo {other} ; evil # {other}"));
            all.push(format!("{with}\nevil # {other}"));
            all.push(format!("{with} {other} ; evil {other}{close}"));
        }
    }
    all
}
