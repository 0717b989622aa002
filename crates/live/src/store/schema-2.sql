-- Nodes that the daemon has switched off, or is switching. A node without a row is on.

CREATE TABLE node (
    node  INTEGER PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('stopping', 'off', 'starting')),
    seal  INTEGER NOT NULL
) STRICT;
