-- Jobs that are over, by when they ended on the wall: for lists of them.

CREATE INDEX job_ended ON job (end_wall_ms, number) WHERE state = 'over';
CREATE INDEX job_ended_user ON job (user, end_wall_ms, number) WHERE state = 'over';

-- What the jobs of a user for an account took that ended on a day. It is kept for longer than the jobs.

CREATE TABLE usage (
    day           INTEGER NOT NULL,    -- since 1970-01-01, in the daemon's time zone
    user          INTEGER NOT NULL,
    account       TEXT NOT NULL,       -- empty if the jobs named none
    jobs          INTEGER NOT NULL,
    node_ms       INTEGER NOT NULL,    -- nodes times milliseconds
    energy_j      INTEGER NOT NULL,    -- whole joules, as predicted
    energy_uj     INTEGER NOT NULL,    -- and microjoules, less than a million
    measured_jobs INTEGER NOT NULL,    -- how many of them were measured
    measured_j    INTEGER NOT NULL,
    measured_uj   INTEGER NOT NULL,
    seal          INTEGER NOT NULL,
    PRIMARY KEY (day, user, account)
) STRICT, WITHOUT ROWID;
