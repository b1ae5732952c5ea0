//! One operation of a document, parsed and checked against the limits.
//!
//! In: the text of a document, the name of an operation and its variables. Out: an [`Operation`], or a [`Refusal`]. The
//! text is parsed once. Not here: the schema's rules, which the executor checks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_graphql::parser::parse_query;
use async_graphql::parser::types::{DocumentOperations, ExecutableDocument, OperationDefinition, OperationType};
use async_graphql::{Positioned, Value, Variables};
use serde_json::{Map, Value as Json};

use crate::limits::{fragments, scan};
use crate::refusal::Refusal;
use crate::settings::GraphQlSettings;
use crate::shape::{ResultShape, TypeTable};

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationKind {
    Query,
    Mutation,
    Subscription,
}

impl OperationKind {
    /// Returns the name of the root's type.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            OperationKind::Query => "Query",
            OperationKind::Mutation => "Mutation",
            OperationKind::Subscription => "Subscription",
        }
    }
}

/// An operation that may be executed. Clones share the same operation.
#[derive(Debug, Clone)]
pub struct Operation(Arc<OperationParts>);

#[derive(Debug)]
pub(crate) struct OperationParts {
    pub(crate) document: ExecutableDocument,
    pub(crate) text: String,
    pub(crate) name: Option<String>,
    pub(crate) variables: Variables,
    pub(crate) shape: ResultShape,
    kind: OperationKind,
    /// True after the first execution: the operation is then known to follow the rules of the schema.
    is_valid: AtomicBool,
}

impl Operation {
    /// Parses an operation and checks it against the limits.
    pub(crate) fn read(
        text: &str,
        name: Option<&str>,
        variables: Map<String, Json>,
        settings: &GraphQlSettings,
        types: &TypeTable,
    ) -> Result<Self, Refusal> {
        scan::check(text, &settings.limits)?;
        let document = parse_query(text)?;
        fragments::check(&document, &settings.limits)?;
        // Some clients send an empty name if the operation has none.
        let name = name.filter(|name| !name.is_empty());
        let (selected, operation) = select(&document, name)?;
        let name = selected.map(str::to_owned);
        let kind = match operation.node.ty {
            OperationType::Query => OperationKind::Query,
            OperationType::Mutation => OperationKind::Mutation,
            OperationType::Subscription => OperationKind::Subscription,
        };
        let variables = with_defaults(variables, operation);
        check_required(&variables, operation)?;
        let shape = ResultShape::new(operation, &document.fragments, &variables, types, settings)?;
        if kind == OperationKind::Subscription && shape.fields().len() != 1 {
            let hint = "Send one operation for each field.";
            return Err(Refusal::invalid("a subscription selects exactly one field", hint).at(Some(operation.pos)));
        }
        let (text, is_valid) = (text.to_owned(), AtomicBool::new(false));
        Ok(Operation(Arc::new(OperationParts { document, text, name, variables, shape, kind, is_valid })))
    }

    pub fn kind(&self) -> OperationKind {
        self.0.kind
    }

    /// Returns the operation's name, which the client chose. It may contain any characters.
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    pub(crate) fn parts(&self) -> &OperationParts {
        &self.0
    }

    /// Returns whether the operation is known to follow the rules of the schema.
    pub(crate) fn is_valid(&self) -> bool {
        self.0.is_valid.load(Ordering::Relaxed)
    }

    /// Records that the operation follows the rules of the schema.
    pub(crate) fn set_valid(&self) {
        self.0.is_valid.store(true, Ordering::Relaxed);
    }
}

/// Returns the operation with the requested name or, without a name, the only operation of the document.
fn select<'d>(
    document: &'d ExecutableDocument,
    name: Option<&str>,
) -> Result<(Option<&'d str>, &'d Positioned<OperationDefinition>), Refusal> {
    match (&document.operations, name) {
        (DocumentOperations::Single(operation), None) => Ok((None, operation)),
        (DocumentOperations::Multiple(operations), Some(name)) => {
            let found = operations.get_key_value(name).map(|(name, operation)| (Some(name.as_str()), operation));
            found.ok_or_else(|| unknown(name))
        }
        (DocumentOperations::Single(_), Some(name)) => Err(unknown(name)),
        (DocumentOperations::Multiple(operations), None) => {
            let mut all = operations.iter();
            match (all.next(), all.next()) {
                (Some((name, operation)), None) => Ok((Some(name.as_str()), operation)),
                _ => {
                    Err(Refusal::invalid("the document has several operations", "Name one of them in `operationName`."))
                }
            }
        }
    }
}

fn unknown(name: &str) -> Refusal {
    let name: String = name.chars().take(200).collect();
    Refusal::invalid(format!("unknown operation `{name}`"), "Name an operation of the document in `operationName`.")
}

/// Refuses an operation if a required variable has no value. The executor would report this only at a field, after
/// other fields were resolved.
fn check_required(variables: &Variables, operation: &Positioned<OperationDefinition>) -> Result<(), Refusal> {
    for definition in &operation.node.variable_definitions {
        let name = &definition.node.name.node;
        let is_missing = matches!(variables.get(name), None | Some(Value::Null));
        if is_missing && !definition.node.var_type.node.nullable {
            let message = format!("variable `${name}` requires a value");
            return Err(Refusal::invalid(message, "Send it in `variables`.").at(Some(definition.pos)));
        }
    }
    Ok(())
}

/// Adds the default values of variables that were not sent, because directives need them too.
fn with_defaults(variables: Map<String, Json>, operation: &Positioned<OperationDefinition>) -> Variables {
    let mut variables = Variables::from_json(Json::Object(variables));
    for definition in &operation.node.variable_definitions {
        if let Some(default) = &definition.node.default_value
            && !variables.contains_key(&definition.node.name.node)
        {
            variables.insert(definition.node.name.node.clone(), default.node.clone());
        }
    }
    variables
}
