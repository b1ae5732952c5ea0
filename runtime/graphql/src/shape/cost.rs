//! The cost of an operation: queries in the warehouse, estimated complexity, and nested lists of introspection.
//!
//! In: a shape. Out: nothing, or the limit that it exceeds. A field costs 1. A query costs the number of its members,
//! times its rows divided by 100. The fields inside a list cost ten times as much. The length of a list is unknown
//! before the document runs, so a query inside a list counts as one query. While the document runs, `schema::request`
//! counts its different queries.

use terrane_app::dimension_values::DEFAULT_LIMIT;

use super::{ResultShape, ShapeField};
use crate::limits::Exceeded;
use crate::settings::Limits;

/// The assumed number of rows if a query has no `limit`.
const DEFAULT_ROWS: u64 = 1_000;
/// The fields that run a query in the warehouse: the object and the name of each, and the assumed number of rows if it
/// has no `limit`.
const QUERIES: &[(&str, &str, u64)] = &[
    ("Query", "query", DEFAULT_ROWS),
    ("Query", "explain", DEFAULT_ROWS),
    ("Query", "rootCause", DEFAULT_ROWS),
    ("Cube", "query", DEFAULT_ROWS),
    ("Dimension", "values", DEFAULT_LIMIT as u64),
    ("Subscription", "queryResult", DEFAULT_ROWS),
];
/// The fields of a result that write all of its rows. A result may have each of them once.
const WRITES_ROWS: &[&str] = &["data", "rows"];
/// The assumed number of items in a list of the model.
const LIST_ITEMS: u64 = 10;
/// The deepest nesting of lists in introspection. Tools nest two: the fields of all types, and their arguments.
const MAX_INTROSPECTION_LISTS: usize = 2;

/// Checks the cost of a shape. Its fields are fields of the object `root`.
pub(super) fn check(root: &str, shape: &ResultShape, limits: &Limits) -> Result<(), Exceeded> {
    let mut executions = 0;
    let mut complexity = 0_u64;
    for field in &shape.fields {
        complexity = complexity.saturating_add(cost(root, field, limits, &mut executions)?);
        if complexity > limits.complexity {
            return Err(Exceeded { limit: "complexity", max: limits.complexity, place: Some(field.place) });
        }
        introspection(field, 0)?;
    }
    Ok(())
}

/// Returns the cost of a field, and adds its queries to `executions`.
fn cost(parent: &str, field: &ShapeField, limits: &Limits, executions: &mut usize) -> Result<u64, Exceeded> {
    if field.name.starts_with("__") {
        return Ok(1);
    }
    if field.ty.as_ref().is_some_and(|ty| ty.named() == "QueryResult") {
        for name in WRITES_ROWS {
            if let Some(second) = field.fields.iter().filter(|child| &*child.name == *name).nth(1) {
                return Err(Exceeded::new("aliases", 1, Some(second.place)));
            }
        }
    }
    let mut own = 1_u64;
    let query = QUERIES.iter().find(|(object, name, _)| *object == parent && *name == &*field.name);
    if let Some((_, _, default_rows)) = query {
        *executions += 1;
        if *executions > limits.executions {
            return Err(Exceeded::new("executions", limits.executions, Some(field.place)));
        }
        let rows = field.limit.unwrap_or(*default_rows);
        own = field.members.max(1).saturating_mul(rows.div_ceil(100));
    }
    let mut inner = 0_u64;
    if let Some(ty) = &field.ty {
        for child in &field.fields {
            inner = inner.saturating_add(cost(ty.named(), child, limits, executions)?);
        }
        if ty.is_list() {
            inner = inner.saturating_mul(LIST_ITEMS);
        }
    }
    Ok(own.saturating_add(inner))
}

/// Checks the nesting of those introspection lists that contain types.
fn introspection(field: &ShapeField, lists: usize) -> Result<(), Exceeded> {
    let holds_types = matches!(&*field.name, "fields" | "inputFields" | "interfaces" | "possibleTypes");
    let is_schema = field.ty.as_ref().is_some_and(|ty| ty.named().starts_with("__"));
    if !is_schema {
        return Ok(());
    }
    let lists = lists + usize::from(holds_types);
    if lists > MAX_INTROSPECTION_LISTS {
        return Err(Exceeded::new("introspection_depth", MAX_INTROSPECTION_LISTS, Some(field.place)));
    }
    field.fields.iter().try_for_each(|inner| introspection(inner, lists))
}
