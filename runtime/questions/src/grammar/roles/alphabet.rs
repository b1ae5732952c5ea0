//! Orders rows by names that the question does not repeat, as in `flights by airline alphabetically`.

use std::sync::Arc;

use super::Reader;
use crate::draft::DraftOrder;
use crate::members::MemberKind;

/// The certainty that rows in the order of names are listed, and not counted.
const CERTAINTY_OF_NAMES: f64 = 0.9;

impl Reader<'_> {
    /// Lists the names of the named cube's rows if the question orders them, as in `airlines in alphabetical order`.
    pub(super) fn list_names(&mut self) {
        let is_open = self.draft.values.iter().all(|name| self.counts_all(name)) && self.draft.groups.is_empty();
        if self.state.alphabetical.is_none() || !is_open || self.state.counts.is_some() {
            return;
        }
        let counted = self.draft.values.first().and_then(|name| self.vocabulary.cube(name.split('.').next()?));
        let named = self.state.cube.map(|index| self.vocabulary.entry(index));
        if let Some(label) = counted.or(named).and_then(|cube| cube.label.clone()) {
            self.draft.values.clear();
            self.state.cube = None;
            self.group(&label);
            self.certainties.push(CERTAINTY_OF_NAMES);
        }
    }

    /// Orders the rows by the only group with strings. If there are none or several, or if the rows have another order,
    /// asks the caller.
    pub(super) fn complete_alphabetical(&mut self) {
        let Some(text) = self.state.alphabetical.take() else { return };
        let is_text = |name: &&Arc<str>| {
            let index = self.vocabulary.index_of(name);
            index.is_some_and(|index| self.vocabulary.entry(index).kind == MemberKind::Text)
        };
        let groups = self.draft.groups.iter().map(|group| &group.member);
        let found: Vec<Arc<str>> = groups.filter(is_text).map(Arc::clone).collect();
        let is_free = self.draft.order.is_none() && self.draft.limit.is_none();
        match &found[..] {
            [only] if is_free => {
                self.state.order_piece = Some(self.pieces.len());
                self.piece(&text, format!("ordered by {only}"), 1.0);
                self.draft.order = Some(DraftOrder { member: Arc::clone(only), is_descending: false });
            }
            [] => {
                let choices = self.text_dimensions();
                self.unclear(
                    &text,
                    format!("`{text}` orders names, but the question has no group with names"),
                    choices,
                );
            }
            _ => self.unclear(&text, format!("`{text}` does not name the group that orders the rows"), found),
        }
    }
}
