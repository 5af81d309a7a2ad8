//! What an `awk` program does, by its tokens: pipes, redirections, `system`, `getline`, the environment.

use super::check::Verdict;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// After which `/` begins a pattern.
    Operator,
    /// After which `/` divides.
    Operand,
    /// `length / 2` or `length /x/`: cannot be told apart here.
    Unclear,
}

const STRANGE: (&str, &str) = ("unknown_script", "an awk program that cannot be followed");

pub(super) fn program(text: &str) -> Verdict {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut last = Last::Operator;
    // What is open, and whether it is the condition of `if`, `while`, `for`: after that `/` begins a pattern.
    let mut open: Vec<bool> = Vec::new();
    let mut condition = false;
    // The depth at which a `print` waits for its end.
    let mut printing: Option<usize> = None;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        let depth = open.len();
        match byte {
            b' ' | b'\t' | b'\r' => {}
            b'\n' => last = Last::Operator,
            b'\\' if matches!(bytes.get(at), Some(b'\n')) => at += 1,
            b'#' => at = line_end(bytes, at),
            b'"' => {
                at = closing(bytes, at, b'"')?;
                last = Last::Operand;
            }
            b'/' => match last {
                Last::Operand => last = Last::Operator,
                Last::Operator => {
                    at = pattern_end(bytes, at)?;
                    last = Last::Operand;
                }
                Last::Unclear => return Err(STRANGE),
            },
            b'0'..=b'9' => {
                at = number_end(bytes, at)?;
                last = Last::Operand;
            }
            b'.' if bytes.get(at).is_some_and(u8::is_ascii_digit) => {
                at = number_end(bytes, at)?;
                last = Last::Operand;
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let from = at - 1;
                at = run(bytes, at, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
                let name = bytes.get(from..at).unwrap_or(&[]);
                last = word(name)?;
                condition = matches!(name, b"if" | b"while" | b"for");
                if matches!(name, b"print" | b"printf") {
                    printing = Some(depth);
                }
            }
            b'|' if bytes.get(at) == Some(&b'|') => {
                at += 1;
                last = Last::Operator;
            }
            b'|' => return Err(("runs_programs", "a pipe in an awk program runs a command")),
            b'>' => {
                if printing.is_some_and(|from| depth <= from) {
                    return Err(("writes_files", "`print >` in an awk program writes a file"));
                }
                last = Last::Operator;
            }
            b'@' => return Err(("runs_programs", "`@` in an awk program loads or calls what is not shown")),
            b'(' | b'[' | b'{' => {
                open.push(condition && byte == b'(');
                condition = false;
                last = Last::Operator;
            }
            b')' | b']' => {
                let was_condition = open.pop().unwrap_or(false);
                last = if was_condition { Last::Operator } else { Last::Operand };
            }
            b'}' => {
                open.pop();
                printing = None;
                last = Last::Operator;
            }
            b';' => {
                if printing.is_some_and(|from| depth <= from) {
                    printing = None;
                }
                last = Last::Operator;
            }
            b'+' | b'-' if bytes.get(at) == Some(&byte) => {
                at += 1;
                last = if last == Last::Operand { Last::Unclear } else { Last::Operator };
            }
            b'$' | b',' | b'=' | b'!' | b'<' | b'~' | b'&' | b'?' | b':' | b'+' | b'-' | b'*' | b'%' | b'^' => {
                last = Last::Operator;
            }
            _ => return Err(STRANGE),
        }
    }
    Ok(())
}

fn word(name: &[u8]) -> Result<Last, (&'static str, &'static str)> {
    match name {
        b"system" => Err(("runs_programs", "`system` in an awk program runs a command")),
        b"getline" => Err(("sensitive_path", "`getline` in an awk program reads what is not shown")),
        b"ENVIRON" | b"PROCINFO" | b"SYMTAB" | b"FUNCTAB" => {
            Err(("dumps_environment", "reads the environment, where secrets are"))
        }
        b"ARGV" | b"ARGC" => Err(("sensitive_path", "an awk program that chooses its own files")),
        // Names in some awks and keywords in others.
        b"switch" | b"case" | b"default" => Err(STRANGE),
        b"extension" | b"load" | b"include" => Err(("runs_programs", "loads code that is not shown")),
        b"print" | b"printf" | b"return" | b"in" | b"else" | b"do" | b"delete" | b"exit" | b"next" | b"BEGIN"
        | b"END" => Ok(Last::Operator),
        b"length" => Ok(Last::Unclear),
        _ => Ok(Last::Operand),
    }
}

/// Past a number, `.5` and `1e-9` too. A name right behind it is another token, and which awk reads what there differs.
fn number_end(bytes: &[u8], from: usize) -> Result<usize, (&'static str, &'static str)> {
    let mut at = run(bytes, from, |byte| byte.is_ascii_digit() || byte == b'.');
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let signed = at + 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let end = run(bytes, signed, |byte| byte.is_ascii_digit());
        at = if end > signed { end } else { at };
    }
    let name = bytes.get(at).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    if name { Err(STRANGE) } else { Ok(at) }
}

fn run(bytes: &[u8], from: usize, wanted: impl Fn(u8) -> bool) -> usize {
    from + bytes.get(from..).map_or(0, |rest| rest.iter().take_while(|byte| wanted(**byte)).count())
}

fn line_end(bytes: &[u8], from: usize) -> usize {
    run(bytes, from, |byte| byte != b'\n')
}

fn closing(bytes: &[u8], mut at: usize, end: u8) -> Result<usize, (&'static str, &'static str)> {
    loop {
        match bytes.get(at) {
            Some(b'\\') => at += 2,
            Some(b'\n') | None => return Err(STRANGE),
            Some(byte) if *byte == end => return Ok(at + 1),
            Some(_) => at += 1,
        }
    }
}

/// Past a `/pattern/`. A slash inside brackets is read differently by different awks.
fn pattern_end(bytes: &[u8], mut at: usize) -> Result<usize, (&'static str, &'static str)> {
    let mut open: Option<usize> = None;
    loop {
        match bytes.get(at) {
            Some(b'\\') => at += 1,
            Some(b'\n') | None => return Err(STRANGE),
            Some(b'/') => return if open.is_some() { Err(STRANGE) } else { Ok(at + 1) },
            Some(b'[') if open.is_none() => open = Some(if bytes.get(at + 1) == Some(&b'^') { at + 2 } else { at + 1 }),
            Some(b'[') if bytes.get(at + 1) == Some(&b':') => {
                let end = run(bytes, at + 2, |byte| byte.is_ascii_alphabetic());
                if bytes.get(end..end + 2) == Some(b":]") {
                    at = end + 1;
                }
            }
            Some(b']') if open.is_some_and(|from| at > from) => open = None,
            Some(_) => {}
        }
        at += 1;
    }
}
