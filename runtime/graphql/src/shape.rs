//! The shape of an operation's result: its fields in the order of the document, with fragments expanded, directives
//! applied and equal response keys merged.
//!
//! In: an operation with its variables, and the types of the schema. Out: a [`ResultShape`] after checking its limits:
//! aliases, executions, complexity, and the depth of introspection. The response is written along the shape. A field
//! that is not in the schema has no type in the shape. Validation refuses such a field later.

mod cost;
mod types;

use std::collections::HashMap;
use std::sync::Arc;

use async_graphql::indexmap::IndexMap;
use async_graphql::parser::types::{
    Directive, Field, FragmentDefinition, OperationDefinition, OperationType, Selection, SelectionSet,
};
use async_graphql::{Name, Pos, Positioned, Value, Variables};
use async_graphql_value::Value as DocumentValue;

pub(crate) use types::{FieldBase, FieldType, TypeTable};

use crate::limits::Exceeded;
use crate::refusal::Refusal;
use crate::settings::GraphQlSettings;

pub(crate) type Fragments = HashMap<Name, Positioned<FragmentDefinition>>;

/// The fields of an operation's result.
#[derive(Debug)]
pub(crate) struct ResultShape {
    fields: Vec<ShapeField>,
    is_introspection: bool,
}

/// A field of a result.
#[derive(Debug)]
pub(crate) struct ShapeField {
    pub(crate) key: Name,
    pub(crate) name: Name,
    /// The type, or `None` if the schema does not have the field.
    pub(crate) ty: Option<Arc<FieldType>>,
    /// The fields selected inside this field. Scalars and enums have none.
    pub(crate) fields: Vec<ShapeField>,
    place: Pos,
    /// The argument `limit` of the first selection with this key. Valid selections with one key have equal arguments.
    limit: Option<u64>,
    pub(crate) introspection: IntrospectionArguments,
    members: u64,
}

/// The arguments of an introspection field, if they are literals. Other fields have the default values.
#[derive(Debug, Default)]
pub(crate) struct IntrospectionArguments {
    /// The argument `name` of `__type`.
    pub(crate) name: Option<String>,
    /// The argument `includeDeprecated`.
    pub(crate) includes_deprecated: bool,
}

impl IntrospectionArguments {
    fn new(field: &Field) -> Self {
        let argument = |name: &str| field.get_argument(name).map(|value| &value.node);
        let name = match argument("name") {
            Some(DocumentValue::String(name)) => Some(name.clone()),
            _ => None,
        };
        let includes_deprecated = matches!(argument("includeDeprecated"), Some(DocumentValue::Boolean(true)));
        IntrospectionArguments { name, includes_deprecated }
    }
}

struct Builder<'d> {
    fragments: &'d Fragments,
    variables: &'d Variables,
    types: &'d TypeTable,
    settings: &'d GraphQlSettings,
}

/// The selections of one object, by their response keys and in the order of the document.
type Selected<'d> = IndexMap<&'d Name, Vec<&'d Positioned<Field>>>;

impl ResultShape {
    /// Returns the shape of an operation. Its fragments must not be circular.
    pub(crate) fn new(
        operation: &Positioned<OperationDefinition>,
        fragments: &Fragments,
        variables: &Variables,
        types: &TypeTable,
        settings: &GraphQlSettings,
    ) -> Result<Self, Refusal> {
        let builder = Builder { fragments, variables, types, settings };
        let root = match operation.node.ty {
            OperationType::Query => "Query",
            OperationType::Mutation => "Mutation",
            OperationType::Subscription => "Subscription",
        };
        let fields = builder.fields(Some(root), &[&operation.node.selection_set])?;
        let is_introspection = !fields.is_empty() && fields.iter().all(|field| field.name.starts_with("__"));
        let shape = ResultShape { fields, is_introspection };
        cost::check(root, &shape, &settings.limits)?;
        if !settings.introspection
            && let Some(field) = shape.fields.iter().find(|field| matches!(&*field.name, "__schema" | "__type"))
        {
            let hint = "Ask the operator to set `graphql.introspection`.";
            return Err(Refusal::invalid("introspection is turned off", hint).at(Some(field.place)));
        }
        Ok(shape)
    }

    pub(crate) fn fields(&self) -> &[ShapeField] {
        &self.fields
    }

    /// Returns whether the result depends only on the schema.
    pub(crate) fn is_introspection(&self) -> bool {
        self.is_introspection
    }
}

impl<'d> Builder<'d> {
    /// Returns the fields of several selection sets of one object, merged by their response keys.
    fn fields(&self, parent: Option<&str>, sets: &[&'d Positioned<SelectionSet>]) -> Result<Vec<ShapeField>, Exceeded> {
        let mut found = Selected::new();
        for set in sets {
            self.collect(set, &mut found);
        }
        self.check_aliases(&found)?;
        let mut fields = Vec::with_capacity(found.len());
        for (key, selected) in found {
            let Some(first) = selected.first() else { continue };
            let name = &first.node.name.node;
            let ty = parent.and_then(|parent| self.types.field(parent, name));
            let sets: Vec<_> = selected.iter().map(|field| &field.node.selection_set).collect();
            let named = ty.as_deref().map(FieldType::named);
            let inner = self.fields(named, &sets)?;
            fields.push(ShapeField {
                key: key.clone(),
                name: name.clone(),
                fields: inner,
                ty,
                place: first.pos,
                limit: self.integer(first, "limit"),
                introspection: IntrospectionArguments::new(&first.node),
                members: self.members(first),
            });
        }
        Ok(fields)
    }

    fn collect(&self, set: &'d Positioned<SelectionSet>, found: &mut Selected<'d>) {
        for selection in &set.node.items {
            if self.is_skipped(selection.node.directives()) {
                continue;
            }
            match &selection.node {
                Selection::Field(field) => {
                    let key = &field.node.response_key().node;
                    found.entry(key).or_default().push(field);
                }
                Selection::InlineFragment(fragment) => self.collect(&fragment.node.selection_set, found),
                Selection::FragmentSpread(spread) => {
                    if let Some(fragment) = self.fragments.get(&spread.node.fragment_name.node) {
                        self.collect(&fragment.node.selection_set, found);
                    }
                }
            }
        }
    }

    /// Returns whether `@skip` or `@include` excludes a selection.
    fn is_skipped(&self, directives: &[Positioned<Directive>]) -> bool {
        directives.iter().any(|directive| {
            let leaves_out = match &*directive.node.name.node {
                "skip" => true,
                "include" => false,
                _ => return false,
            };
            let condition = directive.node.get_argument("if").and_then(|value| match &value.node {
                DocumentValue::Boolean(condition) => Some(*condition),
                DocumentValue::Variable(name) => match self.variables.get(name)? {
                    Value::Boolean(condition) => Some(*condition),
                    _ => None,
                },
                _ => None,
            });
            condition == Some(leaves_out)
        })
    }

    fn integer(&self, field: &Positioned<Field>, name: &str) -> Option<u64> {
        match &field.node.get_argument(name)?.node {
            DocumentValue::Number(number) => number.as_u64(),
            DocumentValue::Variable(name) => match self.variables.get(name)? {
                Value::Number(number) => number.as_u64(),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the total number of items in a query's lists of members. The values are not copied, because a variable
    /// can be large, and many fields can use it.
    fn members(&self, field: &Positioned<Field>) -> u64 {
        let lists = ["metrics", "measures", "dimensions", "timeDimensions"];
        lists.iter().filter_map(|name| self.items(field, name)).sum()
    }

    fn items(&self, field: &Positioned<Field>, name: &str) -> Option<u64> {
        let count = match &field.node.get_argument(name)?.node {
            DocumentValue::List(items) => items.len(),
            DocumentValue::Variable(name) => match self.variables.get(name)? {
                Value::List(items) => items.len(),
                _ => 1,
            },
            _ => 1,
        };
        Some(count as u64)
    }

    fn check_aliases(&self, found: &Selected<'d>) -> Result<(), Exceeded> {
        let limit = self.settings.limits.aliases;
        if found.len() <= limit {
            return Ok(());
        }
        let mut counts = HashMap::new();
        for first in found.values().filter_map(|fields| fields.first()) {
            let count = counts.entry(first.node.name.node.as_str()).or_insert(0_usize);
            *count += 1;
            if *count > limit {
                return Err(Exceeded::new("aliases", limit, Some(first.pos)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
