-- From format 1 to format 2: when money was spent, for budgets that begin anew, and what a call under way
-- has used so far. What was spent before counts from when the loop was last seen.

ALTER TABLE loops ADD COLUMN used_usd REAL NOT NULL DEFAULT 0;
ALTER TABLE loops ADD COLUMN used_tokens INTEGER NOT NULL DEFAULT 0;
CREATE TABLE charges (
    loop   BLOB NOT NULL REFERENCES loops (id) ON DELETE CASCADE,
    -- Milliseconds since 1970.
    at     INTEGER NOT NULL,
    usd    REAL NOT NULL,
    tokens INTEGER NOT NULL
) STRICT;
CREATE INDEX of_time ON charges (at);
CREATE INDEX of_loop ON charges (loop);
INSERT INTO charges (loop, at, usd, tokens)
    SELECT id, CAST(unixepoch(seen_at) AS INTEGER) * 1000, spent_usd, spent_tokens FROM loops
    WHERE spent_usd > 0 OR spent_tokens > 0;
