-- Revocations of tokens that applications signed. `id` is `jti:` or `sub:` and the claim.
CREATE TABLE revoked_tokens (
    id TEXT PRIMARY KEY,
    revoked_at BIGINT NOT NULL
);
