//! Filters rows by restrictions and conditions.
//!
//! In: the restrictions of a request, or the conditions of a query. Out: a [`RowFilter`], or a fault for an unknown
//! name or a value of a different type.

use terrane_compiler::text::nearest::likely;

use super::{Cell, ColumnType, Field, Match, Rowset};
use crate::fault::Fault;
use crate::request::Restriction;
use crate::statement::Condition;

/// A filter of rows.
#[derive(Debug, Default, PartialEq)]
pub struct RowFilter {
    tests: Vec<Test>,
    /// True if a restriction that is not a column excludes all rows.
    is_empty: bool,
}

/// A test of the value in one column.
#[derive(Debug, PartialEq)]
struct Test {
    column: usize,
    is_negated: bool,
    values: Vec<Expected>,
}

#[derive(Debug, PartialEq)]
enum Expected {
    /// A string in lower case.
    Text(String),
    /// The unique name of a member, whose key is compared case-sensitively.
    Member(String),
    Integer(i64),
    Mask(i64),
    Boolean(bool),
}

impl RowFilter {
    /// Creates a filter from the restrictions of a request.
    ///
    /// # Errors
    /// A restriction is unknown, or one of its values has a different type.
    pub fn of_restrictions(rowset: &dyn Rowset, restrictions: &[Restriction]) -> Result<Self, Fault> {
        let mut filter = RowFilter::default();
        for Restriction { column, values } in restrictions {
            let Some((index, field)) = filter.find(rowset, column, values)? else { continue };
            let values = values.iter().map(|value| expected(&field, value)).collect::<Result<Vec<_>, _>>()?;
            if !values.is_empty() {
                filter.tests.push(Test { column: index, is_negated: false, values });
            }
        }
        Ok(filter)
    }

    /// Creates a filter from the conditions of a query.
    ///
    /// # Errors
    /// A column is unknown, or a value has a different type.
    pub fn of_conditions(rowset: &dyn Rowset, conditions: &[Condition]) -> Result<Self, Fault> {
        let mut filter = RowFilter::default();
        for Condition { column, is_negated, value } in conditions {
            let values = std::slice::from_ref(value);
            let Some((index, field)) = filter.find(rowset, column, values)? else { continue };
            // A condition compares values. Only a restriction can be a bit mask.
            let field = Field { restriction: None, ..field };
            filter.tests.push(Test { column: index, is_negated: *is_negated, values: vec![expected(&field, value)?] });
        }
        Ok(filter)
    }

    /// Finds the column with a name. A restriction that is not a column is evaluated here, and returns `None`.
    fn find(&mut self, rowset: &dyn Rowset, name: &str, values: &[String]) -> Result<Option<(usize, Field)>, Fault> {
        let fields = rowset.fields();
        if let Some(index) = fields.iter().position(|field| field.name.eq_ignore_ascii_case(name)) {
            return Ok(Some((index, fields[index])));
        }
        let constants = rowset.constants();
        let Some((field, value)) = constants.iter().find(|(field, _)| field.name.eq_ignore_ascii_case(name)) else {
            let known = fields.iter().chain(constants.iter().map(|(field, _)| field)).map(|field| field.name);
            return Err(unknown(rowset.name(), name, known));
        };
        let values = values.iter().map(|value| expected(field, value)).collect::<Result<Vec<_>, _>>()?;
        let cell = Cell::Integer(*value);
        self.is_empty |= !values.is_empty() && !values.iter().any(|value| value.matches(&cell));
        Ok(None)
    }

    /// Returns whether a value passes all tests of its column.
    pub fn passes(&self, column: usize, cell: &Cell<'_>) -> bool {
        let mut tests = self.tests.iter().filter(|test| test.column == column);
        !self.is_empty && tests.all(|test| test.passes(cell))
    }

    /// Returns whether a row passes all tests.
    pub fn passes_row(&self, cells: &[Cell<'_>]) -> bool {
        !self.is_empty && self.tests.iter().all(|test| cells.get(test.column).is_some_and(|cell| test.passes(cell)))
    }

    /// Returns the strings to which a column is restricted. Returns `None` if the column is not restricted.
    pub fn texts(&self, column: usize) -> Option<Vec<&str>> {
        let test = self.tests.iter().find(|test| test.column == column && !test.is_negated)?;
        let texts = test.values.iter().filter_map(|value| match value {
            Expected::Text(text) | Expected::Member(text) => Some(text.as_str()),
            _ => None,
        });
        Some(texts.collect())
    }
}

impl Test {
    fn passes(&self, cell: &Cell<'_>) -> bool {
        self.values.iter().any(|value| value.matches(cell)) != self.is_negated
    }
}

impl Expected {
    fn matches(&self, cell: &Cell<'_>) -> bool {
        match (self, cell) {
            (Expected::Text(expected), Cell::Text(found)) => {
                expected.as_str() == found.as_ref() || *expected == found.to_lowercase()
            }
            (Expected::Member(expected), Cell::Text(found)) => is_same_member(expected, found),
            (Expected::Integer(expected), Cell::Integer(found)) => expected == found,
            (Expected::Mask(mask), Cell::Integer(found)) => mask & found != 0,
            (Expected::Boolean(expected), Cell::Boolean(found)) => expected == found,
            _ => false,
        }
    }
}

/// Returns whether two unique names refer to the same member. Names of hierarchies are compared case-insensitively, and
/// the keys of members case-sensitively.
pub(crate) fn is_same_member(one: &str, two: &str) -> bool {
    let parts = |name: &str| name.split_once(".&[").map(|(path, key)| (path.to_lowercase(), key.to_owned()));
    match (parts(one), parts(two)) {
        (None, None) => one.to_lowercase() == two.to_lowercase(),
        (one, two) => one == two,
    }
}

fn expected(field: &Field, value: &str) -> Result<Expected, Fault> {
    let invalid = |expected: &str| {
        let value: String = value.chars().take(100).collect();
        Fault::argument(format!("restriction `{}`: expected {expected}, found `{value}`", field.name))
    };
    match field.ty {
        ColumnType::String if field.name == "MEMBER_UNIQUE_NAME" => Ok(Expected::Member(value.to_owned())),
        ColumnType::String | ColumnType::DateTime | ColumnType::Double | ColumnType::Decimal => {
            Ok(Expected::Text(value.to_lowercase()))
        }
        ColumnType::Uuid => Ok(Expected::Text(value.trim_matches(['{', '}']).to_lowercase())),
        ColumnType::Boolean => match value.to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(Expected::Boolean(true)),
            "false" | "0" => Ok(Expected::Boolean(false)),
            _ => Err(invalid("`true` or `false`")),
        },
        ColumnType::Nested(_) => Err(invalid("no restriction of this column")),
        _ => {
            let number = value.parse().map_err(|_| invalid("an integer"))?;
            Ok(if field.restriction == Some(Match::Mask) { Expected::Mask(number) } else { Expected::Integer(number) })
        }
    }
}

fn unknown(rowset: &str, name: &str, known: impl Iterator<Item = &'static str>) -> Fault {
    no_column(rowset, "column or restriction", name, known)
}

/// Returns the fault for a name that a rowset does not have, with the nearest of the known names.
pub(crate) fn no_column(rowset: &str, what: &str, name: &str, known: impl Iterator<Item = &'static str>) -> Fault {
    let short: String = name.chars().take(100).collect();
    let hint = likely(&name.to_ascii_uppercase(), known).map(|name| format!("; did you mean `{name}`?"));
    Fault::argument(format!("{rowset} has no {what} `{short}`{}", hint.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_members_are_compared_with_case() {
        assert!(is_same_member("[Orders].[Status].&[paid]", "[orders].[status].&[paid]"));
        assert!(!is_same_member("[orders].[status].&[paid]", "[orders].[status].&[Paid]"));
        assert!(is_same_member("[orders].[status].[All]", "[orders].[Status].[all]"));
        assert!(!is_same_member("[orders].[status].[All]", "[orders].[status].&[All]"));
    }
}
