//! Reads the sources of the workspace for the checks under `tests/`.
//!
//! In: the files of the workspace. Out: tokens, graphs of imports and language findings. Deliberately absent: every
//! crate of the workspace; these checks build in a second and run first.

pub mod documents;
pub mod events;
pub mod imports;
pub mod language;
pub mod messages;
pub mod report;
pub mod sources;
pub mod texts;
pub mod tokens;
