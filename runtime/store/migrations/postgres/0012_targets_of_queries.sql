-- Several installations share one state database, and each deletes the recorded queries of its own target alone. Queries
-- that were recorded before belong to no target.
DELETE FROM preagg_queries;
ALTER TABLE preagg_queries ADD COLUMN target TEXT NOT NULL DEFAULT '';
CREATE INDEX preagg_queries_costliest ON preagg_queries (target, warehouse_us);
