//! Finds entries by words of their names and descriptions.
//!
//! In: entries with strings, and the words that a user types. Out: the entries that match, best first, and the matching
//! parts of their strings. A typed word matches a word that is equal, that begins with it, or that differs by a few
//! typing mistakes. The score of an entry depends only on its own strings and the typed words. Entries that a caller
//! may not see therefore change neither the scores nor the order of others. Not here: the meaning of the entries, and
//! who may see them (`terrane_app::search`).

mod index;
mod likeness;
mod question;
mod spelling;
mod words;

pub use index::{Field, Index, IndexBuilder, Match, Matches, score_of};
pub use question::{MAX_CHARS, MAX_WORDS, Question, QuestionError};
pub use spelling::typing_mistakes;
