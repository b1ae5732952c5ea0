-- Asynchronous queries. Times are microseconds since 1970. `now` is the current time of the query in every attempt.
CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    tenant TEXT NOT NULL,
    is_tenant BIGINT NOT NULL,
    caller TEXT NOT NULL,
    auth_method TEXT NOT NULL,
    scopes TEXT NOT NULL,
    credential TEXT NOT NULL,
    query TEXT NOT NULL,
    now BIGINT NOT NULL,
    state TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    completed_at BIGINT,
    expires_at BIGINT,
    correlation_id TEXT,
    idempotency_key TEXT,
    request_hash TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    progress BIGINT,
    cancel_requested BIGINT NOT NULL,
    fingerprint TEXT,
    result TEXT,
    result_rows BIGINT,
    result_bytes BIGINT,
    error_code TEXT,
    error_message TEXT
);
CREATE UNIQUE INDEX jobs_idempotency ON jobs (tenant, owner, idempotency_key);
CREATE INDEX jobs_state ON jobs (state, created_at);
-- Quotas count open jobs, however many have ended.
CREATE INDEX jobs_open ON jobs (tenant, owner) WHERE state IN ('pending', 'running');
CREATE INDEX jobs_owner ON jobs (tenant, owner, created_at);
