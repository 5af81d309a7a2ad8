//! What became of every line of the source, for people and for programs.

use countersign_model::escape_line;
use serde_json::{Value, json};

use crate::output::{self, Style};
use crate::table::{Column, Table};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Taken,
    /// Imported, and less than the source meant.
    Narrowed,
    Refused,
    /// It held before.
    Unchanged,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub fate: Fate,
    pub from: String,
    /// What it is in the policy now.
    pub to: Vec<String>,
    pub why: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub entries: Vec<Entry>,
}

const COLUMNS: [Column; 4] = [
    Column { title: "", least: 9, spare: 0 },
    Column { title: "FROM", least: 16, spare: 0 },
    Column { title: "TO", least: 12, spare: 0 },
    Column { title: "WHY", least: 12, spare: 1 },
];

impl Fate {
    fn name(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Narrowed => "narrowed",
            Self::Refused => "refused",
            Self::Unchanged => "unchanged",
        }
    }
}

impl Report {
    pub fn count(&self, fate: Fate) -> usize {
        self.of(fate).count()
    }

    fn of(&self, fate: Fate) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.fate == fate)
    }

    pub fn summary(&self) -> String {
        let fates = [Fate::Taken, Fate::Narrowed, Fate::Refused, Fate::Unchanged];
        let counts: Vec<String> = fates.iter().map(|fate| format!("{} {}", self.count(*fate), fate.name())).collect();
        counts.join(", ")
    }

    pub fn to_json(&self, format: &str) -> Value {
        let list = |fate: Fate| -> Vec<Value> {
            self.of(fate)
                .map(|entry| {
                    let mut out = json!({"from": entry.from});
                    if let Some(out) = out.as_object_mut() {
                        if !entry.to.is_empty() {
                            out.insert("to".to_owned(), json!(entry.to));
                        }
                        if let Some(why) = &entry.why {
                            out.insert("why".to_owned(), json!(why));
                        }
                    }
                    out
                })
                .collect()
        };
        json!({
            "format": format,
            "taken": list(Fate::Taken), "narrowed": list(Fate::Narrowed),
            "refused": list(Fate::Refused), "unchanged": list(Fate::Unchanged),
        })
    }

    /// Whether something was cut to fit.
    pub fn print(&self) -> anyhow::Result<bool> {
        if self.entries.is_empty() {
            return Ok(false);
        }
        let mut table = Table::new(&COLUMNS);
        for entry in &self.entries {
            let to: Vec<String> = entry.to.iter().map(|to| escape_line(to)).collect();
            let why = entry.why.as_deref().map(escape_line).unwrap_or_default();
            table.row(vec![entry.fate.name().to_owned(), escape_line(&entry.from), to.join("; "), why]);
        }
        let fitted = table.fit(output::columns(), Style::of_stdout());
        output::write(&fitted.text)?;
        Ok(fitted.cut)
    }
}
