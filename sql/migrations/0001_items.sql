-- The ledger: how every item ended every stage of every month. The funnel, `why`, the report and resume read it.
CREATE TABLE ledger (
    stage       text        NOT NULL,
    month       text        NOT NULL CHECK (month ~ '^\d{4}-\d{2}$'),
    item        text        NOT NULL,
    state       text        NOT NULL CHECK (state IN ('done', 'rejected', 'failed', 'skipped')),
    reason      text        NOT NULL DEFAULT '',
    detail      text        NOT NULL DEFAULT '',
    log_tail    text        NOT NULL DEFAULT '',
    attempt     integer     NOT NULL DEFAULT 1 CHECK (attempt >= 1),
    run_id      text        NOT NULL DEFAULT '',
    inputs      text        NOT NULL DEFAULT '',
    cost        jsonb       NOT NULL DEFAULT '{}',
    finished_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (month, stage, item)
);
CREATE INDEX ledger_by_item ON ledger (item);

-- Verdicts of asset checks: a gate that failed in one run stays shut for the next.
CREATE TABLE gates (
    stage      text        NOT NULL,
    month      text        NOT NULL,
    check_name text        NOT NULL,
    passed     boolean     NOT NULL,
    blocking   boolean     NOT NULL,
    summary    text        NOT NULL,
    offenders  jsonb       NOT NULL DEFAULT '[]',
    figures    jsonb       NOT NULL DEFAULT '{}',
    run_id     text        NOT NULL DEFAULT '',
    judged_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (month, stage, check_name)
);

-- Answers of the model, addressed by the content of the question: nothing is paid for twice.
CREATE TABLE completions (
    key        text             PRIMARY KEY,
    model      text             NOT NULL,
    content    text             NOT NULL,
    tokens_in  integer          NOT NULL,
    tokens_out integer          NOT NULL,
    dollars    double precision NOT NULL DEFAULT 0,
    created_at timestamptz      NOT NULL DEFAULT now()
);

-- Compressed texts that rows refer to by hash: patches, build logs. Never read in bulk.
CREATE TABLE blobs (
    sha256     text        PRIMARY KEY,
    kind       text        NOT NULL,
    bytes      bigint      NOT NULL,
    content    bytea       NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- Whole logs of builds and measurements, one for each attempt.
CREATE TABLE logs (
    stage      text        NOT NULL,
    month      text        NOT NULL,
    item       text        NOT NULL,
    attempt    integer     NOT NULL,
    state      text        NOT NULL,
    run_id     text        NOT NULL,
    sha256     text        NOT NULL REFERENCES blobs (sha256),
    written_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (month, stage, item, attempt)
);
