-- Who does what only one may do. The fence grows with every claim and never shrinks, so rows are kept.
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    fence BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

-- For the removal of what is over.
CREATE INDEX refresh_tokens_of_session ON refresh_tokens (session_id);
