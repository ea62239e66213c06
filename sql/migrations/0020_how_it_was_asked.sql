-- How an answer was bound to its schema, and at which temperature. Those there are were asked for by `response_format` with the
-- schema, at a temperature of the endpoint's.
ALTER TABLE completions
    ADD COLUMN mode text NOT NULL DEFAULT 'json_schema',
    ADD COLUMN temperature double precision;
ALTER TABLE classifications
    ADD COLUMN output_mode text NOT NULL DEFAULT 'json_schema',
    ADD COLUMN temperature double precision;
