-- What was asked of GitHub, added to and never changed: a forced run, or one that died, adds its own lines.
CREATE TABLE api_usage (
    run_id         text             NOT NULL,
    stage          text             NOT NULL,
    month          text             NOT NULL CHECK (month ~ '^\d{4}-\d{2}$'),
    resource       text             NOT NULL,
    started_at     timestamptz      NOT NULL,
    requests       integer          NOT NULL CHECK (requests >= 0),
    points         integer          NOT NULL CHECK (points >= 0),
    unchanged      integer          NOT NULL CHECK (unchanged >= 0),
    retries        integer          NOT NULL CHECK (retries >= 0),
    limit_hits     integer          NOT NULL CHECK (limit_hits >= 0),
    seconds        double precision NOT NULL CHECK (seconds >= 0),
    waited_seconds double precision NOT NULL CHECK (waited_seconds >= 0),
    bytes          bigint           NOT NULL CHECK (bytes >= 0),
    PRIMARY KEY (run_id, stage, month, resource, started_at)
);
CREATE INDEX api_usage_by_month ON api_usage (month, stage);

-- Repositories that people decided about: an allowed one is tracked whatever the rules say, a denied one never.
CREATE TABLE listed_repositories (
    full_name text        PRIMARY KEY,
    verdict   text        NOT NULL CHECK (verdict IN ('allow', 'deny')),
    reason    text        NOT NULL,
    listed_at timestamptz NOT NULL
);
-- GitHub does not tell names apart by case: a repository is listed once.
CREATE UNIQUE INDEX listed_repositories_by_name ON listed_repositories (lower(full_name));

-- Answers of people's own functions about an entity, by name of the function and its arguments.
CREATE TABLE hook_results (
    entity     text        NOT NULL,
    hook       text        NOT NULL,
    arguments  text        NOT NULL,
    result     jsonb       NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (entity, hook, arguments)
);

ALTER TABLE intake_counts
    ADD COLUMN checksum text    NOT NULL DEFAULT '',
    ADD COLUMN added    integer NOT NULL DEFAULT 0,
    ADD COLUMN changed  integer NOT NULL DEFAULT 0,
    ADD COLUMN removed  integer NOT NULL DEFAULT 0;

ALTER TABLE repositories
    ADD COLUMN size_kb     integer NOT NULL DEFAULT 0,
    ADD COLUMN archived_at timestamptz;

-- A pull request is stored once, whichever month or name it was found under; people ask for it by number and name.
CREATE INDEX merged_pull_requests_by_identity ON merged_pull_requests (number, repository_id);

-- SHA-256 of the row: a window is compared with a new intake, and summed up, without reading a body.
ALTER TABLE merged_pull_requests
    ADD COLUMN digest text NOT NULL DEFAULT '';

-- What following the references behind the pull request brought: asked once, and kept for the next rendering.
ALTER TABLE problem_statements
    ADD COLUMN walk jsonb;
