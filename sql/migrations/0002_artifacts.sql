-- One table per artifact. A pull request is (repository_id, number): names change, ids do not.
CREATE TABLE repositories (
    month          text    NOT NULL,
    id             bigint  NOT NULL,
    node_id        text    NOT NULL,
    full_name      text    NOT NULL,
    aliases        jsonb   NOT NULL,
    state          text    NOT NULL,
    default_branch text    NOT NULL,
    stars          integer NOT NULL,
    language       text    NOT NULL,
    description    text    NOT NULL,
    config_path    text    NOT NULL,
    PRIMARY KEY (month, id)
);

CREATE TABLE intake_counts (
    month         text    NOT NULL,
    repository_id bigint  NOT NULL,
    repository    text    NOT NULL,
    reported      integer NOT NULL,
    stored        integer NOT NULL,
    PRIMARY KEY (month, repository_id)
);

CREATE TABLE merged_pull_requests (
    month            text        NOT NULL,
    repository_id    bigint      NOT NULL,
    repository       text        NOT NULL,
    number           integer     NOT NULL,
    title            text        NOT NULL,
    body             text        NOT NULL,
    author           text        NOT NULL,
    labels           jsonb       NOT NULL,
    created_at       timestamptz NOT NULL,
    merged_at        timestamptz NOT NULL,
    base_ref         text        NOT NULL,
    head_sha         text        NOT NULL,
    merge_commit_sha text        NOT NULL,
    commit_count     integer     NOT NULL,
    changed_files    integer     NOT NULL,
    linked_issues    jsonb       NOT NULL,
    PRIMARY KEY (month, repository_id, number)
);

CREATE TABLE changes (
    month          text    NOT NULL,
    repository_id  bigint  NOT NULL,
    number         integer NOT NULL,
    merge_kind     text    NOT NULL,
    base_sha       text    NOT NULL,
    merge_tree_sha text    NOT NULL,
    patch_sha256   text    NOT NULL REFERENCES blobs (sha256),
    patch_bytes    bigint  NOT NULL,
    files          jsonb   NOT NULL,
    PRIMARY KEY (month, repository_id, number)
);

CREATE TABLE classifications (
    month           text             NOT NULL,
    repository_id   bigint           NOT NULL,
    number          integer          NOT NULL,
    is_performance  boolean          NOT NULL,
    category        text             NOT NULL,
    difficulty      text             NOT NULL,
    confidence      double precision NOT NULL,
    reason          text             NOT NULL,
    model           text             NOT NULL,
    prompt_version  text             NOT NULL,
    patch_truncated boolean          NOT NULL,
    PRIMARY KEY (month, repository_id, number)
);

CREATE TABLE problem_statements (
    month            text    NOT NULL,
    repository_id    bigint  NOT NULL,
    number           integer NOT NULL,
    text             text    NOT NULL,
    issues           jsonb   NOT NULL,
    withheld_lines   integer NOT NULL,
    template_version text    NOT NULL,
    PRIMARY KEY (month, repository_id, number)
);

-- Stages from here on keep the whole record as one document: it is read and written whole, by key.
CREATE TABLE environments (
    month         text    NOT NULL,
    repository_id bigint  NOT NULL,
    number        integer NOT NULL,
    document      jsonb   NOT NULL,
    PRIMARY KEY (month, repository_id, number)
);

CREATE TABLE images (
    month         text    NOT NULL,
    repository_id bigint  NOT NULL,
    number        integer NOT NULL,
    document      jsonb   NOT NULL,
    PRIMARY KEY (month, repository_id, number)
);

CREATE TABLE measurements (
    month         text    NOT NULL,
    repository_id bigint  NOT NULL,
    number        integer NOT NULL,
    document      jsonb   NOT NULL,
    PRIMARY KEY (month, repository_id, number)
);

CREATE TABLE published_images (
    month         text    NOT NULL,
    repository_id bigint  NOT NULL,
    number        integer NOT NULL,
    document      jsonb   NOT NULL,
    PRIMARY KEY (month, repository_id, number)
);

CREATE TABLE releases (
    month    text  PRIMARY KEY,
    document jsonb NOT NULL
);
