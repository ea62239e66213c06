-- Tasks that a person took out of the dataset. Lines are added, never changed; older tags go on holding the task.
CREATE TABLE withdrawals (
    month        text        NOT NULL CHECK (month ~ '^\d{4}-\d{2}$'),
    task_id      text        NOT NULL,
    withdrawn_at timestamptz NOT NULL DEFAULT now(),
    withdrawn_by text        NOT NULL CHECK (withdrawn_by <> ''),
    reason       text        NOT NULL CHECK (reason <> ''),
    PRIMARY KEY (month, task_id)
);
