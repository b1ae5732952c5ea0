-- Monitors of measures. `owner` is the caller as JSON, `dimensions` and `escalations` are JSON lists.
CREATE TABLE monitors (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    cube TEXT NOT NULL,
    measure TEXT NOT NULL,
    detector TEXT NOT NULL,
    -- The shortest text of the number.
    sensitivity TEXT,
    dimensions TEXT NOT NULL,
    schedule TEXT NOT NULL,
    timezone TEXT NOT NULL,
    granularity TEXT NOT NULL,
    training_size BIGINT NOT NULL,
    is_enabled BIGINT NOT NULL,
    min_severity TEXT NOT NULL,
    resolve_after_steps BIGINT NOT NULL,
    escalations TEXT NOT NULL,
    owner TEXT NOT NULL,
    auth_method TEXT NOT NULL,
    scopes TEXT NOT NULL,
    credential TEXT NOT NULL,
    tenant TEXT,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    next_run_at BIGINT,
    last_run_at BIGINT,
    last_outcome TEXT,
    last_message TEXT,
    judged_until BIGINT,
    -- The digest of the owner's view of the measure.
    seen_as TEXT
);
CREATE INDEX monitors_next_run_at ON monitors (next_run_at);
-- Anomalous steps. `series` is a JSON list of names and values, and numbers are text.
CREATE TABLE detections (
    id TEXT PRIMARY KEY,
    monitor_id TEXT NOT NULL,
    series TEXT NOT NULL,
    step BIGINT NOT NULL,
    value TEXT,
    expected TEXT,
    lower_bound TEXT,
    upper_bound TEXT,
    raw TEXT,
    score TEXT NOT NULL,
    severity BIGINT NOT NULL,
    detector TEXT NOT NULL,
    seen_as TEXT NOT NULL,
    detected_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX detections_step ON detections (monitor_id, series, step, detector);
CREATE INDEX detections_newest ON detections (monitor_id, step);
-- Alerts. A series has at most one that is not resolved.
CREATE TABLE alerts (
    id TEXT PRIMARY KEY,
    monitor_id TEXT NOT NULL,
    series TEXT NOT NULL,
    state TEXT NOT NULL,
    severity BIGINT NOT NULL,
    first_step BIGINT NOT NULL,
    last_step BIGINT NOT NULL,
    judged_until BIGINT NOT NULL,
    detections BIGINT NOT NULL,
    normal_steps BIGINT NOT NULL,
    seen_as TEXT NOT NULL,
    triggered_at BIGINT NOT NULL,
    acknowledged_at BIGINT,
    acknowledged_by TEXT,
    resolved_at BIGINT,
    resolved_by TEXT,
    escalations BIGINT NOT NULL,
    escalates_at BIGINT,
    version BIGINT NOT NULL
);
CREATE UNIQUE INDEX alerts_open ON alerts (monitor_id, series) WHERE resolved_at IS NULL;
CREATE INDEX alerts_newest ON alerts (monitor_id, triggered_at);
CREATE INDEX alerts_escalates_at ON alerts (escalates_at);
