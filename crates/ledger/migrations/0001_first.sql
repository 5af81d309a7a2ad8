-- The record: one line an event, in order. `line` is canonical JSON, `hash` is of the previous hash and it.
CREATE TABLE events (
    seq  INTEGER PRIMARY KEY,
    line BLOB NOT NULL,
    hash BLOB NOT NULL
);

-- Projections of the record. `request`, `terms` and `outcome` are JSON text whose hashes the record holds.
CREATE TABLE approvals (
    n           INTEGER PRIMARY KEY,
    id          BLOB    NOT NULL,
    client      BLOB    NOT NULL,
    status      TEXT    NOT NULL,
    asked       INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    ended_at    INTEGER,
    consumed_at INTEGER,
    request     TEXT    NOT NULL,
    terms       TEXT    NOT NULL,
    outcome     TEXT
);
-- Ids are random. What is pending has an index of its own, which stays small: a million finished ones do not make
-- asking slower.
CREATE UNIQUE INDEX approvals_pending_id ON approvals (id) WHERE status = 'pending';
CREATE UNIQUE INDEX approvals_ended_id ON approvals (id) WHERE status <> 'pending';
CREATE INDEX approvals_by_status ON approvals (status);
CREATE INDEX approvals_by_deadline ON approvals (expires_at) WHERE status = 'pending';
CREATE INDEX approvals_by_client ON approvals (client, created_at);

CREATE TABLE grants (
    id         BLOB    PRIMARY KEY,
    client     BLOB    NOT NULL,
    subject    TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    body       TEXT    NOT NULL
);
CREATE INDEX grants_by_client ON grants (client) WHERE revoked_at IS NULL;

CREATE TABLE policies (
    profile TEXT PRIMARY KEY,
    text    TEXT NOT NULL
);

-- A key itself is nowhere: only its hash.
CREATE TABLE keys (
    id         BLOB    PRIMARY KEY,
    hash       BLOB    NOT NULL,
    client_id  TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    role       TEXT    NOT NULL,
    profile    TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
);

CREATE TABLE idempotency (
    client   BLOB    NOT NULL,
    key      TEXT    NOT NULL,
    body     BLOB    NOT NULL,
    approval BLOB    NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (client, key)
);

-- The last time this effect was refused or ran out, by client.
CREATE TABLE denials (
    client   BLOB    NOT NULL,
    effect   BLOB    NOT NULL,
    approval BLOB    NOT NULL,
    status   TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (client, effect)
);
CREATE INDEX denials_by_time ON denials (at);

-- How far each channel has got.
CREATE TABLE cursors (
    name TEXT PRIMARY KEY,
    seq  INTEGER NOT NULL
);

-- Written by readiness checks, to know whether writing works.
CREATE TABLE probes (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL
);
