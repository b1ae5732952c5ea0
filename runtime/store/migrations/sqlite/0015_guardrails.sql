-- Guardrails of users and groups. A removed record stays with `is_removed`, so that other servers learn of it.
CREATE TABLE guardrails (
    subject TEXT PRIMARY KEY,
    version BIGINT NOT NULL,
    -- The number of the change among those of all subjects.
    sequence BIGINT NOT NULL,
    is_removed BIGINT NOT NULL,
    max_execution_us BIGINT,
    max_rows_returned BIGINT,
    require_time_filter BIGINT NOT NULL,
    -- Amounts of the currency in millionths.
    max_cost BIGINT,
    daily_budget BIGINT,
    monthly_budget BIGINT,
    alert_at_percent BIGINT,
    updated_by TEXT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX guardrails_sequence ON guardrails (sequence);
-- Predictions read the newest queries of a cube.
CREATE INDEX executed_queries_cube ON executed_queries (cube, at);
