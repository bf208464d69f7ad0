-- Format 2: who is told of what happens in a loop, and how far each of them is.

-- What happened before somebody was first known is no news to them.
CREATE TABLE targets (
    name  TEXT PRIMARY KEY,
    since TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- cursor: everything up to this event was sent, was given up, or was of no interest.
-- The other columns are about the message that cannot be sent at the moment, if there is one.
CREATE TABLE deliveries (
    loop         BLOB NOT NULL REFERENCES loops (id),
    target       TEXT NOT NULL,
    cursor       INTEGER NOT NULL,
    sent         INTEGER NOT NULL DEFAULT 0,
    sent_at      TEXT,
    failing_seq  INTEGER,
    attempts     INTEGER,
    next_try     TEXT,
    problem      TEXT,
    PRIMARY KEY (loop, target)
) STRICT, WITHOUT ROWID;

-- Messages that nobody tries to send any more.
CREATE TABLE undelivered (
    loop     BLOB NOT NULL REFERENCES loops (id),
    target   TEXT NOT NULL,
    seq      INTEGER NOT NULL,
    at       TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    problem  TEXT NOT NULL,
    PRIMARY KEY (loop, target, seq)
) STRICT, WITHOUT ROWID;
