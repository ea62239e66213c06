-- The kind of an item follows from its name, so that stages with items of two kinds can prune and count each by itself.
ALTER TABLE ledger ADD COLUMN kind text GENERATED ALWAYS AS (
    CASE WHEN strpos(item, '#') > 0 THEN 'pull_request' WHEN strpos(item, '/') > 0 THEN 'repository' ELSE 'step' END
) STORED;
