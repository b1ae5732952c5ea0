-- Builds of pre-aggregations. A target is one place for tables: a warehouse's schema, or a file.
CREATE TABLE preagg_builds (
    id TEXT PRIMARY KEY,
    target TEXT NOT NULL,
    cube TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    origin TEXT NOT NULL,
    -- Moments in microseconds, separated by commas; empty: all partitions.
    partitions TEXT NOT NULL,
    requested_by TEXT,
    created_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    attempts BIGINT NOT NULL,
    tables_done BIGINT NOT NULL,
    tables_total BIGINT,
    stored_rows BIGINT,
    generation BIGINT,
    error_code TEXT,
    error TEXT
);
CREATE INDEX preagg_builds_created ON preagg_builds (target, created_at);
-- At most one build of a rollup waits.
CREATE UNIQUE INDEX preagg_builds_pending ON preagg_builds (target, cube, name) WHERE state = 'pending';
-- The published generation of each rollup.
CREATE TABLE preagg_rollups (
    target TEXT NOT NULL,
    cube TEXT NOT NULL,
    name TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    generation BIGINT NOT NULL,
    extent_start BIGINT,
    extent_end BIGINT,
    refresh_digest TEXT,
    checked_at BIGINT NOT NULL,
    published_at BIGINT NOT NULL,
    PRIMARY KEY (target, cube, name)
);
-- The tables of published generations, and those that were retired and are not dropped yet.
CREATE TABLE preagg_tables (
    name TEXT PRIMARY KEY,
    target TEXT NOT NULL,
    cube TEXT NOT NULL,
    rollup TEXT NOT NULL,
    range_start BIGINT,
    range_end BIGINT,
    stored_rows BIGINT NOT NULL,
    bytes BIGINT,
    built_at BIGINT NOT NULL,
    mark TEXT NOT NULL,
    retired_at BIGINT
);
CREATE INDEX preagg_tables_rollup ON preagg_tables (target, cube, rollup);
-- Grows with each publication of a target; a rollup's generations are numbers of it.
CREATE TABLE preagg_versions (
    target TEXT PRIMARY KEY,
    version BIGINT NOT NULL
);
-- Queries that were computed from rows, by the members that they read: the input of recommendations. Lists of names are
-- separated by commas.
CREATE TABLE preagg_queries (
    digest TEXT PRIMARY KEY,
    cube TEXT NOT NULL,
    measures TEXT NOT NULL,
    dimensions TEXT NOT NULL,
    segments TEXT NOT NULL,
    time_dimension TEXT,
    granularity TEXT,
    queries BIGINT NOT NULL,
    warehouse_us BIGINT NOT NULL,
    last_at BIGINT NOT NULL
);
