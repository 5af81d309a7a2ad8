//! Blanks that only push what follows out of sight, and how they are shown instead.

use super::count;
use super::escape::{self, Class, Style};

const MAX_NEWLINES: usize = 3;
const MAX_REPEATED: usize = 20;

/// A run at the start of `rest` that would only push what follows out of sight: its length and its label.
pub(super) fn padding(rest: &str, class: Option<Class>, style: Style) -> Option<(usize, String)> {
    let c = rest.chars().next()?;
    if c == '\n' {
        return newlines(rest, style);
    }
    if c != ' ' && class.is_none() {
        return None;
    }
    let repeated = rest.chars().take_while(|next| *next == c).count();
    if repeated <= MAX_REPEATED {
        return None;
    }
    let what = match c {
        ' ' => "spaces".to_owned(),
        '\t' => "tabs".to_owned(),
        _ => format!("times {}", escape::spelled(c)),
    };
    Some((repeated * c.len_utf8(), format!("[… {} {what}]", count(repeated))))
}

/// Newlines with nothing but blanks between them: an empty line is empty with a space in it, too.
fn newlines(rest: &str, style: Style) -> Option<(usize, String)> {
    let blank = |b: &u8| matches!(b, b'\n' | b'\r' | b' ' | b'\t');
    let run = rest.bytes().take_while(|b| blank(b)).count();
    let run = rest.get(..run)?;
    let length = run.rfind('\n')? + 1;
    let run = run.get(..length)?;
    let newlines = run.bytes().filter(|b| *b == b'\n').count();
    if newlines <= MAX_NEWLINES {
        return None;
    }
    let blanks = run.len() - newlines;
    let also = if blanks == 0 { String::new() } else { format!(", {} blanks between", count(blanks)) };
    let (before, after) = style.around_padding();
    Some((length, format!("{before}[… {} newlines{also}]{after}", count(newlines))))
}
