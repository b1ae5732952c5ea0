//! Binds filter arguments: logical filters, tables, and modifiers of the filter context.

use std::sync::Arc;

use terrane_compiler::model::DimensionId;

use super::{Binder, LogicalFilter, RowContext};
use crate::bound::{AllOf, BoundExpression, Filter, FilterKind, Relationship, Scalar, ScalarKind, column_text};
use crate::functions::{self, Function, Operation, Returns};
use crate::names::equal_names;
use crate::place::Place;
use crate::problem::{ExpressionForm, ProblemKind};
use crate::tree::{Expression, ExpressionKind, Name};

impl<'q> Binder<'q> {
    /// Binds the filter arguments of CALCULATE, in the row contexts around the call.
    pub(super) fn filters(&mut self, arguments: &'q [Expression]) -> Vec<Filter> {
        arguments.iter().filter_map(|argument| self.filter(argument, false)).collect()
    }

    fn filter(&mut self, expression: &'q Expression, keeps: bool) -> Option<Filter> {
        let place = expression.place;
        if let ExpressionKind::Call { function: name, arguments } = &expression.kind
            && let Some(function) = functions::find(&name.text)
            && let Some(modifier) = self.modifier(function, arguments, place, keeps)
        {
            return modifier;
        }
        let kind = if self.is_table(expression) {
            let table = self.table(expression);
            if table.is_invalid() {
                return None;
            }
            FilterKind::Table(table)
        } else {
            self.condition(expression)?
        };
        Some(Filter { kind, keeps, place })
    }

    /// Binds a table as a filter of SUMMARIZECOLUMNS.
    pub(super) fn filter_table(&mut self, expression: &'q Expression) -> Option<Filter> {
        if let ExpressionKind::Call { function: name, arguments } = &expression.kind
            && functions::find(&name.text).is_some_and(|function| function.operation == Operation::KeepFilters)
            && let [only] = &arguments[..]
        {
            let filter = self.filter_table(only)?;
            return Some(Filter { keeps: true, place: expression.place, ..filter });
        }
        let table = self.table(expression);
        let place = expression.place;
        (!table.is_invalid()).then_some(Filter { kind: FilterKind::Table(table), keeps: false, place })
    }

    /// Binds a call that changes filters. Returns `None` for another call, and `Some(None)` for an invalid one.
    fn modifier(
        &mut self,
        function: &'static Function,
        arguments: &'q [Expression],
        place: Place,
        keeps: bool,
    ) -> Option<Option<Filter>> {
        let kind = match function.operation {
            Operation::KeepFilters => {
                return match arguments {
                    [only] => Some(self.filter(only, true)),
                    _ => {
                        self.argument_count(function, arguments.len(), place);
                        Some(None)
                    }
                };
            }
            Operation::All | Operation::AllSelected | Operation::RemoveFilters => {
                let of = self.all_of(arguments);
                of.map(|of| FilterKind::Remove { function, of })
            }
            Operation::AllExcept => {
                let of = self.all_except(function, arguments, place);
                of.map(|of| FilterKind::Remove { function, of })
            }
            Operation::UseRelationship => match arguments {
                [one, two] => {
                    let (one, two) = (self.column(one), self.column(two));
                    one.zip(two).and_then(|(one, two)| self.relationship(one, two, place))
                }
                _ => {
                    self.argument_count(function, arguments.len(), place);
                    None
                }
            },
            _ => return None,
        };
        Some(kind.map(|kind| Filter { kind, keeps, place }))
    }

    /// Binds the two columns of a join. Either of them may be on the many side.
    fn relationship(&mut self, first: DimensionId, second: DimensionId, place: Place) -> Option<FilterKind> {
        let model = self.model();
        for (many, one) in [(first, second), (second, first)] {
            if let Some(join) = model.join_over(many, one) {
                return Some(FilterKind::UseRelationship(Relationship { table: one.cube, alias: join.target }));
            }
        }
        let columns = [first, second].map(|id| column_text(model, id));
        self.problem(ProblemKind::UnknownRelationship { columns }, place);
        None
    }

    fn argument_count(&mut self, function: &'static Function, found: usize, place: Place) {
        if let Some(expected) = function.refuses(found) {
            let expected = expected.into();
            self.problem(ProblemKind::ArgumentCount { function: function.name, expected, found }, place);
        }
    }

    /// Binds the arguments of ALL: tables, columns, or nothing.
    pub(super) fn all_of(&mut self, arguments: &'q [Expression]) -> Option<AllOf> {
        if arguments.is_empty() {
            return Some(AllOf::Everything);
        }
        if let [Expression { kind: ExpressionKind::Name(name), .. }] = arguments {
            return self.table_named(name).map(AllOf::Table);
        }
        let columns: Vec<Option<DimensionId>> = arguments.iter().map(|argument| self.column(argument)).collect();
        columns.into_iter().collect::<Option<Vec<DimensionId>>>().map(AllOf::Columns)
    }

    pub(super) fn all_except(
        &mut self,
        function: &'static Function,
        arguments: &'q [Expression],
        place: Place,
    ) -> Option<AllOf> {
        let Some((table, columns)) = arguments.split_first().filter(|(_, columns)| !columns.is_empty()) else {
            self.argument_count(function, arguments.len(), place);
            return None;
        };
        let table = match &table.kind {
            ExpressionKind::Name(name) => self.table_named(name),
            _ => {
                self.problem(
                    ProblemKind::WrongShape { expected: ExpressionForm::Table, found: ExpressionForm::Scalar },
                    table.place,
                );
                None
            }
        };
        let columns: Vec<Option<Vec<DimensionId>>> = columns.iter().map(|column| self.columns_except(column)).collect();
        let columns = columns.into_iter().collect::<Option<Vec<_>>>()?.concat();
        table.map(|table| AllOf::Except(table, columns))
    }

    /// Binds an argument of ALLEXCEPT whose filters stay: a column, or a table, which stands for all of its columns.
    fn columns_except(&mut self, argument: &'q Expression) -> Option<Vec<DimensionId>> {
        let ExpressionKind::Name(name) = &argument.kind else { return self.column(argument).map(|id| vec![id]) };
        let cube = self.table_named(name)?;
        let count = self.model().cube(cube).dimensions.len() as u32;
        Some((0..count).map(|index| DimensionId { cube, index }).collect())
    }

    /// Returns whether the form of an expression shows that it is a table.
    pub(super) fn is_table(&mut self, expression: &'q Expression) -> bool {
        match &expression.kind {
            ExpressionKind::Rows(_) => true,
            ExpressionKind::Call { function, .. } => {
                functions::find(&function.text).is_some_and(|function| function.returns == Returns::Table)
            }
            ExpressionKind::Name(name) => match self.find_variable(name) {
                Some(Some(id)) => matches!(self.bound.variables[id.0 as usize].value, BoundExpression::Table(_)),
                Some(None) => false,
                None => self.names.table(&name.text).is_ok(),
            },
            ExpressionKind::Block { variables, result } => {
                let own = match &result.kind {
                    ExpressionKind::Name(name) => {
                        variables.iter().rev().find(|variable| equal_names(&variable.name.text, &name.text))
                    }
                    _ => None,
                };
                self.is_table(own.map_or(&**result, |variable| &variable.value))
            }
            _ => false,
        }
    }

    /// Binds a logical filter: a condition over the columns of one table.
    fn condition(&mut self, expression: &'q Expression) -> Option<FilterKind> {
        let place = expression.place;
        self.logical_filters.push(LogicalFilter { scope: self.scopes.len() });
        self.scopes.push(RowContext { columns: Arc::default(), is_open: false, keeps_filters: false });
        let condition = self.scalar(expression);
        let scope = self.scopes.pop();
        self.logical_filters.pop();
        if condition.kind == ScalarKind::Invalid {
            return None;
        }
        let columns: Vec<DimensionId> =
            scope.iter().flat_map(|scope| &*scope.columns).filter_map(|column| column.lineage).collect();
        self.check_condition(&condition, &columns, place)?;
        Some(FilterKind::Condition { columns, context: self.scopes.len() as u32, condition })
    }

    fn check_condition(&mut self, condition: &Scalar, columns: &[DimensionId], place: Place) -> Option<()> {
        let mut cubes: Vec<_> = columns.iter().map(|column| column.cube).collect();
        cubes.dedup();
        let kind = match &cubes[..] {
            [] => ProblemKind::FilterWithoutColumns,
            [_] => {
                self.expect_boolean(condition);
                return Some(());
            }
            several => {
                let tables = several.iter().map(|cube| Arc::clone(&self.model().cube(*cube).name)).collect();
                ProblemKind::FilterOfSeveralTables { tables }
            }
        };
        self.problem(kind, place);
        None
    }
}

/// Returns whether a name is a keyword, in any case.
pub(super) fn is_word(name: &Name, word: &str) -> bool {
    name.text.eq_ignore_ascii_case(word)
}
