-- Format 1. Additive changes get a new number, a file beside this one and a step in store.rs.

CREATE TABLE loops (
    id         BLOB PRIMARY KEY,
    tenant     TEXT NOT NULL DEFAULT 'local',
    repository TEXT NOT NULL,
    backlog    TEXT NOT NULL,
    name       TEXT NOT NULL,
    created_at TEXT NOT NULL,
    UNIQUE (tenant, repository, backlog, name)
) STRICT;

-- The epoch outlives its holder: the next one must be higher.
CREATE TABLE leases (
    loop    BLOB PRIMARY KEY REFERENCES loops (id),
    epoch   INTEGER NOT NULL DEFAULT 0,
    pid     INTEGER,
    started TEXT,
    boot    TEXT,
    host    TEXT,
    since   TEXT
) STRICT;

-- Clustered by its key: an append touches the last page of one tree.
CREATE TABLE events (
    tenant  TEXT NOT NULL DEFAULT 'local',
    loop    BLOB NOT NULL REFERENCES loops (id),
    seq     INTEGER NOT NULL,
    id      BLOB NOT NULL,
    at      TEXT NOT NULL,
    epoch   INTEGER NOT NULL,
    v       INTEGER NOT NULL,
    type    TEXT NOT NULL,
    payload TEXT NOT NULL,
    PRIMARY KEY (tenant, loop, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE blobs (
    sha256 TEXT NOT NULL UNIQUE,
    bytes  INTEGER NOT NULL,
    coding TEXT NOT NULL CHECK (coding IN ('plain', 'zstd')),
    data   BLOB NOT NULL
) STRICT;

-- handled_at_seq: where the journal stood once the request had been dealt with.
CREATE TABLE requests (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    loop           BLOB NOT NULL REFERENCES loops (id),
    request        TEXT NOT NULL,
    by             TEXT NOT NULL,
    at             TEXT NOT NULL,
    handled_at_seq INTEGER
) STRICT;
CREATE INDEX pending ON requests (loop, id) WHERE handled_at_seq IS NULL;

CREATE TABLE projections (
    loop   BLOB PRIMARY KEY REFERENCES loops (id),
    seq    INTEGER NOT NULL,
    status TEXT NOT NULL
) STRICT;
