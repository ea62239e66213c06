-- Months that a person took as they are, although a stage failed too many of their items. Lines are added, never changed.
CREATE TABLE acceptances (
    month       text        NOT NULL CHECK (month ~ '^\d{4}-\d{2}$'),
    stage       text        NOT NULL,
    accepted_at timestamptz NOT NULL DEFAULT now(),
    accepted_by text        NOT NULL CHECK (accepted_by <> ''),
    reason      text        NOT NULL CHECK (reason <> ''),
    summary     text        NOT NULL,
    failed      integer     NOT NULL CHECK (failed >= 0),
    done        integer     NOT NULL CHECK (done >= 0),
    PRIMARY KEY (month, stage, accepted_at)
);
