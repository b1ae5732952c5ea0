-- Governed records: certifications, glossary terms, owners and metadata of artifacts. `body` is the record as JSON, and
-- `sequence` the number of its last change in the history.
CREATE TABLE governance_records (
    key TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    artifact TEXT,
    -- The category and the name of a term that is not archived.
    unique_name TEXT,
    version BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    body TEXT NOT NULL
);
CREATE UNIQUE INDEX governance_records_sequence ON governance_records (sequence);
CREATE UNIQUE INDEX governance_records_name ON governance_records (unique_name) WHERE unique_name IS NOT NULL;
-- Every change of a record. `was` and `became` are the details of its audit record.
CREATE TABLE governance_history (
    sequence BIGINT PRIMARY KEY,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    artifact TEXT,
    version BIGINT NOT NULL,
    notes TEXT,
    was TEXT,
    became TEXT
);
CREATE INDEX governance_history_artifact ON governance_history (artifact, sequence);
CREATE INDEX governance_history_key ON governance_history (key, sequence);
