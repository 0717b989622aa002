-- What a daemon knows. 'seal' is a checksum of the columns before it.

CREATE TABLE state (
    only        INTEGER PRIMARY KEY CHECK (only = 1),
    next_number INTEGER NOT NULL,
    next_line   INTEGER NOT NULL,
    budget      TEXT,                -- as an operator wrote it; NULL if the configured one holds
    now_ms      INTEGER NOT NULL,    -- the daemon's clock when a batch was last written
    wall_ms     INTEGER NOT NULL,    -- the clock on the wall then, since 1970
    boot        TEXT,                -- which boot of the machine that was
    origin_ms   INTEGER NOT NULL,    -- the daemon's clock when the machine was booted
    seal        INTEGER NOT NULL
) STRICT;

CREATE TABLE job (
    number         INTEGER PRIMARY KEY,
    user           INTEGER NOT NULL,
    name           TEXT NOT NULL,
    state          TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'over')),
    submit_ms      INTEGER NOT NULL, -- by the daemon's clock
    start_ms       INTEGER,
    end_ms         INTEGER,
    submit_wall_ms INTEGER NOT NULL, -- by the clock on the wall, since 1970
    start_wall_ms  INTEGER,
    end_wall_ms    INTEGER,
    entry          TEXT NOT NULL,    -- all of it, JSON
    seal           INTEGER NOT NULL
) STRICT;

CREATE INDEX job_present ON job (number) WHERE state <> 'over';
CREATE INDEX job_over ON job (end_ms, number) WHERE state = 'over';

CREATE TABLE program (
    job     INTEGER PRIMARY KEY REFERENCES job (number) ON DELETE CASCADE,
    program TEXT NOT NULL,           -- JSON
    seal    INTEGER NOT NULL
) STRICT;

CREATE TABLE dependency (
    job   INTEGER NOT NULL REFERENCES job (number) ON DELETE CASCADE,
    needs INTEGER NOT NULL,
    PRIMARY KEY (job, needs)
) STRICT, WITHOUT ROWID;

CREATE INDEX dependency_needs ON dependency (needs, job);

CREATE TABLE event (
    line    INTEGER PRIMARY KEY,
    at_ms   INTEGER NOT NULL,        -- by the daemon's clock
    wall_ms INTEGER NOT NULL,        -- by the clock on the wall, since 1970
    job     INTEGER REFERENCES job (number) ON DELETE CASCADE,
    event   TEXT NOT NULL,           -- JSON
    seal    INTEGER NOT NULL
) STRICT;

CREATE INDEX event_job ON event (job, line);
