//! Finds columns whose strings represent dates or numbers, and columns with several spellings of one value.
//!
//! In: a table. Out: a note for each such column. The column gets the same note, for the drafted file. A note about
//! dates or numbers contains the SQL that converts the strings. A sample of rows is read. Failed statements become
//! notes. Not here: changing the type of a dimension, which a person decides.

use terrane_app::ports::warehouse::Warehouse;
use terrane_app::profiling::Spellings;

use super::catalog::{Row, count, rows};
use super::classify::is_label_name;
use super::column_kind::ColumnKind;
use super::statements;
use super::table::{Column, Table};
use crate::names::identifier;

/// The number of columns per statement.
const COLUMNS_AT_ONCE: usize = 50;
/// The number of values for each column in a row of the statement.
const VALUES_PER_COLUMN: usize = statements::TEXT_FORMS.len() + 4;
/// The percentage of a column's values that must have one form, so that the other values count as exceptions.
const MOST_PERCENT: u64 = 90;
/// The largest number of distinct values of a column of categories. A column with more contains names or sentences.
const MAX_CATEGORIES: u64 = 1_000;
/// The number of characters of a value that a note repeats.
const SHOWN_CHARACTERS: usize = 40;
/// The forms of dates with slashes.
const DAY_FIRST: &str = "dates with the day first";
const MONTH_FIRST: &str = "dates with the month first";

/// The values of a sample of one column.
#[derive(Debug, Default)]
struct Sample {
    values: u64,
    distinct: u64,
    /// The number of distinct values, ignoring case and surrounding spaces.
    folded: u64,
    /// The number of values of each form of [`statements::TEXT_FORMS`].
    forms: Vec<u64>,
    /// A value that is not a number.
    other: Option<String>,
}

/// Inspects the columns of strings, and adds a note about each finding to the column and to `notes`.
pub(super) async fn read(warehouse: &dyn Warehouse, table: &mut Table, notes: &mut Vec<String>) {
    let texts: Vec<usize> = (0..table.columns.len()).filter(|at| table.columns[*at].kind == ColumnKind::Text).collect();
    for chunk in texts.chunks(COLUMNS_AT_ONCE) {
        let columns: Vec<&Column> = chunk.iter().map(|at| &table.columns[*at]).collect();
        let row = match rows(warehouse, &statements::texts(table, &columns)).await {
            Ok(rows) => rows.into_iter().next().unwrap_or_default(),
            Err(reason) => {
                notes.push(format!("{}: could not read strings: {reason}", table.name));
                return;
            }
        };
        for (at, cells) in chunk.iter().zip(row.chunks(VALUES_PER_COLUMN)) {
            let sample = Sample::of(cells);
            let mut found = sample.form_note(&table.columns[*at].name);
            if found.is_none() && sample.folded < sample.distinct && sample.distinct <= MAX_CATEGORIES {
                found = Some(spellings(warehouse, table, *at, &sample).await);
            }
            if let Some(found) = found {
                notes.push(format!("{}: {found}", table.name));
                table.columns[*at].note = Some(found);
            }
        }
    }
}

impl Sample {
    fn of(cells: &[Option<String>]) -> Self {
        let forms = statements::TEXT_FORMS.len();
        Sample {
            values: count(cells, 0),
            distinct: count(cells, 1),
            folded: count(cells, 2),
            forms: (0..forms).map(|at| count(cells, 3 + at)).collect(),
            other: cells.get(3 + forms).cloned().flatten(),
        }
    }

    /// Returns a note about a column whose values are dates or numbers, all of them or nearly all.
    fn form_note(&self, column: &str) -> Option<String> {
        let forms = self.forms.iter().zip(statements::TEXT_FORMS);
        // Of several forms with the same count, `max_by_key` returns the last. The order is reversed, so that the first
        // form is taken.
        let (found, form) = forms.rev().max_by_key(|(found, _)| **found)?;
        let is_label = form.is_number && is_label_name(column);
        if self.values < 2 || found * 100 < self.values * MOST_PERCENT || is_label {
            return None;
        }
        let sql = form.sql.replace("$column", &format!("{{CUBE}}.{}", identifier(column)));
        let mut advice = format!("for a dimension of type `{}` write `sql: {sql}`", form.ty);
        let of = |what: &str| statements::TEXT_FORMS.iter().zip(&self.forms).find(|(form, _)| form.what == what);
        // Both orders of `01/02/2024` are dates.
        if let (true, Some((other, both))) = (form.what == DAY_FIRST, of(MONTH_FIRST))
            && both == found
        {
            let sql = other.sql.replace("$column", &format!("{{CUBE}}.{}", identifier(column)));
            advice += &format!("; if the month is first, which no value shows, write `sql: {sql}`");
        }
        let what = form.what;
        Some(match (self.values - found, &self.other) {
            (0, _) => format!("`{column}` is a string, and its values are {what}: {advice}"),
            (others, Some(other)) if form.is_number => format!(
                "`{column}` is a string because of values such as `{}`, but {found} of {} sampled values are {what}: \
                 make the other {others} null in the source or the model, and {advice}",
                shown(other),
                self.values
            ),
            (others, _) => format!(
                "`{column}` is a string, but only {found} of {} sampled values are {what}: make the other {others} null \
                 in the source or the model, and {advice}",
                self.values
            ),
        })
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

/// Returns a value as notes show it.
pub(super) fn shown(value: &str) -> String {
    let is_cut = value.chars().count() > SHOWN_CHARACTERS;
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = value.chars().take(SHOWN_CHARACTERS).map(plain).collect();
    if is_cut { format!("{text}…") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the note of a column. `forms` are the numbers of values of the first forms.
    fn note(values: u64, forms: [u64; 7], other: Option<&str>) -> Option<String> {
        let mut all = forms.to_vec();
        all.resize(statements::TEXT_FORMS.len(), 0);
        of_forms(values, all, other)
    }

    fn of_forms(values: u64, forms: Vec<u64>, other: Option<&str>) -> Option<String> {
        let other = other.map(str::to_owned);
        Sample { values, distinct: values, folded: values, forms, other }.form_note("Ordered On")
    }

    #[test]
    fn forms_are_named_with_the_sql_that_reads_them() {
        let date = note(9, [9, 0, 0, 0, 0, 0, 0], Some("2024-01-31")).unwrap();
        assert!(date.contains("values are dates") && date.contains("CAST({CUBE}.\"Ordered On\" AS DATE)"), "{date}");
        let comma = note(9, [0, 0, 0, 3, 9, 9, 0], Some("1,5")).unwrap();
        assert!(comma.contains("replace({CUBE}.\"Ordered On\", ',', '.')"), "{comma}");
        let number = note(100, [0, 0, 98, 98, 0, 0, 0], Some("n/a")).unwrap();
        assert!(number.contains("such as `n/a`, but 98 of 100 sampled values are numbers"), "{number}");
        let mostly = note(10, [9, 0, 0, 0, 0, 0, 0], Some("2024-01-31")).unwrap();
        assert!(mostly.contains("only 9 of 10 sampled values are dates: make the other 1 null"), "{mostly}");
        let percent = note(9, [0, 0, 0, 0, 0, 0, 9], None).unwrap();
        assert!(percent.contains("percentages") && percent.contains("/ 100"), "{percent}");
    }

    #[test]
    fn ambiguous_commas_are_read_as_thousands_separators() {
        let thousands = note(9, [0, 0, 0, 9, 9, 0, 0], None).unwrap();
        assert!(thousands.contains("commas between thousands"), "{thousands}");
        assert!(thousands.contains("replace({CUBE}.\"Ordered On\", ',', '')"), "{thousands}");
    }

    #[test]
    fn order_of_day_and_month_is_asked_if_no_value_shows_it() {
        let mut forms = vec![0; statements::TEXT_FORMS.len() - 2];
        forms.extend([9, 9]);
        let either = of_forms(9, forms.clone(), None).unwrap();
        assert!(
            either.contains("substr({CUBE}.\"Ordered On\", 4, 2)") && either.contains("if the month is first"),
            "{either}"
        );
        *forms.last_mut().unwrap() = 3;
        let day_first = of_forms(9, forms, None).unwrap();
        assert!(day_first.contains("dates with the day first") && !day_first.contains("month is first"), "{day_first}");
    }

    #[test]
    fn other_strings_have_no_note() {
        assert_eq!(note(9, [3, 0, 0, 0, 0, 0, 0], Some("x")), None);
        assert_eq!(note(1, [1, 0, 0, 0, 0, 0, 0], None), None);
        assert_eq!(note(0, [0; 7], None), None);
    }
}
