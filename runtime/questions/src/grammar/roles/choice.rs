//! Chooses one of the members that an item may mean.

use std::sync::Arc;

use super::{Candidates, MAX_CHOICES, Reader, Role};
use crate::draft::{Aggregation, Clarification, Piece};
use crate::language::Direction;
use crate::members::{MemberEntry, MemberKind};
use crate::spelling::spelled;

impl Reader<'_> {
    /// Picks one member from the candidates. If none fits the role, or several fit, asks the caller and returns `None`.
    pub(super) fn pick(&mut self, text: &str, candidates: &Candidates, role: Role) -> Option<usize> {
        let vocabulary = self.vocabulary;
        let fits = |index: &usize| {
            let kind = vocabulary.entry(*index).kind;
            match role {
                Role::Value => kind.is_value(),
                Role::Group => kind.is_dimension(),
                Role::Operand => kind.is_dimension() || kind.is_value(),
                Role::Any => true,
            }
        };
        let narrowed = |members: Vec<usize>, keeps: &dyn Fn(&MemberEntry) -> bool| {
            let remaining: Vec<usize> =
                members.iter().copied().filter(|member| keeps(vocabulary.entry(*member))).collect();
            if remaining.is_empty() { members } else { remaining }
        };
        let mut fitting: Vec<usize> = candidates.members.iter().copied().filter(fits).collect();
        if fitting.is_empty() && role == Role::Group {
            fitting = self.labels(candidates);
        }
        if role == Role::Group && !fitting.iter().any(|index| self.is_reached(vocabulary.entry(*index))) {
            let roles = self.roles_of(text);
            fitting = if roles.is_empty() { fitting } else { roles };
        }
        if let Some((aggregation, word)) = self.aggregate_for(role, candidates) {
            fitting = self.aggregated(text, candidates, aggregation);
            if fitting.is_empty() {
                let choices = candidates.members.iter().flat_map(|index| self.measures_of(*index)).take(MAX_CHOICES);
                let mut choices: Vec<Arc<str>> = choices.collect();
                let counts = self.counts_of(candidates);
                let message = match aggregation {
                    Aggregation::Average if !counts.is_empty() => {
                        choices = counts;
                        format!("a query cannot average numbers of rows; without `{word}`, each group has its number")
                    }
                    Aggregation::CountDistinct => format!("no measure counts the different values of `{text}`"),
                    _ => format!("no measure is the `{word}` of `{text}`"),
                };
                self.unclear(text, message, choices);
                return None;
            }
        }
        let mut members = fitting.clone();
        if members.is_empty() {
            let choices = self.names(&candidates.members);
            let wanted = if role == Role::Group { "dimension" } else { "measure" };
            self.unclear(text, format!("`{text}` is not the name of a {wanted}"), choices);
            return None;
        }
        members = narrowed(members, &|entry| self.is_reached(entry));
        // `from each airport` groups by the origin.
        if let Some(wanted) = self.state.group_direction.take_if(|_| role == Role::Group) {
            members = narrowed(members, &|entry| vocabulary.direction(&entry.name) == Some(wanted));
        }
        if self.state.sorts {
            members = narrowed(members, &|entry| self.draft.values.contains(&entry.name) || self.is_group(&entry.name));
        }
        // A share of cancelled flights needs all flights, so the word must not filter them.
        let is_predicate = self.state.is_predicate && !self.draft.totals;
        if (self.state.is_negated || is_predicate) && role == Role::Any {
            members = narrowed(members, &|entry| entry.kind == MemberKind::Boolean);
        }
        if role == Role::Any || role == Role::Value {
            members = narrowed(members, &|entry| entry.kind.is_value() || entry.kind == MemberKind::Segment);
            // Once a measure is chosen, segments are preferred: `average delay of cancelled flights`. Before that,
            // measures are preferred: `cancelled flights by carrier`.
            let has_values = role == Role::Any && !self.draft.values.is_empty() && !self.state.is_further_value;
            members = narrowed(members, &|entry| (entry.kind == MemberKind::Segment) == has_values);
        }
        members = narrowed(members, &|entry| self.is_of_main_cube(entry));
        members = narrowed(members, &|entry| entry.kind != MemberKind::Cube);
        // A member's own name takes precedence over a synonym of another member.
        let named: Vec<usize> =
            members.iter().copied().filter(|member| !candidates.by_synonym.contains(member)).collect();
        if !named.is_empty() {
            members = named;
        }
        // A metric takes precedence over a measure with the same name.
        let all = members.clone();
        members.retain(|member| {
            let entry = vocabulary.entry(*member);
            let is_same = |other: &usize| {
                let other = vocabulary.entry(*other);
                other.kind == MemberKind::Metric && other.shares_name(entry)
            };
            entry.kind != MemberKind::Measure || !all.iter().any(is_same)
        });
        if members.len() > 1 {
            let by_name: Vec<usize> =
                members.iter().copied().filter(|member| candidates.by_name.contains(member)).collect();
            if !by_name.is_empty() {
                members = by_name;
            }
        }
        if let [only] = members[..] {
            let entry = vocabulary.entry(only);
            if self.main_cube.is_none() && entry.kind.is_value() {
                self.main_cube = entry.cube.clone();
            }
            let others = fitting.into_iter().filter(|index| *index != only);
            let others: Vec<usize> = others.filter(|index| vocabulary.entry(*index).kind != MemberKind::Cube).collect();
            self.alternatives = self.names(&others);
            return Some(only);
        }
        let choices = self.names(&members);
        self.pieces.push(Piece { text: text.to_owned(), meaning: "unclear".to_owned(), alternatives: choices.clone() });
        self.clarifications.push(Clarification {
            text: text.to_owned(),
            message: format!("`{text}` has several meanings"),
            choices: choices.into_iter().take(MAX_CHOICES).collect(),
        });
        self.certainties.push(0.0);
        None
    }

    /// Returns the aggregation that a word before a member requires of it. A word waits for the next measure.
    fn aggregate_for(&mut self, role: Role, candidates: &Candidates) -> Option<(Aggregation, String)> {
        if matches!(role, Role::Group | Role::Operand) {
            return None;
        }
        // `the total number of flights` counts; any sum of counts is a count.
        let is_cube = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Cube;
        let asks =
            |item: &super::Item| matches!(item.kind, super::ItemKind::Word(crate::language::Meaning::Quality(_)));
        let waits = self.items.iter().any(asks) || self.state.superlative.is_some();
        let is_context = candidates.members.iter().any(is_cube) && (waits || !self.draft.values.is_empty());
        if is_context { None } else { self.state.aggregate.take() }
    }

    /// Returns the measures that combine a member by an aggregation.
    pub(super) fn aggregated(&self, text: &str, candidates: &Candidates, aggregation: Aggregation) -> Vec<usize> {
        let of = |index: usize| self.vocabulary.entry(index);
        let has = |index: &usize| match of(*index).aggregation {
            Some(own) if aggregation == Aggregation::Sum => {
                matches!(own, Aggregation::Sum | Aggregation::Count | Aggregation::CountDistinct)
            }
            own => own == Some(aggregation),
        };
        let own: Vec<usize> = candidates.members.iter().copied().filter(has).collect();
        if !own.is_empty() {
            return own;
        }
        // A number of rows has no average, although the names of other measures contain the name of the cube.
        if aggregation == Aggregation::Average && !self.counts_of(candidates).is_empty() {
            return Vec::new();
        }
        let combines = |entry: &MemberEntry| {
            let combined = entry.combines.as_ref();
            combined.is_some_and(|name| candidates.members.iter().any(|index| of(*index).name == *name))
        };
        let words = spelled(text);
        let roots: Vec<String> = words.split(' ').map(|word| self.language.root(&self.language.stem(word))).collect();
        let is_named = |index: usize| roots.iter().all(|root| self.vocabulary.roots(index).contains(root));
        let measures =
            || self.vocabulary.entries().filter(|(index, entry)| entry.kind == MemberKind::Measure && has(index));
        let combining: Vec<usize> = measures().filter(|(_, entry)| combines(entry)).map(|(index, _)| index).collect();
        if !combining.is_empty() {
            return self.without_variants(combining);
        }
        let named: Vec<usize> = measures().map(|(index, _)| index).filter(|index| is_named(*index)).collect();
        if !named.is_empty() {
            return named;
        }
        if aggregation == Aggregation::CountDistinct {
            // Rows of different cubes are not comparable.
            let counts = |index: &usize| of(*index).aggregation == Some(Aggregation::Count);
            return candidates.members.iter().copied().filter(counts).collect();
        }
        // A measure that is computed from others, such as a rate, is its own average.
        let is_computed = |index: &usize| of(*index).kind.is_value() && of(*index).aggregation.is_none();
        let is_computed = |index: &usize| is_computed(index) && of(*index).kind != MemberKind::Cube;
        candidates.members.iter().copied().filter(is_computed).collect()
    }

    /// Returns the measures that count the rows of the cubes among the candidates.
    fn counts_of(&self, candidates: &Candidates) -> Vec<Arc<str>> {
        let cubes = candidates.members.iter().map(|index| self.vocabulary.entry(*index));
        let cubes = cubes.filter(|entry| entry.kind == MemberKind::Cube && self.is_reached(entry));
        let of_cubes = cubes.filter_map(|entry| entry.count.clone());
        let counts = self.names(&candidates.members).into_iter().filter(|name| self.counts_all(name));
        let mut found: Vec<Arc<str>> = of_cubes.chain(counts).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the measures without variants of other measures. The name of a variant is that of the other measure
    /// followed by a word: `buyers_approx` is a variant of `buyers`.
    pub(super) fn without_variants(&self, members: Vec<usize>) -> Vec<usize> {
        let name = |index: &usize| &self.vocabulary.entry(*index).name;
        let is_variant =
            |index: &usize| members.iter().any(|other| name(index).starts_with(&format!("{}_", name(other))));
        members.iter().copied().filter(|index| !is_variant(index)).collect()
    }

    /// Returns the dimensions whose names are a word for a role followed by the given name, such as `origin airport`
    /// for `airport`. If the question has a word for a role, only the dimensions with this role are returned.
    fn roles_of(&self, text: &str) -> Vec<usize> {
        let stems_of = |text: &str| spelled(text).split(' ').map(|word| self.language.stem(word)).collect::<Vec<_>>();
        let stems = stems_of(text);
        let has_role = |phrase: &Arc<str>| {
            let own = stems_of(phrase);
            own.len() > stems.len() && own.ends_with(&stems)
        };
        let dimensions =
            self.vocabulary.entries().filter(|(_, entry)| entry.kind == MemberKind::Text && self.is_reached(entry));
        let named = dimensions.filter(|(_, entry)| entry.phrases.iter().chain(&entry.synonyms).any(has_role));
        let members: Vec<usize> = named.map(|(index, _)| index).collect();
        let words = self.items.iter().flat_map(|item| stems_of(&item.text));
        let wanted: Vec<Direction> = words.filter_map(|stem| self.language.direction(&stem)).collect();
        let is_wanted = |index: &usize| {
            let own = self.vocabulary.direction(&self.vocabulary.entry(*index).name);
            own.is_some_and(|own| wanted.iter().all(|wanted| *wanted == own))
        };
        let directed: Vec<usize> = members.iter().copied().filter(is_wanted).collect();
        if wanted.is_empty() || directed.is_empty() { members } else { directed }
    }

    /// Returns the dimensions that name the rows of the cubes among the candidates, as in `by customer`.
    fn labels(&self, candidates: &Candidates) -> Vec<usize> {
        let cubes = candidates.members.iter().map(|index| self.vocabulary.entry(*index));
        let labels = cubes.filter(|entry| entry.kind == MemberKind::Cube).filter_map(|entry| entry.label.as_ref());
        labels.filter_map(|label| self.vocabulary.index_of(label)).collect()
    }

    /// Returns whether a member can be combined with the main cube.
    pub(super) fn is_reached(&self, entry: &MemberEntry) -> bool {
        match (&self.main_cube, &entry.cube) {
            (Some(main), Some(cube)) => self.vocabulary.is_joined(main, cube),
            _ => true,
        }
    }

    /// Returns whether the cube of a member can be combined with the members of the main cube.
    pub(super) fn joins_main(&self, entry: &MemberEntry) -> bool {
        match (&self.main_cube, &entry.cube) {
            (Some(main), Some(cube)) => self.vocabulary.is_joined(cube, main),
            _ => false,
        }
    }

    pub(super) fn names(&self, members: &[usize]) -> Vec<Arc<str>> {
        members.iter().map(|index| Arc::clone(&self.vocabulary.entry(*index).name)).take(MAX_CHOICES).collect()
    }

    pub(super) fn is_of_main_cube(&self, entry: &MemberEntry) -> bool {
        self.main_cube.is_some() && entry.cube == self.main_cube
    }

    /// Returns the measures whose names contain the name of a dimension, and the dimension itself.
    pub(super) fn measures_of(&self, index: usize) -> Vec<Arc<str>> {
        let dimension = self.vocabulary.entry(index);
        let words = |phrase: &Arc<str>| format!(" {} ", spelled(phrase));
        let names: Vec<String> = dimension.phrases.iter().map(words).collect();
        let is_named = |entry: &&MemberEntry| {
            entry.phrases.iter().any(|phrase| names.iter().any(|name| words(phrase).contains(name)))
        };
        let entries = self.vocabulary.entries().map(|(_, entry)| entry);
        let measures = entries.filter(|entry| entry.kind == MemberKind::Measure && entry.cube == dimension.cube);
        let names = measures.filter(is_named).map(|entry| Arc::clone(&entry.name)).take(MAX_CHOICES - 1);
        names.chain([Arc::clone(&dimension.name)]).collect()
    }

    pub(super) fn text_dimensions(&self) -> Vec<Arc<str>> {
        self.choices_of(MemberKind::Text)
    }

    /// Returns the members of a kind in the main cube.
    pub(super) fn choices_of(&self, kind: MemberKind) -> Vec<Arc<str>> {
        let entries = self.vocabulary.entries().map(|(_, entry)| entry).filter(|entry| entry.kind == kind);
        let of_cube = entries.filter(|entry| self.is_of_main_cube(entry));
        of_cube.map(|entry| Arc::clone(&entry.name)).take(MAX_CHOICES).collect()
    }
}
