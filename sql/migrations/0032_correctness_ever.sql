-- Every run of a task's tests, whole: added to and never changed, with the number of the measurement that it followed. The
-- newest is also the row that people read.
CREATE TABLE correctness_ever (
    month         text    NOT NULL,
    repository_id bigint  NOT NULL,
    number        integer NOT NULL,
    attempt       integer NOT NULL CHECK (attempt >= 1),
    measurement   integer NOT NULL CHECK (measurement >= 0),
    document      jsonb   NOT NULL,
    PRIMARY KEY (month, repository_id, number, attempt)
);

-- Tests were run of what was faster alone; of a month measured by the rules before, which measurement it was is not known.
INSERT INTO correctness_ever
SELECT month, repository_id, number, 1, coalesce((
    SELECT max(attempt) FROM measurements_ever AS measured
    WHERE measured.document->>'verdict' = 'faster'
        AND (measured.month, measured.repository_id, measured.number)
            = (tested.month, tested.repository_id, tested.number)
), 0), document
FROM correctness_documents AS tested;

-- Nothing had shown that a test executes what is compiled: such tests are not strong.
UPDATE correctness_documents SET document = jsonb_set(document, '{weak_tests}', 'true')
WHERE jsonb_array_length(document->'untraceable') > 0;
