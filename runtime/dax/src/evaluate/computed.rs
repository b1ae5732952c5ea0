//! Aggregates of values that the warehouse computes for each row of a table.
//!
//! In: an iterator over a table of the model, possibly filtered, or an aggregate of a column. Out: its value, or `None`
//! if the rows must be read instead. The warehouse computes only what means the same there as in DAX
//! ([`row_value`](crate::plan::row_value)). Masked columns are read as rows, because the values of a row are masked and
//! the values in a query are not.

use std::rc::Rc;
use std::sync::Arc;

use terrane_compiler::model::{CubeId, DimensionId, Member};
use terrane_compiler::query::{Filter, MemberRef, RowAggregate, RowCondition, RowFunction, RowValue};
use terrane_compiler::types::{DimensionType, LogicalType, Operator, Value};

use super::context::{FilterContext, FilterList};
use super::data::COMPUTED_KEY;
use super::environment::Environment;
use super::operators::{add, divide};
use super::source::Item;
use super::walk::Node;
use super::{Datum, Evaluator, Result};
use crate::bound::{BoundExpression, Iteration, Scalar, Table, TableKind};
use crate::functions::{Aggregation, Operation};
use crate::place::Place;
use crate::plan::{
    ModelRow, OfRow, applies, column_ref, has_numbers, row_condition, row_value, row_value_size, row_value_where,
};

/// The rows of a table of the model that a table expression has.
struct ModelRows<'q> {
    cube: CubeId,
    columns: Rc<[DimensionId]>,
    /// The filters under which the rows are selected.
    context: FilterContext,
    /// The conditions that the filters do not contain, each with the number of its row context.
    conditions: Vec<(u32, &'q Scalar)>,
}

impl<'q> Evaluator<'q> {
    /// Computes an iterator in the warehouse.
    pub(super) fn computed_iterator(
        &self,
        iteration: &'q Iteration,
        environment: &Environment,
        place: Place,
    ) -> Result<Option<Datum>> {
        let Operation::Iterate(aggregation) = iteration.function.operation else { return Ok(None) };
        if function_of(aggregation).is_none() {
            return Ok(None);
        }
        let address = std::ptr::from_ref(iteration) as usize;
        if self.row_values.borrow().get(&address).is_some_and(Option::is_none) {
            return Ok(None);
        }
        let Some(rows) = self.model_rows(&iteration.table, environment)? else { return Ok(None) };
        let make = || self.value_of(&rows, Some((iteration.context, &iteration.expression)));
        let Some(value) = self.converted(address, place, make)? else { return Ok(None) };
        self.computed(aggregation, &rows, &value, place)
    }

    /// Counts the rows of a table expression in the warehouse.
    pub(super) fn computed_count(&self, table: &'q Table, environment: &Environment) -> Result<Option<Datum>> {
        let address = std::ptr::from_ref(table) as usize;
        if self.row_values.borrow().get(&address).is_some_and(Option::is_none) {
            return Ok(None);
        }
        let Some(rows) = self.model_rows(table, environment)? else { return Ok(None) };
        let Some(value) = self.converted(address, table.place, || self.value_of(&rows, None))? else {
            return Ok(None);
        };
        self.computed(Aggregation::Count, &rows, &value, table.place)
    }

    /// Computes an aggregate of a column in the warehouse.
    pub(super) fn computed_aggregate(
        &self,
        aggregation: Aggregation,
        column: DimensionId,
        context: &FilterContext,
        place: Place,
    ) -> Result<Option<Datum>> {
        let Some(name) = column_ref(self.model, column).filter(|_| self.is_open_to(column, column.cube)) else {
            return Ok(None);
        };
        let rows = ModelRows {
            cube: column.cube,
            columns: Rc::from([column]),
            context: context.clone(),
            conditions: Vec::new(),
        };
        let value = OfRow { part: RowValue::Member(name.clone()), columns: [column].into() };
        let is_number = has_numbers(self.model, column);
        match aggregation {
            Aggregation::DistinctCount | Aggregation::DistinctCountNoBlank if is_number || self.has_text(column) => {
                let with_blank = aggregation == Aggregation::DistinctCount;
                self.distinct_count(&rows, name, with_blank, place)
            }
            _ if is_number => self.computed(aggregation, &rows, &Rc::new(value), place),
            _ => Ok(None),
        }
    }

    fn has_text(&self, column: DimensionId) -> bool {
        let dimension = self.model.dimension(column);
        dimension.ty == DimensionType::String && dimension.column_type == LogicalType::Text
    }

    /// Counts the different values of a column. `with_blank` counts BLANK as a value.
    fn distinct_count(
        &self,
        rows: &ModelRows<'q>,
        name: MemberRef,
        with_blank: bool,
        place: Place,
    ) -> Result<Option<Datum>> {
        let is_blank = Filter::Condition { member: name.clone(), operator: Operator::NotSet, values: Vec::new() };
        let blank = RowValue::When {
            condition: Box::new(RowCondition::Filter(is_blank)),
            value: Box::new(RowValue::Constant(Value::Integer(1))),
            otherwise: Box::new(RowValue::Constant(Value::Null)),
        };
        let distinct = self.row_aggregate(
            self.aggregate_of(rows, RowFunction::CountDistinct, RowValue::Member(name)),
            rows,
            place,
        );
        let blanks = match with_blank {
            true => self.row_aggregate(self.aggregate_of(rows, RowFunction::Count, blank), rows, place),
            false => Ok(Some(Datum::Blank)),
        };
        let (Some(distinct), Some(blanks)) = (distinct?, blanks?) else { return Ok(None) };
        let has_blank = !matches!(blanks, Datum::Blank | Datum::Integer(0));
        let total = add(&distinct, &Datum::Integer(i64::from(has_blank)), place)?;
        Ok(Some(if total == Datum::Integer(0) { Datum::Blank } else { total }))
    }

    fn aggregate_of(&self, rows: &ModelRows<'q>, function: RowFunction, value: RowValue) -> RowAggregate {
        let cube = Arc::clone(&self.model.cube(rows.cube).name);
        RowAggregate { key: COMPUTED_KEY.into(), cube, function, value }
    }

    /// Returns the rows of the model that a table expression selects; `None` if it has other rows.
    fn model_rows(&self, table: &'q Table, environment: &Environment) -> Result<Option<ModelRows<'q>>> {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.model_rows_of(table, environment))
    }

    fn model_rows_of(&self, table: &'q Table, environment: &Environment) -> Result<Option<ModelRows<'q>>> {
        let rows_of = |cube, context: &FilterContext| {
            let columns: Option<Rc<[DimensionId]>> = table.columns.iter().map(|column| column.lineage).collect();
            columns.map(|columns| ModelRows { cube, columns, context: context.clone(), conditions: Vec::new() })
        };
        match &table.kind {
            TableKind::Model(cube) => Ok(rows_of(*cube, &environment.context)),
            TableKind::Related { table: cube, .. } => {
                let inner = self.transitioned(environment, table.place)?;
                Ok(rows_of(*cube, &inner.context))
            }
            TableKind::Filter { table: of, context, condition } => {
                let (inner, left) = self.with_fixed_conditions(of, *context, condition, environment);
                let Some(mut rows) = self.model_rows(of, &inner)? else { return Ok(None) };
                rows.conditions.extend(left.into_iter().map(|condition| (*context, condition)));
                Ok(Some(rows))
            }
            TableKind::Calculate { table: of, filters, has_transition } => {
                if !self.is_of_model(of) {
                    return Ok(None);
                }
                let inner = self.calculated(Node::Table(of), filters, *has_transition, environment, table.place)?;
                self.model_rows(of, &inner)
            }
            TableKind::Variable(id) => match (environment.variable(*id), &self.query.variables[id.0 as usize].value) {
                // The table has the filters of its definition.
                (Some(binding), BoundExpression::Table(value)) => self.model_rows(value, &binding.environment),
                (None, BoundExpression::Table(value)) => {
                    self.model_rows(value, &Environment::outermost(self.filter_list(Vec::new())))
                }
                (_, BoundExpression::Scalar(_)) => Ok(None),
            },
            TableKind::Block { variables, result } => self.model_rows(result, &self.bound(variables, environment)),
            _ => Ok(None),
        }
    }

    /// Returns whether a table expression can have the rows of a table of the model.
    fn is_of_model(&self, table: &Table) -> bool {
        match &table.kind {
            TableKind::Model(_) | TableKind::Related { .. } | TableKind::Variable(_) => true,
            TableKind::Filter { table, .. } | TableKind::Calculate { table, .. } => self.is_of_model(table),
            TableKind::Block { result, .. } => self.is_of_model(result),
            _ => false,
        }
    }

    /// Returns the cached value of a node, or converts it and counts its memory.
    fn converted(
        &self,
        address: usize,
        place: Place,
        make: impl FnOnce() -> Option<OfRow<RowValue>>,
    ) -> Result<Option<Rc<OfRow<RowValue>>>> {
        if let Some(found) = self.row_values.borrow().get(&address) {
            return Ok(found.clone());
        }
        let value = make().map(Rc::new);
        if let Some(value) = &value {
            self.hold(row_value_size(&value.part) * size_of::<RowValue>(), place)?;
        }
        self.row_values.borrow_mut().insert(address, value.clone());
        Ok(value)
    }

    /// Converts an expression over rows, or 1 for each row, which is BLANK for rows that do not meet the conditions.
    fn value_of(&self, rows: &ModelRows<'q>, expression: Option<(u32, &'q Scalar)>) -> Option<OfRow<RowValue>> {
        let row = |context| ModelRow { context, columns: &rows.columns };
        let (query, model, parameters) = (self.query, self.model, self.parameters);
        let mut value = match expression {
            Some((context, scalar)) => row_value(query, model, parameters, scalar, row(context))?,
            None => OfRow { part: RowValue::Constant(Value::Integer(1)), columns: [].into() },
        };
        let mut conditions = Vec::with_capacity(rows.conditions.len());
        for (context, condition) in &rows.conditions {
            let OfRow { part, columns } = row_condition(query, model, parameters, condition, row(*context))?;
            conditions.push(part);
            value.columns.extend(columns);
        }
        value.part = row_value_where(conditions, value.part)?;
        let is_open = value.columns.iter().all(|column| self.is_open_to(*column, rows.cube));
        (is_open && !value.columns.is_empty()).then_some(value)
    }

    /// Returns whether a query over a table may compute with a column: the rows of the table determine it, and the
    /// caller sees it without a mask.
    fn is_open_to(&self, column: DimensionId, table: CubeId) -> bool {
        applies(self.model, column, table) && self.names_and_sees(column) && self.access.mask(column).is_none()
    }

    /// Computes an aggregate of a value over rows. Returns `None` if the warehouse refused to compute it.
    fn computed(
        &self,
        aggregation: Aggregation,
        rows: &ModelRows<'q>,
        value: &Rc<OfRow<RowValue>>,
        place: Place,
    ) -> Result<Option<Datum>> {
        let Some(function) = function_of(aggregation) else { return Ok(None) };
        // Along another join, a column of another table would be a column of its alias.
        let is_renamed = !rows.context.relationships.is_empty();
        if is_renamed && value.columns.iter().any(|column| column.cube != rows.cube) {
            return Ok(None);
        }
        let of = |function| self.aggregate_of(rows, function, value.part.clone());
        // Under a list of values, parts of the rows are combined, so that the list needs no query of its own.
        let has_list = |list: &FilterList| list.filters.iter().any(|one| one.lists_values());
        if function == RowFunction::Average && has_list(&rows.context.filters) {
            let parts = [RowFunction::Sum, RowFunction::Count];
            let [sum, count] = parts.map(|function| self.row_aggregate(of(function), rows, place));
            let (Some(sum), Some(count)) = (sum?, count?) else { return Ok(None) };
            return divide(&sum, &count, place).map(Some);
        }
        let found = self.row_aggregate(of(function), rows, place)?;
        // A count of no rows is BLANK in DAX, and 0 in a semantic query.
        let is_count = function == RowFunction::Count;
        Ok(found.map(|value| if is_count && value == Datum::Integer(0) { Datum::Blank } else { value }))
    }

    /// Returns the value of an aggregate over rows.
    fn row_aggregate(&self, aggregate: RowAggregate, rows: &ModelRows<'q>, place: Place) -> Result<Option<Datum>> {
        if self.data.refuses(&aggregate) {
            return Ok(None);
        }
        let item = Item::Computed(self.number_of(aggregate));
        self.item_value(&item, &[rows.cube], &rows.context, place).map(Some)
    }

    /// Returns the column that an aggregate aggregates; `None` if it aggregates an expression.
    pub(super) fn column_of(&self, number: usize) -> Option<DimensionId> {
        let RowValue::Member(name) = &self.row_aggregates.borrow()[number].value else { return None };
        match self.model.cube_named(name.cube()?)?.member(name.member())? {
            Member::Dimension(id) => Some(id),
            Member::Measure(_) | Member::Segment(_) => None,
        }
    }

    /// Returns the number of an aggregate. Equal aggregates have the same number.
    fn number_of(&self, aggregate: RowAggregate) -> usize {
        let mut all = self.row_aggregates.borrow_mut();
        let known = all.iter().position(|other| **other == aggregate);
        known.unwrap_or_else(|| {
            all.push(Rc::new(aggregate));
            all.len() - 1
        })
    }
}

/// Returns the function of an aggregate of values; `None` if it counts distinct or blank values.
fn function_of(aggregation: Aggregation) -> Option<RowFunction> {
    Some(match aggregation {
        Aggregation::Sum => RowFunction::Sum,
        Aggregation::Average => RowFunction::Average,
        Aggregation::Min => RowFunction::Min,
        Aggregation::Max => RowFunction::Max,
        Aggregation::Count | Aggregation::CountA => RowFunction::Count,
        Aggregation::CountBlank | Aggregation::DistinctCount | Aggregation::DistinctCountNoBlank => return None,
    })
}
