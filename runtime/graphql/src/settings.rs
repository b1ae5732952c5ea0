//! The operator's settings of GraphQL.

/// The settings of the schema and of its limits.
#[derive(Debug, Clone)]
pub struct GraphQlSettings {
    /// True to allow introspection. If false, documents that read `__schema` or `__type` are refused.
    pub introspection: bool,
    pub limits: Limits,
}

/// The limits of a document, checked before anything is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The bytes of a document.
    pub document_bytes: usize,
    /// The tokens of a document: names, values and punctuation.
    pub tokens: usize,
    /// The brackets that are open at once.
    pub nesting: usize,
    /// The fields from the root to the deepest one.
    pub depth: usize,
    /// The directives at one place.
    pub directives: usize,
    /// The response keys of one field in one selection.
    pub aliases: usize,
    /// The selections of a document after all fragments are expanded.
    pub selections: usize,
    /// The queries that one document runs in the warehouse.
    pub executions: usize,
    /// The fields that are resolved in the lists of a document.
    pub items: usize,
    /// The estimated cost of a document.
    pub complexity: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            document_bytes: 256 * 1024,
            tokens: 5_000,
            nesting: 64,
            depth: 15,
            directives: 8,
            aliases: 30,
            selections: 5_000,
            executions: 10,
            items: 200_000,
            complexity: 100_000,
        }
    }
}

impl Default for GraphQlSettings {
    fn default() -> Self {
        GraphQlSettings { introspection: true, limits: Limits::default() }
    }
}
