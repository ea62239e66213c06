-- Commits that breakpoints found enter a month as candidates of their own kind, through the same stages.
ALTER TABLE merged_pull_requests ADD COLUMN source text NOT NULL DEFAULT 'pull_request';

CREATE TABLE dashboard_candidate_documents (
    month text NOT NULL,
    repository_id bigint NOT NULL,
    number integer NOT NULL,
    document jsonb NOT NULL,
    PRIMARY KEY (month, repository_id, number)
);
