-- Which versions of the server have worked on this database, and since when.
CREATE TABLE server_starts (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    version TEXT NOT NULL,
    started_at TEXT NOT NULL
);
