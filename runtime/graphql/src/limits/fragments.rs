//! Measures a parsed document: circular fragments, depth, directives, the number of selections after all fragments are
//! expanded, and the size of introspection.
//!
//! In: the document. Out: nothing, or the limit that it exceeds. Each fragment is measured once, so the effort is
//! proportional to the text, even if the expanded fragments double with each level. Fragments that no operation uses
//! are measured too, because the library's validation visits them. Unknown fragments count as empty; validation
//! reports them.

use std::collections::HashMap;

use async_graphql::parser::types::{Directive, ExecutableDocument, Selection, SelectionSet};
use async_graphql::{Pos, Positioned};

use super::Exceeded;
use crate::refusal::Refusal;
use crate::settings::Limits;

/// The size of a selection set whose fragments are expanded.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    depth: usize,
    selections: usize,
    /// The estimated number of values, if the selection set is inside an introspection field.
    values: u64,
    /// The estimated number of values below `__schema` and `__type`.
    introspection: u64,
}

/// The lists of introspection, with the average number of their items in the schema. An introspection query resolves
/// the items of all lists that it selects.
const LISTS: &[(&str, u64)] = &[
    ("types", 60),
    ("fields", 5),
    ("args", 2),
    ("inputFields", 1),
    ("enumValues", 1),
    ("interfaces", 1),
    ("possibleTypes", 1),
    ("directives", 5),
];

impl Size {
    /// Returns the size of a field whose selection set has this size.
    fn inside(self, name: &str) -> Self {
        let items = LISTS.iter().find(|(list, _)| *list == name).map_or(1, |(_, items)| *items);
        let values = self.values.saturating_add(1).saturating_mul(items);
        Size {
            depth: self.depth + 1,
            selections: self.selections.saturating_add(1),
            values,
            introspection: if matches!(name, "__schema" | "__type") { values } else { self.introspection },
        }
    }

    /// Adds the size of another selection of the same selection set.
    fn add(&mut self, other: Size) {
        self.depth = self.depth.max(other.depth);
        self.selections = self.selections.saturating_add(other.selections).saturating_add(1);
        self.values = self.values.saturating_add(other.values);
        self.introspection = self.introspection.saturating_add(other.introspection);
    }
}

/// The progress of measuring a fragment.
#[derive(Debug, Clone, Copy)]
enum Progress {
    Started,
    Done(Size),
}

struct Measure<'d> {
    document: &'d ExecutableDocument,
    limits: &'d Limits,
    fragments: HashMap<&'d str, Progress>,
}

/// Checks a document against the limits.
pub(crate) fn check(document: &ExecutableDocument, limits: &Limits) -> Result<(), Refusal> {
    let mut measure = Measure { document, limits, fragments: HashMap::new() };
    for (_, operation) in document.operations.iter() {
        measure.directives(&operation.node.directives)?;
        for variable in &operation.node.variable_definitions {
            measure.directives(&variable.node.directives)?;
        }
        let size = measure.set(&operation.node.selection_set)?;
        measure.within(size, operation.pos)?;
    }
    for (name, fragment) in &document.fragments {
        let size = measure.fragment(name, fragment.pos)?;
        measure.within(size, fragment.pos)?;
    }
    Ok(())
}

impl<'d> Measure<'d> {
    fn within(&self, size: Size, place: Pos) -> Result<(), Exceeded> {
        let Limits { depth, selections, complexity, .. } = *self.limits;
        if size.depth > depth {
            return Err(Exceeded::new("depth", depth, Some(place)));
        }
        if size.selections > selections {
            return Err(Exceeded::new("selections", selections, Some(place)));
        }
        if size.introspection > complexity {
            return Err(Exceeded { limit: "complexity", max: complexity, place: Some(place) });
        }
        Ok(())
    }

    fn directives(&self, directives: &[Positioned<Directive>]) -> Result<(), Exceeded> {
        let first = directives.get(self.limits.directives);
        first.map_or(Ok(()), |first| Err(Exceeded::new("directives", self.limits.directives, Some(first.pos))))
    }

    /// Measures a selection set. The depth of the recursion is bounded by the nesting of brackets, which `scan` limits,
    /// and by the number of fragments, each of which is entered once.
    fn set(&mut self, set: &'d Positioned<SelectionSet>) -> Result<Size, Refusal> {
        let mut size = Size::default();
        for selection in &set.node.items {
            self.directives(selection.node.directives())?;
            let inner = match &selection.node {
                Selection::Field(field) => {
                    let inner = self.set(&field.node.selection_set)?;
                    if inner.depth + 1 > self.limits.depth {
                        return Err(Exceeded::new("depth", self.limits.depth, Some(field.pos)).into());
                    }
                    inner.inside(&field.node.name.node)
                }
                Selection::InlineFragment(fragment) => self.set(&fragment.node.selection_set)?,
                Selection::FragmentSpread(spread) => self.fragment(&spread.node.fragment_name.node, spread.pos)?,
            };
            size.add(inner);
        }
        Ok(size)
    }

    fn fragment(&mut self, name: &str, place: Pos) -> Result<Size, Refusal> {
        let document = self.document;
        let Some((name, fragment)) = document.fragments.get_key_value(name) else { return Ok(Size::default()) };
        match self.fragments.get(name.as_str()) {
            Some(Progress::Done(size)) => return Ok(*size),
            Some(Progress::Started) => {
                let hint = "Let no fragment use itself, directly or through others.";
                return Err(Refusal::invalid(format!("circular fragment `{name}`"), hint).at(Some(place)));
            }
            None => {}
        }
        self.fragments.insert(name, Progress::Started);
        self.directives(&fragment.node.directives)?;
        let size = self.set(&fragment.node.selection_set)?;
        self.fragments.insert(name, Progress::Done(size));
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use async_graphql::parser::parse_query;
    use terrane_wire::Code;

    use super::*;

    fn refused(text: &str) -> Option<String> {
        let document = parse_query(text).unwrap();
        let refusal = check(&document, &Limits::default()).err()?;
        let body = refusal.body();
        match body.code {
            Code::GraphqlLimitExceeded => body.field("limit").and_then(|limit| limit.as_str()).map(str::to_owned),
            code => Some(code.as_str().to_owned()),
        }
    }

    #[test]
    fn circular_fragments_are_refused() {
        for text in [
            "{ ...A } fragment A on Query { cubes { ...A } }",
            "{ ...A } fragment A on Query { ...B } fragment B on Query { ...C } fragment C on Query { ...A }",
            "{ a } fragment A on Query { ...B } fragment B on Query { ...A }",
            "{ ... { ...A } } fragment A on Query { ... on Query { ...A } }",
        ] {
            assert_eq!(refused(text).as_deref(), Some("GRAPHQL_VALIDATION_FAILED"), "{text}");
        }
    }

    #[test]
    fn doubling_fragments_are_refused_in_time() {
        let mut text = "{ ...F0 }".to_owned();
        for level in 0..60 {
            text.push_str(&format!(" fragment F{level} on Query {{ ...F{0} ...F{0} }}", level + 1));
        }
        text.push_str(" fragment F60 on Query { a }");
        assert_eq!(refused(&text).as_deref(), Some("selections"));
    }

    #[test]
    fn repeated_lists_of_introspection_are_counted() {
        let types = |count: usize, inner: &str| {
            let lists: String = (0..count).map(|index| format!("t{index}: types {{ {inner} }} ")).collect();
            format!("{{ __schema {{ {lists} }} }}")
        };
        assert_eq!(refused(&types(30, "name")), None);
        assert_eq!(refused(include_str!("../../test_data/introspection.graphql")), None);
        let fields: String = (0..30).map(|index| format!("f{index}: fields {{ args {{ name }} }} ")).collect();
        assert_eq!(refused(&types(20, &fields)).as_deref(), Some("complexity"));
        // A key that is selected twice is resolved twice.
        let repeated = "fields { args { name name name name } } ".repeat(60);
        assert_eq!(refused(&types(3, &repeated)).as_deref(), Some("complexity"));
        let through = format!(
            "{{ __schema {{ {} }} }} fragment F on __Schema {{ types {{ {} }} }}",
            "...F ".repeat(20),
            "fields { args { name } } ".repeat(30),
        );
        assert_eq!(refused(&through).as_deref(), Some("complexity"));
    }

    #[test]
    fn depth_counts_fields_through_fragments() {
        let nested = |depth: usize| format!("{}{}", "{ a ".repeat(depth), "}".repeat(depth));
        assert_eq!(refused(&nested(15)), None);
        assert_eq!(refused(&nested(16)).as_deref(), Some("depth"));
        let split = |depth: usize| {
            format!("{}{{ ...A }}{} fragment A on Query {}", "{ a ".repeat(8), "}".repeat(8), nested(depth - 8))
        };
        assert_eq!(refused(&split(15)), None);
        assert_eq!(refused(&split(16)).as_deref(), Some("depth"));
    }

    #[test]
    fn directives_are_bounded_at_each_place() {
        let many = |count: usize| "@include(if: true) ".repeat(count);
        assert_eq!(refused(&format!("{{ a {} b {} }}", many(8), many(8))), None);
        for text in [
            format!("{{ a {} }}", many(9)),
            format!("query {} {{ a }}", many(9)),
            format!("query($a: Int {}) {{ a }}", many(9)),
            format!("{{ ... {} {{ a }} }}", many(9)),
            format!("{{ ...A {} }} fragment A on Query {{ a }}", many(9)),
            format!("{{ ...A }} fragment A on Query {} {{ a }}", many(9)),
        ] {
            assert_eq!(refused(&text).as_deref(), Some("directives"), "{text}");
        }
    }
}
