//! Gives each item its role: value, group, condition, time, order.
//!
//! In: items. Out: the draft, with the meaning of each part and the questions back to the caller. This is one file,
//! because every rule reads and changes the state of the reader. `items` splits the words into items.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::items::{Candidates, Item, ItemKind, spelled};
use crate::draft::{
    Clarification, Comparison, Draft, DraftFilter, DraftGroup, DraftOrder, DraftRange, DraftValue, Interpretation,
    Piece, Unit,
};
use crate::language::{Direction, Meaning};
use crate::members::{KnownValue, KnownValues, MemberEntry, MemberKind, Vocabulary};
use crate::times;

/// The largest number of choices of a clarification.
const MAX_CHOICES: usize = 8;
/// The largest number of values in a message.
const MAX_VALUES: usize = 5;
/// The largest number of rows of a ranking.
const MAX_ROWS: f64 = 10_000.0;
/// The certainty of a value that could not be looked up because its dimension is not searched.
const CERTAINTY_OF_GUESS: f64 = 0.6;
/// The certainty of a value if the question contains only its first words.
const CERTAINTY_OF_BEGINNING: f64 = 0.8;

/// Gives items their roles.
pub(super) struct Reader<'r> {
    vocabulary: &'r Vocabulary,
    values: &'r KnownValues,
    items: Vec<Item>,
    draft: Draft,
    pieces: Vec<Piece>,
    /// The other members that the last picked item could mean.
    alternatives: Vec<Arc<str>>,
    clarifications: Vec<Clarification>,
    certainties: Vec<f64>,
    /// The cube that most items belong to, among the items whose members all have the same cube.
    main_cube: Option<Arc<str>>,
    state: State,
}

/// The words that were read and apply to a later member.
#[derive(Debug, Default)]
struct State {
    /// True after a word such as `by`, as long as the list of groups continues.
    groups: bool,
    /// True after `which`: the next member is a dimension.
    is_which: bool,
    is_negated: bool,
    /// True after `are`: the next member may be a boolean dimension.
    is_predicate: bool,
    /// The direction of `top` (true) or `bottom` (false). The number of rows is in the draft.
    rank: Option<bool>,
    sorts: bool,
    /// The index of the piece that orders the rows.
    order_piece: Option<usize>,
    compares: bool,
    /// True after `compare`: the second time is the comparison period.
    compares_times: bool,
    ranges: Vec<DraftRange>,
    /// The texts of the conditions on measures.
    conditions_of_values: Vec<String>,
    /// The cube that was named. Its rows are counted if the question names no measure.
    cube: Option<usize>,
}

/// The role for which a member is picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Value,
    Group,
    Operand,
    Any,
}

impl<'r> Reader<'r> {
    pub(super) fn new(vocabulary: &'r Vocabulary, values: &'r KnownValues, items: Vec<Item>) -> Self {
        let main_cube = main_cube(vocabulary, &items);
        Reader {
            vocabulary,
            values,
            items,
            draft: Draft::default(),
            pieces: Vec::new(),
            alternatives: Vec::new(),
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

    /// Reads the items at a place. Returns the number of items that it read.
    fn item(&mut self, at: usize) -> usize {
        let item = self.items[at].clone();
        match item.kind {
            ItemKind::Word(meaning) => self.word(at, &item.text, meaning),
            ItemKind::Step(step, is_group) => {
                self.state.groups = is_group;
                self.step(&item.text, step)
            }
            ItemKind::Time(range) => self.time(&item.text, range),
            // `the 5 carriers with the most flights`
            ItemKind::Number(count, None) if is_count(count) && self.counts_rows(at) => {
                self.draft.limit = Some(count as u64);
                self.state.is_which = true;
                self.piece(&item.text, format!("{count} rows"), 1.0)
            }
            ItemKind::Number(number, None)
                if !self.draft.values.is_empty() && self.is_before(at, MemberKind::Number) =>
            {
                self.number_of(at, number)
            }
            ItemKind::Number(_, None) if self.is_before(at, MemberKind::Text) => self.no_count(&item.text),
            ItemKind::Number(..) => {
                self.unclear(&item.text, format!("`{}` belongs to no member", item.text), Vec::new());
                1
            }
            ItemKind::Value(values) => self.known_value(at, &item.text, &values),
            ItemKind::Quoted | ItemKind::Unknown => self.value_alone(&item.text),
            ItemKind::Member(candidates) => self.member(at, &item.text, &candidates),
        }
    }

    /// Returns whether a number limits the rows: the next item may be a string dimension. If a value was selected
    /// before and the next item may also be a numeric dimension, the number is compared with this dimension instead.
    fn counts_rows(&self, at: usize) -> bool {
        let is_number_of_row = !self.draft.values.is_empty() && self.is_before(at, MemberKind::Number);
        self.is_before(at, MemberKind::Text) && !is_number_of_row
    }

    /// Returns whether the next item may be a member of a kind.
    fn is_before(&self, at: usize, kind: MemberKind) -> bool {
        let Some(ItemKind::Member(candidates)) = self.items.get(at + 1).map(|item| &item.kind) else { return false };
        candidates.members.iter().any(|index| self.vocabulary.entry(*index).kind == kind)
    }

    /// Reads a number before a numeric dimension, as in `planes with 2 engines`. Returns the number of items read.
    fn number_of(&mut self, at: usize, number: f64) -> usize {
        let Some(Item { text, kind: ItemKind::Member(candidates) }) = self.items.get(at + 1).cloned() else { return 1 };
        let is_number = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Number;
        let members = candidates.members.iter().copied().filter(is_number).collect();
        if let Some(index) = self.pick(&text, &Candidates { members, ..candidates }, Role::Operand) {
            self.compare((at, at + 2), index, None, false, &[(DraftValue::Number(number), None)], 1.0);
        }
        2
    }

    /// Asks the caller for a valid number of rows. Returns the number of items read.
    fn no_count(&mut self, text: &str) -> usize {
        self.unclear(text, format!("`{text}` is not a number of rows from 1 to {MAX_ROWS}"), Vec::new());
        1
    }

    fn step(&mut self, text: &str, step: &'static str) -> usize {
        // A second granularity is unclear, as in `by day of the week`.
        if let Some(other) = self.draft.granularity.filter(|other| *other != step) {
            let message = format!("a question has one step of time, but `{text}` follows `{other}`");
            self.unclear(text, message, Vec::new());
            return 1;
        }
        self.draft.granularity = Some(step);
        self.piece(text, format!("grouped by {step}"), 1.0)
    }

    fn word(&mut self, at: usize, text: &str, meaning: Meaning) -> usize {
        match meaning {
            Meaning::And | Meaning::Ignore | Meaning::From | Meaning::To => return 1,
            // The member after `are` may be a boolean dimension: `flights that were cancelled`.
            Meaning::Equals => self.state.is_predicate = true,
            Meaning::Rated => {
                self.state.rank = Some(true);
                self.state.groups = false;
                let message =
                    format!("`{text}` may be the largest or the smallest values; write `highest` or `lowest`");
                self.unclear(text, message, Vec::new());
            }
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
                // In `top 3 days`, the unit of the number is the granularity.
                if let Some(ItemKind::Number(_, Some(unit @ (Unit::Days | Unit::Hours)))) = &number {
                    self.draft.granularity = Some(if *unit == Unit::Days { "day" } else { "hour" });
                }
                if let Some(ItemKind::Number(count, None | Some(Unit::Days | Unit::Hours))) = number {
                    if !is_count(count) {
                        // The rest of the question is still read as a ranking.
                        self.draft.limit = Some(1);
                        return 1 + self.no_count(&self.text(at, at + 2));
                    }
                    self.draft.limit = Some(count as u64);
                    let text = format!("{text} {}", self.items[at + 1].text);
                    let end = if meaning == Meaning::Top { "largest" } else { "smallest" };
                    return 1 + self.piece(&text, format!("the {count} rows with the {end} values"), 1.0);
                }
                return self.piece(text, "ordered by the next measure".to_owned(), 1.0);
            }
            Meaning::Sort => self.state.sorts = true,
            Meaning::Rank => {
                self.state.sorts = true;
                self.state.rank = Some(true);
            }
            Meaning::Ascending | Meaning::Descending => {
                let is_descending = meaning == Meaning::Descending;
                if let Some(order) = &mut self.draft.order {
                    order.is_descending = is_descending;
                } else {
                    self.state.rank = Some(is_descending);
                }
            }
            Meaning::Versus => self.state.compares = true,
            Meaning::Compare => self.state.compares_times = true,
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
            // A unit of time can be the group: `top 5 days` and `which month`.
            _ => match times::unit(meaning) {
                Some(step) if self.state.is_which || self.state.groups || self.ranks_groups() => {
                    self.state.is_which = false;
                    return self.step(text, step);
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
        if let DraftRange::Between(Some(start), Some(end)) = &range
            && start > end
        {
            self.unclear(text, format!("`{text}` ends before it starts: {start} to {end}"), Vec::new());
            return 1;
        }
        let is_second = self.state.compares_times && !self.state.ranges.is_empty() && self.draft.compare.is_none();
        if std::mem::take(&mut self.state.compares) || is_second {
            self.draft.compare = Some(Comparison::Range(range));
            return self.piece(text, format!("compared with {meaning}"), 1.0);
        }
        self.state.ranges.push(range);
        self.piece(text, meaning, 1.0)
    }

    /// Reads a member with the condition after it, or else as a value, a group or a boolean dimension.
    fn member(&mut self, at: usize, text: &str, candidates: &Candidates) -> usize {
        if let Some(length) = self.condition(at, text, candidates) {
            return length;
        }
        let in_groups = self.state.groups && self.continues_groups(at);
        let role = match (in_groups, self.state.is_which, self.state.rank) {
            _ if self.state.sorts => Role::Operand,
            // A ranked measure, as in `top 5 carriers by flights` and `most flights`.
            (true, _, Some(_)) => Role::Value,
            (true, ..) => Role::Group,
            (_, true, None) => Role::Group,
            (_, _, Some(_)) if self.ranks_groups() => Role::Group,
            (_, _, Some(_)) => Role::Value,
            // A group whose measure follows, as in `carriers with more than 1000 flights`.
            _ if self.draft.values.is_empty() && self.draft.groups.is_empty() && self.names_groups(at, candidates) => {
                Role::Group
            }
            _ => Role::Any,
        };
        if role == Role::Any && self.is_context(at, candidates) {
            return self.piece(text, "named once more".to_owned(), candidates.certainty);
        }
        let is_which = std::mem::take(&mut self.state.is_which);
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
                self.unclear(
                    text,
                    format!("measure `{name}` follows another one; write `and` between them"),
                    Vec::new(),
                );
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
                self.add_value(&name);
                if sorts {
                    return self.ordered_by(text, name, certainty);
                }
                if let Some(is_descending) = self.state.rank.take() {
                    self.draft.order = Some(DraftOrder { member: Arc::clone(&name), is_descending });
                }
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
                let message = format!(
                    "write the value of `{name}` to exclude, or `{text} is missing` for the rows without a value"
                );
                self.unclear(text, message, Vec::new());
                1
            }
            _ if std::mem::take(&mut self.state.sorts) => self.ordered_by(text, name, certainty),
            // `departure delay by carrier` leaves open whether the sum or the average is meant.
            MemberKind::Number if role == Role::Any && !in_groups => {
                let choices = self.measures_of(index);
                let message = format!("`{name}` is a number of each row; choose a measure, or write `by` before it");
                self.unclear(text, message, choices);
                1
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

    /// Orders the rows by a member. The direction may follow, so `finish` adds it to the meaning.
    fn ordered_by(&mut self, text: &str, name: Arc<str>, certainty: f64) -> usize {
        let is_descending = self.state.rank.take().unwrap_or(false);
        self.state.order_piece = Some(self.pieces.len());
        let meaning = format!("ordered by {name}");
        self.draft.order = Some(DraftOrder { member: name, is_descending });
        self.piece(text, meaning, certainty)
    }

    /// Reads a condition: a member, a comparison and its values. Returns the number of items, or `None` if the member
    /// has no condition.
    fn condition(&mut self, at: usize, text: &str, candidates: &Candidates) -> Option<usize> {
        // In `carriers with more than 1000 flights`, the number belongs to the member after it.
        let is_number = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Number;
        if !candidates.members.iter().any(is_number) && self.compares_next_member(at) {
            return None;
        }
        let mut next = at + 1;
        let mut is_negated = self.state.is_negated;
        let mut operator = None;
        // True after a word that announces a value: `is`, `except`.
        let mut is_announced = is_negated;
        while let Some(ItemKind::Word(meaning)) = self.items.get(next).map(|item| &item.kind) {
            match meaning {
                Meaning::Ignore => {}
                Meaning::Equals => is_announced = true,
                Meaning::Not => (is_negated, is_announced) = (true, true),
                Meaning::Missing => {
                    let index = self.pick(text, candidates, Role::Operand)?;
                    let name = Arc::clone(&self.vocabulary.entry(index).name);
                    let (operator, state) = if is_negated { ("set", "not missing") } else { ("notSet", "missing") };
                    self.filter(&name, operator, Vec::new());
                    let whole = self.text(at, next + 1);
                    self.piece(&whole, format!("only rows where {name} is {state}"), candidates.certainty);
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
        let (mut values, mut length) = self.values(next, operator == Some(Meaning::Between));
        if values.is_empty() {
            return None;
        }
        // The comparison may follow the number: `90 minutes or more`.
        if operator.is_none()
            && let Some(ItemKind::Word(meaning @ (Meaning::AtLeast | Meaning::AtMost))) =
                self.items.get(next + length).map(|item| &item.kind)
            && !matches!(self.items.get(next + length + 1).map(|item| &item.kind), Some(ItemKind::Number(..)))
        {
            operator = Some(*meaning);
            length += 1;
        }
        // A value directly after a member belongs to it only if no other rule explains the value.
        let wants_text = values.iter().any(|(value, _)| matches!(value, DraftValue::Text(_)));
        if operator.is_none() && !wants_text && next == at + 1 && !candidates.members.iter().any(is_number) {
            return None;
        }
        let fits = |kind: MemberKind| match (wants_text, operator) {
            (true, _) => kind == MemberKind::Text,
            (false, Some(_)) => matches!(kind, MemberKind::Number | MemberKind::Measure | MemberKind::Metric),
            (false, None) => kind == MemberKind::Number,
        };
        let mut members: Vec<usize> =
            candidates.members.iter().copied().filter(|member| fits(self.vocabulary.entry(*member).kind)).collect();
        if wants_text && operator.is_none() {
            let is_adjacent = next == at + 1;
            members.retain(|member| self.may_have_value(*member, next, is_adjacent, is_announced));
        }
        // In `flights over 2000 miles`, the number belongs to a member with this unit.
        if let Some((_, Some(unit))) = values.first()
            && !members.iter().any(|member| is_number(member) || self.has_unit(*member, unit))
        {
            return None;
        }
        if members.is_empty() {
            return None;
        }
        let index = self.pick(text, &Candidates { members, ..candidates.clone() }, Role::Any)?;
        let end = next + length;
        // In `by carrier except UA` and `by carrier for UA and DL`, the member is a group as well.
        let entry = self.vocabulary.entry(index);
        let is_listed = self.continues_groups(at) && next > at + 1;
        if self.state.groups && (is_negated || is_listed) && entry.kind == MemberKind::Text {
            self.group(&Arc::clone(&entry.name));
        }
        let mut certainty: f64 = 1.0;
        if wants_text {
            // One item lies between two values: `and`, `or` or a comma.
            for (number, (value, _)) in values.iter_mut().enumerate() {
                match self.value_of(index, next + 2 * number, operator.is_some()) {
                    Ok((found, of_value)) => {
                        *value = found;
                        certainty = certainty.min(of_value);
                    }
                    Err(message) => {
                        let text = self.items[next + 2 * number].text.clone();
                        let choices = self.text_dimensions();
                        self.unclear(&text, message, choices);
                        self.state.is_negated = false;
                        return Some(end - at);
                    }
                }
            }
        }
        self.compare((at, end), index, operator, is_negated, &values, certainty);
        self.state.is_negated = false;
        Some(end - at)
    }

    /// Returns whether the item at a place may be a value of a member. An unknown word may be a value in two cases.
    /// Either another word announces it, as in `carrier is UA`, or it directly follows the member and looks like a
    /// name, as in `carrier UA`.
    fn may_have_value(&self, member: usize, at: usize, is_adjacent: bool, is_announced: bool) -> bool {
        let Some(item) = self.items.get(at) else { return false };
        let is_own = |known: &KnownValue| known.member == self.vocabulary.entry(member).name;
        match &item.kind {
            ItemKind::Value(values) => is_announced || values.iter().any(is_own),
            ItemKind::Quoted => is_announced || is_adjacent,
            ItemKind::Unknown => {
                let is_name = |c: char| c.is_uppercase() || c.is_numeric();
                is_announced || (is_adjacent && item.text.contains(is_name))
            }
            _ => true,
        }
    }

    /// Returns the value of a member at a place, and its certainty.
    fn value_of(&self, member: usize, at: usize, has_operator: bool) -> Result<(DraftValue, f64), String> {
        let (item, name) = (&self.items[at], &self.vocabulary.entry(member).name);
        let as_written = (DraftValue::Text(item.text.as_str().into()), CERTAINTY_OF_GUESS);
        if has_operator {
            return Ok((as_written.0, 1.0));
        }
        let no_value = || Err(format!("`{}` is unknown: `{name}` has no such value", item.text));
        if let ItemKind::Value(values) = &item.kind {
            let own: Vec<&KnownValue> = values.iter().filter(|known| known.member == *name).collect();
            return match own[..] {
                [known] => Ok((DraftValue::Text(Arc::clone(&known.value)), certainty_of(&item.text, &known.value))),
                [] if self.is_searched(name, &item.text) => no_value(),
                [] => Ok(as_written),
                _ => Err(several_values(&item.text, &own)),
            };
        }
        match self.is_searched(name, &item.text) {
            true => no_value(),
            false => Ok(as_written),
        }
    }

    /// Returns whether all values of a dimension that contain a word were looked up.
    fn is_searched(&self, member: &Arc<str>, word: &str) -> bool {
        self.values
            .searched
            .iter()
            .any(|searched| searched.member == *member && spelled(&searched.word) == spelled(word))
    }

    fn has_unit(&self, member: usize, unit: &Unit) -> bool {
        self.vocabulary.entry(member).unit.as_ref().is_some_and(|own| own.fits(unit))
    }

    /// Reads a comparison that no member precedes, as in `more than 1000 flights` and `over 2000 miles`.
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
            // Without groups, the number of each row is compared, as in `planes with more than 200 seats`.
            let members = match members.iter().copied().filter(is_dimension).collect::<Vec<usize>>() {
                dimensions if !dimensions.is_empty() && self.draft.groups.is_empty() => dimensions,
                _ => members,
            };
            if !members.is_empty() {
                let candidates = Candidates { members, ..candidates.clone() };
                if let Some(index) = self.pick(name, &candidates, Role::Any) {
                    let entry = self.vocabulary.entry(index);
                    if entry.kind.is_value() {
                        self.add_value(&Arc::clone(&entry.name));
                    }
                    self.compare((at, end + 1), index, Some(meaning), false, &values, 1.0);
                }
                return end + 1 - at;
            }
        }
        // `flights over 2000 miles` compares the numeric dimension that has this unit.
        if let Some((_, Some(unit))) = values.first() {
            let of_rows = self.vocabulary.entries().filter(|(_, entry)| entry.kind == MemberKind::Number);
            let of_cube = of_rows.filter(|(_, entry)| self.is_of_main_cube(entry)).map(|(index, _)| index);
            let members: Vec<usize> = of_cube.filter(|index| self.has_unit(*index, unit)).collect();
            if !members.is_empty() {
                let whole = self.text(at, end);
                let candidates = Candidates { members, by_synonym: Vec::new(), certainty: 1.0 };
                if let Some(index) = self.pick(&whole, &candidates, Role::Operand) {
                    self.compare((at, end), index, Some(meaning), false, &values, 1.0);
                }
                return end - at;
            }
        }
        let whole = self.text(at, end.max(at + 1));
        let message = format!("`{whole}` compares no member");
        let choices = self.choices_of(MemberKind::Number);
        self.unclear(text, message, choices);
        end - at
    }

    fn compare(
        &mut self,
        (start, end): (usize, usize),
        index: usize,
        operator: Option<Meaning>,
        is_negated: bool,
        values: &[(DraftValue, Option<Unit>)],
        certainty: f64,
    ) {
        let entry = self.vocabulary.entry(index);
        let name = Arc::clone(&entry.name);
        let whole = self.text(start, end);
        let Some(values) = values.iter().map(|value| converted(value, entry.unit.as_ref())).collect::<Option<Vec<_>>>()
        else {
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
        if entry.kind.is_value() {
            self.state.conditions_of_values.push(whole.clone());
        }
        let shown: Vec<String> = values.iter().map(shown).collect();
        self.filter(&name, operator, values);
        self.piece(&whole, format!("only where {name} {operator} {}", shown.join(", ")), certainty);
    }

    /// Returns the values at a place, and the number of items. The values of a list are separated by `and`, `or` or
    /// commas.
    fn values(&self, at: usize, is_between: bool) -> (Vec<(DraftValue, Option<Unit>)>, usize) {
        let value = |item: &Item| match &item.kind {
            ItemKind::Number(number, unit) => Some((DraftValue::Number(*number), unit.clone())),
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
        // The unit may follow only the second number: `between 1 and 2 hours`.
        if is_between && let [(_, first), (_, second)] = &mut values[..] {
            *first = first.take().or_else(|| second.clone());
        }
        (values, next - at)
    }

    /// Reads values whose dimension was looked up, such as `JFK or EWR`. Returns the number of items read.
    fn known_value(&mut self, at: usize, text: &str, values: &[KnownValue]) -> usize {
        let of_main = |known: &&KnownValue| {
            self.vocabulary.entries().any(|(_, entry)| entry.name == known.member && self.is_of_main_cube(entry))
        };
        let of_main_cube: Vec<&KnownValue> = values.iter().filter(of_main).collect();
        let candidates = if of_main_cube.is_empty() { values.iter().collect() } else { of_main_cube };
        let candidates = self.directed(at, candidates);
        // In `by origin except EWR`, the value belongs to the dimension that is grouped by.
        let of_groups: Vec<&KnownValue> =
            candidates.iter().copied().filter(|known| self.is_group(&known.member)).collect();
        let candidates = if of_groups.is_empty() { candidates } else { of_groups };
        // `flights to JFK` must not select the flights from JFK.
        if let [known] = candidates[..]
            && let (Some(own), Some(wanted)) = (self.vocabulary.direction(&known.member), self.direction_before(at))
            && own != wanted
        {
            let message = format!("`{text}` is known as a value of `{}` only", known.member);
            self.unclear(text, message, vec![Arc::clone(&known.member)]);
            return 1;
        }
        let [first] = candidates[..] else {
            if candidates.iter().all(|known| known.member == candidates[0].member) {
                let choices = vec![Arc::clone(&candidates[0].member)];
                self.unclear(text, several_values(text, &candidates), choices);
                return 1;
            }
            let choices = candidates.iter().map(|known| Arc::clone(&known.member)).take(MAX_CHOICES).collect();
            self.unclear(text, format!("`{text}` is a value of several dimensions"), choices);
            return 1;
        };
        let certainty = certainty_of(text, &first.value);
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
        self.piece(&whole, format!("only where {member} {operator} {}", shown.join(", ")), certainty);
        end - at
    }

    /// Returns the direction that the word `from` or `to` before a value expresses.
    fn direction_before(&self, at: usize) -> Option<Direction> {
        match self.items.get(at.checked_sub(1)?)?.kind {
            ItemKind::Word(Meaning::From) => Some(Direction::From),
            ItemKind::Word(Meaning::To) => Some(Direction::To),
            _ => None,
        }
    }

    /// Returns the values whose dimension has the direction of a preceding `from` or `to`. Returns all values if
    /// neither word precedes.
    fn directed<'k>(&self, at: usize, values: Vec<&'k KnownValue>) -> Vec<&'k KnownValue> {
        let Some(wanted) = self.direction_before(at) else { return values };
        let is_directed = |known: &&KnownValue| self.vocabulary.direction(&known.member) == Some(wanted);
        let directed: Vec<&KnownValue> = values.iter().copied().filter(is_directed).collect();
        if directed.is_empty() { values } else { directed }
    }

    /// Asks the caller for the dimension of a value.
    fn value_alone(&mut self, text: &str) -> usize {
        let choices = self.text_dimensions();
        let message = match choices.is_empty() {
            true => format!("`{text}` is unknown"),
            false => format!("`{text}` is unknown; if it is a value, write its dimension before it"),
        };
        self.unclear(text, message, choices);
        1
    }

    /// Returns the measures whose names contain the name of a dimension, and the dimension itself.
    fn measures_of(&self, index: usize) -> Vec<Arc<str>> {
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

    fn text_dimensions(&self) -> Vec<Arc<str>> {
        self.choices_of(MemberKind::Text)
    }

    /// Returns the members of a kind in the main cube.
    fn choices_of(&self, kind: MemberKind) -> Vec<Arc<str>> {
        let entries = self.vocabulary.entries().map(|(_, entry)| entry).filter(|entry| entry.kind == kind);
        let of_cube = entries.filter(|entry| self.is_of_main_cube(entry));
        of_cube.map(|entry| Arc::clone(&entry.name)).take(MAX_CHOICES).collect()
    }

    /// Picks one member from the candidates. If none fits the role, or several fit, asks the caller and returns `None`.
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
        let fitting: Vec<usize> = candidates.members.iter().copied().filter(fits).collect();
        let mut members = fitting.clone();
        if members.is_empty() {
            let choices = self.names(&candidates.members);
            let wanted = if role == Role::Group { "dimension" } else { "measure" };
            self.unclear(text, format!("`{text}` is not the name of a {wanted}"), choices);
            return None;
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
            let has_values = role == Role::Any && !self.draft.values.is_empty();
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

    fn names(&self, members: &[usize]) -> Vec<Arc<str>> {
        members.iter().map(|index| Arc::clone(&self.vocabulary.entry(*index).name)).take(MAX_CHOICES).collect()
    }

    fn is_of_main_cube(&self, entry: &MemberEntry) -> bool {
        self.main_cube.is_some() && entry.cube == self.main_cube
    }

    /// Returns whether the item before a member introduces a group or continues a list of groups. Filler words between
    /// them are skipped.
    fn continues_groups(&self, at: usize) -> bool {
        let before = self.items[..at].iter().rev().map(|item| &item.kind);
        let mut before = before.skip_while(|kind| matches!(kind, ItemKind::Word(Meaning::Ignore | Meaning::HowMany)));
        matches!(before.next(), Some(ItemKind::Word(Meaning::Group | Meaning::And) | ItemKind::Step(..)))
    }

    /// Returns whether the next member is the group that `top 5` ranks.
    fn ranks_groups(&self) -> bool {
        self.state.rank.is_some()
            && self.draft.limit.is_some()
            && self.draft.groups.is_empty()
            && self.draft.values.is_empty()
            && self.draft.granularity.is_none()
    }

    /// Returns whether a member names the groups of a comparison or ranking that follows it.
    fn names_groups(&self, at: usize, candidates: &Candidates) -> bool {
        let is_text = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Text;
        let compares = |item: &Item| {
            use Meaning::{AtLeast, AtMost, Bottom, Less, More, Rank, Sort, Top};
            matches!(item.kind, ItemKind::Word(More | AtLeast | Less | AtMost | Top | Bottom | Rank | Sort))
        };
        let mut behind = self.items[at + 1..].iter().skip_while(|item| item.kind == ItemKind::Word(Meaning::Ignore));
        candidates.members.iter().any(is_text) && behind.next().is_some_and(compares)
    }

    /// Returns the boolean dimension of the main cube whose name contains a word, if there is exactly one.
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

    /// Returns whether the comparison after a member has a member of its own, as in `more than 1000 flights`.
    fn compares_next_member(&self, at: usize) -> bool {
        let is_filler = |item: &&Item| item.kind == ItemKind::Word(Meaning::Ignore);
        let comparison = at + 1 + self.items[at + 1..].iter().take_while(is_filler).count();
        use Meaning::{AtLeast, AtMost, Less, More};
        let compares = |item: &Item| matches!(item.kind, ItemKind::Word(More | AtLeast | Less | AtMost));
        if !self.items.get(comparison).is_some_and(compares) {
            return false;
        }
        let (values, length) = self.values(comparison + 1, false);
        let next = self.items.get(comparison + 1 + length).map(|item| &item.kind);
        let is_compared = |index: &usize| {
            let kind = self.vocabulary.entry(*index).kind;
            matches!(kind, MemberKind::Number | MemberKind::Measure | MemberKind::Metric)
        };
        !values.is_empty() && matches!(next, Some(ItemKind::Member(found)) if found.members.iter().any(is_compared))
    }

    /// Returns whether a member only repeats the cube of a measure that is already selected, as in
    /// `distance of flights`.
    fn is_context(&self, at: usize, candidates: &Candidates) -> bool {
        let is_cube = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Cube;
        candidates.members.iter().any(is_cube) && !self.draft.values.is_empty() && !self.is_listed(at)
    }

    /// Returns whether a measure describes another measure before it, as in `delay by carrier of late flights`.
    fn belongs_to_measure(&self, at: usize) -> bool {
        !self.draft.values.is_empty() && !self.draft.groups.is_empty() && !self.is_listed(at)
    }

    fn is_listed(&self, at: usize) -> bool {
        let before = self.items[..at].iter().rev().map(|item| &item.kind);
        let mut before = before.skip_while(|kind| matches!(kind, ItemKind::Word(Meaning::Ignore)));
        matches!(before.next(), Some(ItemKind::Word(Meaning::And | Meaning::Versus)))
    }

    /// Completes the draft with the count of rows, the order of a ranking and the range.
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
        self.complete_order_piece();
        let mut ranges = std::mem::take(&mut self.state.ranges).into_iter();
        self.draft.range = ranges.next();
        if ranges.next().is_some() {
            self.unclear("", "the question has several times".to_owned(), Vec::new());
        }
        self.complete_comparison();
        // `flights over 60` would compare the total with a number.
        if self.draft.groups.is_empty() && self.draft.granularity.is_none() {
            for text in std::mem::take(&mut self.state.conditions_of_values) {
                let choices = self.choices_of(MemberKind::Number);
                self.unclear(&text, format!("`{text}` compares a total; name a group or a dimension"), choices);
            }
        }
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

    /// Returns the measure that counts rows, for a question that names no measure.
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

    /// Adds the direction to the meaning of the part that orders the rows.
    fn complete_order_piece(&mut self) {
        let piece = self.state.order_piece.and_then(|at| self.pieces.get_mut(at));
        if let (Some(piece), Some(order)) = (piece, &self.draft.order) {
            piece.meaning.push_str(if order.is_descending { ", descending" } else { ", ascending" });
        }
    }

    fn piece(&mut self, text: &str, meaning: String, certainty: f64) -> usize {
        let alternatives = std::mem::take(&mut self.alternatives);
        self.pieces.push(Piece { text: text.to_owned(), meaning, alternatives });
        self.certainties.push(certainty);
        1
    }

    fn unclear(&mut self, text: &str, message: String, choices: Vec<Arc<str>>) {
        self.alternatives.clear();
        self.clarifications.push(Clarification { text: text.to_owned(), message, choices });
        self.certainties.push(0.0);
    }

    fn text(&self, start: usize, end: usize) -> String {
        self.items[start..end].iter().map(|item| &*item.text).collect::<Vec<_>>().join(" ")
    }
}

/// Returns the cube that most items belong to, among the items whose members all have the same cube.
fn main_cube(vocabulary: &Vocabulary, items: &[Item]) -> Option<Arc<str>> {
    let mut counts: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for item in items {
        let ItemKind::Member(candidates) = &item.kind else { continue };
        let members = &candidates.members;
        let mut cubes: Vec<&Arc<str>> =
            members.iter().filter_map(|index| vocabulary.entry(*index).cube.as_ref()).collect();
        cubes.dedup();
        // Measures count more than dimensions, because cubes often have the same dimensions.
        let is_value = |index: &usize| vocabulary.entry(*index).kind.is_value();
        let weight = if members.iter().all(is_value) { 10 } else { 1 };
        if let [only] = cubes[..] {
            *counts.entry(Arc::clone(only)).or_default() += weight;
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(cube, _)| cube)
}

/// Returns the length of a range, such as `1 month` for `this month`.
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

/// Converts a number to the unit of a member. Returns `None` if the member's unit is unknown or of another kind.
fn converted((value, unit): &(DraftValue, Option<Unit>), of: Option<&Unit>) -> Option<DraftValue> {
    let (DraftValue::Number(number), Some(unit)) = (value, unit) else { return Some(value.clone()) };
    let of = of.filter(|of| of.fits(unit))?;
    Some(DraftValue::Number(match (unit.seconds(), of.seconds()) {
        (Some(from), Some(to)) => number * from / to,
        _ => *number,
    }))
}

fn is_count(number: f64) -> bool {
    (1.0..=MAX_ROWS).contains(&number) && number.fract() == 0.0
}

/// Returns the certainty of a value. It is lower if the question contains only the value's first words.
fn certainty_of(text: &str, value: &str) -> f64 {
    if spelled(text) == spelled(value) { 1.0 } else { CERTAINTY_OF_BEGINNING }
}

fn several_values(text: &str, values: &[&KnownValue]) -> String {
    let shown: Vec<String> = values.iter().take(MAX_VALUES).map(|known| format!("`{}`", known.value)).collect();
    format!("several values begin with `{text}`: {}", shown.join(", "))
}

fn shown(value: &DraftValue) -> String {
    match value {
        DraftValue::Text(text) => text.to_string(),
        DraftValue::Number(number) => number.to_string(),
        DraftValue::Boolean(value) => value.to_string(),
    }
}
