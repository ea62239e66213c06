-- Which models wrote and judged a statement; those there are were written by a template and judged by rules.
ALTER TABLE problem_statements
    ADD COLUMN writer text NOT NULL DEFAULT '',
    ADD COLUMN judges jsonb NOT NULL DEFAULT '[]';
