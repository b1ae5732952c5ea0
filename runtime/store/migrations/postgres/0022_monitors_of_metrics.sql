-- The name of a metric. `cube` and `measure` are then empty.
ALTER TABLE monitors ADD COLUMN metric TEXT;
