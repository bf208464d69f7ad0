-- Format 1 of the registry. What came later is in registry_2.sql; a column may be added with a new number
-- and a step in registry.rs.

CREATE TABLE loops (
    id              BLOB PRIMARY KEY,
    repository      TEXT NOT NULL,
    backlog         TEXT NOT NULL,
    name            TEXT NOT NULL,
    project         TEXT NOT NULL,
    state_dir       TEXT NOT NULL,
    pid             INTEGER,
    started         TEXT,
    boot            TEXT,
    host            TEXT,
    seen_at         TEXT NOT NULL,
    spent_usd       REAL NOT NULL DEFAULT 0,
    spent_tokens    INTEGER NOT NULL DEFAULT 0,
    -- The call under way, if there is one, and what it is expected to cost.
    in_flight       INTEGER NOT NULL DEFAULT 0,
    reserved_usd    REAL NOT NULL DEFAULT 0,
    reserved_tokens INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX of_project ON loops (project);
