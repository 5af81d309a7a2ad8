//! A look inside code that a command carries: sed scripts, awk programs, and tokens of any language.

/// The token stands by itself: no letter, digit or underscore right before or after it.
pub fn has_token(text: &str, token: &str) -> bool {
    let inner = |c: char| c.is_alphanumeric() || c == '_';
    let starts = token.starts_with(inner);
    let ends = token.ends_with(inner);
    text.match_indices(token).any(|(at, _)| {
        let before = text.get(..at).and_then(|part| part.chars().next_back());
        let after = text.get(at + token.len()..).and_then(|part| part.chars().next());
        !((starts && before.is_some_and(inner)) || (ends && after.is_some_and(inner)))
    })
}

/// Text that says, in some other language, what `rm -rf` of much or a download into a shell would be.
pub fn destroys(text: &str) -> bool {
    let words: Vec<&str> = text
        .split([' ', '\t', '\n', '\'', '"', ';', '(', ')', '`', '|', '&', ',', '[', ']', '{', '}'])
        .filter(|word| !word.is_empty())
        .collect();
    let removes = words.iter().position(|word| *word == "rm" || word.ends_with("/rm")).is_some_and(|at| {
        let rest = words.get(at + 1..).unwrap_or_default();
        let mut recursive = false;
        for word in rest {
            if let Some(flags) = word.strip_prefix('-') {
                recursive |= flags.contains(['r', 'R']) || flags == "-recursive";
            } else {
                return recursive && word.starts_with(['/', '~', '$', '*', '.']);
            }
        }
        false
    });
    let downloads = words.iter().any(|word| matches!(*word, "curl" | "wget"));
    let shell = words.iter().any(|word| matches!(*word, "sh" | "bash" | "/bin/sh" | "/bin/bash"));
    removes || (downloads && shell && text.contains('|'))
}

#[derive(Debug, Default)]
pub struct Sed<'a> {
    /// Has the `e` command or the `e` flag.
    pub runs: bool,
    /// Files of `w`, `W` and the `w` flag.
    pub writes: Vec<&'a str>,
}

/// Walks a sed script command by command; text it does not understand ends the walk.
pub fn sed(script: &str) -> Sed<'_> {
    let mut found = Sed::default();
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';', '{', '}']);
        rest = after_address(rest);
        rest = rest.trim_start_matches([' ', '\t', '!']);
        let Some(command) = rest.chars().next() else { return found };
        rest = rest.get(command.len_utf8()..).unwrap_or("");
        match command {
            'e' => {
                found.runs = true;
                rest = after_line(rest);
            }
            'w' | 'W' => {
                found.writes.push(line(rest).trim());
                rest = after_line(rest);
            }
            'r' | 'R' | 'a' | 'i' | 'c' | ':' | 'b' | 't' | 'T' | '#' | 'v' => {
                // Labels end at a semicolon too, text and files do not.
                rest = if matches!(command, 'b' | 't' | 'T') {
                    rest.find([';', '\n', '}']).and_then(|at| rest.get(at..)).unwrap_or("")
                } else {
                    after_line(rest)
                };
            }
            's' | 'y' => {
                let Some(delimiter) = rest.chars().next() else { return found };
                let Some(after) = after_delimiter(rest.get(delimiter.len_utf8()..).unwrap_or(""), delimiter) else {
                    return found;
                };
                let Some(after) = after_delimiter(after, delimiter) else { return found };
                rest = after;
                while let Some(flag) = rest.chars().next().filter(|_| command == 's') {
                    match flag {
                        'e' => found.runs = true,
                        'w' => {
                            found.writes.push(line(rest.get(1..).unwrap_or("")).trim());
                            rest = after_line(rest);
                            break;
                        }
                        'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' => {}
                        _ => break,
                    }
                    rest = rest.get(flag.len_utf8()..).unwrap_or("");
                }
            }
            'p' | 'P' | 'd' | 'D' | 'h' | 'H' | 'g' | 'G' | 'n' | 'N' | 'x' | 'z' | '=' | 'F' => {}
            'q' | 'Q' | 'l' | 'L' => rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' '),
            _ => return found,
        }
    }
}

fn line(text: &str) -> &str {
    text.split('\n').next().unwrap_or(text)
}

fn after_line(text: &str) -> &str {
    text.split_once('\n').map_or("", |(_, rest)| rest)
}

fn after_delimiter(text: &str, delimiter: char) -> Option<&str> {
    let mut escaped = false;
    let mut bracket = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' if !bracket => bracket = text.get(at..).is_some_and(|rest| rest.contains(']')),
            ']' => bracket = false,
            c if c == delimiter && !bracket => return text.get(at + c.len_utf8()..),
            _ => {}
        }
    }
    // A bracket that was none: look again without them.
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == delimiter => return text.get(at + c.len_utf8()..),
            _ => {}
        }
    }
    None
}

fn after_address(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        let Some(c) = rest.chars().next() else { return rest };
        match c {
            '0'..='9' | '$' | ',' | '~' | '+' => rest = rest.get(1..).unwrap_or(""),
            '/' => match after_delimiter(rest.get(1..).unwrap_or(""), '/') {
                Some(after) => rest = after.trim_start_matches(['I', 'M']),
                None => return "",
            },
            '\\' => {
                let Some(delimiter) = rest.chars().nth(1) else { return "" };
                match after_delimiter(rest.get(1 + delimiter.len_utf8()..).unwrap_or(""), delimiter) {
                    Some(after) => rest = after.trim_start_matches(['I', 'M']),
                    None => return "",
                }
            }
            _ => return rest,
        }
    }
}

/// An awk program that starts commands: `system(…)`, `… | "cmd"` but for a few filters, `"cmd" | getline`.
pub fn awk_runs(program: &str) -> bool {
    if calls(program, "system") {
        return true;
    }
    let mut text = false;
    let mut regex = false;
    let mut previous = ' ';
    let mut characters = program.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        if text || regex {
            match c {
                '\\' => {
                    characters.next();
                }
                '"' if text => text = false,
                '/' if regex => regex = false,
                _ => {}
            }
        } else {
            match c {
                '"' => text = true,
                // A slash that follows a value divides; any other starts a pattern.
                '/' if !(previous.is_alphanumeric() || matches!(previous, ')' | ']' | '_' | '"')) => regex = true,
                '|' if previous != '|' && characters.peek().is_none_or(|(_, next)| *next != '|') => {
                    let after = program.get(at + 1..).unwrap_or("").trim_start_matches(['&', ' ']);
                    if after.starts_with("getline") {
                        return true;
                    }
                    if let Some(command) = after.strip_prefix('"') {
                        let first = command.split([' ', '"', '\t']).next().unwrap_or("");
                        if !matches!(
                            first,
                            "sort" | "cat" | "head" | "tail" | "uniq" | "wc" | "column" | "less" | "tr" | "cut"
                        ) {
                            return true;
                        }
                    } else {
                        return true;
                    }
                }
                _ => {}
            }
        }
        if !c.is_whitespace() {
            previous = c;
        }
    }
    false
}

/// `system (` where the program is not inside a quoted text.
fn calls(program: &str, name: &str) -> bool {
    let mut text = false;
    let mut escaped = false;
    let mut after_name = '\0';
    for (at, c) in program.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => text = !text,
            _ if !text && program.get(at..).is_some_and(|rest| rest.starts_with(name)) => {
                let alone = !(after_name.is_alphanumeric() || after_name == '_');
                let rest = program.get(at + name.len()..).unwrap_or("");
                let opens = rest.bytes().take(16).find(|byte| !byte.is_ascii_whitespace()) == Some(b'(');
                if alone && opens {
                    return true;
                }
            }
            _ => {}
        }
        after_name = c;
    }
    false
}

/// Files an awk program prints into.
pub fn awk_writes(program: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in program.match_indices('>') {
        let after = program.get(at + 1..).unwrap_or("").trim_start_matches(['>', ' ']);
        if let Some(file) = after.strip_prefix('"')
            && let Some(file) = file.split('"').next()
        {
            found.push(file);
        }
    }
    found
}
