-- A stage that runs of helpers may join, as long as the run that leads it is at it.
CREATE TABLE shared_stages (
    month     text        NOT NULL CHECK (month ~ '^\d{4}-\d{2}$'),
    stage     text        NOT NULL,
    run_id    text        NOT NULL,
    options   jsonb       NOT NULL,
    opened_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (month, stage)
);

-- What is left to do of a shared stage, and who is at it. A row goes with the result; a lease that ran out is free.
CREATE TABLE claims (
    month            text             NOT NULL,
    stage            text             NOT NULL,
    item             text             NOT NULL,
    inputs           text             NOT NULL,
    neighbours       text             NOT NULL,
    expected_seconds double precision NOT NULL,
    claimed_by       text             NOT NULL DEFAULT '',
    lease_until      timestamptz      NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (month, stage, item)
);
