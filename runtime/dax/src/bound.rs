//! A query with its names resolved: what every node means, its type, and the context that it is evaluated in.
//!
//! In: a tree, through the binder. Out: data for the planner, which looks up no names. Row contexts are numbered from
//! the outermost one; a node outside of them is evaluated in the filter context alone.

use std::sync::Arc;

use terrane_compiler::model::{CubeId, DimensionId, MeasureId, MetricId, Model};
use terrane_compiler::types::Value;

use crate::functions::{Aggregation, Function, Operation};
use crate::place::Place;
use crate::print::{Bracketed, TableName};
use crate::tree::Operator;
use crate::types::Type;

/// A query whose names are resolved.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BoundQuery {
    pub measures: Vec<QueryMeasure>,
    /// All variables, also those inside of expressions.
    pub variables: Vec<BoundVariable>,
    pub evaluations: Vec<BoundEvaluation>,
    /// The names of the parameters, each once.
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

/// A variable. Its value is evaluated once, in the contexts of the place where it is defined.
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

/// A key of an order over the rows of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundOrder {
    pub expression: Scalar,
    pub descending: bool,
}

/// An expression with one value.
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
    /// A column of the current row of a row context.
    Column {
        context: u32,
        column: u32,
    },
    /// A column of a table on the one side of a row context's table.
    Related {
        context: u32,
        column: DimensionId,
    },
    Measure(MeasureCall),
    Variable(VariableId),
    /// VAR and RETURN.
    Block {
        variables: Vec<VariableId>,
        result: Box<Scalar>,
    },
    Negate(Box<Scalar>),
    Not(Box<Scalar>),
    /// Operations of equal precedence, from left to right. BLANK counts as 0 in sums, and makes products BLANK.
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
    /// A strict comparison with the rows of a table.
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
    /// The value of a table of one column and at most one row. Without a row it is BLANK.
    SingleValue(Box<Table>),
    /// An iterator. The expression and the order are evaluated in the row context of its table.
    Iterate(Box<Iteration>),
    /// A function of scalars.
    Call {
        function: &'static Function,
        arguments: Vec<Option<Scalar>>,
        words: Vec<&'static str>,
    },
    /// A problem was reported for it.
    Invalid,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Iteration {
    pub function: &'static Function,
    pub table: Table,
    pub context: u32,
    pub expression: Scalar,
    /// Arguments that are evaluated outside of the row context.
    pub arguments: Vec<Option<Scalar>>,
    pub order: Vec<BoundOrder>,
    pub words: Vec<&'static str>,
}

/// A reference to a measure.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasureCall {
    pub source: MeasureSource,
    /// True if a row context turns into filters on the columns of its row.
    pub has_transition: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MeasureSource {
    Model(MeasureId),
    Metric(MetricId),
    Query(QueryMeasureId),
}

/// The value that BLANK stands for in a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlankRule {
    Zero,
    EmptyText,
    False,
    /// The blank value of the type that each value of the other side has.
    ByValue,
    /// BLANK equals only BLANK.
    Strict,
}

/// An expression with rows.
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
    /// The column of the model whose values these are; a filter context restricts it.
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

/// An expression that the query names.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedScalar {
    pub name: Arc<str>,
    pub expression: Scalar,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TableKind {
    /// The rows of a table of the model.
    Model(CubeId),
    /// VALUES of a table: its rows, with the BLANK row of rows without a partner.
    ModelWithUnmatched(CubeId),
    Variable(VariableId),
    /// VAR and RETURN.
    Block {
        variables: Vec<VariableId>,
        result: Box<Table>,
    },
    /// VALUES and DISTINCT of a column; VALUES has the BLANK of rows without a partner.
    Values {
        column: DimensionId,
        has_unmatched: bool,
    },
    /// DISTINCT of a table.
    DistinctRows(Box<Table>),
    /// ALL and ALLSELECTED as tables.
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
    /// CROSSJOIN, UNION, INTERSECT and EXCEPT.
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
    /// A function of time over a column of dates.
    Dates {
        function: &'static Function,
        column: DimensionId,
        dates: Option<Box<Table>>,
        arguments: Vec<Option<Scalar>>,
        words: Vec<&'static str>,
    },
    /// A problem was reported for it.
    Invalid,
}

/// A part of the groups of SUMMARIZECOLUMNS.
#[derive(Debug, Clone, PartialEq)]
pub enum Group {
    Column(DimensionId),
    /// Columns with subtotals, each with the name of the column that marks them.
    Rollup(Vec<(DimensionId, Arc<str>)>),
}

/// The tables or columns of ALL and its relatives.
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
    /// A logical filter: the combinations of the columns, whatever their filters, that meet the condition. The columns
    /// are those of the row context.
    Condition {
        columns: Vec<DimensionId>,
        context: u32,
        condition: Scalar,
    },
    Remove {
        function: &'static Function,
        of: AllOf,
    },
    /// Filters of a table reach others through one of its aliases.
    UseRelationship(Relationship),
}

/// A join that takes the place of others to the same table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Relationship {
    /// The table on the one side.
    pub table: CubeId,
    /// The table under the name of the join: an alias, or the table itself.
    pub alias: CubeId,
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
    /// Returns the name in results: `Table[Column]` without quotes, or `[Name]`.
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

/// Returns a column of the model as a query writes it.
pub(crate) fn column_text(model: &Model, id: DimensionId) -> Arc<str> {
    let (table, column) = (&model.cube(id.cube).name, &model.dimension(id).name);
    format!("{}{}", TableName(table), Bracketed(column)).into()
}

/// Returns whether a function only changes the filters of CALCULATE.
pub(crate) fn is_modifier(operation: Operation) -> bool {
    matches!(operation, Operation::RemoveFilters | Operation::KeepFilters | Operation::UseRelationship)
}
