-- Workspaces whose file a person trusts, with the very text that is trusted; the record holds its hash.
CREATE TABLE trusts (
    workspace TEXT    PRIMARY KEY,
    text      TEXT    NOT NULL,
    made_by   TEXT    NOT NULL,
    at        INTEGER NOT NULL
);

-- How an approved command ended, where a runner of ours ran it: JSON text, as in the record.
ALTER TABLE approvals ADD COLUMN run TEXT;
