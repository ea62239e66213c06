-- What every attempt was made of, and what an agent cost.
ALTER TABLE build_attempts
    ADD COLUMN rung          text             NOT NULL DEFAULT 'rules',
    ADD COLUMN agent         text             NOT NULL DEFAULT '',
    ADD COLUMN agent_seconds double precision NOT NULL DEFAULT 0,
    ADD COLUMN tokens_in     bigint           NOT NULL DEFAULT 0,
    ADD COLUMN tokens_out    bigint           NOT NULL DEFAULT 0,
    ADD COLUMN dollars       double precision NOT NULL DEFAULT 0;
UPDATE build_attempts SET rung = 'nearest' WHERE rule = 'recipe_of_a_neighbour';

-- How commits are built beyond what they declare, with provenance: images come and go, their recipes stay.
CREATE TABLE contexts (
    context_id    text        PRIMARY KEY,
    repository_id bigint      NOT NULL,
    repository    text        NOT NULL,
    base_sha      text        NOT NULL,
    created_at    timestamptz NOT NULL,
    document      jsonb       NOT NULL
);
CREATE INDEX contexts_by_repository ON contexts (repository_id);

INSERT INTO contexts (context_id, repository_id, repository, base_sha, created_at, document)
SELECT made.context_id, made.repository_id, made.repository, made.base_sha, made.merged_at,
    jsonb_build_object(
        'context_id', made.context_id, 'repository_id', made.repository_id, 'repository', made.repository,
        'number', made.number, 'base_sha', made.base_sha, 'merged_at', made.merged_at,
        'provenance', CASE WHEN made.fixes = '[]' THEN 'declared' ELSE 'rules' END,
        'created_at', made.merged_at, 'held_at', made.merged_at, 'digest', made.digest, 'fixes', made.fixes
    )
FROM (
    SELECT left(md5(i.month || '/' || i.repository_id || '/' || i.number), 16) AS context_id, i.repository_id,
        i.number, i.document -> 'spec' ->> 'repository' AS repository, i.document -> 'spec' ->> 'base_sha' AS base_sha,
        i.document ->> 'digest' AS digest, coalesce(i.document -> 'spec' -> 'fixes', '[]') AS fixes, m.merged_at
    FROM image_documents AS i
    JOIN merged_pull_requests AS m USING (month, repository_id, number)
) AS made;
