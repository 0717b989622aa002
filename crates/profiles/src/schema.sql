-- The profiles of applications: how long each takes and what it draws, by configuration.

CREATE TABLE application (
    -- Counted from 1 in the order in which they came; jobs of a log name them by it.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name   TEXT NOT NULL UNIQUE CHECK (name <> '')
) STRICT;

CREATE TABLE profile (
    application INTEGER NOT NULL REFERENCES application (number),
    nodes       INTEGER NOT NULL CHECK (nodes > 0),
    cores       INTEGER NOT NULL CHECK (cores > 0),     -- in each node
    cap_mw      INTEGER NOT NULL CHECK (cap_mw > 0),    -- milliwatts, of all capped parts of a socket
    time_ms     INTEGER NOT NULL CHECK (time_ms > 0),   -- milliseconds
    power_mw    INTEGER NOT NULL CHECK (power_mw > 0),  -- milliwatts, of all nodes together
    origin      TEXT NOT NULL CHECK (origin IN ('measured', 'emulated', 'bound', 'predicted')),
    PRIMARY KEY (application, nodes, cores, cap_mw)
) STRICT, WITHOUT ROWID;

-- Every single run that was measured. The row of its configuration sums them up.
CREATE TABLE run (
    application INTEGER NOT NULL REFERENCES application (number),
    nodes       INTEGER NOT NULL CHECK (nodes > 0),
    cores       INTEGER NOT NULL CHECK (cores > 0),
    cap_mw      INTEGER NOT NULL CHECK (cap_mw > 0),
    time_ms     INTEGER NOT NULL CHECK (time_ms > 0),
    power_mw    INTEGER NOT NULL CHECK (power_mw > 0),
    origin      TEXT NOT NULL CHECK (origin IN ('measured', 'emulated', 'bound'))
) STRICT;

CREATE INDEX run_by_configuration ON run (application, nodes, cores, cap_mw, origin);

-- Settings in which memory or GPUs had caps, too: all that were tried. The row of profile with the same sum of
-- caps is the fastest of them.
CREATE TABLE setting (
    application   INTEGER NOT NULL REFERENCES application (number),
    nodes         INTEGER NOT NULL CHECK (nodes > 0),
    cores         INTEGER NOT NULL CHECK (cores > 0),
    cap_mw        INTEGER NOT NULL CHECK (cap_mw > 0),          -- of the processors, for each socket
    memory_cap_mw INTEGER CHECK (memory_cap_mw > 0),            -- for each socket; NULL: none was set
    gpu_cap_mw    INTEGER CHECK (gpu_cap_mw > 0),               -- the same
    time_ms       INTEGER NOT NULL CHECK (time_ms > 0),         -- the median of the runs
    power_mw      INTEGER NOT NULL CHECK (power_mw > 0),        -- the largest of the runs
    origin        TEXT NOT NULL CHECK (origin IN ('measured', 'emulated', 'bound', 'predicted')),
    runs          INTEGER NOT NULL CHECK (runs > 0),
    shortest_ms   INTEGER NOT NULL CHECK (shortest_ms > 0),
    longest_ms    INTEGER NOT NULL CHECK (longest_ms >= shortest_ms)
) STRICT;

CREATE INDEX setting_by_application ON setting (application);
