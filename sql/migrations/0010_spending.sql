-- What was spent: lines are added and never changed, so that what a failed or repeated attempt cost stays on the books.
CREATE TABLE spending (
    id       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    month    text        NOT NULL CHECK (month ~ '^\d{4}-\d{2}$'),
    stage    text        NOT NULL,
    item     text        NOT NULL,
    run_id   text        NOT NULL,
    spent_at timestamptz NOT NULL DEFAULT now(),
    cost     jsonb       NOT NULL
);
CREATE INDEX spending_by_month ON spending (month, stage);

-- until now an item's newest attempt was all that was known
INSERT INTO spending (month, stage, item, run_id, spent_at, cost)
SELECT month, stage, item, run_id, finished_at, cost FROM ledger WHERE cost <> '{}';
