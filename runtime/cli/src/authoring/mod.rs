//! What the commands that write projects share: names, YAML as the examples have it, and folders that
//! come to be whole or not at all.
//!
//! In: what a command wants to be there. Out: files. Not here: what they mean (`init`, `import`).

pub mod folder;
pub mod names;
pub mod yaml;
