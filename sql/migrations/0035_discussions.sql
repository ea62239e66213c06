-- The discussions behind performance pull requests, so far a column of their statements.
CREATE TABLE discussion_documents (
    month text NOT NULL,
    repository_id bigint NOT NULL,
    number integer NOT NULL,
    document jsonb NOT NULL,
    PRIMARY KEY (month, repository_id, number)
);

INSERT INTO discussion_documents
SELECT month, repository_id, number, jsonb_build_object(
    'month', month, 'repository_id', repository_id, 'number', number, 'walk', walk
)
FROM problem_statements;
