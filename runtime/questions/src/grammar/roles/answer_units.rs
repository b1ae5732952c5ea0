//! Compares the units that a question names for its answer with those of its measures.

use std::sync::Arc;

use super::{MAX_CHOICES, Reader};
use crate::draft::Unit;
use crate::members::MemberKind;

impl Reader<'_> {
    /// Compares the units that the question names for its answer with those of its measures.
    pub(super) fn check_units(&mut self) {
        for (text, unit) in std::mem::take(&mut self.state.units) {
            let own: Vec<&Unit> = self
                .draft
                .values
                .iter()
                .filter_map(|name| self.vocabulary.index_of(name))
                .filter_map(|index| self.vocabulary.entry(index).unit.as_ref())
                .collect();
            if own.contains(&&unit) {
                self.piece(&text, "the unit of the measure".to_owned(), 1.0);
                continue;
            }
            let shown: Vec<String> = own.iter().map(|unit| format!("{unit:?}").to_lowercase()).collect();
            let message = match shown.is_empty() {
                true => format!("no measure of the question has the unit `{text}`"),
                false => {
                    format!("the measures of the question are not in `{text}`; their units are {}", shown.join(", "))
                }
            };
            self.unclear(&text, message, Vec::new());
        }
    }

    /// Returns the measures of the main cube that have a unit.
    pub(super) fn measures_in(&self, unit: &Unit) -> Vec<Arc<str>> {
        let measures = self.vocabulary.entries().map(|(_, entry)| entry).filter(|entry| {
            entry.kind == MemberKind::Measure && self.is_of_main_cube(entry) && entry.unit.as_ref() == Some(unit)
        });
        measures.map(|entry| Arc::clone(&entry.name)).take(MAX_CHOICES).collect()
    }
}
