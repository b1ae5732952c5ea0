//! The types of the schema's fields, which nullability and limits depend on.
//!
//! In: the text of the schema. Out: the type of each field. The types of introspection are in a file of their own,
//! because the text of the schema does not contain them.

use std::collections::HashMap;
use std::sync::Arc;

use async_graphql::parser::parse_schema;
use async_graphql::parser::types::{BaseType, Type, TypeKind, TypeSystemDefinition};

/// The types of introspection (GraphQL, October 2021, section 4.2).
const INTROSPECTION: &str = include_str!("introspection.graphql");

/// The types of all fields, by the names of the object and the field.
#[derive(Debug, Default)]
pub(crate) struct TypeTable {
    objects: HashMap<String, HashMap<String, Arc<FieldType>>>,
    type_name: Option<Arc<FieldType>>,
}

/// The type of a field, or of the items of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldType {
    pub(crate) is_nullable: bool,
    pub(crate) base: FieldBase,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldBase {
    /// An object, a scalar or an enum.
    Named(String),
    List(Box<FieldType>),
}

impl FieldType {
    fn of(ty: &Type) -> Self {
        let base = match &ty.base {
            BaseType::Named(name) => FieldBase::Named(name.to_string()),
            BaseType::List(items) => FieldBase::List(Box::new(FieldType::of(items))),
        };
        FieldType { is_nullable: ty.nullable, base }
    }

    /// Returns the name of the type that is inside all lists.
    pub(crate) fn named(&self) -> &str {
        match &self.base {
            FieldBase::Named(name) => name,
            FieldBase::List(items) => items.named(),
        }
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self.base, FieldBase::List(_))
    }
}

impl TypeTable {
    /// Parses the types of a schema in GraphQL's definition language. A schema that cannot be parsed has no types.
    pub(crate) fn new(schema: &str) -> Self {
        let mut objects: HashMap<String, HashMap<String, Arc<FieldType>>> = HashMap::new();
        for text in [schema, INTROSPECTION] {
            let Ok(document) = parse_schema(text) else { continue };
            for definition in document.definitions {
                let TypeSystemDefinition::Type(ty) = definition else { continue };
                let TypeKind::Object(object) = &ty.node.kind else { continue };
                let fields = object.fields.iter().map(|field| {
                    let ty = FieldType::of(&field.node.ty.node);
                    (field.node.name.node.to_string(), Arc::new(ty))
                });
                objects.entry(ty.node.name.node.to_string()).or_default().extend(fields);
            }
        }
        let type_name = FieldType { is_nullable: false, base: FieldBase::Named("String".to_owned()) };
        TypeTable { objects, type_name: Some(Arc::new(type_name)) }
    }

    /// Returns the type of a field, or `None` if the schema does not have the field.
    pub(crate) fn field(&self, object: &str, field: &str) -> Option<Arc<FieldType>> {
        if field == "__typename" {
            return self.type_name.clone();
        }
        self.objects.get(object)?.get(field).cloned()
    }
}
