//! Reads members: measures, groups, segments and boolean dimensions.

use std::sync::Arc;

use super::{Candidates, DraftValue, Item, ItemKind, Reader, Role};
use crate::draft::{Aggregation, DraftOrder};
use crate::language::Meaning;
use crate::members::{MemberEntry, MemberKind};
use crate::spelling::spelled;

/// The certainty of an average or a sum that only the groups of the question imply.
const CERTAINTY_OF_AVERAGE: f64 = 0.7;

impl Reader<'_> {
    /// Reads a member with the condition after it, or else as a value, a group or a boolean dimension.
    pub(super) fn member(&mut self, at: usize, text: &str, candidates: &Candidates) -> usize {
        // `in miles` names a unit rather than a part of `seat miles`, and `in hours` no dimension `hour`.
        if (candidates.certainty < 1.0 || self.is_time_unit(at)) && self.is_unit_of_answer(at) {
            return self.unit_of_answer(text);
        }
        // `hour of the day` is not the time dimension `hour`.
        let is_own = |index: &usize| self.is_of_main_cube(self.vocabulary.entry(*index));
        let is_group = self.state.groups || self.state.is_which || !self.items[at].is_plural;
        let is_of_others = is_group && !candidates.members.iter().any(is_own);
        let is_own_hour = is_of_others && !self.hour_dimensions().is_empty();
        if !self.state.sorts && self.is_hour(at) && (is_own_hour || self.is_hour_of_day(at)) {
            return self.hour_group(at);
        }
        let is_time = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Time;
        if !self.state.groups
            && candidates.members.iter().all(is_time)
            && let Some(length) = self.named_time(at, text).or_else(|| self.counted_time(at, text, candidates))
        {
            return length;
        }
        // `customers registered by city` has a verb that is also the name of a time.
        if !self.state.groups && candidates.members.iter().all(is_time) && self.is_verb_of_rows(at, text) {
            return self.event_of_rows(at, text);
        }
        if self.state.sorts && !self.is_selected(candidates) && self.sorted_group(text).is_some() {
            return self.sort_by_group(text);
        }
        if let Some(length) = self.most_of_unit(at, text) {
            return length;
        }
        if let Some(length) = self.counted_values(at, text, candidates) {
            return length;
        }
        if let Some(length) = self.age(at, text, candidates) {
            return length;
        }
        if let Some(length) = self.condition(at, text, candidates) {
            return length;
        }
        if let Some(length) = self.presence(at, candidates) {
            return length;
        }
        if self.is_compound(at, candidates) {
            return self.piece(text, "the things that the next name is about".to_owned(), candidates.certainty);
        }
        if let Some(length) = self.rated_average(at, text, candidates) {
            return length;
        }
        if let Some(length) = self.extreme(at, text, candidates) {
            return length;
        }
        if let Some(length) = self.excluded_number(at, text, candidates) {
            return length;
        }
        if let Some(length) = self.idiom(at, text, candidates) {
            return length;
        }
        if !self.state.groups && !self.items[at].is_plural && self.is_before_route(at) {
            return self.piece(text, "the ends of the route are after it".to_owned(), candidates.certainty);
        }
        let in_groups = self.state.groups && self.continues_groups(at);
        if !in_groups && self.is_ranked_thing(candidates) {
            return self.piece(text, "the rows that are ranked".to_owned(), candidates.certainty);
        }
        let role = match (in_groups, self.state.is_which, self.state.rank) {
            _ if self.state.sorts => Role::Operand,
            // A ranked measure, as in `top 5 carriers by flights` and `most flights`. `oldest planes by airline` has
            // one already.
            (true, _, Some(_))
                if self.draft.values.is_empty() && !(self.has_quality() && self.may_name_groups(candidates)) =>
            {
                Role::Value
            }
            // `JFK and LGA by cancellation rate`
            (true, ..) if self.draft.values.is_empty() && !self.may_group(candidates) => Role::Value,
            (true, ..) => Role::Group,
            (_, true, None) => Role::Group,
            (_, _, Some(_)) if self.ranks_groups() && self.may_group(candidates) => Role::Group,
            // `average delay, top 3 airlines`
            (_, _, Some(_)) if self.ranks_listed(at, candidates) => Role::Group,
            // `the most common fault under warranty` has a condition.
            (_, _, Some(_)) if !self.draft.groups.is_empty() && self.may_only_select(candidates) => Role::Any,
            (_, _, Some(_)) => Role::Value,
            // A group whose measure follows, as in `carriers with more than 1000 flights`.
            _ if self.draft.values.is_empty() && self.draft.groups.is_empty() && self.names_groups(at, candidates) => {
                self.note_ranking_behind(at);
                Role::Group
            }
            _ => Role::Any,
        };
        let is_alternative = role == Role::Any && self.is_alternative(at);
        if is_alternative && self.names_rows(candidates) {
            return self.piece(text, "named once more".to_owned(), candidates.certainty);
        }
        if role == Role::Any && self.is_context(at, candidates) {
            if let Some(length) = self.lack_of_other_rows(text, candidates) {
                return length;
            }
            return self.piece(text, "named once more".to_owned(), candidates.certainty);
        }
        if role == Role::Any && self.is_compared_thing(at, candidates) {
            return self.piece(text, "the rows that are compared".to_owned(), candidates.certainty);
        }
        if role == Role::Group && !in_groups {
            self.state.is_which_group = true;
            self.note_ranked(at);
        }
        let is_which = std::mem::take(&mut self.state.is_which);
        if let Some(length) = self.lack(at, candidates).or_else(|| self.without_rows(at, text, candidates)) {
            return length;
        }
        if role == Role::Group
            && in_groups
            && let Some(length) = self.divided(at, candidates)
        {
            return length;
        }
        self.state.is_predicate |= is_alternative;
        // In `flights and cancelled flights`, the second number is a measure of its own.
        self.state.is_further_value = role == Role::Any && self.is_listed(at) && self.follows_value();
        let is_further = self.state.is_further_value;
        let picked = self.pick(text, candidates, role);
        let is_negated = std::mem::take(&mut self.state.is_negated);
        self.state.is_predicate = false;
        let Some(index) = picked else { return 1 };
        let entry = self.vocabulary.entry(index);
        let (name, certainty) = (Arc::clone(&entry.name), candidates.certainty);
        match entry.kind {
            MemberKind::Cube => {
                self.state.cube = Some(index);
                self.piece(text, format!("rows of {name}"), certainty)
            }
            MemberKind::Measure | MemberKind::Metric if role == Role::Any && self.belongs_to_measure(at) => {
                self.unlisted_measure(text, &name)
            }
            MemberKind::Measure | MemberKind::Metric if role == Role::Any && self.is_foreign_measure(at, index) => {
                let message = format!("measure `{name}` is of other rows; write `and` between the measures");
                self.unclear(text, message, Vec::new());
                1
            }
            MemberKind::Measure | MemberKind::Metric => {
                if is_negated {
                    // `not cancelled` may also mean that a boolean dimension is false.
                    if let Some(switch) = self.switch_named(text) {
                        self.filter(&switch, "equals", vec![DraftValue::Boolean(false)]);
                        return self.piece(text, format!("only rows where {switch} is false"), certainty);
                    }
                    self.unclear(text, format!("`{name}` is a number and cannot be excluded"), Vec::new());
                    return 1;
                }
                let sorts = std::mem::take(&mut self.state.sorts);
                self.state.groups = false;
                if role == Role::Any && self.narrows_count(at, index) {
                    return self.narrow_count(at, text, index, certainty);
                }
                if role == Role::Any && self.describes_measure(at) {
                    return self.rows_of_measure(text, index, certainty);
                }
                // `flights with the worst delay` lists flights.
                let counts_all = |name: &Arc<str>| self.counts_all(name);
                if role == Role::Any
                    && self.has_extreme(at)
                    && self.draft.values.last().is_some_and(counts_all)
                    && !self.is_listed(at)
                {
                    return self.unlisted_measure(text, &name);
                }
                // `how many planes have known seats`
                if role == Role::Any
                    && self.state.counts.is_some()
                    && !self.draft.values.is_empty()
                    && !self.is_listed(at)
                {
                    return self.unlisted_measure(text, &name);
                }
                if !self.order_by_own_name(at, text, index) {
                    return 1;
                }
                self.add_value(&name);
                if sorts {
                    return self.ordered_by(text, name, certainty);
                }
                // An adjective waits for the measures of the whole question.
                let waits = self.state.superlative.is_some() || self.state.rated.is_some();
                if !waits && let Some(is_descending) = self.state.rank.take() {
                    self.draft.order = Some(DraftOrder { member: Arc::clone(&name), is_descending });
                }
                self.piece(text, format!("measure {name}"), certainty)
            }
            MemberKind::Segment => {
                if is_negated {
                    self.unclear(text, format!("segment `{name}` cannot be excluded"), Vec::new());
                    return 1;
                }
                if is_further && self.is_further_number(at, at + 1) {
                    return self.unclear_number(at, text, name);
                }
                self.draft.segments.push(Arc::clone(&name));
                self.piece(text, format!("only rows of segment {name}"), certainty)
            }
            MemberKind::Boolean if is_further && self.is_further_number(at, at + 1) => {
                self.unclear_number(at, text, name)
            }
            MemberKind::Boolean if !in_groups && !is_which => {
                self.filter(&name, "equals", vec![DraftValue::Boolean(!is_negated)]);
                self.piece(text, format!("only rows where {name} is {}", !is_negated), certainty)
            }
            _ if is_negated => {
                let message = format!(
                    "write the value of `{name}` to exclude, or `{text} is missing` for the rows without a value"
                );
                self.unclear(text, message, Vec::new());
                1
            }
            _ if std::mem::take(&mut self.state.sorts) => self.ordered_by(text, name, certainty),
            // `departure delay by carrier` leaves open whether the sum or the average is meant.
            MemberKind::Number if role == Role::Any && !in_groups => {
                if let Some(only) = self.only_measure_of(index) {
                    self.alternatives = self.measures_of(index).into_iter().filter(|name| *name != only).collect();
                    self.add_value(&only);
                    return self.piece(text, format!("measure {only}"), CERTAINTY_OF_AVERAGE);
                }
                let choices = self.measures_of(index);
                let message = format!("`{name}` is a number of each row; choose a measure, or write `by` before it");
                self.unclear(text, message, choices);
                1
            }
            _ if role == Role::Any && self.is_part_of_measure(at, &name) => {
                self.piece(text, "named once more".to_owned(), certainty)
            }
            _ if role == Role::Any && self.is_owned(at) => {
                self.unclear(text, format!("`{text}` is not a group here; write `by` before it if it is"), vec![name]);
                1
            }
            _ => {
                self.group(&name);
                if role == Role::Any {
                    self.state.bare_groups.push((Arc::clone(&name), text.to_owned()));
                }
                if is_which {
                    self.state.groups = false;
                }
                self.piece(text, format!("grouped by {name}"), certainty)
            }
        }
    }

    /// Returns whether a member may be a group, by itself or as the cube of its rows.
    fn may_group(&self, candidates: &Candidates) -> bool {
        candidates.members.iter().any(|index| {
            let kind = self.vocabulary.entry(*index).kind;
            kind.is_dimension() || kind == MemberKind::Cube
        })
    }

    /// Returns whether a name in the plural directly behind `top 3` is the group of the only measure before it.
    fn ranks_listed(&self, at: usize, candidates: &Candidates) -> bool {
        let is_open = self.draft.groups.is_empty() && self.draft.granularity.is_none();
        let is_ranked = self.draft.limit.is_some() && self.state.superlative.is_none() && self.state.rated.is_none();
        let is_direct = at > 0 && matches!(self.items[at - 1].kind, ItemKind::Number(_, None));
        let is_group = is_direct && self.items[at].is_plural && self.may_group(candidates);
        is_open && is_ranked && is_group && self.draft.values.len() == 1
    }

    /// Records that a member in the singular is ranked by the words that follow it: `the airline with the most
    /// flights`.
    pub(super) fn note_ranking_behind(&mut self, at: usize) {
        use Meaning::{Best, Bottom, Top, Worst};
        let is_filler = |kind: &ItemKind| matches!(kind, ItemKind::Word(Meaning::Ignore | Meaning::Verb));
        let mut behind = self.items[at + 1..].iter().map(|item| &item.kind).skip_while(|kind| is_filler(kind));
        let is_ranked =
            matches!(behind.next(), Some(ItemKind::Superlative(..) | ItemKind::Word(Top | Bottom | Best | Worst)));
        if is_ranked && !self.items[at].is_plural {
            self.state.single = Some(self.items[at].text.clone());
        }
    }

    /// Orders the rows by a member: measures in descending order, dimensions in ascending order. A later word may
    /// change the direction, so `finish` adds the direction to the meaning.
    pub(super) fn ordered_by(&mut self, text: &str, name: Arc<str>, certainty: f64) -> usize {
        let is_value =
            self.vocabulary.index_of(&name).is_some_and(|index| self.vocabulary.entry(index).kind.is_value());
        let is_descending = self.state.rank.take().unwrap_or(is_value);
        self.state.order_piece = Some(self.pieces.len());
        let meaning = format!("ordered by {name}");
        self.draft.order = Some(DraftOrder { member: name, is_descending });
        self.piece(text, meaning, certainty)
    }

    /// Returns whether the item before a member introduces a group or continues a list of groups. Filler words between
    /// them are skipped.
    pub(super) fn continues_groups(&self, at: usize) -> bool {
        let before = self.items[..at].iter().rev().map(|item| &item.kind);
        let mut before = before.skip_while(|kind| matches!(kind, ItemKind::Word(Meaning::Ignore | Meaning::HowMany)));
        let is_direct = at > 0 && matches!(self.items[at - 1].kind, ItemKind::Step(..));
        is_direct || matches!(before.next(), Some(ItemKind::Word(Meaning::Group | Meaning::And)))
    }

    /// Returns whether the next member is the group that `top 5` ranks.
    pub(super) fn ranks_groups(&self) -> bool {
        self.state.rank.is_some()
            && (self.draft.limit.is_some()
                || self.state.superlative.is_some()
                || self.state.rated.is_some()
                || self.state.ranks_things)
            && self.draft.groups.is_empty()
            && self.draft.values.is_empty()
            && self.draft.granularity.is_none()
    }

    /// Returns whether a member names the groups of a comparison or ranking that follows it.
    pub(super) fn names_groups(&self, at: usize, candidates: &Candidates) -> bool {
        let is_text = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Text;
        let compares = |item: &Item| {
            use Meaning::{AtLeast, AtMost, Best, Bottom, Less, More, Rank, Sort, Top, Worst};
            matches!(
                item.kind,
                ItemKind::Word(More | AtLeast | Less | AtMost | Top | Bottom | Rank | Sort | Best | Worst)
                    | ItemKind::Superlative(..)
            )
        };
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore | Meaning::Verb));
        let next = at + 1 + self.items[at + 1..].iter().take_while(is_filler).count();
        let is_compared = self.counts_behind(next)
            || self.items.get(next).is_some_and(compares)
            || self.lacks_rows(at)
            || self.compares_measure(next);
        let is_followed = is_compared && !self.compares_quality_of_rows(at) && !self.counts_compared_rows(at, next);
        let is_time = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Time;
        let is_group = |index: &usize| is_text(index) || is_time(index);
        (is_followed && candidates.members.iter().any(is_text))
            || (self.has_extreme(next) && candidates.members.iter().any(is_group))
    }

    /// Returns whether the item at a place is a measure whose own name ranks, as in `hours with the strongest wind`.
    fn has_extreme(&self, at: usize) -> bool {
        let Some(ItemKind::Member(found)) = self.items.get(at).map(|item| &item.kind) else { return false };
        let is_extreme = |index: &usize| {
            use Aggregation::{Maximum, Minimum};
            matches!(self.vocabulary.entry(*index).aggregation, Some(Maximum | Minimum))
        };
        let text = self.items[at].text.to_lowercase();
        let stem = self.language.stem(text.split(' ').next().unwrap_or_default());
        use Meaning::{Best, Bottom, Superlative, Top, Worst};
        let ranks = matches!(self.language.phrase(&[&stem]), Some((_, Best | Worst | Top | Bottom | Superlative(_))));
        ranks && self.follows_filler(at) && found.members.iter().all(is_extreme)
    }

    /// Returns whether a filler such as `with the` directly precedes the item at a place.
    fn follows_filler(&self, at: usize) -> bool {
        at > 0 && matches!(self.items[at - 1].kind, ItemKind::Word(Meaning::Ignore))
    }

    /// Returns the boolean dimension of the main cube whose name contains a word, if there is exactly one. The name of
    /// the cube, as in `not orders`, names none of its dimensions.
    pub(super) fn switch_named(&self, text: &str) -> Option<Arc<str>> {
        let lower = text.to_lowercase();
        let of_cube = self.main_cube.as_ref().and_then(|name| self.vocabulary.index_of(name));
        let words = spelled(text);
        let mut roots = words.split(' ').map(|word| self.language.root(&self.language.stem(word)));
        if of_cube.is_some_and(|cube| roots.all(|root| self.vocabulary.roots(cube).contains(&root))) {
            return None;
        }
        let is_named = |entry: &&MemberEntry| {
            entry.kind == MemberKind::Boolean
                && self.is_of_main_cube(entry)
                && entry.phrases.iter().any(|phrase| phrase.to_lowercase().contains(&lower))
        };
        let mut switches = self.vocabulary.entries().map(|(_, entry)| entry).filter(is_named);
        let first = switches.next()?;
        switches.next().is_none().then(|| Arc::clone(&first.name))
    }

    pub(super) fn is_listed(&self, at: usize) -> bool {
        let before = self.items[..at].iter().rev().map(|item| &item.kind);
        let mut before = before.skip_while(|kind| matches!(kind, ItemKind::Word(Meaning::Ignore)));
        matches!(before.next(), Some(ItemKind::Word(Meaning::And | Meaning::Versus)))
    }
}
