//! The operator's settings of GraphQL.

/// The settings of the schema and of its limits.
#[derive(Debug, Clone)]
pub struct GraphQlSettings {
    /// True to allow introspection. If false, documents that read `__schema` or `__type` are refused.
    pub introspection: bool,
    pub limits: Limits,
}

/// The limits of a document. They are checked before anything is resolved. While the document runs, `items` is counted,
/// and `executions` is checked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest size of a document in bytes.
    pub document_bytes: usize,
    /// The largest number of tokens in a document: names, values and punctuation.
    pub tokens: usize,
    /// The largest number of brackets that are open at once.
    pub nesting: usize,
    /// The largest number of fields from the root to the deepest one.
    pub depth: usize,
    /// The largest number of directives at one place.
    pub directives: usize,
    /// The largest number of response keys that one selection has for one field.
    pub aliases: usize,
    /// The largest number of selections in a document after all fragments are expanded.
    pub selections: usize,
    /// The largest number of queries that one document runs in the warehouse.
    pub executions: usize,
    /// The largest number of fields that a document resolves in its lists.
    pub items: usize,
    /// The largest estimated cost of a document.
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
