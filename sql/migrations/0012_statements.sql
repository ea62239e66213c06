-- Statements held the pull request's own title and body, and issues as they stood at the merge: none of them is kept.
DELETE FROM problem_statements;
DELETE FROM ledger WHERE stage = 'problem_statements';
DELETE FROM check_verdicts WHERE stage = 'problem_statements';
ALTER TABLE problem_statements
    DROP COLUMN text,
    DROP COLUMN withheld_lines,
    ADD COLUMN statement_minimal text NOT NULL,
    ADD COLUMN statement_issue text,
    ADD COLUMN final_md text NOT NULL,
    ADD COLUMN left_out jsonb NOT NULL,
    ADD COLUMN names_at_base jsonb NOT NULL;
