//! Limits of documents, which are checked before anything is resolved.
//!
//! In: the text of a document (`scan`), then the parsed document (`fragments`). Out: nothing, or the limit that the
//! document exceeds, with its place. Each fragment is measured once, even if it is used many times.

pub(crate) mod fragments;
pub(crate) mod scan;

use async_graphql::Pos;
use terrane_wire::{Code, ErrorBody};

use crate::refusal::Refusal;

/// A limit that a document exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exceeded {
    /// The name of the limit in the settings.
    pub(crate) limit: &'static str,
    pub(crate) max: u64,
    /// The place in the document, if the limit was exceeded at one place.
    pub(crate) place: Option<Pos>,
}

impl Exceeded {
    pub(crate) fn new(limit: &'static str, max: usize, place: Option<Pos>) -> Self {
        Exceeded { limit, max: max as u64, place }
    }

    fn message(&self) -> String {
        let max = self.max;
        match self.limit {
            "document_bytes" => format!("the document is longer than {max} bytes"),
            "tokens" => format!("the document has more than {max} tokens"),
            "nesting" => format!("brackets are nested deeper than {max} levels"),
            "depth" => format!("fields are nested deeper than {max} levels"),
            "directives" => format!("there are more than {max} directives at one place"),
            "aliases" => format!("one field is selected under more than {max} names"),
            "selections" => format!("the document selects more than {max} fields after its fragments are expanded"),
            "executions" => format!("the document runs more than {max} queries in the warehouse"),
            "items" => format!("the lists of the document resolve more than {max} fields"),
            "introspection_depth" => format!("lists of the schema are nested deeper than {max} levels"),
            _ => format!("the complexity of the document exceeds {max}"),
        }
    }

    fn hint(&self) -> &'static str {
        match self.limit {
            "document_bytes" | "tokens" => "Send long lists of values as variables.",
            "nesting" | "depth" => "Select fewer levels.",
            "directives" => "Remove repeated directives.",
            "aliases" => "Group by a dimension instead of repeating a field.",
            "selections" => "Use fewer fragments inside of fragments.",
            "executions" => "Send several requests, or ask for several measures in one query.",
            "items" => "Name the cubes to read, or select fewer fields of them.",
            "introspection_depth" => "Read each type by its name with `__type`.",
            _ => "Ask for fewer members or a smaller `limit`.",
        }
    }
}

impl From<Exceeded> for ErrorBody {
    fn from(exceeded: Exceeded) -> Self {
        ErrorBody::new(Code::GraphqlLimitExceeded, exceeded.message())
            .detail("limit", exceeded.limit)
            .detail("max", exceeded.max)
            .detail("hint", exceeded.hint())
    }
}

impl From<Exceeded> for Refusal {
    fn from(exceeded: Exceeded) -> Self {
        let place = exceeded.place;
        Refusal::new(exceeded.into()).at(place)
    }
}
