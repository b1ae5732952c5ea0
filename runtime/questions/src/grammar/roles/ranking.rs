//! Reads the words that rank rows: `top 5`, `fastest`, `worst`.
//!
//! `top` and `lowest` rank by the next measure. An adjective names the quality that it ranks by, and `worst` ranks by a
//! measure for which the language knows whether high or low values are desired. Both wait for the measures of the whole
//! question.

use std::sync::Arc;

use super::{Candidates, DraftFilter, DraftValue, ItemKind, MAX_CHOICES, Ranking, Reader, is_count};
use crate::draft::{Aggregation, Desired, DraftOrder, Unit};
use crate::language::{Meaning, Superlative, WordList};
use crate::members::{MemberEntry, MemberKind};
use crate::spelling::spelled;
use crate::times;

impl Reader<'_> {
    /// Reads `top` or `bottom`, with the number of rows if one follows. Returns the number of items read.
    pub(super) fn rank(&mut self, at: usize, text: &str, is_top: bool) -> usize {
        self.state.rank = Some(is_top);
        self.state.rank_text = text.to_owned();
        self.state.groups = false;
        let number = self.items.get(at + 1).map(|item| item.kind.clone());
        // In `top 3 days`, the unit of the number is the granularity.
        if let Some(ItemKind::Number(_, Some(unit @ (Unit::Days | Unit::Hours)))) = &number {
            self.draft.granularity = Some(if *unit == Unit::Days { "day" } else { "hour" });
        }
        let Some(ItemKind::Number(count, None | Some(Unit::Days | Unit::Hours))) = number else {
            return self.piece(text, "ordered by the next measure".to_owned(), 1.0);
        };
        if !is_count(count) {
            // The rest of the question is still read as a ranking.
            self.draft.limit = Some(1);
            return 1 + self.no_count(&self.text(at, at + 2));
        }
        self.draft.limit = Some(count as u64);
        let text = format!("{text} {}", self.items[at + 1].text);
        let end = if is_top { "largest" } else { "smallest" };
        1 + self.piece(&text, format!("the {count} rows with the {end} values"), 1.0)
    }

    /// Returns whether a number at a place is the number of ranked rows, as in `10 busiest routes`.
    pub(super) fn counts_ranked(&self, at: usize) -> bool {
        use Meaning::{Best, Bottom, Top, Worst};
        matches!(
            self.items.get(at + 1).map(|item| &item.kind),
            Some(ItemKind::Superlative(_, false, _) | ItemKind::Word(Best | Worst | Top | Bottom))
        )
    }

    /// Reads an adjective that ranks. Returns the number of items read.
    pub(super) fn superlative(&mut self, at: usize, ranking: Ranking) -> usize {
        let is_first = ranking.is_first;
        let language = self.language;
        let Some(superlative) = language.superlative(ranking.index) else { return 1 };
        self.state.rank_text = ranking.text.clone();
        if !is_first && self.ranks_other_quality(at, superlative) {
            let message = format!("the name after `{}` is a measure without this quality", ranking.text);
            let choices = self.choices_of(MemberKind::Measure);
            self.unclear(&ranking.text, message, choices);
            return 1;
        }
        if !is_first && !superlative.qualities.is_empty() && self.ranks_next(at, superlative) {
            self.state.rank = Some(superlative.is_descending);
            self.state.groups = false;
            return self.piece(&ranking.text, "ordered by the next measure".to_owned(), 1.0);
        }
        // `the warmest in August` names the measure `warmest` and ranks nothing.
        if let Some(candidates) = &ranking.candidates
            && !self.state.is_which
            && !self.is_before_unit(at)
            && self.draft.groups.is_empty()
            && self.draft.granularity.is_none()
            && self.draft.limit.is_none()
        {
            let index = self.pick(&ranking.text, candidates, super::Role::Value);
            let Some(index) = index else { return 1 };
            let name = Arc::clone(&self.vocabulary.entry(index).name);
            self.add_value(&name);
            return self.piece(&ranking.text, format!("measure {name}"), 1.0);
        }
        self.state.rank = Some(superlative.is_descending);
        self.state.groups = false;
        self.state.orders_all |= is_first;
        self.state.superlative = Some(ranking);
        1
    }

    /// Returns whether a unit of time directly follows, as in `coldest month`: it is the ranked group.
    fn is_before_unit(&self, at: usize) -> bool {
        let next = self.items.get(at + 1).map(|item| &item.kind);
        matches!(next, Some(ItemKind::Word(meaning)) if times::unit(*meaning).is_some())
    }

    /// Reads `best` or `worst`. Returns the number of items read.
    pub(super) fn rated(&mut self, is_best: bool, text: &str) -> usize {
        self.state.rank = Some(true);
        self.state.rank_text = text.to_owned();
        self.state.groups = false;
        self.state.rated = Some((is_best, text.to_owned()));
        let last = text.split(' ').next_back().unwrap_or_default();
        self.state.orders_all |= self.language.has(WordList::First, &last.to_lowercase());
        1
    }

    /// Records that the item at a place names the ranked group. If it is in the singular, the answer has one row.
    pub(super) fn note_ranked(&mut self, at: usize) {
        let item = &self.items[at];
        let is_ranked = self.state.is_which || self.state.rank.is_some();
        if is_ranked && !item.is_plural && self.draft.groups.is_empty() && self.draft.granularity.is_none() {
            self.state.single = Some(item.text.clone());
        }
    }

    /// Completes the order of the rows with the measures of the whole question.
    pub(super) fn complete_ranking(&mut self) {
        if let Some(ranking) = self.state.superlative.take() {
            self.complete_superlative(&ranking);
        }
        if let Some((is_best, text)) = self.state.rated.take() {
            self.complete_rated(is_best, &text);
        }
        let rank = self.state.rank.take().or(self.draft.limit.map(|_| true));
        if self.draft.order.is_none()
            && let (Some(is_descending), Some(first)) = (rank, self.draft.values.first())
        {
            self.draft.order = Some(DraftOrder { member: Arc::clone(first), is_descending });
        }
        if let Some(text) = self.state.single.take().filter(|_| !self.state.orders_all)
            && self.draft.limit.is_none()
            && self.draft.groups.len() + usize::from(self.draft.granularity.is_some()) == 1
            && let Some(order) = &self.draft.order
            && self.state.order_piece.is_none()
        {
            let end = if order.is_descending { "largest" } else { "smallest" };
            self.draft.limit = Some(1);
            self.piece(&text, format!("the row with the {end} value"), 1.0);
        }
    }

    fn complete_superlative(&mut self, ranking: &Ranking) {
        let Some(superlative) = self.language.superlative(ranking.index).cloned() else { return };
        let Some(name) = self.ranked_measure(ranking, &superlative) else {
            self.state.rank = None;
            return;
        };
        self.add_value(&name);
        // The year of the `oldest` is a minimum, although the age is high.
        let index = self.vocabulary.index_of(&name);
        let is_own = index.is_some_and(|index| {
            ranking.candidates.as_ref().is_some_and(|candidates| candidates.members.contains(&index))
        });
        let named = self.state.named_direction.take();
        let is_descending = match index.and_then(|index| self.vocabulary.entry(index).aggregation) {
            _ if let Some(is_descending) = named => is_descending,
            Some(Aggregation::Minimum) if is_own => false,
            Some(Aggregation::Maximum) if is_own => true,
            _ => match superlative.is_descending_in_time {
                Some(in_time)
                    if ranking.is_first && index.is_some_and(|index| self.is_only_time(index, &superlative)) =>
                {
                    in_time
                }
                _ => superlative.is_descending,
            },
        };
        let direction = if is_descending { "descending" } else { "ascending" };
        self.piece(&ranking.text, format!("ordered by {name}, {direction}"), 0.9);
        self.draft.order = Some(DraftOrder { member: name, is_descending });
    }

    /// Returns the measure that an adjective ranks by: one of the question's measures with the quality, or else a
    /// measure with the adjective as its name, or else a measure with the quality. If several remain, asks the caller.
    fn ranked_measure(&mut self, ranking: &Ranking, superlative: &Superlative) -> Option<Arc<str>> {
        let roots: Vec<String> = superlative.qualities.iter().map(|quality| self.language.root(quality)).collect();
        if roots.is_empty() {
            return self.counted(ranking);
        }
        let has_quality = |index: usize, root: &String| self.vocabulary.roots(index).contains(root);
        let of_draft = self.draft.values.iter().filter_map(|name| self.vocabulary.index_of(name));
        let found = of_draft.into_iter().find(|index| roots.iter().any(|root| has_quality(*index, root)));
        if let Some(index) = found {
            return Some(Arc::clone(&self.vocabulary.entry(index).name));
        }
        // `slowest first` orders a delivery time, although its name has no speed.
        let of_draft = self.draft.values.iter().filter_map(|name| self.vocabulary.index_of(name));
        if ranking.is_first
            && superlative.is_descending_in_time.is_some()
            && let Some(index) = of_draft.into_iter().find(|index| self.is_only_time(*index, superlative))
        {
            return Some(Arc::clone(&self.vocabulary.entry(index).name));
        }
        let aggregation = self.state.aggregate.take().map(|(aggregation, _)| aggregation);
        let mut own = ranking.candidates.clone().unwrap_or_default();
        own.members.retain(|index| self.main_cube.is_none() || self.is_of_main_cube(self.vocabulary.entry(*index)));
        if aggregation.is_none() && !own.members.is_empty() {
            let index = self.pick(&ranking.text, &own, super::Role::Value)?;
            return Some(Arc::clone(&self.vocabulary.entry(index).name));
        }
        let measures = |is_near: &dyn Fn(&MemberEntry) -> bool| -> Vec<usize> {
            let of_root = |root: &String| -> Vec<usize> {
                let entries = self.vocabulary.entries().filter(|(_, entry)| {
                    matches!(entry.kind, MemberKind::Measure | MemberKind::Metric) && is_near(entry)
                });
                entries.map(|(index, _)| index).filter(|index| has_quality(*index, root)).collect()
            };
            let first = || roots.iter().map(of_root).find(|members| !members.is_empty()).unwrap_or_default();
            // `how long do guests stay` means the length of the stay rather than any time.
            let named = match ranking.is_asked {
                true => self.only_with_verb(roots.iter().flat_map(of_root).collect()),
                false => Vec::new(),
            };
            if named.is_empty() { first() } else { named }
        };
        let mut members = measures(&|entry| self.is_reached(entry));
        if members.is_empty() {
            // The measure may belong to a cube that joins the main cube: the speed of flights for the makers of planes.
            members = measures(&|entry| self.joins_main(entry));
            let cubes: Vec<_> = members.iter().map(|index| self.vocabulary.entry(*index).cube.clone()).collect();
            if let Some(Some(cube)) = cubes.first().filter(|first| cubes.iter().all(|cube| cube == *first)) {
                self.main_cube = Some(Arc::clone(cube));
            }
        }
        // The speed of the main cube's rows takes precedence over the speed of the wind.
        let is_own = |index: &usize| self.is_of_main_cube(self.vocabulary.entry(*index));
        if members.iter().any(is_own) {
            members.retain(is_own);
        }
        // Without a cube, the aggregation does not decide between the wind's speed and a plane's.
        let cube_of = |index: &usize| self.vocabulary.entry(*index).cube.as_ref();
        let is_open = self.main_cube.is_none() && members.iter().any(|index| cube_of(index) != cube_of(&members[0]));
        let members = match is_open {
            true => members,
            false => self.of_aggregation(members, aggregation.unwrap_or(Aggregation::Average)),
        };
        let members = if members.is_empty() { self.named_by_adjective(ranking, aggregation) } else { members };
        // `how late do flights arrive`
        let members = if ranking.is_asked { self.with_verb(members) } else { members };
        if members.is_empty() {
            let choices = self.choices_of(MemberKind::Measure);
            self.unclear(&ranking.text, format!("no measure is known for `{}`", ranking.text), choices);
            return None;
        }
        let candidates = Candidates { members, certainty: 1.0, ..Candidates::default() };
        let index = self.pick(&ranking.text, &candidates, super::Role::Value)?;
        Some(Arc::clone(&self.vocabulary.entry(index).name))
    }

    /// Returns the largest or smallest value whose name begins with an adjective, as `slowest turnaround` does, or the
    /// average of the same number if the question asks for it.
    fn named_by_adjective(&mut self, ranking: &Ranking, aggregation: Option<Aggregation>) -> Vec<usize> {
        let root = |word: &str| self.language.root(&self.language.stem(word));
        let adjective = root(&ranking.text.to_lowercase());
        let rest = |entry: &MemberEntry| -> Option<Vec<String>> {
            let phrases = entry.phrases.iter().map(|phrase| spelled(phrase));
            let words = |phrase: String| phrase.split(' ').map(root).collect::<Vec<String>>();
            let mut own = phrases.map(words).filter(|words| words.len() > 1 && words[0] == adjective);
            own.next().map(|words| words[1..].to_vec())
        };
        use Aggregation::{Average, Maximum, Minimum};
        let extremes = self.vocabulary.entries().filter(|(_, entry)| self.is_of_main_cube(entry));
        let extremes = extremes.filter(|(_, entry)| matches!(entry.aggregation, Some(Maximum | Minimum)));
        let mut named = extremes.filter_map(|(index, entry)| Some((index, entry.aggregation, rest(entry)?)));
        let (Some((index, own, rest)), None) = (named.next(), named.next()) else { return Vec::new() };
        let found = match aggregation {
            None => vec![index],
            Some(wanted) => {
                let entries = self.vocabulary.entries().filter(|(_, entry)| self.is_of_main_cube(entry));
                let averages = entries.filter(|(_, entry)| entry.aggregation == Some(wanted) && wanted == Average);
                let is_named = |index: &usize| rest.iter().all(|root| self.vocabulary.roots(*index).contains(root));
                averages.map(|(index, _)| index).filter(is_named).collect()
            }
        };
        self.state.named_direction = Some(own == Some(Maximum));
        found
    }

    /// Returns whether a measure has a unit of time, and its name contains none of the qualities that the superlative
    /// is about, such as `price` for `cheapest`.
    fn is_only_time(&self, index: usize, superlative: &Superlative) -> bool {
        let roots = self.vocabulary.roots(index);
        let has_quality = superlative.qualities.iter().any(|quality| roots.contains(&self.language.root(quality)));
        let unit = self.vocabulary.entry(index).unit.as_ref();
        !has_quality && unit.is_some_and(|unit| unit.seconds().is_some())
    }

    /// Returns the measure that a word such as `busiest` ranks by: the first measure of the question, or the number of
    /// rows.
    fn counted(&mut self, ranking: &Ranking) -> Option<Arc<str>> {
        if self.main_cube.is_none() && self.draft.values.is_empty() && self.draft.groups.is_empty() {
            self.main_cube = super::cube::only_fact(self.vocabulary);
        }
        let own = self.draft.values.first().cloned().or_else(|| self.count_of_main());
        // Each row of a cube has its own name, so another cube counts the rows of the `busiest airline`.
        let is_name = own.as_ref().is_some_and(|own| self.names_rows_of(own));
        let count = if is_name { self.count_of_joining() } else { own };
        if count.is_none() {
            let counts = self.vocabulary.entries().filter_map(|(_, entry)| entry.count.clone());
            let choices = match &self.main_cube {
                Some(_) => self.choices_of(MemberKind::Measure),
                None => counts.take(MAX_CHOICES).collect(),
            };
            self.unclear(&ranking.text, format!("`{}` needs a measure", ranking.text), choices);
        }
        count
    }

    /// Returns whether the only group names the rows that a measure counts.
    fn names_rows_of(&self, count: &Arc<str>) -> bool {
        let cube = count.split('.').next().and_then(|cube| self.vocabulary.cube(cube));
        let [group] = &self.draft.groups[..] else { return false };
        self.counts_all(count) && cube.is_some_and(|cube| cube.label.as_ref() == Some(&group.member))
    }

    /// Returns the count of the only cube that joins the main cube.
    fn count_of_joining(&self) -> Option<Arc<str>> {
        let joining = self.counts_of_joining(self.main_cube.as_ref()?);
        let [only] = &joining[..] else { return None };
        Some(Arc::clone(only))
    }

    /// Returns the measures with an aggregation, or all if none has it.
    fn of_aggregation(&self, members: Vec<usize>, aggregation: Aggregation) -> Vec<usize> {
        let has = |index: &usize| self.vocabulary.entry(*index).aggregation == Some(aggregation);
        let found: Vec<usize> = members.iter().copied().filter(has).collect();
        if !found.is_empty() {
            return found;
        }
        // A measure that is computed from others, such as a speed, is as good as an average.
        let is_computed = |index: &usize| self.vocabulary.entry(*index).aggregation.is_none();
        let found: Vec<usize> = members.iter().copied().filter(is_computed).collect();
        if found.is_empty() { members } else { found }
    }

    /// Adds the measure with the quality that the question asks for, as in `how old`.
    pub(super) fn complete_quality(&mut self) {
        let Some(ranking) = self.state.quality.take() else { return };
        let Some(superlative) = self.language.superlative(ranking.index).cloned() else { return };
        if let Some(name) = self.ranked_measure(&ranking, &superlative) {
            self.add_value(&name);
            self.piece(&ranking.text, format!("measure {name}"), 0.9);
        }
    }

    fn complete_rated(&mut self, is_best: bool, text: &str) {
        let first = self.draft.values.first().and_then(|name| self.vocabulary.index_of(name));
        let desired =
            first.and_then(|index| self.vocabulary.desired(index, self.language).or_else(|| self.desired_rows(index)));
        let Some(desired) = desired else {
            let message = match first {
                Some(_) => format!("`{text}` may be the largest or the smallest values; write `highest` or `lowest`"),
                None => format!("`{text}` needs a measure"),
            };
            let choices = if first.is_some() { Vec::new() } else { self.rated_measures() };
            self.unclear(text, message, choices);
            return;
        };
        let is_descending = is_best == (desired == Desired::High);
        self.state.rank = Some(is_descending);
        let end = if is_descending { "largest" } else { "smallest" };
        self.piece(text, format!("the {end} values"), 0.9);
    }

    /// Returns whether a high or a low number of rows is desired, according to the conditions that select the rows:
    /// fewer rows with a long delay are better.
    fn desired_rows(&self, index: usize) -> Option<Desired> {
        if self.vocabulary.entry(index).aggregation != Some(Aggregation::Count) {
            return None;
        }
        let of = |filter: &DraftFilter| {
            let root = |word: &str| self.language.root(&self.language.stem(word));
            let own = self.vocabulary.index_of(&filter.member);
            match (filter.operator, &filter.values[..]) {
                ("gt" | "gte", _) | ("equals", [DraftValue::Boolean(true)]) => {
                    self.vocabulary.desired(own?, self.language)
                }
                ("equals", [DraftValue::Text(text)]) => {
                    self.language.desired(&spelled(text).split(' ').map(root).collect())
                }
                _ => None,
            }
        };
        let mut found = self.draft.filters.iter().filter_map(of);
        let first = found.next()?;
        found.all(|other| other == first).then_some(first)
    }

    /// Returns the measures for which high or low values are desired.
    fn rated_measures(&self) -> Vec<Arc<str>> {
        let measures = self.vocabulary.entries().filter(|(_, entry)| {
            matches!(entry.kind, MemberKind::Measure | MemberKind::Metric) && self.is_of_main_cube(entry)
        });
        let rated = measures.filter(|(index, _)| self.vocabulary.desired(*index, self.language).is_some());
        rated.map(|(_, entry)| Arc::clone(&entry.name)).take(MAX_CHOICES).collect()
    }
}
