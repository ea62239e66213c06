-- What of the diff a verdict quotes; those there are were asked for none.
ALTER TABLE classifications ADD COLUMN evidence jsonb NOT NULL DEFAULT '[]';
