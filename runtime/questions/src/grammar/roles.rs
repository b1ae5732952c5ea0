//! Assigns a role to each item: value, group, condition, time, order.
//!
//! In: items. Out: the draft, with the meaning of each part and the questions back to the caller. The rules read and
//! change the state of one reader. Each file below has the rules for one kind of items; `finish` runs after the last
//! item.

mod absence;
mod agents;
mod alphabet;
mod alternatives;
mod answer_units;
mod asides;
mod choice;
mod choices;
mod comparisons;
mod conditions;
mod counts;
mod cube;
mod dated;
mod divided;
mod events;
mod extremes;
mod finish;
mod further;
mod hours;
mod idioms;
mod implied;
mod joins;
mod known_values;
mod lengths;
mod lookups;
mod members;
mod moves;
mod operands;
mod pairs;
mod particles;
mod placed;
mod presence;
mod ranking;
mod rate_units;
mod rates;
mod ratios;
mod routes;
mod shares;
mod spans;
mod sums;
mod things;
mod unit_comparisons;
mod value_lists;
mod words;

use std::sync::Arc;

use jiff::civil::Date;

use super::items::{Candidates, Context, Item, ItemKind, TimeItem};
use crate::draft::{
    Aggregation, Clarification, Comparison, Draft, DraftFilter, DraftGroup, DraftRange, DraftValue, Interpretation,
    Piece, Unit,
};
use crate::language::{Direction, Language, Meaning};
use crate::members::{KnownValues, Vocabulary};
use crate::spelling::spelled;
use crate::token::is_currency;

/// The largest number of choices of a clarification.
const MAX_CHOICES: usize = 8;
/// The largest number of values in a message.
const MAX_VALUES: usize = 5;
/// The largest number of rows of a ranking.
const MAX_ROWS: f64 = 10_000.0;
/// The certainty of a value that could not be looked up because its dimension is not searched.
const CERTAINTY_OF_GUESS: f64 = 0.6;
/// The certainty of a value if the question contains only a part of it.
const CERTAINTY_OF_PART_OF_VALUE: f64 = 0.8;

/// Assigns roles to items.
pub(super) struct Reader<'r> {
    vocabulary: &'r Vocabulary,
    values: &'r KnownValues,
    language: &'r Language,
    /// The date of the newest data, or today.
    newest: Date,
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

/// The words that have been read and apply to a later member.
#[derive(Debug, Default)]
struct State {
    /// True after a word such as `by`, as long as the list of groups continues.
    groups: bool,
    /// The direction of the next group, as after `from each`.
    group_direction: Option<Direction>,
    /// True after `which`: the next member is a dimension.
    is_which: bool,
    is_negated: bool,
    /// True after `are`: the next member may be a boolean dimension.
    is_predicate: bool,
    /// True if `and` joins the member to a measure before it.
    is_further_value: bool,
    /// The direction of `top` (true) or `bottom` (false). The number of rows is in the draft.
    rank: Option<bool>,
    sorts: bool,
    /// The word that orders the rows by names without naming a member, such as `alphabetically`.
    alphabetical: Option<String>,
    /// True after `rank`: the groups follow, and then `by` with the measure.
    ranks_things: bool,
    /// The index of the piece that orders the rows.
    order_piece: Option<usize>,
    compares: bool,
    /// The words that compare each period with the one before, such as `year over year`.
    over: Option<Over>,
    /// True after words such as `vs last year`.
    compares_last_year: bool,
    /// True if the time of the question depends on the date of the newest data.
    is_dated: bool,
    /// True after `compare`: the second time is the comparison period.
    compares_times: bool,
    ranges: Vec<TimeItem>,
    /// True if `or` joins times.
    has_alternative_times: bool,
    /// The aggregation that a word such as `average` requires of the next measure, and the word.
    aggregate: Option<(Aggregation, String)>,
    /// The adjective that ranks the rows.
    superlative: Option<Ranking>,
    /// The word `best` (true) or `worst` (false), whose direction depends on the measure.
    rated: Option<(bool, String)>,
    /// The direction of the measure whose name begins with the adjective, such as `slowest turnaround`.
    named_direction: Option<bool>,
    /// True after `worst first`: all rows are wanted.
    orders_all: bool,
    /// The text of the ranked group, if it is in the singular, as in `the best day`. The answer then has one row.
    single: Option<String>,
    /// The units that the question names for its answer.
    units: Vec<(String, Unit)>,
    /// The measures with conditions, and the texts of these conditions.
    conditions_of_values: Vec<(Arc<str>, String)>,
    /// The words that need a measure, such as `how much`.
    needs_measure: Option<NeededMeasure>,
    /// The groups without a word such as `by`, and their texts.
    bare_groups: Vec<(Arc<str>, String)>,
    /// The words that ask for a number, such as `how many`.
    counts: Option<String>,
    /// The words that ask for a number of different values that no measure counts, and the dimension.
    uncounted: Option<(String, String)>,
    /// The verb that needs a step of time or a comparison, such as `change`.
    change: Option<String>,
    /// The quality that the question asks for, as in `how old`.
    quality: Option<Ranking>,
    /// The text of the last word that ranks, such as `highest`.
    rank_text: String,
    /// True if the question asks which rows exist, so that its last group is ranked.
    is_which_group: bool,
    /// The last word of negation, and the word that excluded a value.
    negation: String,
    excluded: Option<String>,
    /// The first and the last day of the excluded range of time.
    excluded_days: Option<(Date, Date)>,
    /// The items that were read, with the parts of the draft that they added.
    steps: Vec<alternatives::Step>,
    /// Conditions of which one is enough. They are conditions of the draft until it is complete.
    alternatives: Vec<Vec<DraftFilter>>,
    /// The cube that was named. Its rows are counted if the question names no measure.
    cube: Option<usize>,
}

/// A word that needs a measure.
#[derive(Debug, Clone)]
struct NeededMeasure {
    text: String,
    /// True if a number of rows is also such a measure, as after `how did`.
    accepts_count: bool,
}

/// A comparison of each period with the one before.
#[derive(Debug, Clone, Copy)]
struct Over {
    unit: &'static str,
    /// The index of its piece.
    piece: usize,
}

/// An adjective that ranks the rows, such as `fastest`.
#[derive(Debug, Clone)]
struct Ranking {
    index: u16,
    text: String,
    /// The members with the adjective as their name.
    candidates: Option<Candidates>,
    /// True if the word only orders the rows, as in `fastest first`.
    is_first: bool,
    /// True if the question asks for the quality, as in `how late`.
    is_asked: bool,
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
    pub(super) fn new(context: Context<'r>, items: Vec<Item>) -> Self {
        let Context { vocabulary, values, language, newest } = context;
        let main_cube = cube::main_cube(vocabulary, &items, language);
        // `on average` after the last member belongs to the members before it.
        let is_member = |item: &Item| matches!(item.kind, ItemKind::Member(_));
        let last_member = items.iter().rposition(is_member).unwrap_or(0);
        let behind = items.iter().skip(last_member).find_map(|item| match item.kind {
            ItemKind::Word(Meaning::Aggregate(aggregation)) => Some((aggregation, item.text.clone())),
            _ => None,
        });
        Reader {
            vocabulary,
            values,
            language,
            newest,
            items,
            draft: Draft::default(),
            pieces: Vec::new(),
            alternatives: Vec::new(),
            clarifications: Vec::new(),
            certainties: Vec::new(),
            main_cube,
            state: State { aggregate: behind, ..State::default() },
        }
    }

    pub(super) fn read(mut self) -> Interpretation {
        let mut at = 0;
        while at < self.items.len() {
            let before = self.progress();
            let end = (at + self.item(at).max(1)).min(self.items.len());
            self.note_step(at, end, &before);
            at = end;
        }
        self.finish();
        self.complete_choices();
        let sure: f64 = self.certainties.iter().sum();
        let count = self.certainties.len().max(1) as f64;
        let doubt = if self.clarifications.is_empty() { 1.0 } else { 0.5 };
        let confidence = (sure / count * doubt * 100.0).round() / 100.0;
        let is_unknown = |item: &&Item| matches!(item.kind, ItemKind::Unknown | ItemKind::Quoted);
        let unknown = self.items.iter().filter(is_unknown).map(|item| item.text.clone()).collect();
        let joining = if self.items.iter().any(|item| is_unknown(&item)) { self.joining_cubes() } else { Vec::new() };
        let is_dated = |item: &Item| matches!(&item.kind, ItemKind::Time(time) if time.is_dated);
        let cube = self.cube_of_values().or_else(|| self.cube_of_unknown_values()).or_else(|| self.known_main_cube());
        Interpretation {
            lookups: lookups::lookups(&self.items, self.vocabulary, self.language),
            is_dated: self.state.is_dated || self.items.iter().any(is_dated),
            draft: self.draft,
            pieces: self.pieces,
            confidence,
            clarifications: self.clarifications,
            unknown,
            cube,
            joining,
        }
    }

    /// Returns the cube of the measures, if the question is about one cube that the main cube does not reach.
    fn cube_of_values(&self) -> Option<Arc<str>> {
        let of = |name: &Arc<str>| self.vocabulary.index_of(name).map(|index| self.vocabulary.entry(index));
        let mut cubes = self.draft.values.iter().map(|name| of(name)?.cube.clone());
        let first = cubes.next()??;
        let main = self.main_cube.as_ref()?;
        let is_only = cubes.all(|cube| cube.as_ref() == Some(&first));
        (is_only && !self.vocabulary.is_joined(main, &first)).then_some(first)
    }

    /// Returns the cube in which unknown words are looked up, if the question has no measure and its only named cube
    /// has none of these words: in `which airlines flew to Denver`, the flights join airlines and airports.
    fn cube_of_unknown_values(&self) -> Option<Arc<str>> {
        let is_unknown = |item: &Item| matches!(item.kind, ItemKind::Unknown | ItemKind::Quoted);
        let is_open = self.draft.values.is_empty() && self.values.searched.is_empty();
        let main = self.main_cube.as_ref().filter(|_| is_open && self.items.iter().any(is_unknown))?;
        cube::joining_of(self.vocabulary, main)
    }

    /// Returns the main cube, unless unknown words may be values of one of several cubes that join it: in
    /// `scans per doctor`, all values are looked up.
    fn known_main_cube(&self) -> Option<Arc<str>> {
        let is_unknown = |item: &Item| matches!(item.kind, ItemKind::Unknown | ItemKind::Quoted);
        let is_open = self.draft.values.is_empty() && self.values.searched.is_empty();
        let main = self.main_cube.as_ref()?;
        let is_joined = is_open && self.items.iter().any(is_unknown) && self.counts_of_joining(main).len() > 1;
        (!is_joined).then(|| Arc::clone(main))
    }

    /// Reads the items at a place. Returns the number of items that it read.
    fn item(&mut self, at: usize) -> usize {
        let found = self
            .paired(at)
            .or_else(|| self.verb_of_place(at))
            .or_else(|| self.verb_with_particle(at))
            .or_else(|| self.hour_condition(at));
        let found = found.or_else(|| self.route(at)).or_else(|| self.counted_back(at));
        let found = found.or_else(|| self.dated_event(at)).or_else(|| self.divided_name(at));
        let found = found.or_else(|| self.unit_of_rate(at));
        if let Some(length) = found {
            return length;
        }
        let item = self.items[at].clone();
        match item.kind {
            ItemKind::Word(meaning) => self.word(at, &item.text, meaning),
            ItemKind::Superlative(index, is_first, candidates) => {
                self.superlative(at, Ranking { index, text: item.text, candidates, is_first, is_asked: false })
            }
            ItemKind::Step(step, is_group) => {
                self.state.groups = is_group;
                self.step_or_hour(at, &item.text, step)
            }
            ItemKind::Time(time) => self.time_at(at, &item.text, time),
            ItemKind::Number(number, ref unit) => self.number(at, &item.text, number, unit.as_ref()),
            ItemKind::Value(values) => self.known_value(at, &item.text, &values),
            ItemKind::Unknown if item.text.chars().all(is_currency) => {
                let message = format!("no member has the unit `{}`; leave the sign out", item.text);
                self.unclear(&item.text, message, Vec::new());
                1
            }
            ItemKind::Unknown if self.joins_condition(at) => 1,
            ItemKind::Quoted | ItemKind::Unknown => self.value_alone(at, &item.text),
            ItemKind::Member(candidates) => self.member(at, &item.text, &candidates),
        }
    }

    fn is_number(&self, at: usize) -> bool {
        matches!(self.items.get(at).map(|item| &item.kind), Some(ItemKind::Number(..)))
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

fn is_count(number: f64) -> bool {
    (1.0..=MAX_ROWS).contains(&number) && number.fract() == 0.0
}

fn shown(value: &DraftValue) -> String {
    match value {
        DraftValue::Text(text) => text.to_string(),
        DraftValue::Number(number) => number.to_string(),
        DraftValue::Boolean(value) => value.to_string(),
    }
}

/// Returns the certainty of a value. It is lower if the question contains only a part of the value.
fn certainty_of(text: &str, value: &str) -> f64 {
    if spelled(text) == spelled(value) { 1.0 } else { CERTAINTY_OF_PART_OF_VALUE }
}
