//! The environment a command is given from outside its text, judged by the same layers as if the text began by setting
//! it.

use crate::assess::Options;
use crate::command::{Assignment, Place, RunsIn, Simple, Stdin};
use crate::danger::{self, Scope};
use crate::reason::Reason;
use crate::rules::Rules;
use crate::walk::Constructs;
use crate::word::{Span, Value, Word};
use crate::{safe, syntax};

/// These reasons point at no bytes of the text.
const NOWHERE: Span = Span { start: 0, end: 0 };

#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    pub reasons: Vec<Reason>,
    /// A name among them decides what programs run or load: no entry speaks for that.
    pub never_covered: bool,
}

pub(crate) fn judge(options: &Options<'_>) -> Surroundings {
    if options.environment.is_empty() {
        return Surroundings::default();
    }
    let known = |text: &str| Word { span: NOWHERE, value: Value::Known(text.to_owned()) };
    let assign = |(name, value): &(&str, &str)| Assignment {
        span: NOWHERE,
        name: (*name).to_owned(),
        value: Some(known(value)),
    };
    // A program of which nothing is said, so that all that is said is of the variables.
    let simple = Simple {
        span: NOWHERE,
        assignments: options.environment.iter().map(assign).collect(),
        argv: vec![known("true")],
        redirects: Vec::new(),
        via: Vec::new(),
        stdin: Stdin::Inherited,
        place: Place::default(),
        runs_in: RunsIn::default(),
        more_arguments: false,
    };
    let (mut reasons, mut constructs) = (Vec::new(), Constructs::default());
    syntax::judge(&simple, &mut reasons, &mut constructs);
    reasons.extend(safe::judge(&simple, safe::Around::default()).reasons);
    let scope = Scope { workspace: options.location.workspace };
    let judged = danger::judge(std::slice::from_ref(&simple), &scope, options.rules.and_then(Rules::dangers), |_| true);
    reasons.extend(judged.each.into_iter().map(|(_, reason)| reason));
    Surroundings { reasons, never_covered: constructs.dangerous_assignment }
}

#[cfg(test)]
mod tests {
    use crate::{Options, Risk, Verdict, assess, verdict_of};

    fn risk(environment: &[(&str, &str)]) -> Risk {
        assess("git status", &Options { environment, ..Options::default() }).risk
    }

    #[test]
    fn what_is_set_outside_counts_as_if_set_inside() {
        assert_eq!(risk(&[]), Risk::Safe);
        assert_eq!(risk(&[("LC_ALL", "C"), ("CI", "1")]), Risk::Safe);
        assert_eq!(risk(&[("FOO", "1")]), Risk::NeedsReview);
        assert_eq!(risk(&[("LD_PRELOAD", "/tmp/x.so")]), Risk::Dangerous);
        assert_eq!(risk(&[("GIT_CONFIG_COUNT", "1")]), Risk::NeedsReview);
    }

    #[test]
    fn no_entry_speaks_for_a_dangerous_variable_from_outside() {
        let verdict = |environment: &[(&str, &str)]| {
            verdict_of("make all", &["make **"], &Options { environment, ..Options::default() })
        };
        assert_eq!(verdict(&[("FOO", "1")]), Verdict::Allow);
        assert_eq!(verdict(&[("PATH", "/tmp")]), Verdict::Ask);
        assert_eq!(verdict(&[("GIT_SSH_COMMAND", "x")]), Verdict::Ask);
    }
}
