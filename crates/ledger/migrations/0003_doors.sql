-- What the requester itself calls a request, where it calls it anything; the request's own text has it too.
ALTER TABLE approvals ADD COLUMN alias TEXT;
CREATE INDEX approvals_by_alias ON approvals (alias) WHERE alias IS NOT NULL;

-- A paired device's key is its device id; a node's key is for one machine.
ALTER TABLE keys ADD COLUMN paired INTEGER NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN node_id TEXT;

-- When each entry of a profile last let something through.
CREATE TABLE entry_uses (
    profile TEXT    NOT NULL,
    pattern TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    command TEXT    NOT NULL,
    PRIMARY KEY (profile, pattern)
);
