-- Series of benchmarks over the commits of a repository, from published sites of asv or from raw results of one's own,
-- and where they take steps. What is read anew replaces what was read before, table by table, in one transaction.
CREATE TABLE dashboards (
    dashboard          text NOT NULL,
    source             text NOT NULL CHECK (source IN ('published', 'results')),
    address            text NOT NULL,
    repository         text NOT NULL,
    project            text NOT NULL,
    commit_url         text NOT NULL,
    benchmarks         jsonb NOT NULL,
    graphs_expected    integer NOT NULL,
    graphs_read        integer NOT NULL,
    summaries_expected integer NOT NULL,
    summaries_read     integer NOT NULL,
    run_id             text NOT NULL,
    read_at            timestamptz NOT NULL,
    PRIMARY KEY (dashboard, source)
);

CREATE TABLE dashboard_revisions (
    dashboard text NOT NULL,
    source    text NOT NULL,
    row       integer NOT NULL,
    revision  bigint NOT NULL,
    hash      text NOT NULL,
    date      timestamptz,
    tags      jsonb NOT NULL,
    PRIMARY KEY (dashboard, source, row)
);

CREATE TABLE dashboard_series (
    dashboard   text NOT NULL,
    source      text NOT NULL,
    row         integer NOT NULL,
    series      integer NOT NULL,
    benchmark   text NOT NULL,
    parameters  jsonb NOT NULL,
    machine     text NOT NULL,
    branch      text NOT NULL,
    environment text NOT NULL,
    type        text NOT NULL,
    unit        text NOT NULL,
    path        text NOT NULL,
    PRIMARY KEY (dashboard, source, row)
);

CREATE TABLE dashboard_points (
    dashboard text NOT NULL,
    source    text NOT NULL,
    row       integer NOT NULL,
    series    integer NOT NULL,
    revision  bigint NOT NULL,
    value     double precision,
    low       double precision,
    high      double precision,
    PRIMARY KEY (dashboard, source, row)
);

CREATE TABLE dashboard_summaries (
    dashboard text NOT NULL,
    source    text NOT NULL,
    row       integer NOT NULL,
    benchmark text NOT NULL,
    revision  bigint NOT NULL,
    value     double precision,
    PRIMARY KEY (dashboard, source, row)
);

CREATE TABLE dashboard_regressions (
    dashboard       text NOT NULL,
    source          text NOT NULL,
    row             integer NOT NULL,
    benchmark       text NOT NULL,
    path            text NOT NULL,
    parameter       bigint,
    latest          double precision,
    best            double precision,
    before_revision bigint,
    after_revision  bigint,
    before          double precision,
    after           double precision,
    PRIMARY KEY (dashboard, source, row)
);

CREATE TABLE dashboard_faults (
    dashboard text NOT NULL,
    source    text NOT NULL,
    row       integer NOT NULL,
    path      text NOT NULL,
    kind      text NOT NULL,
    detail    text NOT NULL,
    PRIMARY KEY (dashboard, source, row)
);

CREATE TABLE breakpoints (
    dashboard       text NOT NULL,
    source          text NOT NULL,
    method          text NOT NULL,
    row             integer NOT NULL,
    series          integer NOT NULL,
    benchmark       text NOT NULL,
    parameters      jsonb NOT NULL,
    before_revision bigint NOT NULL,
    after_revision  bigint NOT NULL,
    before_hash     text,
    after_hash      text,
    date            timestamptz,
    before          double precision NOT NULL,
    after           double precision NOT NULL,
    ratio           double precision,
    ratio_low       double precision,
    ratio_high      double precision,
    points_before   integer NOT NULL,
    points_after    integer NOT NULL,
    direction       text NOT NULL CHECK (direction IN ('improvement', 'regression', 'unknown')),
    PRIMARY KEY (dashboard, source, method, row)
);

CREATE TABLE breakpoint_commits (
    dashboard       text NOT NULL,
    source          text NOT NULL,
    method          text NOT NULL,
    row             integer NOT NULL,
    before_revision bigint NOT NULL,
    after_revision  bigint NOT NULL,
    before_hash     text,
    after_hash      text,
    date            timestamptz,
    improved        integer NOT NULL,
    regressed       integer NOT NULL,
    steps           integer NOT NULL,
    median_ratio    double precision,
    largest_change  double precision,
    pull_request    integer,
    PRIMARY KEY (dashboard, source, method, row)
);

CREATE TABLE replication (
    dashboard        text NOT NULL,
    row              integer NOT NULL,
    reference        text NOT NULL,
    other            text NOT NULL,
    method           text NOT NULL,
    first_commit     text NOT NULL,
    last_commit      text NOT NULL,
    commits          integer NOT NULL,
    only_reference   integer NOT NULL,
    only_other       integer NOT NULL,
    pairs            integer NOT NULL,
    pearson          double precision,
    pearson_low      double precision,
    pearson_high     double precision,
    spearman         double precision,
    spearman_low     double precision,
    spearman_high    double precision,
    same_sign        double precision,
    same_sign_low    double precision,
    same_sign_high   double precision,
    bias             double precision,
    agreement_low    double precision,
    agreement_high   double precision,
    PRIMARY KEY (dashboard, row)
);
