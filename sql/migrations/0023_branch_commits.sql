-- The commits of a pull request's branch: hashes, messages and names that no text about it may hold.
ALTER TABLE problem_statements ADD COLUMN commits jsonb NOT NULL DEFAULT '[]';
