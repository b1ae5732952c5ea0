-- Random keys that the servers on this database share, and nobody else knows. `value` is hexadecimal.
CREATE TABLE server_secrets (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
