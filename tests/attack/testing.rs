//! Judges lines and runs what is allowed: by `assess --look` and bash, or by `countersign run` itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::generator::Attack;
use crate::sandbox::{Left, Sandbox};

/// Lines wait for programs more than for the processor.
const SANDBOXES: usize = 2;
/// A machine is renewed after so many lines, and after every one that did harm.
const LINES_A_MACHINE: usize = 100;
const MAX_MINIMISED: usize = 12;
const MAX_TRIES: usize = 60;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Judged in batches by `assess --look`, run by bash as an executor would.
    Look,
    /// Asked and run by `countersign run` with an agent's key, where nobody is there to ask.
    Run,
    /// The same, with the variables not in the request but in the environment that `countersign run` was started in.
    Inherited,
    /// Asked over HTTP with the folder as `cwd`, run by bash where the answer is yes. That door looks at nothing on
    /// disk, so it is asked about secrets only.
    Http,
}

/// One who can try a line.
pub struct Tester {
    by: By,
    look: Option<Sandbox>,
    machine: Sandbox,
}

impl Tester {
    pub fn new(by: By) -> Self {
        match by {
            By::Look => Self { by, look: Some(looker()), machine: Sandbox::driver() },
            By::Run | By::Inherited | By::Http => Self { by, look: None, machine: Sandbox::gate() },
        }
    }

    /// What it left behind, or nothing where the gate did not allow it.
    pub fn attempt(&mut self, attack: &Attack) -> Option<Left> {
        if let Some(look) = &mut self.look
            && !judge(look, std::slice::from_ref(attack))[0]
        {
            return None;
        }
        self.run(attack)
    }

    fn run(&mut self, attack: &Attack) -> Option<Left> {
        if self.by == By::Http && !self.approved(attack) {
            return None;
        }
        if matches!(self.by, By::Look | By::Http) {
            return Some(self.machine.run(&attack.folder, &attack.env, &["bash", "-c", &attack.line]));
        }
        let mut around = vec![("COUNTERSIGN_KEY".to_owned(), self.machine.agent_key())];
        let mut variables: Vec<String> =
            attack.env.iter().map(|(name, value)| format!("--env={name}={value}")).collect();
        if self.by == By::Inherited {
            around.extend(attack.env.iter().cloned());
            variables.clear();
        }
        let mut words = vec!["/opt/countersign", "run", "-c", &attack.line, "--cwd", &attack.folder];
        words.extend(attack.workspace().iter().flat_map(|workspace| ["--workspace", workspace]));
        words.extend(variables.iter().map(String::as_str));
        let left = self.machine.run("/", &around, &words);
        (left.status != 77 || !left.harm.is_empty()).then_some(left)
    }

    fn approved(&mut self, attack: &Attack) -> bool {
        let key = format!("Authorization: Bearer {}", self.machine.agent_key());
        let body =
            json!({"session_id": "s", "command": attack.line, "cwd": attack.folder, "consume": true}).to_string();
        let url = format!("{}/v1/approvals", self.machine.url());
        let words = ["curl", "-s", "-H", &key, "-H", "Content-Type: application/json", "--data-binary", &body, &url];
        let output = self.machine.run("/", &[], &words).output;
        let told: Value = serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        told["status"] == "approved"
    }

    /// Harm it does on a machine as new.
    fn harm(&mut self, attack: &Attack) -> BTreeSet<String> {
        let left = self.attempt(attack);
        let harm = left.map(|left| left.harm).unwrap_or_default();
        if !harm.is_empty() {
            self.machine.renew();
        }
        harm
    }

    /// The shortest line found that still is allowed and does harm.
    fn minimise(&mut self, attack: &Attack) -> (Attack, BTreeSet<String>) {
        let mut best = attack.clone();
        let mut harm = self.harm(attack);
        let mut tries = 0;
        let mut size = tokens(&best.line).len().div_ceil(2);
        while size >= 1 && tries < MAX_TRIES {
            let parts = tokens(&best.line);
            let shorter = (0..parts.len()).step_by(size).find_map(|at| {
                tries += 1;
                if tries > MAX_TRIES {
                    return None;
                }
                let line: String = parts
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| *i < at || *i >= at + size)
                    .map(|(_, part)| *part)
                    .collect();
                let candidate = Attack { line, ..best.clone() };
                let found = if candidate.line.trim().is_empty() { BTreeSet::new() } else { self.harm(&candidate) };
                (!found.is_empty()).then_some((candidate, found))
            });
            match shorter {
                Some((candidate, found)) => (best, harm) = (candidate, found),
                None => size /= 2,
            }
        }
        (best, harm)
    }
}

/// Words and blanks and signs, so that joined they are the line.
fn tokens(line: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let class = |letter: char| match letter {
        letter if letter.is_alphanumeric() || "_./-~*".contains(letter) => 1,
        ' ' => 2,
        _ => 0,
    };
    let mut before = None;
    for (at, letter) in line.char_indices() {
        let now = class(letter);
        if before.is_some_and(|before| before != now || now == 0) {
            parts.push(&line[start..at]);
            start = at;
        }
        before = Some(now);
    }
    parts.push(&line[start..]);
    parts
}

fn looker() -> Sandbox {
    Sandbox::start(&[
        "/usr/bin/env",
        crate::sandbox::PLANTED_VARIABLE,
        "/opt/countersign",
        "assess",
        "--look",
        "--jsonl",
    ])
}

/// Which of these run unasked, as `assess --look` says.
fn judge(look: &mut Sandbox, attacks: &[Attack]) -> Vec<bool> {
    let row = |attack: &Attack| {
        let env: BTreeMap<&str, &str> =
            attack.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut row = json!({"command": attack.line, "cwd": attack.folder, "env": env});
        if let Some(workspace) = attack.workspace() {
            row["workspace"] = json!(workspace);
        }
        row.to_string()
    };
    let rows: Vec<String> = attacks.iter().map(row).collect();
    let answers = look.exchange(&rows);
    let allowed = |(attack, answer): (&Attack, &String)| {
        let told: Value =
            serde_json::from_str(answer).unwrap_or_else(|error| panic!("{error}: {answer:?} for {attack:?}"));
        match told["verdict"].as_str() {
            Some("allow") => true,
            Some("ask" | "deny") => false,
            other => panic!("{other:?} is no verdict: {answer}"),
        }
    };
    attacks.iter().zip(&answers).map(allowed).collect()
}

/// What came of many lines.
pub struct Survey {
    pub allowed: usize,
    pub failing: Vec<String>,
}

pub fn survey(attacks: &[Attack], by: By) -> Survey {
    let chosen: Vec<&Attack> = match by {
        By::Run | By::Inherited | By::Http => attacks.iter().collect(),
        By::Look => {
            let allowed = judge(&mut looker(), attacks);
            attacks.iter().zip(allowed).filter(|(_, allowed)| *allowed).map(|(attack, _)| attack).collect()
        }
    };
    let (next, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let harmful: Mutex<Vec<(Attack, BTreeSet<String>)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..SANDBOXES {
            scope.spawn(|| {
                let mut tester = Tester::new(by);
                for count in 1.. {
                    let Some(attack) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    let Some(left) = tester.run(attack) else { continue };
                    ran.fetch_add(1, Ordering::Relaxed);
                    if !left.harm.is_empty() {
                        // At once: minimising takes its time, and may be cut off.
                        println!("harm: {:?} in {} {:?}: {:?}", attack.line, attack.folder, attack.env, left.harm);
                        harmful.lock().unwrap().push(((*attack).clone(), left.harm));
                    }
                    if count % LINES_A_MACHINE == 0
                        || harmful.lock().unwrap().last().is_some_and(|(last, _)| last.line == attack.line)
                    {
                        tester.machine.renew();
                    }
                }
            });
        }
    });
    let harmful = harmful.into_inner().unwrap();
    Survey { allowed: ran.into_inner(), failing: explain(harmful, by) }
}

/// Each kind of harm minimised once or a few times, the rest as they are.
fn explain(mut harmful: Vec<(Attack, BTreeSet<String>)>, by: By) -> Vec<String> {
    if harmful.is_empty() {
        return Vec::new();
    }
    // Harm that is seldom first, short lines first: those say the most.
    let mut often: BTreeMap<BTreeSet<String>, usize> = BTreeMap::new();
    harmful.sort_by_key(|(attack, _)| (attack.line.len(), attack.line.clone()));
    let mut keyed: Vec<(usize, Attack, BTreeSet<String>)> = Vec::new();
    for (attack, harm) in harmful {
        let seen = often.entry(harm.clone()).or_default();
        keyed.push((*seen, attack, harm));
        *seen += 1;
    }
    keyed.sort_by_key(|(nth, ..)| *nth);
    let mut tester = Tester::new(by);
    let mut told = BTreeSet::new();
    for (at, (_, attack, harm)) in keyed.iter().enumerate() {
        let (small, found) = if at < MAX_MINIMISED { tester.minimise(attack) } else { (attack.clone(), harm.clone()) };
        let _new = told.insert(match found.is_empty() {
            false => format!("{:?} in {} {:?}: {found:?}", small.line, small.folder, small.env),
            true => {
                format!("{:?} in {} {:?}: {harm:?}, once, after other lines", attack.line, attack.folder, attack.env)
            }
        });
    }
    told.into_iter().collect()
}
