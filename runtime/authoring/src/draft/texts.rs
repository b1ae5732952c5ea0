//! Finds columns whose strings represent dates or numbers, and columns with several spellings of one value.
//!
//! In: a table. Out: a note for each such column. The column gets the same note, for the drafted file. A note about
//! dates or numbers contains the SQL that converts the strings. A sample of rows is read. Failed statements become
//! notes. Not here: changing the type of a dimension, which a person decides.

use terrane_app::ports::warehouse::Warehouse;
use terrane_app::profiling::Spellings;
use terrane_app::text_forms::{self, MOST_PERCENT, TextForm};

use super::catalog::{Row, count, rows};
use super::classify::is_label_name;
use super::column_kind::ColumnKind;
use super::statements;
use super::table::{Column, Table};
use crate::names::identifier;

/// The number of columns per statement.
const COLUMNS_AT_ONCE: usize = 10;
/// The number of forms per statement. PostgreSQL keeps 32 compiled patterns, and compiles each pattern again for each
/// row if a statement has more.
const FORMS_AT_ONCE: usize = 24;
/// The largest number of distinct values of a column of categories. A column with more contains names or sentences.
const MAX_CATEGORIES: u64 = 1_000;
/// The number of characters of a value that a note repeats.
const SHOWN_CHARACTERS: usize = 40;
/// The largest number of distinct exceptions that the SQL of a note replaces with null.
const MAX_NULLS: usize = 3;
/// The largest number of characters of such an exception.
const NULL_CHARACTERS: usize = 20;

/// The values of a sample of one column.
#[derive(Debug, Default)]
struct Sample {
    values: u64,
    distinct: u64,
    /// The number of distinct values, ignoring case and surrounding spaces. It is known for at most [`MAX_CATEGORIES`]
    /// distinct values.
    folded: u64,
    /// The number of values with surrounding spaces.
    spaced: u64,
    /// The number of values of each form of [`text_forms::all`].
    forms: Vec<u64>,
}

/// The SQL of an engine for the values of a column, and the values that have no form.
struct Conversion<'c> {
    column: &'c str,
    is_postgres: bool,
    /// Distinct values without the form, at most one more than the SQL can replace.
    exceptions: &'c [String],
}

/// Inspects the columns of strings, and adds a note about each finding to the column and to `notes`.
pub(super) async fn read(warehouse: &dyn Warehouse, table: &mut Table, notes: &mut Vec<String>) {
    let texts: Vec<usize> = (0..table.columns.len()).filter(|at| table.columns[*at].kind == ColumnKind::Text).collect();
    for chunk in texts.chunks(COLUMNS_AT_ONCE) {
        let samples = match samples(warehouse, table, chunk).await {
            Ok(samples) => samples,
            Err(reason) => {
                notes.push(format!("{}: could not read strings: {reason}", table.name));
                return;
            }
        };
        for (at, sample) in chunk.iter().zip(samples) {
            let found = match sample.form(&table.columns[*at].name) {
                Some((form, found)) => Some(form_note(warehouse, table, *at, &sample, form, found).await),
                None if sample.folded < sample.distinct && sample.distinct <= MAX_CATEGORIES => {
                    Some(spellings(warehouse, table, *at, &sample).await)
                }
                None => None,
            };
            if let Some(found) = found {
                notes.push(format!("{}: {found}", table.name));
                table.columns[*at].note = Some(found);
            }
        }
    }
}

async fn form_note(
    warehouse: &dyn Warehouse,
    table: &Table,
    column: usize,
    sample: &Sample,
    form: &TextForm,
    found: u64,
) -> String {
    let exceptions = match sample.values - found {
        0 => Vec::new(),
        _ => rows(warehouse, &statements::exceptions(table, column, form, MAX_NULLS + 1)).await.unwrap_or_default(),
    };
    let exceptions: Vec<String> = exceptions.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
    let name = &table.columns[column].name;
    let conversion = Conversion { column: name, is_postgres: warehouse.name() == "postgres", exceptions: &exceptions };
    sample.form_note(form, found, &conversion)
}

/// Returns the samples of some columns. The forms of most columns are excluded by a few of their values, because an
/// engine needs long to compare many values with all patterns.
///
/// # Errors
/// Returns the warehouse's message about a failed statement.
async fn samples(warehouse: &dyn Warehouse, table: &Table, columns: &[usize]) -> Result<Vec<Sample>, String> {
    let columns: Vec<&Column> = columns.iter().map(|at| &table.columns[*at]).collect();
    let mut samples: Vec<Sample> = Vec::new();
    samples.resize_with(columns.len(), || Sample { forms: vec![0; text_forms::COUNT], ..Sample::default() });
    for row in rows(warehouse, &statements::texts(table, &columns, MAX_CATEGORIES)).await? {
        if let Some(sample) = samples.get_mut(position(&row)) {
            sample.read(&row[1..]);
        }
    }
    let candidates = candidates(warehouse, table, &columns).await?;
    for ((column, forms), sample) in columns.iter().zip(candidates).zip(&mut samples) {
        let all: Vec<&TextForm> = text_forms::all().collect();
        for part in forms.chunks(FORMS_AT_ONCE) {
            let wanted: Vec<&TextForm> = part.iter().map(|at| all[*at]).collect();
            let found = rows(warehouse, &statements::forms(table, &[*column], &wanted)).await?;
            let row = found.into_iter().next().unwrap_or_default();
            part.iter().enumerate().for_each(|(at, form)| sample.forms[*form] = count(&row, at));
        }
    }
    Ok(samples)
}

/// Returns the forms, by their positions in [`text_forms::all`], of at least one frequent value of each column. For a
/// column without a value in the first rows, all forms are returned.
///
/// # Errors
/// Returns the warehouse's message about a failed statement.
async fn candidates(warehouse: &dyn Warehouse, table: &Table, columns: &[&Column]) -> Result<Vec<Vec<usize>>, String> {
    let forms: Vec<&TextForm> = text_forms::all().collect();
    let mut candidates = vec![Vec::new(); columns.len()];
    for (part_at, part) in forms.chunks(FORMS_AT_ONCE).enumerate() {
        for row in rows(warehouse, &statements::frequent_forms(table, columns, part)).await? {
            let Some(of_column) = candidates.get_mut(position(&row)) else { continue };
            let has_no_value = count(&row, 1) == 0;
            let found = (0..part.len()).filter(|at| has_no_value || count(&row, 2 + at) > 0);
            of_column.extend(found.map(|at| part_at * FORMS_AT_ONCE + at));
        }
    }
    Ok(candidates)
}

/// Returns the position of a row's column among the columns of the statement.
fn position(row: &[Option<String>]) -> usize {
    usize::try_from(count(row, 0)).unwrap_or(usize::MAX)
}

impl Sample {
    fn read(&mut self, cells: &[Option<String>]) {
        self.values = count(cells, 0);
        self.distinct = count(cells, 1);
        self.folded = count(cells, 2);
        self.spaced = count(cells, 3);
    }

    /// Returns the form of all values or nearly all, with the number of its values.
    fn form(&self, column: &str) -> Option<(&'static TextForm, u64)> {
        // Of several forms with the same count, `max_by_key` returns the last. The order is reversed, so that the first
        // form is taken.
        let (form, found) = text_forms::all().zip(self.forms.iter().copied()).rev().max_by_key(|(_, found)| *found)?;
        let is_label = form.is_number && is_label_name(column);
        (self.values > 1 && found * 100 >= self.values * MOST_PERCENT && !is_label).then_some((form, found))
    }

    /// Returns a note about a column of strings in a form.
    fn form_note(&self, form: &TextForm, found: u64, conversion: &Conversion<'_>) -> String {
        let column = conversion.column;
        let mut advice = format!("for a dimension of type `{}` write `sql: {}`", form.ty(), self.sql(form, conversion));
        // Both orders of `01/02/2024` are dates.
        let other = form.other.and_then(|other| {
            let mut counted = text_forms::all().zip(&self.forms);
            counted.find(|(form, count)| form.what == other.what && **count == found).map(|(form, _)| (other, form))
        });
        if let Some((other, form)) = other {
            let sql = self.sql(form, conversion);
            advice += &format!("; if {}, which the values leave open, write `sql: {sql}`", other.condition);
        }
        if let Some(caveat) = form.caveat {
            advice += &format!(" ({caveat})");
        }
        let (what, others) = (form.what, self.values - found);
        if others == 0 {
            return format!("`{column}` is a string, and its values are {what}: {advice}");
        }
        if conversion.nulls().is_none() {
            advice = format!("make the other {others} null in the source or the model, and {advice}");
        }
        let because = conversion.exceptions.iter().find(|value| !value.is_empty());
        let because = because.map(|value| format!(" because of values such as `{}`", shown(value))).unwrap_or_default();
        format!("`{column}` is a string{because}, but {found} of {} sampled values are {what}: {advice}", self.values)
    }

    /// Returns the SQL that converts the column. The SQL removes surrounding spaces, and replaces the exceptions with
    /// null if they are few and plain words.
    fn sql(&self, form: &TextForm, conversion: &Conversion<'_>) -> String {
        let mut column = format!("{{CUBE}}.{}", identifier(conversion.column));
        if self.spaced > 0 {
            column = format!("trim({column})");
        }
        for value in conversion.nulls().unwrap_or_default() {
            column = format!("nullif({column}, '{value}')");
        }
        form.sql(conversion.is_postgres, &column)
    }
}

impl Conversion<'_> {
    /// Returns the exceptions that the SQL replaces with null, or `None` if they are too many or not plain words.
    fn nulls(&self) -> Option<&[String]> {
        let is_plain = |value: &String| {
            value.chars().count() <= NULL_CHARACTERS
                && value.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '/' | '.' | '-' | '#' | '?' | '_'))
        };
        let are_few = self.exceptions.len() <= MAX_NULLS && !self.exceptions.is_empty();
        (are_few && self.exceptions.iter().all(is_plain)).then_some(self.exceptions)
    }
}

/// Returns a note about values that differ in case or outer spaces only.
async fn spellings(warehouse: &dyn Warehouse, table: &Table, column: usize, sample: &Sample) -> String {
    let name = &table.columns[column].name;
    let found = rows(warehouse, &statements::spellings(table, column)).await.unwrap_or_default();
    let example = found.first().and_then(|row: &Row| match &row[..] {
        [Some(one), Some(other), ..] => Some((shown(one), shown(other))),
        _ => None,
    });
    Spellings { distinct: sample.distinct, folded: sample.folded, example, is_partial: false }.note(name)
}

/// Returns the form of a value in notes.
pub(super) fn shown(value: &str) -> String {
    let is_cut = value.chars().count() > SHOWN_CHARACTERS;
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = value.chars().take(SHOWN_CHARACTERS).map(plain).collect();
    if is_cut { format!("{text}…") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the note of a column with the given numbers of values of forms.
    fn note(values: u64, counts: &[(&str, u64)], exceptions: &[&str]) -> Option<String> {
        let of = |form: &TextForm| counts.iter().find(|(what, _)| *what == form.what).map_or(0, |(_, count)| *count);
        let forms = text_forms::all().map(of).collect();
        let sample = Sample { values, distinct: values, folded: values, spaced: 0, forms };
        let (form, found) = sample.form("Ordered On")?;
        let exceptions: Vec<String> = exceptions.iter().map(|value| (*value).to_owned()).collect();
        let conversion = Conversion { column: "Ordered On", is_postgres: false, exceptions: &exceptions };
        Some(sample.form_note(form, found, &conversion))
    }

    #[test]
    fn forms_are_named_with_the_sql_that_reads_them() {
        let date = note(9, &[("dates", 9)], &[]).unwrap();
        assert!(date.contains("values are dates") && date.contains("CAST({CUBE}.\"Ordered On\" AS DATE)"), "{date}");
        let comma = [
            ("numbers with commas between thousands", 3),
            ("numbers with a decimal comma", 9),
            ("numbers with points between thousands and a decimal comma", 9),
        ];
        let comma = note(9, &comma, &[]).unwrap();
        assert!(comma.contains("replace({CUBE}.\"Ordered On\", ',', '.')"), "{comma}");
        let percent = note(9, &[("percentages", 9)], &[]).unwrap();
        assert!(percent.contains("percentages") && percent.contains("/ 100"), "{percent}");
        let currency = note(9, &[("amounts with a currency", 9)], &[]).unwrap();
        assert!(
            currency.ends_with("(the currency is dropped, so check that all rows have the same one)"),
            "{currency}"
        );
    }

    #[test]
    fn few_plain_exceptions_become_null() {
        let number = note(100, &[("numbers", 98)], &["", "n/a"]).unwrap();
        for words in [
            "because of values such as `n/a`, but 98 of 100 sampled values are numbers: for a dimension",
            "CAST(nullif(nullif({CUBE}.\"Ordered On\", ''), 'n/a') AS DECIMAL(24, 9))",
        ] {
            assert!(number.contains(words), "{number}");
        }
        for exceptions in [&["a", "b", "c", "d"][..], &["it's"]] {
            let mostly = note(10, &[("dates", 9)], exceptions).unwrap();
            assert!(mostly.contains("9 of 10 sampled values are dates: make the other 1 null"), "{mostly}");
            assert!(!mostly.contains("nullif"), "{mostly}");
        }
    }

    #[test]
    fn ambiguous_commas_are_read_as_thousands_separators() {
        let forms = [("numbers with commas between thousands", 9), ("numbers with a decimal comma", 9)];
        let thousands = note(9, &forms, &[]).unwrap();
        for words in [
            "commas between thousands",
            "replace({CUBE}.\"Ordered On\", ',', '')",
            "if the comma is the decimal mark, which the values leave open",
        ] {
            assert!(thousands.contains(words), "{thousands}");
        }
    }

    #[test]
    fn order_of_day_and_month_is_noted_if_the_values_leave_it_open() {
        let (day, month) = ("dates with the day first", "dates with the month first");
        let either = note(9, &[(day, 9), (month, 9)], &[]).unwrap();
        let by_day = "split_part({CUBE}.\"Ordered On\", '/', 3) || '-' || split_part({CUBE}.\"Ordered On\", '/', 2)";
        assert!(
            either.contains(by_day) && either.contains("if the month is first, which the values leave open"),
            "{either}"
        );
        let day_first = note(9, &[(day, 9), (month, 3)], &[]).unwrap();
        assert!(day_first.contains("dates with the day first") && !day_first.contains("month is first"), "{day_first}");
        let us = ("timestamps with AM or PM and the month first", "timestamps with AM or PM and the day first");
        let either = note(9, &[(us.0, 9), (us.1, 9)], &[]).unwrap();
        assert!(either.contains("'%m/%d/%Y %I:%M %p'") && either.contains("if the day is first"), "{either}");
    }

    #[test]
    fn values_with_outer_spaces_are_trimmed() {
        let mut sample = Sample { values: 9, distinct: 9, folded: 9, spaced: 1, forms: vec![0; text_forms::COUNT] };
        sample.forms[0] = 9;
        let (form, found) = sample.form("day").unwrap();
        let conversion = Conversion { column: "day", is_postgres: false, exceptions: &[] };
        let note = sample.form_note(form, found, &conversion);
        assert!(note.contains("CAST(trim({CUBE}.day) AS DATE)"), "{note}");
    }

    #[test]
    fn other_strings_have_no_note() {
        assert_eq!(note(9, &[("dates", 3)], &[]), None);
        assert_eq!(note(1, &[("dates", 1)], &[]), None);
        assert_eq!(note(0, &[], &[]), None);
    }
}
