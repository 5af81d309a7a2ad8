//! Shell lines by grammar: valid, mostly harmless, and full of ways to start a program that does not look started.
//! Deterministic for a seed.

use crate::tricks::TRICKS;

/// Small, fast and the same everywhere.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }

    pub fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.roll(from.len())]
    }
}

/// Readers that the engine knows, with arguments it calls safe.
const READERS: &[&str] = &[
    "ls",
    "cat a",
    "grep x a",
    "wc -l a",
    "head -3 a",
    "sort a",
    "uniq a",
    "cut -f1 a",
    "git status",
    "git log",
    "pwd",
    "date",
    "id",
    "uname -a",
    "stat a",
    "diff a b",
    "find . -name a",
    "tail a",
    "du -s .",
    "basename a",
    "true",
    ":",
    "echo a",
    "echo hi there",
    "printf '%s\\n' a",
    "test -f a",
    "[ -n a ]",
    "tr a b",
];
/// A program that nobody knows: seeing it start is the point.
const HIDDEN: &[&str] = &["evil", "evil1 -x", "evil2 'a b'", "rm -f a", "curl a", "./run.sh", "/opt/evil3 y"];
const NAMES: &[&str] = &["x", "y", "z", "a", "i", "v1"];
const WRAPPERS: &[&str] = &[
    "command ",
    "builtin command ",
    "exec ",
    "eval ",
    "time ",
    "! ",
    "env ",
    "nice ",
    "nohup ",
    "timeout 5 ",
    "command -p ",
    "exec -a n ",
    "bash -c ",
    "sh -c ",
    "eval eval ",
    "sudo ",
    "xargs ",
    "\\command ",
    "time -p ",
    "coproc ",
];

/// Programs that lines may start, for the sandbox to have.
pub fn programs() -> Vec<String> {
    let words = |list: &[&str]| -> Vec<String> {
        list.iter().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    };
    let mut all = words(READERS);
    all.extend(words(HIDDEN));
    all.extend(words(WRAPPERS));
    all.extend(["bash", "sh", "out"].map(str::to_owned));
    all
}

#[derive(Debug)]
pub struct Generator {
    dice: Dice,
    /// Bodies of the heredocs opened on the line so far.
    bodies: String,
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        Self { dice: Dice::new(seed), bodies: String::new() }
    }

    pub fn line(&mut self) -> String {
        self.bodies.clear();
        let depth = 1 + self.dice.roll(4);
        let mut line = String::new();
        for _ in 0..=self.dice.roll(3) {
            let statement = self.statement(depth);
            line.push_str(&statement);
            let bodies = std::mem::take(&mut self.bodies);
            if bodies.is_empty() {
                line.push_str(self.dice.pick(&["; ", "\n", " && ", " || ", " | ", " & ", " |& "]));
            } else {
                line.push('\n');
                line.push_str(&bodies);
            }
        }
        line.push_str(self.dice.pick(&["ls", "true", "echo end", "[ -n a ]"]));
        line
    }

    /// A line as an accident or a trick would leave it, one time in four.
    pub fn rough_line(&mut self) -> String {
        let line = match self.dice.roll(5) {
            0 => self.names_of_files(1),
            1 => format!("{}; {}", self.names_of_files(0), self.line()),
            _ => self.line(),
        };
        if self.dice.roll(4) == 0 { self.damaged(&line) } else { line }
    }

    /// The line with a character or two lost, doubled or put in: most are still shell, but another one.
    fn damaged(&mut self, line: &str) -> String {
        let mut all: Vec<char> = line.chars().collect();
        for _ in 0..=self.dice.roll(2) {
            let at = self.dice.roll(all.len());
            match self.dice.roll(4) {
                0 => drop(all.remove(at)),
                1 => all.insert(at, all[at]),
                _ => {
                    let new = self.dice.pick(&[
                        "'", "\"", "`", "$", "(", ")", "{", "}", "[", "]", ";", "|", "&", "<", ">", "#", "\n", "\\",
                        " ", "=", "!", "~",
                    ]);
                    all.splice(at..at, new.chars());
                }
            }
        }
        all.into_iter().collect()
    }

    fn statement(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.plain();
        }
        let next = depth - 1;
        match self.dice.roll(26) {
            0 => format!("( {} )", self.list(next)),
            1 => format!("{{ {}; }}", self.list(next)),
            2 => format!("if {}; then {}; else {}; fi", self.list(next), self.list(next), self.list(next)),
            3 => {
                format!("for {} in {} {}; do {}; done", self.name(), self.word(next), self.word(next), self.list(next))
            }
            4 => format!("while {}; do {}; break; done", self.list(next), self.list(next)),
            5 => format!(
                "case {} in {}) {};; *) {};; esac",
                self.word(next),
                self.pattern(),
                self.list(next),
                self.list(next)
            ),
            6 => self.function(next),
            7 => format!("[[ {} ]]", self.condition(next)),
            8 => format!("(( {} ))", self.arithmetic(next)),
            9 => format!("for (( i={}; i<2; i++ )); do {}; done", self.arithmetic(next), self.list(next)),
            10 => self.wrapped(next),
            11 => format!("{}={}", self.name(), self.word(next)),
            12 => format!("{}=({} {})", self.name(), self.word(next), self.word(next)),
            13 => self.builtin(next),
            14 => format!("{} {}", self.assigned_program(next), self.word(next)),
            15 => format!("{} {}", self.mangled(), self.word(next)),
            16 => self.heredoc(next),
            17 => format!("{} | {}", self.simple(next), self.simple(next)),
            18 => format!("{} {}", self.simple(next), self.redirect(next)),
            19 => format!("until {}; do {}; break; done", self.list(next), self.list(next)),
            21..=23 => self.trick(),
            20 => format!("select {} in {}; do {}; break; done", self.name(), self.word(next), self.list(next)),
            _ => self.simple(next),
        }
    }

    /// A trick as it is: those with a heredoc end their lines themselves.
    fn trick(&mut self) -> String {
        loop {
            let trick = self.dice.pick(TRICKS);
            if !trick.contains("<<E") && !trick.contains("<<A") && !trick.contains("<<-") && !trick.contains("<<'") {
                return trick.to_owned();
            }
        }
    }

    /// What files are called, or hold, brought to a place that evaluates text.
    fn names_of_files(&mut self, depth: usize) -> String {
        let pattern = self.dice.pick(&["a*", "*", "-*", "x*", "[0-9]*", "q*", "\"a[\"*", "?*"]);
        let way = self.dice.pick(&[
            "for f in @; do %; done",
            "for g in @; do f=$g; %; done",
            "z=(@); f=${z[0]}; %",
            "z=(@); for f in ${z[*]}; do %; done",
            "set -- @; f=$1; %",
            "set -- @; for f; do %; done",
            "for g in @; do while read -r f; do %; done < \"$g\"; done",
            "for f in @; do f=${f#x}; %; done",
            "for f in @; do f=\"$f\"; [[ -n $f ]] && %; done",
            "f=1; for f in @; do %; done",
            "f=1; if true; then for f in @; do ls; done; fi; %",
            "for g in @; do printf -v f \"$g\"; %; done",
            "f=$(echo @); %",
        ]);
        let place = self.dice.pick(&[
            "[[ $f -gt 1 ]]",
            "[[ 1 -lt \"$f\" ]]",
            "[[ f -eq 1 ]]",
            "[[ -v $f ]]",
            "[[ -v y[$f] ]]",
            "test -v \"$f\"",
            "[ -v $f ]",
            "[ -f $f ]",
            "[ $f = a ]",
            "[ \"$f\" = a ]",
            "echo $((f))",
            "echo $(($f + 1))",
            "echo $[f]",
            "((f))",
            "((n = f))",
            "((n = 0, f))",
            "((f = 1))",
            "let n=f",
            "let \"$f\"",
            "echo ${HOME:$f}",
            "echo ${HOME:0:f}",
            "echo ${y[$f]}",
            "echo ${y[f]}",
            "echo ${!f}",
            "y[$f]=1",
            "y=([$f]=1)",
            "printf \"$f\"",
            "printf $f",
            "printf '%s' \"$f\"",
            "printf '%d' \"$f\"",
            "printf -v \"$f\" a",
            "read \"$f\" <<< a",
            "declare -i n=$f",
            "declare \"$f=1\"",
            "RANDOM=$f",
            "for ((i=f; i<1; i++)); do ls; done",
            "for ((i=0; i<1; i++)); do echo $((i + f)); done",
            "wait $f",
            "ls {n[$f]}> /dev/null",
            "unset \"$f\"",
            "echo \"$f\"",
            "cat \"$f\"",
            "shift $f",
            "case $f in a*) ls;; esac",
            "n=${#f}; ((n))",
            "n=$(wc -l < \"$f\"); ((n))",
            "n=$(grep -c a \"$f\"); ((n))",
            "n=$f; m=n; ((m))",
        ]);
        let then = self.inline(depth);
        let place = if self.dice.roll(4) == 0 { format!("{place}; {then}") } else { place.to_owned() };
        way.replace('@', pattern).replace('%', &place)
    }

    fn list(&mut self, depth: usize) -> String {
        let first = self.inline(depth);
        if self.dice.roll(3) == 0 {
            let joint = self.dice.pick(&["; ", " && ", " || ", " | ", "\n"]);
            let second = self.inline(depth);
            return format!("{first}{joint}{second}");
        }
        first
    }

    /// A statement without a heredoc, which needs its line to end.
    fn inline(&mut self, depth: usize) -> String {
        let bodies = std::mem::take(&mut self.bodies);
        loop {
            let statement = self.statement(depth);
            if self.bodies.is_empty() {
                self.bodies = bodies;
                return statement;
            }
            self.bodies.clear();
        }
    }

    fn plain(&mut self) -> String {
        if self.dice.roll(5) == 0 { self.dice.pick(HIDDEN) } else { self.dice.pick(READERS) }.to_owned()
    }

    fn simple(&mut self, depth: usize) -> String {
        let mut text = self.plain();
        for _ in 0..self.dice.roll(3) {
            text.push(' ');
            let word = self.word(depth);
            text.push_str(&word);
        }
        if self.dice.roll(8) == 0 {
            return format!("{}={} {text}", self.name(), self.word(depth));
        }
        text
    }

    fn name(&mut self) -> String {
        self.dice.pick(NAMES).to_owned()
    }

    fn pattern(&mut self) -> String {
        self.dice.pick(&["a", "*.c", "[ab]*", "a|b", "'a b'", "@(a|b)", "?", "\"$x\""]).to_owned()
    }

    fn word(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self
                .dice
                .pick(&[
                    "a", "-n", "'a b'", "\"a\"", "$'a\\tb'", "a\\ b", "$x", "\"$y\"", "*", "~", "{a,b}", "$1",
                    "\"$@\"", "", "#", "a#b", "--",
                ])
                .to_owned();
        }
        let next = depth - 1;
        match self.dice.roll(26) {
            0 => format!("$({})", self.list(next)),
            1 => format!("\"$({})\"", self.list(next)),
            2 => format!("`{}`", self.plain()),
            3 => format!("\"a`{}`b\"", self.plain()),
            4 => format!("$(( {} ))", self.arithmetic(next)),
            5 => format!("<({})", self.list(next)),
            6 => format!("${{x:-{}}}", self.word(next)),
            7 => format!("\"${{y:+{}}}\"", self.unquoted(next)),
            8 => format!("${{x[{}]}}", self.arithmetic(next)),
            9 => format!("${{x:{}}}", self.arithmetic(next)),
            10 => format!("{{{},{}}}", self.word(0), self.word(next)),
            11 => format!("${{x/{}/{}}}", self.pattern_word(), self.unquoted(next)),
            12 => format!("\"${{x@P}}{}\"", self.unquoted(next)),
            13 => format!("$[ {} ]", self.arithmetic(next)),
            14 => format!("a{}", self.word(next)),
            15 => format!("{}{}", self.word(next), self.word(0)),
            16 => format!(
                "${{{}}}",
                self.dice
                    .pick(&["!x", "!y", "#x", "x^^", "y,,", "x@Q", "x[@]", "!x[@]", "x#a", "y%%b*", "x:=a", "v1:?"])
            ),
            17 => format!("$( ( {} ) )", self.list(next)),
            18 => format!("'{}'", self.dice.pick(&["$(evil)", "`evil`", "a[$(evil)]", "; evil", "b c", "$x"])),
            19 => format!("\"{}\"", self.dice.pick(&["\\$(evil)", "\\`evil\\`", "a;evil", "'$(evil)'", "a\\\nb"])),
            20 => format!("{}\\\n{}", self.word(0), self.word(0)),
            _ => self.word(0),
        }
    }

    /// Text that may stand inside double quotes.
    fn unquoted(&mut self, depth: usize) -> String {
        match self.dice.roll(4) {
            0 => format!("$({})", self.list(depth)),
            1 => "$y".to_owned(),
            _ => "a".to_owned(),
        }
    }

    fn pattern_word(&mut self) -> String {
        self.dice.pick(&["a", "#a", "/b", "%c", "*", "$x", "'/'"]).to_owned()
    }

    fn arithmetic(&mut self, depth: usize) -> String {
        let next = depth.saturating_sub(1);
        match self.dice.roll(12) {
            0 => format!("a[$({})]", self.plain()),
            1 => format!("x[{}]", self.dice.pick(&["0", "y", "$z", "`evil`"])),
            2 => "x".to_owned(),
            3 => "$x + y".to_owned(),
            4 if depth > 0 => format!("1 + $(({}))", self.arithmetic(next)),
            5 => "z = 2".to_owned(),
            6 => "i++".to_owned(),
            7 => format!("$({})", self.plain()),
            8 => "${#x}".to_owned(),
            9 => "(1 ? x : y)".to_owned(),
            _ => self.dice.pick(&["0", "1", "16#ff", "07"]).to_owned(),
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        let one = match self.dice.roll(9) {
            0 => format!("{} -eq {}", self.number(), self.number()),
            1 => format!("-v {}", self.dice.pick(&["x", "'a[$(evil)]'", "x[0]", "$y"])),
            2 => format!("-n {}", self.word(depth.max(1))),
            3 => format!("{} == {}", self.dice.pick(&["a", "$x", "\"$y\""]), self.pattern_word()),
            4 => {
                format!("{} =~ {}", self.dice.pick(&["a", "$x"]), self.dice.pick(&["^a", "$y", "(a|b)", "[[:alpha:]]"]))
            }
            5 => format!("-f {}", self.dice.pick(&["a", "\"$x\"", "$(evil)"])),
            6 => format!("{} -lt {}", self.number(), self.number()),
            7 => "! -d a".to_owned(),
            _ => "a < b".to_owned(),
        };
        match self.dice.roll(4) {
            0 => format!("{one} && -z $x"),
            1 => format!("( {one} ) || a"),
            _ => one,
        }
    }

    fn number(&mut self) -> String {
        self.dice.pick(&["0", "x", "$y", "'a[$(evil)]'", "\"x[0]\"", "a[0]", "1+1", "$(evil)", "x[`evil`]"]).to_owned()
    }

    fn wrapped(&mut self, depth: usize) -> String {
        let wrapper = self.dice.pick(WRAPPERS);
        let inner = if wrapper.ends_with("-c ") || (wrapper.contains("eval") && self.dice.roll(2) == 0) {
            let list = self.inline(depth);
            format!("'{}'", list.replace('\'', "'\\''"))
        } else {
            self.simple(depth)
        };
        format!("{wrapper}{inner}")
    }

    fn function(&mut self, depth: usize) -> String {
        let name = self.dice.pick(&["f", "g", "ls", "cat"]);
        let head = self.dice.pick(&["@() ", "function @ ", "@ () "]).replace('@', name);
        format!("{head}{{ {}; }}; {name} {}", self.list(depth), self.word(0))
    }

    fn builtin(&mut self, depth: usize) -> String {
        let word = self.word(depth);
        let trick = self.dice.pick(&["'a[$(evil)]'", "x", "'x[0]'", "\"a[\\`evil\\`]\""]);
        let plain = self.plain().replace('\'', "");
        match self.dice.roll(16) {
            0 => format!("printf -v {trick} %s {word}"),
            1 => format!("read {trick} <<< {word}"),
            2 => format!("declare -i y={trick}"),
            3 => format!("let x={trick}"),
            4 => format!("unset {trick}"),
            5 => format!("trap '{plain}' EXIT"),
            6 => format!("shopt -s expand_aliases\nalias ll='{plain}'\nll"),
            7 => format!("export y={word}"),
            8 => format!("test -v {trick}"),
            9 => format!("set -- {word} b; echo \"$1\""),
            10 => format!("mapfile -t z < <({plain})"),
            11 => "declare -n r=x; echo $r".to_owned(),
            12 => format!("local q={word}"),
            13 => format!("x={trick}; echo $((x))"),
            14 => format!("source /dev/stdin <<< '{plain}'"),
            _ => format!("x='{plain}'; $x; eval \"$x\""),
        }
    }

    fn assigned_program(&mut self, depth: usize) -> String {
        let program = self.plain().replace('\'', "");
        match self.dice.roll(6) {
            0 => format!("x='{program}'; $x"),
            1 => format!("y=({program}); \"${{y[@]}}\""),
            2 => format!("z={}; ${{z}}", self.word(depth)),
            3 => "x=e y=vil; $x$y".to_owned(),
            4 => format!("y=([1]={program} [0]=ls); ${{y[1]}}; ${{y[@]}}"),
            _ => format!("for x in '{program}' ls; do $x; done; true"),
        }
    }

    /// A hidden program, spelled so that it does not read as one.
    fn mangled(&mut self) -> String {
        self.dice
            .pick(&[
                "e''vil",
                "\\evil",
                "'evil'",
                "$'evil'",
                "$'\\x65vil'",
                "e\\\nvil",
                "\"ev\"il",
                "{evil,-x}",
                "$'\\145vil'",
                "ev${q}il",
                "$(echo evil)",
                "`echo evil`",
                "${q:-evil}",
                "e$'\\u0076'il",
                "$\"evil\"",
                "ev$()il",
                "{ev,}il",
                "${q:+x}evil",
            ])
            .to_owned()
    }

    fn heredoc(&mut self, depth: usize) -> String {
        let reader =
            self.dice.pick(&["cat", "bash", "wc -l", "sh", "while read x; do echo \"$x\"; done", "source /dev/stdin"]);
        let body = match self.dice.roll(4) {
            0 => format!("a $({}) b", self.plain()),
            1 => self.plain(),
            2 => format!("{}\nls", self.simple(depth)),
            _ => "a\\\nb `evil` c".to_owned(),
        };
        let (open, close) =
            [("<<E", "E"), ("<<'E'", "E"), ("<<-E", "\tE"), ("<<\\E", "E"), ("<<\"E F\"", "E F")][self.dice.roll(5)];
        let (body, close) = (body.replace("<<", ""), close.to_owned());
        self.bodies.push_str(&format!("{body}\n{close}\n"));
        format!("{reader} {open}")
    }

    fn redirect(&mut self, depth: usize) -> String {
        let word = self.word(depth);
        match self.dice.roll(7) {
            0 => "2>&1".to_owned(),
            1 => "> /dev/null".to_owned(),
            2 => format!("<<< {word}"),
            3 => format!("> \"$({})\"", self.plain()),
            4 => format!("< <({})", self.plain()),
            5 => format!("> >({})", self.plain()),
            _ => "2>/dev/null".to_owned(),
        }
    }
}
