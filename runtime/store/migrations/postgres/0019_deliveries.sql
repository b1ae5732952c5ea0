-- Messages about alerts. `message` is JSON; `channel` and `target` name the receiver.
CREATE TABLE deliveries (
    id TEXT PRIMARY KEY,
    monitor_id TEXT NOT NULL,
    -- The place among the messages of the monitor.
    sequence BIGINT NOT NULL,
    kind TEXT NOT NULL,
    channel TEXT NOT NULL,
    target TEXT NOT NULL,
    message TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    state TEXT NOT NULL,
    due_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    last_error TEXT,
    ended_at BIGINT
);
CREATE UNIQUE INDEX deliveries_sequence ON deliveries (monitor_id, sequence);
CREATE INDEX deliveries_due_at ON deliveries (due_at) WHERE state = 'waiting';
CREATE INDEX deliveries_ended_at ON deliveries (ended_at);
-- The states of channels that messages were sent to.
CREATE TABLE channel_lanes (
    channel TEXT NOT NULL,
    target TEXT NOT NULL,
    failures BIGINT NOT NULL,
    resumes_at BIGINT,
    disabled TEXT,
    PRIMARY KEY (channel, target)
);
ALTER TABLE monitors ADD COLUMN channels TEXT NOT NULL DEFAULT '[]';
ALTER TABLE monitors ADD COLUMN grouping_minutes BIGINT NOT NULL DEFAULT 0;
