//! Converts JSON to the contract's values and back, by the types of the component itself.
//!
//! In: a type, and a JSON value or a value of the contract. Out: the value in the other form. Names are those of the
//! contract (kebab-case). In JSON, a record is an object, a tuple is an array, an enum is its name, flags are an array
//! of names, and an option is null or the value. A result is `{"ok": …}` or `{"err": …}`, and a variant is
//! `{"case": …}` or the case's name alone. NaN and the infinities are the strings `"NaN"`, `"Infinity"` and
//! `"-Infinity"`. Fields of a record may be omitted if they are options, lists or flags, or records of such fields
//! only. Not here: functions and their parameters.

use serde_json::{Map, Number, Value, json};
use wasmtime::component::types::Record;
use wasmtime::component::{Type, Val};

/// An invalid value, and its place as a JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    pub path: String,
    pub message: String,
}

/// Returns the value of type `ty` that the JSON describes. If it has several errors, all are reported.
pub(super) fn to_val(ty: &Type, value: &Value, path: &str, field_errors: &mut Vec<FieldError>) -> Option<Val> {
    let found = match (ty, value) {
        (Type::Record(record), Value::Object(fields)) => return to_record(record, fields, path, field_errors),
        (Type::List(list), Value::Array(items)) => {
            return to_list(&list.ty(), items, path, field_errors).map(Val::List);
        }
        (Type::Tuple(tuple), Value::Array(items)) => {
            let types: Vec<Type> = tuple.types().collect();
            if types.len() == items.len() {
                let pairs = types.iter().zip(items).enumerate();
                let values = pairs.map(|(at, (ty, item))| to_val(ty, item, &format!("{path}/{at}"), field_errors));
                return values.collect::<Vec<_>>().into_iter().collect::<Option<_>>().map(Val::Tuple);
            }
            None
        }
        (Type::Option(_), Value::Null) => Some(Val::Option(None)),
        (Type::Option(option), value) => {
            return to_val(&option.ty(), value, path, field_errors).map(|value| Val::Option(Some(Box::new(value))));
        }
        (Type::Result(result), Value::Object(fields)) if fields.len() == 1 => {
            let payload = |ty: Option<Type>, value: &Value, field_errors: &mut _| match ty {
                Some(ty) => to_val(&ty, value, path, field_errors).map(|value| Some(Box::new(value))),
                None => Some(None),
            };
            if let Some(value) = fields.get("ok") {
                return payload(result.ok(), value, field_errors).map(|value| Val::Result(Ok(value)));
            }
            if let Some(value) = fields.get("err") {
                return payload(result.err(), value, field_errors).map(|value| Val::Result(Err(value)));
            }
            None
        }
        (Type::Variant(_), _) => return to_variant(ty, value, path, field_errors),
        (Type::Enum(names), Value::String(name)) => {
            names.names().any(|known| known == name).then(|| Val::Enum(name.clone()))
        }
        (Type::Flags(flags), Value::Array(items)) => {
            let name = |item: &Value| {
                item.as_str().filter(|name| flags.names().any(|known| known == *name)).map(str::to_owned)
            };
            items.iter().map(name).collect::<Option<Vec<_>>>().map(Val::Flags)
        }
        (ty, value) => to_scalar(ty, value),
    };
    if found.is_none() {
        field_errors.push(FieldError {
            path: path.to_owned(),
            message: format!("expected {}, found {}", described(ty), shown(value)),
        });
    }
    found
}

fn to_scalar(ty: &Type, value: &Value) -> Option<Val> {
    fn whole<T: TryFrom<i128>>(value: &Value) -> Option<T> {
        let number = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))?;
        T::try_from(number).ok()
    }
    Some(match ty {
        Type::Bool => Val::Bool(value.as_bool()?),
        Type::S8 => Val::S8(whole(value)?),
        Type::U8 => Val::U8(whole(value)?),
        Type::S16 => Val::S16(whole(value)?),
        Type::U16 => Val::U16(whole(value)?),
        Type::S32 => Val::S32(whole(value)?),
        Type::U32 => Val::U32(whole(value)?),
        Type::S64 => Val::S64(whole(value)?),
        Type::U64 => Val::U64(whole(value)?),
        Type::Float32 => Val::Float32(float(value)? as f32),
        Type::Float64 => Val::Float64(float(value)?),
        Type::Char => {
            let mut characters = value.as_str()?.chars();
            let first = characters.next()?;
            characters.next().is_none().then_some(Val::Char(first))?
        }
        Type::String => Val::String(value.as_str()?.to_owned()),
        _ => return None,
    })
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(name) => match name.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn to_list(ty: &Type, items: &[Value], path: &str, field_errors: &mut Vec<FieldError>) -> Option<Vec<Val>> {
    // Converts all fields, so that every error is reported.
    let values: Vec<_> =
        items.iter().enumerate().map(|(at, item)| to_val(ty, item, &format!("{path}/{at}"), field_errors)).collect();
    values.into_iter().collect()
}

fn to_record(
    record: &Record,
    fields: &Map<String, Value>,
    path: &str,
    field_errors: &mut Vec<FieldError>,
) -> Option<Val> {
    let names: Vec<&str> = record.fields().map(|field| field.name).collect();
    let unknown: Vec<&String> = fields.keys().filter(|name| !names.contains(&name.as_str())).collect();
    for name in &unknown {
        let message = format!("unknown field; the fields are {}", names.join(", "));
        field_errors.push(FieldError { path: format!("{path}/{name}"), message });
    }
    let mut values = Vec::with_capacity(names.len());
    for field in record.fields() {
        let place = format!("{path}/{}", field.name);
        let value = match fields.get(field.name) {
            Some(value) => to_val(&field.ty, value, &place, field_errors),
            None => empty(&field.ty).or_else(|| {
                field_errors.push(FieldError { path: place, message: format!("{} is missing", described(&field.ty)) });
                None
            }),
        };
        values.push(value.map(|value| (field.name.to_owned(), value)));
    }
    let values = values.into_iter().collect::<Option<Vec<_>>>()?;
    unknown.is_empty().then_some(Val::Record(values))
}

/// Returns the value that an omitted field has, or `None` if fields of the type must not be omitted.
pub(super) fn empty(ty: &Type) -> Option<Val> {
    match ty {
        Type::Option(_) => Some(Val::Option(None)),
        Type::List(_) => Some(Val::List(Vec::new())),
        Type::Flags(_) => Some(Val::Flags(Vec::new())),
        // A record may be omitted if all its fields may be omitted. An arena is such a record.
        Type::Record(record) => {
            let field = |field: wasmtime::component::types::Field<'_>| Some((field.name.to_owned(), empty(&field.ty)?));
            record.fields().map(field).collect::<Option<_>>().map(Val::Record)
        }
        _ => None,
    }
}

fn to_variant(ty: &Type, value: &Value, path: &str, field_errors: &mut Vec<FieldError>) -> Option<Val> {
    let Type::Variant(variant) = ty else { return None };
    let (name, payload) = match value {
        Value::String(name) => (name.as_str(), None),
        Value::Object(fields) if fields.len() == 1 => {
            fields.iter().next().map(|(name, payload)| (name.as_str(), Some(payload)))?
        }
        _ => ("", None),
    };
    let case = variant.cases().find(|case| case.name == name);
    match (case.map(|case| case.ty), payload) {
        (Some(Some(ty)), Some(payload)) => to_val(&ty, payload, &format!("{path}/{name}"), field_errors)
            .map(|payload| Val::Variant(name.to_owned(), Some(Box::new(payload)))),
        (Some(None), None | Some(Value::Null)) => Some(Val::Variant(name.to_owned(), None)),
        _ => {
            let message = format!("expected {}, found {}", described(ty), shown(value));
            field_errors.push(FieldError { path: path.to_owned(), message });
            None
        }
    }
}

/// Returns a readable description of a type.
pub(super) fn described(ty: &Type) -> String {
    match ty {
        Type::Bool => "true or false".to_owned(),
        Type::S8 | Type::S16 | Type::S32 | Type::S64 => "an integer".to_owned(),
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => "an integer from 0".to_owned(),
        Type::Float32 | Type::Float64 => "a number, \"NaN\", \"Infinity\" or \"-Infinity\"".to_owned(),
        Type::Char => "one character".to_owned(),
        Type::String => "a string".to_owned(),
        Type::List(list) => format!("a list of: {}", described(&list.ty())),
        Type::Record(record) => {
            let names: Vec<&str> = record.fields().map(|field| field.name).collect();
            format!("an object with {}", names.join(", "))
        }
        Type::Tuple(tuple) => format!("a list of {}", tuple.types().len()),
        Type::Variant(variant) => {
            let case = |case: wasmtime::component::types::Case<'_>| match case.ty {
                Some(_) => format!("{{\"{}\": …}}", case.name),
                None => format!("\"{}\"", case.name),
            };
            format!("one of {}", variant.cases().map(case).collect::<Vec<_>>().join(", "))
        }
        Type::Enum(names) => format!("one of {}", names.names().collect::<Vec<_>>().join(", ")),
        Type::Flags(flags) => format!("a list out of {}", flags.names().collect::<Vec<_>>().join(", ")),
        Type::Option(option) => format!("null, or {}", described(&option.ty())),
        Type::Result(_) => "{\"ok\": …} or {\"err\": …}".to_owned(),
        _ => "something that JSON cannot write".to_owned(),
    }
}

fn shown(value: &Value) -> String {
    const SHOWN: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Returns the JSON of a guest's value.
pub(super) fn from_val(value: &Val) -> Value {
    let payload = |payload: &Option<Box<Val>>| payload.as_deref().map_or(Value::Null, from_val);
    match value {
        Val::Bool(value) => json!(value),
        Val::S8(value) => json!(value),
        Val::U8(value) => json!(value),
        Val::S16(value) => json!(value),
        Val::U16(value) => json!(value),
        Val::S32(value) => json!(value),
        Val::U32(value) => json!(value),
        Val::S64(value) => json!(value),
        Val::U64(value) => json!(value),
        Val::Float32(value) => from_float(f64::from(*value)),
        Val::Float64(value) => from_float(*value),
        Val::Char(value) => json!(value),
        Val::String(value) => json!(value),
        Val::List(items) | Val::Tuple(items) | Val::FixedLengthList(items) => items.iter().map(from_val).collect(),
        Val::Record(fields) => fields.iter().map(|(name, value)| (name.clone(), from_val(value))).collect(),
        Val::Variant(name, None) | Val::Enum(name) => json!(name),
        Val::Variant(name, Some(payload)) => json!({ name.as_str(): from_val(payload) }),
        Val::Option(value) => payload(value),
        Val::Result(Ok(value)) => json!({"ok": payload(value)}),
        Val::Result(Err(value)) => json!({"err": payload(value)}),
        Val::Flags(names) => json!(names),
        // The contract uses none of these types.
        Val::Map(_) | Val::Resource(_) | Val::Future(_) | Val::Stream(_) | Val::ErrorContext(_) => Value::Null,
    }
}

fn from_float(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => json!("NaN"),
        None if value > 0.0 => json!("Infinity"),
        None => json!("-Infinity"),
    }
}
