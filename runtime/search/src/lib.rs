//! Finds entries by words of their names and descriptions.
//!
//! In: entries with texts, and the words that a user types. Out: the entries that match, best first, and the parts of
//! their texts that match. A word matches if it is equal, begins a longer word, or has few typing mistakes. The score
//! of an entry depends on its own texts and the typed words alone: entries that a caller may not see change neither the
//! scores nor the order of others. Absent: what the entries are, and who may see them (`terrane_app::search`).

mod index;
mod likeness;
mod question;
mod words;

pub use index::{Field, Index, IndexBuilder, Match, Matches};
pub use question::{MAX_CHARS, MAX_WORDS, Question, QuestionError};
