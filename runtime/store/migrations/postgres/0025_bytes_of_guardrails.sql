ALTER TABLE guardrails ADD COLUMN max_scan_bytes BIGINT;
