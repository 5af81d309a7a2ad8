-- What requesters call their requests. A name is one request's for ever: it outlives the request's contents, so it is not
-- removed with them. `people`: cards showed this name for this request and for no other, so an answer by the name is
-- meant for it. Before this table a name could be used again; such names keep `people` 0, and are answered by nobody.
CREATE TABLE aliases (
    alias    TEXT    NOT NULL,
    client   BLOB    NOT NULL,
    approval BLOB    NOT NULL,
    people   INTEGER NOT NULL,
    PRIMARY KEY (alias, client)
);
CREATE UNIQUE INDEX aliases_of_people ON aliases (alias) WHERE people = 1;
INSERT INTO aliases (alias, client, approval, people)
    SELECT alias, client, id, (SELECT count(*) FROM approvals AS same WHERE same.alias = approvals.alias) = 1
    FROM approvals WHERE n IN (SELECT max(n) FROM approvals WHERE alias IS NOT NULL GROUP BY alias, client);
DROP INDEX approvals_by_alias;

-- Whether the permit was used by telling the requester, and not by a verb of its own.
ALTER TABLE approvals ADD COLUMN told INTEGER NOT NULL DEFAULT 0;

-- How large the request's text is beyond what every one may have, and what lists show in place of a large one.
ALTER TABLE approvals ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN summary TEXT;
UPDATE approvals SET bytes = max(length(request) - 32768, 0) WHERE status = 'pending';
