//! The statements, in the dialect that SQLite and PostgreSQL share. Parameters are `$1…$n`, each first used
//! in that order, since SQLite numbers them by first appearance.

pub(crate) const INSERT_EVENT: &str = "INSERT INTO events (seq, line, hash) VALUES ($1, $2, $3)";
pub(crate) const LAST_EVENT: &str = "SELECT seq, line, hash FROM events ORDER BY seq DESC LIMIT 1";
pub(crate) const EVENTS_AFTER: &str = "SELECT seq, line, hash FROM events WHERE seq > $1 ORDER BY seq LIMIT $2";

/// The columns of an approval, in the order `read_approval` takes them.
macro_rules! approval_columns {
    () => {
        "id, client, status, asked, created_at, expires_at, request, terms, outcome, ended_at, consumed_at, told, \
         run, alias"
    };
}

/// The same with the summary in place of a large request.
macro_rules! summary_columns {
    () => {
        "id, client, status, asked, created_at, expires_at, \
         CASE WHEN summary IS NULL THEN request ELSE summary END, terms, outcome, ended_at, consumed_at, told, \
         run, alias"
    };
}

pub(crate) const INSERT_APPROVAL: &str = concat!(
    "INSERT INTO approvals (",
    approval_columns!(),
    ", bytes, summary) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
);
pub(crate) const SUMMARY: &str = concat!(
    "SELECT ",
    summary_columns!(),
    " FROM approvals WHERE id = $1 AND status = 'pending' UNION ALL SELECT ",
    summary_columns!(),
    " FROM approvals WHERE id = $1 AND status <> 'pending'"
);
/// One of the two, by the two indexes.
pub(crate) const APPROVAL: &str = concat!(
    "SELECT ",
    approval_columns!(),
    " FROM approvals WHERE id = $1 AND status = 'pending' UNION ALL SELECT ",
    approval_columns!(),
    " FROM approvals WHERE id = $1 AND status <> 'pending'"
);
/// Whoever changes the row first wins; the row count says who did.
pub(crate) const FINISH_APPROVAL: &str = "UPDATE approvals SET status = $1, outcome = $2, ended_at = $3 WHERE id = $4 AND status = 'pending' \
     RETURNING bytes";
pub(crate) const CONSUME: &str = "UPDATE approvals SET consumed_at = $1, told = $2 WHERE id = $3 AND status <> 'pending' \
    AND status = 'approved' AND consumed_at IS NULL";
pub(crate) const RAN: &str =
    "UPDATE approvals SET run = $1 WHERE id = $2 AND status <> 'pending' AND consumed_at IS NOT NULL AND run IS NULL";
pub(crate) const DUE: &str =
    "SELECT id FROM approvals WHERE status = 'pending' AND expires_at <= $1 ORDER BY expires_at, n LIMIT $2";
pub(crate) const NEXT_DEADLINE: &str = "SELECT min(expires_at) FROM approvals WHERE status = 'pending'";
pub(crate) const LIST: &str =
    concat!("SELECT n, ", summary_columns!(), " FROM approvals WHERE n < $1 ORDER BY n DESC LIMIT $2");
pub(crate) const LIST_BY_STATUS: &str =
    concat!("SELECT n, ", summary_columns!(), " FROM approvals WHERE status = $1 AND n < $2 ORDER BY n DESC LIMIT $3");
pub(crate) const ALL_APPROVALS: &str = concat!("SELECT ", approval_columns!(), " FROM approvals ORDER BY n");
pub(crate) const RECENT_ASKS: &str = concat!(
    "SELECT ",
    summary_columns!(),
    " FROM approvals WHERE client = $1 AND asked = 1 ORDER BY created_at DESC, n DESC LIMIT $2"
);
pub(crate) const ASKS_SINCE: &str =
    "SELECT count(*) FROM approvals WHERE client = $1 AND created_at > $2 AND asked = 1";
pub(crate) const PENDING_BY_CLIENT: &str =
    "SELECT client, count(*), sum(bytes) FROM approvals WHERE status = 'pending' GROUP BY client";
pub(crate) const SWEEP: &str = "DELETE FROM approvals WHERE n IN \
    (SELECT n FROM approvals WHERE status <> 'pending' AND ended_at < $1 ORDER BY n LIMIT $2)";

pub(crate) const IDEMPOTENT: &str = "SELECT body, approval, at FROM idempotency WHERE client = $1 AND key = $2";
pub(crate) const PUT_IDEMPOTENT: &str = "INSERT INTO idempotency (client, key, body, approval, at) \
    VALUES ($1, $2, $3, $4, $5) \
    ON CONFLICT (client, key) DO UPDATE SET body = excluded.body, approval = excluded.approval, at = excluded.at";
pub(crate) const SWEEP_IDEMPOTENCY: &str = "DELETE FROM idempotency WHERE at < $1";

pub(crate) const RECENT_DENIALS: &str = "SELECT client, effect, approval, status, at FROM denials WHERE at > $1";
pub(crate) const PUT_PRIOR: &str = "INSERT INTO denials (client, effect, approval, status, at) \
    VALUES ($1, $2, $3, $4, $5) \
    ON CONFLICT (client, effect) DO UPDATE SET approval = excluded.approval, status = excluded.status, at = excluded.at";
pub(crate) const SWEEP_DENIALS: &str = "DELETE FROM denials WHERE at < $1";

pub(crate) const WRONG_NUMBERS: &str = "SELECT count FROM wrong_numbers WHERE approval = $1 AND key = $2";
pub(crate) const PUT_WRONG_NUMBERS: &str = "INSERT INTO wrong_numbers (approval, key, count, at) \
    VALUES ($1, $2, $3, $4) ON CONFLICT (approval, key) DO UPDATE SET count = excluded.count, at = excluded.at";
pub(crate) const SWEEP_WRONG_NUMBERS: &str = "DELETE FROM wrong_numbers WHERE at < $1 \
    AND NOT EXISTS (SELECT 1 FROM approvals WHERE id = wrong_numbers.approval AND status = 'pending')";

pub(crate) const POLICY: &str = "SELECT text FROM policies WHERE profile = $1";
pub(crate) const ALL_POLICIES: &str = "SELECT profile, text FROM policies ORDER BY profile";
pub(crate) const PUT_POLICY: &str = "INSERT INTO policies (profile, text) VALUES ($1, $2) \
    ON CONFLICT (profile) DO UPDATE SET text = excluded.text";

pub(crate) const TRUST: &str = "SELECT workspace, text, made_by, at FROM trusts WHERE workspace = $1";
pub(crate) const ALL_TRUSTS: &str = "SELECT workspace, text, made_by, at FROM trusts ORDER BY workspace";
pub(crate) const PUT_TRUST: &str = "INSERT INTO trusts (workspace, text, made_by, at) VALUES ($1, $2, $3, $4) \
    ON CONFLICT (workspace) DO UPDATE SET text = excluded.text, made_by = excluded.made_by, at = excluded.at";
pub(crate) const REMOVE_TRUST: &str = "DELETE FROM trusts WHERE workspace = $1";

pub(crate) const GRANTS_OF_CLIENT: &str =
    "SELECT subject, body FROM grants WHERE client = $1 AND revoked_at IS NULL ORDER BY created_at";
pub(crate) const INSERT_GRANT: &str =
    "INSERT INTO grants (id, client, subject, created_at, body) VALUES ($1, $2, $3, $4, $5)";
pub(crate) const REVOKE_GRANT: &str = "UPDATE grants SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL";
pub(crate) const GRANT: &str = "SELECT client, body, revoked_at FROM grants WHERE id = $1";
pub(crate) const ALL_GRANTS: &str = "SELECT client, body, revoked_at FROM grants ORDER BY created_at, id";

pub(crate) const INSERT_KEY: &str = "INSERT INTO keys \
    (id, hash, client_id, name, role, profile, created_at, expires_at, paired, node_id) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
pub(crate) const REVOKE_KEY: &str = "UPDATE keys SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL";
pub(crate) const KEYS: &str = "SELECT id, hash, client_id, name, role, profile, created_at, expires_at, revoked_at, \
    paired, node_id FROM keys ORDER BY created_at, id";

pub(crate) const NODE_OF: &str = "SELECT id, node_id FROM keys WHERE id = $1 OR node_id = $2";
pub(crate) const BIND_NODE: &str = "UPDATE keys SET node_id = $1 WHERE id = $2 AND node_id IS NULL";

pub(crate) const NAMED: &str = "SELECT approval FROM aliases WHERE alias = $1 AND client = $2";
/// The one that people mean first, then any: whether the name was ever used.
pub(crate) const NAMED_FOR_PEOPLE: &str =
    "SELECT approval, people FROM aliases WHERE alias = $1 ORDER BY people DESC LIMIT 1";
pub(crate) const PUT_NAME: &str = "INSERT INTO aliases (alias, client, approval, people) \
    SELECT $1, $2, $3, NOT EXISTS (SELECT 1 FROM aliases WHERE alias = $1)";
pub(crate) const CLIENTS_OF_NAME: &str = "SELECT count(*) FROM aliases WHERE alias = $1";

pub(crate) const ENTRY_USES: &str =
    "SELECT profile, pattern, at, command FROM entry_uses WHERE profile = $1 ORDER BY pattern";
pub(crate) const PUT_ENTRY_USE: &str = "INSERT INTO entry_uses (profile, pattern, at, command) VALUES ($1, $2, $3, $4) \
    ON CONFLICT (profile, pattern) DO UPDATE SET at = excluded.at, command = excluded.command";

pub(crate) const CURSOR: &str = "SELECT seq FROM cursors WHERE name = $1";
pub(crate) const PUT_CURSOR: &str = "INSERT INTO cursors (name, seq) VALUES ($1, $2) \
    ON CONFLICT (name) DO UPDATE SET seq = excluded.seq";
pub(crate) const PROBE: &str =
    "INSERT INTO probes (id, at) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET at = excluded.at";
