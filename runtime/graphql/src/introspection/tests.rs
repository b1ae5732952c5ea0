//! Compares the results with those of the library's resolvers.

#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

use async_graphql::{Response as Executed, ValidationMode};
use serde_json::Map;

use super::*;
use crate::operation::Operation;
use crate::response::Response;
use crate::schema::{self, Modules};
use crate::settings::GraphQlSettings;
use crate::shape::TypeTable;

const TOOLS: &str = include_str!("../../test_data/introspection.graphql");

struct World {
    schema: GraphQlSchema,
    types: TypeTable,
    description: Description,
}

impl World {
    fn new() -> Self {
        let schema = schema::build(ValidationMode::Strict, Modules::ALL);
        let types = TypeTable::new(&schema::text(&schema, Modules::ALL));
        let description = Description::of(&schema).unwrap();
        World { schema, types, description }
    }

    fn read(&self, text: &str) -> Operation {
        Operation::read(text, None, Map::new(), &GraphQlSettings::default(), &self.types).unwrap()
    }

    fn execute(&self, document: ExecutableDocument) -> Executed {
        let mut request = Request::new("");
        request.set_parsed_query(document);
        self.schema.execute(request).now_or_never().unwrap()
    }
}

#[test]
fn results_equal_those_of_the_library() {
    let world = World::new();
    for text in [
        TOOLS,
        COMPLETE,
        "{ __typename schema: __schema { __typename types { __typename name } directives { __typename args { __typename } } } }",
        "{ __schema { types { fields { name args { name isDeprecated } } enumValues { name } inputFields { name } } } }",
        "{ a: __type(name: \"Cube\") { ...T } b: __type(name: \"Missing\") { ...T } c: __type(name: \"Int\") { ...T } }
         fragment T on __Type { kind fields { type { ofType { ofType { ofType { name description fields { name } } } } } } name }",
        "{ __type(name: \"Query\") { ... { fields { type { kind description isOneOf fields { name } ofType { kind } } } } } }",
        "{ __type(name: \"Query\") { name name: name } __type(name: \"Query\") { kind } }",
        "{ __schema { queryType { fields { name } } mutationType { kind } subscriptionType { name interfaces { name } } } }",
        "query Named { __type(name: \"TimeGranularity\") { enumValues(includeDeprecated: false) { name description } } }",
    ] {
        let operation = world.read(text);
        let parts = operation.parts();
        let library = Response::new(world.execute(parts.document.clone()), &parts.shape, &[], "");
        assert!(library.codes().is_empty(), "{text}: {library:?}");
        let own = Response::with_data(&world.description.answer(&parts.shape));
        assert_eq!(library.body(), own.body(), "{text}");
    }
}

#[test]
fn deprecated_items_are_left_out_unless_requested() {
    let mut world = World::new();
    let Some(Value::List(fields)) = world.description.types.get_mut("Cube").and_then(|cube| cube.get_mut("fields"))
    else {
        panic!("Cube has no fields")
    };
    let Some(Value::Object(first)) = fields.first_mut() else { panic!("Cube has no field") };
    first.insert(Name::new("isDeprecated"), Value::Boolean(true));
    let total = fields.len();
    let count = |arguments: &str| {
        let operation = world.read(&format!("{{ __type(name: \"Cube\") {{ fields{arguments} {{ name }} }} }}"));
        let answer = world.description.answer(&operation.parts().shape);
        let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
        answer["__type"]["fields"].as_array().unwrap().len()
    };
    assert_eq!(count(""), total - 1);
    assert_eq!(count("(includeDeprecated: false)"), total - 1);
    assert_eq!(count("(includeDeprecated: true)"), total);
}

#[test]
fn introspection_without_other_roots_fails_with_equal_errors() {
    let world = World::new();
    for (text, is_valid) in [
        (TOOLS, true),
        ("{ __schema { types { name } } }", true),
        ("{ __schema { types { nam } } }", false),
        ("{ __schema }", false),
        ("{ __type { name } }", false),
        ("{ __type(name: 1) { name } }", false),
        ("{ __type(name: \"Cube\", kind: 1) { name } }", false),
        ("{ ...T } fragment T on Query { __schema { types { ...Gone } } }", false),
        ("{ __typename } fragment T on Query { __typename }", false),
        ("{ __type(name: \"Cube\") { name } __type(name: \"Query\") { name } }", false),
        ("{ __schema { types @gone { name } } }", false),
    ] {
        let operation = world.read(text);
        let mut skipped = operation.parts().document.clone();
        assert!(skip_roots(&mut skipped), "{text}");
        let (whole, skipped) = (world.execute(operation.parts().document.clone()), world.execute(skipped));
        assert_eq!(whole.errors, skipped.errors, "{text}");
        assert_eq!(whole.errors.is_empty(), is_valid, "{text}: {:?}", whole.errors);
    }
}

#[test]
fn operations_with_variables_or_directives_are_left_to_the_library() {
    let world = World::new();
    for text in [
        "query($all: Boolean) { __type(name: \"Cube\") { fields(includeDeprecated: $all) { name } } }",
        "{ __typename @include(if: true) }",
        "{ ... @skip(if: false) { __typename } }",
    ] {
        assert!(!skip_roots(&mut world.read(text).parts().document.clone()), "{text}");
    }
}
