-- Limits that operators have set of parts of the machine. A part without a row has the limit that is configured.

CREATE TABLE part_budget (
    kind   TEXT NOT NULL,
    name   TEXT NOT NULL,
    budget TEXT NOT NULL,    -- as the operator wrote it
    seal   INTEGER NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
