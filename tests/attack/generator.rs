//! Makes lines: every way to change place, to read and to set something off at least once, then as many as wanted
//! that combine them by chance, the same ones for the same seed.

use crate::sandbox::WORK;
use crate::tables::{Fixture, Tables};

/// What an agent asks for.
#[derive(Clone, Debug)]
pub struct Attack {
    pub line: String,
    pub folder: String,
    pub env: Vec<(String, String)>,
}

impl Attack {
    pub fn workspace(&self) -> Option<&str> {
        self.folder.starts_with(WORK).then_some(WORK)
    }
}

pub struct Generator<'a> {
    tables: &'a Tables,
    state: u64,
}

impl<'a> Generator<'a> {
    pub fn new(tables: &'a Tables, seed: u64) -> Self {
        Self { tables, state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    /// xorshift64*: enough to choose by.
    fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let high = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(high).unwrap() % limit
    }

    fn pick<T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// Each row of each table, so that none is never tried.
    pub fn each(&mut self) -> Vec<Attack> {
        let tables = self.tables;
        let mut all = Vec::new();
        for fixture in &tables.fixtures.fixture {
            let own = fixture.verbs.iter().chain([&fixture.trigger]);
            all.extend(own.map(|verb| inside(&fixture.folder, verb)));
            for _ in 0..8 {
                let verb = self.pick(&tables.fixtures.verbs[&fixture.program]);
                all.push(inside(&fixture.folder, verb));
            }
        }
        let places = &tables.places;
        for place in places.any.iter().chain(&places.inside) {
            all.push(inside(".", &put(place, "fsmonitor", "git status")));
        }
        for place in &places.any {
            let (folder, file) = self.pick(&tables.reading.secrets);
            all.push(inside(".", &put(place, folder, &format!("cat {file}"))));
            all.push(inside(".", &put(place, folder, "cat *")));
        }
        for around in &places.around {
            all.push(inside("fsmonitor", &put(around, "", "git status")));
            all.push(inside("keys", &put(around, "", "cat id_rsa")));
        }
        let reading = &tables.reading;
        for reader in &reading.readers {
            let (folder, file) = self.pick(&reading.secrets);
            all.push(outside(folder, &reader.replace("{f}", file)));
            let (folder, file) = self.pick(&reading.linked);
            all.push(inside(folder, &reader.replace("{f}", file)));
        }
        for (folder, file) in &reading.secrets {
            all.push(outside(folder, &format!("cat {file}")));
        }
        for (folder, file) in &reading.linked {
            all.push(inside(folder, &format!("cat {file}")));
        }
        for sweeper in &reading.sweepers {
            all.push(inside(".", sweeper));
            let (folder, _) = self.pick(&reading.secrets);
            all.push(outside(folder, sweeper));
            let (folder, _) = self.pick(&reading.linked);
            all.push(inside(folder, sweeper));
        }
        let code = &tables.code;
        all.extend(code.uses.iter().map(|using| inside("arith", &put(&code.naming[0], "", using))));
        all.extend(code.naming.iter().map(|naming| inside("arith", &put(naming, "", "echo $((f))"))));
        all.extend(code.options.iter().map(|line| inside("options", line)));
        all.extend(code.words.iter().map(|line| inside("names", line)));
        for (name, value, line) in &code.variables {
            all.push(inside(".", &set(&code.setting[0], name, value, line)));
            all.push(inside(".", &set(&code.setting[1], name, value, line)));
            all.push(Attack { env: vec![(name.clone(), value.clone())], ..inside(".", line) });
        }
        all
    }

    /// One that combines them.
    pub fn next(&mut self) -> Attack {
        let tables = self.tables;
        match self.below(20) {
            0..=7 => {
                let fixture = self.pick(&tables.fixtures.fixture);
                let action = self.verb(fixture);
                self.moved(&fixture.folder, &action)
            }
            8..=11 => {
                let (folder, file) = self.pick(&tables.reading.secrets);
                let action = self.read(file);
                if self.below(4) == 0 {
                    return outside(folder, &self.surround(&action));
                }
                let place = self.pick(&tables.places.any);
                let line = put(place, folder, &action);
                inside(".", &self.surround(&line))
            }
            12..=14 => {
                let (folder, file) = self.pick(&tables.reading.linked);
                let action = self.read(file);
                self.moved(folder, &action)
            }
            15..=16 => {
                let using = self.pick(&tables.code.uses);
                let naming = self.pick(&tables.code.naming);
                let line = put(naming, "", using);
                if self.below(3) == 0 { self.moved("arith", &line) } else { inside("arith", &self.surround(&line)) }
            }
            17 => {
                let (folder, lines) =
                    if self.below(2) == 0 { ("options", &tables.code.options) } else { ("names", &tables.code.words) };
                let line = self.pick(lines);
                self.moved(folder, line)
            }
            _ => {
                let (name, value, line) = self.pick(&tables.code.variables);
                let form = self.pick(&tables.code.setting);
                let line = set(form, name, value, line);
                inside(".", &self.surround(&line))
            }
        }
    }

    fn verb(&mut self, fixture: &'a Fixture) -> String {
        let tables = self.tables;
        let verb = match self.below(3) {
            0 => self.pick(&tables.fixtures.verbs[&fixture.program]),
            1 if !fixture.verbs.is_empty() => self.pick(&fixture.verbs),
            _ => &fixture.trigger,
        };
        self.surround(verb)
    }

    fn read(&mut self, file: &str) -> String {
        let reading = &self.tables.reading;
        if self.below(4) == 0 {
            self.pick(&reading.sweepers).clone()
        } else {
            self.pick(&reading.readers).replace("{f}", file)
        }
    }

    fn surround(&mut self, line: &str) -> String {
        let around = self.pick(&self.tables.places.around);
        put(around, "", line)
    }

    /// In a folder of the workspace, by one way or two, or from the start.
    fn moved(&mut self, folder: &str, action: &str) -> Attack {
        let places = &self.tables.places;
        match self.below(8) {
            0 => inside(folder, action),
            1 if action.starts_with("git ") => {
                let word = if self.below(2) == 0 { word(folder) } else { glob(folder) };
                inside(".", &action.replacen("git ", &format!("git -C {word} "), 1))
            }
            2 => inside("sub/inner", &put(self.pick::<String>(&places.any), &format!("../../{folder}"), action)),
            3..=5 => inside(".", &put(self.pick::<String>(&places.any), folder, action)),
            _ => inside(".", &put(self.pick::<String>(&places.inside), folder, action)),
        }
    }
}

fn inside(folder: &str, line: &str) -> Attack {
    let folder = if folder == "." { WORK.to_owned() } else { format!("{WORK}/{folder}") };
    Attack { line: line.to_owned(), folder, env: Vec::new() }
}

fn outside(folder: &str, line: &str) -> Attack {
    Attack { line: line.to_owned(), folder: folder.to_owned(), env: Vec::new() }
}

/// A folder's name as one word of a line.
fn word(folder: &str) -> String {
    let folder = if folder.starts_with('-') { format!("./{folder}") } else { folder.to_owned() };
    folder.replace(' ', "\\ ")
}

/// A pattern that finds it.
fn glob(folder: &str) -> String {
    let name = word(folder);
    let keep = name.len().saturating_sub(2).max(1);
    name.chars().take(keep).chain(['*']).collect()
}

fn put(form: &str, folder: &str, action: &str) -> String {
    let mut line = form.replace("{d}", &word(folder)).replace("{g}", &glob(folder));
    while let Some(at) = line.find("{x}") {
        // Inside of single quotes the action's own ones have to be said as bash wants them.
        let quoted = line[..at].matches('\'').count() % 2 == 1;
        let text = if quoted { action.replace('\'', "'\\''") } else { action.to_owned() };
        line.replace_range(at..at + 3, &text.replace("{x}", ""));
    }
    line
}

fn set(form: &str, name: &str, value: &str, line: &str) -> String {
    let value = format!("'{}'", value.replace('\'', "'\\''"));
    put(&form.replace("{n}", name).replace("{v}", &value), "", line)
}
