-- Checks that do not block are kept as well: only one that blocks is a gate.
ALTER TABLE gates RENAME TO check_verdicts;
ALTER INDEX gates_pkey RENAME TO check_verdicts_pkey;
ALTER TABLE check_verdicts
    ADD COLUMN tally jsonb NOT NULL DEFAULT '{}';
