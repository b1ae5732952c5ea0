//! Finds the place in an author's SQL that an error of the warehouse refers to.
//!
//! In: an author's SQL and the engine's message. Out: the place of the first name that the message quotes and the SQL
//! contains. Engines state the place only in their message, so this module reads it. The place is only shown to users;
//! no decision depends on it. Not here: the choice of the SQL (`sql::place`), statements.

use crate::diagnostic::Span;
use crate::project::{ModelDefinition, SqlText};

/// Returns the place in a model's SQL to which a message refers, or the beginning of the SQL if the message names
/// nothing in it.
pub fn place_of_warehouse_error(model: &ModelDefinition, message: &str) -> Span {
    let text = &*model.sql.text;
    let beginning = || model.sql.locate(text.len() - text.trim_start().len(), 1);
    named_in_error(&[&model.sql], message, |_| false).map_or_else(beginning, |(span, _)| span)
}

/// Returns the place that the engine's arrow points at and the word there, if the line that the engine shows is a line
/// of one of `texts`.
pub(crate) fn shown_in_error<'t>(texts: &[&'t SqlText], message: &str) -> Option<(Span, &'t str)> {
    texts.iter().find_map(|sql| {
        let (at, characters) = shown_in(&sql.text, message)?;
        Some(word_at(sql, at, characters))
    })
}

fn word_at(sql: &SqlText, at: usize, characters: usize) -> (Span, &str) {
    let end = sql.text[at..].char_indices().nth(characters).map_or(sql.text.len(), |(length, _)| at + length);
    (sql.locate(at, characters), &sql.text[at..end])
}

/// Returns the place that the engine's arrow points at, or else of the first quoted name that one of `texts` contains.
/// Names for which `is_other` returns true are skipped.
pub(crate) fn named_in_error<'t>(
    texts: &[&'t SqlText],
    message: &str,
    is_other: impl Fn(&str) -> bool,
) -> Option<(Span, &'t str)> {
    let named = || {
        quoted(message).filter(|name| !is_other(name)).find_map(|name| {
            let place =
                |sql: &'t SqlText| Some(word_at(sql, word_outside_of_texts(&sql.text, name)?, name.chars().count()));
            texts.iter().find_map(|sql| place(sql))
        })
    };
    shown_in_error(texts, message).or_else(named)
}

/// Finds the line that the engine shows, if the text contains it exactly once. Returns the byte offset under the arrow,
/// and the number of characters of the word there.
fn shown_in(text: &str, message: &str) -> Option<(usize, usize)> {
    let (line, arrow) = shown_line(message)?;
    // Long lines are cut off.
    let cut = line.strip_prefix("...").unwrap_or(line);
    let shown = cut.strip_suffix("...").unwrap_or(cut).trim();
    // A short line may occur in other places by accident.
    let mut found = text.match_indices(shown).filter(|_| shown.len() >= 8);
    let (Some((at, _)), None) = (found.next(), found.next()) else { return None };
    let start = line.find(shown)?;
    let offset = at + arrow.checked_sub(start).filter(|inside| *inside < shown.len())?;
    let word = text.get(offset..)?.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'))).next()?;
    Some((offset, word.chars().count().max(1)))
}

/// Returns the line that the engine shows, and the byte offset in it of the arrow.
fn shown_line(message: &str) -> Option<(&str, usize)> {
    let (first, below) = message[message.find("LINE ")?..].split_once('\n')?;
    let start = first.find(": ")? + 2;
    let arrow = below.lines().next()?.find('^')?.checked_sub(start)?;
    Some((&first[start..], arrow))
}

/// Returns the byte offset of the first occurrence of a word outside string literals.
fn word_outside_of_texts(text: &str, word: &str) -> Option<usize> {
    let (mut quotes, mut counted) = (0, 0);
    let mut is_outside = |at: &usize| {
        quotes += text[counted..*at].matches('\'').count();
        counted = *at;
        quotes % 2 == 0
    };
    words_in(text, word).find(|at| is_outside(at)).or_else(|| word_in(text, word))
}

/// Returns the names that a message quotes: first the name at the engine's arrow, then names in quotes of any kind and
/// names after the words that engines put before a name. For a dotted name, its last part follows. Names that the
/// engine only suggests are left out.
fn quoted(message: &str) -> impl Iterator<Item = &str> {
    const GUESSES: [&str; 5] = ["did you mean", "Did you mean", "Candidate", "LINE ", "HINT"];
    let end = GUESSES.iter().filter_map(|word| message.find(word)).min().unwrap_or(message.len());
    let mut rest = &message[..end];
    let bare = [" name ", " named ", "no such table: ", "no such column: "].into_iter().filter_map(move |word| {
        let after = &message[..end][message[..end].find(word)? + word.len()..];
        let is_end = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '$'));
        Some(after.split(is_end).next().unwrap_or_default().trim_end_matches('.'))
    });
    let names = std::iter::from_fn(move || {
        let open = rest.find(['"', '\'', '`'])?;
        let quote = rest[open..].chars().next()?;
        let after = &rest[open + 1..];
        let close = after.find(quote)?;
        rest = &after[close + 1..];
        Some(&after[..close])
    });
    let names = pointed_at(message).into_iter().chain(names).chain(bare);
    names.flat_map(|name| [Some(name), name.rsplit_once('.').map(|(_, last)| last)]).flatten().filter(|n| !n.is_empty())
}

/// Returns the name above an arrow, as in `LINE 1: SELECT id FROM raw.orders` with a `^` in the line below.
fn pointed_at(message: &str) -> Option<&str> {
    let line = &message[message.find("LINE ")?..];
    let (line, below) = line.split_once('\n')?;
    let arrow = below.lines().next()?.find('^')?;
    let is_end = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'));
    line.get(arrow..)?.split(is_end).next()
}

/// Returns the byte offset of the first occurrence of a word, in any case.
pub(super) fn word_in(text: &str, word: &str) -> Option<usize> {
    words_in(text, word).next()
}

fn words_in(text: &str, word: &str) -> impl Iterator<Item = usize> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let (lower, wanted) = (text.to_ascii_lowercase(), word.to_ascii_lowercase());
    let mut from = 0;
    std::iter::from_fn(move || {
        while let Some(at) = lower[from..].find(&wanted).map(|at| from + at) {
            from = at + wanted.len();
            let before = lower[..at].chars().next_back();
            let after = lower[from..].chars().next();
            if !before.is_some_and(is_name) && !after.is_some_and(is_name) {
                return Some(at);
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_located_by_the_names_they_quote() {
        let text = "SELECT amount, \"raw\".x FROM raw.orders";
        let found = |message: &str| quoted(message).find_map(|name| word_in(text, name)).map(|at| &text[at..]);
        assert_eq!(found("Referenced column \"Amount\" not found"), Some("amount, \"raw\".x FROM raw.orders"));
        assert_eq!(found("relation \"main.orders\" does not exist"), Some("orders"));
        assert_eq!(found("Table with name ordersx does not exist, did you mean \"pg.x\"?"), None);
        assert_eq!(found("Catalog Error: Table with name orders does not exist!\nDid you mean \"x\"?"), Some("orders"));
        let pointed = "Binder Error: not so\n\nLINE 1: SELECT amount, \"raw\".x FROM raw.orders\n                                    ^";
        assert_eq!(found(pointed), Some("raw.orders"));
        assert_eq!(found("out of memory"), None);
    }

    #[test]
    fn engine_caret_is_mapped_to_a_line_of_the_author() {
        let text = "SELECT id, amount\nFROM orders\nGROUP amount, id";
        let at = |message: &str| shown_in(text, message).map(|(at, length)| (&text[at..], length));
        let message = "Parser Error: syntax error at or near \"amount\"\n\nLINE 3: GROUP amount, id\n              ^";
        assert_eq!(at(message), Some(("amount, id", 6)));
        assert_eq!(at(&message.replace("GROUP amount, id", "GROUP amount, ...")), Some(("amount, id", 6)));
        assert_eq!(at(&message.replace("GROUP amount, id", "GROUP t.amount")), None);
        assert_eq!(at("no line at all"), None);
        let case = "CASE WHEN s = 'stat' THEN 1 ELSE stat END";
        assert_eq!(word_outside_of_texts(case, "stat").map(|at| &case[at..]), Some("stat END"));
        assert_eq!(word_outside_of_texts("s = 'stat'", "stat"), Some(5));
    }
}
