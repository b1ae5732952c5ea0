//! Writes values along the shape of their operation.
//!
//! In: the executor's values, in the order in which they were resolved and without fields that failed. Out: JSON in the
//! order of the document. Missing values become null where their types allow it.

use async_graphql::Value;
use terrane_wire::json::write_string;

use crate::shape::{FieldBase, FieldType, ShapeField};

/// The error that a value is null although its type does not allow it. The object that contains the value becomes null.
struct NullInside;

/// Appends the value of `data` as JSON.
pub(super) fn data(data: &Value, fields: &[ShapeField], out: &mut Vec<u8>) {
    let start = out.len();
    if object(data, fields, out).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

fn object(value: &Value, fields: &[ShapeField], out: &mut Vec<u8>) -> Result<(), NullInside> {
    let Value::Object(values) = value else { return Err(NullInside) };
    members(fields, out, |field, out| match &field.ty {
        Some(ty) => typed(values.get(&field.key), ty, &field.fields, out),
        None => {
            scalar(values.get(&field.key).unwrap_or(&Value::Null), out);
            Ok(())
        }
    })
}

/// Writes an object with a member for each field, whose value `write` appends.
///
/// # Errors
/// Returns the first error of `write`. The object is then incomplete.
pub(crate) fn members<E>(
    fields: &[ShapeField],
    out: &mut Vec<u8>,
    mut write: impl FnMut(&ShapeField, &mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    out.push(b'{');
    for (index, field) in fields.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(&field.key, out);
        out.push(b':');
        write(field, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn typed(value: Option<&Value>, ty: &FieldType, fields: &[ShapeField], out: &mut Vec<u8>) -> Result<(), NullInside> {
    let start = out.len();
    let written = match (value, &ty.base) {
        (None | Some(Value::Null), _) => Err(NullInside),
        (Some(Value::List(items)), FieldBase::List(of)) => list(items, of, fields, out),
        (Some(value), FieldBase::Named(_)) if !fields.is_empty() => object(value, fields, out),
        (Some(value), _) => {
            scalar(value, out);
            Ok(())
        }
    };
    if written.is_err() && ty.is_nullable {
        out.truncate(start);
        out.extend_from_slice(b"null");
        return Ok(());
    }
    written
}

fn list(items: &[Value], ty: &FieldType, fields: &[ShapeField], out: &mut Vec<u8>) -> Result<(), NullInside> {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        typed(Some(item), ty, fields, out)?;
    }
    out.push(b']');
    Ok(())
}

/// Writes a scalar or an enum. A binary value contains JSON and is appended unchanged.
pub(crate) fn scalar(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Boolean(true) => out.extend_from_slice(b"true"),
        Value::Boolean(false) => out.extend_from_slice(b"false"),
        Value::String(text) => write_string(text, out),
        Value::Enum(name) => write_string(name, out),
        Value::Binary(json) => out.extend_from_slice(json),
        Value::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::List(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                scalar(item, out);
            }
            out.push(b']');
        }
        Value::Object(fields) => {
            out.push(b'{');
            for (index, (name, value)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_string(name, out);
                out.push(b':');
                scalar(value, out);
            }
            out.push(b'}');
        }
    }
}

#[cfg(test)]
mod tests {
    use async_graphql::Name;
    use async_graphql::indexmap::IndexMap;
    use serde_json::json;

    use super::*;
    use crate::operation::Operation;
    use crate::settings::GraphQlSettings;
    use crate::shape::TypeTable;

    const SCHEMA: &str = "type Query { must: Item! may: Item list: [Item!] sparse: [Item]! }
        type Item { name: String! title: String inner: Item! }";

    fn written(document: &str, data: serde_json::Value) -> String {
        let (settings, types) = (GraphQlSettings::default(), TypeTable::new(SCHEMA));
        let operation = Operation::read(document, None, serde_json::Map::new(), &settings, &types).unwrap();
        let mut out = Vec::new();
        super::data(&Value::from_json(data).unwrap(), operation.parts().shape.fields(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn null_goes_up_to_the_next_field_that_may_be_null() {
        // The data does not contain fields that failed.
        for (document, data, expected) in [
            ("{ may { title name } }", json!({"may": {"name": "a"}}), r#"{"may":{"title":null,"name":"a"}}"#),
            ("{ may { name title } }", json!({"may": {"title": "a"}}), r#"{"may":null}"#),
            ("{ may { inner { name } } }", json!({"may": {"inner": {}}}), r#"{"may":null}"#),
            ("{ must { name } }", json!({"must": {}}), "null"),
            ("{ list { name } }", json!({"list": [{"name": "a"}, {}]}), r#"{"list":null}"#),
            ("{ sparse { name } }", json!({"sparse": [{"name": "a"}, {}]}), r#"{"sparse":[{"name":"a"},null]}"#),
            ("{ sparse { name } }", json!({}), "null"),
        ] {
            assert_eq!(written(document, data), expected, "{document}");
        }
    }

    #[test]
    fn keys_follow_the_order_of_the_document() {
        let data = json!({"b": {"z": "1", "name": "2"}, "a": {"name": "3"}});
        assert_eq!(
            written("{ a: must { name } b: must { name z: title } }", data),
            r#"{"a":{"name":"3"},"b":{"name":"2","z":"1"}}"#
        );
    }

    #[test]
    fn bytes_are_written_unchanged() {
        let rows = Value::List(vec![Value::Binary("{\"a\":1},{\"a\":2}".into())]);
        let object = Value::Object(IndexMap::from([(Name::new("rows"), rows)]));
        let mut out = Vec::new();
        scalar(&object, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"rows":[{"a":1},{"a":2}]}"#);
    }
}
