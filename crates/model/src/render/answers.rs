//! What each yes to a request would stand for, in words: read before it is given, the same words on every surface.

use countersign_shell::Offer;
use serde::Serialize;

use super::escape_line;
use crate::action::Action;
use crate::approval::Approval;
use crate::mask::mask;
use crate::menu::Code;

/// One way to say yes. Either a decision's word or a code of the menu.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnswerWords {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    pub words: String,
}

/// The ways to allow this, the narrowest first. What is not there cannot be given.
pub fn answers(approval: &Approval) -> Vec<AnswerWords> {
    let request = &approval.request;
    let decision = |word, words| AnswerWords { decision: Some(word), code: None, words };
    let code = |code, words| AnswerWords { decision: None, code: Some(code), words };
    let mut all = vec![decision("allow-once", "this, once".to_owned())];
    if matches!(request.action, Action::Question { .. }) {
        return all;
    }
    if let Some(this) = narrowest(approval) {
        all.push(decision("allow-session", format!("{SESSION}, {this}")));
        all.push(decision("allow-always", format!("{MONTH}, {this}")));
    }
    let client = escape_line(&request.requester.name);
    let kind = match &request.action {
        Action::Exec(_) => format!(
            "every command of `{client}` that is not dangerous, not only this one: also such as delete, install or send, as long as they can be read whole and hold no inline code"
        ),
        Action::Tool { name, .. } => format!(
            "every call of the tool `{}` by `{client}` under this action type, whatever its arguments",
            escape_line(name)
        ),
        Action::Custom { .. } | Action::Question { .. } => format!(
            "every action that `{client}` calls `{}`, whatever it does",
            escape_line(request.action_type.as_str())
        ),
    };
    all.push(code(Code::AllowForSession, format!("{SESSION}, {kind}")));
    all.push(code(Code::AllowActionType, format!("until revoked, in every session, {kind}")));
    all
}

const SESSION: &str = "for the rest of this session, a day at most";
const MONTH: &str = "for 30 days, in every session";

/// What an entry would cover, where one can be made.
fn narrowest(approval: &Approval) -> Option<String> {
    match &approval.request.action {
        Action::Exec(_) => match approval.offer()? {
            Offer::Entries { patterns, .. } => {
                let quoted: Vec<String> =
                    patterns.iter().map(|pattern| format!("`{}`", escape_line(&mask(pattern).text))).collect();
                let holds = approval.offer_holds().map(|holds| format!(", {}", escape_line(&mask(&holds).text)));
                Some(format!("just {}{}", quoted.join(" and "), holds.unwrap_or_default()))
            }
            Offer::Refused(_) => None,
        },
        Action::Tool { name, .. } => {
            Some(format!("every call of the tool `{}`, whatever its arguments", escape_line(name)))
        }
        Action::Custom { .. } => Some("just this very action".to_owned()),
        Action::Question { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::approval::Terms;
    use crate::canonical::sha256;
    use crate::id::ApprovalId;
    use crate::request::tests::{custom, exec, question, request, tool};
    use crate::ruling::Fallback;
    use crate::time::Timestamp;

    fn approval(action: Action) -> Approval {
        let terms = Terms {
            created_at: Timestamp::from_millis(1),
            expires_at: Timestamp::from_millis(2),
            policy_hash: sha256(b""),
            fallback: Fallback::Deny,
            allow_safe: true,
            trusted: false,
            approvers: None,
            prior: None,
        };
        let (id, request) = (ApprovalId::from_random([7; 16]), Arc::new(request(action)));
        Approval { id, request, terms, outcome: None, consumed_at: None, told: false, run: None }
    }

    fn words(action: Action) -> Vec<String> {
        answers(&approval(action)).into_iter().map(|answer| answer.words).collect()
    }

    #[test]
    fn the_narrow_ones_come_first_and_the_wide_ones_say_how_wide() {
        let all = words(exec("yarn build"));
        assert_eq!(all.len(), 5);
        assert_eq!(all[0], "this, once");
        assert!(
            all[1].starts_with("for the rest of this session")
                && all[1].contains("just `yarn build`, where no folder is named"),
            "{all:?}"
        );
        assert!(
            all[2].starts_with("for 30 days") && all[2].contains("just `yarn build`, where no folder is named"),
            "{all:?}"
        );
        for wide in &all[3..] {
            assert!(wide.contains("every command of") && wide.contains("not dangerous"), "{wide}");
        }
        assert!(
            all[3].starts_with("for the rest of this session, a day at most") && all[4].starts_with("until revoked")
        );
    }

    #[test]
    fn what_cannot_be_given_is_not_there() {
        assert_eq!(words(exec("rm -rf /")).len(), 3, "no entry is made for what is dangerous");
        assert_eq!(words(question()).len(), 1);
        assert_eq!(words(tool("Write", "edit")).len(), 5);
        assert!(words(custom("http_request", "GET /a"))[3].contains("`http_request`"));
    }

    #[test]
    fn a_name_that_would_trick_a_terminal_does_not() {
        let mut tricky = approval(exec("npm ci"));
        Arc::make_mut(&mut tricky.request).requester.name = "W\u{1b}[2J".to_owned();
        assert!(answers(&tricky).iter().all(|answer| !answer.words.contains('\u{1b}')));
    }

    #[test]
    fn the_number_is_three_digits_and_one_requests_own() {
        let numbers: Vec<String> = (0..50)
            .map(|at| Approval { id: ApprovalId::from_random([at; 16]), ..approval(exec("rm -rf /")) }.number())
            .collect();
        assert!(numbers.iter().all(|number| number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit())));
        let first = numbers.first().unwrap();
        assert!(numbers.iter().any(|number| number != first));
        assert_eq!(approval(exec("rm -rf /")).number(), approval(exec("rm -rf /")).number());
        assert_ne!(approval(exec("rm -rf /")).number(), approval(exec("rm -rf /*")).number());
    }
}
