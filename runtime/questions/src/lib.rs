//! Interprets questions in natural language as queries.
//!
//! In: a question, the members that the caller may see with their names and synonyms, and the date. Out: a draft of a
//! query with the part of the question that each piece was made from. If a part has several meanings or none, the
//! output contains choices. A grammar over lists of words finds measures, groups, filters, times, order and comparison.
//! The lists are data files, one for each language. Not here: the model of a project, queries and policies
//! (`terrane_app::questions`), and the lookup of values in a warehouse, which the caller of this crate passes in.
//!
//! A question has at most [`MAX_CHARS`] characters and [`MAX_TOKENS`] words, so the time to read it is bounded.

mod digits;
mod draft;
mod grammar;
mod language;
mod members;
mod spelling;
mod times;
mod token;

pub use draft::{
    Aggregation, Clarification, Comparison, Draft, DraftFilter, DraftGroup, DraftOrder, DraftRange, DraftValue,
    Interpretation, Lookup, Piece, Unit,
};
pub use grammar::read;
pub use language::Language;
pub use members::{KnownValue, KnownValues, MemberEntry, MemberKind, SearchedWord, Vocabulary};
pub use token::{MAX_CHARS, MAX_TOKENS, QuestionError};

#[cfg(test)]
mod tests;
