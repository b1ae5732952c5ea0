-- Times are microseconds since the Unix epoch. Callers are JSON: {user_id, email, roles, groups, attributes}.
CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    secret_hash TEXT NOT NULL,
    scopes TEXT NOT NULL,
    caller TEXT NOT NULL,
    tenant TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
);

CREATE TABLE users (
    username TEXT PRIMARY KEY,
    password_hash TEXT NOT NULL,
    scopes TEXT NOT NULL,
    caller TEXT NOT NULL,
    tenant TEXT,
    created_at BIGINT NOT NULL,
    disabled_at BIGINT
);

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    username TEXT NOT NULL REFERENCES users (username),
    created_at BIGINT NOT NULL,
    ended_at BIGINT
);
CREATE INDEX sessions_of_user ON sessions (username);

CREATE TABLE refresh_tokens (
    hash TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    expires_at BIGINT NOT NULL,
    used_at BIGINT
);

-- Append-only, and chained by hash: the triggers stop accidents, the chain shows the rest.
CREATE TABLE audit_log (
    sequence BIGINT PRIMARY KEY,
    at BIGINT NOT NULL,
    event TEXT NOT NULL,
    actor TEXT NOT NULL,
    auth_method TEXT NOT NULL,
    client_ip TEXT,
    correlation_id TEXT,
    resource TEXT NOT NULL,
    reason TEXT,
    was TEXT,
    became TEXT,
    alike BIGINT NOT NULL,
    hash TEXT NOT NULL,
    previous TEXT NOT NULL
);
CREATE INDEX audit_log_at ON audit_log (at);
CREATE FUNCTION refuse_change_of_audit_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only';
END $$;
CREATE TRIGGER audit_log_is_not_changed BEFORE UPDATE ON audit_log
FOR EACH ROW EXECUTE FUNCTION refuse_change_of_audit_log();
CREATE TRIGGER audit_log_is_not_shortened BEFORE DELETE ON audit_log
FOR EACH ROW EXECUTE FUNCTION refuse_change_of_audit_log();
CREATE TRIGGER audit_log_is_not_emptied BEFORE TRUNCATE ON audit_log
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_audit_log();
