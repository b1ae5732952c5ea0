//! Typing mistakes in names.
//!
//! In: an unknown name and a known one, both folded. Out: the number of typing mistakes between them, or `None` if they
//! are different names. Two names that differ in a word with a meaning, such as `min` and `max`, `paid` and `unpaid`,
//! `ytd` and `mtd`, or in a number, are different: to take one for the other leads to a wrong number.

use std::collections::BTreeSet;

/// Pairs of words that differ like a typing mistake, but have meanings of their own.
const DIFFERENT: &[(&str, &str)] = &[
    ("cast", "cost"),
    ("contact", "contract"),
    ("content", "consent"),
    ("country", "county"),
    ("data", "date"),
    ("last", "list"),
    ("last", "lost"),
    ("list", "lost"),
    ("paid", "pair"),
    ("price", "prize"),
    ("score", "store"),
    ("shipped", "skipped"),
    ("stage", "state"),
    ("stock", "stick"),
    ("trail", "trial"),
];

/// Returns the words of a name.
pub(super) fn words(name: &str) -> Vec<&str> {
    name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

/// Returns the number of typing mistakes, if nothing else distinguishes the two names. `known` are the words of all
/// known names: a word that is among them is spelt correctly.
pub(super) fn mistakes(wanted: &str, found: &str, known: &BTreeSet<&str>) -> Option<usize> {
    let (left, right) = (words(wanted), words(found));
    let (joined_left, joined_right) = (left.concat(), right.concat());
    if joined_left == joined_right {
        return (!joined_left.is_empty()).then_some(usize::from(wanted != found));
    }
    if left.len() != right.len() {
        let is_longer_name = is_part(&left, &right) || is_part(&right, &left);
        return if is_longer_name { None } else { mistakes_of_word(&joined_left, &joined_right) };
    }
    let mut sum = 0;
    for (wanted, found) in left.into_iter().zip(right).filter(|(wanted, found)| wanted != found) {
        if known.contains(wanted) && !is_plural(wanted, found) {
            return None;
        }
        sum += mistakes_of_word(wanted, found)?;
    }
    Some(sum)
}

/// Returns true if `longer` contains all words of `shorter` in their order.
fn is_part(shorter: &[&str], longer: &[&str]) -> bool {
    let mut rest = longer.iter();
    shorter.iter().all(|word| rest.any(|other| other == word))
}

/// Returns the number of typing mistakes between two different words, if they are the same word.
///
/// A word of up to 6 letters may have one mistake, and a longer one two. The first letter is rarely mistyped, and a
/// changed syllable is rarely a mistake: `inflow` and `outflow`, `minimum` and `maximum` are different words.
fn mistakes_of_word(wanted: &str, found: &str) -> Option<usize> {
    let is_pair = |a: &str, b: &str| DIFFERENT.contains(&(a, b)) || DIFFERENT.contains(&(b, a));
    if digits(wanted).ne(digits(found)) || is_pair(wanted, found) {
        return None;
    }
    let mistakes = strsim::damerau_levenshtein(wanted, found);
    let is_plural = is_plural(wanted, found);
    let (wanted, found): (Vec<char>, Vec<char>) = (wanted.chars().collect(), found.chars().collect());
    let letters = wanted.len().max(found.len());
    let (left, right) = difference(&wanted, &found);
    let is_swap = mistakes == 1 && left.len() == 2 && right.len() == 2;
    let is_likely = match (letters, mistakes) {
        (_, 1) if is_swap => letters > 2,
        (_, 1) => letters >= 4 || is_plural,
        (7.., 2) => left.len().max(right.len()) > 2,
        _ => false,
    };
    let has_same_start = is_swap || wanted.first() == found.first();
    (is_likely && has_same_start).then_some(mistakes)
}

/// Returns the parts of two words without their common start and end.
fn difference<'a>(left: &'a [char], right: &'a [char]) -> (&'a [char], &'a [char]) {
    let start = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    let (left, right) = (&left[start..], &right[start..]);
    let end = left.iter().rev().zip(right.iter().rev()).take_while(|(a, b)| a == b).count();
    (&left[..left.len() - end], &right[..right.len() - end])
}

fn digits(word: &str) -> impl Iterator<Item = char> {
    word.chars().filter(char::is_ascii_digit)
}

fn is_plural(left: &str, right: &str) -> bool {
    left.strip_suffix('s') == Some(right) || right.strip_suffix('s') == Some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(wanted: &str, found: &str) -> Option<usize> {
        mistakes(wanted, found, &words(found).into_iter().collect())
    }

    #[test]
    fn mistyped_words_are_found() {
        for (wanted, known, count) in [
            ("reveneu", "revenue", 1),
            ("total_revnue_2024", "total_revenue_2024", 1),
            ("dimention", "dimensions", 2),
            ("primarykey", "primary_key", 1),
            ("ordercuont", "order_count", 1),
            ("stagged_oders", "staged_orders", 2),
            ("id", "ids", 1),
            ("sise", "size", 1),
            ("smu", "sum", 1),
            ("typ", "type", 1),
            ("customer", "customers", 1),
            ("orders.regoin", "orders.region", 1),
        ] {
            assert_eq!(found(wanted, known), Some(count), "{wanted}");
        }
    }

    #[test]
    fn words_with_meanings_are_different() {
        for (wanted, known) in [
            ("revenue_2023", "revenue_2024"),
            ("revenue2023", "revenue_2024"),
            ("latency_p95", "latency_p99"),
            ("delay_min", "delay_max"),
            ("minimum_delay", "maximum_delay"),
            ("total_unpaid", "total_paid"),
            ("total_non_refundable", "total_refundable"),
            ("nonrefundable", "refundable"),
            ("revenue_mtd", "revenue_ytd"),
            ("revenue_usd", "revenue_aud"),
            ("revenue_us", "revenue_uk"),
            ("import_value", "export_value"),
            ("cash_inflow", "cash_outflow"),
            ("cash_income", "cash_outcome"),
            ("internal_cost", "external_cost"),
            ("offline_orders", "online_orders"),
            ("increase", "decrease"),
            ("lost_deals", "last_deals"),
            ("total_cost", "total_lost"),
            ("on_time", "one_time"),
            ("country", "county"),
            ("shipped_orders", "skipped_orders"),
            ("returned", "retained"),
            ("visits", "visitors"),
            ("service_foo", "service_log"),
            ("total_x", "total"),
            ("==", ">="),
        ] {
            assert_eq!(found(wanted, known), None, "{wanted}");
            assert_eq!(found(known, wanted), None, "{known}");
        }
    }

    #[test]
    fn word_of_another_name_is_spelt_correctly() {
        let known = BTreeSet::from(["gross", "growth", "margin"]);
        assert_eq!(mistakes("margin_growht", "margin_growth", &known), Some(1));
        let known = BTreeSet::from(["sales", "scales", "weighed"]);
        assert_eq!(mistakes("weighed_scales", "weighed_sales", &known), None);
    }
}
