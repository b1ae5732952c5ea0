//! The role of each item: value, group, condition, time, order.
//!
//! In: items. Out: the draft, with the meaning of each part and the questions to the caller. One file, because every
//! rule reads and changes the same state of the reader; splitting words into items is in `items`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::items::{Candidates, Item, ItemKind};
use crate::draft::{
    Clarification, Comparison, Draft, DraftFilter, DraftGroup, DraftOrder, DraftRange, DraftValue, Interpretation,
    Piece, Unit,
};
use crate::language::Meaning;
use crate::members::{KnownValue, MemberEntry, MemberKind, Vocabulary};
use crate::times;

/// The most choices of a clarification.
const MAX_CHOICES: usize = 8;

/// Gives items their roles.
pub(super) struct Reader<'r> {
    vocabulary: &'r Vocabulary,
    items: Vec<Item>,
    draft: Draft,
    pieces: Vec<Piece>,
    clarifications: Vec<Clarification>,
    certainties: Vec<f64>,
    /// The cube that most members with one meaning belong to.
    main_cube: Option<Arc<str>>,
    state: State,
}

/// The words that wait for their member.
#[derive(Debug, Default)]
struct State {
    /// A group was introduced, and its list goes on.
    groups: bool,
    /// `which`: the next member is a dimension.
    is_which: bool,
    is_negated: bool,
    /// `top` and `bottom`: the direction. The number is in the draft.
    rank: Option<bool>,
    sorts: bool,
    compares: bool,
    ranges: Vec<DraftRange>,
    /// A cube that was named; its rows are counted if nothing else is.
    cube: Option<usize>,
}

/// The role that a member is looked up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Value,
    Group,
    Operand,
    Any,
}

impl<'r> Reader<'r> {
    pub(super) fn new(vocabulary: &'r Vocabulary, items: Vec<Item>) -> Self {
        let main_cube = main_cube(vocabulary, &items);
        Reader {
            vocabulary,
            items,
            draft: Draft::default(),
            pieces: Vec::new(),
            clarifications: Vec::new(),
            certainties: Vec::new(),
            main_cube,
            state: State::default(),
        }
    }

    pub(super) fn read(mut self) -> Interpretation {
        let mut at = 0;
        while at < self.items.len() {
            at += self.item(at).max(1);
        }
        self.finish();
        let sure: f64 = self.certainties.iter().sum();
        let count = self.certainties.len().max(1) as f64;
        let doubt = if self.clarifications.is_empty() { 1.0 } else { 0.5 };
        let confidence = (sure / count * doubt * 100.0).round() / 100.0;
        let is_unknown = |item: &&Item| matches!(item.kind, ItemKind::Unknown | ItemKind::Quoted);
        let unknown = self.items.iter().filter(is_unknown).map(|item| item.text.clone()).collect();
        Interpretation {
            draft: self.draft,
            pieces: self.pieces,
            confidence,
            clarifications: self.clarifications,
            unknown,
            cube: self.main_cube,
        }
    }

    /// Reads the items at a place. Returns their number.
    fn item(&mut self, at: usize) -> usize {
        let item = self.items[at].clone();
        match item.kind {
            ItemKind::Word(meaning) => self.word(at, &item.text, meaning),
            ItemKind::Step(step, is_group) => {
                self.draft.granularity = Some(step);
                self.state.groups = is_group;
                self.piece(&item.text, format!("grouped by {step}"), 1.0)
            }
            ItemKind::Time(range) => self.time(&item.text, range),
            // `the 5 carriers with the most flights`
            ItemKind::Number(count, None) if self.counts_rows(at, count) => {
                self.draft.limit = Some(count as u64);
                self.state.is_which = true;
                self.piece(&item.text, format!("{count} rows"), 1.0)
            }
            ItemKind::Number(..) => {
                self.unclear(&item.text, format!("`{}` belongs to no member", item.text), Vec::new());
                1
            }
            ItemKind::Value(values) => self.known_value(at, &item.text, &values),
            ItemKind::Quoted | ItemKind::Unknown => self.value_alone(&item.text),
            ItemKind::Member(candidates) => self.member(at, &item.text, &candidates),
        }
    }

    /// Returns whether a number is that of the rows, since a dimension is behind it.
    fn counts_rows(&self, at: usize, count: f64) -> bool {
        let is_count = (1.0..=10_000.0).contains(&count) && count.fract() == 0.0;
        let Some(ItemKind::Member(candidates)) = self.items.get(at + 1).map(|item| &item.kind) else { return false };
        is_count && candidates.members.iter().any(|index| self.vocabulary.entry(*index).kind == MemberKind::Text)
    }

    fn word(&mut self, at: usize, text: &str, meaning: Meaning) -> usize {
        match meaning {
            Meaning::And | Meaning::Ignore | Meaning::Equals | Meaning::From | Meaning::To => return 1,
            Meaning::Which => self.state.is_which = true,
            Meaning::HowMany => self.state.is_which = false,
            Meaning::Group => {
                self.state.groups = true;
                return 1;
            }
            Meaning::Not => {
                self.state.is_negated = true;
                return 1;
            }
            Meaning::Top | Meaning::Bottom => {
                self.state.rank = Some(meaning == Meaning::Top);
                self.state.groups = false;
                let number = self.items.get(at + 1).map(|item| item.kind.clone());
                // `top 3 days`
                if let Some(ItemKind::Number(_, Some(unit @ (Unit::Days | Unit::Hours)))) = &number {
                    self.draft.granularity = Some(if *unit == Unit::Days { "day" } else { "hour" });
                }
                if let Some(ItemKind::Number(count, None | Some(Unit::Days | Unit::Hours))) = number
                    && (1.0..=10_000.0).contains(&count)
                {
                    self.draft.limit = Some(count as u64);
                    let text = format!("{text} {}", self.items[at + 1].text);
                    return 1 + self.piece(&text, format!("the {count} rows with the largest or smallest values"), 1.0);
                }
                return self.piece(text, "ordered by the next measure".to_owned(), 1.0);
            }
            Meaning::Sort => self.state.sorts = true,
            Meaning::Ascending | Meaning::Descending => {
                let is_descending = meaning == Meaning::Descending;
                if let Some(order) = &mut self.draft.order {
                    order.is_descending = is_descending;
                } else {
                    self.state.rank = Some(is_descending);
                }
            }
            Meaning::Versus => self.state.compares = true,
            Meaning::YearOverYear => {
                self.draft.compare = Some(Comparison::Shift("1 year".into()));
                return self.piece(text, "compared with a year before".to_owned(), 1.0);
            }
            Meaning::PreviousPeriod => {
                self.state.compares = false;
                self.draft.compare = Some(Comparison::Shift("".into()));
                return self.piece(text, "compared with the period before".to_owned(), 1.0);
            }
            Meaning::Share => {
                self.draft.totals = true;
                return self.piece(text, "with totals, for the share of each row".to_owned(), 1.0);
            }
            Meaning::More | Meaning::AtLeast | Meaning::Less | Meaning::AtMost | Meaning::Between => {
                return self.comparison_without_member(at, text, meaning);
            }
            // `top 5 days` and `which month`
            _ => match times::unit(meaning) {
                Some(step) if self.state.is_which || self.state.groups || self.ranks_groups() => {
                    self.draft.granularity = Some(step);
                    self.state.is_which = false;
                    return self.piece(text, format!("grouped by {step}"), 1.0);
                }
                _ => {
                    self.unclear(text, format!("`{text}` has no meaning here"), Vec::new());
                    return 1;
                }
            },
        }
        1
    }

    fn time(&mut self, text: &str, range: DraftRange) -> usize {
        self.state.groups = false;
        let meaning = match &range {
            DraftRange::Words(words) => format!("the time {words}"),
            DraftRange::Between(start, end) => {
                let day = |day: &Option<Arc<str>>| day.as_deref().unwrap_or("open").to_owned();
                format!("the time from {} to {}", day(start), day(end))
            }
        };
        if std::mem::take(&mut self.state.compares) {
            self.draft.compare = Some(Comparison::Range(range));
            return self.piece(text, format!("compared with {meaning}"), 1.0);
        }
        self.state.ranges.push(range);
        self.piece(text, meaning, 1.0)
    }

    /// Reads a member with the condition behind it, or as a value, a group or a switch.
    fn member(&mut self, at: usize, text: &str, candidates: &Candidates) -> usize {
        if let Some(length) = self.condition(at, text, candidates) {
            return length;
        }
        let in_groups = self.state.groups && self.continues_groups(at);
        let role = match (in_groups, self.state.is_which, self.state.rank) {
            _ if self.state.sorts => Role::Operand,
            // `top 5 carriers by flights` and `most flights`
            (true, _, Some(_)) => Role::Value,
            (true, ..) => Role::Group,
            (_, true, None) => Role::Group,
            (_, _, Some(_)) if self.ranks_groups() => Role::Group,
            (_, _, Some(_)) => Role::Value,
            // `carriers with more than 1000 flights`
            _ if self.draft.values.is_empty() && self.draft.groups.is_empty() && self.names_groups(at, candidates) => {
                Role::Group
            }
            _ => Role::Any,
        };
        if role == Role::Any && self.is_context(at, candidates) {
            return self.piece(text, "named once more".to_owned(), candidates.certainty);
        }
        let is_which = std::mem::take(&mut self.state.is_which);
        let is_negated = std::mem::take(&mut self.state.is_negated);
        let Some(index) = self.pick(text, candidates, role) else { return 1 };
        let entry = self.vocabulary.entry(index);
        let (name, certainty) = (Arc::clone(&entry.name), candidates.certainty);
        match entry.kind {
            MemberKind::Cube => {
                self.state.cube = Some(index);
                self.piece(text, format!("rows of {name}"), certainty)
            }
            MemberKind::Measure | MemberKind::Metric if role == Role::Any && self.belongs_to_measure(at) => {
                self.unclear(
                    text,
                    format!("measure `{name}` follows another one; write `and` between them"),
                    Vec::new(),
                );
                1
            }
            MemberKind::Measure | MemberKind::Metric => {
                if is_negated {
                    // `not cancelled`
                    if let Some(switch) = self.switch_named(text) {
                        self.filter(&switch, "equals", vec![DraftValue::Boolean(false)]);
                        return self.piece(text, format!("only rows where {switch} is false"), certainty);
                    }
                    self.unclear(text, format!("`{name}` is a number and cannot be excluded"), Vec::new());
                    return 1;
                }
                if std::mem::take(&mut self.state.sorts) || self.state.rank.is_some() {
                    let is_descending = self.state.rank.take().unwrap_or(false);
                    self.draft.order = Some(DraftOrder { member: Arc::clone(&name), is_descending });
                }
                self.state.groups = false;
                self.add_value(&name);
                self.piece(text, format!("measure {name}"), certainty)
            }
            MemberKind::Segment => {
                if is_negated {
                    self.unclear(text, format!("segment `{name}` cannot be excluded"), Vec::new());
                    return 1;
                }
                self.draft.segments.push(Arc::clone(&name));
                self.piece(text, format!("only rows of segment {name}"), certainty)
            }
            MemberKind::Boolean if !in_groups && !is_which => {
                self.filter(&name, "equals", vec![DraftValue::Boolean(!is_negated)]);
                self.piece(text, format!("only rows where {name} is {}", !is_negated), certainty)
            }
            _ if is_negated => {
                self.unclear(text, format!("a value of `{name}` is missing"), Vec::new());
                1
            }
            _ if std::mem::take(&mut self.state.sorts) => {
                let is_descending = self.state.rank.take().unwrap_or(false);
                self.draft.order = Some(DraftOrder { member: Arc::clone(&name), is_descending });
                self.piece(text, format!("ordered by {name}"), certainty)
            }
            _ => {
                self.group(&name);
                if is_which {
                    self.state.groups = false;
                }
                self.piece(text, format!("grouped by {name}"), certainty)
            }
        }
    }

    /// Reads a condition: a member, a comparison and its values. Returns the number of items.
    fn condition(&mut self, at: usize, text: &str, candidates: &Candidates) -> Option<usize> {
        // `carriers with more than 1000 flights`: the number belongs to the member behind it.
        if self.names_groups(at, candidates) && self.compares_next_member(at) {
            return None;
        }
        let mut next = at + 1;
        let mut is_negated = self.state.is_negated;
        let mut operator = None;
        while let Some(ItemKind::Word(meaning)) = self.items.get(next).map(|item| &item.kind) {
            match meaning {
                Meaning::Ignore | Meaning::Equals => {}
                Meaning::Not => is_negated = true,
                Meaning::Missing => {
                    let index = self.pick(text, candidates, Role::Operand)?;
                    let name = Arc::clone(&self.vocabulary.entry(index).name);
                    self.filter(&name, if is_negated { "set" } else { "notSet" }, Vec::new());
                    let whole = self.text(at, next + 1);
                    self.piece(&whole, format!("only rows where {name} is missing"), candidates.certainty);
                    return Some(next + 1 - at);
                }
                meaning @ (Meaning::More
                | Meaning::AtLeast
                | Meaning::Less
                | Meaning::AtMost
                | Meaning::Between
                | Meaning::Before
                | Meaning::After
                | Meaning::Contains
                | Meaning::StartsWith
                | Meaning::EndsWith) => operator = Some(*meaning),
                _ => break,
            }
            next += 1;
            if operator.is_some() {
                break;
            }
        }
        let (values, mut length) = self.values(next, operator == Some(Meaning::Between));
        if values.is_empty() {
            return None;
        }
        // `90 minutes or more`
        if operator.is_none()
            && let Some(ItemKind::Word(meaning @ (Meaning::AtLeast | Meaning::AtMost))) =
                self.items.get(next + length).map(|item| &item.kind)
            && !matches!(self.items.get(next + length + 1).map(|item| &item.kind), Some(ItemKind::Number(..)))
        {
            operator = Some(*meaning);
            length += 1;
        }
        // A word behind a member is its value only if nothing else explains it.
        let wants_text = values.iter().any(|(value, _)| matches!(value, DraftValue::Text(_)));
        let is_number = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Number;
        if operator.is_none() && !wants_text && next == at + 1 && !candidates.members.iter().any(is_number) {
            return None;
        }
        let fits = |kind: MemberKind| match (wants_text, operator) {
            (true, _) => kind == MemberKind::Text,
            (false, Some(_)) => matches!(kind, MemberKind::Number | MemberKind::Measure | MemberKind::Metric),
            (false, None) => kind == MemberKind::Number,
        };
        let members: Vec<usize> =
            candidates.members.iter().copied().filter(|member| fits(self.vocabulary.entry(*member).kind)).collect();
        if members.is_empty() {
            return None;
        }
        let index = self.pick(text, &Candidates { members, certainty: candidates.certainty }, Role::Any)?;
        let end = next + length;
        // `by carrier except UA`: the member is a group too.
        let entry = self.vocabulary.entry(index);
        if self.state.groups && is_negated && entry.kind == MemberKind::Text {
            self.group(&Arc::clone(&entry.name));
        }
        self.compare(at, end, index, operator, is_negated, &values);
        self.state.is_negated = false;
        Some(end - at)
    }

    /// Reads `more than 1000 flights` and `over 2000 miles`.
    fn comparison_without_member(&mut self, at: usize, text: &str, meaning: Meaning) -> usize {
        let (values, length) = self.values(at + 1, meaning == Meaning::Between);
        let end = at + 1 + length;
        let next = self.items.get(end).cloned();
        if let (false, Some(Item { text: name, kind: ItemKind::Member(candidates) })) = (values.is_empty(), &next) {
            let is_number = |index: &usize| {
                let kind = self.vocabulary.entry(*index).kind;
                matches!(kind, MemberKind::Number | MemberKind::Measure | MemberKind::Metric)
            };
            let members: Vec<usize> = candidates.members.iter().copied().filter(is_number).collect();
            let is_dimension = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Number;
            // Without groups, a number of each row is compared: `planes with more than 200 seats`.
            let members = match members.iter().copied().filter(is_dimension).collect::<Vec<usize>>() {
                dimensions if !dimensions.is_empty() && self.draft.groups.is_empty() => dimensions,
                _ => members,
            };
            if !members.is_empty() {
                let candidates = Candidates { members, certainty: candidates.certainty };
                if let Some(index) = self.pick(name, &candidates, Role::Any) {
                    let entry = self.vocabulary.entry(index);
                    if entry.kind.is_value() {
                        self.add_value(&Arc::clone(&entry.name));
                    }
                    self.compare(at, end + 1, index, Some(meaning), false, &values);
                }
                return end + 1 - at;
            }
        }
        let whole = self.text(at, end.max(at + 1));
        let message = format!("`{whole}` compares no member");
        let numbers = self.vocabulary.entries().filter(|(_, entry)| entry.kind == MemberKind::Number);
        let choices = numbers.map(|(_, entry)| entry).filter(|entry| self.is_of_main_cube(entry));
        let choices = choices.map(|entry| Arc::clone(&entry.name)).take(MAX_CHOICES).collect();
        self.unclear(text, message, choices);
        end - at
    }

    fn compare(
        &mut self,
        start: usize,
        end: usize,
        index: usize,
        operator: Option<Meaning>,
        is_negated: bool,
        values: &[(DraftValue, Option<Unit>)],
    ) {
        let entry = self.vocabulary.entry(index);
        let name = Arc::clone(&entry.name);
        let whole = self.text(start, end);
        let Some(values) = values.iter().map(|value| converted(value, entry.unit)).collect::<Option<Vec<_>>>() else {
            self.unclear(&whole, format!("the unit of `{name}` is unknown; leave the unit out"), Vec::new());
            return;
        };
        let operator = match (operator, is_negated, values.len()) {
            (None, false, 1) => "equals",
            (None, true, 1) => "notEquals",
            (None, false, _) => "inList",
            (None, true, _) => "notInList",
            (Some(Meaning::After), false, 1) => "gt",
            (Some(Meaning::Before), false, 1) => "lt",
            (Some(Meaning::More), false, 1) | (Some(Meaning::AtMost), true, 1) => "gt",
            (Some(Meaning::AtLeast), false, 1) | (Some(Meaning::Less), true, 1) => "gte",
            (Some(Meaning::Less), false, 1) | (Some(Meaning::AtLeast), true, 1) => "lt",
            (Some(Meaning::AtMost), false, 1) | (Some(Meaning::More), true, 1) => "lte",
            (Some(Meaning::Between), false, 2) => "between",
            (Some(Meaning::Contains), false, 1) => "contains",
            (Some(Meaning::Contains), true, 1) => "notContains",
            (Some(Meaning::StartsWith), false, 1) => "startsWith",
            (Some(Meaning::EndsWith), false, 1) => "endsWith",
            _ => {
                self.unclear(&whole, format!("`{whole}` is not a condition"), Vec::new());
                return;
            }
        };
        let shown: Vec<String> = values.iter().map(shown).collect();
        self.filter(&name, operator, values);
        self.piece(&whole, format!("only where {name} {operator} {}", shown.join(", ")), 1.0);
    }

    /// Returns the values at a place, with the number of items. A list has `and`, `or` or commas between its values.
    fn values(&self, at: usize, is_between: bool) -> (Vec<(DraftValue, Option<Unit>)>, usize) {
        let value = |item: &Item| match &item.kind {
            ItemKind::Number(number, unit) => Some((DraftValue::Number(*number), *unit)),
            ItemKind::Quoted | ItemKind::Unknown => Some((DraftValue::Text(item.text.as_str().into()), None)),
            ItemKind::Value(values) => values.first().map(|known| (DraftValue::Text(Arc::clone(&known.value)), None)),
            _ => None,
        };
        let (mut values, mut next) = (Vec::new(), at);
        while let Some(found) = self.items.get(next).and_then(value) {
            values.push(found);
            next += 1;
            let is_list = matches!(self.items.get(next).map(|item| &item.kind), Some(ItemKind::Word(Meaning::And)));
            let is_full = is_between && values.len() == 2;
            if is_full || !is_list || self.items.get(next + 1).and_then(value).is_none() {
                break;
            }
            next += 1;
        }
        // `between 1 and 2 hours`
        if is_between && let [(_, first), (_, second)] = &mut values[..] {
            *first = first.or(*second);
        }
        (values, next - at)
    }

    /// Reads values whose dimension is known, such as `JFK or EWR`. Returns the number of items.
    fn known_value(&mut self, at: usize, text: &str, values: &[KnownValue]) -> usize {
        let of_main = |known: &&KnownValue| {
            self.vocabulary.entries().any(|(_, entry)| entry.name == known.member && self.is_of_main_cube(entry))
        };
        let of_main_cube: Vec<&KnownValue> = values.iter().filter(of_main).collect();
        let candidates = if of_main_cube.is_empty() { values.iter().collect() } else { of_main_cube };
        // `by origin except EWR`: the value is one of the groups.
        let of_groups: Vec<&KnownValue> =
            candidates.iter().copied().filter(|known| self.is_group(&known.member)).collect();
        let candidates = if of_groups.is_empty() { candidates } else { of_groups };
        let [first] = candidates[..] else {
            let choices = candidates.iter().map(|known| Arc::clone(&known.member)).take(MAX_CHOICES).collect();
            self.unclear(text, format!("`{text}` is a value of several dimensions"), choices);
            return 1;
        };
        let (member, mut found) = (Arc::clone(&first.member), vec![DraftValue::Text(Arc::clone(&first.value))]);
        let mut end = at + 1;
        while let (Some(ItemKind::Word(Meaning::And)), Some(ItemKind::Value(next))) =
            (self.items.get(end).map(|item| &item.kind), self.items.get(end + 1).map(|item| &item.kind))
            && let Some(same) = next.iter().find(|known| known.member == member)
        {
            found.push(DraftValue::Text(Arc::clone(&same.value)));
            end += 2;
        }
        let is_negated = std::mem::take(&mut self.state.is_negated);
        let operator = match (is_negated, found.len()) {
            (false, 1) => "equals",
            (true, 1) => "notEquals",
            (false, _) => "inList",
            (true, _) => "notInList",
        };
        let shown: Vec<String> = found.iter().map(shown).collect();
        let whole = self.text(at, end);
        self.filter(&member, operator, found);
        self.piece(&whole, format!("only where {member} {operator} {}", shown.join(", ")), 1.0);
        end - at
    }

    /// Asks for the dimension of a value.
    fn value_alone(&mut self, text: &str) -> usize {
        let texts = self.vocabulary.entries().map(|(_, entry)| entry).filter(|entry| entry.kind == MemberKind::Text);
        let choices: Vec<Arc<str>> = texts
            .filter(|entry| self.is_of_main_cube(entry))
            .map(|entry| Arc::clone(&entry.name))
            .take(MAX_CHOICES)
            .collect();
        let message = match choices.is_empty() {
            true => format!("`{text}` is unknown"),
            false => format!("`{text}` is unknown; if it is a value, write its dimension before it"),
        };
        self.unclear(text, message, choices);
        1
    }

    /// Returns the member that is meant. Asks back if there are several, or none that fits the role.
    fn pick(&mut self, text: &str, candidates: &Candidates, role: Role) -> Option<usize> {
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
        let mut members: Vec<usize> = candidates.members.iter().copied().filter(fits).collect();
        if members.is_empty() {
            let choices = self.names(&candidates.members);
            let wanted = if role == Role::Group { "dimension" } else { "measure" };
            self.unclear(text, format!("`{text}` is not the name of a {wanted}"), choices);
            return None;
        }
        if self.state.sorts {
            members = narrowed(members, &|entry| self.draft.values.contains(&entry.name) || self.is_group(&entry.name));
        }
        if self.state.is_negated && role == Role::Any {
            members = narrowed(members, &|entry| entry.kind == MemberKind::Boolean);
        }
        if role == Role::Any || role == Role::Value {
            members = narrowed(members, &|entry| entry.kind.is_value() || entry.kind == MemberKind::Segment);
            // `average delay of cancelled flights` and `cancelled flights by carrier`
            let has_values = role == Role::Any && !self.draft.values.is_empty();
            members = narrowed(members, &|entry| (entry.kind == MemberKind::Segment) == has_values);
        }
        members = narrowed(members, &|entry| self.is_of_main_cube(entry));
        members = narrowed(members, &|entry| entry.kind != MemberKind::Cube);
        members = narrowed(members, &|entry| entry.kind == MemberKind::Metric);
        if let [only] = members[..] {
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

    fn names(&self, members: &[usize]) -> Vec<Arc<str>> {
        members.iter().map(|index| Arc::clone(&self.vocabulary.entry(*index).name)).take(MAX_CHOICES).collect()
    }

    fn is_of_main_cube(&self, entry: &MemberEntry) -> bool {
        self.main_cube.is_some() && entry.cube == self.main_cube
    }

    /// Returns whether the item before a member, small words aside, introduces a group or continues a list of groups.
    fn continues_groups(&self, at: usize) -> bool {
        let before = self.items[..at].iter().rev().map(|item| &item.kind);
        let mut before = before.skip_while(|kind| matches!(kind, ItemKind::Word(Meaning::Ignore | Meaning::HowMany)));
        matches!(before.next(), Some(ItemKind::Word(Meaning::Group | Meaning::And) | ItemKind::Step(..)))
    }

    /// Returns whether the next member is that which `top 5` ranks.
    fn ranks_groups(&self) -> bool {
        self.state.rank.is_some()
            && self.draft.limit.is_some()
            && self.draft.groups.is_empty()
            && self.draft.values.is_empty()
            && self.draft.granularity.is_none()
    }

    /// Returns whether a comparison or ranking follows, whose groups a member names.
    fn names_groups(&self, at: usize, candidates: &Candidates) -> bool {
        let is_text = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Text;
        let compares = |item: &Item| {
            use Meaning::{AtLeast, AtMost, Bottom, Less, More, Top};
            matches!(item.kind, ItemKind::Word(More | AtLeast | Less | AtMost | Top | Bottom))
        };
        let mut behind = self.items[at + 1..].iter().skip_while(|item| item.kind == ItemKind::Word(Meaning::Ignore));
        candidates.members.iter().any(is_text) && behind.next().is_some_and(compares)
    }

    /// Returns the only dimension of true and false of the cube whose name contains a word.
    fn switch_named(&self, text: &str) -> Option<Arc<str>> {
        let lower = text.to_lowercase();
        let is_named = |entry: &&MemberEntry| {
            entry.kind == MemberKind::Boolean
                && self.is_of_main_cube(entry)
                && entry.phrases.iter().any(|phrase| phrase.to_lowercase().contains(&lower))
        };
        let mut switches = self.vocabulary.entries().map(|(_, entry)| entry).filter(is_named);
        let first = switches.next()?;
        switches.next().is_none().then(|| Arc::clone(&first.name))
    }

    /// Returns whether the comparison behind a member has a member of its own, as `more than 1000 flights`.
    fn compares_next_member(&self, at: usize) -> bool {
        let is_filler = |item: &&Item| item.kind == ItemKind::Word(Meaning::Ignore);
        let comparison = at + 1 + self.items[at + 1..].iter().take_while(is_filler).count();
        let (values, length) = self.values(comparison + 1, false);
        let next = self.items.get(comparison + 1 + length).map(|item| &item.kind);
        let is_compared = |index: &usize| {
            let kind = self.vocabulary.entry(*index).kind;
            matches!(kind, MemberKind::Number | MemberKind::Measure | MemberKind::Metric)
        };
        !values.is_empty() && matches!(next, Some(ItemKind::Member(found)) if found.members.iter().any(is_compared))
    }

    /// Returns whether a member names the cube of a measure that is already selected, as in `distance of flights`.
    fn is_context(&self, at: usize, candidates: &Candidates) -> bool {
        let is_cube = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Cube;
        candidates.members.iter().any(is_cube) && !self.draft.values.is_empty() && !self.is_listed(at)
    }

    /// Returns whether a measure is part of a phrase about another one, as in `delay by carrier of late flights`.
    fn belongs_to_measure(&self, at: usize) -> bool {
        !self.draft.values.is_empty() && !self.draft.groups.is_empty() && !self.is_listed(at)
    }

    fn is_listed(&self, at: usize) -> bool {
        let before = self.items[..at].iter().rev().map(|item| &item.kind);
        let mut before = before.skip_while(|kind| matches!(kind, ItemKind::Word(Meaning::Ignore)));
        matches!(before.next(), Some(ItemKind::Word(Meaning::And | Meaning::Versus)))
    }

    /// Completes the draft: the count of rows, the order of a ranking, the range.
    fn finish(&mut self) {
        if self.draft.values.is_empty()
            && let Some(count) = self.count()
        {
            self.draft.values.push(count);
        }
        let ranks = self.state.rank.is_some() || self.draft.limit.is_some() || self.draft.granularity.is_some();
        let is_list = !self.draft.groups.is_empty() && !ranks;
        if self.draft.values.is_empty() && !is_list && self.clarifications.is_empty() {
            let measures = self.vocabulary.entries().filter(|(_, entry)| entry.kind == MemberKind::Measure);
            let choices = measures.map(|(_, entry)| Arc::clone(&entry.name)).take(MAX_CHOICES).collect();
            self.unclear("", "the question names no measure".to_owned(), choices);
        }
        let rank = self.state.rank.take().or(self.draft.limit.map(|_| true));
        if self.draft.order.is_none()
            && let (Some(is_descending), Some(first)) = (rank, self.draft.values.first())
        {
            self.draft.order = Some(DraftOrder { member: Arc::clone(first), is_descending });
        }
        let mut ranges = std::mem::take(&mut self.state.ranges).into_iter();
        self.draft.range = ranges.next();
        if ranges.next().is_some() {
            self.unclear("", "the question has several times".to_owned(), Vec::new());
        }
        self.complete_comparison();
    }

    fn complete_comparison(&mut self) {
        if self.draft.compare.is_none() {
            return;
        }
        let previous = match &self.draft.range {
            Some(DraftRange::Words(words)) => length(words),
            _ => None,
        };
        match (&self.draft.compare, &self.draft.range, previous) {
            (_, None, _) => self.unclear("", "a comparison needs a time".to_owned(), Vec::new()),
            (Some(Comparison::Shift(shift)), Some(_), previous) if shift.is_empty() => match previous {
                Some(previous) => self.draft.compare = Some(Comparison::Shift(previous.into())),
                None => self.unclear("", "the period before this time is unknown".to_owned(), Vec::new()),
            },
            _ => {}
        }
    }

    /// Returns the measure that counts the rows that a question without a measure is about.
    fn count(&self) -> Option<Arc<str>> {
        let is_list = self.state.cube.is_none() && self.draft.segments.is_empty() && self.draft.filters.is_empty();
        if is_list {
            return None;
        }
        let named = self.state.cube.map(|index| self.vocabulary.entry(index));
        let of_main = || {
            let cubes =
                self.vocabulary.entries().map(|(_, entry)| entry).filter(|entry| entry.kind == MemberKind::Cube);
            cubes.into_iter().find(|entry| self.is_of_main_cube(entry))
        };
        named.or_else(of_main)?.count.clone()
    }

    fn add_value(&mut self, name: &Arc<str>) {
        if !self.draft.values.contains(name) {
            self.draft.values.push(Arc::clone(name));
        }
    }

    fn is_group(&self, name: &Arc<str>) -> bool {
        self.draft.groups.iter().any(|group| group.member == *name)
    }

    fn group(&mut self, name: &Arc<str>) {
        if !self.is_group(name) {
            self.draft.groups.push(DraftGroup { member: Arc::clone(name), granularity: None });
        }
    }

    fn filter(&mut self, member: &Arc<str>, operator: &'static str, values: Vec<DraftValue>) {
        self.draft.filters.push(DraftFilter { member: Arc::clone(member), operator, values });
    }

    fn piece(&mut self, text: &str, meaning: String, certainty: f64) -> usize {
        self.pieces.push(Piece { text: text.to_owned(), meaning, alternatives: Vec::new() });
        self.certainties.push(certainty);
        1
    }

    fn unclear(&mut self, text: &str, message: String, choices: Vec<Arc<str>>) {
        self.clarifications.push(Clarification { text: text.to_owned(), message, choices });
        self.certainties.push(0.0);
    }

    fn text(&self, start: usize, end: usize) -> String {
        self.items[start..end].iter().map(|item| &*item.text).collect::<Vec<_>>().join(" ")
    }
}

/// Returns the cube that most members with one cube belong to.
fn main_cube(vocabulary: &Vocabulary, items: &[Item]) -> Option<Arc<str>> {
    let mut counts: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for item in items {
        let ItemKind::Member(candidates) = &item.kind else { continue };
        let members = &candidates.members;
        let mut cubes: Vec<&Arc<str>> =
            members.iter().filter_map(|index| vocabulary.entry(*index).cube.as_ref()).collect();
        cubes.dedup();
        // Values decide before dimensions, which other cubes share.
        let is_value = |index: &usize| vocabulary.entry(*index).kind.is_value();
        let weight = if members.iter().all(is_value) { 10 } else { 1 };
        if let [only] = cubes[..] {
            *counts.entry(Arc::clone(only)).or_default() += weight;
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(cube, _)| cube)
}

/// Returns the length of a range in words, such as `1 month` for `this month`.
fn length(words: &str) -> Option<String> {
    if let Some(rest) = words.strip_prefix("this ").or_else(|| words.strip_prefix("last ")) {
        let counted = rest.starts_with(|c: char| c.is_ascii_digit());
        return Some(if counted { rest.to_owned() } else { format!("1 {rest}") });
    }
    match (words, words.len()) {
        ("today" | "yesterday", _) => Some("1 day".to_owned()),
        (_, 4) => Some("1 year".to_owned()),
        (_, 7) if words.contains('Q') => Some("1 quarter".to_owned()),
        (_, 7) => Some("1 month".to_owned()),
        (_, 10) => Some("1 day".to_owned()),
        _ => None,
    }
}

/// Converts a number into the unit of a member. `None`: the member's unit is unknown.
fn converted((value, unit): &(DraftValue, Option<Unit>), of: Option<Unit>) -> Option<DraftValue> {
    let (DraftValue::Number(number), Some(unit)) = (value, unit) else { return Some(value.clone()) };
    let seconds = |unit: Unit| match unit {
        Unit::Seconds => Some(1.0),
        Unit::Minutes => Some(60.0),
        Unit::Hours => Some(3_600.0),
        Unit::Days => Some(86_400.0),
        Unit::Other => None,
    };
    Some(DraftValue::Number(number * seconds(*unit)? / seconds(of?)?))
}

fn shown(value: &DraftValue) -> String {
    match value {
        DraftValue::Text(text) => text.to_string(),
        DraftValue::Number(number) => number.to_string(),
        DraftValue::Boolean(value) => value.to_string(),
    }
}
