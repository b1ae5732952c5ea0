//! Different spellings of one value: strings that are equal except for case and surrounding spaces.
//!
//! In: values, or counts of them. Out: a note for readers, which profiles and drafts of projects show. Not here:
//! counting in the warehouse (`statistics`, and the statements of the drafts).

use std::collections::BTreeMap;

use terrane_compiler::types::Value;

/// The counts of the values of one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spellings {
    /// The number of distinct values.
    pub distinct: u64,
    /// The number of distinct values if case and outer spaces are ignored.
    pub folded: u64,
    /// Two spellings of one value; `None` if no example is known.
    pub example: Option<(String, String)>,
    /// True if only the most frequent values were counted and the column has others.
    pub is_partial: bool,
}

impl Spellings {
    /// Counts the strings among the most frequent values. `distinct` is the number of all distinct values. Returns
    /// `None` if every string has one spelling.
    pub(super) fn of(values: &[(Value, u64)], distinct: Option<u64>) -> Option<Spellings> {
        let mut by_fold: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        let texts = values.iter().filter_map(|(value, _)| match value {
            Value::Text(text) => Some(&**text),
            _ => None,
        });
        for text in texts {
            by_fold.entry(text.trim().to_lowercase()).or_default().push(text);
        }
        let count = by_fold.values().map(Vec::len).sum::<usize>() as u64;
        let example =
            by_fold.values().find(|spellings| spellings.len() > 1).and_then(|spellings| match spellings[..] {
                [one, other, ..] => Some((one.to_owned(), other.to_owned())),
                _ => None,
            })?;
        let is_partial = distinct.is_none_or(|distinct| distinct > count);
        Some(Spellings { distinct: count, folded: by_fold.len() as u64, example: Some(example), is_partial })
    }

    /// Returns a note about a column.
    pub fn note(&self, column: &str) -> String {
        let Spellings { distinct, folded, example, is_partial } = self;
        let values = if *is_partial { "values among the most frequent ones" } else { "distinct values" };
        let example = example.as_ref().map(|(one, other)| format!(", such as `{one}` and `{other}`"));
        format!(
            "`{column}` has {distinct} {values}, but {folded} if case and outer spaces are ignored{}: each spelling is \
             a separate group until the source or the `sql` of the dimension makes them equal",
            example.unwrap_or_default()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(texts: &[&str]) -> Vec<(Value, u64)> {
        texts.iter().map(|text| (Value::Text((*text).into()), 1)).collect()
    }

    #[test]
    fn spellings_of_one_value_are_counted() {
        let found = Spellings::of(&values(&["north", "South", "North", " north"]), Some(4)).unwrap();
        assert_eq!((found.distinct, found.folded, found.is_partial), (4, 2, false));
        assert!(found.note("region").starts_with("`region` has 4 distinct values, but 2 if case"));
        let partial = Spellings::of(&values(&["a", "A"]), Some(90)).unwrap();
        assert!(partial.note("x").contains("2 values among the most frequent ones"));
    }

    #[test]
    fn values_with_one_spelling_have_no_note() {
        assert_eq!(Spellings::of(&values(&["north", "south"]), Some(2)), None);
        assert_eq!(Spellings::of(&[(Value::Integer(1), 1)], Some(1)), None);
    }
}
