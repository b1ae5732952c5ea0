//! Scalars: constants, columns, variables, operators, and conditions.
//!
//! In: a bound scalar and its environment. Out: its value.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::rc::Rc;

use super::aggregate::count;
use super::environment::{Binding, Environment, Value};
use super::operators::{arithmetic, compare, negate, to_boolean, to_text, typed};
use super::walk::{Need, Node, Scan};
use super::{Datum, Evaluator, Result, collected, invalid_value, not_supported};
use crate::bound::{BoundExpression, MeasureSource, Scalar, ScalarKind, Table, TableKind, VariableId};
use crate::functions::{Function, Operation};
use crate::place::Place;
use crate::problem::{Problem, ProblemKind};

impl<'q> Evaluator<'q> {
    pub(super) fn scalar(&self, scalar: &'q Scalar, environment: &Environment) -> Result<Datum> {
        self.step(scalar.place)?;
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.scalar_kind(scalar, environment))
    }

    fn scalar_kind(&self, scalar: &'q Scalar, environment: &Environment) -> Result<Datum> {
        let place = scalar.place;
        match &scalar.kind {
            ScalarKind::Constant(value) => Ok(Datum::of_value(value)),
            ScalarKind::Parameter(name) => match self.parameters.get(name) {
                Some(value) => Ok(Datum::of_value(value)),
                None => Err(Problem::new(ProblemKind::UnknownParameter { name: name.clone() }, place).into()),
            },
            ScalarKind::Column { context, column } => self.column(*context, *column, environment, place),
            ScalarKind::Related { context, column } => {
                let value = environment.frame(*context).and_then(|frame| frame.related(*column)).cloned();
                value.ok_or_else(|| not_supported("RELATED outside of the rows of a table", place))
            }
            ScalarKind::Measure(call) => self.measure(call, environment, place),
            ScalarKind::Variable(id) => match self.variable(*id, environment)? {
                Value::Scalar(value) => Ok(value),
                Value::Table(_) => Err(not_supported("a table as a value", place)),
            },
            ScalarKind::Block { variables, result } => self.scalar(result, &self.bound(variables, environment)),
            ScalarKind::Negate(inner) => negate(&self.scalar(inner, environment)?, place),
            ScalarKind::Not(inner) => Ok(Datum::Boolean(!self.boolean(inner, environment)?)),
            ScalarKind::Arithmetic { first, rest } => {
                let operands = std::iter::once(&**first).chain(rest.iter().map(|(_, operand)| operand));
                let values = collected(operands.map(|operand| self.scalar(operand, environment)))?;
                let (start, others) = values.split_at(1);
                let mut steps = rest.iter().zip(others);
                let result = steps.try_fold(start[0].clone(), |left, ((operator, _), right)| {
                    arithmetic(*operator, &left, right, place)
                })?;
                let is_open = first.ty.is_open() || rest.iter().any(|(_, operand)| operand.ty.is_open());
                if is_open { Ok(result) } else { typed(result, scalar.ty, place) }
            }
            ScalarKind::Concatenate(all) => {
                let texts = collected(all.iter().map(|one| self.text(one, environment)))?;
                self.string_of(texts.iter().map(String::len).sum(), place)?;
                Ok(Datum::Text(texts.concat().into()))
            }
            ScalarKind::Compare { operator, blank, left, right } => {
                let values = collected([left, right].into_iter().map(|one| self.scalar(one, environment)))?;
                compare(*operator, *blank, &values[0], &values[1], place).map(Datum::Boolean)
            }
            ScalarKind::In { values, table } => self.is_in(values, table, environment),
            ScalarKind::And(all) => self.all(all, environment, true),
            ScalarKind::Or(all) => self.all(all, environment, false),
            ScalarKind::Calculate { expression, filters, has_transition } => {
                let inner = self.calculated(Node::Scalar(expression), filters, *has_transition, environment, place)?;
                self.scalar(expression, &inner)
            }
            ScalarKind::Aggregate { aggregation, column } => {
                self.aggregate(*aggregation, *column, &environment.context, place)
            }
            ScalarKind::OfColumn { function, column, alternate } => {
                self.of_column(function, *column, alternate.as_deref(), environment, place)
            }
            ScalarKind::OfTable { table, .. } => self.count_rows(table, environment),
            ScalarKind::SingleValue(table) => self.single_value(table, environment),
            ScalarKind::Iterate(iteration) => self.iterate(iteration, environment, place),
            ScalarKind::Call { function, arguments, words } => {
                self.call(function, arguments, words, environment, place)
            }
            ScalarKind::Invalid => Err(not_supported("an invalid expression", place)),
        }
    }

    fn column(&self, context: u32, column: u32, environment: &Environment, place: Place) -> Result<Datum> {
        let frame = environment.frame(context).filter(|frame| frame.table.has(column));
        let value = frame.and_then(|frame| frame.row.get(column as usize)).cloned();
        value.ok_or_else(|| not_supported("this column of a row", place))
    }

    pub(super) fn boolean(&self, scalar: &'q Scalar, environment: &Environment) -> Result<bool> {
        to_boolean(&self.scalar(scalar, environment)?, scalar.place)
    }

    pub(super) fn text(&self, scalar: &'q Scalar, environment: &Environment) -> Result<String> {
        to_text(&self.scalar(scalar, environment)?, scalar.place)
    }

    /// Evaluates a conjunction, or a disjunction if `all` is false. It stops at the first value that decides the
    /// result.
    fn all(&self, scalars: &'q [Scalar], environment: &Environment, all: bool) -> Result<Datum> {
        for scalar in scalars {
            if self.boolean(scalar, environment)? != all {
                return Ok(Datum::Boolean(!all));
            }
        }
        Ok(Datum::Boolean(all))
    }

    fn is_in(&self, values: &'q [Scalar], table: &'q Table, environment: &Environment) -> Result<Datum> {
        let row = collected(values.iter().map(|value| self.scalar(value, environment)))?;
        let rows = self.table(table, environment, &Need::All)?;
        let width = row.len();
        // A cached table is probably searched for other rows too, so a set of its rows is worth creating.
        if rows.rows.len() <= 16 || Rc::strong_count(&rows) == 1 {
            self.steps(rows.rows.len(), table.place)?;
            return Ok(Datum::Boolean(rows.rows.iter().any(|other| other[..width] == row[..])));
        }
        let address = Rc::as_ptr(&rows) as usize;
        if let Some((_, set)) = self.sets.borrow().get(&address) {
            return Ok(Datum::Boolean(set.contains(&row[..])));
        }
        self.steps(rows.rows.len(), table.place)?;
        self.hold(rows.rows.len() * 64, table.place)?;
        let set: HashSet<Rc<[Datum]>> = rows.rows.iter().map(|row| Rc::from(&row[..width])).collect();
        let found = set.contains(&row[..]);
        self.sets.borrow_mut().insert(address, (rows, Rc::new(set)));
        Ok(Datum::Boolean(found))
    }

    // Variables

    /// Returns the environment in which variables are visible. A variable is evaluated when it is first used.
    pub(super) fn bound(&self, variables: &[VariableId], environment: &Environment) -> Environment {
        let mut inner = environment.clone();
        for id in variables {
            let outer = inner.variables.clone();
            let binding = Binding { id: *id, environment: inner.clone(), value: OnceCell::new(), outer };
            inner.variables = Some(Rc::new(binding));
        }
        inner
    }

    pub(super) fn variable(&self, id: VariableId, environment: &Environment) -> Result<Value> {
        if let Some(binding) = environment.variable(id) {
            if let Some(value) = binding.value.get() {
                return value.clone();
            }
            let value = self.variable_value(id, &binding.environment);
            return binding.value.get_or_init(|| value).clone();
        }
        if let Some(found) = self.definitions.borrow().get(&id) {
            return found.clone();
        }
        let value = self.variable_value(id, &Environment::outermost(self.filter_list(Vec::new())));
        self.definitions.borrow_mut().insert(id, value.clone());
        value
    }

    /// Returns the table of the model that a variable stands for, if the variable was defined under the filters of the
    /// environment. Returns other tables unchanged.
    pub(super) fn behind_variables(&self, table: &'q Table, environment: &Environment) -> &'q Table {
        let (mut found, mut variables) = (table, environment.clone());
        loop {
            found = match &found.kind {
                TableKind::Model(_) => return found,
                TableKind::Variable(id) => {
                    variables = match variables.variable(*id) {
                        Some(binding) => binding.environment.clone(),
                        None => Environment::outermost(self.filter_list(Vec::new())),
                    };
                    if !variables.context.is_same(&environment.context) {
                        return table;
                    }
                    match &self.query.variables[id.0 as usize].value {
                        BoundExpression::Table(value) => value,
                        BoundExpression::Scalar(_) => return table,
                    }
                }
                _ => return table,
            };
        }
    }

    fn variable_value(&self, id: VariableId, environment: &Environment) -> Result<Value> {
        stacker::maybe_grow(128 * 1024, 1024 * 1024, || match &self.query.variables[id.0 as usize].value {
            BoundExpression::Scalar(scalar) => {
                let value = self.scalar(scalar, environment)?;
                if let Datum::Text(text) = &value {
                    self.hold(text.len(), scalar.place)?;
                }
                Ok(Value::Scalar(value))
            }
            BoundExpression::Table(table) => {
                let need = self.need_of_variable(table);
                self.table(table, environment, &need).map(Value::Table)
            }
        })
    }

    // Functions of columns and tables

    fn of_column(
        &self,
        function: &'static Function,
        column: terrane_compiler::model::DimensionId,
        alternate: Option<&'q Scalar>,
        environment: &Environment,
        place: Place,
    ) -> Result<Datum> {
        let values = self.values_of(&[column], true, &environment.context, place)?;
        match (function.operation, &values[..]) {
            (Operation::HasOneValue, values) => Ok(Datum::Boolean(values.len() == 1)),
            (_, [only]) => Ok(only[0].clone()),
            _ => alternate.map_or(Ok(Datum::Blank), |alternate| self.scalar(alternate, environment)),
        }
    }

    fn single_value(&self, table: &'q Table, environment: &Environment) -> Result<Datum> {
        let rows = self.table(table, environment, &Need::All)?;
        match &rows.rows[..] {
            [] => Ok(Datum::Blank),
            [row] => Ok(row[0].clone()),
            rows => Err(invalid_value(
                format!("expected a single value, found a table of {} rows", rows.len()),
                table.place,
            )),
        }
    }

    fn count_rows(&self, table: &'q Table, environment: &Environment) -> Result<Datum> {
        if let TableKind::Model(cube) = table.kind
            && let Some(measure @ MeasureSource::Model(_)) = self.count_of_rows(cube)
        {
            return self.model_measure(measure, &environment.context, table.place);
        }
        if let TableKind::Related { table: cube, .. } = table.kind
            && let Some(measure) = self.count_of_rows(cube)
        {
            let inner = self.transitioned(environment, table.place)?;
            return self.model_measure(measure, &inner.context, table.place);
        }
        if let TableKind::Filter { table: of, context, condition } = &table.kind
            && let TableKind::Model(cube) = of.kind
            && let Some(measure) = self.count_of_rows(cube)
            && let (inner, left) = self.with_fixed_conditions(of, *context, condition, environment)
            && left.is_empty()
        {
            return self.model_measure(measure, &inner.context, table.place);
        }
        if let Some(value) = self.computed_count(table, environment)? {
            return Ok(value);
        }
        let rows = self.table(table, environment, &Need::Only(Scan::default()))?;
        Ok(count(rows.rows.len()))
    }

    /// Returns the cached result of a table for these filters, or computes it. A cached result is used only if it has
    /// the needed columns.
    pub(super) fn remembered(
        &self,
        node: usize,
        environment: &Environment,
        need: &Need,
        make: impl FnOnce() -> Result<Rc<super::Rows>>,
    ) -> Result<Rc<super::Rows>> {
        let key = super::TableKey::of(node, environment);
        if let Some(found) = self.tables.borrow().get(&key).filter(|found| self.has_needed(found, need)) {
            return Ok(Rc::clone(found));
        }
        let made = make()?;
        self.tables.borrow_mut().insert(key, Rc::clone(&made));
        Ok(made)
    }
}
