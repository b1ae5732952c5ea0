//! Reads the sources of the workspace for the checks under `tests/`.
//!
//! In: the files of the workspace. Out: tokens, graphs of imports and language findings. Not here: the other crates of
//! the workspace, so that these checks build in a second and can run first.

pub mod asserted_messages;
pub mod client_texts;
pub mod documents;
pub mod events;
pub mod imports;
pub mod language;
pub mod messages;
pub mod outline;
pub mod public_codes;
pub mod report;
pub mod sources;
pub mod test_names;
pub(crate) mod text_codes;
pub mod texts;
pub mod tokens;
