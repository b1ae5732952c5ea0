//! Shared pieces of these tests.
