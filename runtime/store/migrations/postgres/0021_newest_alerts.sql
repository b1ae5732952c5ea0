CREATE INDEX alerts_triggered_at ON alerts (triggered_at);
