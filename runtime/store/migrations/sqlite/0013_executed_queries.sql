-- Queries that were answered: their times and rows, without its values and rows.
CREATE TABLE executed_queries (
    id TEXT PRIMARY KEY,
    -- More than one for cached answers of one statement and caller within a moment.
    queries BIGINT NOT NULL,
    at BIGINT NOT NULL,
    -- The hash of the statement's text with placeholders.
    query_hash TEXT NOT NULL,
    cube TEXT NOT NULL,
    user_id TEXT NOT NULL,
    tenant TEXT,
    kind TEXT NOT NULL,
    surface TEXT NOT NULL,
    duration_us BIGINT NOT NULL,
    warehouse_us BIGINT NOT NULL,
    returned_rows BIGINT NOT NULL,
    scan_bytes BIGINT,
    -- In millionths.
    cost BIGINT,
    is_cached BIGINT NOT NULL,
    pre_aggregation TEXT
);
CREATE INDEX executed_queries_at ON executed_queries (at, id);
CREATE INDEX executed_queries_user ON executed_queries (user_id, at);
CREATE INDEX executed_queries_hash ON executed_queries (query_hash, at);
