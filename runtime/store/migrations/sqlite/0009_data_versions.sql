-- The newest report of changed data for each scope. An empty name means all cubes, or all tenants. `sequence` grows
-- with every report of any scope.
CREATE TABLE data_versions (
    cube TEXT NOT NULL,
    tenant TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    PRIMARY KEY (cube, tenant)
);
CREATE INDEX data_versions_sequence ON data_versions (sequence);
