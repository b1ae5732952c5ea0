//! Looks up the words of a question among the values of dimensions, and the date of the newest data.
//!
//! In: an interpretation with words that may be values. Out: the values that the caller may see, with their numbers of
//! rows in the cube that the question is about. Words are compared with the stored lists of values that searches use.
//! If the caller has no list, or a list has only a part of the values, the lookup is a query of the caller. Policies
//! and limits apply to it; a lookup that is denied finds nothing. Not here: the choice of a value, which the grammar
//! makes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array as _, AsArray as _};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use jiff::civil::Date;
use terrane_compiler::Access;
use terrane_compiler::model::Cube;
use terrane_compiler::query::{Filter, MemberRef, OrderBy, QueryError, SemanticQuery, TimeDimension};
use terrane_compiler::types::{Operator, Value};
use terrane_questions::{Interpretation, KnownValue, KnownValues, Lookup, SearchedWord};

use super::{convert, vocabulary};
use crate::blocking::over_rows;
use crate::catalog::Snapshot;
use crate::dimension_values::lists::{DimensionValues, SearchedDimension, ValueList, ValueLists};
use crate::dimension_values::lookup::{self, MAX_DIMENSIONS, containing, equal, texts};
use crate::domain::RequestContext;
use crate::metadata;
use crate::query::{Answer, CacheControl, QueryRunError, QuerySession};

/// The longest time for which a question waits for stored lists of values.
const LIST_WAIT: Duration = Duration::from_secs(2);
/// The largest number of spellings that are looked up.
const MAX_SPELLINGS: usize = 16;
/// The largest number of values that one lookup returns.
const MAX_VALUES: u64 = 100;
/// The largest number of cubes whose newest rows are looked up, if the cube of the question is unknown.
const MAX_DATED_CUBES: usize = 8;
/// The largest number of values of one dimension whose rows are counted.
const MAX_COUNTED: usize = 20;

/// The part of a value that a spelling matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Any part, ignoring case.
    Any,
    /// The whole value, with its case.
    Whole,
}

/// The lookups of one question.
pub(super) struct Lookups<'l> {
    pub(super) session: &'l QuerySession<'l>,
    pub(super) access: &'l Access<'l>,
    pub(super) lists: &'l Arc<ValueLists>,
    /// The project to which `access` and the lists belong.
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) request: &'l RequestContext,
}

impl Lookups<'_> {
    /// Looks up the words of an interpretation among the values that a cube reaches, or all values if no cube is given.
    /// Adds those that are found, with their numbers of rows in the cube.
    ///
    /// # Errors
    /// The warehouse does not answer.
    pub(super) async fn add_values(
        &self,
        reading: &Interpretation,
        cube: Option<&str>,
        known: &mut KnownValues,
    ) -> Result<(), QueryRunError> {
        let whole: Vec<&str> = reading.lookups.iter().flat_map(|one| &one.spellings).map(String::as_str).collect();
        self.look_up(cube, &whole, Part::Any, known).await?;
        let is_found = |spelling: &String| {
            let lower = spelling.to_lowercase();
            known.values.iter().any(|value| value.value.to_lowercase().contains(&lower))
        };
        let unmatched = reading.lookups.iter().filter(|one| !one.spellings.iter().any(is_found));
        let parts: Vec<&str> = unmatched.flat_map(|one| &one.parts).map(String::as_str).collect();
        self.look_up(cube, &parts, Part::Any, known).await?;
        self.look_up_misspelled(reading, cube, known).await?;
        let words: Vec<&str> = reading.lookups.iter().flat_map(|one| &one.whole).map(String::as_str).collect();
        self.look_up(cube, &words, Part::Whole, known).await?;
        self.count(cube, known).await
    }

    /// Looks up the words that no value contains by parts that a typing mistake leaves unchanged.
    async fn look_up_misspelled(
        &self,
        reading: &Interpretation,
        cube: Option<&str>,
        known: &mut KnownValues,
    ) -> Result<(), QueryRunError> {
        let is_found = |spelling: &String| {
            let lower = spelling.to_lowercase();
            known.values.iter().any(|value| value.value.to_lowercase().contains(&lower))
        };
        let is_unmatched = |one: &&Lookup| {
            let has_parts = !one.parts.is_empty() && one.parts.iter().all(is_found);
            !one.spellings.iter().any(is_found) && !has_parts
        };
        let unmatched: Vec<&Lookup> = reading.lookups.iter().filter(is_unmatched).collect();
        let fragments: Vec<&str> = unmatched.iter().flat_map(|one| &one.fragments).map(String::as_str).collect();
        let mut found = KnownValues::default();
        self.look_up(cube, &fragments, Part::Any, &mut found).await?;
        let is_meant = |value: &KnownValue| unmatched.iter().any(|one| one.is_misspelled(&value.value));
        found.values.retain(is_meant);
        add(known, found.values);
        Ok(())
    }

    /// Looks up spellings in each searchable dimension, unless this was done before: in its stored list, or by a query
    /// of the caller.
    async fn look_up(
        &self,
        cube: Option<&str>,
        spellings: &[&str],
        part: Part,
        known: &mut KnownValues,
    ) -> Result<(), QueryRunError> {
        let spellings = &spellings[..spellings.len().min(MAX_SPELLINGS)];
        if spellings.is_empty() {
            return Ok(());
        }
        let mut dimensions = vocabulary::searchable(self.access, cube);
        let is_new = |dimension: &SearchedDimension, word: &str| {
            !known.searched.iter().any(|one| one.member == dimension.member && *one.word == *word)
        };
        dimensions.retain(|dimension| spellings.iter().any(|word| is_new(dimension, word)));
        dimensions.truncate(MAX_DIMENSIONS);
        let lists = self.lists.stored(&dimensions, &self.snapshot, self.request, LIST_WAIT).await;
        for (SearchedDimension { member, .. }, list) in dimensions.into_iter().zip(lists) {
            let values = match (list.complete(), &list) {
                (Some(list), _) => in_list(list, spellings, part).await,
                (None, DimensionValues::Denied) => continue,
                (None, _) => match self.run(&matching(&member, spellings, part)?).await? {
                    Some(answer) => texts(&answer),
                    None => continue,
                },
            };
            if (values.len() as u64) < MAX_VALUES {
                let words = spellings.iter().map(|word| Arc::from(*word));
                known.searched.extend(words.map(|word| SearchedWord { member: Arc::clone(&member), word }));
            }
            let values = values.into_iter().flatten().filter(|value| !value.is_empty());
            add(known, values.map(|value| KnownValue { member: Arc::clone(&member), value, rows: None }));
        }
        Ok(())
    }

    /// Counts the rows of values in a cube, unless they are known.
    async fn count(&self, cube: Option<&str>, known: &mut KnownValues) -> Result<(), QueryRunError> {
        let cube = cube.and_then(|name| metadata::cube(self.access, name));
        let Some(count) = cube.and_then(|cube| vocabulary::count_of(self.access, cube)) else { return Ok(()) };
        let mut by_member: BTreeMap<Arc<str>, Vec<Arc<str>>> = BTreeMap::new();
        for value in known.values.iter().filter(|value| value.rows.is_none()) {
            by_member.entry(Arc::clone(&value.member)).or_default().push(Arc::clone(&value.value));
        }
        for (member, values) in by_member {
            if values.len() > MAX_COUNTED {
                continue;
            }
            let Some(answer) = self.run(&counting(&count, &member, &values)?).await? else { continue };
            let rows = numbers(&answer);
            let counted: BTreeMap<Arc<str>, u64> = texts(&answer).into_iter().flatten().zip(rows).collect();
            let is_counted = |value: &&mut KnownValue| value.member == member && values.contains(&value.value);
            for value in known.values.iter_mut().filter(is_counted) {
                value.rows = Some(counted.get(&value.value).copied().unwrap_or(0));
            }
        }
        Ok(())
    }

    /// Returns the date of the newest data of the cube that a question is about, or of all cubes if its cube is unknown
    /// or has no time. Returns `None` if there are no dates.
    ///
    /// # Errors
    /// The warehouse does not answer.
    pub(super) async fn newest(&self, reading: &Interpretation) -> Result<Option<Date>, QueryRunError> {
        let mut newest = None;
        for cube in self.dated_cubes(reading) {
            newest = newest.max(self.last_of(cube, true).await?);
        }
        Ok(newest)
    }

    /// Returns the date of the oldest data of the cube that a question is about. `None` if the cube or its dates are
    /// unknown.
    ///
    /// # Errors
    /// The warehouse does not answer.
    pub(super) async fn oldest(&self, reading: &Interpretation) -> Result<Option<Date>, QueryRunError> {
        match reading.cube.as_deref().and_then(|name| metadata::cube(self.access, name)) {
            Some(cube) => self.last_of(cube, false).await,
            None => Ok(None),
        }
    }

    /// Returns whether the newest date of a question's cube is that of the time by which the question filters.
    pub(super) fn has_newest_of_time(&self, reading: &Interpretation) -> bool {
        let Some(cube) = reading.cube.as_deref().and_then(|name| metadata::cube(self.access, name)) else {
            return false;
        };
        let Some((day, _)) = convert::newest_of(self.access, cube) else { return false };
        let primary = cube.primary_time.and_then(|index| cube.dimensions.get(index as usize));
        let names = [Some(day), primary].into_iter().flatten().map(|time| format!("{}.{}", cube.name, time.name));
        let time = reading.draft.time.as_deref();
        time.is_none_or(|time| names.into_iter().any(|name| name == time))
    }

    /// Returns the cube of a question, if it has a time, or else the cubes whose data may be meant: all with a time.
    fn dated_cubes(&self, reading: &Interpretation) -> Vec<&Cube> {
        let is_dated = |cube: &&Cube| convert::newest_of(self.access, cube).is_some();
        let own = reading.cube.as_deref().and_then(|name| metadata::cube(self.access, name)).filter(is_dated);
        match own {
            Some(cube) => vec![cube],
            None => metadata::cubes(self.access).filter(is_dated).take(MAX_DATED_CUBES).collect(),
        }
    }

    /// Returns the date of the newest or the oldest row of a cube; `None` if it is unknown.
    async fn last_of(&self, cube: &Cube, is_newest: bool) -> Result<Option<Date>, QueryRunError> {
        let Some((time, step)) = convert::newest_of(self.access, cube) else { return Ok(None) };
        let member: MemberRef = format!("{}.{}", cube.name, time.name).parse()?;
        let column: MemberRef = format!("{}.{}.{}", cube.name, time.name, step.as_str()).parse()?;
        let query = SemanticQuery {
            time_dimensions: vec![TimeDimension { member, granularity: Some(step), range: None }],
            order: vec![OrderBy { member: column, descending: is_newest }],
            // A null may come first.
            limit: Some(2),
            skip_total: true,
            ..SemanticQuery::default()
        };
        let Some(answer) = self.run(&query).await? else { return Ok(None) };
        let days = texts(&answer).into_iter().flatten();
        let day = |text: Arc<str>| text.get(..10).and_then(|day| day.parse().ok());
        let days = days.filter_map(day);
        Ok(if is_newest { days.max() } else { days.min() })
    }

    async fn run(&self, query: &SemanticQuery) -> Result<Option<Answer>, QueryRunError> {
        lookup::run(self.session, query, CacheControl::default()).await
    }
}

/// Adds values that are not known yet.
fn add(known: &mut KnownValues, values: impl IntoIterator<Item = KnownValue>) {
    for value in values {
        if !known.values.iter().any(|one| one.member == value.member && one.value == value.value) {
            known.values.push(value);
        }
    }
}

/// Returns the values of a stored list that match one of several spellings.
async fn in_list(list: &Arc<ValueList>, spellings: &[&str], part: Part) -> Vec<Option<Arc<str>>> {
    let (list, spellings) = (Arc::clone(list), spellings.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
    let compared = list.len() * spellings.len();
    let find = move || match part {
        Part::Any => list.containing(&spellings, MAX_VALUES as usize),
        Part::Whole => list.equal(&spellings),
    };
    over_rows(compared as u64, find).await.into_iter().map(Some).collect()
}

/// Returns the query for the values that match one of several spellings.
fn matching(member: &str, spellings: &[&str], part: Part) -> Result<SemanticQuery, QueryError> {
    match part {
        Part::Any => containing(member, spellings, MAX_VALUES),
        Part::Whole => equal(member, spellings, MAX_VALUES),
    }
}

/// Returns the query for the number of rows of each value.
fn counting(count: &str, member: &str, values: &[Arc<str>]) -> Result<SemanticQuery, QueryError> {
    let member: MemberRef = member.parse()?;
    let values: Vec<Value> = values.iter().map(|value| Value::Text(Arc::clone(value))).collect();
    let operator = Operator::InList;
    Ok(SemanticQuery {
        values: vec![count.parse()?],
        filters: vec![Filter::Condition { member: member.clone(), operator, values }],
        dimensions: vec![member],
        limit: Some(MAX_VALUES),
        skip_total: true,
        ..SemanticQuery::default()
    })
}

/// Returns the second column as numbers.
fn numbers(answer: &Answer) -> Vec<u64> {
    let columns = answer.batches.iter().filter_map(|batch| cast(batch.columns().get(1)?, &DataType::Int64).ok());
    let mut found = Vec::new();
    for column in columns {
        let values = column.as_primitive::<Int64Type>();
        let value = |row: usize| if values.is_valid(row) { u64::try_from(values.value(row)).unwrap_or(0) } else { 0 };
        found.extend((0..values.len()).map(value));
    }
    found
}
