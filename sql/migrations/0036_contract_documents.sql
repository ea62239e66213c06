-- Classifications and problem statements become documents, so that a field of their models needs no migration. Migrate
-- between two months: code of the old version cannot write them any more.
CREATE TABLE classification_documents (
    month text NOT NULL,
    repository_id bigint NOT NULL,
    number integer NOT NULL,
    document jsonb NOT NULL,
    PRIMARY KEY (month, repository_id, number)
);
INSERT INTO classification_documents SELECT month, repository_id, number, to_jsonb(old) FROM classifications old;
DROP TABLE classifications;

CREATE TABLE problem_statement_documents (
    month text NOT NULL,
    repository_id bigint NOT NULL,
    number integer NOT NULL,
    document jsonb NOT NULL,
    PRIMARY KEY (month, repository_id, number)
);
INSERT INTO problem_statement_documents SELECT month, repository_id, number, to_jsonb(old) FROM problem_statements old;
DROP TABLE problem_statements;
