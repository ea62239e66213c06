-- Released tasks measured again, from row and image alone: each replay is added, none is changed. The tables before know
-- pull requests; a replay knows a task of a release, of a month that this database may never have seen.
CREATE TABLE replay_documents (
    month    text    NOT NULL,
    task_id  text    NOT NULL,
    attempt  integer NOT NULL CHECK (attempt >= 1),
    document jsonb   NOT NULL,
    PRIMARY KEY (month, task_id, attempt)
);
