//! Strings and SQL of a project with their places, and suggestions for unknown names.
//!
//! In: files of the project. Out: values and SQL with their places in the files ([`Text`], [`SqlText`]), and places to
//! show ([`Span`]). Not here: YAML, Jinja, SQL syntax.

pub mod nearest;
mod source;
mod span;
mod typing_mistake;

pub use source::{Origin, SourceFile, SqlText, Text};
pub use span::Span;

/// Returns the first line of a value, limited to 60 characters.
pub fn shorten(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= 60 && line.len() == text.len() {
        return text.to_owned();
    }
    line.chars().take(60).chain(std::iter::once('…')).collect()
}
