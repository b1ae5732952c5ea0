-- The newest profile of each cube, view of the cube, and range of time.
CREATE TABLE profiles (
    cube TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    time_range TEXT NOT NULL,
    profiled_at BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (cube, fingerprint, time_range)
);
CREATE INDEX profiles_profiled_at ON profiles (profiled_at);
