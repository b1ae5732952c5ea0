-- The parts of budgets that servers hold, until a time of the database's clock.
CREATE TABLE budget_leases (
    id TEXT PRIMARY KEY,
    account TEXT NOT NULL,
    holder TEXT NOT NULL,
    amount BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX budget_leases_account ON budget_leases (account);
-- Alerts of budgets that were logged.
CREATE TABLE budget_alerts (
    id TEXT PRIMARY KEY,
    period_start BIGINT NOT NULL
);
-- The dimensions that a query filters by, separated by commas, and the predicted times.
ALTER TABLE executed_queries ADD COLUMN filters TEXT;
ALTER TABLE executed_queries ADD COLUMN predicted_us BIGINT;
ALTER TABLE executed_queries ADD COLUMN predicted_high_us BIGINT;
