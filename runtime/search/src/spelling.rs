//! Decides whether a typed word is another word with typing mistakes: the rule of searches and of questions in words.
//!
//! A mistake is a character that is added, missing, replaced, or swapped with its neighbor. A word of four to seven
//! characters may have one mistake, a longer word two, and a shorter word none. The first character is rarely mistyped,
//! and must be correct: `light` does not match `flight`.

/// The length in characters from which a word may have one typing mistake.
const MIN_CHARS_OF_ONE_MISTAKE: usize = 4;
/// The length in characters from which a word may have two typing mistakes.
const MIN_CHARS_OF_TWO_MISTAKES: usize = 8;

/// Returns the number of typing mistakes that make a word of another one, or `None` if they are different words. Both
/// are in lower case.
pub fn typing_mistakes(typed: &str, word: &str) -> Option<usize> {
    let allowed = allowed_mistakes(typed);
    // The distance is at least the difference of the lengths, and much slower.
    let is_near = typed.chars().count().abs_diff(word.chars().count()) <= allowed && has_same_start(typed, word);
    let mistakes = is_near.then(|| strsim::osa_distance(typed, word))?;
    (mistakes <= allowed).then_some(mistakes)
}

/// Returns the largest number of typing mistakes that a word may have.
pub(crate) fn allowed_mistakes(typed: &str) -> usize {
    match typed.chars().count() {
        MIN_CHARS_OF_TWO_MISTAKES.. => 2,
        MIN_CHARS_OF_ONE_MISTAKE.. => 1,
        _ => 0,
    }
}

pub(crate) fn has_same_start(typed: &str, word: &str) -> bool {
    typed.chars().next() == word.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_words_may_have_more_mistakes() {
        for (typed, word, mistakes) in [
            ("delay", "delay", Some(0)),
            ("dealy", "delay", Some(1)),
            ("dely", "delay", Some(1)),
            ("dly", "delay", None),
            ("daprture", "departure", Some(2)),
            ("dprtre", "departure", None),
            ("felay", "delay", None),
        ] {
            assert_eq!(typing_mistakes(typed, word), mistakes, "{typed}");
        }
    }
}
