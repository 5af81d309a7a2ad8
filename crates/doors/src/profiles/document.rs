//! A profile's `config.json`: the key `execApproval` is a view of the profile's policy, everything beside it somebody
//! else's and kept as it is written. Knows no files and no gate.

use std::fmt;

use countersign_gate::EntryUse;
use countersign_model::{AllowEntry, Ask, Fallback, Grant, GrantId, Policy, Security};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::entries::{self, EntryError};

const KEY: &str = "execApproval";
/// What the hub's document says of a time that nobody gave.
const DEFAULT_TIMEOUT_MS: u64 = 60_000;

/// In the order and with the names of the hub's document. A field nobody knows is refused: a misspelt restriction is
/// none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ExecApproval {
    #[serde(default)]
    security: Security,
    #[serde(default)]
    ask: Ask,
    #[serde(default)]
    timeout_ms: Option<u64>,
    #[serde(default)]
    ask_fallback: Fallback,
    #[serde(default)]
    allowlist: Vec<AllowEntry>,
}

/// What an edited file asks for.
#[derive(Debug, PartialEq)]
pub(super) struct Wanted {
    /// None where the policy stays as it is.
    pub(super) policy: Option<Policy>,
    pub(super) revoke: Vec<GrantId>,
}

impl ExecApproval {
    pub(super) fn of(policy: &Policy, grants: &[Grant], uses: &[EntryUse]) -> Self {
        Self {
            security: policy.security,
            ask: policy.ask,
            timeout_ms: Some(policy.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS)),
            ask_fallback: policy.ask_fallback,
            allowlist: entries::shown(policy, grants, uses),
        }
    }

    /// What the file's view makes of this policy. What the file shows and nobody touched does not become the policy's:
    /// a time that is only a default stays one. Only a grant that stood in the file can have been taken out of it.
    pub(super) fn wanted(
        self,
        policy: &Policy,
        grants: &[Grant],
        uses: &[EntryUse],
        was_shown: &[GrantId],
    ) -> Result<Wanted, EntryError> {
        let shown_timeout = Some(policy.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS));
        let changes = entries::read_back(self.allowlist, grants, uses)?;
        let changed = Policy {
            security: self.security,
            ask: self.ask,
            timeout_ms: if self.timeout_ms == shown_timeout { policy.timeout_ms } else { self.timeout_ms },
            ask_fallback: self.ask_fallback,
            allowlist: changes.allowlist,
            ..policy.clone()
        };
        let mut revoke = changes.revoke;
        revoke.retain(|id| was_shown.contains(id));
        Ok(Wanted { policy: (changed != *policy).then_some(changed), revoke })
    }
}

/// The view in a file's text; none where the file has no such key. The error has line and column.
pub(super) fn read(text: &str) -> Result<Option<ExecApproval>, serde_json::Error> {
    #[derive(Deserialize)]
    struct File {
        #[serde(rename = "execApproval")]
        exec_approval: Option<ExecApproval>,
    }
    // As a whole first: an object, and nothing after it.
    serde_json::from_str::<Fields>(text)?;
    Ok(serde_json::from_str::<File>(text)?.exec_approval)
}

/// The file's text with this view in it and everything else as it was.
pub(super) fn write(text: Option<&str>, view: &ExecApproval) -> Result<String, serde_json::Error> {
    let Fields(mut fields) = text.map(serde_json::from_str).transpose()?.unwrap_or_default();
    let ours = RawValue::from_string(serde_json::to_string_pretty(view)?.replace('\n', "\n  "))?;
    match fields.iter_mut().find(|(name, _)| name == KEY) {
        Some((_, value)) => *value = ours,
        None => fields.push((KEY.to_owned(), ours)),
    }
    let mut out = String::from("{");
    for (place, (name, value)) in fields.iter().enumerate() {
        out.push_str(if place == 0 { "\n  " } else { ",\n  " });
        out.push_str(&serde_json::to_string(name)?);
        out.push_str(": ");
        out.push_str(value.get());
    }
    out.push_str("\n}\n");
    Ok(out)
}

/// An object's fields as they are written, in their order.
#[derive(Debug, Default)]
struct Fields(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields, M::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_model::{ApprovalId, ClientId, Entry, GrantKind, KeyId, Scope, Timestamp};

    /// As the hub's document has it.
    const SEED: &str = r#"{
  "execApproval": {
    "security": "allowlist",
    "ask": "on-miss",
    "timeoutMs": 60000,
    "askFallback": "deny",
    "allowlist": [
      { "pattern": "git **" },
      { "pattern": "pnpm **" }
    ]
  }
}"#;

    fn grant(number: u8) -> Grant {
        Grant {
            id: GrantId::from_random([number; 16]),
            kind: GrantKind::Command { entries: vec![Entry::parse("npm ci").unwrap()] },
            scope: Scope {
                client: KeyId::from_random([1; 16]),
                client_id: ClientId::new("c"),
                profile: "default".into(),
                session: None,
            },
            place: None,
            created_at: Timestamp::from_millis(1),
            created_by: "ann".into(),
            approval_id: ApprovalId::from_random([2; 16]),
            expires_at: None,
            revoked_at: None,
        }
    }

    fn seed_policy() -> Policy {
        let view = read(SEED).unwrap().unwrap();
        view.wanted(&Policy::default(), &[], &[], &[]).unwrap().policy.unwrap()
    }

    #[test]
    fn the_documents_example_reads_and_is_written_as_it_is() {
        let policy = seed_policy();
        assert_eq!(policy.allowlist.len(), 2);
        assert_eq!(policy.timeout_ms, None, "a default that is shown is not a wish");
        let view = ExecApproval::of(&policy, &[], &[]);
        let written = write(None, &view).unwrap();
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&written), value(SEED));
        assert_eq!(read(&written).unwrap(), Some(view));
    }

    #[test]
    fn fields_left_out_have_the_documents_defaults() {
        let strict = Policy::parse(r#"{"version":1,"security":"deny","ask":"always","timeoutMs":5000}"#).unwrap();
        let view = read(r#"{"execApproval":{}}"#).unwrap().unwrap();
        assert_eq!(view.wanted(&strict, &[], &[], &[]).unwrap().policy, Some(Policy::default()));
        assert_eq!(read("{}").unwrap(), None);
    }

    #[test]
    fn what_the_view_does_not_show_stays_in_the_policy() {
        let policy = Policy::parse(r#"{"version":1,"deny":[{"pattern":"rm **"}],"approvers":["ann"]}"#).unwrap();
        let mut view = ExecApproval::of(&policy, &[], &[]);
        view.security = Security::Deny;
        let wanted = view.wanted(&policy, &[], &[], &[]).unwrap().policy.unwrap();
        assert_eq!(wanted, Policy { security: Security::Deny, ..policy });
    }

    #[test]
    fn a_grant_ends_only_by_being_taken_out() {
        let (policy, grants) = (Policy::default(), [grant(1), grant(2)]);
        let shown = ExecApproval::of(&policy, &grants, &[]);
        assert_eq!(shown.allowlist.len(), 2);
        let untouched = shown.clone().wanted(&policy, &grants, &[], &[grants[0].id]).unwrap();
        assert_eq!(untouched, Wanted { policy: None, revoke: vec![] });
        let without = ExecApproval { allowlist: Vec::new(), ..shown };
        // The second was made after the file was written: nobody took it out.
        let wanted = without.wanted(&policy, &grants, &[], &[grants[0].id]).unwrap();
        assert_eq!(wanted, Wanted { policy: None, revoke: vec![grants[0].id] });
    }

    #[test]
    fn what_is_wrong_has_its_line_and_column() {
        for (text, place) in [
            ("{\n  \"execApproval\": {\n    \"securty\": \"deny\"\n  }\n}", "line 3"),
            ("{\n  \"execApproval\": {\n    \"security\": \"lax\"\n  }\n}", "line 3 column 21"),
            ("{\n  \"execApproval\": {", "line 2"),
            ("[]", "line 1"),
            ("{} {}", "line 1 column 4"),
            ("{\"execApproval\":{},\n\"execApproval\":{}}", "line 2"),
            ("{\"execApproval\":{\"allowlist\":[{\"pattern\":\"\"}]}}", "line 1"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(place), "{text}: {error}");
        }
    }

    #[test]
    fn everything_beside_the_view_is_kept_as_it_is_written() {
        let text = "{\"z\": [1,  2], \"execApproval\": {}, \"a\": {\"b\":1.50}}";
        let written = write(Some(text), &ExecApproval::of(&Policy::default(), &[], &[])).unwrap();
        assert!(written.contains("\"z\": [1,  2],") && written.contains("\"a\": {\"b\":1.50}"), "{written}");
        assert!(written.find("\"z\"") < written.find(KEY) && written.find(KEY) < written.find("\"a\""), "{written}");
    }
}
