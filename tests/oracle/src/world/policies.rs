//! Row filters of policies: their form in a project, and the rows that they hide.
//!
//! Some row filters come from a governance hook instead of the project. They hide rows in the same way.
//!
//! In: a [`World`]. Out: the same world without the rows that the caller cannot see. Its joins are unchanged. Not here:
//! masks and denied members (`mask_policies`).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::{Cell, ColumnType, Cube, DimensionKind, Expr, Rows, World};
use crate::value::{Number, Value};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    pub cube: String,
    pub row_filter: RowPolicy,
    /// True if the policy applies to other callers only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_for_others: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum RowPolicy {
    Condition(Expr),
    /// Compares a column with an attribute of the caller. The column belongs to the cube or to the target of a to-one
    /// join.
    Attribute {
        column: Expr,
        attribute: String,
    },
    /// A hook's row filter: a dimension of the cube must have one of these values, or none of them.
    Hook {
        dimension: String,
        values: Vec<Cell>,
        is_negated: bool,
    },
}

/// Attributes of the caller. Among them are single values, lists, an empty list, an attribute that the caller lacks,
/// and values that must be converted to the type with which they are compared.
pub const TEXT_ATTRIBUTES: &[&str] = &["region", "regions", "zero", "nothing", "missing"];
pub const NUMBER_ATTRIBUTES: &[&str] =
    &["level", "levels", "level_as_text", "levels_as_text", "invalid_values", "nothing", "missing"];
pub const BOOLEAN_ATTRIBUTES: &[&str] = &["flag", "flag_as_text", "level", "nothing", "missing"];

/// Returns the values of an attribute of the caller; `None` if the caller lacks it.
pub fn attribute(name: &str) -> Option<Vec<Cell>> {
    let text = |text: &str| Cell::Text(text.to_owned());
    Some(match name {
        "region" => vec![text("a")],
        "regions" => vec![text("A"), text("a "), text("O'Hara")],
        "level" => vec![Cell::Int(1)],
        "levels" => vec![Cell::Int(0), Cell::Int(2), Cell::Int(3)],
        "zero" => vec![Cell::Int(0)],
        "level_as_text" => vec![text("1")],
        "levels_as_text" => vec![text("0"), text("-1"), Cell::Int(2), text("0.50")],
        "invalid_values" => vec![Cell::Int(1), text("1 or so")],
        "flag" => vec![Cell::Bool(true)],
        "flag_as_text" => vec![text("false")],
        "nothing" => Vec::new(),
        _ => return None,
    })
}

/// Returns whether an attribute is a list.
pub fn is_list(name: &str) -> bool {
    matches!(name, "regions" | "levels" | "levels_as_text" | "invalid_values" | "nothing")
}

impl World {
    /// Returns the world that the caller can see, without the help of the product.
    pub fn seen(&self) -> Cow<'_, World> {
        if self.policies.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut seen = self.clone();
        seen.policies.clear();
        for (cube, full) in seen.cubes.iter_mut().zip(&self.cubes) {
            let policies: Vec<&Policy> =
                self.policies.iter().filter(|policy| policy.cube == full.name && !policy.is_for_others).collect();
            let stays =
                |row: &usize| policies.iter().all(|policy| policy.passes(&Base { world: self, cube: full, row: *row }));
            cube.rows = (0..full.rows.len()).filter(stays).map(|row| full.rows[row].clone()).collect();
        }
        Cow::Owned(seen)
    }
}

impl Policy {
    fn passes(&self, row: &Base<'_>) -> bool {
        match &self.row_filter {
            RowPolicy::Condition(sql) => sql.passes(row),
            RowPolicy::Hook { dimension, values, is_negated } => match row.cube.hooked(dimension) {
                Some((ty, column)) => {
                    let value = row.cube.rows[row.row][column].value(ty, false);
                    values.iter().any(|cell| cell.value(ty, false) == value) != *is_negated
                }
                None => true,
            },
            RowPolicy::Attribute { column, attribute: name } => {
                let value = column.eval(row);
                let given = attribute(name).unwrap_or_default();
                // One value that cannot be converted makes the whole comparison false.
                let read: Option<Vec<Value>> = given.iter().map(|cell| read_as(cell, &value)).collect();
                !value.is_null() && read.is_some_and(|given| given.contains(&value))
            }
        }
    }

    /// Returns the policy as JSON; `None` if it is a hook's and therefore not in the project.
    pub(super) fn json(&self, world: &World, index: usize) -> Option<Json> {
        let cube = world.cube(&self.cube)?;
        let text = match &self.row_filter {
            RowPolicy::Hook { .. } => return None,
            RowPolicy::Condition(sql) => sql.sql(world, cube),
            RowPolicy::Attribute { column, attribute } => {
                let word = if is_list(attribute) { "IN" } else { "=" };
                format!("{} {word} {{{{ user.attributes.{attribute} }}}}", column.sql(world, cube))
            }
        };
        let mut json = json!({"name": format!("policy{index}"), "cubes": [self.cube], "row_filter": text});
        if self.is_for_others {
            json["when"] = for_others();
        }
        Some(json)
    }
}

impl Cube {
    /// Returns the type and the index of the column of a hook's dimension. `None` if the dimension is not a plain
    /// column, or if these tests compare no values of its type.
    pub fn hooked(&self, dimension: &str) -> Option<(ColumnType, usize)> {
        let dimension = self.dimensions.iter().find(|own| own.name == dimension)?;
        let Expr::Column { cube: None, column } = dimension.sql else { return None };
        let ty = self.columns.get(column)?.ty;
        let fits = matches!(
            (dimension.kind, ty),
            (DimensionKind::String, ColumnType::Text)
                | (DimensionKind::Number, ColumnType::Small | ColumnType::Big)
                | (DimensionKind::Boolean, ColumnType::Boolean)
        );
        fits.then_some((ty, column))
    }
}

/// Returns a `when` that the caller does not meet.
pub(super) fn for_others() -> Json {
    json!({"roles": ["somebody_else"]})
}

/// Converts an attribute to the kind of the value with which it is compared; `None` if this is not possible.
fn read_as(cell: &Cell, beside: &Value) -> Option<Value> {
    match (beside, cell) {
        (Value::Text(_), Cell::Int(number)) => Some(Value::Text(number.to_string())),
        (Value::Number(_), Cell::Text(text)) => Number::parse(text).map(Value::Number),
        (Value::Bool(_), Cell::Text(text)) => text.parse().ok().map(Value::Bool),
        (Value::Text(_), Cell::Text(_)) | (Value::Number(_), Cell::Int(_)) | (Value::Bool(_), Cell::Bool(_)) => {
            Some(cell.value(ColumnType::Text, false))
        }
        _ => None,
    }
}

/// A row of a table, with access to the rows that its cube's to-one joins find, before row filters.
struct Base<'w> {
    world: &'w World,
    cube: &'w Cube,
    row: usize,
}

impl<'w> Base<'w> {
    fn joined(&self, name: &str) -> Option<(&'w Cube, usize)> {
        let join = self.cube.joins.iter().find(|join| join.name == name)?;
        let target = self.world.cube(join.target())?;
        let value =
            |cube: &Cube, row: usize, column: usize| cube.rows[row][column].value(cube.columns[column].ty, false);
        let key = value(self.cube, self.row, join.left);
        let found = (0..target.rows.len()).find(|row| !key.is_null() && value(target, *row, join.right) == key);
        found.map(|row| (target, row))
    }
}

impl Rows for Base<'_> {
    fn row(&self, cube: Option<&str>) -> Option<(&Cube, &[Cell])> {
        let (cube, row) = match cube {
            None => (self.cube, self.row),
            Some(name) => self.joined(name)?,
        };
        Some((cube, cube.rows[row].as_slice()))
    }

    fn of(&self, cube: Option<&str>) -> Box<dyn Rows + '_> {
        let (cube, row) = cube.and_then(|name| self.joined(name)).unwrap_or((self.cube, self.row));
        Box::new(Base { world: self.world, cube, row })
    }
}
