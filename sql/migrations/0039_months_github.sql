-- The GitHub that the months were taken in from, in one row: months of two are not mixed.
CREATE TABLE months_github (
    id          integer     PRIMARY KEY CHECK (id = 1),
    host        text        NOT NULL,
    recorded_at timestamptz NOT NULL
);
