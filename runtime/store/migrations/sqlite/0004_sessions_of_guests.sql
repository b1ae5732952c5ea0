-- A session may belong to somebody whom an identity provider vouches for, and who has no row in `users`:
-- then `caller`, `scopes` and `tenant` say what it said. SQLite takes a reference away by a new table.
CREATE TABLE new_sessions (
    id TEXT PRIMARY KEY,
    username TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    ended_at BIGINT,
    caller TEXT,
    scopes TEXT,
    tenant TEXT
);
INSERT INTO new_sessions (id, username, created_at, ended_at) SELECT id, username, created_at, ended_at FROM sessions;

CREATE TABLE new_refresh_tokens (
    hash TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES new_sessions (id),
    expires_at BIGINT NOT NULL,
    used_at BIGINT
);
INSERT INTO new_refresh_tokens SELECT hash, session_id, expires_at, used_at FROM refresh_tokens;

DROP TABLE refresh_tokens;
DROP TABLE sessions;
ALTER TABLE new_sessions RENAME TO sessions;
ALTER TABLE new_refresh_tokens RENAME TO refresh_tokens;
CREATE INDEX sessions_of_user ON sessions (username);
CREATE INDEX refresh_tokens_of_session ON refresh_tokens (session_id);
