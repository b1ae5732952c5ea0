//! The number of fields that the lists of a document resolve.
//!
//! In: the length of a list, and the selection of its items. Out: the number of fields, or an error if a document
//! resolves too many. The length of a list is unknown before a document runs. So a list is counted when its field is
//! resolved, before the fields of its items are. Selections are counted as the executor resolves them: aliases and
//! fragments are included, and a key that is selected twice counts twice. Not here: limits that the text alone exceeds
//! (`limits`, `shape`).

use std::sync::atomic::{AtomicU64, Ordering};

use async_graphql::{Context, SelectionField};

use crate::limits::Exceeded;

/// The weight of a field that runs a query. If a document runs too many queries, each further field is an error, and
/// the weight bounds the number of these errors.
const QUERY_WEIGHT: u64 = 20;

/// The number of items that a request has resolved, and its limit.
#[derive(Debug)]
pub(crate) struct ItemCount {
    counted: AtomicU64,
    max: usize,
}

impl ItemCount {
    pub(crate) fn new(max: usize) -> Self {
        ItemCount { counted: AtomicU64::new(0), max }
    }

    /// Counts items before they are resolved. Fails if the total exceeds the limit; after that, every call fails.
    pub(crate) fn add(&self, items: u64) -> Result<(), Exceeded> {
        let add = |counted: u64| Some(counted.saturating_add(items));
        // The closure always returns a value.
        let before = self.counted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).unwrap_or(u64::MAX);
        match before.saturating_add(items) <= self.max as u64 {
            true => Ok(()),
            false => Err(Exceeded::new("items", self.max, None)),
        }
    }
}

/// Returns the number of fields in a list that the current field returns, including those of the lists below it.
/// `lists` takes the name of a list, and returns the total number of items in all lists of this name below the field.
pub(crate) fn of_list(context: &Context<'_>, items: usize, lists: &dyn Fn(&str) -> Option<usize>) -> u64 {
    fields(context.field(), items as u64, lists)
}

fn fields(field: SelectionField<'_>, items: u64, lists: &dyn Fn(&str) -> Option<usize>) -> u64 {
    let weight = if matches!(field.name(), "query" | "values") { QUERY_WEIGHT } else { 1 };
    field.selection_set().fold(items.saturating_mul(weight), |sum, inner| {
        let items = lists(inner.name()).map_or(items, |items| items as u64);
        sum.saturating_add(fields(inner, items, lists))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_past_the_bound_is_final() {
        let count = ItemCount::new(10);
        assert_eq!(count.add(10), Ok(()));
        assert_eq!(count.add(0), Ok(()));
        let exceeded = count.add(1).unwrap_err();
        assert_eq!((exceeded.limit, exceeded.max), ("items", 10));
        assert!(count.add(0).is_err());
        assert!(count.add(u64::MAX).is_err());
        assert!(count.add(u64::MAX).is_err());
    }
}
