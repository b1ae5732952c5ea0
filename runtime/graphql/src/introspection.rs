//! Introspection without the library's resolvers, which need a future and several allocations for each of thousands of
//! fields.
//!
//! In: the complete description of the schema, which the library writes once, and the shape of an operation that
//! selects only introspection fields. Out: the JSON of its result, equal to the library's. Not here: the rules of
//! validation, which the library checks ([`skip_roots`] prepares the document for that), and variables, whose
//! operations the library executes.

use std::collections::HashMap;
use std::convert::Infallible;

use async_graphql::indexmap::IndexMap;
use async_graphql::parser::types::{Directive, DocumentOperations, ExecutableDocument, Selection};
use async_graphql::{Name, Pos, Positioned, Request, Value};
use async_graphql_value::Value as DocumentValue;
use futures_util::FutureExt as _;
use terrane_wire::json::write_string;

use crate::response::write::{members, scalar};
use crate::schema::GraphQlSchema;
use crate::shape::{FieldType, ResultShape, ShapeField};

/// A document that selects every field of introspection. Types that are referred to have a name and, for lists and
/// non-null types, the type inside.
const COMPLETE: &str = include_str!("introspection/complete.graphql");

/// The object that a field of introspection belongs to.
type Object = IndexMap<Name, Value>;

/// The description of a schema.
pub(crate) struct Description {
    schema: Object,
    types: HashMap<String, Object>,
}

impl Description {
    /// Reads the description of a schema. Returns `None` if the introspection query fails or has to wait.
    pub(crate) fn of(schema: &GraphQlSchema) -> Option<Self> {
        let executed = schema.execute(Request::new(COMPLETE)).now_or_never()?;
        let Value::Object(mut data) = executed.data else { return None };
        let Value::Object(schema) = data.swap_remove("__schema")? else { return None };
        let Value::List(types) = schema.get("types")? else { return None };
        let types = types.iter().filter_map(|ty| match ty {
            Value::Object(ty) => Some((type_name(ty)?.to_owned(), ty.clone())),
            _ => None,
        });
        Some(Description { types: types.collect(), schema })
    }

    /// Returns the result of an operation as JSON. The operation must be valid, must be a query that selects only
    /// fields of introspection, and must have no variables.
    pub(crate) fn answer(&self, shape: &ResultShape) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 * 1024);
        self.fields("Query", shape.fields(), &mut out, |field| match &*field.name {
            "__schema" => Some(FieldValue::Object(&self.schema)),
            _ => self.types.get(field.introspection.name.as_deref()?).map(FieldValue::Object),
        });
        out
    }

    /// Writes the fields of one object, whose values `find` returns.
    fn fields<'v>(
        &'v self,
        type_name: &str,
        fields: &[ShapeField],
        out: &mut Vec<u8>,
        find: impl Fn(&ShapeField) -> Option<FieldValue<'v>>,
    ) {
        let Ok(()) = members(fields, out, |field, out| {
            match find(field) {
                _ if field.name == "__typename" => write_string(type_name, out),
                Some(FieldValue::Object(object)) => self.object(object, field, out),
                Some(FieldValue::Value(value)) => self.value(value, field, out),
                None => out.extend_from_slice(b"null"),
            }
            Ok::<(), Infallible>(())
        });
    }

    fn object(&self, object: &Object, field: &ShapeField, out: &mut Vec<u8>) {
        // A reference to a type has only its name; the type itself has all fields.
        let object = type_name(object).and_then(|name| self.types.get(name)).unwrap_or(object);
        let type_name = field.ty.as_deref().map_or("", FieldType::named);
        self.fields(type_name, &field.fields, out, |field| object.get(&field.name).map(FieldValue::Value));
    }

    fn value(&self, value: &Value, field: &ShapeField, out: &mut Vec<u8>) {
        match value {
            Value::Object(object) => self.object(object, field, out),
            Value::List(items) => {
                out.push(b'[');
                let shown = items.iter().filter(|item| field.introspection.includes_deprecated || !is_deprecated(item));
                for (index, item) in shown.enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    self.value(item, field, out);
                }
                out.push(b']');
            }
            value => scalar(value, out),
        }
    }
}

enum FieldValue<'v> {
    Object(&'v Object),
    Value(&'v Value),
}

/// Returns the name of a type, or `None` if the object is not a type, or is a list or a non-null type.
fn type_name(object: &Object) -> Option<&str> {
    match (object.get("kind")?, object.get("name")?) {
        (_, Value::String(name)) => Some(name),
        _ => None,
    }
}

fn is_deprecated(item: &Value) -> bool {
    matches!(item, Value::Object(object) if object.get("isDeprecated") == Some(&Value::Boolean(true)))
}

/// Adds `@skip(if: true)` to each selection at the root of all operations. Executing such a document checks it against
/// all rules of validation, and resolves nothing. Returns false if a selection has a directive, since directives must
/// not be repeated, or if an operation has variables.
pub(crate) fn skip_roots(document: &mut ExecutableDocument) -> bool {
    let operations: Vec<_> = match &mut document.operations {
        DocumentOperations::Single(operation) => vec![operation],
        DocumentOperations::Multiple(operations) => operations.values_mut().collect(),
    };
    for operation in operations {
        if !operation.node.variable_definitions.is_empty() {
            return false;
        }
        for selection in &mut operation.node.selection_set.node.items {
            let directives = match &mut selection.node {
                Selection::Field(field) => &mut field.node.directives,
                Selection::FragmentSpread(spread) => &mut spread.node.directives,
                Selection::InlineFragment(fragment) => &mut fragment.node.directives,
            };
            if !directives.is_empty() {
                return false;
            }
            directives.push(skip(selection.pos));
        }
    }
    true
}

fn skip(place: Pos) -> Positioned<Directive> {
    let condition = (Positioned::new(Name::new("if"), place), Positioned::new(DocumentValue::Boolean(true), place));
    let directive = Directive { name: Positioned::new(Name::new("skip"), place), arguments: vec![condition] };
    Positioned::new(directive, place)
}

#[cfg(test)]
mod tests;
