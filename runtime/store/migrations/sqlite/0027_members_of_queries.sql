-- The members and metrics that a query names, separated by commas.
ALTER TABLE executed_queries ADD COLUMN members TEXT;
