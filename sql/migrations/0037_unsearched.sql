-- Merges that GitHub's search lacks, and the repository's own list has: taken in by number.
ALTER TABLE intake_counts ADD COLUMN unsearched jsonb NOT NULL DEFAULT '[]';
