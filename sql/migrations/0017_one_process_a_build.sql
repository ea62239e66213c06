-- A build is timed once, beside one of every other arm, so that looks have no processes of a build any more.
UPDATE measurements_ever SET document = jsonb_set(document, '{rule,looks}', (
    SELECT jsonb_agg(look - 'processes') FROM jsonb_array_elements(document #> '{rule,looks}') AS look
)) WHERE document ? 'rule';

-- What was judged by the rule before is kept there. By the present one it may say another thing, so its items are pending again.
DELETE FROM measurement_documents;
DELETE FROM ledger WHERE stage = 'measurements';
