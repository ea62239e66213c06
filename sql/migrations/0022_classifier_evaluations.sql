-- How well a model judged the labelled commits: each evaluation is added, none is changed.
CREATE TABLE classifier_evaluations (
    id                   bigint           GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model                text             NOT NULL,
    prompt_version       text             NOT NULL,
    evaluated_at         timestamptz      NOT NULL,
    commits_sha256       text             NOT NULL,
    positives            integer          NOT NULL,
    recalled             integer          NOT NULL,
    others               integer          NOT NULL,
    false_positives      integer          NOT NULL,
    unanswered           integer          NOT NULL,
    calibration_error    double precision NOT NULL,
    agreement            double precision NOT NULL,
    injected             integer          NOT NULL,
    misled               integer          NOT NULL,
    dollars_per_thousand double precision NOT NULL
);
CREATE INDEX classifier_evaluations_by_model ON classifier_evaluations (model, prompt_version);
