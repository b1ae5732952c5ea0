-- The size of the statement, and of the relations that it scans.
ALTER TABLE executed_queries ADD COLUMN table_bytes BIGINT;
ALTER TABLE executed_queries ADD COLUMN table_rows BIGINT;
ALTER TABLE executed_queries ADD COLUMN facts BIGINT;
ALTER TABLE executed_queries ADD COLUMN joins BIGINT;
ALTER TABLE executed_queries ADD COLUMN group_columns BIGINT;
ALTER TABLE executed_queries ADD COLUMN range_seconds BIGINT;
ALTER TABLE executed_queries ADD COLUMN row_bytes BIGINT;
