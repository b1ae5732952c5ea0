//! A query with its names resolved. Each node has its meaning, its type, and the contexts in which it is evaluated.
//!
//! In: a tree, through the binder. Out: data for the planner and the evaluation, which look up no names. Row contexts
//! are numbered from the outermost one; a node outside them is evaluated in the filter context alone.

use std::sync::Arc;

use terrane_compiler::model::{CubeId, DimensionId, MeasureId, MetricId, Model};
use terrane_compiler::types::Value;

use crate::functions::{Aggregation, Function};
use crate::place::Place;
use crate::print::{Bracketed, TableName};
use crate::tree::Operator;
use crate::types::Type;

/// A query whose names are resolved.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BoundQuery {
    pub measures: Vec<QueryMeasure>,
    /// All variables of the query, including those that expressions define.
    pub variables: Vec<BoundVariable>,
    pub evaluations: Vec<BoundEvaluation>,
    /// The names of the query's parameters, each once.
    pub parameters: Vec<Arc<str>>,
}

/// A measure that the query defines.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryMeasure {
    pub table: CubeId,
    pub name: Arc<str>,
    pub expression: Scalar,
}

/// An index of [`BoundQuery::measures`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QueryMeasureId(pub u32);

/// A variable. Its value is evaluated at most once, in the contexts of its definition.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundVariable {
    pub name: Arc<str>,
    pub value: BoundExpression,
}

/// An index of [`BoundQuery::variables`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VariableId(pub u32);

#[derive(Debug, Clone, PartialEq)]
pub enum BoundExpression {
    Scalar(Scalar),
    Table(Table),
}

#[derive(Debug, Clone, PartialEq)]
pub struct BoundEvaluation {
    pub table: Table,
    pub order: Vec<BoundOrder>,
    pub start_at: Vec<Scalar>,
    pub place: Place,
}

/// A key by which the rows of a table are ordered.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundOrder {
    pub expression: Scalar,
    pub descending: bool,
}

/// An expression that has one value.
#[derive(Debug, Clone, PartialEq)]
pub struct Scalar {
    pub kind: ScalarKind,
    pub ty: Type,
    pub place: Place,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ScalarKind {
    Constant(Value),
    Parameter(Arc<str>),
    /// A column of the current row in a row context.
    Column {
        context: u32,
        column: u32,
    },
    /// A column of a table that the table of a row context reaches on the one side of its joins.
    Related {
        context: u32,
        column: DimensionId,
    },
    Measure(MeasureCall),
    Variable(VariableId),
    /// VAR … RETURN …
    Block {
        variables: Vec<VariableId>,
        result: Box<Scalar>,
    },
    Negate(Box<Scalar>),
    Not(Box<Scalar>),
    /// Operations of equal precedence, from left to right. BLANK is 0 in sums, and makes a product BLANK.
    Arithmetic {
        first: Box<Scalar>,
        rest: Vec<(Operator, Scalar)>,
    },
    Concatenate(Vec<Scalar>),
    Compare {
        operator: Operator,
        blank: BlankRule,
        left: Box<Scalar>,
        right: Box<Scalar>,
    },
    /// A strict test whether the values are a row of the table.
    In {
        values: Vec<Scalar>,
        table: Box<Table>,
    },
    And(Vec<Scalar>),
    Or(Vec<Scalar>),
    Calculate {
        expression: Box<Scalar>,
        filters: Vec<Filter>,
        has_transition: bool,
    },
    /// An aggregate of a column in the filter context.
    Aggregate {
        aggregation: Aggregation,
        column: DimensionId,
    },
    /// A function of a column in the filter context, such as HASONEVALUE.
    OfColumn {
        function: &'static Function,
        column: DimensionId,
        alternate: Option<Box<Scalar>>,
    },
    /// A function of the rows of a table, such as COUNTROWS.
    OfTable {
        function: &'static Function,
        table: Box<Table>,
    },
    /// The value of a table with one column and at most one row, or BLANK if it has no row.
    SingleValue(Box<Table>),
    /// An iterator. Its expression and its order are evaluated in the row context of its table.
    Iterate(Box<Iteration>),
    /// A function of scalars.
    Call {
        function: &'static Function,
        arguments: Vec<Option<Scalar>>,
        words: Vec<&'static str>,
    },
    /// An expression for which a problem was reported.
    Invalid,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Iteration {
    pub function: &'static Function,
    pub table: Table,
    pub context: u32,
    pub expression: Scalar,
    /// The arguments that are evaluated outside the row context.
    pub arguments: Vec<Option<Scalar>>,
    pub order: Vec<BoundOrder>,
    pub words: Vec<&'static str>,
}

/// A reference to a measure.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasureCall {
    pub source: MeasureSource,
    /// True if the current rows are turned into filters on their columns.
    pub has_transition: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MeasureSource {
    Model(MeasureId),
    Metric(MetricId),
    Query(QueryMeasureId),
}

/// The value that replaces BLANK in a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlankRule {
    Zero,
    EmptyText,
    False,
    /// The zero of the type of the other side's value. This type is known only when the values are compared.
    ByValue,
    /// BLANK is not replaced, and equals only BLANK.
    Strict,
}

/// An expression that has rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    pub kind: TableKind,
    pub columns: Arc<[TableColumn]>,
    pub place: Place,
}

/// A column of a table expression.
#[derive(Debug, Clone, PartialEq)]
pub struct TableColumn {
    pub name: ColumnName,
    /// The column of the model from which the values come, and which a filter by this table therefore restricts.
    pub lineage: Option<DimensionId>,
    pub ty: Type,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ColumnName {
    /// `Table[Column]`
    Model(DimensionId),
    /// `[Name]`
    Named(Arc<str>),
}

/// An expression with the name that the query gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedScalar {
    /// Empty for a column of SELECTCOLUMNS without a name.
    pub name: Arc<str>,
    pub expression: Scalar,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TableKind {
    /// The rows of a table of the model.
    Model(CubeId),
    /// VALUES of a table: its rows, and the BLANK row if rows of other tables lack a partner in it.
    ModelWithUnmatched(CubeId),
    Variable(VariableId),
    /// VAR … RETURN …
    Block {
        variables: Vec<VariableId>,
        result: Box<Table>,
    },
    /// VALUES or DISTINCT of a column. VALUES includes a BLANK if rows of other tables have no matching row.
    Values {
        column: DimensionId,
        has_unmatched: bool,
    },
    /// DISTINCT of a table.
    DistinctRows(Box<Table>),
    /// ALL or ALLSELECTED as a table.
    All {
        function: &'static Function,
        of: AllOf,
    },
    Filter {
        table: Box<Table>,
        context: u32,
        condition: Box<Scalar>,
    },
    Calculate {
        table: Box<Table>,
        filters: Vec<Filter>,
        has_transition: bool,
    },
    SummarizeColumns {
        groups: Vec<Group>,
        filters: Vec<Filter>,
        values: Vec<NamedScalar>,
    },
    Summarize {
        table: Box<Table>,
        groups: Vec<DimensionId>,
        context: u32,
        values: Vec<NamedScalar>,
    },
    AddColumns {
        table: Box<Table>,
        context: u32,
        values: Vec<NamedScalar>,
    },
    SelectColumns {
        table: Box<Table>,
        context: u32,
        values: Vec<NamedScalar>,
    },
    TopN {
        count: Box<Scalar>,
        table: Box<Table>,
        context: u32,
        order: Vec<BoundOrder>,
    },
    /// ROW
    Row(Vec<NamedScalar>),
    /// A table constructor.
    Rows(Vec<Vec<Scalar>>),
    /// CROSSJOIN, UNION, INTERSECT or EXCEPT.
    Combine {
        function: &'static Function,
        tables: Vec<Table>,
    },
    Generate {
        table: Box<Table>,
        context: u32,
        row_table: Box<Table>,
    },
    TreatAs {
        table: Box<Table>,
        columns: Vec<DimensionId>,
    },
    Related {
        context: u32,
        table: CubeId,
    },
    /// A time function of a column of dates.
    Dates {
        function: &'static Function,
        column: DimensionId,
        dates: Option<Box<Table>>,
        arguments: Vec<Option<Scalar>>,
        words: Vec<&'static str>,
    },
    /// A table for which a problem was reported.
    Invalid,
}

/// A group argument of SUMMARIZECOLUMNS.
#[derive(Debug, Clone, PartialEq)]
pub enum Group {
    Column(DimensionId),
    /// Columns with subtotals.
    Rollup(Vec<RollupLevel>),
}

/// The columns of one level of subtotals.
#[derive(Debug, Clone, PartialEq)]
pub struct RollupLevel {
    pub columns: Vec<DimensionId>,
    /// The name of the result column that is TRUE for subtotals over these columns.
    pub name: Arc<str>,
}

/// The tables or columns whose filters ALL and similar functions remove.
#[derive(Debug, Clone, PartialEq)]
pub enum AllOf {
    Everything,
    Table(CubeId),
    Columns(Vec<DimensionId>),
    /// All columns of a table except these.
    Except(CubeId, Vec<DimensionId>),
}

/// A filter argument of CALCULATE, CALCULATETABLE or SUMMARIZECOLUMNS.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    pub kind: FilterKind,
    /// True for KEEPFILTERS: the filter intersects with the filters of the same columns.
    pub keeps: bool,
    pub place: Place,
}

#[derive(Debug, Clone, PartialEq)]
pub enum FilterKind {
    Table(Table),
    /// A logical filter. It allows those combinations of values of its columns that meet the condition. The condition
    /// is evaluated without the filters of the query, in a row context that consists of these columns.
    Condition {
        columns: Vec<DimensionId>,
        context: u32,
        condition: Scalar,
    },
    Remove {
        function: &'static Function,
        of: AllOf,
    },
    /// USERELATIONSHIP: filters of a table apply to other tables through one of its aliases.
    UseRelationship(Relationship),
}

/// A join that filters follow instead of other joins to the same table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Relationship {
    /// The table on the one side.
    pub table: CubeId,
    /// The table under the name of the join. This is an alias, or the table itself.
    pub alias: CubeId,
}

impl Filter {
    /// Returns whether the filter adds a restriction. Modifiers such as REMOVEFILTERS add none.
    pub(crate) fn is_new(&self) -> bool {
        matches!(self.kind, FilterKind::Table(_) | FilterKind::Condition { .. })
    }
}

impl Scalar {
    pub(crate) fn invalid(place: Place) -> Self {
        Scalar { kind: ScalarKind::Invalid, ty: Type::Variant, place }
    }
}

impl Table {
    pub(crate) fn invalid(place: Place) -> Self {
        Table { kind: TableKind::Invalid, columns: Arc::default(), place }
    }

    pub(crate) fn is_invalid(&self) -> bool {
        self.kind == TableKind::Invalid
    }
}

impl TableColumn {
    pub(crate) fn of_model(model: &Model, id: DimensionId) -> Self {
        TableColumn { name: ColumnName::Model(id), lineage: Some(id), ty: Type::of_dimension(model.dimension(id)) }
    }

    pub(crate) fn named(name: &Arc<str>, ty: Type) -> Self {
        TableColumn { name: ColumnName::Named(Arc::clone(name)), lineage: None, ty }
    }
}

impl ColumnName {
    /// Returns the name of the column in a result: `Table[Column]` without quotes, or `[Name]`.
    pub fn in_result(&self, model: &Model) -> String {
        match self {
            ColumnName::Model(id) => {
                let (table, column) = (&model.cube(id.cube).name, &model.dimension(*id).name);
                format!("{table}[{column}]")
            }
            ColumnName::Named(name) => format!("[{name}]"),
        }
    }
}

/// Returns a column of the model in the syntax of a query.
pub(crate) fn column_text(model: &Model, id: DimensionId) -> Arc<str> {
    let (table, column) = (&model.cube(id.cube).name, &model.dimension(id).name);
    format!("{}{}", TableName(table), Bracketed(column)).into()
}
