//! Checks values of a project against the types of their dimensions.
//!
//! In: a value with its place, and the dimension that it replaces or is compared with. Out: a hint with the value to
//! write instead, and the [`Diagnostic`] of a mask. Only the declared type counts. Not here: the types of columns in
//! the warehouse (`sql::column_mistakes`).

use super::{Cube, Dimension, DimensionType};
use crate::diagnostic::{Code, Diagnostic};
use crate::project::LocatedValue;
// This import goes against the order of the modules, because masks are checked like the filters of queries.
use crate::query::{MemberRef, Operator, QueryError};
use crate::resolve::refusal;
use crate::types::Value;

/// Returns a warning if a mask's constant does not fit the dimension's type. It is not an error, because the mask still
/// hides the value.
pub(super) fn of_mask(constant: &LocatedValue, cube: &Cube, dimension: &Dimension) -> Option<Diagnostic> {
    let member: MemberRef = format!("{}.{}", cube.name, dimension.name).parse().ok()?;
    let found = refusal(dimension, &member, Operator::Equals, std::slice::from_ref(&constant.value));
    let (error @ QueryError::ValueDoesNotFit { .. }, _) = found? else { return None };
    let diagnostic = Diagnostic::warning(Code::ValueMismatch, format!("unsuitable mask: {error}"));
    Some(diagnostic.hint(hint(&constant.value, dimension)).at(constant.origin.span()))
}

/// Returns the hint for a value that does not fit its dimension.
pub(super) fn hint(value: &Value, dimension: &Dimension) -> String {
    let name = &dimension.name;
    match (dimension.ty, value) {
        (DimensionType::String | DimensionType::Geo, _) => "Write it in quotes, as a string.".to_owned(),
        (DimensionType::Number, _) => format!("Write a number, or change the `type` of `{name}`."),
        (DimensionType::Boolean, _) => format!("Write true or false, or change the `type` of `{name}`."),
        (DimensionType::Time, Value::Text(_)) => {
            format!(
                "Write a date or a period, such as `\"2024-01-31\"` or `\"2024-Q1\"`, or change the `type` of `{name}`."
            )
        }
        (DimensionType::Time, _) => {
            "Write a date or a period in quotes, such as `\"2024-01-31\"` or `\"2024\"`.".to_owned()
        }
    }
}
