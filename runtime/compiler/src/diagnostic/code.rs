//! The registry of diagnostic codes.
//!
//! Out: [`Code`], with the text that users see and a description. Codes are part of the interface: tools filter by
//! them, so a released code keeps its text and meaning.

use std::fmt;

macro_rules! codes {
    ($(#[doc = $description:literal] $name:ident = $text:literal,)+) => {
        /// The kind of a problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $description] $name,)+
        }

        impl Code {
            /// All codes, in alphabetical order.
            pub const ALL: &'static [Code] = &[$(Code::$name,)+];

            /// Returns the text that users see, in kebab case.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Code::$name => $text,)+
                }
            }

            /// Returns one sentence on the problem.
            pub fn description(self) -> &'static str {
                match self {
                    $(Code::$name => $description.trim_ascii_start(),)+
                }
            }
        }
    };
}

codes! {
    /// A join's name is the name of a cube or of another join.
    AliasConflict = "alias-conflict",
    /// A join names another join instead of a cube.
    AliasOfAlias = "alias-of-alias",
    /// A policy names a join instead of its cube.
    AliasPolicy = "alias-policy",
    /// A to-one join matches several rows of its target.
    AmbiguousJoin = "ambiguous-join",
    /// A policy compares an attribute with a number that a claim may contain as a string.
    AmbiguousValue = "ambiguous-value",
    /// A policy does not apply to callers without an attribute, and does not state that this is intended.
    AttributeMayBeMissing = "attribute-may-be-missing",
    /// A column without a cube is used in an expression over several cubes.
    BareColumn = "bare-column",
    /// The records of built models cannot be read.
    BuildsUnknown = "builds-unknown",
    /// The server's certificate has expired or is not valid yet.
    Certificate = "certificate",
    /// The definition of a certified artifact differs from the certified definition.
    CertifiedChanged = "certified-changed",
    /// The project lacks a certified artifact.
    CertifiedRemoved = "certified-removed",
    /// A certified artifact has another name.
    CertifiedRenamed = "certified-renamed",
    /// An imported item is expressed differently.
    Changed = "changed",
    /// An imported cube or member is closed until its policies are written.
    Closed = "closed",
    /// A policy closes a cube that it does not name.
    ClosedCube = "closed-cube",
    /// Every cube is closed while a file cannot be read, since the file may contain policies.
    ClosedCubes = "closed-cubes",
    /// The type of a column in the warehouse does not fit the declared type or the use of the column.
    ColumnMismatch = "column-mismatch",
    /// An expression selects columns by a pattern.
    ColumnPattern = "column-pattern",
    /// Two keys exclude each other.
    ConflictingFields = "conflicting-fields",
    /// A measure aggregates nothing and names no other measure.
    ConstantMeasure = "constant-measure",
    /// A metric names no measure.
    ConstantMetric = "constant-metric",
    /// The warehouse did not return a cube's columns.
    CubeNotAsked = "cube-not-asked",
    /// The warehouse cannot read a cube.
    CubeNotDescribed = "cube-not-described",
    /// A cube's rows could not be checked.
    DataNotChecked = "data-not-checked",
    /// A mapping contains a key twice.
    DuplicateKey = "duplicate-key",
    /// Two definitions have one name.
    DuplicateName = "duplicate-name",
    /// A cube has two primary time dimensions.
    DuplicatePrimaryTime = "duplicate-primary-time",
    /// A file of the project is empty.
    EmptyFile = "empty-file",
    /// Pages of any origin may read responses.
    EveryOrigin = "every-origin",
    /// Cubes extend each other in a cycle.
    ExtendsCycle = "extends-cycle",
    /// The chain of `extends` of a cube is too long.
    ExtendsLimit = "extends-limit",
    /// A file is in a place that Terrane does not read.
    FileNotRead = "file-not-read",
    /// A file is larger than the limit.
    FileTooLarge = "file-too-large",
    /// A folder is in a place that Terrane does not read.
    FolderNotRead = "folder-not-read",
    /// A name has characters that names cannot have.
    InvalidName = "invalid-name",
    /// A table's name cannot be read.
    InvalidTable = "invalid-table",
    /// A call in a template has too few or too many arguments.
    JinjaArguments = "jinja-arguments",
    /// A template cannot be rendered.
    JinjaFailed = "jinja-failed",
    /// A template exceeds a limit.
    JinjaLimit = "jinja-limit",
    /// A template cannot be parsed.
    JinjaSyntax = "jinja-syntax",
    /// A template uses a name that is not defined.
    JinjaUndefined = "jinja-undefined",
    /// A template calls a function that does not exist.
    JinjaUnknownCall = "jinja-unknown-call",
    /// A template uses a filter that does not exist.
    JinjaUnknownFilter = "jinja-unknown-filter",
    /// A join with `always: true` matches no row for some rows.
    JoinFindsNothing = "join-finds-nothing",
    /// A join's condition reads a cube that is not joined yet.
    JoinNeedsJoin = "join-needs-join",
    /// Two paths between cubes are equally short.
    JoinPathTie = "join-path-tie",
    /// The warehouse cannot read a member.
    MemberNotReadable = "member-not-readable",
    /// An expression calls a function with a schema or a column as a prefix.
    MethodCall = "method-call",
    /// An aggregate is used where aggregates are not allowed.
    MisplacedAggregate = "misplaced-aggregate",
    /// A key is not valid for this kind of item.
    MisplacedField = "misplaced-field",
    /// A reference names a member of a kind that is not allowed there.
    MisplacedMember = "misplaced-member",
    /// `ref` is called in the SQL of a member.
    MisplacedRef = "misplaced-ref",
    /// A window function is used where window functions are not allowed.
    MisplacedWindow = "misplaced-window",
    /// A cube's name is not in braces.
    MissingBraces = "missing-braces",
    /// A reference names a cube and no column.
    MissingColumn = "missing-column",
    /// A template names an environment variable that is not set.
    MissingEnvVar = "missing-env-var",
    /// A required key is missing.
    MissingField = "missing-field",
    /// A folder that the settings name does not exist.
    MissingFolder = "missing-folder",
    /// A join repeats the rows of measures, and the cube has no primary key.
    MissingPrimaryKey = "missing-primary-key",
    /// The folder has no project file.
    MissingProject = "missing-project",
    /// A template names a model that does not exist.
    MissingRef = "missing-ref",
    /// A template names a source or a source's table that does not exist.
    MissingSource = "missing-source",
    /// A key has no value.
    MissingValue = "missing-value",
    /// A template names a variable that is not defined.
    MissingVar = "missing-var",
    /// A setting names an environment variable that is not set.
    MissingVariable = "missing-variable",
    /// Models read each other in a cycle.
    ModelCycle = "model-cycle",
    /// The warehouse cannot read a model.
    ModelNotDescribed = "model-not-described",
    /// A model could not be built.
    ModelsNotBuilt = "models-not-built",
    /// A condition of a policy never matches.
    NeverMatches = "never-matches",
    /// The project has no cubes.
    NoCubes = "no-cubes",
    /// No dialect for the warehouse is installed.
    NoDialect = "no-dialect",
    /// No join leads to a cube.
    NoJoinPath = "no-join-path",
    /// The plugin host did not start.
    NoPlugins = "no-plugins",
    /// The warehouse could not be opened.
    NoWarehouse = "no-warehouse",
    /// A part of another tool's model cannot be expressed in a project.
    NotCarriedOver = "not-carried-over",
    /// A pre-aggregation stores an expression whose value changes without its data.
    NotDeterministic = "not-deterministic",
    /// A file of another tool's model was not read.
    NotRead = "not-read",
    /// The project cannot be served with these settings.
    NotServed = "not-served",
    /// A metric's definition needs another metric type.
    NotSimple = "not-simple",
    /// A file is not UTF-8 text.
    NotUtf8 = "not-utf-8",
    /// A setting has no effect in this version.
    NotYet = "not-yet",
    /// A primary key is null in some rows.
    NullKey = "null-key",
    /// A dimension with the test `not_null` is null in some rows.
    NullValue = "null-value",
    /// A join's condition does not mention both cubes.
    OneSidedJoin = "one-sided-join",
    /// In a one-to-many join, several rows match the same row.
    OneToManyRepeats = "one-to-many-repeats",
    /// In a one-to-one join, several rows match the same row.
    OneToOneRepeats = "one-to-one-repeats",
    /// A cube joins a filtered cube, and has no row filter of its own.
    OpenFact = "open-fact",
    /// The operator is not available for the type of the member.
    OperatorMismatch = "operator-mismatch",
    /// A path leaves the project's folder.
    PathOutside = "path-outside",
    /// SQL contains a placeholder, but no values are bound.
    Placeholder = "placeholder",
    /// A component in a plugin folder is not used.
    PluginIdle = "plugin-idle",
    /// A plugin cannot be used.
    PluginRefused = "plugin-refused",
    /// Pre-aggregations are defined but switched off.
    PreaggregationsOff = "preaggregations-off",
    /// Members refer to each other in a cycle.
    ReferenceCycle = "reference-cycle",
    /// A chain of references between members is too long.
    ReferenceDepth = "reference-depth",
    /// A member's references expand to too much SQL.
    ReferenceSize = "reference-size",
    /// A file of the project defines the name of a registered cube.
    RegisteredCubeShadowed = "registered-cube-shadowed",
    /// Several rows of a join's target have the same key.
    RepeatedJoinKey = "repeated-join-key",
    /// Several rows have the same primary key.
    RepeatedKey = "repeated-key",
    /// Several rows have the same value in a dimension with the test `unique`.
    RepeatedValue = "repeated-value",
    /// A required plugin cannot be used.
    RequiredPluginRefused = "required-plugin-refused",
    /// A name is reserved, because it has a special meaning in queries.
    ReservedName = "reserved-name",
    /// The warehouse has no such table or column of a source.
    SourceNotFound = "source-not-found",
    /// The warehouse did not confirm all tables of sources.
    SourcesNotAsked = "sources-not-asked",
    /// An expression is empty.
    SqlEmpty = "sql-empty",
    /// A cube's SQL is not one query.
    SqlNotAQuery = "sql-not-a-query",
    /// A member's SQL is not one expression.
    SqlNotAnExpression = "sql-not-an-expression",
    /// SQL contains several statements.
    SqlStatements = "sql-statements",
    /// SQL cannot be parsed.
    SqlSyntax = "sql-syntax",
    /// SQL is nested too deeply.
    SqlTooDeep = "sql-too-deep",
    /// SQL is too long.
    SqlTooLong = "sql-too-long",
    /// A member refers to a cube with several rows for one row of its own cube.
    ToManyReference = "to-many-reference",
    /// Folders are nested too deeply.
    TooDeep = "too-deep",
    /// The project's folders contain too many files.
    TooManyFiles = "too-many-files",
    /// A brace in SQL is not closed.
    UnclosedBrace = "unclosed-brace",
    /// Values of a dimension are not among its `accepted_values`.
    UnexpectedValue = "unexpected-value",
    /// A table has no such column.
    UnknownColumn = "unknown-column",
    /// A name is not the name of a cube.
    UnknownCube = "unknown-cube",
    /// `drill_members` names a member that does not exist.
    UnknownDrillMember = "unknown-drill-member",
    /// A mapping has no such key.
    UnknownKey = "unknown-key",
    /// A name is not the name of a member.
    UnknownMember = "unknown-member",
    /// A name is not the name of a metric.
    UnknownMetric = "unknown-metric",
    /// A filter's operator does not exist.
    UnknownOperator = "unknown-operator",
    /// A reference in braces is not a name that SQL can refer to.
    UnknownReference = "unknown-reference",
    /// The warehouse's catalog does not list a table.
    UnknownTable = "unknown-table",
    /// A value is not one of the allowed values.
    UnknownValue = "unknown-value",
    /// An environment variable does not correspond to a setting.
    UnknownVariable = "unknown-variable",
    /// Values of a dimension are not found in the dimension that its `relationships` names.
    UnmatchedValue = "unmatched-value",
    /// A file cannot be read.
    UnreadableFile = "unreadable-file",
    /// The tables that a cube reads cannot be determined, so a policy closes it.
    UnresolvedTables = "unresolved-tables",
    /// An aggregate is not supported.
    UnsupportedAggregate = "unsupported-aggregate",
    /// A key has no effect.
    UnusedField = "unused-field",
    /// A caller's value is inside a string literal.
    UserValueInQuotes = "user-value-in-quotes",
    /// The number of values does not match the operator.
    ValueCount = "value-count",
    /// A value does not have the type of the member that it is compared with.
    ValueMismatch = "value-mismatch",
    /// The warehouse could not prepare for building models.
    WarehouseNotReady = "warehouse-not-ready",
    /// An expectation of the project's tests cannot be met.
    WrongExpectation = "wrong-expectation",
    /// The role of a plugin's component differs from the role in its entry.
    WrongRole = "wrong-role",
    /// A value does not have the type that its key requires.
    WrongType = "wrong-type",
    /// A value is not valid for its key.
    WrongValue = "wrong-value",
    /// A YAML file exceeds a limit.
    YamlLimit = "yaml-limit",
    /// A YAML file cannot be parsed.
    YamlSyntax = "yaml-syntax",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_sorted_and_unique() {
        assert!(Code::ALL.is_sorted_by(|a, b| a.as_str() < b.as_str()));
    }
}
