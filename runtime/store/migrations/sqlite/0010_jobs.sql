-- Asynchronous queries. Times are microseconds since 1970. `now` is the current time of the query in every attempt.
CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    tenant TEXT NOT NULL,
    is_tenant INTEGER NOT NULL,
    caller TEXT NOT NULL,
    auth_method TEXT NOT NULL,
    scopes TEXT NOT NULL,
    credential TEXT NOT NULL,
    query TEXT NOT NULL,
    now INTEGER NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    completed_at INTEGER,
    expires_at INTEGER,
    correlation_id TEXT,
    idempotency_key TEXT,
    request_hash TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    progress INTEGER,
    cancel_requested INTEGER NOT NULL,
    fingerprint TEXT,
    result TEXT,
    result_rows INTEGER,
    result_bytes INTEGER,
    error_code TEXT,
    error_message TEXT
);
CREATE UNIQUE INDEX jobs_idempotency ON jobs (tenant, owner, idempotency_key);
CREATE INDEX jobs_state ON jobs (state, created_at);
-- Quotas count open jobs, however many have ended.
CREATE INDEX jobs_open ON jobs (tenant, owner) WHERE state IN ('pending', 'running');
CREATE INDEX jobs_owner ON jobs (tenant, owner, created_at);
