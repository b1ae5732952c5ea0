//! Finds the names that are most similar to an unknown one.
//!
//! In: a name and the names that are allowed at its place. Out: candidates, nearest first, and phrases made of them.
//! Messages about unknown names use these phrases.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::typing_mistake::{mistakes, words};

/// The largest number of names in a message.
pub const MAX_NAMES: usize = 20;

/// The largest number of typing mistakes in a name.
const MAX_MISTAKES: usize = 3;

/// Returns at most `max` candidates, ordered by their distance to `name` and then by name.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>, max: usize) -> Vec<&'a str> {
    let wanted = fold(name);
    let mut scored: Vec<(u32, &str)> =
        candidates.into_iter().map(|candidate| (distance(&wanted, &fold(candidate)), candidate)).collect();
    scored.sort_unstable();
    scored.dedup();
    scored.truncate(max);
    scored.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Returns the candidate that `name` most likely misspells, if exactly one has the fewest mistakes.
///
/// Each word of the name may have few mistakes, and the whole name three. The mistakes must be fewer than half of the
/// characters of the longer of the two names. A name that differs by a word with another meaning is not misspelt.
pub fn likely<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = fold(name);
    let length = wanted.chars().count();
    let folded: Vec<(String, &str)> = candidates.into_iter().map(|candidate| (fold(candidate), candidate)).collect();
    let known: BTreeSet<&str> = folded.iter().flat_map(|(found, _)| words(found)).collect();
    let possible = folded.iter().filter_map(|(found, candidate)| {
        let mistakes = mistakes(&wanted, found, &known)?;
        let is_few = mistakes <= MAX_MISTAKES && 2 * mistakes < length.max(found.chars().count());
        is_few.then_some((mistakes, *candidate))
    });
    let possible: BTreeSet<(usize, &str)> = possible.collect();
    let mut best = possible.iter();
    let (fewest, candidate) = best.next()?;
    best.next().is_none_or(|(mistakes, _)| mistakes > fewest).then_some(*candidate)
}

/// Returns the nearest candidate that contains `name`, is contained in `name`, or differs from `name` in few
/// characters.
pub fn resembling<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = fold(name);
    let allowed = 200 + 100 * (wanted.chars().count() as u32 / 3).min(3);
    nearest(name, candidates, usize::MAX).into_iter().find(|candidate| {
        let found = fold(candidate);
        let is_part = wanted.len() >= 3 && found.len() >= 3 && (found.contains(&wanted) || wanted.contains(&found));
        is_part || distance(&wanted, &found) <= allowed
    })
}

/// Returns "Did you mean `a`? Available measures: `a`, `b`.", or a sentence that says that no candidates exist.
pub fn suggest<'a>(name: &str, what: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let near = nearest(name, candidates.iter().copied(), MAX_NAMES);
    if near.is_empty() {
        return format!("No {what} exist.");
    }
    let mut text = match likely(name, candidates.iter().copied()) {
        Some(best) => format!("Did you mean `{best}`? "),
        None => String::new(),
    };
    let _ = write!(text, "Available {what}: {}", in_backticks(near.iter().copied()));
    let left_out = candidates.len().saturating_sub(near.len());
    if left_out > 0 {
        let _ = write!(text, " and {left_out} more");
    }
    text.push('.');
    text
}

/// Returns the names in backticks, separated by commas.
pub fn in_backticks<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns the edit distance in hundredths, so that a shared beginning decides between equal distances.
fn distance(wanted: &str, candidate: &str) -> u32 {
    let edits = strsim::osa_distance(wanted, candidate) as u32 * 100;
    let prefix = wanted.chars().zip(candidate.chars()).take_while(|(a, b)| a == b).count() as u32;
    edits + 50 - prefix.min(50)
}

/// Returns the first 200 characters of a name in lower case, with `_` for each `-` and space, because authors often
/// confuse these.
pub(crate) fn fold(name: &str) -> String {
    name.chars().map(|c| if c == '-' || c == ' ' { '_' } else { c.to_ascii_lowercase() }).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_comes_first() {
        let names = ["revenue", "count", "average_order"];
        assert_eq!(nearest("revenu", names, 2), ["revenue", "count"]);
        assert_eq!(likely("reveneu", names), Some("revenue"));
        assert_eq!(likely("order", names), None);
        assert_eq!(resembling("order", names), Some("average_order"));
        assert_eq!(likely("zzz", names), None);
        assert_eq!(likely("mix", ["min", "max"]), None);
    }

    #[test]
    fn only_typing_mistakes_are_likely() {
        let one = |name: &str, candidate: &'static str| likely(name, [candidate]).is_some();
        for (name, candidate) in
            [("cuont", "count"), ("id", "ids"), ("smu", "sum"), ("Status", "status"), ("runing_toatl", "running_total")]
        {
            assert!(one(name, candidate), "{name}");
        }
        for (name, candidate) in [
            ("median", "min"),
            ("min", "max"),
            ("x", "y"),
            ("mode", "model_name"),
            ("time", "date"),
            ("revenue", "revenue_per_order"),
            ("revenue_2023", "revenue_2024"),
            ("delay_min", "delay_max"),
            ("total_unpaid", "total_paid"),
            ("revenue_mtd", "revenue_ytd"),
        ] {
            assert!(!one(name, candidate), "{name}");
        }
    }

    #[test]
    fn suggestion_lists_the_possible_names() {
        assert_eq!(
            suggest("revnue", "measures", ["count", "revenue"]),
            "Did you mean `revenue`? Available measures: `revenue`, `count`."
        );
        assert_eq!(suggest("x", "models", []), "No models exist.");
    }
}
