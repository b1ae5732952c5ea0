-- A session may belong to somebody whom an identity provider vouches for, and who has no row in `users`:
-- then `caller`, `scopes` and `tenant` say what it said.
ALTER TABLE sessions DROP CONSTRAINT sessions_username_fkey;
ALTER TABLE sessions ADD COLUMN caller TEXT;
ALTER TABLE sessions ADD COLUMN scopes TEXT;
ALTER TABLE sessions ADD COLUMN tenant TEXT;
