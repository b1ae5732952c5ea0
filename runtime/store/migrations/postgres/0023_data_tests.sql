-- Runs of data tests. `results` is a JSON list; times are microseconds.
CREATE TABLE data_test_runs (
    id TEXT PRIMARY KEY,
    -- The user who requested the run; null for a run on schedule.
    requested_by TEXT,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    results TEXT NOT NULL
);
CREATE INDEX data_test_runs_created_at ON data_test_runs (created_at);
