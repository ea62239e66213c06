-- A month is released once, and corrected by revisions with tags of their own: each keeps its row.
ALTER TABLE release_documents ADD COLUMN tag text;
UPDATE release_documents SET tag = document->>'tag';
ALTER TABLE release_documents ALTER COLUMN tag SET NOT NULL;
ALTER TABLE release_documents DROP CONSTRAINT release_documents_pkey;
ALTER TABLE release_documents ADD CONSTRAINT release_documents_pkey PRIMARY KEY (month, tag);
