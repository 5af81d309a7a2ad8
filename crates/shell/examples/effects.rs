//! Checks files of `rules/effects/` while they are being written, without building anything.
//!
//!   effects check FILE…        are the examples said as they are written, and is every form used by one?
//!   effects say FILE… < lines  what a person would read of each line, by these files

use std::io::{BufRead as _, IsTerminal as _};
use std::process::ExitCode;

use countersign_shell::{EffectsCompiler, EffectsTable, Location, Options, assess, tell};

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let verb = words.next().unwrap_or_default();
    let files: Vec<String> = words.collect();
    let texts: Result<Vec<String>, _> = files.iter().map(std::fs::read_to_string).collect();
    let Ok(texts) = texts else {
        eprintln!("a file cannot be read; give paths of `rules/effects/*.toml`");
        return ExitCode::FAILURE;
    };
    match verb.as_str() {
        "check" if !files.is_empty() => check(&files, &texts),
        "say" if !files.is_empty() => say(&texts),
        _ => {
            eprintln!("effects check FILE… | effects say FILE… < lines");
            ExitCode::FAILURE
        }
    }
}

fn table(texts: &[String]) -> Result<EffectsTable, String> {
    let mut compiler = EffectsCompiler::default();
    for text in texts {
        compiler.add(text).map_err(|error| error.to_string())?;
    }
    Ok(compiler.finish())
}

fn sentence(command: &str, table: &EffectsTable) -> String {
    tell(&assess(command, &Options::default()), &Location::default(), table).sentence
}

fn say(texts: &[String]) -> ExitCode {
    let table = match table(texts) {
        Ok(table) => table,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    if std::io::stdin().is_terminal() {
        eprintln!("type commands, one a line");
    }
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        println!("{line}\n    {}", sentence(&line, &table));
    }
    ExitCode::SUCCESS
}

fn check(files: &[String], texts: &[String]) -> ExitCode {
    let mut wrong = 0usize;
    for (file, text) in files.iter().zip(texts) {
        let mut compiler = EffectsCompiler::default();
        let read = match compiler.add(text) {
            Ok(read) => read,
            Err(error) => {
                println!("{file}: {error}");
                wrong += 1;
                continue;
            }
        };
        let table = compiler.finish();
        let (mut forms, mut examples) = (0, 0);
        for program in read.programs.iter().map(|program| program.get_ref()) {
            forms += program.forms.len();
            examples += program.examples.len();
            let mut used: Vec<(String, usize)> = Vec::new();
            for (command, expected) in &program.examples {
                let said = sentence(command, &table);
                if said != *expected {
                    wrong += 1;
                    println!("{file}: {command}\n    expected {expected}\n    said     {said}");
                }
                used.extend(table.forms_used(command));
            }
            let name = program.names.first().cloned().unwrap_or_default();
            for (at, words) in program.forms.keys().enumerate() {
                if !used.iter().any(|(program_name, form)| program.names.contains(program_name) && *form == at) {
                    wrong += 1;
                    println!("{file}: no example uses `{name}` with the form `{words}`");
                }
            }
        }
        println!("{file}: {} programs, {forms} forms, {examples} examples", read.programs.len());
    }
    println!("{wrong} to repair");
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
