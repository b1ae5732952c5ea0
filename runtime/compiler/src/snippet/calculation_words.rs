//! Typing mistakes in words of a closed list, such as the types of measures.
//!
//! In: a word and the words of the list. Out: the word that the author meant. Words for other calculations, such as
//! `median`, are not typing mistakes.

use super::aggregate::is_aggregate;
use crate::text::nearest::{fold, likely};

/// Returns the word of a closed list that `word` is a misspelling of. A word with a meaning of its own, such as
/// `median`, is not a misspelling.
pub(crate) fn likely_word<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(word);
    let has_meaning = is_aggregate(&folded) || MEANINGFUL.contains(&&*folded);
    likely(word, candidates).filter(|found| !has_meaning || fold(found) == folded)
}

/// Words for calculations and types of other tools, besides SQL's aggregates.
const MEANINGFUL: &[&str] = &[
    "array",
    "binary",
    "bytes",
    "delta",
    "diff",
    "first",
    "hash",
    "interval",
    "json",
    "last",
    "moving_total",
    "percentile",
    "range",
    "rank",
    "rolling_avg",
    "rolling_sum",
    "rolling_total",
    "running_avg",
    "running_count",
    "running_max",
    "running_min",
    "std",
    "uuid",
    "var",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_with_a_meaning_is_not_a_typing_mistake() {
        let types = ["count", "sum", "avg", "min", "max", "number", "running_total"];
        for word in ["median", "MEDIAN", "mad", "countif", "rolling_total", "mode", "stddev"] {
            assert_eq!(likely_word(word, types), None, "{word}");
        }
        assert_eq!(likely_word("summ", types), Some("sum"));
        assert_eq!(likely_word("Sum", types), Some("sum"));
    }
}
