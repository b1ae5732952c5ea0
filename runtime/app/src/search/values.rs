//! Values of dimensions as hits of a search.
//!
//! In: the dimensions that a request selects, and their lists of values. Out: hits that name a dimension and a value,
//! and warnings about lists that are missing or incomplete. Not here: loading the lists
//! ([`lists`](crate::dimension_values::lists)).

use std::sync::Arc;

use terrane_search::Question;

use super::entries::Entry;
use super::{CallerView, Hit, MarkedField, Marks, RankedHits};
use crate::dimension_values::lists::{DimensionValues, MAX_VALUES, SearchedDimension};
use crate::dimension_values::lookup::MAX_DIMENSIONS;
use crate::ports::governance_records::CertificationStatus;

/// The dimensions whose values a request searches.
#[derive(Default)]
pub(super) struct SearchedDimensions {
    pub(super) searched: Vec<SearchedDimension>,
    /// For each dimension, its entry and the number that is added to the scores of its values.
    entries: Vec<(u32, i64)>,
}

impl CallerView<'_> {
    /// Returns the searchable dimensions that the request selects and that the caller may see unmasked. Those with a
    /// bonus come first.
    pub(super) fn dimensions(
        &self,
        selects: impl Fn(&Entry) -> bool,
        bonus: impl Fn(&Entry) -> i64,
    ) -> SearchedDimensions {
        let known = self.entries.searchable.iter().map(|(place, id)| (*place, *id, self.entry(*place)));
        let is_open = |entry: &Entry| selects(entry) && entry.is_shown(&self.access);
        let shown = known.filter(|(_, id, entry)| self.access.mask(*id).is_none() && is_open(entry));
        let mut shown: Vec<_> = shown.map(|(place, id, entry)| (bonus(entry), place, id, entry)).collect();
        shown.sort_by_key(|(bonus, ..)| std::cmp::Reverse(*bonus));
        let mut dimensions = SearchedDimensions::default();
        for (bonus, place, id, entry) in shown.into_iter().take(MAX_DIMENSIONS) {
            dimensions.searched.push(SearchedDimension { id, member: Arc::clone(&entry.text.reference.id) });
            dimensions.entries.push((place, bonus));
        }
        dimensions
    }

    /// Adds the best values to the hits.
    pub(super) fn add_values(
        &self,
        found: &mut RankedHits,
        question: &Question,
        dimensions: &SearchedDimensions,
        values: &[DimensionValues],
        status: Option<CertificationStatus>,
        limit: usize,
    ) {
        let (mut missing, mut incomplete) = (Vec::new(), Vec::new());
        let mut hits: Vec<Hit> = Vec::new();
        for (((place, bonus), dimension), values) in dimensions.entries.iter().zip(&dimensions.searched).zip(values) {
            match values {
                DimensionValues::Unavailable => missing.push(&*dimension.member),
                values if !values.is_complete() => incomplete.push(&*dimension.member),
                _ => {}
            }
            let matches = values.find(question, limit + 1);
            if matches.is_empty() {
                continue;
            }
            let hit = self.ranked_hit(self.entry(*place), *bonus);
            if status.is_some_and(|wanted| hit.status() != Some(wanted)) {
                continue;
            }
            hits.extend(matches.into_iter().map(|value| Hit {
                score: hit.score + i64::from(value.score),
                value: Some(value.value),
                ..hit.clone()
            }));
        }
        super::sort(&mut hits);
        found.has_more |= hits.len() > limit;
        hits.truncate(limit);
        for hit in &mut hits {
            let marked = |text: &Arc<str>| {
                let parts = question.marks(text);
                Marks { field: MarkedField::Value, text: Arc::clone(text), parts }
            };
            hit.marks = hit.value.iter().map(marked).collect();
        }
        found.hits.extend(hits);
        found.warnings.extend(warning(&missing, "were not searched, because the warehouse did not answer"));
        let bound = format!("were searched only in part; at most {MAX_VALUES} are searched");
        found.warnings.extend(warning(&incomplete, &bound));
    }
}

fn warning(members: &[&str], problem: &str) -> Option<String> {
    (!members.is_empty()).then(|| format!("the values of `{}` {problem}", members.join("`, `")))
}
