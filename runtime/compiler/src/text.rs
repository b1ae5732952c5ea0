//! Texts of a project and places in them, and the nearest names to one that is unknown.
//!
//! In: files of the project. Out: values and SQL that know where an author wrote them ([`Text`], [`SqlText`]), and
//! places to show ([`Span`]). Not here: YAML, Jinja, SQL syntax.

pub mod nearest;
mod source;
mod span;

pub use source::{Origin, SourceFile, SqlText, Text};
pub use span::Span;
