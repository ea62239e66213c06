-- The same tag may be released to several destinations: each keeps its row. Migrate between two months: code of the old
-- version cannot write releases any more.
ALTER TABLE release_documents ADD COLUMN destination text;
UPDATE release_documents SET destination = document->>'destination';
ALTER TABLE release_documents ALTER COLUMN destination SET NOT NULL;
ALTER TABLE release_documents DROP CONSTRAINT release_documents_pkey;
ALTER TABLE release_documents ADD CONSTRAINT release_documents_pkey PRIMARY KEY (month, tag, destination);
