//! Combines conditions that `or` joins: `flights from JFK or to LAX`, `orders over 100 euros or paid by card`.
//!
//! All conditions of a question hold, unless `or` joins them: then one of them is enough. The caller is asked if other
//! conditions stand next to them, because `or` may then join different ones, and if `or` joins a condition with a
//! measure, a segment or a group, because a query cannot express this.

use std::sync::Arc;

use super::{ItemKind, Reader};
use crate::draft::{DraftFilter, DraftValue};
use crate::language::{Meaning, WordList};
use crate::members::MemberKind;

/// The certainty that conditions are alternatives.
const CERTAINTY_OF_ALTERNATIVES: f64 = 0.9;

/// A run of items that were read together, and what they added to the draft.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    start: usize,
    end: usize,
    added: Added,
}

/// The parts of a draft that items can add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Added {
    Nothing,
    /// The word `or`, which no list of values contains.
    Or,
    /// The condition with this index.
    Condition(usize),
    /// A condition and other parts, or several conditions.
    Several,
    /// A measure or a cube.
    Value,
    Segment,
    Group,
    Time,
    Clarification,
}

/// The numbers of parts of a draft, to find what an item adds.
pub(super) struct Progress {
    values: Vec<Arc<str>>,
    cube: Option<usize>,
    filters: usize,
    segments: usize,
    groups: usize,
    times: usize,
    clarifications: usize,
}

impl Reader<'_> {
    /// Returns the parts of the draft before an item is read.
    pub(super) fn progress(&self) -> Progress {
        let draft = &self.draft;
        let times = self.state.ranges.len() + usize::from(draft.compare.is_some());
        Progress {
            values: draft.values.clone(),
            cube: self.state.cube,
            filters: draft.filters.len(),
            segments: draft.segments.len(),
            groups: draft.groups.len() + usize::from(draft.granularity.is_some()),
            times: times + usize::from(draft.excluded.is_some()),
            clarifications: self.clarifications.len(),
        }
    }

    /// Records what the items between two places added to the draft.
    pub(super) fn note_step(&mut self, start: usize, end: usize, before: &Progress) {
        let now = self.progress();
        let has_others = now.values != before.values || now.cube != before.cube || now.groups > before.groups;
        let is_or = end == start + 1
            && self.items[start].kind == ItemKind::Word(Meaning::And)
            && self.language.has(WordList::Or, &self.items[start].text.to_lowercase());
        let added = if now.clarifications > before.clarifications {
            Added::Clarification
        } else if now.filters == before.filters + 1 && !has_others {
            Added::Condition(before.filters)
        } else if now.filters > before.filters {
            Added::Several
        } else if now.segments > before.segments {
            Added::Segment
        } else if now.groups > before.groups {
            Added::Group
        } else if has_others {
            Added::Value
        } else if now.times > before.times {
            Added::Time
        } else if is_or {
            Added::Or
        } else {
            Added::Nothing
        };
        self.state.steps.push(Step { start, end, added });
    }

    /// Returns whether `or` at most a few filler words before a place follows a condition: the next name is then a
    /// condition as well, as in `from JFK or cancelled`.
    pub(super) fn is_alternative(&self, at: usize) -> bool {
        let is_filler = |item: &&super::Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore | Meaning::Equals));
        let before = self.items[..at].iter().rev().find(|item| !is_filler(item));
        let is_or = before.is_some_and(|item| self.language.has(WordList::Or, &item.text.to_lowercase()));
        is_or && matches!(self.last_added(), Some(Added::Condition(_)))
    }

    /// Returns whether the last part of the draft is a measure or a cube.
    pub(super) fn follows_value(&self) -> bool {
        self.last_added() == Some(Added::Value)
    }

    /// Returns whether the last part of the draft is a condition.
    pub(super) fn follows_condition(&self) -> bool {
        matches!(self.last_added(), Some(Added::Condition(_) | Added::Several))
    }

    fn last_added(&self) -> Option<Added> {
        let added = self.state.steps.iter().rev().map(|step| step.added);
        added.into_iter().find(|added| !matches!(added, Added::Nothing | Added::Or))
    }

    /// Returns the numeric member of the condition before `or`, as in `under 5 km or over 10 km`, where the second
    /// comparison names no member.
    pub(super) fn compared_before_or(&self, at: usize) -> Option<usize> {
        self.or_before(at)?;
        let Some(Added::Condition(index)) = self.last_added() else { return None };
        let filter = self.draft.filters.get(index)?;
        let is_compared = matches!(filter.operator, "gt" | "gte" | "lt" | "lte" | "between");
        self.vocabulary.index_of(&filter.member).filter(|_| is_compared)
    }

    /// Finds the conditions that `or` joins. Runs after the last item.
    pub(super) fn join_alternatives(&mut self) {
        let steps: Vec<Step> =
            std::mem::take(&mut self.state.steps).into_iter().filter(|step| step.added != Added::Nothing).collect();
        let mut at = 0;
        while at < steps.len() {
            if steps[at].added != Added::Or {
                at += 1;
                continue;
            }
            let (Some(first), Some(right)) = (at.checked_sub(1), steps.get(at + 1)) else { return };
            match (steps[first].added, right.added) {
                (Added::Condition(_) | Added::Several, Added::Condition(_)) => {
                    let mut last = at + 1;
                    while let [or, next, ..] = &steps[last + 1..]
                        && or.added == Added::Or
                        && matches!(next.added, Added::Condition(_))
                    {
                        last += 2;
                    }
                    self.join_steps(&steps, first, last);
                    at = last;
                }
                (Added::Value, Added::Value | Added::Condition(_)) | (Added::Condition(_), Added::Value)
                    if self.join_counted(&steps, first) => {}
                (Added::Value, Added::Value) => self.check_part_or_all(&steps[first], right),
                (Added::Group | Added::Value, Added::Group | Added::Value)
                | (Added::Clarification | Added::Or, _)
                | (_, Added::Clarification | Added::Or | Added::Time) => {}
                _ => self.unclear_alternatives(&steps[first], right),
            }
            at += 1;
        }
    }

    /// Joins the conditions of some steps, if it is plain that `or` joins them and no others.
    fn join_steps(&mut self, steps: &[Step], first: usize, last: usize) {
        let is_condition =
            |step: &&Step| matches!(step.added, Added::Condition(_) | Added::Several | Added::Segment | Added::Or);
        let before = first.checked_sub(1).map(|at| &steps[at]).filter(is_condition);
        let behind = steps.get(last + 1).filter(is_condition);
        let (left, right) = (steps[first], steps[last]);
        let whole = self.text(left.start, right.end);
        let indexes = (first..=last).step_by(2).map(|at| match steps[at].added {
            Added::Condition(index) => Some(index),
            _ => None,
        });
        let conditions = indexes.map(|index| self.draft.filters.get(index?).cloned()).collect::<Option<Vec<_>>>();
        let Some(conditions) = conditions.filter(|_| before.is_none() && behind.is_none()) else {
            let message = format!("`{whole}` stands next to other conditions; it is unclear which ones `or` joins");
            self.unclear(&whole, message, Vec::new());
            return;
        };
        let is_value = |one: &DraftFilter| {
            let index = self.vocabulary.index_of(&one.member);
            index.is_some_and(|index| self.vocabulary.entry(index).kind.is_value())
        };
        let is_mixed =
            |keeps: &dyn Fn(&DraftFilter) -> bool| conditions.iter().any(keeps) && !conditions.iter().all(keeps);
        let is_repeated = |one: &DraftFilter| self.draft.filters.iter().filter(|other| *other == one).count() > 1;
        let has_foreign_value = (first + 2..=last).step_by(2).any(|at| self.is_bare_value(&steps[at - 2], &steps[at]));
        if is_mixed(&is_value) || is_mixed(&is_negation) || conditions.iter().any(is_repeated) || has_foreign_value {
            self.unclear_alternatives(&left, &right);
            return;
        }
        self.piece(&whole, "one of these conditions is enough".to_owned(), CERTAINTY_OF_ALTERNATIVES);
        self.add_alternatives(conditions);
    }

    /// Joins two conditions of which at least one is a measure that counts the rows of a boolean dimension, as in `how
    /// many bookings were cancelled or no-shows`. The rows that meet one of them are counted. Returns false if a part
    /// is not such a condition; nouns such as `cancellations` are measures.
    fn join_counted(&mut self, steps: &[Step], first: usize) -> bool {
        let (left, right) = (steps[first], steps[first + 2]);
        let parts = [left, right].map(|step| self.counted_condition(&step));
        let [Some((one, left_condition)), Some((other, right_condition))] = parts else { return false };
        let measures: Vec<Arc<str>> = [one, other].into_iter().flatten().collect();
        // In `revenue, cancelled or no-shows`, all are measures.
        let is_only = self.draft.values.iter().all(|name| measures.contains(name));
        let Some(count) = self.count_of_main().filter(|_| !measures.is_empty() && is_only) else { return false };
        let is_condition =
            |step: &&Step| matches!(step.added, Added::Condition(_) | Added::Several | Added::Segment | Added::Or);
        let before = first.checked_sub(1).map(|at| &steps[at]).filter(is_condition);
        let whole = self.text(left.start, right.end);
        if before.is_some() || steps.get(first + 3).filter(is_condition).is_some() {
            let message = format!("`{whole}` stands next to other conditions; it is unclear which ones `or` joins");
            self.unclear(&whole, message, measures);
            return true;
        }
        for (measure, condition) in measures.iter().zip([&left_condition, &right_condition]) {
            let meaning = format!("measure {measure}");
            if let Some(piece) = self.pieces.iter_mut().find(|piece| piece.meaning == meaning) {
                piece.meaning = format!("only rows where {} is true", condition.member);
            }
        }
        self.draft.values = vec![Arc::clone(&count)];
        if let Some(order) = self.draft.order.as_mut().filter(|order| measures.contains(&order.member)) {
            order.member = count;
        }
        for condition in [&left_condition, &right_condition] {
            if !self.draft.filters.contains(condition) {
                self.draft.filters.push(condition.clone());
            }
        }
        self.piece(&whole, "one of these conditions is enough".to_owned(), CERTAINTY_OF_ALTERNATIVES);
        self.state.alternatives.push(vec![left_condition, right_condition]);
        true
    }

    /// Returns the condition that a step added, or the one of the measure that it added. The name of the measure must
    /// also name its boolean dimension. The measure is `None` if the step added a condition.
    fn counted_condition(&self, step: &Step) -> Option<(Option<Arc<str>>, DraftFilter)> {
        if let Added::Condition(index) = step.added {
            let filter = self.draft.filters.get(index)?;
            return (filter.values == [DraftValue::Boolean(true)]).then(|| (None, filter.clone()));
        }
        let items = &self.items[step.start..step.end];
        let measures = items.iter().filter_map(|item| match &item.kind {
            ItemKind::Member(candidates) => Some((item, &candidates.members)),
            _ => None,
        });
        let found = measures.flat_map(|(item, members)| members.iter().map(move |index| (item, *index)));
        let (item, entry) = found
            .map(|(item, index)| (item, self.vocabulary.entry(index)))
            .find(|(_, entry)| self.draft.values.contains(&entry.name) && entry.counted_if.is_some())?;
        let switch =
            entry.counted_if.clone().filter(|switch| self.switch_named(&item.text).as_ref() == Some(switch))?;
        let condition = DraftFilter { member: switch, operator: "equals", values: vec![DraftValue::Boolean(true)] };
        Some((Some(Arc::clone(&entry.name)), condition))
    }

    /// Adds alternatives. Values of one dimension become one list.
    fn add_alternatives(&mut self, conditions: Vec<DraftFilter>) {
        let is_list =
            |one: &DraftFilter| one.member == conditions[0].member && matches!(one.operator, "equals" | "inList");
        if !conditions.iter().all(is_list) {
            self.state.alternatives.push(conditions);
            return;
        }
        let member = Arc::clone(&conditions[0].member);
        let at = self.draft.filters.iter().position(|filter| conditions.contains(filter));
        self.draft.filters.retain(|filter| !conditions.contains(filter));
        let mut values: Vec<DraftValue> = Vec::new();
        for value in conditions.into_iter().flat_map(|one| one.values) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let operator = if values.len() == 1 { "equals" } else { "inList" };
        self.draft.filters.insert(at.unwrap_or_default(), DraftFilter { member, operator, values });
    }

    /// Returns whether a value follows `or` directly, although a word such as `from` is before the value of another
    /// dimension: in `from JFK or LAX`, LAX is not a destination.
    fn is_bare_value(&self, left: &Step, right: &Step) -> bool {
        let is_value = matches!(self.items[right.start].kind, ItemKind::Value(_));
        let is_direct =
            right.start.checked_sub(1).is_some_and(|or| self.items[or].kind == ItemKind::Word(Meaning::And));
        is_value && is_direct && self.direction_before(left.start).is_some()
    }

    /// Asks the caller about `or` between a number of some rows and a number of all rows, because a condition behind
    /// them may belong to one of them, as in `cancellations or flights from JFK`.
    fn check_part_or_all(&mut self, left: &Step, right: &Step) {
        let counts_part = self.draft.values.iter().any(|name| self.counts(name) && !self.counts_all(name));
        let has_conditions = !self.draft.filters.is_empty() || !self.draft.segments.is_empty();
        if counts_part && has_conditions && self.draft.values.iter().any(|name| self.counts_all(name)) {
            self.unclear_alternatives(left, right);
        }
    }

    fn unclear_alternatives(&mut self, left: &Step, right: &Step) {
        let whole = self.text(left.start, right.end);
        let message =
            format!("`{whole}` joins parts that are not alternative conditions; write `and`, or two questions");
        let choices = self.choices_of(MemberKind::Boolean);
        self.unclear(&whole, message, choices);
    }

    /// Returns whether a condition is one of several alternatives.
    pub(super) fn has_alternative(&self, filter: &DraftFilter) -> bool {
        self.state.alternatives.iter().flatten().any(|one| one == filter)
    }

    /// Moves the alternatives out of the conditions that all hold.
    pub(super) fn complete_alternatives(&mut self) {
        let alternatives = std::mem::take(&mut self.state.alternatives);
        self.draft.filters.retain(|filter| !alternatives.iter().flatten().any(|one| one == filter));
        self.draft.alternatives = alternatives;
    }
}

/// Returns whether a condition excludes rows.
fn is_negation(filter: &DraftFilter) -> bool {
    matches!(filter.operator, "notEquals" | "notInList" | "notContains" | "notSet")
        || filter.values == [DraftValue::Boolean(false)]
}
