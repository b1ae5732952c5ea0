//! Adds the tests of dimensions to a model.
//!
//! In: the merged definitions of cubes, and the model without broken items. Out: the tests of each dimension with their
//! names resolved, and a diagnostic for each test that cannot be used. Not here: the statements (`sql::data_check`).

use super::inherit::Merged;
use super::invalid_value;
use super::unread::Unread;
use super::{Cube, Dimension, DimensionId, DimensionRule, DimensionTest, DimensionType, Member, Model};
use crate::diagnostic::{Code, Diagnostic};
use crate::project::{DimensionTestDefinition, DimensionTestRule, LocatedValue};
// This import goes against the order of the modules, because accepted values are checked as filters of queries.
use crate::query::Operator;
use crate::resolve::refusal;
use crate::text::Text;
use crate::text::nearest::suggest;
use crate::types::Value;

/// Adds the tests of all cubes. An inherited test belongs to each cube that inherits its dimension.
pub(super) fn add(model: &mut Model, merged: &[Merged<'_>], unread: &Unread, diagnostics: &mut Vec<Diagnostic>) {
    let mut found = Vec::new();
    for of_cube in merged {
        let Some(cube) = model.cube_named(&of_cube.definition.name.value) else { continue };
        for dimension in of_cube.dimensions.iter().filter(|dimension| !dimension.item.tests.is_empty()) {
            let Some(Member::Dimension(id)) = cube.member(&dimension.item.name.value) else { continue };
            let tests = Tests { model, cube, dimension: &cube.dimensions[id.index as usize], unread };
            let mut problems = Vec::new();
            let usable = dimension.item.tests.iter().filter_map(|test| tests.test(test, &mut problems)).collect();
            // An inherited test is reported once.
            let is_new = |problem: &Diagnostic| !diagnostics.iter().any(|known| known.span == problem.span);
            let new: Vec<Diagnostic> = problems.into_iter().filter(is_new).collect();
            diagnostics.extend(new);
            found.push((id, usable));
        }
    }
    for (id, tests) in found {
        model.cubes[id.cube.0 as usize].dimensions[id.index as usize].tests = tests;
    }
}

struct Tests<'m> {
    model: &'m Model,
    cube: &'m Cube,
    dimension: &'m Dimension,
    unread: &'m Unread,
}

impl Tests<'_> {
    fn test(&self, test: &DimensionTestDefinition, problems: &mut Vec<Diagnostic>) -> Option<DimensionTest> {
        let rule = match &test.rule {
            DimensionTestRule::NotNull => DimensionRule::NotNull,
            DimensionTestRule::Unique => DimensionRule::Unique,
            DimensionTestRule::AcceptedValues(values) => DimensionRule::AcceptedValues(self.values(values, problems)?),
            DimensionTestRule::Relationship(target) => DimensionRule::RefersTo(self.target(target, problems)?),
        };
        Some(DimensionTest { rule, span: test.place.clone() })
    }

    fn values(&self, values: &[LocatedValue], problems: &mut Vec<Diagnostic>) -> Option<Vec<Value>> {
        let name = &self.dimension.name;
        if matches!(self.dimension.ty, DimensionType::Time | DimensionType::Geo) {
            let message =
                format!("`accepted_values` of dimension `{name}`, which is neither a string, a number nor a boolean");
            let hint = "Remove it, or test a dimension of another type.";
            let place = values.first().map(|value| value.origin.span());
            problems.extend(place.map(|place| Diagnostic::error(Code::MisplacedField, message).hint(hint).at(place)));
            return None;
        }
        let count_before = problems.len();
        problems.extend(values.iter().filter_map(|value| self.unfit(value)));
        (problems.len() == count_before).then(|| values.iter().map(|value| value.value.clone()).collect())
    }

    /// Returns the problem of a value that does not fit the dimension's type.
    fn unfit(&self, value: &LocatedValue) -> Option<Diagnostic> {
        let name = &self.dimension.name;
        if value.value == Value::Null {
            let message = format!("null among the accepted values of dimension `{name}`");
            let hint = "Remove it. Rows without a value pass, unless the dimension has the test `not_null`.";
            return Some(Diagnostic::error(Code::ValueMismatch, message).hint(hint).at(value.origin.span()));
        }
        let member = format!("{}.{name}", self.cube.name).parse().ok()?;
        let (error, _) = refusal(self.dimension, &member, Operator::Equals, std::slice::from_ref(&value.value))?;
        let problem = Diagnostic::error(Code::ValueMismatch, format!("invalid accepted value: {error}"));
        Some(problem.hint(invalid_value::hint(&value.value, self.dimension)).at(value.origin.span()))
    }

    fn target(&self, target: &Text, problems: &mut Vec<Diagnostic>) -> Option<DimensionId> {
        let (code, message, hint) = match target.value.split_once('.') {
            None => (
                Code::WrongValue,
                format!("`{}` in `relationships` is not a cube and its dimension", target.value),
                "Write a cube and its dimension, as in `relationships: customers.id`.".to_owned(),
            ),
            Some((cube, _)) if self.unread.contains(cube) => return None,
            Some((cube, name)) => match self.model.cube_named(cube) {
                None => {
                    let known = self.model.cubes.iter().map(|cube| &*cube.name);
                    (Code::UnknownCube, format!("unknown cube `{cube}`"), suggest(cube, "cubes", known))
                }
                Some(of) => match of.member(name) {
                    Some(Member::Dimension(id)) => return Some(id),
                    _ if self.unread.may_be_member(of, name) => return None,
                    _ => {
                        let known = of.dimensions.iter().map(|dimension| &*dimension.name);
                        let message = format!("cube `{cube}` has no dimension `{name}`");
                        (Code::UnknownMember, message, suggest(name, &format!("dimensions of {cube}"), known))
                    }
                },
            },
        };
        problems.push(Diagnostic::error(code, message).hint(hint).at(target.span()));
        None
    }
}
