ALTER TABLE guardrails ADD COLUMN require_partition_filter BIGINT NOT NULL DEFAULT 0;
