-- Wrong numbers that a key sent to allow a dangerous request; each is an event too. Removed as old contents are.
CREATE TABLE wrong_numbers (
    approval BLOB    NOT NULL,
    key      BLOB    NOT NULL,
    count    INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (approval, key)
);
CREATE INDEX wrong_numbers_by_time ON wrong_numbers (at);
