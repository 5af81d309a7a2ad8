-- Workspaces whose file a person trusts, with the very text that is trusted; the record holds its hash.
CREATE TABLE trusts (
    workspace TEXT    PRIMARY KEY,
    text      TEXT    NOT NULL,
    made_by   TEXT    NOT NULL,
    at        INTEGER NOT NULL
);
