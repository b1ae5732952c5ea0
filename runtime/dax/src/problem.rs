//! Problems of a query: the kind and the place of each, and an action that solves it.
//!
//! In: facts from the lexer, the parser, the binder, the planner and the evaluation. Out: [`Problem`]s. Stages collect
//! problems where they can, so that one run reports them all. Programs decide by [`ProblemCode`], never by the text of
//! a message.

use std::fmt;
use std::sync::Arc;

use terrane_compiler::text::nearest::likely;

use crate::functions::replacement;
use crate::place::{Place, Position};
use crate::types::Type;

/// The largest number of names that a problem lists.
pub(crate) const MAX_NEAREST: usize = 5;
/// The largest number of problems that one stage collects.
pub(crate) const MAX_PROBLEMS: usize = 100;

/// A problem of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    pub kind: ProblemKind,
    pub place: Place,
}

/// The class of a problem, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProblemCode {
    Syntax,
    UnknownName,
    AmbiguousName,
    Type,
    Context,
    NotSupported,
    Limit,
}

/// A part of a query that the parser expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    Query,
    Evaluate,
    Definition,
    MeasureTable,
    MeasureName,
    VariableName,
    Equals,
    Return,
    By,
    At,
    Expression,
    Row,
    Comma,
    CommaOrClose(&'static str),
    EndOfQuery,
    EndOfExpression,
}

/// The function that is proposed for a column without a current row that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnProposal {
    /// RELATED, because the current row determines the value.
    Related,
    /// An aggregate, by its name.
    Aggregate(&'static str),
}

/// The form of an expression, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpressionForm {
    Scalar,
    Table,
    Column,
    TableOrColumn,
    Filter,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProblemKind {
    #[error("the query is longer than {limit} characters")]
    TooLong { limit: usize },
    #[error("the query has more than {limit} `EVALUATE`")]
    TooManyEvaluations { limit: usize },
    #[error("the query is nested more than {limit} levels deep")]
    TooDeep { limit: usize },

    #[error("unexpected character `{character}`")]
    UnexpectedCharacter { character: char },
    #[error("unterminated {what}")]
    Unterminated { what: &'static str, close: &'static str },
    #[error("invalid number `{text}`")]
    InvalidNumber { text: Arc<str> },
    #[error("invalid date `{text}`")]
    InvalidDate { text: Arc<str> },
    #[error("expected {expected}, found {}", found.as_deref().unwrap_or("the end of the text"))]
    Expected { expected: Expected, found: Option<Arc<str>> },
    #[error("unclosed bracket: `{close}` is missing")]
    UnclosedBracket { close: &'static str },
    #[error("`;` between the arguments of a call or the values of a list")]
    SemicolonInList,
    #[error("`{operator}` is not a DAX operator")]
    ForeignOperator { operator: &'static str },
    #[error("`DEFINE` after `EVALUATE`")]
    DefineAfterEvaluate,
    #[error("variable `{name}` has a quoted name")]
    QuotedVariable { name: Arc<str> },
    #[error("`START AT` without `ORDER BY`")]
    StartWithoutOrder,
    #[error("`START AT` has {values} values, but `ORDER BY` has {keys}")]
    TooManyStartValues { values: usize, keys: usize },

    #[error("unknown table `{name}`")]
    UnknownTable { name: Arc<str>, nearest: Vec<Arc<str>> },
    /// A name in single quotes that is not the name of a table, where a string is likely.
    #[error("unknown table `{name}`")]
    QuotedString { name: Arc<str> },
    #[error("unknown column or measure `{name}` in table `{table}`")]
    UnknownMember { table: Arc<str>, name: Arc<str>, nearest: Vec<Arc<str>> },
    #[error("unknown measure or column `[{name}]`")]
    UnknownBareMember { name: Arc<str>, nearest: Vec<Arc<str>> },
    #[error("unknown table or variable `{name}`")]
    UnknownBareName {
        name: Arc<str>,
        nearest: Vec<Arc<str>>,
        /// The DAX expression for a name in the syntax of SQL.
        equivalent: Option<Arc<str>>,
    },
    #[error("unknown relationship between {} and {}", columns[0], columns[1])]
    UnknownRelationship { columns: [Arc<str>; 2] },
    #[error("function `{name}` is not supported")]
    UnknownFunction { name: Arc<str>, nearest: Option<&'static str> },
    #[error("`[{name}]` is ambiguous: it is a measure of {}", tables.join(", "))]
    AmbiguousMeasure { name: Arc<str>, tables: Vec<Arc<str>> },
    #[error("`{name}` is ambiguous: it may name {}", names.join(", "))]
    AmbiguousName { name: Arc<str>, names: Vec<Arc<str>> },
    #[error("{what} `{name}` is defined more than once")]
    Duplicate { what: &'static str, name: Arc<str> },
    #[error("cycle of definitions: {}", path.join(" → "))]
    Cycle { path: Vec<Arc<str>> },

    #[error("{function} takes {expected} arguments, {found} given")]
    ArgumentCount { function: &'static str, expected: Arc<str>, found: usize },
    #[error("argument `{parameter}` of {function} is missing")]
    MissingArgument { function: &'static str, parameter: &'static str },
    #[error("expected {expected}, found {found}")]
    WrongShape { expected: ExpressionForm, found: ExpressionForm },
    #[error("`EVALUATE` needs a table, found a scalar expression")]
    ScalarEvaluated { text: Option<Arc<str>> },
    #[error("expected one of {}", words.join(", "))]
    ExpectedWord { words: &'static [&'static str] },
    #[error("expected the name of a column as a string")]
    ExpectedName,
    #[error("expected a constant")]
    ExpectedConstant,
    #[error("`START AT` has {found}, but `ORDER BY` has {key} at this position")]
    WrongStart { key: Type, found: Type },
    #[error("cannot compare {left} with {right}")]
    Incomparable { left: Type, right: Type },
    #[error("expected {expected}, found {found}")]
    WrongType { expected: &'static str, found: Type },
    #[error("expected {expected} columns, found {found}")]
    ColumnCount { expected: usize, found: usize },
    #[error("SUMMARIZECOLUMNS has no column{}", if *has_filters { ": a table is a filter" } else { "" })]
    NoResultColumns { has_filters: bool },
    #[error("group column `{column}` after a filter table")]
    GroupAfterFilter { column: Arc<str> },
    #[error("a row has {found} values, but the first one has {expected}")]
    RowLength { expected: usize, found: usize },

    #[error("a single value of `{column}` cannot be determined")]
    NoRowContext { column: Arc<str>, proposal: ColumnProposal },
    #[error("expected a column in {function}, found an expression")]
    AggregatedExpression { function: &'static str },
    #[error("a filter of several tables: {}", tables.join(", "))]
    FilterOfSeveralTables { tables: Vec<Arc<str>> },
    #[error("a filter without columns")]
    FilterWithoutColumns,
    #[error("`{name}` in a logical filter")]
    MeasureInFilter { name: Arc<str> },
    #[error("`{column}` is not a column of {tables}")]
    NotRelated {
        column: Arc<str>,
        tables: Arc<str>,
        /// An expression that reads the column, if it is on the many side.
        proposal: Option<Arc<str>>,
    },
    #[error("{modifier} outside of {allowed}")]
    Misplaced { modifier: &'static str, allowed: &'static str },

    #[error("{construct} is not supported")]
    NotSupported { construct: Arc<str> },
    /// A construct with another way to write it, which is a sentence.
    #[error("{construct} is not supported")]
    Replaceable { construct: &'static str, suggestion: &'static str },
    #[error("the query needs more than {limit} {what}")]
    TooLarge { what: &'static str, limit: u64 },
    #[error("the evaluation was cancelled")]
    Cancelled,
    #[error("{message}")]
    InvalidValue { message: Arc<str> },
    #[error("parameter `@{name}` has no value")]
    UnknownParameter { name: Arc<str> },
}

impl Problem {
    pub(crate) fn new(kind: ProblemKind, place: Place) -> Self {
        Problem { kind, place }
    }

    /// Returns the problem with its line, its column and its suggestion, in a form that can be printed.
    pub fn in_text<'p>(&'p self, text: &'p str) -> ProblemInText<'p> {
        ProblemInText { problem: self, position: self.place.position(text) }
    }

    /// Returns whether the evaluation ended because the caller cancelled it.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.kind, ProblemKind::Cancelled)
    }

    /// Returns whether the problem is only that a parameter has no value.
    pub fn is_missing_value(&self) -> bool {
        matches!(self.kind, ProblemKind::UnknownParameter { .. })
    }

    pub fn code(&self) -> ProblemCode {
        use ProblemKind as Kind;
        match &self.kind {
            Kind::TooLong { .. }
            | Kind::TooDeep { .. }
            | Kind::TooLarge { .. }
            | Kind::Cancelled
            | Kind::TooManyEvaluations { .. } => ProblemCode::Limit,
            Kind::UnexpectedCharacter { .. }
            | Kind::Unterminated { .. }
            | Kind::InvalidNumber { .. }
            | Kind::InvalidDate { .. }
            | Kind::Expected { .. }
            | Kind::UnclosedBracket { .. }
            | Kind::SemicolonInList
            | Kind::ForeignOperator { .. }
            | Kind::DefineAfterEvaluate
            | Kind::QuotedVariable { .. }
            | Kind::StartWithoutOrder
            | Kind::TooManyStartValues { .. } => ProblemCode::Syntax,
            Kind::UnknownTable { .. }
            | Kind::QuotedString { .. }
            | Kind::UnknownMember { .. }
            | Kind::UnknownBareMember { .. }
            | Kind::UnknownBareName { .. }
            | Kind::UnknownRelationship { .. }
            | Kind::UnknownParameter { .. } => ProblemCode::UnknownName,
            Kind::AmbiguousMeasure { .. } | Kind::AmbiguousName { .. } => ProblemCode::AmbiguousName,
            Kind::UnknownFunction { .. } | Kind::NotSupported { .. } | Kind::Replaceable { .. } => {
                ProblemCode::NotSupported
            }
            Kind::ArgumentCount { .. }
            | Kind::MissingArgument { .. }
            | Kind::WrongShape { .. }
            | Kind::ScalarEvaluated { .. }
            | Kind::ExpectedWord { .. }
            | Kind::ExpectedName
            | Kind::ExpectedConstant
            | Kind::Incomparable { .. }
            | Kind::WrongStart { .. }
            | Kind::WrongType { .. }
            | Kind::InvalidValue { .. }
            | Kind::ColumnCount { .. }
            | Kind::NoResultColumns { .. }
            | Kind::GroupAfterFilter { .. }
            | Kind::RowLength { .. } => ProblemCode::Type,
            Kind::Duplicate { .. }
            | Kind::Cycle { .. }
            | Kind::NoRowContext { .. }
            | Kind::AggregatedExpression { .. }
            | Kind::FilterOfSeveralTables { .. }
            | Kind::FilterWithoutColumns
            | Kind::MeasureInFilter { .. }
            | Kind::NotRelated { .. }
            | Kind::Misplaced { .. } => ProblemCode::Context,
        }
    }

    /// Returns an action that solves the problem, as a sentence, if one is known.
    pub fn suggestion(&self) -> Option<String> {
        use ProblemKind as Kind;
        let text = match &self.kind {
            Kind::TooLong { .. } | Kind::TooManyEvaluations { .. } => "Split the query.".to_owned(),
            Kind::TooLarge { .. } => "Add filters, or group by fewer columns.".to_owned(),
            Kind::TooDeep { .. } => "Name inner expressions with `VAR`.".to_owned(),
            Kind::UnexpectedCharacter { character: '@' } => "Write the parameter's name after `@`.".to_owned(),
            Kind::UnexpectedCharacter { character: '%' } => {
                "Write the remainder of a division as number - divisor * INT(number / divisor).".to_owned()
            }
            Kind::UnexpectedCharacter { .. } => {
                "Write names with this character in quotes: `'Table name'[Column name]`.".to_owned()
            }
            Kind::Unterminated { close, .. } => format!("Close it with `{close}`."),
            Kind::InvalidNumber { .. } => "Write names that start with a digit in quotes.".to_owned(),
            Kind::InvalidDate { .. } => "Write a date as `dt\"2024-01-31\"` or `dt\"2024-01-31 10:30:00\"`.".to_owned(),
            Kind::Expected { expected, found } => return expected.suggestion(found.as_deref()),
            Kind::UnclosedBracket { close } => format!("Add `{close}`."),
            Kind::SemicolonInList => "Separate arguments and values with commas.".to_owned(),
            Kind::ForeignOperator { operator: "AND" } => "Use `&&`.".to_owned(),
            Kind::ForeignOperator { operator: "OR" } => "Use `||`.".to_owned(),
            Kind::ForeignOperator { .. } => "Write `NOT value IN {…}`.".to_owned(),
            Kind::DefineAfterEvaluate => "Move the definitions before the first `EVALUATE`.".to_owned(),
            Kind::QuotedVariable { .. } => "Use a name of letters, digits and `_` without quotes.".to_owned(),
            Kind::StartWithoutOrder => "Add `ORDER BY` before `START AT`.".to_owned(),
            Kind::TooManyStartValues { .. } => "Give at most one value for each key of `ORDER BY`.".to_owned(),
            Kind::UnknownBareName { equivalent: Some(equivalent), .. } => format!("Write `{equivalent}`."),
            Kind::QuotedString { name } => {
                format!("Write a string in double quotes: `\"{}\"`.", name.replace('"', "\"\""))
            }
            Kind::UnknownTable { name, nearest }
            | Kind::UnknownMember { name, nearest, .. }
            | Kind::UnknownBareMember { name, nearest }
            | Kind::UnknownBareName { name, nearest, .. } => return among(name, nearest),
            Kind::UnknownFunction { name, nearest } => match (replacement(name), nearest) {
                (Some(replacement), _) => replacement.to_owned(),
                (None, Some(nearest)) => format!("Did you mean {nearest}?"),
                (None, None) => "`GET /api/v1/dax/functions` lists the supported functions.".to_owned(),
            },
            Kind::Replaceable { suggestion, .. } => (*suggestion).to_owned(),
            Kind::UnknownRelationship { .. } => "Use the two columns that a join of the project compares.".to_owned(),
            Kind::AmbiguousMeasure { name, tables } => {
                format!("Name the table too, for example `{}[{name}]`.", tables.first()?)
            }
            Kind::AmbiguousName { .. } => "Write the name in the case in which the project declares it.".to_owned(),
            Kind::Duplicate { .. } => "Rename or remove one of them.".to_owned(),
            Kind::Cycle { .. } => "Remove one of the references.".to_owned(),
            Kind::ArgumentCount { function, .. } | Kind::MissingArgument { function, .. } => {
                let found = crate::functions::find(function)?;
                format!("Write {}.", found.signature())
            }
            Kind::WrongShape { expected: ExpressionForm::Scalar, found: ExpressionForm::Table } => {
                "Aggregate the table, for example with COUNTROWS or SUMX.".to_owned()
            }
            Kind::WrongShape { expected: ExpressionForm::Table, .. } => {
                "Use a table, or make one with VALUES, ROW or `{…}`.".to_owned()
            }
            Kind::WrongShape { expected: ExpressionForm::Column, found: ExpressionForm::Scalar } => {
                "Use a column of a table, such as `Table[Column]`. A measure needs no aggregation.".to_owned()
            }
            Kind::WrongShape { expected, .. } => format!("Use {expected}."),
            Kind::ScalarEvaluated { text: Some(text) } => format!("Use ROW or write `EVALUATE {{ {text} }}`."),
            Kind::ScalarEvaluated { text: None } => "Use ROW or a table constructor `{…}`.".to_owned(),
            Kind::ExpectedName => "Write the name as a string, for example \"Total\".".to_owned(),
            Kind::Incomparable { left: Type::DateTime, right: Type::Text }
            | Kind::Incomparable { left: Type::Text, right: Type::DateTime } => {
                "Write the date as `dt\"2024-01-31\"` or DATE(2024, 1, 31).".to_owned()
            }
            Kind::WrongStart { key: Type::DateTime, .. } => {
                "Write the date as `dt\"2024-01-31\"` or DATE(2024, 1, 31).".to_owned()
            }
            Kind::WrongStart { key, .. } => format!("Give {key}."),
            Kind::Incomparable { .. } => "Convert one side, for example with `& \"\"` or `+ 0`.".to_owned(),
            Kind::NoResultColumns { .. } => {
                "Add group columns, such as `Table[Column]`, or a name with an expression.".to_owned()
            }
            Kind::GroupAfterFilter { .. } => "Write all group columns before the filter tables.".to_owned(),
            Kind::RowLength { .. } => "Give each row the same number of values.".to_owned(),
            Kind::NoRowContext { column, proposal: ColumnProposal::Related } => format!("Use RELATED({column})."),
            Kind::NoRowContext { column, proposal: ColumnProposal::Aggregate(function) } => {
                format!("Aggregate it, for example {function}({column}), or use SELECTEDVALUE({column}).")
            }
            Kind::AggregatedExpression { function } => format!("Use {function}X(table, expression)."),
            Kind::FilterOfSeveralTables { .. } => {
                "Give one filter for each table, or use FILTER over CROSSJOIN.".to_owned()
            }
            Kind::FilterWithoutColumns => "Compare a column, for example `Table[Column] = 1`.".to_owned(),
            Kind::MeasureInFilter { .. } => "Use FILTER with a table, for example FILTER(VALUES(…), …).".to_owned(),
            Kind::NotRelated { proposal: Some(proposal), .. } => format!("It is on the many side: use {proposal}."),
            Kind::NotRelated { proposal: None, .. } => {
                "Use a column of the table or of a table on the one side of it.".to_owned()
            }
            Kind::UnknownParameter { .. } => "Write the value into the query, or send it with the query.".to_owned(),
            Kind::Misplaced { allowed, .. } => format!("Use it in {allowed}."),
            Kind::ExpectedWord { .. }
            | Kind::ExpectedConstant
            | Kind::WrongType { .. }
            | Kind::Cancelled
            | Kind::InvalidValue { .. }
            | Kind::ColumnCount { .. }
            | Kind::NotSupported { .. } => return None,
        };
        Some(text)
    }
}

/// Returns `Did you mean …?` if one of the names is very similar, and otherwise a sentence that lists the names.
fn among(name: &str, nearest: &[Arc<str>]) -> Option<String> {
    if let Some(best) = likely(name, nearest.iter().map(|name| &**name)) {
        return Some(format!("Did you mean `{best}`?"));
    }
    (!nearest.is_empty()).then(|| format!("Nearest names: {}.", nearest.join(", ")))
}

/// Returns the DAX for an operator or a word of another language.
fn of_other_languages(found: &str) -> Option<&'static str> {
    let text = match found.trim_matches('`').to_ascii_uppercase().as_str() {
        "!" => "Use `<>` for different values.",
        "IS" => "Use ISBLANK(value).",
        "LIKE" => "Compare a part of the string, for example LEFT(text, 1) = \"A\".",
        "BETWEEN" => "Use two comparisons, `value >= 1 && value <= 9`.",
        "MOD" => "Write the remainder of a division as number - divisor * INT(number / divisor).",
        "ASCENDING" => "Use `ASC`.",
        "DESCENDING" => "Use `DESC`.",
        _ => return None,
    };
    Some(text)
}

impl Expected {
    fn suggestion(self, found: Option<&str>) -> Option<String> {
        if let Some(suggestion) = found.and_then(of_other_languages) {
            return Some(suggestion.to_owned());
        }
        let text = match self {
            Expected::Query | Expected::Evaluate => {
                let word = found.unwrap_or_default().trim_matches('`');
                return match likely(word, ["EVALUATE", "DEFINE"]) {
                    Some(keyword) => Some(format!("Did you mean `{keyword}`?")),
                    None => Some("Write `EVALUATE` and a table expression.".to_owned()),
                };
            }
            Expected::Definition => "Define `MEASURE Table[Name] = …` or `VAR name = …`.",
            Expected::MeasureTable | Expected::MeasureName => "Write `MEASURE Table[Name] = …`.",
            Expected::VariableName => "Write `VAR name = …`.",
            Expected::Equals => "Write `=` and the expression.",
            Expected::Return => "Write `RETURN` and the result after the variables.",
            Expected::By => "Write `ORDER BY` and the keys of the order.",
            Expected::At => "Write `START AT` and a value for each key of `ORDER BY`.",
            Expected::Expression => "Write a column, a measure, a constant or a function.",
            Expected::Row => "Write at least one value between the braces.",
            Expected::Comma => "Separate arguments with commas.",
            Expected::CommaOrClose(_) => "Remove it, or complete the expression before it.",
            Expected::EndOfQuery => "Start another query with `EVALUATE`, or remove it.",
            Expected::EndOfExpression => "Remove it.",
        };
        Some(text.to_owned())
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Expected::Query => "`DEFINE` or `EVALUATE`",
            Expected::Evaluate => "`EVALUATE`",
            Expected::Definition => "a definition",
            Expected::MeasureTable => "the table of the measure",
            Expected::MeasureName => "the name of the measure in brackets",
            Expected::VariableName => "the name of the variable",
            Expected::Equals => "`=`",
            Expected::Return => "`RETURN`",
            Expected::By => "`BY` after `ORDER`",
            Expected::At => "`AT` after `START`",
            Expected::Expression => "an expression",
            Expected::Row => "a value",
            Expected::Comma => "`,`",
            Expected::CommaOrClose(close) => return write!(f, "`,` or `{close}`"),
            Expected::EndOfQuery => "the end of the query",
            Expected::EndOfExpression => "the end of the expression",
        })
    }
}

impl fmt::Display for ExpressionForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExpressionForm::Scalar => "a scalar expression",
            ExpressionForm::Table => "a table",
            ExpressionForm::Column => "a column",
            ExpressionForm::TableOrColumn => "a table or a column",
            ExpressionForm::Filter => "a filter",
        })
    }
}

/// A problem with its line and column: `line 1, column 10: unknown table `x`. Did you mean `y`?`.
#[derive(Debug)]
pub struct ProblemInText<'p> {
    problem: &'p Problem,
    pub position: Position,
}

impl fmt::Display for ProblemInText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.position, self.problem.kind)?;
        match self.problem.suggestion() {
            Some(suggestion) => write!(f, ". {suggestion}"),
            None => Ok(()),
        }
    }
}
