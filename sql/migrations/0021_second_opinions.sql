-- What two judges say of a candidate, where a second is asked, and on what they disagree.
ALTER TABLE classifications
    ADD COLUMN opinions jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN disagreements jsonb NOT NULL DEFAULT '[]';

-- A question that is asked again by request has one answer more; the older ones stay.
ALTER TABLE completions
    ADD COLUMN attempt integer NOT NULL DEFAULT 1 CHECK (attempt >= 1),
    DROP CONSTRAINT completions_pkey,
    ADD PRIMARY KEY (key, attempt);
