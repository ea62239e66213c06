-- Every measurement of a task, whole: added to and never changed. The newest is also the row that people read.
CREATE TABLE measurements_ever (
    month         text    NOT NULL,
    repository_id bigint  NOT NULL,
    number        integer NOT NULL,
    attempt       integer NOT NULL CHECK (attempt >= 1),
    document      jsonb   NOT NULL,
    PRIMARY KEY (month, repository_id, number, attempt)
);

-- Measurements by the rules before are kept here. They say nothing by the present ones, so their items are pending again.
INSERT INTO measurements_ever SELECT month, repository_id, number, 1, document FROM measurement_documents;
DELETE FROM measurement_documents;
DELETE FROM ledger WHERE stage = 'measurements';
