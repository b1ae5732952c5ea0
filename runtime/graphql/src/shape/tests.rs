//! Tests shapes and their costs with the schema of this crate.

use async_graphql::parser::parse_query;
use serde_json::json;
use terrane_wire::Code;

use super::*;
use crate::operation::Operation;

fn read(text: &str, variables: serde_json::Value, settings: &GraphQlSettings) -> Result<Operation, Refusal> {
    let types = TypeTable::new(&crate::schema_text());
    let serde_json::Value::Object(variables) = variables else { panic!("no object") };
    Operation::read(text, None, variables, settings, &types)
}

fn exceeded(text: &str) -> Option<String> {
    let refusal = read(text, json!({}), &GraphQlSettings::default()).err()?;
    assert_eq!(refusal.body().code, Code::GraphqlLimitExceeded, "{text}");
    refusal.body().field("limit").and_then(|limit| limit.as_str()).map(str::to_owned)
}

fn drawn(fields: &[ShapeField]) -> String {
    let drawn = |field: &ShapeField| match field.fields.is_empty() {
        true => field.key.to_string(),
        false => format!("{}{{{}}}", field.key, drawn(&field.fields)),
    };
    fields.iter().map(drawn).collect::<Vec<_>>().join(" ")
}

#[test]
fn fields_are_merged_in_the_order_of_the_document() {
    let text = "query($yes: Boolean = true, $no: Boolean!) {
        a: cubes { name } ...F cubes { title @skip(if: $no) name @include(if: $no) }
        ... @include(if: $yes) { cubes { name } } ... @skip(if: $yes) { gone }
    } fragment F on Query { cubes { description } a: cubes { title } }";
    let operation = read(text, json!({"no": false}), &GraphQlSettings::default()).unwrap();
    assert_eq!(drawn(operation.parts().shape.fields()), "a{name title} cubes{description title name}");
}

#[test]
fn executions_are_counted_through_aliases_and_fragments() {
    let ten: String = (0..10).map(|index| format!("q{index}: query(measures: [\"a.b\"]) {{ data }} ")).collect();
    assert_eq!(exceeded(&format!("{{ {ten} }}")), None);
    assert_eq!(
        exceeded(&format!("{{ {ten} q10: query(measures: [\"a.b\"]) {{ data }} }}")).as_deref(),
        Some("executions")
    );
    let through =
        format!("{{ ...F cubes {{ query(measures: [\"a.b\"]) {{ data }} }} }} fragment F on Query {{ {ten} }}");
    assert_eq!(exceeded(&through).as_deref(), Some("executions"));
    // The same key twice is only one query.
    assert_eq!(exceeded(&format!("{{ {ten} ...F }} fragment F on Query {{ {ten} }}")), None);
    let values: String = (0..11).map(|index| format!("v{index}: values {{ value }} ")).collect();
    assert_eq!(exceeded(&format!("{{ cubes {{ dimensions {{ {values} }} }} }}")).as_deref(), Some("executions"));
}

#[test]
fn aliases_of_one_field_are_bounded() {
    let many = |count: usize| (0..count).map(|index| format!("c{index}: cubes {{ name }} ")).collect::<String>();
    assert_eq!(exceeded(&format!("{{ {} }}", many(30))), None);
    assert_eq!(exceeded(&format!("{{ {} }}", many(31))).as_deref(), Some("aliases"));
    let unknown: String = (0..31).map(|index| format!("c{index}: nothing ")).collect();
    assert_eq!(exceeded(&format!("{{ {unknown} }}")).as_deref(), Some("aliases"));
}

#[test]
fn complexity_grows_with_rows_and_members() {
    let text = |limit: u64, count: usize| {
        let fields: String = (0..count)
            .map(|n| format!("q{n}: query(measures: [\"a.b\", \"a.c\"], limit: {limit}) {{ data }} "))
            .collect();
        format!("{{ {fields} }}")
    };
    assert_eq!(exceeded(&text(50_000, 10)), None);
    assert_eq!(exceeded(&text(2_000_000_000, 1)).as_deref(), Some("complexity"));
}

#[test]
fn introspection_of_tools_passes_and_deeper_one_does_not() {
    let types = "{ __schema { types { fields { args { type { ofType { ofType { name } } } } } } } }";
    assert_eq!(exceeded(types), None);
    let deep = "{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }";
    assert_eq!(exceeded(deep).as_deref(), Some("introspection_depth"));
}

#[test]
fn introspection_can_be_turned_off() {
    let settings = GraphQlSettings { introspection: false, ..GraphQlSettings::default() };
    for text in [
        "{ __schema { types { name } } }",
        "{ __type(name: \"Cube\") { name } }",
        "{ ...F } fragment F on Query { __schema { types { name } } }",
    ] {
        let refusal = read(text, json!({}), &settings).unwrap_err();
        assert_eq!(refusal.body().code, Code::GraphqlValidationFailed, "{text}");
    }
    assert!(read("{ __typename cubes { __typename } }", json!({}), &settings).is_ok());
}

#[test]
fn shapes_of_unknown_fields_have_no_type() {
    let document = parse_query("{ nothing { at { all } } }").unwrap();
    assert_eq!(document.operations.iter().count(), 1);
    let operation = read("{ nothing { at { all } } }", json!({}), &GraphQlSettings::default()).unwrap();
    assert!(operation.parts().shape.fields()[0].ty.is_none());
    assert_eq!(drawn(operation.parts().shape.fields()), "nothing{at{all}}");
}
