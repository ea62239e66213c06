-- Every try at building and verifying a task's image, whole: added to and never changed.
CREATE TABLE build_attempts (
    month         text             NOT NULL,
    repository_id bigint           NOT NULL,
    number        integer          NOT NULL,
    attempt       integer          NOT NULL CHECK (attempt >= 1),
    run_id        text             NOT NULL,
    engine        text             NOT NULL,
    started_at    timestamptz      NOT NULL,
    seconds       double precision NOT NULL CHECK (seconds >= 0),
    spec          jsonb            NOT NULL,
    stage         text             NOT NULL,
    rc            integer,
    kind          text             NOT NULL,
    detail        text             NOT NULL,
    rule          text             NOT NULL,
    log_sha256    text             NOT NULL REFERENCES blobs (sha256),
    PRIMARY KEY (month, repository_id, number, attempt)
);

-- Recipes are looked for among the images of one repository, whatever the month.
CREATE INDEX images_by_repository ON images (repository_id);
