-- In which stacks base and oracle of a task spend their time, where somebody asked for that.
CREATE TABLE profile_documents (
    month text NOT NULL,
    repository_id bigint NOT NULL,
    number integer NOT NULL,
    document jsonb NOT NULL,
    PRIMARY KEY (month, repository_id, number)
);
