-- Cubes that were registered while a server ran. `entry` is one entry of a project's `cubes:` list, as JSON.
CREATE TABLE registered_cubes (
    name TEXT PRIMARY KEY,
    entry TEXT NOT NULL,
    registered_by TEXT NOT NULL,
    registered_at BIGINT NOT NULL
);
