//! What running through here costs beside a plain start: `true`, bound, started and waited for, against `bash -c true`
//! and against `true` alone, alternating in one run.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement: a failure is its result")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use countersign_model::Exec;
use countersign_runner::{Inherited, Spec, Stdio, What, bind, start};

const ROUNDS: usize = 500;

type Way<'w> = (&'static str, Box<dyn FnMut() + 'w>, Vec<Duration>);

fn main() {
    let inherited = Inherited::capture();
    let words = vec!["true".to_owned()];
    let mut ways: [Way<'_>; 5] = [
        ("bash -c true, plain", Box::new(|| plain(&["bash", "-c", "true"])), Vec::new()),
        ("bash -c true, bound", Box::new(|| bound(What::Text { text: "true", shell: None }, &inherited)), Vec::new()),
        ("true, plain", Box::new(|| plain(&["true"])), Vec::new()),
        ("true, bound", Box::new(|| bound(What::Words(&words), &inherited)), Vec::new()),
        ("binding alone", Box::new(|| drop(look(What::Words(&words), &inherited))), Vec::new()),
    ];
    for _ in 0..ROUNDS {
        for (_, run, times) in &mut ways {
            let begun = Instant::now();
            run();
            times.push(begun.elapsed());
        }
    }
    let medians: Vec<Duration> = ways.iter_mut().map(|(_, _, times)| median(times)).collect();
    let base = medians.first().copied().unwrap_or_default();
    for ((name, _, _), median) in ways.iter().zip(medians) {
        println!("{name:22} {:>8.0?} µs  {:.2} × plain bash", median.as_micros(), median.div_duration_f64(base));
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn plain(words: &[&str]) {
    let (program, arguments) = words.split_first().unwrap();
    assert!(Command::new(program).args(arguments).output().unwrap().status.success());
}

fn look(what: What<'_>, inherited: &Inherited) -> countersign_model::Binding {
    let spec = Spec { what, cwd: Path::new("/tmp"), workspace: None, env: &BTreeMap::new(), inherited };
    bind(&spec).unwrap().into_binding()
}

fn bound(what: What<'_>, inherited: &Inherited) {
    let binding = Some(Box::new(look(what, inherited)));
    let exec = match what {
        What::Words(words) => Exec { binding, ..Exec::of_words(words.to_vec(), None, BTreeMap::new()) },
        What::Text { text, .. } => {
            Exec { command: text.to_owned(), argv: None, cwd: None, env: BTreeMap::new(), binding }
        }
    };
    let outcome = start(&exec, inherited, Stdio::Capture).unwrap().wait(None, &mut |_, _| {}).unwrap();
    assert_eq!(outcome.exit_code(), 0);
}
