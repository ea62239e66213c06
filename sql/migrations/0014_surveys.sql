-- How far surveys came that ran out of time before a benchmark executed the change: the next one leaves out those named.
CREATE TABLE surveys (
    month         text    NOT NULL,
    repository_id bigint  NOT NULL,
    number        integer NOT NULL,
    suite         text    NOT NULL,
    inputs        text    NOT NULL,
    ruled_out     jsonb   NOT NULL,
    PRIMARY KEY (month, repository_id, number, suite)
);
