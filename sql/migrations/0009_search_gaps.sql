-- Code searches of a month's discovery that showed fewer files than they counted, also when asked again.
CREATE TABLE search_gaps (
    month   text    NOT NULL CHECK (month ~ '^\d{4}-\d{2}$'),
    query   text    NOT NULL,
    counted integer NOT NULL CHECK (counted > found),
    found   integer NOT NULL CHECK (found >= 0),
    PRIMARY KEY (month, query)
);
