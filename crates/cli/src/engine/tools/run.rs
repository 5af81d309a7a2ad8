//! Bash and Spawn: commands through the runner, which is the one place that executes. What they write is passed on as
//! it comes, scrubbed, and as whole characters.

use std::collections::BTreeMap;
use std::path::Path;

use countersign_engine::Scrubber;
use countersign_model::Exec;
use countersign_runner::{BindError, Captured, Inherited, Outcome, Spec, Stream, What, bind};
use serde_json::json;

use super::{MAX_OUTPUT, Said};

/// The action that a command is asked for as: bound to what it would find now.
pub fn prepare(command: &str, workspace: &Path, inherited: &Inherited) -> Result<Exec, BindError> {
    let env = BTreeMap::new();
    let what = What::Text { text: command, shell: None };
    let bound = bind(&Spec { what, cwd: workspace, workspace: Some(workspace), env: &env, inherited });
    let binding = match bound {
        Ok(bound) => Some(Box::new(bound.into_binding())),
        // There is nothing to bind; it asks all the same, and does not start.
        Err(BindError::Empty) => None,
        Err(error) => return Err(error),
    };
    let cwd = Some(workspace.to_string_lossy().into_owned());
    Ok(Exec { command: command.to_owned(), argv: None, cwd, env, binding })
}

/// One stream on its way to the host.
#[derive(Debug, Default)]
pub struct Piece {
    scrubber: Scrubber,
    /// The beginning of a character whose rest has not come.
    partial: Vec<u8>,
}

impl Piece {
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let clean = self.scrubber.push(bytes);
        self.partial.extend(clean);
        let whole = whole_characters(&self.partial);
        let rest = self.partial.split_off(whole);
        String::from_utf8_lossy(&std::mem::replace(&mut self.partial, rest)).into_owned()
    }

    pub fn end(&mut self) -> String {
        self.partial.extend(self.scrubber.end());
        String::from_utf8_lossy(&std::mem::take(&mut self.partial)).into_owned()
    }
}

/// Where the last character that is there as a whole ends: only the last few bytes can tell.
fn whole_characters(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(3);
    let tail = bytes.get(from..).unwrap_or_default();
    let Some(start) = tail.iter().rposition(|byte| *byte >= 0xc0) else { return bytes.len() };
    match std::str::from_utf8(tail.get(start..).unwrap_or_default()) {
        Err(error) if error.error_len().is_none() => from + start,
        Ok(_) | Err(_) => bytes.len(),
    }
}

/// Both streams while a command runs.
#[derive(Debug, Default)]
pub struct Streams {
    out: Piece,
    err: Piece,
}

impl Streams {
    pub fn push(&mut self, stream: Stream, bytes: &[u8]) -> String {
        match stream {
            Stream::Stdout => self.out.push(bytes),
            Stream::Stderr => self.err.push(bytes),
        }
    }

    pub fn end(&mut self) -> String {
        self.out.end() + &self.err.end()
    }
}

/// What a command's end says.
pub fn finish(outcome: &Outcome) -> Said {
    let text = |captured: &Captured| String::from_utf8_lossy(&captured.bytes).into_owned();
    let (mut output, err) = (text(&outcome.stdout), text(&outcome.stderr));
    if !output.is_empty() && !output.ends_with('\n') && !err.is_empty() {
        output.push('\n');
    }
    output.push_str(&err);
    let code = outcome.exit_code();
    let cut = outcome.stdout.truncated() || outcome.stderr.truncated() || output.len() > MAX_OUTPUT;
    let mut metadata = json!({ "exit_code": code });
    for (name, is) in [("timed_out", outcome.timed_out), ("stopped", outcome.stopped), ("truncated", cut)] {
        if let (true, Some(fields)) = (is, metadata.as_object_mut()) {
            fields.insert(name.to_owned(), json!(true));
        }
    }
    Said { success: code == 0, metadata: Some(metadata), ..Said::text(output) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_and_secrets_survive_any_cut_as_they_should() {
        let key = format!("csk_{}_{}", "0".repeat(32), "A".repeat(43));
        let text = format!("é {key} 語\n");
        for at in 0..text.len() {
            let (one, two) = text.as_bytes().split_at(at);
            let mut piece = Piece::default();
            let told = piece.push(one) + &piece.push(two) + &piece.end();
            assert_eq!(told, "é [scrubbed] 語\n", "cut at {at}");
        }
        let mut piece = Piece::default();
        assert_eq!(piece.push(b"a\xff\xc3") + &piece.end(), "a\u{fffd}\u{fffd}");
    }
}
