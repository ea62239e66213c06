-- The repository's own tests before and after a change, for those that were measured faster.
CREATE TABLE correctness_documents (
    month         text    NOT NULL,
    repository_id bigint  NOT NULL,
    number        integer NOT NULL,
    document      jsonb   NOT NULL,
    PRIMARY KEY (month, repository_id, number)
);
