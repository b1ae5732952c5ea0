//! Values of a project that are no values of their dimension.
//!
//! In: a value as written, and the dimension that it stands for or is compared with. Out: what to write
//! instead, and the [`Diagnostic`] of a mask. Judged by the declared type alone. Not here: what the warehouse says
//! of columns (`sql::column_mistakes`).

use super::{Cube, Dimension, DimensionType};
use crate::diagnostic::{Code, Diagnostic};
use crate::project::WrittenValue;
// Against the order of modules: masks are checked as filters of queries.
use crate::query::{MemberRef, Operator, QueryError};
use crate::resolve::refusal;
use crate::types::Value;

/// A mask's constant that the dimension can't have. It hides the value all the same, so it is a warning.
pub(super) fn of_mask(constant: &WrittenValue, cube: &Cube, dimension: &Dimension) -> Option<Diagnostic> {
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
        (DimensionType::String | DimensionType::Geo, _) => "write it in quotes, as a string".to_owned(),
        (DimensionType::Number, _) => format!("write a number, or change the `type` of `{name}`"),
        (DimensionType::Boolean, _) => format!("write true or false, or change the `type` of `{name}`"),
        (DimensionType::Time, Value::Text(_)) => {
            format!("write a date or a period, like \"2024-01-31\" or \"2024-Q1\", or change the `type` of `{name}`")
        }
        (DimensionType::Time, _) => "write a date or a period in quotes, like \"2024-01-31\" or \"2024\"".to_owned(),
    }
}
