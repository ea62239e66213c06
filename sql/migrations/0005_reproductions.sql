-- What building an image a second time, from its spec and locks alone, has shown; of each image the newest answer.
CREATE TABLE reproductions (
    month         text    NOT NULL,
    repository_id bigint  NOT NULL,
    number        integer NOT NULL,
    document      jsonb   NOT NULL,
    PRIMARY KEY (month, repository_id, number)
);
