-- `query` or `profile`. The column `query` holds the request of either.
ALTER TABLE jobs ADD COLUMN kind TEXT NOT NULL DEFAULT 'query';
