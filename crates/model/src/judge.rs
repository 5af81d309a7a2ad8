//! From a policy document and a request to a ruling: gathers the facts, rules once for each set of terms
//! that has a say, and keeps the strictest.

use crate::action::Action;
use crate::canonical::Digest;
use crate::grant::Grant;
use crate::id::GrantId;
use crate::policy::{Flood, Overlay, Policy, StoredPolicy, ToolEffect, ToolRule};
use crate::request::Request;
use crate::risk::Assessment;
use crate::ruling::{AllowBy, Ask, DenyWhy, Facts, Fallback, Mode, Ruling, Security, Terms, rule};
use crate::terminal::TerminalTerms;
use crate::time::Timestamp;

/// The category of tools that run commands.
const COMMANDS: &str = "exec";

/// What policy says of one request, with everything a question would need.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    pub ruling: Ruling,
    /// The grant that covers it, whether or not the ruling rests on it.
    pub grant: Option<GrantId>,
    /// Whether row 6 would have applied: what fallback `allowlist` asks.
    pub covered: bool,
    pub policy_hash: Digest,
    pub timeout_ms: Option<u64>,
    /// How long a person has where nobody says, by the workspace's file.
    pub default_ms: Option<u64>,
    pub fallback: Fallback,
    pub approvers: Option<Vec<String>>,
    pub allow_safe: bool,
    pub flood: Flood,
}

/// `trusted`: the workspace's file is, byte for byte, the one that a person trusts.
pub fn judge(stored: &StoredPolicy, request: &Request, grants: &[Grant], trusted: bool, now: Timestamp) -> Judgement {
    let Ok(policy) = &stored.policy else {
        return Judgement {
            ruling: Ruling::Deny(DenyWhy::PolicyUnreadable),
            grant: None,
            covered: false,
            policy_hash: stored.hash,
            timeout_ms: None,
            default_ms: None,
            fallback: Fallback::Deny,
            approvers: Some(Vec::new()),
            allow_safe: false,
            flood: Flood::default(),
        };
    };
    let overlay = request.words.agent_id.as_ref().and_then(|agent| policy.agents.get(agent));
    let subject = Subject { policy, request, grants, trusted, now };

    let base = subject.pass(None);
    let mut ruling = base.ruling(request);
    let mut covered = base.cover.is_some();
    if overlay.is_some() {
        let narrowed = subject.pass(overlay);
        covered &= narrowed.cover.is_some();
        ruling = ruling.max(narrowed.ruling(request));
    }
    let asked = Terms {
        security: request.terms.security.unwrap_or(base.terms.security),
        ask: request.terms.ask.unwrap_or(base.terms.ask),
        ..base.terms
    };
    ruling = ruling.max(Pass { terms: asked, ..base }.ruling(request));
    if request.terminal.is_some() && !subject.confirmation_off() {
        // The file wants commands confirmed: that can only make it stricter.
        let confirmed = Terms { security: Security::Allowlist, ask: Ask::OnMiss, ..base.terms };
        ruling = ruling.max(Pass { terms: confirmed, ..base }.ruling(request));
    }

    let overlay_fallback = overlay.and_then(|overlay| overlay.ask_fallback);
    let overlay_timeout = overlay.and_then(|overlay| overlay.timeout_ms);
    Judgement {
        ruling,
        grant: base.cover.and_then(|cover| cover.grant),
        covered,
        policy_hash: stored.hash,
        timeout_ms: [policy.timeout_ms, overlay_timeout].into_iter().flatten().min(),
        default_ms: request.terminal.as_ref().map(|terms| terms.confirmation_ms(trusted)),
        fallback: overlay_fallback.map_or(policy.ask_fallback, |other| other.min(policy.ask_fallback)),
        approvers: policy.approvers.clone(),
        allow_safe: base.terms.allow_safe && overlay.and_then(|overlay| overlay.allow_safe).unwrap_or(true),
        flood: policy.flood.clone(),
    }
}

/// Whether an unanswered request may run under this fallback, as policy and grants stand now.
pub fn fallback_covers(fallback: Fallback, now_judged: &Judgement) -> bool {
    let denied = matches!(now_judged.ruling, Ruling::Deny(_));
    match fallback {
        Fallback::Deny => false,
        Fallback::Allowlist => now_judged.covered && !denied,
        Fallback::Full => !denied,
    }
}

/// The entries, of policy and of grants, that speak for a part of this command: what a yes by entries was made of.
pub fn entries_used(stored: &StoredPolicy, request: &Request, grants: &[Grant], now: Timestamp) -> Vec<String> {
    let (Ok(policy), Some(assessment)) = (&stored.policy, &request.assessment) else { return Vec::new() };
    let listed = policy.allowlist.iter().filter(|entry| entry.arg_pattern.is_none()).map(|entry| &entry.pattern);
    let granted = grants.iter().flat_map(|grant| grant.entries_for(request, now));
    let used = listed.chain(granted).filter(|entry| assessment.has_a_part_for(entry, request.binding()));
    used.map(|entry| entry.pattern.clone()).collect()
}

/// What speaks for a request: a grant, with its id, or policy's own list.
#[derive(Clone, Copy)]
struct Cover {
    by: AllowBy,
    grant: Option<GrantId>,
}

/// One set of terms with the facts seen under it.
#[derive(Clone, Copy)]
struct Pass {
    terms: Terms,
    denied: bool,
    cover: Option<Cover>,
    /// As far as policy lets an engine's session go.
    mode: Option<Mode>,
}

/// Everything a pass looks at.
#[derive(Clone, Copy)]
struct Subject<'j> {
    policy: &'j Policy,
    request: &'j Request,
    grants: &'j [Grant],
    trusted: bool,
    now: Timestamp,
}

impl<'j> Subject<'j> {
    fn pass(self, overlay: Option<&'j Overlay>) -> Pass {
        let Self { policy, request, .. } = self;
        let extra_tools = overlay.map(|overlay| overlay.tools.as_slice()).unwrap_or_default();
        let effect = tool_effect(policy.tools.iter().chain(extra_tools), request);
        let ask = overlay.and_then(|overlay| overlay.ask).unwrap_or(policy.ask);
        let security = overlay.and_then(|overlay| overlay.security).unwrap_or(policy.security);
        let opened = self.confirmation_off() && security != Security::Deny;
        let terms = Terms {
            security: if opened { Security::Full } else { security },
            ask: if effect == Some(ToolEffect::Ask) { Ask::Always } else { ask },
            // In an engine's session its host sees every call, the harmless ones too.
            allow_safe: overlay.and_then(|overlay| overlay.allow_safe).unwrap_or(policy.allow_safe)
                && (policy.assume_project_files_clean || !self.rests_on_unseen_files())
                && request.engine.as_ref().and_then(|engine| engine.mode).is_none(),
        };
        let listed = (effect == Some(ToolEffect::Allow)).then_some(Cover { by: AllowBy::Allowlist, grant: None });
        Pass {
            terms,
            denied: effect == Some(ToolEffect::Deny) || self.blacklisted() || self.command_denied(overlay),
            mode: request.engine.as_ref().and_then(|engine| engine.effective_mode(policy)),
            cover: self.granted().or(listed).or_else(|| self.command_covered(overlay, terms.allow_safe)),
        }
    }

    /// A rule against commands means any part of the line, after unwrapping; what was not understood may be anything.
    fn command_denied(self, overlay: Option<&Overlay>) -> bool {
        let Some(assessment) = &self.request.assessment else { return false };
        let extra = overlay.map(|overlay| overlay.deny.as_slice()).unwrap_or_default();
        let rules = self.policy.deny.iter().chain(extra).map(|rule| &rule.pattern);
        assessment.may_be_any(rules, self.request.binding())
    }

    /// Whether it is safe only if files are harmless that nobody looked at.
    fn rests_on_unseen_files(self) -> bool {
        let obeys = self.request.assessment.as_ref().is_some_and(Assessment::obeys_project);
        obeys && self.request.binding().is_none()
    }

    /// What the workspace's file forbids counts from any file.
    fn blacklisted(self) -> bool {
        self.request.terminal.as_ref().is_some_and(|terms| terms.blacklisted)
    }

    /// A file that a person trusts turns asking off. Deny rules, `security: deny` and `ask: always` stand above it.
    fn confirmation_off(self) -> bool {
        let terms = self.request.terminal.as_ref().filter(|terms| self.trusted && terms.confirmation_off);
        terms.is_some_and(|terms| self.request.stays_in(&terms.workspace))
    }

    /// A grant that speaks for all of it by itself.
    fn granted(self) -> Option<Cover> {
        let grant = self.grants.iter().find(|grant| grant.covers(self.request, self.now))?;
        Some(Cover { by: AllowBy::Grant, grant: Some(grant.id) })
    }

    /// Policy's entries alone, or with those of grants: each part of a line may be another one's.
    fn command_covered(self, overlay: Option<&'j Overlay>, allow_safe: bool) -> Option<Cover> {
        let assessment = self.request.assessment.as_ref()?;
        let files = self.request.binding();
        let listed = overlay.and_then(|overlay| overlay.allowlist.as_ref()).unwrap_or(&self.policy.allowlist);
        // What an argument pattern leaves of an entry is not known here: it speaks for nothing.
        let listed = listed.iter().filter(|entry| entry.arg_pattern.is_none()).map(|entry| &entry.pattern);
        // A workspace's own entries are for what runs inside it.
        let inside = |terms: &&TerminalTerms| self.trusted && self.request.stays_in(&terms.workspace);
        let trusted = self.request.terminal.iter().filter(inside).flat_map(|terms| &terms.whitelisted);
        let listed = listed.chain(trusted);
        if assessment.covered_by(listed.clone(), allow_safe, files) {
            return Some(Cover { by: AllowBy::Allowlist, grant: None });
        }
        let granted = |grant: &'j Grant| grant.entries_for(self.request, self.now);
        let alone = self
            .grants
            .iter()
            .find(|grant| assessment.covered_by(listed.clone().chain(granted(grant)), allow_safe, files));
        let used = alone.or_else(|| {
            let all = listed.clone().chain(self.grants.iter().flat_map(granted));
            let first = self.grants.iter().find(|grant| !granted(grant).is_empty());
            first.filter(|_| assessment.covered_by(all, allow_safe, files))
        })?;
        Some(Cover { by: AllowBy::Grant, grant: Some(used.id) })
    }
}

impl Pass {
    fn ruling(self, request: &Request) -> Ruling {
        rule(
            self.terms,
            Facts {
                kind: request.action.kind(),
                denied: self.denied,
                cover: self.cover.map(|cover| cover.by),
                risk: request.assessment.as_ref().map(|assessment| assessment.risk),
                mode: self.mode,
                mode_covers: request.engine.as_ref().is_some_and(|engine| engine.mode_covers),
            },
        )
    }
}

/// The strictest effect of all rules that name the tool. An action type counts as a tool's name.
fn tool_effect<'a>(rules: impl Iterator<Item = &'a ToolRule>, request: &Request) -> Option<ToolEffect> {
    let (name, category) = match &request.action {
        Action::Tool { name, category, .. } => (name.as_str(), category.as_deref()),
        Action::Custom { action_type, .. } => (action_type.as_str(), None),
        Action::Exec(_) => match request.engine.as_ref().and_then(|engine| engine.tool.as_deref()) {
            Some(tool) => (tool, Some(COMMANDS)),
            None if request.action_type.is_exec() => return None,
            // A rule against a type holds also where the type means a command.
            None => (request.action_type.as_str(), None),
        },
        Action::Question { .. } => return None,
    };
    // Allowing a tool that runs commands would allow every command.
    let counts = |rule: &&ToolRule| rule.effect != ToolEffect::Allow || !matches!(request.action, Action::Exec(_));
    let names_it = |rule: &&ToolRule| {
        rule.name.as_deref() == Some(name) || (category.is_some() && rule.category.as_deref() == category)
    };
    let strictness = |effect: &ToolEffect| match effect {
        ToolEffect::Allow => 0,
        ToolEffect::Ask => 1,
        ToolEffect::Deny => 2,
    };
    rules.filter(names_it).filter(counts).map(|rule| rule.effect).max_by_key(strictness)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::tests::{custom, exec, question, request, tool};
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::from_millis(5);

    fn stored(text: &str) -> StoredPolicy {
        let stored = StoredPolicy::from_text(text);
        assert!(stored.policy.is_ok(), "{text}: {:?}", stored.policy);
        stored
    }

    fn ruling(policy: &str, request: &Request) -> Ruling {
        judge(&stored(policy), request, &[], false, NOW).ruling
    }

    #[test]
    fn a_policy_that_does_not_parse_denies() {
        let judged = judge(&StoredPolicy::from_text("{"), &request(exec("ls")), &[], false, NOW);
        assert_eq!(judged.ruling, Ruling::Deny(DenyWhy::PolicyUnreadable));
        assert!(!fallback_covers(Fallback::Full, &judged));
    }

    #[test]
    fn without_a_document_safe_commands_run_and_everything_else_asks() {
        assert_eq!(
            judge(&StoredPolicy::absent(), &request(exec("git status")), &[], false, NOW).ruling,
            Ruling::Allow(AllowBy::Safe)
        );
        for action in [exec("npm ci"), tool("Read", "info"), question(), custom("a", "b")] {
            assert_eq!(judge(&StoredPolicy::absent(), &request(action), &[], false, NOW).ruling, Ruling::Ask);
        }
    }

    #[test]
    fn a_rule_against_a_command_means_any_part_of_the_line() {
        let policy = r#"{"version":1,"security":"full","deny":[{"pattern":"rm **"}]}"#;
        for command in ["rm x", "ls && sudo rm x", "bash -c 'rm x'", "$X", "echo 'open"] {
            assert_eq!(ruling(policy, &request(exec(command))), Ruling::Deny(DenyWhy::Rule), "{command}");
        }
        for command in ["ls", "git commit -m 'rm x'", ""] {
            assert_eq!(ruling(policy, &request(exec(command))), Ruling::Allow(AllowBy::Full), "{command}");
        }
        assert_eq!(ruling(policy, &request(custom("a", "b"))), Ruling::Allow(AllowBy::Full));
    }

    #[test]
    fn entries_of_policy_and_of_grants_cover_a_line_together() {
        let policy = r#"{"version":1,"allowlist":[{"pattern":"npm ci"},{"pattern":"make **","argPattern":"^all$"}]}"#;
        let made = |id: u8, command: &str| {
            let (grant, approval) = (GrantId::from_random([id; 16]), crate::id::ApprovalId::from_random([2; 16]));
            let answer = crate::decision::Answer::plain(crate::decision::Choice::AllowAlways);
            Grant::from_answer(&answer, &request(exec(command)), grant, approval, NOW, "ann", true).unwrap().unwrap()
        };
        let grants = [made(1, "npm test"), made(2, "cargo build")];
        let judged = |command: &str| {
            let judged = judge(&stored(policy), &request(exec(command)), &grants, false, NOW);
            (judged.ruling, judged.grant)
        };
        assert_eq!(judged("npm ci && ls"), (Ruling::Allow(AllowBy::Allowlist), None));
        assert_eq!(judged("npm ci; cargo build"), (Ruling::Allow(AllowBy::Grant), Some(grants[1].id)));
        assert_eq!(judged("npm test; cargo build"), (Ruling::Allow(AllowBy::Grant), Some(grants[0].id)));
        for command in ["npm ci; cargo run", "make all", "npm ci > x", "npm test --x", "cargo build & rm x"] {
            assert_eq!(judged(command), (Ruling::Ask, None), "{command}");
        }
    }

    #[test]
    fn where_safe_commands_ask_an_entry_still_speaks_for_them() {
        let policy = r#"{"version":1,"allowSafe":false,"allowlist":[{"pattern":"git **"}]}"#;
        assert_eq!(ruling(policy, &request(exec("git status"))), Ruling::Allow(AllowBy::Allowlist));
        assert_eq!(ruling(policy, &request(exec("ls"))), Ruling::Ask);
        assert_eq!(ruling(policy, &request(exec("git status && ls"))), Ruling::Ask);
        assert_eq!(ruling(policy, &request(exec("git push --force"))), Ruling::Ask);
    }

    /// Under this policy and this file, trusted or not.
    fn in_workspace(policy: &str, file: &str, trusted: bool, command: &str) -> Ruling {
        let input = crate::terminal::TerminalInput { workspace: "/w".into(), file: Some(file.as_bytes().to_vec()) };
        let Action::Exec(command) = exec(command) else { panic!() };
        let action = Action::Exec(crate::action::Exec { cwd: Some("/w/sub".into()), ..command });
        judge(&stored(policy), &request(action).in_workspace(&input), &[], trusted, NOW).ruling
    }

    #[test]
    fn what_a_workspaces_file_allows_counts_only_while_it_is_trusted() {
        let plain = r#"{"version":1}"#;
        let file = r#"{"commandWhitelist":["npm test"]}"#;
        assert_eq!(in_workspace(plain, file, false, "npm test"), Ruling::Ask);
        assert_eq!(in_workspace(plain, file, true, "npm test --x"), Ruling::Allow(AllowBy::Allowlist));
        let off = r#"{"requireCommandConfirmation":false}"#;
        assert_eq!(in_workspace(plain, off, false, "rm -rf /"), Ruling::Ask);
        assert_eq!(in_workspace(plain, off, true, "rm -rf /"), Ruling::Allow(AllowBy::Full));
        let asks_off = r#"{"version":1,"ask":"off"}"#;
        assert_eq!(in_workspace(asks_off, "{}", true, "npm test"), Ruling::Deny(DenyWhy::NotAllowlisted));
    }

    #[test]
    fn above_a_workspaces_file_stand_deny_rules_deny_and_ask_always() {
        let off = r#"{"requireCommandConfirmation":false,"commandWhitelist":["npm"]}"#;
        for (policy, ruling) in [
            (r#"{"version":1,"deny":[{"pattern":"npm **"}]}"#, Ruling::Deny(DenyWhy::Rule)),
            (r#"{"version":1,"security":"deny"}"#, Ruling::Deny(DenyWhy::Security)),
            (r#"{"version":1,"ask":"always"}"#, Ruling::Ask),
        ] {
            assert_eq!(in_workspace(policy, off, true, "npm test"), ruling, "{policy}");
        }
    }

    #[test]
    fn what_a_workspaces_file_forbids_or_wants_confirmed_always_counts() {
        let full = r#"{"version":1,"security":"full"}"#;
        for trusted in [false, true] {
            let black = r#"{"commandBlacklist":["npm test"],"commandWhitelist":["npm test"]}"#;
            assert_eq!(in_workspace(full, black, trusted, "npm test"), Ruling::Deny(DenyWhy::Rule));
            assert_eq!(in_workspace(full, "{}", trusted, "npm test"), Ruling::Ask);
            assert_eq!(
                in_workspace(full, "{", trusted, "npm test"),
                Ruling::Ask,
                "an unreadable file turns nothing off"
            );
            assert!(matches!(in_workspace(full, "{}", trusted, "ls"), Ruling::Allow(_)));
        }
    }

    #[test]
    fn an_agents_own_list_is_only_ever_narrower() {
        let policy = r#"{"version":1,"allowlist":[{"pattern":"npm **"}],"agents":{
            "narrow":{"allowlist":[]},"wide":{"allowlist":[{"pattern":"make"}]},"shy":{"deny":[{"pattern":"npm publish"}]}}}"#;
        let ruled = |agent: &str, command: &str| {
            let mut asked = request(exec(command));
            asked.words.agent_id = Some(agent.into());
            ruling(policy, &asked)
        };
        assert_eq!(ruled("other", "npm ci"), Ruling::Allow(AllowBy::Allowlist));
        assert_eq!(ruled("narrow", "npm ci"), Ruling::Ask);
        assert_eq!(ruled("wide", "make"), Ruling::Ask);
        assert_eq!(ruled("shy", "npm publish"), Ruling::Deny(DenyWhy::Rule));
    }

    #[test]
    fn the_strictest_tool_rule_stands() {
        let policy = r#"{"version":1,"tools":[{"name":"Write","effect":"allow"},{"category":"edit","effect":"ask"},
            {"name":"Read","effect":"allow"},{"name":"Drop","effect":"allow"},{"name":"Drop","effect":"deny"},
            {"name":"http_request","effect":"allow"}]}"#;
        assert_eq!(ruling(policy, &request(tool("Write", "edit"))), Ruling::Ask);
        assert_eq!(ruling(policy, &request(tool("Read", "info"))), Ruling::Allow(AllowBy::Allowlist));
        assert_eq!(ruling(policy, &request(tool("Drop", "x"))), Ruling::Deny(DenyWhy::Rule));
        assert_eq!(ruling(policy, &request(custom("http_request", "x"))), Ruling::Allow(AllowBy::Allowlist));
        assert_eq!(ruling(policy, &request(tool("http_request", "info"))), Ruling::Allow(AllowBy::Allowlist));
    }

    #[test]
    fn an_agents_claim_and_its_own_terms_only_make_it_stricter() {
        let policy =
            r#"{"version":1,"security":"allowlist","agents":{"lax":{"security":"full"},"muted":{"security":"deny"}}}"#;
        let mut asked = request(custom("a", "b"));
        asked.words.agent_id = Some("lax".into());
        assert_eq!(ruling(policy, &asked), Ruling::Ask);
        asked.words.agent_id = Some("muted".into());
        assert_eq!(ruling(policy, &asked), Ruling::Deny(DenyWhy::Security));
        asked.words.agent_id = None;
        asked.terms.security = Some(Security::Full);
        assert_eq!(ruling(policy, &asked), Ruling::Ask);
        asked.terms = crate::request::TermsAsked { security: Some(Security::Deny), ask: None };
        assert_eq!(ruling(policy, &asked), Ruling::Deny(DenyWhy::Security));
    }

    #[test]
    fn fallback_full_still_denies_what_policy_denies_by_now() {
        let asked = request(custom("a", "b"));
        let open = judge(&StoredPolicy::absent(), &asked, &[], false, NOW);
        let shut = judge(&stored(r#"{"version":1,"security":"deny"}"#), &asked, &[], false, NOW);
        assert!(fallback_covers(Fallback::Full, &open) && !fallback_covers(Fallback::Full, &shut));
        assert!(!fallback_covers(Fallback::Allowlist, &open) && !fallback_covers(Fallback::Deny, &open));
    }

    proptest! {
        /// Whatever a request claims, it is never ruled more leniently than without the claim.
        #[test]
        fn claims_never_widen(
            security in proptest::sample::select(vec!["deny", "allowlist", "full"]),
            ask in proptest::sample::select(vec!["off", "on-miss", "always"]),
            claimed in proptest::option::of(proptest::sample::select(vec![Security::Deny, Security::Allowlist, Security::Full])),
            claimed_ask in proptest::option::of(proptest::sample::select(vec![Ask::Off, Ask::OnMiss, Ask::Always])),
            overlay in proptest::sample::select(vec!["deny", "allowlist", "full"]),
        ) {
            let policy = format!(
                r#"{{"version":1,"security":"{security}","ask":"{ask}","agents":{{"x":{{"security":"{overlay}"}}}}}}"#
            );
            let plain = request(tool("Write", "edit"));
            let mut claiming = plain.clone();
            claiming.words.agent_id = Some("x".into());
            claiming.terms = crate::request::TermsAsked { security: claimed, ask: claimed_ask };
            prop_assert!(ruling(&policy, &claiming) >= ruling(&policy, &plain));
        }
    }
}
